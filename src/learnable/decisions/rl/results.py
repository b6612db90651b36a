"""What learning came to: over seeds, with an interval, and exactly where the process is known."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core import AnyArray, DataError
from ..mdp.evaluation import policy_evaluation

_RESAMPLES = 2000


def interquartile_mean(values: Any) -> float:
    """Return the mean of the middle half: as robust as a median, with less noise.

    Where n is no multiple of four, the two ends count in part, so that exactly half of the weight is used.

    Examples
    --------
    >>> interquartile_mean([0.0, 1.0, 2.0, 100.0])
    1.5
    """
    x = np.sort(np.asarray(values, dtype=np.float64).reshape(-1))
    n = len(x)
    if n == 0:
        raise DataError("interquartile_mean: there are no values.")
    edges = np.arange(n + 1) / n
    weight = np.clip(np.minimum(edges[1:], 0.75) - np.maximum(edges[:-1], 0.25), 0.0, None)
    return float(x @ weight / weight.sum())


def bootstrap_interval(values: Any, level: float = 0.95, random_state: Any = 0) -> tuple[float, float]:
    """Return the percentile bootstrap interval of the interquartile mean over seeds."""
    x = np.asarray(values, dtype=np.float64)
    rng = np.random.default_rng(random_state if isinstance(random_state, (int, np.integer, type(None))) else 0)
    picks = rng.integers(len(x), size=(_RESAMPLES, len(x)))
    means = [interquartile_mean(row) for row in x[picks]]
    low, high = np.quantile(means, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return float(low), float(high)


@dataclass(frozen=True, eq=False)
class Learned:
    """What a learner learned, seed by seed.

    Attributes
    ----------
    learner : str
        Its name.
    action_values : array of shape (seeds, n_states, n_actions)
        Q.
    policies : array of int of shape (seeds, n_states)
        The greedy action in each state.
    returns : array of shape (seeds, episodes)
        Undiscounted sum of the rewards of each episode, exploration included.
    lengths : array of int of shape (seeds, episodes)
        Steps of each episode.
    policy_values : array of shape (seeds,) or None
        The exact value of each greedy policy from the start, where the process is known; −inf if it may go on for ever.
    mean, lower, upper : float
        Interquartile mean of `policy_values`, or of the last tenth of the returns, with its bootstrap interval; NaN
        limits for one seed.
    level : float
        Probability of the interval.
    """

    learner: str
    action_values: AnyArray
    policies: AnyArray
    returns: AnyArray
    lengths: AnyArray
    policy_values: AnyArray | None
    mean: float
    lower: float
    upper: float
    level: float

    @property
    def n_seeds(self) -> int:
        """Number of independent runs."""
        return len(self.returns)

    def __str__(self) -> str:
        what = "exact value of the greedy policy" if self.policy_values is not None else "return at the end"
        if self.n_seeds == 1:
            return f"{self.learner}: {what} {self.mean:.4g} (one seed: no interval)"
        percent = f"{100 * self.level:g} %"
        return (
            f"{self.learner}: {what} {self.mean:.4g}, {percent} interval [{self.lower:.4g}, {self.upper:.4g}] "
            f"(interquartile mean over {self.n_seeds} seeds)"
        )


def summarise(
    learner: str,
    world: Any,
    gamma: float,
    Q: AnyArray,
    earned: AnyArray,
    lengths: AnyArray,
    level: float,
    random_state: Any,
) -> Learned:
    """Return the results of all seeds."""
    scores = np.where(world.allowed, Q, -np.inf)
    policies = scores.argmax(axis=2)
    exact = _exact_values(world, gamma, policies)
    last = max(earned.shape[1] // 10, 1)
    judged = earned[:, -last:].mean(axis=1) if exact is None else exact
    if np.isfinite(judged).all():
        middle = interquartile_mean(judged)
        ends = bootstrap_interval(judged, level, random_state) if len(judged) > 1 else (np.nan, np.nan)
    else:
        middle, ends = _with_endless(judged, level)
    return Learned(learner, Q, policies, earned, lengths, exact, middle, *ends, level)


def _with_endless(judged: AnyArray, level: float) -> tuple[float, tuple[float, float]]:
    """Return middle and range where some policies never end: order alone is defined."""
    low, middle, high = np.quantile(judged, [(1.0 - level) / 2.0, 0.5, (1.0 + level) / 2.0], method="lower")
    return float(middle), (float(low), float(high))


def _exact_values(world: Any, gamma: float, policies: AnyArray) -> AnyArray | None:
    """Return the exact value from the start of each policy; None where the process is not known."""
    if not getattr(world, "has_table", True):
        return None
    mdp = world.mdp(gamma)
    if mdp.start is None:
        return None
    found = []
    for policy in policies:
        taken = np.where(world.allowed[np.arange(len(policy)), policy], policy, world.allowed.argmax(axis=1))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append(float(mdp.start @ policy_evaluation(mdp, taken).values))
        except DataError:
            found.append(_value_from_start(mdp, taken))
    return np.array(found)


def _value_from_start(mdp: Any, policy: AnyArray) -> float:
    """Return the value of a policy that surely ends from the start, though not from every state; else −inf."""
    chosen = mdp.pairs_of(policy)
    P = mdp.P[chosen]
    stop = mdp.stop[chosen]
    met = mdp.start > 0.0
    while True:
        more = met | (np.asarray(P.T @ met.astype(float)).reshape(-1) > 0.0)
        if (more == met).all():
            break
        met = more
    ends = met & (stop > 0.0)
    while True:
        more = ends | (met & (np.asarray(P @ ends.astype(float)).reshape(-1) > 0.0))
        if (more == ends).all():
            break
        ends = more
    if not (ends == met).all():
        return -np.inf
    at = np.flatnonzero(met)
    A = np.eye(len(at)) - mdp.gamma * P[at][:, at].toarray()
    v = np.linalg.solve(A, mdp.reward[chosen][at])
    return float(mdp.start[at] @ v)
