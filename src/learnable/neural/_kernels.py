"""Compiled kernels of the layers: elementwise work between the matrix products, which BLAS does.

Arrays are C-contiguous, float32 or float64 (one signature each); results are written in place. `neural.verify` and the
tests have the same formulas in NumPy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.jit import ieee_kernel
from ..core.simd import exp

_ROOT_HALF = math.sqrt(0.5)
_ROOT_TWO_PI = 1.0 / math.sqrt(2.0 * math.pi)


@ieee_kernel
def add_bias(b: Any, out: Any) -> None:
    """OUT out (n, k) += b (k,)."""
    n, k = out.shape
    for i in range(n):
        row = out[i]
        for j in range(k):
            row[j] += b[j]


@ieee_kernel
def sum_rows(grad: Any, out: Any) -> None:
    """OUT out (k,): sums of the columns of grad (n, k)."""
    n, k = grad.shape
    for j in range(k):
        out[j] = 0.0
    for i in range(n):
        row = grad[i]
        for j in range(k):
            out[j] += row[j]


@ieee_kernel
def leaky(x: Any, slope: Any, out: Any) -> None:
    """OUT out = x where x > 0, else slope·x; arrays are flat."""
    zero = x.dtype.type(0.0)
    s = x.dtype.type(slope)
    for i in range(x.size):
        v = x[i]
        out[i] = max(v, zero) + s * min(v, zero)


@ieee_kernel
def relu(x: Any, out: Any) -> None:
    """OUT out = max(x, 0); arrays are flat."""
    zero = x.dtype.type(0.0)
    for i in range(x.size):
        out[i] = max(x[i], zero)


@ieee_kernel
def leaky_back(x: Any, slope: Any, grad: Any, out: Any) -> None:
    """OUT out = grad where x > 0, else slope·grad."""
    s = x.dtype.type(slope)
    for i in range(x.size):
        g = grad[i]
        out[i] = g if x[i] > 0 else s * g


@ieee_kernel
def logistic(x: Any, out: Any) -> None:
    """OUT out = 1/(1 + e^(−x))."""
    for i in range(x.size):
        out[i] = 1.0 / (1.0 + exp(min(-np.float64(x[i]), 700.0)))


@ieee_kernel
def logistic_back(y: Any, grad: Any, out: Any) -> None:
    """OUT out = grad·y(1 − y), with y the unit's output."""
    one = y.dtype.type(1.0)
    for i in range(y.size):
        out[i] = grad[i] * y[i] * (one - y[i])


@ieee_kernel
def tanh_back(y: Any, grad: Any, out: Any) -> None:
    """OUT out = grad·(1 − y²), with y the unit's output."""
    one = y.dtype.type(1.0)
    for i in range(y.size):
        out[i] = grad[i] * (one - y[i] * y[i])


@ieee_kernel
def silu(x: Any, out: Any) -> None:
    """OUT out = x/(1 + e^(−x))."""
    for i in range(x.size):
        out[i] = np.float64(x[i]) / (1.0 + exp(min(-np.float64(x[i]), 700.0)))


@ieee_kernel
def silu_back(x: Any, grad: Any, out: Any) -> None:
    """OUT out = grad·s(1 + x(1 − s)), s = 1/(1 + e^(−x))."""
    for i in range(x.size):
        v = np.float64(x[i])
        s = 1.0 / (1.0 + exp(min(-v, 700.0)))
        out[i] = grad[i] * s * (1.0 + v * (1.0 - s))


@ieee_kernel
def gelu(x: Any, out: Any) -> None:
    """OUT out = x·Φ(x), Φ the normal distribution function."""
    for i in range(x.size):
        v = np.float64(x[i])
        out[i] = 0.5 * v * math.erfc(-v * _ROOT_HALF)


@ieee_kernel
def gelu_back(x: Any, grad: Any, out: Any) -> None:
    """OUT out = grad·(Φ(x) + xφ(x))."""
    for i in range(x.size):
        v = np.float64(x[i])
        density = _ROOT_TWO_PI * exp(max(-0.5 * v * v, -700.0))
        out[i] = grad[i] * (0.5 * math.erfc(-v * _ROOT_HALF) + v * density)


@ieee_kernel
def drop(x: Any, key: Any, cut: Any, scale: Any, kept: Any, out: Any) -> None:
    """OUT out = x·scale where a hash of (key, position) is at least `cut`, else 0; kept: that factor.

    IN key (1,) uint32. The hash is Wellons' lowbias32: each position has its own bits, so that the mask does not
    depend on how the work is cut.
    """
    seed = key[0]
    s = x.dtype.type(scale)
    zero = x.dtype.type(0.0)
    for i in range(x.size):
        h = seed + np.uint32(i) * np.uint32(0x9E3779B9)
        h = np.uint32(h ^ (h >> np.uint32(16))) * np.uint32(0x7FEB352D)
        h = np.uint32(h ^ (h >> np.uint32(15))) * np.uint32(0x846CA68B)
        h = np.uint32(h ^ (h >> np.uint32(16)))
        f = s if h >= cut else zero
        kept[i] = f
        out[i] = x[i] * f


@ieee_kernel
def multiply(x: Any, y: Any, out: Any) -> None:
    """OUT out = x·y."""
    for i in range(x.size):
        out[i] = x[i] * y[i]


@ieee_kernel
def add(x: Any, y: Any, out: Any) -> None:
    """OUT out = x + y."""
    for i in range(x.size):
        out[i] = x[i] + y[i]


@ieee_kernel
def batch_moments(x: Any, mean: Any, var: Any) -> None:
    """OUT mean (k,), var (k,) of the columns of x (n, k), the variance with the divisor n; two passes."""
    n, k = x.shape
    for j in range(k):
        mean[j] = 0.0
        var[j] = 0.0
    for i in range(n):
        row = x[i]
        for j in range(k):
            mean[j] += row[j]
    for j in range(k):
        mean[j] /= n
    for i in range(n):
        row = x[i]
        for j in range(k):
            r = row[j] - mean[j]
            var[j] += r * r
    for j in range(k):
        var[j] /= n


@ieee_kernel
def normalise_columns(x: Any, mean: Any, inverse: Any, gain: Any, shift: Any, scaled: Any, out: Any) -> None:
    """OUT scaled = (x − mean)·inverse, out = gain·scaled + shift, by column."""
    n, k = x.shape
    for i in range(n):
        row = x[i]
        for j in range(k):
            s = (row[j] - mean[j]) * inverse[j]
            scaled[i, j] = s
            out[i, j] = gain[j] * s + shift[j]


@ieee_kernel
def batch_norm_back(grad: Any, scaled: Any, inverse: Any, gain: Any, sums: Any, products: Any, out: Any) -> None:
    """OUT sums (k,) = Σg, products (k,) = Σgx̂ (gradients of shift and gain), out = γ/σ·(g − Σg/n − x̂Σgx̂/n)."""
    n, k = grad.shape
    for j in range(k):
        sums[j] = 0.0
        products[j] = 0.0
    for i in range(n):
        g = grad[i]
        s = scaled[i]
        for j in range(k):
            sums[j] += g[j]
            products[j] += g[j] * s[j]
    share = grad.dtype.type(1.0 / n)
    for i in range(n):
        g = grad[i]
        s = scaled[i]
        for j in range(k):
            out[i, j] = gain[j] * inverse[j] * (g[j] - share * sums[j] - share * s[j] * products[j])


@ieee_kernel
def layer_norm(x: Any, gain: Any, shift: Any, epsilon: Any, inverse: Any, scaled: Any, out: Any) -> None:
    """OUT inverse (n,) = 1/√(σ² + ε), scaled = (x − μ)·inverse, out = gain·scaled + shift, by row."""
    n, k = x.shape
    for i in range(n):
        row = x[i]
        mean = 0.0
        for j in range(k):
            mean += row[j]
        mean /= k
        var = 0.0
        for j in range(k):
            var += (row[j] - mean) ** 2
        s = 1.0 / math.sqrt(var / k + epsilon)
        inverse[i] = s
        for j in range(k):
            v = (row[j] - mean) * s
            scaled[i, j] = v
            out[i, j] = gain[j] * v + shift[j]


@ieee_kernel
def layer_norm_back(grad: Any, scaled: Any, inverse: Any, gain: Any, sums: Any, products: Any, out: Any) -> None:
    """OUT sums (k,), products (k,): gradients of shift and gain; out: that of x."""
    n, k = grad.shape
    for j in range(k):
        sums[j] = 0.0
        products[j] = 0.0
    for i in range(n):
        g = grad[i]
        s = scaled[i]
        first = 0.0
        second = 0.0
        for j in range(k):
            sums[j] += g[j]
            products[j] += g[j] * s[j]
            d = g[j] * gain[j]
            first += d
            second += d * s[j]
        first /= k
        second /= k
        for j in range(k):
            out[i, j] = inverse[i] * (g[j] * gain[j] - first - s[j] * second)


@ieee_kernel
def look_up(codes: Any, table: Any, start: int, out: Any) -> None:
    """OUT out[:, start:start + m] = table[codes]; codes (n,) int64 are in range."""
    m = table.shape[1]
    for i in range(codes.size):
        row = table[codes[i]]
        target = out[i, start : start + m]
        for j in range(m):
            target[j] = row[j]


@ieee_kernel
def scatter_add(codes: Any, grad: Any, start: int, out: Any) -> None:
    """OUT out[codes] += grad[:, start:start + m]."""
    m = out.shape[1]
    for i in range(codes.size):
        row = out[codes[i]]
        source = grad[i, start : start + m]
        for j in range(m):
            row[j] += source[j]


@ieee_kernel
def squared_head(z: Any, y: Any, weight: Any, share: float, out: Any) -> float:
    """Return share·Σ wᵢ ½‖zᵢ − yᵢ‖². OUT out: its gradient in z (n, k)."""
    n, k = z.shape
    total = 0.0
    for i in range(n):
        w = weight[i] * share
        for j in range(k):
            r = np.float64(z[i, j]) - np.float64(y[i, j])
            out[i, j] = w * r
            total += 0.5 * w * r * r
    return total


@ieee_kernel
def logistic_head(z: Any, y: Any, weight: Any, share: float, out: Any) -> float:
    """Return share·Σ wᵢ Σⱼ log(1 + e^z) − yz, for y in [0, 1]. OUT out: its gradient."""
    n, k = z.shape
    total = 0.0
    for i in range(n):
        w = weight[i] * share
        for j in range(k):
            v = np.float64(z[i, j])
            e = exp(max(-abs(v), -708.0))
            p = (1.0 if v > 0 else e) / (1.0 + e)
            out[i, j] = w * (p - y[i, j])
            total += w * (max(v, 0.0) + math.log1p(e) - y[i, j] * v)
    return total


@ieee_kernel
def softmax_head(z: Any, codes: Any, weight: Any, share: float, out: Any) -> float:
    """Return share·Σ wᵢ (log Σₖ e^zₖ − z_yᵢ). OUT out: its gradient."""
    n, k = z.shape
    total = 0.0
    for i in range(n):
        w = weight[i] * share
        row = z[i]
        top = np.float64(row[0])
        for j in range(1, k):
            top = max(top, np.float64(row[j]))
        mass = 0.0
        target = out[i]
        for j in range(k):
            e = exp(max(np.float64(row[j]) - top, -708.0))
            target[j] = e
            mass += e
        scale = w / mass
        for j in range(k):
            target[j] *= scale
        c = codes[i]
        target[c] -= w
        total += w * (math.log(mass) + top - row[c])
    return total


@ieee_kernel
def encode_bins(x: Any, edges: Any, inverse: Any, out: Any) -> None:
    """OUT out (n, d + dB): x, then how far x has come in each bin. IN edges (d, B + 1), inverse (d, B): 1/width."""
    n, d = x.shape
    B = inverse.shape[1]
    zero = x.dtype.type(0.0)
    one = x.dtype.type(1.0)
    for i in range(n):
        for j in range(d):
            v = x[i, j]
            out[i, j] = v
            left = edges[j]
            scale = inverse[j]
            target = out[i, d + j * B : d + (j + 1) * B]
            for t in range(B):
                target[t] = min(max((v - left[t]) * scale[t], zero), one)
            first = (v - left[0]) * scale[0]
            target[0] = min(first, one)
            last = (v - left[B - 1]) * scale[B - 1]
            target[B - 1] = max(last, zero) if B > 1 else last
