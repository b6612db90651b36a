"""Shares of each row as stacked bars: the bar plot of population structure, one strip for each number of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from ..core.errors import DataError
from .axes import MUTED, RULE
from .markup import Markup, isolated, svg, tag

#: Colours that stay apart for most eyes (Okabe and Ito, and four more).
COLOURS: Final = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9",
    "#b8a800", "#7a5195", "#3b7d3b", "#8c564b", "#17858f", "#777777",
)  # fmt: skip
_WIDTH: Final = 640.0
_HEIGHT: Final = 64.0
_LEFT: Final = 44.0


def share_bars(
    strips: Sequence[Any], *, names: Sequence[str], groups: Sequence[str] | None = None, title: str = "Shares"
) -> Markup:
    """Draw the shares of each row as a column of colours, rows beside each other, one strip below the other.

    Parameters
    ----------
    strips : sequence of arrays of shape (n, K)
        Shares of the same rows, in the order in which they are drawn; column k has colour k in all strips.
    names : sequence of str
        What stands beside each strip.
    groups : sequence of str, optional
        Where rows come from; rows of a group must stand together. Groups are named below.
    title : str
        Words for screen readers, shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import share_bars
    >>> share_bars([[[0.2, 0.8], [1.0, 0.0]]], names=["K = 2"], groups=["a", "b"]).startswith("<svg")
    True
    """
    tables = [np.asarray(strip, dtype=np.float64) for strip in strips]
    if not tables or any(table.ndim != 2 or len(table) != len(tables[0]) for table in tables):
        raise DataError("share_bars: every strip must hold the shares of the same rows, (n, K).")
    n = len(tables[0])
    step = (_WIDTH - _LEFT) / max(n, 1)
    parts = []
    for s, table in enumerate(tables):
        top = 6.0 + s * (_HEIGHT + 8.0)
        edges = np.concatenate([np.zeros((n, 1)), np.cumsum(table, axis=1)], axis=1)
        edges = np.clip(edges, 0.0, 1.0)
        for k in range(table.shape[1]):
            parts.append(
                tag("path", d=_ribbon(edges[:, k], edges[:, k + 1], top, step), fill=COLOURS[k % len(COLOURS)])
            )
        parts.append(tag("rect", x=_LEFT, y=top, width=_WIDTH - _LEFT, height=_HEIGHT, fill="none", stroke=RULE))
        middle = top + _HEIGHT / 2 + 4
        parts.append(tag("text", isolated(names[s], 8), x=_LEFT - 6, y=middle, text_anchor="end", fill="currentColor"))
    bottom = 6.0 + len(tables) * (_HEIGHT + 8.0)
    depth = 6.0
    if groups is not None:
        if len(groups) != n:
            raise DataError(f"share_bars: {len(groups)} groups for {n} rows.")
        drawn, depth = _group_marks(list(groups), step, bottom)
        parts += drawn
    return svg(_WIDTH + 2, bottom + depth, title, *parts, font_size="11", font_family="inherit")


def _ribbon(low: Any, high: Any, top: float, step: float) -> str:
    """Return the outline of one colour over all rows; rows without any of it cost nothing."""
    pieces = []
    for i in np.flatnonzero(high - low > 1e-3):
        y0 = top + _HEIGHT * (1.0 - high[i])
        height = _HEIGHT * (high[i] - low[i])
        pieces.append(f"M{_LEFT + i * step:.2f} {y0:.1f}h{step + 0.05:.2f}v{height:.1f}h{-step - 0.05:.2f}z")
    return "".join(pieces)


def _group_marks(groups: list[str], step: float, bottom: float) -> tuple[list[Markup], float]:
    """Return lines between groups and their names, turned where they are narrow; and how deep they reach."""
    starts = [0] + [i for i in range(1, len(groups)) if groups[i] != groups[i - 1]] + [len(groups)]
    parts = []
    names = [groups[i] for i in starts[:-1]]
    widths = [step * (b - a) for a, b in pairwise(starts)]
    flat = all(width >= 6.4 * min(len(name), 12) for width, name in zip(widths, names, strict=True))
    for i, name in enumerate(names):
        x = _LEFT + starts[i] * step
        if i:
            parts.append(tag("path", d=f"M{x:.2f} 6V{bottom - 4:.1f}", stroke="currentColor", stroke_width=0.8))
        middle = x + widths[i] / 2
        shown = isolated(name, 12)
        if flat:
            parts.append(tag("text", shown, x=middle, y=bottom + 10, text_anchor="middle", fill=MUTED))
        else:
            turn = f"translate({middle + 4:.2f} {bottom + 2:.1f}) rotate(-90)"
            parts.append(tag("text", shown, transform=turn, text_anchor="end", fill=MUTED))
    return parts, 18.0 if flat else 12.0 + 6.4 * max(min(len(name), 12) for name in names)
