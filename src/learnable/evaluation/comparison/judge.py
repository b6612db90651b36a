"""A model on rows that nothing has seen: its score with an interval, and the details that a report draws."""

from __future__ import annotations

import math
import time
import warnings
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit
from sklearn.utils import get_tags

from ...core.errors import LearnableError
from ...linear.inference.infer import infer
from ...linear.inference.refusals import PenalisedError
from ..estimates.intervals import Interval, score_interval
from ..guarantees.explain import explain_theory, theorem_of
from ..guarantees.risk_bound import bounds_of_predictions, risk_bound
from ..reliability import calibration_table, calibration_verdict
from .candidates import Candidate, wants_dense
from .clock import cut_of
from .leaderboard import certificate_of
from .measures import (
    Cost,
    Decision,
    Measure,
    Prediction,
    class_figures,
    measure_all,
    predict_rows,
    ranking_measure,
    threshold_table,
)
from .record import plain
from .warm import get_ready
from .workspace import FINAL, Report, keep_fitted, keep_predictions, read_names, read_split

Array = NDArray[np.float64]

_MOST_POINTS = 2000
_MOST_CURVE_POINTS = 200
_MOST_CURVES = 12
_MOST_COEFFICIENTS = 40
_MOST_LABELS = 40
#: What a coefficient of a generalised linear model changes, by its link.
_SCALES = {"identity": "prediction", "log": "logarithm of the prediction", "logit": "log odds"}


def judge_candidate(
    report: Report,
    folder: str,
    candidate: Candidate,
    task: str,
    metric: str,
    classes: list[str] | None,
    seed: int,
    level: float,
    max_seconds: float | None = None,
    baseline: tuple[str, Prediction] | None = None,
    units: Units | None = None,
    split: str = FINAL,
    decision: Decision | None = None,
    cost: Cost | None = None,
) -> None:
    """Fit a candidate to all training rows and judge it on the hold-out; a job.

    Reports `{"holdout": …}` first, then `{"details": …}`. With the name and the prediction of a `baseline`, the
    hold-out has `"against"` too: its score on the same rows and the difference, row by row; `units` are groups of rows
    that vary together. Of another `split` than the final one, only the score is reported.
    """
    warnings.simplefilter("ignore")
    get_ready(report, candidate, task)
    began = time.perf_counter()
    dense = wants_dense(candidate)
    data = read_split(Path(folder), split, dense=dense)
    model = candidate.build(seed, max_seconds).fit(data.X_train, data.y_train)
    prediction = predict_rows(model, data.X_test, None if classes is None else len(classes))
    if decision is not None and prediction.probabilities is not None:
        prediction = Prediction(decision.decide(prediction.probabilities), prediction.probabilities)
    measure = ranking_measure(task, metric)
    interval = holdout_interval(measure, data.y_test, prediction, level, seed, units)
    score = measure.function(data.y_test, prediction)
    also = measure_all(task, data.y_test, prediction)
    holdout: dict[str, Any] = {"score": score, "low": interval.low, "high": interval.high, "method": interval.method}
    holdout["also"] = also
    holdout["cut"] = None if max_seconds is None else cut_of(model)
    if baseline is not None:
        holdout["against"] = compare_with(measure, data.y_test, prediction, baseline, level, seed, units)
    if split == FINAL:
        seen = data.X_train, data.y_train
        holdout["proven"] = proven(model, *seen, data.y_test, prediction.values, classes, level)
    report({"holdout": plain(holdout), "seconds": time.perf_counter() - began})
    if split != FINAL:
        return
    keep_predictions(Path(folder), candidate.name, FINAL, prediction)
    details = draw_details(data.y_test, prediction, classes, seed)
    if classes is not None and len(classes) == 2 and prediction.probabilities is not None:
        found = threshold_table(data.y_test, prediction.probabilities, classes, cost, decision)
        details["thresholds"] = found
    names = read_names(Path(folder), FINAL, dense=dense)[0]
    details["coefficients"] = coefficients(model, names, classes, level, (data.X_train, data.y_train))
    details["certificate"] = certificate_of(model)
    report({"details": plain(details)})
    if max_seconds is None:
        keep_fitted(Path(folder), candidate.name, model)


def compare_with(
    measure: Measure,
    y: NDArray[Any],
    prediction: Prediction,
    baseline: tuple[str, Prediction],
    level: float,
    seed: int,
    units: Units | None = None,
) -> dict[str, Any]:
    """Return a baseline's score on the same rows, and by how much the prediction is better, with an interval.

    `difference` is positive where the prediction is better, whatever the measure; `verdict` is "better", "worse" or
    "undecided".
    """
    name, other = baseline
    difference, interval = paired_interval(measure, y, prediction, other, level, seed, units)
    word = "better" if interval.low > 0 else "undecided"
    if interval.high < 0:
        word = "worse"
    return {
        "name": name,
        "score": measure.function(y, other),
        "difference": difference,
        "low": interval.low,
        "high": interval.high,
        "method": interval.method,
        "verdict": word if math.isfinite(difference) else "undecided",
    }


def draw_details(y: NDArray[Any], prediction: Prediction, classes: list[str] | None, seed: int) -> dict[str, Any]:
    """Return what a report draws of predictions on the hold-out, from at most a few thousand rows."""
    details: dict[str, Any] = {
        "on": "hold-out",
        **dict.fromkeys(("residuals", "roc", "calibration", "confusion", "coefficients", "importances")),
        "learning_curve": None,
        "certificate": None,
    }
    if classes is None:
        rows = np.sort(np.random.default_rng(seed).permutation(len(y))[:_MOST_POINTS])
        details["residuals"] = {"predicted": prediction.values[rows], "actual": y[rows]}
        return details
    details["confusion"] = confusion(y, prediction, classes)
    details["per_class"] = class_figures(y, prediction.values, classes)
    if prediction.probabilities is not None:
        details["roc"] = roc_curves(y, prediction.probabilities, classes)
        table = calibration_table(y, prediction.probabilities, classes=np.arange(len(classes)))
        details["calibration"] = table.to_dict() | {"verdict": calibration_verdict(y, prediction.probabilities)}
    return details


def confusion(y: NDArray[Any], prediction: Prediction, classes: list[str]) -> dict[str, Any]:
    """Return how often each class is taken for each; with very many classes the rarest become one."""
    n = len(classes)
    counts = np.zeros((n, n), dtype=np.int64)
    np.add.at(counts, (y.astype(np.intp), prediction.values.astype(np.intp)), 1)
    if n <= _MOST_LABELS:
        return {"labels": classes, "counts": counts}
    order = np.argsort(-counts.sum(axis=1), kind="stable")
    kept = np.sort(order[: _MOST_LABELS - 1])
    rest = order[_MOST_LABELS - 1 :]
    merge = np.zeros((n, _MOST_LABELS), dtype=np.int64)
    merge[kept, np.arange(_MOST_LABELS - 1)] = 1
    merge[rest, -1] = 1
    return {"labels": [*(classes[k] for k in kept), f"{len(rest)} others"], "counts": merge.T @ counts @ merge}


def roc_curves(y: NDArray[Any], probabilities: Array, classes: list[str]) -> list[dict[str, Any]]:
    """Return the ROC curve of the second of two classes, or of each of several against the rest."""
    from sklearn.metrics import auc, roc_curve

    counts = np.bincount(y.astype(np.intp), minlength=len(classes))
    wanted = [1] if len(classes) == 2 else [int(k) for k in np.argsort(-counts, kind="stable")[:_MOST_CURVES]]
    curves = []
    for k in wanted:
        if not 0 < counts[k] < len(y):
            continue
        fpr, tpr, _ = roc_curve(y == k, probabilities[:, k])
        area = float(auc(fpr, tpr))
        points = np.unique(np.linspace(0, len(fpr) - 1, min(len(fpr), _MOST_CURVE_POINTS)).astype(int))
        curves.append({"label": classes[k], "fpr": fpr[points], "tpr": tpr[points], "auc": area})
    return curves


def coefficients(
    model: Any, names: list[str], classes: list[str] | None, level: float, rows: tuple[Any, Any] | None = None
) -> list[dict[str, Any]] | None:
    """Return the largest coefficients of a linear model, with intervals where there are any, else why not.

    `rows` are those of the fit, from which a likelihood model that keeps no standard errors has them computed.
    """
    coef = getattr(model, "coef_", None)
    if coef is None or np.ndim(coef) > 2 or np.shape(coef)[-1] != len(names):
        return None
    table = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    low, high, reason = _ends_of_coefficients(model, table.shape, level, rows)
    several = len(table) > 1 and classes is not None
    order = np.argsort(-np.abs(table), axis=None, kind="stable")[:_MOST_COEFFICIENTS]
    found = []
    for row, column in zip(*np.unravel_index(order, table.shape), strict=True):
        name = f"{names[column]} → {classes[row]}" if several and classes is not None else names[column]
        ends = {"low": low[row, column], "high": high[row, column]}
        found.append({"name": name, "value": table[row, column], "of": _scale_of(model), "reason": reason, **ends})
    return found


def _ends_of_coefficients(
    model: Any, shape: tuple[int, ...], level: float, rows: tuple[Any, Any] | None
) -> tuple[Array, Array, str | None]:
    """Return lower and upper ends, NaN where there are none, and then the reason if there is something to say."""
    nothing = np.full(shape, np.nan)
    try:
        if hasattr(model, "conf_int"):
            low, high = (np.atleast_2d(end) for end in model.conf_int(level))
            return low, high, None
        if rows is None:
            return nothing, nothing, None
        low, high = infer(model, *rows, level=level).conf_int()
    except PenalisedError:
        return nothing, nothing, "a penalty pulls the coefficients towards zero."
    except LearnableError:  # columns that depend on each other, or no likelihood
        return nothing, nothing, None
    skip = int(model.fit_intercept)
    if len(low) != shape[1] + skip:  # several classes: contrasts to the first, not coefficients
        return nothing, nothing, None
    return low[None, skip:], high[None, skip:], None


def _scale_of(model: Any) -> str:
    """Return what a linear model's coefficients change."""
    if hasattr(model, "predict_proba"):
        return "log odds"
    if hasattr(model, "decision_function"):
        return "score"
    if hasattr(model, "_generalised"):
        return _SCALES.get(model._generalised()[1].name, "score")
    return "logarithm of the prediction" if getattr(model, "log_link", False) else "prediction"


# --------------------------------------------------------------------------------------------------------------------
# What a score on new rows is worth: its interval, and by how much one prediction of the same rows is better.
#
# Paired, because rows that are hard for one are hard for the other: what counts is the difference row by row. Scores
# that are means (accuracy, MAE, log loss) have Student's interval of the rows; R² is made linear in the rows first;
# others are resampled, both predictions together. Where rows come in groups, the groups are what varies, not the
# rows; where they have a time, rows near each other are alike, and stretches of time are what varies (batch means).
#
# Reference: on batch means, J. Flegal and G. Jones, Batch means and spectral variance estimators in Markov chain
# Monte Carlo, Annals of Statistics 38, 2010: about √n batches.


_RESAMPLES: Final = 400


class Units(NamedTuple):
    """What varies as a whole: each row's group or stretch of time, and what these are called."""

    codes: NDArray[np.int64]
    word: str

    def members(self) -> list[NDArray[np.intp]]:
        """Return the rows of each unit."""
        return [np.flatnonzero(self.codes == code) for code in np.unique(self.codes)]


def stretches(times: NDArray[Any]) -> Units:
    """Return stretches of time, about as many as each has distinct times; rows of one time stay together.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.evaluation.comparison.judge import stretches
    >>> stretches(np.array([3, 1, 2, 2, 4, 5, 6, 7, 8, 9])).codes
    array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2])
    """
    distinct, place = np.unique(times, return_inverse=True)
    count = max(1, math.isqrt(len(distinct)))
    return Units((place * count // len(distinct)).astype(np.int64), "stretches of time")


def holdout_interval(
    measure: Measure, y: NDArray[Any], prediction: Prediction, level: float, seed: int, units: Units | None = None
) -> Interval:
    """Return the interval of a measure on new rows, within what the measure can be.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.evaluation.comparison.measures import Prediction, ranking_measure
    >>> from learnable.evaluation.comparison.judge import holdout_interval
    >>> y = np.array([0, 1, 1, 0])
    >>> holdout_interval(ranking_measure("binary"), y, Prediction(y), 0.95, 0).method
    'exact binomial'
    """
    if len(y) < 2:
        return Interval(-math.inf, math.inf, level, "one row")
    if measure.name == "accuracy" and units is None:
        return score_interval((y == prediction.values).astype(float), level=level)
    if measure.name == "r2" and float(np.ptp(y)) == 0.0:
        return Interval(-math.inf, math.inf, level, "constant target")
    if measure.name == "rmse":
        squares = np.asarray((y - prediction.values) ** 2)
        found = _student(squares, float(squares.mean()), level, units, "")
        low, high = (math.sqrt(max(end, 0.0)) for end in (found.low, found.high))
        return Interval(low, high, level, f"root of the t-interval{_of(units)}")
    parts = row_scores(measure, y, prediction)
    if parts is None:
        found = _resampled(lambda rows: measure.function(y[rows], _take(prediction, rows)), len(y), level, seed, units)
        return found._replace(method=f"bootstrap{_of(units)}")
    score = measure.function(y, prediction)
    name = "t of the linearised score" if measure.name == "r2" else "t"
    return _student(parts, score, level, units, f"{name}{_of(units)}").clipped(measure.low, measure.high)


def paired_interval(
    measure: Measure,
    y: NDArray[Any],
    better: Prediction,
    worse: Prediction,
    level: float,
    seed: int = 0,
    units: Units | None = None,
) -> tuple[float, Interval]:
    """Return by how much the first prediction scores better than the second, and an interval of it.

    The sign is such that greater is better for every measure.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.evaluation.comparison.measures import Prediction, ranking_measure
    >>> from learnable.evaluation.comparison.judge import paired_interval
    >>> y = np.arange(20.0)
    >>> difference, interval = paired_interval(
    ...     ranking_measure("regression", "mae"), y, Prediction(y + 1), Prediction(y + 3), 0.95)
    >>> difference, interval.low, interval.high
    (2.0, 2.0, 2.0)
    """
    sign = 1.0 if measure.greater_is_better else -1.0
    difference = sign * (measure.function(y, better) - measure.function(y, worse))
    if len(y) < 2 or not math.isfinite(difference):
        return difference, Interval(-math.inf, math.inf, level, "too few rows")
    one, other = (row_scores(measure, y, prediction) for prediction in (better, worse))
    if one is not None and other is not None:
        name = "t of the paired rows" if units is None else f"t of paired {units.word}"
        return difference, _student(sign * (one - other), difference, level, units, name)

    def of_rows(rows: NDArray[np.intp]) -> float:
        a, b = (measure.function(y[rows], _take(prediction, rows)) for prediction in (better, worse))
        return sign * (a - b)

    found = _resampled(of_rows, len(y), level, seed, units)
    return difference, found._replace(method=f"paired bootstrap{_of(units)}")


def row_scores(measure: Measure, y: NDArray[Any], prediction: Prediction) -> Array | None:
    """Return numbers, one per row, whose mean is the score; None if there are none.

    R² is no mean; (1 − R²)(y − ȳ)²/s² − (y − ŷ)²/s² + R² has its value and, for many rows, its variance.
    """
    if measure.name == "accuracy":
        return (y == prediction.values).astype(np.float64)
    if measure.name == "mae":
        return np.asarray(np.abs(y - prediction.values))
    if measure.name == "log_loss" and prediction.probabilities is not None:
        p = prediction.probabilities[np.arange(len(y)), y.astype(np.intp)]
        return np.asarray(-np.log(np.clip(p, 1e-15, 1.0)))
    if measure.name == "r2":
        deviation = (y - y.mean()) ** 2
        spread = float(deviation.mean())
        if spread == 0.0:
            return None
        error = (y - prediction.values) ** 2
        ratio = float(error.mean()) / spread
        return np.asarray(1.0 + (ratio * (deviation - spread) - error) / spread)
    return None


def _of(units: Units | None) -> str:
    return "" if units is None else f" of {units.word}"


def _student(parts: Array, mean: float, level: float, units: Units | None, method: str) -> Interval:
    """Return Student's interval of a mean over rows, or over units of rows."""
    centred = parts - parts.mean()
    if units is None:
        n = len(parts)
        total = float(centred @ centred)
    else:
        sums = np.bincount(np.unique(units.codes, return_inverse=True)[1], weights=centred)
        n = len(sums)
        total = float(sums @ sums)
    if n < 2:
        return Interval(-math.inf, math.inf, level, "one group")
    half = float(stdtrit(n - 1, (1 + level) / 2)) * math.sqrt(n / (n - 1) * total) / len(parts)
    return Interval(mean - half, mean + half, level, method)


def _resampled(statistic: Any, n: int, level: float, seed: int, units: Units | None) -> Interval:
    """Return percentiles of a statistic over resampled rows, or units of rows."""
    rng = np.random.default_rng(seed)
    members = None if units is None else units.members()
    if members is not None and len(members) < 2:
        return Interval(-math.inf, math.inf, level, "")
    found = []
    for _ in range(_RESAMPLES):
        if members is None:
            rows = rng.integers(n, size=n)
        else:
            rows = np.concatenate([members[k] for k in rng.integers(len(members), size=len(members))])
        found.append(statistic(rows))
    known = [value for value in found if math.isfinite(value)]
    if not known:
        return Interval(-math.inf, math.inf, level, "")
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level, "")


def _take(prediction: Prediction, rows: NDArray[np.intp]) -> Prediction:
    p = prediction.probabilities
    return Prediction(prediction.values[rows], None if p is None else p[rows])


# --------------------------------------------------------------------------------------------------------------------
# What is proven about the winner: the bound on its risk from the hold-out, and the theorem behind it with its checks.
#
# The hold-out took no part in the choice of the winner, so that one model is judged by it and δ is not divided.
# Training-set bounds are not given here: the encoder was fitted to the same rows, which they do not cover. `learnable
# verify` gives the one that does.


#: Checks look at no more training rows than this: they must cost little beside the fit.
_MOST_ROWS = 2000
NO_RANGE = (
    "a squared error has no largest value, so that nothing bounds the risk of a regression without the range of its "
    "target: learnable.risk_bound takes it as target_range"
)


def proven(
    model: Any,
    X: Any,
    y: NDArray[Any],
    truth: NDArray[Any],
    predicted: NDArray[Any],
    classes: list[str] | None,
    level: float,
) -> dict[str, Any]:
    """Return the bound of the hold-out, and the theorem behind the model with its checks on training rows (X, y)."""
    found: dict[str, Any] = {"sentence": NO_RANGE, "bound": None, "checks": [], "theorem": None}
    if classes is not None:
        bounds = bounds_of_predictions(truth, predicted, len(classes), delta=1.0 - level, model=type(model).__name__)
        best = bounds.of("held-out") or bounds.bounds[0]
        found["sentence"] = bounds.sentence
        found["bound"] = {"value": best.value, "verdict": best.verdict, "name": best.name, "n": best.n}
        found["checks"] = [check._asdict() for check in best.assumptions]
    found["theorem"] = _theorem(model, X[:_MOST_ROWS], y[:_MOST_ROWS])
    return found


def proven_of(model: Any, X: Any, y: NDArray[Any]) -> dict[str, Any] | None:
    """Return what given rows prove about a fitted model, held out or its own; None if that cannot be told.

    Examples
    --------
    >>> import learnable as ln
    >>> from learnable.evaluation.comparison.judge import proven_of
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> proven_of(ln.LogisticRegression().fit(X, y), X, y)["bound"]["verdict"]
    'vacuous'
    """
    try:
        bounds = risk_bound(model, X, y)
    except LearnableError:
        return None
    best = bounds.of("held-out") or bounds.best
    found: dict[str, Any] = {"sentence": bounds.sentence, "bound": None, "checks": []}
    if best is not None:
        found["bound"] = {"value": best.value, "verdict": best.verdict, "name": best.name, "n": best.n}
        found["checks"] = [check._asdict() for check in best.assumptions]
    return found | {"theorem": _theorem(model, X[:_MOST_ROWS], y[:_MOST_ROWS])}


def _theorem(model: Any, X: Any, y: NDArray[Any]) -> dict[str, Any] | None:
    inner = model
    while theorem_name(inner) in (None, "wrapped", "calibration"):
        inside = (
            getattr(inner, "model_", None) or getattr(inner, "estimator_", None) or getattr(inner, "regressor_", None)
        )
        if inside is None:
            break
        inner = inside
    if theorem_name(inner) is None:
        return None
    try:
        fits = inner is model and get_tags(inner).target_tags.required
        return explain_theory(inner, X, y).to_dict() if fits else explain_theory(inner).to_dict()
    except (LearnableError, ValueError, np.linalg.LinAlgError):
        return explain_theory(inner).to_dict()


def theorem_name(model: Any) -> str | None:
    """Return the name of the theorem that a model's class declares."""
    name = getattr(type(model), "_theory", None)
    if name is not None:
        theorem_of(type(model))
    return name
