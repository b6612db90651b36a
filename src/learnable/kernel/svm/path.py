r"""The support vector machine along its cost C: each solution starts from the last one.

    D(β; C) = Σ yβ − ½βᵀKβ,     0 ≤ yβ ≤ C s,   Σβ = 0

A β that is feasible for one C is feasible for every larger one, and so is tβ up to t = C′/C: the start for C′ is the tβ
with the greatest D. Along the path D rises, ‖f‖ grows (the margin 1/‖f‖ narrows) and the sum of the slacks falls;
β is piecewise linear in C (T. Hastie, S. Rosset, R. Tibshirani and J. Zhu, The entire regularization path for the
support vector machine, JMLR 5, 2004). Here the solutions are computed at chosen C, each to its own violation and gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core import Array, DataError, NDArray, ParameterError, Run, check_parameters
from ...data.door import Table
from ...risk.losses import HingeLoss
from ...solvers.conic.smo import Team
from .svc import SVC, row_costs, solve_pair

_ROUNDING = 1e-12  # of a row's cost


@dataclass(frozen=True)
class SVMPath:
    """Machines of two classes along C.

    Attributes
    ----------
    Cs : (m,) array
        The costs, increasing.
    coefs : (m, n) array
        β of every row: positive for the second class, 0 for rows that are no support vectors.
    intercepts : (m,) array
        b.
    scores : (m, n) array
        f(x) + b of the training rows.
    norms : (m,) array
        ‖f‖; the margin is 1/‖f‖.
    slacks : (m,) array
        Σ s max(0, 1 − y(f + b)), weighted as the costs are.
    primal, dual : (m,) arrays
        Objective and its lower bound.
    violations : (m,) array
        Largest violation of the optimality conditions.
    n_steps : (m,) array of int
        Pairs of multipliers that were moved.
    y : (n,) array
        ±1.
    costs : (n,) array
        s: what C is multiplied with.
    """

    Cs: Array
    coefs: Array
    intercepts: Array
    scores: Array
    norms: Array
    slacks: Array
    primal: Array
    dual: Array
    violations: Array
    n_steps: NDArray[np.int64]
    y: Array
    costs: Array

    @property
    def n_support(self) -> NDArray[np.int64]:
        """The number of support vectors at each C."""
        return np.asarray(self.cases[:, 1:].sum(axis=1))

    @property
    def cases(self) -> NDArray[np.int64]:
        """How many rows are no support vectors, on the margin, and at their bound, to rounding: (m, 3)."""
        share = np.abs(self.coefs) / (self.Cs[:, None] * self.costs)
        none = share <= _ROUNDING
        bound = share >= 1.0 - _ROUNDING
        return np.stack([none.sum(1), (~none & ~bound).sum(1), bound.sum(1)], axis=1)


def svm_path(X: Any, y: Any, Cs: Any = 20, *, sample_weight: Any = None, **settings: Any) -> SVMPath:
    """Fit support vector machines of two classes along C, each started from the last.

    Parameters
    ----------
    X : (n, d) array or sparse array
        Rows.
    y : (n,) array
        Labels, of two classes.
    Cs : array or int
        Costs; or how many, evenly on a logarithmic scale from 1e-3 to 1e3.
    sample_weight : (n,) array, optional
        Weights.
    **settings
        Parameters of `SVC`: kernel, gamma, tol, fit_intercept, class_weight, n_jobs …; `max_seconds` is for the whole
        path, which then ends early.

    Returns
    -------
    SVMPath
        Coefficients, scores and bounds at every C.

    Examples
    --------
    >>> from learnable.kernel import svm_path
    >>> path = svm_path([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], [0.1, 1.0, 10.0], kernel="linear", tol=1e-6)
    >>> (1 / path.norms).round(3)  # the margin narrows to half the distance of the classes
    array([2.5, 1. , 0.5])
    """
    grid = _grid(Cs)
    if "C" in settings or settings.get("solver", "auto") == "primal":
        raise ParameterError("svm_path: C and solver are the path's own; pass Cs, and leave solver out.")
    model = SVC(**settings)
    check_parameters("svm_path", model.get_params(deep=False), model._parameters)
    run = Run(max_seconds=model.max_seconds, n_jobs=model.n_jobs)
    table: Table = type(model)._door(model, X, y, sample_weight, run)
    if table.classes is None or len(table.classes) != 2:
        count = 0 if table.classes is None else len(table.classes)
        raise DataError(f"svm_path: y must have two classes; got {count}. Take them pair by pair.")
    points = model._points(table)
    sign = np.where(table.y == 1, 1.0, -1.0)
    # with C = 1
    kernel = model._mercer()
    unit = row_costs(model, table)
    limit = None if model.max_iter < 0 else model.max_iter
    fits: list[Any] = []
    start: Array | None = None
    with Team(model.n_jobs) as team:
        for number, C in enumerate(grid):
            if fits:
                start = _scaled(fits[-1], sign, C / grid[number - 1])
                start = np.clip(start, np.minimum(sign, 0.0) * C * unit, np.maximum(sign, 0.0) * C * unit)
            fit = solve_pair(
                kernel,
                points,
                sign,
                C * unit,
                team,
                fit_intercept=model.fit_intercept,
                tol=model.tol,
                megabytes=model.cache_size,
                max_steps=limit,
                run=run,
                start=start,
                owner="svm_path",
            )
            fits.append(fit)
            if run.should_stop():
                break
    return _collected(np.asarray(grid[: len(fits)]), fits, sign, unit)


def _grid(Cs: Any) -> list[float]:
    """Return the costs, increasing."""
    if isinstance(Cs, (int, np.integer)) and not isinstance(Cs, bool):
        if Cs < 1:
            raise ParameterError(f"svm_path: Cs must be numbers > 0, or how many; got {Cs!r}.")
        return [float(C) for C in np.logspace(-3.0, 3.0, int(Cs))]
    try:
        grid = np.sort(np.asarray(Cs, dtype=np.float64).ravel())
    except (TypeError, ValueError):
        grid = np.zeros(0)
    if not len(grid) or not (grid > 0).all() or not np.isfinite(grid).all():
        raise ParameterError(f"svm_path: Cs must be numbers > 0, or how many; got {Cs!r}.")
    return [float(C) for C in grid]


def _scaled(fit: Any, sign: Array, most: float) -> Array:
    """Return the tβ, 1 ≤ t ≤ most, with the greatest D(tβ) = tΣ|β| − ½t²βᵀKβ."""
    square = float(fit.beta @ fit.f)
    total = float(sign @ fit.beta)
    best = total / square if square > 0 else most
    return np.asarray(fit.beta * float(np.clip(best, 1.0, most)))


def _collected(grid: Array, fits: list[Any], sign: Array, unit: Array) -> SVMPath:
    """Put the machines together."""
    scores = np.array([fit.f + fit.b for fit in fits])
    return SVMPath(
        grid,
        np.array([fit.beta for fit in fits]),
        np.array([fit.b for fit in fits]),
        scores,
        np.sqrt([max(float(fit.beta @ fit.f), 0.0) for fit in fits]),
        HingeLoss().value(sign, scores) @ unit,
        np.array([fit.primal for fit in fits]),
        np.array([fit.dual for fit in fits]),
        np.array([fit.violation for fit in fits]),
        np.array([fit.n_steps for fit in fits], dtype=np.int64),
        sign,
        unit,
    )
