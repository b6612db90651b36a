"""Compiled kernels of long short-term memory: all steps of a batch in one call, forwards and backwards.

Units are padded to u numbers, a multiple of a panel's width (`core.wide`), so that no loop has a rest; weights of padded
units are zero, and so are their states and gradients. One array holds what every step multiplies:

    joined (T + 1, n, k): h_{t−1} (u), x_t (d), 1        weights (k, 4u): Wh, Wx, b, packed into panels
    gates (T, n, 4u): first the product, then i, f, g, o

A sequence that has ended (t >= its length) keeps its state; its gates have no gradient, and the gradient of its state
passes through. `tests/oracles/recurrent.py` has the same steps in NumPy.
"""

from __future__ import annotations

from typing import Any

from ..core.jit import ieee_kernel
from ..core.wide import TILE_ROWS, add, fma, load, mul, sigmoid, spread, store, sub, tanh, tile


@ieee_kernel
def pack(W: Any, w: int, packed: Any) -> None:
    """OUT packed (n_columns/w panels of k rows of w numbers): W (k, n_columns) in the order of use."""
    at = 0
    k = W.shape[0]
    for p in range(W.shape[1] // w):
        for s in range(k):
            row = W[s, p * w : (p + 1) * w]
            out = packed[at : at + w]
            for q in range(w):
                out[q] = row[q]
            at += w


@ieee_kernel
def pack_transposed(W: Any, u: int, w: int, packed: Any) -> None:
    """OUT packed (u/w panels of n_columns rows of w numbers): the first u rows of W, transposed."""
    n_columns = W.shape[1]
    for p in range(u // w):
        for q in range(w):
            row = W[p * w + q]
            out = packed[p * n_columns * w + q : (p + 1) * n_columns * w]
            for s in range(n_columns):
                out[s * w] = row[s]


@ieee_kernel
def multiply(
    a: Any, first: int, n: int, k: int, row_step: int, packed: Any, w: int, columns: int, c: Any, at: int
) -> None:
    """OUT c[at:] (n, columns) = n rows of k numbers of a, from a[first] on, times packed weights."""
    for p in range(columns // w):
        for i in range(0, n, TILE_ROWS):
            rows = min(TILE_ROWS, n - i)
            tile(a, first + i * row_step, rows, row_step, packed, p * k * w, k, c, at + i * columns + p * w, columns)


@ieee_kernel
def forward(
    x: Any, lengths: Any, packed: Any, w: int, u: int, joined: Any, gates: Any, c: Any, tanh_c: Any, out: Any
) -> None:
    """OUT joined, gates, c (T + 1, n, u), tanh_c (T, n, u), all flat; out (T, n, units) has the states.

    x (T, n, d). Before: joined and c have zeros for t = 0, joined has its ones.
    """
    T, n, d = x.shape
    units = out.shape[2]
    k = u + d + 1
    half = w // 2
    for t in range(T):
        for i in range(n):
            row = joined[(t * n + i) * k + u : (t * n + i + 1) * k]
            given = x[t, i]
            for j in range(d):
                row[j] = given[j]
        multiply(joined, t * n * k, n, k, k, packed, w, 4 * u, gates, t * n * 4 * u)
        for i in range(n):
            here = t * n + i
            now = here * u
            after = now + n * u
            state = (here + n) * k
            if t >= lengths[i]:
                for j in range(0, u, half):
                    store(c, after + j, load(c, now + j))
                    store(joined, state + j, load(joined, here * k + j))
            else:
                g = here * 4 * u
                for j in range(0, u, half):
                    let_in = sigmoid(load(gates, g + j))
                    forget = sigmoid(load(gates, g + u + j))
                    new = tanh(load(gates, g + 2 * u + j))
                    let_out = sigmoid(load(gates, g + 3 * u + j))
                    cell = fma(forget, load(c, now + j), mul(let_in, new))
                    squashed = tanh(cell)
                    store(gates, g + j, let_in)
                    store(gates, g + u + j, forget)
                    store(gates, g + 2 * u + j, new)
                    store(gates, g + 3 * u + j, let_out)
                    store(c, after + j, cell)
                    store(tanh_c, now + j, squashed)
                    store(joined, state + j, mul(let_out, squashed))
            row = joined[state : state + u]
            result = out[t, i]
            for j in range(units):
                result[j] = row[j]


@ieee_kernel
def backward(
    grad: Any, lengths: Any, packed: Any, w: int, u: int, cuts: int, gates: Any, c: Any, tanh_c: Any, scratch: Any,
    d_gates: Any,
) -> None:  # fmt: skip
    """OUT d_gates (T, n, 4u): gradients of the gates' inputs, from grad (T, n, units), that of the states.

    scratch (3, n, u), flat: gradients of h from later steps with grad, of c, and of h before a step. No gradient passes
    from step t to the one before it where t is a multiple of `cuts`.
    """
    T, n, units = grad.shape
    half = w // 2
    size = n * u
    dh = scratch[:size]
    dc = scratch[size : 2 * size]
    before = scratch[2 * size : 3 * size]
    one = spread(scratch.dtype.type(1.0))
    zero = spread(scratch.dtype.type(0.0))
    for j in range(0, 3 * size, half):
        store(scratch, j, zero)
    for s in range(T):
        t = T - 1 - s
        for i in range(n):
            given = grad[t, i]
            total = dh[i * u : i * u + units]
            for j in range(units):
                total[j] += given[j]
        for i in range(n):
            at = i * u
            now = t * size + at
            g = 4 * now
            if t >= lengths[i]:
                for j in range(0, 4 * u, half):
                    store(d_gates, g + j, zero)
                continue
            for j in range(0, u, half):
                let_in = load(gates, g + j)
                forget = load(gates, g + u + j)
                new = load(gates, g + 2 * u + j)
                let_out = load(gates, g + 3 * u + j)
                squashed = load(tanh_c, now + j)
                d = mul(load(dh, at + j), let_out)
                store(d_gates, g + 3 * u + j, mul(mul(d, squashed), sub(one, let_out)))
                cell = add(load(dc, at + j), mul(d, sub(one, mul(squashed, squashed))))
                store(d_gates, g + j, mul(mul(cell, new), mul(let_in, sub(one, let_in))))
                store(d_gates, g + u + j, mul(mul(cell, load(c, now + j)), mul(forget, sub(one, forget))))
                store(d_gates, g + 2 * u + j, mul(mul(cell, let_in), sub(one, mul(new, new))))
                store(dc, at + j, mul(cell, forget))
        is_cut = t % cuts == 0
        if not is_cut:
            multiply(d_gates, 4 * t * size, n, 4 * u, 4 * u, packed, w, u, before, 0)
        for i in range(n):
            if t >= lengths[i]:
                continue
            for j in range(i * u, (i + 1) * u, half):
                if is_cut:
                    store(dh, j, zero)
                    store(dc, j, zero)
                else:
                    store(dh, j, load(before, j))
