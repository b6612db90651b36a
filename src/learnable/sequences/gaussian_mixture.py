r"""Hidden Markov models whose emissions are mixtures of Gaussians: p(x | z = k) = Σ_g w_kg N(x | μ_kg, Σ_kg).

A component (k, g) is responsible for row t with γ_t(k) w_kg N(x_t | μ_kg, Σ_kg) / p(x_t | k), where γ_t(k) =
P(z_t = k | x). The M-step sets w_kg ∝ Σ_t γ_t(k, g) + a − 1 and moves means and covariances as `gaussian.py` says, with
(k, g) in the place of the state; with "tied" covariances, the components of a state share theirs.

Reference: B.-H. Juang, Maximum-likelihood estimation for mixture multivariate stochastic observations of Markov chains,
AT&T Technical Journal 64 (1985), 1235–1249.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ..core import AnyArray, ArrayLike, Number, Options, ParameterError, fitted, optional, param
from .baum_welch import Theta, check_numbers, check_probabilities, estimate_rows, log_dirichlet
from .gaussian import (
    Covariances,
    GaussianRows,
    check_covariances,
    cluster_rows,
    count_covariances,
    draw_means,
    draw_normals,
    expand,
    first_covariance,
    gaussian_frames,
    gaussian_statistics,
    whole_rows,
)
from .hmm import LETTERS, PRIOR


class GMMHMM(GaussianRows):
    """A hidden Markov model whose emissions are mixtures of Gaussians.

    Objective: Σ log p(x) plus log-priors, climbed by expectation–maximisation to a local maximum. Names and defaults
    are hmmlearn's. It differs where priors are concerned: `covars_prior` and `covars_weight` mean what they do in
    `GaussianHMM`, and None is a multiple `min_covar` of the identity, so that no component collapses onto a few equal
    rows. Memory O(nK); the responsibilities of components are never held for all rows at once.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import GMMHMM
    >>> rng = np.random.default_rng(0)
    >>> calm, wild = rng.normal(0, 1, 60), rng.choice([-9, 9], 60) + rng.normal(0, 1, 60)
    >>> X = np.r_[calm, wild][:, None]
    >>> model = GMMHMM(n_components=2, n_mix=2, n_iter=200, n_init=4, random_state=0).fit(X)
    >>> np.flatnonzero(np.diff(model.predict(X)))
    array([59])
    """

    _theory = "hidden-markov"

    n_mix: int = param(Number(low=1, integer=True), "Number of Gaussians in each state, G.", default=1, kw_only=False)
    min_covar: float = param(
        Number(low=0.0),
        "Added to the diagonal of the first covariances; C₀ where `covars_prior` is None.",
        default=1e-3,
        kw_only=False,
    )
    weights_prior: Any = param(
        PRIOR, "Dirichlet parameters of the weights of each state, ≥ 1.", default=1.0, kw_only=False
    )
    means_prior: Any = param(Number() | ArrayLike(), "μ₀, of a shape that fits (K, G, d).", default=0.0, kw_only=False)
    means_weight: Any = param(
        Number(low=0.0) | ArrayLike(Number(low=0.0)), "m, of a shape that fits (K, G).", default=0.0, kw_only=False
    )
    covars_prior: Any = param(
        optional(Number(low=0.0) | ArrayLike()),
        "C₀, for every component: a multiple of the identity, or a matrix (a diagonal, for diagonals).",
        default=None,
        kw_only=False,
    )
    covars_weight: float | None = param(
        optional(Number()), "Degrees of freedom of the prior; None: no more than C₀ needs.", default=None, kw_only=False
    )
    covariance_type: str = param(
        Options("diag", "spherical", "full", "tied"),
        'Shape of the covariances; "tied": one matrix for each state.',
        default="diag",
        kw_only=False,
    )
    params: str = param(
        LETTERS,
        "Which parameters are estimated: s (π), t (A), m (μ), c (Σ), w (weights).",
        default="stmcw",
        kw_only=False,
    )
    init_params: str = param(
        LETTERS, "Which parameters start anew: s (π), t (A), m (μ), c (Σ), w (weights).", default="stmcw", kw_only=False
    )
    _positional: ClassVar[tuple[str, ...]] = (
        "n_components",
        "n_mix",
        "min_covar",
        "startprob_prior",
        "transmat_prior",
        "weights_prior",
        "means_prior",
        "means_weight",
        "covars_prior",
        "covars_weight",
        "algorithm",
        "covariance_type",
        "random_state",
        "n_iter",
        "tol",
        "verbose",
        "params",
        "init_params",
        "implementation",
    )

    weights_: AnyArray = fitted("(n_components, n_mix)", "w, rows sum to one.", low=0.0, high=1.0)
    means_: AnyArray = fitted("(n_components, n_mix, n_features)", "μ.")
    covars_: AnyArray = fitted(
        "array",
        'Σ: (n_components, n_mix) with "spherical", (n_components, n_mix, n_features) with "diag", (n_components, '
        'n_mix, n_features, n_features) with "full", (n_components, n_features, n_features) with "tied" covariances.',
    )

    _letters: ClassVar[dict[str, str]] = {"w": "weights_", "m": "means_", "c": "covars_"}

    def _emission(self) -> MixtureEmission:
        scale = self.min_covar if self.covars_prior is None else self.covars_prior
        excess = 0.0 if self.covars_weight is None else self.covars_weight
        priors = (self.means_prior, self.means_weight, scale, excess)
        return MixtureEmission(self.covariance_type, priors, self.weights_prior, self.params)

    def _draw_start(self, X: AnyArray, rng: Any) -> dict[str, AnyArray]:
        K = self.n_components
        G = self.n_mix
        rows = whole_rows(X)
        states = cluster_rows(rows, K, rng)
        if states is None or rng.random_sample() < 0.5:  # a state's components need not lie close together
            means = rng.permutation(draw_means(X, K * G, rng)).reshape(K, G, -1)
        else:
            means = np.array([draw_means(rows[states[1] == k], G, rng) for k in range(K)])
        cov = first_covariance(X, self.min_covar)
        compact = {"full": np.tile(cov, (K, G, 1, 1)), "tied": np.tile(cov, (K, 1, 1))}
        compact |= {"diag": np.tile(np.diag(cov), (K, G, 1)), "spherical": np.full((K, G), np.diag(cov).mean())}
        return {"weights_": np.full((K, G), 1.0 / G), "means_": means, "covars_": compact[self.covariance_type]}

    def _emission_of(self, attributes: Mapping[str, Any]) -> Theta:
        K = self.n_components
        G = self.n_mix
        owner = "GMMHMM"
        means = np.asarray(attributes["means_"], dtype=float)
        d = getattr(self, "n_features_in_", means.shape[-1] if means.ndim else 1)
        shapes = {"spherical": (K, G), "diag": (K, G, d), "full": (K, G, d, d), "tied": (K, d, d)}
        means = check_numbers(owner, "means_", means, (K, G, d))
        covars = check_numbers(owner, "covars_", attributes["covars_"], shapes[self.covariance_type])
        weights = check_probabilities(owner, "weights_", attributes["weights_"], 2)
        if weights.shape != (K, G):
            raise ParameterError(f"{owner}: weights_ must have shape {(K, G)}; got {weights.shape}.")
        check_covariances(owner, _full(covars, self.covariance_type, (K, G, d)))
        return weights, means, covars


class MixtureEmission:
    """Σ_g w_kg N(μ_kg, Σ_kg), with priors of the weights and of the moments; θ = (w, μ, Σ)."""

    def __init__(self, kind: str, priors: tuple[Any, ...], weights_prior: Any, letters: str) -> None:
        self.kind = kind
        self.priors = priors
        self.weights_prior = weights_prior
        self.letters = letters

    def _log_components(self, lines: AnyArray, theta: Theta) -> AnyArray:
        """Return log w_kg + log N(x | μ_kg, Σ_kg), (m, K, G)."""
        weights, means, covars = theta
        K, G, d = means.shape
        kind, each = _by_component(covars, self.kind, G)
        found = gaussian_frames(lines, means.reshape(-1, d), each, kind)
        with np.errstate(divide="ignore"):
            return np.ascontiguousarray(found).reshape(-1, K, G) + np.log(weights)

    def log_frames(self, lines: AnyArray, theta: Theta) -> AnyArray:
        """Return the log of the sum over the components."""
        return np.logaddexp.reduce(self._log_components(lines, theta), axis=2)

    def statistics(self, lines: AnyArray, weight: AnyArray, theta: Theta) -> Theta:
        """Return the expected counts of the components, and their moments about the present means."""
        _, means, covars = theta
        K, G, d = means.shape
        log = self._log_components(lines, theta)
        total = np.logaddexp.reduce(log, axis=2, keepdims=True)
        share = np.exp(log - np.where(total > -np.inf, total, 0.0))
        gamma = (share * weight[:, :K, None]).reshape(-1, K * G)
        kind, each = _by_component(covars, self.kind, G)
        seen = ~np.isnan(lines).all(axis=1)  # a row without entries has no component
        rest = gaussian_statistics(lines, gamma, means.reshape(-1, d), each, kind)
        return ((seen @ gamma).reshape(K, G), *rest)

    def update(self, statistics: Theta, theta: Theta) -> Theta:
        """Return the weights, means and covariances of the M-step."""
        counts, *moments = statistics
        weights, means, covars = theta
        if "w" in self.letters:
            weights = estimate_rows(counts, self._weights_prior(weights.shape), weights)
        moved = []
        for places, rule in self._rules(means.shape):
            part = tuple(each[places] for each in moments)
            moved.append(rule.update(part, *_take(means, covars, places, rule.kind), self.letters))
        new_means, new_covars = (np.concatenate([np.ravel(each) for each in both]) for both in zip(*moved, strict=True))
        return weights, new_means.reshape(means.shape), new_covars.reshape(covars.shape)

    def log_prior(self, theta: Theta) -> float:
        """Return the log-priors of weights, means and covariances."""
        weights, means, covars = theta
        total = log_dirichlet(weights, self._weights_prior(weights.shape))
        return total + sum(
            rule.log_prior(*_take(means, covars, places, rule.kind)) for places, rule in self._rules(means.shape)
        )

    def _weights_prior(self, shape: tuple[int, ...]) -> AnyArray:
        try:
            return np.broadcast_to(np.asarray(self.weights_prior, dtype=float), shape)
        except ValueError as error:
            raise ParameterError(f"GMMHMM: weights_prior must fit the shape {shape}: {error}") from error

    def _rules(self, shape: tuple[int, ...]) -> list[tuple[slice, Covariances]]:
        """Return the M-step of components that share something: those of a state if tied, else all of them."""
        K, G, d = shape
        step = G if self.kind == "tied" else K * G
        means_prior, means_weight, scale, excess = self.priors
        groups = [slice(lo, lo + step) for lo in range(0, K * G, step)]
        try:
            mean = np.broadcast_to(np.asarray(means_prior, dtype=float), shape).reshape(K * G, d)
            weight = np.broadcast_to(np.asarray(means_weight, dtype=float), (K, G)).reshape(K * G)
            if np.ndim(scale) == 1:
                scale = np.broadcast_to(scale, (step, d))
            rules = [Covariances.build(self.kind, step, d, mean[g], weight[g], scale, excess, "GMMHMM") for g in groups]
        except ValueError as error:
            raise ParameterError(
                f"GMMHMM: the priors do not fit {K} states of {G} components in {d} columns: {error}"
            ) from error
        return list(zip(groups, rules, strict=True))

    def expected(self, theta: Theta, proba: AnyArray) -> AnyArray:
        """Return the mean of the components' means."""
        return proba @ np.einsum("kg,kgd->kd", theta[0], theta[1])

    def draw(self, theta: Theta, states: AnyArray, rng: Any) -> AnyArray:
        """Return one row for each state."""
        weights, means, covars = theta
        bounds = np.cumsum(weights, axis=1)
        bounds[:, -1] = np.inf
        component = (rng.random_sample(len(states))[:, None] >= bounds[states]).sum(axis=1)
        K, G, d = means.shape
        factors = np.linalg.cholesky(_full(covars, self.kind, means.shape)).reshape(K, G, d, d)
        return draw_normals(means[states, component], factors[states, component], rng)

    def n_parameters(self, theta: Theta) -> int:
        """Return the free weights, and the entries of the means and of the triangles of the covariances."""
        K, G, d = theta[1].shape
        return K * (G - 1) + K * G * d + count_covariances(self.kind, K * G, d, K)


def _full(covars: AnyArray, kind: str, shape: tuple[int, ...]) -> AnyArray:
    """Return the covariances of all components as full matrices."""
    K, G, d = shape
    kind, each = _by_component(covars, kind, G)
    return expand(each, kind, K * G, d)


def _by_component(covars: AnyArray, kind: str, G: int) -> tuple[str, AnyArray]:
    """Return the covariances of all K · G components, and their shape as `gaussian.py` names it."""
    if kind == "tied":
        return "full", np.repeat(covars, G, axis=0)
    return kind, covars.reshape(-1, *covars.shape[2:])


def _take(means: AnyArray, covars: AnyArray, places: slice, kind: str) -> tuple[AnyArray, AnyArray]:
    """Return the means and covariances of some components, all of one state where they are tied."""
    K, G, d = means.shape
    if kind == "tied":
        return means[places.start // G], covars[places.start // G]
    return means.reshape(-1, d)[places], covars.reshape(K * G, *covars.shape[2:])[places]
