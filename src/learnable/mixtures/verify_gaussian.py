"""Independent check of Gaussian mixtures: the objective before and after one more EM step, by the definitions.

Nothing here is shared with the fits but the reading of the table and of the prior's parameters. Every row is completed
by its conditional mean and covariance, whether it has gaps or not, and moments are taken about the new means.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checking import Recheck
from ..data.blocks import map_reduce
from ..data.checking import read_table

Array = NDArray[Any]


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def gaussian_mixture(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a GaussianMixture: what one more step adds to the objective, per unit of weight."""
    table = read_table(model, X, None, sample_weight)
    rows, w = map_reduce(table.blocks, _rows_of, _join)
    K, d = model.n_components, model.n_features_in_
    pi, mu = np.asarray(model.weights_), np.asarray(model.means_)
    sigma = matrices(model.covariance_type, np.asarray(model.covariances_), K, d)
    known = getattr(model, "known_labels_", None)
    wrong = Recheck(np.inf, 0.0, table.fingerprint)
    if pi.shape != (K,) or mu.shape != (K, d) or not abs(pi.sum() - 1) < 1e-9 or not (pi >= 0).all():
        return wrong
    if known is not None and len(known) != len(rows):
        return wrong
    prior = prior_of(model, rows, w)
    try:
        before, r, filled, spread = expect(rows, pi, mu, sigma, known)
        stepped = step(model.covariance_type, rows, w, r, filled, spread, prior, model.reg_covar)
        after = expect(rows, *stepped, known)[0]
        objectives = [
            float(w @ likelihood) + log_prior(model.covariance_type, *parameters, prior, model.reg_covar, w.sum())
            for likelihood, parameters in ((before, (pi, mu, sigma)), (after, stepped))
        ]
    except np.linalg.LinAlgError:
        return wrong
    size = 1.0 + abs(objectives[0]) / w.sum()
    # The fit factorises covariances in float64: columns that almost repeat each other cost digits, never the claim.
    lost = min(64 * d * 2.0**-53 * max(condition(each) for each in sigma), 0.01 * model.tol)
    if not abs(objectives[0] / w.sum() - model.lower_bound_) <= max(1e-9, lost) * size:
        return wrong
    if not _precisions_agree(model, sigma, max(1e-9, 100 * lost)):
        return wrong
    rise = (objectives[1] - objectives[0]) / w.sum()
    return Recheck(max(rise, 0.0) if np.isfinite(rise) else np.inf, max(1e-12, lost) * size, table.fingerprint)


def condition(sigma: Array) -> float:
    """Return the condition number of the correlations."""
    size = np.sqrt(np.diag(sigma))
    return float(np.linalg.cond(sigma / size / size[:, None]))


def _precisions_agree(model: Any, sigma: Array, tolerance: float) -> bool:
    """Tell whether `precisions_` are the inverses of the covariances, and `precisions_cholesky_` their factors."""
    K, d = model.n_components, model.n_features_in_
    shape = np.shape(model.covariances_)
    if np.shape(model.precisions_) != shape or np.shape(model.precisions_cholesky_) != shape:
        return False
    P = matrices(model.covariance_type, np.asarray(model.precisions_), K, d)
    U = matrices(model.covariance_type, np.asarray(model.precisions_cholesky_), K, d)
    for k in range(K):
        size = np.sqrt(np.diag(sigma[k]))  # in units of the columns
        inverse = inverse_of(cholesky(sigma[k])) * size * size[:, None]
        blur = tolerance * float(abs(inverse).max())
        scaled = size[:, None] * U[k]
        if not abs(P[k] * size * size[:, None] - inverse).max() <= blur:
            return False
        if not abs(scaled @ scaled.T - inverse).max() <= blur or np.tril(U[k], -1).any():
            return False
    return True


def cholesky(A: Array) -> Array:
    """Return L with LLᵀ = A in extended precision; raise LinAlgError where A is not positive."""
    rest = np.array(A, dtype=np.longdouble)
    L = np.zeros_like(rest)
    for j in range(len(L)):
        if not rest[j, j] > 0:
            raise np.linalg.LinAlgError("a covariance is not positive definite")
        L[j:, j] = rest[j:, j] / np.sqrt(rest[j, j])
        rest[j + 1 :, j + 1 :] -= np.outer(L[j + 1 :, j], L[j + 1 :, j])
    return L


def solve(L: Array, B: Array) -> Array:
    """Return L⁻¹B by forward substitution."""
    Z = np.array(B, dtype=np.longdouble)
    for j in range(len(L)):
        Z[j] = (Z[j] - L[j, :j] @ Z[:j]) / L[j, j]
    return Z


def inverse_of(L: Array) -> Array:
    """Return (LLᵀ)⁻¹."""
    Z = solve(L, np.eye(len(L)))
    return np.asarray(Z.T @ Z)


def matrices(kind: str, covariances: Array, K: int, d: int) -> Array:
    """Return Σₖ as (K, d, d), whatever the type."""
    if kind == "full":
        return covariances
    if kind == "tied":
        return np.stack([covariances] * K)
    return np.stack([np.diag(np.broadcast_to(each, d)) for each in covariances])


def expect(X: Array, pi: Array, mu: Array, sigma: Array, known: Array | None) -> tuple[Array, Array, Array, Array]:
    """Return log p(x), responsibilities (n, K), rows completed by each component (n, K, d) and what is uncertain."""
    n, d = X.shape
    K = len(pi)
    logs, filled, spread = np.empty((n, K)), np.empty((n, K, d)), np.zeros((n, K, d, d))
    for pattern in np.unique(np.isnan(X), axis=0):
        at = np.flatnonzero((np.isnan(X) == pattern).all(axis=1))
        o, u = np.flatnonzero(~pattern), np.flatnonzero(pattern)
        for k in range(K):
            L = cholesky(sigma[k][np.ix_(o, o)])
            gap = X[np.ix_(at, o)] - mu[k, o]
            log_det = 2 * np.log(np.diag(L)).sum() + len(o) * np.log(2 * np.pi)
            logs[at, k] = np.log(pi[k]) - 0.5 * (log_det + (solve(L, gap.T) ** 2).sum(axis=0))
            slope = (sigma[k][np.ix_(u, o)] @ inverse_of(L)).astype(float) if len(u) else np.empty((0, len(o)))
            filled[at[:, None], k, o] = X[np.ix_(at, o)]
            filled[at[:, None], k, u] = mu[k, u] + gap @ slope.T
            left = np.zeros((d, d))
            left[np.ix_(u, u)] = sigma[k][np.ix_(u, u)] - slope @ sigma[k][np.ix_(o, u)]
            spread[at, k] = left
    if known is not None:
        for i in np.flatnonzero(known >= 0):
            logs[i, np.arange(K) != known[i]] = -np.inf
    top = logs.max(axis=1, keepdims=True)
    sums = np.exp(logs - top).sum(axis=1, keepdims=True)
    return (top + np.log(sums))[:, 0], np.exp(logs - top) / sums, filled, spread


def step(
    kind: str, X: Array, w: Array, r: Array, filled: Array, spread: Array, prior: dict[str, Any], reg: float
) -> tuple[Array, Array, Array]:
    """Return π, μ, Σ after an M-step."""
    K, d = r.shape[1], X.shape[1]
    wr = w[:, None] * r
    N = wr.sum(axis=0)
    pi = N + prior["alpha"] - 1
    kappa, m = prior["kappa"], prior["mean"]
    mu = (np.einsum("ik,ikd->kd", wr, filled) + kappa * m) / (N + kappa)[:, None]
    ridge, dof = reg * w.sum() / K, prior["dof"]
    total = np.empty((K, d, d))
    for k in range(K):
        gap = filled[:, k] - mu[k]
        total[k] = (gap.T * wr[:, k]) @ gap + np.tensordot(wr[:, k], spread[:, k], axes=1)
        total[k] += kappa * np.outer(mu[k] - m, mu[k] - m)
    one = 1.0 if kappa > 0 else 0.0
    psi = prior["scale"]
    if kind == "full":
        rows = N + one + (0 if dof is None else dof + d + 1)
        sigma = (total + psi + ridge * np.eye(d)) / rows[:, None, None]
    elif kind == "tied":
        rows = N.sum() + one * K + (0 if dof is None else dof + d + 1)
        sigma = np.stack([(total.sum(axis=0) + psi + ridge * K * np.eye(d)) / rows] * K)
    else:
        variances = np.einsum("kdd->kd", total) + np.diag(psi) + ridge
        if kind == "diag":
            variances = variances / (N + one + (0 if dof is None else dof + 2))[:, None]
        else:
            pooled = np.einsum("kdd->k", total) + np.diag(psi).mean() + ridge * d
            pooled = pooled / (N * d + one * d + (0 if dof is None else dof + 2))
            variances = np.repeat(pooled[:, None], d, axis=1)
        sigma = np.stack([np.diag(each) for each in variances])
    return pi / pi.sum(), mu, sigma


def log_prior(kind: str, pi: Array, mu: Array, sigma: Array, prior: dict[str, Any], reg: float, weight: float) -> float:
    """Return the logarithm of the prior's density, up to a constant."""
    K, d = mu.shape
    factors = [cholesky(each) for each in sigma]
    inverses = [inverse_of(each) for each in factors]
    log_dets = [float(2 * np.log(np.diag(each)).sum()) for each in factors]
    value = (prior["alpha"] - 1) * np.log(pi).sum() if prior["alpha"] != 1 else 0.0
    value -= 0.5 * reg * weight / K * sum(np.trace(each) for each in inverses)
    if prior["dof"] is not None:
        for k in range(1 if kind == "tied" else K):
            trace = np.trace(prior["scale"] @ inverses[k])
            if kind == "spherical":
                value -= 0.5 * ((prior["dof"] + 2) * log_dets[k] + trace) / d
            else:
                value -= 0.5 * ((prior["dof"] + (2 if kind == "diag" else d + 1)) * log_dets[k] + trace)
    if prior["kappa"] > 0:
        for k in range(K):
            gap = mu[k] - prior["mean"]
            value -= 0.5 * (log_dets[k] + prior["kappa"] * gap @ inverses[k] @ gap)
    return float(value)


def prior_of(model: Any, X: Array, w: Array) -> dict[str, Any]:
    """Return the prior's parameters, with absent ones in place."""
    d, K = X.shape[1], model.n_components
    prior: dict[str, Any] = {"alpha": 1.0, "dof": None, "scale": np.zeros((d, d)), "mean": np.zeros(d), "kappa": 0.0}
    if model.prior is None:
        return prior
    if isinstance(model.prior, dict):
        prior |= model.prior
        scale = np.asarray(prior["scale"], dtype=float)
        prior["scale"] = scale if scale.ndim == 2 else np.diag(np.broadcast_to(scale, d))
        return prior | {"mean": np.broadcast_to(np.asarray(prior["mean"], dtype=float), d)}
    there = ~np.isnan(X)
    mean = np.array([np.average(X[there[:, j], j], weights=w[there[:, j]]) for j in range(d)])
    gap = np.where(there, X - mean, 0.0)
    pairs = (there.T * w) @ there.astype(float)
    cov = (gap.T * w) @ gap / np.where(pairs > 0, pairs, 1.0)
    flat = np.diag(cov) <= 0
    cov = cov + np.diag(np.where(flat, max(1e-12, 1e-6 * float(np.diag(cov).max())), 0.0))
    scale = cov / K ** (2 / d)
    scale = scale if model.covariance_type in ("full", "tied") else np.diag(np.diag(scale))
    return prior | {"dof": d + 2.0, "scale": scale, "mean": mean, "kappa": 0.01}


def _rows_of(block: Any) -> tuple[Array, Array]:
    return block.X.copy(), np.ones(len(block.X)) if block.weight is None else block.weight.copy()


def _join(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    return np.concatenate([a[0], b[0]]), np.concatenate([a[1], b[1]])
