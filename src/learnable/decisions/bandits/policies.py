r"""Policies for rewards that do not depend on a context.

| policy | plays |
|---|---|
| `ExploreThenCommit` | every arm m times, then the best one for ever |
| `EpsilonGreedy` | the best arm so far, and any arm with probability ε_t |
| `UCB` | the greatest $\hat\mu_a + \sqrt{\beta_t / N_a}$ |
| `MOSS`, `KLUCB` | UCB with bonuses that are minimax optimal, or optimal for Bernoulli rewards |
| `LCB` | the greatest $\hat\mu_a - \sqrt{\beta_t / N_a}$: no risk, for the last decision or for logged data |
| `Thompson` | an arm with the probability that it is the best, given the data |
| `EXP3`, `EXP3IX` | arms in proportion to exp(−η · estimated loss): for rewards that an adversary chooses |
| `SlidingWindowUCB`, `DiscountedUCB` | UCB that forgets, for rewards that drift |
| `BudgetUCB` | the greatest upper bound of reward per lower bound of cost, until the budget is gone |

Bonuses are for rewards whose deviations are σ-subgaussian; rewards in [0, 1] have σ = ½, which is the default.

Reference: T. Lattimore and C. Szepesvári, Bandit Algorithms, Cambridge 2020; P. Auer, N. Cesa-Bianchi and P. Fischer,
Finite-time analysis of the multiarmed bandit problem, Machine Learning 47, 2002.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import stats

from ...core import AnyArray, ParameterError
from ...probability.conjugate import BetaBinomial, Conjugate, GammaExponential, GammaPoisson, NormalNormal
from . import _kernels as k
from .policy import Policy, require


@dataclass(eq=False, repr=False)
class RandomArm(Policy):
    """Play any arm with the same probability: the baseline.

    Examples
    --------
    >>> RandomArm(4).propensities()
    array([0.25, 0.25, 0.25, 0.25])
    """

    code: ClassVar[int] = k.UNIFORM


@dataclass(eq=False, repr=False)
class ExploreThenCommit(Policy):
    """Play every arm `rounds_per_arm` times, then the best one for ever.

    Examples
    --------
    >>> policy = ExploreThenCommit(2, rounds_per_arm=1)
    >>> for reward in (0.2, 0.9, 0.7):
    ...     policy.update(policy.act(), reward)
    >>> policy.act()
    1
    """

    rounds_per_arm: int = 10
    code: ClassVar[int] = k.EXPLORE_THEN_COMMIT

    def parameters(self, horizon: int | None = None) -> AnyArray:
        """Return m."""
        return np.array([float(self.rounds_per_arm), 0.0, 0.0, 0.0])

    def _check(self) -> None:
        require(self, "rounds_per_arm", self.rounds_per_arm, 1)


@dataclass(eq=False, repr=False)
class EpsilonGreedy(Policy):
    """Play the best arm so far, and with probability ε_t any arm.

    Parameters
    ----------
    epsilon : float
        ε, or the first of them.
    decay : float
        With 0, ε stays; otherwise ε_t = min(ε, decay · k / t), as Auer et al. (2002) analyse with decay = c/d².

    Examples
    --------
    >>> policy = EpsilonGreedy(2, epsilon=0.1)
    >>> policy.update(0, 0.0), policy.update(1, 1.0)
    (None, None)
    >>> policy.propensities()
    array([0.05, 0.95])
    """

    epsilon: float = 0.1
    decay: float = 0.0
    code: ClassVar[int] = k.EPSILON_GREEDY

    def schedule(self, horizon: int) -> AnyArray:
        """Return ε_t."""
        t = np.arange(1, horizon + 1)
        if self.decay == 0.0:
            return np.full(horizon, self.epsilon)
        return np.minimum(self.epsilon, self.decay * self.n_arms / t)

    def _check(self) -> None:
        require(self, "epsilon", self.epsilon, 0.0, 1.0)
        require(self, "decay", self.decay, 0.0)


@dataclass(eq=False, repr=False)
class UCB(Policy):
    r"""Play the arm with the greatest upper confidence bound, $\hat\mu_a + \sqrt{\beta_t / N_a}$.

    Parameters
    ----------
    beta : {"ucb1", "anytime", "delta"}, float or function of t
        β_t: "ucb1" is 8σ² log t (2 log t for rewards in [0, 1]; Auer et al. 2002), "anytime" 2σ² log(1 + t log² t),
        "delta" 2σ² log(1/δ); a number; or any function.
    sigma : float
        σ: deviations of rewards are σ-subgaussian; ½ for rewards in [0, 1].
    delta : float
        δ of `beta="delta"`; 1/n² for a horizon n.
    corruption : float
        C: an adversary may have changed rewards by C in sum; the bonus grows by C/N_a.

    Examples
    --------
    >>> policy = UCB(2, random_state=0)
    >>> for reward in (1.0, 0.0, 1.0):
    ...     policy.update(policy.act(), reward)
    >>> policy.counts, policy.last_id
    (array([2., 1.]), 2)
    """

    beta: Any = "ucb1"
    sigma: float = 0.5
    delta: float = 0.01
    corruption: float = 0.0
    code: ClassVar[int] = k.UCB

    def schedule(self, horizon: int) -> AnyArray:
        """Return β_t."""
        t = np.arange(1, horizon + 1, dtype=np.float64)
        if callable(self.beta):
            values = np.array([float(self.beta(step)) for step in range(1, horizon + 1)])
            if not (values >= 0.0).all():
                at = int(np.argmin(values >= 0.0))
                raise ParameterError(f"{type(self).__name__}: beta must be >= 0; got {values[at]!r} at t = {at + 1}.")
            return values
        if self.beta == "ucb1":
            return 8.0 * self.sigma**2 * np.log(t)
        if self.beta == "anytime":
            return 2.0 * self.sigma**2 * np.log(1.0 + t * np.log(t) ** 2)
        if self.beta == "delta":
            return np.full(horizon, 2.0 * self.sigma**2 * math.log(1.0 / self.delta))
        return np.full(horizon, float(self.beta))

    def parameters(self, horizon: int | None = None) -> AnyArray:
        """Return the budget of corruption, in its place."""
        return np.array([0.0, self.corruption, 0.0, 0.0])

    def _scheduled(self) -> float:
        t = self.rounds + 1
        if callable(self.beta):
            return max(float(self.beta(t)), 0.0)
        if self.beta in ("ucb1", "anytime"):
            log = math.log(t)
            return self.sigma**2 * (8.0 * log if self.beta == "ucb1" else 2.0 * math.log(1.0 + t * log**2))
        return float(self.schedule(1)[0])

    def _check(self) -> None:
        if isinstance(self.beta, str) and self.beta not in ("ucb1", "anytime", "delta"):
            raise ParameterError(
                f"{type(self).__name__}: beta must be 'ucb1', 'anytime', 'delta', a number >= 0 or a function of t; "
                f"got {self.beta!r}."
            )
        if not isinstance(self.beta, str) and not callable(self.beta):
            require(self, "beta", self.beta, 0.0)
        require(self, "sigma", self.sigma, 0.0, low_open=True)
        require(self, "delta", self.delta, 0.0, 1.0, low_open=True)
        require(self, "corruption", self.corruption, 0.0)


@dataclass(eq=False, repr=False)
class LCB(UCB):
    """Play the arm with the greatest lower confidence bound: what is surely good, explored by others or in the log.

    Examples
    --------
    >>> policy = LCB(2)
    >>> for arm, reward in ((0, 1.0), (1, 0.6), (1, 0.7), (1, 0.6)):
    ...     policy.update(arm, reward)
    >>> policy.act()  # one good reward is not yet sure
    1
    """

    code: ClassVar[int] = k.LCB


@dataclass(eq=False, repr=False)
class MOSS(Policy):
    r"""Minimax optimal strategy: $\hat\mu_a + \sqrt{4\sigma^2 / N_a \cdot \log^+(n / (k N_a))}$ for a horizon n.

    Reference: J.-Y. Audibert and S. Bubeck, COLT 2009; Lattimore and Szepesvári 2020, chapter 9.

    Examples
    --------
    >>> policy = MOSS(2, horizon=100)
    >>> policy.update(0, 1.0), policy.update(1, 0.0)
    (None, None)
    >>> policy.act()
    0
    """

    horizon: int = 10_000
    sigma: float = 0.5
    code: ClassVar[int] = k.MOSS

    def parameters(self, horizon: int | None = None) -> AnyArray:
        """Return n/k and σ."""
        return np.array([self.horizon / self.n_arms, self.sigma, 0.0, 0.0])

    def _check(self) -> None:
        require(self, "horizon", self.horizon, 1)
        require(self, "sigma", self.sigma, 0.0, low_open=True)


@dataclass(eq=False, repr=False)
class KLUCB(Policy):
    r"""For Bernoulli rewards, the greatest q with N_a · kl(μ̂_a, q) ≤ log t + c log log t.

    Reference: A. Garivier and O. Cappé, The KL-UCB algorithm for bounded stochastic bandits and beyond, COLT 2011.

    Examples
    --------
    >>> policy = KLUCB(2)
    >>> for reward in (1, 0, 1):
    ...     policy.update(policy.act(), reward)
    >>> policy.counts
    array([2., 1.])
    """

    c: float = 0.0
    code: ClassVar[int] = k.KL_UCB
    reward_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    def schedule(self, horizon: int) -> AnyArray:
        """Return log t + c log log t."""
        t = np.maximum(np.arange(1, horizon + 1), 2.0)
        return np.log(t) + self.c * np.log(np.maximum(np.log(t), 1.0))

    def _scheduled(self) -> float:
        log = math.log(max(self.rounds + 1, 2))
        return log + self.c * math.log(max(log, 1.0))

    def _check(self) -> None:
        require(self, "c", self.c, 0.0)


@dataclass(eq=False, repr=False)
class EXP3(Policy):
    r"""Exponential weights for exploration and exploitation, for any rewards in [0, 1].

    $$ p_{t,a} \propto \exp\Bigl(-\eta \sum_{s<t} 1[A_s = a] \frac{1 - x_s}{p_{s,a}}\Bigr) $$

    Parameters
    ----------
    horizon : int
        n; the learning rate is then √(2 log k/(n k)), which gives a regret of at most √(2 n k log k).
    eta : float, optional
        η, instead of that rate.
    mix : float
        Share of equal probabilities that is mixed in; none is needed for the bound.

    Examples
    --------
    >>> policy = EXP3(2, horizon=100, random_state=0)
    >>> policy.propensities()
    array([0.5, 0.5])
    >>> round(policy.rate, 3)
    0.083
    """

    horizon: int = 10_000
    eta: float | None = None
    mix: float = 0.0
    code: ClassVar[int] = k.EXP3
    mixes: ClassVar[bool] = True
    reward_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    @property
    def rate(self) -> float:
        """η in use."""
        if self.eta is not None:
            return float(self.eta)
        return math.sqrt(2.0 * math.log(max(self.n_arms, 2)) / (self.horizon * self.n_arms))

    def parameters(self, horizon: int | None = None) -> AnyArray:
        """Return η, the bias of EXP3-IX, and the share of equal probabilities."""
        return np.array([self.rate, 0.0, self.mix, 0.0])

    def _check(self) -> None:
        require(self, "horizon", self.horizon, 1)
        require(self, "mix", self.mix, 0.0, 1.0)
        if self.eta is not None:
            require(self, "eta", self.eta, 0.0, low_open=True)


@dataclass(eq=False, repr=False)
class EXP3IX(EXP3):
    """EXP3 with implicit exploration: losses are divided by p + η/2, which bounds the regret with high probability.

    Reference: G. Neu, Explore no more: improved high-probability regret bounds for non-stochastic bandits, NIPS 2015.

    Examples
    --------
    >>> policy = EXP3IX(2, horizon=100, random_state=0)
    >>> arm = policy.act()
    >>> policy.update(arm, 0.0)  # a loss makes the arm less likely
    >>> bool(policy.propensities()[arm] < 0.5)
    True
    """

    code: ClassVar[int] = k.EXP3_IX

    def parameters(self, horizon: int | None = None) -> AnyArray:
        """Return η and γ = η/2."""
        return np.array([self.rate, self.rate / 2.0, self.mix, 0.0])


@dataclass(eq=False, repr=False)
class SlidingWindowUCB(Policy):
    """UCB on the last `window` rounds, for rewards that change abruptly (Garivier and Moulines 2011).

    Examples
    --------
    >>> policy = SlidingWindowUCB(2, window=3)
    >>> for reward in (1.0, 1.0, 0.0, 0.0, 0.0):
    ...     policy.update(0, reward)
    >>> policy.means[0]
    np.float64(0.0)
    """

    window: int = 1000
    sigma: float = 0.5
    xi: float = 2.0
    code: ClassVar[int] = k.SLIDING_UCB

    def parameters(self, horizon: int | None = None) -> AnyArray:
        """Return the window, the scale and ξ."""
        return np.array([float(self.window), 2.0 * self.sigma, self.xi, 0.0])

    def _ring_size(self) -> int:
        return int(self.window)

    def _check(self) -> None:
        require(self, "window", self.window, 1)
        require(self, "sigma", self.sigma, 0.0, low_open=True)
        require(self, "xi", self.xi, 0.0, low_open=True)


@dataclass(eq=False, repr=False)
class DiscountedUCB(Policy):
    """UCB that counts a round ago as `discount` of a round, for rewards that drift (Garivier and Moulines 2011).

    Examples
    --------
    >>> policy = DiscountedUCB(1, discount=0.5)
    >>> for reward in (0.0, 1.0):
    ...     policy.update(0, reward)
    >>> policy.means.round(3)
    array([0.667])
    """

    discount: float = 0.999
    sigma: float = 0.5
    xi: float = 2.0
    code: ClassVar[int] = k.DISCOUNTED_UCB

    def parameters(self, horizon: int | None = None) -> AnyArray:
        """Return the discount, the scale and ξ; the last place holds the discounted number of rounds."""
        return np.array([self.discount, 2.0 * self.sigma, self.xi, 2.0])

    def _check(self) -> None:
        require(self, "discount", self.discount, 0.0, 1.0, low_open=True)
        require(self, "sigma", self.sigma, 0.0, low_open=True)
        require(self, "xi", self.xi, 0.0, low_open=True)


@dataclass(eq=False, repr=False)
class BudgetUCB(UCB):
    """Bandits with a budget: play the greatest upper bound of reward per lower bound of cost.

    Rewards and costs are in [0, 1]; `update(arm, reward, cost=…)` tells the cost. `least_cost` is a lower bound of
    costs.

    Reference: L. Tran-Thanh et al., Knapsack based optimal policies for budget-limited multi-armed bandits, AAAI 2012.

    Examples
    --------
    >>> policy = BudgetUCB(2)
    >>> policy.update(0, 0.5, cost=0.1), policy.update(1, 0.6, cost=0.9)
    (None, None)
    >>> policy.rounds
    2
    """

    least_cost: float = 0.01
    code: ClassVar[int] = k.BUDGET_UCB
    reward_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    def parameters(self, horizon: int | None = None) -> AnyArray:
        """Return the weight of the bonus in the bound of the cost, and the least cost."""
        return np.array([1.0, self.least_cost, 0.0, 0.0])

    def _check(self) -> None:
        super()._check()
        require(self, "least_cost", self.least_cost, 0.0, low_open=True)


_COMPILED = {
    BetaBinomial: k.THOMPSON_BETA,
    NormalNormal: k.THOMPSON_NORMAL,
    GammaPoisson: k.THOMPSON_POISSON,
    GammaExponential: k.THOMPSON_EXPONENTIAL,
}


@dataclass(eq=False, repr=False)
class Thompson(Policy):
    """Play an arm with the probability that it is the best: draw from each posterior and play the greatest.

    Parameters
    ----------
    prior : {"beta", "normal", "poisson", "exponential"} or tuple
        The conjugate pair of `learnable.probability` for one arm's rewards: Beta for zeros and ones (Beta(1, 1)),
        normal with known variance (mean 0, variance 1, noise 1), Gamma for counts, Gamma for waiting times. With
        numbers, as in ("beta", 2, 2) or ("normal", 0, 10, 0.25): those of the prior, and the noise variance.

    Examples
    --------
    >>> policy = Thompson(2, prior=("beta", 1, 1), random_state=0)
    >>> for reward in (1, 1, 0, 1):
    ...     policy.update(0, reward)
    >>> policy.posterior(0)
    BetaBinomial(a=4.0, b=2.0, n=1.0)
    >>> policy.propensities().round(3)
    array([0.667, 0.333])
    """

    prior: Any = "beta"

    @property
    def code(self) -> int:  # type: ignore[override]
        """The number of the pair in the kernels."""
        names = ("beta", "normal", "poisson", "exponential")
        return k.THOMPSON_BETA + names.index(self._pair()[0])

    @property
    def reward_range(self) -> tuple[float, float] | None:  # type: ignore[override]
        """Zero to one for Beta, at least zero for Gamma priors."""
        kind = self._pair()[0]
        if kind == "beta":
            return (0.0, 1.0)
        return None if kind == "normal" else (0.0, math.inf)

    def parameters(self, horizon: int | None = None) -> AnyArray:
        """Return the numbers of the prior."""
        return np.array([*self._pair()[1], 0.0, 0.0, 0.0])[:4]

    def posterior(self, arm: int) -> Conjugate:
        """Return what is known about an arm, as a conjugate pair of `learnable.probability`."""
        number = self._arm("posterior", arm)
        count, total = (float(self.state["arms"][row, number]) for row in (k.COUNT, k.SUM))
        kind, numbers = self._pair()
        if kind == "beta":
            return BetaBinomial(numbers[0] + total, numbers[1] + count - total)
        if kind == "normal":
            precision = 1.0 / numbers[1] + count / numbers[2]
            mean = (numbers[0] / numbers[1] + total / numbers[2]) / precision
            return NormalNormal(mean, math.sqrt(1.0 / precision), math.sqrt(numbers[2]))
        pair = GammaPoisson if kind == "poisson" else GammaExponential
        if kind == "poisson":
            return pair(numbers[0] + total, numbers[1] + count)
        return pair(numbers[0] + count, numbers[1] + total)

    def propensities(self, context: Any = None) -> AnyArray:
        """Return the probability that each arm is the best, ∫ f_a ∏ F_b, by quadrature over its quantiles."""
        active = self.active
        laws = [self._law(arm) for arm in range(self.n_arms)]
        nodes, weights = np.polynomial.legendre.leggauss(128)
        levels = (nodes + 1.0) / 2.0
        weights = weights / 2.0
        found = np.zeros(self.n_arms)
        for a in np.flatnonzero(active):
            x = laws[a].ppf(levels)
            others = np.ones_like(x)
            for b in np.flatnonzero(active):
                if b != a:
                    others *= laws[b].cdf(x)
            found[a] = weights @ others
        return found / found.sum()

    def _law(self, arm: int) -> Any:
        """Return the law of the mean of an arm."""
        count, total = (float(self.state["arms"][row, arm]) for row in (k.COUNT, k.SUM))
        kind, numbers = self._pair()
        if kind == "beta":
            return stats.beta(numbers[0] + total, numbers[1] + count - total)
        if kind == "normal":
            precision = 1.0 / numbers[1] + count / numbers[2]
            return stats.norm((numbers[0] / numbers[1] + total / numbers[2]) / precision, precision**-0.5)
        if kind == "poisson":
            return stats.gamma(numbers[0] + total, scale=1.0 / (numbers[1] + count))
        return stats.invgamma(numbers[0] + count, scale=numbers[1] + total)

    def _pair(self) -> tuple[str, tuple[float, ...]]:
        defaults = {"beta": (1.0, 1.0), "normal": (0.0, 1.0, 1.0), "poisson": (1.0, 1.0), "exponential": (2.0, 1.0)}
        if isinstance(self.prior, str) and self.prior in defaults:
            return self.prior, defaults[self.prior]
        given = self.prior
        sound = isinstance(given, (tuple, list)) and len(given) > 1 and given[0] in defaults
        if not sound or len(given) - 1 != len(defaults[given[0]]):
            raise ParameterError(
                "Thompson: prior must be 'beta', 'normal', 'poisson', 'exponential', or one of them with its numbers, "
                f"as ('beta', 1, 1) or ('normal', mean, variance, noise variance); got {given!r}."
            )
        numbers = tuple(float(number) for number in given[1:])
        positive = numbers[1:] if given[0] == "normal" else numbers
        if not all(number > 0.0 for number in positive):
            raise ParameterError(f"Thompson: the numbers of the prior must be positive; got {given!r}.")
        return str(given[0]), numbers

    def _check(self) -> None:
        if isinstance(self.prior, Conjugate):
            self.prior = _from_pair(self.prior)
        self._pair()


def _from_pair(prior: Conjugate) -> tuple[Any, ...]:
    """Return the numbers of a conjugate pair."""
    kind = _COMPILED.get(type(prior))
    p = {name: float(np.asarray(value)) for name, value in prior.parameters.items()}
    if kind == k.THOMPSON_BETA and p["n"] == 1.0:
        return ("beta", p["a"], p["b"])
    values = list(p.values())
    if kind == k.THOMPSON_NORMAL:
        return ("normal", values[0], values[1] ** 2, values[2] ** 2)
    if kind == k.THOMPSON_POISSON:
        return ("poisson", values[0], values[1])
    if kind == k.THOMPSON_EXPONENTIAL:
        return ("exponential", values[0], values[1])
    raise ParameterError(
        f"Thompson: prior must be BetaBinomial (n = 1), NormalNormal, GammaPoisson or GammaExponential; got {prior!r}. "
        "Use PosteriorSampling for other pairs."
    )
