"""Sums of Gaussian kernel values while they are in the first-level cache: a tile serves above and below the diagonal.

`dots` holds ⟨a, z⟩ for some rows a and a tile of columns z of embedded points, as in `_kernels`; a line of values is
made, summed both ways and forgotten.
"""

from __future__ import annotations

from typing import Any

from ..core.jit import kernel
from ._kernels import gauss_tile, gauss_tile64


@kernel
def _sum_line(line: Any, weight: Any, weights: Any, below: Any) -> Any:
    """Return Σ line·weights, and add weight·line to `below`."""
    total = weights[0] - weights[0]
    for c in range(line.size):
        total += line[c] * weights[c]
        below[c] += line[c] * weight
    return total


@kernel
def gauss_sums(dots: Any, own: Any, other: Any, line: Any, slot: Any, v: Any, w: Any, beside: Any, below: Any) -> None:
    """Add Σ_z k(a, z) w(z) to `beside` (float64) and Σ_a k(a, z) v(a) to `below` (float32); `line` is (1, width)."""
    for a in range(own.size):
        gauss_tile(dots[a : a + 1], own[a : a + 1], other, line, slot, 0)
        beside[a] += _sum_line(line[0], v[a], w, below)


@kernel
def gauss_sums64(
    dots: Any, own: Any, other: Any, line: Any, slot: Any, v: Any, w: Any, beside: Any, below: Any
) -> None:
    """Do the same in float64."""
    for a in range(own.size):
        gauss_tile64(dots[a : a + 1], own[a : a + 1], other, line, slot, 0)
        beside[a] += _sum_line(line[0], v[a], w, below)
