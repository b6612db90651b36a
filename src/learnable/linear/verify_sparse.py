r"""Independent checks of the sparse linear models: the duality gap from the definition, in extended precision.

Nothing here is shared with the fits. For residuals r about their mean, b̂·r̂, ‖r̂‖² and the correlations Âᵀr̂ give the dual
value D(τ) = ½‖b̂‖² − ½‖b̂ − τr̂‖² of the best feasible multiple τ of the residual.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.checking import AGREEMENT, Recheck
from ..data.checking import Array, Rows, fingerprint_of, sound
from .verify import Sums, check_quadratic, residual_sums, rows_of
from .verify_stored import lasso_choice

_ROUNDING = 1e-13  # what rounding may add to a relative gap
_MOST_REFINED = 2000  # nonzero float32 coefficients for which the fit takes a Newton step
_BLUR = 8.0  # times the standard deviation of a sum of rounding errors


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
    rows, kept = rows_of(model, X, y, sample_weight)
    if hasattr(model, "alpha_") and not lasso_choice(model, rows, kept):
        return Recheck(np.inf, 0.0, "")
    if model.certificate_.kind != "gap":
        return _smooth(model, rows, alpha, ratio)
    B = np.atleast_2d(model.coef_).T.astype(np.longdouble)
    sums = residual_sums(model, rows, B)
    if sums is None:
        return Recheck(np.inf, 0.0, "")
    gaps = [_gap(model, B[:, [k]], sums.target(k), alpha, ratio) for k in range(B.shape[1])]
    if model.coef_.dtype == np.float32 and model.certificate_.holds:
        refined = _newton_steps(rows, B, sums, alpha, ratio)
        moved = residual_sums(model, rows, refined)
        if moved is not None:
            duals = [_dual(model, refined[:, [k]], moved.target(k), alpha, ratio) for k in range(B.shape[1])]
            gaps = [
                min(gap, _gap(model, B[:, [k]], sums.target(k), alpha, ratio, duals[k]), key=lambda one: one.value)
                for k, gap in enumerate(gaps)
            ]
    return _with_stored_gap(model, gaps, fingerprint_of(rows))


@sound
@np.errstate(all="ignore")
def multi_task(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a MultiTaskLasso, a MultiTaskElasticNet or of one that chose its penalty."""
    alpha = float(model.alpha_ if hasattr(model, "alpha_") else model.alpha)
    ratio = float(getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 1.0)))
    rows, kept = rows_of(model, X, y, sample_weight)
    if hasattr(model, "alpha_") and not lasso_choice(model, rows, kept):
        return Recheck(np.inf, 0.0, "")
    if model.certificate_.kind != "gap":
        return _smooth(model, rows, alpha, ratio)
    B = model.coef_.T.astype(np.longdouble)
    sums = residual_sums(model, rows, B)
    if sums is None:
        return Recheck(np.inf, 0.0, "")
    found = _gap(model, B, sums, alpha, ratio)
    return _with_stored_gap(model, [found], fingerprint_of(rows))


def _smooth(model: Any, rows: Rows, alpha: float, ratio: float) -> Recheck:
    """Check a fit without an L1 part, which is ridge regression; one with such a part must have a gap."""
    penalty = float(rows.weight.sum()) * alpha
    found = check_quadratic(model, rows, alpha=np.array([penalty * (1 - ratio)]))
    sound = alpha * ratio == 0 and np.all(np.asarray(model.dual_gap_) == 0)
    return found if sound else found._replace(value=np.inf)


def _with_stored_gap(model: Any, found: list[_Gap], fingerprint: str) -> Recheck:
    """Return the largest gap; infinity where it would pass but `dual_gap_` says something else."""
    value = max(one.value for one in found)
    rounding = max(one.rounding for one in found)
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


def _newton_steps(rows: Rows, B: Array, sums: Sums, alpha: float, ratio: float) -> Array:
    """Return float32 coefficients after one Newton step on their support: what rounding took from the dual point."""
    l1 = float(sums.weight * alpha * ratio)
    l2 = float(sums.weight * alpha * (1 - ratio))
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


def _dual(model: Any, B: Array, sums: Sums, alpha: float, ratio: float) -> _Dual:
    """Return D of the best feasible multiple of the residual; for ρ < 1, of the residual itself if that is more."""
    l1 = sums.weight * np.longdouble(alpha) * ratio
    l2 = sums.weight * np.longdouble(alpha) * (1 - ratio)
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


def _gap(model: Any, B: Array, sums: Sums, alpha: float, ratio: float, proof: _Dual | None = None) -> _Gap:
    """Return (P − D)/max(D, 1e-8·P₀) and its rounding; the dual point is that of B unless another is given."""
    l1 = sums.weight * np.longdouble(alpha) * ratio
    l2 = sums.weight * np.longdouble(alpha) * (1 - ratio)
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
