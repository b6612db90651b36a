"""How values are spread: a histogram with axes, and the small ones that fit into a line of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from .axes import ACCENT, MUTED, RULE, Array, Frame, Scale, extent, numbers, tick_labels, ticks
from .markup import Markup, compact, isolated, svg, tag


def histogram(
    edges: Any, counts: Any, *, title: str = "Histogram", x_label: str = "", y_label: str = "rows", zero: bool = False
) -> Markup:
    """Draw a histogram with axes.

    Parameters
    ----------
    edges : array of shape (n_bins + 1,)
        Ends of the bins, rising.
    counts : array of shape (n_bins,)
        How many values fall into each; drawn as heights, so bins of unequal width mislead.
    title, x_label, y_label : str
        Words; the title is read by screen readers and shown on hover.
    zero : bool
        Whether to mark zero with a line.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import histogram
    >>> histogram([0.0, 1.0, 2.0], [3, 5], title="Waiting time").startswith("<svg")
    True
    """
    ends, heights = _bins("histogram", edges, counts)
    frame = Frame.around(extent(ends, pad=0.02), (0.0, max(float(heights.max(initial=0.0)) * 1.06, 1.0)))
    base = frame.y.start
    pieces = []
    for left, right, height in zip(frame.x(ends[:-1]), frame.x(ends[1:]), frame.y(heights), strict=True):
        gap = min(0.5, (right - left) / 8)
        pieces.append(
            f"M{compact(left + gap)} {compact(base)}V{compact(height)}H{compact(right - gap)}V{compact(base)}z"
        )
    marks = [tag("path", d="".join(pieces), fill=ACCENT, opacity=0.75)]
    if zero and ends[0] <= 0 <= ends[-1]:
        at = compact(float(frame.x(0.0)))
        marks.append(tag("path", d=f"M{at} {compact(base)}V{compact(frame.y.end)}", stroke="currentColor"))
    return frame.draw(title, *marks, x_label=x_label, y_label=y_label)


def sparkline(edges: Any, counts: Any, *, title: str = "Distribution", height: float = 22.0) -> Markup:
    """Draw a histogram without axes, as wide as its place.

    Parameters
    ----------
    edges : array of shape (n_bins + 1,)
        Ends of the bins, rising.
    counts : array of shape (n_bins,)
        How many values fall into each.
    title : str
        Words for screen readers.
    height : float
        Height in pixels.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import sparkline
    >>> sparkline([0.0, 1.0, 2.0], [3, 5]).count("<title>")
    1
    """
    ends, heights = _bins("sparkline", edges, counts)
    return _spark(heights, np.clip((ends - ends[0]) / ((ends[-1] - ends[0]) or 1.0), 0, 1) * 100, title, height)


def bars(counts: Any, *, title: str = "Counts", height: float = 22.0) -> Markup:
    """Draw the counts of categories as bars of equal width, without axes, as wide as their place.

    Parameters
    ----------
    counts : array of shape (n_categories,)
        Counts.
    title : str
        Words for screen readers.
    height : float
        Height in pixels.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import bars
    >>> "Colours" in bars([8, 3, 1], title="Colours")
    True
    """
    (heights,) = numbers("bars", counts=counts)
    return _spark(heights, np.linspace(0, 100, max(len(heights), 5) + 1)[: len(heights) + 1], title, height, gap=0.16)


def _spark(heights: Array, places: Array, title: str, height: float, gap: float = 0.06) -> Markup:
    heights = np.nan_to_num(heights)
    top = float(heights.max(initial=0.0)) or 1.0
    pieces = []
    for left, right, count in zip(places[:-1], places[1:], heights, strict=True):
        # A bin that holds anything stays visible: a pixel at least.
        tall = max(count / top * (height - 1), 1.0) if count > 0 else 0.0
        if tall:
            inset = gap * (right - left)
            pieces.append(
                f"M{compact(left + inset)} {compact(height - 1)}v{compact(-tall)}"
                f"H{compact(right - inset)}v{compact(tall)}z"
            )
    return svg(
        100,
        height,
        title,
        tag("path", d="".join(pieces), fill=ACCENT, opacity=0.75),
        tag("path", d=f"M0 {compact(height - 0.5)}H100", stroke=MUTED, stroke_width=0.5),
        preserveAspectRatio="none",
        class_="ln-spark",
        width="100%",
        height=height,
    )


def _bins(owner: str, edges: Any, counts: Any) -> tuple[Array, Array]:
    (ends,), (heights,) = numbers(owner, edges=edges), numbers(owner, counts=counts)
    if len(ends) != len(heights) + 1:
        raise DataError(f"{owner}: n bins have n + 1 edges; got {len(heights)} counts and {len(ends)} edges.")
    if not np.all(np.isfinite(ends)) or np.any(np.diff(ends) < 0):
        raise DataError(f"{owner}: edges must be finite and rise. Sort them.")
    return ends, np.nan_to_num(heights)


# --------------------------------------------------------------------------------------------------------------------
# Dots with their intervals: one row for a table, the axis that such rows share, and a whole figure of them.


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
    width = 420.0
    height = _ROW * len(dots) + 44.0
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


# --------------------------------------------------------------------------------------------------------------------
# Contributions of columns to predictions: one line of points per column, in the colour of the column's own value.


_WIDTH: Final = 640.0
_LEFT = 150.0
_RIGHT = 618.0
_TOP = 34.0
_BOTTOM = 44.0
_CONTRIBUTION_ROW: Final = 30.0
_MOST: Final = 400  # points of one column
_SIZE: Final = 4.0
#: From low to high; both ends stand out on light and on dark pages.
_COLOURS: Final = ("#1f6fb4", "#5b78b8", "#8b7bb0", "#ad789c", "#c56f7d", "#d06459", "#cf5632")


def contribution_summary(
    values: Any,
    X: Any,
    names: Sequence[Any] | None = None,
    *,
    title: str = "Contributions of the columns",
    x_label: str = "contribution to the score",
    most: int = 10,
) -> Markup:
    """Draw the contributions (Shapley values) of all rows, column by column, the most important one on top.

    A point is a row; its place is the contribution, its colour the value of the column, from low (blue) to high (red)
    by rank; missing values are grey. Importance is the mean of |contribution|.

    Parameters
    ----------
    values : array of shape (n, d)
        Contributions.
    X : array of shape (n, d)
        Values of the columns.
    names : sequence of d names, optional
        Of the columns; x0, x1, … without them.
    title, x_label : str
        Words.
    most : int, default=10
        Columns to show.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import contribution_summary
    >>> "colour: value of the column" in contribution_summary([[0.5, -1.0], [0.2, 1.0]], [[1, 2], [3, 4]], ["a", "b"])
    True
    """
    phi = np.asarray(values, dtype=np.float64)
    table = np.asarray(X, dtype=np.float64)
    if phi.ndim != 2 or phi.shape != table.shape or not phi.size:
        raise DataError(
            "contribution_summary: values and X must be tables of one shape with at least one row, got "
            f"{phi.shape} and {table.shape}."
        )
    labels = [f"x{j}" for j in range(phi.shape[1])] if names is None else [str(name) for name in names]
    if len(labels) != phi.shape[1]:
        raise DataError(f"contribution_summary: names must be {phi.shape[1]} names, got {len(labels)}.")
    shown = np.argsort(-np.abs(np.nan_to_num(phi)).mean(axis=0), kind="stable")[:most]
    thin = np.unique(np.linspace(0, len(phi) - 1, min(len(phi), _MOST)).round().astype(np.int64))
    place = Scale(*extent(phi[:, shown], [0.0]), _LEFT, _RIGHT)
    bottom = _TOP + _CONTRIBUTION_ROW * len(shown)
    parts = _axis(place, bottom, x_label)
    for line, j in enumerate(shown):
        middle = _TOP + _CONTRIBUTION_ROW * (line + 0.5)
        style = {"text_anchor": "end", "font_size": "12", "fill": "currentColor"}
        parts.append(tag("text", isolated(labels[j], 20), x=_LEFT - 10.0, y=middle + 4.0, **style))
        parts.append(tag("line", x1=_LEFT, x2=_RIGHT, y1=middle, y2=middle, stroke=RULE, stroke_width=0.5))
        parts += _swarm(place(phi[thin, j]), table[thin, j], middle)
    parts += _legend()
    return svg(_WIDTH, bottom + _BOTTOM, title, *parts, font_family="inherit")


def _axis(place: Scale, bottom: float, label: str) -> list[Markup]:
    style = {"text_anchor": "middle", "font_size": "11", "fill": MUTED}
    parts = []
    at = ticks(place.low, place.high, 6)
    for value, text in zip(at, tick_labels(at), strict=True):
        x = float(place(value))
        ink = {"stroke": "currentColor", "opacity": 0.6} if value == 0.0 else {"stroke": RULE}
        parts.append(tag("line", x1=x, x2=x, y1=_TOP - 4.0, y2=bottom, **ink))
        parts.append(tag("text", text, x=x, y=bottom + 15.0, **style))
    parts.append(tag("text", label, x=(_LEFT + _RIGHT) / 2.0, y=bottom + 34.0, **(style | {"font_size": "12"})))
    return parts


def _swarm(x: Array, value: Array, middle: float) -> list[Markup]:
    """Return the points of one column, side by side where they would cover each other."""
    known = np.isfinite(x)
    x = x[known]
    value = value[known]
    y = middle + _offsets(x)
    colour = _ranks(value)
    parts = []
    for k in range(-1, len(_COLOURS)):
        chosen = np.flatnonzero(colour == k)
        if len(chosen):
            places = "".join(f"M{compact(round(x[i], 1))} {compact(round(y[i], 1))}h0" for i in chosen)
            ink = {"stroke": MUTED if k < 0 else _COLOURS[k], "stroke_width": _SIZE, "stroke_linecap": "round"}
            parts.append(tag("path", d=places, fill="none", opacity=0.8, **ink))
    return parts


def _offsets(x: Array) -> Array:
    """Return how far each point moves off the line: points that share a place take turns above and below it."""
    cell = np.floor(x / (0.75 * _SIZE)).astype(np.int64)
    order = np.argsort(cell, kind="stable")
    turn = np.empty(len(x), dtype=np.int64)
    _, first, count = np.unique(cell[order], return_index=True, return_counts=True)
    turn[order] = np.arange(len(x)) - np.repeat(first, count)
    side = np.where(turn % 2 == 1, 1.0, -1.0) * ((turn + 1) // 2)
    room = _CONTRIBUTION_ROW / 2.0 - 0.5 * _SIZE
    widest = max(float(np.abs(side).max(initial=0.0)), 1.0)
    return np.asarray(side * min(0.6 * _SIZE, room / widest), dtype=np.float64)


def _ranks(value: Array) -> NDArray[np.int64]:
    """Return the colour of each value by its rank, equal values alike; −1 for missing ones."""
    known = np.isfinite(value)
    levels, code = np.unique(value[known], return_inverse=True)
    found = np.full(len(value), -1, dtype=np.int64)
    if len(levels) == 1:
        found[known] = len(_COLOURS) // 2
    elif len(levels):
        below = np.cumsum(np.bincount(code)) - 0.5 * np.bincount(code)
        low = below[0]
        high = below[-1]
        share = (below - low) / (high - low)
        found[known] = np.round(share * (len(_COLOURS) - 1)).astype(np.int64)[code]
    return found


def _legend() -> list[Markup]:
    style = {"font_size": "11", "fill": MUTED}
    first = _RIGHT - 14.0 * len(_COLOURS) - 30.0
    parts = [tag("text", "colour: value of the column, low", x=first - 6.0, y=16.0, text_anchor="end", **style)]
    for k, colour in enumerate(_COLOURS):
        parts.append(tag("rect", x=first + 14.0 * k, y=8.0, width=14.0, height=9.0, fill=colour))
    return [*parts, tag("text", "high", x=_RIGHT, y=16.0, text_anchor="end", **style)]
