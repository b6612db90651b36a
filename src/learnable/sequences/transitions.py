"""Tables of transition probabilities: checks, counts of moves, the stationary law, periods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order

from ..core.errors import DataError, ParameterError

Array = NDArray[Any]

#: Rows of probabilities may miss the sum one by this much; they are then divided by their sum.
SLACK = 1e-8


def check_probabilities(owner: str, name: str, values: Any, ndim: int) -> Array:
    """Return probabilities whose last axis sums to one, or raise ParameterError."""
    try:
        p = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{owner}: {name} must be an array of probabilities; got {values!r}.") from error
    if p.ndim != ndim or p.size == 0:
        raise ParameterError(f"{owner}: {name} must have {ndim} dimensions and no empty one; got shape {p.shape}.")
    sums = p.sum(axis=-1)
    if not ((p >= 0).all() and (abs(sums - 1) <= SLACK).all()):
        raise ParameterError(
            f"{owner}: {name} must be probabilities >= 0 whose rows sum to 1; "
            f"got the least {p.min()} and sums between {sums.min()} and {sums.max()}; divide the rows by their sums."
        )
    return p / sums[..., None]


def stationary_law(P: Array) -> Array:
    """Return the stationary law of an irreducible chain by elimination without subtractions.

    Every entry has full relative precision, however small (W. Grassmann, M. Taksar and D. Heyman, Regenerative analysis
    and steady state distributions for Markov chains, Operations Research 33 (1985), 1107–1116).
    """
    A = np.array(P, dtype=np.float64)
    K = len(A)
    for n in range(K - 1, 0, -1):  # take state n out: its visits are spread over the states before it
        A[:n, n] /= A[n, :n].sum()
        A[:n, :n] += A[:n, n, None] * A[n, :n]
    pi = np.ones(K)
    for n in range(1, K):
        pi[n] = pi[:n] @ A[:n, n]
    return pi / pi.sum()


def gcd_of_loops(P: Array, members: Array) -> int:
    """Return the period of a class of states: gcd of level(i) + 1 − level(j) over its moves i → j; 0 without moves."""
    inner = P[np.ix_(members, members)] > 0
    order, before = breadth_first_order(inner, 0)
    level = np.zeros(len(members), dtype=int)
    for state in order[1:]:
        level[state] = level[before[state]] + 1
    i, j = np.nonzero(inner)
    return math.gcd(*(level[i] + 1 - level[j]).tolist())


def count_moves(paths: Any, states: Sequence[Any] | None, owner: str) -> tuple[Array, Array, list[Any]]:
    """Return the counts of moves (K, K), the counts of first states (K,) and the names of the states."""
    listed = _list_of_paths(owner, paths)
    seen = {state for path in listed for state in path if not _is_missing(state)}
    if states is None:
        try:
            names = sorted(seen)
        except TypeError as error:
            raise DataError(f"{owner}: the states cannot be sorted; give them as states=[…].") from error
    else:
        names = list(states)
    if not names:
        raise DataError(f"{owner}: the paths hold no state; give at least one.")
    K = len(names)
    counts, starts = np.zeros((K, K)), np.zeros(K)
    for path in listed:
        present = np.array([not _is_missing(state) for state in path], dtype=bool)
        codes = np.zeros(len(path), dtype=np.int64)
        codes[present] = code_states(owner, names, [state for state in path if not _is_missing(state)])
        both = present[:-1] & present[1:]
        np.add.at(counts, (codes[:-1][both], codes[1:][both]), 1.0)
        if len(path) and present[0]:
            starts[codes[0]] += 1
    return counts, starts, names


def code_states(owner: str, names: Sequence[Any], path: Sequence[Any]) -> Array:
    """Return the number of each state of a path."""
    code_of = {name: code for code, name in enumerate(names)}
    try:
        return np.array([code_of[state] for state in path], dtype=np.int64)
    except KeyError as error:
        raise DataError(
            f"{owner}: the state {error.args[0]!r} is not among the states {list(names)[:10]!r}."
        ) from error


def _list_of_paths(owner: str, paths: Any) -> list[list[Any]]:
    if isinstance(paths, str):
        return [list(paths)]
    if isinstance(paths, np.ndarray):
        paths = paths.tolist()
    if not hasattr(paths, "__iter__"):
        raise DataError(f"{owner}: paths must be a sequence of states or of such sequences; got {paths!r}.")
    items = [each.tolist() if isinstance(each, np.ndarray) else each for each in paths]
    nested = [isinstance(each, (list, tuple)) for each in items]
    if any(nested):
        if not all(nested):
            raise DataError(f"{owner}: paths mixes states and sequences of states; wrap every path in a list.")
        return [list(each) for each in items]
    return [items]


def _is_missing(state: Any) -> bool:
    return state is None or (isinstance(state, float) and math.isnan(state))


def allowed_moves(owner: str, structure: Any, K: int) -> Array:
    """Return which transitions a structure allows: a (K, K) table of truth values."""
    i, j = np.indices((K, K))
    if structure is None:
        return np.ones((K, K), dtype=bool)
    if isinstance(structure, str):
        return (j >= i) & (j <= i + 1) if structure == "left-right" else abs(i - j) <= 1
    allowed = np.asarray(structure) != 0
    if allowed.shape != (K, K) or not allowed.any(axis=1).all():
        raise ParameterError(
            f"{owner}: structure must have shape ({K}, {K}) and allow a move out of every state; "
            f"got shape {allowed.shape}."
        )
    return allowed


def estimate_rows(counts: Array, prior: Array, current: Array) -> Array:
    """Return rows ∝ counts + prior − 1; entries that are zero stay zero, a row without counts stays as it is."""
    raised = np.where(current > 0, counts + prior - 1.0, 0.0)
    total = raised.sum(axis=1, keepdims=True)
    return np.where(total > 0, raised / np.where(total > 0, total, 1.0), current)


def log_dirichlet(p: Array, prior: Array) -> float:
    """Return Σ (a − 1) log p over the entries that are not zero, the log-density up to a constant."""
    free = (p > 0) & (prior != 1)
    return float(((prior[free] - 1) * np.log(p[free])).sum())


def check_numbers(owner: str, name: str, values: Any, shape: tuple[int, ...], positive: bool = False) -> Array:
    """Return finite numbers of a shape, or raise ParameterError."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all() or (positive and (array < 0).any()):
        rule = "numbers >= 0" if positive else "finite numbers"
        raise ParameterError(f"{owner}: {name} must be {rule} of shape {shape}; got shape {array.shape}.")
    return array
