"""The Bellman operators of a process as functions of arrays, on threads; the same bits for any number of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl

from ...core import AnyArray, interruptible
from ..chunks import Clock as Clock
from ..chunks import over_ranges
from ._kernels import backup, evaluate, gather_rows
from .model import MDP, ROUNDING
from .solution import spread_of

#: States below which a second thread does not pay: a sweep over 4,000 states takes about as long as starting one.
_LEAST_STATES = 4_000
#: States up to which a system is solved by dense LU at once: it needs no thread of its own, so that a busy machine
#: does not hold it up. Where sweeps and Krylov steps fail, dense LU serves up to the second number.
_DENSE = 256
_DIRECT = 3_000
#: Successors per state up to which sparse LU comes first: grids and games hardly fill up. With ten random successors it
#: does: 2,000 states took 7 s on a busy machine.
_FEW = 4.0
_MOST_SPARSE = 50_000
#: Sweeps that do not shrink the span by this factor give way to Krylov steps, which do not depend on mixing.
_FAST = 0.8
_MOST_SWEEPS = 200
#: Pairs that are asked how many of all a backup will have to look at, and the share up to which bounds pay: rows that
#: lie apart wait for memory. 10⁵ states of 5 actions: 8.4 ms for all pairs in order, 9.2 for 39 % of them, 7.9 for
#: 27 %.
_PROBED = 2_000
_FEW_LEFT = 0.33


class Sweeps:
    """T and T_π of one process.

    Parameters
    ----------
    mdp : MDP
        The process.
    n_jobs : int or None
        Threads.
    tie : float
        By how much another action has to be better before the chosen one is given up: ties never make a policy cycle.
    """

    def __init__(self, mdp: MDP, n_jobs: int | None = None, tie: float = 0.0) -> None:
        self.mdp = mdp
        self.n_jobs = n_jobs
        self.tie = tie
        self._rows = (*places(mdp.P), mdp.reward, mdp.gamma)
        self._most = mdp.reward.copy()  # upper bounds of the values of the pairs, at …
        self._seen = np.zeros(mdp.n_states)  # … these values of the states
        self._last: AnyArray | None = None  # what the last backup gave
        self._probe = np.arange(0, mdp.n_pairs, max(1, mdp.n_pairs // _PROBED))
        self._probe_state = np.searchsorted(mdp.pair_start, self._probe, side="right") - 1
        self._policy: PolicyRows | None = None  # of the last policy that was solved for
        self._width = _longest_row(mdp) + 2
        self._reward_size = float(abs(mdp.reward).max(initial=0.0))

    def best(self, v: AnyArray, chosen: AnyArray, rows: PolicyRows | None = None) -> AnyArray:
        """Return Tv and update the pairs that are `chosen` in place; `rows` are theirs, where they are at hand.

        No value of a pair grows by more than γ times the largest growth of a state's value, so that after a few backups
        most pairs are known to be behind without being looked at: on 10⁵ random states of 5 actions and 10 successors
        the tenth takes a third of the time of the first.
        """
        mdp = self.mdp
        out = np.empty(mdp.n_states)
        rise = self._rise(v)
        own = np.empty(0) if rows is None or rise == np.inf else self.follow(v, rows)
        indptr, indices, data, reward, gamma = self._rows
        if self._last is None and not v.any():
            indptr = np.zeros_like(indptr)  # the values of all pairs are their rewards

        most = self._most

        def work(lo: int, hi: int) -> None:
            backup(
                lo, hi, mdp.pair_start, indptr, indices, data, reward, gamma, v, self.tie, rise, own, most, out, chosen
            )

        over_ranges(work, mdp.n_states, self.n_jobs, _LEAST_STATES)
        self._seen = v.copy()
        self._last = out
        return out

    def _rise(self, v: AnyArray) -> float:
        """Return by how much the value of a pair may have grown since the last backup, rounding included.

        Infinite where bounds would leave so many pairs that it is faster to look at all.
        """
        if self._last is None:
            return np.inf
        gamma = self.mdp.gamma
        low, high = spread_of(v - self._seen, self.mdp.can_end)
        size = max(abs(float(v.min())), abs(float(v.max())))
        rounding = self._width * np.finfo(float).eps * (self._reward_size + size)
        # Probabilities sum to one up to ROUNDING.
        rise = gamma * high + ROUNDING * max(abs(low), abs(high)) + 4.0 * rounding
        left = self._most[self._probe] + rise >= self._last[self._probe_state] + gamma * low
        return rise if float(left.mean()) <= _FEW_LEFT else np.inf

    def rows_of(self, chosen: AnyArray, reward: AnyArray | None = None, last: PolicyRows | None = None) -> PolicyRows:
        """Return the rows of a policy side by side: sweeps over rows that lie apart take four times as long.

        Where all pairs have as many successors, the rows of the `last` policy are overwritten where it differs.
        """
        from_indptr, from_indices, from_data = self._rows[:3]
        n = self.mdp.n_states
        r = np.ascontiguousarray((self.mdp.reward if reward is None else reward)[chosen])
        if last is not None and len(from_data) == (self._width - 2) * self.mdp.n_pairs:
            found = last._replace(reward=r, chosen=chosen.copy())
            before = last.chosen
        else:
            indptr = np.zeros(n + 1, dtype=np.int64)
            np.cumsum(self.mdp.P.indptr[chosen + 1] - self.mdp.P.indptr[chosen], out=indptr[1:])
            indices = np.empty(indptr[-1], dtype=np.uint32)
            found = PolicyRows(chosen.copy(), indptr.view(np.uint64), indices, np.empty(indptr[-1]), r)
            before = chosen[:0]

        def work(lo: int, hi: int) -> None:
            gather_rows(lo, hi, chosen, before, from_indptr, from_indices, from_data, *found[1:4])

        over_ranges(work, n, self.n_jobs, _LEAST_STATES)
        return found

    def follow(self, v: AnyArray, rows: PolicyRows) -> AnyArray:
        """Return T_π v."""
        out = np.empty(self.mdp.n_states)

        def work(lo: int, hi: int) -> None:
            evaluate(lo, hi, rows.indptr, rows.indices, rows.data, rows.reward, self.mdp.gamma, v, out)

        over_ranges(work, self.mdp.n_states, self.n_jobs, 4 * _LEAST_STATES)
        return out

    def solve(self, chosen: AnyArray, v: AnyArray, tolerance: float, reward: AnyArray | None = None) -> AnyArray:
        """Return v with |T_π v − v| at most `tolerance`, or as near as rounding allows.

        Parameters
        ----------
        chosen : array of shape (n_states,)
            The pairs of the policy.
        v : array of shape (n_states,)
            Where an iterative solution starts.
        tolerance : float
            Largest residual.
        reward : array of shape (n_pairs,), optional
            Instead of those of the process.
        """
        rows = self._policy = self.rows_of(chosen, reward, self._policy)
        n = self.mdp.n_states
        if n > _DENSE and len(rows.data) <= _FEW * n and n <= _MOST_SPARSE:
            return np.asarray(
                spl.splu(sp.csc_array(sp.eye_array(n) - self.mdp.gamma * rows.matrix())).solve(rows.reward)
            )
        if n > _DENSE:
            v, done = self._repeat(rows, v, tolerance)
            if done:
                return v
            found = self._krylov(rows, v, tolerance)
            if found is not None:
                return found
        A = sp.eye_array(n, format="csr") - self.mdp.gamma * rows.matrix()
        if n <= _DIRECT:
            return np.asarray(interruptible(np.linalg.solve, A.toarray(), rows.reward))
        return np.asarray(spl.splu(sp.csc_array(A)).solve(rows.reward))

    def _repeat(self, rows: PolicyRows, v: AnyArray, tolerance: float) -> tuple[AnyArray, bool]:
        """Sweep as long as the span of the changes falls fast: chains that mix need no more, and then a constant."""
        before = np.inf
        gamma = self.mdp.gamma
        for _ in range(_MOST_SWEEPS):
            further = self.follow(v, rows)
            low, high = spread_of(further - v, self.mdp.can_end)
            v = further
            if gamma * (high - low) <= 2.0 * tolerance:
                constant = gamma == 1.0 or self.mdp.can_end
                return v + (0.0 if constant else gamma / (1.0 - gamma) * (low + high) / 2.0), True
            if high - low > _FAST * before:
                break
            before = high - low
        return v, False

    def _krylov(self, rows: PolicyRows, v: AnyArray, tolerance: float) -> AnyArray | None:
        """Solve by BiCGSTAB; return None if it fails."""
        r = rows.reward
        free = rows._replace(reward=np.zeros_like(r))
        operator = spl.LinearOperator(
            (self.mdp.n_states,) * 2, matvec=lambda x: x - self.follow(x.reshape(-1), free), dtype=np.float64
        )
        for _ in range(3):
            residual = r - operator.matvec(v)
            if not abs(residual).max() > tolerance:
                return v
            enough = 0.2 * tolerance * len(v) ** 0.5
            step, _ = spl.bicgstab(operator, residual, rtol=1e-8, atol=enough, maxiter=300)
            if not np.isfinite(step).all() or abs(residual - operator.matvec(step)).max() >= abs(residual).max():
                break
            v = v + step
        return v if abs(r - operator.matvec(v)).max() <= 4.0 * tolerance else None


class PolicyRows(NamedTuple):
    """The successors and rewards of one policy, a row per state."""

    chosen: AnyArray
    indptr: AnyArray
    indices: AnyArray
    data: AnyArray
    reward: AnyArray

    def matrix(self) -> sp.csr_array:
        """Return the rows as a matrix."""
        places = (self.data, self.indices.view(np.int32), self.indptr.view(np.int64))
        return sp.csr_array(places, shape=(len(self.chosen),) * 2)


def places(P: sp.csr_array) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return a sparse array as the kernels read it: unsigned places, and the numbers."""
    return (
        P.indptr.astype(np.int64, copy=False).view(np.uint64),
        P.indices.astype(np.int32, copy=False).view(np.uint32),
        P.data,
    )


def _longest_row(mdp: MDP) -> int:
    return int(np.diff(mdp.P.indptr).max(initial=1))


def rounding_of(mdp: MDP, v: AnyArray) -> float:
    """Return how far rounding may move one backup: sums of products with values of this size."""
    width = _longest_row(mdp) + 2
    scale = float(abs(mdp.reward).max(initial=0.0) + abs(v).max(initial=0.0))
    return width * np.finfo(float).eps * scale
