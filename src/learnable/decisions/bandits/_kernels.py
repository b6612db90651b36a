"""Compiled policies: what each plays and learns, and whole simulations of it.

A policy is a code, numbers `par`, a schedule (β_t, ε_t, … by round) and a state:

- `arms` (6, k): rounds, sum of rewards, log-weight, probability of being played now, 1 if the arm is there, cost
- `meta` (4,): rounds played, the arm that is committed to, first free place of the window, places in use
- `ring` (2, W): arms and rewards of the last W rounds, for policies that forget

`act` and `update` serve one decision; `run` plays replications × rounds of it with the same functions, so that a policy
in use and a simulated one are the same. The slow twins are in `tests/oracles/bandits.py`.
"""

from __future__ import annotations

import math

import numpy as np

from ...core.jit import lean_kernel
from .._random import beta, gamma, normal, pick, uniform

# Rows of `arms`.
COUNT = 0
SUM = 1
WEIGHT = 2
CHANCE = 3
ACTIVE = 4
COST = 5
# Places of `meta`.
ROUND = 0
COMMITTED = 1
HEAD = 2
USED = 3
# Codes of policies.
UNIFORM = 0
EXPLORE_THEN_COMMIT = 1
EPSILON_GREEDY = 2
UCB = 3
MOSS = 4
KL_UCB = 5
LCB = 6
THOMPSON_BETA = 7
THOMPSON_NORMAL = 8
THOMPSON_POISSON = 9
THOMPSON_EXPONENTIAL = 10
EXP3 = 11
EXP3_IX = 12
SLIDING_UCB = 13
DISCOUNTED_UCB = 14
BUDGET_UCB = 15
# Codes of environments.
BERNOULLI = 0
NORMAL = 1
TABLE = 2


@lean_kernel
def bernoulli_kl(p, q):  # type: ignore[no-untyped-def]
    """Return the divergence of Bernoulli laws, p log(p/q) + (1 − p) log((1 − p)/(1 − q))."""
    total = 0.0
    if p > 0.0:
        total += p * math.log(p / q)
    if p < 1.0:
        total += (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return total


@lean_kernel
def kl_upper(mean, bound):  # type: ignore[no-untyped-def]
    """Return the greatest q with kl(mean, q) ≤ bound, by bisection to rounding."""
    low = min(max(mean, 0.0), 1.0)
    mean = low
    high = min(low + math.sqrt(0.5 * bound) + 1e-300, 1.0)  # Pinsker
    for _ in range(40):
        middle = 0.5 * (low + high)
        if middle >= 1.0 or bernoulli_kl(mean, middle) > bound:
            high = middle
        else:
            low = middle
    return low


@lean_kernel
def kl_bounds(means, counts, rate, low, high):  # type: ignore[no-untyped-def]
    """Set the ends of {q: count · kl(mean, q) ≤ rate} of each arm. OUT low, high (k,)."""
    for a in range(len(means)):
        high[a] = kl_upper(means[a], rate / counts[a])
        low[a] = 1.0 - kl_upper(1.0 - means[a], rate / counts[a])


@lean_kernel
def _index(code, par, scheduled, t, count, total, cost):  # type: ignore[no-untyped-def]
    """Return what a policy that plays the greatest index gives one arm that has been played."""
    mean = total / count
    if code == UCB:
        return mean + math.sqrt(scheduled / count) + par[1] / count  # par[1]: budget of corruption
    if code == MOSS:
        return mean + par[1] * math.sqrt(4.0 * max(math.log(par[0] / count), 0.0) / count)
    if code == KL_UCB:
        return kl_upper(mean, scheduled / count)
    if code == LCB:
        return mean - math.sqrt(scheduled / count)
    if code == SLIDING_UCB:
        return mean + par[1] * math.sqrt(par[2] * math.log(max(min(t, par[0]), 2.0)) / count)
    if code == DISCOUNTED_UCB:
        return mean + par[1] * math.sqrt(par[2] * math.log(max(par[3], 2.0)) / count)
    if code == BUDGET_UCB:
        bonus = math.sqrt(scheduled / count)
        least = max(cost / count - par[0] * bonus, par[1])
        return min(mean + bonus, 1.0) / least
    return mean


@lean_kernel
def _draw(code, par, rng, count, total):  # type: ignore[no-untyped-def]
    """Return one draw of the mean of an arm from its posterior."""
    if code == THOMPSON_BETA:
        return beta(rng, par[0] + total, par[1] + count - total)
    if code == THOMPSON_NORMAL:  # prior N(par[0], par[1]), rewards of variance par[2]
        precision = 1.0 / par[1] + count / par[2]
        mean = (par[0] / par[1] + total / par[2]) / precision
        return mean + normal(rng) / math.sqrt(precision)
    if code == THOMPSON_POISSON:  # rate ~ Gamma(par[0], rate par[1])
        return gamma(rng, par[0] + total) / (par[1] + count)
    return (par[1] + total) / gamma(rng, par[0] + count)  # mean of an exponential law: one over its rate


@lean_kernel
def _greatest_mean(arms):  # type: ignore[no-untyped-def]
    """Return the arm that is there with the greatest mean; the first of equals, and an arm not yet played first."""
    best = -np.inf
    at = -1
    for a in range(arms.shape[1]):
        if arms[ACTIVE, a] > 0.0:
            mean = np.inf
            if arms[COUNT, a] > 0.0:
                mean = arms[SUM, a] / arms[COUNT, a]
            if mean > best:
                best = mean
                at = a
    return at


@lean_kernel
def _set_certain(arms, arm):  # type: ignore[no-untyped-def]
    for a in range(arms.shape[1]):
        arms[CHANCE, a] = 0.0
    arms[CHANCE, arm] = 1.0


@lean_kernel
def _exponential_weights(arms, floor):  # type: ignore[no-untyped-def]
    """Set the probabilities of arms in proportion to exp(log-weight), mixed with `floor` of equal shares."""
    k = arms.shape[1]
    top = -np.inf
    n_active = 0.0
    for a in range(k):
        if arms[ACTIVE, a] > 0.0:
            top = max(top, arms[WEIGHT, a])
            n_active += 1.0
    total = 0.0
    for a in range(k):
        arms[CHANCE, a] = 0.0
        if arms[ACTIVE, a] > 0.0:
            arms[CHANCE, a] = math.exp(arms[WEIGHT, a] - top)
            total += arms[CHANCE, a]
    for a in range(k):
        if arms[ACTIVE, a] > 0.0:
            arms[CHANCE, a] = (1.0 - floor) * arms[CHANCE, a] / total + floor / n_active


@lean_kernel
def _mixed(code, par, scheduled, rng, arms):  # type: ignore[no-untyped-def]
    """Play one of the policies that state probabilities: uniform, ε-greedy, EXP3."""
    if code == EPSILON_GREEDY:
        n_active = arms[ACTIVE].sum()
        best = _greatest_mean(arms)
        for a in range(arms.shape[1]):
            arms[CHANCE, a] = arms[ACTIVE, a] * scheduled / n_active
        arms[CHANCE, best] += 1.0 - scheduled
    elif code == UNIFORM:
        _exponential_weights(arms, 1.0)
    else:
        _exponential_weights(arms, par[2])
    return pick(rng, arms[CHANCE])


@lean_kernel
def _sampled(code, par, rng, arms):  # type: ignore[no-untyped-def]
    """Play the arm whose draw from the posterior is greatest."""
    best = -np.inf
    at = -1
    for a in range(arms.shape[1]):
        if arms[ACTIVE, a] > 0.0:
            value = _draw(code, par, rng, arms[COUNT, a], arms[SUM, a])
            if value > best or at < 0:
                best = value
                at = a
    for a in range(arms.shape[1]):
        arms[CHANCE, a] = np.nan  # computed when it is asked for: it takes an integral
    return at


@lean_kernel
def act(code, par, scheduled, rng, arms, meta):  # type: ignore[no-untyped-def]
    """Return the arm to play now and set the probabilities of all.

    IN code, par; scheduled: β_t or ε_t of this round. IN/OUT rng (4,), arms, meta.
    """
    k = arms.shape[1]
    if code in (UNIFORM, EPSILON_GREEDY, EXP3, EXP3_IX):
        return _mixed(code, par, scheduled, rng, arms)
    if THOMPSON_BETA <= code <= THOMPSON_EXPONENTIAL:
        return _sampled(code, par, rng, arms)
    least = 0.5  # rounds that an arm needs before it has an index
    if code == EXPLORE_THEN_COMMIT:
        least = par[0] - 0.5
    if code in (SLIDING_UCB, DISCOUNTED_UCB):
        least = 1e-6
    fewest = np.inf
    arm = -1
    for a in range(k):
        if arms[ACTIVE, a] > 0.0 and arms[COUNT, a] < least and arms[COUNT, a] < fewest:
            fewest = arms[COUNT, a]
            arm = a
    if arm >= 0:
        _set_certain(arms, arm)
        return arm
    if code == EXPLORE_THEN_COMMIT:
        arm = int(meta[COMMITTED])
        if arm < 0 or arms[ACTIVE, arm] == 0.0:
            arm = _greatest_mean(arms)
            meta[COMMITTED] = arm
        _set_certain(arms, arm)
        return arm
    if code == DISCOUNTED_UCB:
        par[3] = arms[COUNT].sum()
    best = -np.inf
    for a in range(k):
        if arms[ACTIVE, a] > 0.0:
            value = _index(code, par, scheduled, meta[ROUND] + 1.0, arms[COUNT, a], arms[SUM, a], arms[COST, a])
            if value > best or arm < 0:
                best = value
                arm = a
    _set_certain(arms, arm)
    return arm


@lean_kernel
def update(code, par, arms, meta, ring, arm, reward, chance, cost):  # type: ignore[no-untyped-def]
    """Learn from one reward. IN chance: the probability with which the arm was played. IN/OUT arms, meta, ring."""
    meta[ROUND] += 1.0
    if code == EXP3:  # par[0]: η; the estimated loss of the arm, (1 − x)/p, keeps log-weights at or below zero
        arms[WEIGHT, arm] -= par[0] * (1.0 - reward) / chance
    elif code == EXP3_IX:
        arms[WEIGHT, arm] -= par[0] * (1.0 - reward) / (chance + par[1])
    elif code == DISCOUNTED_UCB:
        for a in range(arms.shape[1]):
            arms[COUNT, a] *= par[0]
            arms[SUM, a] *= par[0]
    elif code == SLIDING_UCB:
        width = ring.shape[1]
        at = int(meta[HEAD])
        if meta[USED] >= width:  # the oldest round leaves the window
            old = int(ring[0, at])
            if old >= 0:
                arms[COUNT, old] -= 1.0
                arms[SUM, old] -= ring[1, at]
                if arms[COUNT, old] < 0.5:
                    arms[SUM, old] = 0.0
        else:
            meta[USED] += 1.0
        ring[0, at] = arm
        ring[1, at] = reward
        meta[HEAD] = (at + 1) % width
    arms[COUNT, arm] += 1.0
    arms[SUM, arm] += reward
    arms[COST, arm] += cost


@lean_kernel
def draw_reward(kind, given, t, mean, spread, arm, rng):  # type: ignore[no-untyped-def]
    """Return the reward of an arm. Each round uses the stream alike, whichever arm is played."""
    if kind == BERNOULLI:
        return 1.0 if uniform(rng) < mean else 0.0
    if kind == NORMAL:
        return mean + spread[arm] * normal(rng)
    return given[t, arm]


@lean_kernel
def run(  # type: ignore[no-untyped-def]
    code, par, schedule, arms, meta, ring, rng, kind, means, given, spread, corruption, costs, budget, delay, late,
    noise, due, points, regret, earned, by_arm, stop
):  # fmt: skip
    """Play one replication.

    IN schedule (T or 1,); means (T or 1, k); given (T or 0, k) rewards that are not drawn here; spread (k,); corruption
    (T or 0, k) added to what the policy sees; costs (k,) and budget; delay: rounds until a reward is seen, or the
    mean of a geometric
    law if `late`; points (C,) rounds at which sums are written. IN/OUT arms, meta, ring, rng: the policy; noise (4,)
    the environment's stream; due (5, T or 0): rewards on their way. OUT regret, earned (C,); by_arm (2, k): rounds and
    regret of each arm. Returns the number of rounds played.
    """
    T = int(points[len(points) - 1])
    k = arms.shape[1]
    lost = 0.0
    gained = 0.0
    at = 0
    left = budget
    waiting = 0
    played = 0
    for t in range(T):
        if stop[0] != 0:
            return -1
        row = min(t, means.shape[0] - 1)
        # What was due by now is learned before the next decision, in the order in which it became due.
        i = 0
        while i < waiting:
            if due[0, i] <= t:
                update(code, par, arms, meta, ring, int(due[1, i]), due[2, i], due[3, i], due[4, i])
                for j in range(i, waiting - 1):
                    for f in range(5):
                        due[f, j] = due[f, j + 1]
                waiting -= 1
            else:
                i += 1
        arm = act(code, par, schedule[min(int(meta[ROUND]), len(schedule) - 1)], rng, arms, meta)
        cost = costs[arm]
        if cost > left:
            break
        left -= cost
        chance = arms[CHANCE, arm]
        reward = draw_reward(kind, given, t, means[row, arm], spread, arm, noise)
        best = means[row, 0]
        for a in range(1, k):
            best = max(best, means[row, a])
        lost += best - means[row, arm]
        by_arm[0, arm] += 1.0
        by_arm[1, arm] += best - means[row, arm]
        gained += reward
        seen = reward
        if corruption.shape[0] > 0:
            seen += corruption[min(t, corruption.shape[0] - 1), arm]
        if delay <= 0.0:
            update(code, par, arms, meta, ring, arm, seen, chance, cost)
        else:
            wait = delay
            if late:
                wait = math.floor(math.log(1.0 - uniform(noise)) / math.log(1.0 - 1.0 / (1.0 + delay)))
            due[0, waiting] = t + 1 + wait
            due[1, waiting] = arm
            due[2, waiting] = seen
            due[3, waiting] = chance
            due[4, waiting] = cost
            waiting += 1
        played += 1
        while at < len(points) and t + 1 >= points[at]:
            regret[at] = lost
            earned[at] = gained
            at += 1
    while at < len(points):
        regret[at] = lost
        earned[at] = gained
        at += 1
    return played
