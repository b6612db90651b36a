r"""The lasso and the elastic net: least squares with a penalty that sets coefficients to zero.

    min_{b, β}  1/(2W) Σᵢ sᵢ (yᵢ − b − xᵢᵀβ)² + α(ρ‖β‖₁ + ½(1 − ρ)‖β‖²),      W = Σᵢ sᵢ

ρ = 1 is the lasso. In the form n⁻¹ΣV + λΩ with V = (y − f)² and Ω = ρ‖β‖₁ + ½(1 − ρ)‖β‖², λ = 2α. The intercept is
never penalised. The lasso is also the MAP estimate under Gaussian noise of variance σ² and a Laplace prior of scale
σ²/(Wα) on every coefficient.

References: R. Tibshirani, Regression shrinkage and selection via the lasso, JRSS B 58, 1996; H. Zou and T. Hastie,
Regularization and variable selection via the elastic net, JRSS B 67, 2005.

The multi-task lasso and elastic net: several targets that use the same few columns.

    min_{b, B}  1/(2W) Σᵢ sᵢ ‖yᵢ − b − Bᵀxᵢ‖² + α(ρ Σⱼ ‖Bⱼ‖₂ + ½(1 − ρ)‖B‖²),      W = Σᵢ sᵢ

where Bⱼ holds the coefficients of column j for all targets: they are zero together. In the form n⁻¹ΣV + λΩ with
V = ‖y − f‖², λ = 2α. With one target it is the lasso.

Reference: G. Obozinski, B. Taskar and M. Jordan, Joint covariate selection and joint subspace selection for multiple
classification problems, Statistics and Computing 20, 2010.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import MultiOutputMixin, RegressorMixin

from ...core import (
    MAX_ITER,
    RANDOM_STATE,
    TOLERANCE,
    Array,
    Boolean,
    Certificate,
    DataError,
    Matches,
    Number,
    Options,
    ParameterError,
    Run,
    fitted,
    one_thread_blas,
    param,
    tags,
)
from ...data import Blocks, Table, door
from ...data.sources import NamedScore
from ...solvers.composite.coordinate import FLOOR, Gap, Penalty, penalised_gap
from ...solvers.composite.working_set import Design, SparseFit, WorkingSet, design_of
from ...solvers.systems.least_squares import least_squares, nonnegative_fit
from ...solvers.systems.moments import CLOSED_FORM_TOLERANCE, SINGLE_TOLERANCE
from ...solvers.systems.orthogonal import LinearFit
from ..base import FINEST_CLAIM, SUM_ROUNDING, LinearRegressorModel, in_single, is_single, long_rows, round_linear

PRECOMPUTE = Boolean() | Options("auto") | Matches(lambda v: hasattr(v, "__array__"), "a Gram matrix")
_POLISH = 100  # epochs
# λ_max/λ from which larger penalties come first, their ratio, their gap
_NEAR = 100.0
_STEP = 3.0
_LOOSE = 1e-3
# elements of a Gram matrix, and of X
_CHEAP = 2**18
_CHEAP_LOOK = 2**22
_ROUNDING = 1e-14  # gap of a fit that is not worth another digit
_SMALL = 2**16  # cells of a table below which BLAS's threads bring nothing, and limiting them takes a tenth of a fit
_CENTRED = 1e-5  # share of a column's size that its mean may have in a table that was centred in single precision
#: Ends with the words that scikit-learn's users filter for.
NOT_CONVERGED = (
    "raise max_iter or max_seconds, or scale the columns of X. Objective did not converge. You might want to increase "
    "the number of iterations"
)


class SparseRegressor(NamedScore, RegressorMixin, LinearRegressorModel):
    """What the lasso, the elastic net and their relatives share."""

    copy_X: bool = param(Boolean(), "Kept for compatibility; X is never changed.", default=True)
    max_iter: int = param(MAX_ITER, "Most epochs over the working columns.", default=1000)
    tol: float = param(TOLERANCE, "Relative duality gap at which to stop.", default=1e-6)
    l1_ratio: Any = param(Number(low=0.0, high=1.0), "ρ in [0, 1]; with 0 the model is ridge regression.", default=0.5)
    warm_start: bool = param(Boolean(), "Start from the last fit's coefficients.", default=False)
    positive: bool = param(Boolean(), "Constrain β ≥ 0.", default=False)
    random_state: Any = param(RANDOM_STATE, "Kept for compatibility; nothing here is random.", default=None)
    selection: str = param(
        Options("cyclic", "random"), "Kept for compatibility; the optimum is the same.", default="cyclic"
    )
    n_iter_: Any = fitted("int or list of int", "Epochs.")
    dual_gap_: Any = fitted("() or (n_targets,)", "P − D in the units of the objective.")

    _remedy = NOT_CONVERGED


class ElasticNet(MultiOutputMixin, SparseRegressor):
    r"""Elastic net: minimise 1/(2W) Σᵢ sᵢ (yᵢ − b − xᵢᵀβ)² + α(ρ‖β‖₁ + ½(1 − ρ)‖β‖²), W = Σᵢ sᵢ.

    In the form n⁻¹ΣV + λΩ (V squared loss, Ω = ρ‖β‖₁ + ½(1 − ρ)‖β‖²), λ = 2α. Memory besides the data: O(k(n + k)) for
    a working set of k columns; O(d²) for tables with many more rows than columns and those beyond memory, which are
    read once.

    Examples
    --------
    >>> from learnable import ElasticNet
    >>> model = ElasticNet(alpha=0.1).fit([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]], [0.0, 1.0, 2.0])
    >>> model.coef_.round(4), float(model.intercept_.round(4))
    (array([0.8605, 0.    ]), 0.1395)
    >>> model.certificate_.kind, model.certificate_.holds
    ('gap', True)
    """

    _theory = "elastic-net"

    alpha: float = param(Number(low=0.0), "α ≥ 0; with 0 the model is least squares.", default=1.0, kw_only=False)
    precompute: Any = param(PRECOMPUTE, "Kept for compatibility; a Gram matrix is used where it pays.", default=False)
    coef_: Any = fitted(
        "(n_features,) or (n_targets, n_features)",
        "β; float32 for float32 rows in memory, if the certificate survives that rounding. Several targets "
        "are independent problems.",
    )
    certificate_: Certificate = fitted(
        "Certificate", "`gap`: P is at most this share above the optimum. `closed-form` where α = 0 or ρ = 0."
    )

    _door = staticmethod(door(target="numeric", multi_output=True))
    _flattens_one_column = True

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, check_input: bool = True) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse array, dataframe or list of shape (n_samples, n_features)
            Training data.
        y : array of shape (n_samples,) or (n_samples, n_targets), or str
            Targets; with a dataframe, the name of a column.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights of the rows; with a dataframe, the name of a column.
        check_input : bool, default=True
            Kept for compatibility; the data are always checked.

        Returns
        -------
        self
            The fitted estimator. If the fit fails or is interrupted, the estimator stays as it was.
        """
        return super().fit(X, y, sample_weight)

    @property
    def sparse_coef_(self) -> Any:
        """Return the coefficients as a sparse array."""
        return sp.csr_array(np.atleast_2d(self.coef_))

    def _fit(self, table: Table, run: Run) -> Certificate:
        if self.alpha == 0 or self.l1_ratio == 0:
            return self._fit_smooth(table)
        if table.in_memory and table.n_rows * table.n_columns <= _SMALL:
            with one_thread_blas():  # every part of the fit asks for it; together they ask once
                return self._fit_sparse(table, run)
        return self._fit_sparse(table, run)

    def _fit_sparse(self, table: Table, run: Run) -> Certificate:
        check_gram(self, table)
        start = previous_coefficients(self, run, table)
        fits = []
        rounded = []
        means = []
        problems = []
        for target in range(table.y_shape[0] if table.y_shape else 1):
            blocks = one_target(table, target)
            design = design_of(blocks, intercept=self.fit_intercept, n_jobs=self.n_jobs)
            solver = WorkingSet(design, None if start is None else start[target][:, None])
            fits.append(penalised_fit(solver, self, self.alpha, self.l1_ratio, run))
            penalty = penalty_of(design, self.alpha, self.l1_ratio, self.positive)
            if is_single(table):
                rounded.append(round_sparse(design, fits[-1], penalty, self.tol))
            means.append((design.y_mean, design.x_mean, design.weight))
            problems.append((blocks, design, penalty))
        kept = [fit for fit in rounded if fit is not None]
        single = len(kept) == len(fits)
        fits = [
            proven_sparse_fit(blocks, design, fit, penalty, self.tol, intercept=self.fit_intercept)
            for fit, (blocks, design, penalty) in zip(kept if single else fits, problems, strict=True)
        ]
        coef = np.column_stack([fit.W for fit in fits])
        intercept = np.array(
            [(y_mean - x_mean @ fit.W)[0] for fit, (y_mean, x_mean, _) in zip(fits, means, strict=True)]
        )
        self._set_coefficients(coef, intercept, table.y_shape, single=single)
        n_iter = [max(int(start is None), fit.n_iter) for fit in fits]
        gaps = [fit.gap.gap / weight for fit, (_, _, weight) in zip(fits, means, strict=True)]
        flat = table.y_shape in ((), (1,))
        self.n_iter_, self.dual_gap_ = (n_iter[0], gaps[0]) if flat else (n_iter, np.array(gaps))
        value = max(fit.value for fit in fits)
        return Certificate("gap", value, self.tol, value, max(1, *n_iter))

    def _fit_smooth(self, table: Table) -> Certificate:
        """Solve the problem without an L1 part directly: it is ridge regression with the penalty Wα."""
        strength = table.weight_sum * self.alpha
        if self.positive:
            found = nonnegative_fit(table.blocks, strength, intercept=self.fit_intercept)
            fit = found._replace(kind="stationarity")
        else:
            direct = least_squares(table.blocks, strength, intercept=self.fit_intercept, n_jobs=self.n_jobs)
            if direct is None:
                raise DataError(
                    f"{type(self).__name__}: without an L1 penalty this table is too wide for a direct solution; "
                    "use Ridge."
                )
            fit = direct
        return set_smooth(self, table, fit, strength)


class Lasso(ElasticNet):
    r"""Lasso: minimise 1/(2W) Σᵢ sᵢ (yᵢ − b − xᵢᵀβ)² + α‖β‖₁, W = Σᵢ sᵢ.

    In the form n⁻¹ΣV + λΩ (V squared loss, Ω = ‖β‖₁), λ = 2α. At α ≥ max_j |Σᵢ sᵢ(xᵢⱼ − x̄ⱼ)(yᵢ − ȳ)|/W all
    coefficients are zero; below, not all. It is `ElasticNet` with `l1_ratio` fixed at one.

    Examples
    --------
    >>> from learnable import Lasso
    >>> model = Lasso(alpha=0.1).fit([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]], [0.0, 1.0, 2.0])
    >>> model.coef_.round(4), float(model.intercept_.round(4))
    (array([0.85, 0.  ]), 0.15)
    >>> model.certificate_.kind, model.certificate_.holds
    ('gap', True)
    """

    _theory = "lasso"

    l1_ratio = 1.0


def penalty_of(design: Any, alpha: float, l1_ratio: float, positive: bool = False) -> Penalty:
    """Return λ₁ = Wαρ and λ₂ = Wα(1 − ρ): the objective times W is what the solver minimises."""
    d = design.shape[0]
    strength = design.weight * alpha
    return Penalty(np.full(d, strength * l1_ratio), np.full(d, strength * (1.0 - l1_ratio)), positive)


def penalised_fit(solver: WorkingSet, model: Any, alpha: float, l1_ratio: float, run: Run) -> SparseFit:
    """Solve for one penalty with a model's limits."""
    penalty = penalty_of(solver.design, alpha, l1_ratio, getattr(model, "positive", False))
    refuse_overflow(type(model).__name__, solver.design)
    spent = _approach(solver, penalty, model.max_iter, run)
    fit = solver.solve(penalty, tol=model.tol, max_iter=model.max_iter - spent, progress=run.progress)
    fit = fit._replace(n_iter=spent + fit.n_iter)
    left = min(_POLISH, model.max_iter - fit.n_iter)
    dear = len(solver.columns) ** 2 > _CHEAP or solver.design.work > _CHEAP_LOOK
    if not fit.converged or left <= 0 or dear or fit.value <= _ROUNDING:
        return fit
    # A small problem is solved to rounding: coefficients move by about the root of the gap.
    polished = solver.solve(penalty, tol=_ROUNDING, max_iter=left, progress=run.progress)
    return polished._replace(n_iter=fit.n_iter + polished.n_iter) if polished.value < fit.value else fit


def set_smooth(model: Any, table: Table, fit: LinearFit, strength: float) -> Certificate:
    """Store a fit without an L1 part, in float32 for float32 rows, and return its certificate."""
    rounded = None
    if is_single(table):
        rounded = round_linear(
            table.blocks,
            fit,
            strength,
            intercept=model.fit_intercept,
            tolerance=SINGLE_TOLERANCE,
            nonnegative=getattr(model, "positive", False),
            n_jobs=model.n_jobs,
        )
    tolerance = CLOSED_FORM_TOLERANCE if rounded is None else SINGLE_TOLERANCE
    fit = fit if rounded is None else rounded
    model._set_coefficients(fit.coef, fit.intercept, table.y_shape, single=rounded is not None)
    model.n_iter_ = 1
    model.dual_gap_ = 0.0
    return Certificate(fit.kind, fit.value, tolerance, None, 1)  # type: ignore[arg-type]


def check_gram(model: Any, table: Table) -> None:
    """Look at a Gram matrix that was passed: it is not used, but a wrong one means that other data were meant."""
    if not hasattr(model.precompute, "__array__") or not table.in_memory:
        return
    gram = np.asarray(model.precompute, dtype=np.float64)
    owner = type(model).__name__
    rows = table.X[:, [0, -1]]
    rows = (rows.toarray() if sp.issparse(rows) else rows).astype(np.float64)
    weight = np.ones(len(rows)) if table.weight is None else table.weight * (len(rows) / table.weight.sum())
    mean = np.abs(weight @ rows) / len(rows)
    size = np.sqrt(weight @ rows**2 / len(rows))
    if model.fit_intercept and (mean > _CENTRED * size).any():
        warnings.warn(
            f"{owner}: Gram matrix was provided but X was centered to fit intercept: recomputing Gram matrix.",
            UserWarning,
            stacklevel=6,
        )
        return
    expected = rows.T @ (weight[:, None] * rows)
    found = gram[np.ix_([0, -1], [0, -1])] if gram.shape == (table.n_columns, table.n_columns) else None
    if found is None or not np.allclose(found, expected, rtol=1e-4, atol=1e-4 * float(np.abs(expected).max())):
        raise ParameterError(
            f"{owner}: Gram matrix passed in via 'precompute' parameter did not pass validation: it must be XᵀX of "
            "these (weighted) rows. Leave precompute out; a Gram matrix is computed where it pays."
        )


def refuse_overflow(owner: str, design: Any) -> None:
    """Raise where squares are beyond float64."""
    if not (np.isfinite(design.norm).all() and np.isfinite(design.square)):
        raise DataError(f"{owner}: the squares of these columns or targets overflow; rescale them.")


def _approach(solver: WorkingSet, penalty: Penalty, max_iter: int, run: Run) -> int:
    """Come from zero by a few larger penalties, loosely: near an exact fit the support is hard to find at once."""
    if solver.model is None or solver.model.W.any() or penalty.l1.min(initial=np.inf) <= 0:
        return 0
    ratio = float(np.abs(solver.gradient).max(initial=0.0) / penalty.l1[0])
    spent = 0
    if ratio <= _NEAR:
        return spent
    for factor in np.geomspace(ratio, 1.0, 2 + int(np.log(ratio) / np.log(_STEP)))[1:-1].tolist():
        larger = Penalty(factor * penalty.l1, penalty.l2, penalty.positive)
        if spent < max_iter and not run.out_of_time:
            watch = partial(_watch, run)
            spent += solver.solve(larger, tol=_LOOSE, max_iter=max_iter - spent, progress=watch).n_iter
    return spent


def _watch(run: Run, iteration: int, value: float) -> bool:
    """Stop a preliminary descent in time; callbacks hear of the real one only."""
    return run.should_stop()


def one_target(table: Table, target: int) -> Blocks:
    """Return the rows with one of several targets."""
    if not table.y_shape:
        return table.blocks
    return Blocks([part._replace(y=np.ascontiguousarray(part.y[:, target])) for part in table.blocks.parts])


def previous_coefficients(model: Any, run: Run, table: Table) -> Array | None:
    """Return the last fit's coefficients (t, d) for `warm_start`, where they have the right shape."""
    coef = getattr(run.previous, "coef_", None) if model.warm_start else None
    expected = (table.y_shape[0] if table.y_shape else 1, table.n_columns)
    if coef is None or np.atleast_2d(coef).shape != expected:
        return None
    return np.atleast_2d(coef).astype(np.float64)


class MultiTaskElasticNet(MultiOutputMixin, SparseRegressor):
    r"""Multi-task elastic net: minimise 1/(2W) Σᵢ sᵢ ‖yᵢ − b − Bᵀxᵢ‖² + α(ρ Σⱼ ‖Bⱼ‖₂ + ½(1 − ρ)‖B‖²).

    In the form n⁻¹ΣV + λΩ (V = ‖y − f‖²), λ = 2α. Memory besides the data: O(k(n + k)) for a working set of k columns.

    Examples
    --------
    >>> from learnable import MultiTaskElasticNet
    >>> model = MultiTaskElasticNet(alpha=0.1).fit([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]], [[0, 0], [1, 1], [2, 3]])
    >>> model.coef_.shape, model.certificate_.holds
    ((2, 2), True)
    """

    _theory = "group-lasso"

    alpha: float = param(Number(low=0.0, low_open=True), "α > 0.", default=1.0, kw_only=False)
    coef_: Any = fitted(
        "(n_targets, n_features)", "Bᵀ; float32 for float32 rows, if the certificate survives that rounding."
    )
    intercept_: Any = fitted("(n_targets,)", "b.")
    certificate_: Certificate = fitted(
        "Certificate", "`gap`: P is at most this share above the optimum. `closed-form` where ρ = 0."
    )

    _door = staticmethod(door(target="numeric", multi_output=True))
    positive = False
    _tags = tags(single_output=False)

    def _fit(self, table: Table, run: Run) -> Certificate:
        if not table.y_shape:
            name = type(self).__name__
            raise DataError(f"{name}: y must have two dimensions, one column per task; use {name[9:]} for one target.")
        if self.l1_ratio == 0:
            return self._fit_smooth(table)
        start = previous_coefficients(self, run, table)
        design = design_of(table.blocks, intercept=self.fit_intercept, n_jobs=self.n_jobs)
        solver = WorkingSet(design, None if start is None else start.T)
        fit = penalised_fit(solver, self, self.alpha, self.l1_ratio, run)
        penalty = penalty_of(design, self.alpha, self.l1_ratio)
        rounded = None
        if is_single(table):
            rounded = round_sparse(design, fit, penalty, self.tol)
        fit = fit if rounded is None else rounded
        fit = proven_sparse_fit(table.blocks, design, fit, penalty, self.tol, intercept=self.fit_intercept)
        intercept = design.y_mean - design.x_mean @ fit.W
        self._set_coefficients(fit.W, intercept, table.y_shape, single=rounded is not None)
        if not self.fit_intercept:
            self.intercept_ = np.zeros(table.y_shape)
        self.n_iter_ = max(int(start is None), fit.n_iter)
        self.dual_gap_ = fit.gap.gap / design.weight
        return Certificate("gap", fit.value, self.tol, fit.value, max(1, self.n_iter_))

    def _fit_smooth(self, table: Table) -> Certificate:
        """Solve the problem without a norm of rows directly: it is ridge regression with the penalty Wα."""
        penalty = table.weight_sum * self.alpha
        fit = least_squares(table.blocks, penalty, intercept=self.fit_intercept, n_jobs=self.n_jobs)
        if fit is None:
            raise DataError(
                f"{type(self).__name__}: with l1_ratio=0 this table is too wide for a direct solution; use Ridge."
            )
        certificate = set_smooth(self, table, fit, penalty)
        if not self.fit_intercept:
            self.intercept_ = np.zeros(table.y_shape)
        return certificate


class MultiTaskLasso(MultiTaskElasticNet):
    r"""Multi-task lasso: minimise 1/(2W) Σᵢ sᵢ ‖yᵢ − b − Bᵀxᵢ‖² + α Σⱼ ‖Bⱼ‖₂.

    In the form n⁻¹ΣV + λΩ (V = ‖y − f‖², Ω = Σⱼ ‖Bⱼ‖₂), λ = 2α. It is `MultiTaskElasticNet`
    with `l1_ratio` fixed at one.

    Examples
    --------
    >>> from learnable import MultiTaskLasso
    >>> model = MultiTaskLasso(alpha=0.5).fit([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]], [[0, 0], [1, 1], [2, 3]])
    >>> model.coef_.round(3) + 0.0
    array([[0.584, 0.   ],
           [0.876, 0.   ]])
    """

    _theory = "group-lasso"

    l1_ratio = 1.0


MOST_REFINED = 2000  # nonzero coefficients for which a Newton step is worth its price


def round_sparse(design: Design, fit: SparseFit, penalty: Penalty, tol: float) -> SparseFit | None:
    """Return a fit by coordinate descent with float32 coefficients; None where its gap does not stay below `tol`.

    Rounding raises the objective only by its square, but moves the residual, and with it the dual point, by itself. The
    dual point that proves more is that of the coefficients after one Newton step on their support.
    """
    W = in_single(fit.W)
    if not np.isfinite(W).all():
        return None
    base = 0.5 * design.square
    gap = _gap_at(WorkingSet(design, W), W, penalty)
    near = min(fit.value, gap.relative(base)) <= tol  # far from the optimum such a step says little
    refined = _newton_step(design, W, penalty) if near else None
    if refined is not None:
        better = _gap_at(WorkingSet(design, refined), refined, penalty)
        left = gap.primal - (better.primal - better.gap)
        gap = gap._replace(gap=max(0.0, left)) if left < gap.gap else gap
    value = gap.relative(base)
    if fit.value <= tol and not value <= tol:
        return None
    return fit._replace(W=W, value=value, gap=gap)


def _gap_at(solver: WorkingSet, W: Array, penalty: Penalty) -> Gap:
    return penalised_gap(W, solver.gradient, solver.square, penalty)


def _newton_step(design: Design, W: Array, penalty: Penalty) -> Array | None:
    """Return the coefficients of one target that solve the equations of their support and signs."""
    support = np.flatnonzero(W.any(axis=1))
    if W.shape[1] > 1 or not 0 < len(support) <= MOST_REFINED:
        return None
    solver = WorkingSet(design, W)
    place = np.full(len(W), -1, dtype=np.intp)
    place[solver.columns] = np.arange(len(solver.columns))
    curvature = None if solver.model is None else solver.model.curvature(place[support])
    if curvature is None or (place[support] < 0).any():
        return None
    w = W[support, 0]
    l1 = penalty.l1[support]
    l2 = penalty.l2[support]
    slope = solver.gradient[support, 0] - l2 * w - l1 * np.sign(w)
    refined = W.copy()
    refined[support, 0] += np.linalg.lstsq(curvature + np.diag(l2), slope)[0]
    return refined


def proven_sparse_fit(
    blocks: Blocks, design: Design, fit: SparseFit, penalty: Penalty, tol: float, *, intercept: bool
) -> SparseFit:
    """Return a fit by coordinate descent with a gap that rounding cannot explain.

    Parameters
    ----------
    blocks : Blocks
        The rows, with the targets of the fit.
    design, fit, penalty
        The centred problem, where its solver stopped, and λ₁ and λ₂.
    tol : float
        The gap that is asked for: rounding below it changes nothing.
    intercept : bool
        Whether columns and targets are centred.
    """
    rounding = _rounding_of_sparse_gap(design, fit, penalty)
    if rounding <= max(tol, FINEST_CLAIM):
        return fit
    base = 0.5 * design.square
    if blocks.in_memory:
        gap = penalised_gap(fit.W, *_long_residual(blocks, fit.W, intercept=intercept), penalty)
    else:
        gap = _widened(fit.gap, rounding, base)
    value = gap.relative(base)
    return fit._replace(value=value, gap=gap, converged=value <= tol)


def _rounding_of_sparse_gap(design: Design, fit: SparseFit, penalty: Penalty) -> float:
    """Return what rounding of Aᵀr may do to the relative gap: its terms are up to ‖Aⱼ‖(‖b‖ + Σ‖Aₖ‖‖Wₖ‖)."""
    if not penalty.l1.all():
        return 0.0
    column = np.sqrt(design.norm + design.weight * design.x_mean**2)
    terms = np.sqrt(design.square + design.weight * float((design.y_mean**2).sum()))
    terms = terms + column @ np.sqrt((fit.W**2).sum(axis=1))
    share = float((column / penalty.l1).max(initial=0.0)) * terms
    dual = fit.gap.primal - fit.gap.gap
    return float(SUM_ROUNDING * share * min(1.0, fit.gap.primal / max(dual, FLOOR * 0.5 * design.square, 1e-300)))


def _widened(gap: Gap, rounding: float, base: float) -> Gap:
    """Return a gap that is, relative to what the dual value then is, at least `rounding`."""
    least = min(gap.primal, rounding / (1.0 + rounding) * max(gap.primal, FLOOR * base))
    return gap._replace(gap=max(gap.gap, least))


def _long_residual(blocks: Blocks, W: Array, *, intercept: bool) -> tuple[Array, float]:
    """Return Σ s (x − x̄)rᵀ and Σ s r² of the residuals r = y − ȳ − Wᵀ(x − x̄)."""
    coef = W.astype(np.longdouble)
    d, t = coef.shape
    total, x_sum, y_sum = (np.zeros(shape, dtype=np.longdouble) for shape in ((), d, t))
    for X, y, s in long_rows(blocks):
        total = total + s.sum()
        x_sum = x_sum + X.T @ s
        y_sum = y_sum + s @ y
    x_mean, y_mean = (x_sum / total, y_sum / total) if intercept else (0 * x_sum, 0 * y_sum)
    level = y_mean - x_mean @ coef
    cross, r_sum, square = (np.zeros(shape, dtype=np.longdouble) for shape in ((d, t), t, ()))
    for X, y, s in long_rows(blocks):
        r = y - level - X @ coef
        weighted = s[:, None] * r
        cross = cross + X.T @ weighted
        r_sum = r_sum + weighted.sum(axis=0)
        square = square + (weighted * r).sum()
    return (cross - np.outer(x_mean, r_sum)).astype(np.float64), float(square)
