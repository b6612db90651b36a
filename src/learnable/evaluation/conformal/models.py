"""Conformal prediction intervals: coverage for any model and any distribution of exchangeable rows.

With the residuals Rᵢ = |yᵢ − μ₋ᵢ(xᵢ)| of rows that the model μ₋ᵢ was not fitted to, and r = ⌈(1 − α)(n + 1)⌉,

    split, CV:        μ(x) ± the r-th smallest Rᵢ
    CV+, jackknife+:  from −(r-th smallest of −μ₋ᵢ(x) + Rᵢ) to the r-th smallest of μ₋ᵢ(x) + Rᵢ,

where μ₋ᵢ is the model without the fold of row i (jackknife+: without row i). What is guaranteed, and why, is in
`base.py`.

Reference: R. F. Barber, E. J. Candès, A. Ramdas and R. J. Tibshirani, Predictive inference with the jackknife+, Annals
of Statistics 49, 2021, equations 2, 4 and 11; J. Lei et al., Distribution-free predictive inference for regression,
JASA 113, 2018, section 5.2 (residuals relative to their spread).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ...core import (
    RANDOM_STATE,
    REGISTRY,
    Array,
    Boolean,
    Certificate,
    DataError,
    Matches,
    NDArray,
    Nothing,
    Options,
    ParameterError,
    Run,
    fitted,
    is_array,
    is_labels,
    law,
    laws,
    param,
)
from ...data.rows import Sample, as_container, count_rows, sample_door, take_rows
from ...linear.least_squares.ridge import Ridge
from ...linear.logistic.regression import LogisticRegression
from .base import (
    ConformalModel,
    Rows,
    fit_copies,
    generator_of,
    is_prefit,
    leave_one_out_fits,
    numbers_of,
    penalty_of,
    select_shifted,
)

_REGRESSOR = Matches(
    lambda v: not isinstance(v, type) and hasattr(v, "fit") and hasattr(v, "predict"),
    "a regressor with fit and predict",
)
_BLOCK = 2**22  # numbers held at once while n leave-one-out predictions per row are made


#: What a wrapper must not have from its model: it would say something about the model, not about the intervals.
_OWN = frozenset({"certificate_", "predict_proba", "decision_function", "predict_dist", "fit_predict", "transform"})


class ConformalRegressor(MetaEstimatorMixin, RegressorMixin, ConformalModel):
    """A regressor with prediction intervals that hold a new target with the chosen probability.

    Notes
    -----
    With fewer than level/(1 − level) calibration rows no finite interval has the coverage asked for: the intervals are
    then infinite, which is the truth, and a warning says how many rows are needed; `predict` is not affected.

    The guarantee is about the average over new rows, not about each kind of row. Weights go to the fits; residuals
    count equally, because weighted rows are not exchangeable. A row of weight zero is left out.

    Memory beyond the models: O(n), and O(nd) for the formula of jackknife+.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import Ridge
    >>> from learnable.evaluation import ConformalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = X[:, 0] + rng.normal(size=200)
    >>> model = ConformalRegressor(Ridge(), method="jackknife+", level=0.9).fit(X, y)
    >>> lower, upper = model.predict_interval([[0.0, 0.0, 0.0]])
    >>> lower.round(1), upper.round(1)
    (array([-1.8]), array([1.7]))
    >>> model.guarantee_
    'the interval of a new row, ... holds its target with probability at least 0.8, and typically 0.9'
    """

    _theory = "conformal"

    estimator: Any = param(
        Nothing() | _REGRESSOR,
        "Any scikit-learn regressor, pipeline or `TableModel`; None is `Ridge()`.",
        default=None,
        kw_only=False,
    )
    method: str = param(
        Options("split", "cv", "cv+", "jackknife+"),
        '"split" fits once, to part of the rows; "cv+" fits once a fold and once to all rows, and wastes '
        'none; "cv" does the same and keeps of the folds only their residuals, for models that are large: '
        "a fifth of the memory, and the level is what it has in practice, not what is proven; "
        '"jackknife+" fits once a row (for least squares and ridge all at once, by a formula).',
        default="split",
    )
    scale: Any = param(
        Nothing() | _REGRESSOR,
        'For "split": a model of log |residual|, fitted like the main model; intervals are then wide where '
        "residuals are large. None gives intervals of one width.",
        default=None,
    )

    _door = staticmethod(sample_door("numeric"))
    _region = "interval"

    estimators_: list[Any] = fitted(
        "list of regressors", 'One per fold; empty for "split" and "cv", and where jackknife+ has a formula.'
    )
    scores_: Array = fitted("(n_scores,)", "The residuals |yᵢ − μ₋ᵢ(xᵢ)| of the calibration rows.")
    scale_: Any = fitted("regressor", "The fitted `scale`, if there is one.")
    scale_range_: Array = fitted("array", "The range of its predictions on the rows that it was fitted to.")
    loo_coef_: Array = fitted("array", "Coefficients of the fits that leave one row out, where there is a formula.")
    loo_intercept_: Array = fitted("array", "Their intercepts.")

    def _fit(self, table: Sample, run: Run) -> Certificate:
        if self.scale is not None and (self.method != "split" or is_prefit(self._inner(), self.cv)):
            raise ParameterError("ConformalRegressor: scale needs method='split' and a model that is fitted here.")
        return super()._fit(table, run)

    def _calibrate(self, table: Sample) -> Array:
        if self.scale is not None:
            self._fit_scale(table)
        return super()._calibrate(table)

    def _fit_scale(self, table: Sample) -> None:
        """Fit the model of log |residual| to the rows that the main model was fitted to."""
        train = np.flatnonzero(self.folds_ < 0)
        X = take_rows(table.X, train)
        weight = table.weights(train)
        size = np.abs(table.y[train] - _predicted(self.estimator_, X))
        typical = float(size.mean())
        if typical == 0:
            raise DataError("ConformalRegressor: the model fits its own rows exactly, so scale has nothing to learn.")
        target = np.log(np.maximum(size, 1e-3 * typical))
        part = Sample(X, target, weight, None, "", None)
        [self.scale_] = fit_copies("ConformalRegressor", self.scale, part, [np.arange(len(train))])
        self.scale_range_ = np.array([target.min(), target.max()])

    def _spread(self, X: Any) -> Array | float:
        """Return e^g(x), g the model of log |residual| within the range it was fitted to; 1 without such a model."""
        if self.scale is None:
            return 1.0
        return np.exp(np.clip(_predicted(self.scale_, X), *self.scale_range_))

    def _score_rows(self, model: Any, X: Any, y: NDArray[Any], rows: Rows) -> Array:
        return np.abs(y - _predicted(model, X)) / self._spread(X)

    def _leave_one_out(self, table: Sample) -> float | None:
        alpha = penalty_of(self._inner()) if self.method == "jackknife+" else None
        if alpha is None:
            return None
        fits = leave_one_out_fits("ConformalRegressor", self._inner(), self.estimator_, table, alpha)
        if fits is None:
            return None
        self.loo_coef_ = fits.coef
        self.loo_intercept_ = fits.intercept
        self.scores_ = np.abs(fits.errors)
        return fits.disagreement

    def __getattr__(self, name: str) -> Any:
        """Return what the fitted model has and this wrapper has not: its coefficients, its further predictions."""
        inner = self.__dict__.get("estimator_")
        if inner is None or name.startswith("_") or name in _OWN:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(inner, name)

    def predict_interval(self, X: Any, level: float | None = None) -> tuple[Array, Array]:
        """Return lower and upper ends that hold a new target with probability `level`.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            New rows, as the inner regressor takes them.
        level : float, optional
            Another level than that of the constructor.

        Returns
        -------
        lower, upper : arrays of shape (n_samples,)
            Infinite, with a warning, where the calibration rows are too few for the level. None is negative where the
            inner regressor is made for counts or positive numbers alone.
        """
        check_is_fitted(self)
        lower, upper = self._ends(X, self._rank(level))
        if never_negative(self.estimator_):
            lower = np.maximum(lower, 0.0)
            upper = np.maximum(upper, 0.0)
        return lower, upper

    def _ends(self, X: Any, rank: int) -> tuple[Array, Array]:
        if rank > len(self.scores_):
            unbounded = np.full(len(self.predict(X)), np.inf)
            return -unbounded, unbounded
        if self.method in ("split", "cv"):
            middle = _predicted(self.estimator_, X)
            half = np.partition(self.scores_, rank - 1)[rank - 1] * self._spread(X)
            return middle - half, middle + half
        if self.method == "cv+":
            shifts = np.column_stack([_predicted(model, X) for model in self.estimators_])
            values, ends = self._sorted_scores()
            lower = -_select(-shifts, values, ends, rank)
            upper = _select(shifts, values, ends, rank)
        else:
            ends_of = [self._select_each(block, rank) for block in self._leave_one_out_predictions(X)]
            lower = np.concatenate([e[0] for e in ends_of])
            upper = np.concatenate([e[1] for e in ends_of])
        # Below level 1/2 the ends may cross; the interval between them still holds what it promises.
        return np.minimum(lower, upper), np.maximum(lower, upper)

    def _sorted_scores(self) -> tuple[Array, Rows]:
        """Return the scores, fold by fold and sorted within each, and where the folds begin and end."""
        order = np.lexsort((self.scores_, self.folds_))
        return self.scores_[order], np.concatenate(([0], np.cumsum(np.bincount(self.folds_))))

    def _select_each(self, predictions: Array, rank: int) -> tuple[Array, Array]:
        upper = np.partition(predictions + self.scores_, rank - 1, axis=1)[:, rank - 1]
        lower = -np.partition(self.scores_ - predictions, rank - 1, axis=1)[:, rank - 1]
        return lower, upper

    def _leave_one_out_predictions(self, X: Any) -> Iterator[Array]:
        """Yield μ₋ᵢ(x) of shape (rows, n), for blocks of rows."""
        linear = self._is_linear()
        X = numbers_of(self.estimator_, X) if linear else as_container(type(self).__name__, X)
        n_rows = count_rows(X)
        step = max(1, _BLOCK // len(self.scores_))
        for start in range(0, max(n_rows, 1), step):
            rows = np.arange(start, min(start + step, n_rows))
            block = X if len(rows) == n_rows else take_rows(X, rows)
            if linear:
                yield block @ self.loo_coef_.T + self.loo_intercept_
            else:
                yield np.column_stack([_predicted(model, block) for model in self.estimators_])

    def _inner(self) -> Any:
        return Ridge() if self.estimator is None else self.estimator

    def _is_linear(self) -> bool:
        return hasattr(self, "loo_coef_")

    _laws = laws(
        law("scores_ must not be negative", lambda model: (model.scores_ >= 0).all()),
        law(
            "scale_range_ must be two numbers",
            lambda model: (
                model.scale is None or (model.scale_range_.shape == (2,) and np.isfinite(model.scale_range_).all())
            ),
        ),
        law(
            "the model of the residuals' size is missing",
            lambda model: model.scale is None or hasattr(model, "scale_"),
        ),
        law(
            "loo_coef_ and loo_intercept_ must have one row of numbers per score",
            lambda model: (
                not model._is_linear()
                or (
                    is_array(model.loo_coef_, (len(model.scores_), model.n_features_in_))
                    and is_array(model.loo_intercept_, (len(model.scores_),))
                )
            ),
        ),
        law(
            "only jackknife+ has leave-one-out coefficients",
            lambda model: not model._is_linear() or model.method == "jackknife+",
        ),
    )


def never_negative(model: Any) -> bool:
    """Tell whether a model, alone or at the end of others, is made for targets that are not negative.

    Examples
    --------
    >>> from learnable import PoissonRegressor, Ridge, TableModel
    >>> never_negative(TableModel(PoissonRegressor())), never_negative(Ridge())
    (True, False)
    """
    for name in ("estimator", "model"):  # of a wrapper, then of the table model in it
        model = getattr(model, name, model)
    entry = REGISTRY.get(type(model).__name__)
    return entry is not None and entry.traits is not None and entry.traits.targets in ("counts", "positive")


def _predicted(model: Any, X: Any) -> Array:
    """Return finite predictions (n,)."""
    predictions = np.asarray(model.predict(X), dtype=np.float64)
    if predictions.ndim == 2 and predictions.shape[1] == 1:
        predictions = predictions[:, 0]
    if predictions.ndim != 1 or not np.isfinite(predictions).all():
        raise DataError(
            f"ConformalRegressor: {type(model).__name__}.predict must give one finite number per row; got shape "
            f"{predictions.shape}{'' if np.isfinite(predictions).all() else ' with numbers that are not finite'}."
        )
    return predictions


def _select(shifts: Array, values: Array, ends: Rows, rank: int) -> Array:
    """Return the rank-th smallest of all shifts[i, k] + v, v in fold k, for every row i."""
    out = np.empty(len(shifts))
    work = np.empty((2, shifts.shape[1]), dtype=np.int64)
    select_shifted(np.ascontiguousarray(shifts), values, ends, rank, work[0], work[1], out)
    return out


# --------------------------------------------------------------------------------------------------------------------
# Conformal prediction sets: the labels that a new row may have, with coverage for any classifier.
#
# The score s(x, k) says how strange label k is for x, given the classifier's probabilities p:
#
#     lac:  s = 1 − p_k                                 (smallest sets on average)
#     aps:  s = Σ_{j: p_j > p_k} p_j + u p_k, u = 0     (sets that grow where the classifier is unsure)
#
# or, randomised, with u uniform on [0, 1] for each row. With u = 0 the set holds the fewest likeliest labels whose
# probabilities reach a threshold: with a split it is never empty, and its coverage may exceed the level. The set of x
# holds the labels k for which fewer than ⌈(1 − α)(n + 1)⌉ of the calibration rows have a score below s(x, k); with
# CV+ each row i is compared with s(x, k) under the classifier without the fold of row i. What is guaranteed, and why,
# is in `base.py`.
#
# References: M. Sadinle, J. Lei and L. Wasserman, Least ambiguous set-valued classifiers with bounded error levels,
# JASA 114, 2019; Y. Romano, M. Sesia and E. J. Candès, Classification with valid and adaptive coverage, NeurIPS 2020,
# equations 8 and 10.


_CLASSIFIER = Matches(
    lambda v: not isinstance(v, type) and hasattr(v, "fit") and hasattr(v, "predict_proba"),
    "a classifier with predict_proba (calibrate it with CalibratedClassifier if it has none)",
)


class ConformalClassifier(MetaEstimatorMixin, ClassifierMixin, ConformalModel):
    """A classifier with sets of labels that hold a new row's label with the chosen probability.

    Notes
    -----
    With fewer than level/(1 − level) calibration rows only the set of all labels has the coverage asked for; a warning
    says how many rows are needed. A label that a fold's classifier has not seen has probability zero there. Folds are
    not stratified: the guarantee needs folds that do not look at the labels.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.evaluation import ConformalClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=300)
    >>> X = rng.normal(size=(300, 2)) + np.array([[0, 0], [3, 0], [0, 3]])[y]
    >>> model = ConformalClassifier(method="cv+", level=0.9, random_state=0).fit(X, y)
    >>> model.predict_set([[0.0, 0.0], [1.5, 1.5]])
    array([[ True, False, False],
           [False,  True,  True]])
    """

    _theory = "conformal"

    estimator: Any = param(
        Nothing() | _CLASSIFIER,
        "Any scikit-learn classifier with `predict_proba`, pipeline or `TableModel`; None is `LogisticRegression()`.",
        default=None,
        kw_only=False,
    )
    method: str = param(
        Options("split", "cv+"),
        '"split" fits once, to part of the rows; "cv+" fits once a fold and once to all rows, and wastes none.',
        default="split",
    )
    conformity_score: str = param(
        Options("lac", "aps"),
        '"lac" gives the smallest sets on average; "aps" larger ones for hard rows and smaller ones for easy rows.',
        default="aps",
    )
    randomized: bool = param(
        Boolean(),
        'For "aps": u uniform instead of 0. Where no probability is zero, coverage is then the level itself '
        "(plus what `allow_empty=False` adds), but the sets depend on chance.",
        default=False,
    )
    allow_empty: bool = param(
        Boolean(),
        "Whether a set may be empty, which says that no label suits the row. Otherwise the likeliest label is "
        "added: coverage only grows.",
        default=False,
    )
    random_state: Any = param(
        RANDOM_STATE,
        "Which rows calibrate, which are in what fold, and u. With an integer, the same call gives the same "
        "sets; rows asked one at a time then all get the same u, so leave it None for that.",
        default=None,
    )

    _door = staticmethod(sample_door("classes"))
    _region = "set"

    classes_: NDArray[Any] = fitted("(n_classes,)", "The labels.", kind="biufOUST")
    scores_: Array = fitted("(n_scores,)", "The scores s(xᵢ, yᵢ) of the calibration rows.")
    uniform_: Array = fitted("(n_scores,)", "u of the calibration rows; zeros unless randomised.", low=0.0, high=1.0)

    def _fit(self, table: Sample, run: Run) -> Certificate:
        inner = self._inner()
        if is_prefit(inner, self.cv) and hasattr(inner, "classes_"):
            table = _with_labels_of(inner, table)  # rows that calibrate may lack a class that the classifier knows
        self.classes_ = np.asarray(table.classes)
        return super()._fit(table, run)

    def _calibrate(self, table: Sample) -> Array:
        u = generator_of(self.random_state).spawn(2)[0].uniform(size=table.n_rows)
        self.uniform_ = u if self.randomized else np.zeros(table.n_rows)
        scores = super()._calibrate(table)
        self.uniform_ = self.uniform_[self.folds_ >= 0]
        return scores

    def _score_rows(self, model: Any, X: Any, y: NDArray[Any], rows: Rows) -> Array:
        scores = label_scores(self._probabilities(model, X), self.conformity_score, self.uniform_[rows])
        return np.asarray(scores[np.arange(len(y)), y])

    def predict_set(self, X: Any, level: float | None = None) -> NDArray[np.bool_]:
        """Return which labels belong to the set of each row.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            New rows, as the inner classifier takes them.
        level : float, optional
            Another level than that of the constructor.

        Returns
        -------
        bool array of shape (n_samples, n_classes)
            In the order of `classes_`; all True, with a warning, where the calibration rows are too few for the level.
        """
        check_is_fitted(self)
        rank = self._rank(level)
        below: Any = 0
        calibration_folds = self.folds_[self.folds_ >= 0]
        u = None
        for k, model in enumerate(self._fold_models()):
            p = self._probabilities(model, X)
            if u is None:
                u = self._draw(len(p))
            scores = label_scores(p, self.conformity_score, u)
            below = below + np.searchsorted(np.sort(self.scores_[calibration_folds == k]), scores, side="left")
        chosen = np.asarray(below < rank)
        if not self.allow_empty:
            empty = ~chosen.any(axis=1)
            likeliest = self._probabilities(self.estimator_, X).argmax(axis=1)
            chosen[empty, likeliest[empty]] = True
        return chosen

    def predict_proba(self, X: Any) -> Array:
        """Return the inner classifier's probability of each class, in the order of `classes_`; not calibrated."""
        check_is_fitted(self)
        return self._probabilities(self.estimator_, X)

    def _draw(self, n: int) -> Array:
        return generator_of(self.random_state).spawn(2)[1].uniform(size=n) if self.randomized else np.zeros(n)

    def _probabilities(self, model: Any, X: Any) -> Array:
        """Return a column for each of `classes_`; zeros for labels that the classifier has not seen."""
        p = np.asarray(model.predict_proba(X), dtype=np.float64)
        known = np.asarray(model.classes_).tolist()
        if p.ndim != 2 or p.shape[1] != len(known) or not np.isfinite(p).all():
            raise DataError(
                f"ConformalClassifier: {type(model).__name__}.predict_proba must give one finite number per class; got "
                f"shape {p.shape} for {len(known)} classes."
            )
        if known == self.classes_.tolist():
            return p
        place = {label: code for code, label in enumerate(self.classes_.tolist())}
        strange = [label for label in known if label not in place]
        if strange:
            raise DataError(
                f"ConformalClassifier: the classifier knows the class {strange[0]!r}, which y does not have. "
                "Calibrate it with rows of all its classes."
            )
        full = np.zeros((len(p), len(place)))
        full[:, [place[label] for label in known]] = p
        return full

    def _inner(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    _laws = laws(
        law("classes_ must hold at least two labels", lambda model: is_labels(model.classes_)),
        law(
            "uniform_ must have one number for each score",
            lambda model: is_array(model.uniform_, model.scores_.shape),
        ),
        law(
            "a classifier knows labels that classes_ does not have",
            lambda model: all(
                set(np.asarray(getattr(one, "classes_", ())).tolist()) <= set(model.classes_.tolist())
                for one in [model.estimator_, *model.estimators_]
            ),
        ),
    )


def _with_labels_of(inner: Any, table: Sample) -> Sample:
    """Return the rows with their targets numbered as the classifier numbers its classes."""
    classes = np.asarray(inner.classes_)
    place = {label: code for code, label in enumerate(classes.tolist())}
    found = np.asarray(table.classes).tolist()
    if not set(found) <= set(place):
        return table  # an unknown label has probability zero
    return replace(table, y=np.array([place[label] for label in found])[table.y], classes=classes)


def label_scores(p: Array, kind: str, u: Array) -> Array:
    """Return s(x, k) for rows of probabilities p (n, K): how strange each label is.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([[0.5, 0.3, 0.2]])
    >>> label_scores(p, "lac", np.zeros(1)), label_scores(p, "aps", np.zeros(1))
    (array([[0.5, 0.7, 0.8]]), array([[0. , 0.5, 0.8]]))
    """
    if kind == "lac":
        return 1.0 - p
    order = np.argsort(-p, axis=1)
    falling = np.take_along_axis(p, order, axis=1)
    before = np.zeros_like(p)
    before[:, 1:] = np.cumsum(falling, axis=1)[:, :-1]
    # Labels of equal probability share what stands before the first of them.
    tied = falling[:, 1:] == falling[:, :-1]
    before[:, 1:][tied] = 0.0
    before = np.maximum.accumulate(before, axis=1)
    scores = np.empty_like(p)
    np.put_along_axis(scores, order, before + u[:, None] * falling, axis=1)
    return scores
