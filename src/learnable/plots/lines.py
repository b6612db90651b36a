"""Several lines on one pair of axes, with a legend: functions side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.errors import DataError
from .axes import MUTED, Array, Frame, extent, numbers
from .markup import Markup, tag
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
