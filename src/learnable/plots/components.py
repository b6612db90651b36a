"""Principal components: their variances with the choices of how many, and rows with columns in one picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.errors import DataError
from .axes import ACCENT, MUTED, Frame, extent, numbers
from .markup import Markup, compact, tag
from .points import dots

_LEGEND_WIDTH = 150.0


def scree(
    variances: Any,
    *,
    intervals: Any = None,
    choices: Mapping[str, int] | None = None,
    title: str = "Variances of the components",
    y_label: str = "variance",
) -> Markup:
    """Draw the variances of components, the largest first, and mark how many of them rules choose.

    Parameters
    ----------
    variances : array of shape (k,)
        λ.
    intervals : array of shape (k, 2), optional
        Ends of an interval for each.
    choices : mapping of str to int, optional
        Number of components by the name of the rule; rules that agree share a line.
    title, y_label : str
        Words; the title is read by screen readers and shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import scree
    >>> "parallel" in scree([3.0, 1.0, 0.5], choices={"parallel": 1})
    True
    """
    (heights,) = numbers("scree", variances=variances)
    if not len(heights):
        raise DataError("scree: there is nothing to draw; pass at least one variance.")
    ends = np.column_stack([heights, heights]) if intervals is None else np.asarray(intervals, dtype=np.float64)
    if ends.shape != (len(heights), 2):
        raise DataError(f"scree: intervals must have shape {(len(heights), 2)}; got {ends.shape}.")
    number = np.arange(1.0, len(heights) + 1.0)
    by_count: dict[int, list[str]] = {}
    for rule, count in (choices or {}).items():
        by_count.setdefault(int(count), []).append(rule)
    right = _LEGEND_WIDTH if by_count else 12.0
    frame = Frame.around((0.5, len(heights) + 0.5), extent(heights, ends, [0.0]), width=380.0 + right, right=right)
    marks = [
        tag(
            "path",
            d=f"M{compact(frame.x(x))} {compact(frame.y(low))}V{compact(frame.y(high))}",
            stroke=ACCENT,
            stroke_width=1.5,
        )
        for x, (low, high) in zip(number, ends, strict=True)
        if high > low
    ]
    marks.append(frame.line(number, heights, stroke=MUTED, stroke_width=1))
    marks += dots(frame, number, heights, 5.0)
    for row, count in enumerate(sorted(by_count)):
        at = float(frame.x(count + 0.5))
        top = 34.0 + 16.0 * row
        bottom = compact(frame.y.start)
        marks.append(
            tag(
                "path",
                d=f"M{compact(at)} {bottom}V{compact(top)}H{compact(frame.x.end)}",
                stroke="currentColor",
                stroke_dasharray="3 3",
                fill="none",
                opacity=0.7,
            )
        )
        words = f"{count}: {', '.join(by_count[count])}"
        marks.append(tag("text", words, x=frame.x.end + 6.0, y=top + 4.0, fill="currentColor"))
    return frame.draw(title, *marks, x_label="component", y_label=y_label)


def biplot(
    scores: Any,
    loadings: Any,
    *,
    names: Sequence[str] | None = None,
    title: str = "Rows and columns",
    labels: tuple[str, str] = ("first component", "second component"),
) -> Markup:
    """Draw rows as points and columns as arrows: the inner product of the two is the entry, up to what is left out.

    Parameters
    ----------
    scores : array of shape (n, 2)
        Coordinates of the rows.
    loadings : array of shape (d, 2)
        Directions of the columns; drawn to the scale at which the longest reaches the outermost row.
    names : sequence of str, optional
        Names of the columns.
    title : str
        Read by screen readers and shown on hover.
    labels : (str, str)
        Of the axes.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    References
    ----------
    K. R. Gabriel, The biplot graphic display of matrices with application to principal component analysis, 1971.

    Examples
    --------
    >>> from learnable.plots import biplot
    >>> "height" in biplot([[1.0, 0.0], [-1.0, 0.5]], [[0.9, 0.1], [0.2, 0.8]], names=["height", "weight"])
    True
    """
    points = np.asarray(scores, dtype=np.float64)
    arrows = np.asarray(loadings, dtype=np.float64)
    for what, table in (("scores", points), ("loadings", arrows)):
        if table.ndim != 2 or table.shape[1] != 2 or not np.isfinite(table).all():
            raise DataError(f"biplot: {what} must be numbers of shape (…, 2); got shape {table.shape}.")
    words = [f"x{j}" for j in range(len(arrows))] if names is None else [str(name) for name in names]
    if len(words) != len(arrows):
        raise DataError(f"biplot: there are {len(arrows)} columns and {len(words)} names.")
    longest = float(np.hypot(*arrows.T).max(initial=0.0))
    reach = float(np.hypot(*points.T).max(initial=0.0))
    arrows = arrows * (reach / longest if longest > 0 and reach > 0 else 1.0)
    frame = Frame.around(
        extent(points[:, 0], arrows[:, 0], pad=0.14),
        extent(points[:, 1], arrows[:, 1], pad=0.1),
        width=480.0,
        height=420.0,
    )
    marks = dots(frame, points[:, 0], points[:, 1])
    x0 = float(frame.x(0.0))
    y0 = float(frame.y(0.0))
    for name, (a, b) in zip(words, arrows, strict=True):
        x1 = float(frame.x(a))
        y1 = float(frame.y(b))
        line = f"M{compact(x0)} {compact(y0)}L{compact(x1)} {compact(y1)}"
        marks.append(tag("path", d=line, stroke="currentColor", stroke_width=1, opacity=0.7))
        anchor = "start" if x1 >= x0 else "end"
        down = 4.0 if abs(y1 - y0) < abs(x1 - x0) else (12.0 if y1 > y0 else -4.0)
        side = 3.0 if anchor == "start" else -3.0
        marks.append(tag("text", name, x=x1 + side, y=y1 + down, text_anchor=anchor, fill="currentColor", font_size=10))
    return frame.draw(title, *marks, x_label=labels[0], y_label=labels[1])
