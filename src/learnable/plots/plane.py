"""The margin of a classifier of two columns: its boundary, both margins, and each row by its case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from .axes import MUTED, Array, Frame, extent, numbers
from .markup import Markup, compact, join, tag
from .optimization import COLOURS, contour_lines, legend_marks

#: What the cases are called in `SVMReport.case`, and how they are drawn.
_CASES: Final = {"non-support": "no support vector", "margin": "on the margin", "bound": "at its bound"}
_LEGEND: Final = 150.0
_MOST: Final = 2000  # rows; more cannot be told apart


def margin_plot(
    x: Any,
    y: Any,
    scores: Any,
    points: Any,
    sign: Any,
    case: Any,
    *,
    title: str = "Margin and support vectors",
    x_label: str = "x₀",
    y_label: str = "x₁",
    names: tuple[str, str] = ("−1", "+1"),
) -> Markup:
    """Draw the boundary (score 0), both margins (scores ±1, dashed) and the rows.

    Rows on the margin have a ring, rows at their bound are diamonds, rows that are no support vectors small faint dots.

    Parameters
    ----------
    x, y : arrays of shape (k,) and (m,)
        Coordinates of a grid, increasing.
    scores : array of shape (m, k)
        The decision function: scores[i, j] at (x[j], y[i]).
    points : array of shape (n, 2)
        Rows; those outside the grid are left out, and of more than 2,000 all but evenly chosen ones.
    sign : array of shape (n,)
        The class of each row, ±1.
    case : array of str of shape (n,)
        "non-support", "margin" or "bound", as `SVC.kkt_report` tells.
    title, x_label, y_label : str
        Words; the title is read by screen readers and shown on hover.
    names : (str, str)
        The classes −1 and +1, for the legend.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.plots import margin_plot
    >>> x = np.linspace(-2, 2, 21)
    >>> figure = margin_plot(x, x, x + 0 * x[:, None], [[-1, 0], [1, 0]], [-1, 1], ["margin", "margin"])
    >>> figure.startswith("<svg"), "on the margin" in figure
    (True, True)
    """
    xs = numbers("margin_plot", x=x)[0]
    ys = numbers("margin_plot", y=y)[0]
    grid = np.asarray(scores, dtype=np.float64)
    rows = np.asarray(points, dtype=np.float64)
    signs = np.asarray(sign, dtype=np.float64)
    cases = np.asarray(case)
    _check(xs, ys, grid, rows, signs, cases)
    x_ends = extent(xs, pad=0.0)
    y_ends = extent(ys, pad=0.0)
    frame = Frame.around(x_ends, y_ends, width=380.0 + _LEGEND, height=360.0, right=_LEGEND)
    marks: list[Markup] = []
    for level, style in ((-1.0, "5 4"), (0.0, None), (1.0, "5 4")):
        d = "".join(frame.path(line[:, 0], line[:, 1]) for line in contour_lines(xs, ys, grid, level))
        if d:
            dashes = {} if style is None else {"stroke_dasharray": style}
            width, colour = (1.8, "currentColor") if level == 0.0 else (1.2, MUTED)
            marks.append(tag("path", d=d, fill="none", stroke=colour, stroke_width=width, **dashes))
    inside = (
        (rows[:, 0] >= x_ends[0]) & (rows[:, 0] <= x_ends[1]) & (rows[:, 1] >= y_ends[0]) & (rows[:, 1] <= y_ends[1])
    )
    shown = np.flatnonzero(inside)
    shown = shown if len(shown) <= _MOST else shown[np.linspace(0, len(shown) - 1, _MOST).astype(int)]
    order = [number for name in _CASES for number in shown if cases[number] == name]  # support vectors on top
    for number in order:
        at = float(frame.x(rows[number, 0])), float(frame.y(rows[number, 1]))
        marks.append(_mark(*at, str(cases[number]), _colour(signs[number])))
    counts = ", ".join(f"{int((cases == name).sum())} {words}" for name, words in _CASES.items())
    return frame.draw(title, *marks, *_legend(frame, names), x_label=x_label, y_label=y_label, desc=f"{counts}.")


def _check(xs: Array, ys: Array, grid: Array, rows: Array, signs: Array, cases: Any) -> None:
    if len(xs) < 2 or len(ys) < 2 or not ((np.diff(xs) > 0).all() and (np.diff(ys) > 0).all()):
        raise DataError("margin_plot: x and y must hold at least two numbers each, increasing; use np.linspace.")
    if grid.shape != (len(ys), len(xs)):
        raise DataError(
            f"margin_plot: scores must have shape {(len(ys), len(xs))}, a row for each y; got {grid.shape}."
        )
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise DataError(f"margin_plot: points must have two columns; got shape {rows.shape}.")
    if signs.shape != (len(rows),) or cases.shape != (len(rows),):
        raise DataError(
            f"margin_plot: sign and case must have one entry per row, {len(rows)}; got {len(signs)} and {len(cases)}."
        )
    unknown = sorted(set(cases.tolist()) - set(_CASES))
    if unknown:
        raise DataError(f"margin_plot: case must be one of {', '.join(_CASES)}; got {unknown[0]!r}.")


def _colour(sign: float) -> str:
    return COLOURS[0] if sign > 0 else COLOURS[1]


def _mark(x: float, y: float, case: str, colour: str) -> Markup:
    if case == "bound":
        d = f"M{compact(x)} {compact(y - 4)}l4 4l-4 4l-4 -4z"
        return tag("path", d=d, fill=colour, opacity=0.8)
    if case == "margin":
        ring = tag("circle", cx=x, cy=y, r=5.0, fill="none", stroke="currentColor", stroke_width=1.3)
        return join([ring, tag("circle", cx=x, cy=y, r=2.6, fill=colour)])
    return tag("circle", cx=x, cy=y, r=2.2, fill=colour, opacity=0.45)


def _legend(frame: Frame, names: tuple[str, str]) -> list[Markup]:
    left = frame.x.end + 20.0
    top = frame.y.end + 8.0
    marks = []
    for row, (sign, name) in enumerate(zip((-1.0, 1.0), names, strict=True)):
        marks.append(tag("circle", cx=left, cy=top + 18.0 * row - 4.0, r=4.0, fill=_colour(sign)))
        marks.append(tag("text", str(name)[:16], x=left + 12.0, y=top + 18.0 * row, fill="currentColor"))
    for row, (case, words) in enumerate(_CASES.items(), start=2):
        marks.append(_mark(left, top + 18.0 * row - 4.0, case, MUTED))
        marks.append(tag("text", words, x=left + 12.0, y=top + 18.0 * row, fill="currentColor"))
    return marks


# --------------------------------------------------------------------------------------------------------------------
# Rows in the plane, coloured by cluster, with centres and ellipses of equal density.


_MOST_POINTS: Final = 3000
_KEY: Final = 104.0
_MOST_NAMED: Final = 11  # clusters that the legend has room for
_TURN: Final = np.linspace(0, 2 * np.pi, 73)


def cluster_scatter(
    x: Any,
    y: Any,
    labels: Any,
    *,
    centres: Any = None,
    covariances: Any = None,
    names: Sequence[str] | None = None,
    title: str = "Clusters",
    x_label: str = "x",
    y_label: str = "y",
) -> Markup:
    """Draw points coloured by cluster, at most 3,000 of them (evenly thinned beyond).

    Parameters
    ----------
    x, y : arrays of shape (n,)
        Coordinates; pairs that are not finite are left out.
    labels : array of shape (n,)
        Cluster of each point, from 0 on.
    centres : array of shape (K, 2), optional
        Drawn as crosses.
    covariances : array of shape (K, 2, 2), optional
        Drawn as ellipses about the centres, at one and two standard deviations.
    names : sequence of str, optional
        What the legend calls the clusters; their numbers by default.
    title, x_label, y_label : str
        Words; the title is read by screen readers and shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import cluster_scatter
    >>> figure = cluster_scatter([0, 1, 5], [0, 1, 5], [0, 0, 1], centres=[[0.5, 0.5], [5, 5]])
    >>> figure.startswith("<svg"), figure.count("stroke-linecap")
    (True, 4)
    """
    xs, ys, of = numbers("cluster_scatter", x=x, y=y, labels=labels)
    known = np.isfinite(xs) & np.isfinite(ys) & (of >= 0)
    xs = xs[known]
    ys = ys[known]
    of = of[known]
    if len(xs) > _MOST_POINTS:
        kept = np.linspace(0, len(xs) - 1, _MOST_POINTS).round().astype(int)
        xs = xs[kept]
        ys = ys[kept]
        of = of[kept]
    middle = np.empty((0, 2)) if centres is None else np.asarray(centres, dtype=np.float64)
    if middle.ndim != 2 or middle.shape[1] != 2:
        raise DataError(f"cluster_scatter: centres must be points of the plane, (K, 2); got {middle.shape}.")
    K = max(int(of.max(initial=-1)) + 1, len(middle))
    frame = Frame.around(
        extent(xs, middle[:, 0]), extent(ys, middle[:, 1]), width=380.0 + _KEY, height=300.0, right=_KEY
    )
    colours = [COLOURS[k % len(COLOURS)] for k in range(K)]
    size, opacity = (5.0, 0.8) if len(xs) <= 60 else (4.0, 0.55) if len(xs) <= 400 else (3.0, 0.4)
    marks = []
    for k in range(K):
        own = of == k
        places = zip(frame.x(xs[own]).round(1), frame.y(ys[own]).round(1), strict=True)
        d = "".join(f"M{compact(a)} {compact(b)}h0" for a, b in places)
        marks.append(_stroke(d, colours[k], size, opacity))
    for k, centre in enumerate(middle):
        if covariances is not None:
            for level in (1.0, 2.0):
                ring = centre + level * _ellipse(np.asarray(covariances, dtype=np.float64)[k])
                marks.append(frame.line(ring[:, 0], ring[:, 1], stroke=colours[k], stroke_width=1.6))
        a, b = (compact(float(at)) for at in (frame.x(centre[0]), frame.y(centre[1])))
        marks.append(_stroke(f"M{a} {b}m-5 -5l10 10m-10 0l10 -10", "currentColor", 1.8, 1.0))
    words = [str(k) for k in range(K)] if names is None else [str(name) for name in names]
    marks += legend_marks(frame, words[:_MOST_NAMED], colours[:_MOST_NAMED])
    return frame.draw(title, *marks, x_label=x_label, y_label=y_label)


def _stroke(d: str, colour: str, width: float, opacity: float) -> Markup:
    return tag("path", d=d, stroke=colour, stroke_width=width, stroke_linecap="round", fill="none", opacity=opacity)


def _ellipse(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points z with zᵀΣ⁻¹z = 1."""
    values, vectors = np.linalg.eigh(covariance)
    radii = np.sqrt(np.maximum(values, 0.0))
    return np.asarray(np.column_stack([np.cos(_TURN), np.sin(_TURN)]) * radii @ vectors.T)
