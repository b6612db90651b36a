r"""Long short-term memory: x (T, n, d) → states (T, n, h), by back-propagation through time.

    (i, f, g, o) = (σ, σ, tanh, σ)(x_t Wx + h_{t−1} Wh + b),   c_t = f c_{t−1} + i g,   h_t = o tanh c_t,

from h₀ = c₀ = 0, products by entry. One compiled call makes all steps of a batch (`neural._lstm_kernels`). What ended
sequences and truncation do, `layers.recurrent` tells.

Reference: S. Hochreiter and J. Schmidhuber, Long short-term memory, Neural Computation 9, 1997.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...core.wide import panel_width
from .. import _lstm_kernels as steps
from .base import Array, Bench, Cache, as_rows
from .recurrent import OverTime

#: Gradients of weights up to so many bytes are added up step by step, inside the kernel: they and the gates of a step
#: stay in the caches. Greater ones are one product over all steps, by BLAS.
_INSIDE_BYTES = 2**18


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
    in_few_calls: ClassVar[bool] = True

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
        cache.w = w
        cache.u = u
        cache.k = k
        cache.n = n
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
            x.reshape(-1), x.shape[2], cache.lengths, cache.packed, cache.w, cache.u, cache.joined, cache.activations,
            cache.c, cache.tanh_c, self.units, out.reshape(-1),
        )  # fmt: skip

    def _open_back(self, cache: Cache, with_input: bool, dtype: Any) -> None:
        """Allocate what the way back needs."""
        cache.d_weights = np.empty_like(cache.weights)
        cache.inside = cache.d_weights.nbytes <= _INSIDE_BYTES
        all_steps = with_input or not cache.inside
        cache.d_gates = np.empty((cache.T if all_steps else 1) * cache.n * 4 * cache.u, dtype=dtype)
        cache.scratch = np.empty(cache.n * (2 * cache.u + cache.w), dtype=dtype)
        cache.packed_back = np.empty(cache.u * 4 * cache.u, dtype=dtype)

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Go back through time; the gradients of the weights are added up on the way, or by one product at the end."""
        if cache.d_gates is None:  # prediction needs none of these
            self._open_back(cache, out is not None, grad.dtype)
        steps.pack_transposed(cache.weights, cache.u, cache.w, cache.packed_back)
        inside = cache.d_weights if cache.inside else cache.d_weights[:0]
        steps.backward(
            grad.reshape(-1), self.units, cache.lengths, cache.packed_back, cache.w, cache.u,
            self.truncation or cache.T, cache.joined, cache.activations, cache.c, cache.tanh_c, cache.scratch,
            cache.d_gates, inside.reshape(-1),
        )  # fmt: skip
        d_gates = cache.d_gates.reshape(-1, 4 * cache.u)
        if not cache.inside:
            np.dot(cache.rows.T, d_gates, out=cache.d_weights)
            d_weights = cache.d_weights
        else:  # the kernel adds up panel by panel
            d_weights = cache.d_weights.reshape(-1, cache.k, cache.w).transpose(1, 0, 2).reshape(cache.k, -1)
        h = self.units
        by_gate = d_weights.reshape(cache.k, 4, cache.u)
        cache.gWh.reshape(h, 4, h)[...] = by_gate[:h, :, :h]
        cache.gWx.reshape(-1, 4, h)[...] = by_gate[cache.u : -1, :, :h]
        cache.gb.reshape(4, h)[...] = by_gate[-1, :, :h]
        if out is not None:
            np.dot(d_gates, cache.weights[cache.u : -1].T, out=as_rows(out))

    def step_gradients(self, cache: Cache) -> Array:
        """Return the gradients of the gates' inputs (T, n, ·) of the last way back, which gave dL/dx too."""
        found: Array = cache.d_gates.reshape(cache.T, cache.n, -1)
        return found
