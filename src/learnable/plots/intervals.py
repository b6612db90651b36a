"""Dots with their intervals: one row for a table, the axis that such rows share, and a whole figure of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ..core.errors import DataError
from .axes import ACCENT, MUTED, RULE, Scale, extent, numbers, tick_labels, ticks
from .markup import Markup, compact, isolated, svg, tag

_ROW: Final = 22.0


def whisker(
    value: float | None,
    low: float | None = None,
    high: float | None = None,
    *,
    domain: tuple[float, float],
    title: str,
    marks: Sequence[float] = (),
    hollow: bool = False,
) -> Markup:
    """Draw one value and its interval on a horizontal scale, as wide as its place.

    Parameters
    ----------
    value, low, high : float or None
        The dot and the ends of its interval; None leaves it out. Outside the domain an arrow says where it went.
    domain : (float, float)
        Values at the left and the right end.
    title : str
        Words for screen readers, shown on hover.
    marks : sequence of float
        Values to mark by thin vertical lines, such as zero.
    hollow : bool
        Whether the dot is a ring, for a value that is not like the others.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import whisker
    >>> whisker(0.5, 0.4, 0.6, domain=(0.0, 1.0), title="half").count("<circle")
    1
    """
    place = Scale(*domain, 0.0, 100.0)
    parts = [
        tag("line", x1=_percent(place(m)), x2=_percent(place(m)), y1="0", y2="100%", stroke=RULE)
        for m in marks
        if domain[0] <= m <= domain[1]
    ]
    ink = MUTED if hollow else ACCENT
    if _known(low) and _known(high) and low is not None and high is not None:
        left, right = (float(np.clip(place(end), 0.0, 100.0)) for end in (low, high))
        if left < right:
            ends = {"x1": _percent(left), "x2": _percent(right), "y1": "50%", "y2": "50%"}
            parts.append(tag("line", **ends, stroke=ink, stroke_width=1.5))
    if _known(value) and value is not None:
        at = place(value)
        if at < 0 or at > 100:
            arrow = {"text_anchor": "start" if at < 0 else "end", "fill": ink, "font_size": "12"}
            parts.append(
                tag("text", "◂" if at < 0 else "▸", x="0" if at < 0 else "100%", y="50%", dy="0.35em", **arrow)
            )
        else:
            fill = {"fill": "var(--ln-page, #fff)", "stroke": ink, "stroke_width": 1.5} if hollow else {"fill": ink}
            parts.append(tag("circle", cx=_percent(at), cy="50%", r=3.5, **fill))
    return _strip(title, parts, 16)


def scale_axis(domain: tuple[float, float], *, title: str = "Scale", most: int = 4) -> Markup:
    """Draw the axis that whiskers of the same domain share.

    Parameters
    ----------
    domain : (float, float)
        Values at the left and the right end.
    title : str
        Words for screen readers.
    most : int
        About how many ticks.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import scale_axis
    >>> ">0.5</text>" in scale_axis((0.0, 1.0), most=2)
    True
    """
    place = Scale(*domain, 0.0, 100.0)
    values = ticks(*domain, most=most)
    parts = []
    for value, text in zip(values, tick_labels(values), strict=True):
        at = float(place(value))
        anchor = "start" if at < 6 else "end" if at > 94 else "middle"
        parts.append(tag("text", text, x=_percent(at), y="11", text_anchor=anchor, fill=MUTED, font_size="0.85em"))
        parts.append(tag("line", x1=_percent(at), x2=_percent(at), y1="15", y2="19", stroke=MUTED))
    return _strip(title, parts, 19)


def dot_intervals(
    names: Sequence[str],
    values: Any,
    low: Any = None,
    high: Any = None,
    *,
    title: str = "Values with intervals",
    x_label: str = "",
) -> Markup:
    """Draw coefficients or importances, one line each, with intervals where they are known.

    Parameters
    ----------
    names : sequence of str
        Names of the lines, from top to bottom.
    values : array of shape (n,)
        The dots.
    low, high : arrays of shape (n,), optional
        Ends of the intervals; None or NaN where there is none.
    title, x_label : str
        Words; the title is read by screen readers and shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import dot_intervals
    >>> dot_intervals(["age", "income"], [0.3, -1.2], [0.1, None], [0.5, None]).count("<circle")
    2
    """
    (dots,) = numbers("dot_intervals", values=values)
    if len(names) != len(dots):
        raise DataError(f"dot_intervals: {len(dots)} values need as many names; got {len(names)}.")
    nothing = np.full(len(dots), np.nan)
    _, lower = numbers("dot_intervals", values=dots, low=nothing if low is None else low)
    _, upper = numbers("dot_intervals", values=dots, high=nothing if high is None else high)
    shown = [isolated(name, 28) for name in names]
    left = 16.0 + 6.2 * max((len(name) for name in shown), default=0)
    width, height = 420.0, _ROW * len(dots) + 44.0
    place = Scale(*extent(dots, lower, upper, [0.0]), left, width - 12.0)
    bottom = _ROW * len(dots) + 6.0
    parts = []
    values_at = ticks(place.low, place.high, most=4)
    for value, text in zip(values_at, tick_labels(values_at), strict=True):
        at = compact(float(place(value)))
        parts.append(tag("path", d=f"M{at} 4V{compact(bottom)}", stroke=MUTED if value == 0 else RULE))
        parts.append(tag("text", text, x=at, y=bottom + 14.0, text_anchor="middle", fill=MUTED))
    middle = (place.start + place.end) / 2
    parts.append(tag("text", x_label, x=middle, y=height - 6.0, text_anchor="middle", fill="currentColor"))
    for row, (name, dot, a, b) in enumerate(zip(shown, dots, lower, upper, strict=True)):
        y = _ROW * (row + 0.5) + 4.0
        parts.append(tag("text", name, x=left - 10.0, y=y + 4.0, text_anchor="end", fill="currentColor"))
        if math.isfinite(a) and math.isfinite(b):
            line = f"M{compact(float(place(a)))} {compact(y)}H{compact(float(place(b)))}"
            parts.append(tag("path", d=line, stroke=ACCENT, stroke_width=1.5))
        if math.isfinite(dot):
            parts.append(tag("circle", cx=float(place(dot)), cy=y, r=3.5, fill=ACCENT))
    return svg(width, height, title, *parts, font_size="11", font_family="inherit")


def _strip(title: str, parts: list[Markup], height: int) -> Markup:
    """Return a strip whose coordinates are shares of its width: it stretches, its dots stay round."""
    inside = (tag("title", title), *parts)
    size = {"width": "100%", "height": height, "overflow": "visible", "class_": "ln-strip"}
    return tag("svg", *inside, xmlns="http://www.w3.org/2000/svg", role="img", **size)


def _percent(at: float) -> str:
    return f"{compact(float(at))}%"


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
