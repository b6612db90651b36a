"""How values are spread: a histogram with axes, and the small ones that fit into a line of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import DataError
from .axes import ACCENT, MUTED, Array, Frame, extent, numbers
from .markup import Markup, compact, svg, tag


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
