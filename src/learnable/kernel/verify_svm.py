r"""Independent checks of support vector machines, in plain NumPy.

A machine holds β and b. With f = Kβ from the definition of the kernel, the pull v of a multiplier is what its row asks
for; those that may rise must not be pulled above b, those that may fall not below it:

    violation = max(b, max_{β<high} v) − min(b, min_{β>low} v).

Outside the box, or off the equality constraint, it is infinite. A ν-machine has a level of its own for each side.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ..core.errors import VerificationError
from ..core.verification import Recheck
from ..data.sources import named_columns
from ..linear.verify_rows import Rows, class_weights_of, codes_of, fingerprint_of, numbers_of, plain_rows
from ..risk.kernels import Kernel, as_kernel
from ..risk.kernels.adopted import is_foreign

Array = NDArray[Any]

_CHUNK = 2**21  # kernel values that exist at a time
_FAR = 1e4  # γ‖x − x̄‖² beyond which squares and products cancel each other's digits
_LARGEST = 1e8  # γ‖x − x̄‖² up to which a fit may trust them all the same
_FACTORED = 2_000  # rows up to which the eigenvalues of a matrix that promises nothing are computed
_SLACK = 1e-9  # share by which sums of multipliers may be off
_ROUNDING = 1e-11  # of a sum of kernel values, relative to the sum of their sizes


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def svc(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of an SVC."""
    rows, weight, kept, fingerprint = _labelled(model, X, y, sample_weight)
    cost, found, gaps = model.C * weight, [], []
    for members, sign, beta, b in _pairs(model, rows, kept):
        f, rounding = _sums(model, rows, members, beta, kept)
        c, margin, square = cost[members], sign * (f + b), beta @ f
        if np.isfinite(model.C):
            primal, start = 0.5 * square + c @ np.maximum(0.0, 1.0 - margin), c.sum()
        else:
            primal, start = 0.5 * square / max(margin.min(), 0.0) ** 2, len(members)
        gaps.append((primal, abs(beta).sum() - 0.5 * square, start))
        inside = (sign * beta >= 0).all() and (abs(beta) <= c * (1 + 1e-12)).all()
        balanced = not model.fit_intercept or abs(beta.sum()) <= _SLACK * abs(beta).sum()
        low, high = np.where(sign > 0, 0.0, -c), np.where(sign > 0, c, 0.0)
        value = _violation(sign - f, beta, low, high, b)
        found.append((value if inside and balanced and (model.fit_intercept or b == 0) else np.inf, rounding))
    return _worst(found, fingerprint, _bound(model, rows, kept, *np.sum(gaps, axis=0)))


@np.errstate(all="ignore")
def nu_svc(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a NuSVC: the machine times ρ = ν Σc/Σ|β|."""
    rows, cost, kept, fingerprint = _labelled(model, X, y, sample_weight)
    found, gaps = [], []
    for members, sign, beta, b in _pairs(model, rows, kept):
        f, rounding = _sums(model, rows, members, beta, kept)
        c = cost[members]
        rho = model.nu * c.sum() / abs(beta).sum()
        beta, f, b, rounding = rho * beta, rho * f, rho * b, rho * rounding
        loss = c @ np.maximum(0.0, rho - sign * (f + b)) - rho * model.nu * c.sum()
        gaps.append((0.5 * (beta @ f) + loss, -0.5 * (beta @ f), 0.0))
        inside = (sign * beta >= 0).all() and (abs(beta) <= c * (1 + _SLACK)).all()
        value = np.inf
        if inside and abs(beta.sum()) <= _SLACK * abs(beta).sum():
            sides = [(sign > 0, b - rho), (sign < 0, b + rho)]
            low, high = np.where(sign > 0, 0.0, -c), np.where(sign > 0, c, 0.0)
            value = max(_violation(-f[side], beta[side], low[side], high[side], level, _SLACK) for side, level in sides)
        found.append((value, rounding))
    return _worst(found, fingerprint, _bound(model, rows, kept, *np.sum(gaps, axis=0)))


@np.errstate(all="ignore")
def svr(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of an SVR."""
    rows, kept, t, beta, f, rounding, fingerprint = _regression(model, X, y, sample_weight)
    cost, b = model.C * rows.weight, model.intercept_[0]
    balanced = not model.fit_intercept or abs(beta.sum()) <= _SLACK * abs(beta).sum()
    value = np.inf
    if (abs(beta) <= cost * (1 + 1e-12)).all() and balanced and (model.fit_intercept or b == 0):
        value = _tube_violation(t - f, beta, cost, b + model.epsilon, b - model.epsilon, model.epsilon)
    primal = 0.5 * (beta @ f) + _tube_loss(t - f - b, model.epsilon, cost)
    dual = t @ beta - model.epsilon * abs(beta).sum() - 0.5 * (beta @ f)
    bound = _bound(model, rows, kept, primal, dual, _tube_loss(t, model.epsilon, cost))
    return Recheck(float(value), float(rounding), fingerprint, bound=bound)


@np.errstate(all="ignore")
def nu_svr(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a NuSVR, whose sums of multipliers are fixed unless the tube has no width."""
    rows, kept, t, beta, f, rounding, fingerprint = _regression(model, X, y, sample_weight)
    cost, b, eps = model.C * rows.weight, model.intercept_[0], model.epsilon_
    total = model.nu * cost.sum()
    full = abs(abs(beta).sum() - total) <= _SLACK * total
    inside = (abs(beta) <= cost * (1 + 1e-12)).all() and abs(beta.sum()) <= _SLACK * total
    value = np.inf
    if inside and eps >= 0 and (full or (eps <= model.tol and abs(beta).sum() <= total)):
        value = _tube_violation(t - f, beta, cost, b + eps, b - eps, 0.0)
    primal = 0.5 * (beta @ f) + total * eps + _tube_loss(t - f - b, eps, cost)
    bound = _bound(model, rows, kept, primal, t @ beta - 0.5 * (beta @ f), _tube_loss(t, 0.0, cost))
    return Recheck(float(value), float(rounding), fingerprint, bound=bound)


@np.errstate(all="ignore")
def one_class(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a OneClassSVM."""
    X, _, sample_weight = named_columns("verify", X, None, sample_weight)
    height = X.shape[0] if hasattr(X, "shape") else len(X)
    rows = plain_rows(model, X, np.empty((height, 0)), sample_weight)
    kept = _kept(sample_weight, height)
    beta = _multipliers(model, kept)[0]
    f, rounding = _sums(model, rows, np.arange(len(beta)), beta, kept)
    c, b = rows.weight, model.intercept_[0]
    total, value = model.nu * c.sum(), np.inf
    inside = (beta >= 0).all() and (beta <= c * (1 + 1e-12)).all()
    if inside and abs(beta.sum() - total) <= _SLACK * total and model.offset_ == -b:
        value = _violation(-f, beta, np.zeros(len(c)), c, b)
    primal = 0.5 * (beta @ f) + b * total + c @ np.maximum(0.0, -b - f)
    bound = _bound(model, rows, kept, primal, -0.5 * (beta @ f), 0.0)
    return Recheck(float(value), float(rounding), fingerprint_of(rows), bound=bound)


def _violation(v: Array, beta: Array, low: Array, high: Array, b: Any, slack: float = 0.0) -> Any:
    """Return how far the pulls v lie on the wrong side of the level b."""
    room = slack * (high - low) if slack else 0.0  # the box may be infinite
    top = np.max(v, where=beta < high - room, initial=-np.inf)
    bottom = np.min(v, where=beta > low + room, initial=np.inf)
    return np.maximum(top, b) - np.minimum(bottom, b)


def _tube_violation(r: Array, beta: Array, cost: Array, above: Any, below: Any, epsilon: float) -> Any:
    """Return the violation of both sides of a tube, whose residuals r pull at the levels `above` and `below`.

    With one equality constraint for both sides (ε given), they share the level b = above − ε = below + ε.
    """
    zero = np.zeros(len(r))
    upper, lower = np.maximum(beta, 0.0), np.minimum(beta, 0.0)
    if epsilon or above == below:
        pulls, multipliers = np.concatenate([r - epsilon, r + epsilon]), np.concatenate([upper, lower])
        low, high = np.concatenate([zero, -cost]), np.concatenate([cost, zero])
        return _violation(pulls, multipliers, low, high, above - epsilon)
    return max(_violation(r, upper, zero, cost, above), _violation(r, lower, -cost, zero, below))


def _regression(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, Array, Array, Array, Array, float, str]:
    X, y, sample_weight = named_columns("verify", X, y, sample_weight)
    rows = plain_rows(model, X, numbers_of(y), sample_weight)
    kept = _kept(sample_weight, len(numbers_of(y)))
    beta = _multipliers(model, kept)[0]
    f, rounding = _sums(model, rows, np.arange(len(beta)), beta, kept)
    return rows, kept, rows.y[:, 0], beta, f, rounding, fingerprint_of(rows)


def _labelled(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, Array, Array, str]:
    """Return the rows with their class codes, their weights in the problem, their numbers, and the checksum."""
    X, y, sample_weight = named_columns("verify", X, y, sample_weight)
    labels = np.asarray([] if y is None else y).ravel()
    rows, kept = plain_rows(model, X, labels, sample_weight), _kept(sample_weight, len(labels))
    codes = codes_of(model.classes_, rows.y)
    rows = rows._replace(y=codes)
    fingerprint = fingerprint_of(rows, model.classes_)
    return rows, rows.weight * class_weights_of(model.class_weight, model.classes_, rows)[codes], kept, fingerprint


def _pairs(model: Any, rows: Rows, kept: Array) -> Any:
    """Yield, for each pair of classes, its rows, y = ±1, β and b, with the first class positive."""
    n_classes, codes = len(model.classes_), rows.y
    beta = _multipliers(model, kept)
    turn = -1.0 if n_classes == 2 else 1.0
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        members = np.flatnonzero((codes == i) | (codes == j))
        first = codes[members] == i
        own = np.where(first, beta[j - 1, members], beta[i, members])
        yield members, np.where(first, 1.0, -1.0), turn * own, turn * model.intercept_[k]


def _kept(sample_weight: Any, n: int) -> Array:
    weight = np.ones(1) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return np.flatnonzero(np.broadcast_to(weight, (n,)) > 0)


def _multipliers(model: Any, kept: Array) -> Array:
    """Return β of every row with weight."""
    if len(kept) and kept[-1] >= model.shape_fit_[0]:
        raise VerificationError(f"verify: the fit had {model.shape_fit_[0]} rows; the data have more.")
    beta = np.zeros((len(model.dual_coef_), model.shape_fit_[0]))
    beta[:, model.support_] = model.dual_coef_
    return beta[:, kept]


def _sums(model: Any, rows: Rows, members: Array, beta: Array, kept: Array) -> tuple[Array, float]:
    """Return Kβ of some rows over themselves, and how far rounding may have moved it."""
    X = next(iter(rows.pieces()))[members]
    used = np.flatnonzero(beta)
    points, gamma, f, size = X[used], _gamma(model, rows), np.zeros(len(members)), 0.0
    step = max(1, _CHUNK // max(1, len(used)))
    for start in range(0, len(members), step):
        part = slice(start, start + step)
        K = X[part][:, kept[members[used]]] if _is_given(model) else _values(model, X[part], points, gamma)
        f[part] = K @ beta[used]
        size = max(size, float((abs(K) @ abs(beta[used])).max(initial=0.0)))
    lost = 0.0  # the fit may take distances from inner products, up to a limit
    if isinstance(model.kernel, str) and model.kernel == "rbf" and len(members):
        squares = X.multiply(X) if sp.issparse(X) else (X - X.mean(axis=0)) ** 2
        lost = 1e-15 * min(gamma * float(squares.sum(axis=1).max()), _LARGEST)
    return f, _ROUNDING * (1.0 + size) + lost * size


def _is_given(model: Any) -> bool:
    return isinstance(model.kernel, str) and model.kernel == "precomputed"


def _gamma(model: Any, rows: Rows) -> float:
    """Return γ as the parameter defines it from the data."""
    if not isinstance(model.gamma, str):
        return float(model.gamma)
    if model.gamma == "auto" or _is_given(model):
        return 1.0 / rows.n_columns
    X = next(iter(rows.pieces()))
    size = X.shape[0] * X.shape[1]
    mean = X.sum() / size
    square = X.multiply(X).sum() / size - mean**2 if sp.issparse(X) else ((X - mean) ** 2).sum() / size
    return 1.0 / (rows.n_columns * square) if square > 0 else 1.0


def _values(model: Any, A: Any, B: Any, gamma: float) -> Array:
    """Return k(a, b) from its formula."""
    if not isinstance(model.kernel, str):
        return np.asarray(model.kernel(A, B))
    dots = A @ B.T
    dots = dots.toarray() if sp.issparse(dots) else dots
    if model.kernel == "linear":
        return np.asarray(dots)
    if model.kernel == "poly":
        return np.asarray((gamma * dots + model.coef0) ** model.degree)
    if model.kernel == "sigmoid":
        return np.tanh(gamma * dots + model.coef0)
    if sp.issparse(A):
        squares = [np.asarray(Z.multiply(Z).sum(axis=1)).ravel() for Z in (A, B)]
    else:
        centre = B.mean(axis=0) if len(B) else 0.0
        A, B = A - centre, B - centre
        squares, dots = [(A * A).sum(axis=1), (B * B).sum(axis=1)], A @ B.T
        if gamma * max(Z.max(initial=0.0) for Z in squares) > _FAR:
            return np.exp(-gamma * cdist(A, B, "sqeuclidean"))
    return np.exp(-gamma * np.maximum(squares[0][:, None] + squares[1][None, :] - 2.0 * dots, 0.0))


def _worst(found: list[tuple[Any, float]], fingerprint: str, bound: float) -> Recheck:
    value, rounding = np.max(found, axis=0)
    return Recheck(float(value), float(rounding), fingerprint, bound=bound)


def _is_mercer(kernel: Any, coef0: float) -> bool:
    """Tell whether the kernel promises matrices that are positive semidefinite."""
    if isinstance(kernel, str):
        return kernel in ("linear", "rbf") or (kernel == "poly" and coef0 >= 0)
    return (isinstance(kernel, Kernel) or is_foreign(kernel)) and as_kernel(kernel)._is_mercer()


def _tube_loss(residual: Array, epsilon: float, cost: Array) -> Any:
    """Return Σ c max(0, |r| − ε)."""
    return cost @ np.maximum(0.0, abs(residual) - epsilon)


def _bound(model: Any, rows: Rows, kept: Array, primal: Any, dual: Any, start: Any) -> float:
    """Return (P − D)/max(|D|, 10⁻⁸P₀), which is above the suboptimality if the kernel is a Mercer kernel; else inf."""
    if model.certificate_.bound is None:
        return np.inf
    if not _is_mercer(model.kernel, model.coef0):
        X = next(iter(rows.pieces()))
        if X.shape[0] > _FACTORED:
            return np.inf
        K = X[:, kept] if _is_given(model) else _values(model, X, X, _gamma(model, rows))
        values = np.linalg.eigvalsh((K + K.T) / 2.0)
        if not values[0] >= -1e-8 * max(abs(values[-1]), np.finfo(float).tiny):
            return np.inf
    size = max(abs(dual), 1e-8 * start)
    return float(max(primal - dual, 0.0) / size) if size > 0 else 0.0
