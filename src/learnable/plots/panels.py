"""Figures side by side, as one figure."""

from __future__ import annotations

import re
from typing import Final

from ..core.errors import DataError
from .markup import Markup, compact, svg, tag

_HEAD: Final = re.compile(
    r'<svg xmlns="[^"]*" role="img" viewBox="0 0 ([\d.]+) ([\d.]+)"(?=[^>]*><title>([^<]*)</title>)'
)
_GAP: Final = 16.0
_TITLE: Final = 26.0  # height of the line of titles


def side_by_side(*figures: Markup, title: str) -> Markup:
    """Put figures of this package next to each other, from left to right, at one scale, each under its title.

    Parameters
    ----------
    *figures : Markup
        What the functions of `learnable.plots` return.
    title : str
        Words for all of them, which screen readers read and which are shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import labelled_lines, side_by_side
    >>> line = labelled_lines({"line": ([0, 1], [0, 1])})
    >>> side_by_side(line, line, title="Twice").count("<svg")
    3
    """
    if not figures:
        raise DataError("side_by_side: there is nothing to draw; pass at least one figure.")
    placed, left, tallest = [], 0.0, 0.0
    for figure in figures:
        head = _HEAD.match(figure)
        if head is None or not isinstance(figure, Markup):
            raise DataError("side_by_side: a figure must be what a function of learnable.plots returned.")
        width, height = float(head[1]), float(head[2])
        size = f'width="{head[1]}" height="{head[2]}" viewBox="0 0 {head[1]} {head[2]}"'
        placed.append(tag("text", Markup(head[3]), x=left, y=14.0, fill="currentColor", font_weight="bold"))
        placed.append(Markup(f'<svg x="{compact(left)}" y="{compact(_TITLE)}" {size}{figure[head.end() :]}'))
        left, tallest = left + width + _GAP, max(tallest, height)
    return svg(left - _GAP, tallest + _TITLE, title, *placed, font_size="12", font_family="inherit")
