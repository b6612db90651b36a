r"""Independent check of `GLM`: score, information, deviances and likelihoods from the densities, in extended precision.

The derivative of every row's log density by its score is written out family by family, and that of the link by
differences in extended precision; nothing is shared with the fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, ndtr

from ..core.checking import Recheck
from ..data.checking import fingerprint_of, numbers_of, plain_rows, sound
from ..data.sources import named_columns

Array = NDArray[Any]

_SAME = 1e-7  # relative: what a stored number may differ by from the one recomputed
_ROUNDING = 1e-9  # in standard errors, beside that of the sums


@sound
@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def glm(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the distance from the optimum in standard errors, and every stored number of a GLM."""
    X, y, sample_weight = named_columns("verify", X, y, sample_weight)
    rows = plain_rows(model, X, numbers_of(y).ravel(), sample_weight)
    fingerprint = fingerprint_of(rows)
    Z, t, s = (
        np.concatenate([np.asarray(part.toarray() if sp.issparse(part) else part) for part in column])
        for column in zip(*rows.chunks(), strict=True)
    )
    t = t.ravel()
    w = np.asarray(model.coef_, dtype=np.longdouble)
    fixed = int(model.offset_column_)
    stated = _number_of(model)
    if stated != fixed or (fixed >= 0 and w[fixed] != 1) or (not model.fit_intercept and model.intercept_ != 0):
        return Recheck(np.inf, 0.0, fingerprint)
    free = [int(j) for j in model.free_columns_]
    others = [j for j in range(len(w)) if j != fixed and j not in free]
    if len(set(free)) < len(free) or fixed in free or w[others].any() or not _depend(model, Z, s, free, others):
        return Recheck(np.inf, 0.0, fingerprint)
    A = np.column_stack([np.ones(len(Z)), Z[:, free]]) if model.fit_intercept else Z[:, free]
    eta = Z @ w + np.longdouble(model.intercept_)
    a = float(model.overdispersion_)
    mean = _mean(model, eta)
    slope = _slope(model, eta)
    V = _variance(model, mean, a)
    u = s * (t - mean) * slope / V
    h = s * slope**2 / V
    if model.bias_reduction:
        u = u + _firth(model, A, h, mean)
    scale = np.sqrt((h[:, None] * A * A).sum(axis=0))
    scale = np.where(scale > 0, scale, 1)
    B = (A / scale).astype(float)
    g = np.asarray((A / scale).T @ u, dtype=float)
    J = np.asarray(((A / scale).T * h) @ (A / scale), dtype=float)
    known = model.family in ("binomial", "poisson", "negative-binomial")
    pearson = float(s @ ((t - mean) ** 2 / V))
    df = len(t) - B.shape[1]
    phi = 1.0
    if not known:
        phi = pearson / df if df > 0 else np.nan
    unit = 1.0 if known else max(pearson / max(df, 1), 1e-14 * float(s @ (t**2 / V)))
    squared = max(float(g @ np.linalg.lstsq(J, g, rcond=None)[0]), 0.0)
    value = float(np.sqrt(squared / unit)) if unit > 0 else float(squared > 0)
    if model.family == "negative-binomial" and model.overdispersion is None:
        value = max(value, _overdispersion_error(t, mean, s, a))
    # The digits of float64 coefficients: each term of the score is off by one rounding of its own score.
    slack = 2e-16 * (1 + np.abs(Z) @ np.abs(w) + abs(float(model.intercept_)))
    wobble = np.asarray(np.abs(A / scale).T @ (h * slack), dtype=float)
    noise = float(np.linalg.norm(wobble) / np.sqrt(max(unit, 1e-300)))
    if not _same_numbers(model, A, t, s, eta, mean, h, phi, known, a, Z[:, fixed] if fixed >= 0 else 0 * t):
        value = np.inf
    return Recheck(value, _ROUNDING + noise, fingerprint)


def _number_of(model: Any) -> int:
    if model.offset is None:
        return -1
    if isinstance(model.offset, str):
        return list(model.feature_names_in_).index(model.offset)
    return int(model.offset)


def _depend(model: Any, Z: Array, s: Array, free: list[int], others: list[int]) -> bool:
    """Tell whether each of the other columns is a combination of the free ones, to nine digits."""
    root = np.sqrt(s.astype(float))[:, None]
    chosen = np.column_stack([np.ones(len(Z)), Z[:, free]]) if model.fit_intercept else Z[:, free]
    A = chosen.astype(float) * root
    B = Z[:, others].astype(float) * root
    size = np.linalg.norm(A, axis=0)
    A = A / np.where(size > 0, size, 1)
    rest = B - A @ np.linalg.lstsq(A, B, rcond=None)[0]
    return bool((np.linalg.norm(rest, axis=0) <= 1e-9 * np.linalg.norm(B, axis=0)).all())


def _link(model: Any) -> str:
    default = {"normal": "identity", "binomial": "logit"}
    if model.link:
        return str(model.link)
    if model.family == "tweedie" and model.power == 0:
        return "identity"
    return default.get(model.family, "log")


def _mean(model: Any, eta: Array) -> Array:
    match _link(model):
        case "identity":
            return eta
        case "log":
            return np.exp(np.clip(eta, -700, 700))
        case "logit":
            return 1 / (1 + np.exp(-eta))
        case "probit":
            return ndtr(eta.astype(float)).astype(np.longdouble)
        case "cloglog":
            return -np.expm1(-np.exp(eta))
        case "inverse":
            return 1 / eta
        case _:
            return eta**2


def _slope(model: Any, eta: Array) -> Array:
    match _link(model):
        case "identity":
            return np.ones_like(eta)
        case "probit":
            return np.exp(-(eta**2) / 2) / np.sqrt(2 * np.longdouble(np.pi))
        case "logit":
            return 1 / ((1 + np.exp(-eta)) * (1 + np.exp(eta)))
        case "log":
            return np.exp(np.clip(eta, -700, 700))
        case "cloglog":
            return np.exp(eta - np.exp(eta))
        case "inverse":
            return -1 / eta**2
        case _:
            return 2 * eta


def _power(model: Any) -> float:
    powers = {"normal": 0.0, "poisson": 1.0, "gamma": 2.0, "inverse-gaussian": 3.0}
    return float(model.power) if model.family == "tweedie" else powers[model.family]


def _variance(model: Any, mean: Array, a: float) -> Array:
    if model.family == "binomial":
        return mean * (1 - mean)
    if model.family == "negative-binomial":
        return mean * (1 + a * mean)
    return mean ** _power(model)


def _deviance(model: Any, y: Array, mean: Array, a: float) -> Array:
    """Return d(y, μ); limits at y = 0 (and 1) by the terms that vanish there."""
    positive = np.where(y > 0, y, 1)
    if model.family == "binomial":
        rest = np.where(y < 1, 1 - y, 1)
        won = np.where(y > 0, y * np.log(positive / mean), 0)
        lost = np.where(y < 1, (1 - y) * np.log(rest / (1 - mean)), 0)
        return 2 * (won + lost)
    if model.family == "negative-binomial":
        won = np.where(y > 0, y * np.log(positive / mean), 0)
        return 2 * (won - (y + 1 / a) * np.log((1 + a * y) / (1 + a * mean)))
    p = _power(model)
    if p == 0:
        return (y - mean) ** 2
    if p == 1:
        return 2 * (np.where(y > 0, y * np.log(positive / mean), 0) - y + mean)
    if p == 2:
        return 2 * ((y - mean) / mean - np.log(y / mean))
    powered = np.where(y > 0, positive ** (2 - p), 0)
    return 2 * (powered / ((1 - p) * (2 - p)) - y * mean ** (1 - p) / (1 - p) + mean ** (2 - p) / (2 - p))


def _density(model: Any, y: Array, mean: Array, s: Array, phi: float, a: float) -> float:
    """Return the log-likelihood; for an estimated φ each row has φ over its weight."""
    if model.family == "binomial":
        won = np.where(y > 0, y * np.log(np.where(mean > 0, mean, 1)), 0)
        lost = np.where(y < 1, (1 - y) * np.log(np.where(mean < 1, 1 - mean, 1)), 0)
        return float(s @ (won + lost))
    if model.family == "negative-binomial":
        urn = gammaln((y + 1 / a).astype(float)) - gammaln(1 / a) - gammaln((y + 1).astype(float))
        counted = np.where(y > 0, y * np.log(a * mean), 0)
        return float(s @ (urn + counted - (y + 1 / a) * np.log(1 + a * mean)))
    p = _power(model)
    each = phi / s
    if p == 0:
        ml = float(s @ (y - mean) ** 2 / len(y))
        return float(np.sum(-(s * (y - mean) ** 2) / (2 * ml) - np.log(2 * np.pi * ml / s) / 2))
    if p == 1:
        counted = np.where(y > 0, y * np.log(mean), 0)
        return float(s @ (counted - mean - gammaln((y + 1).astype(float))))
    if p == 2:
        k = 1 / each
        return float(np.sum((k - 1) * np.log(y) - k * y / mean - k * np.log(mean / k) - gammaln(k.astype(float))))
    if p == 3:
        return float(np.sum(-((y - mean) ** 2) / (2 * each * mean**2 * y) - np.log(2 * np.pi * each * y**3) / 2))
    return float(np.nan)


def _firth(model: Any, A: Array, h: Array, mean: Array) -> Array:
    """Return what ½ log det adds to the derivative by each row's score."""
    J = np.asarray((A.T * h) @ A, dtype=float)
    lever = h * np.einsum("ij,ij->i", A, np.linalg.solve(J, A.T.astype(float)).T)
    return lever * ((1 - 2 * mean) if model.family == "binomial" else 1) / 2


def _overdispersion_error(y: Array, mean: Array, s: Array, a: float) -> float:
    """Return the derivative of the likelihood by log a, over the root of the sum of its squares.

    At an end of what is allowed only a slope inwards counts. For small a, Stirling's series stands for digamma.
    """
    y = np.asarray(y, dtype=np.longdouble)
    mean = np.asarray(mean, dtype=np.longdouble)
    k = 1 / np.longdouble(a)
    if a > 1e-3:
        chain = digamma((y + k).astype(float)) - digamma(float(k))
    else:
        shrink = 1 / (1 + a * y)
        chain = np.log1p(a * y) + a * (1 - shrink) / 2 + a**2 * (1 - shrink**2) / 12 - a**4 * (1 - shrink**4) / 120
    terms = k * (np.log1p(a * mean) - chain) + (y - mean) / (1 + a * mean)
    size = float(np.sqrt(s @ terms**2))
    slope = float(s @ terms)
    if a < 1.02e-8:
        slope = max(slope, 0.0)
    elif a > 0.98e8:
        slope = min(slope, 0.0)
    return abs(slope) / size if size else 0.0


def _same_numbers(
    model: Any,
    A: Array,
    y: Array,
    s: Array,
    eta: Array,
    mean: Array,
    h: Array,
    phi: float,
    known: bool,
    a: float,
    offset: Array,
) -> bool:
    """Tell whether the stored numbers are those of these rows."""
    if model.family == "negative-binomial":
        if model.overdispersion is not None and a != float(model.overdispersion):
            return False
    elif a != 0:
        return False
    F = np.asarray(model.information_factor_, dtype=np.longdouble)
    information = (A.T * h) @ A
    size = np.sqrt(np.outer(np.diag(information), np.diag(information)))
    if F.shape != information.shape or np.tril(F, -1).any() or (np.diag(F) < 0).any():
        return False
    if not (abs(F.T @ F - information) <= _SAME * size).all():
        return False
    if int(model.n_rows_) != len(y):
        return False
    if model.fit_intercept and not offset.any():
        null = np.full(len(y), s @ y / s.sum())
    elif model.fit_intercept:
        null = _mean(model, offset + _best_constant(model, y, s, offset, a))
    else:
        null = _mean(model, offset)
    null_phi = float(s @ ((y - null) ** 2) / len(y)) if model.family == "normal" else phi
    found = {
        "dispersion_": 1.0 if known else phi,
        "deviance_": float(s @ _deviance(model, y, mean, a or 1.0)),
        "null_deviance_": float(s @ _deviance(model, y, null, a or 1.0)),
        "log_likelihood_": _density(model, y, mean, s, phi, a or 1.0),
        "null_log_likelihood_": _density(model, y, null, s, null_phi, a or 1.0),
    }
    finest = 1e-12 * float(s @ np.abs(_deviance(model, y, np.full(len(y), max(s @ y / s.sum(), 1e-300)), a or 1.0)))
    # What rounding leaves of an exact fit: squares of differences, or differences of logarithms.
    least = 1e-24 if model.family == "normal" else 1e-14
    finest += least * float(s @ (y**2 / _variance(model, mean, a)))
    for name, value in found.items():
        stored = float(getattr(model, name))
        if name.endswith("likelihood_") and model.deviance_ <= finest:
            continue  # an exact fit: its likelihood is all rounding
        if np.isnan(stored) != np.isnan(value):
            return False
        if np.isfinite(value) and abs(stored - value) > _SAME * abs(value) + finest:
            return False
    return True


def _best_constant(model: Any, y: Array, s: Array, offset: Array, a: float) -> Any:
    """Return the intercept of the model without columns, by bisection of its score."""

    def total(b: Any) -> Any:
        mean = _mean(model, offset + b)
        return s @ ((y - mean) * _slope(model, offset + b) / _variance(model, mean, a))

    low = np.longdouble(-50)
    high = np.longdouble(50)
    for _ in range(120):
        middle = (low + high) / 2
        if total(middle) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
