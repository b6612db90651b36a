r"""A mixture of normal densities as the two steps of EM.

    log p(x) = log Σₖ πₖ N(x; μₖ, Σₖ)

E-step: responsibilities rᵢₖ = P(k | xᵢ), and from them, about the means μₖ of the last step so that nothing cancels,

    Nₖ = Σᵢ wᵢrᵢₖ,   sₖ = Σᵢ wᵢrᵢₖ(xᵢ − μₖ),   Sₖ = Σᵢ wᵢrᵢₖ(xᵢ − μₖ)(xᵢ − μₖ)ᵀ.

An entry that is NaN is integrated out: a row counts with the density of its observed entries, and the moments of the
others are those given the observed ones.

M-step: the maximum of the expected log-likelihood plus the log-prior (`Prior`). `reg_covar` is part of it: the term
−½·reg·(W/K)·Σₖ tr Σₖ⁻¹, W the weight of all rows, adds reg·(W/K)/Nₖ to the variances (a tied covariance: reg). For one
component, a tied covariance and components of equal weight this is scikit-learn's reg_covar; unlike there, the
objective never falls.

References: A. Dempster, N. Laird and D. Rubin, JRSS B 39 (1977), 1–38; C. Fraley and A. Raftery, Bayesian
regularization for normal mixture estimation and model-based clustering, J. Classification 24 (2007), 155–181 (the
prior); Z. Ghahramani and M. Jordan, Supervised learning from incomplete data via an EM approach, NIPS 6 (1994).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..core import AnyArray, DataError
from ._kernels import (
    add_moments,
    add_moments_diagonal,
    invert_lower,
    log_normals,
    log_normals_diagonal,
    normalise_columns,
)

_CHUNK_ROWS = 2080  # no power of two, which would put one row of all components in the same place of the cache

_LOG_2PI = float(np.log(2 * np.pi))


class Mixture(NamedTuple):
    """The parameters."""

    weights: AnyArray  #: (K,) π
    means: AnyArray  #: (K, d) μ
    covariances: AnyArray  #: full (K, d, d), tied (d, d), diag (K, d), spherical (K,)


class Prior(NamedTuple):
    """Dirichlet weights, inverse-Wishart covariances, normal means given the covariance; each may be absent.

    log p = (α − 1)Σ log πₖ + Σₖ[−½(ν + d + 1) log|Σₖ| − ½ tr ΨΣₖ⁻¹] + Σₖ[−½ log|Σₖ| − ½κ(μₖ − m)ᵀΣₖ⁻¹(μₖ − m)]

    up to constants. A tied covariance has one such factor; a diagonal one has one for each column and a spherical one a
    single one, both with d = 1.
    """

    alpha: float = 1.0  #: of the Dirichlet distribution; 1 is flat
    dof: float | None = None  #: ν; None: no prior of the covariances
    scale: AnyArray | None = None  #: Ψ: (d, d), or its diagonal (d,)
    mean: AnyArray | None = None  #: m (d,); None: no prior of the means
    kappa: float = 0.0  #: κ


class NormalMixture:
    """The two steps; knows the kind of covariances, the prior and the total weight of the rows."""

    def __init__(self, kind: str, K: int, d: int, weight: float, reg_covar: float, prior: Prior | None = None) -> None:
        self.kind = kind
        self.K = K
        self.d = d
        self.weight = weight
        self.reg = reg_covar
        self.prior = prior or Prior()

    def expectation(self, block: Any, mixture: Mixture) -> tuple[tuple[Any, ...], float]:
        """Return N, s, S of a block's rows, and their log-likelihood."""
        matrix = self.kind in ("full", "tied")
        counts = np.zeros(self.K)
        first = np.zeros((self.K, self.d))
        second = np.zeros((self.K, self.d, self.d) if matrix else (self.K, self.d))
        density = Density(self.kind, mixture)
        total = 0.0
        missing = np.isnan(block.X).any(axis=1)
        for X, w, known in _chunks(block, ~missing if missing.any() else None):
            Xt = np.ascontiguousarray(X.T)
            log_joint = restrict(density.log_joint(Xt), known)
            top, r = normalise(log_joint)
            total += float(w @ top)
            r *= w
            counts += r.sum(axis=1)
            (add_moments if matrix else add_moments_diagonal)(Xt, mixture.means, r, first, second)
        if missing.any():
            for X, w, known in _chunks(block, missing):
                total += add_incomplete(self.kind, mixture, X, w, known, counts, first, second)
        return (counts, first, second), total

    def maximisation(self, statistics: tuple[Any, ...], mixture: Mixture) -> Mixture:
        """Return the parameters of greatest expected log-likelihood and log-prior."""
        counts, first, second = statistics
        p = self.prior
        weights = np.maximum(counts + p.alpha - 1, 0.0)
        weights = weights / weights.sum()
        some = np.where(counts > 0, counts, 1.0)
        shift = first / some[:, None]  # mean of the rows less the old one
        mean = mixture.means + shift
        kappa = p.kappa if p.mean is not None else 0.0
        means = mean
        if p.mean is not None and kappa > 0:
            means = (counts[:, None] * mean + kappa * p.mean) / (counts[:, None] + kappa)
        pull = counts * kappa / np.where(counts + kappa > 0, counts + kappa, 1.0)
        gap = mean - (p.mean if p.mean is not None else mean)
        if self.kind in ("full", "tied"):
            S = np.tril(second) + np.swapaxes(np.tril(second, -1), 1, 2)
            S = S - counts[:, None, None] * shift[:, :, None] * shift[:, None, :]
            S = S + pull[:, None, None] * gap[:, :, None] * gap[:, None, :]
        else:
            S = np.maximum(second - counts[:, None] * shift**2, 0.0) + pull[:, None] * gap**2
        return Mixture(weights, means, self._covariances(S, counts, kappa > 0))

    def log_prior(self, mixture: Mixture) -> float:
        """Return the logarithm of the prior density, up to a constant, with the term of `reg_covar`."""
        p = self.prior
        d = self.d
        value = 0.0 if p.alpha == 1 else float((p.alpha - 1) * np.log(mixture.weights).sum())
        density = Density(self.kind, mixture)
        dimension = d if self.kind in ("full", "tied") else 1
        once = slice(0, 1) if self.kind == "tied" else slice(None)
        value -= 0.5 * self.reg * (self.weight / self.K) * float(density.trace_inverse(np.ones(self.d)).sum())
        if p.dof is not None and p.scale is not None:
            log_det = density.log_det[once]
            trace = density.trace_inverse(p.scale)[once]
            if self.kind == "spherical":
                log_det = log_det / d
                trace = trace / d
            value -= 0.5 * float((p.dof + dimension + 1) * log_det.sum() + trace.sum())
        if p.mean is not None and p.kappa > 0:
            squares = density.squares(mixture.means - p.mean)
            value -= 0.5 * float(density.log_det.sum() + p.kappa * squares.sum())
        return value

    def _covariances(self, S: AnyArray, counts: AnyArray, with_mean: bool) -> AnyArray:
        p = self.prior
        d = self.d
        K = self.K
        extra = 1.0 if with_mean else 0.0
        ridge = self.reg * self.weight / K
        has = p.dof is not None and p.scale is not None
        dof, scale = (float(p.dof), np.asarray(p.scale)) if has else (0.0, np.zeros(1))  # type: ignore[arg-type]
        if self.kind in ("full", "tied"):
            scale = scale if scale.ndim == 2 else np.diag(np.broadcast_to(scale, d))
            prior_rows = dof + d + 1 if has else 0.0
            if self.kind == "tied":
                total = S.sum(axis=0) + scale + ridge * K * np.eye(d)
                return total / (counts.sum() + prior_rows + extra * K)
            divisor = counts + prior_rows + extra
            return (S + scale + ridge * np.eye(d)) / np.where(divisor > 0, divisor, 1e-300)[:, None, None]
        diagonal = np.diag(scale) if scale.ndim == 2 else np.broadcast_to(scale, d)
        prior_rows = dof + 2 if has else 0.0
        if self.kind == "diag":
            divisor = counts + prior_rows + extra
            return (S + diagonal + ridge) / np.where(divisor > 0, divisor, 1e-300)[:, None]
        divisor = counts * d + prior_rows + extra * d
        return (S.sum(axis=1) + diagonal.mean() + ridge * d) / np.where(divisor > 0, divisor, 1e-300)


class Density:
    """The densities of a mixture's components, factorised once."""

    def __init__(self, kind: str, mixture: Mixture, owner: str = "GaussianMixture") -> None:
        self.kind = kind
        self.mixture = mixture
        K, d = mixture.means.shape
        with np.errstate(divide="ignore"):
            log_weights = np.log(mixture.weights)
        if kind in ("full", "tied"):
            self.roots = whitening_factors(owner, mixture.covariances.reshape(-1, d, d))
            log_det = -2 * np.log(np.diagonal(self.roots, axis1=1, axis2=2)).sum(axis=1)
            self.roots = np.ascontiguousarray(np.broadcast_to(self.roots, (K, d, d)))
        else:
            variances = mixture.covariances.reshape(K, -1)
            if not (variances > 0).all() or not np.isfinite(variances).all():
                refuse_collapse(owner, int(np.argmin(variances.min(axis=1))))
            self.precisions = np.ascontiguousarray(np.broadcast_to(1 / variances, (K, d)))
            log_det = -np.log(self.precisions).sum(axis=1)
        self.log_det = np.broadcast_to(log_det, K)
        self.constants = log_weights - 0.5 * (d * _LOG_2PI + self.log_det)

    def log_joint(self, Xt: AnyArray) -> AnyArray:
        """Return log πₖN(x; μₖ, Σₖ) as (K, m), of rows that come by columns."""
        out = np.empty((len(self.constants), Xt.shape[1]))
        if self.kind in ("full", "tied"):
            log_normals(Xt, self.mixture.means, self.roots, self.constants, out)
        else:
            log_normals_diagonal(Xt, self.mixture.means, self.precisions, self.constants, out)
        return out

    def trace_inverse(self, scale: AnyArray) -> AnyArray:
        """Return tr ΨΣₖ⁻¹ for each component; Ψ a matrix or its diagonal."""
        if self.kind in ("full", "tied"):
            inverse = np.swapaxes(self.roots, 1, 2) @ self.roots
            if np.ndim(scale) == 2:
                return np.asarray((inverse * scale).sum(axis=(1, 2)))
            return np.asarray((np.diagonal(inverse, axis1=1, axis2=2) * scale).sum(axis=1))
        return np.asarray((self.precisions * (np.diag(scale) if np.ndim(scale) == 2 else scale)).sum(axis=1))

    def squares(self, gaps: AnyArray) -> AnyArray:
        """Return gₖᵀΣₖ⁻¹gₖ."""
        if self.kind in ("full", "tied"):
            return np.asarray(((self.roots @ gaps[:, :, None]) ** 2).sum(axis=(1, 2)))
        return np.asarray((self.precisions * gaps**2).sum(axis=1))


def whitening_factors(owner: str, covariances: AnyArray) -> AnyArray:
    """Return W = L⁻¹, lower triangular, with Σ = LLᵀ; raise DataError where Σ is singular."""
    try:
        factors = np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        refuse_collapse(owner, _first_singular(covariances))
    finite = np.isfinite(factors).all(axis=(1, 2))
    if not finite.all():
        refuse_collapse(owner, int(np.flatnonzero(~finite)[0]))
    roots = np.zeros_like(factors)
    invert_lower(factors, roots)  # LAPACK would wake all of BLAS's threads for every small matrix
    return roots


def _first_singular(covariances: AnyArray) -> int:
    for k, covariance in enumerate(covariances):
        try:
            np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            return k
    return 0


def refuse_collapse(owner: str, k: int) -> NoReturn:
    """Raise the error for a component on too few different rows."""
    raise DataError(
        f"{owner}: the covariance of component {k} is singular: too few different rows belong to it. "
        "Fitting the mixture model failed because some components have ill-defined empirical covariance (for instance "
        "caused by singleton or collapsed samples). Try to decrease the number of components, increase reg_covar, or "
        "scale the input data. Or set prior='default'."
    )


def normalise(log_joint: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return log Σₖ exp and the responsibilities, in place of the argument, of a (K, m) array."""
    K, m = log_joint.shape
    columns = np.ascontiguousarray(log_joint)
    if m % 8:
        columns = np.zeros((K, m + -m % 8))
        columns[:, :m] = log_joint
    tops = np.empty(columns.shape[1])
    inverse = np.empty(columns.shape[1])
    normalise_columns(columns, tops, inverse)
    if columns is not log_joint:
        log_joint[:] = columns[:, :m]
    return (tops - np.log(inverse))[:m], log_joint


def restrict(log_joint: AnyArray, known: AnyArray | None) -> AnyArray:
    """Leave rows whose component is known (not −1) no other."""
    if known is not None:
        rows = np.flatnonzero(known >= 0)
        own = log_joint[known[rows], rows]
        log_joint[:, rows] = -np.inf
        log_joint[known[rows], rows] = own
    return log_joint


def _chunks(block: Any, which: AnyArray | None) -> Any:
    X = block.X
    known = block.y
    w = np.ones(len(X)) if block.weight is None else block.weight
    if which is not None:
        X = X[which]
        w = w[which]
        known = None if known is None else known[which]
    for start in range(0, len(X), _CHUNK_ROWS):
        part = slice(start, start + _CHUNK_ROWS)
        yield X[part], w[part], None if known is None else known[part].astype(np.int64)


# Rows of a Gaussian mixture with missing entries: densities and expected moments given what is observed.
#
# With o the observed and u the missing entries of a row, component k gives it the density N(xₒ; μₒ, Σₒₒ), and its
# missing entries the mean μᵤ + ΣᵤₒΣₒₒ⁻¹(xₒ − μₒ) and the covariance Σᵤᵤ − ΣᵤₒΣₒₒ⁻¹Σₒᵤ. Rows with the same gaps are
# treated together.
#
# Reference: Z. Ghahramani and M. Jordan, Supervised learning from incomplete data via an EM approach, NIPS 6 (1994).


def log_joint_incomplete(kind: str, mixture: Any, X: AnyArray) -> AnyArray:
    """Return log πₖN(xₒ; μₖₒ, Σₖₒₒ) as (K, m); a row without any entry has the density 1."""
    out = np.empty((len(mixture.weights), len(X)))
    with np.errstate(divide="ignore"):
        log_weights = np.log(mixture.weights)
    for rows, seen in _patterns(X):
        for k in range(len(log_weights)):
            cov = _matrix(kind, mixture, k)[np.ix_(seen, seen)]
            gaps = X[np.ix_(rows, seen)] - mixture.means[k, seen]
            solved = np.linalg.solve(cov, gaps.T).T if seen.any() else gaps
            log_det = np.linalg.slogdet(cov)[1] if seen.any() else 0.0
            square = (gaps * solved).sum(axis=1)
            out[k, rows] = log_weights[k] - 0.5 * (seen.sum() * _LOG_2PI + log_det + square)
    return out


def add_incomplete(
    kind: str,
    mixture: Any,
    X: AnyArray,
    w: AnyArray,
    known: AnyArray | None,
    counts: AnyArray,
    first: AnyArray,
    second: AnyArray,
) -> float:
    """Add the expected statistics of such rows to N, s and S; return their log-likelihood."""
    log_likelihood, r = normalise(restrict(log_joint_incomplete(kind, mixture, X), known))
    r = r * w
    counts += r.sum(axis=1)
    for rows, seen in _patterns(X):
        for k in range(len(counts)):
            cov = _matrix(kind, mixture, k)
            mine = r[k, rows]
            gaps = np.zeros((len(rows), X.shape[1]))
            gaps[:, seen] = X[np.ix_(rows, seen)] - mixture.means[k, seen]
            left = np.zeros_like(cov)
            left[np.ix_(~seen, ~seen)] = cov[np.ix_(~seen, ~seen)]
            if seen.any() and not seen.all():
                slope = np.linalg.solve(cov[np.ix_(seen, seen)], cov[np.ix_(seen, ~seen)])
                gaps[:, ~seen] = gaps[:, seen] @ slope
                left[np.ix_(~seen, ~seen)] -= cov[np.ix_(~seen, seen)] @ slope
            first[k] += mine @ gaps
            moments = (gaps.T * mine) @ gaps + mine.sum() * left
            second[k] += moments if second.ndim == 3 else np.diag(moments)
    return float(w @ log_likelihood)


def _patterns(X: AnyArray) -> Iterator[tuple[AnyArray, AnyArray]]:
    """Yield rows with the same gaps, and which of their entries are observed."""
    patterns, which = np.unique(~np.isnan(X), axis=0, return_inverse=True)
    for number, seen in enumerate(patterns):
        yield np.flatnonzero(which.ravel() == number), seen


def _matrix(kind: str, mixture: Any, k: int) -> AnyArray:
    d = mixture.means.shape[1]
    if kind == "full":
        return np.asarray(mixture.covariances[k])
    if kind == "tied":
        return np.asarray(mixture.covariances)
    return np.diag(np.broadcast_to(mixture.covariances[k], d))
