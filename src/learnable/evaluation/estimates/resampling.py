"""Bootstrap estimates of risk: out of bag, .632 and .632+.

With B resamples of the n rows, row i is judged only by the models that did not see it:

    Err₁   = n⁻¹ Σᵢ (mean loss of row i over the resamples without it)      leave-one-out bootstrap
    err    = mean loss of the model of all rows on these very rows           apparent error
    γ      = n⁻² Σᵢ Σⱼ L(yᵢ, f(xⱼ))                                          error without information
    .632   = .368 err + .632 Err₁
    .632+  = (1 − ŵ) err + ŵ min(Err₁, γ),  ŵ = .632/(1 − .368 R̂),  R̂ = (min(Err₁, γ) − err)/(γ − err)

with R̂ = 0 unless min(Err₁, γ) > err. So .632+ trusts the optimistic apparent error less, the more the model overfits.

Reference: B. Efron and R. Tibshirani, Improvements on cross-validation: the .632+ bootstrap method, JASA 92, 1997.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import qr
from sklearn import linear_model as sk
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures
from sklearn.utils import get_tags

from ...core import RANDOM_STATE, Array, DataError, NDArray, Number, Options, check_parameters, interruptible
from ...data.rows import RowTable, read_rows
from ...kernel import GaussianProcessRegressor
from ...linear import LinearRegression, Ridge, RidgeCV
from ...linear.least_squares.ridge import ridge_spectrum
from ...meta.folds import Scorer, fit_folds, fit_whole, naming_fold, score_rows, scorer_of
from ...meta.splits import Split, as_generator
from ...solvers.systems.least_squares import dense_rows
from ...solvers.systems.orthogonal import weighted_mean
from .intervals import LEVEL, Interval, corrected_t_interval
from .losses import OutOfFold, Remembered, RowLoss, no_information_score, responses_of, row_loss, score_of

_PERMUTATIONS = 50
_REDRAWS = 100
OUT_OF_BAG_SHARE = np.exp(-1.0)


@dataclass(frozen=True)
class Bootstrap:
    """Scores by the bootstrap; greater is better.

    Attributes
    ----------
    apparent : float
        On the training rows themselves.
    out_of_bag : float
        On the rows that a resample left out, Err₁.
    no_information : float
        Of random pairs of targets and predictions, γ.
    point632, point632_plus : float
        The weighted means of the first two.
    overfitting : float
        R̂, between 0 (none) and 1 (nothing was learned).
    weight : float
        ŵ, between .632 and 1.
    interval : dict
        For "bootstrap", ".632" and ".632+", the confidence interval: by the rows' own spread where the metric is a
        mean over rows, otherwise by the spread over resamples.
    scores : array of shape (n_resamples,)
        The score of each resample on its rows left out.
    metric : str
        Its name.
    """

    apparent: float
    out_of_bag: float
    no_information: float
    point632: float
    point632_plus: float
    overfitting: float
    weight: float
    interval: dict[str, Interval]
    scores: Array
    metric: str


def bootstrap_risk(
    model: Any,
    X: Any,
    y: Any,
    *,
    scoring: Any = None,
    n_resamples: int = 100,
    sample_weight: Any = None,
    level: float = 0.95,
    random_state: Any = 0,
) -> Bootstrap:
    """Estimate a model's score by the bootstrap, also by the .632 and .632+ rules.

    Parameters
    ----------
    model : estimator
        Any estimator of scikit-learn's kind.
    X, y, sample_weight
        As in `evaluate`.
    scoring : str, callable or None
        The metric. The formulas are those of the paper where it is a mean over rows (accuracy, squared and absolute
        error, R², log loss); other scores are averaged over resamples, and γ comes from permuted targets.
    n_resamples : int
        B.
    level : float
        Level of the intervals.
    random_state : int, Generator, RandomState or None
        Where randomness comes from.

    Returns
    -------
    Bootstrap
        All estimates together.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from learnable.evaluation import bootstrap_risk
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 5)), rng.integers(2, size=60)       # nothing to learn
    >>> found = bootstrap_risk(KNeighborsClassifier(1), X, y)
    >>> found.apparent, round(found.point632, 1), round(found.point632_plus, 1)
    (1.0, 0.7, 0.5)
    """
    owner = "bootstrap_risk"
    table = read_rows(owner, X, y, sample_weight)
    scorer, metric = scorer_of(owner, model, scoring)
    return bootstrap_table(
        owner, model, table, scorer, metric, n_resamples=n_resamples, level=level, random_state=random_state
    )


def bootstrap_table(
    owner: str,
    model: Any,
    table: RowTable,
    scorer: Scorer,
    metric: str,
    *,
    n_resamples: int,
    level: float,
    random_state: Any,
) -> Bootstrap:
    """Return the estimates for a table that was read."""
    rules = {"n_resamples": Number(low=2, integer=True), "level": LEVEL, "random_state": RANDOM_STATE}
    check_parameters(owner, {"n_resamples": n_resamples, "level": level, "random_state": random_state}, rules)
    if table.y is None:
        raise DataError(f"{owner}: the bootstrap needs targets; y is None. Pass one target per row.")
    if table.n_rows < 2:
        raise DataError(f"{owner}: needs at least 2 rows to leave some out; got {table.n_rows}.")
    rng = as_generator(random_state)
    splits = _resamples(owner, model, table, n_resamples, rng)
    whole = fit_whole(owner, model, table)
    loss = row_loss(metric, table.y)
    if loss is not None and hasattr(whole, loss.response):
        return _by_rows(owner, model, table, splits, whole, loss, metric, level)
    return _by_resamples(owner, model, table, splits, whole, scorer, metric, level, rng)


def point632_plus(apparent: float, out_of_bag: float, no_information: float) -> tuple[float, float, float]:
    """Return the .632+ estimate, R̂ and ŵ from three errors (smaller is better).

    Examples
    --------
    >>> point632_plus(0.0, 0.5, 0.5)
    (0.5, 1.0, 1.0)
    >>> point632_plus(0.2, 0.2, 0.5)
    (0.2, 0.0, 0.632)
    """
    capped = min(out_of_bag, no_information)
    overfitting = (capped - apparent) / (no_information - apparent) if capped > apparent else 0.0
    weight = 0.632 / (1.0 - 0.368 * overfitting)
    if capped <= apparent:  # no sign of overfitting: the plain rule
        capped = out_of_bag
    return (1.0 - weight) * apparent + weight * capped, overfitting, weight


def _by_rows(
    owner: str,
    model: Any,
    table: RowTable,
    splits: list[Split],
    whole: Any,
    loss: RowLoss,
    metric: str,
    level: float,
) -> Bootstrap:
    """Average over resamples row by row, then over rows."""
    y = np.asarray(table.y)
    weight = table.weight
    classes = np.unique(y) if is_classifier(model) else None
    total = np.zeros(len(y))
    times = np.zeros(len(y))
    scores = []
    for fold in fit_folds(owner, model, table, splits):
        with naming_fold(owner, model, fold.number, fold.total, fold.train):
            losses = loss.loss(y[fold.test], _response(loss, fold.model, table, fold.test, classes), classes)
            total[fold.test] += losses
            times[fold.test] += 1
            part = None if weight is None else weight[fold.test]
            varied = not loss.relative or np.ptp(y[fold.test]) > 0  # R² divides by the variance of the targets
            scores.append(loss.score_of(loss.mean(losses, part), y[fold.test], part) if varied else np.nan)
    seen = times > 0
    if not seen.all():
        total[~seen] = total[seen].sum() / times[seen].sum()
        times[~seen] = 1.0
    out_of_bag = total / times
    response = _response(loss, whole, table, np.arange(len(y)), classes)
    apparent = loss.loss(y, response, classes)
    gamma = no_information_score(loss, y, response, classes, weight)
    err = loss.mean(apparent, weight)
    err1 = loss.mean(out_of_bag, weight)
    plus, overfitting, share = point632_plus(err, err1, gamma)
    mixed = {"bootstrap": (1.0, err1), ".632": (0.632, 0.368 * err + 0.632 * err1), ".632+": (share, plus)}
    intervals = {}
    for name, (of_out, value) in mixed.items():
        rows = (1.0 - of_out) * apparent + of_out * out_of_bag
        shifted = rows + (value - loss.mean(rows, weight))  # .632+ may have been capped at γ
        intervals[name] = loss.interval(shifted, y, weight, level=level)
    return Bootstrap(
        apparent=loss.score_of(err, y, weight),
        out_of_bag=loss.score_of(err1, y, weight),
        no_information=loss.score_of(gamma, y, weight),
        point632=loss.score_of(mixed[".632"][1], y, weight),
        point632_plus=loss.score_of(plus, y, weight),
        overfitting=overfitting,
        weight=share,
        interval=intervals,
        scores=np.array(scores),
        metric=metric,
    )


def _by_resamples(
    owner: str,
    model: Any,
    table: RowTable,
    splits: list[Split],
    whole: Any,
    scorer: Scorer,
    metric: str,
    level: float,
    rng: np.random.Generator,
) -> Bootstrap:
    """Average the scores of the resamples; the rules are applied to minus the score."""
    scores = []
    for fold in fit_folds(owner, model, table, splits):
        with naming_fold(owner, model, fold.number, fold.total, fold.train):
            scores.append(score_rows(scorer, fold.model, table, fold.test))
    everything = np.arange(table.n_rows)
    y = np.asarray(table.y)
    stand_in = Remembered(whole, responses_of(whole, table.X), getattr(whole, "classes_", None))
    err = -score_rows(scorer, whole, table, everything)
    pairs = [score_of(scorer, stand_in, rng.permutation(y), table.weight, everything) for _ in range(_PERMUTATIONS)]
    gamma = -float(np.mean(pairs))
    err1 = -float(np.mean(scores))
    plus, overfitting, share = point632_plus(err, err1, gamma)
    plain = 0.368 * err + 0.632 * err1
    around = corrected_t_interval(scores, OUT_OF_BAG_SHARE, level)
    intervals = {}
    for name, (of_out, value) in {"bootstrap": (1.0, err1), ".632": (0.632, plain), ".632+": (share, plus)}.items():
        half = of_out * (around.high - around.low) / 2.0
        intervals[name] = Interval(-value - half, -value + half, level, "corrected t over resamples")
    return Bootstrap(-err, -err1, -gamma, -plain, -plus, overfitting, share, intervals, np.array(scores), metric)


def _resamples(owner: str, model: Any, table: RowTable, n_resamples: int, rng: np.random.Generator) -> list[Split]:
    """Draw rows with replacement; a resample that leaves no row out, or has one class only, is drawn again."""
    y = np.asarray(table.y)
    everything = np.arange(table.n_rows)
    by_class = is_classifier(model) and y.ndim == 1 and len(np.unique(y)) > 1
    splits: list[Split] = []
    for generator in rng.spawn(n_resamples):
        for _ in range(_REDRAWS):
            train = np.sort(generator.integers(table.n_rows, size=table.n_rows))
            test = np.setdiff1d(everything, train)
            if len(test) and not (by_class and bool((y[train] == y[train[0]]).all())):
                break
        else:
            raise DataError(
                f"{owner}: {_REDRAWS} resamples of the {table.n_rows} rows in turn had one class only; get more rows "
                "of the rare class."
            )
        splits.append((train, test))
    return splits


def _response(loss: RowLoss, model: Any, table: RowTable, rows: NDArray[np.int64], classes: Any) -> NDArray[Any]:
    response = np.asarray(getattr(model, loss.response)(table.take(rows)[0]))
    seen: Any = getattr(model, "classes_", None)
    if loss.response != "predict_proba" or classes is None or len(seen) == len(classes):
        return response
    wide = np.zeros((len(response), len(classes)))
    wide[:, np.searchsorted(classes, seen)] = response
    return wide


# --------------------------------------------------------------------------------------------------------------------
# Leave-one-out predictions: exactly, and for linear smoothers without refitting.
#
# A linear smoother predicts ŷ = Hy. The prediction for row i by the fit to all other rows misses yᵢ by
#
#     yᵢ − ŷ₍ᵢ₎ = (yᵢ − ŷᵢ)/(1 − hᵢᵢ),
#
# so that one fit gives all n of them. Where a row alone determines its own fit (hᵢᵢ = 1) this is 0/0: if that is so
# of every row, because there are as many columns as rows, its limit is taken, with √w(X − x̄) = U diag(s) Vᵀ,
#
#     yᵢ − ŷ₍ᵢ₎ = (U s⁻² Uᵀ√w(y − ȳ))ᵢ / (√wᵢ (U s⁻² Uᵀ)ᵢᵢ),
#
# and otherwise the few such rows are refitted. Kernel ridge regression and Gaussian processes are linear smoothers
# too: there yᵢ − ŷ₍ᵢ₎ = (Py)ᵢ/Pᵢᵢ, P the inverse of the matrix that is solved.
#
# Reference: T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical Learning, 2nd ed., section 7.10.


_LEAST_SQUARES = (LinearRegression, sk.LinearRegression)
_RIDGE = (Ridge, RidgeCV, sk.Ridge, sk.RidgeCV)
_INEXACT = ("sag", "saga", "lbfgs")  # scikit-learn's iterative solvers: their fit is not the smoother's
_SMALLEST_FREEDOM = 1e-6  # below, dividing by 1 − h would lose more than ten digits
_LARGEST_DENSE = 2e8  # numbers of a sparse table that may be written out


@dataclass(frozen=True)
class LeaveOneOut:
    """What is predicted for each row by the fit to all others.

    Attributes
    ----------
    predictions : array of shape (n_rows,) or (n_rows, n_targets)
        ŷ₍ᵢ₎; labels for a classifier.
    responses : dict
        The same, and probabilities and decision scores of a classifier, by the method's name.
    classes : array or None
        The labels, in the order of the columns of the probabilities.
    method : str
        "closed form" or "refits".
    note : str
        What to know about it.
    """

    predictions: NDArray[Any]
    responses: dict[str, NDArray[Any]]
    classes: Any
    method: str
    note: str = ""


def leave_one_out_predictions(
    model: Any, X: Any, y: Any, sample_weight: Any = None, *, method: str = "auto"
) -> LeaveOneOut:
    """Return the prediction for every row by the model fitted to all other rows.

    Parameters
    ----------
    model : estimator
        For least squares and ridge regression (ours and scikit-learn's), kernel ridge regression and exact Gaussian
        processes, alone or after transformers that learn nothing, one fit is enough; every other model is fitted n
        times. A model that has a method `leave_one_out(X, y, sample_weight)`, as `KernelRidge` has, is asked. A
        Gaussian process with `normalize_y` or a regressor as its mean, which see the row left out, is fitted n times.
    X, y, sample_weight
        As in `evaluate`.
    method : {"auto", "refits"}
        "refits" forces n fits.

    Returns
    -------
    LeaveOneOut
        The predictions. Those of RidgeCV keep the penalty that was chosen on all rows, and those of Gaussian processes
        the hyperparameters: a little optimistic, which `method="refits"` avoids.

    Examples
    --------
    >>> from learnable import LinearRegression
    >>> from learnable.evaluation import leave_one_out_predictions
    >>> found = leave_one_out_predictions(LinearRegression(), [[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0])
    >>> found.predictions.round(6), found.method
    (array([-3. ,  2.5,  2. ]), 'closed form')
    """
    owner = "leave_one_out_predictions"
    check_parameters(owner, {"method": method}, {"method": Options("auto", "refits")})
    return leave_one_out(owner, model, read_rows(owner, X, y, sample_weight), method)


def leave_one_out(owner: str, model: Any, table: RowTable, method: str = "auto") -> LeaveOneOut:
    """Return leave-one-out predictions of a table that was read."""
    if table.y is None:
        raise DataError(f"{owner}: leave-one-out needs targets; y is None. Pass one target per row.")
    if table.n_rows < 2:
        raise DataError(f"{owner}: needs at least 2 rows to leave one out; got {table.n_rows}.")
    last = _last_step(model)
    if method == "auto" and _passes_rows(model) and table.weight is None and _is_exact_process(last):
        fitted = fit_whole(owner, last, replace(table, X=_features(model, table.X)))
        found = np.asarray(fitted.leave_one_out().mean)
        note = "the hyperparameters were chosen once, on all rows" if fitted.certificate_.kind != "closed-form" else ""
        return LeaveOneOut(found, {"predict": found}, None, "closed form", note)
    if method == "auto" and _passes_rows(model) and _can_be_asked(last):
        X = _features(model, table.X)
        y = table.y
        weight = table.weight
        found = np.asarray(last.leave_one_out(X, y) if weight is None else last.leave_one_out(X, y, weight))
        classes = np.unique(np.asarray(y)) if is_classifier(last) else None
        return LeaveOneOut(found, {"predict": found}, classes, "closed form")
    if method == "auto" and is_linear_smoother(model) and _fits_in_memory(table.X):
        predictions = _closed_form(owner, model, table)
        note = "the penalty was chosen once, on all rows" if isinstance(last, (RidgeCV, sk.RidgeCV)) else ""
        return LeaveOneOut(predictions, {"predict": predictions}, None, "closed form", note)
    return _refits(owner, model, table, np.arange(table.n_rows))


def is_linear_smoother(model: Any) -> bool:
    """Tell whether one fit gives the leave-one-out predictions."""
    last = _last_step(model)
    if not _passes_rows(model):
        return False
    if not isinstance(last, (*_LEAST_SQUARES, *_RIDGE)) or getattr(last, "positive", False):
        return False
    return isinstance(last, (Ridge, RidgeCV)) or getattr(last, "solver", None) not in _INEXACT


def _closed_form(owner: str, model: Any, table: RowTable) -> NDArray[Any]:
    fitted = fit_whole(owner, model, table)
    last = fitted
    features = table.X
    if isinstance(fitted, Pipeline):
        last = fitted.steps[-1][1]
        features = fitted[:-1].transform(table.X) if len(fitted.steps) > 1 else table.X
    predictions = np.array(fitted.predict(table.X), dtype=np.float64)
    clean = Ridge._door(Ridge(), features, table.y, table.weight)
    X, y, weight = dense_rows(clean.blocks)
    kept = np.arange(table.n_rows) if clean.kept is None else np.flatnonzero(clean.kept)
    errors = np.empty_like(y)
    alphas = _penalties(last, y.shape[1])
    for alpha in np.unique(alphas):
        targets = np.flatnonzero(alphas == alpha)
        if alpha > 0:
            errors[:, targets] = _ridge_errors(X, y[:, targets], weight, last.fit_intercept, float(alpha))
        else:
            residuals = (np.asarray(table.y, dtype=np.float64) - predictions).reshape(table.n_rows, -1)
            errors[:, targets] = _least_squares_errors(
                X, y[:, targets], weight, residuals[kept][:, targets], last.fit_intercept, getattr(last, "rank_", None)
            )
    # A row without weight has no part in the fit: what the fit says of it is what it says without it.
    predictions.reshape(table.n_rows, -1)[kept] = y - errors
    unknown = np.flatnonzero(~np.isfinite(predictions.reshape(table.n_rows, -1)).all(axis=1))
    if len(unknown):
        chosen = _with_chosen_penalty(model, last)
        predictions[unknown] = _refits(owner, chosen, table, unknown).predictions[unknown]
    return predictions


def _least_squares_errors(
    X: Array, y: Array, weight: Array | None, residuals: Array, intercept: bool, rank: int | None
) -> Array:
    """Return yᵢ − ŷ₍ᵢ₎ of least squares (of minimum norm); NaN where a row has to be refitted."""
    n = len(X)
    w = np.ones(len(X)) if weight is None else weight
    exponents = np.frexp(np.abs(X).max(axis=0, initial=0.0))[1]
    scaled = np.ldexp(X, -exponents)
    root = np.sqrt(w / w.max())[:, None]
    Q, R, _ = interruptible(
        qr, root * (scaled - weighted_mean(scaled, weight, intercept)), mode="economic", pivoting=True
    )
    diagonal = np.abs(np.diag(R))
    noise = np.finfo(np.float64).eps * max(X.shape) * diagonal.max(initial=0.0)
    rank = int(np.count_nonzero(diagonal > noise)) if rank is None else rank
    if rank >= n - intercept:
        return _interpolation_errors(X, y, weight, intercept)
    used = (Q[:, :rank] ** 2).sum(axis=1) + (w / w.sum() if intercept else 0.0)
    free = np.where(1.0 - used > _SMALLEST_FREEDOM, 1.0 - used, np.nan)
    return np.asarray(residuals / free[:, None])


def _interpolation_errors(X: Array, y: Array, weight: Array | None, intercept: bool) -> Array:
    """Return yᵢ − ŷ₍ᵢ₎ of the interpolation of minimum norm: the limit of ridge regression without penalty."""
    spectrum = ridge_spectrum(X, y, weight, intercept=intercept, smallest_alpha=0.0)
    if len(spectrum.values) != len(X) - intercept:
        return np.full_like(y, np.nan)  # equal rows: some are determined by others, some are not
    scaled = spectrum.left / spectrum.values
    free = (scaled * spectrum.left).sum(axis=1) * spectrum.root_weight
    return np.asarray(np.ldexp((scaled @ spectrum.projected) / free[:, None], spectrum.y_exponent))


def _ridge_errors(X: Array, y: Array, weight: Array | None, intercept: bool, alpha: float) -> Array:
    spectrum = ridge_spectrum(X, y, weight, intercept=intercept, smallest_alpha=alpha)
    alphas = np.array([alpha])
    free = spectrum.freedom(alphas)
    errors = np.ldexp(spectrum.leave_one_out(alphas)[:, :, 0], spectrum.y_exponent)
    # Formed from the complement, 1 − h is exact where the rows span everything; elsewhere it is a difference.
    return np.asarray(np.where((free > _SMALLEST_FREEDOM) | spectrum._spans_everything(), errors, np.nan))


def _refits(owner: str, model: Any, table: RowTable, rows: NDArray[np.int64]) -> LeaveOneOut:
    """Predict some rows by as many fits to all other rows."""
    everything = np.arange(table.n_rows)
    found = OutOfFold(model, table)
    for fold in fit_folds(
        owner, model, table, [(np.delete(everything, row), everything[row : row + 1]) for row in rows]
    ):
        found.add(fold)
    stand_in = found.stand_in()
    responses = stand_in.responses
    return LeaveOneOut(responses["predict"], responses, found.classes, "refits")


def _penalties(last: Any, n_targets: int) -> Array:
    if isinstance(last, _LEAST_SQUARES):
        return np.zeros(n_targets)
    alpha = last.alpha_ if isinstance(last, (RidgeCV, sk.RidgeCV)) else last.alpha
    return np.asarray(np.broadcast_to(np.asarray(alpha, dtype=np.float64), (n_targets,)))


def _with_chosen_penalty(model: Any, last: Any) -> Any:
    """Return the model with the penalty that RidgeCV chose, as a plain ridge regression."""
    if not isinstance(last, (RidgeCV, sk.RidgeCV)):
        return model
    plain = Ridge(alpha=last.alpha_, fit_intercept=last.fit_intercept)
    if not isinstance(model, Pipeline):
        return plain
    return Pipeline([*clone(model).steps[:-1], (model.steps[-1][0], plain)])


def _last_step(model: Any) -> Any:
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def _passes_rows(model: Any) -> bool:
    """Tell whether no step before the last learns anything."""
    return not isinstance(model, Pipeline) or all(_learns_nothing(step) for _, step in model.steps[:-1])


def _features(model: Any, X: Any) -> Any:
    """Return what the last step sees, behind steps that learn nothing."""
    return clone(model[:-1]).fit_transform(X) if isinstance(model, Pipeline) and len(model.steps) > 1 else X


def _can_be_asked(model: Any) -> bool:
    return hasattr(model, "leave_one_out") and not isinstance(model, GaussianProcessRegressor)


def _is_exact_process(model: Any) -> bool:
    """Tell whether a model is a Gaussian process of which nothing but hyperparameters is learned beforehand."""
    if not isinstance(model, GaussianProcessRegressor):
        return False
    return model.inducing is None and not model.normalize_y and isinstance(model.mean, str)


def _learns_nothing(step: Any) -> bool:
    """Tell whether a transformer treats a row the same way whatever the other rows are."""
    if isinstance(step, FunctionTransformer):  # any other function may look at all rows
        return step.func is None or isinstance(step.func, np.ufunc)
    if step is None or isinstance(step, (str, PolynomialFeatures)):
        return True
    return not get_tags(step).requires_fit


def _fits_in_memory(X: Any) -> bool:
    return not hasattr(X, "indptr") or float(X.shape[0]) * X.shape[1] <= _LARGEST_DENSE
