r"""Independent check of Poisson, Gamma and Tweedie regression, in plain NumPy and extended precision.

The duality gap is evaluated as P − D from its two values: with the model's coefficients, the intercept is moved to
where the slopes u = ∂ℓ/∂z sum to zero, by bisection; there D(u) = −mean ℓ*(u) − ½α‖w_u‖² with ℓ*(u) = uz − ℓ(z).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.checking import Recheck
from ..data.checking import Rows, fingerprint_of, numbers_of, plain_rows
from ..data.sources import named_columns

Array = NDArray[Any]

_ROUNDING = 1e-13
_DIGITS = 2e-16


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def glm(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a PoissonRegressor, GammaRegressor or TweedieRegressor."""
    X, y, sample_weight = named_columns("verify", X, y, sample_weight)
    rows = plain_rows(model, X, numbers_of(y).ravel(), sample_weight)
    fingerprint = fingerprint_of(rows)
    power, log_link = _family_of(model)
    alpha, w = np.longdouble(model.alpha), np.asarray(model.coef_, dtype=np.longdouble)
    b = np.longdouble(model.intercept_)
    if not model.fit_intercept and b != 0:
        return Recheck(np.inf, 0.0, fingerprint)
    s, t = rows.weight.astype(np.longdouble), rows.y.astype(np.longdouble)
    S, mean = s.sum(), _mean(rows)
    z = (
        b
        + mean @ w
        + np.concatenate([(Z @ w - mean @ w) if sp.issparse(Z) else (Z - mean) @ w for Z, _, _ in rows.chunks()])
    )
    if model.certificate_.kind == "stationarity":
        return Recheck(_relative_gradient(model, rows, z, power, log_link), _ROUNDING, fingerprint)
    primal = s @ _loss(t, z, power, log_link) / S + alpha / 2 * (w @ w)
    best = z + _best_shift(s, t, z, power, log_link) if model.fit_intercept else z
    u, loss = _slope(t, best, power, log_link), _loss(t, best, power, log_link)
    pull, square, _ = _products(rows, s * u, bool(model.fit_intercept))
    w_u = -pull / (alpha * S)
    middle = (
        s @ best / S if model.fit_intercept else 0
    )  # the slopes sum to zero: any common part of the scores drops out
    dual = s @ (loss - u * (best - middle)) / S - alpha / 2 * (w_u @ w_u)
    constant = (s @ t / S if model.fit_intercept else 1) if log_link else (s @ t / S if model.fit_intercept else 0)
    null = s @ _loss(t, np.full(len(t), np.log(constant) if log_link else constant), power, log_link) / S
    level = np.log(constant) if log_link else constant
    off = 1e-11 * (1 + abs(level)) if log_link else 1e-11 * abs(level)
    finest = (np.exp((2 - power) * level) if log_link else 1) * off**2  # the loss of scores off by that: an exact fit
    size = max(dual, 1e-8 * null, finest)
    terms = s @ (abs(u * z) + loss) / S + alpha * (w @ w)  # what is added up here, in digits of long double
    # A slope has the rounding of its score, e^z that of z; the fit's gap is its gradient's square over 2α.
    digits = _DIGITS * (1 + abs(best).max())
    g, off = abs(pull / S + alpha * w), digits * np.sqrt(square / S) * _size_of_slopes(s, t, best, power, log_link)
    noise = (g @ off + off @ off / 2) / alpha
    rounding = _ROUNDING + float((1e-16 * terms + 3e-14 * null + 1e-9 * finest + noise) / size)
    return Recheck(float((primal - dual) / size), rounding, fingerprint)


def _family_of(model: Any) -> tuple[float, bool]:
    name = type(model).__name__
    if name != "TweedieRegressor":
        return {"PoissonRegressor": (1.0, True), "GammaRegressor": (2.0, True)}[name]
    return float(model.power), model.link == "log" or (model.link == "auto" and model.power > 0)


def _loss(y: Array, z: Array, p: float, log_link: bool) -> Array:
    """Return half the unit deviance, from its integral ∫ (y − t) t⁻ᵖ dt from μ to y."""
    mu = np.exp(z) if log_link else z
    if p == 0:
        return (y - mu) ** 2 / 2
    positive = np.where(y > 0, y, 1)
    ratio = np.log(mu / positive)
    if p == 1:
        return np.where(y > 0, y * (np.expm1(ratio) - ratio), mu)
    if p == 2:
        return np.expm1(-ratio) + ratio
    near = positive ** (2 - p) * (np.expm1((2 - p) * ratio) / (2 - p) - np.expm1((1 - p) * ratio) / (1 - p))
    return np.where(y > 0, near, mu ** (2 - p) / (2 - p) - y * mu ** (1 - p) / (1 - p))


def _slope(y: Array, z: Array, p: float, log_link: bool) -> Array:
    mu = np.exp(z) if log_link else z
    return (mu - y) * (mu ** (1 - p) if log_link else mu ** (-p))


def _best_shift(s: Array, y: Array, z: Array, p: float, log_link: bool) -> Any:
    """Return the change of intercept at which the slopes sum to zero: the sum rises with it, so bisection finds it."""
    if p == 0 and not log_link:
        return s @ (y - z) / s.sum()

    def total(shift: Any) -> Any:
        return s @ _slope(y, z + shift, p, log_link)

    reach = np.longdouble(1e-12)
    while not total(-reach) <= 0 <= total(reach):
        reach *= 16
        if not reach < 1e300:
            return np.longdouble(np.nan)
    low, high = -reach, reach
    for _ in range(140):
        middle = (low + high) / 2
        if total(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _mean(rows: Rows) -> Array:
    """Return the weighted mean of each column: far from zero, rows have more digits about it."""
    total, weight = np.zeros(rows.n_columns, dtype=np.longdouble), np.longdouble(0)
    for Z, _, s in rows.chunks():
        total, weight = total + Z.T @ s, weight + s.sum()
    return total / weight


def _products(rows: Rows, r: Array, centred: bool) -> tuple[Array, Array, Any]:
    """Return Σ r (x − x̄), Σ s (x − x̄)² and Σ s, about zero unless centred."""
    mean = _mean(rows) if centred else np.zeros(rows.n_columns, dtype=np.longdouble)
    pull, square, W, start = (*np.zeros((2, rows.n_columns), dtype=np.longdouble), np.longdouble(0), 0)
    for Z, _, s in rows.chunks():
        part = r[start : start + len(s)]
        start, W = start + len(s), W + s.sum()
        if sp.issparse(Z):
            pull, square = pull + Z.T @ part - part.sum() * mean, square + (Z * Z).T @ s
            square = square - 2 * mean * (Z.T @ s) + s.sum() * mean**2
        else:
            moved = Z - mean
            pull, square = pull + moved.T @ part, square + (moved * moved).T @ s
    return pull, np.maximum(square, 0), W


def _relative_gradient(model: Any, rows: Rows, z: Array, p: float, log_link: bool) -> float:
    """Return max_j |gⱼ| over the root mean squares of xⱼ and of the terms of the slope."""
    s, y = rows.weight.astype(np.longdouble), rows.y.astype(np.longdouble)
    u, alpha = _slope(y, z, p, log_link), np.longdouble(model.alpha)
    w = np.asarray(model.coef_, dtype=np.longdouble)
    pull, square, W = _products(rows, s * u, bool(model.fit_intercept))
    size = _size_of_slopes(s, y, z, p, log_link) * np.sqrt(np.r_[W, square] / W)
    g = np.r_[s @ u / W if model.fit_intercept else 0, pull / W + alpha * w]
    size[1:] += alpha * abs(w)
    return float(np.max(abs(g) / np.where(size > 0, size, np.inf)))


def _size_of_slopes(s: Array, y: Array, z: Array, p: float, log_link: bool) -> Any:
    """Return the root mean square of the two terms that a slope is the difference of."""
    mu = np.exp(z) if log_link else z
    terms = (abs(mu) + abs(y)) * (mu ** (1 - p) if log_link else mu ** (-p) if p else 1)
    return np.sqrt(s @ terms**2 / s.sum())
