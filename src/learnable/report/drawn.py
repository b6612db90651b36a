"""The parts of a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..plots.markup import Markup
from .tables import Grid

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
