"""Curves: a line with a band, receiver operating characteristics, reliability diagrams, learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import DataError
from .axes import ACCENT, MUTED, Array, Frame, extent, numbers
from .markup import Markup, isolated, tag

_UNIT = (-0.02, 1.02)


def line_with_band(
    x: Any,
    y: Any,
    low: Any = None,
    high: Any = None,
    *,
    title: str = "Line",
    x_label: str = "x",
    y_label: str = "y",
) -> Markup:
    """Draw a line, with a band from `low` to `high` if both are given.

    Parameters
    ----------
    x, y : arrays of shape (n,)
        Points of the line, in the order in which they are joined.
    low, high : arrays of shape (n,), optional
        Ends of an interval at each point.
    title, x_label, y_label : str
        Words; the title is read by screen readers and shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import line_with_band
    >>> line_with_band([1, 2, 3], [0.5, 0.7, 0.8], [0.4, 0.6, 0.7], [0.6, 0.8, 0.9]).startswith("<svg")
    True
    """
    xs, ys = numbers("line_with_band", x=x, y=y)
    lower, upper = _band("line_with_band", xs, low, high)
    frame = Frame.around(extent(xs), extent(ys, lower, upper))
    return frame.draw(
        title,
        _shade(frame, xs, lower, upper),
        frame.line(xs, ys, stroke=ACCENT, stroke_width=2),
        x_label=x_label,
        y_label=y_label,
    )


def learning_curve(
    sizes: Any,
    train: Any,
    test: Any,
    low: Any = None,
    high: Any = None,
    *,
    title: str = "Learning curve",
    x_label: str = "training rows",
    y_label: str = "score",
) -> Markup:
    """Draw the scores on training and on new rows as the training set grows.

    Parameters
    ----------
    sizes : array of shape (n,)
        Numbers of training rows.
    train, test : arrays of shape (n,)
        Mean scores.
    low, high : arrays of shape (n,), optional
        Interval of the score on new rows.
    title, x_label, y_label : str
        Words; the title is read by screen readers and shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import learning_curve
    >>> "new rows" in learning_curve([10, 20, 40], [0.9, 0.88, 0.87], [0.5, 0.7, 0.8])
    True
    """
    xs, seen, new = numbers("learning_curve", sizes=sizes, train=train, test=test)
    lower, upper = _band("learning_curve", xs, low, high)
    frame = Frame.around(extent(xs), extent(seen, new, lower, upper))
    marks = [
        _shade(frame, xs, lower, upper),
        frame.line(xs, seen, stroke=MUTED, stroke_width=1.5, stroke_dasharray="4 3"),
        frame.line(xs, new, stroke=ACCENT, stroke_width=2),
        *(_dot(frame, x, y, ACCENT) for x, y in zip(xs, new, strict=True)),
    ]
    above = _last(seen) >= _last(new)
    marks.append(_end_label(frame, xs, seen, "training rows", MUTED, above))
    marks.append(_end_label(frame, xs, new, "new rows", ACCENT, not above))
    return frame.draw(title, *marks, x_label=x_label, y_label=y_label)


def roc_curves(
    curves: Sequence[tuple[str, Any, Any]], *, title: str = "ROC curve", highlight: int | None = None
) -> Markup:
    """Draw true against false positive rates, with the diagonal of a guess.

    Parameters
    ----------
    curves : sequence of (label, fpr, tpr)
        One entry a curve.
    title : str
        Words for screen readers, shown on hover.
    highlight : int, optional
        The curve to emphasise; all others become thin. By default none if there are up to three.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import roc_curves
    >>> roc_curves([("yes", [0.0, 0.2, 1.0], [0.0, 0.9, 1.0])]).count("<title>")
    2
    """
    frame = Frame.around(_UNIT, _UNIT, width=330.0, height=310.0)
    marks = [frame.line([0, 1], [0, 1], stroke=MUTED, stroke_dasharray="2 3")]
    order = sorted(range(len(curves)), key=lambda k: k == highlight)
    for k in order:
        label, fpr, tpr = curves[k]
        xs, ys = numbers("roc_curves", fpr=fpr, tpr=tpr)
        faint = len(curves) > 3 and k != highlight
        dashes = None if len(curves) > 3 else (None, "6 3", "2 2")[k % 3]
        marks.append(
            tag(
                "path",
                tag("title", isolated(label, 80)),
                d=frame.path(xs, ys),
                fill="none",
                stroke=MUTED if faint else ACCENT,
                stroke_width=1 if faint else 2,
                opacity=0.45 if faint else None,
                stroke_dasharray=dashes,
                stroke_linejoin="round",
            )
        )
    return frame.draw(title, *marks, x_label="false positive rate", y_label="true positive rate")


def reliability_diagram(
    mean_predicted: Any, observed: Any, count: Any = None, *, title: str = "Reliability diagram"
) -> Markup:
    """Draw how often the event happened against how likely it was called; a calibrated model follows the diagonal.

    Parameters
    ----------
    mean_predicted, observed : arrays of shape (n_bins,)
        Mean predicted probability and observed frequency of each bin; an empty bin is NaN or None.
    count : array of shape (n_bins,), optional
        Rows in each bin; the area of a point grows with it.
    title : str
        Words for screen readers, shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import reliability_diagram
    >>> reliability_diagram([0.1, 0.5, 0.9], [0.12, 0.45, 0.93], [50, 20, 40]).count("<circle")
    3
    """
    said, seen = numbers("reliability_diagram", mean_predicted=mean_predicted, observed=observed)
    (rows,) = numbers("reliability_diagram", count=np.ones(len(said)) if count is None else count)
    if len(rows) != len(said):
        raise DataError(f"reliability_diagram: {len(said)} bins need as many counts; got {len(rows)}.")
    known = np.isfinite(said) & np.isfinite(seen)
    said = said[known]
    seen = seen[known]
    rows = np.nan_to_num(rows[known])
    frame = Frame.around(_UNIT, _UNIT, width=330.0, height=310.0)
    radius = 2.5 + 5.5 * np.sqrt(rows / max(float(rows.max(initial=0.0)), 1.0))
    marks = [
        frame.line([0, 1], [0, 1], stroke="currentColor", stroke_width=1, opacity=0.7),
        frame.line(said, seen, stroke=ACCENT, stroke_width=1.5),
        *(_dot(frame, x, y, ACCENT, r) for x, y, r in zip(said, seen, radius, strict=True)),
    ]
    return frame.draw(title, *marks, x_label="predicted probability", y_label="observed frequency")


def _band(owner: str, xs: Array, low: Any, high: Any) -> tuple[Array, Array]:
    if low is None or high is None:
        return np.full(len(xs), np.nan), np.full(len(xs), np.nan)
    _, lower, upper = numbers(owner, x=xs, low=low, high=high)
    return lower, upper


def _shade(frame: Frame, xs: Array, lower: Array, upper: Array) -> Markup | None:
    known = np.isfinite(xs) & np.isfinite(lower) & np.isfinite(upper)
    if known.sum() < 2:
        return None
    there = frame.path(xs[known], upper[known])
    back = frame.path(xs[known][::-1], lower[known][::-1]).replace("M", "L", 1)
    return tag("path", d=f"{there}{back}z", fill=ACCENT, opacity=0.16)


def _dot(frame: Frame, x: float, y: float, colour: str, radius: float = 2.8) -> Markup | None:
    if not (np.isfinite(x) and np.isfinite(y)):
        return None
    return tag("circle", cx=float(frame.x(x)), cy=float(frame.y(y)), r=float(radius), fill=colour)


def _last(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(known[-1]) if known.size else -np.inf


def _end_label(frame: Frame, xs: Array, ys: Array, text: str, colour: str, above: bool) -> Markup | None:
    known = np.flatnonzero(np.isfinite(xs) & np.isfinite(ys))
    if not known.size:
        return None
    at = known[-1]
    height = float(frame.y(ys[at])) + (-7.0 if above else 15.0)
    height = min(max(height, frame.y.end + 8.0), frame.y.start - 4.0)
    place = {"x": frame.x.end, "y": height, "text_anchor": "end"}
    # A halo in the colour of the page keeps the words legible where lines cross them.
    halo = {"stroke": "var(--ln-page, #fff)", "stroke_width": 3, "paint_order": "stroke", "stroke_linejoin": "round"}
    return tag("text", text, fill=colour, font_weight="600", **place, **halo)
