"""What conformal regression and classification share: which rows calibrate which model, ranks, and guarantees.

Let s₁ … s_n be the scores of the calibration rows and s a new row's. If the rows are exchangeable, the rank of s among
all n + 1 is uniform (ties aside), so that s is at most the ⌈(1 − α)(n + 1)⌉-th smallest score with probability at least
1 − α, whatever the model and the distribution. Where that rank is n + 1, no finite bound has this property.

- **split**: one model, fitted to rows that do not calibrate. Coverage ≥ 1 − α, and ≤ 1 − α + 1/(n + 1) without ties.
- **CV+**: every row is scored by the model of the folds it is not in, and a new row is compared with each row under
  that row's model. Coverage ≥ 1 − 2α − min{2(1 − 1/K)/(n/K + 1), (1 − K/n)/(K + 1)}, typically 1 − α.
- **jackknife+**: CV+ with K = n. Coverage ≥ 1 − 2α, typically 1 − α.
- **CV**: the residuals of CV+ around the model of all rows; the models of the folds need not be kept. Typically 1 − α,
  since a model of more rows errs less than those that were scored; proven only for models that one fold more or less
  hardly changes.

References: R. F. Barber, E. J. Candès, A. Ramdas and R. J. Tibshirani, Predictive inference with the jackknife+, Annals
of Statistics 49, 2021, theorems 1 and 4; Y. Romano, M. Sesia and E. J. Candès, Classification with valid and adaptive
coverage, NeurIPS 2020; V. Vovk, A. Gammerman and G. Shafer, Algorithmic learning in a random world, 2005.
"""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from ...core import (
    N_JOBS,
    RANDOM_STATE,
    Array,
    Certificate,
    DataError,
    Estimator,
    Matches,
    NDArray,
    Number,
    ParameterError,
    Run,
    check_parameters,
    fitted,
    hook,
    is_array,
    law,
    laws,
    param,
    tags,
)
from ...core.jit import kernel
from ...data.door import read_features
from ...data.rows import Sample, take_rows, weight_keyword
from ...linear.least_squares.linear_regression import LinearRegression
from ...linear.least_squares.ridge import Ridge, ridge_spectrum

LEVEL = Number(low=0.0, high=1.0, low_open=True, high_open=True)
SHARE = Number(low=0.0, high=1.0, low_open=True, high_open=True)
#: Relative difference between a recorded score and the same score computed again.
TOLERANCE = 1e-8

# --------------------------------------------------------------------------------------------------------------------
# Training rows for models that wrap other models: X stays as it came, y and the weights are read and checked.
#
# A wrapper (conformal prediction, calibration) fits copies of a model on some rows and looks at others. What X may be
# is the inner model's business: arrays, sparse arrays, lists, any dataframe. Here the rows are only counted and
# taken.


Rows = NDArray[np.int64]


def _is_cv(value: Any) -> bool:
    if value is None or isinstance(value, (int, np.integer)):
        return value is None or (not isinstance(value, bool) and int(value) >= 2)
    return value == "prefit" if isinstance(value, str) else hasattr(value, "split") or hasattr(value, "__iter__")


#: What `cv` may be.
CV = Matches(_is_cv, "an integer >= 2, a splitter, a list of splits, 'prefit' or None")


def is_prefit(estimator: Any, cv: Any) -> bool:
    """Tell whether the model comes fitted, so that every row may calibrate it."""
    return (isinstance(cv, str) and cv == "prefit") or isinstance(estimator, FrozenEstimator)


def fit_copies(owner: str, estimator: Any, sample: Sample, parts: list[Rows], n_jobs: int | None = None) -> list[Any]:
    """Fit one copy of the model on each part of the rows."""
    name = weight_keyword(owner, estimator) if sample.weight is not None else None
    if len(parts) == 1 or n_jobs in (None, 1):
        return [_fit_copy(estimator, sample, rows, name) for rows in parts]
    return list(Parallel(n_jobs=n_jobs)(delayed(_fit_copy)(estimator, sample, rows, name) for rows in parts))


def _fit_copy(estimator: Any, sample: Sample, rows: Rows, name: str | None) -> Any:
    extra = {} if name is None else {name: sample.weights(rows)}
    X = sample.X if len(rows) == sample.n_rows else take_rows(sample.X, rows)
    return clone(estimator).fit(X, sample.labels(rows), **extra)


def splits_of(owner: str, cv: Any, sample: Sample, classifier: bool) -> list[tuple[Rows, Rows]]:
    """Return the (train, test) rows of scikit-learn's `cv`: an integer, a splitter, or the splits themselves.

    An integer cuts the rows with positive weight; splits and splitters number the rows as they were given.
    """
    try:
        if cv is None or isinstance(cv, (int, np.integer)) or sample.kept is None:
            pairs = check_cv(cv, sample.y, classifier=classifier).split(np.zeros((sample.n_rows, 1)), sample.y)
            splits = [(np.asarray(train), np.asarray(test)) for train, test in pairs]
        else:
            splits = _positions(cv, sample)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise ParameterError(f"{owner}: cv={cv!r} does not work here: {str(error).splitlines()[0]}") from error
    for train, test in splits:
        if not (len(train) and len(test)):
            raise ParameterError(f"{owner}: cv={cv!r} leaves a fold without rows; use fewer folds.")
        if max(train.max(), test.max()) >= sample.n_rows:
            raise ParameterError(f"{owner}: cv names row {max(train.max(), test.max())} of {sample.n_rows}.")
    return [(train.astype(np.int64), test.astype(np.int64)) for train, test in splits]


def _positions(cv: Any, sample: Sample) -> list[tuple[Rows, Rows]]:
    """Return the splits of the rows given, as positions among the rows that have weight."""
    kept = np.asarray(sample.kept)
    position = np.where(kept, np.cumsum(kept) - 1, -1)
    y = np.zeros(len(kept), dtype=sample.y.dtype)
    y[kept] = sample.y
    found = []
    for train, test in check_cv(cv, sample.y).split(np.zeros((len(kept), 1)), y):
        pair = position[np.asarray(train)], position[np.asarray(test)]
        found.append((pair[0][pair[0] >= 0], pair[1][pair[1] >= 0]))
    return found


def adopt_features(wrapper: Any, inner: Any) -> None:
    """Give the wrapper the inner model's number and names of columns, where it has them."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(inner, name):
            setattr(wrapper, name, getattr(inner, name))


# --------------------------------------------------------------------------------------------------------------------
# What conformal models share.


class ConformalModel(Estimator):
    """Base class; not to be used directly."""

    estimator: Any  # these two are the subclass's
    method: str
    cv: Any = param(
        CV,
        'Folds of "cv+", shuffled if an integer (None is 5). With "prefit", or a '
        '`sklearn.frozen.FrozenEstimator`, the model is already fitted and all rows calibrate it ("split" '
        "only): they must not be those it was fitted to.",
        default=5,
    )
    level: float = param(
        LEVEL,
        "Probability 1 − α with which an interval or a set is to hold the target; `predict_interval` and "
        "`predict_set` take others too.",
        default=0.9,
    )
    share: float = param(SHARE, "Share of the rows that calibrate a split.", default=0.25)
    random_state: Any = param(RANDOM_STATE, "Which rows calibrate, and which are in what fold.", default=None)
    n_jobs: int | None = param(N_JOBS, "Processes that fit the folds.", default=None)

    #: Words for the guarantee: what holds a new row's target.
    _region: ClassVar[str]

    estimator_: Any = fitted(
        "estimator", 'What predicts: fitted to all rows, or with "split" to those that do not calibrate.'
    )
    estimators_: list[Any] = fitted("list of estimators", 'One per fold; empty for "split".')
    folds_: Rows = fitted(
        "(n_samples,)",
        "The fold of each row with positive weight; −1 for rows that only the model of a split was fitted to.",
        kind="i",
    )
    scores_: Array = fitted("(n_scores,)", "The scores of the calibration rows.")
    guarantee_: str = fitted("str", "What is proven about the intervals or sets of this fit at `level`.")
    n_features_in_: int = fitted("int", "Number of columns, if the model counts them.", optional=True)
    feature_names_in_: NDArray[Any] = fitted("array of str", "Their names, if it knows them.", optional=True)
    certificate_: Certificate = fitted(
        "Certificate",
        "`closed-form`: that the scores are what the models and the rows give. It says nothing about new rows; "
        "`guarantee_` does, if they are exchangeable with the old ones.",
    )
    _tags = tags(inner=lambda model: model._inner())

    def _fit(self, table: Sample, run: Run) -> Certificate:
        owner = type(self).__name__
        n = table.n_rows
        if n < 2:
            raise DataError(f"{owner}: needs at least 2 rows, to fit and to calibrate; got n_samples = {n}.")
        estimator = self._inner()
        prefit = is_prefit(estimator, self.cv)
        if prefit and self.method != "split":
            raise ParameterError(f"{owner}: a fitted model has no folds; method must be 'split', got {self.method!r}.")
        everything = np.arange(n)
        self.estimators_ = []
        if self.method == "split":
            self.folds_ = np.zeros(n, dtype=np.int64) if prefit else self._hold_out(n)
            train = np.flatnonzero(self.folds_ < 0)
            self.estimator_ = estimator if prefit else fit_copies(owner, estimator, table, [train])[0]
        else:
            self.folds_ = self._cut(table)
            [self.estimator_] = fit_copies(owner, estimator, table, [everything])
        value = self._leave_one_out(table)
        if value is None:
            value = 0.0  # the scores are computed as they are defined
            if self.method != "split":
                parts = [np.flatnonzero(self.folds_ != k) for k in range(self._n_folds())]
                self.estimators_ = fit_copies(owner, estimator, table, parts, self.n_jobs)
            self.scores_ = self._calibrate(table)
            if self.method == "cv":
                self.estimators_ = []
        adopt_features(self, self.estimator_)
        if not np.isfinite(self.scores_).all():
            raise DataError(f"{owner}: {type(self.estimator_).__name__} gives predictions that are not finite.")
        self._rank(self.level)
        self.guarantee_ = self._guarantee(prefit)
        return Certificate("closed-form", value, TOLERANCE)

    def _calibrate(self, table: Sample) -> Array:
        """Return the scores of the calibration rows, in the order of the rows, each by the model of its fold."""
        scores = np.full(table.n_rows, np.nan)
        for k, model in enumerate(self._fold_models()):
            rows = np.flatnonzero(self.folds_ == k)
            scores[rows] = self._score_rows(model, take_rows(table.X, rows), table.y[rows], rows)
        return scores[self.folds_ >= 0]

    _score_rows = hook("(model, X, y, rows) → Array: Return how badly `model` fits each target.")

    def _leave_one_out(self, table: Sample) -> float | None:
        """Set the scores without refitting and return their relative error; None where there is no formula."""
        return None

    def _fold_models(self) -> list[Any]:
        return [self.estimator_] if self.method == "split" else self.estimators_

    def _n_folds(self) -> int:
        return int(self.folds_.max()) + 1

    def _hold_out(self, n: int) -> Rows:
        """Choose the calibration rows of a split: 0 for them, -1 for those that the model is fitted to."""
        n_calibration = min(max(1, round(self.share * n)), n - 1)
        folds = np.full(n, -1, dtype=np.int64)
        folds[self._generator().permutation(n)[:n_calibration]] = 0
        return folds

    def _cut(self, table: Sample) -> Rows:
        """Return the fold of every row."""
        owner = type(self).__name__
        n = table.n_rows
        if self.method == "jackknife+":
            return np.arange(n)
        n_folds = 5 if self.cv is None else self.cv
        folds = np.full(n, -1, dtype=np.int64)
        if isinstance(n_folds, (int, np.integer)):
            if n_folds > n:
                raise DataError(f"{owner}: {n_folds} folds need at least as many rows; got n_samples = {n}.")
            # Shuffled: rows sorted by time or target would otherwise be predicted from the other end of the table.
            folds[self._generator().permutation(n)] = np.arange(n) % n_folds
            return folds
        for k, (train, test) in enumerate(splits_of(owner, self.cv, table, classifier=False)):
            complement = np.ones(n, dtype=bool)
            complement[train] = False
            if (folds[test] >= 0).any() or not np.array_equal(np.flatnonzero(complement), np.unique(test)):
                raise ParameterError(f"{owner}: method='cv+' needs folds of which every row is in exactly one; see cv.")
            folds[test] = k
        if (folds < 0).any():
            raise ParameterError(f"{owner}: cv leaves row {int(np.argmax(folds < 0))} out of all folds.")
        return folds

    def _generator(self) -> np.random.Generator:
        return generator_of(self.random_state)

    def _rank(self, level: float | None) -> int:
        """Return ⌈level·(n + 1)⌉, having warned if it exceeds n."""
        owner = type(self).__name__
        n = len(self.scores_)
        level = self.level if level is None else level
        check_parameters(owner, {"level": level}, {"level": LEVEL})
        rank = rank_of(level, n)
        if rank > n:
            warnings.warn(
                f"{owner}: level {level:g} needs at least {rows_needed(level)} calibration rows, but there are {n}; "
                f"only an unbounded {self._region} has this coverage. Add rows, or lower the level"
                f"{', or use cv+' if self.method == 'split' else ''}.",
                UserWarning,
                stacklevel=4,
            )
        return rank

    def _guarantee(self, prefit: bool) -> str:
        n = len(self.scores_)
        alpha = 1.0 - self.level
        head = f"the {self._region} of a new row, exchangeable with the {n} calibration rows, holds its target with"
        if self.method == "split":
            given = ", provided that the model was not fitted to them" if prefit else ""
            return f"{head} probability at least {self.level:g}{given}"
        if self.method == "cv":
            return f"{head} probability {self.level:g} in practice; proven only for models that a fold hardly changes"
        floor = max(0.0, 1.0 - 2.0 * alpha - fold_slack(n, self._n_folds()))
        given = "" if self.method == "jackknife+" else " (folds of equal size)"
        return f"{head} probability at least {floor:.4g}{given}, and typically {self.level:g}"

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predictions of the model fitted to all rows (of a split: to those that do not calibrate)."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(X))

    _inner = hook("() → Any")

    _laws = laws(
        law(
            "folds_ must hold one fold per row",
            lambda model: is_array(model.folds_, (None,), np.int64) and model.folds_.size and model.folds_.min() >= -1,
        ),
        law(
            "scores_ must have one finite number for each row of a fold",
            lambda model: (
                is_array(model.scores_, (int((model.folds_ >= 0).sum()),), finite=True) and model.scores_.size
            ),
        ),
        law(
            "the fitted models are missing",
            lambda model: hasattr(model, "estimator_") and isinstance(model.estimators_, list),
        ),
        law(
            "the folds do not fit the number of models",
            lambda model: (
                (model.method != "split" or model._n_folds() == 1)
                and (
                    model._is_linear()
                    or len(model.estimators_) == (0 if model.method in ("split", "cv") else model._n_folds())
                )
            ),
        ),
    )

    def _is_linear(self) -> bool:
        """Tell whether the folds' models are stored as coefficients."""
        return False


def rank_of(level: float, n: int) -> int:
    """Return ⌈level·(n + 1)⌉ for the level as it is written in decimals: 0.55·100 is 55, not 55.00000000000001.

    Examples
    --------
    >>> rank_of(0.9, 99), rank_of(0.55, 99), rank_of(0.9, 8)
    (90, 55, 9)
    """
    return math.ceil(Fraction(repr(float(level))) * (n + 1))


def rows_needed(level: float) -> int:
    """Return the least n for which ⌈level·(n + 1)⌉ ≤ n.

    Examples
    --------
    >>> rows_needed(0.9), rows_needed(0.95)
    (9, 19)
    """
    exact = Fraction(repr(float(level)))
    return math.ceil(exact / (1 - exact))


def fold_slack(n: int, n_folds: int) -> float:
    """Return what CV+ with K folds may lose beyond 2α: min{2(1 − 1/K)/(n/K + 1), (1 − K/n)/(K + 1)}.

    Examples
    --------
    >>> fold_slack(100, 100)
    0.0
    """
    by_size = 2.0 * (1.0 - 1.0 / n_folds) / (n / n_folds + 1.0)
    return min(by_size, (1.0 - n_folds / n) / (n_folds + 1.0))


def generator_of(random_state: Any) -> np.random.Generator:
    """Return a Generator; one that is given is used, and moves on."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)


# --------------------------------------------------------------------------------------------------------------------
# All n leave-one-out fits of a linear model from one factorisation.
#
# Let A = Σ wⱼ x̃ⱼx̃ⱼᵀ + αI (the intercept unpenalised), rᵢ the residual of row i and hᵢ = wᵢ x̃ᵢᵀA⁻¹x̃ᵢ. The fit
# without row i is
#
#     β₋ᵢ = β − A⁻¹x̃ᵢ wᵢ rᵢ / (1 − hᵢ),
#
# exactly; in the singular value decomposition of the centred rows this also holds for minimum-norm fits. A row with
# hᵢ = 1 alone supports a direction: without it the fit is another one, and is computed by leaving the row out. Time
# O(nd·min(n, d)), memory O(nd).
#
# Reference: R. D. Cook and S. Weisberg, Residuals and influence in regression, 1982, section 2.2.


#: Below this 1 − h has lost so many digits that the row is refitted.
_LEAST_FREEDOM = 1e-6


class LeaveOneOut(NamedTuple):
    """The coefficients of the n fits that leave one row out each."""

    coef: Array  #: (n, d)
    intercept: Array  #: (n,)
    errors: Array  #: (n,), yᵢ − μ₋ᵢ(xᵢ)
    disagreement: float  #: greatest difference between `errors` and rᵢ/(1 − hᵢ), relative to y


def penalty_of(model: Any) -> float | None:
    """Return α if the model is least squares with a fixed quadratic penalty α ≥ 0, else None.

    A model that chooses α from the data, or constrains the signs, is none: without a row it might choose otherwise.

    Examples
    --------
    >>> from learnable import LinearRegression, Ridge
    >>> penalty_of(Ridge(alpha=2.0)), penalty_of(LinearRegression()), penalty_of(Ridge(positive=True))
    (2.0, 0.0, None)
    """
    from sklearn import linear_model as peer

    if type(model) in (LinearRegression, peer.LinearRegression):
        return None if model.positive else 0.0
    if type(model) not in (Ridge, peer.Ridge) or model.positive or np.ndim(model.alpha):
        return None
    exact = type(model) is Ridge or model.solver in ("auto", "svd", "cholesky")
    return float(model.alpha) if exact else None


def leave_one_out_fits(owner: str, model: Any, fitted: Any, sample: Sample, alpha: float) -> LeaveOneOut | None:
    """Return the n fits, given the one to all rows; None if most rows would have to be refitted."""
    X = numbers_of(fitted, sample.X)
    y = sample.y[:, None]
    spectrum = ridge_spectrum(X, y, sample.weight, intercept=model.fit_intercept, smallest_alpha=alpha)
    alphas = np.array([alpha])
    free = spectrum.freedom(alphas)[:, 0]
    regular = free > _LEAST_FREEDOM
    if (~regular).sum() > 0.5 * len(y):
        return None
    residuals = sample.y - (X @ np.ravel(fitted.coef_) + fitted.intercept_)
    step = np.where(regular, residuals / np.where(regular, free, 1.0), 0.0)
    scaled = np.ldexp(alphas, -2 * spectrum.x_exponent - spectrum.weight_exponent)
    influence = (spectrum.left / (spectrum.values + scaled)) @ (spectrum.left.T @ spectrum.rows)  # rows √wᵢ A⁻¹x̃ᵢ
    influence = np.ldexp(influence, -spectrum.x_exponent) * (spectrum.root_weight * step)[:, None]
    coef = np.ravel(fitted.coef_) - influence
    intercept = np.full(len(y), float(np.ravel(fitted.intercept_)[0]))
    if model.fit_intercept:
        share = spectrum.root_weight**2 / (spectrum.root_weight**2).sum()
        intercept += influence @ spectrum.x_mean - share * step
    for row in np.flatnonzero(~regular):
        [without] = fit_copies(owner, model, sample, [np.delete(np.arange(len(y)), row)])
        coef[row] = np.ravel(without.coef_)
        intercept[row] = float(np.ravel(without.intercept_)[0])
    errors = sample.y - np.einsum("ij,ij->i", X, coef) - intercept
    size = float(np.abs(sample.y).max()) or 1.0
    return LeaveOneOut(coef, intercept, errors, float(np.abs(errors - step)[regular].max()) / size)


def numbers_of(fitted: Any, X: Any) -> Array:
    """Return X as a dense float64 array whose columns are those of the fit."""
    table = read_features(fitted, X)
    return np.asarray(table.toarray() if sp.issparse(table) else table, dtype=np.float64)


# --------------------------------------------------------------------------------------------------------------------
# The kernel of CV+: one order statistic of many shifted, sorted lists, without forming their union.


Index = NDArray[np.int64]


@kernel
def select_shifted(shifts: Array, values: Array, ends: Index, rank: int, low: Index, high: Index, out: Array) -> None:
    """OUT out (m,): the rank-th smallest (from 1) of all shifts[i, k] + v, v in fold k. O(K² log² n) a row.

    IN shifts (m, K); values (n,), sorted within each fold; ends (K + 1,), where folds begin and end. low, high (K,):
    work space; the answer is always among values[low[k]:high[k]] of some fold.
    """
    m, n_folds = shifts.shape
    for i in range(m):
        for k in range(n_folds):
            low[k] = ends[k]
            high[k] = ends[k + 1]
        while True:
            widest = 0
            for k in range(1, n_folds):
                if high[k] - low[k] > high[widest] - low[widest]:
                    widest = k
            pivot = shifts[i, widest] + values[(low[widest] + high[widest]) // 2]
            below = 0
            up_to = 0
            for k in range(n_folds):
                below += first_above(values, ends[k], ends[k + 1], shifts[i, k], pivot, False) - ends[k]
                up_to += first_above(values, ends[k], ends[k + 1], shifts[i, k], pivot, True) - ends[k]
            if below < rank <= up_to:
                out[i] = pivot
                break
            for k in range(n_folds):
                if rank <= below:
                    high[k] = min(high[k], first_above(values, ends[k], ends[k + 1], shifts[i, k], pivot, False))
                else:
                    low[k] = max(low[k], first_above(values, ends[k], ends[k + 1], shifts[i, k], pivot, True))


@kernel
def first_above(values: Array, begin: int, end: int, shift: float, pivot: float, skip_equal: bool) -> int:
    """Return the first place in values[begin:end], sorted, where shift + v exceeds the pivot (or reaches it)."""
    while begin < end:
        middle = (begin + end) // 2
        v = shift + values[middle]
        if v < pivot or (skip_equal and v == pivot):
            begin = middle + 1
        else:
            end = middle
    return begin
