r"""Independent checks of the sparse linear models: the duality gap from the definition, in extended precision.

Nothing here is shared with the fits. For residuals r about their mean, b̂·r̂, ‖r̂‖² and the correlations Âᵀr̂ give the dual
value D(τ) = ½‖b̂‖² − ½‖b̂ − τr̂‖² of the best feasible multiple τ of the residual.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.checking import AGREEMENT, Recheck
from ..core.errors import VerificationError
from ..data.checking import (
    Array,
    class_weights_of,
    codes_of,
    coefficients_of,
    fingerprint_of,
    numbers_of,
    plain_rows,
    sound,
)
from ..data.sources import named_columns
from . import verify
from .verify_stored import lasso_choice

_ROUNDING = 1e-13
_EPSILON = 2.0**-52
_FAR = 1e4
_MOST_REFINED = 2000  # nonzero float32 coefficients for which the fit takes a Newton step
_BLUR = 8.0  # times the standard deviation of a sum of rounding errors


class _Sums(NamedTuple):
    weight: Any
    x_mean: Array  #: (d,), zero without an intercept
    correlation: Array  #: (d, t), Σ s r (x − x̄)
    total: Array  #: (t,), Σ s r
    r_square: Array  #: (t,), Σ s r²
    y_square: Array  #: (t,), Σ s (y − ȳ)²
    noise: Array  #: (d,), what a last digit of every term of r does to Σ s r (x − x̄)
    far: float  #: largest mean of a column against its spread: digits that centring costs
    fingerprint: str


class _Dual(NamedTuple):
    value: Any  #: D
    scaled: Any  #: |b̂·θ| of the dual point θ, which follows the largest correlation


class _Gap(NamedTuple):
    value: float  #: (P − D)/max(D, 1e-8·P₀)
    rounding: float
    unit: float  #: max(D, 1e-8·P₀)/W, in which `dual_gap_` is measured


@sound
@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def elastic_net(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a Lasso, ElasticNet, LassoCV or ElasticNetCV."""
    alpha = float(model.alpha_ if hasattr(model, "alpha_") else model.alpha)
    ratio = float(getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 1.0)))
    if hasattr(model, "alpha_") and not lasso_choice(model, *verify.rows_of(model, X, y, sample_weight)):
        return Recheck(np.inf, 0.0, "")
    if model.certificate_.kind != "gap":
        return _smooth(model, X, y, sample_weight, alpha, ratio)
    B = np.atleast_2d(model.coef_).T.astype(np.longdouble)
    sums = _residual_sums(model, B, X, y, sample_weight)
    if sums is None:
        return Recheck(np.inf, 0.0, "")
    gaps = [_gap(model, B[:, [k]], _target(sums, k), alpha, ratio) for k in range(B.shape[1])]
    if model.coef_.dtype == np.float32 and model.certificate_.holds:
        refined = _newton_steps(model, B, sums, alpha, ratio, X, y, sample_weight)
        moved = _residual_sums(model, refined, X, y, sample_weight)
        if moved is not None:
            duals = [_dual(model, refined[:, [k]], _target(moved, k), alpha, ratio) for k in range(B.shape[1])]
            gaps = [
                min(gap, _gap(model, B[:, [k]], _target(sums, k), alpha, ratio, duals[k]), key=lambda one: one.value)
                for k, gap in enumerate(gaps)
            ]
    return _with_stored_gap(model, gaps, sums.fingerprint)


@sound
@np.errstate(all="ignore")
def multi_task(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a MultiTaskLasso, a MultiTaskElasticNet or of one that chose its penalty."""
    alpha = float(model.alpha_ if hasattr(model, "alpha_") else model.alpha)
    ratio = float(getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 1.0)))
    if hasattr(model, "alpha_") and not lasso_choice(model, *verify.rows_of(model, X, y, sample_weight)):
        return Recheck(np.inf, 0.0, "")
    if model.certificate_.kind != "gap":
        return _smooth(model, X, y, sample_weight, alpha, ratio)
    B = model.coef_.T.astype(np.longdouble)
    sums = _residual_sums(model, B, X, y, sample_weight)
    if sums is None:
        return Recheck(np.inf, 0.0, "")
    found = _gap(model, B, sums, alpha, ratio)
    return _with_stored_gap(model, [found], sums.fingerprint)


def _smooth(model: Any, X: Any, y: Any, sample_weight: Any, alpha: float, ratio: float) -> Recheck:
    """Check a fit without an L1 part, which is ridge regression; one with such a part must have a gap."""
    penalty = _weight_sum(X, y, sample_weight) * alpha
    found = verify.check_quadratic(model, X, y, sample_weight, alpha=np.array([penalty * (1 - ratio)]))
    sound = alpha * ratio == 0 and np.all(np.asarray(model.dual_gap_) == 0)
    return found if sound else found._replace(value=np.inf)


def _with_stored_gap(model: Any, found: list[_Gap], fingerprint: str) -> Recheck:
    """Return the largest gap; infinity where it would pass but `dual_gap_` says something else."""
    value, rounding = max(one.value for one in found), max(one.rounding for one in found)
    recorded = model.certificate_.value
    passes = abs(value - recorded) <= AGREEMENT * recorded + rounding
    return Recheck(np.inf if passes and not _is_gap(model, found) else value, rounding, fingerprint)


def _is_gap(model: Any, found: list[_Gap]) -> bool:
    """Tell whether `dual_gap_` is the gap of every target, and the largest of them is that of the certificate."""
    stored = np.atleast_1d(np.asarray(model.dual_gap_, dtype=float))
    if stored.shape != (len(found),) or not (stored >= 0).all():
        return False
    relative = np.array([gap / one.unit if one.unit > 0 else gap for gap, one in zip(stored, found, strict=True)])
    true, rounding = (np.array([getattr(one, name) for one in found]) for name in ("value", "rounding"))
    recorded = model.certificate_.value
    close = np.abs(relative - true) <= AGREEMENT * true + rounding
    return bool(close.all()) and abs(float(relative.max()) - recorded) <= 1e-6 * recorded


def _weight_sum(X: Any, y: Any, sample_weight: Any) -> float:
    _, y, weight = named_columns("verify", X, y, sample_weight)
    return (
        float(len(np.asarray(y))) if weight is None else float(np.sum(np.broadcast_to(weight, (len(np.asarray(y)),))))
    )


def _residual_sums(model: Any, B: Array, X: Any, y: Any, sample_weight: Any) -> _Sums | None:
    """Return the sums over the rows, in two passes; None if the intercept is not what the model says."""
    X, y, sample_weight = named_columns("verify", X, y, sample_weight)
    rows = plain_rows(model, X, numbers_of(y), sample_weight)
    d, t = B.shape
    b = np.atleast_1d(np.asarray(model.intercept_, dtype=np.longdouble))
    if rows.y.shape[1] != t:
        raise VerificationError(f"verify: the model has {t} targets, the data {rows.y.shape[1]}.")
    if not model.fit_intercept and b.any():
        return None
    W, x_sum, y_sum, total = (np.zeros(shape, dtype=np.longdouble) for shape in ((), d, t, t))
    for Z, target, s in rows.chunks():
        W, x_sum, y_sum = W + s.sum(), x_sum + Z.T @ s, y_sum + s @ target
    x_mean, y_mean = (x_sum / W, y_sum / W) if model.fit_intercept else (0 * x_sum, 0 * y_sum)
    cross, r_square, y_square, spread, noise = (np.zeros(shape, dtype=np.longdouble) for shape in ((d, t), t, t, d, d))
    for Z, target, s in rows.chunks():
        r = target - b - Z @ B
        weighted = s[:, None] * r
        cross, total = cross + Z.T @ weighted, total + weighted.sum(axis=0)
        r_square, y_square = r_square + (weighted * r).sum(axis=0), y_square + s @ (target - y_mean) ** 2
        spread = spread + (Z * Z).T @ s
        terms = (np.abs(target - y_mean) + abs(Z) @ np.abs(B)).sum(axis=1)
        noise = noise + (Z * Z).T @ (s * terms) ** 2
    if not model.fit_intercept:
        total = 0 * total
    # Columns further off than this are centred before anything else is computed; constant ones do not count.
    far = min(_FAR, float(np.sqrt((W * x_mean**2 / np.maximum(spread - W * x_mean**2, 1e-30 * spread)).max(initial=0))))
    centred = cross - np.outer(x_mean, total)
    return _Sums(W, x_mean, centred, total, r_square, y_square, _EPSILON * np.sqrt(noise), far, fingerprint_of(rows))


def _target(sums: _Sums, k: int) -> _Sums:
    one = slice(k, k + 1)
    return sums._replace(
        correlation=sums.correlation[:, one],
        total=sums.total[one],
        r_square=sums.r_square[one],
        y_square=sums.y_square[one],
    )


def _newton_steps(
    model: Any, B: Array, sums: _Sums, alpha: float, ratio: float, X: Any, y: Any, sample_weight: Any
) -> Array:
    """Return float32 coefficients after one Newton step on their support: what rounding took from the dual point."""
    X, y, sample_weight = named_columns("verify", X, y, sample_weight)
    rows = plain_rows(model, X, numbers_of(y), sample_weight)
    l1, l2 = float(sums.weight * alpha * ratio), float(sums.weight * alpha * (1 - ratio))
    refined = B.copy()
    for k in range(B.shape[1]):
        support = np.flatnonzero(B[:, k])
        if not 0 < len(support) <= _MOST_REFINED:
            continue
        mean = sums.x_mean[support].astype(float)
        curvature = l2 * np.eye(len(support))
        for Z, _, s in rows.chunks():
            part = Z[:, support]
            away = np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=float) - mean
            curvature += away.T @ (away * s[:, None].astype(float))
        slope = sums.correlation[support, k] - l2 * B[support, k] - l1 * np.sign(B[support, k])
        refined[support, k] += np.linalg.lstsq(curvature, slope.astype(float))[0]
    return refined


def _dual(model: Any, B: Array, sums: _Sums, alpha: float, ratio: float) -> _Dual:
    """Return D of the best feasible multiple of the residual; for ρ < 1, of the residual itself if that is more."""
    l1, l2 = sums.weight * np.longdouble(alpha) * ratio, sums.weight * np.longdouble(alpha) * (1 - ratio)
    positive = getattr(model, "positive", False)
    norms = np.sqrt((B**2).sum(axis=1))
    centred = sums.r_square.sum() - (sums.total**2).sum() / sums.weight  # about the mean: feasible for the intercept
    reduced = sums.correlation - l2 * B
    largest = (reduced if positive else np.sqrt((reduced**2).sum(axis=1))).max()
    length = centred + l2 * (norms**2).sum()
    fit = centred + (B * sums.correlation).sum()
    most = l1 / largest if largest > 0 else np.inf
    tau = np.clip(fit / length, 0, most) if length > 0 else np.longdouble(0)
    dual = tau * fit - tau**2 * length / 2
    if l2 > 0:
        raw = sums.correlation if positive else np.sqrt((sums.correlation**2).sum(axis=1, keepdims=True))
        conjugate = (np.maximum(raw - l1, 0) ** 2).sum() / (2 * l2)
        dual = max(dual, fit - centred / 2 - conjugate)
    return _Dual(dual, abs(tau * fit))


def _gap(model: Any, B: Array, sums: _Sums, alpha: float, ratio: float, proof: _Dual | None = None) -> _Gap:
    """Return (P − D)/max(D, 1e-8·P₀) and its rounding; the dual point is that of B unless another is given."""
    l1, l2 = sums.weight * np.longdouble(alpha) * ratio, sums.weight * np.longdouble(alpha) * (1 - ratio)
    if getattr(model, "positive", False) and (B < 0).any():
        return _Gap(np.inf, 0.0, 0.0)
    norms = np.sqrt((B**2).sum(axis=1))
    primal = sums.r_square.sum() / 2 + l1 * norms.sum() + l2 * (norms**2).sum() / 2
    start = sums.y_square.sum() / 2
    dual, scaled = _dual(model, B, sums, alpha, ratio) if proof is None else proof
    size = max(dual, 1e-8 * start)
    if start == 0 and primal == 0:
        return _Gap(0.0, _ROUNDING, 0.0)
    rounding = float(_ROUNDING * (1 + sums.far) * (1 + start / size))
    if l1 > 0:  # the multiple of the residual that is feasible is known no better than the largest correlation
        rounding += float(_BLUR * sums.noise.max(initial=0) / l1 * scaled / size)
    rounding = min(rounding, max(model.certificate_.tolerance, _ROUNDING))
    return _Gap(float((primal - dual) / size), rounding, float(size / sums.weight))


@np.errstate(all="ignore")
def logistic(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a LogisticRegression, with whatever penalty."""
    strength, share = verify.penalty_of(model)
    if np.isinf(strength) or (share == 0 and model.solver != "liblinear"):
        return verify.logistic(model, X, y, sample_weight)
    X, y, sample_weight = named_columns("verify", X, y, sample_weight)
    rows = plain_rows(model, X, np.asarray([] if y is None else y).ravel(), sample_weight)
    rows = rows._replace(y=codes_of(model.classes_, rows.y))
    fingerprint = fingerprint_of(rows, model.classes_)
    rows = rows._replace(weight=rows.weight * class_weights_of(model.class_weight, model.classes_, rows)[rows.y])
    if not model.fit_intercept and np.any(model.intercept_):
        return Recheck(np.inf, 0.0, fingerprint)
    W, b = coefficients_of(model), np.asarray(model.intercept_, dtype=np.longdouble)
    scores = np.concatenate([Z @ W.T for Z, _, _ in rows.chunks()])
    if len(model.classes_) == 2:  # scores (0, z): the same probabilities
        scores, level = np.column_stack([0 * scores[:, 0], scores[:, 0]]), np.r_[0 * b, b]
    else:
        level = b
    loss = verify.cross_entropy(scores + level, rows)
    value, rounding, far = _logistic_gap(model, rows, scores + level, loss, W, b)
    if model.fit_intercept:
        # The intercept is stored to 53 digits: what its last one does to the value is rounding.
        last = _EPSILON * (np.abs(b) + far)
        last = np.r_[0 * last, last] if len(model.classes_) == 2 else last
        moved = scores + (level + last)
        again = _logistic_gap(model, rows, moved, verify.cross_entropy(moved, rows), W, b + last[-len(b) :])[0]
        rounding += abs(again - value)
    if rounding > model.certificate_.tolerance and model.fit_intercept and model.solver != "liblinear":
        # The dual point of the best intercept does not see the last digit of the stored one.
        offset = scores.mean(axis=0)
        best = verify._best_intercept(scores - offset, rows, level + offset) - offset
        value = min(value, _logistic_gap(model, rows, scores + best, loss, W, b)[0])
    return Recheck(value, rounding, fingerprint)


def _logistic_gap(
    model: Any, rows: Any, scores: Array, primal_loss: Any, W: Array, b: Array
) -> tuple[float, float, Array]:
    """Return (P − D)/max(D, 1e-8·P₀) with the dual point of these scores, its rounding in 53 digits, and Σⱼ|x̄ⱼWⱼ|."""
    strength, ratio = verify.penalty_of(model)
    constant, K = model.solver == "liblinear", len(model.classes_)
    C, l2 = np.longdouble(strength), 1 - ratio
    loss, p = verify.cross_entropy(scores, rows), verify.probabilities(scores)
    N = verify.weight_of_classes(rows, K)
    slopes, members, noise = (np.zeros((K, W.shape[1]), dtype=np.longdouble) for _ in range(3))
    start, slope_sum = 0, rows.weight @ p - N
    for Z, t, s in rows.chunks():
        own = s[:, None] * np.eye(K)[t.astype(int)]
        part = slice(start, start + len(s))
        r = s[:, None] * p[part] - own
        # A score is off by its last digit; so then is the slope, in proportion to the curvature.
        terms = (abs(Z) @ np.abs(W).T + np.abs(b)).max(axis=1, keepdims=True)
        blur = np.abs(r) + s[:, None] * p[part] * (1 - p[part]) * terms
        start += len(s)
        slopes, members = slopes + (Z.T @ r).T, members + (Z.T @ own).T
        noise = noise + ((Z * Z).T @ (blur * blur)).T
    entropy = loss - (rows.weight[:, None] * (p - np.eye(K)[rows.y]) * scores).sum()
    centre = members.sum(axis=0) / N.sum()
    if model.fit_intercept and not constant:
        slopes, members = slopes - np.outer(slope_sum, centre), members - np.outer(N, centre)
        mix = min(1, (slope_sum / (N + slope_sum)).max() * (1 + 1e-9))
        if mix > 0:  # with a constant distribution v, until the class sums are right
            v = np.maximum(mix * (N + slope_sum) - slope_sum, 0)
            v = v / v.sum()
            entropy = (1 - mix) * entropy - mix * N.sum() * (v * np.log(np.where(v > 0, v, 1))).sum()
            slopes = (1 - mix) * slopes - mix * members
    far = np.abs(W * centre).sum(axis=1)
    if constant and model.fit_intercept:
        scaling = np.longdouble(model.intercept_scaling)
        slopes, W = np.column_stack([slopes, scaling * slope_sum]), np.column_stack([W, b / scaling])
    steep = C * abs(slopes[1:] if K == 2 else slopes)
    primal = C * primal_loss + ratio * abs(W).sum() + l2 * (W**2).sum() / 2
    dual = min(1, ratio / steep.max()) * C * entropy if steep.max() > 0 else C * entropy
    if l2 > 0:
        dual = max(dual, C * entropy - (np.maximum(steep - ratio, 0) ** 2).sum() / (2 * l2))
    size = max(dual, 1e-8 * C * N.sum() * np.log(K))
    rounding = 1e-13 + float(3e-13 * C * N.sum() * np.log(K) / size)
    if ratio > 0:  # the multiple of the slopes that is feasible is known no better than the slopes
        rounding += float(_BLUR * _EPSILON * C * np.sqrt(noise.max(initial=0)) / ratio * min(1, dual / size))
    return float((primal - dual) / size), rounding, far
