"""Processes learned from logged steps: counts, the most likely process, and a Dirichlet law of each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from ...core import AnyArray, DataError, ParameterError
from .evaluation import policy_evaluation
from .model import MDP
from .solvers import modified_policy_iteration


@dataclass(frozen=True, eq=False)
class StepCounts:
    """How often each step was seen.

    Attributes
    ----------
    state, action : arrays of shape (n_pairs,)
        The pairs that were tried.
    counts : sparse array of shape (n_pairs, n_states + 1)
        Steps to each state; the last column counts ends.
    reward : array of shape (n_pairs,)
        Mean reward of each pair.
    """

    state: AnyArray
    action: AnyArray
    counts: sp.csr_array
    reward: AnyArray

    @property
    def n_states(self) -> int:
        """Number of states."""
        return int(self.counts.shape[1]) - 1

    def estimate(self, gamma: float) -> MDP:
        """Return the most likely process; a state that was only ever reached, never left, ends it."""
        total = np.asarray(self.counts.sum(axis=1)).reshape(-1)
        share = sp.csr_array(sp.diags_array(1.0 / total) @ self.counts)
        return _with_untried(self.state, self.action, share, self.reward, gamma)


class MDPPosterior:
    """What logged steps say about a process: a Dirichlet law for each row of probabilities.

    Rewards are taken at their observed means. The prior spreads over the successors that a pair has been seen to have,
    and over those in `support` if it is given.

    Parameters
    ----------
    trajectories : iterable of iterables of (state, action, reward, next state, ended)
        Logged steps.
    gamma : float
        Discount.
    prior : float
        Pseudo-count α₀ of each possible successor.
    n_states : int, optional
        Number of states.
    support : sparse or dense array of bool of shape (n_pairs, n_states + 1), optional
        Which successors are possible for the tried pairs, in the order of `counts`; the last column is the end.

    Examples
    --------
    >>> log = [[(0, 0, 1.0, 0, False), (0, 0, 1.0, 0, False), (0, 0, 1.0, 0, True)]]
    >>> posterior = MDPPosterior(log, gamma=0.9, prior=1.0)
    >>> posterior.alpha.toarray()
    array([[3., 2.]])
    """

    def __init__(
        self, trajectories: Any, gamma: float, *, prior: float = 1.0, n_states: int | None = None, support: Any = None
    ) -> None:
        if not prior > 0.0:
            raise ParameterError(f"MDPPosterior: prior must be a number > 0; got {prior!r}.")
        self.counts = count_steps(trajectories, n_states)
        self.gamma = gamma
        seen = self.counts.counts > 0
        possible = seen if support is None else sp.csr_array(support, dtype=bool) + seen
        self.alpha: sp.csr_array = sp.csr_array(self.counts.counts + prior * possible.astype(np.float64))

    def mean(self) -> MDP:
        """Return the process of the mean probabilities."""
        total = np.asarray(self.alpha.sum(axis=1)).reshape(-1)
        share = sp.csr_array(sp.diags_array(1.0 / total) @ self.alpha)
        return _with_untried(self.counts.state, self.counts.action, share, self.counts.reward, self.gamma)

    def sample(self, random_state: Any = None) -> MDP:
        """Draw a process."""
        rng = check_random_state(random_state)
        draw = self.alpha.copy()
        draw.data = np.maximum(rng.standard_gamma(self.alpha.data), np.finfo(float).tiny)
        total = np.asarray(draw.sum(axis=1)).reshape(-1)
        share = sp.csr_array(sp.diags_array(1.0 / total) @ draw)
        return _with_untried(self.counts.state, self.counts.action, share, self.counts.reward, self.gamma)

    def values(self, policy: Any = None, *, n_samples: int = 200, level: float = 0.9, random_state: Any = None) -> Any:
        """Return mean and credible interval of V^π, or of V* without a policy, over draws of the process.

        Returns
        -------
        (mean, lower, upper) : arrays of shape (n_states,)
            The interval is equal-tailed.
        """
        rng = check_random_state(random_state)
        draws = []
        for _ in range(n_samples):
            drawn = self.sample(rng)
            found = modified_policy_iteration(drawn) if policy is None else policy_evaluation(drawn, policy)
            draws.append(found.values)
        table = np.array(draws)
        low, high = np.quantile(table, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return table.mean(axis=0), low, high


def count_steps(trajectories: Any, n_states: int | None = None) -> StepCounts:
    """Count the steps of trajectories of (state, action, reward, next state, ended)."""
    steps = [step for path in trajectories for step in path]
    if not steps:
        raise DataError("MDP: the trajectories have no steps.")
    if any(len(step) != 5 for step in steps):
        raise DataError("MDP: a step is (state, action, reward, next state, ended).")
    s, a, r, after, end = (np.array(column) for column in zip(*steps, strict=True))
    r = r.astype(np.float64)
    if not np.isfinite(r).all():
        at = int(np.argmin(np.isfinite(r)))
        raise DataError(f"MDP: state {s[at]}, action {a[at]} earned {r[at]!r}; rewards must be finite.")
    s = s.astype(np.int64)
    a = a.astype(np.int64)
    after = after.astype(np.int64)
    n = int(max(s.max(), after.max())) + 1 if n_states is None else n_states
    if min(s.min(), a.min(), after.min()) < 0 or max(s.max(), after.max()) >= n:
        raise DataError(f"MDP: states must be 0 to {n - 1} and actions at least 0.")
    n_actions = int(a.max()) + 1
    pairs, row = np.unique(s * n_actions + a, return_inverse=True)
    column = np.where(end.astype(bool), n, after)
    counts = sp.coo_array((np.ones(len(s)), (row, column)), shape=(len(pairs), n + 1)).tocsr()
    mean = np.bincount(row, weights=r) / np.bincount(row)
    return StepCounts(pairs // n_actions, pairs % n_actions, sp.csr_array(counts), mean)


def _with_untried(state: AnyArray, action: AnyArray, share: sp.csr_array, reward: AnyArray, gamma: float) -> MDP:
    """Return the process; states in which nothing was tried end it, since nothing is known of what follows."""
    n = share.shape[1] - 1
    missing = np.setdiff1d(np.arange(n), state)
    P = sp.csr_array(sp.vstack([share[:, :n], sp.csr_array((len(missing), n))]))
    stop = np.concatenate([share[:, [n]].toarray().reshape(-1), np.ones(len(missing))])
    return MDP.from_pairs(
        np.concatenate([state, missing]),
        np.concatenate([action, np.zeros(len(missing), dtype=np.int64)]),
        P,
        np.concatenate([reward, np.zeros(len(missing))]),
        gamma,
        stop=stop,
    )
