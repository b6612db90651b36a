r"""Nearest points of the convex hulls of two classes, in the kernel's space.

    min_{u, v}  ½‖Σ uᵢφ(xᵢ) − Σ vⱼφ(xⱼ)‖²      u, v ≥ 0,   Σu = Σv = 1     (each at most `largest`: reduced hulls)

over the rows x of one class and of the other. The plane half-way between the two nearest points, at right angles to
the line that joins them, is the hard-margin classifier; its margin is half the distance. With w = Σ uφ − Σ vφ the
classes lie on both sides of a slab at right angles to w, which no two points of the hulls can bridge:

    (min₊ ⟨w, φ(x)⟩ − max₋ ⟨w, φ(x)⟩)/‖w‖  ≤  distance  ≤  ‖w‖,

so that the two ends prove how near the answer is. For reduced hulls min and max are means of the extreme rows.

References: V. Vapnik, Statistical Learning Theory, 1998, §10.1; K. Bennett and E. Bredensteiner, Duality and geometry
in SVM classifiers, ICML 2000.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.optimize import nnls

from ...core import (
    MAX_SECONDS,
    N_JOBS,
    TOLERANCE,
    Array,
    Certificate,
    DataError,
    NDArray,
    Number,
    Run,
    check_parameters,
    interruptible,
)
from ...risk.kernels import Kernel, Linear, as_kernel
from ...risk.kernels.base import read_points
from ...solvers.conic.quadratic import quadratic_program
from ...solvers.conic.smo import BoxProgram, Team
from .base import solve_program

_TOUCHING: Final = 1e-12  # squared distance, relative to that of the rows from their mean, below which hulls touch
_NEARLY: Final = 1e-3  # squared distance, so measured, below which they may touch
_BALANCE: Final = 1e3  # weight of the equation Σu = Σv
_SMALL: Final = 1000  # rows whose kernel matrix is solved as a whole
_ROUNDS: Final = 6  # of the program, each solved more finely
_RULES: Final = {"tol": TOLERANCE, "largest": Number(low=0.0, low_open=True, high=1.0), "n_jobs": N_JOBS,
                 "max_seconds": MAX_SECONDS}  # fmt: skip


class NearestPoints(NamedTuple):
    """The nearest points of two hulls."""

    distance: float  #: ‖w‖: zero where the hulls touch
    lower_bound: float  #: width of the slab that separates the hulls
    weights: Array  #: (n,) u of the rows of the second class, −v of those of the first
    points: tuple[Array, Array] | None  #: the points themselves, first class first, for the linear kernel
    intercept: float  #: b of the classifier that is ±1 at the two points
    classes: NDArray[Any]  #: the two labels
    certificate: Certificate

    @property
    def margin(self) -> float:
        """Half the distance: the hard margin."""
        return 0.5 * self.distance

    @property
    def touch(self) -> bool:
        """Whether the hulls have a point in common, to rounding: no hard margin exists."""
        return self.distance == 0.0


def nearest_points(
    X: Any,
    y: Any,
    kernel: Any = "linear",
    *,
    gamma: float = 1.0,
    degree: int = 3,
    coef0: float = 0.0,
    largest: float = 1.0,
    tol: float = 1e-6,
    n_jobs: int | None = None,
    max_seconds: float | None = None,
) -> NearestPoints:
    """Find the nearest points of the convex hulls of two classes.

    Parameters
    ----------
    X : (n, d) array or sparse array
        Rows.
    y : (n,) array
        Labels, two of them.
    kernel, gamma, degree, coef0
        As in `risk.kernels.as_kernel`.
    largest : float
        Most weight of a row: below 1 the hulls are reduced, as in ν-classification.
    tol : float
        Relative difference of distance and slab.
    n_jobs : int or None
        Threads; the result is the same for any number.
    max_seconds : float, optional
        Time after which the best so far is returned, with its bound.

    Returns
    -------
    NearestPoints
        Distance, weights, points and the certificate `gap`: 1 − slab/distance; where hulls touch, how far apart the two
        combinations of rows are that should coincide, relative to the extent of the rows in the kernel's space.

    Notes
    -----
    Up to 1,000 rows the kernel matrix is held, and where interior points leave a doubt nonnegative least squares decide
    (neither looks at the clock within a step: `max_seconds` may be exceeded by some seconds). Beyond, memory is that of
    a support vector machine: 300 MB of kernel rows.

    Examples
    --------
    >>> from learnable.kernel import nearest_points
    >>> found = nearest_points([[0.0, 0.0], [0.0, 2.0], [3.0, 1.0], [5.0, 1.0]], ["a", "a", "b", "b"])
    >>> round(found.distance, 6), round(found.margin, 6), found.points[0].round(6)
    (3.0, 1.5, array([0., 1.]))
    """
    values = {"tol": tol, "largest": largest, "n_jobs": n_jobs, "max_seconds": max_seconds}
    check_parameters("nearest_points", values, _RULES)
    X = read_points(X)
    labels = np.asarray(y).ravel()
    classes = np.unique(labels)
    if len(labels) != X.shape[0] or len(classes) != 2:
        raise DataError(
            f"nearest_points: y must have one label per row, of two classes; got {len(labels)} labels of "
            f"{len(classes)} classes for {X.shape[0]} rows."
        )
    k = as_kernel(kernel, gamma=gamma, degree=degree, coef0=coef0)
    sign = np.where(labels == classes[1], 1.0, -1.0)
    _uniform_start(sign, largest)  # refuses weights that cannot sum to one
    centre = X.mean(axis=0) if isinstance(k, Linear) and not sp.issparse(X) else None
    points = X if centre is None else X - centre  # far from zero, inner products would drown the differences
    run = Run(max_seconds=max_seconds)
    extent = _squared_extent(k, points, n_jobs)
    solve = _by_interior_points if len(sign) <= _SMALL else _by_decomposition
    found = solve(k, points, sign, largest, tol, extent, run, n_jobs)
    return _described(X, k, found, sign, classes, centre, extent, tol, run.seconds)


class _Pair(NamedTuple):
    """Two points of the hulls and what is known of their distance."""

    weights: Array
    f: Array  #: ⟨w, φ(x)⟩
    square: float  #: ‖w‖²
    slab: float  #: its width, times ‖w‖
    steps: int

    @classmethod
    def of(cls, kernel: Kernel, X: Any, weights: Array, sign: Array, largest: float, steps: int) -> _Pair:
        """Measure two points."""
        f = kernel.products(X, weights)
        slab = _mean_of_extreme(f[sign > 0], largest) + _mean_of_extreme(-f[sign < 0], largest)
        return cls(weights, f, max(float(weights @ f), 0.0), slab, steps)

    def is_proven(self, tol: float, extent: float) -> bool:
        """Tell whether they coincide, or nothing is nearer, to the tolerance."""
        return self.square <= _TOUCHING * extent or self.square - self.slab <= tol * self.square


def _by_interior_points(
    kernel: Kernel, X: Any, sign: Array, largest: float, tol: float, extent: float, run: Run, n_jobs: int | None
) -> _Pair:
    """Solve the program of a small matrix; where hulls nearly touch, least squares have more digits."""
    sums = np.stack([np.maximum(sign, 0.0), np.minimum(sign, 0.0)])
    low = np.minimum(sign, 0.0) * largest
    high = np.maximum(sign, 0.0) * largest
    solved = quadratic_program(
        kernel(X),
        np.zeros(len(sign)),
        A=np.abs(sums),
        b=[1.0, -1.0],
        lower=low,
        upper=high,
        progress=lambda step, value: run.should_stop(),
    )
    found = _Pair.of(kernel, X, solved.x, sign, largest, solved.n_iter)
    return found if found.is_proven(tol, extent) or run.should_stop() else _nearer(found, kernel, X, sign, largest)


def _by_decomposition(
    kernel: Kernel, X: Any, sign: Array, largest: float, tol: float, extent: float, run: Run, n_jobs: int | None
) -> _Pair:
    """Solve a large program to ever smaller violations; if the distance falls to nothing, try to prove that."""
    weights = _uniform_start(sign, largest)
    low = np.minimum(sign, 0.0) * largest
    high = np.maximum(sign, 0.0) * largest
    program = BoxProgram(np.zeros(len(sign)), low, high, sign < 0)
    steps = 0
    aim = 1e-3 * extent
    tried = False
    with Team(n_jobs) as team:
        for _ in range(_ROUNDS):
            solved = solve_program(kernel, X, program, team, tol=aim, run=run, start=weights)
            weights = solved.beta
            steps = steps + solved.n_steps
            found = _Pair.of(kernel, X, weights, sign, largest, steps)
            if not found.is_proven(tol, extent) and found.square <= _NEARLY * extent and not tried:
                found = _nearer(found, kernel, X, sign, largest)
                tried = True
            if found.is_proven(tol, extent) or run.should_stop():
                break
            weights = found.weights
            aim = min(0.1 * aim, 0.25 * tol * found.square)
    return found


def _nearer(found: _Pair, kernel: Kernel, X: Any, sign: Array, largest: float) -> _Pair:
    """Return the points that least squares find, if they are nearer."""
    if largest < 1.0:
        return found
    weights = _by_least_squares(kernel, X, sign, found.weights)
    other = _Pair.of(kernel, X, weights, sign, largest, found.steps)
    return other if other.square < found.square else found


def _squared_extent(kernel: Kernel, X: Any, n_jobs: int | None) -> float:
    """Return the largest squared distance of a row from the mean of all."""
    means = kernel.products(X, np.full(X.shape[0], 1.0 / X.shape[0]), n_jobs=n_jobs)
    return max(float((kernel.diagonal(X) - 2.0 * means + means.mean()).max()), 0.0)


def _by_least_squares(kernel: Kernel, X: Any, sign: Array, weights: Array) -> Array:
    """Return weights by nonnegative least squares in coordinates of the kernel's space (C. Lawson and R. Hanson, 1974).

    Coordinates keep the digits that squares lose, so that hulls which overlap or nearly do are told apart. Of many rows
    the weightiest are taken: a point that their hulls have in common is one of all.
    """
    rows = np.sort(np.argsort(-np.abs(weights), kind="stable")[:_SMALL])
    if len(np.unique(sign[rows])) < 2:
        return weights
    K = kernel(X[rows])
    s = sign[rows]
    means = K.mean(axis=0)
    values, U = interruptible(eigh, K - means - means[:, None] + means.mean(), check_finite=False)
    kept = values > 2.0**-52 * len(K) * max(float(values[-1]), 0.0)
    F = U[:, kept] * np.sqrt(values[kept])
    size = float(np.sqrt((F * F).sum(axis=1).max(initial=0.0))) or 1.0
    A = np.vstack([(F * s[:, None]).T / size, np.ones((1, len(s))), _BALANCE * s])
    b = np.zeros(len(A))
    b[-2] = 2.0
    try:
        x, _ = interruptible(nnls, A, b, maxiter=20 * len(s))
    except RuntimeError:  # too many steps
        return weights
    sums = x[s > 0].sum(), x[s < 0].sum()
    if not min(sums) > 0.0:
        return weights
    out = np.zeros_like(weights)
    out[rows] = np.where(s > 0, x / sums[0], -x / sums[1])
    return out


def _described(
    X: Any,
    kernel: Kernel,
    found: _Pair,
    sign: Array,
    classes: NDArray[Any],
    centre: Array | None,
    extent: float,
    tol: float,
    seconds: float,
) -> NearestPoints:
    """Put the answer together; hulls that touch have distance zero, and what their common point misses is the bound."""
    weights = found.weights
    f = found.f
    touch = found.square <= _TOUCHING * extent
    square = 0.0 if touch else found.square
    distance = float(np.sqrt(square))
    lower = min(max(found.slab, 0.0) / distance, distance) if distance > 0 else 0.0
    gap = max(0.0, 1.0 - lower / distance) if distance > 0 else 0.0
    if touch and extent > 0.0:
        gap = float(np.sqrt(found.square / extent))
        tol = max(tol, float(np.sqrt(_TOUCHING)))
    points = None
    shift = 0.0
    if isinstance(kernel, Linear):
        ends = [np.asarray(np.where(sign == s, np.abs(weights), 0.0) @ X).ravel() for s in (-1.0, 1.0)]
        points = ends[0], ends[1]
        shift = 0.0 if centre is None else float((ends[1] - ends[0]) @ centre)
    own = float(weights[sign > 0] @ f[sign > 0]), float(-weights[sign < 0] @ f[sign < 0])
    b = -(own[0] + own[1] + 2.0 * shift) / square if square > 0 else 0.0
    certificate = Certificate("gap", gap, tol, gap, found.steps, seconds)
    return NearestPoints(distance, lower, weights, points, b, classes, certificate)


def _uniform_start(sign: Array, largest: float) -> Array:
    """Return equal weights on as few rows of each class as `largest` allows."""
    beta = np.zeros(len(sign))
    for s in (-1.0, 1.0):
        rows = np.flatnonzero(sign == s)
        count = int(np.ceil(1.0 / largest - 1e-12))
        if count > len(rows):
            raise DataError(
                f"nearest_points: largest must be at least 1/{len(rows)}, as a class has so many rows; got {largest}."
            )
        beta[rows[:count]] = s / count
    return beta


def _mean_of_extreme(values: Array, largest: float) -> float:
    """Return the least mean Σ uᵢ valuesᵢ over weights 0 ≤ u ≤ largest of sum one."""
    order = np.sort(values)
    left = 1.0
    total = 0.0
    for value in order[: int(np.ceil(1.0 / largest - 1e-12))]:
        share = min(largest, left)
        total = total + share * float(value)
        left = left - share
    return total
