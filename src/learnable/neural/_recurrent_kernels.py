"""Compiled kernels of plain and gated recurrent cells: one step of time for all sequences of a batch, both ways.

A sequence that has ended (t >= its length) keeps its state; its gates have no gradient, and the gradient of its state
passes through. `neural._lstm_kernels` has long short-term memory; `tests/oracles/recurrent.py` has the steps in NumPy.
"""

from __future__ import annotations

from typing import Any

from ..core.jit import ieee_kernel
from ..core.simd import exp_of_either

# In all kernels: n sequences, h units; `pre` (n, gates·h) holds xWx + b and becomes the gates' outputs; `rec` is hWh.


@ieee_kernel
def _sigmoid(x: Any, one: Any, top: Any) -> Any:
    """1/(1 + e^(−x)) in the type of x; `one` and `top` = 80 have it too, so that nothing is widened."""
    return one / (one + exp_of_either(min(-x, top)))


@ieee_kernel
def _tanh(x: Any, one: Any, top: Any) -> Any:
    """2/(1 + e^(−2x)) − 1, which is tanh x; exact to rounding of 1, which is what a unit's output is compared with."""
    return (one + one) / (one + exp_of_either(min(-(x + x), top))) - one


@ieee_kernel
def gru_step(pre: Any, rec: Any, b: Any, h: Any, lengths: Any, t: int, inner: Any, h_new: Any) -> None:
    """OUT pre: z, r, n; inner = hWₙ + b; n = tanh(xWₙ + r·inner); h_new = (1 − z)n + zh."""
    n, u = h.shape
    one = h.dtype.type(1.0)
    top = h.dtype.type(80.0)
    for i in range(n):
        if t >= lengths[i]:
            for j in range(u):
                h_new[i, j] = h[i, j]
            continue
        row = pre[i]
        add = rec[i]
        for j in range(2 * u):
            row[j] = _sigmoid(row[j] + add[j], one, top)
        reset = row[u : 2 * u]
        new = row[2 * u :]
        more = add[2 * u :]
        for j in range(u):
            q = more[j] + b[j]
            inner[i, j] = q
            new[j] = _tanh(new[j] + reset[j] * q, one, top)
            h_new[i, j] = (one - row[j]) * new[j] + row[j] * h[i, j]


@ieee_kernel
def gru_back(
    grad: Any, gates: Any, inner: Any, h: Any, lengths: Any, t: int, dh: Any, hold: Any, out: Any, rec_out: Any
) -> None:
    """OUT out: gradients of the gates' inputs from x; rec_out: of hWh + b; hold: what reaches h by z."""
    n, u = h.shape
    one = h.dtype.type(1.0)
    for i in range(n):
        if t >= lengths[i]:
            for j in range(u):
                hold[i, j] = dh[i, j] + grad[i, j]
            for j in range(3 * u):
                out[i, j] = 0.0
                rec_out[i, j] = 0.0
            continue
        row = gates[i]
        reset = row[u : 2 * u]
        new = row[2 * u :]
        d_update = out[i, :u]
        d_reset = out[i, u : 2 * u]
        d_new = out[i, 2 * u :]
        for j in range(u):
            d = dh[i, j] + grad[i, j]
            z = row[j]
            r = reset[j]
            hold[i, j] = d * z
            dn = d * (one - z) * (one - new[j] * new[j])
            d_new[j] = dn
            d_update[j] = d * (h[i, j] - new[j]) * z * (one - z)
            d_reset[j] = dn * inner[i, j] * r * (one - r)
            rec_out[i, 2 * u + j] = dn * r
        for j in range(2 * u):
            rec_out[i, j] = out[i, j]


@ieee_kernel
def rnn_step(pre: Any, rec: Any, h: Any, lengths: Any, t: int, relu: bool, h_new: Any) -> None:
    """OUT h_new = tanh(pre + rec), or max(·, 0)."""
    n, u = h.shape
    zero = h.dtype.type(0.0)
    one = h.dtype.type(1.0)
    top = h.dtype.type(80.0)
    for i in range(n):
        if t >= lengths[i]:
            for j in range(u):
                h_new[i, j] = h[i, j]
        elif relu:
            for j in range(u):
                h_new[i, j] = max(pre[i, j] + rec[i, j], zero)
        else:
            for j in range(u):
                h_new[i, j] = _tanh(pre[i, j] + rec[i, j], one, top)


@ieee_kernel
def rnn_back(grad: Any, h: Any, lengths: Any, t: int, relu: bool, dh: Any, hold: Any, out: Any) -> None:
    """OUT out: gradient of the unit's input; hold: what passes through sequences that have ended."""
    n, u = dh.shape
    one = dh.dtype.type(1.0)
    zero = dh.dtype.type(0.0)
    for i in range(n):
        for j in range(u):
            d = dh[i, j] + grad[i, j]
            if t >= lengths[i]:
                hold[i, j] = d
                out[i, j] = zero
            else:
                hold[i, j] = zero
                y = h[i, j]
                out[i, j] = d * ((one if y > 0 else zero) if relu else one - y * y)


@ieee_kernel
def add_hold(hold: Any, dh: Any) -> None:
    """OUT dh += hold."""
    n, u = dh.shape
    for i in range(n):
        for j in range(u):
            dh[i, j] += hold[i, j]
