"""Compiled kernels of the optimisers: one pass over the flat vector of parameters for each step.

Each kernel first forms the gradient that counts, g ← clip(s·g + λθ) with λθ for the first m parameters only (weights
decay, biases do not), then makes the step of `solvers.first_order`, whose `move` is its slow twin, and last shrinks
the weights by the decoupled decay. `s` rescales the gradient, `limit` truncates it (infinite: not at all).
"""

from __future__ import annotations

import math
from typing import Any

from ..core.jit import ieee_kernel


@ieee_kernel
def norm_of(g: Any) -> float:
    """Return ‖g‖₂ by a sum in float64."""
    total = 0.0
    for j in range(g.size):
        total += float(g[j]) * float(g[j])
    return math.sqrt(total)


@ieee_kernel
def couple(theta: Any, g: Any, m: int, s: float, decay: float, limit: float) -> None:
    """OUT g = clip(s·g + decay·θ on the first m)."""
    scale = g.dtype.type(s)
    c = g.dtype.type(decay)
    head = g[:m]
    point = theta[:m]
    if decay > 0.0:
        for j in range(m):
            head[j] = scale * head[j] + c * point[j]
        rest = g[m:]
        for j in range(rest.size):
            rest[j] *= scale
    elif s != 1.0:
        for j in range(g.size):
            g[j] *= scale
    if limit < math.inf:
        b = g.dtype.type(limit)
        for j in range(g.size):
            g[j] = min(max(g[j], -b), b)


@ieee_kernel
def shrink(theta: Any, m: int, share: float) -> None:
    """OUT θ ← (1 − share)·θ on the first m."""
    keep = theta.dtype.type(1.0 - share)
    for j in range(m):
        theta[j] *= keep


@ieee_kernel
def descent(theta: Any, g: Any, rate: float) -> None:
    """OUT θ ← θ − ηg."""
    eta = theta.dtype.type(rate)
    for j in range(theta.size):
        theta[j] -= eta * g[j]


@ieee_kernel
def momentum(theta: Any, g: Any, v: Any, rate: float, alpha: float) -> None:
    """OUT v ← αv − ηg, θ ← θ + v."""
    eta = theta.dtype.type(rate)
    a = theta.dtype.type(alpha)
    for j in range(theta.size):
        v[j] = a * v[j] - eta * g[j]
        theta[j] += v[j]


@ieee_kernel
def nesterov(theta: Any, g: Any, v: Any, rate: float, alpha: float, ahead: float) -> None:
    """OUT v ← αv − ηg, θ ← θ − ηg + α₊v: θ is the point w + αv that the gradient is taken at."""
    eta = theta.dtype.type(rate)
    a = theta.dtype.type(alpha)
    b = theta.dtype.type(ahead)
    for j in range(theta.size):
        step = eta * g[j]
        v[j] = a * v[j] - step
        theta[j] += b * v[j] - step


@ieee_kernel
def adagrad(theta: Any, g: Any, r: Any, rate: float, delta: float) -> None:
    """OUT r ← r + g², θ ← θ − ηg/(δ + √r)."""
    eta = theta.dtype.type(rate)
    d = theta.dtype.type(delta)
    for j in range(theta.size):
        r[j] += g[j] * g[j]
        theta[j] -= eta * g[j] / (d + math.sqrt(r[j]))


@ieee_kernel
def rmsprop(theta: Any, g: Any, r: Any, rate: float, rho: float, delta: float) -> None:
    """OUT r ← ρr + (1 − ρ)g², θ ← θ − ηg/(δ + √r)."""
    eta = theta.dtype.type(rate)
    d = theta.dtype.type(delta)
    keep = theta.dtype.type(rho)
    new = theta.dtype.type(1.0 - rho)
    for j in range(theta.size):
        r[j] = keep * r[j] + new * g[j] * g[j]
        theta[j] -= eta * g[j] / (d + math.sqrt(r[j]))


@ieee_kernel
def adam(
    theta: Any, g: Any, v: Any, r: Any, rate: float, rho1: float, rho2: float, delta: float, lift1: float, lift2: float
) -> None:
    """OUT v, r: means of g and g²; θ ← θ − η v̂/(δ + √r̂), with v̂ = lift1·v, √r̂ = lift2·√r."""
    a = theta.dtype.type(rho1)
    a_new = theta.dtype.type(1.0 - rho1)
    b = theta.dtype.type(rho2)
    b_new = theta.dtype.type(1.0 - rho2)
    eta = theta.dtype.type(rate * lift1)
    lift = theta.dtype.type(lift2)
    d = theta.dtype.type(delta)
    for j in range(theta.size):
        v[j] = a * v[j] + a_new * g[j]
        r[j] = b * r[j] + b_new * g[j] * g[j]
        theta[j] -= eta * v[j] / (d + lift * math.sqrt(r[j]))
