"""Quantiles of the rows of each leaf: by sorting, or, where the rows lie in several places, by counting.

Of rows in several places every part sorts its own once. The quantile of all is then found by halving: how much weight
is at or below a number is added up over the parts, in integers, for one number per leaf at a time. Floats are halved
by their bits, which have the order of the numbers, so that 64 steps end at the number itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import Array, NDArray
from ...data.any_order import ALONE, World

Ids = NDArray[np.int32]

_SLACK = 1e-12  # what rounding may do to a sum of weights, as a share of it
_HALF = 31  # bits of a weight in each of two integers; their sums then have room for 2^32 rows
_SIGN = np.uint64(1 << 63)


def quantiles_by_leaf(leaf: Ids, n_leaves: int, x: Array, w: Array | None, level: float, world: World = ALONE) -> Array:
    """Return the weighted quantile of x in each leaf: the middle of both where the level falls between two values.

    Examples
    --------
    >>> leaf, x = np.array([0, 1, 0, 1, 0], np.int32), np.array([3.0, 1.0, 1.0, 2.0, 2.0])
    >>> quantiles_by_leaf(leaf, 2, x, None, 0.5)
    array([2. , 1.5])
    """
    if world.size > 1:
        return _shared_quantiles(leaf, n_leaves, x, w, level, world)
    order = np.argsort(x, kind="stable")
    order = order[np.argsort(leaf[order].astype(np.int16 if n_leaves < 2**15 else np.int32), kind="stable")]
    weight = np.ones(len(x)) if w is None else w[order]
    counts = np.bincount(leaf, minlength=n_leaves)
    first = np.r_[0, np.cumsum(counts)]
    total = np.r_[0.0, np.cumsum(weight)]
    base, whole = total[first[:-1]], total[first[1:]] - total[first[:-1]]
    wanted = base + level * whole
    slack = _SLACK * np.maximum(whole, total[-1] * 1e-3)
    at = np.clip(np.searchsorted(total[1:], wanted - slack), first[:-1], np.maximum(first[1:] - 1, first[:-1]))
    at = np.minimum(at, len(x) - 1)
    between = np.abs(total[at + 1] - wanted) <= slack
    above = np.where(between & (at + 1 < first[1:]), at + 1, at)
    found = x[order[at]] / 2 + x[order[np.minimum(above, len(x) - 1)]] / 2
    return np.where(counts > 0, found, 0.0)


def _shared_quantiles(leaf: Ids, n_leaves: int, x: Array, w: Array | None, level: float, world: World) -> Array:
    """Do the same over the rows of all parts."""
    own = _Sorted(leaf, n_leaves, x, w, world)
    whole = own.weight(world, own.last)
    counts = world.sum(np.diff(own.first).astype(np.int64))
    wanted = level * whole
    slack = _SLACK * np.maximum(whole, whole.sum() * 1e-3)
    low, high = np.zeros(n_leaves, np.uint64), np.full(n_leaves, np.uint64(2**64 - 1))
    for _ in range(64):
        middle = low + (high - low) // np.uint64(2)
        enough = own.weight(world, own.places(middle)) >= wanted - slack
        high = np.where(enough, middle, high)
        low = np.where(enough, low, np.minimum(middle, high - np.uint64(1)) + np.uint64(1))
    at = own.places(high)
    below = own.weight(world, at)
    found = _floats(high)
    after = -world.most(-own.values_at(at))
    between = (np.abs(below - wanted) <= slack) & np.isfinite(after)
    result = found / 2 + np.where(between, after, found) / 2
    return np.where(counts > 0, result, 0.0)


class _Sorted:
    """The rows of one part by leaf and value, with sums of their weights in integers."""

    def __init__(self, leaf: Ids, n_leaves: int, x: Array, w: Array | None, world: World) -> None:
        order = np.argsort(x, kind="stable")
        order = order[np.argsort(leaf[order], kind="stable")]
        self.x = x[order] + 0.0  # −0.0 becomes 0.0
        self.keys = _keys(self.x)
        self.first = np.r_[0, np.cumsum(np.bincount(leaf, minlength=n_leaves))]
        self.last = self.first[1:]
        self.scale = 0
        self.sums: NDArray[np.int64] | None = None
        if w is not None:
            top = float(world.most(np.array([w.max(initial=0.0)]))[0])
            self.scale = int(np.frexp(top)[1])
            scaled = np.ldexp(w[order], _HALF - self.scale)
            upper = np.floor(scaled)
            parts = np.stack([upper, np.rint(np.ldexp(scaled - upper, _HALF))], axis=1).astype(np.int64)
            self.sums = np.concatenate([np.zeros((1, 2), np.int64), np.cumsum(parts, axis=0)])

    def places(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return for each leaf where its values above the key begin."""
        ends = zip(self.first[:-1].tolist(), self.last.tolist(), keys, strict=True)
        return np.array([a + int(np.searchsorted(self.keys[a:b], key, side="right")) for a, b, key in ends], np.int64)

    def weight(self, world: World, at: NDArray[Any]) -> Array:
        """Return the weight of the rows of each leaf before a place, of all parts."""
        if self.sums is None:
            return world.sum(np.asarray(at, np.int64) - self.first[:-1]).astype(np.float64)
        own = world.sum(self.sums[at] - self.sums[self.first[:-1]])
        return np.ldexp(own[:, 0] + np.ldexp(own[:, 1].astype(np.float64), -_HALF), self.scale - _HALF)

    def values_at(self, at: NDArray[np.int64]) -> Array:
        """Return the value at a place of each leaf; infinity beyond its end."""
        inside = at < self.last
        return np.where(inside, self.x[np.minimum(at, max(len(self.x) - 1, 0))] if len(self.x) else np.inf, np.inf)


def _keys(x: Array) -> NDArray[np.uint64]:
    """Return integers in the order of the floats."""
    bits = np.ascontiguousarray(x).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _floats(keys: NDArray[np.uint64]) -> Array:
    """Return the floats that keys stand for."""
    return np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64)
