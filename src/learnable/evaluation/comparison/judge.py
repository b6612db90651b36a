"""A model on rows that nothing has seen: its score with an interval, and the details that a report draws.

R²         linearised: (1 − R²)(y − ȳ)²/s² − (y − ŷ)²/s² + R² has mean R² over the rows; t of these values
accuracy   exact binomial
RMSE       root of the t-interval of the squared errors
others     t of the losses of the rows, or a bootstrap of the rows where the measure is no mean
"""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from ...core.errors import LearnableError
from ..intervals import Interval, score_interval, t_interval
from ..reliability import calibration_table, calibration_verdict
from .candidates import Candidate, wants_dense
from .decision import Cost, Decision, class_figures, threshold_table
from .measures import Measure, Prediction, measure_all, predict_rows, ranking_measure
from .record import plain
from .scoring import certificate_of
from .workspace import FINAL, Report, keep_fitted, read_names, read_split

Array = NDArray[np.float64]

_MOST_POINTS = 2000

_MOST_CURVE_POINTS = 200

_MOST_CURVES = 12

_MOST_COEFFICIENTS = 40

_MOST_LABELS = 40

_RESAMPLES = 200


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
    groups: NDArray[np.int64] | None = None,
    split: str = FINAL,
    decision: Decision | None = None,
    cost: Cost | None = None,
) -> None:
    """Fit a candidate to all training rows and judge it on the hold-out; a job.

    Reports `{"holdout": …}` first, then `{"details": …}`. With the name and the prediction of a `baseline`, the
    hold-out has `"against"` too: its score on the same rows and the difference, row by row, or of the `groups` of the
    rows. Of another `split` than the final one, only the score is reported.
    """
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    dense = wants_dense(candidate)
    data = read_split(Path(folder), split, dense=dense)
    model = candidate.build(seed, max_seconds).fit(data.X_train, data.y_train)
    prediction = predict_rows(model, data.X_test, None if classes is None else len(classes))
    if decision is not None and prediction.probabilities is not None:
        prediction = Prediction(decision.decide(prediction.probabilities), prediction.probabilities)
    measure = ranking_measure(task, metric)
    interval = holdout_interval(measure, data.y_test, prediction, level, seed)
    score = measure.function(data.y_test, prediction)
    also = measure_all(task, data.y_test, prediction)
    holdout: dict[str, Any] = {"score": score, "low": interval.low, "high": interval.high, "method": interval.method}
    holdout["also"] = also
    if baseline is not None:
        holdout["against"] = compare_with(measure, data.y_test, prediction, baseline, level, seed, groups)
    report({"holdout": plain(holdout), "seconds": time.perf_counter() - began})
    if split != FINAL:
        return
    details = draw_details(data.y_test, prediction, classes, seed)
    if classes is not None and len(classes) == 2 and prediction.probabilities is not None:
        found = threshold_table(data.y_test, prediction.probabilities, classes, cost, decision)
        details["thresholds"] = found
    details["coefficients"] = coefficients(model, read_names(Path(folder), FINAL, dense=dense)[0], classes, level)
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
    groups: NDArray[np.int64] | None = None,
) -> dict[str, Any]:
    """Return a baseline's score on the same rows, and by how much the prediction is better, with an interval.

    `difference` is positive where the prediction is better, whatever the measure; `verdict` is "better", "worse" or
    "undecided".
    """
    name, other = baseline
    difference, interval = paired_interval(measure, y, prediction, other, level, seed, groups)
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


def holdout_interval(measure: Measure, y: NDArray[Any], prediction: Prediction, level: float, seed: int) -> Interval:
    """Return the interval of a measure on new rows.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.evaluation.comparison.judge import holdout_interval
    >>> from learnable.evaluation.comparison.measures import Prediction, ranking_measure
    >>> y = np.array([0, 1, 1, 0])
    >>> holdout_interval(ranking_measure("binary"), y, Prediction(y), 0.95, 0).method
    'exact binomial'
    """
    if len(y) < 2:
        return Interval(-math.inf, math.inf, level, "one row")
    if measure.name == "accuracy":
        return score_interval((y == prediction.values).astype(float), level=level)
    if measure.name == "r2":
        deviation = (y - y.mean()) ** 2
        error = (y - prediction.values) ** 2
        spread = float(deviation.mean())
        if spread == 0.0:
            return Interval(-math.inf, math.inf, level, "constant target")
        ratio = float(error.mean()) / spread
        return t_interval(1.0 + (ratio * (deviation - spread) - error) / spread, level)._replace(
            method="t of the linearised score"
        )
    if measure.name == "rmse":
        squares = t_interval((y - prediction.values) ** 2, level)
        return Interval(math.sqrt(max(squares.low, 0.0)), math.sqrt(squares.high), level, "root of the t-interval")
    if measure.name == "mae":
        return t_interval(np.abs(y - prediction.values), level)
    if measure.name == "log_loss" and prediction.probabilities is not None:
        p = prediction.probabilities[np.arange(len(y)), y.astype(np.intp)]
        return t_interval(-np.log(np.clip(p, 1e-15, 1.0)), level)
    return _bootstrap(measure, y, prediction, level, seed)


def _bootstrap(measure: Measure, y: NDArray[Any], prediction: Prediction, level: float, seed: int) -> Interval:
    """Return percentiles of the measure over resampled rows."""
    rng = np.random.default_rng(seed)
    values = []
    for _ in range(_RESAMPLES):
        rows = rng.integers(len(y), size=len(y))
        p = prediction.probabilities
        values.append(measure.function(y[rows], Prediction(prediction.values[rows], None if p is None else p[rows])))
    found = [value for value in values if not math.isnan(value)]
    if not found:
        return Interval(-math.inf, math.inf, level, "bootstrap")
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level, "bootstrap")


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


def coefficients(model: Any, names: list[str], classes: list[str] | None, level: float) -> list[dict[str, Any]] | None:
    """Return the largest coefficients of a linear model on standardised columns, with intervals where it has them."""
    coef = getattr(model, "coef_", None)
    if coef is None or np.ndim(coef) > 2 or np.shape(coef)[-1] != len(names):
        return None
    table = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    low = high = np.full(table.shape, np.nan)
    if hasattr(model, "conf_int"):
        with contextlib.suppress(LearnableError):  # a rank-deficient fit has no standard errors
            low, high = (np.atleast_2d(end) for end in model.conf_int(level))
    several = len(table) > 1 and classes is not None
    order = np.argsort(-np.abs(table), axis=None, kind="stable")[:_MOST_COEFFICIENTS]
    found = []
    for row, column in zip(*np.unravel_index(order, table.shape), strict=True):
        name = f"{names[column]} → {classes[row]}" if several and classes is not None else names[column]
        ends = {"low": low[row, column], "high": high[row, column]}
        found.append({"name": name, "value": table[row, column], "of": _scale_of(model), **ends})
    return found


def _scale_of(model: Any) -> str:
    """Return what a linear model's coefficients change."""
    if hasattr(model, "predict_proba"):
        return "log odds"
    if hasattr(model, "decision_function"):
        return "score"
    return "logarithm of the prediction" if getattr(model, "log_link", False) else "prediction"


# Two predictions of the same rows: by how much one scores better, with an interval.
#
# Paired, because rows that are hard for one are hard for the other: what counts is the difference row by row. Scores
# that
# are means (accuracy, MAE, log loss) have Student's interval of the differences; R² is made linear in the rows first;
# others are resampled, both predictions together. Where rows come in groups, the groups are what varies, not the
# rows.

_PAIRED_RESAMPLES: Final = 400


def paired_interval(
    measure: Measure,
    y: NDArray[Any],
    better: Prediction,
    worse: Prediction,
    level: float,
    seed: int = 0,
    groups: NDArray[np.int64] | None = None,
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
    parts = _influence(measure, y, better, worse)
    if parts is None:
        return difference, _resampled(measure, y, better, worse, sign, level, seed, groups)
    return difference, _student(parts, difference, level, groups)


def _influence(measure: Measure, y: NDArray[Any], better: Prediction, worse: Prediction) -> Array | None:
    """Return numbers, one per row, whose mean is the difference of the scores; None if there are none."""
    if measure.name == "accuracy":
        return (y == better.values).astype(float) - (y == worse.values)
    if measure.name == "mae":
        return np.asarray(np.abs(y - worse.values) - np.abs(y - better.values))
    if measure.name == "log_loss" and better.probabilities is not None and worse.probabilities is not None:
        rows = np.arange(len(y)), y.astype(np.intp)
        ratio = np.clip(better.probabilities[rows], 1e-15, 1.0) / np.clip(worse.probabilities[rows], 1e-15, 1.0)
        return np.asarray(np.log(ratio))
    if measure.name == "r2":
        deviation = (y - y.mean()) ** 2
        spread = float(deviation.mean())
        if spread == 0.0:
            return None
        gain = ((y - worse.values) ** 2 - (y - better.values) ** 2) / spread
        return np.asarray(gain - gain.mean() * (deviation / spread - 1.0))
    return None


def _student(parts: Array, mean: float, level: float, groups: NDArray[np.int64] | None) -> Interval:
    centred = parts - parts.mean()
    if groups is None:
        n = len(parts)
        total = float(centred @ centred)
    else:
        sums = np.bincount(np.unique(groups, return_inverse=True)[1], weights=centred)
        n = len(sums)
        total = float(sums @ sums)
    if n < 2:
        return Interval(-math.inf, math.inf, level, "one group")
    half = float(stdtrit(n - 1, (1 + level) / 2)) * math.sqrt(n / (n - 1) * total) / len(parts)
    return Interval(mean - half, mean + half, level, "t of the paired rows" if groups is None else "t of paired groups")


def _resampled(
    measure: Measure,
    y: NDArray[Any],
    better: Prediction,
    worse: Prediction,
    sign: float,
    level: float,
    seed: int,
    groups: NDArray[np.int64] | None,
) -> Interval:
    rng = np.random.default_rng(seed)
    found = []
    members = None if groups is None else [np.flatnonzero(groups == g) for g in np.unique(groups)]
    for _ in range(_PAIRED_RESAMPLES):
        if members is None:
            rows = rng.integers(len(y), size=len(y))
        else:
            rows = np.concatenate([members[k] for k in rng.integers(len(members), size=len(members))])
        a, b = (measure.function(y[rows], _take(prediction, rows)) for prediction in (better, worse))
        found.append(sign * (a - b))
    known = [value for value in found if math.isfinite(value)]
    if not known:
        return Interval(-math.inf, math.inf, level, "paired bootstrap")
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level, "paired bootstrap")


def _take(prediction: Prediction, rows: NDArray[np.int64]) -> Prediction:
    p = prediction.probabilities
    return Prediction(prediction.values[rows], None if p is None else p[rows])
