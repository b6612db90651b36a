"""Several lines on one pair of axes, with a legend: functions side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..core.errors import DataError
from .axes import ACCENT, MUTED, RULE, Array, Frame, extent, numbers
from .markup import Markup, clean, compact, isolated, tag
from .optimization import COLOURS, legend_marks, pieces_within

_LEGEND_WIDTH = 116.0


def labelled_lines(
    series: Mapping[str, tuple[Any, Any]],
    *,
    x_range: tuple[float, float] | None = None,
    y_range: tuple[float, float] | None = None,
    x_log: bool = False,
    y_log: bool = False,
    square: bool = False,
    reference: str | None = None,
    title: str = "Lines",
    x_label: str = "x",
    y_label: str = "y",
) -> Markup:
    """Draw one line for each name, in colours that stay apart.

    Parameters
    ----------
    series : mapping of str to (x, y)
        Points of each line, in the order in which they are joined; a point that is not finite breaks it.
    x_range, y_range : (float, float), optional
        What to show; by default everything. Lines are cut at its border.
    x_log, y_log : bool
        Whether an axis is logarithmic; points that are not positive then break the line.
    square : bool
        Whether one unit is as long on both axes, if the ranges are.
    reference : str, optional
        The line that the others are compared with: drawn grey, broad and below them.
    title, x_label, y_label : str
        Words; the title is read by screen readers and shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import labelled_lines
    >>> figure = labelled_lines({"line": ([0, 1], [0, 1]), "parabola": ([0, 0.5, 1], [0, 0.25, 1])})
    >>> "parabola" in figure, figure.startswith("<svg")
    (True, True)
    """
    if not series:
        raise DataError("labelled_lines: there is nothing to draw; pass at least one series.")
    points = {name: numbers("labelled_lines", x=x, y=y) for name, (x, y) in series.items()}
    points = {name: [_logs(x) if x_log else x, _logs(y) if y_log else y] for name, (x, y) in points.items()}
    x_shown = _range(x_range, x_log) or extent(*(x for x, _ in points.values()))
    y_shown = _range(y_range, y_log) or extent(*(y for _, y in points.values()))
    height = 340.0 if square else 260.0
    legend = _LEGEND_WIDTH if len(points) > 1 else 12.0
    size: dict[str, Any] = {"height": height, "right": legend, "x_log": x_log, "y_log": y_log}
    frame = Frame.around(x_shown, y_shown, width=380.0 + legend, **size)
    if square:
        side = frame.y.start - frame.y.end
        frame = Frame.around(x_shown, y_shown, width=frame.x.start + side + legend, **size)
    order = sorted(points, key=lambda name: name != reference)
    colours = iter(COLOURS * (1 + len(points) // len(COLOURS)))
    shades = {name: MUTED if name == reference else next(colours) for name in points}
    marks: list[Markup] = []
    for name in order:
        pieces = pieces_within(np.column_stack(points[name]), x_shown, y_shown)
        d = "".join(frame.path(piece[:, 0], piece[:, 1]) for piece in pieces)
        width = 5.0 if name == reference else 1.8
        marks.append(tag("path", d=d, fill="none", stroke=shades[name], stroke_width=width, stroke_linejoin="round"))
    if len(points) > 1:
        marks += legend_marks(frame, list(points), [shades[name] for name in points])
    return frame.draw(title, *marks, x_label=x_label, y_label=y_label)


def _logs(values: Array) -> Array:
    return np.asarray(np.log10(np.where(values > 0, values, np.nan)))


def _range(shown: tuple[float, float] | None, log: bool) -> tuple[float, float] | None:
    if shown is None or not log:
        return shown
    low, high = shown
    if not 0 < low < high:
        raise DataError(f"labelled_lines: the range of a logarithmic axis must be positive; got {shown!r}.")
    return float(np.log10(low)), float(np.log10(high))


# --------------------------------------------------------------------------------------------------------------------
# Regularisation paths: every coefficient against the penalty, with the chosen penalty marked.


_LABELS = len(COLOURS)  # the largest coefficients get a colour and their names
_LINE = 12.5  # height of a line of text
_LETTER = 6.2  # width of a letter
_LONGEST = 16  # letters of a name


def coefficient_paths(
    penalties: Any,
    coefs: Any,
    *,
    names: Sequence[str] | None = None,
    chosen: float | None = None,
    y_range: tuple[float, float] | None = None,
    title: str = "Coefficients along the path",
    x_label: str = "log₁₀ λ",
    y_label: str = "coefficient",
) -> Markup:
    """Draw every coefficient against log λ.

    The eight largest coefficients have colours and, at the smallest λ, names; names that would meet are moved apart.

    Parameters
    ----------
    penalties : array of shape (n_penalties,)
        λ > 0.
    coefs : array of shape (n_features, n_penalties)
        One row a coefficient, as `lasso_path` returns them.
    names : sequence of str, optional
        Names of the features; the largest coefficients are labelled.
    chosen : float, optional
        The λ > 0 to mark.
    y_range : (float, float), optional
        What to show, so that two figures can have one axis; by default everything.
    title, x_label, y_label : str
        Words; the title is read by screen readers and shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import coefficient_paths
    >>> coefficient_paths([1.0, 0.1], [[0.0, 2.0], [0.0, -1.0]], names=["a", "b"], chosen=0.5).startswith("<svg")
    True
    """
    levels = np.asarray(penalties, dtype=np.float64).ravel()
    rows = np.atleast_2d(np.asarray(coefs, dtype=np.float64))
    if rows.shape[1] != len(levels) or not len(levels) or not (levels > 0).all():
        raise DataError(
            "coefficient_paths: needs penalties > 0 and one column of coefs for each; got "
            f"{len(levels)} penalties and coefs of shape {rows.shape}."
        )
    if names is not None and len(names) != len(rows):
        raise DataError(f"coefficient_paths: needs one name a coefficient; got {len(names)} for {len(rows)}.")
    if chosen is not None and not 0 < chosen < np.inf:
        raise DataError(f"coefficient_paths: chosen must be a number > 0; got {chosen!r}.")
    order = np.argsort(levels)
    xs = np.log10(levels[order])
    rows = rows[:, order]
    largest = np.argsort(-np.abs(rows).max(axis=1), kind="stable")[:_LABELS].tolist()
    shown = [clean(name, _LONGEST) for name in names] if names is not None else []
    low, high = extent(xs, [] if chosen is None else [np.log10(chosen)])
    letters = max((len(shown[number]) for number in largest), default=0) if shown else 0
    share = letters * _LETTER / 340.0  # of the width, for the names
    frame = Frame.around((low - share / (1 - share) * (high - low), high), y_range or extent(rows, np.zeros(1)))
    marks: list[Any] = [frame.line([frame.x.low, frame.x.high], np.zeros(2), stroke=RULE, stroke_width=1)]
    if chosen is not None:
        at = np.full(2, np.log10(chosen))
        ends = [frame.y.low, frame.y.high]
        marks.append(frame.line(at, ends, stroke="currentColor", stroke_dasharray="4 3"))
    ranges = (frame.x.low, frame.x.high), (frame.y.low, frame.y.high)
    colours = dict(zip(sorted(largest), COLOURS, strict=False))
    for number in sorted(range(len(rows)), key=lambda number: number in colours):
        colour = colours.get(number, MUTED)
        pieces = pieces_within(np.column_stack([xs, rows[number]]), *ranges)
        d = "".join(frame.path(piece[:, 0], piece[:, 1]) for piece in pieces)
        marks.append(tag("path", d=d, fill="none", stroke=colour, stroke_width=1.7, stroke_linejoin="round"))
    if shown:
        heights = _apart(np.array([float(frame.y(rows[number, 0])) for number in largest]), frame)
        for number, height in zip(largest, heights.tolist(), strict=True):
            place = {"x": float(frame.x(xs[0])) - 5.0, "y": height + 4.0, "text_anchor": "end"}
            marks.append(tag("text", shown[number], fill=colours[number], **place))
    return frame.draw(title, *marks, x_label=x_label, y_label=y_label)


def _apart(heights: Array, frame: Frame) -> Array:
    """Move heights as little as is simple until they are a line of text apart, within the frame if there is room."""
    moved = heights.copy()
    order = np.argsort(heights, kind="stable")
    for before, after in pairwise(order):  # downwards on the page
        moved[after] = max(moved[after], moved[before] + _LINE)
    limit = frame.y.start - 8.0
    for number in order[::-1]:  # and up again from the lower edge
        moved[number] = min(moved[number], limit)
        limit = moved[number] - _LINE
    return moved


# --------------------------------------------------------------------------------------------------------------------
# A function with what is known about it: observations, bands of credible or predictive intervals, draws.


_BAND_OPACITY = 0.17  # bands lie on top of each other: the inner one is darker


def function_bands(
    x: Any,
    mean: Any,
    bands: Mapping[str, tuple[Any, Any]] | None = None,
    *,
    points: tuple[Any, Any] | None = None,
    draws: Any = None,
    truth: Any = None,
    y_range: tuple[float, float] | None = None,
    title: str = "Regression function",
    x_label: str = "x",
    y_label: str = "y",
) -> Markup:
    """Draw a function, bands around it, the observations behind it, and draws of it.

    Parameters
    ----------
    x, mean : arrays of shape (n,)
        Points of the function, in the order in which they are joined.
    bands : mapping, optional
        From names to (lower, upper) ends, each of shape (n,).
    points : tuple of arrays, optional
        x and y of the observations.
    draws : array of shape (m, n), optional
        Further functions, drawn thin.
    truth : array of shape (n,), optional
        What the function is, dashed.
    y_range : tuple of float, optional
        What to show; everything if left out.
    title, x_label, y_label : str
        Words; the title is read by screen readers and shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import function_bands
    >>> function_bands([0, 1], [0, 1], {"90 %": ([-1, 0], [1, 2])}, points=([0.5], [0.4])).count("<circle")
    1
    """
    owner = "function_bands"
    xs, ys = numbers(owner, x=x, mean=mean)
    if len(xs) < 2:
        raise DataError(f"{owner}: a function needs at least two points, got {len(xs)}.")
    shown = {name: numbers(owner, x=x, low=low, high=high)[1:] for name, (low, high) in (bands or {}).items()}
    lines = [] if draws is None else [numbers(owner, x=x, draw=row)[1] for row in np.atleast_2d(np.asarray(draws))]
    dots = numbers(owner, x=points[0], y=points[1]) if points is not None else [np.zeros(0), np.zeros(0)]
    true = [] if truth is None else [numbers(owner, x=x, truth=truth)[1]]
    ends = [end for pair in shown.values() for end in pair]
    y_extent = extent(ys, *ends, *lines, dots[1], *true) if y_range is None else y_range
    frame = Frame.around(extent(xs, dots[0], pad=0.01), y_extent, width=430.0, height=290.0)
    low, high = y_extent
    marks: list[Any] = []
    for name, (lower, upper) in shown.items():
        there = frame.path(xs, np.clip(lower, low, high))
        back = frame.path(xs[::-1], np.clip(upper[::-1], low, high)).replace("M", "L", 1)
        marks.append(tag("path", tag("title", isolated(name)), d=f"{there}{back}Z", fill=ACCENT, opacity=_BAND_OPACITY))
    for row in lines:
        marks.append(frame.line(xs, _inside(row, y_extent), stroke=MUTED, stroke_width=0.7, opacity=0.55))
    for row in true:
        marks.append(
            frame.line(xs, _inside(row, y_extent), stroke="currentColor", stroke_width=1.2, stroke_dasharray="4 3")
        )
    marks.append(frame.line(xs, _inside(ys, y_extent), stroke=ACCENT, stroke_width=2))
    for px, py in zip(*dots, strict=True):
        if np.isfinite(px) and low <= py <= high:
            at = compact(float(frame.x(px))), compact(float(frame.y(py)))
            marks.append(tag("circle", cx=at[0], cy=at[1], r="2.4", fill="currentColor", opacity=0.75))
    return frame.draw(title, *marks, x_label=x_label, y_label=y_label)


def _inside(row: Array, ends: tuple[float, float]) -> Array:
    """Return the values, NaN where they are outside."""
    return np.where((row >= ends[0]) & (row <= ends[1]), row, np.nan)
