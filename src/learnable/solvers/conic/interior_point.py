r"""Mehrotra's step, which every interior-point method here takes.

Conditions of optimality have pairs of positive arrays with x·s = 0, beside linear equations. The method solves x·s = μ
by Newton's method while μ falls: a predictor aims at μ = 0, how far it gets says how small μ may be, and a corrector
aims there and makes up for the predictor's second-order error dx·ds.

Such steps can cycle: a corrector built for a whole step may throw a short one away from the central path, so that the
complementarity rises. A guarded step is then taken without that correction, and no further than μ falls.

References: S. Mehrotra, On the implementation of a primal-dual interior point method, SIAM J. Optim. 2, 1992;
C. Cartis, Some disadvantages of a Mehrotra-type primal-dual corrector interior point algorithm, Applied Numerical
Mathematics 59, 2009.

The linear systems of interior-point and active-set methods for quadratic programs.

    [ P   Aᵀ  Gᵀ ] [dx]   [a]
    [ A   0   0  ] [dν] = [b]        W⁻¹ = s/z > 0
    [ G   0  −W⁻¹] [dz]   [c]

Bounds are rows of G with a single ±1: they only add to the diagonal of P. Dense systems are reduced to
H = P + GᵀWG + AᵀA, which has a Cholesky factor wherever the system has one solution (adding AᵀA changes nothing, as
A dx is known), and to the Schur complement A H⁻¹Aᵀ. Sparse ones are factorised as they stand. A small regularisation
keeps both safe; refinement against the true system removes it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_solve, lapack
from scipy.sparse.linalg import splu

from ...core import Array, NDArray, interruptible
from .programs import Multipliers, QuadraticProgram

BACK_OFF = 0.995  # share of the way to the boundary
_CENTRED = 0.3  # times μ: what a step without the second-order correction aims at


class CentralPath:
    """A point, and a step, of an interior-point method: mixed into a named tuple of arrays."""

    #: Names of the arrays that are complementary to each other.
    complementary: ClassVar[tuple[tuple[str, str], ...]]

    def pairs(self) -> list[tuple[Array, Array]]:
        """Return the complementary arrays."""
        return [(getattr(self, x), getattr(self, s)) for x, s in self.complementary]

    def moved(self, step: Self, length: float) -> Self:
        """Return the point after a share of a step."""
        arrays: Any = zip(self, step, strict=True)  # type: ignore[call-overload]
        return type(self)(*(x + length * dx for x, dx in arrays))

    def centrality(self) -> float:
        """Return μ, the mean of x·s."""
        pairs = self.pairs()
        size = sum(x.size for x, _ in pairs)
        return float(sum(float((x * s).sum()) for x, s in pairs)) / max(size, 1)

    def longest(self, step: Self) -> float:
        """Return the share of the step that keeps all complementary arrays positive."""
        arrays = [x for pair in self.pairs() for x in pair]
        changes = [dx for pair in step.pairs() for dx in pair]
        fall = max((float((-dx / x).max()) for x, dx in zip(arrays, changes, strict=True) if x.size), default=0.0)
        return min(1.0, BACK_OFF / fall) if fall > 0 else 1.0

    def is_finite(self) -> bool:
        """Tell whether no array has NaN or infinity."""
        arrays: Any = self
        return all(bool(np.isfinite(part).all()) for part in arrays)


P = TypeVar("P", bound=CentralPath)


class Step(NamedTuple, Generic[P]):
    """A step, and what it aimed at."""

    step: P
    target: float  #: μ after the step, if it were exact
    aims: list[Array]  #: for each pair the change of x·s that it solves for


def mehrotra_step(point: P, direction: Callable[..., P], *, guarded: bool = False) -> Step[P]:
    """Return the predictor–corrector step from a point.

    Parameters
    ----------
    point : CentralPath
        Where the method stands.
    direction : callable
        Called with one array t for each pair; returns the step that solves x·ds + s·dx = t and the linear equations.
    guarded : bool
        Whether the complementarity must not rise: a step that raises it is taken without the second-order
        correction, and shortened.
    """
    mu = point.centrality()
    products = [x * s for x, s in point.pairs()]
    affine = direction(*(-product for product in products))
    after = point.moved(affine, point.longest(affine)).centrality()
    target = mu * float(np.clip(after / mu, 0.0, 1.0)) ** 3 if mu > 0 else 0.0
    if not products or not products[0].size:
        return Step(affine, 0.0, [])
    errors = [dx * ds for dx, ds in affine.pairs()]
    aims = [target - product - error for product, error in zip(products, errors, strict=True)]
    step = direction(*aims)
    if guarded and step.is_finite() and _rises(point, step, mu):
        target = max(target, _CENTRED * mu)
        aims = [target - product for product in products]
        step = direction(*aims)
        if _rises(point, step, mu):  # μ(t) = μ + t(target − μ) + t²·mean(dx·ds): stop at its lowest point
            length = 0.5 * (mu - target) / step.centrality()
            parts: Any = step
            step = type(step)(*(length * part for part in parts))
    return Step(step, target, aims)


def _rises(point: P, step: P, mu: float) -> bool:
    """Tell whether the complementarity is not lower after the longest share of a step."""
    return not point.moved(step, point.longest(step)).centrality() < mu


Solve = Callable[[Array, Array, Array], tuple[Array, Array, Array]]

_RIDGE = 1e-13  # regularisation of dense systems, of the largest entry
_SPARSE_RIDGE = 1e-9  # keeps pivots away from zero; what it moves is taken back by refinement
_REFINEMENTS = 12  # of a solution of the system with that ridge, at most
_LARGE = 1500  # rows from which a factorisation is long enough to be interrupted


@dataclass(frozen=True)
class Constraints:
    """Ax = b and Gx ≤ h, of which the last rows of G are bounds.

    Attributes
    ----------
    A, b : (k, n) and (k,) arrays
        Equalities, and variables with equal bounds.
    G : (m, n) array
        The general inequalities.
    h : (m + bounds,) array
        Sides of G, then −l, then u.
    below, above : arrays of int
        Which variables have bounds.
    fixed : array of int
        Which variables have equal bounds: the last rows of A.
    """

    program: QuadraticProgram
    A: Any
    b: Array
    G: Any
    h: Array
    below: NDArray[np.int64]
    above: NDArray[np.int64]
    fixed: NDArray[np.int64]

    @classmethod
    def of(cls, program: QuadraticProgram) -> Constraints:
        """Sort the constraints of a program."""
        fixed = np.flatnonzero(program.lower == program.upper)
        below = np.setdiff1d(program.bounded_below, fixed)
        above = np.setdiff1d(program.bounded_above, fixed)
        A = program.A
        G = program.G
        n = len(program.q)
        one = sp.eye_array(n, format="csr")[fixed]
        if program.sparse:
            A = sp.csr_array(sp.vstack([sp.csr_array(A), one]))
            G = sp.csr_array(G)
        elif len(fixed):
            A = np.concatenate([A, one.toarray()])
        b = np.concatenate([program.b, program.lower[fixed]])
        h = np.concatenate([program.h, -program.lower[below], program.upper[above]])
        return cls(program, A, b, G, h, below, above, fixed)

    def apply(self, x: Array) -> Array:
        """Return Gx, bounds included."""
        return np.concatenate([self.G @ x, -x[self.below], x[self.above]])

    def back(self, z: Array) -> Array:
        """Return Gᵀz, bounds included."""
        m = self.G.shape[0]
        out = np.asarray(self.G.T @ z[:m], dtype=np.float64)
        out[self.below] -= z[m : m + len(self.below)]
        out[self.above] += z[m + len(self.below) :]
        return out

    def bound_diagonal(self, w: Array) -> Array:
        """Return the diagonal of GᵀWG over the bounds."""
        m = self.G.shape[0]
        out = np.zeros(self.A.shape[1])
        out[self.below] += w[m : m + len(self.below)]
        out[self.above] += w[m + len(self.below) :]
        return out

    def named(self, nu: Array, z: Array) -> Multipliers:
        """Return the multipliers by what they belong to."""
        m = self.G.shape[0]
        k = len(nu) - len(self.fixed)
        n = self.A.shape[1]
        lower = np.zeros(n)
        upper = np.zeros(n)
        lower[self.below] = z[m : m + len(self.below)]
        upper[self.above] = z[m + len(self.below) :]
        lower[self.fixed] = np.maximum(-nu[k:], 0.0)
        upper[self.fixed] = np.maximum(nu[k:], 0.0)
        return Multipliers(z[:m], nu[:k], lower, upper)

    def lowest_curvature(self) -> float:
        """Return 0 if P is positive semidefinite to rounding, else its smallest eigenvalue after balancing."""
        P = self.program.P
        diagonal = P.diagonal()
        scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        if (diagonal < 0.0).any():
            return float(diagonal.min())
        n = len(diagonal)
        slack = 1e-10 * max(1, n) ** 0.5
        if sp.issparse(P):
            B = sp.csc_array(sp.diags_array(scale) @ P @ sp.diags_array(scale) + slack * sp.eye_array(n))
            try:
                factor = splu(B, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
            except RuntimeError:  # a pivot of exactly zero
                factor = None
            if factor is not None and (factor.perm_r == factor.perm_c).all() and (factor.U.diagonal() > 0.0).all():
                return 0.0
            B = B.toarray()
        else:
            B = P * scale[:, None] * scale + slack * np.eye(n)
            if _factor(B) is not None:
                return 0.0
        lowest = float(np.linalg.eigvalsh(B)[0])
        return lowest if lowest < 0.0 else 0.0

    def solved_with(
        self, program: QuadraticProgram, active: NDArray[np.bool_], x: Array, nu: Array, z: Array
    ) -> tuple[Array, Array, Array]:
        """Minimise with the active constraints as equations; start refinement at (x, ν, z)."""
        m = self.G.shape[0]
        nb = len(self.below)
        at_low = self.below[active[m : m + nb]]
        at_high = self.above[active[m + nb :]]
        point = x.copy()
        point[at_low] = self.program.lower[at_low]
        point[at_high] = self.program.upper[at_high]
        free = np.ones(len(x), dtype=bool)
        free[at_low] = free[at_high] = False
        rows = np.flatnonzero(active[:m])
        stack = sp.vstack if program.sparse else np.concatenate
        B = stack([self.A, self.G[rows]])
        B = sp.csr_array(B)[:, free] if program.sparse else B[:, free]
        P = program.P[free][:, free]
        held = np.where(free, 0.0, point)
        right = np.concatenate([self.b - self.A @ held, (self.h[:m] - self.G @ held)[rows]])
        linear = (program.curvature(held) + program.q)[free]
        none = np.zeros(0, dtype=np.int64)
        part = Constraints(program, B, right, B[:0], np.zeros(0), none, none, none)
        start = point[free], np.concatenate([nu, z[:m][rows]]), np.zeros(0)
        both = start[1]
        if free.any():
            point[free], both, _ = system_of(P, part, np.zeros(0)).solve(-linear, right, np.zeros(0), start)
        out = np.zeros(len(z))
        out[rows] = both[len(nu) :]
        slope = program.curvature(point) + program.q + self.A.T @ both[: len(nu)] + self.G.T @ out[:m]
        out[m : m + nb][active[m : m + nb]] = slope[at_low]
        out[m + nb :][active[m + nb :]] = -slope[at_high]
        return point, both[: len(nu)], out


class System(NamedTuple):
    """A factorised system; `solve` refines against the true one."""

    P: Any
    rows: Constraints
    inverse_weight: Array  #: W⁻¹
    approximate: Solve

    def solve(
        self, a: Array, b: Array, c: Array, start: tuple[Array, Array, Array] | None = None
    ) -> tuple[Array, Array, Array]:
        """Return dx, dν and dz."""
        solution = self.approximate(a, b, c) if start is None else start
        lowest = np.inf
        best = solution
        for _ in range(_REFINEMENTS):
            dx, d_nu, dz = solution
            r_a = a - self.P @ dx - self.rows.A.T @ d_nu - self.rows.back(dz)
            r_b = b - self.rows.A @ dx
            r_c = c - self.rows.apply(dx) + self.inverse_weight * dz
            size = max(float(np.abs(r).max(initial=0.0)) for r in (r_a, r_b, r_c))
            if not size < 0.5 * lowest:
                break
            best = solution
            lowest = size
            if size == 0.0:
                break
            more = self.approximate(r_a, r_b, r_c)
            solution = dx + more[0], d_nu + more[1], dz + more[2]
        return best


def system_of(P: Any, rows: Constraints, inverse_weight: Array) -> System:
    """Factorise the system with W⁻¹."""
    build = _sparse if sp.issparse(P) or sp.issparse(rows.A) else _dense
    return System(P, rows, inverse_weight, build(P, rows, inverse_weight))


def _dense(P: Array, rows: Constraints, inverse_weight: Array) -> Solve:
    w = 1.0 / inverse_weight
    m, n = rows.G.shape
    root = np.sqrt(w[:m])[:, None] * rows.G
    H = P + root.T @ root + rows.A.T @ rows.A
    H.flat[:: n + 1] += rows.bound_diagonal(w)
    R = _safe_factor(H)
    HA = cho_solve((R, False), np.asarray(rows.A.T), check_finite=False) if len(rows.b) else np.zeros((n, 0))
    S = _safe_factor(rows.A @ HA) if len(rows.b) else None

    def solve(a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
        right = a + rows.back(w * c) + rows.A.T @ b
        free = cho_solve((R, False), right, check_finite=False)
        if S is None:
            return free, np.zeros(0), w * (rows.apply(free) - c)
        d_nu = cho_solve((S, False), rows.A @ free - b, check_finite=False)
        dx = free - HA @ d_nu
        return dx, d_nu, w * (rows.apply(dx) - c)

    return solve


def _sparse(P: Any, rows: Constraints, inverse_weight: Array) -> Solve:
    m = rows.G.shape[0]
    n = rows.A.shape[1]
    k = rows.A.shape[0]
    w = 1.0 / inverse_weight
    corner = sp.csr_array(P) + sp.diags_array(rows.bound_diagonal(w) + _SPARSE_RIDGE)
    lower = -inverse_weight[:m] - _SPARSE_RIDGE
    A = sp.csr_array(rows.A)
    G = sp.csr_array(rows.G)
    blocks = [[corner, A.T, G.T], [A, -_SPARSE_RIDGE * sp.eye_array(k), None], [G, None, sp.diags_array(lower)]]
    K = sp.csc_array(sp.block_array([[x for x, keep in zip(row, (n, k, m), strict=True) if keep]
                                     for row, keep in zip(blocks, (n, k, m), strict=True) if keep]))  # fmt: skip
    try:
        factor = splu(K, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=1e-3, options={"SymmetricMode": True})
    except RuntimeError:  # weights beyond floating point: the caller keeps the point it has
        return lambda a, b, c: (np.full_like(a, np.nan), np.full_like(b, np.nan), np.full_like(c, np.nan))

    def solve(a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
        bounds = np.zeros_like(c)
        bounds[m:] = w[m:] * c[m:]
        found = factor.solve(np.concatenate([a + rows.back(bounds), b, c[:m]]))
        dx = found[:n]
        d_nu = found[n : n + k]
        dz = np.empty_like(c)
        dz[:m] = found[n + k :]
        dz[m:] = w[m:] * (rows.apply(dx)[m:] - c[m:])
        return dx, d_nu, dz

    return solve


def _safe_factor(H: Array) -> Array:
    """Return the Cholesky factor of H, regularised as little as it takes."""
    diagonal = np.diag(H).copy()
    top = float(diagonal.max(initial=0.0))
    for power in range(0, 16, 2):
        H.flat[:: len(H) + 1] = diagonal + max(_RIDGE * 10.0**power * top, 1e-300)
        R = _factor(H)
        if R is not None:
            return R
    return np.diag(np.sqrt(np.maximum(diagonal, 1e-300)))


def _factor(H: Array) -> Array | None:
    R, info = interruptible(lapack.dpotrf, H, lower=0) if len(H) >= _LARGE else lapack.dpotrf(H, lower=0)
    return np.asarray(R) if info == 0 else None
