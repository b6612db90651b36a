"""Regularisation paths: every coefficient against the penalty, with the chosen penalty marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import DataError
from .axes import ACCENT, MUTED, RULE, Frame, extent
from .markup import Markup, tag

_LABELS = 8  # the largest coefficients get their names


def coefficient_paths(
    penalties: Any,
    coefs: Any,
    *,
    names: Sequence[str] | None = None,
    chosen: float | None = None,
    title: str = "Coefficients along the path",
    x_label: str = "log₁₀ λ",
    y_label: str = "coefficient",
) -> Markup:
    """Draw every coefficient against log λ.

    Parameters
    ----------
    penalties : array of shape (n_penalties,)
        λ > 0.
    coefs : array of shape (n_features, n_penalties)
        One row a coefficient, as `lasso_path` returns them.
    names : sequence of str, optional
        Names of the features; the largest coefficients are labelled.
    chosen : float, optional
        The λ to mark.
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
    order = np.argsort(levels)
    xs = np.log10(levels[order])
    frame = Frame.around(extent(xs), extent(rows, np.zeros(1)))
    marks: list[Any] = [frame.line(xs[[0, -1]], np.zeros(2), stroke=RULE, stroke_width=1)]
    if chosen is not None:
        at = np.full(2, np.log10(chosen))
        marks.append(frame.line(at, np.array(extent(rows, np.zeros(1), pad=0.0)), stroke=MUTED, stroke_dasharray="4 3"))
    largest = np.argsort(-np.abs(rows).max(axis=1), kind="stable")[:_LABELS]
    for number, row in enumerate(rows):
        colour = ACCENT if number in largest else MUTED
        marks.append(frame.line(xs, row[order], stroke=colour, stroke_width=1.5))
        if names is not None and number in largest:
            place = {"x": float(frame.x(xs[0])) + 3.0, "y": float(frame.y(row[order[0]])) - 3.0}
            marks.append(tag("text", str(names[number]), fill=colour, **place))
    return frame.draw(title, *marks, x_label=x_label, y_label=y_label)
