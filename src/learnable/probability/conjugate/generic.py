r"""The conjugate prior of any exponential family (Diaconis and Ylvisaker, 1979).

For densities $h(x)\exp(\langle\eta, t(x)\rangle - A(\eta))$ the prior

$$ \pi(\eta) \propto \exp\bigl(\langle\eta, \tau\rangle - \tau_0 A(\eta)\bigr) $$

becomes, after n observations, the same with $\tau + \sum_i t(x_i)$ and $\tau_0 + n$. Its mode in η is where the mean
statistic is τ/τ₀, and that is also the expected mean statistic: $E[\,E(t(x) \mid \eta)\,] = \tau/\tau_0$, so that
$E[E(t(x) \mid \eta) \mid x]$ is linear in t(x).

Where the family has a pair of its own in this package, predictive distribution, marginal likelihood and intervals are
the pair's. For the others (`Gamma`, `InverseGamma`, `Beta`, `Dirichlet`, `Wishart`, `InverseWishart`) the density is
put on nodes: a trapezoid rule in up to three dimensions, which for densities this smooth is exact to six digits or
more, and importance sampling, to about one part in a hundred, in more.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ...core.errors import DataError, NotExponentialFamilyError, ParameterError
from ..base import Array, Distribution, ExponentialFamily, RandomState, Size, require_positive
from .base import Conjugate
from .beta_binomial import BetaBinomial
from .dirichlet_multinomial import DirichletCategorical, DirichletMultinomial
from .gamma_rate import GammaExponential, GammaPoisson
from .nodes import FamilyMixture, Nodes, posterior_nodes
from .normal_gamma import NormalGamma
from .normal_wishart import NormalWishart


class ExponentialFamilyPrior(Conjugate):
    """The conjugate prior of an exponential family, as a density of the natural parameter η.

    Parameters
    ----------
    member : ExponentialFamily
        A single distribution of the family: where η is expected.
    strength : float
        τ₀ > 0: how many observations this is worth. τ is `strength` times the mean statistic of `member`.

    Examples
    --------
    >>> from learnable.probability import Gamma
    >>> prior = ExponentialFamilyPrior(Gamma(shape=2.0, rate=1.0), strength=1.0)
    >>> posterior = prior.update([0.5, 1.0, 1.5, 3.0])
    >>> posterior.map()
    Gamma(shape=2.3930, rate=1.4956)
    >>> posterior.expected_mean_statistic
    array([0.2467, 1.6   ])
    """

    def __init__(self, member: ExponentialFamily, strength: ArrayLike = 1.0) -> None:
        if not isinstance(member, ExponentialFamily):
            if isinstance(member, Distribution):
                raise NotExponentialFamilyError(
                    f"{type(self).__name__}: {type(member).__name__} is no exponential family."
                )
            raise ParameterError(f"{type(self).__name__}: member must be a distribution of the family, got {member!r}.")
        if member.batch_shape or np.ndim(strength):
            raise ParameterError(f"{type(self).__name__}: member and strength must be single ones, got arrays.")
        strength = np.asarray(strength, dtype=np.float64)
        require_positive(self, strength=strength)
        self._set(member, strength * member.mean_statistic, strength)

    def _set(self, like: Any, tau: Array, strength: Array) -> None:
        self._store(strength=strength)
        object.__setattr__(self, "_like", like)
        object.__setattr__(self, "_tau", np.asarray(tau))
        object.__setattr__(self, "_rank", like._event_rank)
        object.__setattr__(self, "_nodes", None)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._like, self.tau, self.strength)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        family = type(self._like).__name__  # type: ignore[attr-defined]
        return f"{type(self).__name__}({family}, strength={float(self.strength)!r})"

    @property
    def strength(self) -> Array:
        """The number τ₀ of observations that the prior is worth."""
        return self._parameters["strength"]

    @property
    def tau(self) -> Array:
        """The sum τ of statistics that the prior is worth."""
        return self._tau  # type: ignore[attr-defined, no-any-return]

    @property
    def expected_mean_statistic(self) -> Array:
        """The expectation τ/τ₀ of E(t(x) | η)."""
        return self.tau / self.strength

    def _absorb(self, weight: Array, total: Array) -> Self:
        if weight.ndim or total.shape != self.tau.shape:
            raise DataError(f"{type(self).__name__}: statistics must have {self.tau.size} entries, got {total.shape}.")
        return _rebuild(self._like, self.tau + total, self.strength + weight)  # type: ignore[attr-defined, return-value]

    def _learn(self, x: Array, w: Array) -> Self:
        like = self._like  # type: ignore[attr-defined]
        if x.ndim != 1 + like._event_rank:
            raise DataError(f"{type(self).__name__}: data must be observations along one axis, got shape {x.shape}.")
        statistic = like.sufficient_statistic(x) if len(w) else np.zeros((0, self.tau.size))
        if not np.all(np.isfinite(like.log_base_measure(x))) or not np.all(np.isfinite(statistic)):
            raise DataError(f"{type(self).__name__}: observations must be {like._support}, got {x!s}.")
        return self._absorb(np.asarray(w.sum()), np.tensordot(w, statistic, axes=1))

    def _member(self) -> Any:
        return self.map()

    def pair(self) -> Conjugate | None:
        """Return the same distribution as a pair with closed forms, in its own parameters; None if there is none."""
        like, tau, n = self._like, self.tau, self.strength  # type: ignore[attr-defined]
        match type(like).__name__:
            case "Bernoulli":
                return BetaBinomial(tau[0], n - tau[0])
            case "Binomial":
                return BetaBinomial(tau[0], like.n * n - tau[0], like.n)
            case "Categorical":
                return DirichletCategorical(tau)
            case "Multinomial":
                return DirichletMultinomial(tau)
            case "Poisson":
                return GammaPoisson(tau[0], n)
            case "Exponential":  # dη = -dλ
                return GammaExponential(n + 1.0, tau[0])
            case "Normal":  # dη is proportional to τ dμ dτ, whence 3/2 instead of 1/2 in the shape
                return NormalGamma(tau[0] / n, n, 0.5 * (n + 3.0), 0.5 * (tau[1] - tau[0] ** 2 / n))
            case "MultivariateNormal":  # dη is proportional to |Λ| dμ dΛ
                d = like.event_shape[0]
                mean, second = tau[:d] / n, tau[d:].reshape(d, d)
                return NormalWishart(mean, n, n + d + 2.0, second - n * np.outer(mean, mean))
        return None

    def _on_nodes(self) -> Nodes:
        if self._nodes is None:  # type: ignore[attr-defined]
            nodes = posterior_nodes(type(self._like), self.map(), self.tau, self.strength)  # type: ignore[attr-defined]
            object.__setattr__(self, "_nodes", nodes)
        return self._nodes  # type: ignore[attr-defined, no-any-return]

    def logpdf(self, member: Any) -> Array:
        """Return the log-density of the parameters of a member: of η on nodes, of a pair's parameters with a pair."""
        pair = self.pair()
        if pair is not None:
            return pair.logpdf(member)
        inner = np.sum(member.natural_parameter * self.tau, axis=-1) - self.strength * member.log_partition
        return inner - self._on_nodes().log_total

    def log_marginal_likelihood(self, data: ArrayLike, weights: ArrayLike | None = None) -> Array:
        """Return the logarithm of the probability of the data, the parameters integrated out."""
        pair = self.pair()
        return (
            super().log_marginal_likelihood(data, weights)
            if pair is None
            else pair.log_marginal_likelihood(data, weights)
        )

    def predictive(self) -> Distribution:
        """Return the distribution of the next observation; a mixture over the nodes where there is no pair."""
        pair = self.pair()
        if pair is not None:
            return pair.predictive()
        nodes = self._on_nodes()
        return FamilyMixture(nodes.members, nodes.weights)

    def map(self) -> Any:
        """Return the member at the most probable η: the one whose mean statistic is τ/τ₀."""
        like = self._like  # type: ignore[attr-defined]
        return type(like).from_mean_statistic(self.expected_mean_statistic, **like.known)

    def sample(self, size: Size = (), random_state: RandomState = None) -> Any:
        """Draw members, as an array of distributions; from the nodes where there is no pair."""
        pair = self.pair()
        if pair is not None:
            return pair.sample(size, random_state)
        nodes = self._on_nodes()
        chosen = np.random.default_rng(random_state).choice(len(nodes.weights), size=size, p=nodes.weights)
        return nodes.members[chosen]

    def marginal(self, name: str | None = None) -> Any:
        """Return the distribution of a parameter of the pair."""
        pair = self.pair()
        if pair is None:
            raise ParameterError(f"{type(self).__name__}: this family has no closed marginals; use interval or sample.")
        return pair.marginal(name)

    def interval(self, level: float = 0.95) -> Any:
        """Return credible intervals: those of the pair, or of the family's parameters by name."""
        pair = self.pair()
        if pair is not None:
            return pair.interval(level)
        if not 0.0 <= level <= 1.0:
            raise ParameterError(f"{type(self).__name__}: level must be in [0, 1], got {level!r}.")
        nodes = self._on_nodes()
        tails = [0.5 * (1.0 - level), 0.5 * (1.0 + level)]
        return {name: tuple(_quantiles(v, nodes.weights, tails)) for name, v in nodes.members.parameters.items()}


def _rebuild(like: Any, tau: Array, strength: Array) -> ExponentialFamilyPrior:
    prior = ExponentialFamilyPrior.__new__(ExponentialFamilyPrior)
    prior._set(like, tau, strength)
    return prior


def _quantiles(values: Array, weights: Array, p: list[float]) -> Array:
    """Return weighted quantiles along the first axis, by interpolation between the nodes."""
    flat = values.reshape(len(values), -1)
    out = np.empty((len(p), flat.shape[1]))
    for j, column in enumerate(flat.T):
        order = np.argsort(column, kind="stable")
        mass = np.cumsum(weights[order]) - 0.5 * weights[order]
        out[:, j] = np.interp(p, mass, column[order])
    return out.reshape(len(p), *values.shape[1:])
