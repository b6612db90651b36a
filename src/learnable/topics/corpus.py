"""A corpus as packed tokens: one 32-bit word number per token, documents one after the other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.errors import DataError


class Corpus(NamedTuple):
    """Tokens of all documents; 4 bytes per token."""

    words: NDArray[np.int32]  #: (n_tokens,) word of each token
    starts: NDArray[np.int64]  #: (n_documents + 1,) first token of each document
    n_words: int  #: size of the vocabulary


def corpus_of(counts: Any) -> Corpus:
    """Return the tokens of a table of counts.

    Parameters
    ----------
    counts : array or sparse array of shape (n_documents, n_words)
        How often each word occurs in each document: whole numbers of at least 0.

    Examples
    --------
    >>> from learnable.topics import corpus_of
    >>> corpus_of([[2, 0, 1], [0, 1, 0]]).words
    array([0, 0, 2, 1], dtype=int32)
    """
    table = sp.csr_array(counts) if sp.issparse(counts) else sp.csr_array(np.atleast_2d(np.asarray(counts)))
    if table.ndim != 2 or not table.shape[1] or not table.shape[0]:
        raise DataError(f"corpus_of: counts must be a table of documents by words; got shape {table.shape}.")
    table.sum_duplicates()
    values = table.data.astype(np.float64)
    if not np.isfinite(values).all() or (values < 0).any() or (values != np.floor(values)).any():
        raise DataError("corpus_of: counts must be whole numbers of at least 0; tf-idf weights are none.")
    if values.sum() >= 2**31:
        raise DataError(f"corpus_of: at most 2³¹ − 1 tokens; got {values.sum():.0f}.")
    times = values.astype(np.int64)
    words = np.repeat(table.indices.astype(np.int32), times)
    if not len(words):
        raise DataError("corpus_of: there is not a single token.")
    ends = np.r_[0, np.cumsum(times)][table.indptr]
    return Corpus(words, ends.astype(np.int64), int(table.shape[1]))
