"""A confusion matrix as a map of heat, for more classes than a table of numbers can hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ..core.errors import DataError
from .axes import ACCENT, MUTED, RULE
from .markup import Markup, isolated, svg, tag

#: Shades of the map; cells of one shade are one path, so that 100 classes cost little.
_SHADES: Final = 12
_SIDE: Final = 400.0


def confusion_matrix(labels: Sequence[str], counts: Any, *, title: str = "Confusion matrix") -> Markup:
    """Draw each cell as dark as its share of the row: the actual class downwards, the predicted one across.

    Parameters
    ----------
    labels : sequence of str
        Names of the classes; written at the sides if there are at most 30.
    counts : array of shape (n_classes, n_classes)
        Rows that are of class i and were predicted as class j.
    title : str
        Words for screen readers, shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import confusion_matrix
    >>> confusion_matrix(["no", "yes"], [[8, 2], [1, 9]]).startswith("<svg")
    True
    """
    table = np.asarray(counts, dtype=np.float64)
    if table.shape != (len(labels), len(labels)):
        size = " × ".join(str(n) for n in table.shape)
        raise DataError(f"confusion_matrix: {len(labels)} labels need as many rows and columns; got {size}.")
    shares = row_shares(table)
    named = len(labels) <= 30
    names = [isolated(label, 14) for label in labels]
    left = 24.0 + (6.0 * max((len(name) for name in names), default=0) if named else 0.0)
    side = _SIDE / max(len(labels), 1)
    parts = []
    shade = np.ceil(shares * _SHADES).astype(int)
    for level in range(1, _SHADES + 1):
        cells = np.argwhere(shade == level)
        d = "".join(_cell(left + j * side, 4.0 + i * side, side) for i, j in cells)
        if d:
            parts.append(tag("path", d=d, fill=ACCENT, opacity=0.08 + 0.92 * level / _SHADES))
    parts.append(tag("rect", x=left, y=4, width=_SIDE, height=_SIDE, fill="none", stroke=RULE))
    if named:
        for k, name in enumerate(names):
            middle = (k + 0.5) * side
            parts.append(tag("text", name, x=left - 6, y=8.0 + middle, text_anchor="end", fill=MUTED))
            turn = f"translate({left + middle + 4:.2f} {_SIDE + 12:.2f}) rotate(-90)"
            parts.append(tag("text", name, transform=turn, text_anchor="end", fill=MUTED))
    depth = left if named else 22.0
    parts.append(
        tag("text", "predicted", x=left + _SIDE / 2, y=_SIDE + depth, text_anchor="middle", fill="currentColor")
    )
    turn = f"translate(11 {_SIDE / 2:.0f}) rotate(-90)"
    parts.append(tag("text", "actual", transform=turn, text_anchor="middle", fill="currentColor"))
    return svg(left + _SIDE + 4, _SIDE + depth + 6, title, *parts, font_size="11", font_family="inherit")


def row_shares(counts: Any) -> Any:
    """Return the shares of each row; a row of zeros stays one."""
    table = np.nan_to_num(np.asarray(counts, dtype=np.float64))
    total = table.sum(axis=1, keepdims=True)
    return np.divide(table, total, out=np.zeros_like(table), where=total > 0)


def _cell(x: float, y: float, side: float) -> str:
    gap = min(0.5, side / 16)
    inner = side - 2 * gap
    return f"M{x + gap:.1f} {y + gap:.1f}h{inner:.1f}v{inner:.1f}h{-inner:.1f}z"
