"""Who won, against what, and who is as good: read off the record once, for every part of the report."""

from __future__ import annotations

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
        Lines that are as good as the winner, the winner left out.
    beats_baseline : bool or None
        Whether the winner's interval lies on the good side of the baseline; None if that cannot be said.
    """

    ranked: list[int]
    unfinished: list[int]
    winner: int | None
    baseline: int | None
    tied: list[int]
    beats_baseline: bool | None


def standing(record: dict[str, Any]) -> Standing:
    """Read the standing off a record."""
    rows = record.get("leaderboard") or []
    greater = bool((record["protocol"].get("metric") or {}).get("greater_is_better", True))

    def order(k: int) -> tuple[float, float]:
        rank, mean = rows[k].get("rank"), rows[k]["mean"]
        return (rank if is_number(rank) else float("inf"), -mean if greater else mean)

    finished = [k for k, row in enumerate(rows) if row.get("status", "ok") == "ok" and is_number(row.get("mean"))]
    ranked = sorted(finished, key=order)
    unfinished = [k for k in range(len(rows)) if k not in set(finished)]
    named = (record.get("winner") or {}).get("name")
    winner = next((k for k in ranked if rows[k].get("name") == named), None)
    baseline = next((k for k in ranked if rows[k].get("baseline")), None)
    tied = [k for k in ranked if rows[k].get("tied") and k != winner] if winner is not None else []
    return Standing(ranked, unfinished, winner, baseline, tied, _beats(record, rows, winner, baseline, greater))


def _beats(record: dict[str, Any], rows: Any, winner: int | None, baseline: int | None, greater: bool) -> bool | None:
    if winner is None or baseline is None or winner == baseline:
        return None
    judged = (record.get("winner") or {}).get("holdout") or rows[winner]
    edge = judged.get("low" if greater else "high")
    edge = edge if is_number(edge) else judged.get("score", rows[winner]["mean"])
    if not is_number(edge):
        return None
    against = rows[baseline]["mean"]
    return bool(edge > against if greater else edge < against)
