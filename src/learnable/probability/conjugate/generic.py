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

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import logsumexp

from ...core.errors import DataError, NotExponentialFamilyError, ParameterError
from ..base import Array, Distribution, ExponentialFamily, Parameter, RandomState, Size, require_positive
from ..multivariate_t import MultivariateStudentT
from .base import Conjugate
from .dirichlet_multinomial import BetaBinomial, DirichletCategorical, DirichletMultinomial
from .gamma_rate import GammaExponential, GammaPoisson
from .normal_inverse_gamma import NormalGamma
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

    strength = Parameter("The number τ₀ of observations that the prior is worth.")

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
        like = self._like  # type: ignore[attr-defined]
        tau = self.tau  # type: ignore[attr-defined]
        n = self.strength  # type: ignore[attr-defined]
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
                mean = tau[:d] / n
                second = tau[d:].reshape(d, d)
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


# A conjugate density without a closed form, as weights on nodes.
#
# The coordinates are logarithms of positive parameters and entries of Cholesky factors, so that they range over all
# of
# $\mathbb R^k$; the density of η is multiplied by $|\partial\eta/\partial z|$. Around the mode of the result, in
# the coordinates in which its curvature is one, stand
#
# - for k ≤ 3 the points of a grid: the trapezoid rule, whose error falls exponentially for such densities (1e-6 for a
#   prior worth two observations, less for more);
# - for more, draws from a wide t distribution, weighted by density over proposal (importance sampling).

_POINTS = {1: 401, 2: 161, 3: 49}  # along each axis

_DRAWS = 1 << 14

_NEGLIGIBLE = -36.0  # in logarithms against the mode: one part in 10^15

_FURTHEST = 100.0  # standard deviations


class Nodes(NamedTuple):
    """The density on nodes."""

    members: Any  #: an array of N distributions
    weights: Array  #: (N,), with the sum one
    log_total: float  #: the logarithm of the integral of exp(⟨η, τ⟩ - τ₀ A(η)) over η


def posterior_nodes(family: type[Any], mode: Any, tau: Array, strength: Array) -> Nodes:
    """Return the density exp(⟨η, τ⟩ - τ₀A(η)) of a family on nodes."""
    start = _coordinates(mode)

    def log_density(z: Array) -> Array:
        members, log_jacobian = _members(family, mode, z)
        inner = np.sum(members.natural_parameter * tau, axis=-1) - strength * members.log_partition
        return np.asarray(inner + log_jacobian)

    with np.errstate(all="ignore"):
        found = minimize(lambda z: -float(log_density(z[None])[0]), start, method="BFGS", options={"gtol": 1e-9})
    z0 = found.x
    precision = -_hessian(log_density, z0)
    values, vectors = np.linalg.eigh(precision)
    if not np.all(values > 0.0):
        raise DataError(f"{family.__name__}: the prior is too weak to be integrated; raise its strength.")
    axes = vectors / np.sqrt(values)  # columns: one standard deviation along each axis
    top = float(log_density(z0[None])[0])
    k = len(z0)
    if k in _POINTS:
        steps, cell = _grid(log_density, z0, axes, top, _POINTS[k])
        log_f = log_density(z0 + steps @ axes.T)
        log_cell = np.log(cell) - 0.5 * np.sum(np.log(values))
    else:
        proposal = MultivariateStudentT(5.0, np.zeros(k), np.eye(k))
        steps = proposal.sample(_DRAWS, random_state=0)
        log_f = log_density(z0 + steps @ axes.T) - proposal.logpdf(steps)
        log_cell = -np.log(_DRAWS) - 0.5 * np.sum(np.log(values))
    log_f = np.where(np.isfinite(log_f), log_f, -np.inf)
    total = float(logsumexp(log_f))
    kept = log_f > total + 2.0 * _NEGLIGIBLE
    members, _ = _members(family, mode, (z0 + steps @ axes.T)[kept])
    weights = np.exp(log_f[kept] - total)
    return Nodes(members, weights / weights.sum(), total + float(log_cell))


def _grid(log_density: Any, z0: Array, axes: Array, top: float, n: int) -> tuple[Array, float]:
    """Return grid points in standard deviations, out to where nothing is left, and the volume of a cell."""
    k = len(z0)
    low = np.full(k, -6.0)
    high = np.full(k, 6.0)
    while True:
        lines = [np.linspace(*ends, 25) for ends in zip(low, high, strict=True)]
        points = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1)
        log_f = log_density(z0 + points.reshape(-1, k) @ axes.T).reshape(points.shape[:-1])
        # A side moves out while a point of it still matters: the density is no ellipse far from its mode.
        sides = [[np.max(np.take(log_f, i, axis=j)) > top + _NEGLIGIBLE for j in range(k)] for i in (0, -1)]
        matters = np.array(sides) & (np.abs([low, high]) < _FURTHEST)
        if not matters.any():
            break
        low = np.where(matters[0], 1.4 * low, low)
        high = np.where(matters[1], 1.4 * high, high)
    lines = [np.linspace(*ends, n) for ends in zip(low, high, strict=True)]
    points = np.stack([part.ravel() for part in np.meshgrid(*lines, indexing="ij")], axis=-1)
    return points, float(np.prod([line[1] - line[0] for line in lines]))


def _hessian(f: Any, z: Array) -> Array:
    """Return second derivatives by central differences."""
    k = len(z)
    h = 1e-4
    steps = h * np.eye(k)
    H = np.empty((k, k))
    for i in range(k):
        for j in range(i + 1):
            corners = np.stack([z + a * steps[i] + b * steps[j] for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))])
            v = f(corners)
            H[i, j] = H[j, i] = (v[0] - v[1] - v[2] + v[3]) / (4.0 * h * h)
    return H


def _coordinates(member: Any) -> Array:
    """Return the coordinates z of a member."""
    match type(member).__name__:
        case "Gamma" | "InverseGamma" | "Beta" | "Dirichlet":
            return np.concatenate([np.ravel(np.log(p)) for p in member.parameters.values()])
        case "Wishart" | "InverseWishart":
            d = member.scale.shape[-1]
            definite = np.linalg.inv(member.scale) if type(member).__name__ == "Wishart" else member.scale
            L = np.linalg.cholesky(definite)
            return np.r_[np.log(member.df - d + 1.0), np.log(np.diagonal(L)), L[np.tril_indices(d, -1)]]
    raise ParameterError(f"ExponentialFamilyPrior: {type(member).__name__} is not known to the numerical rules.")


def _members(family: type[Any], like: Any, z: Array) -> tuple[Any, Array]:
    """Return the members at coordinates z (N, k), and log|∂η/∂z| up to a constant."""
    # Far out on a tail a parameter may leave the floats: it is kept inside, where the density is zero anyway.
    inside = np.clip(z, -300.0, 300.0)
    if family.__name__ == "Dirichlet":
        return family(np.exp(inside)), inside.sum(axis=-1)
    if family.__name__ in ("Gamma", "InverseGamma", "Beta"):
        return family(np.exp(inside[:, 0]), np.exp(inside[:, 1])), inside.sum(axis=-1)
    d = like.scale.shape[-1]
    df = np.exp(inside[:, 0]) + d - 1.0
    L = np.zeros((len(z), d, d))
    L[:, np.arange(d), np.arange(d)] = np.exp(np.clip(z[:, 1 : d + 1], -150.0, 150.0))
    L[:, *np.tril_indices(d, -1)] = z[:, d + 1 :]
    definite = L @ np.swapaxes(L, -1, -2)
    # ∂(LLᵀ)/∂L is ∏ L_ii^(d - i + 1) for i = 1, …, d, and L_ii = exp(z) adds one power.
    log_jacobian = inside[:, 0] + inside[:, 1 : d + 1] @ (d - np.arange(d) + 1.0)
    if family.__name__ == "Wishart":
        inverse = np.linalg.inv(L)
        definite = np.swapaxes(inverse, -1, -2) @ inverse
    return family(df, definite), log_jacobian


class FamilyMixture(Distribution):
    """A mixture of finitely many members of a family: Σ_j w_j p(x | θ_j).

    Parameters
    ----------
    members : Distribution
        An array of distributions, of batch shape (N,).
    weights : array of shape (N,)
        Non-negative, with the sum one.

    Examples
    --------
    >>> from learnable.probability import Gamma
    >>> FamilyMixture(Gamma([1.0, 3.0], 1.0), [0.5, 0.5]).mean
    np.float64(2.0)
    """

    def __init__(self, members: Any, weights: ArrayLike) -> None:
        weights = np.asarray(weights, dtype=np.float64)
        if members.batch_shape != weights.shape or weights.ndim != 1:
            raise ParameterError(
                f"{type(self).__name__}: weights must have shape {members.batch_shape}, one per member."
            )
        if not (np.all(weights >= 0.0) and abs(weights.sum() - 1.0) < 1e-9):
            raise ParameterError(f"{type(self).__name__}: weights must be >= 0 with the sum 1, got {weights!s}.")
        self._store()
        object.__setattr__(self, "_members", members)
        object.__setattr__(self, "_weights", weights)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._members, self._weights)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        members = self._members  # type: ignore[attr-defined]
        return f"{type(self).__name__}({len(self._weights)} members of {type(members).__name__})"  # type: ignore[attr-defined]

    def _average(self, values: Array) -> Array:
        return np.tensordot(self._weights, values, axes=1)[()]  # type: ignore[attr-defined, no-any-return]

    @property
    def mean(self) -> Array:
        """The mean Σ w_j m_j."""
        return self._average(self._members.mean)  # type: ignore[attr-defined]

    @property
    def variance(self) -> Array:
        """The mean variance plus the variance of the means."""
        members = self._members  # type: ignore[attr-defined]
        return self._average(members.variance + np.square(members.mean - self.mean))

    def logpdf(self, x: ArrayLike) -> Array:
        """Return the logarithm of Σ w_j p(x | θ_j)."""
        members = self._members  # type: ignore[attr-defined]
        log_w = np.log(np.maximum(self._weights, 1e-320))  # type: ignore[attr-defined]
        x = np.asarray(x, dtype=np.float64)
        rank = members._event_rank
        rows = x.reshape(-1, *x.shape[x.ndim - rank :])
        out = np.array([logsumexp(log_w + members.logpdf(row)) for row in rows])
        return out.reshape(x.shape[: x.ndim - rank])[()]

    def cdf(self, x: ArrayLike) -> Array:
        """Return Σ w_j P(x' <= x | θ_j), for families on the line."""
        x = np.asarray(x, dtype=np.float64)
        out = np.array([self._average(self._members.cdf(value)) for value in x.ravel()])  # type: ignore[attr-defined]
        return out.reshape(x.shape)[()]

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw independent samples: first a member, then from it."""
        rng = np.random.default_rng(random_state)
        chosen = rng.choice(len(self._weights), size=max(int(np.prod(self._sample_shape(size))), 1), p=self._weights)  # type: ignore[attr-defined]
        draws = self._members[chosen].sample((), rng)  # type: ignore[attr-defined]
        return np.asarray(draws).reshape((*self._sample_shape(size), *draws.shape[1:]))[()]

    def _entropy_in_nats(self) -> Array:
        raise ParameterError(f"{type(self).__name__}: its entropy has no closed form; average -logpdf over samples.")

    def _kl(self, other: Any) -> Array:
        raise ParameterError(f"{type(self).__name__}: its divergence has no closed form; average over samples.")
