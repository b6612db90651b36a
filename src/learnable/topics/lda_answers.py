"""What a fitted topic model says of documents and topics: intervals, held-out likelihood, words, sizes, groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..core.errors import DataError
from ..meta.splits import as_generator
from . import _kernels as kernels
from .corpus import Corpus, corpus_of
from .variational import normal_rows

Array = NDArray[np.float64]


class TopicAnswers:
    """Answers of `LatentDirichletAllocation` that scikit-learn's has not; not to be used alone."""

    n_components: int
    components_: Array
    _rows: Any
    _phi: Any
    _alpha: Any
    _words: Any
    transform: Any

    def transform_interval(
        self, X: Any, level: float = 0.9, *, n_draws: int = 200, random_state: Any = 0
    ) -> tuple[Array, Array, Array]:
        """Return posterior means of the shares in documents and the ends of their intervals, by Gibbs sampling.

        Parameters
        ----------
        X : array or sparse array of shape (n_documents, n_words)
            Counts.
        level : float
            Probability between the ends.
        n_draws : int
            Draws per document, after a quarter as many of warm-up.
        random_state : int, Generator or None
            Seed.
        """
        check_is_fitted(self)
        rows = self._rows(X)
        D = rows.shape[0]
        out = np.empty((n_draws, D, self.n_components))
        words = as_generator(random_state).integers(0, 2**63, size=4).astype(np.uint64)
        corpus = _tokens(rows)
        kernels.draw_documents(
            corpus.words, corpus.starts, 0, D, self._phi(), self._alpha(), max(10, n_draws // 4), words, out
        )
        low, high = np.quantile(out, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return out.mean(axis=0), low, high

    def held_out(self, X: Any, *, n_particles: int = 20, random_state: Any = 0) -> Array:
        """Return an estimate of log p(document | topics, α) for each document, from left to right."""
        check_is_fitted(self)
        rows = self._rows(X)
        corpus = _tokens(rows)
        level = np.zeros(rows.shape[0])
        words = as_generator(random_state).integers(0, 2**63, size=4).astype(np.uint64)
        kernels.left_to_right(
            corpus.words, corpus.starts, 0, rows.shape[0], self._phi(), self._alpha(), n_particles, words, level
        )
        return level

    def top_words(self, n: int = 10, *, relevance: float = 1.0, names: Sequence[Any] | None = None) -> list[list[Any]]:
        """Return the words that say most about each topic.

        Parameters
        ----------
        n : int
            Words per topic.
        relevance : float
            λ of λ log φ + (1 − λ) log(φ/p(w)) (C. Sievert and K. Shirley 2014); 1 orders by frequency.
        names : sequence, optional
            Names of the columns; those of the fit, or numbers.
        """
        check_is_fitted(self)
        phi = normal_rows(self.components_)
        overall = self.components_.sum(axis=0)
        overall = overall / overall.sum()
        with np.errstate(divide="ignore"):
            weight = np.log(np.maximum(phi, 1e-300))
            weight = relevance * weight + (1.0 - relevance) * (weight - np.log(np.maximum(overall, 1e-300)))
        order = np.argsort(-weight, axis=1, kind="stable")[:, :n]
        known = names if names is not None else self._words()
        return [[int(w) if known is None else known[int(w)] for w in row] for row in order]

    def topic_sizes(self) -> Array:
        """Return the share of all tokens that each topic has."""
        check_is_fitted(self)
        sizes = self.components_.sum(axis=1)
        return np.asarray(sizes / sizes.sum())

    def shares_by(self, X: Any, groups: Any) -> tuple[list[Any], Array, Array]:
        """Return the groups (authors, years, …), the topics' mean shares in each, and their standard errors."""
        shares = self.transform(X)
        labels = np.asarray(groups)
        if len(labels) != len(shares):
            raise DataError(f"shares_by: {len(labels)} groups for {len(shares)} documents.")
        found = sorted(set(labels.tolist()))
        parts = [shares[labels == group] for group in found]
        means = np.array([part.mean(axis=0) for part in parts])
        errors = np.array([part.std(axis=0) / np.sqrt(len(part)) for part in parts])
        return found, means, errors


def _tokens(X: Any) -> Corpus:
    """Return the tokens of documents, none of which need have any."""
    rows = X.data if sp.issparse(X) else X
    if (rows != np.floor(rows)).any():
        raise DataError("LatentDirichletAllocation: tokens are counted; X holds fractions.")
    if rows.sum():
        return corpus_of(X)
    return Corpus(np.zeros(0, dtype=np.int32), np.zeros(X.shape[0] + 1, dtype=np.int64), X.shape[1])
