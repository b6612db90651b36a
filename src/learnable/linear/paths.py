r"""Regularisation paths: the lasso and the elastic net for a whole grid of α.

    min_β  1/(2W) Σᵢ sᵢ (yᵢ − xᵢᵀβ)² + α(ρ‖β‖₁ + ½(1 − ρ)‖β‖²),      W = Σᵢ sᵢ

from the smallest α at which all coefficients are zero downwards; every solution starts from the one before. In the form
n⁻¹ΣV + λΩ, λ = 2α. With several targets ‖β‖₁ is the sum of the norms of the rows (the multi-task lasso). The lasso's
path is piecewise linear in α.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, ParameterError
from ..core.parameters import MAX_ITER, TOLERANCE, ArrayLike, Boolean, Number, check_parameters, optional
from ..core.run import Progress, no_progress
from ..solvers.composite.working_set import SparseFit, WorkingSet, design_of
from .elastic_net import PRECOMPUTE, ElasticNet, penalty_of

Array = NDArray[np.float64]

ALPHAS = Number(low=1, integer=True) | ArrayLike(Number(low=0.0))
EPS = Number(low=0.0, high=1.0, low_open=True)
_CHEAP_PATH, _FINE = 2**20, 1e-18  # numbers read in all looks of a path, below which it is solved to this gap
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
    stopped = False

    def watched(iteration: int, value: float) -> bool:
        nonlocal stopped
        stopped = progress(iteration, value)
        return stopped

    for alpha in alphas:
        penalty = penalty_of(design, alpha, l1_ratio, positive)
        fit = solver.solve(penalty, tol=tol, max_iter=max_iter, progress=watched, exact=exact)
        if stopped and not fit.converged:
            break
        fits.append(fit)
        if progress(fit.n_iter, fit.value):
            break
    return fits
