r"""Lloyd's algorithm over rows that lie in partitions: bounds stay with the rows, sums are whole numbers.

Each partition has what `BoundedLloyd` has of rows in memory, where the same process sums it in every pass
(`data/memory.py`); elsewhere it is made anew and forgotten. Labels are those of plain Lloyd either way. The sums of the
clusters follow the rows that change their cluster. So that they do not depend on which rows changed when, every number
w(x − origin) is rounded once to a whole multiple of 2⁻³⁰ units, and multiples are added as integers, in two halves:

    w(x − origin)·scale = high + 2⁻³⁰·low,      |high| < 2²⁹,  |low| ≤ 2²⁹.

The scale is a power of two that the farthest row sets; numbers are kept to 58 bits below it. Centres then have the same
bits for any partitions, workers and faults, and the inertia J = Σ w‖x − o‖² − 2⟨c − o, sums⟩ + Σ counts‖c − o‖² for any
workers and faults.
"""

from __future__ import annotations

import math
import secrets
from functools import partial
from typing import Any, Final

import numpy as np

from ..core import AnyArray, NDArray
from ..core.jit import ieee_kernel
from ..data.blocks import Block, map_reduce
from ..data.memory import part_memory
from ._kernels import squares_to_own
from .bounded import BoundedLloyd
from .lloyd import Farthest, far_rows, means_of_clusters
from .spaces import Space

Limbs = NDArray[np.int64]

_HIGH_BITS = 29  # of a row's number; fewer where so many rows would overflow 63 bits
_LOW: Final = 2.0**30  # what the lower half of a number is counted in: both halves fit 63 bits
#: Bytes that a row's bounds take, besides 4 per column: labels, bounds, squares.
_ROW_BYTES = 48


@ieee_kernel
def move_rows(
    X: AnyArray,
    before: AnyArray,
    after: AnyArray,
    weight: AnyArray,
    origin: AnyArray,
    scale: float,
    of_weight: float,
    limbs: AnyArray,
) -> None:
    """Take rows out of the sums of one cluster and add them to those of another.

    IN  X (m, d), before and after (m,) labels, -1: none yet; weight (m,) or empty: one each; origin (d,); scale of the
        columns and of the weights.
    OUT limbs (K, 2, d + 1): high and low halves; the last column is the weight.
    """
    d = X.shape[1]
    for i in range(after.size):
        old = before[i]
        new = after[i]
        if old == new:
            continue
        w = weight[i] if weight.size else 1.0
        high = limbs[new, 0]
        low = limbs[new, 1]
        for j in range(d + 1):
            value = w * of_weight if j == d else w * (X[i, j] - origin[j]) * scale
            top = np.rint(value)
            a = np.int64(top)
            b = np.int64(np.rint((value - top) * _LOW))
            high[j] += a
            low[j] += b
            if old >= 0:
                limbs[old, 0, j] -= a
                limbs[old, 1, j] -= b


class _Held:
    """What is known of the rows of a partition."""

    def __init__(self, block: Block, origin: AnyArray, K: int, centres: AnyArray) -> None:
        self.bounded = BoundedLloyd(block.X, block.weight, origin, K, n_jobs=1, adds=False)
        self.bounded.restart(centres)
        self.labels = np.full(block.X.shape[0], -1, np.int32)  # those that the sums are about
        self.limbs: Limbs = np.zeros((K, 2, block.X.shape[1] + 1), np.int64)
        self.scatter = float(self.bounded.scatter.sum())


class PartLloyd:
    """The two steps of `solvers.em` over partitions.

    Parameters
    ----------
    space : Space
        The rows, beyond memory.
    K : int
        Number of clusters.
    """

    def __init__(self, space: Space, K: int) -> None:
        self.blocks = space.blocks.by_partition()
        self.origin = space.mean
        self.K = K
        bits = min(_HIGH_BITS, 61 - int(self.blocks.n_rows).bit_length())
        self.scale = _scale_below(space.reach, bits)
        self.of_weight = _scale_below(space.heaviest, bits)
        self.name: str | None = None  # of this climb; None remembers nothing

    def begin(self, remembers: bool) -> None:
        """Start another climb: what is remembered belongs to the last one."""
        self.name = secrets.token_hex(8) if remembers else None

    @property
    def bytes_remembered(self) -> float:
        """What workers need for it, besides the rows."""
        return float(self.blocks.n_rows) * (4 * (len(self.origin) + 2) + _ROW_BYTES)

    def __getstate__(self) -> dict[str, Any]:
        """Travel to another process without the rows."""
        return self.__dict__ | {"blocks": None}

    def expectation(self, block: Block, centres: AnyArray) -> tuple[tuple[Any, ...], float]:
        """Return the sums of the clusters in halves, and −J."""
        held = self._at(block, centres)
        counts, sums = self._read(held.limbs)
        shifted = centres - self.origin
        inertia = held.scatter - 2 * float(np.vdot(shifted, sums)) + float(counts @ (shifted * shifted).sum(axis=1))
        return (held.limbs.copy(),), -inertia

    def maximisation(self, statistics: tuple[Any, ...], centres: AnyArray) -> AnyArray:
        """Return the means of the clusters; one without rows gets the row farthest from its centre."""
        counts, sums = self._read(statistics[0])
        far = None
        if (counts <= 0).any():
            far = map_reduce(self.blocks, partial(_far_of, centres), _add)
        return means_of_clusters(counts, sums, far, self.origin, centres)

    def log_prior(self, centres: AnyArray) -> float:
        """Return zero: there is no prior."""
        return 0.0

    def labelled(self, block: Block, centres: AnyArray) -> tuple[list[AnyArray], float, float]:
        """Return labels of a partition's rows and their inertia, measured; rounding leaves nothing of note here."""
        labels = self._at(block, centres).labels.copy()
        squares = np.empty(len(labels))
        squares_to_own(block.X, centres, labels, squares)
        return [labels], float(squares.sum() if block.weight is None else squares @ block.weight), 0.0

    def _at(self, block: Block, centres: AnyArray) -> _Held:
        """Give the rows of a partition their nearest centres."""
        held = self._held(block, centres)
        bounded = held.bounded
        if bounded.passed is not None:
            bounded.move_to(centres)
        for part in bounded.parts:
            bounded.assign(part, centres)
        move_rows(
            bounded.X, held.labels, bounded.labels, bounded.weight, self.origin, self.scale, self.of_weight, held.limbs
        )
        held.labels[:] = bounded.labels
        return held

    def _held(self, block: Block, centres: AnyArray) -> _Held:
        memory = part_memory() if self.name is not None else None
        if memory is None:
            return _Held(block, self.origin, self.K, centres)
        climb = memory.setdefault("lloyd", {})
        if climb.get("name") != self.name:
            climb.clear()
            climb["name"] = self.name
        if block.start not in climb:
            climb[block.start] = _Held(block, self.origin, self.K, centres)
        held: _Held = climb[block.start]
        return held

    def _read(self, limbs: Limbs) -> tuple[AnyArray, AnyArray]:
        """Return the weights and the sums that the halves stand for."""
        values = limbs[:, 0] + limbs[:, 1] * (1.0 / _LOW)
        return values[:, -1] / self.of_weight, values[:, :-1] / self.scale


def _scale_below(top: float, bits: int) -> float:
    """Return the power of two that brings numbers up to `top` below 2^bits."""
    return math.ldexp(1.0, bits - math.frexp(top)[1]) if top > 0 else 1.0


def _far_of(centres: AnyArray, block: Block) -> Farthest:
    return far_rows(block, centres)


def _add(a: Farthest, b: Farthest) -> Farthest:
    return a + b
