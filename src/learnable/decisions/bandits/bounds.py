r"""What is proved about regret: upper bounds of policies, lower bounds of problems.

An upper bound is stated only where its assumptions hold; otherwise the reason says which one fails.

| policy | bound on the expected regret after n rounds | reference |
|---|---|---|
| `UCB("ucb1")`, rewards in [0, 1] | Σ 8 log n/Δ + (1 + π²/3) ΣΔ | Auer et al. 2002, theorem 1 |
| `UCB("delta")`, δ ≤ 1/n² | 3 ΣΔ + Σ 16σ² log n/Δ | Lattimore and Szepesvári 2020, theorem 7.1 |
| `ExploreThenCommit` | m ΣΔ + (n − mk) Σ Δ exp(−mΔ²/(4σ²)) | theorem 6.1 |
| `MOSS` | 39σ√(kn) + ΣΔ | theorem 9.1 |
| `EXP3` | log k/η + ηnk/2; √(2nk log k) at the best η | theorem 11.2 |
| `EXP3IX` | 2√(2kn log k) + (√(2kn/log k) + 1)(1 + log 2) | Neu 2015, theorem 1, integrated over δ |

Lower bounds: Lai and Robbins (1985), Σ Δ log n / KL(a, best), in the limit for every policy that learns everywhere;
minimax, √((k−1)n)/27 for unit normal rewards (theorem 15.2) and min(√(kn), n)/20 for rewards in [0, 1] (Auer et al.
2002b).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from . import policies
from .environments import Environment
from .policy import Policy


class Bound(NamedTuple):
    """A bound, or why there is none."""

    value: float | None
    reason: str


def upper_bound(policy: Policy, environment: Environment, horizon: int) -> Bound:
    """Return what is proved about the expected regret of a policy after `horizon` rounds.

    Examples
    --------
    >>> from learnable.decisions.bandits import UCB, EpsilonGreedy, stochastic, upper_bound
    >>> round(upper_bound(UCB(2), stochastic([0.4, 0.6]), 1000).value, 2)
    277.17
    >>> upper_bound(EpsilonGreedy(2), stochastic([0.4, 0.6]), 1000).reason
    'a fixed epsilon explores for ever: the regret grows linearly'
    """
    n = horizon
    k = environment.n_arms
    if isinstance(policy, policies.EXP3):
        return _exp3(policy, environment, n)
    failing = _fails(policy, environment)
    if failing:
        return Bound(None, failing)
    gaps = environment.gaps[environment.gaps > 0.0]
    scale = 0.5 if environment.kind == "bernoulli" else float(environment.sigma.max())
    if type(policy) is policies.UCB:
        return _ucb(policy, environment, n, gaps, scale)
    if isinstance(policy, policies.ExploreThenCommit):
        m = policy.rounds_per_arm
        if m * k > n:
            return Bound(None, f"the rounds are over before every arm was played {m} times")
        value = m * gaps.sum() + (n - m * k) * (gaps * np.exp(-m * gaps**2 / (4.0 * scale**2))).sum()
        return Bound(float(value), "Lattimore and Szepesvári 2020, theorem 6.1")
    if isinstance(policy, policies.MOSS):
        if policy.horizon != n or policy.sigma < scale:
            return Bound(None, f"needs horizon={n} and sigma of at least {scale:g}")
        value = 39.0 * policy.sigma * math.sqrt(k * n) + gaps.sum()
        return Bound(float(value), "Lattimore and Szepesvári 2020, theorem 9.1")
    if isinstance(policy, policies.EpsilonGreedy):
        if policy.decay == 0.0:
            return Bound(None, "a fixed epsilon explores for ever: the regret grows linearly")
        return Bound(None, "the bound for decaying epsilon needs the least gap to be known")
    if isinstance(policy, (policies.Thompson, policies.KLUCB)):
        return Bound(None, "reaches Lai and Robbins' bound in the limit; no constants are proved for finite horizons")
    return Bound(None, "no bound is proved for this policy")


def lai_robbins(environment: Environment, horizon: int) -> float | None:
    """Return Σ Δ_a log n / KL(a, best): what every policy that learns everywhere loses, in the limit of large n.

    Examples
    --------
    >>> from learnable.decisions.bandits import lai_robbins, stochastic
    >>> round(lai_robbins(stochastic([0.0, 1.0], sigma=1.0), 1000), 3)
    13.816
    """
    if not environment.is_stationary or not environment.laws:
        return None
    gaps = environment.gaps
    best = environment.laws[int(np.argmax(environment.means[0]))]
    total = 0.0
    for gap, law in zip(gaps, environment.laws, strict=True):
        if gap > 0.0:
            if type(law) is not type(best):
                return None
            divergence = float(law.kl(best))
            total += 0.0 if math.isinf(divergence) else float(gap) / divergence
    return total * math.log(horizon)


def minimax(environment: Environment, horizon: int) -> float:
    """Return what every policy loses on some problem with as many arms: its regret is there at least this much."""
    k = environment.n_arms
    if environment.kind == "normal":
        return float(environment.sigma.max()) * math.sqrt((k - 1) * horizon) / 27.0
    return min(math.sqrt(k * horizon), float(horizon)) / 20.0


def worst_case(n_arms: int, horizon: int, raised: int | None = None) -> Environment:
    """Return the unit normal problems of the minimax bound's proof (theorem 15.2).

    The first arm is better by Δ = √((k−1)/(4n)); with `raised`, that arm is better by 2Δ. On one of the two, with
    the arm raised that a policy plays least on the first, it loses at least √((k−1)n)/27.
    """
    from .environments import stochastic

    gap = math.sqrt((n_arms - 1) / (4.0 * horizon))
    means = np.zeros(n_arms)
    means[0] = gap
    if raised is not None:
        means[raised] = 2.0 * gap
    return stochastic(means, sigma=1.0)


def _fails(policy: Policy, environment: Environment) -> str:
    """Return which assumption of the bounds for random rewards does not hold; empty if all do."""
    if environment.kind == "table":
        return "the rewards are an adversary's, not independent draws; use EXP3"
    if not environment.is_stationary:
        return "the rewards drift; the bounds are for laws that stay"
    if environment.kind == "family":
        return "rewards of these laws are not known to be bounded or subgaussian"
    if environment.delay > 0.0:
        return "rewards come late; the bounds are for rewards that are seen at once"
    if len(environment.corruption) and abs(environment.corruption).max() > 0.0:
        return "rewards are corrupted"
    if math.isfinite(environment.budget):
        return "the budget ends play; the bounds are for a fixed number of rounds"
    return ""


def _ucb(policy: Any, environment: Environment, n: int, gaps: Any, scale: float) -> Bound:
    if policy.sigma < scale:
        return Bound(None, f"rewards are {scale:g}-subgaussian, and the policy assumes sigma={policy.sigma:g}")
    if policy.beta == "ucb1":
        if policy.sigma != 0.5 or environment.kind != "bernoulli":
            return Bound(None, "Auer's bound is for rewards in [0, 1] with sigma = 1/2; use beta='delta'")
        value = (8.0 * math.log(n) / gaps).sum() + (1.0 + math.pi**2 / 3.0) * gaps.sum()
        return Bound(float(value), "Auer, Cesa-Bianchi and Fischer 2002, theorem 1")
    if policy.beta == "delta":
        if not math.isclose(policy.delta, float(n) ** -2, rel_tol=1e-9):
            return Bound(None, f"needs delta = 1/n² = {float(n) ** -2:.3g}; it is {policy.delta:.3g}")
        value = 3.0 * gaps.sum() + (16.0 * policy.sigma**2 * math.log(n) / gaps).sum()
        return Bound(float(value), "Lattimore and Szepesvári 2020, theorem 7.1")
    return Bound(None, "no bound is proved for this schedule of beta")


def _exp3(policy: Any, environment: Environment, n: int) -> Bound:
    if environment.kind == "normal" or environment.kind == "family":
        return Bound(None, "rewards are not confined to [0, 1]")
    if environment.delay > 0.0 or math.isfinite(environment.budget) or policy.mix > 0.0:
        return Bound(None, "the bound is for rewards that are seen at once, without a budget and without mixing")
    if len(environment.corruption):
        return Bound(None, "the regret is counted in rewards that the policy does not see")
    if len(environment.means) > 1 and environment.kind != "table":
        return Bound(None, "the bound is against the best single arm, and the best arm changes")
    k = environment.n_arms
    if isinstance(policy, policies.EXP3IX):
        if policy.horizon != n or policy.eta is not None or k < 2:
            return Bound(None, f"needs horizon={n} and the rate that follows from it")
        # Neu bounds the regret by a + b log(2/δ) with probability 1 − δ; integrated over δ that is a + b (1 + log 2).
        b = math.sqrt(2.0 * k * n / math.log(k)) + 1.0
        return Bound(2.0 * math.sqrt(2.0 * k * n * math.log(k)) + b * (1.0 + math.log(2.0)), "Neu 2015, theorem 1")
    value = math.log(environment.n_arms) / policy.rate + policy.rate * n * environment.n_arms / 2.0
    return Bound(value, "Lattimore and Szepesvári 2020, theorem 11.2")
