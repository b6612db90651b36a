"""What is said of the hold-out: the baseline on the same rows, the score if copies were not kept together, optimism."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .measures import Prediction
from .paired import Units, stretches
from .record import Row
from .series import baseline_prediction
from .workspace import GIVEN

if TYPE_CHECKING:
    from .contest import _Comparison
    from .finish import Finish


def best_baseline(comparison: _Comparison, ranked: list[Row]) -> tuple[str, Prediction] | None:
    """Return the best baseline of the race and what it says of the hold-out."""
    row = next((row for row in ranked if row["baseline"] and row["rank"] is not None), None)
    if row is None:
        return None
    return row["name"], baseline_prediction(comparison.problem, row["name"], comparison.final)


def holdout_units(comparison: _Comparison) -> Units | None:
    """Return what varies as a whole among the rows set aside: groups of rows, or stretches of time."""
    problem = comparison.problem
    rows = comparison.final[1]
    if problem.times is not None:
        return stretches(problem.times[rows])
    if problem.groups is None or problem.grouping != "groups":
        return None
    return Units(problem.groups[rows], "groups")


def judge_as_given(finish: Finish, name: str) -> dict[str, Any] | None:
    """Score a model on rows set aside as if no row were a copy of another; None where there are few or none."""
    comparison = finish.comparison
    if not comparison.given:
        return None
    problem = comparison.problem
    encoded = comparison.do(
        "workspace:encode_splits",
        seconds=comparison.clock.left(comparison.clock.reserve_for_end()),
        splits=[GIVEN],
        task=problem.task,
    )
    if encoded.status == "interrupted":
        raise KeyboardInterrupt
    if encoded.status != "ok":
        finish.no_time.append("the score that copies on both sides of the split would give")
        return None
    outcome = finish.do(
        "judge:judge_candidate",
        f"the score of {name} if copies were not kept together",
        0.4,
        name=name,
        fits=1,
        metric=comparison.measure.name,
        classes=problem.classes,
        level=0.95,
        task=problem.task,
        split=GIVEN,
    )
    return next((message["holdout"] for message in outcome.messages if "holdout" in message), None)


def optimism_note(best: Row, holdout: dict[str, Any] | None, comparison: _Comparison, ranked: list[Row]) -> str:
    """Say how the cross-validated score and the one on the hold-out stand to each other.

    The best of several cross-validated scores tends to be too good. Whether this one is, only the hold-out tells: it is
    called optimistic where the hold-out is worse by more than the noise of both.
    """
    label = comparison.measure.label
    mean = best["mean"]
    n_models = sum(row["rank"] is not None and not row["baseline"] for row in ranked)
    chosen = "" if n_models < 2 else f", by which it was chosen among {n_models}"
    if mean is None:
        return ""
    told = f"Cross-validation gave {label} {mean:.4g}{chosen}"
    if holdout is None or holdout.get("score") is None:
        return f"{told}; no hold-out score confirms it."
    word = hold_against(mean, best, holdout, comparison.measure.greater_is_better)
    if word == "worse":
        return (
            f"{told}. The hold-out took no part in that and is worse by more than the noise of both: the "
            "cross-validated score is optimistic, or the rows set aside differ; quote the hold-out score."
        )
    if word == "unknown":
        return f"{told}; the hold-out took no part in that, so its score is the one to quote."
    return f"{told}; the hold-out, which took no part in that, is no worse than noise explains, and the one to quote."


def hold_against(mean: float, row: dict[str, Any] | Row, holdout: dict[str, Any], greater: bool) -> str:
    """Say whether a hold-out score is "worse" than a cross-validated mean beyond noise, "alike" or "unknown"."""
    ends = [(found.get("low"), found.get("high")) for found in (row, holdout)]
    halves = [(high - low) / 2 for low, high in ends if low is not None and high is not None]
    if len(halves) < 2:
        return "unknown"
    below = mean - holdout["score"] if greater else holdout["score"] - mean
    noise = math.hypot(*halves)
    return "worse" if below > noise else "alike"
