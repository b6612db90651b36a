"""Classes of sets whose labelings can be counted: thresholds, intervals, boxes, halfspaces, stumps, trees, sines.

Each class knows its VC dimension, its growth function Π(n) (exact where `growth_is_exact`, else a bound), and
enumerates the labelings of given points. Enumerations are exact; they take time in proportion to the number of
labelings, so that a few dozen points are many.

References: V. Vapnik and A. Chervonenkis, 1971. T. Cover, 1965 (halfspaces). L. Devroye, L. Györfi and G. Lugosi, A
Probabilistic Theory of Pattern Recognition, 1996, ch. 13.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from ...core import DataError, ParameterError, check_parameters
from ..concentration.base import COUNT, Array
from .counting import log_sauer, sauer

Labels = NDArray[np.bool_]


@dataclass(frozen=True)
class SetClass:
    """A class of subsets of R^d; not to be used directly."""

    d: int = 1  #: number of columns

    growth_is_exact = True

    def __post_init__(self) -> None:
        check_parameters(type(self).__name__, {"d": self.d}, {"d": COUNT})

    @property
    def vc_dimension(self) -> float:
        """The largest number of points that some position lets the class label in every way."""
        raise TypeError(f"{type(self).__name__} does not define vc_dimension")

    def growth(self, n: int) -> int:
        """Return Π(n), the most labelings of n points, or Sauer's bound on it."""
        return sauer(n, int(self.vc_dimension))

    def log_growth(self, n: int) -> float:
        """Return ln Π(n), or the logarithm of the bound on it."""
        return log_sauer(n, int(self.vc_dimension))

    def labelings(self, points: Any) -> Labels:
        """Return the distinct labelings of given points, one per row."""
        X = self._read(points)
        masks = sorted(set(self._masks(X)))
        n = len(X)
        return np.array([[mask >> i & 1 for i in range(n)] for mask in masks], dtype=np.bool_).reshape(-1, n)

    def growth_on(self, points: Any) -> int:
        """Return the number of labelings of given points."""
        return len(set(self._masks(self._read(points))))

    def shatters(self, points: Any) -> bool:
        """Tell whether given points are labelled in every way."""
        X = self._read(points)
        return bool(len(set(self._masks(X))) == 2 ** len(X))

    def _masks(self, X: Array) -> Iterable[int]:
        """Yield labelings as integers, the i-th bit for the i-th point; repeats are allowed."""
        raise TypeError(f"{type(self).__name__} does not define _masks")

    def _read(self, points: Any) -> Array:
        X = np.asarray(points, dtype=np.float64)
        if X.ndim == 1 and self.d == 1:
            X = X[:, None]
        if X.ndim != 2 or X.shape[1] != self.d or not np.isfinite(X).all():
            raise DataError(f"{type(self).__name__}: points must be finite, of {self.d} columns; got shape {X.shape}.")
        return X


@dataclass(frozen=True)
class Thresholds(SetClass):
    """Half-lines {x ≥ t}: Π(n) = n + 1, VC dimension 1.

    Examples
    --------
    >>> from learnable.theory.vc import Thresholds
    >>> Thresholds().growth_on([3.0, 1.0, 2.0]), Thresholds().growth(3)
    (4, 4)
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d != 1:
            raise ParameterError(f"Thresholds: they are sets of numbers, d = 1; got d={self.d}. Use Stumps(d).")

    @property
    def vc_dimension(self) -> float:
        """1."""
        return 1

    def _masks(self, X: Array) -> Iterable[int]:
        return _upper_sets(X[:, 0])


@dataclass(frozen=True)
class Intervals(SetClass):
    """Intervals [a, b] of the line: Π(n) = n(n + 1)/2 + 1, VC dimension 2.

    Examples
    --------
    >>> from learnable.theory.vc import Intervals
    >>> Intervals().growth_on([0.1, 0.2, 0.5, 0.9]), Intervals().growth(4), Intervals().shatters([1.0, 2.0, 3.0])
    (11, 11, False)
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d != 1:
            raise ParameterError(f"Intervals: they are sets of numbers, d = 1; got d={self.d}. Use Rectangles(d).")

    @property
    def vc_dimension(self) -> float:
        """2."""
        return 2

    def _masks(self, X: Array) -> Iterable[int]:
        ups = _upper_sets(X[:, 0])
        return {up & ~further for i, up in enumerate(ups) for further in ups[i:]}


@dataclass(frozen=True)
class Rectangles(SetClass):
    """Axis-parallel boxes in R^d: VC dimension 2d; Π(n) is bounded by Sauer's lemma, and exact for d = 1.

    Examples
    --------
    >>> from learnable.theory.vc import Rectangles
    >>> Rectangles(2).shatters([[0, 1], [0, -1], [1, 0], [-1, 0]])
    True
    """

    @property
    def growth_is_exact(self) -> bool:  # type: ignore[override]
        """Only on the line."""
        return self.d == 1

    @property
    def vc_dimension(self) -> float:
        """2d."""
        return 2 * self.d

    def _masks(self, X: Array) -> Iterable[int]:
        """Grow boxes point by point: every labeling is the content of the bounding box of its own points."""
        n = len(X)
        found = {0}
        waiting = [_inside(X, X[i], X[i]) for i in range(n)]
        while waiting:
            mask = waiting.pop()
            if mask in found:
                continue
            found.add(mask)
            members = X[[bool(mask >> i & 1) for i in range(n)]]
            low = members.min(axis=0)
            high = members.max(axis=0)
            for i in range(n):
                if not mask >> i & 1:
                    waiting.append(_inside(X, np.minimum(low, X[i]), np.maximum(high, X[i])))
        return found


@dataclass(frozen=True)
class Halfspaces(SetClass):
    """Halfspaces {w·x + b > 0} in R^d: VC dimension d + 1; Π(n) = 2 Σ_{i ≤ d} C(n − 1, i) (Cover), exact.

    With `through_origin`, b = 0: VC dimension d, and the sum ends at d − 1.

    Examples
    --------
    >>> from learnable.theory.vc import Halfspaces
    >>> Halfspaces(2).growth_on([[0, 0], [1, 0], [0, 1], [1.2, 1.1]]), Halfspaces(2).growth(4)
    (14, 14)
    """

    through_origin: bool = False

    @property
    def vc_dimension(self) -> float:
        """One more than d; d through the origin."""
        return self.d if self.through_origin else self.d + 1

    def growth(self, n: int) -> int:
        """Return Cover's number."""
        return 2 * sauer(n - 1, int(self.vc_dimension) - 1) if n > 0 else 1

    def log_growth(self, n: int) -> float:
        """Return the logarithm of Cover's number."""
        return math.log(2.0) + log_sauer(n - 1, int(self.vc_dimension) - 1) if n > 0 else 0.0

    def _masks(self, X: Array) -> Iterable[int]:
        rows = X if self.through_origin else np.column_stack([X, np.ones(len(X))])
        # (labels so far as signs, a strict separator of them)
        found: list[tuple[list[float], Array]] = [([], np.zeros(rows.shape[1]))]
        for i, row in enumerate(rows):
            extended = []
            for signs, w in found:
                score = float(w @ row)
                for sign in (1.0, -1.0):
                    if sign * score > 1e-7:
                        extended.append(([*signs, sign], w))
                        continue
                    separator = _separator(rows[: i + 1], np.array([*signs, sign]))
                    if separator is not None:
                        extended.append(([*signs, sign], separator))
            found = extended
        return [sum(1 << i for i, sign in enumerate(signs) if sign > 0) for signs, _ in found]


@dataclass(frozen=True)
class Stumps(SetClass):
    """Decision stumps: one threshold on one of d columns, either side positive.

    At most 2d(n − 1) + 2 labelings. On the line that is 2n, exact; with more columns small n may have fewer.

    Examples
    --------
    >>> from learnable.theory.vc import Stumps
    >>> Stumps(1).growth_on([1.0, 2.0, 3.0]), Stumps(2).growth(10), Stumps(1).vc_dimension
    (6, 38, 2)
    """

    @property
    def growth_is_exact(self) -> bool:  # type: ignore[override]
        """Only on the line."""
        return self.d == 1

    @property
    def vc_dimension(self) -> float:
        """2 on the line; else the largest n with 2^n ≤ 2d(n − 1) + 2, a bound."""
        if self.d == 1:
            return 2
        return max(n for n in range(1, 64) if 2**n <= 2 * self.d * (n - 1) + 2)

    def growth(self, n: int) -> int:
        """Return 2d(n − 1) + 2, or 2^n if that is less."""
        return min(2**n, 2 * self.d * (n - 1) + 2) if n > 0 else 1

    def log_growth(self, n: int) -> float:
        """Return its logarithm."""
        return min(n * math.log(2.0), math.log(2.0 * self.d * (n - 1) + 2.0)) if n > 0 else 0.0

    def _masks(self, X: Array) -> Iterable[int]:
        full = (1 << len(X)) - 1
        found = set()
        for column in X.T:
            for up in _upper_sets(column):
                found |= {up, full & ~up}
        return found


@dataclass(frozen=True)
class Trees(SetClass):
    """Binary trees of at most `splits` axis-parallel splits with a label in {0, 1} at each leaf.

    A tree is a shape (Catalan's number of them), a cut for each split (a column, and a place between two of the n
    points, or outside them all), and a label for each leaf: Π(n) ≤ C_s (d(n − 1) + 1)^s 2^{s+1}.

    Examples
    --------
    >>> from learnable.theory.vc import Trees
    >>> Trees(1, splits=2).growth_on([1.0, 2.0, 3.0]), Trees(1, splits=2).shatters([1.0, 2.0, 3.0, 4.0])
    (8, False)
    """

    splits: int = 1
    growth_is_exact = False

    @property
    def vc_dimension(self) -> float:
        """On the line splits + 1; else the largest n with 2^n ≤ the bound on Π(n)."""
        if self.d == 1:
            return self.splits + 1
        n = self.splits + 1
        while (n + 1) * math.log(2.0) <= self.log_growth(n + 1):
            n += 1
        return n

    def growth(self, n: int) -> int:
        """Return the bound on Π(n)."""
        if self.d == 1:
            return sauer(n, self.splits + 1)
        return int(min(2**n, math.ceil(math.exp(min(self.log_growth(n), 700.0)))))

    def log_growth(self, n: int) -> float:
        """Return the logarithm of the bound."""
        return min(n * math.log(2.0), log_tree_growth(n, self.d, self.splits, 2))

    def _masks(self, X: Array) -> Iterable[int]:
        n = len(X)
        cuts = {up for column in X.T for up in _upper_sets(column)}

        @cache
        def of(points: int, splits: int) -> frozenset[int]:
            found = {0, points}
            if splits:
                for cut in cuts:
                    right = points & cut
                    left = points & ~cut
                    if not (left and right):
                        continue
                    for there in range(splits):
                        pairs = ((a, b) for a in of(left, there) for b in of(right, splits - 1 - there))
                        found |= {a | b for a, b in pairs}
            return frozenset(found)

        return of((1 << n) - 1, self.splits)


def log_tree_growth(n: int, d: int, splits: int, labels: int) -> float:
    """Return ln(C_s (d(n − 1) + 1)^s K^{s+1}): the labelings of n points by trees of s splits and K labels."""
    catalan = math.lgamma(2.0 * splits + 1.0) - math.lgamma(splits + 1.0) - math.lgamma(splits + 2.0)
    return catalan + splits * math.log(d * max(n - 1, 0) + 1.0) + (splits + 1) * math.log(labels)


@dataclass(frozen=True)
class SineWaves(SetClass):
    """Sets {x: sin(ωx) ≥ 0}: one parameter, infinite VC dimension.

    `witness` gives, for any labels of the points 10⁻¹, 10⁻², …, the frequency that produces them.

    Examples
    --------
    >>> from learnable.theory.vc import SineWaves
    >>> points, omega = SineWaves().witness([1, 0, 0, 1])
    >>> (np.sin(omega * points) >= 0).astype(int).tolist()
    [1, 0, 0, 1]
    """

    @property
    def vc_dimension(self) -> float:
        """Infinite."""
        return math.inf

    def growth(self, n: int) -> int:
        """Return 2^n."""
        return int(2**n)

    def log_growth(self, n: int) -> float:
        """Return n ln 2."""
        return n * math.log(2.0)

    def witness(self, labels: Any) -> tuple[Array, float]:
        """Return points xᵢ = 10⁻ⁱ and ω = π(1 + Σ (1 − yᵢ) 10ⁱ); up to 14 labels, the digits of a float."""
        y = np.asarray(labels, dtype=np.int64)
        if y.ndim != 1 or len(y) > 14 or not np.isin(y, (0, 1)).all():
            raise DataError("SineWaves: labels must be at most 14 zeros and ones.")
        powers = 10.0 ** np.arange(1, len(y) + 1)
        return np.asarray(1.0 / powers, dtype=np.float64), math.pi * (1.0 + float((1 - y) @ powers))


class FiniteClass(SetClass):
    """A finite class, given by the labels that its members give to a list of points.

    `growth_on` and `shatters` take positions in that list.

    Examples
    --------
    >>> from learnable.theory.vc import FiniteClass
    >>> table = FiniteClass([[0, 0, 1], [0, 1, 1], [1, 1, 1], [0, 1, 1]])
    >>> table.size, table.growth_on([0, 1]), table.vc_dimension
    (3, 3, 1)
    """

    def __init__(self, labels: Any) -> None:
        table = np.asarray(labels)
        if table.ndim != 2 or table.size == 0 or not np.isin(table, (0, 1)).all():
            raise DataError("FiniteClass: labels must be a table of zeros and ones, one row per member.")
        object.__setattr__(self, "d", 1)
        object.__setattr__(self, "table", np.unique(table.astype(np.bool_), axis=0))

    @property
    def size(self) -> int:
        """Number of different members."""
        return len(self.table)  # type: ignore[attr-defined]

    @property
    def vc_dimension(self) -> float:
        """The largest number of the points that is shattered, by search."""
        from .search import find_dimension

        table: Labels = self.table  # type: ignore[attr-defined]
        return find_dimension(self, np.arange(table.shape[1], dtype=np.float64)).dimension

    def log_growth(self, n: int) -> float:
        """Return ln min(2^n, size)."""
        return min(n * math.log(2.0), math.log(self.size))

    def growth(self, n: int) -> int:
        """Return a bound: the number of members, or Sauer's."""
        return min(self.size, sauer(n, int(self.vc_dimension)))

    def _masks(self, X: Array) -> Iterator[int]:
        table: Labels = self.table  # type: ignore[attr-defined]
        positions = X[:, 0].astype(np.int64)
        if len(positions) and (positions.min() < 0 or positions.max() >= table.shape[1]):
            raise DataError(f"FiniteClass: points are positions from 0 to {table.shape[1] - 1}.")
        for row in table[:, positions]:
            yield sum(1 << i for i, label in enumerate(row) if label)


def _upper_sets(column: Array) -> list[int]:
    """Return {x ≥ t} for all t as integers, from all points to none."""
    masks = []
    for t in [*np.unique(column), math.inf]:
        masks.append(sum(1 << i for i, value in enumerate(column) if value >= t))
    return masks


def _inside(X: Array, low: Array, high: Array) -> int:
    inside = np.all(np.greater_equal(X, low) & np.less_equal(X, high), axis=1)
    return sum(1 << i for i in np.flatnonzero(inside).tolist())


def _separator(rows: Array, signs: Array) -> Array | None:
    """Return w with signs·(rows w) ≥ 1, or None: a linear program."""
    found = linprog(np.zeros(rows.shape[1]), A_ub=-signs[:, None] * rows, b_ub=-np.ones(len(rows)), bounds=(None, None))
    return np.asarray(found.x) if found.status == 0 else None
