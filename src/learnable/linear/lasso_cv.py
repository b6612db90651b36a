r"""The lasso and the elastic net with α (and ρ) chosen by cross-validation.

    min_{b, β}  1/(2W) Σᵢ sᵢ (yᵢ − b − xᵢᵀβ)² + α(ρ‖β‖₁ + ½(1 − ρ)‖β‖²)

for the α with the smallest mean squared error over the folds, or for the largest α within one standard error of it.
Each fold follows one path from α_max downwards, on a thread of its own. In the form n⁻¹ΣV + λΩ, λ = 2α.

Reference: T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical Learning, 2nd ed., section 7.10.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ..core.certificate import Certificate
from ..core.declare import fitted, param
from ..core.errors import DataError, ParameterError
from ..core.parameters import MAX_ITER, ArrayLike, Boolean, Matches, Nothing, Number, Options
from ..core.run import Run
from ..core.threads import resolve_n_jobs
from ..data.blocks import Blocks, Part, map_reduce
from ..data.door import Table, door
from ..meta.selection import standard_errors, within_one_error
from ..solvers.coordinate_sets import WorkingSet, design_of
from .elastic_net import PRECOMPUTE, SparseRegressor, penalised_fit, penalty_of, refuse_overflow
from .paths import ALPHAS, EPS, alpha_grid, follow_path
from .ridge_cv import _splits, row_order
from .single import is_single, round_sparse

Array = NDArray[np.float64]

_STRIDE = 10  # every tenth α of the grid leads the last fit to the chosen one
_FOLD = 1e-3  # share of the tolerance on the folds: errors of neighbouring α differ by little
_FOLDS_SHARE = 0.8  # of max_seconds; the rest is for the fit to all rows
_FINEST = 1e-13  # tolerance below which nothing but rounding is gained


class ElasticNetCV(SparseRegressor):
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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Choose α and ρ, and fit the model.

        Parameters
        ----------
        X : array, sparse array, dataframe or list of shape (n_samples, n_features)
            Training data.
        y : array of shape (n_samples,), or str
            Targets; with a dataframe, the name of a column.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights of the rows; with a dataframe, the name of a column.
        **params : dict
            Nothing: parameters of splitters are not routed. Pass the folds themselves as `cv`.

        Returns
        -------
        self
            The fitted estimator. If the fit fails or is interrupted, the estimator stays as it was.
        """
        if params:
            raise ParameterError(
                f"{type(self).__name__}: passing {sorted(params)} to fit is only supported if "
                "enable_metadata_routing=True in scikit-learn, and not here; pass the folds themselves as cv."
            )
        return super().fit(X, y, sample_weight)

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        if not table.in_memory:
            raise DataError(f"{owner}: cross-validation needs the rows in memory; use {owner[:-2]} or read the table.")
        design = design_of(table.blocks, intercept=self.fit_intercept, n_jobs=self.n_jobs)
        refuse_overflow(owner, design)
        ratios = np.atleast_1d(np.asarray(self.l1_ratio, dtype=np.float64))
        grids = [alpha_grid(owner, design, ratio, self.eps, self.alphas, self.positive) for ratio in ratios.tolist()]
        splits = self._folds(owner, table)
        tasks = [(number, train, test) for number in range(len(ratios)) for train, test in splits]
        shares = _Shares(run, self.max_seconds, len(tasks), resolve_n_jobs(self.n_jobs))

        def errors(task: tuple[int, Any, Any]) -> list[Array]:
            number, train, test = task
            is_over = shares.begin()
            return [self._fold_errors(table, grids[number], float(ratios[number]), train, test, is_over)]

        found = map_reduce(tasks, errors, lambda a, b: a + b, n_jobs=self.n_jobs)
        mse = np.array(found).reshape(len(ratios), len(splits), -1).transpose(0, 2, 1)
        best, chosen = self._choose(mse)
        self.l1_ratio_, self.alpha_ = float(ratios[best]), float(grids[best][chosen])
        single = np.ndim(self.l1_ratio) == 0
        same = single or np.ndim(self.alphas) > 0
        self.mse_path_ = mse[0] if single else mse
        self.alphas_ = grids[0] if same else np.array(grids)
        solver = WorkingSet(design)
        for alpha in grids[best][chosen % _STRIDE : chosen : _STRIDE].tolist():
            if not run.should_stop():
                penalised_fit(solver, self, alpha, self.l1_ratio_, run)
        fit = penalised_fit(solver, self, self.alpha_, self.l1_ratio_, run)
        rounded = None
        if is_single(table):
            penalty = penalty_of(design, self.alpha_, self.l1_ratio_, self.positive)
            rounded = round_sparse(design, fit, penalty, self.tol)
        fit = fit if rounded is None else rounded
        self._set_coefficients(fit.W, design.y_mean - design.x_mean @ fit.W, (), single=rounded is not None)
        self.n_iter_, self.dual_gap_ = max(1, fit.n_iter), fit.gap.gap / design.weight
        self.row_order_ = row_order(table)
        return Certificate("gap", fit.value, self.tol, fit.value, self.n_iter_)

    def _folds(self, owner: str, table: Table) -> list[tuple[Any, Any]]:
        """Return the folds as positions in the table."""
        try:
            splits = list(_splits(self.cv, table))
        except (TypeError, ValueError) as error:
            raise ParameterError(f"{owner}: cv={self.cv!r} does not work here: {error}") from error
        if not splits or any(len(train) < 1 or len(test) < 1 for train, test in splits):
            raise DataError(f"{owner}: cv={self.cv!r} leaves a fold without rows; use fewer folds.")
        return splits

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
            return best, mean.shape[1] // 2  # nothing is known beyond the largest penalty, at which every path begins
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
        tol = max(_FOLD * self.tol, min(self.tol, _FINEST))
        errors = np.full(len(alphas), np.inf)  # of those for which there was no time
        steps = (slice(_STRIDE - 1, None, _STRIDE), slice(None)) if self.max_seconds is not None else (slice(None),)
        for step in steps:  # with little time every tenth α first: the best one may be far down the path
            fits = follow_path(
                design, alphas[step], l1_ratio, positive=self.positive, tol=tol, max_iter=self.max_iter,
                progress=lambda iteration, value: is_over(), exact=False,
            )  # fmt: skip
            if fits:
                W = np.column_stack([fit.W[:, 0] for fit in fits])
                residual = table.y[test][:, None] - (table.X[test] @ W + (design.y_mean - design.x_mean @ W))
                found = np.average(residual**2, axis=0, weights=None if weight is None else weight[test])
                errors[np.arange(len(alphas))[step][: len(fits)]] = found
        return errors


class _Shares:
    """Gives every fold its share of the time, so that all paths come equally far and the last fit has some left."""

    def __init__(self, run: Run, max_seconds: float | None, n_tasks: int, n_threads: int) -> None:
        self._run, self._n_tasks, self._n_threads = run, n_tasks, n_threads
        self._end = None if max_seconds is None else time.perf_counter() + _FOLDS_SHARE * max_seconds
        self._lock = threading.Lock()

    def begin(self) -> Callable[[], bool]:
        """Return what tells whether the time of the fold that begins now is over."""
        run = self._run
        if self._end is None:
            return lambda: run.out_of_time
        with self._lock:
            rounds = -(-self._n_tasks // self._n_threads)
            self._n_tasks -= 1
        now = time.perf_counter()
        end = now + max(0.0, self._end - now) / max(1, rounds)
        return lambda: run.out_of_time or time.perf_counter() > end


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
