"""Compiled play: a small network chooses an action for one observation, a compiled environment makes the step.

Outputs of `neural.Network` for a whole batch come from BLAS; for one observation a loop over the same flat vector of
parameters takes a microsecond. What both compute is the same formula; `tests/oracles/deep.py` is its slow twin.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ....core.jit import lean_kernel
from ..._random import normal, uniform
from ._physics import advance, begin_state, observe_state

# How a policy draws its action from the outputs of its network.
VALUES = 0  # ε-greedy over action values
SOFTMAX = 1  # probabilities in proportion to exp(output)
GAUSSIAN = 2  # outputs are means; the environment gets the action clipped to its bounds
SQUASHED = 3  # the same through tanh, stretched to the bounds
# Units between the layers.
RELU = 0
TANH = 1

#: Observations are cut off at this many standard deviations once they are normalised.
FAR = 10.0


class PolicyArrays(NamedTuple):
    """What a compiled loop needs to act."""

    kind: int  #: VALUES, SOFTMAX, GAUSSIAN or SQUASHED
    unit: int  #: RELU or TANH
    skip: int  #: leading outputs that are no action: 1 in a dueling network, whose first output is the state's value
    theta: Any  #: (p,) flat parameters of the network
    layout: Any  #: (layers, 4) int64: where W and b begin, inputs, outputs
    work: Any  #: (2, widest) scratch
    centre: Any  #: (d,) subtracted from observations
    scale: Any  #: (d,) multiplied with them afterwards; zero: not normalised at all
    log_std: Any  #: (m,) logarithms of the deviations of continuous actions
    low: Any  #: (m,) bounds of continuous actions
    high: Any  #: (m,)


class WorldArrays(NamedTuple):
    """Copies of one compiled environment, and where each of them is."""

    code: int  #: which one
    n_actions: int
    limit: int  #: steps after which an episode is cut off
    table: Any  #: StepArrays
    state: Any  #: (n, 4)
    clock: Any  #: (n,) int64, steps of the episode so far
    earned: Any  #: (n,) undiscounted rewards of the episode so far
    rng: Any  #: (n, 4) uint64


class Block(NamedTuple):
    """Steps of n environments, T of each; `action` is what the policy drew, before squashing."""

    obs: Any  #: (T, n, d)
    next_obs: Any  #: (T, n, d), that of the same episode even where it ended
    action: Any  #: (T, n, m)
    reward: Any  #: (T, n)
    terminated: Any  #: (T, n) bool
    truncated: Any  #: (T, n) bool
    valid: Any  #: (T, n) bool; False where an environment idled or was reset
    ends: Any  #: (most, 3): return, length and row of each episode that ended
    count: Any  #: (2,) int64: episodes that ended, rows that were used


@lean_kernel
def score(policy, x):  # type: ignore[no-untyped-def]
    """Return the row of `policy.work` that holds the network's outputs for one observation x (d,)."""
    work = policy.work
    here = work[0]
    for i in range(x.size):
        v = x[i]
        if policy.scale[i] != 0.0:
            v = min(max((v - policy.centre[i]) * policy.scale[i], -FAR), FAR)
        here[i] = v
    at = 0
    n_layers = policy.layout.shape[0]
    for layer in range(n_layers):
        w = policy.layout[layer, 0]
        b = policy.layout[layer, 1]
        n_in = policy.layout[layer, 2]
        n_out = policy.layout[layer, 3]
        source = work[at, :n_in]
        out = work[1 - at, :n_out]
        bias = policy.theta[b : b + n_out]
        for j in range(n_out):
            out[j] = bias[j]
        for i in range(n_in):
            v = source[i]
            row = policy.theta[w + i * n_out : w + (i + 1) * n_out]
            for j in range(n_out):
                out[j] += v * row[j]
        if layer < n_layers - 1:
            for j in range(n_out):
                out[j] = math.tanh(out[j]) if policy.unit == TANH else max(out[j], 0.0)
        at = 1 - at
    return at


@lean_kernel
def choose(policy, x, epsilon, greedy, rng, action):  # type: ignore[no-untyped-def]
    """Draw an action for observation x. OUT action (m,): its number, or the point before squashing."""
    at = score(policy, x)
    n_out = policy.layout[policy.layout.shape[0] - 1, 3]
    z = policy.work[at, policy.skip : n_out]
    if policy.kind >= GAUSSIAN:
        for j in range(z.size):
            noise = 0.0 if greedy else math.exp(policy.log_std[j]) * normal(rng)
            action[j] = z[j] + noise
        return
    best = 0
    for j in range(1, z.size):
        if z[j] > z[best]:
            best = j
    if greedy:
        action[0] = best
    elif policy.kind == VALUES:
        if uniform(rng) < epsilon:
            best = int(uniform(rng) * z.size)
        action[0] = best
    else:
        mass = 0.0
        for j in range(z.size):
            mass += math.exp(z[j] - z[best])
        left = uniform(rng) * mass
        top = z[best]
        for j in range(z.size):
            left -= math.exp(z[j] - top)
            if left < 0.0:
                best = j
                break
        action[0] = best


@lean_kernel
def send(policy, action, j):  # type: ignore[no-untyped-def]
    """Return number j of what the environment gets for a drawn action."""
    if policy.kind < GAUSSIAN:
        return float(action[j])
    if policy.kind == SQUASHED:
        return policy.low[j] + 0.5 * (math.tanh(action[j]) + 1.0) * (policy.high[j] - policy.low[j])
    return min(max(float(action[j]), policy.low[j]), policy.high[j])


@lean_kernel
def choose_many(policy, X, epsilon, greedy, rng, actions, sent):  # type: ignore[no-untyped-def]
    """Draw actions for rows of observations. OUT actions (n, m) as drawn, sent (n, m) as the environments get them."""
    for i in range(X.shape[0]):
        choose(policy, X[i], epsilon, greedy, rng, actions[i])
        for j in range(actions.shape[1]):
            sent[i, j] = send(policy, actions[i], j)


@lean_kernel
def roll(policy, world, schedule, whole, rng, block):  # type: ignore[no-untyped-def]
    """Play all copies of an environment for the rows of a block.

    IN schedule (4,): steps made so far (advanced), first ε, last ε, steps in between. `whole`:
    each copy plays one episode and then idles. IN/OUT world, rng (4,); OUT block.
    """
    T, n, _ = block.obs.shape
    block.count[0] = 0
    block.count[1] = T
    for t in range(T):
        resting = 0
        for e in range(n):
            state = world.state[e]
            if (
                whole
                and t > 0
                and (not block.valid[t - 1, e] or block.terminated[t - 1, e] or block.truncated[t - 1, e])
            ):
                block.valid[t, e] = False
                block.terminated[t, e] = False
                block.truncated[t, e] = False
                resting += 1
                continue
            observe_state(world.code, state, block.obs[t, e])
            share = min(schedule[0] / schedule[3], 1.0)
            epsilon = schedule[1] + share * (schedule[2] - schedule[1])
            schedule[0] += 1.0
            choose(policy, block.obs[t, e], epsilon, False, rng, block.action[t, e])
            sent = send(policy, block.action[t, e], 0)
            reward, done = advance(world.code, world.table, sent, world.n_actions, world.rng[e], state)
            observe_state(world.code, state, block.next_obs[t, e])
            world.clock[e] += 1
            world.earned[e] += reward
            cut = world.clock[e] >= world.limit and not done
            block.reward[t, e] = reward
            block.terminated[t, e] = done
            block.truncated[t, e] = cut
            block.valid[t, e] = True
            if done or cut:
                finish(world.earned, world.clock, e, t, block)
                begin_state(world.code, world.table, world.rng[e], state)
        if resting == n:
            block.count[1] = t
            return


@lean_kernel
def finish(earned, clock, e, t, block):  # type: ignore[no-untyped-def]
    """Write the episode of environment e to the block and begin a new one."""
    k = block.count[0]
    block.ends[k, 0] = earned[e]
    block.ends[k, 1] = clock[e]
    block.ends[k, 2] = t
    block.count[0] = k + 1
    earned[e] = 0.0
    clock[e] = 0


@lean_kernel
def play_out(policy, world, greedy, rng, obs, action, returns, lengths, discounted, gamma):  # type: ignore[no-untyped-def]
    """Play one episode of each copy to its end. OUT returns, lengths, discounted (n,); scratch obs (d,), action."""
    for e in range(len(returns)):
        state = world.state[e]
        begin_state(world.code, world.table, world.rng[e], state)
        returns[e] = 0.0
        discounted[e] = 0.0
        fade = 1.0
        n = 0
        over = False
        while not over:
            observe_state(world.code, state, obs)
            choose(policy, obs, 0.0, greedy, rng, action)
            sent = send(policy, action, 0)
            reward, done = advance(world.code, world.table, sent, world.n_actions, world.rng[e], state)
            returns[e] += reward
            discounted[e] += fade * reward
            fade *= gamma
            n += 1
            over = done or n >= world.limit
        lengths[e] = n


@lean_kernel
def begin_all(world):  # type: ignore[no-untyped-def]
    """Begin an episode in every copy."""
    for e in range(world.state.shape[0]):
        world.clock[e] = 0
        world.earned[e] = 0.0
        begin_state(world.code, world.table, world.rng[e], world.state[e])
