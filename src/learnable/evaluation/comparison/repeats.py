"""Further folds for the models that the first ones cannot tell apart, as long as they cost little beside the race.

The rows are cut anew and the first models of the ranking are scored on the new folds, down to the last one that the
folds cannot tell from the best; and so on until there is none, or the time is up. Models that are scored on the same
folds stay comparable; those below keep the folds they have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .leaderboard import fill_row
from .race import Outcome
from .record import Row
from .splitting import cut_again
from .workspace import write_splits

if TYPE_CHECKING:
    from .contest import _Comparison

_MOST_REPEATS: Final = 5
_MOST_CONTENDERS: Final = 12
#: What repeats may cost, in seconds of the race, and in any case.
_SHARE_OF_RACE: Final = 1.0
_ALWAYS_SECONDS: Final = 10.0


def settle(comparison: _Comparison) -> None:
    """Score the undecided models on further folds."""
    if comparison.problem.times is not None:
        return  # time can be cut in one way only
    allowed = max(_ALWAYS_SECONDS, _SHARE_OF_RACE * comparison.seconds_of["models"])
    while comparison.repeats < _MOST_REPEATS:
        reserve = comparison.clock.reserve_for_finish(comparison.seconds_to_finish())
        left = comparison.clock.left(reserve)
        contenders = _contenders(comparison, allowed if left is None else min(allowed, left))
        if len(contenders) < 2:
            return
        spent = _repeat(comparison, contenders)
        if spent is None:
            return
        allowed -= spent


def _contenders(comparison: _Comparison, seconds: float) -> list[Row]:
    """Return the first lines, down to the last undecided one among those that the seconds are enough for."""
    ranked = [row for row in comparison.ranked() if row["rank"] is not None]
    # The weights of a blend were chosen on rows that new folds would test it on.
    blends = {candidate.name for candidate in comparison.candidates if candidate.around == "blend"}
    whole = [row for row in ranked if row["name"] not in blends and not row.get("cut")]
    most = [row for row in whole if len(row["scores"]) == len(whole[0]["scores"])][:_MOST_CONTENDERS]
    while most and (most[-1].get("verdict") != "undecided" or _cost(comparison, most) > seconds):
        most.pop()
    return most


def _cost(comparison: _Comparison, contenders: list[Row]) -> float:
    """Return the seconds that one more cut of the rows would take."""
    fits = sum((row["fit_seconds"] or 0.0) + 2 * (row["predict_seconds"] or 0.0) + 0.02 for row in contenders)
    return 1.3 * len(comparison.splits) * (fits + comparison.encode_seconds)


def _repeat(comparison: _Comparison, contenders: list[Row]) -> float | None:
    """Score the contenders on new folds; return the seconds it took, or None if one of them could not be."""
    number = comparison.repeats
    splits = cut_again(comparison.problem, comparison.final, comparison.folds, comparison.seed, number)
    names = [f"{number}.{fold}" for fold in range(len(splits))]
    write_splits(comparison.folder, dict(zip(names, splits, strict=True)))
    comparison.emit({"kind": "stage", "text": f"scoring {len(contenders)} models on other folds, to tell them apart"})
    left = comparison.clock.left(comparison.clock.reserve_for_finish(comparison.seconds_to_finish()))
    outcome = comparison.do("workspace:encode_splits", seconds=left, splits=names, task=comparison.problem.task)
    comparison.seconds_of["encoding"] += outcome.seconds
    spent = outcome.seconds
    found = {}
    if outcome.status == "interrupted":
        raise KeyboardInterrupt
    if outcome.status != "ok":
        return None
    for row in contenders:
        left = comparison.clock.left(comparison.clock.reserve_for_finish(comparison.seconds_to_finish()))
        outcome = comparison.score(comparison.candidate(row["name"]), names, left)
        spent += outcome.seconds
        if outcome.status == "interrupted":
            raise KeyboardInterrupt
        if outcome.status != "ok" or any(message.get("cut") for message in outcome.messages):
            return None
        found[row["name"]] = outcome.messages
    train, test = comparison.mean_sizes()
    for row in contenders:
        messages = comparison.messages[row["name"]] = comparison.messages[row["name"]] + found[row["name"]]
        fill_row(row, Outcome("ok", None, messages), comparison.measure, len(messages), test / (train + test), 0.95)
    comparison.repeats += 1
    return spent
