r"""Regularisation paths: the lasso and the elastic net for a whole grid of α.

    min_β  1/(2W) Σᵢ sᵢ (yᵢ − xᵢᵀβ)² + α(ρ‖β‖₁ + ½(1 − ρ)‖β‖²),      W = Σᵢ sᵢ

from the smallest α at which all coefficients are zero downwards; every solution starts from the one before. In the form
n⁻¹ΣV + λΩ, λ = 2α. With several targets ‖β‖₁ is the sum of the norms of the rows (the multi-task lasso). The lasso's
path is piecewise linear in α.

The lasso and the elastic net with α (and ρ) chosen by cross-validation.

    min_{b, β}  1/(2W) Σᵢ sᵢ (yᵢ − b − xᵢᵀβ)² + α(ρ‖β‖₁ + ½(1 − ρ)‖β‖²)

for the α with the smallest mean squared error over the folds, or for the largest α within one standard error of it.
Each fold follows one path from α_max downwards, on a thread of its own. In the form n⁻¹ΣV + λΩ, λ = 2α.

Reference: T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical Learning, 2nd ed., section 7.10.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin
from sklearn.exceptions import ConvergenceWarning

from ...core import (
    MAX_ITER,
    TOLERANCE,
    Array,
    ArrayLike,
    Boolean,
    Certificate,
    DataError,
    Matches,
    NDArray,
    Nothing,
    Number,
    Options,
    ParameterError,
    Progress,
    Run,
    Watched,
    check_parameters,
    fitted,
    no_progress,
    optional,
    param,
    resolve_n_jobs,
    tags,
)
from ...data import Blocks, Part, Table, door, map_reduce
from ...meta.selection import standard_errors, within_one_error
from ...solvers.composite.working_set import MomentDesign, SparseFit, WorkingSet, design_of
from ...solvers.systems.moments import Moments, fold_moments
from ..base import is_single
from ..choosing import ChoosingModel, Shares, bounds_of_folds
from ..least_squares.ridge_cv import row_order
from .elastic_net import (
    PRECOMPUTE,
    ElasticNet,
    SparseRegressor,
    penalised_fit,
    penalty_of,
    proven_sparse_fit,
    refuse_overflow,
    round_sparse,
)

ALPHAS = Number(low=1, integer=True) | ArrayLike(Number(low=0.0))
EPS = Number(low=0.0, high=1.0, low_open=True)
# numbers read in all looks of a path, below which it is solved to this gap
_CHEAP_PATH = 2**20
_FINE = 1e-18
_RESOLUTION = 1e-15  # scikit-learn's grid where y is constant


def enet_path(
    X: Any,
    y: Any,
    *,
    l1_ratio: float = 0.5,
    eps: float = 1e-3,
    alphas: Any = 100,
    precompute: Any = "auto",
    Xy: Any = None,
    copy_X: bool = True,
    coef_init: Any = None,
    verbose: bool = False,
    return_n_iter: bool = False,
    positive: bool = False,
    check_input: bool = True,
    fit_intercept: bool = False,
    sample_weight: Any = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    n_jobs: int | None = None,
    n_alphas: Any = None,
    **params: Any,
) -> tuple[Any, ...]:
    """Compute the elastic net for a decreasing grid of α.

    Parameters
    ----------
    X : array, sparse array, dataframe, path or Dask collection of shape (n_samples, n_features)
        Training data. As in scikit-learn nothing is centred, unless `fit_intercept`.
    y : array of shape (n_samples,) or (n_samples, n_targets)
        Targets; several are one multi-task problem.
    l1_ratio : float
        ρ in [0, 1]; with 0 `alphas` must be given.
    eps : float
        Smallest α as a share of the largest, for a grid of a given length.
    alphas : int or array
        Length of the grid, or its values.
    coef_init : array of shape (n_features,) or (n_targets, n_features), optional
        Where to start.
    return_n_iter : bool
        Whether to return the number of epochs for each α too.
    positive : bool
        Constrain β ≥ 0 (one target only).
    fit_intercept : bool
        Whether there is a free intercept.
    sample_weight : array of shape (n_samples,), optional
        Weights of the rows.
    tol, max_iter, n_jobs
        As in `ElasticNet`, for each α.
    precompute, Xy, copy_X, verbose, check_input
        Kept for compatibility.
    n_alphas : int, deprecated
        scikit-learn's former name of a number in `alphas`.
    **params
        Nothing else: what is here is refused.

    Returns
    -------
    alphas : array of shape (n_alphas,)
        The grid, from large to small.
    coefs : array of shape (n_features, n_alphas) or (n_targets, n_features, n_alphas)
        β(α).
    dual_gaps : array of shape (n_alphas,)
        P − D of each, in the units of the objective.
    n_iters : list of int
        Epochs; only with `return_n_iter`.

    Examples
    --------
    >>> from learnable import enet_path
    >>> alphas, coefs, gaps = enet_path([[1.0, 0.0], [0.0, 1.0]], [3.0, 1.0], l1_ratio=1.0, alphas=[1.0, 0.25])
    >>> coefs
    array([[1. , 2.5],
           [0. , 0.5]])
    """
    if params:
        raise ParameterError(f"enet_path: Unexpected parameters in params: {sorted(params)}.")
    alphas = _length_or_values(alphas, n_alphas)
    given = {
        "l1_ratio": l1_ratio, "eps": eps, "alphas": alphas, "precompute": precompute, "positive": positive,
        "fit_intercept": fit_intercept, "tol": tol, "max_iter": max_iter, "return_n_iter": return_n_iter,
    }  # fmt: skip
    rules = {
        "l1_ratio": Number(low=0.0, high=1.0), "eps": EPS, "alphas": ALPHAS, "precompute": optional(PRECOMPUTE),
        "positive": Boolean(), "fit_intercept": Boolean(), "tol": TOLERANCE, "max_iter": MAX_ITER,
        "return_n_iter": Boolean(),
    }  # fmt: skip
    check_parameters("enet_path", given, rules)
    try:
        table = ElasticNet._door(ElasticNet(), X, y, sample_weight)
    except DataError as error:
        raise type(error)(str(error).replace("ElasticNet:", "enet_path:", 1)) from error
    if positive and table.y_shape:
        raise ParameterError("enet_path: positive needs a single target; got several.")
    n_looks = len(alphas) if np.ndim(alphas) else int(alphas)
    design = design_of(table.blocks, intercept=fit_intercept, n_jobs=n_jobs, n_looks=n_looks)
    grid = alpha_grid("enet_path", design, l1_ratio, eps, alphas, positive)
    start = None if coef_init is None else np.atleast_2d(np.asarray(coef_init, dtype=np.float64)).T
    if start is not None and start.shape != design.shape:
        raise ParameterError(f"enet_path: coef_init must have shape {design.shape[::-1]}; got {start.shape[::-1]}.")
    if start is None and design.work * len(grid) <= _CHEAP_PATH:
        tol = min(tol, _FINE)  # coefficients move by about the root of the gap, and here the last digits cost nothing
    fits = follow_path(design, grid, l1_ratio, positive=positive, tol=tol, max_iter=max_iter, start=start)
    coefs = np.stack([fit.W.T for fit in fits], axis=-1)
    gaps = np.array([fit.gap.gap for fit in fits]) / design.weight
    result = (grid, coefs if table.y_shape else coefs[0], gaps)
    return (*result, [max(1, fit.n_iter) for fit in fits]) if return_n_iter else result


def _length_or_values(alphas: Any, n_alphas: Any) -> Any:
    """Return `alphas`, or what scikit-learn's deprecated ways of saying it mean, with its warning."""
    if n_alphas is not None:
        warnings.warn(
            "'n_alphas' was deprecated in 1.9 and will be removed in 1.11 of scikit-learn; pass a number as 'alphas'.",
            FutureWarning,
            stacklevel=4,
        )
    if alphas is None:
        warnings.warn(
            "'alphas=None' is deprecated and will be removed in 1.11 of scikit-learn; leave it out, or pass a number.",
            FutureWarning,
            stacklevel=4,
        )
        alphas = 100
    return n_alphas if n_alphas is not None and np.ndim(alphas) == 0 else alphas


def lasso_path(X: Any, y: Any, *, eps: float = 1e-3, alphas: Any = 100, **parameters: Any) -> tuple[Any, ...]:
    """Compute the lasso for a decreasing grid of α: `enet_path` with `l1_ratio=1`.

    Parameters
    ----------
    X, y, eps, alphas, **parameters
        As in `enet_path`.

    Returns
    -------
    alphas, coefs, dual_gaps, n_iters
        As in `enet_path`.

    Examples
    --------
    >>> from learnable import lasso_path
    >>> alphas, coefs, gaps = lasso_path([[1.0, 0.0], [0.0, 1.0]], [3.0, 1.0], alphas=3, eps=0.01)
    >>> alphas
    array([1.5  , 0.15 , 0.015])
    >>> coefs.round(2)
    array([[0.  , 2.7 , 2.97],
           [0.  , 0.7 , 0.97]])
    """
    return enet_path(X, y, l1_ratio=1.0, eps=eps, alphas=alphas, **parameters)


def alpha_grid(owner: str, design: Any, l1_ratio: float, eps: float, alphas: Any, positive: bool) -> Array:
    """Return the values of α from large to small: those given, or a geometric grid from α_max to eps·α_max."""
    if np.ndim(alphas):
        return np.sort(np.asarray(alphas, dtype=np.float64).ravel())[::-1].copy()
    if l1_ratio == 0:
        raise ParameterError(
            f"{owner}: Automatic alpha grid generation is not supported for l1_ratio=0. Please supply a grid by "
            "providing your estimator with the appropriate `alphas=` argument: no α makes all coefficients zero."
        )
    largest = largest_alpha(design, positive) / l1_ratio
    if largest <= _RESOLUTION:
        return np.full(alphas, _RESOLUTION)
    return np.geomspace(largest, largest * eps, num=alphas)


def largest_alpha(design: Any, positive: bool = False) -> float:
    """Return the smallest α at which the lasso's coefficients are all zero: max ‖Aⱼᵀb‖/W."""
    cross = design.cross
    size = cross if positive else np.sqrt((cross * cross).sum(axis=1))
    return max(0.0, float(size.max(initial=0.0))) / float(design.weight)


def follow_path(
    design: Any,
    alphas: Array,
    l1_ratio: float,
    *,
    positive: bool = False,
    tol: float = 1e-6,
    max_iter: int = 1000,
    start: Array | None = None,
    progress: Progress = no_progress,
    exact: bool = True,
) -> list[SparseFit]:
    """Solve for every α in turn, until `progress` says stop; see `WorkingSet.solve`. There may be fewer fits than α."""
    solver = WorkingSet(design, start)
    fits: list[SparseFit] = []
    watched = Watched(progress)
    for alpha in alphas:
        penalty = penalty_of(design, alpha, l1_ratio, positive)
        fit = solver.solve(penalty, tol=tol, max_iter=max_iter, progress=watched, exact=exact)
        if watched.stopped and not fit.converged:
            break
        fits.append(fit)
        if progress(fit.n_iter, fit.value):
            break
    return fits


_STRIDE = 10  # every tenth α of the grid leads the last fit to the chosen one
_FOLD = 1e-3  # share of the tolerance on the folds: errors of neighbouring α differ by little
_FINEST = 1e-13  # tolerance below which nothing but rounding is gained


class ElasticNetCV(ChoosingModel, SparseRegressor):
    r"""Elastic net with α and ρ chosen by cross-validation.

    Minimises 1/(2W) Σᵢ sᵢ (yᵢ − b − xᵢᵀβ)² + α(ρ‖β‖₁ + ½(1 − ρ)‖β‖²); in the form n⁻¹ΣV + λΩ, λ = 2α. Memory: the
    training rows of as many folds as there are threads.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import ElasticNetCV
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> model = ElasticNetCV(l1_ratio=[0.5, 1.0]).fit(X, X[:, 0] + 0.1 * X[:, 1])
    >>> model.l1_ratio_, model.coef_.round(2)
    (1.0, array([1. , 0.1, 0. , 0. , 0. ]))
    """

    _theory = "elastic-net"

    l1_ratio: Any = param(
        Number(low=0.0, high=1.0) | ArrayLike(Number(low=0.0, high=1.0)),
        "ρ in (0, 1], or several to choose from.",
        default=0.5,
    )
    eps: float = param(EPS, "Smallest α as a share of the largest.", default=1e-3)
    alphas: Any = param(ALPHAS, "Length of the grid, or its values.", default=100)
    precompute: Any = param(PRECOMPUTE, "Kept for compatibility; a Gram matrix is used where it pays.", default="auto")
    max_iter: int = param(MAX_ITER, "Most epochs for each α.", default=1000)
    cv: Any = param(
        Nothing() | Matches(lambda v: not isinstance(v, (str, float, bool)), "a number of folds or a splitter"),
        "Folds; None is 5.",
        default=None,
    )
    verbose: int = param(Boolean() | Number(low=0, integer=True), "Kept for compatibility.", default=0)
    rule: str = param(
        Options("min", "1se"),
        '"min" takes the best α; "1se" the largest within one standard error of it.',
        default="min",
    )
    alpha_: float = fitted("()", "The chosen α.", low=0.0)
    l1_ratio_: float = fitted("()", "The chosen ρ.", low=0.0, high=1.0)
    mse_path_: Array = fitted(
        "(n_alphas, n_folds) or (n_l1_ratios, n_alphas, n_folds)",
        "Mean squared errors on the folds; infinite for an α for which `max_seconds` left no time.",
        infinite=True,
        low=0.0,
    )
    alphas_: Array = fitted("(n_alphas,) or (n_l1_ratios, n_alphas)", "The grid.")
    row_order_: int = fitted(
        "int", "Checksum of the targets in their order, by which `verify` knows whether it can draw the folds again."
    )
    certificate_: Certificate = fitted("Certificate", "`gap` of the fit to all rows.")

    _door = staticmethod(door(target="numeric"))
    warm_start = False

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        splits: list[Any]
        design: Any
        if table.in_memory:
            design = design_of(table.blocks, intercept=self.fit_intercept, n_jobs=self.n_jobs)
            splits = [(fold.train, fold.test) for fold in self._folds(table, run, self._metadata(table))]
        else:
            self._metadata(table)  # raises where something was passed that no splitter asks for
            bounds = bounds_of_folds(owner, self.cv, table.n_rows)
            moments = fold_moments(table.blocks, bounds, intercept=self.fit_intercept, n_jobs=self.n_jobs)
            design = MomentDesign(moments.whole)
            splits = list(zip(moments.outside, moments.inside, strict=True))
        refuse_overflow(owner, design)
        ratios = np.atleast_1d(np.asarray(self.l1_ratio, dtype=np.float64))
        grids = [alpha_grid(owner, design, ratio, self.eps, self.alphas, self.positive) for ratio in ratios.tolist()]
        tasks = [(number, train, test) for number in range(len(ratios)) for train, test in splits]
        shares = Shares(run, self.max_seconds, len(tasks), resolve_n_jobs(self.n_jobs))

        def errors(task: tuple[int, Any, Any]) -> list[Array]:
            number, train, test = task
            is_over = shares.begin()
            judge = self._fold_errors if table.in_memory else self._moment_errors
            return [judge(table, grids[number], float(ratios[number]), train, test, is_over)]

        found = map_reduce(tasks, errors, lambda a, b: a + b, n_jobs=self.n_jobs)
        mse = np.array(found).reshape(len(ratios), len(splits), -1).transpose(0, 2, 1)
        best, chosen = self._choose(mse)
        self.l1_ratio_ = float(ratios[best])
        self.alpha_ = float(grids[best][chosen])
        single = np.ndim(self.l1_ratio) == 0
        same = single or np.ndim(self.alphas) > 0
        self.mse_path_ = mse[0] if single else mse
        self.alphas_ = grids[0] if same else np.array(grids)
        solver = WorkingSet(design)
        for alpha in grids[best][chosen % _STRIDE : chosen : _STRIDE].tolist():
            if not run.should_stop():
                penalised_fit(solver, self, alpha, self.l1_ratio_, run)
        fit = penalised_fit(solver, self, self.alpha_, self.l1_ratio_, run)
        penalty = penalty_of(design, self.alpha_, self.l1_ratio_, self.positive)
        rounded = None
        if is_single(table):
            rounded = round_sparse(design, fit, penalty, self.tol)
        fit = fit if rounded is None else rounded
        fit = proven_sparse_fit(table.blocks, design, fit, penalty, self.tol, intercept=self.fit_intercept)
        level = design.y_mean - design.x_mean @ fit.W
        self._set_coefficients(fit.W, level, table.y_shape, single=rounded is not None)
        if table.y_shape and not self.fit_intercept:
            self.intercept_ = np.zeros(table.y_shape)
        self.n_iter_ = max(1, fit.n_iter)
        self.dual_gap_ = fit.gap.gap / design.weight
        self.row_order_ = row_order(table) if table.in_memory else 0
        return Certificate("gap", fit.value, self.tol, fit.value, self.n_iter_)

    def _choose(self, mse: Array) -> tuple[int, int]:
        """Return the positions of ρ and α by the rule; a tie goes to the larger α."""
        mean = mse.mean(axis=-1)
        missing = int(np.isinf(mean).sum())
        if missing and self.max_seconds is not None:
            warnings.warn(
                f"{type(self).__name__}: max_seconds={self.max_seconds:g} left no time for {missing} of {mean.size} "
                f"penalties on every fold; {_chosen_from(mse)}. Raise max_seconds, or pass fewer alphas.",
                ConvergenceWarning,
                stacklevel=6,
            )
        mean = np.full(mean.shape, np.inf)
        for number, errors in enumerate(mse):
            alphas, folds = _reached(errors)
            if alphas.size:
                mean[number, alphas] = errors[np.ix_(alphas, folds)].mean(axis=1)
        best = int(np.argmin(mean.min(axis=1)))
        if np.isinf(mean[best, 1:]).all() and mean.shape[1] > 1:
            return best, mean.shape[1] // 2  # no path begins beyond the largest penalty
        if self.rule == "min":
            return best, int(np.argmin(mean[best]))
        alphas, folds = _reached(mse[best])
        spread = standard_errors(mse[best][np.ix_(alphas, folds)])
        return best, int(alphas[np.flatnonzero(within_one_error(-mean[best, alphas], spread))[0]])

    def _fold_errors(
        self, table: Table, alphas: Array, l1_ratio: float, train: Any, test: Any, is_over: Callable[[], bool]
    ) -> Array:
        """Return the mean squared error on `test` for every α, fitted to `train` until the fold's time `is_over`."""
        weight = table.weight
        part = Part(table.X[train], table.y[train], None if weight is None else weight[train])
        design: Any = design_of(Blocks([part]), intercept=self.fit_intercept, n_jobs=1, n_looks=len(alphas))

        def judge(W: Array, n_fits: int) -> Array:
            n_targets = W.shape[1] // n_fits
            level = np.tile(design.y_mean, n_fits) - design.x_mean @ W
            truth = np.tile(table.y[test].reshape(-1, n_targets), n_fits)
            residual = truth - (table.X[test] @ W + level)
            return np.asarray(np.average(residual**2, axis=0, weights=None if weight is None else weight[test]))

        return self._path_errors(design, alphas, l1_ratio, is_over, judge)

    def _moment_errors(
        self, table: Table, alphas: Array, l1_ratio: float, train: Moments, test: Moments, is_over: Callable[[], bool]
    ) -> Array:
        """Do the same for folds of which only the moments are known."""
        design = MomentDesign(train)

        def judge(W: Array, n_fits: int) -> Array:
            level = np.tile(train.y_mean, n_fits) - train.x_mean @ W
            cross = np.tile(test.cross, n_fits)
            spread = np.tile(test.y_square, n_fits) - 2.0 * (W * cross).sum(axis=0) + (W * (test.gram @ W)).sum(axis=0)
            if not self.fit_intercept:  # moments about zero
                return np.asarray(np.maximum(spread, 0.0) / test.weight)
            offset = np.tile(test.y_mean, n_fits) - level - test.x_mean @ W
            return np.asarray(np.maximum(spread, 0.0) / test.weight + offset**2)

        return self._path_errors(design, alphas, l1_ratio, is_over, judge)

    def _path_errors(
        self,
        design: Any,
        alphas: Array,
        l1_ratio: float,
        is_over: Callable[[], bool],
        judge: Callable[[Array, int], Array],
    ) -> Array:
        """Return the mean over the targets of the errors that `judge` finds for every α."""
        tol = max(_FOLD * self.tol, min(self.tol, _FINEST))
        errors = np.full(len(alphas), np.inf)  # of those for which there was no time
        steps = (slice(_STRIDE - 1, None, _STRIDE), slice(None)) if self.max_seconds is not None else (slice(None),)
        for step in steps:  # with little time every tenth α first: the best one may be far down the path
            fits = follow_path(
                design, alphas[step], l1_ratio, positive=self.positive, tol=tol, max_iter=self.max_iter,
                progress=lambda iteration, value: is_over(), exact=False,
            )  # fmt: skip
            if fits:
                W = np.column_stack([fit.W for fit in fits])  # the targets of one α stand side by side
                found = judge(W, len(fits)).reshape(len(fits), -1).mean(axis=1)
                errors[np.arange(len(alphas))[step][: len(fits)]] = found
        return errors


def _reached(mse: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the positions of the α that can be compared, and of the folds on which: at least half of those begun.

    Means over other folds for every α would compare unlike things, and one fold without time must not decide that the
    largest penalty, at which every path begins, is the best.
    """
    known = np.isfinite(mse)
    counts = known.sum(axis=0)
    furthest = np.sort(counts[counts > 0])[::-1]
    if not furthest.size:
        return np.arange(0), np.arange(0)
    half = min(len(furthest), -(-len(counts) // 2))
    folds = np.flatnonzero(counts >= furthest[half - 1])
    return np.flatnonzero(known[:, folds].all(axis=1)), folds


def _chosen_from(mse: Array) -> str:
    """Say what an α was chosen from when the time was up."""
    alphas, folds = max((_reached(errors) for errors in mse), key=lambda found: found[0].size)
    if alphas.size == 0 or (alphas.max() == 0 and mse.shape[1] > 1):
        return "alpha_ is the middle of the grid, because no fold came beyond the largest penalty"
    return f"alpha_ is the best of the {len(alphas)} that {len(folds)} of {mse.shape[-1]} folds were fitted with"


class LassoCV(ElasticNetCV):
    r"""Lasso with α chosen by cross-validation: minimises 1/(2W) Σᵢ sᵢ (yᵢ − b − xᵢᵀβ)² + α‖β‖₁.

    In the form n⁻¹ΣV + λΩ (V squared loss, Ω = ‖β‖₁), λ = 2α. It is `ElasticNetCV` with `l1_ratio` fixed at
    one.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import LassoCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 5))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=60)
    >>> len(np.flatnonzero(LassoCV(rule="1se").fit(X, y).coef_))
    1
    """

    _theory = "lasso"

    l1_ratio = 1.0


class MultiTaskElasticNetCV(MultiOutputMixin, ElasticNetCV):
    r"""Multi-task elastic net with α and ρ chosen by cross-validation.

    Minimises 1/(2W) Σᵢ sᵢ ‖yᵢ − b − Bᵀxᵢ‖² + α(ρ Σⱼ ‖Bⱼ‖₂ + ½(1 − ρ)‖B‖²); in the form n⁻¹ΣV + λΩ, λ = 2α. An error
    on a fold is the mean over the targets. Memory: the training rows of as many folds as there are threads.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import MultiTaskElasticNetCV
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> Y = X[:, :2] @ [[1.0, 2.0], [0.5, 0.0]] + 0.1 * np.cos(np.arange(120.0)).reshape(60, 2)
    >>> model = MultiTaskElasticNetCV(alphas=10, cv=3).fit(X, Y)
    >>> model.coef_.shape, model.mse_path_.shape, model.certificate_.holds
    ((2, 5), (10, 3), True)
    """

    _theory = "group-lasso"

    coef_: Any = fitted(
        "(n_targets, n_features)", "Bᵀ; float32 for float32 rows, if the certificate survives that rounding."
    )
    intercept_: Any = fitted("(n_targets,)", "b.")

    _door = staticmethod(door(target="numeric", multi_output=True))
    positive = False
    precompute = "auto"
    _tags = tags(single_output=False)

    def _fit(self, table: Table, run: Run) -> Certificate:
        if not table.y_shape:
            name = type(self).__name__
            raise DataError(
                f"{name}: y must have two dimensions, one column per task. For mono-task outputs, use {name[9:]}."
            )
        return super()._fit(table, run)


class MultiTaskLassoCV(MultiTaskElasticNetCV):
    r"""Multi-task lasso with α chosen by cross-validation: minimises 1/(2W) Σᵢ sᵢ ‖yᵢ − b − Bᵀxᵢ‖² + α Σⱼ ‖Bⱼ‖₂.

    In the form n⁻¹ΣV + λΩ (V = ‖y − f‖², Ω = Σⱼ ‖Bⱼ‖₂), λ = 2α. It is `MultiTaskElasticNetCV` with `l1_ratio` fixed at
    one.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import MultiTaskLassoCV
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> Y = X[:, :2] @ [[1.0, 2.0], [0.5, 0.0]] + 0.1 * np.cos(np.arange(120.0)).reshape(60, 2)
    >>> MultiTaskLassoCV(alphas=10, cv=3, rule="1se").fit(X, Y).coef_.shape
    (2, 5)
    """

    _theory = "group-lasso"

    l1_ratio = 1.0
