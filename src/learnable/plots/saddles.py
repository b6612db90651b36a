"""Pictures of a convex program: the saddle of its Lagrangian in one variable, and its optimum in two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ..core.errors import DataError
from .axes import ACCENT, MUTED, Array, Frame, numbers
from .markup import Markup, tag
from .optimization import COLOURS, contour_lines, legend_marks

_LEVELS: Final = 14
_LEGEND: Final = 116.0
_WIDTH: Final = 496.0
_HEIGHT: Final = 340.0


def saddle_plot(
    x: Any,
    multiplier: Any,
    values: Any,
    *,
    title: str = "The saddle of the Lagrangian",
    x_label: str = "x",
    y_label: str = "multiplier λ",
) -> Markup:
    """Draw the contours of L(x, λ), its valley in x, its ridge in λ, and the saddle point where they meet.

    The valley holds the minimiser over x for each λ: along it L is the dual function. The ridge holds the maximiser
    over λ for each x: along it L is the objective where x is feasible (λ = 0), and grows without end elsewhere. The
    ring is the highest point of the valley.

    Parameters
    ----------
    x, multiplier : arrays of shape (m,) and (n,)
        Coordinates of the grid, increasing; the multipliers begin with zero.
    values : array of shape (n, m)
        L: values[i, j] at multiplier[i] and x[j].
    title, x_label, y_label : str
        Words; the title is read by screen readers and shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    min x² subject to x ≥ 1, whose saddle is at x = 1, λ = 2:

    >>> import numpy as np
    >>> from learnable.plots import saddle_plot
    >>> x, strength = np.linspace(-1, 3, 81), np.linspace(0, 4, 81)
    >>> figure = saddle_plot(x, strength, x**2 + strength[:, None] * (1 - x))
    >>> "saddle at x = 1, λ = 2" in figure
    True
    """
    xs = numbers("saddle_plot", x=x)[0]
    ys = numbers("saddle_plot", multiplier=multiplier)[0]
    grid = _grid("saddle_plot", xs, ys, values)
    places, depths = _lowest(xs, grid)
    valley = np.column_stack([places, ys])
    ridge = np.column_stack([xs, ys[np.nanargmax(grid, axis=0)]])
    top = int(np.nanargmax(depths))
    at = (float(valley[top, 0]), float(ys[top]))
    frame = _frame(xs, ys)
    marks = _contours(frame, xs, ys, grid)
    lines = {"least in x": valley, "greatest in λ": ridge}
    for (name, points), colour in zip(lines.items(), COLOURS, strict=False):
        d = frame.path(points[:, 0], points[:, 1])
        marks.append(tag("path", tag("title", name), d=d, fill="none", stroke=colour, stroke_width=2.2))
    where = f"saddle at x = {at[0]:.3g}, λ = {at[1]:.3g}"
    marks.append(_ring(frame, *at, where))
    marks.extend(legend_marks(frame, list(lines), list(COLOURS[:2])))
    return frame.draw(title, *marks, x_label=x_label, y_label=y_label)


def program_plot(
    x: Any,
    y: Any,
    objective: Any,
    constraint: Any,
    paths: Mapping[str, Any] | None = None,
    *,
    optimum: tuple[float, float] | None = None,
    gradients: tuple[tuple[float, float], tuple[float, float]] | None = None,
    title: str = "A convex program",
    x_label: str = "x₁",
    y_label: str = "x₂",
) -> Markup:
    """Draw a program of two variables: contours of the objective, the feasible set, its optimum and the forces there.

    Parameters
    ----------
    x, y : arrays of shape (m,) and (n,)
        Coordinates of the grid, increasing.
    objective, constraint : arrays of shape (n, m)
        f and the largest g: row i belongs to y[i]. The feasible set, where it is at most zero, is tinted.
    paths : dict of arrays of shape (T, 2), optional
        Points to join, by name: minimisers of the Lagrangian as λ grows, for example.
    optimum : (float, float), optional
        Where to draw a ring.
    gradients : pair of (float, float), optional
        −∇f and λ∇g there, drawn as arrows: at an optimum they are the same.
    title, x_label, y_label : str
        Words.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.plots import program_plot
    >>> t = np.linspace(-2, 2, 41)
    >>> figure = program_plot(t, t, (t - 2) ** 2 + t[:, None] ** 2, t**2 + t[:, None] ** 2 - 1, optimum=(1.0, 0.0))
    >>> figure.startswith("<svg"), "feasible" in figure
    (True, True)
    """
    xs = numbers("program_plot", x=x)[0]
    ys = numbers("program_plot", y=y)[0]
    f = _grid("program_plot", xs, ys, objective)
    g = _grid("program_plot", xs, ys, constraint)
    frame = _frame(xs, ys)
    border = "".join(frame.path(line[:, 0], line[:, 1]) for line in contour_lines(xs, ys, g, 0.0))
    marks = [tag("path", d=border, fill=ACCENT, fill_opacity=0.12, stroke="none")] if border else []
    marks += _contours(frame, xs, ys, f)
    if border:
        marks.append(tag("path", tag("title", "feasible set"), d=border, fill="none", stroke=ACCENT, stroke_width=2.4))
    named = dict(paths or {})
    for (name, given), colour in zip(named.items(), COLOURS[1:], strict=False):
        points = np.asarray(given, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 2:
            raise DataError(f"program_plot: the path {name!r} must have shape (T, 2); got {points.shape}.")
        d = frame.path(points[:, 0], points[:, 1])
        marks.append(tag("path", tag("title", name), d=d, fill="none", stroke=colour, stroke_width=1.8))
    names = ["feasible set", *named]
    colours = [ACCENT, *COLOURS[1 : 1 + len(named)]]
    if optimum is not None:
        marks.append(_ring(frame, *optimum, f"optimum at ({optimum[0]:.3g}, {optimum[1]:.3g})"))
    if optimum is not None and gradients is not None:
        for arrow, colour, name, width in zip(gradients, (MUTED, COLOURS[2]), ("−∇f", "λ∇g"), (5.0, 2.0), strict=True):
            end = (optimum[0] + arrow[0], optimum[1] + arrow[1])
            d = frame.path(np.array([optimum[0], end[0]]), np.array([optimum[1], end[1]]))
            marks.append(tag("path", tag("title", name), d=d, fill="none", stroke=colour, stroke_width=width))
            names.append(name)
            colours.append(colour)
    marks.extend(legend_marks(frame, names, colours))
    return frame.draw(title, *marks, x_label=x_label, y_label=y_label)


def _frame(xs: Array, ys: Array) -> Frame:
    ends = (float(xs[0]), float(xs[-1])), (float(ys[0]), float(ys[-1]))
    return Frame.around(*ends, width=_WIDTH, height=_HEIGHT, right=_LEGEND)


def _contours(frame: Frame, xs: Array, ys: Array, grid: Array) -> list[Markup]:
    known = grid[np.isfinite(grid)]
    levels = np.unique(np.quantile(known, np.linspace(0.02, 0.95, _LEVELS))) if known.size else np.zeros(0)
    marks = []
    for number, level in enumerate(levels):
        d = "".join(frame.path(line[:, 0], line[:, 1]) for line in contour_lines(xs, ys, grid, float(level)))
        if d:
            fade = 0.3 + 0.5 * number / max(len(levels) - 1, 1)
            marks.append(tag("path", d=d, fill="none", stroke=MUTED, stroke_width=0.8, opacity=fade))
    return marks


def _lowest(xs: Array, grid: Array) -> tuple[Array, Array]:
    """Return where each row is lowest and how low, by a parabola through the three points around it."""
    at = np.clip(np.nanargmin(grid, axis=1), 1, len(xs) - 2)
    rows = np.arange(len(grid))
    left, middle, right = (grid[rows, at + k] for k in (-1, 0, 1))
    bend = left - 2.0 * middle + right
    shift = np.divide(0.5 * (left - right), bend, out=np.zeros_like(bend), where=bend > 0.0)
    inside = np.clip(shift, -1.0, 1.0)
    step = np.where(inside > 0, xs[at + 1] - xs[at], xs[at] - xs[at - 1])
    depth = middle + inside * (0.5 * (right - left) + 0.5 * bend * inside)
    return np.asarray(xs[at] + inside * step), np.asarray(depth)


def _ring(frame: Frame, x: float, y: float, words: str) -> Markup:
    place = {"cx": float(frame.x(x)), "cy": float(frame.y(y))}
    return tag("circle", tag("title", words), r=5.0, fill="none", stroke="currentColor", stroke_width=1.8, **place)


def _grid(owner: str, xs: Array, ys: Array, values: Any) -> Array:
    try:
        grid = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{owner}: the function must be a table of numbers; {error}.") from error
    if len(xs) < 2 or len(ys) < 2 or not ((np.diff(xs) > 0).all() and (np.diff(ys) > 0).all()):
        raise DataError(f"{owner}: both coordinates must hold at least two numbers, increasing; use np.linspace.")
    if grid.shape != (len(ys), len(xs)):
        raise DataError(f"{owner}: the table must have shape {(len(ys), len(xs))}; got {grid.shape}.")
    return np.where(np.isfinite(grid), grid, np.nan)
