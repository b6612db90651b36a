"""A model on rows that nothing has seen: its score with an interval, and the details that a report draws."""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import LearnableError
from ..reliability import calibration_table, calibration_verdict
from .candidates import Candidate, wants_dense
from .decision import Cost, Decision, class_figures, threshold_table
from .measures import Measure, Prediction, measure_all, predict_rows, ranking_measure
from .paired import Units, holdout_interval, paired_interval
from .proven import proven
from .record import plain
from .scoring import certificate_of
from .warm import get_ready
from .workspace import FINAL, Report, keep_fitted, read_names, read_split

Array = NDArray[np.float64]

_MOST_POINTS = 2000
_MOST_CURVE_POINTS = 200
_MOST_CURVES = 12
_MOST_COEFFICIENTS = 40
_MOST_LABELS = 40


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
    if baseline is not None:
        holdout["against"] = compare_with(measure, data.y_test, prediction, baseline, level, seed, units)
    if split == FINAL:
        seen = data.X_train, data.y_train
        holdout["proven"] = proven(model, *seen, data.y_test, prediction.values, classes, level)
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
