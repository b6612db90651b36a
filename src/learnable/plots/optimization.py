"""The way of an optimiser: objective and gradient norm against iterations, and its path on contours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import numpy as np

from ..core.errors import DataError
from .axes import ACCENT, MUTED, Array, Frame, extent, numbers
from .markup import Markup, clean, tag

#: Colours that stay apart for colour-blind readers (after Okabe and Ito, 2008), to be seen on light and dark pages.
COLOURS: Final = ("#2a86c8", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#a07c3a", "#8a8a8a")
_MOST_POINTS: Final = 600  # of one line; more cannot be seen
_DECADES: Final = 16  # below the top; what is lower is rounding
_LEVELS: Final = 12
_LEGEND: Final = 104.0


def trace_plot(
    value: Any, gradient_norm: Any, *, title: str = "Convergence", x_label: str = "iteration", best: float | None = None
) -> Markup:
    """Draw how far the objective is above its lowest value, and the norm of the gradient, on one logarithmic axis.

    The axis ends sixteen decades below its top: what is lower is rounding.

    Parameters
    ----------
    value, gradient_norm : arrays of shape (T,)
        Objective and ‖∇f‖ of every iteration, as a `Trace` holds them.
    title, x_label : str
        Words; the title is read by screen readers and shown on hover.
    best : float, optional
        The optimum, if it is known; by default the lowest value seen (which is then not drawn).

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import trace_plot
    >>> "gradient norm" in trace_plot([9.0, 3.0, 1.0], [6.0, 2.0, 0.1])
    True
    """
    values, norms = numbers("trace_plot", value=value, gradient_norm=gradient_norm)
    rows = {"f − lowest" if best is None else "f − optimum": _above(values, best), "gradient norm": norms}
    return _log_lines("trace_plot", rows, title, x_label, "", (ACCENT, MUTED))


def convergence_plot(
    series: Mapping[str, Any],
    *,
    best: float | None = None,
    title: str = "Convergence",
    x_label: str = "iteration",
    y_label: str = "f − lowest",
) -> Markup:
    """Draw how far several optimisers are above the lowest value, on a logarithmic axis.

    Parameters
    ----------
    series : dict of arrays of shape (T,)
        The objective of every iteration, by name.
    best : float, optional
        The optimum, if it is known; by default the lowest value that any of them saw.
    title, x_label, y_label : str
        Words.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import convergence_plot
    >>> convergence_plot({"gd": [4.0, 2.0, 1.0], "newton": [4.0, 0.5]}, best=0.0).startswith("<svg")
    True
    """
    columns = {name: numbers("convergence_plot", value=values)[0] for name, values in series.items()}
    seen = [float(np.nanmin(c)) for c in columns.values() if np.isfinite(c).any()]
    lowest = best if best is not None else min(seen, default=0.0)
    rows = {name: _above(values, lowest) for name, values in columns.items()}
    return _log_lines("convergence_plot", rows, title, x_label, y_label, COLOURS)


def path_plot(
    x: Any,
    y: Any,
    z: Any,
    paths: Mapping[str, Any],
    *,
    title: str = "Paths on the contours",
    x_label: str = "x",
    y_label: str = "y",
    width: float = 480.0,
    height: float = 340.0,
) -> Markup:
    """Draw the contours of a function of two variables and the paths of optimisers on them.

    Contour lines stand at quantiles of the grid's values, so that they are spread evenly over the area, however steep
    the function is. A path is cut where it leaves the grid. Its start is a ring, its end a dot.

    Parameters
    ----------
    x, y : arrays of shape (m,) and (n,)
        Coordinates of the grid, increasing.
    z : array of shape (n, m)
        The function: z[i, j] at (x[j], y[i]).
    paths : dict of arrays of shape (T, 2)
        The points of each path, by name, as `Trace.path` holds them.
    title, x_label, y_label : str
        Words.
    width, height : float
        Size.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.plots import path_plot
    >>> x = np.linspace(-2, 2, 21)
    >>> figure = path_plot(x, x, x**2 + 4 * x[:, None] ** 2, {"gd": [[2.0, 1.0], [1.0, -0.5], [0.5, 0.2]]})
    >>> figure.startswith("<svg"), "gd" in figure
    (True, True)
    """
    xs = numbers("path_plot", x=x)[0]
    ys = numbers("path_plot", y=y)[0]
    grid = _grid(xs, ys, z)
    legend = _LEGEND if len(paths) > 1 else 12.0
    x_ends = (float(xs[0]), float(xs[-1]))
    y_ends = (float(ys[0]), float(ys[-1]))
    frame = Frame.around(x_ends, y_ends, width=width, height=height, right=legend)
    known = grid[np.isfinite(grid)]
    levels = np.unique(np.quantile(known, np.linspace(0.01, 0.93, _LEVELS))) if known.size else np.zeros(0)
    marks: list[Markup | None] = []
    for number, level in enumerate(levels):
        d = "".join(frame.path(line[:, 0], line[:, 1]) for line in contour_lines(xs, ys, grid, float(level)))
        if d:
            fade = 0.35 + 0.5 * number / max(len(levels) - 1, 1)
            marks.append(tag("path", d=d, fill="none", stroke=MUTED, stroke_width=0.8, opacity=fade))
    for (name, points), colour in zip(paths.items(), _colours(paths), strict=True):
        marks.extend(_draw_path(frame, name, points, colour))
    marks.extend(legend_marks(frame, list(paths), _colours(paths)) if len(paths) > 1 else [])
    return frame.draw(title, *marks, x_label=x_label, y_label=y_label)


def contour_lines(x: Array, y: Array, z: Array, level: float) -> Iterator[Array]:
    """Yield the lines z = level of a grid, each as points (k, 2), by marching squares.

    Each cell whose corners lie on both sides of the level is crossed by one line (two at a saddle); crossings are found
    by linear interpolation on its edges and joined where cells share one. Cells with an unknown corner are left out.
    """
    neighbours: dict[tuple[int, int, int], list[tuple[int, int, int]]] = {}
    above = z > level
    corners = above[:-1, :-1].astype(int) + above[:-1, 1:] + above[1:, :-1] + above[1:, 1:]
    unknown = ~np.isfinite(z)
    holes = unknown[:-1, :-1] | unknown[:-1, 1:] | unknown[1:, :-1] | unknown[1:, 1:]
    for i, j in np.argwhere((corners > 0) & (corners < 4) & ~holes).tolist():
        # Edges of the cell, in order around it: bottom, right, top, left; (row, column, 0 horizontal or 1 vertical).
        around = [(i, j, 0), (i, j + 1, 1), (i + 1, j, 0), (i, j, 1)]
        ring = [above[i, j], above[i, j + 1], above[i + 1, j + 1], above[i + 1, j], above[i, j]]
        crossed = [edge for k, edge in enumerate(around) if ring[k] != ring[k + 1]]
        if len(crossed) == 4 and (z[i : i + 2, j : j + 2].mean() > level) != ring[0]:
            crossed = crossed[1:] + crossed[:1]  # the middle is not on the first corner's side: cut that corner off
        for a, b in zip(crossed[::2], crossed[1::2], strict=True):
            neighbours.setdefault(a, []).append(b)
            neighbours.setdefault(b, []).append(a)
    while neighbours:
        ends = [edge for edge, joined in neighbours.items() if len(joined) == 1]
        line = [ends[0] if ends else next(iter(neighbours))]
        while (joined := neighbours.get(line[-1])) is not None and joined:
            following = joined.pop()
            neighbours[following].remove(line[-1])
            line.append(following)
        yield np.array([_crossing(x, y, z, level, edge) for edge in line])
        neighbours = {edge: joined for edge, joined in neighbours.items() if joined}


def _crossing(x: Array, y: Array, z: Array, level: float, edge: tuple[int, int, int]) -> tuple[float, float]:
    i, j, vertical = edge
    i2, j2 = (i + 1, j) if vertical else (i, j + 1)
    share = (level - z[i, j]) / (z[i2, j2] - z[i, j])
    return float(x[j] + share * (x[j2] - x[j])), float(y[i] + share * (y[i2] - y[i]))


def _grid(xs: Array, ys: Array, z: Any) -> Array:
    try:
        grid = np.asarray(z, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"path_plot: z must be a table of numbers; {error}.") from error
    if len(xs) < 2 or len(ys) < 2 or not ((np.diff(xs) > 0).all() and (np.diff(ys) > 0).all()):
        raise DataError("path_plot: x and y must hold at least two numbers each, increasing; use np.linspace.")
    if grid.shape != (len(ys), len(xs)):
        raise DataError(f"path_plot: z must have shape {(len(ys), len(xs))}, a row for each y; got {grid.shape}.")
    return np.where(np.isfinite(grid), grid, np.nan)


def _draw_path(frame: Frame, name: str, points: Any, colour: str) -> list[Markup]:
    try:
        path = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"path_plot: the path {clean(name)!r} must hold points of numbers; {error}.") from error
    if path.ndim != 2 or path.shape[1] != 2:
        raise DataError(f"path_plot: the path {clean(name)!r} must have shape (T, 2); got {path.shape}.")
    xs, ys = np.clip(path, -1e300, 1e300).T
    x = frame.x
    y = frame.y
    inside = (xs >= x.low) & (xs <= x.high) & (ys >= y.low) & (ys <= y.high)
    pieces = pieces_within(path, (x.low, x.high), (y.low, y.high))
    d = "".join(frame.path(piece[:, 0], piece[:, 1]) for piece in pieces)
    marks = [
        tag("path", tag("title", name), d=d, fill="none", stroke=colour, stroke_width=1.8, stroke_linejoin="round")
    ]
    if len(path) and inside[0]:
        place = {"cx": float(x(xs[0])), "cy": float(y(ys[0]))}
        marks.append(tag("circle", r=4.5, fill="none", stroke="currentColor", stroke_width=1.4, **place))
    few = len(path) <= 60
    dots = np.flatnonzero(inside) if few else np.array([len(path) - 1] if len(path) and inside[-1] else [], dtype=int)
    for number in dots.tolist():
        radius = 4.0 if number == len(path) - 1 else 1.7
        marks.append(tag("circle", cx=float(x(xs[number])), cy=float(y(ys[number])), r=radius, fill=colour))
    return marks


def pieces_within(path: Array, x: tuple[float, float], y: tuple[float, float]) -> Iterator[Array]:
    """Yield the parts of a path in a rectangle: each of its segments, cut at the border (Liang and Barsky's rule)."""
    piece: list[Any] = []
    for start, end in pairwise(path):
        cut = _cut(start, end, x, y)
        if cut is None:
            if len(piece) > 1:
                yield np.array(piece)
            piece = []
            continue
        first, last = cut
        if not piece or not np.array_equal(piece[-1], first):
            if len(piece) > 1:
                yield np.array(piece)
            piece = [first]
        piece.append(last)
    if len(piece) > 1:
        yield np.array(piece)


def _cut(start: Array, end: Array, *ranges: tuple[float, float]) -> tuple[Array, Array] | None:
    if not (np.isfinite(start).all() and np.isfinite(end).all()):
        return None
    move = end - start
    enter = 0.0
    leave = 1.0
    for a, d, (low, high) in zip(start.tolist(), move.tolist(), ranges, strict=True):
        if d == 0:
            if not low <= a <= high:
                return None
            continue
        near, far = sorted(((low - a) / d, (high - a) / d))
        enter = max(enter, near)
        leave = min(leave, far)
    if enter > leave:
        return None
    return (start if enter == 0 else start + enter * move), (end if leave == 1 else start + leave * move)


def _above(values: Array, best: float | None) -> Array:
    known = values[np.isfinite(values)]
    lowest = best if best is not None else float(known.min()) if known.size else 0.0
    return np.asarray(values - lowest)


def _log_lines(
    owner: str, rows: Mapping[str, Array], title: str, x_label: str, y_label: str, colours: tuple[str, ...]
) -> Markup:
    if not rows:
        raise DataError(f"{owner}: there is nothing to draw; pass at least one series.")
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = {name: np.log10(np.where(values > 0, values, np.nan)) for name, values in rows.items()}
    tops = [float(np.nanmax(log)) for log in logs.values() if np.isfinite(log).any()]
    floor = max(tops, default=0.0) - _DECADES
    logs = {name: np.maximum(log, floor) for name, log in logs.items()}
    longest = max(len(values) for values in rows.values())
    frame = Frame.around(
        extent([0.0, max(longest - 1, 1)], pad=0.0),
        extent(*logs.values()),
        width=380.0 + _LEGEND,
        right=_LEGEND,
        y_log=True,
    )
    shades = [colours[k % len(colours)] for k in range(len(rows))]
    marks = [
        frame.line(*_thinned(np.arange(len(values)), values), stroke=colour, stroke_width=1.8, stroke_linejoin="round")
        for values, colour in zip(logs.values(), shades, strict=True)
    ]
    return frame.draw(title, *marks, *legend_marks(frame, list(rows), shades), x_label=x_label, y_label=y_label)


def _thinned(xs: Any, ys: Array) -> tuple[Array, Array]:
    if len(ys) <= _MOST_POINTS:
        return np.asarray(xs, dtype=np.float64), ys
    kept = np.linspace(0, len(ys) - 1, _MOST_POINTS).round().astype(int)
    return np.asarray(xs[kept], dtype=np.float64), ys[kept]


def legend_marks(frame: Frame, names: list[str], colours: list[str]) -> list[Markup]:
    """Return the names beside a frame, each with a stroke in its colour."""
    left = frame.x.end + 12.0
    marks = []
    for row, (name, colour) in enumerate(zip(names, colours, strict=True)):
        at = frame.y.end + 10.0 + 17.0 * row
        marks.append(tag("path", d=f"M{left:g} {at - 4:g}h14", stroke=colour, stroke_width=2.5))
        marks.append(tag("text", clean(name, 14), x=left + 19.0, y=at, fill="currentColor"))
    return marks


def _colours(paths: Mapping[str, Any]) -> list[str]:
    return [ACCENT] if len(paths) == 1 else [COLOURS[k % len(COLOURS)] for k in range(len(paths))]
