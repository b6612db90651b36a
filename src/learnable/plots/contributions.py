"""Contributions of columns to predictions: one line of points a column, in the colour of the column's own value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from .axes import MUTED, RULE, Array, Scale, extent, tick_labels, ticks
from .markup import Markup, compact, isolated, svg, tag

_WIDTH: Final = 640.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 150.0, 618.0, 34.0, 44.0
_ROW: Final = 30.0
_MOST: Final = 400  # points of one column
_SIZE: Final = 4.0
#: From low to high; both ends stand out on light and on dark pages.
_COLOURS: Final = ("#1f6fb4", "#5b78b8", "#8b7bb0", "#ad789c", "#c56f7d", "#d06459", "#cf5632")


def contribution_summary(
    values: Any,
    X: Any,
    names: Sequence[Any] | None = None,
    *,
    title: str = "Contributions of the columns",
    x_label: str = "contribution to the score",
    most: int = 10,
) -> Markup:
    """Draw the contributions (Shapley values) of all rows, column by column, the most important one on top.

    A point is a row; its place is the contribution, its colour the value of the column, from low (blue) to high (red)
    by rank; missing values are grey. Importance is the mean of |contribution|.

    Parameters
    ----------
    values : array of shape (n, d)
        Contributions.
    X : array of shape (n, d)
        Values of the columns.
    names : sequence of d names, optional
        Of the columns; x0, x1, … without them.
    title, x_label : str
        Words.
    most : int, default=10
        Columns to show.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import contribution_summary
    >>> "colour: value of the column" in contribution_summary([[0.5, -1.0], [0.2, 1.0]], [[1, 2], [3, 4]], ["a", "b"])
    True
    """
    phi, table = np.asarray(values, dtype=np.float64), np.asarray(X, dtype=np.float64)
    if phi.ndim != 2 or phi.shape != table.shape or not phi.size:
        raise DataError(
            "contribution_summary: values and X must be tables of one shape with at least one row, got "
            f"{phi.shape} and {table.shape}."
        )
    labels = [f"x{j}" for j in range(phi.shape[1])] if names is None else [str(name) for name in names]
    if len(labels) != phi.shape[1]:
        raise DataError(f"contribution_summary: names must be {phi.shape[1]} names, got {len(labels)}.")
    shown = np.argsort(-np.abs(np.nan_to_num(phi)).mean(axis=0), kind="stable")[:most]
    thin = np.unique(np.linspace(0, len(phi) - 1, min(len(phi), _MOST)).round().astype(np.int64))
    place = Scale(*extent(phi[:, shown], [0.0]), _LEFT, _RIGHT)
    bottom = _TOP + _ROW * len(shown)
    parts = _axis(place, bottom, x_label)
    for line, j in enumerate(shown):
        middle = _TOP + _ROW * (line + 0.5)
        style = {"text_anchor": "end", "font_size": "12", "fill": "currentColor"}
        parts.append(tag("text", isolated(labels[j], 20), x=_LEFT - 10.0, y=middle + 4.0, **style))
        parts.append(tag("line", x1=_LEFT, x2=_RIGHT, y1=middle, y2=middle, stroke=RULE, stroke_width=0.5))
        parts += _swarm(place(phi[thin, j]), table[thin, j], middle)
    parts += _legend()
    return svg(_WIDTH, bottom + _BOTTOM, title, *parts, font_family="inherit")


def _axis(place: Scale, bottom: float, label: str) -> list[Markup]:
    style = {"text_anchor": "middle", "font_size": "11", "fill": MUTED}
    parts, at = [], ticks(place.low, place.high, 6)
    for value, text in zip(at, tick_labels(at), strict=True):
        x = float(place(value))
        ink = {"stroke": "currentColor", "opacity": 0.6} if value == 0.0 else {"stroke": RULE}
        parts.append(tag("line", x1=x, x2=x, y1=_TOP - 4.0, y2=bottom, **ink))
        parts.append(tag("text", text, x=x, y=bottom + 15.0, **style))
    parts.append(tag("text", label, x=(_LEFT + _RIGHT) / 2.0, y=bottom + 34.0, **(style | {"font_size": "12"})))
    return parts


def _swarm(x: Array, value: Array, middle: float) -> list[Markup]:
    """Return the points of one column, side by side where they would cover each other."""
    known = np.isfinite(x)
    x, value = x[known], value[known]
    y = middle + _offsets(x)
    colour = _ranks(value)
    parts = []
    for k in range(-1, len(_COLOURS)):
        chosen = np.flatnonzero(colour == k)
        if len(chosen):
            places = "".join(f"M{compact(round(x[i], 1))} {compact(round(y[i], 1))}h0" for i in chosen)
            ink = {"stroke": MUTED if k < 0 else _COLOURS[k], "stroke_width": _SIZE, "stroke_linecap": "round"}
            parts.append(tag("path", d=places, fill="none", opacity=0.8, **ink))
    return parts


def _offsets(x: Array) -> Array:
    """Return how far each point moves off the line: points that share a place take turns above and below it."""
    cell = np.floor(x / (0.75 * _SIZE)).astype(np.int64)
    order = np.argsort(cell, kind="stable")
    turn = np.empty(len(x), dtype=np.int64)
    _, first, count = np.unique(cell[order], return_index=True, return_counts=True)
    turn[order] = np.arange(len(x)) - np.repeat(first, count)
    side = np.where(turn % 2 == 1, 1.0, -1.0) * ((turn + 1) // 2)
    room = _ROW / 2.0 - 0.5 * _SIZE
    widest = max(float(np.abs(side).max(initial=0.0)), 1.0)
    return np.asarray(side * min(0.6 * _SIZE, room / widest), dtype=np.float64)


def _ranks(value: Array) -> NDArray[np.int64]:
    """Return the colour of each value by its rank, equal values alike; −1 for missing ones."""
    known = np.isfinite(value)
    levels, code = np.unique(value[known], return_inverse=True)
    found = np.full(len(value), -1, dtype=np.int64)
    if len(levels) == 1:
        found[known] = len(_COLOURS) // 2
    elif len(levels):
        below = np.cumsum(np.bincount(code)) - 0.5 * np.bincount(code)
        low, high = below[0], below[-1]
        share = (below - low) / (high - low)
        found[known] = np.round(share * (len(_COLOURS) - 1)).astype(np.int64)[code]
    return found


def _legend() -> list[Markup]:
    style = {"font_size": "11", "fill": MUTED}
    first = _RIGHT - 14.0 * len(_COLOURS) - 30.0
    parts = [tag("text", "colour: value of the column, low", x=first - 6.0, y=16.0, text_anchor="end", **style)]
    for k, colour in enumerate(_COLOURS):
        parts.append(tag("rect", x=first + 14.0 * k, y=8.0, width=14.0, height=9.0, fill=colour))
    return [*parts, tag("text", "high", x=_RIGHT, y=16.0, text_anchor="end", **style)]
