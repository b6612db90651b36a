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

from ..core import AnyArray, Recheck, VerificationError
from ..data.checking import Rows, class_weights_of, codes_of, fingerprint_of, numbers_of, plain_rows
from ..data.sources import named_columns
from ..risk.kernels import Kernel, as_kernel
from ..risk.kernels.adopted import is_foreign
from .verify_kernels import has_matrix, kernel_sums, kernel_values, largest_diagonal, stated_gamma
from .verify_svm_state import dense, offset_agrees, sigmoids_agree, stored_state_agrees

_FACTORED = 2_000  # rows up to which the eigenvalues of a matrix that promises nothing are computed
_SLACK = 1e-9  # share by which sums of multipliers may be off
_OFFSET = 0.02  # share of tol by which b may be off: a fit may take it from sums of single precision


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def svc(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of an SVC."""
    rows, weight, kept, n_given, fingerprint, data = _labelled(model, X, y, sample_weight)
    if not _stored(model, rows, kept, n_given):
        return Recheck(np.inf, 0.0, fingerprint)
    # A row without weight has no cost, whatever C.
    cost = np.where(weight > 0, model.C * weight, 0.0)
    found = []
    gaps = []

    def judge(members: AnyArray, sign: AnyArray, beta: AnyArray, b: Any, c: AnyArray) -> tuple[float, float]:
        f, rounding = kernel_sums(model, rows, members, beta, kept)
        return _svc_violation(model, sign, beta, f, b, c, rounding), rounding

    for members, sign, beta, b in _pairs(model, rows, kept):
        f, rounding = kernel_sums(model, rows, members, beta, kept)
        c = cost[members]
        margin = sign * (f + b)
        square = beta @ f
        if np.isfinite(model.C):
            primal = 0.5 * square + c @ np.maximum(0.0, 1.0 - margin)
            start = c.sum()
        else:
            primal = 0.5 * square / max(margin[c > 0].min(initial=np.inf), 0.0) ** 2
            start = len(members)
        gaps.append((primal, abs(beta).sum() - 0.5 * square, start))
        found.append((_svc_violation(model, sign, beta, f, b, c, rounding), rounding))
    found += _fold_machines(model, rows, kept, cost, data, judge)
    return _worst(found, fingerprint, _bound(model, rows, kept, *np.sum(gaps, axis=0)))


def _svc_violation(
    model: Any, sign: AnyArray, beta: AnyArray, f: AnyArray, b: Any, c: AnyArray, rounding: float
) -> Any:
    """Return the violation of one pair; infinity outside the box, off the constraint, or with another b."""
    low = np.where(sign > 0, 0.0, -c)
    high = np.where(sign > 0, c, 0.0)
    if not ((sign * beta >= 0).all() and (abs(beta) <= c * (1 + 1e-12)).all()):
        return np.inf
    if not model.fit_intercept:
        return _violation(sign - f, beta, low, high, b) if b == 0 else np.inf
    defined = model.solver == "primal" or offset_agrees(sign - f, beta, low, high, b, _OFFSET * model.tol + rounding)
    balanced = abs(beta.sum()) <= _SLACK * abs(beta).sum()
    return _violation(sign - f, beta, low, high, b) if balanced and defined else np.inf


@np.errstate(all="ignore")
def nu_svc(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a NuSVC: the machine times ρ = ν Σc/Σ|β|."""
    rows, cost, kept, n_given, fingerprint, data = _labelled(model, X, y, sample_weight)
    if not _stored(model, rows, kept, n_given):
        return Recheck(np.inf, 0.0, fingerprint)

    def judge(members: AnyArray, sign: AnyArray, beta: AnyArray, b: Any, c: AnyArray) -> tuple[float, float]:
        f, rounding = kernel_sums(model, rows, members, beta, kept)
        sides = [c[sign > 0].sum(), c[sign < 0].sum()]
        total = min(model.nu * c.sum(), *(2.0 * side for side in sides))  # a fold may lack rows of a class
        rho = total / abs(beta).sum()
        return _nu_violation(model, sign, rho * beta, rho * f, rho * b, rho, c, rho * rounding), rho * rounding

    found = []
    gaps = []
    for members, sign, beta, b in _pairs(model, rows, kept):
        f, rounding = kernel_sums(model, rows, members, beta, kept)
        c = cost[members]
        rho = model.nu * c.sum() / abs(beta).sum()
        beta = rho * beta
        f = rho * f
        b = rho * b
        rounding = rho * rounding
        loss = c @ np.maximum(0.0, rho - sign * (f + b)) - rho * model.nu * c.sum()
        gaps.append((0.5 * (beta @ f) + loss, -0.5 * (beta @ f), 0.0))
        found.append((_nu_violation(model, sign, beta, f, b, rho, c, rounding), rounding))
    found += _fold_machines(model, rows, kept, cost, data, judge)
    return _worst(found, fingerprint, _bound(model, rows, kept, *np.sum(gaps, axis=0)))


def _nu_violation(
    model: Any, sign: AnyArray, beta: AnyArray, f: AnyArray, b: Any, rho: Any, c: AnyArray, rounding: float
) -> Any:
    """Return the violation of one pair's machine, whose sides have the levels b ∓ ρ."""
    inside = (sign * beta >= 0).all() and (abs(beta) <= c * (1 + _SLACK)).all()
    if not (inside and abs(beta.sum()) <= _SLACK * abs(beta).sum()):
        return np.inf
    room = _SLACK * c
    low = np.where(sign > 0, 0.0, -c)
    high = np.where(sign > 0, c, 0.0)
    values = []
    for side, level in ((sign > 0, b - rho), (sign < 0, b + rho)):
        if not offset_agrees(-f[side], beta[side], low[side], high[side], level, _OFFSET * model.tol + rounding):
            return np.inf
        values.append(_violation(-f[side], beta[side], (low + room)[side], (high - room)[side], level))
    return max(values)


@np.errstate(all="ignore")
def svr(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of an SVR."""
    rows, kept, n_given, fingerprint = _regression(model, X, y, sample_weight)
    if not _stored(model, rows, kept, n_given):
        return Recheck(np.inf, 0.0, fingerprint)
    t, beta, f, rounding = _tube(model, rows, kept)
    cost = model.C * rows.weight
    b = model.intercept_[0]
    balanced = not model.fit_intercept or abs(beta.sum()) <= _SLACK * abs(beta).sum()
    value = np.inf
    if (abs(beta) <= cost * (1 + 1e-12)).all() and balanced and (model.fit_intercept or b == 0):
        eps = model.epsilon
        allowance = (_OFFSET * model.tol + rounding) if model.fit_intercept else np.inf
        value = _tube_violation(t - f, beta, cost, b + eps, b - eps, eps, allowance)
    primal = 0.5 * (beta @ f) + _tube_loss(t - f - b, model.epsilon, cost)
    dual = t @ beta - model.epsilon * abs(beta).sum() - 0.5 * (beta @ f)
    bound = _bound(model, rows, kept, primal, dual, _tube_loss(t, model.epsilon, cost))
    return Recheck(float(value), float(rounding), fingerprint, bound=bound)


@np.errstate(all="ignore")
def nu_svr(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a NuSVR, whose sums of multipliers are fixed unless the tube has no width."""
    rows, kept, n_given, fingerprint = _regression(model, X, y, sample_weight)
    if not _stored(model, rows, kept, n_given):
        return Recheck(np.inf, 0.0, fingerprint)
    t, beta, f, rounding = _tube(model, rows, kept)
    cost = model.C * rows.weight
    b = model.intercept_[0]
    eps = model.epsilon_
    total = model.nu * cost.sum()
    full = abs(abs(beta).sum() - total) <= _SLACK * total
    inside = (abs(beta) <= cost * (1 + 1e-12)).all() and abs(beta.sum()) <= _SLACK * total
    value = np.inf
    if inside and eps >= 0 and (full or (eps <= model.tol and abs(beta).sum() <= total)):
        # Where both multipliers of a row are positive, which needs a tube without width, β does not tell which is free.
        allowance = _OFFSET * model.tol + rounding if full else np.inf
        value = _tube_violation(t - f, beta, cost, b + eps, b - eps, 0.0, allowance)
    primal = 0.5 * (beta @ f) + total * eps + _tube_loss(t - f - b, eps, cost)
    bound = _bound(model, rows, kept, primal, t @ beta - 0.5 * (beta @ f), _tube_loss(t, 0.0, cost))
    return Recheck(float(value), float(rounding), fingerprint, bound=bound)


@np.errstate(all="ignore")
def one_class(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a OneClassSVM."""
    X, _, sample_weight = named_columns("verify", X, None, sample_weight)
    height = _height(X)
    X = _matrix_of(model, X)
    weight = _plain_weight(sample_weight)
    rows = plain_rows(model, X, np.empty((height, 0)), weight)
    kept = _kept(weight, height)
    fingerprint = fingerprint_of(rows)
    if not _stored(model, rows, kept, height):
        return Recheck(np.inf, 0.0, fingerprint)
    beta = _multipliers(model, kept)[0]
    f, rounding = kernel_sums(model, rows, np.arange(len(beta)), beta, kept)
    c = rows.weight
    b = model.intercept_[0]
    total = model.nu * c.sum()
    value = np.inf
    inside = (beta >= 0).all() and (beta <= c * (1 + 1e-12)).all()
    box = np.zeros(len(c)), c
    if inside and abs(beta.sum() - total) <= _SLACK * total and model.offset_ == -b:
        defined = offset_agrees(-f, beta, *box, b, _OFFSET * model.tol + rounding)
        value = _violation(-f, beta, *box, b) if defined else np.inf
    primal = 0.5 * (beta @ f) + b * total + c @ np.maximum(0.0, -b - f)
    start = 0.5 * total**2 * largest_diagonal(model, rows, kept)
    bound = _bound(model, rows, kept, primal, -0.5 * (beta @ f), start)
    return Recheck(float(value), float(rounding), fingerprint, bound=bound)


def _stored(model: Any, rows: Rows, kept: AnyArray, n_given: int) -> bool:
    """Tell whether what the model stores beside β and b is what the data define."""
    return stored_state_agrees(model, rows, kept, n_given, stated_gamma(model, rows), has_matrix(model))


def _fold_machines(
    model: Any, rows: Rows, kept: AnyArray, cost: AnyArray, data: Any, judge: Any
) -> list[tuple[Any, float]]:
    """Return what the folds of the probabilities were found to be; infinity if the sigmoids are not theirs."""
    wanted = not isinstance(model.probability, str) and model.probability
    if not wanted:
        return [] if np.shape(model.sigmoids_) == (0, 2) else [(np.inf, 0.0)]

    def score(new: AnyArray, old: AnyArray, beta: AnyArray) -> AnyArray:
        X = next(iter(rows.pieces()))
        used = np.flatnonzero(beta)
        K = (
            X[new][:, kept[old[used]]]
            if has_matrix(model)
            else kernel_values(model, X[new], X[old[used]], stated_gamma(model, rows))
        )
        return np.asarray(K @ beta[used])

    pairs = [(members, sign, cost[members]) for members, sign, _, _ in _pairs(model, rows, kept)]
    agree, found = sigmoids_agree(model, data, pairs, judge, score)
    return found if agree else [(np.inf, 0.0)]


def _violation(v: AnyArray, beta: AnyArray, low: AnyArray, high: AnyArray, b: Any) -> Any:
    """Return how far the pulls v lie on the wrong side of the level b."""
    top = np.max(v, where=beta < high, initial=-np.inf)
    bottom = np.min(v, where=beta > low, initial=np.inf)
    return np.maximum(top, b) - np.minimum(bottom, b)


def _tube_violation(
    r: AnyArray, beta: AnyArray, cost: AnyArray, above: Any, below: Any, epsilon: float, allowance: float
) -> Any:
    """Return the violation of both sides of a tube, whose residuals r pull at the levels `above` and `below`.

    With one equality constraint for both sides (ε given), they share the level b = above − ε = below + ε. Levels that
    are off by more than the allowance give infinity.
    """
    zero = np.zeros(len(r))
    upper = np.maximum(beta, 0.0)
    lower = np.minimum(beta, 0.0)
    if epsilon or above == below:
        pulls = np.concatenate([r - epsilon, r + epsilon])
        multipliers = np.concatenate([upper, lower])
        low = np.concatenate([zero, -cost])
        high = np.concatenate([cost, zero])
        sides = [(pulls, multipliers, low, high, above - epsilon)]
    else:
        sides = [(r, upper, zero, cost, above), (r, lower, -cost, zero, below)]
    if not all(offset_agrees(*side, allowance) for side in sides):
        return np.inf
    return max(_violation(*side) for side in sides)


def _regression(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, AnyArray, int, str]:
    """Return the rows with their targets, their numbers, how many were given, and the checksum."""
    X, y, sample_weight = named_columns("verify", X, y, sample_weight)
    targets = numbers_of(y)
    weight = _plain_weight(sample_weight)
    rows = plain_rows(model, _matrix_of(model, X), targets, weight)
    return rows, _kept(weight, len(targets)), len(targets), fingerprint_of(rows)


def _tube(model: Any, rows: Rows, kept: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray, float]:
    """Return the targets, β, Kβ and its rounding."""
    beta = _multipliers(model, kept)[0]
    f, rounding = kernel_sums(model, rows, np.arange(len(beta)), beta, kept)
    return rows.y[:, 0], beta, f, rounding


def _labelled(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, AnyArray, AnyArray, int, str, Any]:
    """Return the rows with their class codes, their weights in the problem, their numbers, the checksum and so on."""
    X, y, sample_weight = named_columns("verify", X, y, sample_weight)
    labels = np.asarray([] if y is None else y).ravel()
    weight = _plain_weight(sample_weight)
    rows = plain_rows(model, _matrix_of(model, X), labels, weight)
    kept = _kept(weight, len(labels))
    codes = codes_of(model.classes_, rows.y)
    rows = rows._replace(y=codes)
    fingerprint = fingerprint_of(rows, model.classes_)
    share = rows.weight * class_weights_of(model.class_weight, model.classes_, rows)[codes]
    return rows, share, kept, len(labels), fingerprint, (X, y, sample_weight)


def _matrix_of(model: Any, X: Any) -> Any:
    """Return X or, of a function that compares other objects than rows of numbers, the matrix of its values."""
    if not hasattr(model, "X_fit_"):
        return X
    K = dense(model.kernel(X, X)).astype(np.float64)
    if not np.array_equal(K, dense(model.kernel(X, model.X_fit_))):
        raise VerificationError("verify: the model holds other rows than these.")
    return K


def _plain_weight(sample_weight: Any) -> Any:
    """Return the weights without negative ones, whose rows are left out."""
    return None if sample_weight is None else np.maximum(np.asarray(sample_weight, dtype=np.float64), 0.0)


def _height(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _pairs(model: Any, rows: Rows, kept: AnyArray) -> Any:
    """Yield, for each pair of classes, its rows, y = ±1, β and b, with the first class positive."""
    n_classes = len(model.classes_)
    codes = rows.y
    beta = _multipliers(model, kept)
    turn = -1.0 if n_classes == 2 else 1.0
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        members = np.flatnonzero((codes == i) | (codes == j))
        first = codes[members] == i
        own = np.where(first, beta[j - 1, members], beta[i, members])
        yield members, np.where(first, 1.0, -1.0), turn * own, turn * model.intercept_[k]


def _kept(sample_weight: Any, n: int) -> AnyArray:
    weight = np.ones(1) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return np.flatnonzero(np.broadcast_to(weight, (n,)) > 0)


def _multipliers(model: Any, kept: AnyArray) -> AnyArray:
    """Return β of every row with weight."""
    coef = dense(model.dual_coef_)
    beta = np.zeros((len(coef), model.shape_fit_[0]))
    beta[:, model.support_] = coef
    return beta[:, kept]


def _worst(found: list[tuple[Any, float]], fingerprint: str, bound: float) -> Recheck:
    value, rounding = np.max(found, axis=0)
    return Recheck(float(value), float(rounding), fingerprint, bound=bound)


def _is_mercer(kernel: Any, coef0: float) -> bool:
    """Tell whether the kernel promises matrices that are positive semidefinite."""
    if isinstance(kernel, str):
        return kernel in ("linear", "rbf") or (kernel == "poly" and coef0 >= 0)
    return (isinstance(kernel, Kernel) or is_foreign(kernel)) and as_kernel(kernel)._is_mercer()


def _tube_loss(residual: AnyArray, epsilon: float, cost: AnyArray) -> Any:
    """Return Σ c max(0, |r| − ε); an infinite cost of nothing is nothing."""
    outside = np.maximum(0.0, abs(residual) - epsilon)
    return cost[outside > 0] @ outside[outside > 0]


def _bound(model: Any, rows: Rows, kept: AnyArray, primal: Any, dual: Any, start: Any) -> float:
    """Return (P − D)/max(|D|, 10⁻⁸P₀), which is above the suboptimality if the kernel is a Mercer kernel; else inf."""
    if model.certificate_.bound is None:
        return np.inf
    if not _is_mercer(model.kernel, model.coef0):
        X = next(iter(rows.pieces()))
        if X.shape[0] > _FACTORED:
            return np.inf
        K = X[:, kept] if has_matrix(model) else kernel_values(model, X, X, stated_gamma(model, rows))
        values = np.linalg.eigvalsh((K + K.T) / 2.0)
        if not values[0] >= -1e-8 * max(abs(values[-1]), np.finfo(float).tiny):
            return np.inf
    size = max(abs(dual), 1e-8 * start)
    return float(max(primal - dual, 0.0) / size) if size > 0 else 0.0
