"""Compiled replay: a ring of steps, drawn uniformly or by priority, with returns of n steps.

The ring has C rows of n environments, in the order of time, so that what follows a step is in the next row. Priorities
are the leaves of a tree of sums: a draw walks from the root to a leaf, an update from a leaf to the root.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....core.jit import lean_kernel
from ..._random import uniform

# Places of `meta`.
NEXT = 0  # row that is written next
SIZE = 1  # rows that are filled

#: Draws of an invalid step (a reset) that are made again before the batch takes what it has.
_MOST_REDRAWS = 1000


class Replay(NamedTuple):
    """Steps to learn from."""

    obs: Any  #: (C, n, d)
    next_obs: Any  #: (C, n, d)
    action: Any  #: (C, n) int64
    reward: Any  #: (C, n)
    terminated: Any  #: (C, n) bool
    truncated: Any  #: (C, n) bool
    valid: Any  #: (C, n) bool
    meta: Any  #: (2,) int64: next row, filled rows
    tree: Any  #: (2·leaves,) sums of priorities, the root at 1; of length 1 where all steps are alike
    top: Any  #: (1,) greatest priority so far


class Batch(NamedTuple):
    """Steps that were drawn."""

    obs: Any  #: (B, d)
    next_obs: Any  #: (B, d), after n steps or at the end of the episode
    action: Any  #: (B,) int64
    reward: Any  #: (B,) discounted sum of the rewards in between
    discount: Any  #: (B,) of what follows: γᵏ, or 0 after the episode terminated
    weight: Any  #: (B,) importance weights
    place: Any  #: (B,) int64, where each step stands in the ring


@lean_kernel
def push(block, rows, replay):  # type: ignore[no-untyped-def]
    """Copy the first rows of a block to the ring."""
    C, n, d = replay.obs.shape
    for t in range(rows):
        at = replay.meta[NEXT]
        for e in range(n):
            for j in range(d):
                replay.obs[at, e, j] = block.obs[t, e, j]
                replay.next_obs[at, e, j] = block.next_obs[t, e, j]
            replay.action[at, e] = int(block.action[t, e, 0])
            replay.reward[at, e] = block.reward[t, e]
            replay.terminated[at, e] = block.terminated[t, e]
            replay.truncated[at, e] = block.truncated[t, e]
            replay.valid[at, e] = block.valid[t, e]
            if replay.tree.size > 1:
                set_priority(replay.tree, at * n + e, replay.top[0] if block.valid[t, e] else 0.0)
        replay.meta[NEXT] = (at + 1) % C
        replay.meta[SIZE] = min(replay.meta[SIZE] + 1, C)


@lean_kernel
def set_priority(tree, leaf, value):  # type: ignore[no-untyped-def]
    """Change one leaf and the sums above it, each from its two children, so that errors do not pile up."""
    at = tree.size // 2 + leaf
    tree[at] = value
    at //= 2
    while at >= 1:
        tree[at] = tree[2 * at] + tree[2 * at + 1]
        at //= 2


@lean_kernel
def find_leaf(tree, u):  # type: ignore[no-untyped-def]
    """Return the leaf at which the cumulated priority passes u in [0, total)."""
    half = tree.size // 2
    at = 1
    while at < half:
        at *= 2
        if u >= tree[at] and tree[at + 1] > 0.0:
            u -= tree[at]
            at += 1
    return at - half


@lean_kernel
def draw(replay, n_steps, gamma, beta, rng, batch):  # type: ignore[no-untyped-def]
    """Draw a batch with replacement and look n steps ahead. OUT batch.

    Weights are (N·p)^(−β) divided by the greatest of the batch, with N the steps in the ring and p the probability of
    a draw; all one where draws are uniform.
    """
    n = replay.obs.shape[1]
    size = replay.meta[SIZE]
    B = batch.obs.shape[0]
    greatest = 0.0
    for i in range(B):
        place = 0
        for _ in range(_MOST_REDRAWS):
            if replay.tree.size > 1:
                place = find_leaf(replay.tree, (i + uniform(rng)) / B * replay.tree[1])
            else:
                place = int(uniform(rng) * size * n)
            if replay.valid[place // n, place % n]:
                break
        batch.place[i] = place
        batch.weight[i] = 1.0
        if replay.tree.size > 1:
            p = replay.tree[replay.tree.size // 2 + place] / replay.tree[1]
            batch.weight[i] = (size * n * p) ** (-beta)
            greatest = max(greatest, batch.weight[i])
        look_ahead(replay, place, n_steps, gamma, i, batch)
    if replay.tree.size > 1:
        for i in range(B):
            batch.weight[i] /= greatest


@lean_kernel
def look_ahead(replay, place, n_steps, gamma, i, batch):  # type: ignore[no-untyped-def]
    """Write step `place` and what the next n steps earned to row i of a batch; fewer where the ring or episode ends."""
    C, n, d = replay.obs.shape
    at = place // n
    e = place % n
    age = (at - replay.meta[NEXT] + replay.meta[SIZE]) % C  # rows between the oldest one and this
    total = 0.0
    fade = 1.0
    last = at
    for k in range(n_steps):
        if age + k >= replay.meta[SIZE]:  # past the newest row
            break
        row = (at + k) % C
        last = row
        total += fade * replay.reward[row, e]
        fade *= gamma
        if replay.terminated[row, e]:
            fade = 0.0
            break
        if replay.truncated[row, e]:
            break
    for j in range(d):
        batch.obs[i, j] = replay.obs[at, e, j]
        batch.next_obs[i, j] = replay.next_obs[last, e, j]
    batch.action[i] = replay.action[at, e]
    batch.reward[i] = total
    batch.discount[i] = fade


@lean_kernel
def set_priorities(replay, place, error, alpha, floor):  # type: ignore[no-untyped-def]
    """Set the priorities of steps to (|error| + floor)^α. IN place (B,), error (B,)."""
    for i in range(len(place)):
        value = (abs(error[i]) + floor) ** alpha
        replay.top[0] = max(replay.top[0], value)
        set_priority(replay.tree, place[i], value)
