r"""What all support vector machines share: the program, the kernel, scores, invariants of loaded models.

Every machine is a function x ↦ Σ βⱼ k(x, xⱼ) + b over its support vectors, the rows whose β is not zero. β solves a box
program (`solvers.conic.smo`); b lies between the largest pull that may rise and the least that may fall. Few rows of a
linear kernel or a function are solved as a given matrix is.

A function as kernel may compare whatever it understands: strings, graphs, sparse rows. Where X is no dense table of
numbers, the function is asked once for the matrix of all rows, and the machine is that of a given matrix. A row whose
weight is zero or negative is left out, as in LIBSVM.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ...core import (
    MAX_SECONDS,
    N_JOBS,
    TOLERANCE,
    Boolean,
    Certificate,
    DataError,
    Estimator,
    Matches,
    Number,
    Options,
    Progress,
    Run,
    fitted,
    law,
    laws,
    param,
    tags,
)
from ...data.door import (
    Table,
    Target,
    door,
    is_external,
    is_frame,
    read_features,
    refuse_extreme_sizes,
    take_named_columns,
)
from ...risk.kernels import FunctionKernel, Kernel, Linear, Precomputed, RKHSFunction, as_kernel
from ...risk.kernels.adopted import is_foreign
from ...solvers.conic.smo import BoxProgram, RowCache, Solution, Team, decompose, working_set_size
from ..rows import LinearMatrix, kernel_scores, row_source

Array = NDArray[np.float64]

FACTORED = 2_000  # rows up to which a factor costs little beside the fit
_FORMED = 512  # rows up to which linear kernels and functions are solved by the whole matrix, as a given one is
_LAST_BITS = 16 * float(np.finfo(np.float64).eps)  # share of its box by which rounding alone moves a multiplier
_AT_BOUND = 1e-9  # share of its box, and of the largest one, by which a multiplier at a bound may be off
_TURN = threading.Lock()


class Fit(NamedTuple):
    """One program, solved."""

    beta: Array  #: β (n,), one number per row
    b: float  #: offset
    f: Array  #: Kβ (n,)
    violation: float  #: of the optimality conditions, with this b
    primal: float  #: P
    dual: float  #: D ≤ the optimum ≤ P; −∞ if K is not known to be positive semidefinite
    n_steps: int


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
    n = X.shape[0]
    block = working_set_size(len(program.linear))
    kernel, X = small_matrix(kernel, X)
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


def small_matrix(kernel: Kernel, X: Any) -> tuple[Kernel, Any]:
    """Return few rows of a linear kernel or a function as a given matrix, so that all three take the same steps."""
    if X.shape[0] <= _FORMED and isinstance(kernel, (Linear, FunctionKernel)):
        K = kernel._between(X, X)
        refuse_asymmetry("kernel", K)
        return Precomputed(), (K + K.T) / 2.0
    return kernel, X


def _in_turn(run: Run) -> Progress:
    """Return the fit's progress for programs on several threads: callbacks are called by one at a time."""

    def progress(iteration: int, value: float) -> bool:
        with _TURN:
            return run.progress(iteration, value)

    return progress


def put_on_bounds(solution: Solution, program: BoxProgram) -> Solution:
    """Return the solution with multipliers on the bounds that they miss by rounding alone.

    Steps of pairs leave last bits behind where a sum should be exactly zero. Such a multiplier does not count for the
    offset, so it may not count for the violation either. Kβ changes by less than its own rounding, and stays.
    """
    beta = solution.beta
    room = _LAST_BITS * np.minimum(program.high - program.low, float(np.abs(beta).max(initial=0.0)))
    tidy = np.where(beta <= program.low + room, program.low, beta)
    tidy = np.where(beta >= program.high - room, program.high, tidy)
    if np.array_equal(tidy, beta):
        return solution
    pull = -(np.tile(solution.f, len(program.linear) // len(solution.f)) + program.linear)
    second = np.zeros(len(beta), dtype=bool) if program.second is None else program.second
    groups = [~second] if program.second is None else [~second, second]
    rises = tuple(float(np.max(pull, where=own & (tidy < program.high), initial=-np.inf)) for own in groups)
    falls = tuple(float(np.min(pull, where=own & (tidy > program.low), initial=np.inf)) for own in groups)
    return solution._replace(beta=tidy, rises=rises, falls=falls)


def offset_between(solution: Solution, program: BoxProgram, group: int = 0) -> float:
    """Return the offset: the mean pull of the variables inside their bounds, or the middle of what is possible.

    A variable counts as inside by more than rounding: the last bits of one at its bound decide nothing.
    """
    if not program.constrained:
        return 0.0
    pull = -(np.tile(solution.f, len(program.linear) // len(solution.f)) + program.linear)
    own = np.ones(len(pull), dtype=bool) if program.second is None else program.second == bool(group)
    largest = float(np.abs(solution.beta[own]).max(initial=0.0))
    room = _AT_BOUND * np.minimum(program.high - program.low, largest)
    may_rise = own & (solution.beta < program.high - room)
    may_fall = own & (solution.beta > program.low + room)
    if (may_rise & may_fall).any():
        return float(pull[may_rise & may_fall].mean())
    top = float(np.max(pull, where=may_rise, initial=-np.inf))
    bottom = float(np.min(pull, where=may_fall, initial=np.inf))
    if not np.isfinite(top) or not np.isfinite(bottom):
        return next((edge for edge in (top, bottom) if np.isfinite(edge)), 0.0)
    return 0.5 * (top + bottom)


def dual_bounds(kernel: Kernel, X: Any, matrix: Array | None = None) -> bool:
    """Tell whether the dual bounds the primal: K is positive semidefinite.

    Where the kernel does not promise it (a given matrix, a function), K is factored, up to some thousand rows; `matrix`
    is K where it is known.
    """
    if kernel._is_mercer() or X.shape[0] > FACTORED:
        return kernel._is_mercer()
    if isinstance(kernel, Precomputed):
        matrix = X
    elif matrix is None:
        matrix = kernel(X)
    K = np.array(matrix, dtype=np.float64)
    K.flat[:: len(K) + 1] += 1e-10 * max(float(np.abs(K.diagonal()).max(initial=0.0)), np.finfo(float).tiny)
    try:
        np.linalg.cholesky(K)
    except np.linalg.LinAlgError:
        return False
    return True


def refuse_asymmetry(owner: str, K: Any) -> None:
    """Raise unless a given kernel matrix is symmetric: a fit to another need not end."""
    size = max(float(K.max(initial=0.0)), -float(K.min(initial=0.0)))
    for first in range(0, len(K), 1024):
        gap = float(np.abs(K[first : first + 1024] - K[:, first : first + 1024].T).max())
        if gap > 1e-6 * size:
            raise DataError(
                f"{owner}: a precomputed kernel matrix must be symmetric; got entries K[i, j] and K[j, i] that differ "
                f"by {gap:.2g}. Pass (K + K.T)/2 if that is rounding."
            )


def fill_up(cost: Array, total: float) -> Array:
    """Return multipliers at their bounds, from the first row on, that sum to `total`."""
    before = np.cumsum(cost) - cost
    return np.asarray(np.clip(total - before, 0.0, cost))


Rows = NDArray[np.int64]

_DENSE = 2**18  # entries of sparse rows up to which they are computed with as dense ones
_CONSTANT = 4.0 * np.finfo(float).eps  # spread, relative to the mean, that rounding gives a constant
COST = Number(low=0.0, low_open=True, finite=False)


class SupportVectorMachine(Estimator):
    """Base of all support vector machines."""

    kernel: Any = param(
        Options("linear", "poly", "rbf", "sigmoid", "precomputed")
        | Matches(lambda v: isinstance(v, Kernel) or callable(v), "a kernel or a function"),
        'k; "precomputed": X is the kernel matrix, dense or sparse; a function (X, Z) → matrix, of rows of '
        'any kind. "sigmoid" is no Mercer kernel: the fit may then be no optimum. Sparse rows are predicted '
        "after any fit.",
        default="rbf",
    )
    degree: int = param(Number(low=0, integer=True), "Of (γ⟨x, z⟩ + coef0)^degree, the polynomial kernel.", default=3)
    gamma: Any = param(
        Options("scale", "auto") | Number(low=0.0),
        'γ of exp(−γ‖x − z‖²) and of the polynomial and sigmoid kernels; "scale" is 1/(d·Var X), "auto" 1/d.',
        default="scale",
    )
    coef0: float = param(Number(), "Constant of the polynomial and sigmoid kernels.", default=0.0)
    shrinking: bool = param(
        Boolean(),
        "Whether rows that rest at their bounds are left out for a while: it changes the time, not the answer.",
        default=True,
    )
    tol: float = param(
        TOLERANCE, "Violation of the optimality conditions at which to stop, as in LIBSVM.", default=1e-3
    )
    cache_size: float = param(
        Number(low=0.0, low_open=True),
        "Most megabytes for kernel rows; of few columns, rows are rather computed again than kept.",
        default=200,
    )
    verbose: Any = param(
        Boolean() | Number(low=0, integer=True),
        "Kept for compatibility; progress comes through `set_callbacks`.",
        default=False,
    )
    max_iter: int = param(
        Number(low=-1, integer=True),
        "Most pairs of multipliers to move, for each machine (one for each pair of classes); -1 is no limit.",
        default=-1,
    )
    n_jobs: int | None = param(N_JOBS, "Threads. The result does not depend on it.", default=None)
    max_seconds: float | None = param(MAX_SECONDS, "Time after which the best so far is returned.", default=None)

    support_: NDArray[np.int32] = fitted("(n_SV,)", "Rows of the support vectors.", kind="i4", low=0)
    support_vectors_: Any = fitted(
        "(n_SV, n_features) or (0, 0)", "The support vectors, dense or CSR; none of a given kernel matrix."
    )
    n_support_: NDArray[np.int32] = fitted(
        "(n_parts,)", "How many support vectors there are, in each class.", kind="i", low=0
    )
    dual_coef_: Any = fitted("(n_scores, n_SV)", "β, dense or, after a fit to sparse rows, CSR.", kind="f8")
    intercept_: Array = fitted("(n_machines,)", "b.", kind="f8")
    gamma_: float = fitted("()", "γ as a number.", low=0.0)
    n_features_in_: int = fitted("int", "Number of columns.")
    shape_fit_: tuple[int, int] = fitted("tuple of int", "Rows and columns of the fit.")
    n_iter_: Any = fitted("int, or array of int for pairs of classes", "Iterations.")
    fit_status_: int = fitted("int", "0, or 1 if the fit stopped before its tolerance.")
    certificate_: Certificate = fitted(
        "Certificate",
        "`stationarity`: the largest violation of a machine; `bound` is the relative duality gap of all together, None "
        'where the kernel is not known to be positive semidefinite: "sigmoid", a function, a given matrix.',
    )
    _tags = tags(sparse=lambda model: not is_function(model.kernel), pairwise=lambda model: is_given(model.kernel))

    # -- fitting ------------------------------------------------------------------------------------------------------

    def _points(self, table: Table) -> Any:
        """Return the rows of a fit, checked; of a given kernel, the square matrix of rows with weight."""
        owner = type(self).__name__
        X = table.X
        if self._has_matrix():
            n_given = table.n_rows if table.kept is None else len(table.kept)
            if X.shape[1] != n_given:
                raise DataError(
                    f"{owner}: Precomputed matrix must be a square matrix, one column a training row; "
                    f"got shape ({n_given}, {X.shape[1]})."
                )
            X = X.toarray() if sp.issparse(X) else X
            X = X if table.kept is None else X[:, table.kept]
            refuse_asymmetry(owner, X)
        try:
            refuse_extreme_sizes(X, table.weight, owner)
        except DataError as error:
            raise DataError(f"{error} The dual coefficients or intercepts are not finite otherwise.") from error
        if sp.issparse(X) and X.shape[0] * X.shape[1] <= _DENSE:
            X = X.toarray()
        # One memory order and one type: what is computed does not depend on those of the caller's array.
        X = X.astype(np.float64, copy=False) if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
        self.gamma_ = self._find_gamma(X)
        return X

    def _has_matrix(self) -> bool:
        """Tell whether the machine knows the kernel's matrix alone: it was given, or is a function of other objects."""
        return is_given(self.kernel) or hasattr(self, "X_fit_")

    def _find_gamma(self, X: Any) -> float:
        """Return γ: 1/(d·Var X), 1/d, or as given; 0 where no kernel of ours is computed."""
        if self._has_matrix() or is_function(self.kernel):
            return 0.0
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        if self.gamma == "auto":
            return 1.0 / X.shape[1]
        mean, variance = _moments(X)
        return 1.0 / (X.shape[1] * variance) if variance > (_CONSTANT * mean) ** 2 else 1.0

    @property
    def _gamma(self) -> float:
        return self.gamma_

    def _mercer(self) -> Kernel:
        """Return the kernel that the parameters name."""
        if isinstance(self.kernel, str) and self.kernel == "poly" and self.degree == 0:
            return as_kernel(lambda X, Z: np.ones((X.shape[0], Z.shape[0])))
        if self._has_matrix():
            return Precomputed()
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

    def _keep_support(self, table: Table, used: Rows) -> None:
        """Store the support vectors, numbered as the rows were given."""
        given = used if table.kept is None else np.flatnonzero(table.kept)[used]
        self.support_ = given.astype(np.int32)
        self.support_vectors_ = np.empty((0, 0)) if self._has_matrix() else table.X[used].astype(np.float64)
        self.shape_fit_ = (table.n_rows if table.kept is None else len(table.kept), table.n_columns)

    def _keep_coefficients(self, table: Table, coefficients: Array) -> None:
        """Store β as scikit-learn shows it: sparse after a fit to sparse rows."""
        sparse = sp.issparse(table.X) and not self._has_matrix()
        self.dual_coef_ = sp.csr_array(coefficients) if sparse else np.ascontiguousarray(coefficients)

    def _warn_unless_certificate_holds(self) -> None:
        certificate = self.certificate_
        if not certificate.holds:
            warnings.warn(
                f"{type(self).__name__}: stopped after {certificate.n_iter} iterations at {certificate.kind} "
                f"{certificate.value:.3g}, above the tolerance {certificate.tolerance:.3g}. Solver terminated early "
                f"(max_iter={self.max_iter}).  Consider pre-processing your data with StandardScaler or MinMaxScaler, "
                "or raise max_iter or max_seconds.",
                ConvergenceWarning,
                stacklevel=3,
            )

    # -- the fitted function ------------------------------------------------------------------------------------------

    def _dual(self) -> Array:
        """Return β as a dense matrix."""
        return np.asarray(self.dual_coef_.toarray() if sp.issparse(self.dual_coef_) else self.dual_coef_)

    def _kernel_sums(self, X: Any, counts: Any = None) -> list[Array]:
        """Return Σⱼ βⱼ k(x, xⱼ) of new rows over each run of `counts` support vectors, a column for each row of β."""
        coefficients = self._dual().T
        ends = np.cumsum([len(coefficients)] if counts is None else counts).tolist()
        runs = list(zip([0, *ends[:-1]], ends, strict=True))
        if self._has_matrix():
            return [np.asarray(X[:, self.support_[i:j]] @ coefficients[i:j]) for i, j in runs]
        if int(np.sum(self.n_support_)) != self.support_vectors_.shape[0]:
            raise DataError(f"The internal representation of {type(self).__name__} was altered")
        return kernel_scores(self._mercer(), X, self.support_vectors_, coefficients, runs, n_jobs=self.n_jobs)

    def _read(self, X: Any) -> Any:
        check_is_fitted(self)
        if hasattr(self, "X_fit_"):
            return function_values(type(self).__name__, self.kernel, X, self.X_fit_)
        return read_features(self, X)

    @property
    def _n_support(self) -> NDArray[np.int32]:
        return self.n_support_

    @property
    def coef_(self) -> Any:
        """The weights w = Σ βⱼxⱼ, of the linear kernel; read-only, and sparse after a fit to sparse rows."""
        check_is_fitted(self)
        if not (self.kernel == "linear" if isinstance(self.kernel, str) else isinstance(self.kernel, Linear)):
            raise AttributeError("coef_ is only available when using a linear kernel")
        weights = self._weights()
        numbers = weights.data if sp.issparse(weights) else weights
        numbers.flags.writeable = False
        return weights

    def _weights(self) -> Any:
        coefficients = np.atleast_2d(self._coefficients().T)
        if sp.issparse(self.support_vectors_):
            return sp.csr_array(sp.csr_array(coefficients) @ self.support_vectors_)
        return np.asarray(coefficients @ self.support_vectors_)

    @property
    def function_(self) -> RKHSFunction:
        """The fitted function without its offset, as an element of the kernel's space; several for pairs of classes."""
        check_is_fitted(self)
        if self._has_matrix():
            raise DataError(f"{type(self).__name__}: a given kernel matrix has no points at which to evaluate k.")
        return RKHSFunction(self._mercer(), self.support_vectors_, self._coefficients())

    def _coefficients(self) -> Array:
        return np.asarray(self._dual()[0])

    _laws = laws(
        law(
            "shape_fit_ is not the shape of a table",
            lambda model: (
                isinstance(model.shape_fit_, tuple)
                and len(model.shape_fit_) == 2
                and all(isinstance(size, int) and size > 0 for size in model.shape_fit_)
            ),
            "certificate_",
        ),
        law(
            "support_ names rows that the fit did not have",
            lambda model: not model.support_.size or model.support_.max() < model.shape_fit_[0],
            "certificate_",
        ),
        law(
            "support_vectors_ must have one row per support vector, and none with a given matrix",
            lambda model: (
                model.support_vectors_.shape
                == ((0, 0) if model._has_matrix() else (len(model.support_), model.n_features_in_))
            ),
            "certificate_",
        ),
    )


def _moments(X: Any) -> tuple[float, float]:
    """Return the mean and the variance of all entries, without cancellation."""
    if not sp.issparse(X):
        return float(X.mean()), float(X.var())
    size = float(X.shape[0]) * float(X.shape[1])
    mean = float(X.sum()) / size
    zeros = size - X.nnz
    return mean, (float(((X.data - mean) ** 2).sum()) + zeros * mean * mean) / size


def is_given(kernel: Any) -> bool:
    """Tell whether X is the kernel matrix itself."""
    return isinstance(kernel, Precomputed) or (isinstance(kernel, str) and kernel == "precomputed")


def svm_door(target: Target) -> Callable[..., Table]:
    """Return the door of machines with this kind of target."""
    read_table = door(target=target)

    def read(model: Any, X: Any, y: Any = None, sample_weight: Any = None, run: Any = None) -> Table:
        owner = type(model).__name__
        if is_external(X):
            table = read_table(model, X, y, sample_weight, run)
            table.require_memory(
                f"{owner}: a kernel machine needs its rows in memory; load them, or fit a sample of them."
            )
            return table
        y = None if target == "none" else y
        X, y, sample_weight = take_named_columns(owner, X, y, sample_weight)
        sample_weight = _without_negative_weights(owner, sample_weight)
        if target == "classes":
            _refuse_one_class_left(model, y, sample_weight)
        if is_function(model.kernel) and not _is_table_of_numbers(X):
            model.X_fit_ = X
            X = function_values(owner, model.kernel, X, X)
        return read_table(model, X, y, sample_weight, run)

    return read


def is_function(kernel: Any) -> bool:
    """Tell whether the kernel is a function of two tables."""
    return callable(kernel) and not isinstance(kernel, Kernel) and not is_foreign(kernel)


def function_values(owner: str, kernel: Callable[[Any, Any], Any], X: Any, Z: Any) -> Array:
    """Return the matrix k(xᵢ, zⱼ) of any rows that the function understands."""
    found = kernel(X, Z)
    try:
        K = np.asarray(found.toarray() if sp.issparse(found) else found, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{owner}: the kernel must give a matrix of numbers; {error}.") from error
    shape = height_of(X), height_of(Z)
    if K.shape != shape:
        raise DataError(
            f"{owner}: the kernel must give a matrix of shape {shape} for {shape[0]} and {shape[1]} rows; "
            f"got {K.shape}."
        )
    return K


def height_of(X: Any) -> int:
    """Return the number of rows of anything that has rows."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _is_table_of_numbers(X: Any) -> bool:
    """Tell whether X can be a dense table, which the ordinary door reads."""
    if sp.issparse(X):
        return False
    if is_frame(X) or not hasattr(X, "__len__"):
        return True
    if hasattr(X, "dtype"):
        return not (X.dtype.kind in "OUS" and np.ndim(X) == 1)
    return not len(X) or (not isinstance(X[0], (str, bytes)) and hasattr(X[0], "__len__"))


def _without_negative_weights(owner: str, sample_weight: Any) -> Any:
    """Return the weights with zero for negative ones; raise where none is positive."""
    if sample_weight is None:
        return None
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        return sample_weight  # the ordinary door says what is wrong with them
    if weight.size and (weight <= 0).all():
        raise DataError(
            f"{owner}: Invalid input - all samples have zero or negative weights. sample_weight is zero for every row, "
            "or negative, which leaves a row out; at least one row needs a positive weight."
        )
    return np.where(weight < 0, 0.0, weight) if (weight < 0).any() else sample_weight


def _refuse_one_class_left(model: Any, y: Any, sample_weight: Any) -> None:
    """Raise where weights of zero leave rows of one class only."""
    if sample_weight is None or y is None:
        return
    labels = np.asarray(y).ravel()
    weight = np.asarray(sample_weight)
    if weight.shape != labels.shape or not (weight == 0).any() or len(set(labels[weight > 0].tolist())) != 1:
        return
    if len(set(labels.tolist())) == 1:
        return  # it was one class from the start
    nu = "specified nu is infeasible: " if hasattr(model, "nu") else ""
    raise DataError(
        f"{type(model).__name__}: {nu}Invalid input - all samples with positive weights belong to the same class. Give "
        "rows of two classes a positive weight."
    )
