"""The columns of the table: which ones to show, and what to say about each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..core.errors import DataError
from ..plots.distributions import bars, sparkline
from ..plots.markup import Markup, isolated, join
from .numbers import Numbers
from .words import listing, name


@dataclass(frozen=True)
class Column:
    """One line of the table of columns; every field is markup or plain text."""

    name: Markup
    kind: str
    role: str | None
    notes: list[str]
    figure: Markup | None
    typical: Markup | None
    missing: Markup
    has_missing: bool
    distinct: Markup


def order_columns(record: dict[str, Any]) -> list[int]:
    """Return the positions of all columns, the most interesting first.

    The target; then columns with a warning; then what the winner relies on; then columns with notes or missing values;
    then the others, as they come.
    """
    profile = record["data"].get("profile") or []
    warned = {w.get("column") for w in record["data"].get("warnings") or [] if w.get("kind") in ("leak", "missing")}
    rank = _relied_upon(record)

    def key(k: int) -> tuple[int, float, int]:
        column = profile[k]
        if column.get("role") == "target":
            return 0, 0.0, k
        if column.get("name") in warned:
            return 1, 0.0, k
        if column.get("name") in rank:
            return 2, rank[column["name"]], k
        noted = bool(column.get("notes")) or bool(column.get("missing")) or column.get("role") not in ("feature", None)
        return (3 if noted else 4), 0.0, k

    return sorted(range(len(profile)), key=key)


def show_columns(numbers: Numbers, positions: Sequence[int]) -> list[Column]:
    """Return what the table says about the columns at these positions."""
    return [_column(numbers, k) for k in positions]


def _relied_upon(record: dict[str, Any]) -> dict[Any, float]:
    """Return the columns that the winner's importances name, with their rank."""
    details = (record.get("details") or {}).get((record.get("winner") or {}).get("name")) or {}
    entries = details.get("importances") or details.get("coefficients") or []
    strength: dict[Any, float] = {}
    for entry in sorted(entries, key=lambda e: -abs(e.get("value") or 0.0)):
        # An encoded column is named after its source: "city=Paris", "sold: year".
        for shown in (entry.get("name"), *(str(entry.get("name")).split(mark)[0] for mark in ("=", ": "))):
            strength.setdefault(shown, float(len(strength)))
    return strength


def _column(numbers: Numbers, k: int) -> Column:
    place = ("data", "profile", k)
    record = numbers.at(*place)
    role = record.get("role")
    return Column(
        name=name(record.get("name"), 80),
        kind=str(record.get("kind") or "unknown"),
        role=None if role in (None, "feature") else {"dropped": "left out"}.get(role, str(role)),
        notes=[str(note) for note in record.get("notes") or []][:4],
        figure=_figure(record),
        typical=_typical(numbers, place, record),
        missing=_missing(numbers, place, record),
        has_missing=bool(record.get("missing")),
        distinct=numbers.show(*place, "distinct", style="count"),
    )


def _missing(numbers: Numbers, place: tuple[str | int, ...], record: dict[str, Any]) -> Markup:
    if not record.get("missing"):
        return numbers.show(*place, "missing", style="count")
    return numbers.share((*place, "missing"), ("data", "rows"))


def _figure(record: dict[str, Any]) -> Markup | None:
    title = f"Distribution of {isolated(record.get('name'), 60)}"
    bins = record.get("histogram")
    top = record.get("top")
    try:
        if bins and bins.get("counts"):
            return sparkline(bins["edges"], bins["counts"], title=title)
        if top:
            return bars([count for _, count in top[:10]], title=title)
    except DataError:  # a table from elsewhere may hold bins that cannot be drawn; its numbers are shown all the same
        return None
    return None


def _typical(numbers: Numbers, place: tuple[str | int, ...], record: dict[str, Any]) -> Markup | None:
    classes = numbers.at("data", "classes") if record.get("role") == "target" else None
    if classes:  # also where the labels are numbers
        shares = [
            (label, numbers.share(("data", "class_counts", k), ("data", "rows"))) for k, label in enumerate(classes)
        ]
        return listing([join([name(label, 28), "\N{NO-BREAK SPACE}", share]) for label, share in shares], 3)
    inside = (*place, "summary")
    if numbers.known(*inside, "median"):
        pieces: list[Any] = ["median ", numbers.show(*inside, "median")]
        if numbers.known(*inside, "min") and numbers.known(*inside, "max"):
            pieces += [", from ", numbers.show(*inside, "min"), " to ", numbers.show(*inside, "max")]
        return join(pieces)
    top = record.get("top") or []
    shown = [
        join([name(value, 28), "\N{NO-BREAK SPACE}", numbers.share((*place, "top", rank, 1), ("data", "rows"))])
        for rank, (value, _) in enumerate(top[:3])
    ]
    return listing(shown, 3) if shown else None
