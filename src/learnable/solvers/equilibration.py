r"""Units in which the numbers of a program are about one.

With x = D x̂, rows multiplied by E and the objective by c, the program keeps its solution, while rows and columns of
its matrices have largest entries near one. All factors are powers of two, so that nothing is rounded.

Reference: D. Ruiz, A scaling algorithm to equilibrate both rows and columns norms in matrices, RAL-TR-2001-034.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.errors import DataError
from .programs import Multipliers, QuadraticProgram, largest

Array = NDArray[np.float64]

_ROUNDS = 12
_BALANCED = 0.8  # from here to its inverse a root is near enough to one
_LARGEST = 1e300


@dataclass(frozen=True)
class Equilibrated:
    """A program in balanced units, and the way back.

    Attributes
    ----------
    program : QuadraticProgram
        In x̂.
    columns : (n,) array
        D.
    inequality_rows, equality_rows : (m,) and (k,) arrays
        E of G and of A.
    cost : float
        c.
    """

    program: QuadraticProgram
    columns: Array
    inequality_rows: Array
    equality_rows: Array
    cost: float

    def point(self, x: Array) -> Array:
        """Return x for x̂, also a direction for a direction."""
        return np.asarray(self.columns * x)

    def multipliers(self, scaled: Multipliers, cost: float | None = None) -> Multipliers:
        """Return the multipliers of the program as it was given; with cost 1, a proof of infeasibility."""
        c = self.cost if cost is None else cost
        return Multipliers(
            scaled.inequality * self.inequality_rows / c,
            scaled.equality * self.equality_rows / c,
            scaled.lower / self.columns / c,
            scaled.upper / self.columns / c,
        )


def equilibrate(given: QuadraticProgram) -> Equilibrated:
    """Return the program in units in which its numbers are about one.

    Examples
    --------
    >>> from learnable.solvers import QuadraticProgram
    >>> found = equilibrate(QuadraticProgram([[4e10]], [1e3], upper=[1.0]))
    >>> bool(0.5 <= found.program.P[0, 0] <= 2.0), found.point(found.program.upper)
    (True, array([1.]))
    """
    n = len(given.q)
    D, E, F = np.ones(n), np.ones(len(given.h)), np.ones(len(given.b))
    P = None if given.P is None else abs(given.P)
    G, A = abs(given.G), abs(given.A)
    for _ in range(_ROUNDS):
        columns = np.zeros(n) if P is None else _column_largest(_scaled(P, D, D))
        columns = np.maximum(columns, _column_largest(_scaled(G, E, D)))
        columns = np.maximum(columns, _column_largest(_scaled(A, F, D)))
        roots = _root(_row_largest(_scaled(G, E, D))), _root(_row_largest(_scaled(A, F, D))), _root(columns)
        E, F, D = E / roots[0], F / roots[1], D / roots[2]
        if all(((root > _BALANCED) & (root < 1.0 / _BALANCED)).all() for root in roots):
            break
    D, E, F = _power_of_two(D), _power_of_two(E), _power_of_two(F)
    balanced = _in_units(given, D, E, F, 1.0)
    unit = float(_power_of_two(np.array([balanced.unit]))[0])
    D, E, F = D * unit, E / unit, F / unit
    with np.errstate(over="ignore", under="ignore"):
        size = max(largest(_scaled(given.P, D, D)) if given.P is not None else 0.0, largest(D * given.q))
    if not size < _LARGEST or (size < 1.0 / _LARGEST and (largest(given.q) > 0.0 or largest(given.P) > 0.0)):
        raise DataError(
            f"the program's objective would be about {size:.0e}, beyond floating point, where x is about "
            f"{largest(D):.0e}; measure x or the objective in other units."
        )
    cost = 1.0 / float(_power_of_two(np.array([size]))[0]) if size > 0.0 else 1.0
    return Equilibrated(_in_units(given, D, E, F, cost), D, E, F, cost)


def _in_units(given: QuadraticProgram, D: Array, E: Array, F: Array, cost: float) -> QuadraticProgram:
    with np.errstate(over="ignore"):  # a bound beyond every float is none
        return QuadraticProgram(
            None if given.P is None else cost * _scaled(given.P, D, D),
            cost * (D * given.q),
            _scaled(given.G, E, D),
            E * given.h,
            _scaled(given.A, F, D),
            F * given.b,
            given.lower / D,
            given.upper / D,
        )


def _scaled(M: Any, rows: Array, columns: Array) -> Any:
    if sp.issparse(M):
        return sp.csr_array(sp.diags_array(rows) @ M @ sp.diags_array(columns))
    # Each entry times both factors at once: they may be far apart where the entry is far out.
    return rows[:, None] * M * columns


def _row_largest(M: Any) -> Array:
    if not M.shape[0]:
        return np.zeros(0)
    return np.asarray(M.max(axis=1).toarray()).ravel() if sp.issparse(M) else np.asarray(M.max(axis=1))


def _column_largest(M: Any) -> Array:
    if not M.shape[0]:
        return np.zeros(M.shape[1])
    return np.asarray(M.max(axis=0).toarray()).ravel() if sp.issparse(M) else np.asarray(M.max(axis=0))


def _root(values: Array) -> Array:
    return np.sqrt(np.where(values > 0.0, values, 1.0))


def _power_of_two(values: Array) -> Array:
    return np.asarray(np.exp2(np.round(np.log2(values))))
