"""The model card: what was made, from what, for what, how good it is, where it is weak, and how to check it.

Reference: M. Mitchell et al., Model cards for model reporting, FAT* 2019.
"""

from __future__ import annotations

from typing import Any, Final

from ..plots.markup import Markup, clean, join, tag
from .numbers import Numbers, is_number
from .standing import Standing
from .tables import dicts
from .words import interval, listing, name

_MOST_COLUMNS: Final = 30
_MOST_SETTINGS: Final = 12


def model_card(numbers: Numbers, stand: Standing, label: str) -> list[tuple[str, Markup]]:
    """Return terms and what is said of them; none if no model won.

    Parameters
    ----------
    numbers : Numbers
        Of the record.
    stand : Standing
        Who won.
    label : str
        The measure's name.
    """
    record = numbers.record
    winner = record.get("winner")
    if stand.winner is None or not isinstance(winner, dict):
        return []
    row = record["leaderboard"][stand.winner]
    found: list[tuple[str, Markup | None]] = [
        ("Model", _model(numbers, stand.winner, row)),
        ("Predicts", _predicts(numbers)),
        ("Made from", _made_from(numbers)),
        ("Learns from", _columns(numbers, "feature")),
        ("Leaves out", _columns(numbers, "dropped")),
        ("Score", _score(numbers, label)),
        ("Decides", _decides(numbers)),
        ("Intervals", _intervals(numbers)),
        ("Weaker where", _weaker(numbers, winner.get("name"))),
        ("Do not use it", _limits(record)),
        ("Check it", _check(record, winner)),
    ]
    return [(term, text) for term, text in found if text is not None]


def _model(numbers: Numbers, position: int, row: dict[str, Any]) -> Markup:
    settings = row.get("parameters") if isinstance(row.get("parameters"), dict) else {}
    at: tuple[str | int, ...] = ("leaderboard", position, "parameters")
    weights = (settings or {}).get("weights")
    if isinstance(weights, dict):  # of a blend, by the names of its members
        at = (*at, "weights")
        settings = weights
    shown = []
    for key, value in list((settings or {}).items())[:_MOST_SETTINGS]:
        text = numbers.show(*at, key, style="plain") if is_number(value) else name(value, 60)
        shown.append(join([name(key, 40), " = ", text]))
    pieces: list[Any] = [name(row.get("name"), 80)]
    if row.get("model") and row.get("model") != row.get("name"):
        pieces += [", a ", tag("code", clean(row["model"], 80))]
    if shown:
        pieces += [" with the weights " if isinstance(weights, dict) else " with ", join(shown, ", ")]
    return join(pieces)


def _predicts(numbers: Numbers) -> Markup:
    data = numbers.record["data"]
    task = {"regression": "a number", "binary": "one of two classes", "multiclass": "one of several classes"}
    return join([name(data.get("target"), 80), f", {task.get(str(data.get('task')), 'the target')}"])


def _made_from(numbers: Numbers) -> Markup | None:
    winner = numbers.record.get("winner") or {}
    data = numbers.record["data"]
    pieces: list[Any] = [name(data.get("source"), 80)] if data.get("source") else []
    if numbers.known("protocol", "train_rows"):
        pieces.append(join(["judged after a fit to ", numbers.show("protocol", "train_rows", style="count"), " rows"]))
    if winner.get("refitted_on"):
        pieces.append(join(["kept after a fit to ", clean(winner["refitted_on"], 200)]))
    return join(pieces, "; ") if pieces else None


def _columns(numbers: Numbers, role: str) -> Markup | None:
    names = [name(column.get("name"), 40) for _, column in dicts(numbers.at("data", "profile"))
             if column.get("role") == role or (role == "feature" and column.get("learned"))]  # fmt: skip
    return listing(names, _MOST_COLUMNS) if names else None


def _score(numbers: Numbers, label: str) -> Markup | None:
    if not numbers.known("winner", "holdout", "score"):
        return None
    pieces: list[Any] = [f"{label} ", numbers.show("winner", "holdout", "score")]
    ends = interval(numbers, ("winner", "holdout"))
    if ends is not None:
        pieces += [" (", ends, ")"]
    pieces.append(" on rows that took no part in fitting or choosing it")
    if numbers.known("winner", "against", "score"):
        pieces += ["; ", name(numbers.at("winner", "against", "name"), 60), " has ",
                   numbers.show("winner", "against", "score"), " there"]  # fmt: skip
    return join(pieces)


def _decides(numbers: Numbers) -> Markup | None:
    if not numbers.known("winner", "decision", "threshold"):
        return None
    return join([name(numbers.at("winner", "decision", "positive"), 40), " from a probability of ",
                 numbers.show("winner", "decision", "threshold", decimals=3), " on: ",
                 clean(numbers.at("winner", "decision", "criterion") or "", 100)])  # fmt: skip


def _intervals(numbers: Numbers) -> Markup | None:
    at = ("winner", "intervals")
    if not numbers.known(*at, "level") or not numbers.known(*at, "holdout_coverage"):
        return None
    return join([numbers.show(*at, "level", style="level"), " prediction intervals hold ",
                 numbers.show(*at, "holdout_coverage", style="percent"), " of the hold-out rows"])  # fmt: skip


def _weaker(numbers: Numbers, winner: Any) -> Markup | None:
    parts = dicts(numbers.at("details", str(winner), "slices", "parts"))
    if not parts:
        return None
    worse = [join([name(part.get("column"), 40), ": ", name(part.get("label"), 40)]) for _, part in parts
             if part.get("verdict") == "worse"]  # fmt: skip
    return listing(worse, 8) if worse else join(["no part of the hold-out that was looked at is worse beyond noise"])


def _limits(record: dict[str, Any]) -> Markup:
    pieces = [
        "for rows of another kind than those of the table",
        "to tell what would happen if a column were changed: effects here are of the model, not causes",
    ]
    if (record.get("protocol") or {}).get("time"):
        pieces.append("long after the last training row, without judging it again")
    return join(pieces, "; ")


def _check(record: dict[str, Any], winner: dict[str, Any]) -> Markup | None:
    file = winner.get("model_file")
    if not file:
        return None
    return join([tag("code", f"learnable verify {clean(file, 200)} DATA"), " re-derives its certificate"])
