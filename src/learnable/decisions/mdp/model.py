r"""A Markov decision process: states, actions, where each action leads, and what it earns.

An action a in a state s earns r(s, a) on average and leads to s' with probability p(s' | s, a), or ends the process
with the rest of the probability. The value of a policy π is the expected sum of discounted rewards,

$$ V^\pi(s) = E\Bigl[\sum_{t \ge 0} \gamma^t r(s_t, \pi(s_t)) \Bigm| s_0 = s\Bigr],
   \qquad V^* = \max_\pi V^\pi, \qquad V^*(s) = \max_a r(s, a) + \gamma \sum_{s'} p(s' \mid s, a) V^*(s'). $$

Pairs (s, a) are stored one after the other, state by state, as rows of one sparse table: memory O(pairs + successors),
whatever the number of states. States may have different actions.

Reference: M. Puterman, Markov Decision Processes, Wiley 1994; R. Sutton and A. Barto, Reinforcement Learning, 2018.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from ...core import AnyArray, DataError, ParameterError
from .rows import canonical_rows, read_rewards, read_transitions

#: Probabilities of a row may miss one by this much, as those of tables with 15 digits do; they are then rescaled.
ROUNDING = 1e-8


class MDP:
    """A finite Markov decision process.

    Parameters
    ----------
    transitions : array of shape (n_states, n_actions, n_states), or list of sparse arrays
        p(s' | s, a); sparse arrays have shape (n_states, n_states), one per action.
    rewards : array, or list of sparse arrays
        Of shape (n_states,), (n_states, n_actions) or (n_states, n_actions, n_states).
        What a step earns: by the state that is left, by the action too, or by the state that is reached too.
    gamma : float
        Discount γ between 0 and 1. With γ = 1 the solvers ask that the process ends, or for a horizon.
    terminal : array of bool of shape (n_states,), optional
        States in which nothing is earned any more. A state that no action leaves and that earns nothing is one too.
    available : array of bool of shape (n_states, n_actions), optional
        Which actions exist in which state; all by default.
    start : array of shape (n_states,), optional
        Probabilities of the first state.

    Attributes
    ----------
    n_states, n_actions, n_pairs : int
        Numbers of states, of different actions, and of actions summed over states.
    pair_start : array of shape (n_states + 1,)
        The pairs of state s are `pair_start[s]` to `pair_start[s + 1]`.
    pair_action : array of shape (n_pairs,)
        The action of each pair.
    reward : array of shape (n_pairs,)
        r(s, a).
    P : sparse array of shape (n_pairs, n_states)
        Probabilities of the next state; a row sums to one minus `stop`.
    stop : array of shape (n_pairs,)
        Probability that the process ends with this step.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.decisions.mdp import MDP, policy_iteration
    >>> P = np.array([[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    >>> r = np.array([[5.0, 10.0], [-1.0, -1.0]])
    >>> solution = policy_iteration(MDP(P, r, gamma=0.95))  # Puterman's example of two states
    >>> solution.values.round(4), solution.policy
    (array([ -8.5714, -20.    ]), array([0, 0]))
    """

    n_states: int
    n_actions: int
    gamma: float
    pair_start: AnyArray
    pair_action: AnyArray
    reward: AnyArray
    P: sp.csr_array
    stop: AnyArray
    start: AnyArray | None

    def __init__(
        self,
        transitions: Any,
        rewards: Any,
        gamma: float,
        *,
        terminal: Any = None,
        available: Any = None,
        start: Any = None,
    ) -> None:
        P, n_states, n_actions = read_transitions(transitions)
        reward = read_rewards(rewards, P, n_states, n_actions)
        state = np.repeat(np.arange(n_states), n_actions)
        action = np.tile(np.arange(n_actions), n_states)
        if available is not None:
            kept = np.asarray(available, dtype=bool)
            if kept.shape != (n_states, n_actions):
                raise DataError(f"MDP: available must have shape {(n_states, n_actions)}; got {kept.shape}.")
            kept = kept.reshape(-1)
            P = P[kept]
            reward = reward[kept]
            state = state[kept]
            action = action[kept]
        ends = np.zeros(n_states, dtype=bool)
        if terminal is not None:
            ends = np.asarray(terminal, dtype=bool)
            if ends.shape != (n_states,):
                raise DataError(f"MDP: terminal must have one truth value for each of {n_states} states.")
        self._build(n_states, state, action, P, reward, np.zeros(len(reward)), gamma, ends, start)

    @classmethod
    def from_pairs(
        cls,
        states: Any,
        actions: Any,
        transitions: Any,
        rewards: Any,
        gamma: float,
        *,
        stop: Any = None,
        start: Any = None,
    ) -> Self:
        """Build a process from one row per pair of a state and an action, in any order.

        Parameters
        ----------
        states, actions : arrays of int of shape (n_pairs,)
            Which pair a row is about.
        transitions : sparse or dense array of shape (n_pairs, n_states)
            Probabilities of the next state.
        rewards : array of shape (n_pairs,)
            r(s, a).
        gamma : float
            Discount.
        stop : array of shape (n_pairs,), optional
            Probability that the process ends with the step; the row of `transitions` sums to the rest.
        start : array of shape (n_states,), optional
            Probabilities of the first state.
        """
        P = sp.csr_array(transitions, dtype=np.float64)
        state = np.asarray(states, dtype=np.int64)
        action = np.asarray(actions, dtype=np.int64)
        reward = np.asarray(rewards, dtype=np.float64)
        ending = np.zeros(len(reward)) if stop is None else np.asarray(stop, dtype=np.float64)
        if not (state.shape == action.shape == reward.shape == ending.shape == P.shape[:1]):
            raise DataError(
                f"MDP: states, actions, rewards and rows of transitions must be equally many; got {len(state)}, "
                f"{len(action)}, {len(reward)} and {P.shape[0]}."
            )
        made = cls.__new__(cls)
        made._build(P.shape[1], state, action, P, reward, ending, gamma, np.zeros(P.shape[1], dtype=bool), start)
        return made

    @classmethod
    def from_table(
        cls,
        state: Any,
        action: Any,
        probability: Any,
        next_state: Any,
        reward: Any,
        gamma: float,
        *,
        terminal: Any = None,
        n_states: int | None = None,
        start: Any = None,
    ) -> Self:
        """Build a process from one row per possible step: state, action, probability, next state, reward, end or not.

        Rows of the same step add up. A step that ends the process (`terminal`) is followed by no value.
        """
        s, a, s2 = (np.asarray(column, dtype=np.int64) for column in (state, action, next_state))
        p, r = (np.asarray(column, dtype=np.float64) for column in (probability, reward))
        end = np.zeros(len(s), dtype=bool) if terminal is None else np.asarray(terminal).astype(bool)
        if len(s) == 0:
            raise DataError("MDP: the table has no rows.")
        if not (s.shape == a.shape == s2.shape == p.shape == r.shape == end.shape):
            raise DataError("MDP: the columns of the table must be equally long.")
        n = int(max(s.max(), s2.max())) + 1 if n_states is None else n_states
        if min(s.min(), s2.min(), a.min()) < 0 or max(s.max(), s2.max()) >= n:
            raise DataError(f"MDP: states must be 0 to {n - 1} and actions at least 0.")
        n_actions = int(a.max()) + 1
        pairs, row = np.unique(s * n_actions + a, return_inverse=True)
        going = ~end
        P = sp.coo_array((p[going], (row[going], s2[going])), shape=(len(pairs), n)).tocsr()
        stop = np.bincount(row, weights=np.where(end, p, 0.0), minlength=len(pairs))
        total = np.bincount(row, weights=p * r, minlength=len(pairs))
        made = cls.__new__(cls)
        none = np.zeros(n, dtype=bool)
        made._build(n, pairs // n_actions, pairs % n_actions, P, total, stop, gamma, none, start)
        return made

    @classmethod
    def from_function(
        cls,
        step: Callable[[Any, Any], Iterable[tuple[Any, ...]]],
        states: Sequence[Any],
        actions: Sequence[Any] | Callable[[Any], Sequence[Any]],
        gamma: float,
        *,
        start: Any = None,
    ) -> Self:
        """Build a process from a function that lists what may follow a state and an action.

        Parameters
        ----------
        step : function of a state and an action
            Gives tuples (probability, next state, reward) or (probability, next state, reward, ends).
        states : sequence
            All states, of any hashable kind; state number i of the process is `states[i]`.
        actions : sequence, or function of a state
            The actions, or those of a state. Action number i is the i-th of all that occur.
        gamma : float
            Discount.
        start : array, optional
            Probabilities of the first state.
        """
        number = {name: i for i, name in enumerate(states)}
        codes: dict[Any, int] = {}
        rows: list[tuple[int, int, float, int, float, bool]] = []
        for name, s in number.items():
            choices = actions(name) if callable(actions) else actions
            if len(choices) == 0:
                raise DataError(f"MDP: the state {name!r} has no action; give it one, or let steps into it end.")
            for choice in choices:
                a = codes.setdefault(choice, len(codes))
                for outcome in step(name, choice):
                    p, after, r, *more = outcome
                    ends = bool(more and more[0])
                    if after not in number and not ends:
                        raise DataError(
                            f"MDP: state {name!r}, action {choice!r} leads to {after!r}, which is no state."
                        )
                    rows.append((s, a, float(p), number.get(after, 0), float(r), ends))
        s_, a_, p_, after_, r_, end_ = zip(*rows, strict=True) if rows else ((),) * 6
        return cls.from_table(s_, a_, p_, after_, r_, gamma, terminal=end_, n_states=len(number), start=start)

    @classmethod
    def from_gymnasium(cls, env: Any, gamma: float) -> Self:
        """Build a process from the transition table `P` of a Gymnasium environment (FrozenLake, Taxi, CliffWalking)."""
        plain = getattr(env, "unwrapped", env)
        table = getattr(plain, "P", None)
        if table is None:
            raise DataError(
                f"MDP: the environment {plain} has no table of transitions `P`; learn from its steps with "
                "`decisions.rl`, or use `MDP.from_trajectories`."
            )
        rows = [
            (s, a, p, s2, r, end)
            for s, choices in table.items()
            for a, outcomes in choices.items()
            for p, s2, r, end in outcomes
        ]
        s_, a_, p_, after_, r_, end_ = zip(*rows, strict=True)
        start = getattr(plain, "initial_state_distrib", None)
        return cls.from_table(s_, a_, p_, after_, r_, gamma, terminal=end_, n_states=len(table), start=start)

    @classmethod
    def from_trajectories(cls, trajectories: Any, gamma: float, *, n_states: int | None = None) -> MDP:
        """Build the most likely process given logged steps; `MDPPosterior` keeps the doubt.

        Parameters
        ----------
        trajectories : iterable of iterables of (state, action, reward, next state, ended)
            Logged steps. Actions that were never taken in a state do not exist there.
        gamma : float
            Discount.
        n_states : int, optional
            The number of states, if some were never met.
        """
        from .posterior import count_steps

        return count_steps(trajectories, n_states).estimate(gamma)

    def with_gamma(self, gamma: float) -> Self:
        """Return the same process with another discount."""
        return self._copy(gamma=_read_gamma(gamma))

    def with_rewards(self, reward: Any) -> Self:
        """Return the same process with other rewards, one per pair."""
        values = np.ascontiguousarray(reward, dtype=np.float64)
        if values.shape != self.reward.shape or not np.isfinite(values).all():
            raise DataError(f"MDP: rewards must be {len(self.reward)} finite numbers, one per pair.")
        return self._copy(reward=values)

    @property
    def n_pairs(self) -> int:
        """Actions, summed over states."""
        return len(self.reward)

    @cached_property
    def can_end(self) -> bool:
        """Whether some step can end the process."""
        return bool((self.stop > 0.0).any())

    @property
    def pair_state(self) -> AnyArray:
        """The state of each pair."""
        return np.repeat(np.arange(self.n_states), np.diff(self.pair_start))

    @cached_property
    def fingerprint(self) -> str:
        """Checksum of the whole process, which certificates name."""
        digest = hashlib.blake2b(digest_size=8)
        parts = (self.pair_start, self.pair_action, self.reward, self.P.indptr, self.P.indices, self.P.data, self.stop)
        for part in (*parts, np.array([self.gamma])):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    def pairs_of(self, policy: Any) -> AnyArray:
        """Return the number of the pair that a deterministic policy takes in each state."""
        wanted = np.asarray(policy)
        if wanted.shape != (self.n_states,) or wanted.dtype.kind not in "iu":
            raise DataError(f"MDP: a policy is an array of {self.n_states} actions; got shape {wanted.shape}.")
        hit = self.pair_action == wanted[self.pair_state]
        found = np.full(self.n_states, -1, dtype=np.int64)
        found[self.pair_state[hit]] = np.flatnonzero(hit)
        if (found < 0).any():
            s = int(np.argmax(found < 0))
            raise DataError(f"MDP: state {s} has no action {wanted[s]}; its actions are {self.actions_of(s).tolist()}.")
        return found

    def actions_of(self, state: int) -> AnyArray:
        """Return the actions of a state."""
        return self.pair_action[self.pair_start[state] : self.pair_start[state + 1]]

    def action_values(self, values: Any) -> AnyArray:
        """Return Q(s, a) = r + γ Σ p V(s'), of shape (n_states, n_actions); −inf where there is no such action."""
        q = self.reward + self.gamma * (self.P @ np.asarray(values, dtype=np.float64))
        table = np.full((self.n_states, self.n_actions), -np.inf)
        table[self.pair_state, self.pair_action] = q
        return table

    def __repr__(self) -> str:
        return (
            f"MDP({self.n_states} states, {self.n_pairs} pairs of a state and an action, "
            f"{self.P.nnz} successors, gamma={self.gamma:g})"
        )

    def _copy(self, **changes: Any) -> Self:
        twin = object.__new__(type(self))
        derived = ("fingerprint", "can_end")
        kept = {name: value for name, value in vars(self).items() if name not in derived}
        twin.__dict__.update(kept | changes)
        return twin

    def _build(
        self,
        n_states: int,
        state: AnyArray,
        action: AnyArray,
        P: sp.csr_array,
        reward: AnyArray,
        stop: AnyArray,
        gamma: float,
        terminal: AnyArray,
        start: Any,
    ) -> None:
        """Check and store the pairs, in the order of states and actions."""
        self.gamma = _read_gamma(gamma)
        self.n_states = int(n_states)
        rows = canonical_rows(n_states, state, action, P, reward, stop, terminal, ROUNDING)
        self.pair_start, self.pair_action, self.P, self.reward, self.stop = rows
        self.n_actions = int(self.pair_action.max()) + 1
        self.start = None
        if start is not None:
            first = np.asarray(start, dtype=np.float64)
            if first.shape != (n_states,) or not (first >= 0).all() or abs(first.sum() - 1.0) > ROUNDING:
                raise DataError(f"MDP: start must be {n_states} probabilities that sum to one.")
            self.start = first / first.sum()


def _read_gamma(gamma: Any) -> float:
    if isinstance(gamma, bool) or not isinstance(gamma, (int, float, np.number)) or not 0.0 <= gamma <= 1.0:
        raise ParameterError(f"MDP: gamma must be a number >= 0 and <= 1; got {gamma!r}.")
    return float(gamma)
