"""Independent check of Gaussian mixtures: the objective before and after one more EM step, by the definitions.

Nothing here is shared with the fits but the reading of the table and of the prior's parameters. Every row is completed
by its conditional mean and covariance, whether it has gaps or not, and moments are taken about the new means.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import digamma, gammaln, xlogy

from ..core import AnyArray, Recheck
from ..data.blocks import map_reduce
from ..data.checking import read_table


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def gaussian_mixture(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a GaussianMixture: what one more step adds to the objective, per unit of weight."""
    table = read_table(model, X, None, sample_weight)
    rows, w = map_reduce(table.blocks, _rows_of, _join)
    K = model.n_components
    d = model.n_features_in_
    pi = np.asarray(model.weights_)
    mu = np.asarray(model.means_)
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


def condition(sigma: AnyArray) -> float:
    """Return the condition number of the correlations."""
    size = np.sqrt(np.diag(sigma))
    return float(np.linalg.cond(sigma / size / size[:, None]))


def _precisions_agree(model: Any, sigma: AnyArray, tolerance: float) -> bool:
    """Tell whether `precisions_` are the inverses of the covariances, and `precisions_cholesky_` their factors."""
    K = model.n_components
    d = model.n_features_in_
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


def cholesky(A: AnyArray) -> AnyArray:
    """Return L with LLᵀ = A in extended precision; raise LinAlgError where A is not positive."""
    rest = np.array(A, dtype=np.longdouble)
    L = np.zeros_like(rest)
    for j in range(len(L)):
        if not rest[j, j] > 0:
            raise np.linalg.LinAlgError("a covariance is not positive definite")
        L[j:, j] = rest[j:, j] / np.sqrt(rest[j, j])
        rest[j + 1 :, j + 1 :] -= np.outer(L[j + 1 :, j], L[j + 1 :, j])
    return L


def solve(L: AnyArray, B: AnyArray) -> AnyArray:
    """Return L⁻¹B by forward substitution."""
    Z = np.array(B, dtype=np.longdouble)
    for j in range(len(L)):
        Z[j] = (Z[j] - L[j, :j] @ Z[:j]) / L[j, j]
    return Z


def inverse_of(L: AnyArray) -> AnyArray:
    """Return (LLᵀ)⁻¹."""
    Z = solve(L, np.eye(len(L)))
    return np.asarray(Z.T @ Z)


def matrices(kind: str, covariances: AnyArray, K: int, d: int) -> AnyArray:
    """Return Σₖ as (K, d, d), whatever the type."""
    if kind == "full":
        return covariances
    if kind == "tied":
        return np.stack([covariances] * K)
    return np.stack([np.diag(np.broadcast_to(each, d)) for each in covariances])


def expect(
    X: AnyArray, pi: AnyArray, mu: AnyArray, sigma: AnyArray, known: AnyArray | None
) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    """Return log p(x), responsibilities (n, K), rows completed by each component (n, K, d) and what is uncertain."""
    n, d = X.shape
    K = len(pi)
    logs = np.empty((n, K))
    filled = np.empty((n, K, d))
    spread = np.zeros((n, K, d, d))
    for pattern in np.unique(np.isnan(X), axis=0):
        at = np.flatnonzero((np.isnan(X) == pattern).all(axis=1))
        o = np.flatnonzero(~pattern)
        u = np.flatnonzero(pattern)
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
    kind: str,
    X: AnyArray,
    w: AnyArray,
    r: AnyArray,
    filled: AnyArray,
    spread: AnyArray,
    prior: dict[str, Any],
    reg: float,
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return π, μ, Σ after an M-step."""
    K = r.shape[1]
    d = X.shape[1]
    wr = w[:, None] * r
    N = wr.sum(axis=0)
    pi = N + prior["alpha"] - 1
    kappa = prior["kappa"]
    m = prior["mean"]
    mu = (np.einsum("ik,ikd->kd", wr, filled) + kappa * m) / (N + kappa)[:, None]
    ridge = reg * w.sum() / K
    dof = prior["dof"]
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


def log_prior(
    kind: str, pi: AnyArray, mu: AnyArray, sigma: AnyArray, prior: dict[str, Any], reg: float, weight: float
) -> float:
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


def prior_of(model: Any, X: AnyArray, w: AnyArray) -> dict[str, Any]:
    """Return the prior's parameters, with absent ones in place."""
    d = X.shape[1]
    K = model.n_components
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


def _rows_of(block: Any) -> tuple[AnyArray, AnyArray]:
    return block.X.copy(), np.ones(len(block.X)) if block.weight is None else block.weight.copy()


def _join(a: tuple[AnyArray, AnyArray], b: tuple[AnyArray, AnyArray]) -> tuple[AnyArray, AnyArray]:
    return np.concatenate([a[0], b[0]]), np.concatenate([a[1], b[1]])


# Independent check of variational mixtures: the evidence bound before and after one more step, term by term.
#
#     F = E[log p(x | z, μ, Λ)] + E[log p(z | π)] − E[log q(z)] + E[log p(π)/q(π)] + E[log p(μ, Λ)/q(μ, Λ)]
#
# as in Bishop (2006), equations 10.70 to 10.77, in plain NumPy. Nothing is shared with the fit but the reading of the
# table.


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def variational_mixture(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a VariationalGaussianMixture: what one more step adds to F, per unit of weight."""
    table = read_table(model, X, None, sample_weight)
    rows, w = map_reduce(table.blocks, _rows_of, _join)
    wrong = Recheck(np.inf, 0.0, table.fingerprint)
    known = getattr(model, "known_labels_", None)
    if known is not None and len(known) != len(rows):
        return wrong
    check = _Bound(model, rows, w, known)
    N, m, cov = (np.asarray(each) for each in (model.counts_, model.means_, model.covariances_))
    if not check.prior_is_right(model) or not check.attributes_agree(model):
        return wrong
    try:
        before, r = check.bound(N, m, cov)
        after = check.bound(*check.step(r))[0]
    except np.linalg.LinAlgError:
        return wrong
    size = 1.0 + abs(before) / w.sum()
    # Columns that almost repeat each other cost digits in float64, never the claim.
    sigma = matrices(model.covariance_type, cov, model.n_components, model.n_features_in_)
    lost = min(64 * sigma.shape[-1] * 2.0**-53 * max(condition(each) for each in sigma), 0.01 * model.tol)
    if not abs(before - model.lower_bound_) / w.sum() <= max(1e-9, lost) * size:
        return wrong
    rise = (after - before) / w.sum()
    return Recheck(max(rise, 0.0) if np.isfinite(rise) else np.inf, max(1e-11, lost) * size, table.fingerprint)


class _Bound:
    """The model, its rows and its prior."""

    def __init__(self, model: Any, X: AnyArray, w: AnyArray, known: AnyArray | None) -> None:
        self.kind = model.covariance_type
        self.K = model.n_components
        self.d = X.shape[1]
        self.X = X
        self.w = w
        self.known = known
        self.process = model.weight_concentration_prior_type == "dirichlet_process"
        self.alpha0 = model.weight_concentration_prior_
        self.beta0 = model.mean_precision_prior_
        self.m0 = np.asarray(model.mean_prior_)
        self.nu0 = model.degrees_of_freedom_prior_
        self.psi0 = np.asarray(model.covariance_prior_)

    def prior_is_right(self, model: Any) -> bool:
        """Tell whether the recorded prior is the one that the parameters ask for."""
        X = self.X
        w = self.w
        d = self.d
        mean = np.average(X, axis=0, weights=w)
        gap = X - mean
        cov = (gap.T * w) @ gap / (w.sum() - 1 if w.sum() > 1 else w.sum())
        default = {"full": cov, "tied": cov, "diag": np.diag(cov), "spherical": np.trace(cov) / d}[self.kind]
        scale = np.asarray(default if model.covariance_prior is None else model.covariance_prior, dtype=float)
        scale = scale + model.reg_covar * (np.eye(d) if scale.ndim == 2 else 1.0)

        def given(value: Any, default: Any) -> Any:
            return default if value is None else value

        pairs = [
            (self.alpha0, given(model.weight_concentration_prior, 1 / self.K)),
            (self.beta0, given(model.mean_precision_prior, 1.0)),
            (self.nu0, given(model.degrees_of_freedom_prior, d)),
            (self.m0, given(model.mean_prior, mean)),
            (self.psi0, scale),
        ]
        return all(np.allclose(a, b, rtol=1e-8, atol=1e-10 * (1e-300 + np.abs(np.asarray(b)).max())) for a, b in pairs)

    def attributes_agree(self, model: Any) -> bool:
        """Tell whether what the model says besides follows from N, m and Ψ/ν."""
        N = np.asarray(model.counts_)
        if N.shape != (self.K,) or not (N >= 0).all() or not abs(N.sum() - self.w.sum()) <= 1e-8 * self.w.sum():
            return False
        if self.process:
            a = 1 + N
            b = self.alpha0 + np.array([N[k + 1 :].sum() for k in range(self.K)])
            weights = np.array([a[k] / (a[k] + b[k]) * np.prod(b[:k] / (a + b)[:k]) for k in range(self.K)])
        else:
            weights = self.alpha0 + N
        pairs = [
            (model.weights_, weights / weights.sum()),
            (model.mean_precision_, self.beta0 + N),
            (model.degrees_of_freedom_, self.dof(N)[0] if self.kind == "tied" else self.dof(N)),
        ]
        return all(np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-8, atol=1e-12) for a, b in pairs)

    def dof(self, N: AnyArray) -> AnyArray:
        return self.nu0 + (np.full(self.K, N.sum()) if self.kind == "tied" else N)

    def bound(self, N: AnyArray, m: AnyArray, cov: AnyArray) -> tuple[float, AnyArray]:
        """Return F after an E-step from these parameters, and the responsibilities."""
        K = self.K
        d = self.d
        beta = self.beta0 + N
        precision = np.stack([np.linalg.inv(each) for each in matrices(self.kind, cov, K, d)])  # E[Λ]
        log_det, of_precisions = self._precisions(N, cov)
        log_pi, of_weights = self._weights(N)
        logs = np.empty((len(self.X), K))
        for k in range(K):
            gap = self.X - m[k]
            square = np.einsum("ia,ab,ib->i", gap, precision[k], gap)
            logs[:, k] = log_pi[k] + 0.5 * (log_det[k] - d / beta[k] - square - d * np.log(2 * np.pi))
        free = logs.copy()
        if self.known is not None:
            logs[(self.known >= 0)[:, None] & (np.arange(K) != self.known[:, None])] = -np.inf
        top = logs.max(axis=1, keepdims=True)
        r = np.exp(logs - top)
        r /= r.sum(axis=1, keepdims=True)
        local = float(self.w @ (np.where(r > 0, r * free, 0.0) - xlogy(r, r)).sum(axis=1))
        of_means = 0.0
        for k in range(K):
            gap = m[k] - self.m0
            prior = d * np.log(self.beta0 / (2 * np.pi)) + log_det[k] - d * self.beta0 / beta[k]
            prior -= self.beta0 * gap @ precision[k] @ gap
            entropy = -(d * np.log(beta[k] / (2 * np.pi)) + log_det[k] - d)
            of_means += 0.5 * (prior + entropy)
        return local + of_weights + of_means + of_precisions, r

    def step(self, r: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Return N, m and Ψ/ν under the responsibilities (Bishop, 10.58 to 10.63)."""
        K = self.K
        d = self.d
        wr = self.w[:, None] * r
        N = wr.sum(axis=0)
        mean = (wr.T @ self.X) / np.where(N > 0, N, 1)[:, None]
        m = (self.beta0 * self.m0 + N[:, None] * mean) / (self.beta0 + N)[:, None]
        scatter = np.empty((K, d, d))
        for k in range(K):
            gap = self.X - mean[k]
            pull = mean[k] - self.m0
            scatter[k] = (gap.T * wr[:, k]) @ gap + self.beta0 * N[k] / (self.beta0 + N[k]) * np.outer(pull, pull)
        nu = self.dof(N)
        if self.kind == "full":
            return N, m, (self.psi0 + scatter) / nu[:, None, None]
        if self.kind == "tied":
            return N, m, (self.psi0 + scatter.sum(axis=0)) / nu[0]
        diagonal = np.einsum("kdd->kd", scatter)
        if self.kind == "diag":
            return N, m, (self.psi0 + diagonal) / nu[:, None]
        return N, m, (self.psi0 + diagonal.mean(axis=1)) / nu

    def _weights(self, N: AnyArray) -> tuple[AnyArray, float]:
        """Return E[log π], and E[log p(π)] − E[log q(π)]."""
        if not self.process:
            a = self.alpha0 + N
            logs = digamma(a) - digamma(a.sum())
            prior = gammaln(self.K * self.alpha0) - self.K * gammaln(self.alpha0) + (self.alpha0 - 1) * logs.sum()
            return logs, float(prior - (gammaln(a.sum()) - gammaln(a).sum() + (a - 1) @ logs))
        a = 1 + N
        b = self.alpha0 + np.array([N[k + 1 :].sum() for k in range(self.K)])
        log_v = digamma(a) - digamma(a + b)
        log_rest = digamma(b) - digamma(a + b)
        logs = np.array([log_v[k] + log_rest[:k].sum() for k in range(self.K)])
        prior = np.log(self.alpha0) + (self.alpha0 - 1) * log_rest
        own = gammaln(a + b) - gammaln(a) - gammaln(b) + (a - 1) * log_v + (b - 1) * log_rest
        return logs, float((prior - own).sum())

    def _precisions(self, N: AnyArray, cov: AnyArray) -> tuple[AnyArray, float]:
        """Return E[log|Λ|] of each component, and E[log p(Λ)] − E[log q(Λ)] of all."""
        nu = self.dof(N)
        d = self.d
        if self.kind in ("full", "tied"):
            logs = np.empty(self.K)
            total = 0.0
            for k in range(self.K):
                psi = nu[k] * (cov if self.kind == "tied" else cov[k])
                logs[k] = digamma((nu[k] + 1 - np.arange(1, d + 1)) / 2).sum() + d * np.log(2)
                logs[k] -= np.linalg.slogdet(psi)[1]
                if self.kind == "full" or k == 0:
                    total += self._log_b(self.psi0, self.nu0) + 0.5 * (self.nu0 - d - 1) * logs[k]
                    total -= 0.5 * nu[k] * np.trace(self.psi0 @ np.linalg.inv(psi))
                    total -= self._log_b(psi, nu[k]) + 0.5 * (nu[k] - d - 1) * logs[k] - 0.5 * nu[k] * d
            return logs, float(total)
        one = 1 if self.kind == "diag" else d  # a spherical precision is seen d times
        a = 0.5 * one * nu
        a0 = 0.5 * one * self.nu0
        b0 = 0.5 * one * self.psi0
        a = np.repeat(a[:, None], d, axis=1) if self.kind == "diag" else a
        b = 0.5 * one * (nu[:, None] * cov if self.kind == "diag" else nu * cov)
        log_lambda = digamma(a) - np.log(b)
        prior = a0 * np.log(b0) - gammaln(a0) + (a0 - 1) * log_lambda - b0 * a / b
        own = a * np.log(b) - gammaln(a) + (a - 1) * log_lambda - a
        logs = log_lambda.sum(axis=1) if self.kind == "diag" else d * log_lambda
        return logs, float((prior - own).sum())

    def _log_b(self, psi: AnyArray, nu: float) -> float:
        """Return the logarithm of the constant of a Wishart density (Bishop, B.79)."""
        d = self.d
        value = 0.5 * nu * np.linalg.slogdet(psi)[1] - 0.5 * nu * d * np.log(2) - 0.25 * d * (d - 1) * np.log(np.pi)
        return float(value - gammaln((nu + 1 - np.arange(1, d + 1)) / 2).sum())
