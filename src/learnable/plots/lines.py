"""Several lines on one pair of axes, with a legend: functions side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.errors import DataError
from .axes import MUTED, Frame, extent, numbers
from .markup import Markup
from .optimization import COLOURS, _legend

_LEGEND_WIDTH = 116.0


def labelled_lines(
    series: Mapping[str, tuple[Any, Any]],
    *,
    x_range: tuple[float, float] | None = None,
    y_range: tuple[float, float] | None = None,
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
        What to show; by default everything.
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
    x_shown = x_range or extent(*(x for x, _ in points.values()))
    y_shown = y_range or extent(*(y for _, y in points.values()))
    height = 340.0 if square else 260.0
    frame = Frame.around(x_shown, y_shown, width=380.0 + _LEGEND_WIDTH, height=height, right=_LEGEND_WIDTH)
    if square:
        side = frame.y.start - frame.y.end
        width = frame.x.start + side + _LEGEND_WIDTH
        frame = Frame.around(x_shown, y_shown, width=width, height=height, right=_LEGEND_WIDTH)
    order = sorted(points, key=lambda name: name != reference)
    colours = iter(COLOURS * (1 + len(points) // len(COLOURS)))
    shades = {name: MUTED if name == reference else next(colours) for name in points}
    marks = []
    for name in order:
        xs, ys = points[name]
        inside = (x_shown[0] <= xs) & (xs <= x_shown[1]) & (y_shown[0] <= ys) & (ys <= y_shown[1])
        width = 5.0 if name == reference else 1.8
        line = frame.line(
            xs, np.where(inside, ys, np.nan), stroke=shades[name], stroke_width=width, stroke_linejoin="round"
        )
        marks.append(line)
    legend = _legend(frame, list(points), [shades[name] for name in points])
    return frame.draw(title, *marks, *legend, x_label=x_label, y_label=y_label)
