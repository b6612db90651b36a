"""Who won, against what, and who is as good: read off the record once, for every part of the report."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .numbers import is_number


@dataclass(frozen=True)
class Standing:
    """Positions in the leaderboard.

    Attributes
    ----------
    ranked : list of int
        Lines with a score, the best first.
    unfinished : list of int
        Lines without one.
    winner : int or None
        The line that won.
    baseline : int or None
        The best line that is a baseline.
    tied : list of int
        Lines that are equal to the first one within the margin.
    beats_baseline : bool or None
        Whether the winner is better than the baseline beyond noise: on the hold-out, row by row; without a hold-out in
        cross-validation. None if that cannot be said.
    undecided : list of int
        Lines of which the folds cannot tell whether the first one is better.
    """

    ranked: list[int]
    unfinished: list[int]
    winner: int | None
    baseline: int | None
    tied: list[int]
    beats_baseline: bool | None
    undecided: list[int]

    @property
    def leader(self) -> int | None:
        """The first line, which may be a baseline; verdicts on the others are about it."""
        return self.ranked[0] if self.ranked else None


def baseline_words(name: Any) -> str:
    """Return a baseline's name for the middle of a sentence.

    Examples
    --------
    >>> from learnable.report.standing import baseline_words
    >>> baseline_words("baseline: the mean"), baseline_words("Always the mean")
    ('the mean', 'always the mean')
    """
    shown = re.sub(r"^baseline:\s*", "", str(name), flags=re.IGNORECASE)
    return shown[:1].lower() + shown[1:] if shown[1:2].islower() and " " in shown else shown


def standing(record: dict[str, Any]) -> Standing:
    """Read the standing off a record."""
    rows = record.get("leaderboard") or []
    greater = bool((record["protocol"].get("metric") or {}).get("greater_is_better", True))

    def order(k: int) -> tuple[float, float]:
        rank = rows[k].get("rank")
        mean = rows[k]["mean"]
        return (rank if is_number(rank) else float("inf"), -mean if greater else mean)

    finished = [k for k, row in enumerate(rows) if row.get("status", "ok") == "ok" and is_number(row.get("mean"))]
    ranked = sorted(finished, key=order)
    unfinished = [k for k in range(len(rows)) if k not in set(finished)]
    named = (record.get("winner") or {}).get("name")
    winner = next((k for k in ranked if rows[k].get("name") == named), None)
    baseline = next((k for k in ranked if rows[k].get("baseline")), None)
    others = ranked[1:] if winner is not None else []
    tied = [k for k in others if rows[k].get("tied")]
    undecided = [k for k in others if rows[k].get("verdict") == "undecided"]
    beats = _beats(record, rows, winner, baseline, greater)
    return Standing(ranked, unfinished, winner, baseline, tied, beats, undecided)


def _beats(record: dict[str, Any], rows: Any, winner: int | None, baseline: int | None, greater: bool) -> bool | None:
    if winner is None or baseline is None or winner == baseline:
        return None
    against = (record.get("winner") or {}).get("against")
    if isinstance(against, dict) and against.get("verdict"):
        return bool(against["verdict"] == "better")
    if rows[winner].get("verdict") == "best" and rows[baseline].get("verdict"):
        return bool(rows[baseline]["verdict"] == "worse")
    edge = rows[winner].get("low" if greater else "high")
    edge = edge if is_number(edge) else rows[winner]["mean"]
    if not is_number(edge):
        return None
    mean = rows[baseline]["mean"]
    return bool(edge > mean if greater else edge < mean)
