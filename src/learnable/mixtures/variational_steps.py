r"""A Gaussian mixture with distributions over its parameters, as the two steps of variational EM.

    π ~ Dirichlet(α₀, …)  or  πₖ = vₖ Πⱼ<ₖ(1 − vⱼ), vₖ ~ Beta(1, α₀)      weights, or sticks of a Dirichlet process
    Λₖ ~ Wishart(ν₀, Ψ₀⁻¹),   μₖ | Λₖ ~ N(m₀, (β₀Λₖ)⁻¹),   xᵢ | zᵢ = k ~ N(μₖ, Λₖ⁻¹)

The posterior is approximated by q(z) q(π) Πₖ q(μₖ, Λₖ), which maximises the evidence bound

    F = E_q[log p(x, z, π, μ, Λ)] − E_q[log q] ≤ log p(x).

E-step: rᵢₖ ∝ ρᵢₖ = exp E[log πₖ N(xᵢ; μₖ, Λₖ⁻¹)], a normal density with the covariance Ψₖ/νₖ and another constant, so
that the sums are those of `normals.py`; after it F = Σᵢ wᵢ log Σₖ ρᵢₖ − KL(q(π, μ, Λ) ‖ prior). M-step: q has the form
of the prior, with N rows more: βₖ = β₀ + Nₖ, νₖ = ν₀ + Nₖ, and mₖ, Ψₖ/νₖ are means and covariances of MAP-EM under a
prior of suitable degrees of freedom. So a posterior is (N, m, Ψ/ν), and everything else follows.

A tied covariance has one Wishart factor (ν₀ + ΣN degrees of freedom), a diagonal one a factor with d = 1 for each
column, a spherical one a single factor with d = 1, ν and Ψ then times d. Sticks beyond K have their prior: the bound is
one of the infinite mixture.

References: C. Bishop, Pattern Recognition and Machine Learning (2006), section 10.2; D. Blei and M. Jordan, Variational
inference for Dirichlet process mixtures, Bayesian Analysis 1 (2006), 121–143.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, multigammaln

from ..probability.beta import Beta
from .normals import Density, Mixture, NormalMixture, Prior

Array = NDArray[Any]


class Posterior(NamedTuple):
    """What the approximate posterior depends on."""

    counts: Array  #: (K,) N, the expected weight of each component's rows
    means: Array  #: (K, d) m
    covariances: Array  #: Ψ/ν = E[Λ]⁻¹: full (K, d, d), tied (d, d), diag (K, d), spherical (K,)


class Hyperparameters(NamedTuple):
    """The prior."""

    process: bool  #: whether weights are sticks of a Dirichlet process
    concentration: float  #: α₀
    mean_precision: float  #: β₀
    mean: Array  #: m₀ (d,)
    dof: float  #: ν₀
    scale: Array  #: Ψ₀: (d, d), (d,) for diagonal and () for spherical covariances


class VariationalMixture:
    """The two steps; knows the kind of covariances and the prior."""

    def __init__(self, kind: str, K: int, d: int, prior: Hyperparameters) -> None:
        self.kind, self.K, self.d, self.prior = kind, K, d, prior
        nu, scale = prior.dof, prior.scale
        # The degrees of freedom with which MAP-EM divides by ν = ν₀ + N.
        dof = {"full": nu - d - 2, "tied": nu - d - 1 - K, "diag": nu - 3, "spherical": d * nu - d - 2}[kind]
        scale = np.full(d, d * float(scale)) if kind == "spherical" else scale
        self.steps = NormalMixture(kind, K, d, 1.0, 0.0, Prior(1.0, dof, scale, prior.mean, prior.mean_precision))

    def expectation(self, block: Any, posterior: Posterior) -> tuple[tuple[Any, ...], float]:
        """Return N, s and S of a block's rows, and Σ w log Σₖ ρₖ."""
        return self.steps.expectation(block, self.surrogate(posterior))

    def maximisation(self, statistics: tuple[Any, ...], posterior: Any) -> Posterior:
        """Return the posterior under the responsibilities."""
        centred = Mixture(np.empty(0), posterior.means, np.empty(0))
        found = self.steps.maximisation(statistics, centred)
        return Posterior(statistics[0], found.means, found.covariances)

    def log_prior(self, posterior: Posterior) -> float:
        """Return −KL(q(π, μ, Λ) ‖ prior)."""
        p, d = self.prior, self.d
        beta, nu = p.mean_precision + posterior.counts, self.dof(posterior)
        density = Density(self.kind, Mixture(np.ones(self.K), posterior.means, posterior.covariances))
        ratio = p.mean_precision / beta
        of_means = d * (ratio - 1 - np.log(ratio)) + p.mean_precision * density.squares(posterior.means - p.mean)
        scale = np.full(d, float(p.scale)) if self.kind == "spherical" else p.scale
        trace = density.trace_inverse(scale) / nu  # tr Ψ₀Ψ⁻¹
        if self.kind in ("full", "tied"):
            log_ratio = np.linalg.slogdet(p.scale)[1] - (density.log_det + d * np.log(nu))  # log|Ψ₀Ψ⁻¹|
            of_precisions = wishart_divergence(nu, p.dof, log_ratio, trace, d)
            of_precisions = of_precisions[:1] if self.kind == "tied" else of_precisions
        elif self.kind == "diag":
            ratios = scale * density.precisions / nu[:, None]
            of_precisions = wishart_divergence(nu[:, None], p.dof, np.log(ratios), ratios, 1)
        else:
            of_precisions = wishart_divergence(d * nu, d * p.dof, np.log(trace / d), trace / d, 1)
        return -float(self._weight_divergence(posterior) + 0.5 * of_means.sum() + of_precisions.sum())

    def dof(self, posterior: Posterior) -> Array:
        """Return ν, (K,)."""
        counts = posterior.counts.sum() if self.kind == "tied" else posterior.counts
        return np.broadcast_to(self.prior.dof + counts, self.K)

    def sticks(self, posterior: Posterior) -> tuple[Array, Array]:
        """Return the two parameters of the Beta distribution of each stick."""
        after = np.cumsum(posterior.counts[::-1])[::-1] - posterior.counts
        return 1.0 + posterior.counts, self.prior.concentration + np.maximum(after, 0.0)

    def log_weights(self, posterior: Posterior) -> Array:
        """Return E[log πₖ]."""
        if not self.prior.process:
            alpha = self.prior.concentration + posterior.counts
            return np.asarray(digamma(alpha) - digamma(alpha.sum()))
        a, b = self.sticks(posterior)
        taken, left = digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)
        return np.asarray(taken + np.r_[0.0, np.cumsum(left)[:-1]])

    def surrogate(self, posterior: Posterior) -> Mixture:
        """Return the normal densities, with weights, that are ρₖ(x)."""
        nu, d = self.dof(posterior), self.d
        if self.kind in ("full", "tied"):
            bend = digamma(0.5 * (nu[:, None] - np.arange(d))).sum(axis=1) - d * np.log(0.5 * nu)
        elif self.kind == "diag":
            bend = d * (digamma(0.5 * nu) - np.log(0.5 * nu))
        else:
            bend = d * (digamma(0.5 * d * nu) - np.log(0.5 * d * nu))
        constants = self.log_weights(posterior) + 0.5 * bend - 0.5 * d / (self.prior.mean_precision + posterior.counts)
        return Mixture(np.exp(constants), posterior.means, posterior.covariances)

    def _weight_divergence(self, posterior: Posterior) -> float:
        alpha0, K = self.prior.concentration, self.K
        if self.prior.process:
            return float(np.sum(Beta(*self.sticks(posterior)).kl(Beta(1.0, alpha0))))
        alpha = alpha0 + posterior.counts
        constant = gammaln(alpha.sum()) - gammaln(alpha).sum() - gammaln(K * alpha0) + K * gammaln(alpha0)
        return float(constant + posterior.counts @ self.log_weights(posterior))


def wishart_divergence(nu: Array, nu0: float, log_ratio: Array, trace: Array, d: int) -> Array:
    """Return KL(Wishart(ν, Ψ⁻¹) ‖ Wishart(ν₀, Ψ₀⁻¹)) from log|Ψ₀Ψ⁻¹| and tr Ψ₀Ψ⁻¹."""
    psi = digamma(0.5 * (np.asarray(nu)[..., None] - np.arange(d))).sum(axis=-1)
    constant = multigammaln(0.5 * nu0, d) - multigammaln(0.5 * np.asarray(nu), d)
    return np.asarray(-0.5 * nu0 * log_ratio + 0.5 * nu * (trace - d) + constant + 0.5 * (nu - nu0) * psi)
