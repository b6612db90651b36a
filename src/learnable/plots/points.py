"""Scatter plots: thousands of points as a few paths, so that the file stays small and dense places look dense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np

from ..core.errors import DataError
from .axes import ACCENT, MUTED, RULE, Array, Frame, extent, numbers
from .markup import Markup, compact, isolated, svg, tag

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


# --------------------------------------------------------------------------------------------------------------------
# Small images side by side: digits, or what the first layer of a network looks for.


#: Shades on each side of zero; cells of one shade are one path.
_SHADES: Final = 6
_CELL: Final = 3.0
_GAP: Final = 6.0
_NEGATIVE: Final = "#d55e00"


def image_grid(images: Any, *, columns: int = 8, title: str = "Images") -> Markup:
    """Draw small images in a grid, each scaled by its own largest size: positive blue, negative orange.

    Parameters
    ----------
    images : (n, height, width) array
        Finite numbers.
    columns : int, default=8
        Images of a row.
    title : str
        Words for screen readers, shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.plots import image_grid
    >>> image_grid(np.eye(4).reshape(1, 4, 4)).startswith("<svg")
    True
    """
    stack = np.asarray(images, dtype=np.float64)
    if stack.ndim != 3 or 0 in stack.shape or not np.isfinite(stack).all():
        raise DataError(f"image_grid: images must be finite numbers (n, height, width); got shape {stack.shape}.")
    n, height, width = stack.shape
    across = min(columns, n)
    size = np.abs(stack).max(axis=(1, 2), keepdims=True)
    shade = np.rint(_SHADES * stack / np.where(size > 0, size, 1.0)).astype(int)
    left = (np.arange(n) % across) * (width * _CELL + _GAP)
    top = (np.arange(n) // across) * (height * _CELL + _GAP)
    parts = []
    for level in range(-_SHADES, _SHADES + 1):
        cells = np.argwhere(shade == level) if level else np.empty((0, 3), dtype=int)
        d = "".join(
            f"M{left[k] + j * _CELL:g} {top[k] + i * _CELL:g}h{_CELL:g}v{_CELL:g}h-{_CELL:g}z" for k, i, j in cells
        )
        if d:
            colour = ACCENT if level > 0 else _NEGATIVE
            parts.append(tag("path", d=d, fill=colour, opacity=abs(level) / _SHADES))
    frames = "".join(
        f"M{x:g} {y:g}h{width * _CELL:g}v{height * _CELL:g}h-{width * _CELL:g}z" for x, y in zip(left, top, strict=True)
    )
    parts.append(tag("path", d=frames, fill="none", stroke=RULE))
    total = float(left.max() + width * _CELL), float(top.max() + height * _CELL)
    return svg(*total, title, *parts)


# --------------------------------------------------------------------------------------------------------------------
# A confusion matrix as a map of heat, for more classes than a table of numbers can hold.


#: Shades of the map; cells of one shade are one path, so that 100 classes cost little.
_HEAT_SHADES: Final = 12
_SIDE: Final = 400.0


def confusion_matrix(
    labels: Sequence[str], counts: Any, *, title: str = "Confusion matrix", side: float = _SIDE, numbers: bool = False
) -> Markup:
    """Draw each cell as dark as its share of the row: the actual class downwards, the predicted one across.

    Parameters
    ----------
    labels : sequence of str
        Names of the classes; written at the sides if there are at most 30.
    counts : array of shape (n_classes, n_classes)
        Rows that are of class i and were predicted as class j.
    title : str
        Words for screen readers, shown on hover.
    side : float
        Width of the map.
    numbers : bool
        Whether the counts are written into the cells.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import confusion_matrix
    >>> confusion_matrix(["no", "yes"], [[8, 2], [1, 9]]).startswith("<svg")
    True
    """
    table = np.asarray(counts, dtype=np.float64)
    if table.shape != (len(labels), len(labels)):
        size = " × ".join(str(n) for n in table.shape)
        raise DataError(f"confusion_matrix: {len(labels)} labels need as many rows and columns; got {size}.")
    shares = row_shares(table)
    named = len(labels) <= 30
    names = [isolated(label, 14) for label in labels]
    left = 24.0 + (6.0 * max((len(name) for name in names), default=0) if named else 0.0)
    step = side / max(len(labels), 1)
    parts = []
    shade = np.ceil(shares * _HEAT_SHADES).astype(int)
    for level in range(1, _HEAT_SHADES + 1):
        cells = np.argwhere(shade == level)
        d = "".join(_cell(left + j * step, 4.0 + i * step, step) for i, j in cells)
        if d:
            parts.append(tag("path", d=d, fill=ACCENT, opacity=0.08 + 0.92 * level / _HEAT_SHADES))
    if numbers:
        for (i, j), count in np.ndenumerate(table):
            ink = "white" if shares[i, j] > 0.55 else "currentColor"
            at = {"x": left + (j + 0.5) * step, "y": 8.0 + (i + 0.5) * step}
            parts.append(tag("text", f"{count:,.0f}", **at, text_anchor="middle", fill=ink))
    parts.append(tag("rect", x=left, y=4, width=side, height=side, fill="none", stroke=RULE))
    if named:
        for k, name in enumerate(names):
            middle = (k + 0.5) * step
            parts.append(tag("text", name, x=left - 6, y=8.0 + middle, text_anchor="end", fill=MUTED))
            turn = f"translate({left + middle + 4:.2f} {side + 12:.2f}) rotate(-90)"
            parts.append(tag("text", name, transform=turn, text_anchor="end", fill=MUTED))
    depth = left if named else 22.0
    parts.append(tag("text", "predicted", x=left + side / 2, y=side + depth, text_anchor="middle", fill="currentColor"))
    turn = f"translate(11 {side / 2:.0f}) rotate(-90)"
    parts.append(tag("text", "actual", transform=turn, text_anchor="middle", fill="currentColor"))
    return svg(left + side + 4, side + depth + 6, title, *parts, font_size="11", font_family="inherit")


def row_shares(counts: Any) -> Any:
    """Return the shares of each row; a row of zeros stays one."""
    table = np.nan_to_num(np.asarray(counts, dtype=np.float64))
    total = table.sum(axis=1, keepdims=True)
    return np.divide(table, total, out=np.zeros_like(table), where=total > 0)


def _cell(x: float, y: float, side: float) -> str:
    gap = min(0.5, side / 16)
    inner = side - 2 * gap
    return f"M{x + gap:.1f} {y + gap:.1f}h{inner:.1f}v{inner:.1f}h{-inner:.1f}z"
