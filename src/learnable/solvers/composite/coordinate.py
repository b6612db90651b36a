r"""Coordinate descent for a quadratic plus a separable penalty, with a duality gap.

    P(W) = ½‖b − AW‖² + Σⱼ (λ₁ⱼ‖Wⱼ‖ + ½λ₂ⱼ‖Wⱼ‖²)

W has one row per column of A; ‖Wⱼ‖ is |wⱼ| for one target, and the norm of a whole row for several (the multi-task
lasso). With Â = (A, √λ₂) and b̂ = (b, 0) this is a lasso in Â, whose dual is

    D(θ) = ½‖b̂‖² − ½‖b̂ − θ‖²   over   ‖Âⱼᵀθ‖ ≤ λ₁ⱼ.

Any multiple θ = τr̂ of the residual that obeys the constraints proves that P is within P − D of the optimum; the best τ
is used. Where every λ₂ⱼ > 0, the elastic net's own dual, which has no constraints, is tried at θ = r too.

Five epochs at a time are followed by an extrapolation: a Newton step on the support where a Gram matrix is at hand and
the support has settled, else Anderson's combination of the last iterates. The residual is affine in W, so the
extrapolated point carries its dual point with it. A candidate that does not lower P is dropped.

References: M. Massias, A. Gramfort and J. Salmon, Celer: a fast solver for the lasso with dual extrapolation, ICML
2018; Q. Bertrand and M. Massias, Anderson acceleration of coordinate descent, AISTATS 2021; E. Ndiaye et al., Gap safe
screening rules for sparsity enforcing penalties, JMLR 18, 2017.

Steps between the epochs of coordinate descent: Newton steps on the support, and Anderson's extrapolation.

A candidate is kept only if it lowers P. On a support whose signs stay P is a quadratic: its minimiser ends the search
where no sign changes. Where some do, steps that end at each change are sure to descend. With several targets P is
smooth on the rows that are not zero, and has Newton steps there. Else the last iterates are combined with weights that
sum to one, so that their differences are shortest.

Reference: Q. Bertrand and M. Massias, Anderson acceleration of coordinate descent, AISTATS 2021.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import lapack

from ...core import Array, DataError, NDArray, ParameterError, Progress, no_progress, one_thread_blas
from ..problem import Solution
from ._kernels import gap_terms, gather_square, gram_descent, gram_epochs, gram_row_epochs, gram_step
from .support_factor import SupportFactor

_BATCH = 5  # epochs between two looks at the gap; also the number of differences that are combined
_FEW_COLUMNS = 512  # for which many epochs take less time than a look from outside
_SLOW = 0.1  # seconds of an epoch after which the clock is read after every one
_LATE = 50  # epochs after which sure steps on the support are worth their price
_NOISE = 1e-13  # share of P below which a gap that does not fall is rounding
FLOOR = 1e-8  # share of P₀ below which the optimum is not asked to be known relatively


class Penalty(NamedTuple):
    """λ₁ and λ₂ of every coefficient."""

    l1: Array  #: (d,), ≥ 0
    l2: Array  #: (d,), ≥ 0
    positive: bool = False  #: whether W ≥ 0

    def at(self, columns: Any) -> Penalty:
        """Return the penalty of some coefficients."""
        return Penalty(self.l1[columns], self.l2[columns], self.positive)


class Gap(NamedTuple):
    """Primal value, and what a feasible dual point proves about it."""

    primal: float
    gap: float  #: P − D ≥ 0
    tau: float  #: the multiple of the residual
    size: Array  #: (d,), ‖Âⱼᵀr̂‖, or Âⱼᵀr̂ itself if W ≥ 0

    def relative(self, start: float) -> float:
        """Return (P − D)/max(D, 1e-8·P₀)."""
        if self.gap == 0.0:
            return 0.0
        return self.gap / max(self.primal - self.gap, FLOOR * start, 1e-300)


def penalised_gap(W: Array, gradient: Array, residual_square: float, penalty: Penalty) -> Gap:
    """Return the gap at W from the gradient Aᵀ(b − AW) (d, t) and ‖b − AW‖².

    P − D is summed from terms that are not negative, so that it keeps its digits far below the rounding of P.
    """
    size = np.empty(len(W))
    W = np.ascontiguousarray(W)
    gradient = np.ascontiguousarray(gradient)
    return Gap(*gap_terms(W, gradient, float(residual_square), *penalty, size), size)


class Quadratic(Protocol):
    """½‖b − AW‖² at a current point W, which `epochs` moves."""

    W: Array  #: (k, t), C-contiguous
    square: float  #: ‖b‖²
    held: Array  #: what is kept up to date with W: the gradient, or the residual

    def epochs(self, penalty: Penalty, n_epochs: int, floor: float) -> float:
        """Visit every coordinate `n_epochs` times; return the largest decrease of the last visit."""

    def gradient(self) -> Array:
        """Return Aᵀ(b − AW)."""

    def residual_square(self) -> float:
        """Return ‖b − AW‖²."""

    def move(self, W: Array) -> None:
        """Go to W."""

    def curvature(self, rows: NDArray[np.intp]) -> Array | None:
        """Return AᵀA of some columns, or None where it would cost too much."""


class GramQuadratic:
    """The quadratic by G = AᵀA and C = Aᵀb: no rows are needed any more. G may have room for more columns."""

    def __init__(self, gram: Array, cross: Array, square: float, W: Array | None = None) -> None:
        self.G = gram
        self.C = cross
        self.square = square
        self.W = np.zeros_like(cross)
        self.g = self.held = cross.copy()
        self.factor: SupportFactor | None = None  # made by the first Newton step
        if W is not None and W.any():
            self.move(W)

    def epochs(self, penalty: Penalty, n_epochs: int, floor: float) -> float:
        """Visit every coordinate."""
        if self.W.shape[1] == 1:
            w = self.W.reshape(-1)
            g = self.g.reshape(-1)
            return gram_epochs(self.G, penalty.l1, penalty.l2, penalty.positive, w, g, n_epochs, floor)
        return gram_row_epochs(self.G, penalty.l1, penalty.l2, self.W, self.g, n_epochs, floor)

    def first_epochs(self, penalty: Penalty, goal: float, floor: float, max_epochs: int) -> int:
        """Run epochs while they are few and small, until P − D ≤ goal·max(D, floor); return their number."""
        if self.W.shape[1] > 1 or len(self.W) > _FEW_COLUMNS:
            return 0
        size = np.empty(len(self.W))
        most = min(_LATE, max_epochs)
        return gram_descent(self.G, self.C, self.square, *penalty, self.W, self.g, size, goal, floor, most)

    def gradient(self) -> Array:
        """Return C − GW."""
        return self.g

    def residual_square(self) -> float:
        """Return ‖b‖² − W·(C + (C − GW))."""
        return max(0.0, self.square - float((self.W * (self.C + self.g)).sum()))

    def move(self, W: Array) -> None:
        """Go to W."""
        step = W - self.W
        if len(W) >= _SINGLE and 2 * np.count_nonzero(step) > step.size:
            self.g -= self.G[: len(W), : len(W)] @ step
        else:
            gram_step(self.G, step, self.g)
        self.W[:] = W

    def curvature(self, rows: NDArray[np.intp]) -> Array | None:
        """Return the rows and columns of G."""
        out = np.empty((len(rows), len(rows)))
        gather_square(self.G, rows.astype(np.uint64), out)
        return out


class Descent(NamedTuple):
    """Where a descent stopped."""

    gap: Gap
    n_epochs: int
    stopped: bool  #: whether it was told to


def descend(
    model: Quadratic,
    penalty: Penalty,
    *,
    goal: float,
    max_epochs: int,
    progress: Progress = no_progress,
    start: float | None = None,
) -> Descent:
    """Run epochs and extrapolations until P − D ≤ goal.

    Parameters
    ----------
    model : Quadratic
        Its point is moved.
    penalty : Penalty
        Of the model's coefficients.
    goal : float
        Absolute gap to reach; if `start` is given, relative to max(D, 1e-8·start).
    max_epochs : int
        Most epochs.
    progress : callable
        Called as `progress(epochs, relative gap)`; True stops.
    """
    base = 0.5 * model.square
    n_epochs = 0
    stuck = 0
    best = np.inf
    if start is not None and isinstance(model, GramQuadratic):
        n_epochs = model.first_epochs(penalty, goal, FLOOR * start, max_epochs)
    while True:
        gap = penalised_gap(model.W, model.gradient(), model.residual_square(), penalty)
        value = gap.gap if start is None else gap.relative(start)
        stopped = n_epochs > 0 and progress(n_epochs, gap.relative(base))
        if value <= goal or n_epochs >= max_epochs or stopped or stuck >= 3:
            return Descent(gap, n_epochs, stopped)
        iterates = [model.W.copy()]
        largest = 0.0
        for _ in range(min(_BATCH, max_epochs - n_epochs)):
            started = perf_counter()
            largest = model.epochs(penalty, 1, 0.0)
            iterates.append(model.W.copy())
            late = perf_counter() - started > _SLOW and progress(n_epochs + len(iterates) - 1, gap.relative(base))
            if largest <= 1e-32 * base or late:
                break
        n_epochs += len(iterates) - 1
        # Rounding: nothing moves any more, or the gap is that of rounding and does not fall.
        still = largest <= 1e-30 * base or (gap.gap > 0.9 * best and gap.gap <= _NOISE * gap.primal)
        stuck = stuck + 1 if still else 0
        best = min(best, gap.gap)
        if len(iterates) == _BATCH + 1:
            extrapolate(model, penalty, iterates, late=n_epochs >= _LATE)


@one_thread_blas()
def coordinate_descent(
    gram: Any,
    cross: Any,
    square: float,
    l1: Any,
    l2: Any = 0.0,
    *,
    positive: bool = False,
    x0: Any = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    progress: Progress = no_progress,
) -> Solution:
    """Minimise ½wᵀGw − cᵀw + ½s + Σⱼ (λ₁ⱼ|wⱼ| + ½λ₂ⱼwⱼ²), where G = AᵀA, c = Aᵀb and s = ‖b‖².

    Parameters
    ----------
    gram : (d, d) array
        G.
    cross : (d,) or (d, t) array
        c; with t columns, |wⱼ| is the Euclidean norm of a row.
    square : float
        s.
    l1, l2 : float or (d,) array
        λ₁ > 0 and λ₂ ≥ 0.
    positive : bool
        Whether w ≥ 0; for one column only.
    x0 : array like `cross`, optional
        Where to start.
    tol : float
        Relative duality gap at which to stop.
    max_iter : int
        Most epochs.
    progress : callable
        Called as `progress(epochs, gap)` after every few epochs; True stops.

    Returns
    -------
    Solution
        `gradient` is that of the quadratic; `measure` is the relative gap.

    Examples
    --------
    >>> import numpy as np
    >>> found = coordinate_descent(np.eye(2), np.array([3.0, 0.5]), 9.25, l1=1.0)
    >>> found.x, found.converged
    (array([2., 0.]), True)
    """
    G = np.ascontiguousarray(gram, dtype=np.float64)
    c = np.ascontiguousarray(cross, dtype=np.float64)
    d = len(c)
    if G.shape != (d, d):
        raise DataError(f"coordinate_descent: gram must be {d}×{d}, as cross has {d} rows; got {G.shape}.")
    strengths = [np.broadcast_to(np.asarray(value, dtype=np.float64), (d,)).copy() for value in (l1, l2)]
    if not all((value >= 0).all() and np.isfinite(value).all() for value in strengths):
        raise ParameterError(f"coordinate_descent: l1 and l2 must be finite and >= 0; got {l1!r} and {l2!r}.")
    if positive and c.ndim > 1:
        raise ParameterError("coordinate_descent: positive needs a cross of one column.")
    W = None if x0 is None else np.asarray(x0, dtype=np.float64).reshape(d, -1)
    model = GramQuadratic(G, c.reshape(d, -1), float(square), W)
    base = 0.5 * float(square)
    found = descend(
        model,
        Penalty(strengths[0], strengths[1], positive),
        goal=tol,
        max_epochs=max_iter,
        progress=progress,
        start=base,
    )
    value = found.gap.relative(base)
    return Solution(
        model.W.reshape(c.shape), found.gap.primal, -model.g.reshape(c.shape), value, found.n_epochs, value <= tol
    )


Rows = NDArray[np.intp]

_MOST_NEWTON = 3000  # coefficients on the support for which a Newton step is tried
_SINGLE = 200  # coefficients from which a factor of half the digits pays
# the same for steps that end at changes of sign, and how many of them
_MOST_ACTIVE = 300
_MOST_CROSSINGS = 20


def row_norms(rows: Array) -> Array:
    """Return the norm of every row (k, t)."""
    return np.asarray(np.abs(rows[:, 0]) if rows.shape[1] == 1 else np.sqrt((rows * rows).sum(axis=1)))


def objective(model: Quadratic, penalty: Penalty) -> float:
    """Return P at the model's point."""
    norm = row_norms(model.W)
    return 0.5 * (model.residual_square() + float(penalty.l2 @ (norm * norm))) + float(penalty.l1 @ norm)


def extrapolate(model: Quadratic, penalty: Penalty, iterates: list[Array], *, late: bool = False) -> None:
    """Move to a Newton or Anderson point unless it raises P; late in a descent, without waiting for a settled support.

    Near the optimum a Newton step gains less than P's last digit, but coefficients and gap gain half of theirs.
    """
    here = objective(model, penalty)
    kept = model.W.copy(), model.held.copy()
    for point in _candidates(model, penalty, iterates, late):
        if point is None or not np.isfinite(point).all():
            continue
        model.move(point)
        if objective(model, penalty) <= here:
            return
        model.W[:], model.held[:] = kept


def _candidates(model: Quadratic, penalty: Penalty, iterates: list[Array], late: bool) -> Iterator[Array | None]:
    W = iterates[-1]
    settled = _settled_support(iterates)
    yield _newton_point(model, penalty, W, settled)
    yield _active_set_point(model, penalty, W, _support(W) if late else settled)
    yield _row_newton_point(model, penalty, W)
    yield _anderson_point(model, penalty, iterates)


def _newton_point(model: Quadratic, penalty: Penalty, W: Array, support: Rows | None) -> Array | None:
    """Return the minimiser of P over the support with its signs fixed; coefficients that would change sign become 0."""
    if support is None or len(support) > _MOST_NEWTON:
        return None
    w, sign, slope = _slope_on(model, penalty, W, support)
    l2 = penalty.l2[support]
    step = None
    if isinstance(model, GramQuadratic) and len(support) >= _SINGLE:
        model.factor = model.factor or SupportFactor()
        step = model.factor.solve(model.G[: len(W), : len(W)], support, penalty.l2, slope)
    if step is None:
        H = model.curvature(support)
        step = None if H is None else _solved(H, l2, slope)
    if step is None:
        return None
    point = np.zeros_like(W)
    point[support, 0] = np.where((w + step) * sign > 0, w + step, 0.0)
    return point


def _active_set_point(model: Quadratic, penalty: Penalty, W: Array, support: Rows | None) -> Array | None:
    """Return where Newton steps lead that end at every change of sign, whose coefficient then leaves the support.

    P falls all the way, because it is a quadratic as long as no sign changes: slow, but sure where columns are almost
    collinear and the point above jumps too far.
    """
    if support is None or len(support) > _MOST_ACTIVE or (H := model.curvature(support)) is None:
        return None
    w, sign, slope = _slope_on(model, penalty, W, support)
    l2 = penalty.l2[support]
    kept = np.arange(len(support))
    for _ in range(_MOST_CROSSINGS):
        step = _solved(H[np.ix_(kept, kept)], l2[kept], slope[kept])
        if step is None:
            break
        crossing = (w[kept] + step) * sign[kept] < 0
        length = float(np.min(-w[kept][crossing] / step[crossing], initial=1.0))
        w[kept] += length * step
        slope[kept] *= 1.0 - length
        if not crossing.any():
            break
        w[kept[w[kept] * sign[kept] <= 1e-14 * np.abs(length * step)]] = 0.0
        kept = kept[w[kept] != 0]
        if not len(kept):
            break
    point = np.zeros_like(W)
    point[support, 0] = w
    return point


def _row_newton_point(model: Quadratic, penalty: Penalty, W: Array) -> Array | None:
    """Return where Newton steps over the rows that are not zero lead: P is smooth there, ∂²‖w‖ = (I − ŵŵᵀ)/‖w‖.

    A row that a step would turn round becomes zero, and a step is shortened until P falls.
    """
    rows = np.flatnonzero(W.any(axis=1))
    t = W.shape[1]
    if t == 1 or not 0 < len(rows) * t <= _MOST_ACTIVE or (G := model.curvature(rows)) is None:
        return None
    l1, l2, _ = penalty.at(rows)
    start = W[rows]
    linear = model.gradient()[rows] + G @ start

    def objective(w: Array) -> float:
        norm = row_norms(w)
        return float(((0.5 * (G @ w) - linear) * w).sum() + l1 @ norm + 0.5 * l2 @ (norm * norm))

    w = start
    here = objective(start)
    for _ in range(_MOST_CROSSINGS):
        kept = np.flatnonzero(w.any(axis=1))
        step = _row_newton_step(G[np.ix_(kept, kept)], (linear - G @ w)[kept], l1[kept], l2[kept], w[kept])
        if step is None:
            break
        for length in (1.0, 0.25, 0.0625, 0.015625):
            new = np.zeros_like(w)
            new[kept] = w[kept] + length * step
            new[(new * w).sum(axis=1) <= 0] = 0.0
            if (value := objective(new)) < here:
                break
        else:
            break
        w = new
        fall = here - value
        here = value
        if not w.any() or fall <= 1e-15 * abs(here):
            break
    point = W.copy()
    point[rows] = w
    return point


def _row_newton_step(G: Array, gradient: Array, l1: Array, l2: Array, w: Array) -> Array | None:
    """Return −(∂²P)⁻¹∂P at w (k, t), none of whose rows is zero; `gradient` is that of the quadratic, negated."""
    k, t = w.shape
    norm = row_norms(w)
    unit = w / norm[:, None]
    H: Array = np.kron(G, np.eye(t)).reshape(k, t, k, t)  # type: ignore[assignment]
    own = np.arange(k)
    H[own, :, own] += (l1 / norm)[:, None, None] * (np.eye(t) - unit[:, :, None] * unit[:, None, :])
    slope = gradient - l2[:, None] * w - l1[:, None] * unit
    step = _solved(H.reshape(w.size, w.size), np.repeat(l2, t), slope.ravel())
    return None if step is None else step.reshape(w.shape)


def _support(W: Array) -> Rows | None:
    """Return the support of a single target, if it has one."""
    return np.flatnonzero(W) if W.shape[1] == 1 and W.any() else None


def _settled_support(iterates: list[Array]) -> Rows | None:
    """Return the support of a single target, if it has not changed lately."""
    return _support(iterates[-1]) if np.array_equal(iterates[-3] != 0, iterates[-1] != 0) else None


def _slope_on(model: Quadratic, penalty: Penalty, W: Array, support: Rows) -> tuple[Array, Array, Array]:
    """Return the coefficients, their signs and minus the derivative of P, on the support."""
    l1, l2, _ = penalty.at(support)
    w = W[support, 0].copy()
    sign = np.sign(W[support, 0])
    return w, sign, model.gradient()[support, 0] - l2 * w - l1 * sign


def _solved(H: Array, l2: Array, slope: Array) -> Array | None:
    """Return (H + λ₂)⁻¹ slope, with a trace of a ridge where columns are collinear; H is overwritten."""
    H.flat[:: len(H) + 1] += l2
    scale = 1.0 / np.sqrt(np.maximum(H.diagonal(), 1e-300))
    H *= scale
    H *= scale[:, None]
    for ridge in (0.0, 1e-10):
        H.flat[:: len(H) + 1] = 1.0 + ridge
        # The factor is written to one triangle: the other one is there for a second trial. H.T is what LAPACK wants.
        _, step, info = lapack.dposv(H.T, scale * slope, lower=1, overwrite_a=1)
        if info == 0:
            return np.asarray(scale * step)
        H = np.tril(H)
        H = H + np.tril(H, -1).T
    return None


def _anderson_point(model: Quadratic, penalty: Penalty, iterates: list[Array]) -> Array | None:
    """Return the combination of iterates, with weights that sum to one, whose differences are shortest."""
    points = np.stack([iterate.ravel() for iterate in iterates])
    weights = anderson_weights(points)
    if weights is None:
        return None
    point = (weights @ points[1:]).reshape(model.W.shape)
    return np.asarray(np.maximum(point, 0.0) if penalty.positive else point)


def anderson_weights(points: Array) -> Array | None:
    """Return the weights, which sum to one, for all points (m, p) but the first whose differences are shortest."""
    differences = np.diff(points, axis=0)
    products = differences @ differences.T
    trace = products.trace()
    if not trace > 0:
        return None
    try:
        weights = np.linalg.solve(products + 1e-12 * trace * np.eye(len(products)), np.ones(len(products)))
    except np.linalg.LinAlgError:
        return None
    total = weights.sum()
    return weights / total if np.isfinite(total) and total != 0 else None
