"""Small images side by side: digits, or what the first layer of a network looks for."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..core.errors import DataError
from .axes import ACCENT, RULE
from .markup import Markup, svg, tag

#: Shades on each side of zero; cells of one shade are one path.
_SHADES: Final = 6
_CELL: Final = 3.0
_GAP: Final = 6.0
_NEGATIVE: Final = "#d55e00"


def image_grid(images: Any, *, columns: int = 8, title: str = "Images") -> Markup:
    """Draw small images in a grid, each scaled by its own largest size: positive blue, negative orange.

    Parameters
    ----------
    images : (n, height, width) array
        Finite numbers.
    columns : int, default=8
        Images of a row.
    title : str
        Words for screen readers, shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.plots import image_grid
    >>> image_grid(np.eye(4).reshape(1, 4, 4)).startswith("<svg")
    True
    """
    stack = np.asarray(images, dtype=np.float64)
    if stack.ndim != 3 or 0 in stack.shape or not np.isfinite(stack).all():
        raise DataError(f"image_grid: images must be finite numbers (n, height, width); got shape {stack.shape}.")
    n, height, width = stack.shape
    across = min(columns, n)
    size = np.abs(stack).max(axis=(1, 2), keepdims=True)
    shade = np.rint(_SHADES * stack / np.where(size > 0, size, 1.0)).astype(int)
    left = (np.arange(n) % across) * (width * _CELL + _GAP)
    top = (np.arange(n) // across) * (height * _CELL + _GAP)
    parts = []
    for level in range(-_SHADES, _SHADES + 1):
        cells = np.argwhere(shade == level) if level else np.empty((0, 3), dtype=int)
        d = "".join(
            f"M{left[k] + j * _CELL:g} {top[k] + i * _CELL:g}h{_CELL:g}v{_CELL:g}h-{_CELL:g}z" for k, i, j in cells
        )
        if d:
            colour = ACCENT if level > 0 else _NEGATIVE
            parts.append(tag("path", d=d, fill=colour, opacity=abs(level) / _SHADES))
    frames = "".join(
        f"M{x:g} {y:g}h{width * _CELL:g}v{height * _CELL:g}h-{width * _CELL:g}z" for x, y in zip(left, top, strict=True)
    )
    parts.append(tag("path", d=frames, fill="none", stroke=RULE))
    total = float(left.max() + width * _CELL), float(top.max() + height * _CELL)
    return svg(*total, title, *parts)
