r"""What naive Bayes models of counts share: class probabilities, and smoothing as a Dirichlet or Beta prior.

With the prior Dir(α, …, α) of the probabilities of some categories, the posterior after the counts n is Dir(n + α), and
the next one is category j with probability (n_j + α)/Σ(n + α): additive smoothing is the mean of this posterior.
"""

from __future__ import annotations

import warnings
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from ..core import (
    Array,
    ArrayLike,
    Boolean,
    Certificate,
    DataError,
    Number,
    ParameterError,
    fitted,
    law,
    laws,
    optional,
    param,
    tags,
)
from ..data.blocks import Block, Blocks, map_reduce, unsigned
from ..data.door import door
from ..probability.conjugate.dirichlet_multinomial import BetaBinomial, DirichletMultinomial
from ..solvers.systems.moments import add_in_place
from ._kernels import add_exceeding, add_rows, add_sparse_rows, sparse_scores
from .base import EPS, PRIORS, SummedModel, codes_of, log_or_minus_inf, score_rows, weights_of
from .moments import add_each

_LEAST_ALPHA = 1e-10  # scikit-learn's


class CountsNB(SummedModel):
    """Naive Bayes whose densities are probabilities of counts or categories."""

    alpha: Any = param(
        Number(low=0.0) | ArrayLike(Number(low=0.0)),
        "Concentration of the Dirichlet (Beta) prior of the probabilities: how often each outcome was seen in advance, "
        "in all columns or in each. 0 is no smoothing.",
        default=1.0,
    )
    force_alpha: bool = param(
        Boolean(), "Whether an alpha below 1e-10 is taken as it is, rather than raised to 1e-10.", default=True
    )
    fit_prior: bool = param(
        Boolean(), "Whether class probabilities are the shares of the classes rather than equal.", default=True
    )
    class_prior: Any = param(PRIORS, "Class probabilities, if they are known.", default=None)
    class_count_: Array = fitted("(n_classes,)", "Weight of the rows of each class.", low=0.0)
    class_log_prior_: Array = fitted("(n_classes,)", "Logarithms of the class probabilities.", infinite=True)
    certificate_: Certificate = fitted("Certificate", "Relative error that rounding may leave in p.")
    _tags = tags(poor_score=True)

    def _alphas(self) -> Array:
        """Return α for each column."""
        owner = type(self).__name__
        d = self.n_features_in_
        alpha = np.asarray(self.alpha, dtype=np.float64)
        if alpha.shape not in ((), (d,)):
            raise ParameterError(
                f"{owner}: When alpha is an array, it should contains `n_features`. Got {alpha.size} elements instead "
                f"of {d}."
            )
        if alpha.min() < _LEAST_ALPHA and not self.force_alpha:
            warnings.warn(
                f"alpha too small will result in numeric errors, setting alpha = {_LEAST_ALPHA:.1e}. Use "
                "`force_alpha=True` to keep alpha unchanged.",
                stacklevel=4,
            )
            alpha = np.maximum(alpha, _LEAST_ALPHA)
        return np.broadcast_to(alpha, (d,))

    def _learn_class_prior(self) -> None:
        K = len(self.classes_)
        if self.class_prior is not None:
            given = np.asarray(self.class_prior, dtype=np.float64)
            if given.shape != (K,):
                raise ParameterError(
                    f"{type(self).__name__}: Number of priors must match number of classes: class_prior has shape "
                    f"{given.shape}, there are {K} classes."
                )
            if (given < 0.0).any():
                raise ParameterError(f"{type(self).__name__}: class_prior must be non-negative; got {given.min():g}.")
            self.class_log_prior_ = log_or_minus_inf(given)
        elif self.fit_prior:
            self.class_log_prior_ = log_or_minus_inf(self.class_count_) - np.log(self.class_count_.sum())
        else:
            self.class_log_prior_ = np.full(K, -np.log(K))


def rounding_of(log_prob: Array) -> float:
    """Return the relative error that rounding may leave in p = exp(log_prob), the quotient of two sums."""
    least = np.min(log_prob, initial=0.0)
    if np.isneginf(least):
        least = np.min(log_prob, initial=0.0, where=~np.isneginf(log_prob))
    return float(EPS * (4.0 - least))


# Naive Bayes with multinomial counts, such as words of documents.
#
#     x | class k  ~  Mult(Σ_j x_j, p_k),   p_k ~ Dir(α);       p_kj = (n_kj + α_j) / Σ_l (n_kl + α_l)
#
# The estimate p_k is the mean of the posterior Dir(n_k + α). With `integrate=True` a row is judged by the posterior
# predictive, the Dirichlet–multinomial (Pólya) distribution, under which a word that was seen once is less surprising
# the
# second time.
#
# Reference: C. Manning, P. Raghavan and H. Schütze, Introduction to Information Retrieval (2008), chapter 13.


class MultinomialNB(CountsNB):
    """Naive Bayes for counts: every class draws its words from probabilities of its own.

    The fit is one pass over the (dense or sparse) rows, in O(n + Kd) memory besides the data. Fractional counts such as
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
    _tags = tags(positive_only=True)

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
        at_zero = gammaln(alpha)
        total = alpha.sum(axis=1)

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
    X = part.X
    y = np.ascontiguousarray(part.y, dtype=np.int64)
    least = float(X.data.min(initial=0.0))
    refuse_negative(owner, least)
    codes = y.view(np.uint64)
    w = np.ones(len(y)) if part.weight is None else part.weight
    data = X.data.astype(np.float64, copy=False)
    indices = unsigned(X.indices)
    indptr = unsigned(X.indptr)

    def work(rows: tuple[int, int]) -> Array:
        sums = np.zeros((n_classes, X.shape[1]))
        some = slice(*rows)
        add_sparse_rows(data, indices, indptr[rows[0] : rows[1] + 1], codes[some], w[some], sums)
        return sums

    # Every run of rows has a table of its own; there are only as many as make the tables small against the rows.
    runs = int(np.clip(X.nnz // (2 * n_classes * X.shape[1]), 1, 8))
    cuts = np.searchsorted(X.indptr, np.linspace(0, X.nnz, runs + 1)[1:-1])
    ends = [0, *cuts.tolist(), len(y)]
    sums = map_reduce(list(pairwise(ends)), work, add_in_place, n_jobs=n_jobs)
    return np.bincount(y, w, n_classes).astype(np.float64), sums


def _block_sums(block: Block, n_classes: int) -> tuple[Array, Array, float]:
    y = codes_of(block)
    w = weights_of(block)
    sums = np.zeros((n_classes, block.X.shape[1]))
    least = add_rows(block.X, y, w, sums)
    return np.bincount(block.y, w, n_classes).astype(np.float64), sums, float(least)  # type: ignore[arg-type]


def _add(a: tuple[Array, Array, float], b: tuple[Array, Array, float]) -> tuple[Array, Array, float]:
    return a[0] + b[0], np.add(a[1], b[1], out=a[1]), min(a[2], b[2])


# Naive Bayes with features that are there or not.
#
#     x_j | class k  ~  Bernoulli(p_kj), independent given the class,   p_kj ~ Beta(α_j, α_j);
#     p_kj = (n_kj + α_j) / (N_kj + 2α_j)
#
# n_kj counts the rows of class k that have feature j, N_kj those of which this is known. The estimate is the mean of
# the
# posterior Beta(n + α, N − n + α), and since a row shows every feature once, it is the posterior predictive too: to
# integrate over the parameters changes nothing. Unlike the multinomial model, what is absent counts as evidence.
#
# An entry that is NaN is integrated out, which under independence means that its factor is left out.
#
# Reference: A. McCallum and K. Nigam, A comparison of event models for naive Bayes text classification, AAAI-98
# Workshop
# on Learning for Text Categorization (1998).


class BernoulliNB(CountsNB):
    """Naive Bayes for features that are present or absent.

    The fit is one pass over the (dense or sparse) rows, in O(n + Kd) memory besides the data.

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
        work = partial(_exceeding_sums, n_classes=n_classes, threshold=self._threshold)
        return map_reduce(blocks, work, add_each, n_jobs=self.n_jobs)

    def _merge(self, a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
        return tuple(x + y for x, y in zip(a, b, strict=True))

    def _stored(self) -> tuple[Array, Array, Array]:
        return self.class_count_, self.feature_count_, self.observed_

    def _learn(self, sums: tuple[Array, Array, Array]) -> float:
        self.class_count_, self.feature_count_, self.observed_ = sums
        alpha = self._alphas()
        smoothed = self.feature_count_ + alpha
        total = self.observed_ + 2.0 * alpha
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
        present = self.feature_count_ + alpha
        absent = self.observed_ - self.feature_count_ + alpha
        known = total > 0  # without smoothing, a feature with no counts contributes nothing
        log_p, log_q = (np.where(known, log_or_minus_inf(n) - scale, 0.0) for n in (present, absent))
        never_p = np.isneginf(log_p).astype(np.float64)
        never_q = np.isneginf(log_q).astype(np.float64)
        log_p = np.where(never_p, 0.0, log_p)
        log_q = np.where(never_q, 0.0, log_q)
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

    _laws = laws(
        law(
            "feature_count_ must not exceed observed_",
            lambda model: (model.observed_ >= model.feature_count_ * (1 - 1e-9)).all(),
            "classes_",
        ),
    )


def _require_binary(owner: str, block: Block) -> None:
    X = block.X
    other = (X != 0.0) & (X != 1.0) & ~np.isnan(X)
    if other.any():
        raise DataError(
            f"{owner}: with binarize=None X must hold 0 and 1; got {X[other][0]:g}. Set binarize=threshold."
        )


def _exceeding_sums(block: Block, n_classes: int, threshold: float) -> tuple[Array, Array, Array]:
    w = weights_of(block)
    present, gaps = np.zeros((2, n_classes, block.X.shape[1]))
    add_exceeding(block.X, codes_of(block), w, threshold, present, gaps)
    count = np.bincount(block.y, w, n_classes).astype(np.float64)  # type: ignore[arg-type]
    return count, present, count[:, None] - gaps
