"""Regret over time, with bands and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.errors import DataError
from ...plots.axes import MUTED, Frame, extent
from ...plots.markup import Markup, tag
from ...plots.optimization import COLOURS, legend_marks

_LEGEND = 150.0


def draw_regret(results: Mapping[str, Any], *, title: str = "Pseudo-regret") -> Markup:
    """Draw the mean regret of each policy with the band of its interval.

    A proved upper bound is a dashed line of the policy's colour where it fits into twice the height of the curves; Lai
    and Robbins' slope is dotted.

    Parameters
    ----------
    results : mapping of str to Regret
        As `simulate` returns them.
    title : str
        Words for screen readers, shown on hover.
    """
    if not results:
        raise DataError("draw_regret: there is nothing to draw.")
    found = list(results.values())
    rounds = np.asarray(found[0].rounds, dtype=np.float64)
    top = max(float(np.max(result.upper)) for result in found)
    shown = [r.bound.value for r in found if r.bound.value is not None and r.bound.value <= 2.0 * top]
    heights = np.array([0.0, top, *shown])
    frame = Frame.around(extent(rounds), extent(heights), width=380.0 + _LEGEND, height=260.0, right=_LEGEND)
    marks: list[Any] = []
    for number, result in enumerate(found):
        colour = COLOURS[number % len(COLOURS)]
        back = frame.path(rounds[::-1], np.asarray(result.lower)[::-1]).replace("M", "L", 1)
        marks.append(tag("path", d=f"{frame.path(rounds, result.upper)}{back}z", fill=colour, fill_opacity=0.18))
        marks.append(frame.line(rounds, result.mean, stroke=colour, stroke_width=1.8))
        if result.bound.value in shown:
            level = np.full(2, result.bound.value)
            marks.append(frame.line(rounds[[0, -1]], level, stroke=colour, stroke_dasharray="6 3"))
    limit = found[0].lai_robbins
    if limit is not None and limit <= 2.0 * top:
        slope = limit / max(np.log(rounds[-1]), 1e-9)
        marks.append(frame.line(rounds, slope * np.log(rounds), stroke=MUTED, stroke_dasharray="2 3"))
    labels = [*results, *(["Lai–Robbins"] if limit is not None and limit <= 2.0 * top else [])]
    colours = [*(COLOURS[number % len(COLOURS)] for number in range(len(found))), MUTED][: len(labels)]
    marks += legend_marks(frame, labels, colours)
    return frame.draw(title, *marks, x_label="rounds", y_label="regret")
