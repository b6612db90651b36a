r"""Piecewise linear features of numbers: how far a value has come in each bin of its column.

With the edges e₀ < e₁ < … < e_B of a column, bin t passes on (x − e_t)/(e_{t+1} − e_t), cut to [0, 1]; the first bin is
not cut below and the last not above, so that the encoding is one-to-one. The column itself goes first. A network sees
steps and peaks of a column at the scale of its quantiles from the start, and stays continuous in it.

Reference: Y. Gorishniy, I. Rubachev and A. Babenko, On embeddings for numerical features in tabular deep learning,
NeurIPS 2022, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._kernels import encode_bins
from .base import Array, Bench, Cache, Layer


@dataclass(frozen=True, eq=False)
class PiecewiseLinear(Layer):
    """(x, how far x has come in each bin), column by column.

    Parameters
    ----------
    edges : (d, B + 1) array
        Edges of the bins of each column, not decreasing; bins without width pass 0 on.
    """

    edges: Any

    def width(self, n_inputs: int) -> int:
        """Return d(1 + B)."""
        return n_inputs * int(np.shape(self.edges)[1])

    def open(self, bench: Bench) -> Cache:
        """Return the edges and one over the widths of the bins, in the network's dtype."""
        edges = np.ascontiguousarray(self.edges, dtype=np.float64)
        widths = np.diff(edges, axis=1)
        inverse = np.where(widths > 0, 1.0 / np.where(widths > 0, widths, 1.0), 0.0)
        return Cache(edges=edges.astype(bench.dtype), inverse=inverse.astype(bench.dtype))

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Write the columns, then their bins."""
        rows = x.reshape(-1, x.shape[-1])
        target = out.reshape(-1, out.shape[-1])
        cache.x = rows
        encode_bins(rows, cache.edges, cache.inverse, target)

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Write the gradient of x: the slope of the bin that it is in."""
        if out is None:
            return
        d, B = cache.inverse.shape
        rows = grad.reshape(-1, grad.shape[-1])
        bins = np.empty((len(rows), d * (B + 1)), dtype=grad.dtype)
        encode_bins(cache.x, cache.edges, cache.inverse, bins)
        place = bins[:, d:].reshape(-1, d, B)
        inside = (place > 0) & (place < 1)
        inside[:, :, 0] = place[:, :, 0] < 1
        inside[:, :, -1] = place[:, :, -1] > 0
        slopes = rows[:, d:].reshape(-1, d, B) * cache.inverse
        out.reshape(-1, d)[:] = rows[:, :d] + (slopes * inside).sum(axis=2)
