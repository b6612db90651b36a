r"""Steps between the epochs of coordinate descent: Newton steps on the support, and Anderson's extrapolation.

A candidate is kept only if it lowers P. On a support whose signs stay P is a quadratic: its minimiser ends the search
where no sign changes. Where some do, steps that end at each change are sure to descend. With several targets P is
smooth on the rows that are not zero, and has Newton steps there. Else the last iterates are combined with weights that
sum to one, so that their differences are shortest.

Reference: Q. Bertrand and M. Massias, Anderson acceleration of coordinate descent, AISTATS 2021.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

if TYPE_CHECKING:
    from .coordinate import Penalty, Quadratic

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

_MOST_NEWTON = 3000  # coefficients on the support for which a Newton step is tried
_SINGLE, _EXACT, _CORRECTIONS = 200, 1e-9, 9  # coefficients from which a factor of half the digits pays; its goal
_MOST_ACTIVE, _MOST_CROSSINGS = 300, 20  # the same for steps that end at changes of sign, and how many of them


def row_norms(rows: Array) -> Array:
    """Return the norm of every row (k, t)."""
    return np.asarray(np.abs(rows[:, 0]) if rows.shape[1] == 1 else np.sqrt((rows * rows).sum(axis=1)))


def _objective(model: Quadratic, penalty: Penalty) -> float:
    norm = row_norms(model.W)
    return 0.5 * (model.residual_square() + float(penalty.l2 @ (norm * norm))) + float(penalty.l1 @ norm)


def extrapolate(model: Quadratic, penalty: Penalty, iterates: list[Array], *, late: bool = False) -> None:
    """Move to a Newton or Anderson point if that lowers P; late in a descent, without waiting for a settled support."""
    here = _objective(model, penalty)
    kept = model.W.copy(), model.held.copy()
    for point in _candidates(model, penalty, iterates, late):
        if point is None or not np.isfinite(point).all():
            continue
        model.move(point)
        if _objective(model, penalty) < here:
            return
        model.W[:], model.held[:] = kept


def _candidates(model: Quadratic, penalty: Penalty, iterates: list[Array], late: bool) -> Iterator[Array | None]:
    W, settled = iterates[-1], _settled_support(iterates)
    yield _newton_point(model, penalty, W, settled)
    yield _active_set_point(model, penalty, W, _support(W) if late else settled)
    yield _row_newton_point(model, penalty, W)
    yield _anderson_point(model, penalty, iterates)


def _newton_point(model: Quadratic, penalty: Penalty, W: Array, support: Rows | None) -> Array | None:
    """Return the minimiser of P over the support with its signs fixed; coefficients that would change sign become 0."""
    if support is None or len(support) > _MOST_NEWTON or (H := model.curvature(support)) is None:
        return None
    w, sign, slope = _slope_on(model, penalty, W, support)
    step = _solved(H, penalty.l2[support], slope)
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
    l2, kept = penalty.l2[support], np.arange(len(support))
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
    rows, t = np.flatnonzero(W.any(axis=1)), W.shape[1]
    if t == 1 or not 0 < len(rows) * t <= _MOST_ACTIVE or (G := model.curvature(rows)) is None:
        return None
    l1, l2, _ = penalty.at(rows)
    start = W[rows]
    linear = model.gradient()[rows] + G @ start

    def objective(w: Array) -> float:
        norm = row_norms(w)
        return float(((0.5 * (G @ w) - linear) * w).sum() + l1 @ norm + 0.5 * l2 @ (norm * norm))

    w, here = start, objective(start)
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
        w, fall, here = new, here - value, value
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
    w, sign = W[support, 0].copy(), np.sign(W[support, 0])
    return w, sign, model.gradient()[support, 0] - l2 * w - l1 * sign


def _solved(H: Array, l2: Array, slope: Array) -> Array | None:
    """Return (H + λ₂)⁻¹ slope, with a trace of a ridge where columns are collinear; H is overwritten."""
    H.flat[:: len(H) + 1] += l2
    scale = 1.0 / np.sqrt(np.maximum(H.diagonal(), 1e-300))
    H *= scale
    H *= scale[:, None]
    if len(H) >= _SINGLE and (step := _refined(H, scale * slope)) is not None:
        return np.asarray(scale * step)
    for ridge in (0.0, 1e-10):
        H.flat[:: len(H) + 1] = 1.0 + ridge
        # The factor is written to one triangle: the other one is there for a second trial. H.T is what LAPACK wants.
        _, step, info = lapack.dposv(H.T, scale * slope, lower=1, overwrite_a=1)
        if info == 0:
            return np.asarray(scale * step)
        H = np.tril(H)
        H = H + np.tril(H, -1).T
    return None


def _refined(H: Array, rhs: Array) -> Array | None:
    """Return H⁻¹rhs by a Cholesky factor of half the digits and corrections with all of them; None if they fail."""
    F = np.empty(H.shape, dtype=np.float32)
    F[:] = H
    factor, info = lapack.spotrf(F.T, lower=1, overwrite_a=1, clean=0)
    if info != 0:
        return None
    x, residual, size = np.zeros_like(rhs), rhs, float(np.linalg.norm(rhs))
    goal = _EXACT * size
    for _ in range(_CORRECTIONS):
        if size <= goal:
            return x
        x = x + size * lapack.spotrs(factor, (residual / size).astype(np.float32), lower=1)[0]
        residual = rhs - H @ x
        before, size = size, float(np.linalg.norm(residual))
        if not size < 0.1 * before:
            return None
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
