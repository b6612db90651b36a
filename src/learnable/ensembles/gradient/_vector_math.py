"""exp and log of short buffers in loops that vectorise: no calls, no branches, exponents through the bits of floats.

Errors are below 2 units in the last place. Buffers hold at most `TILE` numbers, `scratch` twice as many; `bits` is an
int64 view of it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...core.jit import strict_kernel
from ...core.simd import exp

TILE: Final = 512
_MAGIC: Final = 6755399441055744.0  # 1.5·2⁵²: adding it leaves the nearest whole number in the lowest bits
_MAGIC_BITS: Final = np.int64(0x4338000000000000)
_LN2_HIGH: Final = 6.93147180369123816490e-01
_LN2_LOW: Final = 1.90821492927058770002e-10
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
