r"""Long short-term memory: x (T, n, d) → states (T, n, h), by back-propagation through time.

    (i, f, g, o) = (σ, σ, tanh, σ)(x_t Wx + h_{t−1} Wh + b),   c_t = f c_{t−1} + i g,   h_t = o tanh c_t,

from h₀ = c₀ = 0, products by entry. One compiled call makes all steps of a batch (`neural._lstm_kernels`); the
gradient of all weights is one product over all steps. What ended sequences and truncation do, `layers.recurrent` tells.

Reference: S. Hochreiter and J. Schmidhuber, Long short-term memory, Neural Computation 9, 1997.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...core.wide import panel_width
from .. import _lstm_kernels as steps
from .base import Array, Bench, Cache, as_rows
from .recurrent import OverTime


@dataclass(frozen=True)
class LSTM(OverTime):
    """Long short-term memory: the cell c adds what the input gate lets in and loses what the forget gate lets go.

    Parameters
    ----------
    units : int
        h.
    truncation : int or None, default=None
        No gradient passes back at every k-th step.
    """

    gates: ClassVar[int] = 4

    def adjust_start(self, views: dict[str, Array], rng: np.random.Generator) -> None:
        """Let the forget gate begin open, so that the cell remembers (b_f = 1)."""
        views["b"][self.units : 2 * self.units] = 1.0

    def open(self, bench: Bench) -> Cache:
        """Return views, and all states of a pass; units are padded to whole panels (see the kernels)."""
        cache = self.begin(bench)
        T, n = bench.lead
        w = panel_width(bench.dtype)
        u = -(-self.units // w) * w
        k = u + bench.n_inputs + 1
        cache.w, cache.u, cache.k, cache.n = w, u, k, n
        cache.weights = np.zeros((k, 4 * u), dtype=bench.dtype)
        cache.packed = np.empty(k * 4 * u, dtype=bench.dtype)
        joined = np.zeros((T + 1, n, k), dtype=bench.dtype)
        joined[:, :, -1] = 1.0
        cache.joined = joined.reshape(-1)
        cache.rows = joined[:-1].reshape(-1, k)
        cache.activations = np.empty(T * n * 4 * u, dtype=bench.dtype)
        cache.c = np.zeros((T + 1) * n * u, dtype=bench.dtype)
        cache.tanh_c = np.zeros(T * n * u, dtype=bench.dtype)
        cache.d_gates = None
        return cache

    def _fill(self, cache: Cache) -> None:
        """Lay the weights out with padded units, and pack them."""
        h = self.units
        W = cache.weights
        by_gate = W.reshape(cache.k, 4, cache.u)
        by_gate[:h, :, :h] = cache.Wh.reshape(h, 4, h)
        by_gate[cache.u : -1, :, :h] = cache.Wx.reshape(-1, 4, h)
        by_gate[-1, :, :h] = cache.b.reshape(4, h)
        steps.pack(W, cache.w, cache.packed)

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Write all states h₁ … h_T."""
        self._fill(cache)
        steps.forward(
            x, cache.lengths, cache.packed, cache.w, cache.u, cache.joined, cache.activations, cache.c, cache.tanh_c, out
        )  # fmt: skip

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Go back through time, then form the gradients of all weights by one product."""
        if cache.d_gates is None:  # prediction needs none of these
            cache.d_gates = np.empty_like(cache.activations)
            cache.scratch = np.empty(3 * cache.n * cache.u, dtype=grad.dtype)
            cache.packed_back = np.empty(cache.u * 4 * cache.u, dtype=grad.dtype)
            cache.d_weights = np.empty_like(cache.weights)
        steps.pack_transposed(cache.weights, cache.u, cache.w, cache.packed_back)
        steps.backward(
            grad, cache.lengths, cache.packed_back, cache.w, cache.u, self.truncation or cache.T, cache.activations,
            cache.c, cache.tanh_c, cache.scratch, cache.d_gates,
        )  # fmt: skip
        d_gates = cache.d_gates.reshape(-1, 4 * cache.u)
        np.dot(cache.rows.T, d_gates, out=cache.d_weights)
        h = self.units
        by_gate = cache.d_weights.reshape(cache.k, 4, cache.u)
        cache.gWh.reshape(h, 4, h)[...] = by_gate[:h, :, :h]
        cache.gWx.reshape(-1, 4, h)[...] = by_gate[cache.u : -1, :, :h]
        cache.gb.reshape(4, h)[...] = by_gate[-1, :, :h]
        if out is not None:
            np.dot(d_gates, cache.weights[cache.u : -1].T, out=as_rows(out))
