"""The sums of `data.any_order` on Python's whole numbers: one level for all rows, three units below each other."""

from fractions import Fraction

import numpy as np


def total(x):
    """Return Σx after each number has been cut into multiples of three units."""
    x = [float(v) for v in x]
    top = max((abs(v) for v in x), default=0.0)
    level = -33
    while not top < 2.0 ** min(30 * level + 29, 1023) and 30 * level + 29 < 1024:
        level += 1
    limbs = [0, 0, 0]
    for v in x:
        rest = Fraction(v)
        for k in range(3):
            unit = Fraction(2) ** (30 * (level - k))
            whole = round(rest / unit)  # to even, as float64 rounds
            limbs[k] += whole
            rest -= whole * unit
    return float(sum(limb * Fraction(2) ** (30 * (level - k)) for k, limb in enumerate(limbs)))


def sums_by_group(group, x, n_groups):
    """Return Σx of each group, exactly, then rounded."""
    sums = [Fraction(0)] * n_groups
    for k, v in zip(np.asarray(group).tolist(), np.asarray(x).tolist(), strict=True):
        sums[k] += Fraction(v)
    return np.array([float(s) for s in sums])
