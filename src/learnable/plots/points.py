"""Scatter plots: thousands of points as a few paths, so that the file stays small and dense places look dense."""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np

from .axes import ACCENT, Array, Frame, extent, numbers
from .markup import Markup, compact, tag

#: One path has one opacity, however often it crosses itself; several overlapping ones add up.
_LAYERS: Final = 10
_MOST: Final = 3000


def scatter(
    x: Any,
    y: Any,
    *,
    title: str = "Scatter plot",
    x_label: str = "x",
    y_label: str = "y",
    reference: Literal["diagonal", "zero"] | None = None,
) -> Markup:
    """Draw points, at most 3,000 of them (evenly thinned beyond).

    Parameters
    ----------
    x, y : arrays of shape (n,)
        Coordinates; pairs that are not finite are left out.
    title, x_label, y_label : str
        Words; the title is read by screen readers and shown on hover.
    reference : {"diagonal", "zero"} or None
        A thin line y = x, on two equal scales, or y = 0.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import scatter
    >>> scatter([1.0, 2.0], [1.1, 1.9], reference="diagonal").count("<path") > 2
    True
    """
    xs, ys = numbers("scatter", x=x, y=y)
    known = np.isfinite(xs) & np.isfinite(ys)
    xs, ys = _thin(xs[known]), _thin(ys[known])
    if reference == "diagonal":
        frame = Frame.around(extent(xs, ys), extent(xs, ys))
        ends = np.array([frame.x.low, frame.x.high])
        line = frame.line(ends, ends, stroke="currentColor", stroke_width=1, opacity=0.7)
    elif reference == "zero":
        frame = Frame.around(extent(xs), extent(ys, [0.0]))
        line = frame.line([frame.x.low, frame.x.high], [0.0, 0.0], stroke="currentColor", stroke_width=1, opacity=0.7)
    else:
        frame, line = Frame.around(extent(xs), extent(ys)), None
    return frame.draw(title, *dots(frame, xs, ys), line, x_label=x_label, y_label=y_label)


def residual_plot(predicted: Any, actual: Any, *, title: str = "Residuals", x_label: str = "predicted") -> Markup:
    """Draw residuals (actual − predicted) against predictions, with a line at zero.

    Parameters
    ----------
    predicted, actual : arrays of shape (n,)
        Predictions and the values that were observed.
    title, x_label : str
        Words.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import residual_plot
    >>> "actual − predicted" in residual_plot([1.0, 2.0], [1.1, 1.9])
    True
    """
    guess, truth = numbers("residual_plot", predicted=predicted, actual=actual)
    return scatter(guess, truth - guess, title=title, x_label=x_label, y_label="actual − predicted", reference="zero")


def dots(frame: Frame, xs: Array, ys: Array, size: float | None = None) -> list[Markup]:
    """Return the points as round ends of strokes of no length."""
    size = size or (5.0 if len(xs) <= 60 else 4.0 if len(xs) <= 400 else 3.0)
    opacity = 0.8 if len(xs) <= 60 else 0.5 if len(xs) <= 400 else 0.35
    places = [f"M{compact(x)} {compact(y)}h0" for x, y in zip(frame.x(xs).round(1), frame.y(ys).round(1), strict=True)]
    layers = min(_LAYERS, len(places))
    style = {"stroke": ACCENT, "stroke_width": size, "stroke_linecap": "round", "fill": "none", "opacity": opacity}
    return [tag("path", d="".join(places[layer::layers]), **style) for layer in range(layers)]


def _thin(values: Array) -> Array:
    return values if len(values) <= _MOST else values[np.linspace(0, len(values) - 1, _MOST).round().astype(int)]
