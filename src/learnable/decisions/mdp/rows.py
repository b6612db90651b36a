"""The rows of a process: one per pair of a state and an action, read from any form, checked, and put in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core import AnyArray, DataError


def read_transitions(transitions: Any) -> tuple[sp.csr_array, int, int]:
    """Return p(s' | s, a) as a sparse array with one row per pair, and the numbers of states and actions."""
    if isinstance(transitions, (list, tuple)) and len(transitions) and sp.issparse(transitions[0]):
        n_actions = len(transitions)
        n_states = transitions[0].shape[0]
        for a, matrix in enumerate(transitions):
            if matrix.shape != (n_states, n_states):
                raise DataError(f"MDP: the transitions of action {a} have shape {matrix.shape}, not {(n_states,) * 2}.")
        by_action = sp.vstack([sp.csr_array(matrix, dtype=np.float64) for matrix in transitions], format="csr")
        order = np.arange(n_states * n_actions).reshape(n_actions, n_states).T.reshape(-1)
        return sp.csr_array(by_action[order]), n_states, n_actions
    dense = np.asarray(transitions, dtype=np.float64)
    if dense.ndim != 3:
        raise DataError(
            f"MDP: transitions must have shape (n_states, n_actions, n_states), or be a list of sparse arrays, one per "
            f"action; got shape {dense.shape}."
        )
    if dense.shape[0] != dense.shape[2]:
        if dense.shape[1] == dense.shape[2]:
            raise DataError(
                f"MDP: transitions must have shape (n_states, n_actions, n_states); got {dense.shape}, with actions "
                "first: pass transitions.swapaxes(0, 1)."
            )
        raise DataError(f"MDP: transitions must have shape (n_states, n_actions, n_states); got {dense.shape}.")
    n_states, n_actions, _ = dense.shape
    if n_states == 0 or n_actions == 0:
        raise DataError(f"MDP: there must be at least one state and one action; got shape {dense.shape}.")
    return sp.csr_array(dense.reshape(n_states * n_actions, n_states)), n_states, n_actions


def read_rewards(rewards: Any, P: sp.csr_array, n_states: int, n_actions: int) -> AnyArray:
    """Return the expected reward of every pair."""
    if isinstance(rewards, (list, tuple)) and len(rewards) and sp.issparse(rewards[0]):
        given = read_transitions(rewards)[0]
        if given.shape != P.shape:
            raise DataError(f"MDP: sparse rewards must have the shapes of transitions; got {given.shape}.")
        return np.asarray(P.multiply(given).sum(axis=1), dtype=np.float64).reshape(-1)
    table = np.asarray(rewards, dtype=np.float64)
    if table.shape == (n_states,):
        return np.repeat(table, n_actions)
    if table.shape == (n_states, n_actions):
        return table.reshape(-1).copy()
    if table.shape == (n_states, n_actions, n_states):
        flat = table.reshape(n_states * n_actions, n_states)
        row = np.repeat(np.arange(len(flat)), np.diff(P.indptr))
        return np.bincount(row, weights=P.data * flat[row, P.indices], minlength=len(flat))
    shapes = f"{(n_states,)}, {(n_states, n_actions)} or {(n_states, n_actions, n_states)}"
    raise DataError(f"MDP: rewards must have shape {shapes}; got {table.shape}.")


def canonical_rows(
    n_states: int,
    state: AnyArray,
    action: AnyArray,
    P: sp.csr_array,
    reward: AnyArray,
    stop: AnyArray,
    terminal: AnyArray,
    rounding: float,
) -> tuple[AnyArray, AnyArray, sp.csr_array, AnyArray, AnyArray]:
    """Return (pair_start, pair_action, P, reward, stop), checked; an error names the state and the action."""
    if len(state) and (state.min() < 0 or state.max() >= n_states or action.min() < 0):
        raise DataError(f"MDP: states must be 0 to {n_states - 1} and actions at least 0.")
    order = np.lexsort((action, state))
    state = state[order]
    action = action[order]
    reward = reward[order]
    stop = stop[order].copy()
    P = sp.csr_array(P[order])
    P.sum_duplicates()
    _check_pairs(n_states, state, action, P, reward, stop)
    total = np.asarray(P.sum(axis=1)).reshape(-1) + stop
    wrong = ~(np.abs(total - 1.0) <= rounding)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DataError(
            f"MDP: the probabilities of state {state[at]}, action {action[at]} sum to {total[at]:.10g}, not to 1; "
            "divide them by their sum, or say with which probability the step ends the process."
        )
    P.data /= np.repeat(total, np.diff(P.indptr))
    stop /= total
    P = _end_absorbing(P, state, reward, stop, terminal)
    pair_start = np.zeros(n_states + 1, dtype=np.int64)
    np.cumsum(np.bincount(state, minlength=n_states), out=pair_start[1:])
    P = sp.csr_array((P.data, P.indices.astype(np.int32), P.indptr.astype(np.int64)), shape=P.shape)
    return pair_start, action.astype(np.int64), P, np.ascontiguousarray(reward, dtype=np.float64), stop


def _check_pairs(
    n_states: int, state: AnyArray, action: AnyArray, P: sp.csr_array, reward: AnyArray, stop: AnyArray
) -> None:
    row = np.repeat(np.arange(len(state)), np.diff(P.indptr))
    bad = ~(P.data >= 0.0) | ~np.isfinite(P.data)
    if bad.any():
        at = row[np.argmax(bad)]
        value = float(P.data[np.argmax(bad)])
        raise DataError(
            f"MDP: state {state[at]}, action {action[at]} has the probability {value!r}; it must be in [0, 1]."
        )
    for name, values, low in (("stop", stop, 0.0), ("reward", reward, -np.inf)):
        bad = ~np.isfinite(values) | (values < low)
        if bad.any():
            at = int(np.argmax(bad))
            raise DataError(
                f"MDP: state {state[at]}, action {action[at]} has the {name} {float(values[at])!r}; it must be "
                f"finite{'' if low < 0 else ' and at least 0'}. Leave actions out that do not exist (`available`)."
            )
    twice = (np.diff(state) == 0) & (np.diff(action) == 0)
    if twice.any():
        at = int(np.argmax(twice))
        raise DataError(f"MDP: state {state[at]}, action {action[at]} has two rows; a pair has one.")
    counts = np.bincount(state, minlength=n_states)
    if (counts == 0).any():
        s = int(np.argmax(counts == 0))
        raise DataError(f"MDP: state {s} has no action; give it one (to itself, with reward 0, if all ends there).")


def _end_absorbing(
    P: sp.csr_array, state: AnyArray, reward: AnyArray, stop: AnyArray, terminal: AnyArray
) -> sp.csr_array:
    """Let steps of terminal states end the process; a state that nothing leaves and that earns nothing is terminal.

    `reward` and `stop` are changed in place.
    """
    row = np.repeat(np.arange(len(state)), np.diff(P.indptr))
    away = np.bincount(row[(P.indices != state[row]) & (P.data > 0.0)], minlength=len(state)) > 0
    stays = ~away & (reward == 0.0)
    held = np.ones(len(terminal), dtype=bool)
    np.logical_and.at(held, state, stays)
    ends = (terminal | held)[state]
    reward[ends] = 0.0
    stop[ends] = 1.0
    data = np.where(ends[row], 0.0, P.data)
    kept = data > 0.0
    indptr = np.zeros(len(state) + 1, dtype=np.int64)
    np.cumsum(np.bincount(row[kept], minlength=len(state)), out=indptr[1:])
    return sp.csr_array((data[kept], P.indices[kept], indptr), shape=P.shape)
