"""Kernels of `losses`: derivatives and sums of a loss in one pass, over blocks of rows.

A block's sum is a ledger of `data.any_order`, so that the total is the same for any number of threads and parts.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...core.jit import kernel, strict_kernel
from ...core.simd import exp
from ...data.any_order import add_tile

# --------------------------------------------------------------------------------------------------------------------
# exp and log of short buffers in loops that vectorise: no calls, no branches, exponents through the bits of floats.
#
# Errors are below 2 units in the last place. Buffers hold at most `TILE` numbers, `scratch` twice as many; `bits` is
# an int64 view of it.


TILE: Final = 512  # numbers of a buffer between two steps of a formula
_MAGIC: Final = 6755399441055744.0  # 1.5·2⁵²: adding it leaves the nearest whole number in the lowest bits
_MAGIC_BITS: Final = np.int64(0x4338000000000000)
_LN2_HIGH: Final = 6.93147180369123816490e-01  # log 2 in two parts: multiples of the first are exact
_LN2_LOW: Final = 1.90821492927058770002e-10  # the rest of log 2
_HALF_ROOT: Final = np.int64(0x3FE6A09E << 32)  # the bits of √½
_MANTISSA: Final = np.int64(0x000FFFFFFFFFFFFF)


@strict_kernel
def exp_tile(x: Any, out: Any, n: int) -> None:
    """Write e^x; x is at most 700."""
    for i in range(n):
        out[i] = exp(min(x[i], 700.0))


@strict_kernel
def log1p_tile(x: Any, out: Any, scratch: Any, bits: Any, n: int) -> None:
    """Write log(1 + x) for x >= 0, small ones with all their digits."""
    power, power_bits = scratch[TILE:], bits[TILE:]  # an index of TILE + i would not vectorise
    for i in range(n):
        scratch[i] = 1.0 + x[i]
        out[i] = (x[i] - (scratch[i] - 1.0)) / scratch[i]  # what rounding has taken from 1 + x
    for i in range(n):
        power_bits[i] = ((bits[i] - _HALF_ROOT) >> 52) + _MAGIC_BITS
    for i in range(n):
        bits[i] = ((bits[i] - _HALF_ROOT) & _MANTISSA) + _HALF_ROOT
    for i in range(n):
        f = scratch[i] - 1.0
        k = power[i] - _MAGIC
        s = f / (2.0 + f)
        z = s * s
        r = 1.479819860511658591e-01  # the polynomial of fdlibm's log
        r = r * z + 1.531383769920937332e-01
        r = r * z + 1.818357216161805012e-01
        r = r * z + 2.222219843214978396e-01
        r = r * z + 2.857142874366239149e-01
        r = r * z + 3.999999999940941908e-01
        r = (r * z + 6.666666666666735130e-01) * z
        half = 0.5 * f * f
        out[i] += k * _LN2_HIGH + (f - (half - (s * (half + r) + k * _LN2_LOW)))


SQUARED, LOGISTIC, EXPONENTIAL, POISSON, GAMMA, CLASSES = range(6)
BLOCK: Final = 1 << 14  # rows of a block


@kernel
def add_leaves(F: Any, leaf: Any, value: Any, first: int, last: int) -> None:
    """Add the values of the rows' leaves to the scores, in blocks first … last − 1."""
    lo, hi = first * BLOCK, min(last * BLOCK, F.size)
    scores, leaves = F[lo:hi], leaf[lo:hi]
    for i in range(scores.size):
        scores[i] += value[leaves[i]]


@kernel
def evaluate_scores(kind: int, y: Any, F: Any, w: Any, g: Any, h: Any, total: Any, first: int, last: int) -> None:
    """Write g and h of a loss of one score, and the (weighted) sum of the loss of each block first … last − 1.

    IN y, F, w (n,), w of length 0: one each; OUT g, h (n,), total (blocks, LEDGER).
    """
    x, e, extra = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    scratch = np.empty(2 * TILE)
    bits = scratch.view(np.int64)
    for block in range(first, last):
        lo, hi = block * BLOCK, min((block + 1) * BLOCK, y.size)
        ledger = total[block]
        for i in range(ledger.size):
            ledger[i] = 0
        for at in range(lo, hi, TILE):
            n = min(TILE, hi - at)
            yt, Ft, gt, ht = y[at : at + n], F[at : at + n], g[at : at + n], h[at : at + n]
            if kind == SQUARED:
                for i in range(n):
                    r = Ft[i] - yt[i]
                    gt[i] = r
                    ht[i] = 1.0
                    extra[i] = 0.5 * r * r
            else:
                sign = 1.0 if kind == POISSON else -1.0
                for i in range(n):
                    x[i] = sign * Ft[i] if kind >= POISSON else -yt[i] * Ft[i]
                exp_tile(x, e, n)
                _derive(kind, yt, Ft, e, gt, ht, extra, n)
                if kind == LOGISTIC:
                    log1p_tile(e, extra, scratch, bits, n)
            if w.size:
                wt = w[at : at + n]
                for i in range(n):
                    extra[i] *= wt[i]
            add_tile(extra, n, ledger)


@strict_kernel
def _derive(kind: int, y: Any, F: Any, e: Any, g: Any, h: Any, extra: Any, n: int) -> None:
    """Write derivatives and losses from e = e^{−yF}, e^F or e^{−F}."""
    if kind == LOGISTIC:
        for i in range(n):
            d = 1.0 / (1.0 + e[i])
            wrong = e[i] * d
            g[i] = -y[i] * wrong
            h[i] = wrong * d
    elif kind == EXPONENTIAL:
        for i in range(n):
            g[i] = -y[i] * e[i]
            h[i] = e[i]
            extra[i] = e[i]
    elif kind == POISSON:
        for i in range(n):
            g[i] = e[i] - y[i]
            h[i] = e[i]
            extra[i] = e[i] - y[i] * F[i]
    else:
        for i in range(n):
            ratio = y[i] * e[i]
            g[i] = 1.0 - ratio
            h[i] = ratio
            extra[i] = F[i] + ratio


@strict_kernel
def _invert(x: Any, n: int) -> None:
    """Replace x by 1/(1 + x)."""
    for i in range(n):
        x[i] = 1.0 / (1.0 + x[i])


@kernel
def evaluate_classes(y: Any, F: Any, w: Any, g: Any, h: Any, total: Any, first: int, last: int) -> None:
    """Write g and h, (K, n), of the cross-entropy, and the (weighted) sum of the loss of each block."""
    K = F.shape[0]
    together = K / (K - 1.0)  # Friedman's factor on the curvature of K scores that move at once
    top, others, loss, x, e = np.empty(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    scratch = np.empty(2 * TILE)
    bits = scratch.view(np.int64)
    for block in range(first, last):
        lo, hi = block * BLOCK, min((block + 1) * BLOCK, y.size)
        ledger = total[block]
        for i in range(ledger.size):
            ledger[i] = 0
        for at in range(lo, hi, TILE):
            n = min(TILE, hi - at)
            yt = y[at : at + n]
            first_scores = F[0, at : at + n]
            for i in range(n):  # assigning a slice would compile the text of an error
                top[i] = first_scores[i]
                others[i] = -1.0  # the largest term is one
            for k in range(1, K):
                Ft = F[k, at : at + n]
                for i in range(n):
                    top[i] = max(top[i], Ft[i])
            for k in range(K):
                Ft, gt = F[k, at : at + n], g[k, at : at + n]
                for i in range(n):
                    x[i] = Ft[i] - top[i]
                exp_tile(x, e, n)
                for i in range(n):
                    gt[i] = e[i]
                    others[i] += e[i]
            for i in range(n):
                others[i] = max(others[i], 0.0)
            log1p_tile(others, loss, scratch, bits, n)
            for i in range(n):
                loss[i] += top[i] - F[yt[i], at + i]
            _invert(others, n)
            for k in range(K):
                gt, ht = g[k, at : at + n], h[k, at : at + n]
                for i in range(n):
                    p = gt[i] * others[i]
                    ht[i] = p * (1.0 - p) * together
                    gt[i] = p - (1.0 if yt[i] == k else 0.0)
            if w.size:
                wt = w[at : at + n]
                for i in range(n):
                    loss[i] *= wt[i]
            add_tile(loss, n, ledger)
