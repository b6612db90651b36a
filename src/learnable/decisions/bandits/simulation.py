"""Simulation of policies: thousands of replications in compiled loops, regret by arm, and the bounds beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from ...core import MAX_SECONDS, N_JOBS, AnyArray, DataError, Number, ParameterError, StopFlag, check_parameters
from ...plots.markup import Markup
from .._random import make_streams
from ..chunks import Clock, over_ranges
from ._kernels import run
from .bounds import Bound, lai_robbins, minimax, upper_bound
from .environments import Environment
from .policy import Policy
from .posterior_sampling import PosteriorSampling

_POINTS = 200


@dataclass(frozen=True, eq=False)
class Regret:
    """What one policy lost in many replications.

    Attributes
    ----------
    policy : str
        Its name.
    rounds : array of shape (C,)
        Rounds at which sums were taken.
    mean, lower, upper : arrays of shape (C,)
        Mean pseudo-regret after these rounds with its interval.
    pulls : array of shape (k,)
        Mean number of rounds of each arm.
    by_arm : array of shape (k, 3)
        Mean pseudo-regret that each arm caused, with its interval.
    final : array of shape (replications,)
        Pseudo-regret of every replication at the end.
    earned : array of shape (replications,)
        Rewards of every replication.
    played : array of shape (replications,)
        Rounds played; fewer than the horizon where a budget ended play.
    bound : Bound
        The policy's proved upper bound at the horizon, or why none holds.
    lai_robbins : float or None
        What every policy that learns everywhere loses in the limit; an asymptote, not a bound at this horizon.
    minimax : float
        What every policy loses on some problem of this size; not a bound for this problem.
    level : float
        Probability of the intervals.
    """

    policy: str
    rounds: AnyArray
    mean: AnyArray
    lower: AnyArray
    upper: AnyArray
    pulls: AnyArray
    by_arm: AnyArray
    final: AnyArray
    earned: AnyArray
    played: AnyArray
    bound: Bound
    lai_robbins: float | None
    minimax: float
    level: float

    def __str__(self) -> str:
        last = f"{self.mean[-1]:.4g} [{self.lower[-1]:.4g}, {self.upper[-1]:.4g}]"
        proved = f"at most {self.bound.value:.4g}" if self.bound.value is not None else f"none: {self.bound.reason}"
        limit = "" if self.lai_robbins is None else f"; Lai-Robbins {self.lai_robbins:.4g}"
        return f"{self.policy}: regret {last} after {int(self.rounds[-1])} rounds; proved: {proved}{limit}"


class Simulation(dict[str, Regret]):
    """The regret of each policy by its name; `plot()` draws them, `str()` lists them.

    Examples
    --------
    >>> from learnable.decisions.bandits import UCB, simulate, stochastic
    >>> found = simulate(UCB(2), stochastic([0.2, 0.8]), 100, 20)
    >>> list(found), found.plot().startswith("<svg")
    (['UCB'], True)
    """

    def __str__(self) -> str:
        return "\n".join(str(result) for result in self.values())

    def plot(self, *, title: str = "Pseudo-regret") -> Markup:
        """Draw the mean regret of each policy with its band, and the bounds that hold."""
        from .draw import draw_regret

        return draw_regret(self, title=title)


def simulate(
    policies: Any,
    environment: Environment,
    horizon: int,
    replications: int = 1000,
    *,
    level: float = 0.95,
    random_state: Any = 0,
    n_jobs: int | None = None,
    max_seconds: float | None = None,
) -> Simulation:
    """Play policies many times and report what they lose.

    Every replication has streams of its own for the policy and for the environment, so that results have the same bits
    for any `n_jobs`; all policies meet the same environment.

    Parameters
    ----------
    policies : Policy, sequence of Policy, or mapping of names to Policy
        Their settings are used; they learn nothing themselves.
    environment : Environment
        Of `stochastic`, `drifting` or `adversarial`.
    horizon : int
        Rounds of a replication.
    replications : int
        How many; intervals need at least two.
    level : float
        Probability of the intervals of means.
    random_state : int, Generator or None
        Seed.
    n_jobs : int, optional
        Threads.
    max_seconds : float, optional
        After this time no replication of a policy is begun; results are of those that were played, at least two.

    Returns
    -------
    Simulation
        A `Regret` for each policy.

    Examples
    --------
    >>> from learnable.decisions.bandits import UCB, Thompson, simulate, stochastic
    >>> found = simulate([UCB(2), Thompson(2)], stochastic([0.3, 0.7]), 1000, 200)
    >>> found["UCB"].mean[-1] < found["UCB"].bound.value
    np.True_
    """
    limits = {"horizon": horizon, "replications": replications, "n_jobs": n_jobs, "level": level}
    whole = Number(low=1, integer=True)
    inside = Number(low=0.0, high=1.0, low_open=True, high_open=True)
    rules = {"horizon": whole, "replications": Number(low=2, integer=True), "n_jobs": N_JOBS, "level": inside}
    check_parameters("simulate", limits | {"max_seconds": max_seconds}, rules | {"max_seconds": MAX_SECONDS})
    named = name_policies(policies)
    if environment.kind == "table" and len(environment.means) < horizon:
        raise DataError(
            f"simulate: the adversary's table has {len(environment.means)} rounds, fewer than the horizon {horizon}."
        )
    for name, policy in named.items():
        if policy.n_arms != environment.n_arms:
            raise DataError(f"simulate: {name} has {policy.n_arms} arms and the environment {environment.n_arms}.")
        _check_range(name, policy, environment)
    return Simulation(
        {
            name: _simulate_one(
                name, policy, environment, horizon, replications, level, random_state, n_jobs, max_seconds
            )
            for name, policy in named.items()
        }
    )


def name_policies(policies: Any) -> dict[str, Policy]:
    """Return the policies by name; of equal names the later ones get a number."""
    if isinstance(policies, Policy):
        policies = [policies]
    if isinstance(policies, Mapping):
        return dict(policies)
    named: dict[str, Policy] = {}
    for policy in policies if isinstance(policies, Sequence) else list(policies):
        if not isinstance(policy, Policy):
            raise ParameterError(f"simulate: policies must be Policy objects; got {policy!r}.")
        name = type(policy).__name__
        number = 2
        while name in named:
            name = f"{type(policy).__name__} {number}"
            number += 1
        named[name] = policy
    return named


def _check_range(name: str, policy: Policy, environment: Environment) -> None:
    if policy.reward_range is None or environment.kind in ("bernoulli", "table"):
        return
    low, high = policy.reward_range
    if environment.kind == "normal" or environment.means.min() < low or environment.means.max() > high:
        raise DataError(
            f"simulate: {name} is for rewards from {low:g} to {high:g}, and the environment's {environment.kind} "
            "rewards go beyond; rescale them or use another policy."
        )


def _simulate_one(
    name: str,
    policy: Policy,
    environment: Environment,
    horizon: int,
    replications: int,
    level: float,
    random_state: Any,
    n_jobs: int | None,
    max_seconds: float | None,
) -> Regret:
    k = environment.n_arms
    points = np.unique(np.linspace(1, horizon, min(_POINTS, horizon)).round().astype(np.int64))
    played = np.zeros(replications, dtype=np.int64)
    regret = np.zeros((replications, len(points)))
    earned = np.zeros((replications, len(points)))
    by_arm = np.zeros((replications, 2, k))
    seeds = make_streams(random_state, replications, purpose=1)
    noise = make_streams(random_state, replications, purpose=2)
    schedule = policy.schedule(horizon)
    costs = environment.costs if len(environment.costs) else np.zeros(k)
    flag = StopFlag()
    clock = Clock(max_seconds)

    def work(lo: int, hi: int) -> None:
        for rep in range(lo, hi):
            if rep >= 2 and clock.is_over:
                return
            given = environment.means if environment.kind == "table" else np.zeros((0, k))
            if environment.kind == "family":
                given = environment.rewards(horizon, np.random.Generator(np.random.PCG64(noise[rep])))
            state = policy._new_state(seeds[rep])
            due = np.zeros((5, horizon if environment.delay > 0.0 else 0))
            played[rep] = run(
                policy.code, state["par"], schedule, state["arms"], state["meta"], state.get("ring", np.zeros((2, 0))),
                state["rng"], environment.code, environment.means, given, environment.sigma, environment.corruption,
                costs, environment.budget, environment.delay, environment.random_delay, noise[rep].copy(), due, points,
                regret[rep], earned[rep], by_arm[rep], flag.array,
            )  # fmt: skip

    if isinstance(policy, PosteriorSampling):
        _play_in_python(policy, environment, points, seeds, noise, regret, earned, by_arm, played)
    else:
        try:
            over_ranges(work, replications, n_jobs, 1)
        except BaseException:
            flag.raise_()
            raise
    whole = played > 0  # all, unless the time was up
    regret = regret[whole]
    earned = earned[whole]
    by_arm = by_arm[whole]
    played = played[whole]
    if environment.kind == "table":  # against the best single arm
        best = np.cumsum(environment.means[:horizon], axis=0).max(axis=1)[points - 1]
        regret = best - earned
        by_arm[:, 1] = np.nan
    bound = upper_bound(policy, environment, horizon)
    return _summarise(name, points, regret, earned, by_arm, played, bound, environment, horizon, level)


def _play_in_python(
    policy: PosteriorSampling,
    environment: Environment,
    points: AnyArray,
    seeds: AnyArray,
    noise: AnyArray,
    regret: AnyArray,
    earned: AnyArray,
    by_arm: AnyArray,
    played: AnyArray,
) -> None:
    """Play a policy that is not compiled, one decision after the other."""
    if environment.kind == "table" or environment.delay or len(environment.corruption) or len(environment.costs):
        raise DataError("simulate: PosteriorSampling is simulated with plain random rewards only.")
    horizon = int(points[-1])
    for rep in range(len(regret)):
        rng = np.random.Generator(np.random.PCG64(noise[rep]))
        player = policy.restart()
        player.state["rng"] = seeds[rep].copy()
        table = environment.rewards(horizon, rng)
        arms = np.empty(horizon, dtype=np.int64)
        for t in range(horizon):
            arms[t] = player.act()
            player.update(int(arms[t]), table[t, arms[t]])
        regret[rep] = np.cumsum(environment.gaps[arms])[points - 1]
        earned[rep] = np.cumsum(table[np.arange(horizon), arms])[points - 1]
        by_arm[rep, 0] = np.bincount(arms, minlength=environment.n_arms)
        by_arm[rep, 1] = by_arm[rep, 0] * environment.gaps
        played[rep] = horizon


def _summarise(
    name: str,
    points: AnyArray,
    regret: AnyArray,
    earned: AnyArray,
    by_arm: AnyArray,
    played: AnyArray,
    bound: Bound,
    environment: Environment,
    horizon: int,
    level: float,
) -> Regret:
    n = len(regret)
    reach = float(stats.t.ppf(0.5 + level / 2.0, n - 1)) / np.sqrt(n)
    mean = regret.mean(axis=0)
    half = reach * regret.std(axis=0, ddof=1)
    arm_mean = by_arm[:, 1].mean(axis=0)
    arm_half = reach * by_arm[:, 1].std(axis=0, ddof=1)
    return Regret(
        policy=name,
        rounds=points,
        mean=mean,
        lower=mean - half,
        upper=mean + half,
        pulls=by_arm[:, 0].mean(axis=0),
        by_arm=np.column_stack([arm_mean, arm_mean - arm_half, arm_mean + arm_half]),
        final=regret[:, -1],
        earned=earned[:, -1],
        played=played,
        bound=bound,
        lai_robbins=lai_robbins(environment, horizon),
        minimax=minimax(environment, horizon),
        level=level,
    )
