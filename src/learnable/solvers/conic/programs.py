r"""Linear and quadratic programs as data, what their solvers return, and the proofs that there is no solution.

    min ½xᵀPx + qᵀx   subject to   Gx ≤ h,   Ax = b,   l ≤ x ≤ u,      P positive semidefinite

The Lagrange multipliers are z ≥ 0 for Gx ≤ h, ν for Ax = b, and λ, μ ≥ 0 for the bounds. By Farkas's lemma the
constraints contradict each other exactly if some multipliers have

    Gᵀz + Aᵀν − λ + μ = 0   and   hᵀz + bᵀν − lᵀλ + uᵀμ < 0,

and a feasible program falls without end exactly if there is a direction d with Pd = 0, Ad = 0, Gd ≤ 0, pointing away
from no finite bound, and qᵀd < 0 (M. Frank and P. Wolfe, An algorithm for quadratic programming, 1956).

Units in which the numbers of a program are about one.

With x = D x̂, rows multiplied by E and the objective by c, the program keeps its solution, while rows and columns of
its matrices have largest entries near one. All factors are powers of two, so that nothing is rounded.

Reference: D. Ruiz, A scaling algorithm to equilibrate both rows and columns norms in matrices, RAL-TR-2001-034.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core import Certificate, DataError, LearnableError
from .kkt import Goal, KKTReport, Rows

Array: TypeAlias = NDArray[np.float64]

_FLOOR = 1e-8  # of the program's own units: what is smaller counts as zero
_ASYMMETRY = 1e-10  # of the largest entry of P


class Multipliers(NamedTuple):
    """Lagrange multipliers of a program, or a combination of its constraints."""

    inequality: Array  #: z ≥ 0 of Gx ≤ h
    equality: Array  #: ν of Ax = b
    lower: Array  #: (n,) λ ≥ 0 of l ≤ x, 0 where there is no bound
    upper: Array  #: (n,) μ ≥ 0 of x ≤ u, likewise


class InfeasibleError(LearnableError, ArithmeticError):
    """No point satisfies the constraints; `proof` holds multipliers that show it (Farkas's lemma)."""

    def __init__(self, message: str, proof: Multipliers) -> None:
        super().__init__(message)
        self.proof = proof


class UnboundedError(LearnableError, ArithmeticError):
    """The objective falls without end; `direction` is a way along which it does."""

    def __init__(self, message: str, direction: Array) -> None:
        super().__init__(message)
        self.direction = direction


@dataclass(frozen=True)
class ProgramSolution:
    """Where a linear or quadratic program is smallest.

    Attributes
    ----------
    x : (n,) array
        The point.
    value : float
        The objective there.
    dual_value : float
        The lower bound that the multipliers give; equal to `value` at the optimum.
    multipliers : Multipliers
        z, ν, λ and μ.
    report : KKTReport
        The residual of every condition of optimality, and the duality gap.
    certificate : Certificate
        `stationarity`: the largest of these residuals.
    n_iter : int
        Iterations.
    """

    x: Array
    value: float
    dual_value: float
    multipliers: Multipliers
    report: KKTReport
    certificate: Certificate
    n_iter: int


@dataclass(frozen=True, eq=False)
class QuadraticProgram:
    """Minimise ½xᵀPx + qᵀx subject to Gx ≤ h, Ax = b, lower ≤ x ≤ upper; without P a linear program.

    Parameters
    ----------
    P : (n, n) array, sparse array or None
        Symmetric and positive semidefinite; its convexity is the solver's business.
    q : (n,) array
        The linear part.
    G, h : (m, n) and (m,) arrays, optional
        Inequalities; G may be sparse.
    A, b : (k, n) and (k,) arrays, optional
        Equalities; A may be sparse.
    lower, upper : (n,) arrays or numbers, optional
        Bounds; ±inf, and None, are none.

    Examples
    --------
    >>> from learnable.solvers import QuadraticProgram, kkt_report
    >>> program = QuadraticProgram([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0], A=[[1.0, 1.0]], b=[2.0])
    >>> kkt_report(program, [1.0, 1.0]).holds()
    True
    """

    P: Any
    q: Any
    G: Any = None
    h: Any = None
    A: Any = None
    b: Any = None
    lower: Any = None
    upper: Any = None

    def __post_init__(self) -> None:
        q = _vector("q", self.q)
        n = len(q)
        low = np.full(n, -np.inf) if self.lower is None else _bounds("lower", self.lower, n, np.inf)
        high = np.full(n, np.inf) if self.upper is None else _bounds("upper", self.upper, n, -np.inf)
        G, h = _rows("G", "h", self.G, self.h, n)
        A, b = _rows("A", "b", self.A, self.b, n)
        P = None if self.P is None else _symmetric(_matrix("P", self.P, n))
        if P is not None and P.shape[0] != n:
            raise DataError(f"QuadraticProgram: P must have shape {(n, n)}, as q has {n} entries; got {P.shape}.")
        for name, value in zip(("P", "q", "G", "h", "A", "b", "lower", "upper"), (P, q, G, h, A, b, low, high),
                               strict=True):  # fmt: skip
            object.__setattr__(self, name, value)

    @property
    def sparse(self) -> bool:
        """Whether one of the matrices is sparse."""
        return any(sp.issparse(M) for M in (self.P, self.G, self.A))

    @cached_property
    def bounded_below(self) -> NDArray[np.int64]:
        """Variables with a lower bound."""
        return np.flatnonzero(np.isfinite(self.lower))

    @cached_property
    def bounded_above(self) -> NDArray[np.int64]:
        """Variables with an upper bound."""
        return np.flatnonzero(np.isfinite(self.upper))

    @cached_property
    def unit(self) -> float:
        """The size of x that the numbers of the program suggest: the smaller one of what curvature and sides say."""
        found = []
        if self.P is not None and largest(self.P) > 0.0 and largest(self.q) > 0.0:
            found.append(largest(self.q) / largest(self.P))
        sides = [largest(self.lower[self.bounded_below]), largest(self.upper[self.bounded_above])]
        for M, right in ((self.G, self.h), (self.A, self.b)):
            if len(right):
                size = np.asarray(abs(M).max(axis=1)).ravel() if not sp.issparse(M) else _row_largest(M)
                sides.append(largest(right / np.where(size > 0.0, size, np.inf)))
        found += [max(sides)] if max(sides) > 0.0 else []
        return float(np.clip(min(found, default=1.0), 1e-290, 1e290))

    def curvature(self, x: Array) -> Array:
        """Return Px."""
        return np.zeros(len(x)) if self.P is None else np.asarray(self.P @ x)

    def value(self, x: Array) -> float:
        """Return ½xᵀPx + qᵀx."""
        return float(0.5 * (x @ self.curvature(x)) + self.q @ x)

    def goal(self, x: Array) -> Goal:
        """Return the objective at x; sizes are those of its terms."""
        Px = self.curvature(x)
        terms = 0.5 * abs(float(x @ Px)) + float(np.abs(self.q) @ np.abs(x))
        reach = max(largest(x), _FLOOR * self.unit)
        steepness = max(largest(Px), largest(self.q), _FLOOR * largest(self.P) * self.unit)
        value = 0.5 * float(x @ Px) + float(self.q @ x)
        return Goal(value, Px + self.q, max(abs(value), _FLOOR * terms, _FLOOR * reach * steepness), steepness)

    def inequalities(self, x: Array) -> Rows:
        """Return Gx − h, then l − x and x − u where there are bounds."""
        reach = max(largest(x), _FLOOR * self.unit)
        low = self.bounded_below
        high = self.bounded_above
        value = [self.G @ x - self.h, self.lower[low] - x[low], x[high] - self.upper[high]]
        sizes = [_row_largest(self.G) * reach + np.abs(self.h), reach + np.abs(self.lower[low])]
        jacobian = self._stacked
        return Rows(np.concatenate(value), jacobian, np.concatenate([*sizes, reach + np.abs(self.upper[high])]))

    def equalities(self, x: Array) -> Rows:
        """Return Ax − b."""
        reach = max(largest(x), _FLOOR * self.unit)
        return Rows(self.A @ x - self.b, self.A, _row_largest(self.A) * reach + np.abs(self.b))

    @cached_property
    def _stacked(self) -> Any:
        one = sp.eye_array(len(self.q), format="csr")
        rows = [sp.csr_array(self.G), -one[self.bounded_below], one[self.bounded_above]]
        return sp.vstack(rows, format="csr")

    def flat(self, multipliers: Multipliers) -> Array:
        """Return z, λ and μ in the order of `inequalities`."""
        parts = multipliers.lower[self.bounded_below], multipliers.upper[self.bounded_above]
        return np.concatenate([multipliers.inequality, *parts])

    def dual_value(self, x: Array, multipliers: Multipliers) -> float:
        """Return the Lagrangian at x: the dual function where x is stationary."""
        low = self.bounded_below
        high = self.bounded_above
        z = multipliers.inequality
        nu = multipliers.equality
        slack = float(z @ (self.G @ x - self.h)) + float(nu @ (self.A @ x - self.b))
        slack += float(multipliers.lower[low] @ (self.lower - x)[low])
        return self.value(x) + slack + float(multipliers.upper[high] @ (x - self.upper)[high])


def largest(M: Any) -> float:
    """Return the largest absolute entry; of None, 0."""
    if M is None:
        return 0.0
    values = M.data if sp.issparse(M) else np.asarray(M)
    return float(np.abs(values).max(initial=0.0))


def _row_largest(M: Any) -> Array:
    if sp.issparse(M):
        return (
            np.asarray(abs(M).max(axis=1).toarray(), dtype=np.float64).ravel() if M.shape[1] else np.zeros(M.shape[0])
        )
    return np.asarray(np.abs(M).max(axis=1, initial=0.0))


def _vector(name: str, values: Any) -> Array:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"QuadraticProgram: {name} must be a vector of numbers; {error}.") from error
    if array.ndim != 1 or (name == "q" and not array.size) or not np.isfinite(array).all():
        raise DataError(f"QuadraticProgram: {name} must be a vector of finite numbers; got shape {array.shape}.")
    return array


def _bounds(name: str, values: Any, n: int, never: float) -> Array:
    array = np.asarray(values, dtype=np.float64)
    array = np.full(n, float(array)) if array.ndim == 0 else array.copy()
    if array.shape != (n,) or np.isnan(array).any() or (array == never).any():
        raise DataError(f"QuadraticProgram: {name} must be {n} numbers, none of them NaN or {never}; got {values!r}.")
    return array


def _matrix(name: str, values: Any, n: int) -> Any:
    if sp.issparse(values):
        M: Any = sp.csr_array(values, dtype=np.float64)
    else:
        try:
            M = np.array(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"QuadraticProgram: {name} must be a matrix of numbers; {error}.") from error
    if M.ndim != 2 or M.shape[1] != n:
        raise DataError(f"QuadraticProgram: {name} must be a matrix of {n} columns, as q has entries; got {M.shape}.")
    if not np.isfinite(M.data if sp.issparse(M) else M).all():
        raise DataError(f"QuadraticProgram: {name} must hold finite numbers; got NaN or infinity.")
    return M


def _rows(name: str, side: str, M: Any, right: Any, n: int) -> tuple[Any, Array]:
    if (M is None) != (right is None):
        raise DataError(f"QuadraticProgram: {name} and {side} belong together; got only one of them.")
    if M is None:
        return np.zeros((0, n)), np.zeros(0)
    matrix = _matrix(name, M, n)
    vector = _vector(side, right)
    if matrix.shape[0] != len(vector):
        raise DataError(
            f"QuadraticProgram: {side} must have {matrix.shape[0]} entries, one per row of {name}; got {len(vector)}."
        )
    return matrix, vector


def _symmetric(P: Any) -> Any:
    if P.shape[0] != P.shape[1]:
        return P
    if largest(P - P.T) > _ASYMMETRY * largest(P):
        raise DataError("QuadraticProgram: P must be symmetric; pass (P + P.T) / 2, which has the same xᵀPx.")
    half = 0.5 * P
    return half + half.T


_ROUNDS = 12  # of scaling rows and columns in turn, at most
_BALANCED = 0.8  # from here to its inverse a root is near enough to one
_LARGEST = 1e300  # entry of a program, beyond which products overflow


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
    D = np.ones(n)
    E = np.ones(len(given.h))
    F = np.ones(len(given.b))
    P = None if given.P is None else abs(given.P)
    G = abs(given.G)
    A = abs(given.A)
    for _ in range(_ROUNDS):
        columns = np.zeros(n) if P is None else _column_largest(_scaled(P, D, D))
        columns = np.maximum(columns, _column_largest(_scaled(G, E, D)))
        columns = np.maximum(columns, _column_largest(_scaled(A, F, D)))
        roots = _root(_largest_of_rows(_scaled(G, E, D))), _root(_largest_of_rows(_scaled(A, F, D))), _root(columns)
        E = E / roots[0]
        F = F / roots[1]
        D = D / roots[2]
        if all(((root > _BALANCED) & (root < 1.0 / _BALANCED)).all() for root in roots):
            break
    D = _power_of_two(D)
    E = _power_of_two(E)
    F = _power_of_two(F)
    balanced = _in_units(given, D, E, F, 1.0)
    unit = float(_power_of_two(np.array([balanced.unit]))[0])
    D = D * unit
    E = E / unit
    F = F / unit
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


def _largest_of_rows(M: Any) -> Array:
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
