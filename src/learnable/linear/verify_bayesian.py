r"""An independent check of Bayesian linear regression: the defining equations, evaluated on the rows.

    (S + ρI)β = c,   N = α Q,   γ = λ‖β‖²   (the last two for greatest evidence),

with S, c and the residuals summed over the rows again. The stored basis must give back S, and the stored evidence
must be that of its definition. Nothing is shared with the fit.
"""

from __future__ import annotations

from math import lgamma
from typing import Any

import numpy as np

from ..core import AnyArray, Recheck, VerificationError
from ..data.checking import fingerprint_of, numbers_of, plain_rows, sound
from ..data.sources import named_columns

_ROUNDING = 1e-13  # what rounding may add to a relative residual
_EVIDENCE_ROUNDING = 1e-10  # what it may add to the logarithm of the evidence
_BASIS_AGREEMENT = 1e-9  # relative distance at which two forms of the covariance are the same


@sound
@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def bayesian(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a BayesianLinearRegression."""
    X, y, sample_weight = named_columns("verify", X, y, sample_weight)
    rows = plain_rows(model, X, numbers_of(y), sample_weight)
    if rows.y.shape[1] != 1:
        raise VerificationError(f"verify: the model has one target, the data {rows.y.shape[1]}.")
    fingerprint = fingerprint_of(rows)
    beta = np.asarray(model.coef_, dtype=np.longdouble)
    b = np.longdouble(model.intercept_)
    d = len(beta)
    flat = bool(model.fit_intercept)
    rho = np.longdouble(model.ratio_)
    alpha = np.longdouble(model.alpha_)
    W = rows.weight.sum()
    x_mean = np.zeros(d, dtype=np.longdouble)
    y_mean = np.zeros((), dtype=np.longdouble)
    for Z, t, s in rows.chunks():
        x_mean = x_mean + Z.T @ s
        y_mean = y_mean + s @ t[:, 0]
    x_mean = x_mean / W
    y_mean = y_mean / W
    centre, level = (x_mean, y_mean) if flat else (0 * x_mean, 0 * y_mean)
    S = np.zeros((d, d))
    g = 0 * x_mean
    total = np.longdouble(0)
    rss = np.longdouble(0)
    yy = np.longdouble(0)
    for Z, t, s in rows.chunks():
        Z = (Z.toarray() if hasattr(Z, "toarray") else Z) - centre
        r = t[:, 0] - (b + centre @ beta) - Z @ beta
        g = g + Z.T @ (s * r)
        total = total + s @ r
        rss = rss + s @ (r * r)
        yy = yy + s @ (t[:, 0] - level) ** 2
        half = (Z * np.sqrt(s)[:, None]).astype(np.float64)
        S += half.T @ half
    if not flat:
        total = 0 * total
    value = _normal_equations(S, g - rho * beta, total, beta, b, (centre, level), yy, rho, W)
    N = W - flat
    size = yy / W + level**2
    floor = max(N, 1) * 1e-28 * (size if size > 0 else 1)
    Q = max(rss - (total**2 / W if flat else 0) + rho * (beta @ beta), floor)
    top = np.linalg.eigvalsh(S)[-1] if d else 0.0
    gamma, log_ratio = _spectrum_sums(S, float(rho), len(model.eigenvalues_))
    cross = np.asarray(g + S @ beta, dtype=float)  # Σ w (x − x̄)(y − ȳ), as r = y − ȳ − (x − x̄)β but for a constant
    if not _has_moments(model, rows, cross, np.sqrt(np.diag(S) * yy), level, yy, gamma):
        return Recheck(np.inf, 0.0, fingerprint)
    if not _agrees(model, S, x_mean if flat else centre, alpha, rho, N, Q, log_ratio, W, flat):
        return Recheck(np.inf, 0.0, fingerprint)
    if model.noise != "evidence":
        return Recheck(value, _ROUNDING, fingerprint)
    drawn = alpha * rho * (beta @ beta)
    slope = gamma - drawn
    if rho >= 1e12 * top * (1 - 1e-9):
        slope = min(slope, 0)
    elif rho <= 1e-12 * top * (1 + 1e-9):
        slope = max(slope, 0)
    evidence = max(abs(N - alpha * Q) / N, abs(slope) / max(gamma, drawn, 1e-6))
    # Eigenvalues and Q are known to rounding only; what is left of y is at worst all rounding.
    far = np.max(abs(centre) * np.sqrt(W / np.maximum(np.diag(S), 1e-300)), initial=0.0, where=np.diag(S) > 0)
    rounding = _EVIDENCE_ROUNDING + float(1e-15 * (yy / Q + far + abs(level) * np.sqrt(W / Q)))
    return Recheck(float(max(value, evidence)), rounding, fingerprint)


def _has_moments(model: Any, rows: Any, cross: AnyArray, size: AnyArray, level: Any, yy: Any, gamma: Any) -> bool:
    """Tell whether the moments that `partial_fit` goes on from, and γ, are those of the rows."""
    spread = np.sqrt(yy / rows.weight.sum())
    return bool(
        model.n_rows_ == len(rows.y)
        and np.shape(model.cross_) == cross.shape
        and (np.abs(model.cross_ - cross) <= 1e-9 * size + 1e-6 * np.abs(cross)).all()
        and abs(model.y_mean_ - level) <= 1e-9 * (abs(level) + spread)
        and abs(model.y_square_ - yy) <= 1e-6 * yy + 1e-14 * rows.weight.sum() * level**2
        and abs(model.effective_parameters_ - gamma) <= 1e-6 * max(gamma, 1e-6)
    )


def _spectrum_sums(S: AnyArray, rho: float, rank: int) -> tuple[Any, Any]:
    """Return Σ s/(s + ρ) and Σ log(ρ/(s + ρ)) over the eigenvalues s of S."""
    diagonal = np.diag(S)[np.diag(S) > 0]
    if diagonal.size and diagonal.max() > 1e6 * diagonal.min():
        # Columns of very different sizes: a Cholesky factor of the scaled matrix keeps what eigenvalues lose.
        size = np.sqrt(np.diag(S) + rho)
        factor = np.linalg.cholesky(S / size[:, None] / size + np.diag(rho / size / size))
        inverse = np.linalg.inv(factor) / size
        log_det = 2.0 * (np.log(np.diag(factor)) + np.log(size)).sum()
        return len(S) - rho * (inverse**2).sum(), len(S) * np.log(rho) - log_det
    s = np.maximum(np.linalg.eigvalsh(S), 0.0).astype(np.longdouble)
    s[: max(len(S) - rank, 0)] = 0.0  # these are rounding, if the basis gives back S
    return (s / (s + rho)).sum(), -np.log1p(s / rho).sum()


def _normal_equations(
    S: AnyArray, g: AnyArray, total: Any, beta: AnyArray, b: Any, means: Any, yy: Any, rho: Any, W: Any
) -> float:
    """Return the largest residual of (S + ρI)β = c and Σ w r = 0 against the terms that cancel in it."""
    share = 0.01 * np.sqrt(W)  # digits of the spread that rounding blurs at a large mean
    x_size = np.sqrt(np.diag(S)) + share * abs(means[0])
    y_size = np.sqrt(yy) + share * abs(means[1])
    terms = y_size + x_size @ abs(beta) + share * abs(b)
    size = x_size * terms + rho * abs(beta).max(initial=0)
    ratios = [abs(g) / np.where(size > 0, size, 1), np.where((size == 0) & (g != 0), np.inf, 0)]
    ratios.append(np.atleast_1d(abs(total) / (np.sqrt(W) * terms) if terms > 0 else abs(total)))
    return float(max(np.max(ratio, initial=0.0) if not np.isnan(ratio).any() else np.nan for ratio in ratios))


def _agrees(
    model: Any, S: AnyArray, x_mean: AnyArray, alpha: Any, rho: Any, N: Any, Q: Any, log_ratio: Any, W: Any, flat: bool
) -> bool:
    """Tell whether the stored spectrum, scales and evidence are those of the data."""
    V = model.basis_
    s = model.eigenvalues_
    scale = max(float(np.abs(S).max(initial=0.0)), np.finfo(float).tiny)
    same = [np.abs((V * s) @ V.T - S).max(initial=0.0) <= _BASIS_AGREEMENT * scale]
    same.append(
        np.abs(V.T @ V - np.eye(len(s))).max(initial=0.0) <= 1e-6
    )  # small directions of wide tables lose digits
    same.append(abs(model.weight_sum_ - W) <= 1e-9 * W)
    same.append(bool((abs(model.x_mean_ - x_mean) <= 1e-9 * (abs(x_mean) + np.sqrt(np.diag(S) / W)) + 1e-300).all()))
    same.append(abs(model.lambda_ - alpha * rho) <= 1e-9 * model.lambda_)
    offset = np.log(W) if flat else 0.0
    twice = log_ratio - N * np.log(2 * np.pi) - offset
    if model.noise == "known":
        same += [abs(rho - (model.noise_std / model.prior_std) ** 2) <= 1e-9 * rho]
        same += [abs(alpha - 1.0 / model.noise_std**2) <= 1e-9 * alpha]
    if model.noise == "unknown":
        a = model.shape + N / 2
        r = model.rate + Q / 2
        same += [abs(rho - 1.0 / model.prior_std**2) <= 1e-9 * rho, abs(alpha - a / r) <= 1e-6 * alpha]
        same += [abs(model.shape_ - a) <= 1e-9 * a, abs(model.rate_ - r) <= 1e-6 * r]
        log_p = twice / 2 + model.shape * np.log(model.rate) - a * np.log(r) + lgamma(float(a)) - lgamma(model.shape)
    else:
        log_p = (twice + N * np.log(alpha) - alpha * Q) / 2
    same.append(abs(model.log_marginal_likelihood_ - log_p) <= 1e-6 * max(abs(log_p), N, 1.0))
    return all(bool(one) for one in same)
