"""Compiled kernels of recurrent cells: one step of time for all sequences of a batch, forwards and backwards.

A sequence that has ended (t >= its length) keeps its state; its gates have no gradient, and the gradient of its state
passes through. `tests/oracles/recurrent.py` has the same steps in NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.jit import ieee_kernel
from ..core.simd import exp

# In all kernels: n sequences, h units; `pre` (n, gates·h) holds xWx + b and becomes the gates' outputs; `rec` is hWh.


@ieee_kernel
def _sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + exp(min(-np.float64(x), 700.0)))


@ieee_kernel
def _tanh(x: Any) -> Any:
    """Tanh x = 1 − 2/(e^2x + 1), from the series near 0, where the difference would lose digits."""
    v = np.float64(x)
    w = v * v
    near = v * (1.0 + w * (-1.0 / 3.0 + w * (2.0 / 15.0 + w * (-17.0 / 315.0 + w * (62.0 / 2835.0)))))
    far = 1.0 - 2.0 / (exp(min(2.0 * v, 700.0)) + 1.0)
    return near if w < 1e-3 else far


@ieee_kernel
def lstm_step(pre: Any, rec: Any, c: Any, h: Any, lengths: Any, t: int, c_new: Any, tanh_c: Any, h_new: Any) -> None:
    """OUT pre: i, f, g, o; c_new = f·c + i·g; tanh_c; h_new = o·tanh_c."""
    n, u = c.shape
    for i in range(n):
        if t >= lengths[i]:
            for j in range(u):
                c_new[i, j] = c[i, j]
                h_new[i, j] = h[i, j]
                tanh_c[i, j] = 0.0
            continue
        row = pre[i]
        add = rec[i]
        for j in range(2 * u):
            row[j] = _sigmoid(row[j] + add[j])
        middle = row[2 * u : 3 * u]
        more = add[2 * u : 3 * u]
        for j in range(u):
            middle[j] = _tanh(middle[j] + more[j])
        last = row[3 * u :]
        rest = add[3 * u :]
        for j in range(u):
            last[j] = _sigmoid(last[j] + rest[j])
        forget = row[u : 2 * u]
        for j in range(u):
            s = forget[j] * c[i, j] + row[j] * middle[j]
            c_new[i, j] = s
            y = _tanh(s)
            tanh_c[i, j] = y
            h_new[i, j] = last[j] * y


@ieee_kernel
def lstm_back(
    grad: Any, gates: Any, c: Any, tanh_c: Any, lengths: Any, t: int, dh: Any, dc: Any, hold: Any, out: Any
) -> None:
    """IN dh: gradient of h after this step from later ones. OUT dc: that of c before it; out: of the gates' inputs.

    OUT hold: what passes through sequences that have ended.
    """
    n, u = dc.shape
    one = dc.dtype.type(1.0)
    for i in range(n):
        if t >= lengths[i]:
            for j in range(u):
                hold[i, j] = dh[i, j] + grad[i, j]
            for j in range(4 * u):
                out[i, j] = 0.0
            continue
        row = gates[i]
        forget = row[u : 2 * u]
        middle = row[2 * u : 3 * u]
        last = row[3 * u :]
        d_in = out[i, :u]
        d_forget = out[i, u : 2 * u]
        d_middle = out[i, 2 * u : 3 * u]
        d_last = out[i, 3 * u :]
        for j in range(u):
            hold[i, j] = 0.0
            d = dh[i, j] + grad[i, j]
            y = tanh_c[i, j]
            o = last[j]
            s = dc[i, j] + d * o * (one - y * y)
            d_last[j] = d * y * o * (one - o)
            d_in[j] = s * middle[j] * row[j] * (one - row[j])
            d_forget[j] = s * c[i, j] * forget[j] * (one - forget[j])
            d_middle[j] = s * row[j] * (one - middle[j] * middle[j])
            dc[i, j] = s * forget[j]


@ieee_kernel
def gru_step(pre: Any, rec: Any, b: Any, h: Any, lengths: Any, t: int, inner: Any, h_new: Any) -> None:
    """OUT pre: z, r, n; inner = hWₙ + b; n = tanh(xWₙ + r·inner); h_new = (1 − z)n + zh."""
    n, u = h.shape
    one = h.dtype.type(1.0)
    for i in range(n):
        if t >= lengths[i]:
            for j in range(u):
                h_new[i, j] = h[i, j]
            continue
        row = pre[i]
        add = rec[i]
        for j in range(2 * u):
            row[j] = _sigmoid(row[j] + add[j])
        reset = row[u : 2 * u]
        new = row[2 * u :]
        more = add[2 * u :]
        for j in range(u):
            q = more[j] + b[j]
            inner[i, j] = q
            new[j] = _tanh(new[j] + reset[j] * q)
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
    for i in range(n):
        if t >= lengths[i]:
            for j in range(u):
                h_new[i, j] = h[i, j]
        elif relu:
            for j in range(u):
                h_new[i, j] = max(pre[i, j] + rec[i, j], zero)
        else:
            for j in range(u):
                h_new[i, j] = _tanh(pre[i, j] + rec[i, j])


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
