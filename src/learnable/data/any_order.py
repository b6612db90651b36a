"""Sums of float64 whose bits do not depend on the order of the additions, nor on how the rows are cut into parts.

Numbers are rounded to whole multiples of fixed units, 2^(30 t) for whole t, and the multiples are added as integers.
With m the largest magnitude, the level t is the least one with m < 2^(30 t + 29); a number is cut into a multiple of
unit t, what is left into one of unit t − 1, and what is left of that into one of unit t − 2. A part whose largest
number is smaller has a lower level, and adds nothing to the higher units: its integers are those that it would have
added under the level of all parts together. So parts are summed each by its own level, integers are added where they
stand, and the three highest units that any part has touched are the sum: to at least 60 bits below the largest number.

References: J. Demmel and H. D. Nguyen, Parallel reproducible summation, IEEE Transactions on Computers 64 (2015).
The slow twin is `tests/oracles/any_order.py`, on Python's whole numbers.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.jit import ieee_kernel, lean_strict_kernel

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Ledger = Ints

LIMBS: Final = 3  #: units below each other that a sum keeps
_BITS: Final = 30
_LOWEST: Final = -33  # smaller levels would need scales beyond float64; what lies below 2^−960 loses digits
_LEVELS: Final = 70  # of units −35 … 34
LEDGER: Final = 2 * _LEVELS + 1  #: integers of a sum: multiples, how many parts had which level, numbers not finite
_MAGIC: Final = 6755399441055744.0  # 1.5 · 2⁵²: adding it leaves the nearest whole number in the lowest bits
_MAGIC_BITS: Final = np.int64(0x4338000000000000)
_INFINITE: Final = np.int64(0x7FF0000000000000)
_DOWN: Final = 2.0**_BITS
_TILE: Final = 512


# --------------------------------------------------------------------------------------------------------------------
# Parts of a table that lie in several places and add up what they find. Every process that has a part runs the same
# program on it and calls the same functions in the same order; what they return is the same for all. Integers are
# added, so that the order does not matter.


class World:
    """A world of one: what this process has is all there is.

    Attributes
    ----------
    rank, size : int
        Number of this part, and how many there are.
    """

    rank = 0
    size = 1

    def sum(self, x: Ints) -> Ints:
        """Return the sums over all parts, entry by entry."""
        return x

    def most(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the largest entries of all parts."""
        return x

    def sum_at_root(self, x: NDArray[Any]) -> NDArray[Any] | None:
        """Return the sums in part 0, in the order of the parts, in place of its own numbers; None in the others."""
        return x

    def from_root(self, x: Ints) -> Ints:
        """Return what part 0 has; the others pass an array of the same type and length."""
        return x


ALONE = World()


# --------------------------------------------------------------------------------------------------------------------
# Levels, limbs and ledgers.


@ieee_kernel
def level_of(top: float) -> Any:
    """Return the level of numbers up to `top`, which is finite and not negative."""
    exponent = (np.float64(top).view(np.int64) >> np.int64(52)) - np.int64(1022)  # top < 2^exponent
    return max(np.int64(_LOWEST), (exponent + np.int64(_BITS * 64 - 29 + _BITS - 1)) // np.int64(_BITS) - np.int64(64))


@ieee_kernel
def unit_of(top: float) -> float:
    """Return the unit of the level of `top`; NaN if `top` is not finite."""
    return power(np.int64(_BITS) * level_of(top)) if abs(top) < np.inf else np.nan


@ieee_kernel
def power(exponent: Any) -> float:
    """Return 2^exponent, for exponents from −1022 to 1023."""
    return np.int64((exponent + np.int64(1023)) << np.int64(52)).view(np.float64)


@lean_strict_kernel
def add_limbs(x: Any, n: int, scale: float, limbs: Any) -> None:
    """Add x[:n], multiplied by `scale` = 1/unit, to three integers."""
    a = np.int64(0)
    b = np.int64(0)
    c = np.int64(0)
    for i in range(n):
        v = x[i] * scale
        s = v + _MAGIC
        a += np.float64(s).view(np.int64)
        v = (v - (s - _MAGIC)) * _DOWN
        s = v + _MAGIC
        b += np.float64(s).view(np.int64)
        v = (v - (s - _MAGIC)) * _DOWN
        c += np.float64(v + _MAGIC).view(np.int64)
    limbs[0] += a - n * _MAGIC_BITS
    limbs[1] += b - n * _MAGIC_BITS
    limbs[2] += c - n * _MAGIC_BITS


@lean_strict_kernel
def join_limbs(a: Any, b: Any, c: Any, unit: float) -> float:
    """Return the number that three limbs stand for; NaN if the unit is."""
    return (np.float64(a) + (np.float64(b) + np.float64(c) * (1.0 / _DOWN)) * (1.0 / _DOWN)) * unit


@ieee_kernel
def add_tile(x: Any, n: int, ledger: Any) -> None:
    """Add x[:n], a few hundred numbers, to a ledger."""
    top = np.int64(0)
    for i in range(n):
        top = max(top, np.float64(abs(x[i])).view(np.int64))
    if top >= _INFINITE:
        ledger[2 * _LEVELS] += 1
    elif top > 0:
        level = level_of(np.int64(top).view(np.float64))
        at = level + np.int64(35)
        ledger[_LEVELS + at] += 1
        # The order of units in the ledger ascends, that of limbs descends.
        limbs = ledger[at - 2 : at + 1][::-1]
        add_limbs(x, n, power(-np.int64(_BITS) * level), limbs)


@ieee_kernel
def read_ledger(ledger: Any) -> float:
    """Return the sum; NaN if a number was not finite."""
    if ledger[2 * _LEVELS] > 0:
        return np.nan
    at = np.int64(_LEVELS - 1)
    while at > 2 and ledger[_LEVELS + at] == 0:
        at -= 1
    return join_limbs(ledger[at], ledger[at - 1], ledger[at - 2], power(np.int64(_BITS) * (at - np.int64(35))))


@ieee_kernel
def _add_rows(x: Any, w: Any, tile: Any, ledger: Any) -> None:
    for begin in range(0, x.size, _TILE):
        part = x[begin : begin + _TILE]
        n = part.size
        if w.size:
            own = w[begin : begin + _TILE]
            for i in range(n):
                tile[i] = part[i] * own[i]
            add_tile(tile, n, ledger)
        else:
            add_tile(part, n, ledger)


@ieee_kernel
def add_by_group(group: Any, x: Any, scale: float, limbs: Any) -> None:
    """Add each number, multiplied by 1/unit, to the three integers of its group."""
    one: Any = np.int64(1)  # typed: a literal would be compiled apart
    for i in range(x.size):
        add_limbs(x[i : i + 1], one, scale, limbs[group[i]])


_NONE = np.zeros(0)


def total(x: NDArray[Any], w: Array | None = None, world: World = ALONE) -> float:
    """Return Σ x, or Σ w x, over the rows of all parts.

    Examples
    --------
    >>> x = np.array([1e16, 1.0, -1e16])
    >>> total(x), total(x[::-1])
    (1.0, 1.0)
    """
    ledger = np.zeros(LEDGER, np.int64)
    values = np.ascontiguousarray(x, dtype=np.float64)
    _add_rows(values, _NONE if w is None else np.ascontiguousarray(w, dtype=np.float64), np.empty(_TILE), ledger)
    return float(read_ledger(world.sum(ledger)))


def ledgers_by_group(group: NDArray[Any], w: Array | None, n_groups: int) -> Ledger:
    """Return the ledgers of the weights of each group (None: of ones); those of several parts may be added."""
    ledgers = np.zeros((n_groups, LEDGER), np.int64)
    for k in range(n_groups):
        own = group == k
        _add_rows(np.ones(int(own.sum())) if w is None else w[own], _NONE, np.empty(_TILE), ledgers[k])
    return ledgers


def count(x: NDArray[Any], world: World = ALONE) -> int:
    """Return the number of rows of all parts."""
    return int(world.sum(np.array([len(x)], np.int64))[0])


def mean(x: NDArray[Any], w: Array | None = None, world: World = ALONE) -> float:
    """Return the (weighted) mean over the rows of all parts.

    Examples
    --------
    >>> mean(np.array([1.0, 2.0, 6.0])), mean(np.array([1.0, 2.0]), np.array([3.0, 1.0]))
    (3.0, 1.25)
    """
    whole = float(count(x, world)) if w is None else total(w, None, world)
    return total(x, w, world) / whole if whole else math.nan


def level_limbs(top: float) -> tuple[float, float]:
    """Return 1/unit and unit of the level of numbers up to `top`."""
    level = int(level_of(top))
    return math.ldexp(1.0, -_BITS * level), math.ldexp(1.0, _BITS * level)


def sums_by_group(group: NDArray[Any], x: NDArray[Any], n_groups: int, world: World = ALONE) -> Array:
    """Return Σ x over the rows of each group, of all parts; NaN everywhere if a number is not finite.

    Examples
    --------
    >>> sums_by_group(np.array([0, 1, 0]), np.array([1.0, 2.0, 4.0]), 2).tolist()
    [5.0, 2.0]
    """
    values = np.ascontiguousarray(x, dtype=np.float64)
    largest = float(np.abs(values).max(initial=0.0))
    top = float(world.most(np.array([np.inf if np.isnan(largest) else largest]))[0])
    if not np.isfinite(top):
        return np.full(n_groups, np.nan)
    scale, unit = level_limbs(top)
    limbs = np.zeros((n_groups, LIMBS), np.int64)
    add_by_group(np.ascontiguousarray(group), values, scale, limbs)
    limbs = world.sum(limbs)
    return np.array([join_limbs(a, b, c, unit) for a, b, c in limbs.tolist()])


def counts_by_group(group: NDArray[Any], n_groups: int, world: World = ALONE) -> NDArray[np.int64]:
    """Return the number of rows of each group, of all parts."""
    return world.sum(np.bincount(group, minlength=n_groups).astype(np.int64))
