r"""Conjugate gradients for A x = b, A symmetric positive (semi)definite and known only through v ↦ Av.

After k steps x minimises ½xᵀAx − bᵀx over the Krylov space of dimension k. Started at zero on a singular but consistent
system it converges to the solution of minimum norm. Memory: four vectors.

Reference: M. Hestenes and E. Stiefel, J. Res. NBS 49 (1952).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.run import Progress, no_progress

Array = NDArray[np.float64]


#: A linear map: a function, or what `@` applies to a vector.
Operator = Any


class LinearSolution(NamedTuple):
    """Where conjugate gradients stopped."""

    x: Array
    residual: Array  #: b − Ax, as the recurrence carries it
    measure: float
    n_iter: int
    converged: bool


def conjugate_gradient(
    apply: Operator,
    b: Array,
    *,
    preconditioner: Operator | None = None,
    measure: Callable[[Array, Array], float] | None = None,
    flat: float = 0.0,
    tol: float = 1e-10,
    max_iter: int | None = None,
    progress: Progress = no_progress,
) -> LinearSolution:
    """Solve A x = b by (preconditioned) conjugate gradients from zero.

    Parameters
    ----------
    apply : function or operator
        v ↦ Av; or anything with `@`: an array, a sparse array, a SciPy `LinearOperator`.
    b : (p,) array
        Right-hand side.
    preconditioner : function or operator, optional
        v ↦ M⁻¹v with M ≈ A, symmetric positive definite.
    measure : function, optional
        (x, residual) ↦ the number driven below `tol`; by default ‖residual‖/‖b‖.
    flat : float
        The relative noise of A: of the largest curvature met so far, pᵀAp/pᵀMp, the share up to which a direction
        counts as one of the null space. A residual below that share of Mx is noise as well. Either ends the run, in
        whatever units A is: further steps would follow the noise.
    tol, max_iter, progress
        As for every solver; `max_iter` is 10·p by default.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[4.0, 1.0], [1.0, 3.0]])
    >>> solution = conjugate_gradient(A, np.array([1.0, 2.0]))
    >>> solution.n_iter, bool(np.allclose(A @ solution.x, [1, 2]))
    (2, True)
    """
    product = _function(apply)
    precondition = None if preconditioner is None else _function(preconditioner)
    b_norm = float(np.linalg.norm(b))
    size: Callable[[Array, Array], float] = measure or (
        lambda x, r: float(np.linalg.norm(r)) / b_norm if b_norm > 0 else 0.0
    )
    x, r = np.zeros_like(b), b.copy()
    z = precondition(r) if precondition else r
    p, rz = z, float(r @ z)
    length = rz  # pᵀMp: z and p are orthogonal in M
    steepest, Mx, Mp = 0.0, np.zeros_like(b), r.copy()
    value, n_iter = size(x, r), 0
    limit = 10 * len(b) if max_iter is None else max_iter
    while value > tol and n_iter < limit and rz > 0:
        Ap = product(p)
        curvature = float(p @ Ap)
        steepest = max(steepest, curvature / length)
        if curvature <= 0 or curvature <= flat * steepest * length:
            break  # a direction of the null space, or rounding: no further decrease along it
        if flat > 0 and rz <= (flat * steepest) ** 2 * float(x @ Mx):
            break  # what is left of the residual is the noise of A in Ax
        step = rz / curvature
        x = x + step * p
        if flat > 0:
            Mx += step * Mp
        r = r - step * Ap
        z = precondition(r) if precondition else r
        rz, last = float(r @ z), rz
        p = z + (rz / last) * p
        if flat > 0:
            Mp = r + (rz / last) * Mp
        length = rz + (rz / last) ** 2 * length
        n_iter += 1
        value = size(x, r)
        if progress(n_iter, value):
            break
    return LinearSolution(x, r, value, n_iter, value <= tol)


def _function(operator: Operator) -> Callable[[Array], Array]:
    if hasattr(operator, "__matmul__"):
        return lambda v: np.asarray(operator @ v)
    return operator  # type: ignore[no-any-return]
