"""From the scores of the folds to the lines of the leaderboard: means, intervals, ranks and ties."""

from __future__ import annotations

import math
import statistics
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...core.estimator import Certificate
from ..estimates.intervals import score_interval, verdict_on
from .candidates import Candidate, wants_dense
from .clock import cut_of, cut_sentence, earliest
from .measures import Measure, measure_all, predict_rows
from .race import Outcome
from .record import Row, plain
from .warm import get_ready
from .workspace import EncodedSplit, Report, keep_predictions, read_split

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


# --------------------------------------------------------------------------------------------------------------------
# Cross-validation of one candidate, as a job: fit, predict and measure, split by split.


#: The share of a fold's time that a model with `max_seconds` may spend; the rest is for predictions and measures.
_SHARE_OF_FIT = 0.7
_SHORTEST = 1e-3  # seconds of a fit whose time is up; the watcher of the clock ends the job


def score_candidate(
    report: Report,
    folder: str,
    splits: list[str],
    candidate: Candidate,
    task: str,
    n_classes: int | None,
    seed: int,
    seconds: float | None = None,
    rows: int | None = None,
    keep: bool = False,
) -> None:
    """Fit and measure a candidate on each split; a job.

    Reports one message for each split: its measures on test and training rows, its times, its certificate, and how far
    it came if the clock cut it. With `rows`, only so many training rows, drawn at random, are used, and four times as
    many test rows at most; with `keep`, the predictions of the test rows are left in the folder, for a blend.
    """
    warnings.simplefilter("ignore")
    get_ready(report, candidate, task)
    dense = wants_dense(candidate)
    end = None if seconds is None else time.monotonic() + seconds
    for done, split in enumerate(splits):
        data = fewer_rows(read_split(Path(folder), split, dense=dense), rows, seed)
        model = candidate.build(seed, max_seconds=seconds_for_fit(end, len(splits) - done))
        began = time.perf_counter()
        model.fit(data.X_train, data.y_train)
        fitted = time.perf_counter()
        prediction = predict_rows(model, data.X_test, n_classes)
        predicted = time.perf_counter()
        on_training_rows = predict_rows(model, data.X_train, n_classes)
        if keep:
            keep_predictions(Path(folder), candidate.name, split, prediction)
        report(
            {
                "split": split,
                "test": measure_all(task, data.y_test, prediction),
                "train": measure_all(task, data.y_train, on_training_rows),
                "fit_seconds": fitted - began,
                "predict_seconds": predicted - fitted,
                "certificate": certificate_of(model),
                "cut": cut_of(model),
            }
        )


def seconds_for_fit(end: float | None, n_splits: int) -> float | None:
    """Return how long a fit may take of the time until `end`, by `time.monotonic`; never zero, which no model takes.

    Examples
    --------
    >>> from learnable.evaluation.comparison.leaderboard import seconds_for_fit
    >>> seconds_for_fit(None, 5) is None, seconds_for_fit(0.0, 5) > 0
    (True, True)
    """
    return None if end is None else max(_SHORTEST, _SHARE_OF_FIT * (end - time.monotonic()) / n_splits)


def fewer_rows(data: EncodedSplit, rows: int | None, seed: int) -> EncodedSplit:
    """Return at most `rows` training rows and four times as many test rows, drawn at random; all if it is None."""
    if rows is None:
        return data
    rng = np.random.default_rng(seed)
    train, test = (
        np.sort(rng.permutation(n)[:most]) for n, most in ((len(data.y_train), rows), (len(data.y_test), 4 * rows))
    )
    return EncodedSplit(data.X_train[train], data.y_train[train], data.X_test[test], data.y_test[test])


def certificate_of(model: Any) -> dict[str, Any] | None:
    """Return a fitted model's certificate as JSON types; None for a model that has none, such as scikit-learn's."""
    certificate = getattr(model, "certificate_", None)
    if not isinstance(certificate, Certificate):
        return None
    most = getattr(model, "max_iter", None)
    return plain(certificate.to_dict()) | ({"max_iter": most} if isinstance(most, int) else {})


def weakest(certificates: list[dict[str, Any] | None]) -> dict[str, Any] | None:
    """Return the certificate that says the least: one that does not hold, or the one nearest to its tolerance."""
    found = [certificate for certificate in certificates if certificate is not None]
    if not found:
        return None

    def weakness(certificate: dict[str, Any]) -> tuple[bool, float]:
        value = certificate["value"]
        tolerance = certificate["tolerance"]
        ratio = value / tolerance if value is not None and tolerance else value
        if ratio is None:
            ratio = float("inf")
        return not certificate["holds"], ratio

    return max(found, key=weakness)
