"""From the scores of the folds to the lines of the leaderboard: means, intervals, ranks and ties."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..intervals import score_interval
from ..ties import p_values_against_best
from .cut import cut_sentence, earliest
from .measures import Measure
from .race import Outcome
from .record import Row, plain
from .scoring import weakest

#: What a measure can be, for the ends of its interval.
_BOUNDS = {
    "r2": (-math.inf, 1.0),
    "accuracy": (0.0, 1.0),
    "balanced_accuracy": (0.0, 1.0),
    "auc": (0.0, 1.0),
    "rmse": (0.0, math.inf),
    "mae": (0.0, math.inf),
    "log_loss": (0.0, math.inf),
}
_TIE_LEVEL = 0.05
_ORDER = ("ok", "timeout", "interrupted", "failed", "skipped")


def fill_row(row: Row, outcome: Outcome, measure: Measure, n_folds: int, test_share: float, level: float) -> None:
    """Write into a line what a model's job reported and how it ended."""
    folds = outcome.messages
    row["status"], row["reason"] = outcome.status, outcome.reason
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
        bounds = _BOUNDS[measure.name]
        interval = score_interval(scores, bounds=bounds, test_share=test_share, level=level)
        row["low"], row["high"] = plain(interval.low), plain(interval.high)


def rank_rows(rows: Sequence[Row], measure: Measure, n_train: float, n_test: float) -> list[Row]:
    """Set rank, tie and p-value of every complete line; return the lines, the best first, the incomplete ones last.

    Tied is who cannot be told from the best by the corrected resampled t-test at level 0.05.

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
    complete = sorted((row for row in rows if row["status"] == "ok"), key=lambda row: -sign * _number(row["mean"]))
    for position, row in enumerate(complete, start=1):
        row["rank"], row["tied"], row["p_value"] = position, position == 1, None
    if len(complete) > 1 and len(complete[0]["scores"]) > 1:
        matrix = sign * np.array([row["scores"] for row in complete], dtype=np.float64)
        for row, p in list(zip(complete, p_values_against_best(matrix, n_train, n_test), strict=True))[1:]:
            row["p_value"], row["tied"] = float(p), bool(p >= _TIE_LEVEL)
    rest = [row for row in rows if row["status"] != "ok"]
    return complete + sorted(rest, key=lambda row: _ORDER.index(row["status"]))


def winner_of(rows: Sequence[Row]) -> Row | None:
    """Return the best complete line that is not the baseline.

    A model that the clock cut wins only where no complete one is tied with the best.
    """
    models = [row for row in rows if row["rank"] is not None and not row["baseline"]]
    if models and min(models, key=lambda row: row["rank"] or 0).get("cut") is not None:
        whole = [row for row in models if row.get("cut") is None and row["tied"]]
        models = whole or models
    return min(models, key=lambda row: row["rank"] or 0, default=None)


def _mean(values: list[Any]) -> float | None:
    mean: float | None = plain(float(np.mean(values)))
    return mean


def _number(value: float | None) -> float:
    return -math.inf if value is None else value
