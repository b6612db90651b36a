"""Tables inside a report: heads and cells, and the readers of lists that a record may hold or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..plots.markup import Markup, join
from .numbers import NOTHING
from .words import name


@dataclass(frozen=True)
class Grid:
    """A table of a report.

    Attributes
    ----------
    heads : list of (text, whether numbers stand below)
        The first one names the rows.
    rows : list of lists of Markup
        Cells, one for each head.
    strong : set of int
        Rows that stand out.
    """

    heads: list[tuple[str, bool]]
    rows: list[list[Markup]]
    strong: frozenset[int] = frozenset()


def dicts(value: Any) -> list[tuple[int, dict[str, Any]]]:
    """Return the entries of a list that are dicts, with their places; a record of another version may hold anything."""
    found = value if isinstance(value, list) else []
    return [(place, entry) for place, entry in enumerate(found) if isinstance(entry, dict)]


def texts(value: Any) -> list[Any]:
    """Return a list of the record, or none."""
    return list(value) if isinstance(value, list) else []


def cell(text: Any, most: int = 40) -> Markup:
    """Return a cell of the record's text, or a dash."""
    return NOTHING if text is None else name(text, most)


def preview_grid(preview: Any, most: int) -> Grid | None:
    """Return the first rows of the table.

    Examples
    --------
    >>> from learnable.report.tables import preview_grid
    >>> preview_grid({"columns": ["a"], "rows": [["1"], [None]]}, 5).heads
    [('a', True)]
    """
    if not isinstance(preview, dict):
        return None
    columns = texts(preview.get("columns"))[:most]
    rows = [texts(row)[:most] for row in texts(preview.get("rows"))]
    rows = [row for row in rows if len(row) == len(columns)]
    if not columns or not rows:
        return None
    heads = [(str(column), all(is_numeral(row[k]) for row in rows)) for k, column in enumerate(columns)]
    return Grid(heads, [[cell(value) for value in row] for row in rows])


def listed(items: Sequence[Markup]) -> Markup:
    """Return items with commas between them."""
    return join(list(items), ", ")


def is_numeral(text: Any) -> bool:
    """Tell whether a cell's text is a number, or nothing."""
    if text is None:
        return True
    try:
        float(str(text))
    except ValueError:
        return False
    return True


# --------------------------------------------------------------------------------------------------------------------
# The parts of a figure.


Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Effects:
    """Coefficients or importances as lines of a table."""

    lines: list[tuple[Markup, Markup, Markup, Markup | None]]
    axis: Markup
    with_intervals: bool


@dataclass(frozen=True)
class Figure:
    """One figure: a title, what is drawn, how to read it."""

    title: str
    caption: Markup
    svg: Markup | None = None
    effects: Effects | None = None
    matrix: dict[str, Any] | None = None
    notes: list[Markup] | None = None
    wide: bool = False
    table: Grid | None = None
