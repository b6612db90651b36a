"""Seeds and random numbers: a tree's depend on the seed and its number, a node's on its path from the root, too."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.jit import lean_kernel


@lean_kernel
def mix(z: Any) -> Any:
    """Return 64 well-mixed bits (the finaliser of SplitMix64; Steele, Lea and Flood, OOPSLA 2014)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@lean_kernel
def next_random(state: Any) -> tuple[Any, float]:
    """Return the next state and a uniform number in [0, 1)."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    return state, np.float64(mix(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@lean_kernel
def child_seed(seed: Any, side: Any) -> Any:
    """Return the seed of the left (side 0) or right (side 1) child of a node."""
    return mix(seed * np.uint64(2) + np.uint64(side) + np.uint64(0x632BE59BD9B4E019))


@lean_kernel
def child_seeds(seeds: NDArray[np.uint64], out: NDArray[np.uint64]) -> None:
    """OUT out (2m,): the seeds of both children of each node, pair by pair."""
    for i in range(seeds.size):
        out[2 * i] = child_seed(seeds[i], 0)
        out[2 * i + 1] = child_seed(seeds[i], 1)


def seed_of(random_state: Any) -> int:
    """Return 63 bits of an integer seed, a Generator, a RandomState, or the system (None)."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63 - 1))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return int(np.random.SeedSequence(random_state).generate_state(1, np.uint64)[0] >> np.uint64(1))


def tree_state(seed: int, number: int) -> int:
    """Return the `random_state` of one tree: a decision tree with it, fitted to the same bag, is the same tree."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0] >> 1)


def tree_seed(seed: int, number: int) -> int:
    """Return the seed of the columns and thresholds that one tree draws."""
    return seed_of(tree_state(seed, number))
