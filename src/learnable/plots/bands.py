"""A function with what is known about it: observations, bands of credible or predictive intervals, draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.errors import DataError
from .axes import ACCENT, MUTED, Array, Frame, extent, numbers
from .markup import Markup, compact, isolated, tag

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
