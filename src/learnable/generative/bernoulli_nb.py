r"""Naive Bayes with features that are there or not.

    x_j | class k  ~  Bernoulli(p_kj), independent given the class,   p_kj ~ Beta(α_j, α_j);
    p_kj = (n_kj + α_j) / (N_kj + 2α_j)

n_kj counts the rows of class k that have feature j, N_kj those of which this is known. The estimate is the mean of the
posterior Beta(n + α, N − n + α), and since a row shows every feature once, it is the posterior predictive too: to
integrate over the parameters changes nothing. Unlike the multinomial model, what is absent counts as evidence.

An entry that is NaN is integrated out, which under independence means that its factor is left out.

Reference: A. McCallum and K. Nigam, A comparison of event models for naive Bayes text classification, AAAI-98 Workshop
on Learning for Text Categorization (1998).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.declare import fitted, param
from ..core.errors import DataError, ModelFileError
from ..core.parameters import Number, optional
from ..data.blocks import Block, Blocks, map_reduce
from ..data.door import door
from ..probability.conjugate.beta_binomial import BetaBinomial
from ._kernels import add_exceeding
from .base import codes_of, log_or_minus_inf, score_rows, weights_of
from .counts_nb import CountsNB, rounding_of
from .multinomial_nb import sparse_class_sums

Array = NDArray[np.float64]


class BernoulliNB(CountsNB):
    """Naive Bayes for features that are present or absent.

    The fit is one pass over the (dense or sparse) rows, in O(Kd) memory besides the data.

    Examples
    --------
    >>> from learnable import BernoulliNB
    >>> X, y = [[1, 0, 1], [1, 1, 0], [0, 0, 1], [0, float("nan"), 1]], ["a", "a", "b", "b"]
    >>> model = BernoulliNB().fit(X, y)
    >>> model.predict_proba([[1, 0, 1], [float("nan"), 0, 1]]).round(3)
    array([[0.6  , 0.4  ],
           [0.333, 0.667]])
    """

    _theory = "naive-bayes"

    binarize: float | None = param(
        optional(Number()),
        "A feature is present where its value is above this. None: values are 0 and 1 already.",
        default=0.0,
    )
    observed_: Array = fitted("(n_classes, n_features)", "Weight of the rows of which this is known.")
    feature_count_: Array = fitted("(n_classes, n_features)", "Weight of the rows that have the feature.", low=0.0)
    feature_log_prob_: Array = fitted("(n_classes, n_features)", "log p.", infinite=True)

    _door = staticmethod(door(target="classes", sparse=True, missing=True, one_class=True))
    _sparse = True
    _missing = True

    @property
    def _threshold(self) -> float:
        return 0.5 if self.binarize is None else float(self.binarize)

    def _sums(self, blocks: Any, n_classes: int) -> tuple[Array, Array, Array]:
        owner = type(self).__name__
        if blocks.in_memory and blocks.sparse:
            part = blocks.joined()
            ones, gaps = self._split(part.X)
            count, present = sparse_class_sums(owner, Blocks([part._replace(X=ones)]), n_classes, self.n_jobs)
            observed = np.repeat(count[:, None], present.shape[1], axis=1)
            if gaps is not None:
                observed -= sparse_class_sums(owner, Blocks([part._replace(X=gaps)]), n_classes, self.n_jobs)[1]
            return count, present, observed
        if self.binarize is None:
            check = partial(_require_binary, owner)
            map_reduce(blocks, check, lambda a, b: None, n_jobs=self.n_jobs)
        work = partial(_block_sums, n_classes=n_classes, threshold=self._threshold)
        return map_reduce(blocks, work, _add, n_jobs=self.n_jobs)

    def _merge(self, a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
        return tuple(x + y for x, y in zip(a, b, strict=True))

    def _stored(self) -> tuple[Array, Array, Array]:
        return self.class_count_, self.feature_count_, self.observed_

    def _learn(self, sums: tuple[Array, Array, Array]) -> float:
        self.class_count_, self.feature_count_, self.observed_ = sums
        alpha = self._alphas()
        smoothed, total = self.feature_count_ + alpha, self.observed_ + 2.0 * alpha
        self.feature_log_prob_ = log_or_minus_inf(smoothed) - np.log(np.where(total > 0, total, 1.0))
        self._learn_class_prior()
        return rounding_of(self.feature_log_prob_)

    def posterior(self) -> BetaBinomial:
        """Return the posterior of p, an array of shape (n_classes, n_features) of Beta priors; it needs alpha > 0."""
        alpha = self._alphas()
        return BetaBinomial(self.feature_count_ + alpha, self.observed_ - self.feature_count_ + alpha)

    def _split(self, X: Any) -> tuple[Any, Any]:
        """Return which features are present, and which are unknown (None if none is), as numbers 0 and 1."""
        if not sp.issparse(X):
            if self.binarize is None:
                _require_binary(type(self).__name__, Block(X, None, None, 0))
            gaps = np.isnan(X)
            return (self._threshold < X).astype(np.float64), gaps.astype(np.float64) if gaps.any() else None
        if self._threshold < 0:
            raise DataError(
                f"{type(self).__name__}: Cannot binarize a sparse matrix with threshold < 0: binarize is "
                f"{self._threshold:g}, and zeros are not stored. Pass a dense X."
            )
        if self.binarize is None:
            _require_binary(type(self).__name__, Block(X.data, None, None, 0))
        gaps = np.isnan(X.data)
        like = lambda data: sp.csr_array((data.astype(np.float64), X.indices, X.indptr), shape=X.shape)  # noqa: E731
        return like(X.data > self._threshold), like(gaps) if gaps.any() else None

    def _joint(self, X: Any) -> Array:
        alpha = self._alphas()
        total = self.observed_ + 2.0 * alpha
        scale = np.log(np.where(total > 0, total, 1.0))
        present, absent = self.feature_count_ + alpha, self.observed_ - self.feature_count_ + alpha
        known = total > 0  # a feature of which nothing is known, without smoothing: it says nothing
        log_p, log_q = (np.where(known, log_or_minus_inf(n) - scale, 0.0) for n in (present, absent))
        never_p, never_q = np.isneginf(log_p).astype(np.float64), np.isneginf(log_q).astype(np.float64)
        log_p, log_q = np.where(never_p, 0.0, log_p), np.where(never_q, 0.0, log_q)
        impossible = bool(never_p.any() or never_q.any())

        def score(rows: Any, out: Array) -> None:
            ones, gaps = self._split(rows)
            out[:] = ones @ (log_p - log_q).T + (log_q.sum(axis=1) + self.class_log_prior_)
            if gaps is not None:
                out -= gaps @ log_q.T
            if impossible:
                events = ones @ (never_p - never_q).T + never_q.sum(axis=1)
                out[events - (0.0 if gaps is None else gaps @ never_q.T) > 0.5] = -np.inf

        return score_rows(X, len(self.classes_), score, self.n_jobs)

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if not hasattr(self, "classes_"):
            return
        if (self.observed_ < self.feature_count_ * (1 - 1e-9)).any():
            raise ModelFileError("load: feature_count_ must not exceed observed_.")


def _require_binary(owner: str, block: Block) -> None:
    X = block.X
    other = (X != 0.0) & (X != 1.0) & ~np.isnan(X)
    if other.any():
        raise DataError(
            f"{owner}: with binarize=None X must hold 0 and 1; got {X[other][0]:g}. Set binarize=threshold."
        )


def _block_sums(block: Block, n_classes: int, threshold: float) -> tuple[Array, Array, Array]:
    w = weights_of(block)
    present, gaps = np.zeros((2, n_classes, block.X.shape[1]))
    add_exceeding(block.X, codes_of(block), w, threshold, present, gaps)
    count = np.bincount(block.y, w, n_classes).astype(np.float64)  # type: ignore[arg-type]
    return count, present, count[:, None] - gaps


def _add(a: Any, b: Any) -> Any:
    for mine, other in zip(a, b, strict=True):
        mine += other
    return a
