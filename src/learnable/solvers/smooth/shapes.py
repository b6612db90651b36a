r"""Which smooth method for which shape of a sum over rows.

- Few parameters (p = K(d + 1) ≤ 1500): Newton with Cholesky. On many rows, first on every k-th row; that optimum is
  then off by only about √(p/m), and its Hessian is a preconditioner good enough that a few L-BFGS steps on all rows
  finish.
- Fewer rows than columns: by the representer theorem W = AZ for the n rows Z of an orthonormal basis, so that the
  same problem in n dimensions has the same optimum; then as above.
- Many parameters: Newton with conjugate gradients, which needs products with the Hessian only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from ...core import Array, Observer, Progress, Watched, interruptible, never, no_progress, one_thread_blas, unobserved
from ...data.blocks import Blocks
from ..problem import Evaluation, Solution
from ..systems.least_squares import dense_rows
from .newton import factorised, newton
from .quasi_newton import lbfgs

_MOST_DIRECT = 1500  # parameters for which a Hessian is formed
_ROWS_PER_PARAMETER = 16  # of the thinned problem
_FEWEST_THINNED = 4096  # rows of a thinned problem, at least
_MOST_THINNED = 1_000_000  # elements of it, where the table does not fit into memory
_COARSER = 4  # times fewer rows for the first rough solution
_ROUGH = 0.03  # gap: the optima differ by sampling error, and the gap overstates the distance


class RowProblem(Protocol):
    """A sum over rows, plus half a squared norm, as a function of (b, w) for each score; `risk.Risk` is one."""

    blocks: Blocks
    centre: Array  #: (d,), subtracted from the rows
    shape: tuple[int, int]  #: scores × (1 + d)
    n_scores: int
    width: int  #: 1 + d
    strength: float  #: of the squared norm; zero without one

    def evaluate(self, x: Array, /) -> Evaluation:
        """Return value, gradient and measure."""

    def hessian(self, x: Array, /) -> Array:
        """Return the Hessian as a matrix."""

    def hessian_product(self, x: Array, /) -> Callable[[Array], Array]:
        """Return v ↦ Hv."""

    def curvature_bound(self) -> Array:
        """Return about an upper bound on the Hessian's diagonal."""

    def thinned(self, stride: int, /) -> RowProblem | None:
        """Return the problem on every `stride`-th row; None if that has no solution."""

    def on_rows(self, X: Array, /) -> RowProblem:
        """Return the problem with the rows in other coordinates."""


@one_thread_blas()  # sweeps and small matrices: BLAS's own threads would wait on the cores that the sweeps need
def solve(
    problem: RowProblem,
    start: Array | None,
    solver: str = "auto",
    *,
    tol: float,
    max_iter: int,
    progress: Progress = no_progress,
    stop: Callable[[], bool] = never,
    observe: Observer = unobserved,
) -> Solution:
    """Minimise a penalised sum of losses from `start` (zero if None).

    `observe` sees the iterates of the solvers that work on all rows in the problem's own coordinates.
    """
    n_parameters = problem.n_scores * problem.width
    x0 = np.zeros(n_parameters) if start is None else start
    if solver == "lbfgs":
        return _solve_by_lbfgs(problem, x0, tol, max_iter, progress, stop, observe)
    if solver == "newton-cg":
        return HessianFree(problem).minimise(
            x0, tol=tol, max_iter=max_iter, progress=progress, stop=stop, observe=observe
        )
    if solver == "newton-cholesky":
        return newton(problem, x0, tol=tol, max_iter=max_iter, progress=progress, observe=observe)
    n = problem.blocks.n_rows
    d = problem.blocks.n_columns
    few = n < d and n * problem.n_scores <= _MOST_DIRECT and n * d <= 4e7
    if few and problem.strength and problem.blocks.in_memory:
        return _solve_in_row_space(problem, x0, tol=tol, max_iter=max_iter, progress=progress)
    if n_parameters > _MOST_DIRECT:
        return HessianFree(problem).minimise(x0, tol=tol, max_iter=max_iter, progress=progress, stop=stop)
    # A Hessian of 4n/p rows costs about as much as four evaluations on all rows.
    rows = max(_FEWEST_THINNED, _ROWS_PER_PARAMETER * n_parameters, 4 * n // n_parameters)
    if not problem.blocks.in_memory:
        rows = min(rows, max(_FEWEST_THINNED, _MOST_THINNED // d))
    if start is None and n >= 8 * rows:
        return _solve_from_thinned(problem, n // rows, tol=tol, max_iter=max_iter, progress=progress)
    cost = _hessian_cost(problem)
    return newton(problem, x0, tol=tol, max_iter=max_iter, refresh_cost=cost, progress=progress, observe=observe)


def _solve_by_lbfgs(
    problem: RowProblem,
    x0: Array,
    tol: float,
    max_iter: int,
    progress: Progress,
    stop: Callable[[], bool],
    observe: Observer,
) -> Solution:
    """Run L-BFGS; where its line search sees no decrease any more above `tol`, Newton's method, which needs none."""
    scale = 1.0 / problem.curvature_bound()
    watched = Watched(progress)
    first = lbfgs(
        problem, x0, inverse_hessian=lambda g: scale * g, tol=tol, max_iter=max_iter, progress=watched, observe=observe
    )
    if first.converged or first.n_iter >= max_iter or watched.stopped:
        return first
    last = HessianFree(problem).minimise(
        first.x,
        tol=tol,
        max_iter=max_iter - first.n_iter,
        progress=lambda iteration, value: progress(first.n_iter + iteration, value),
        stop=stop,
        observe=observe,
    )
    return last._replace(n_iter=first.n_iter + last.n_iter) if last.measure < first.measure else first


class HessianFree:
    """The problem in scaled coordinates u = x/scale, with its Hessian as a product only.

    The scaling makes the Hessian's diagonal at most one, which is what conjugate gradients need of a preconditioner.
    """

    def __init__(self, problem: RowProblem) -> None:
        self.problem = problem
        self.scale = 1.0 / np.sqrt(problem.curvature_bound())

    def evaluate(self, u: Array) -> Evaluation:
        """Return the evaluation at x = scale·u, with the gradient in u."""
        at = self.problem.evaluate(self.scale * u)
        return at._replace(gradient=self.scale * at.gradient)

    def hessian(self, u: Array) -> Callable[[Array], Array]:
        """Return v ↦ Hv in u."""
        product = self.problem.hessian_product(self.scale * u)
        return lambda v: self.scale * product(self.scale * v)

    def minimise(
        self,
        x0: Array,
        *,
        tol: float,
        max_iter: int,
        progress: Progress,
        stop: Callable[[], bool] = never,
        observe: Observer = unobserved,
    ) -> Solution:
        """Run Newton's method with conjugate gradients, and return the solution in x."""
        found = newton(
            self,
            x0 / self.scale,
            tol=tol,
            max_iter=max_iter,
            progress=progress,
            stop=stop,
            observe=lambda u: observe(self.scale * u),
        )
        return found._replace(x=self.scale * found.x, gradient=found.gradient / self.scale)


def _hessian_cost(problem: RowProblem) -> float:
    """Return the price of a Hessian in evaluations: p² against p operations per row, but as a matrix product."""
    return 1.0 + problem.n_scores * problem.width / 32


def _solve_from_thinned(problem: RowProblem, stride: int, *, tol: float, max_iter: int, progress: Progress) -> Solution:
    """Solve on a few rows, on more rows, and then on all of them with the Hessian of the last but one problem."""
    rough, inverse = _rough_start(problem, stride)
    if inverse is None:
        return newton(problem, rough, tol=tol, max_iter=max_iter, progress=progress)
    few = min(max_iter, 30)
    first = lbfgs(problem, rough, inverse_hessian=inverse, tol=tol, max_iter=few, progress=progress)
    if first.converged or first.n_iter < few or first.n_iter == max_iter:
        return first
    last = newton(
        problem,
        first.x,
        tol=tol,
        max_iter=max_iter - first.n_iter,
        progress=lambda iteration, value: progress(first.n_iter + iteration, value),
    )
    return last._replace(n_iter=first.n_iter + last.n_iter)


def _rough_start(problem: RowProblem, stride: int) -> tuple[Array, Callable[[Array], Array] | None]:
    """Return a solution on few of the rows and its inverse Hessian; those rows are not needed any more then."""
    x0 = np.zeros(problem.n_scores * problem.width)
    thinned = problem.thinned(stride)
    coarse = None if thinned is None else thinned.thinned(_COARSER)
    if coarse is not None:
        x0 = newton(coarse, x0, tol=_ROUGH, max_iter=30, refresh_cost=_hessian_cost(problem)).x
    if thinned is None:
        return x0, None
    rough = newton(thinned, x0, tol=_ROUGH, max_iter=30, refresh_cost=_hessian_cost(problem)).x
    return rough, factorised(thinned.hessian(rough))


def _solve_in_row_space(problem: RowProblem, x0: Array, *, tol: float, max_iter: int, progress: Progress) -> Solution:
    """Solve in the n-dimensional space of the rows: X − x̄ = LQᵀ with orthonormal columns Q, W = VQᵀ, ‖W‖ = ‖V‖."""
    Q, R = interruptible(np.linalg.qr, (dense_rows(problem.blocks)[0] - problem.centre).T)
    small = problem.on_rows(np.ascontiguousarray(R.T))
    theta = x0.reshape(problem.shape)
    start = np.column_stack([theta[:, 0], theta[:, 1:] @ Q]).ravel()
    inner = newton(small, start, tol=tol / 2, max_iter=max_iter, progress=progress)
    V = inner.x.reshape(small.shape)
    x = np.column_stack([V[:, 0], V[:, 1:] @ Q.T]).ravel()
    end = problem.evaluate(x)
    return Solution(x, end.value, end.gradient, end.measure, inner.n_iter, end.measure <= tol)
