"""Regularisation paths: every coefficient against the penalty, with the chosen penalty marked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..core.errors import DataError
from .axes import MUTED, RULE, Array, Frame, extent
from .markup import Markup, clean, tag
from .optimization import COLOURS, pieces_within

_LABELS = len(COLOURS)  # the largest coefficients get a colour and their names
_LINE = 12.5  # height of a line of text
_LETTER = 6.2  # width of a letter
_LONGEST = 16  # letters of a name


def coefficient_paths(
    penalties: Any,
    coefs: Any,
    *,
    names: Sequence[str] | None = None,
    chosen: float | None = None,
    y_range: tuple[float, float] | None = None,
    title: str = "Coefficients along the path",
    x_label: str = "log₁₀ λ",
    y_label: str = "coefficient",
) -> Markup:
    """Draw every coefficient against log λ.

    The eight largest coefficients have colours and, at the smallest λ, names; names that would meet are moved apart.

    Parameters
    ----------
    penalties : array of shape (n_penalties,)
        λ > 0.
    coefs : array of shape (n_features, n_penalties)
        One row a coefficient, as `lasso_path` returns them.
    names : sequence of str, optional
        Names of the features; the largest coefficients are labelled.
    chosen : float, optional
        The λ > 0 to mark.
    y_range : (float, float), optional
        What to show, so that two figures can have one axis; by default everything.
    title, x_label, y_label : str
        Words; the title is read by screen readers and shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import coefficient_paths
    >>> coefficient_paths([1.0, 0.1], [[0.0, 2.0], [0.0, -1.0]], names=["a", "b"], chosen=0.5).startswith("<svg")
    True
    """
    levels, rows = np.asarray(penalties, dtype=np.float64).ravel(), np.atleast_2d(np.asarray(coefs, dtype=np.float64))
    if rows.shape[1] != len(levels) or not len(levels) or not (levels > 0).all():
        raise DataError(
            "coefficient_paths: needs penalties > 0 and one column of coefs for each; got "
            f"{len(levels)} penalties and coefs of shape {rows.shape}."
        )
    if names is not None and len(names) != len(rows):
        raise DataError(f"coefficient_paths: needs one name a coefficient; got {len(names)} for {len(rows)}.")
    if chosen is not None and not 0 < chosen < np.inf:
        raise DataError(f"coefficient_paths: chosen must be a number > 0; got {chosen!r}.")
    order = np.argsort(levels)
    xs, rows = np.log10(levels[order]), rows[:, order]
    largest = np.argsort(-np.abs(rows).max(axis=1), kind="stable")[:_LABELS].tolist()
    shown = [clean(name, _LONGEST) for name in names] if names is not None else []
    low, high = extent(xs, [] if chosen is None else [np.log10(chosen)])
    letters = max((len(shown[number]) for number in largest), default=0) if shown else 0
    share = letters * _LETTER / 340.0  # of the width, for the names
    frame = Frame.around((low - share / (1 - share) * (high - low), high), y_range or extent(rows, np.zeros(1)))
    marks: list[Any] = [frame.line([frame.x.low, frame.x.high], np.zeros(2), stroke=RULE, stroke_width=1)]
    if chosen is not None:
        at, ends = np.full(2, np.log10(chosen)), [frame.y.low, frame.y.high]
        marks.append(frame.line(at, ends, stroke="currentColor", stroke_dasharray="4 3"))
    ranges = (frame.x.low, frame.x.high), (frame.y.low, frame.y.high)
    colours = dict(zip(sorted(largest), COLOURS, strict=False))
    for number in sorted(range(len(rows)), key=lambda number: number in colours):
        colour = colours.get(number, MUTED)
        pieces = pieces_within(np.column_stack([xs, rows[number]]), *ranges)
        d = "".join(frame.path(piece[:, 0], piece[:, 1]) for piece in pieces)
        marks.append(tag("path", d=d, fill="none", stroke=colour, stroke_width=1.7, stroke_linejoin="round"))
    if shown:
        heights = _apart(np.array([float(frame.y(rows[number, 0])) for number in largest]), frame)
        for number, height in zip(largest, heights.tolist(), strict=True):
            place = {"x": float(frame.x(xs[0])) - 5.0, "y": height + 4.0, "text_anchor": "end"}
            marks.append(tag("text", shown[number], fill=colours[number], **place))
    return frame.draw(title, *marks, x_label=x_label, y_label=y_label)


def _apart(heights: Array, frame: Frame) -> Array:
    """Move heights as little as is simple until they are a line of text apart, within the frame if there is room."""
    moved = heights.copy()
    order = np.argsort(heights, kind="stable")
    for before, after in pairwise(order):  # downwards on the page
        moved[after] = max(moved[after], moved[before] + _LINE)
    limit = frame.y.start - 8.0
    for number in order[::-1]:  # and up again from the lower edge
        moved[number] = min(moved[number], limit)
        limit = moved[number] - _LINE
    return moved
