"""Policies and values of worlds made of fields, as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.errors import DataError
from ...plots.axes import ACCENT, MUTED, RULE
from ...plots.markup import Markup, svg, tag

_SIDE = 44.0
#: Directions of the actions of `grid_world` and CliffWalking: up, right, down, left.
COMPASS = ((0, -1), (1, 0), (0, 1), (-1, 0))


def draw_grid(
    values: Any,
    shape: tuple[int, int],
    policy: Any = None,
    *,
    directions: Sequence[tuple[int, int]] = COMPASS,
    hidden: Any = None,
    title: str = "Values and policy",
) -> Markup:
    """Draw a value per field, darker where it is greater, with an arrow for the policy.

    Parameters
    ----------
    values : array of shape (rows · columns,)
        A number per state, row by row.
    shape : (int, int)
        Rows and columns.
    policy : array of int, optional
        An action per state.
    directions : sequence of (right, down)
        Where each action points: -1, 0 or 1 fields; (0, 0) draws a dot.
    hidden : array of bool, optional
        States that are left blank: walls, or ends.
    title : str
        Words for screen readers, shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.decisions.mdp import draw_grid
    >>> draw_grid([0.0, 1.0, 2.0, 3.0], (2, 2), [1, 2, 1, 2]).count("<rect")
    4
    """
    table = np.asarray(values, dtype=np.float64).reshape(-1)
    n_rows, n_columns = shape
    if table.shape != (n_rows * n_columns,):
        raise DataError(f"draw_grid: {n_rows} × {n_columns} fields need as many values; got {table.size}.")
    blank = np.zeros(table.size, dtype=bool) if hidden is None else np.asarray(hidden, dtype=bool).reshape(-1)
    shown = table[~blank & np.isfinite(table)]
    low, high = (shown.min(), shown.max()) if shown.size else (0.0, 1.0)
    parts = []
    for s, value in enumerate(table):
        y = _SIDE * (s // n_columns) + 1
        x = _SIDE * (s % n_columns) + 1
        if blank[s]:
            parts.append(tag("rect", x=x, y=y, width=_SIDE, height=_SIDE, fill=RULE, stroke=RULE))
            continue
        depth = 0.06 + 0.5 * (value - low) / max(high - low, 1e-300)
        parts.append(
            tag("rect", x=x, y=y, width=_SIDE, height=_SIDE, fill=ACCENT, fill_opacity=f"{depth:.2f}", stroke=RULE)
        )
        middle = x + _SIDE / 2
        parts.append(tag("text", f"{value:.3g}", x=middle, y=y + _SIDE - 5, text_anchor="middle", fill="currentColor"))
        if policy is not None:
            parts.append(_arrow(middle, y + 16.0, directions[int(policy[s])]))
    return svg(_SIDE * n_columns + 2, _SIDE * n_rows + 2, title, *parts, font_size="9", font_family="inherit")


def _arrow(x: float, y: float, direction: tuple[int, int]) -> Markup:
    dx, dy = direction
    if (dx, dy) == (0, 0):
        return tag("circle", cx=x, cy=y, r=2.5, fill=MUTED)
    tip = (x + 9 * dx, y + 9 * dy)
    wings = [(tip[0] - 4 * dx + 3 * dy * side, tip[1] - 4 * dy + 3 * dx * side) for side in (-1, 1)]
    d = f"M{x - 9 * dx:.1f} {y - 9 * dy:.1f}L{tip[0]:.1f} {tip[1]:.1f}"
    d += f"M{wings[0][0]:.1f} {wings[0][1]:.1f}L{tip[0]:.1f} {tip[1]:.1f}L{wings[1][0]:.1f} {wings[1][1]:.1f}"
    return tag("path", d=d, fill="none", stroke="currentColor", stroke_width=1.4)
