"""Collapsed sweeps over a corpus in the order of its words, in one part or in several at once.

In one part a sweep is exact: every token is drawn given all others. In several parts of the documents, each part sees
the others as they were before the sweep (Newman, Asuncion, Smyth and Welling, JMLR 10, 2009): no chain with the right
law, but a start that is as good and takes as many threads as there are parts. The parts do not depend on the number of
threads, and each has a stream of its own, so results do not either.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.threads import run_tasks
from ._collapsed_kernels import BLOCK, count_documents, sweep_words
from .corpus import Corpus

Array = NDArray[np.float64]
Topics = NDArray[np.int32]

#: Most tokens of a document whose counts are 16-bit numbers.
_MOST_SHORT = 32_767


class WordOrder:
    """The tokens of a corpus by part, word and document; 20 bytes per token, and 2K per document while it sweeps.

    Parameters
    ----------
    corpus : Corpus
        Documents.
    n_topics : int
        K.
    n_parts : int
        Parts of the documents; with one a sweep is exact.
    """

    def __init__(self, corpus: Corpus, n_topics: int, n_parts: int = 1) -> None:
        lengths = np.diff(corpus.starts)
        D = len(lengths)
        V = corpus.n_words
        self.K = n_topics
        self.n_words = V
        self.shape = (D, -(-n_topics // BLOCK), BLOCK)
        self.kind = np.int16 if lengths.max() <= _MOST_SHORT else np.int32
        wanted = np.linspace(0, int(corpus.starts[-1]), n_parts + 1)
        cuts = np.r_[0, np.searchsorted(corpus.starts, wanted[1:-1]), D]
        edges = corpus.starts[cuts]
        every = np.argsort(corpus.words, kind="stable")
        part = np.searchsorted(edges[1:], every, side="right")
        self.order = every[np.argsort(part, kind="stable")]  # tokens of the corpus by part, word, document
        place = np.empty_like(self.order)
        place[self.order] = np.arange(len(place))
        self.by_word = place[every].astype(np.int32)  # places in `order` of all tokens by word
        documents = np.repeat(np.arange(D, dtype=np.int32), lengths)[self.order]
        words = corpus.words[self.order]
        self.before_starts = np.r_[0, np.cumsum(np.bincount(corpus.words, minlength=V))]
        self.parts = [slice(int(a), int(b)) for a, b in pairwise(edges)]
        self.documents = [documents[own] for own in self.parts]
        self.starts = [np.r_[0, np.cumsum(np.bincount(words[own], minlength=V))] for own in self.parts]

    def load(self, z: Topics) -> tuple[Topics, NDArray[np.signedinteger[Any]]]:
        """Return the topics in this order, and how often each document has each topic."""
        ordered = z[self.order]
        own = np.zeros(self.shape, dtype=self.kind)
        for part, documents in zip(self.parts, self.documents, strict=True):
            count_documents(documents, ordered[part], own)
        return ordered, own

    def sweep(
        self,
        z: Topics,
        own: NDArray[np.signedinteger[Any]],
        alpha: Array,
        beta: float,
        words: NDArray[np.uint64],
        threads: int = 1,
    ) -> None:
        """Draw every token once. IN/OUT z, own: as `load` returned them."""
        padded = np.zeros(self.shape[1:], dtype=np.float32)
        padded.reshape(-1)[: self.K] = alpha
        sizes = np.bincount(z, minlength=self.K).astype(np.float64)
        before = z[self.by_word]

        def task(p: int) -> None:
            sweep_words(
                self.documents[p], self.starts[p], before, self.before_starts, own, sizes.copy(), self.n_words * beta,
                padded, beta, words, p, z[self.parts[p]],
            )  # fmt: skip

        if threads == 1 or len(self.parts) == 1:
            for p in range(len(self.parts)):
                task(p)
        else:
            run_tasks(task, len(self.parts), threads)

    def store(self, ordered: Topics, z: Topics) -> None:
        """OUT z: the topics in the corpus's own order."""
        z[self.order] = ordered
