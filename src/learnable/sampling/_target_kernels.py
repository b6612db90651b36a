"""Compiled: a density through its address, on free coordinates, with the maps of supports and their Jacobians.

A target has n_free free coordinates u ∈ R^n. Each block of the table maps a piece of u onto a piece of the natural
parameters x. What is sampled is log p(x(u)) + log|dx/du|, with gradient (dx/du)ᵀ∇log p + ∇log|dx/du|. The textbook
forms of the maps, in NumPy, are `tests/oracles/supports.py`.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.jit import intrinsic, kernel, lean_kernel

Array = NDArray[np.float64]

call_at = intrinsic("call_at")

REAL: Final = 0
LOWER: Final = 1  #: x = a + e^u
UPPER: Final = 2  #: x = b − e^u
INTERVAL: Final = 3  #: x = a + (b − a) σ(u)
SIMPLEX: Final = 4  #: stick breaking, K − 1 free coordinates
ORDERED: Final = 5  #: x₀ = u₀, x_k = x_{k−1} + e^{u_k}
CHOLESKY: Final = 6  #: lower triangle row by row, e^u on the diagonal; x is the whole matrix


class Problem(NamedTuple):
    """What kernels need of a target; scratch arrays belong to one chain."""

    address: int  #: of `double f(double *x, double *gradient, int64_t *data)`
    data: NDArray[np.int64]  #: what the function reads: its dimension, then addresses and lengths of arrays
    blocks: NDArray[np.int64]  #: (n_blocks, 5): kind, start in u, free coordinates, start in x, length in x
    bounds: Array  #: (n_blocks, 2): a and b
    x: Array  #: scratch: natural parameters
    gradient: Array  #: scratch: ∇ log p at x
    failed: NDArray[np.int64]  #: (1,): set when a Python function raised


@lean_kernel
def _sigmoid(u: float) -> float:
    if u >= 0.0:
        return 1.0 / (1.0 + math.exp(-u))
    e = math.exp(u)
    return e / (1.0 + e)


@lean_kernel
def _log_sigmoid(u: float) -> float:
    return -math.log1p(math.exp(-u)) if u >= 0.0 else u - math.log1p(math.exp(u))


@lean_kernel
def _constrain_simplex(u: Array, x: Array) -> float:
    """OUT x (K,): x_k = left_k σ(u_k − log(K − 1 − k)), left_k what the sticks before leave; return log|dx/du|."""
    K = x.size
    log_left = 0.0
    log_jacobian = 0.0
    for k in range(K - 1):
        shifted = u[k] - math.log(K - 1.0 - k)
        taken = _log_sigmoid(shifted)
        kept = _log_sigmoid(-shifted)
        x[k] = math.exp(log_left + taken)
        log_jacobian += log_left + taken + kept
        log_left += kept
    x[K - 1] = math.exp(log_left)
    return log_jacobian


@lean_kernel
def constrain(u: Array, blocks: NDArray[np.int64], bounds: Array, x: Array) -> float:
    """OUT x: the natural parameters; return log|dx/du|."""
    log_jacobian = 0.0
    for b in range(blocks.shape[0]):
        kind, start, n, first = blocks[b, 0], blocks[b, 1], blocks[b, 2], blocks[b, 3]
        low, high = bounds[b, 0], bounds[b, 1]
        if kind == SIMPLEX:
            log_jacobian += _constrain_simplex(u[start : start + n], x[first : first + n + 1])
        elif kind == CHOLESKY:
            d = int(math.sqrt(blocks[b, 4]) + 0.5)
            place = start
            for i in range(d):
                for j in range(d):
                    x[first + i * d + j] = 0.0
                for j in range(i):
                    x[first + i * d + j] = u[place]
                    place += 1
                x[first + i * d + i] = math.exp(u[place])
                log_jacobian += u[place]
                place += 1
        else:
            for i in range(n):
                value = u[start + i]
                if kind == REAL:
                    x[first + i] = value
                elif kind == LOWER:
                    x[first + i] = low + math.exp(value)
                    log_jacobian += value
                elif kind == UPPER:
                    x[first + i] = high - math.exp(value)
                    log_jacobian += value
                elif kind == INTERVAL:
                    x[first + i] = low + (high - low) * _sigmoid(value)
                    log_jacobian += math.log(high - low) + _log_sigmoid(value) + _log_sigmoid(-value)
                else:  # ORDERED
                    if i == 0:
                        x[first] = value
                    else:
                        x[first + i] = x[first + i - 1] + math.exp(value)
                        log_jacobian += value
    return log_jacobian


@lean_kernel
def _pull_simplex(u: Array, x: Array, g: Array, out: Array) -> None:
    """OUT out (K − 1,): gradient of log p(x(u)) + log|dx/du| by the sticks, backwards.

    below is the derivative by the logarithm of what the stick leaves: of every later coordinate, and of the later
    terms of the Jacobian, each of which has it once.
    """
    K = x.size
    below = g[K - 1] * x[K - 1]
    for k in range(K - 2, -1, -1):
        share = _sigmoid(u[k] - math.log(K - 1.0 - k))
        own = g[k] * x[k]
        later = K - 2 - k
        out[k] = (1.0 - share) * own - share * (below + later) + 1.0 - 2.0 * share
        below += own


@lean_kernel
def pull_back(u: Array, blocks: NDArray[np.int64], bounds: Array, x: Array, g: Array, out: Array) -> None:
    """OUT out: the gradient by u of log p(x(u)) + log|dx/du|, g the gradient of log p by x."""
    for b in range(blocks.shape[0]):
        kind, start, n, first = blocks[b, 0], blocks[b, 1], blocks[b, 2], blocks[b, 3]
        low, high = bounds[b, 0], bounds[b, 1]
        if kind == SIMPLEX:
            end = first + n + 1
            _pull_simplex(u[start : start + n], x[first:end], g[first:end], out[start : start + n])
        elif kind == CHOLESKY:
            d = int(math.sqrt(blocks[b, 4]) + 0.5)
            place = start
            for i in range(d):
                for j in range(i):
                    out[place] = g[first + i * d + j]
                    place += 1
                out[place] = g[first + i * d + i] * x[first + i * d + i] + 1.0
                place += 1
        elif kind == ORDERED:
            total = 0.0
            for i in range(n - 1, 0, -1):
                total += g[first + i]
                out[start + i] = total * math.exp(u[start + i]) + 1.0
            out[start] = total + g[first]
        else:
            for i in range(n):
                slope = g[first + i]
                if kind == REAL:
                    out[start + i] = slope
                elif kind == LOWER:
                    out[start + i] = slope * (x[first + i] - low) + 1.0
                elif kind == UPPER:
                    out[start + i] = -slope * (high - x[first + i]) + 1.0
                else:  # INTERVAL
                    share = _sigmoid(u[start + i])
                    out[start + i] = slope * (high - low) * share * (1.0 - share) + 1.0 - 2.0 * share


@lean_kernel
def evaluate(target: Problem, u: Array, gradient: Array) -> float:
    """OUT gradient (n_free,): of the log density on free coordinates, which is returned; NaN and +inf become −inf."""
    if target.blocks.shape[0] == 0:
        value = call_at(target.address, u, gradient, target.data)
    else:
        value = constrain(u, target.blocks, target.bounds, target.x)
        value += call_at(target.address, target.x, target.gradient, target.data)
        pull_back(u, target.blocks, target.bounds, target.x, target.gradient, gradient)
    if not value < math.inf:
        value = -math.inf
    return value  # type: ignore[no-any-return]


@kernel
def constrain_one(u: Array, blocks: NDArray[np.int64], bounds: Array, x: Array) -> float:
    """OUT x: the natural parameters of one point; called from Python."""
    return constrain(u, blocks, bounds, x)


@kernel
def constrain_all(u: Array, blocks: NDArray[np.int64], bounds: Array, x: Array) -> None:
    """OUT x (n, n_natural): the natural parameters of each row of u; called from Python."""
    for i in range(u.shape[0]):
        constrain(u[i], blocks, bounds, x[i])


@kernel
def evaluate_one(target: Problem, u: Array, gradient: Array) -> float:
    """OUT gradient; return the log density on free coordinates; called from Python."""
    return evaluate(target, u, gradient)


@kernel
def evaluate_many(target: Problem, points: Array, gradient: Array, values: Array) -> None:
    """OUT values (n,): log densities of free coordinates (n, d); called from Python. Scratch gradient (d,)."""
    for i in range(points.shape[0]):
        values[i] = evaluate(target, points[i], gradient)


def no_blocks() -> tuple[Any, Any]:
    """Return the tables of a target whose parameters are free as they are."""
    return np.zeros((0, 5), dtype=np.int64), np.zeros((0, 2))
