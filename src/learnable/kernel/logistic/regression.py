r"""Kernel logistic regression: two classes, or K by the softmax, with scores from the space of a kernel.

    min_{f, b}  C Σᵢ sᵢ ℓ(yᵢ, f(xᵢ) + b) + ½‖f‖²,      ℓ(y, z) = log Σₖ e^{zₖ} − z_y,      f = Σᵢ cᵢ k(·, xᵢ)

(two classes: one score z, ℓ = log(1 + e^z) − [y = 1]z). In the form n⁻¹ΣV + λΩ with Ω = ½‖f‖², λ = 1/(nC). The offset
b is never penalised. With the linear kernel it is `LogisticRegression`.

Reference: J. Zhu and T. Hastie, Kernel logistic regression and the import vector machine, JCGS 14, 2005.

Newton's method for kernel logistic regression, on the coefficients of the representer theorem.

    min_{A, b}  P = Σᵢ κᵢ ℓ(yᵢ, zᵢ) + ½ tr AᵀKA,      Z = KA + 1bᵀ,      ℓ(y, z) = log Σₖ e^{zₖ} − z_y,      κᵢ = C sᵢ

(two classes: one column, the score of the first class being zero). With probabilities p, slopes G = κ(p − e_y) and the
blocks Hᵢ = κᵢ(diag pᵢ − pᵢpᵢᵀ) = RᵢRᵢᵀ, Rᵢ = √κᵢ(diag √pᵢ − pᵢ√pᵢᵀ), a Newton step is A ← A + Rv, b ← b + β, where

    (I + RᵀKR) v + Rᵀ1βᵀ = −κ^−½ p^−½ (A + G),        1ᵀRv = 0:

positive definite with no eigenvalue below one, solved by conjugate gradients inside the constraint. Preconditioner: a
Cholesky factor of the whole matrix where it is small, so that they only make up for rounding, however large C is;
else Woodbury's formula with a partial factor of K, which keeps what couples the classes.

The dual is D = −Σκ Σ u log u − ½ tr AᵤᵀKAᵤ at Aᵤ = κ(e_y − u), u probabilities with Σκ(e_y − u) = 0.

Reference: C. Rasmussen and C. Williams, Gaussian Processes for Machine Learning, 2006, algorithms 3.1 and 3.3.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lapack
from scipy.special import entr
from sklearn.base import ClassifierMixin

from ...core import (
    MAX_ITER,
    MAX_SECONDS,
    N_JOBS,
    TOLERANCE,
    Array,
    Boolean,
    Certificate,
    DataError,
    NDArray,
    Number,
    Progress,
    Run,
    fitted,
    interruptible,
    law,
    laws,
    never,
    no_progress,
    one_thread_blas,
    param,
)
from ...data.blocks import map_reduce
from ...data.door import Table, class_weights
from ...data.sources import NamedScore, rowwise
from ...linear.base import CLASS_WEIGHT
from ...linear.logistic.regression import ScoreProbabilities
from ...risk.classes import feasible_mix
from ...risk.losses import SoftmaxLoss
from ...risk.objective import relative_gap
from ...solvers.problem import backtrack
from ..operators import MOST_ROWS_KEPT, Operator, OutOfTimeError, partial_cholesky, product_by_rows
from ..representer import (
    RepresenterModel,
    finite_diagonal,
    kernel_of,
    memory_door,
    refuse_other_classes,
    training_points,
)
from ..svm.base import FACTORED, dual_bounds

_MOST_HALVINGS = 40  # 2⁻⁴⁰ of a step moves nothing that float64 could tell
_SHORT_PRODUCT = 5e8  # operations that take a fraction of a second: for these the clock is not asked
_MOST_STEPS = 300  # of conjugate gradients for one Newton step; a rough step is still a step
_FALL = 0.9  # share of the gap that a step must leave where the objective no longer tells
_ACCURACY = 1e-2  # of a step far from the optimum
# least accuracy and largest κ for products of six digits
_ROUGH_ACCURACY = 1e-5
_ROUGH_COST = 100.0


class KernelLogisticFit(NamedTuple):
    """Where Newton's method stopped."""

    coef: Array  #: A, (n, m)
    intercept: Array  #: b, (m,)
    gap: float  #: relative duality gap
    n_iter: int


class KernelLogisticProblem:
    """Sums over the rows, with all classes as columns of probabilities.

    Parameters
    ----------
    operator : Operator
        K.
    codes : (n,) int array
        Classes.
    n_classes : int
        K ≥ 2.
    kappa : (n,) array
        C times the weights.
    intercept : bool
        Whether b is free or zero.
    """

    def __init__(
        self, operator: Operator, codes: NDArray[np.int64], n_classes: int, kappa: Array, intercept: bool
    ) -> None:
        self.operator = operator
        self.kappa = kappa[:, None]
        self.intercept = intercept
        self.cross_entropy = SoftmaxLoss()
        self.codes = codes
        self.own = (codes[:, None] == np.arange(n_classes)).astype(np.float64)
        self.totals = (self.kappa * self.own).sum(axis=0)
        self.binary = n_classes == 2
        self.start = float(kappa.sum()) * np.log(n_classes)  # P₀: the objective at f = 0 and equal chances

    def scores(self, Z: Array) -> Array:
        """Return scores of all classes, (n, K)."""
        return np.column_stack([np.zeros(len(Z)), Z]) if self.binary else Z

    def free(self, U: Array) -> Array:
        """Return the columns that belong to parameters."""
        return U[:, 1:] if self.binary else U

    def probabilities(self, Z: Array) -> Array:
        """Return p, (n, K)."""
        return self.cross_entropy.probability(self.scores(Z))

    def loss(self, Z: Array) -> float:
        """Return Σκℓ."""
        return float(self.kappa[:, 0] @ self.cross_entropy.value(self.codes, self.scores(Z)))

    def best_intercept(self, F: Array, b: Array) -> Array:
        """Return the offsets that are best for fixed function values: then slopes sum to zero."""
        if not self.intercept:
            return b
        value = self.loss(F + b)
        for _ in range(50):
            P = self.probabilities(F + b)
            slope = self.free((self.kappa * P).sum(axis=0)[None] - self.totals[None])[0]
            p = self.free(P)
            H = np.diag((self.kappa * p).sum(axis=0)) - (self.kappa * p).T @ p
            step = np.linalg.lstsq(H, slope, rcond=1e-13)[0]
            length = backtrack(partial(self._lowers, F, b, step, value), most=_MOST_HALVINGS)
            if length is None:
                break
            b = b - length * step
            value = self.loss(F + b)
            if length * np.abs(step).max() <= 1e-15 * max(1.0, float(np.abs(b).max())):
                break
        return b

    def _lowers(self, F: Array, b: Array, step: Array, value: float, length: float) -> float | None:
        """Return the length of a step of the offsets if it does not raise the loss."""
        return length if self.loss(F + (b - length * step)) <= value else None

    def gap_in_time(self, A: Array, F: Array, b: Array, stop: Callable[[], bool]) -> float:
        """Return the gap; infinity if there is no time to measure it."""
        short = self.operator.matrix is not None and self.operator.n * A.size <= _SHORT_PRODUCT
        try:
            return self.gap(A, F, b, never if short else stop)
        except OutOfTimeError:
            return np.inf

    def gap(self, A: Array, F: Array, b: Array, stop: Callable[[], bool] = never) -> float:
        """Return (P − D)/max(D, 10⁻⁸P₀), where b is the best for F."""
        Z = F + b
        primal = self.loss(Z) + 0.5 * float((A * F).sum())
        U = self._feasible(self.probabilities(Z))
        dual_coef = self.free(self.kappa * (self.own - U))
        dual = float((self.kappa * entr(U)).sum()) - 0.5 * float((dual_coef * self.operator(dual_coef, stop)).sum())
        return relative_gap(primal, dual, self.start)

    def _feasible(self, U: Array) -> Array:
        """Mix probabilities with a constant distribution until every class has its total weight, as the offset asks."""
        if not self.intercept:
            return U
        share, constant = feasible_mix(self.totals, (self.kappa * U).sum(axis=0) - self.totals)
        return U if share == 0.0 else (1.0 - share) * U + share * constant


def fit_logistic(
    problem: KernelLogisticProblem,
    *,
    tol: float,
    max_iter: int,
    rank: int,
    progress: Progress = no_progress,
    stop: Callable[[], bool] = never,
    seconds_left: Callable[[], float] = lambda: np.inf,
) -> KernelLogisticFit:
    """Minimise by damped Newton steps until the relative duality gap is at most `tol`, or the time is over."""
    operator = problem.operator
    n = problem.operator.n
    m = 1 if problem.binary else problem.own.shape[1]
    A = np.zeros((n, m))
    F = np.zeros((n, m))
    b = problem.best_intercept(F, np.zeros(m))
    gap = problem.gap_in_time(A, F, b, stop)
    n_iter = 0
    small = operator.matrix is not None and n * m <= FEW_ROWS
    factor = None if small else partial_cholesky(operator, rank, stop=stop)[0]
    objective = problem.loss(F + b)
    accuracy = _ACCURACY
    while gap > tol and n_iter < max_iter and not stop():
        accuracy *= min(1.0, 10.0 * np.sqrt(gap))
        try:
            accuracy_now = max(accuracy, SMALLEST)
            A_new, b_new = _newton_point(problem, factor, (A, F, b), accuracy_now, stop, seconds_left)
            F_new = operator(A_new, stop)
        except OutOfTimeError:
            break
        taken = _search(problem, (A, F, b), (A_new, F_new, b_new), objective)
        if taken is None and accuracy > SMALLEST:
            accuracy *= 1e-3  # what was left of the step's equations may point uphill
            continue
        if taken is None:
            b_new = problem.best_intercept(F_new, b_new)
            if not problem.gap_in_time(A_new, F_new, b_new, stop) < _FALL * gap:
                break  # rounding: no step lowers the objective or the gap any more
            taken = A_new, F_new, b_new  # the fall of the objective drowns in rounding; that of the gap does not
        last = A, F, b, gap
        A, F, b = taken
        accuracy = _ACCURACY
        b = problem.best_intercept(F, b)
        objective = problem.loss(F + b) + 0.5 * float((A * F).sum())
        gap = problem.gap_in_time(A, F, b, stop)
        n_iter = n_iter + 1
        if gap == np.inf and stop():
            A, F, b, gap = last  # what is known of the last step is worth more than this one
            break
        if progress(n_iter, gap):
            break
    if m > 1:
        b = b - b.mean()  # a common offset changes no probability
    return KernelLogisticFit(A, b, gap, max(1, n_iter))


State = tuple[Array, Array, Array]


def _search(problem: KernelLogisticProblem, now: State, goal: State, objective: float) -> State | None:
    """Halve the step to the Newton point until the objective falls; products with K are linear along it."""

    def trial(length: float) -> State | None:
        A, F, b = ((1.0 - length) * x + length * y for x, y in zip(now, goal, strict=True))
        value = problem.loss(F + b) + 0.5 * float((A * F).sum())
        return (A, F, b) if value < objective else None

    return backtrack(trial, most=_MOST_HALVINGS)


def _newton_point(
    problem: KernelLogisticProblem,
    factor: Array | None,
    now: State,
    accuracy: float,
    stop: Callable[[], bool],
    seconds_left: Callable[[], float],
) -> tuple[Array, Array]:
    """Return the coefficients and offsets that minimise the quadratic model at the current ones."""
    A, F, b = now
    P = problem.probabilities(F + b)
    root = CurvatureRoot(problem, P)
    target = root.divide(problem.free(problem.kappa * (problem.own - P)) - A)
    precondition = preconditioner(problem, factor, root, stop, seconds_left)

    rough = accuracy >= _ROUGH_ACCURACY and problem.operator.has_rough and float(problem.kappa.max()) <= _ROUGH_COST
    product = problem.operator.rough if rough else problem.operator

    def apply(v: Array) -> Array:
        return v + root.transposed(product(root(v), stop))

    v, step = _constrained_gradients(apply, precondition, root, target, problem.intercept, accuracy)
    return A + root(v), b + step


def _constrained_gradients(
    apply: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    root: CurvatureRoot,
    target: Array,
    intercept: bool,
    accuracy: float,
) -> tuple[Array, Array]:
    """Solve Bv + Eb = target with Eᵀv = 0, where Eb = Rᵀ1bᵀ, by conjugate gradients that keep the constraint."""
    n, m = target.shape
    W: list[Array] = []
    S_inverse = np.zeros((m, m))
    if intercept:
        W = [precondition(root.transposed(np.broadcast_to(unit, (n, m)))) for unit in np.eye(m)]
        S_inverse = np.linalg.pinv(np.column_stack([root(w).sum(axis=0) for w in W]), rcond=1e-12)

    def project(z: Array) -> tuple[Array, Array]:
        b = S_inverse @ root(z).sum(axis=0)
        for share, w in zip(b, W, strict=False):
            z = z - share * w
        return z, b

    v = np.zeros_like(target)
    r = target.copy()
    with one_thread_blas():
        z, b = project(precondition(r))
    p = z
    rz = float((r * z).sum())
    first = rz
    for _ in range(_MOST_STEPS):
        if not rz > accuracy**2 * first:
            break
        Bp = apply(p)
        curvature = float((p * Bp).sum())
        if not curvature > 0.0:
            break  # rounding, or a matrix that is not positive semidefinite
        length = rz / curvature
        v = v + length * p
        r = r - length * Bp
        with one_thread_blas():
            z, b = project(precondition(r))
        last = rz
        rz = float((r * z).sum())
        p = z + rz / last * p
    return v, b


SMALLEST = 1e-12  # of a probability in the Hessian; slopes have their true ones
FEW_ROWS = 3000  # times classes: up to here the equations of a step are factorised whole
_ONE_THREAD = 1200  # up to here a second BLAS thread does not pay
_GRAM_ROWS = 8192  # rows of the factor of which a weighted copy is made at a time
_FACTOR_SPEED = 1e10  # operations per second of a Cholesky factor, on a slow machine


def preconditioner(
    problem: KernelLogisticProblem,
    factor: Array | None,
    root: CurvatureRoot,
    stop: Callable[[], bool],
    seconds_left: Callable[[], float],
) -> Callable[[Array], Array]:
    """Return an inverse of nearly I + RᵀKR: of itself where there are few rows."""
    if factor is None and problem.operator.matrix is not None:
        _refuse_late_factor(problem.operator.n * problem.free(problem.own).shape[1], seconds_left)
        whole = _whole_inverse(problem.operator.matrix, root)
        if whole is not None:
            return whole
    m = 1 if problem.binary else problem.own.shape[1]
    if factor is None:
        factor = partial_cholesky(problem.operator, FEW_ROWS // m, stop=stop)[0]
    _refuse_late_factor(m * factor.shape[1], seconds_left)
    return _CoupledWoodbury(factor, root, m, problem.operator.n_jobs, stop)


def _refuse_late_factor(size: int, seconds_left: Callable[[], float]) -> None:
    """Raise OutOfTimeError unless a Cholesky factor of this size, which nothing interrupts, ends in time."""
    if size**3 / 3.0 / _FACTOR_SPEED > seconds_left():
        raise OutOfTimeError


class CurvatureRoot:
    """R of the blocks H = RRᵀ, one for each row."""

    def __init__(self, problem: KernelLogisticProblem, P: Array) -> None:
        P = np.maximum(P, SMALLEST)
        P = P / P.sum(axis=1, keepdims=True)
        self.binary = problem.binary
        if self.binary:
            self.s = np.sqrt(problem.kappa * P[:, :1] * P[:, 1:])
        else:
            self.p = P
            self.q = np.sqrt(P)
            self.k = np.sqrt(problem.kappa)

    def __call__(self, v: Array) -> Array:
        """Return Rv."""
        if self.binary:
            return self.s * v
        return self.k * (self.q * v - self.p * (self.q * v).sum(axis=1, keepdims=True))

    def transposed(self, a: Array) -> Array:
        """Return Rᵀa."""
        if self.binary:
            return self.s * a
        return self.k * self.q * (a - (self.p * a).sum(axis=1, keepdims=True))

    def divide(self, T: Array) -> Array:
        """Return v with Rv = T, for T whose rows sum to zero."""
        return T / self.s if self.binary else T / (self.k * self.q)

    def block(self, i: int, j: int) -> Array:
        """Return the entries (i, j) of all blocks H = RRᵀ, (n,)."""
        if self.binary:
            return np.asarray(self.s[:, 0] ** 2)
        own = self.p[:, i] if i == j else 0.0
        return np.asarray(self.k[:, 0] ** 2 * (own - self.p[:, i] * self.p[:, j]))

    def columns(self) -> list[Array]:
        """Return the columns of all blocks R, each (n, m)."""
        if self.binary:
            return [self.s]
        units = np.eye(self.p.shape[1])
        return [self(np.broadcast_to(unit, self.p.shape)) for unit in units]


def _whole_inverse(K: Array, root: CurvatureRoot) -> Callable[[Array], Array] | None:
    """Return the inverse of I + RᵀKR by its Cholesky factor, of nm rows; None if rounding has made it indefinite."""
    R = root.columns()
    n = len(K)
    m = len(R)
    blocks = np.empty((m, n, m, n))
    for i in range(m):
        for j in range(i, m):  # the other half is not read
            with one_thread_blas():
                np.multiply(K, R[i] @ R[j].T, out=blocks[i, :, j])
    B = blocks.reshape(n * m, n * m)
    B.flat[:: n * m + 1] += 1.0
    with one_thread_blas() if n * m <= _ONE_THREAD else nullcontext():
        L, info = interruptible(lapack.dpotrf, B.T, lower=1, overwrite_a=1, clean=0)
    if info != 0:
        return None

    def solve(r: Array) -> Array:
        x, _ = lapack.dpotrs(L, r.T.reshape(-1, 1), lower=1)
        return np.asarray(x.reshape(m, n).T)

    return solve


class _CoupledWoodbury:
    """The inverse of I + RᵀFFᵀR with all that couples the classes: I − Rᵀ(F⊗I) Q⁻¹ (F⊗I)ᵀR, Q = I + Σᵢ fᵢfᵢᵀ⊗Hᵢ."""

    def __init__(
        self, factor: Array, root: CurvatureRoot, m: int, n_jobs: int | None, stop: Callable[[], bool] = never
    ) -> None:
        self.F = factor
        self.root = root
        self.m = m
        self.n_jobs = n_jobs
        r = factor.shape[1]
        blocks = np.empty((m, r, m, r))
        pairs = [(i, j) for i in range(m) for j in range(i + 1)]

        def fill(pair: tuple[int, int]) -> None:
            i, j = pair
            total = np.zeros((r, r))
            for start in range(0, len(factor), _GRAM_ROWS):
                if stop():
                    raise OutOfTimeError
                part = slice(start, start + _GRAM_ROWS)
                total += factor[part].T @ (factor[part] * root.block(i, j)[part, None])
            blocks[i, :, j] = total
            blocks[j, :, i] = total

        map_reduce(pairs, fill, lambda a, b: None, n_jobs=n_jobs)
        Q = blocks.reshape(m * r, m * r)
        Q.flat[:: m * r + 1] += 1.0
        self.factor = interruptible(cho_factor, Q, lower=True, overwrite_a=True, check_finite=False)

    def __call__(self, v: Array) -> Array:
        """Return the inverse times v, (n, m)."""
        inner = product_by_rows(self.F.T, self.root(v), self.n_jobs)
        with one_thread_blas():
            inner = cho_solve(self.factor, inner.T.reshape(-1), check_finite=False).reshape(self.m, -1).T
        return v - self.root.transposed(product_by_rows(self.F, np.ascontiguousarray(inner), self.n_jobs))


# of the preconditioner, times classes
_TWO_CLASSES_RANK = 1500
_MANY_CLASSES_RANK = 1800
_SMALLEST_RANK = 60
_SMALLEST_TOLERANCE = 1e-12


class KernelLogisticRegression(ScoreProbabilities, NamedScore, ClassifierMixin, RepresenterModel):
    r"""Kernel logistic regression: minimise C Σᵢ sᵢ ℓ(yᵢ, f(xᵢ) + b) + ½‖f‖², ℓ the (softmax) cross-entropy.

    In the form n⁻¹ΣV + λΩ with Ω = ½‖f‖², λ = 1/(nC). Newton steps, each solved by conjugate gradients whose
    preconditioner is the factor of the whole system up to 3,000 rows times scores, and beyond has a partial factor of
    the kernel matrix. Memory: that matrix (8n² bytes) up to 12,000 rows, then only tiles of it; and for the
    preconditioner 0.3 GB and 12,000n bytes.

    Examples
    --------
    >>> from learnable import KernelLogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["in", "out", "out", "in"]
    >>> model = KernelLogisticRegression(C=10.0, gamma=1.0).fit(X, y)
    >>> model.predict([[0.1], [1.5]]), model.certificate_.kind
    (array(['in', 'out'], dtype='<U3'), 'gap')
    """

    _theory = "kernel-logistic"

    C: float = param(Number(low=1e-50, high=1e50), "Inverse strength of the penalty.", default=1.0, kw_only=False)
    fit_intercept: bool = param(Boolean(), "Whether b is free or zero.", default=True)
    class_weight: Any = param(CLASS_WEIGHT, "Weights of the classes, multiplied onto the sample weights.", default=None)
    tol: float = param(TOLERANCE, "Relative duality gap at which to stop.", default=1e-8)
    max_iter: int = param(MAX_ITER, "Most Newton steps.", default=100)
    n_jobs: int | None = param(N_JOBS, "Threads; the result does not depend on it.", default=None)
    max_seconds: float | None = param(MAX_SECONDS, "Time after which the best so far is returned.", default=None)

    _door = staticmethod(memory_door(target="classes"))
    _remedy = "raise max_iter or max_seconds, or lower C"

    classes_: NDArray[Any] = fitted("(n_classes,)", "The labels.", kind="biufOUST")
    dual_coef_: Array = fitted(
        "(n_samples,) or (n_samples, n_scores)", "c; one column for two classes, whose positive one is the second."
    )
    intercept_: Array = fitted("(n_scores,)", "b, which `function_` leaves out.")
    n_iter_: int = fitted("int", "Newton steps.")
    certificate_: Certificate = fitted("Certificate", "`gap`: the relative duality gap.")

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        self.classes_ = np.asarray(table.classes)
        kernel = kernel_of(self, table.n_columns)
        points = training_points(owner, self, table)
        finite_diagonal(owner, kernel, points)
        stop = never if self.max_seconds is None else run.should_stop
        try:
            operator = Operator(kernel, points, keep=table.n_rows <= MOST_ROWS_KEPT, n_jobs=self.n_jobs, stop=stop)
        except OutOfTimeError:
            return self._keep_nothing(table, points)
        if table.n_rows <= FACTORED and not dual_bounds(kernel, points, operator.matrix):
            raise DataError(
                f"{owner}: the kernel matrix has a negative eigenvalue, so that the objective has no minimum. Use a "
                "Mercer kernel (rbf, poly with coef0 >= 0, linear, Matern), or SVC, which bears others."
            )
        of_class = class_weights(table, self.class_weight, owner)
        weight = np.ones(table.n_rows) if table.weight is None else table.weight
        kappa = self.C * (weight if of_class is None else weight * of_class[table.y])
        problem = KernelLogisticProblem(operator, table.y, len(self.classes_), kappa, self.fit_intercept)
        rank = _TWO_CLASSES_RANK if problem.binary else max(_SMALLEST_RANK, _MANY_CLASSES_RANK // len(self.classes_))
        found = fit_logistic(
            problem,
            tol=max(self.tol, _SMALLEST_TOLERANCE),
            max_iter=self.max_iter,
            rank=min(table.n_rows, rank),
            progress=run.progress,
            stop=run.should_stop,
            seconds_left=lambda: np.inf if self.max_seconds is None else self.max_seconds - run.seconds,
        )
        self._keep(points, found.coef[:, 0] if problem.binary else found.coef, table)
        self.intercept_ = found.intercept
        self.n_iter_ = found.n_iter
        tolerance = max(self.tol, _SMALLEST_TOLERANCE)
        return Certificate("gap", found.gap, tolerance, found.gap, found.n_iter)

    def _keep_nothing(self, table: Table, points: Any) -> Certificate:
        """Store f = 0 and b = 0: there was no time for the kernel's matrix, so the gap is unknown."""
        n_classes = len(self.classes_)
        columns = () if n_classes == 2 else (n_classes,)
        self._keep(points, np.zeros((table.n_rows, *columns)), table)
        self.intercept_ = np.zeros(columns or (1,))
        self.n_iter_ = 0
        return Certificate("gap", np.inf, max(self.tol, _SMALLEST_TOLERANCE), None, 0)

    @rowwise
    def decision_function(self, X: Any) -> Array:
        """Return the scores f(x) + b: of shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        values = self._values(X)
        return values + (self.intercept_[0] if values.ndim == 1 else self.intercept_)

    @rowwise
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of each row of X."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    _laws = laws(
        law(
            "intercept_ must have one finite number for each score",
            lambda model: len(model.intercept_) == refuse_other_classes(model),
        ),
    )
