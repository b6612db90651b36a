"""Compiled tabular learners: `begin` and `observe` are one decision each, `episodes` plays whole runs of them.

A learner is a code, numbers `par`, and a memory of arrays:

- Q (2, S, A): action values; the second table is used by double Q-learning alone
- N (2, S, A): visits, and updates (or cumulated importance weights)
- E (S, A): eligibility traces, or marks of first visits
- model (3, S, A): last next state, reward and end that were seen, for Dyna; seen (S·A + 1,): the pairs that were,
  and how many
- path (5, L): states, actions, rewards, probabilities of the episode so far; meta (4,): its length, what is updated,
  rounds

An environment is a table: `first` (S·A + 1,) rows of each pair, `cum` their cumulated probabilities, `to`, `gain`,
`ends`. A step that `ends` is followed by no value; an episode that is cut off (`cut`) still is. The slow twins are in
`tests/oracles/rl.py`.
"""

from __future__ import annotations

import math

import numpy as np

from ...core.jit import lean_kernel
from .._random import pick, uniform

# Codes of learners.
Q_LEARNING = 0
SARSA = 1
EXPECTED_SARSA = 2
DOUBLE_Q = 3
N_STEP_SARSA = 4
SARSA_LAMBDA = 5
DYNA_Q = 6
MONTE_CARLO = 7
OFF_POLICY_MONTE_CARLO = 8
# Codes of exploration.
EPSILON = 0
SOFTMAX = 1
UCB = 2
# Places of `par`.
ALPHA = 0
GAMMA = 1
EXPLORE = 2  # ε, temperature, or c
DECAY = 3  # ε falls as ε / (1 + decay · episodes)
OMEGA = 4  # if positive, the step is N^(−ω) instead of α
LAMBDA = 5
STEPS = 6  # n of n-step, or planning steps
FIRST = 7  # whether only first visits count
REPLACING = 8  # whether traces are replaced
# Places of `meta`.
LENGTH = 0
DONE = 1
ROUND = 2
EPISODE = 3


@lean_kernel
def chances(explore, par, Q, N, allowed, s, meta, out):  # type: ignore[no-untyped-def]
    """Set the probabilities of the actions in state s; equally good ones share."""
    k = Q.shape[2]
    best = -np.inf
    for a in range(k):
        out[a] = -np.inf
        if allowed[s, a]:
            value = Q[0, s, a] + Q[1, s, a]
            if explore == UCB:
                if N[0, s, a] == 0.0:
                    value = np.inf
                else:
                    value += par[EXPLORE] * math.sqrt(math.log(meta[ROUND] + 1.0) / N[0, s, a])
            out[a] = value
            best = max(best, value)
    total = 0.0
    n_allowed = 0.0
    for a in range(k):
        if allowed[s, a]:
            n_allowed += 1.0
            if explore == SOFTMAX:
                out[a] = math.exp((out[a] - best) / par[EXPLORE])
            else:
                out[a] = 1.0 if out[a] == best else 0.0
            total += out[a]
        else:
            out[a] = 0.0
    epsilon = 0.0
    if explore == EPSILON:
        epsilon = par[EXPLORE] / (1.0 + par[DECAY] * meta[EPISODE])
    for a in range(k):
        if allowed[s, a]:
            out[a] = (1.0 - epsilon) * out[a] / total + epsilon / n_allowed


@lean_kernel
def _best_value(Q, table, allowed, s):  # type: ignore[no-untyped-def]
    best = -np.inf
    for a in range(Q.shape[2]):
        if allowed[s, a]:
            best = max(best, Q[table, s, a])
    return best


@lean_kernel
def _best_action(Q, table, allowed, s):  # type: ignore[no-untyped-def]
    """Return the first of the best actions."""
    at = -1
    for a in range(Q.shape[2]):
        if allowed[s, a] and (at < 0 or Q[table, s, a] > Q[table, s, at]):
            at = a
    return at


@lean_kernel
def _step_size(par, N, s, a):  # type: ignore[no-untyped-def]
    if par[OMEGA] > 0.0:
        return N[0, s, a] ** (-par[OMEGA])
    return par[ALPHA]


@lean_kernel
def _double_update(par, Q, N, allowed, s, a, r, s2, ends, rng):  # type: ignore[no-untyped-def]
    """Update one table at the action that it finds best with the value that the other gives it."""
    one = 1 if uniform(rng) < 0.5 else 0
    target = r
    if not ends:
        target += par[GAMMA] * Q[1 - one, s2, _best_action(Q, one, allowed, s2)]
    Q[one, s, a] += _step_size(par, N, s, a) * (target - Q[one, s, a])


@lean_kernel
def _plan(par, Q, N, allowed, model, seen, s, a, r, s2, ends, rng):  # type: ignore[no-untyped-def]
    """Remember what followed the pair, then learn from pairs that are drawn from memory (Dyna)."""
    k = Q.shape[2]
    if model[0, s, a] < 0.0:
        seen[seen[len(seen) - 1]] = s * k + a
        seen[len(seen) - 1] += 1
    model[0, s, a] = s2
    model[1, s, a] = r
    model[2, s, a] = 1.0 if ends else 0.0
    for _ in range(int(par[STEPS])):
        pair = seen[int(uniform(rng) * seen[len(seen) - 1])]
        i, j = pair // k, pair % k
        target = model[1, i, j]
        if model[2, i, j] == 0.0:
            target += par[GAMMA] * _best_value(Q, 0, allowed, int(model[0, i, j]))
        Q[0, i, j] += _step_size(par, N, i, j) * (target - Q[0, i, j])


@lean_kernel
def _n_step(par, Q, N, path, meta, tail, over):  # type: ignore[no-untyped-def]
    """Update the pairs whose n steps are complete, all that are left at the end. IN tail: value after the last step."""
    n = int(par[STEPS])
    length = int(meta[LENGTH])
    while meta[DONE] < length and (over or length - meta[DONE] >= n):
        at = int(meta[DONE])
        last = min(at + n, length)
        total = tail if last == length else 0.0
        for i in range(last - 1, at - 1, -1):
            total = path[2, i] + par[GAMMA] * total
        s, a = int(path[0, at]), int(path[1, at])
        Q[0, s, a] += _step_size(par, N, s, a) * (total - Q[0, s, a])
        meta[DONE] += 1.0


@lean_kernel
def _trace(par, Q, N, E, s, a, r, tail, over):  # type: ignore[no-untyped-def]
    """Do one step of SARSA(λ)."""
    delta = r + par[GAMMA] * tail - Q[0, s, a]
    E[s, a] = 1.0 if par[REPLACING] > 0.0 else E[s, a] + 1.0
    step = _step_size(par, N, s, a)
    fade = 0.0 if over else par[GAMMA] * par[LAMBDA]
    for i in range(E.shape[0]):
        for j in range(E.shape[1]):
            if E[i, j] != 0.0:
                Q[0, i, j] += step * delta * E[i, j]
                E[i, j] *= fade


@lean_kernel
def _returns(par, Q, N, E, path, meta, tail):  # type: ignore[no-untyped-def]
    """Learn from the returns of a whole episode (Monte Carlo). IN tail: value after a cut-off episode, or 0."""
    length = int(meta[LENGTH])
    for i in range(length):
        s, a = int(path[0, i]), int(path[1, i])
        if E[s, a] == 0.0:
            E[s, a] = i + 1.0
    total = tail
    for i in range(length - 1, -1, -1):
        s, a = int(path[0, i]), int(path[1, i])
        total = path[2, i] + par[GAMMA] * total
        if par[FIRST] == 0.0 or E[s, a] == i + 1.0:
            N[1, s, a] += 1.0
            step = par[ALPHA] if par[ALPHA] > 0.0 else 1.0 / N[1, s, a]
            Q[0, s, a] += step * (total - Q[0, s, a])
    for i in range(length):
        E[int(path[0, i]), int(path[1, i])] = 0.0


@lean_kernel
def _weighted_returns(par, Q, N, allowed, path, meta, tail):  # type: ignore[no-untyped-def]
    """Learn the greedy policy from the returns of another, weighted by importance (off-policy Monte Carlo control)."""
    total = tail
    weight = 1.0
    for i in range(int(meta[LENGTH]) - 1, -1, -1):
        s, a = int(path[0, i]), int(path[1, i])
        total = path[2, i] + par[GAMMA] * total
        N[1, s, a] += weight
        Q[0, s, a] += weight / N[1, s, a] * (total - Q[0, s, a])
        if a != _best_action(Q, 0, allowed, s):
            break
        weight /= path[3, i]


@lean_kernel
def begin(explore, par, Q, N, allowed, path, meta, s, p, rng):  # type: ignore[no-untyped-def]
    """Start an episode in state s; return the first action. OUT p (A,) probabilities of the actions."""
    meta[LENGTH] = 0.0
    meta[DONE] = 0.0
    chances(explore, par, Q, N, allowed, s, meta, p)
    return pick(rng, p)


@lean_kernel
def observe(  # type: ignore[no-untyped-def]
    code, explore, par, Q, N, E, model, seen, path, meta, allowed, s, a, r, s2, ends, cut, p, rng
):  # fmt: skip
    """Learn from one step; return the next action, or −1 if the step ended the process.

    IN/OUT p (A,): probabilities of the actions, in s when called and in s2 afterwards.
    """
    N[0, s, a] += 1.0
    meta[ROUND] += 1.0
    over = ends or cut
    if code in (N_STEP_SARSA, MONTE_CARLO, OFF_POLICY_MONTE_CARLO):
        at = int(meta[LENGTH])
        path[0, at] = s
        path[1, at] = a
        path[2, at] = r
        path[3, at] = p[a]
        meta[LENGTH] += 1.0
    a2 = -1
    if not ends:
        chances(explore, par, Q, N, allowed, s2, meta, p)
        a2 = pick(rng, p)
    tail = 0.0
    if not ends and code != DOUBLE_Q:
        if code in (Q_LEARNING, DYNA_Q, OFF_POLICY_MONTE_CARLO):
            tail = _best_value(Q, 0, allowed, s2)
        elif code == EXPECTED_SARSA:
            for b in range(Q.shape[2]):
                if p[b] > 0.0:
                    tail += p[b] * Q[0, s2, b]
        else:
            tail = Q[0, s2, a2]
    if code in (Q_LEARNING, SARSA, EXPECTED_SARSA, DYNA_Q):
        Q[0, s, a] += _step_size(par, N, s, a) * (r + par[GAMMA] * tail - Q[0, s, a])
        if code == DYNA_Q:
            _plan(par, Q, N, allowed, model, seen, s, a, r, s2, ends, rng)
    elif code == DOUBLE_Q:
        _double_update(par, Q, N, allowed, s, a, r, s2, ends, rng)
    elif code == N_STEP_SARSA:
        _n_step(par, Q, N, path, meta, tail, over)
    elif code == SARSA_LAMBDA:
        _trace(par, Q, N, E, s, a, r, tail, over)
    elif over:
        if code == MONTE_CARLO:
            _returns(par, Q, N, E, path, meta, tail)
        else:
            _weighted_returns(par, Q, N, allowed, path, meta, tail)
    if over:
        meta[EPISODE] += 1.0
    return a2


@lean_kernel
def step(first, cum, n_actions, s, a, u):  # type: ignore[no-untyped-def]
    """Return the row of the table that a number u in [0, 1) picks: the first whose cumulated probability exceeds it."""
    pair = s * n_actions + a
    last = first[pair + 1] - 1
    for i in range(first[pair], last):
        if cum[i] > u:
            return i
    return last


@lean_kernel
def episodes(  # type: ignore[no-untyped-def]
    code, explore, par, Q, N, E, model, seen, path, meta, allowed, first, cum, to, gain, ends, start, most, rng, noise,
    earned, lengths, stop
):  # fmt: skip
    """Play episodes one after the other and learn. OUT earned, lengths (episodes,): undiscounted return and steps."""
    k = Q.shape[2]
    p = path[4]
    for episode in range(len(earned)):
        if stop[0] != 0:
            return
        s = pick(noise, start)
        a = begin(explore, par, Q, N, allowed, path, meta, s, p[:k], rng)
        total = 0.0
        n = 0
        while True:
            row = step(first, cum, k, s, a, uniform(noise))
            n += 1
            total += gain[row]
            done = ends[row]
            cut = n >= most and not done
            a = observe(
                code, explore, par, Q, N, E, model, seen, path, meta, allowed, s, a, gain[row], to[row], done, cut,
                p[:k], rng
            )  # fmt: skip
            s = to[row]
            if done or cut:
                break
        earned[episode] = total
        lengths[episode] = n


@lean_kernel
def predict(  # type: ignore[no-untyped-def]
    code, par, V, C, E, path, target, behaviour, first, cum, to, gain, ends, start, most, noise, n_episodes
):  # fmt: skip
    """Estimate the values of a policy from episodes of another (or of itself).

    IN code: 0 TD(λ) (TD(0) with λ = 0), 1 n-step, 2 Monte Carlo, 3 Monte Carlo with weighted and 4 with ordinary
    importance; target, behaviour (S, A): probabilities of actions. IN/OUT V, C (S,): values, visits or weights; E (S,).
    """
    k = target.shape[1]
    for _ in range(n_episodes):
        s = pick(noise, start)
        n = 0
        done = False
        updated = 0
        while not done and n < most:
            a = pick(noise, behaviour[s])
            row = step(first, cum, k, s, a, uniform(noise))
            done = ends[row]
            s2 = to[row]
            path[0, n] = s
            path[1, n] = a
            path[2, n] = gain[row]
            n += 1
            tail = 0.0 if done else V[s2]
            if code == 0:
                C[s] += 1.0
                size = C[s] ** (-par[OMEGA]) if par[OMEGA] > 0.0 else par[ALPHA]
                delta = gain[row] + par[GAMMA] * tail - V[s]
                E[s] += 1.0
                for i in range(len(E)):
                    if E[i] != 0.0:
                        V[i] += size * delta * E[i]
                        E[i] *= par[GAMMA] * par[LAMBDA]
            elif code == 1:
                over = done or n >= most
                while updated < n and (over or n - updated >= int(par[STEPS])):
                    last = min(updated + int(par[STEPS]), n)
                    total = tail if last == n else 0.0
                    for i in range(last - 1, updated - 1, -1):
                        total = path[2, i] + par[GAMMA] * total
                    at = int(path[0, updated])
                    C[at] += 1.0
                    size = C[at] ** (-par[OMEGA]) if par[OMEGA] > 0.0 else par[ALPHA]
                    V[at] += size * (total - V[at])
                    updated += 1
            s = s2
        for i in range(len(E)):
            E[i] = 0.0
        if code >= 2:
            _predict_returns(code, par, V, C, E, path, target, behaviour, n, 0.0 if done else V[s])


@lean_kernel
def _predict_returns(code, par, V, C, E, path, target, behaviour, n, tail):  # type: ignore[no-untyped-def]
    """Learn values of states from the returns of one episode of n steps."""
    for i in range(n):
        s = int(path[0, i])
        if E[s] == 0.0:
            E[s] = i + 1.0
    total = tail
    weight = 1.0
    for i in range(n - 1, -1, -1):
        s, a = int(path[0, i]), int(path[1, i])
        total = path[2, i] + par[GAMMA] * total
        if code >= 3:
            weight *= target[s, a] / behaviour[s, a]
        if par[FIRST] == 0.0 or E[s] == i + 1.0:
            if code == 3:
                if weight > 0.0:
                    C[s] += weight
                    V[s] += weight / C[s] * (total - V[s])
            else:
                C[s] += 1.0
                size = par[ALPHA] if par[ALPHA] > 0.0 else 1.0 / C[s]
                V[s] += size * (weight * total - V[s])
    for i in range(n):
        E[int(path[0, i])] = 0.0
