"""From the scores of the folds to the lines of the leaderboard: means, intervals, ranks and ties."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..intervals import score_interval
from ..ties import verdict_on
from .cut import cut_sentence, earliest
from .measures import Measure
from .race import Outcome
from .record import Row, plain
from .scoring import weakest

_ORDER = ("ok", "timeout", "interrupted", "failed", "skipped")


def fill_row(row: Row, outcome: Outcome, measure: Measure, n_folds: int, test_share: float, level: float) -> None:
    """Write into a line what a model's job reported and how it ended."""
    folds = outcome.messages
    row["status"] = outcome.status
    row["reason"] = outcome.reason
    scores = [fold["test"][measure.name] for fold in folds]
    row["scores"] = plain(scores)
    if not folds:
        return
    row["fit_seconds"] = statistics.median(fold["fit_seconds"] for fold in folds)
    row["predict_seconds"] = statistics.median(fold["predict_seconds"] for fold in folds)
    row["certificate"] = weakest([fold["certificate"] for fold in folds])
    row["cut"] = plain(earliest([fold.get("cut") for fold in folds]))
    if row["cut"] is not None and row["certificate"] is not None:  # what is proven is of a smaller model
        row["certificate"] |= {"holds": False, "sentence": cut_sentence(row["cut"])}
    if row["status"] == "ok" and not all(math.isfinite(score) for score in scores):
        row["status"] = "failed"
        row["reason"] = f"{measure.label} is not defined for what it predicts: nothing finite, or no probabilities"
    if not all(math.isfinite(score) for score in scores):
        return
    row["mean"] = float(np.mean(scores))
    row["train_mean"] = _mean([fold["train"][measure.name] for fold in folds])
    others = [name for name in folds[0]["test"] if name != measure.name]
    row["also"] = {name: _mean([fold["test"][name] for fold in folds]) for name in others}
    if len(folds) == n_folds and n_folds > 1:
        bounds = (measure.low, measure.high)
        interval = score_interval(scores, bounds=bounds, test_share=test_share, level=level)
        row["low"] = plain(interval.low)
        row["high"] = plain(interval.high)


def rank_rows(rows: Sequence[Row], measure: Measure, n_train: float, n_test: float) -> list[Row]:
    """Set rank, verdict and p-value of every complete line; return the lines, the best first, the incomplete ones last.

    `verdict` says how a line stands to the best one by the folds that both were scored on: "worse", "equal" (within
    the measure's margin) or "undecided". `tied` is true of the best line and of equal ones. Lines that were scored on
    fewer folds than others are placed by their mean plus what the further folds changed for the others on average.

    Examples
    --------
    >>> from learnable.evaluation.comparison.leaderboard import rank_rows
    >>> from learnable.evaluation.comparison.measures import ranking_measure
    >>> from learnable.evaluation.comparison.record import new_row
    >>> rows = [new_row("a", "A", {}), new_row("b", "B", {})]
    >>> for row, scores in zip(rows, ([0.1, 0.2], [0.8, 0.9])):
    ...     row.update(status="ok", scores=scores, mean=sum(scores) / 2)
    >>> [(row["name"], row["rank"]) for row in rank_rows(rows, ranking_measure("regression"), 80, 20)]
    [('b', 1), ('a', 2)]
    """
    sign = 1.0 if measure.greater_is_better else -1.0
    complete = [row for row in rows if row["status"] == "ok"]
    shift = _shifts(complete)
    complete.sort(key=lambda row: -sign * (_number(row["mean"]) + shift.get(len(row["scores"]), 0.0)))
    for position, row in enumerate(complete, start=1):
        row["rank"] = position
        row["tied"] = position == 1
        row["p_value"] = None
        row["verdict"] = "best" if position == 1 else None
        row["difference"] = None
    for row in complete[1:]:
        _judge(row, complete[0], measure, sign, n_train, n_test)
    rest = [row for row in rows if row["status"] != "ok"]
    return complete + sorted(rest, key=lambda row: _ORDER.index(row["status"]))


def _shifts(rows: Sequence[Row]) -> dict[int, float]:
    """Return, by the number of folds, what the further folds changed in the mean of lines that were scored on all."""
    most = max((len(row["scores"]) for row in rows), default=0)
    full = np.array([row["scores"] for row in rows if len(row["scores"]) == most], dtype=np.float64)
    counts = {len(row["scores"]) for row in rows if 0 < len(row["scores"]) < most}
    return {count: float(full.mean() - full[:, :count].mean()) for count in counts}


def _judge(row: Row, best: Row, measure: Measure, sign: float, n_train: float, n_test: float) -> None:
    """Say how a line stands to the best one."""
    shared = min(len(row["scores"]), len(best["scores"]))
    a, b = (sign * np.array(line["scores"][:shared], dtype=np.float64) for line in (best, row))
    if shared < 1 or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return
    found = verdict_on(a - b, n_train, n_test, measure.margin(_number(best["mean"])))
    row["verdict"] = found.word
    row["tied"] = found.word == "equal"
    row["p_value"] = plain(found.p)
    row["difference"] = plain({"value": found.difference, "low": found.low, "high": found.high})


def winner_of(rows: Sequence[Row]) -> Row | None:
    """Return the best complete line that is not the baseline.

    A model that the clock cut wins only where every complete one is worse.
    """
    models = [row for row in rows if row["rank"] is not None and not row["baseline"]]
    if models and min(models, key=lambda row: row["rank"] or 0).get("cut") is not None:
        whole = [row for row in models if row.get("cut") is None and row.get("verdict") in ("equal", "undecided")]
        models = whole or models
    return min(models, key=lambda row: row["rank"] or 0, default=None)


def _mean(values: list[Any]) -> float | None:
    mean: float | None = plain(float(np.mean(values)))
    return mean


def _number(value: float | None) -> float:
    return -math.inf if value is None else value
