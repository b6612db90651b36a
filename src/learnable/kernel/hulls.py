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
from numpy.typing import NDArray

from ..core.certificate import Certificate
from ..core.errors import DataError
from ..core.parameters import MAX_SECONDS, N_JOBS, TOLERANCE, Number, check_parameters
from ..core.run import Run
from ..risk.kernels import Kernel, Linear, as_kernel
from ..risk.kernels.base import read_points
from ..solvers.decomposition import BoxProgram
from ..solvers.quadratic import quadratic_program
from ..solvers.row_cache import Team
from .svm_base import solve_program

Array = NDArray[np.float64]

_TOUCHING: Final = 1e-12  # squared distance, relative to the largest k(x, x), below which hulls touch
_SMALL: Final = 1000  # rows whose kernel matrix is solved as a whole
_ROUNDS: Final = 6
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
        Distance, weights, points and the certificate `gap`: 1 − slab/distance.

    Examples
    --------
    >>> from learnable.kernel import nearest_points
    >>> found = nearest_points([[0.0, 0.0], [0.0, 2.0], [3.0, 1.0], [5.0, 1.0]], ["a", "a", "b", "b"])
    >>> round(found.distance, 6), round(found.margin, 6), found.points[0].round(6)
    (3.0, 1.5, array([0., 1.]))
    """
    values = {"tol": tol, "largest": largest, "n_jobs": n_jobs, "max_seconds": max_seconds}
    check_parameters("nearest_points", values, _RULES)
    X, labels = read_points(X), np.asarray(y).ravel()
    classes = np.unique(labels)
    if len(labels) != X.shape[0] or len(classes) != 2:
        raise DataError(
            f"nearest_points: y must have one label a row, of two classes; got {len(labels)} labels of "
            f"{len(classes)} classes for {X.shape[0]} rows."
        )
    k = as_kernel(kernel, gamma=gamma, degree=degree, coef0=coef0)
    sign = np.where(labels == classes[1], 1.0, -1.0)
    weights = _uniform_start(sign, largest)
    run, size = Run(max_seconds=max_seconds), float(k.diagonal(X).max())
    low, high = np.minimum(sign, 0.0) * largest, np.maximum(sign, 0.0) * largest
    program = BoxProgram(np.zeros(len(sign)), low, high, sign < 0)
    steps, aim, small = 0, 0.25 * tol * size, len(sign) <= _SMALL
    with Team(n_jobs) as team:
        for _ in range(1 if small else _ROUNDS):
            if small:
                weights, taken = _solved_whole(k(X), sign, low, high, max_seconds)
            else:
                found = solve_program(k, X, program, team, tol=aim, run=run, start=weights)
                weights, taken = found.beta, found.n_steps
            f = k.products(X, weights, n_jobs=n_jobs)
            square, steps = float(weights @ f), steps + taken
            slab = _mean_of_extreme(f[sign > 0], largest) + _mean_of_extreme(-f[sign < 0], largest)
            touch = square <= _TOUCHING * size
            if touch or square - slab <= tol * square or run.should_stop():
                break
            aim = min(0.1 * aim, 0.25 * tol * square)
    return _described(X, k, weights, sign, classes, 0.0 if touch else square, slab, f, tol, steps, run.seconds)


def _solved_whole(K: Array, sign: Array, low: Array, high: Array, max_seconds: float | None) -> tuple[Array, int]:
    """Solve the program of a small matrix by interior points: hulls that nearly touch cost no more than others."""
    sums = np.stack([np.maximum(sign, 0.0), np.minimum(sign, 0.0)])
    found = quadratic_program(
        K, np.zeros(len(K)), A=np.abs(sums), b=[1.0, -1.0], lower=low, upper=high, max_seconds=max_seconds
    )
    return found.x, found.n_iter


def _described(
    X: Any,
    kernel: Kernel,
    weights: Array,
    sign: Array,
    classes: NDArray[Any],
    square: float,
    slab: float,
    f: Array,
    tol: float,
    steps: int,
    seconds: float,
) -> NearestPoints:
    """Put the answer together."""
    distance = float(np.sqrt(max(square, 0.0)))
    lower = max(slab, 0.0) / distance if distance > 0 else 0.0
    gap = max(0.0, 1.0 - lower / distance) if distance > 0 else 0.0
    points = None
    if isinstance(kernel, Linear):
        ends = [np.asarray(np.where(sign == s, np.abs(weights), 0.0) @ X).ravel() for s in (-1.0, 1.0)]
        points = ends[0], ends[1]
    own = float(weights[sign > 0] @ f[sign > 0]), float(-weights[sign < 0] @ f[sign < 0])
    b = -(own[0] + own[1]) / square if square > 0 else 0.0
    certificate = Certificate("gap", gap, tol, gap, steps, seconds)
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
    order, left, total = np.sort(values), 1.0, 0.0
    for value in order[: int(np.ceil(1.0 / largest - 1e-12))]:
        share = min(largest, left)
        total, left = total + share * float(value), left - share
    return total
