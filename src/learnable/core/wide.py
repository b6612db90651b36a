"""Vectors of 32 bytes inside a kernel, eight float32 or four float64, and the small matrix product that they serve.

A kernel that walks through time makes thousands of products of small matrices. Handing each to BLAS costs a call, a
copy of the weights into BLAS's own order, and for narrow layers more time than the product itself. `tile` multiplies
inside the kernel, from weights that were put into order once: panels of w columns, row after row.

The type of a vector is that of the array or number it comes from. Nothing is checked: the caller pads arrays to
multiples of a panel, `panel_width(dtype)` numbers. `core.wide_intrinsics` has the definitions.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .jit import intrinsic

#: Rows of a tile: twelve sums of two vectors each, two vectors of weights and one spread number fill the sixteen
#: registers that every processor with AVX2 has.
TILE_ROWS: Final = 6
#: Bytes of one row of a panel: two vectors.
PANEL_BYTES: Final = 64

load = intrinsic("load", "wide_intrinsics")  #: (a, i) → the numbers of a one-dimensional array from a[i] on
load_counts = intrinsic("load_counts", "wide_intrinsics")  #: (a, i) → eight signed whole numbers as float32
store = intrinsic("store", "wide_intrinsics")  #: (a, i, v): the reverse
spread = intrinsic("spread", "wide_intrinsics")  #: x → x in every place
add = intrinsic("add", "wide_intrinsics")  #: number by number
sub = intrinsic("sub", "wide_intrinsics")
mul = intrinsic("mul", "wide_intrinsics")
div = intrinsic("div", "wide_intrinsics")
fma = intrinsic("fma", "wide_intrinsics")  #: (x, y, z) → xy + z, fused where the machine can
sigmoid = intrinsic(
    "sigmoid", "wide_intrinsics"
)  #: v → 1/(1 + e^(−v)), to 1.7e-7 in float32 and to rounding in float64
tanh = intrinsic("tanh", "wide_intrinsics")  #: to 2.8e-7 in float32, relative, and to rounding of 1 in float64
#: (a, i, rows, row_step, step, right, at, right_step, k, c, j, c_step): for each r < rows ≤ TILE_ROWS and q < w, the
#: width of a panel, c[j + r·c_step + q] ← Σ_{s < k} a[i + r·row_step + s·step]·right[at + s·right_step + q].
#: Every sum is made in the order of s, whatever the number of rows: a row's result does not depend on its neighbours.
tile = intrinsic("tile", "wide_intrinsics")
tile_more = intrinsic("tile_more", "wide_intrinsics")  #: the same, added to what is in c


def panel_width(dtype: np.dtype[Any]) -> int:
    """Return how many numbers one row of a panel has: 16 of float32, 8 of float64."""
    return PANEL_BYTES // dtype.itemsize
