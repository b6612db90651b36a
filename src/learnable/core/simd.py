"""Four float64 numbers as one value inside a kernel: what the compiler's vectoriser does not find by itself.

Numba vectorises loops over many numbers. A recursion over ten states has none: its loops are short, and each depends on
the one before. A kernel that says which four numbers move together gets vector registers on every machine (two
registers of two where the machine has no wider ones).

Nothing is checked: the caller pads arrays to multiples of four. `core.intrinsics` has the definitions.
"""

from __future__ import annotations

from typing import Final

from .jit import intrinsic

WIDTH: Final = 4

load = intrinsic("load")  #: (a, i) → the numbers a[i] … a[i + 3] of a one-dimensional array
store = intrinsic("store")  #: (a, i, v): the reverse
#: (a, i, step, v, w, x, y): the r-th numbers of v, w, x and y become a[i + r·step] … a[i + r·step + 3], r = 0 … 3
store_columns = intrinsic("store_columns")
spread = intrinsic("spread")  #: x → x four times
repeat = intrinsic("repeat")  #: (a, i) → a[i] four times
add = intrinsic("add")  #: number by number
sub = intrinsic("sub")
mul = intrinsic("mul")
fma = intrinsic("fma")  #: (x, y, z) → xy + z, fused where the machine can
larger = intrinsic("larger")  #: the greater of each pair
total = intrinsic("total")  #: v → the sum of the four
top = intrinsic("top")  #: v → the greatest of the four
#: v → e to the power of each, for arguments up to 700; below −708 it is zero. Of a single number it is the same,
#: without a call or a branch: loops over it vectorise.
exp = intrinsic("exp")
#: x → e^x in the type of x, float32 or float64, for arguments up to 80: a register holds twice as many float32.
exp_of_either = intrinsic("exp_of_either")
