r"""Gradient clipping: what keeps a step finite at a cliff.

- `Rescale(c)`: g ← g · min(1, c/‖g‖₂). The direction stays, the length is at most c.
- `Truncate(c)`: gⱼ ← min(c, max(−c, gⱼ)). Every component is at most c; the direction may change.

A gradient that overflowed has no direction left: both raise nothing and leave NaN as it is; `Truncate` maps infinities
to ±c, and `Rescale` keeps the infinite components only, as the limit of ever larger ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .steps import POSITIVE, Checked

Array = NDArray[np.float64]


class Clip(Protocol):
    """A map of gradients."""

    def __call__(self, gradient: Array) -> Array:
        """Return the clipped gradient, a new array."""
        ...


@dataclass(frozen=True)
class Rescale(Checked):
    """Shorten a gradient to a given length: g · min(1, c/‖g‖₂).

    Parameters
    ----------
    threshold : float
        c > 0.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.solvers import Rescale
    >>> Rescale(1.0)(np.array([30.0, 40.0])), Rescale(1.0)(np.array([0.3, 0.4]))
    (array([0.6, 0.8]), array([0.3, 0.4]))
    """

    threshold: float = field(metadata=POSITIVE)

    def __call__(self, gradient: Array) -> Array:
        """Return the rescaled gradient."""
        infinite = np.isinf(gradient)
        if infinite.any():
            gradient = np.where(infinite, np.sign(gradient), np.where(np.isnan(gradient), np.nan, 0.0))
            return np.asarray(gradient * (self.threshold / np.linalg.norm(gradient)))
        largest = float(np.abs(gradient).max(initial=0.0))
        if not largest > 0:
            return gradient.copy()
        norm = largest * float(np.linalg.norm(gradient / largest))  # squares of large numbers would overflow
        return gradient.copy() if norm <= self.threshold else gradient * (self.threshold / norm)


@dataclass(frozen=True)
class Truncate(Checked):
    """Cut every component of a gradient off at ±c.

    Parameters
    ----------
    threshold : float
        c > 0.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.solvers import Truncate
    >>> Truncate(1.0)(np.array([30.0, -0.5, -40.0]))
    array([ 1. , -0.5, -1. ])
    """

    threshold: float = field(metadata=POSITIVE)

    def __call__(self, gradient: Array) -> Array:
        """Return the truncated gradient."""
        return np.asarray(np.clip(gradient, -self.threshold, self.threshold))
