"""Compiled kernels of long short-term memory: all steps of a batch in one call, forwards and backwards.

Units are padded to u numbers, a multiple of a panel's width w (`core.wide`), so that no loop has a rest; weights of
padded units are zero, and so are their states and gradients. One array holds what every step multiplies:

    joined (T + 1, n, k): h_{t−1} (u), x_t (d), 1        weights (k, 4u): Wh, Wx, b, packed into panels
    gates (T, n, 4u): first the product, then i, f, g, o

A sequence that has ended (t >= its length) keeps its state; its gates have no gradient, and the gradient of its state
passes through. `tests/oracles/recurrent.py` has the same steps in NumPy.
"""

from __future__ import annotations

from typing import Any

from ..core.jit import ieee_kernel
from ..core.wide import TILE_ROWS, add, fma, load, mul, sigmoid, spread, store, sub, tanh, tile, tile_more

#: Gradients of one step's gates up to so many bytes stay in the first cache, half of which they take.
CACHED_BYTES = 2**14


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
def multiply(a: Any, first: int, n: int, k: int, packed: Any, w: int, columns: int, c: Any, at: int) -> None:
    """OUT c[at:] (n, columns) = the (n, k) matrix at a[first:] times packed weights."""
    for p in range(columns // w):
        for i in range(0, n, TILE_ROWS):
            rows = min(TILE_ROWS, n - i)
            to = at + i * columns + p * w
            tile(a, first + i * k, rows, k, 1, packed, p * k * w, w, k, c, to, columns)


@ieee_kernel
def multiply_more(a: Any, first: int, n: int, k: int, packed: Any, w: int, columns: int, c: Any) -> None:
    """OUT c (n, columns) += the (n, k) matrix at a[first:] times packed weights."""
    for p in range(columns // w):
        for i in range(0, n, TILE_ROWS):
            rows = min(TILE_ROWS, n - i)
            tile_more(a, first + i * k, rows, k, 1, packed, p * k * w, w, k, c, i * columns + p * w, columns)


@ieee_kernel
def add_outer(a: Any, first: int, n: int, k: int, d: Any, start: int, w: int, columns: int, panel: Any, c: Any) -> None:
    """OUT c (k, columns), packed, += the (n, k) matrix at a[first:], transposed, times (n, columns) at d[start:].

    panel (n, w), flat: where d is large, a panel of it is copied there, since rows that are a power of two apart crowd
    each other out of the cache.
    """
    half = w // 2
    is_small = n * columns * d.itemsize <= CACHED_BYTES
    for p in range(columns // w):
        if not is_small:
            for i in range(n):
                at = start + i * columns + p * w
                store(panel, i * w, load(d, at))
                store(panel, i * w + half, load(d, at + half))
        for r in range(0, k, TILE_ROWS):
            rows = min(TILE_ROWS, k - r)
            to = (p * k + r) * w
            if is_small:
                tile_more(a, first + r, rows, 1, k, d, start + p * w, columns, n, c, to, w)
            else:
                tile_more(a, first + r, rows, 1, k, panel, 0, w, n, c, to, w)


@ieee_kernel
def forward(
    x: Any, d: int, lengths: Any, packed: Any, w: int, u: int, joined: Any, gates: Any, c: Any, tanh_c: Any, units: int,
    out: Any,
) -> None:  # fmt: skip
    """OUT joined, gates, c (T + 1, n, u), tanh_c (T, n, u); out (T, n, units) has the states. All arrays are flat.

    x (T, n, d). Before: joined and c have zeros for t = 0, joined has its ones.
    """
    n = lengths.size
    k = u + d + 1
    half = w // 2
    for t in range(tanh_c.size // (n * u)):
        for i in range(n):
            for j in range(d):
                joined[(t * n + i) * k + u + j] = x[(t * n + i) * d + j]
        multiply(joined, t * n * k, n, k, packed, w, 4 * u, gates, t * n * 4 * u)
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
            if units == u:
                for j in range(0, u, half):
                    store(out, now + j, load(joined, state + j))
            else:
                for j in range(units):
                    out[here * units + j] = joined[state + j]


@ieee_kernel
def backward(
    grad: Any, units: int, lengths: Any, packed: Any, w: int, u: int, cuts: int, joined: Any, gates: Any, c: Any,
    tanh_c: Any, scratch: Any, d_gates: Any, d_weights: Any,
) -> None:  # fmt: skip
    """OUT d_gates: gradients of the gates' inputs, from grad (T, n, units), that of the states. All arrays are flat.

    d_gates has all steps (T, n, 4u), or only one (n, 4u), which all overwrite. d_weights has then the gradient of the
    weights, packed as they are, unless it is empty. scratch: two (n, u) for the gradients of h from later steps and of
    c, and (n, w). No gradient passes from step t to the one before it where t is a multiple of `cuts`.
    """
    n = lengths.size
    half = w // 2
    size = n * u
    dh = scratch[:size]
    dc = scratch[size : 2 * size]
    panel = scratch[2 * size :]
    one = spread(scratch.dtype.type(1.0))
    zero = spread(scratch.dtype.type(0.0))
    for j in range(0, 2 * size, half):
        store(scratch, j, zero)
    for j in range(0, d_weights.size, half):
        store(d_weights, j, zero)
    k = d_weights.size // (4 * u)
    after = 4 * size if d_gates.size > 4 * size else 0
    T = tanh_c.size // size
    for s in range(T):
        t = T - 1 - s
        base = t * after
        is_cut = t % cuts == 0
        for i in range(n):
            at = i * u
            now = t * size + at
            g = 4 * now
            d_at = base + 4 * at
            if units == u:
                for j in range(0, u, half):
                    store(dh, at + j, add(load(dh, at + j), load(grad, now + j)))
            else:
                for j in range(units):
                    dh[at + j] += grad[(t * n + i) * units + j]
            if t >= lengths[i]:
                for j in range(0, 4 * u, half):
                    store(d_gates, d_at + j, zero)
                continue
            for j in range(0, u, half):
                let_in = load(gates, g + j)
                forget = load(gates, g + u + j)
                new = load(gates, g + 2 * u + j)
                let_out = load(gates, g + 3 * u + j)
                squashed = load(tanh_c, now + j)
                d = mul(load(dh, at + j), let_out)
                cell = add(load(dc, at + j), mul(d, sub(one, mul(squashed, squashed))))
                store(d_gates, d_at + j, mul(mul(cell, new), mul(let_in, sub(one, let_in))))
                store(d_gates, d_at + u + j, mul(mul(cell, load(c, now + j)), mul(forget, sub(one, forget))))
                store(d_gates, d_at + 2 * u + j, mul(mul(cell, let_in), sub(one, mul(new, new))))
                store(d_gates, d_at + 3 * u + j, mul(mul(d, squashed), sub(one, let_out)))
                store(dh, at + j, zero)
                store(dc, at + j, zero if is_cut else mul(cell, forget))
        if k > 0:
            add_outer(joined, t * n * k, n, k, d_gates, base, w, 4 * u, panel, d_weights)
        if not is_cut:
            multiply_more(d_gates, base, n, 4 * u, packed, w, u, dh)
