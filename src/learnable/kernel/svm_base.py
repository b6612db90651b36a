r"""What all support vector machines share: the kernel, the solution of a program, scores, invariants of loaded models.

Every machine is a function x ↦ Σ βⱼ k(x, xⱼ) + b over its support vectors, the rows whose β is not zero. β solves a box
program (`solvers.decomposition`); b lies between the largest pull that may rise and the least that may fall.
"""

from __future__ import annotations

import threading
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..core.errors import DataError, ModelFileError
from ..core.estimator import Estimator
from ..core.parameters import MAX_SECONDS, N_JOBS, TOLERANCE, Boolean, Matches, Number, Options, Rule
from ..core.run import Progress, Run
from ..data.door import Table, read_features
from ..linear._base import refuse_extreme_sizes
from ..risk.kernels import FunctionKernel, Kernel, Linear, Precomputed, RKHSFunction, as_kernel
from ..risk.kernels.adopted import is_foreign
from ..solvers.decomposition import BoxProgram, Solution, decompose, working_set_size
from ..solvers.row_cache import RowCache, Team
from .kernel_rows import LinearMatrix, row_source
from .scores import kernel_scores

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

#: What all support vector machines declare alike.
SVM_PARAMETERS: dict[str, Rule] = {
    "kernel": Options("linear", "poly", "rbf", "sigmoid", "precomputed")
    | Matches(lambda v: isinstance(v, Kernel) or callable(v), "a kernel or a function"),
    "degree": Number(low=0, integer=True),
    "gamma": Options("scale", "auto") | Number(low=0.0),
    "coef0": Number(),
    "tol": TOLERANCE,
    "shrinking": Boolean(),
    "cache_size": Number(low=0.0, low_open=True),
    "verbose": Boolean() | Number(low=0, integer=True),
    "max_iter": Number(low=1, integer=True) | Matches(lambda v: isinstance(v, int) and v == -1, "-1 for no limit"),
    "fit_intercept": Boolean(),
    "n_jobs": N_JOBS,
    "max_seconds": MAX_SECONDS,
}
FACTORED = 2_000  # rows up to which a factor costs little beside the fit
_TURN = threading.Lock()
COST = Number(low=0.0, low_open=True, finite=False)


class Fit(NamedTuple):
    """One program, solved."""

    beta: Array  #: β (n,), one number a row
    b: float  #: offset
    f: Array  #: Kβ (n,)
    violation: float  #: of the optimality conditions, with this b
    primal: float  #: P
    dual: float  #: D ≤ the optimum ≤ P; −∞ if K is not known to be positive semidefinite
    n_steps: int


class SupportVectorMachine(Estimator):
    """Base of all support vector machines."""

    _remedy: ClassVar[str] = "raise max_iter or max_seconds, or scale the columns of X"

    kernel: Any
    gamma: Any
    degree: int
    coef0: float
    tol: float
    shrinking: bool
    cache_size: float
    max_iter: int
    fit_intercept: bool
    n_jobs: int | None

    support_: NDArray[np.int32]
    support_vectors_: Any
    dual_coef_: Array
    intercept_: Array
    gamma_: float
    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not is_function(self.kernel)
        tags.input_tags.pairwise = is_given(self.kernel)
        return tags

    # -- fitting ------------------------------------------------------------------------------------------------------

    def _points(self, table: Table) -> Any:
        """Return the rows of a fit, checked; of a given kernel, the square matrix of rows with weight."""
        owner = type(self).__name__
        if not table.in_memory:
            raise DataError(f"{owner}: a kernel machine needs its rows in memory; load them, or fit a sample of them.")
        X = table.X
        if is_given(self.kernel):
            n_given = table.n_rows if table.kept is None else len(table.kept)
            if X.shape[1] != n_given:
                raise DataError(
                    f"{owner}: Precomputed matrix must be a square matrix, one column a training row; "
                    f"got shape ({n_given}, {X.shape[1]})."
                )
            X = X.toarray() if sp.issparse(X) else X
            X = X if table.kept is None else X[:, table.kept]
            _refuse_asymmetry(owner, X)
        elif is_function(self.kernel) and sp.issparse(X):
            raise DataError(f"{owner}: a function as kernel takes no sparse X; use X.toarray() or a named kernel.")
        refuse_extreme_sizes(X, table.weight, owner)
        self.gamma_ = self._find_gamma(X)
        return X

    def _find_gamma(self, X: Any) -> float:
        """Return γ: 1/(d·Var X), 1/d, or as given."""
        if isinstance(self.gamma, str):
            if self.gamma == "auto":
                return 1.0 / X.shape[1]
            if is_given(self.kernel) or not (X.nnz if sp.issparse(X) else X.size):
                return 1.0
            if sp.issparse(X):
                mean = float(X.sum()) / np.prod(X.shape, dtype=float)
                variance = float((X.data.astype(np.float64) ** 2).sum()) / np.prod(X.shape, dtype=float) - mean * mean
            else:
                variance = float(X.var(dtype=np.float64))
            return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
        return float(self.gamma)

    def _mercer(self) -> Kernel:
        """Return the kernel that the parameters name."""
        if isinstance(self.kernel, str) and self.kernel == "poly" and self.degree == 0:
            return as_kernel(lambda X, Z: np.ones((X.shape[0], Z.shape[0])))
        if is_function(self.kernel):
            return FunctionKernel(self.kernel)
        gamma = max(self.gamma_, 1e-300)  # γ = 0 is a constant kernel
        return as_kernel(self.kernel, gamma=gamma, degree=int(self.degree), coef0=float(self.coef0))

    def _solve(self, kernel: Kernel, X: Any, program: BoxProgram, run: Run, team: Team, **more: Any) -> Solution:
        """Solve one program with this machine's settings."""
        return solve_program(
            kernel,
            X,
            program,
            team,
            tol=self.tol,
            megabytes=self.cache_size,
            max_steps=None if self.max_iter < 0 else self.max_iter,
            shrinking=self.shrinking,
            run=run,
            **more,
        )

    def _keep_support(self, table: Table, X: Any, used: Rows) -> None:
        """Store the support vectors, numbered as the rows were given."""
        given = used if table.kept is None else np.flatnonzero(table.kept)[used]
        self.support_ = given.astype(np.int32)
        self.support_vectors_ = np.empty((0, 0)) if is_given(self.kernel) else X[used].copy()
        self.shape_fit_ = (table.n_rows if table.kept is None else len(table.kept), table.n_columns)

    # -- the fitted function ------------------------------------------------------------------------------------------

    def _kernel_sums(self, X: Any, coefficients: Array, counts: Any = None) -> list[Array]:
        """Return Σⱼ cⱼ k(x, xⱼ) of new rows over each run of `counts` support vectors, for coefficients (n_SV, t)."""
        ends = np.cumsum([len(coefficients)] if counts is None else counts).tolist()
        runs = list(zip([0, *ends[:-1]], ends, strict=True))
        if is_given(self.kernel):
            return [np.asarray(X[:, self.support_[i:j]] @ coefficients[i:j]) for i, j in runs]
        return kernel_scores(self._mercer(), X, self.support_vectors_, coefficients, runs, n_jobs=self.n_jobs)

    def _read(self, X: Any) -> Any:
        check_is_fitted(self)
        return read_features(self, X)

    @property
    def coef_(self) -> Array:
        """The weights w = Σ βⱼxⱼ, of the linear kernel."""
        check_is_fitted(self)
        if not (self.kernel == "linear" if isinstance(self.kernel, str) else isinstance(self.kernel, Linear)):
            raise AttributeError("coef_ is only available when using a linear kernel")
        return self._weights()

    def _weights(self) -> Array:
        return np.asarray(self.dual_coef_ @ self.support_vectors_)

    @property
    def function_(self) -> RKHSFunction:
        """The fitted function without its offset, as an element of the kernel's space; several for pairs of classes."""
        check_is_fitted(self)
        if is_given(self.kernel):
            raise DataError(f"{type(self).__name__}: a given kernel matrix has no points at which to evaluate k.")
        return RKHSFunction(self._mercer(), self.support_vectors_, self._coefficients())

    def _coefficients(self) -> Array:
        return self.dual_coef_[0]

    def _check_loaded(self) -> None:
        if not hasattr(self, "dual_coef_"):
            return
        coef, points, support = self.dual_coef_, self.support_vectors_, self.support_
        if (
            not isinstance(coef, np.ndarray)
            or coef.dtype != np.float64
            or coef.ndim != 2
            or not np.isfinite(coef).all()
        ):
            raise ModelFileError("load: dual_coef_ is not a finite matrix.")
        shape, columns = getattr(self, "shape_fit_", None), getattr(self, "n_features_in_", None)
        if not isinstance(shape, tuple) or len(shape) != 2 or not all(isinstance(k, int) and k > 0 for k in shape):
            raise ModelFileError("load: shape_fit_ is not the shape of a table.")
        if not isinstance(support, np.ndarray) or support.dtype != np.int32 or support.shape != (coef.shape[1],):
            raise ModelFileError("load: support_ does not number the columns of dual_coef_.")
        if len(support) and not (support.min() >= 0 and support.max() < shape[0]):
            raise ModelFileError("load: support_ names rows that the fit did not have.")
        expected = (0, 0) if is_given(self.kernel) else (coef.shape[1], columns)
        if not (isinstance(points, np.ndarray) or sp.issparse(points)) or points.shape != expected:
            raise ModelFileError(f"load: support_vectors_ must have shape {expected}.")
        if points.dtype.kind != "f" or not np.isfinite(points.data if sp.issparse(points) else points).all():
            raise ModelFileError("load: support_vectors_ is not finite.")
        gamma = getattr(self, "gamma_", None)
        if not isinstance(gamma, float) or not np.isfinite(gamma) or gamma < 0:
            raise ModelFileError("load: gamma_ is not a number >= 0.")
        b = self.intercept_
        if not isinstance(b, np.ndarray) or b.dtype != np.float64 or b.ndim != 1 or not np.isfinite(b).all():
            raise ModelFileError("load: intercept_ is not a finite vector.")


def solve_program(
    kernel: Kernel,
    X: Any,
    program: BoxProgram,
    team: Team,
    *,
    tol: float = 1e-3,
    megabytes: float = 200.0,
    max_steps: int | None = None,
    shrinking: bool = True,
    run: Run | None = None,
    start: Array | None = None,
) -> Solution:
    """Solve a box program of a kernel's matrix: first with float32 rows, where they serve, then in float64."""
    run = Run() if run is None else run
    settings: dict[str, Any] = {
        "tol": tol,
        "shrinking": shrinking,
        "progress": _in_turn(run),
        "stop": run.flag.array,
    }
    n, block = X.shape[0], working_set_size(len(program.linear))
    if isinstance(kernel, Linear):
        return decompose(LinearMatrix(X, team), program, start=start, max_steps=max_steps, **settings)
    source = row_source(kernel, X)
    matrix = RowCache(source, n, megabytes, team, block)
    found = decompose(matrix, program, start=start, max_steps=max_steps, **settings)
    left = None if max_steps is None else max_steps - found.n_steps
    if matrix.rounding() and found.violation > tol and not run.should_stop() and (left is None or left > 0):
        del matrix  # its memory, before as much again
        matrix = RowCache(row_source(kernel, X, single=False), n, megabytes, team, block)
        more = decompose(matrix, program, start=found.beta, max_steps=left, **settings)
        found = more._replace(n_steps=found.n_steps + more.n_steps, n_rounds=found.n_rounds + more.n_rounds)
    return found


def _in_turn(run: Run) -> Progress:
    """Return the fit's progress for programs on several threads: callbacks are called by one at a time."""

    def progress(iteration: int, value: float) -> bool:
        with _TURN:
            return run.progress(iteration, value)

    return progress


def offset_between(solution: Solution, program: BoxProgram, group: int = 0) -> float:
    """Return the offset: the mean pull of the variables inside their bounds, or the middle of what is possible."""
    if not program.constrained:
        return 0.0
    pull = -(np.tile(solution.f, len(program.linear) // len(solution.f)) + program.linear)
    free = (solution.beta > program.low) & (solution.beta < program.high)
    if program.second is not None:
        free &= program.second == bool(group)
    top, bottom = solution.rises[group], solution.falls[group]
    if free.any():
        return float(pull[free].mean())
    if not np.isfinite(top) or not np.isfinite(bottom):
        return float(top if np.isfinite(top) else bottom if np.isfinite(bottom) else 0.0)
    return 0.5 * (top + bottom)


def relative_gap(primal: float, dual: float, start_value: float) -> float:
    """Return (P − D)/max(D, 1e-8 P₀)."""
    size = max(dual, 1e-8 * start_value)
    return max(primal - dual, 0.0) / size if size > 0 else float("inf") if primal > dual else 0.0


def dual_bounds(kernel: Kernel, X: Any) -> bool:
    """Tell whether the dual bounds the primal: K is positive semidefinite.

    Where the kernel does not promise it (a given matrix, a function), K is factored, up to some thousand rows.
    """
    if kernel._is_mercer() or X.shape[0] > FACTORED:
        return kernel._is_mercer()
    K = np.array(X if isinstance(kernel, Precomputed) else kernel(X), dtype=np.float64)
    K.flat[:: len(K) + 1] += 1e-10 * max(float(np.abs(K.diagonal()).max(initial=0.0)), np.finfo(float).tiny)
    try:
        np.linalg.cholesky(K)
    except np.linalg.LinAlgError:
        return False
    return True


def _refuse_asymmetry(owner: str, K: Any) -> None:
    """Raise unless a given kernel matrix is symmetric: a fit to another need not end."""
    size = max(float(K.max(initial=0.0)), -float(K.min(initial=0.0)))
    for first in range(0, len(K), 1024):
        gap = float(np.abs(K[first : first + 1024] - K[:, first : first + 1024].T).max())
        if gap > 1e-6 * size:
            raise DataError(
                f"{owner}: a precomputed kernel matrix must be symmetric; got entries K[i, j] and K[j, i] that differ "
                f"by {gap:.2g}. Pass (K + K.T)/2 if that is rounding."
            )


def is_given(kernel: Any) -> bool:
    """Tell whether X is the kernel matrix itself."""
    return isinstance(kernel, Precomputed) or (isinstance(kernel, str) and kernel == "precomputed")


def is_function(kernel: Any) -> bool:
    """Tell whether the kernel is a function of two tables."""
    return callable(kernel) and not isinstance(kernel, Kernel) and not is_foreign(kernel)
