r"""Naive Bayes with multinomial counts, such as words of documents.

    x | class k  ~  Mult(Σ_j x_j, p_k),   p_k ~ Dir(α);       p_kj = (n_kj + α_j) / Σ_l (n_kl + α_l)

The estimate p_k is the mean of the posterior Dir(n_k + α). With `integrate=True` a row is judged by the posterior
predictive, the Dirichlet–multinomial (Pólya) distribution, under which a word that was seen once is less surprising the
second time.

Reference: C. Manning, P. Raghavan and H. Schütze, Introduction to Information Retrieval (2008), chapter 13.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import gammaln

from ..core.declare import fitted, param
from ..core.errors import DataError
from ..core.parameters import Boolean
from ..data.blocks import Block, map_reduce, unsigned
from ..data.door import door
from ..probability.conjugate.dirichlet_multinomial import DirichletMultinomial
from ..solvers.moments import add_in_place
from ._kernels import add_rows, add_sparse_rows, sparse_scores
from .base import codes_of, score_rows, weights_of
from .counts_nb import CountsNB, rounding_of

Array = NDArray[np.float64]


class MultinomialNB(CountsNB):
    """Naive Bayes for counts: every class draws its words from probabilities of its own.

    The fit is one pass over the (dense or sparse) rows, in O(Kd) memory besides the data. Fractional counts such as
    tf-idf are taken as they are. A missing count is refused: it would leave the row's total unknown.

    Examples
    --------
    >>> from learnable import MultinomialNB
    >>> X, y = [[2, 1, 0], [3, 0, 0], [0, 1, 4]], ["a", "a", "b"]
    >>> model = MultinomialNB().fit(X, y)
    >>> model.predict_proba([[0, 0, 2]]).round(3)
    array([[0.059, 0.941]])
    >>> MultinomialNB(integrate=True).fit(X, y).predict_proba([[0, 0, 2]]).round(3)
    array([[0.096, 0.904]])
    """

    _theory = "naive-bayes"

    integrate: bool = param(
        Boolean(),
        "Whether probabilities are averaged over the posterior of p rather than computed at its mean.",
        default=False,
    )
    feature_count_: Array = fitted("(n_classes, n_features)", "Weighted sums of the counts.", low=0.0)
    feature_log_prob_: Array = fitted("(n_classes, n_features)", "log p.", infinite=True, high=1e-9)

    _door = staticmethod(door(target="classes", sparse=True, one_class=True))
    _sparse = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def _sums(self, blocks: Any, n_classes: int) -> tuple[Array, Array]:
        if blocks.in_memory and blocks.sparse:
            return sparse_class_sums(type(self).__name__, blocks, n_classes, self.n_jobs)
        count = partial(_block_sums, n_classes=n_classes)
        count_, sums, least = map_reduce(blocks, count, _add, n_jobs=self.n_jobs)
        refuse_negative(type(self).__name__, least)
        return count_, sums

    def _merge(self, a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
        return a[0] + b[0], a[1] + b[1]

    def _stored(self) -> tuple[Array, Array]:
        return self.class_count_, self.feature_count_

    def _learn(self, sums: tuple[Array, Array]) -> float:
        self.class_count_, self.feature_count_ = sums
        if not np.isfinite(self.feature_count_.sum()):
            raise DataError(f"{type(self).__name__}: sums of counts overflow; rescale X or the weights.")
        log_prob = self.feature_count_ + self._alphas()
        total = log_prob.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            np.log(log_prob, out=log_prob)
        log_prob -= np.log(np.where(total > 0, total, 1.0))
        self.feature_log_prob_ = log_prob
        self._learn_class_prior()
        return rounding_of(log_prob)

    def posterior(self) -> DirichletMultinomial:
        """Return the posterior of the probabilities of every class; it needs alpha > 0."""
        return DirichletMultinomial(self.feature_count_ + self._alphas())

    def _joint(self, X: Any) -> Array:
        refuse_negative(type(self).__name__, float(X.data.min(initial=0.0) if sp.issparse(X) else X.min(initial=0.0)))
        if self.integrate:
            return self._integrated(X)
        return count_scores(X, self.feature_log_prob_, self.class_log_prior_, self.n_jobs)

    def _integrated(self, X: Any) -> Array:
        """Return log of the Dirichlet–multinomial probabilities, without the factor that all classes share."""
        alpha = self.posterior().alpha
        at_zero, total = gammaln(alpha), alpha.sum(axis=1)

        def score(rows: Any, out: Array) -> None:
            rows = sp.csr_array(rows)
            row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
            size = np.asarray(rows.sum(axis=1)).ravel()
            for k in range(len(alpha)):
                terms = gammaln(alpha[k, rows.indices] + rows.data) - at_zero[k, rows.indices]
                out[:, k] = np.bincount(row, terms, rows.shape[0]) + gammaln(total[k]) - gammaln(total[k] + size)
            out += self.class_log_prior_

        return score_rows(X, len(alpha), score, self.n_jobs)


def count_scores(X: Any, log_prob: Array, constant: Array, n_jobs: int | None) -> Array:
    """Return Σ_j x_j log_prob_kj + constant_k, where 0 · (−inf) is 0."""
    by_feature = np.ascontiguousarray(log_prob.T)
    possible = np.isfinite(by_feature).all()

    def score(rows: Any, out: Array) -> None:
        if possible and not sp.issparse(rows):
            np.matmul(rows, by_feature, out=out)
            out += constant
            return
        rows = rows if sp.issparse(rows) else sp.csr_array(rows)
        out[:] = constant
        sparse_scores(rows.data, unsigned(rows.indices), unsigned(rows.indptr), by_feature, out)

    return score_rows(X, len(log_prob), score, n_jobs)


def refuse_negative(owner: str, least: float) -> None:
    """Raise DataError unless all counts are at least zero."""
    if least < 0:
        raise DataError(
            f"{owner}: Negative values in data passed to {owner} (input X): it holds {least:g}. Pass counts or "
            "frequencies >= 0, or use GaussianNB."
        )


def sparse_class_sums(owner: str, blocks: Any, n_classes: int, n_jobs: int | None) -> tuple[Array, Array]:
    """Return count and sums of CSR rows in memory."""
    part = blocks.joined()
    X, y = part.X, np.ascontiguousarray(part.y, dtype=np.int64)
    least = float(X.data.min(initial=0.0))
    refuse_negative(owner, least)
    codes, w = y.view(np.uint64), np.ones(len(y)) if part.weight is None else part.weight
    data = X.data.astype(np.float64, copy=False)
    indices, indptr = unsigned(X.indices), unsigned(X.indptr)

    def work(rows: tuple[int, int]) -> Array:
        sums, some = np.zeros((n_classes, X.shape[1])), slice(*rows)
        add_sparse_rows(data, indices, indptr[rows[0] : rows[1] + 1], codes[some], w[some], sums)
        return sums

    # Every run of rows has a table of its own; there are only as many as make the tables small against the rows.
    runs = int(np.clip(X.nnz // (2 * n_classes * X.shape[1]), 1, 8))
    cuts = np.searchsorted(X.indptr, np.linspace(0, X.nnz, runs + 1)[1:-1])
    ends = [0, *cuts.tolist(), len(y)]
    sums = map_reduce(list(pairwise(ends)), work, add_in_place, n_jobs=n_jobs)
    return np.bincount(y, w, n_classes).astype(np.float64), sums


def _block_sums(block: Block, n_classes: int) -> tuple[Array, Array, float]:
    y, w = codes_of(block), weights_of(block)
    sums = np.zeros((n_classes, block.X.shape[1]))
    least = add_rows(block.X, y, w, sums)
    return np.bincount(block.y, w, n_classes).astype(np.float64), sums, float(least)  # type: ignore[arg-type]


def _add(a: tuple[Array, Array, float], b: tuple[Array, Array, float]) -> tuple[Array, Array, float]:
    return a[0] + b[0], np.add(a[1], b[1], out=a[1]), min(a[2], b[2])
