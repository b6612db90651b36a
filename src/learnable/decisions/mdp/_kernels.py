"""Compiled sweeps over the states of a process; the slow twins are in `tests/oracles/mdp.py`.

IN everywhere: start (n+1,) pairs of each state; indptr, indices, data: successors of each pair, as unsigned places; r
(pairs,) rewards; g: γ.
"""

from __future__ import annotations

import numpy as np

from ...core.jit import intrinsic, kernel, lean_kernel, strict_kernel

prefetch = intrinsic("prefetch")  #: (array, index): ask for that cache line; the index may lie outside
#: States ahead whose chosen rows are asked for: they lie apart, and each would wait for memory (7.6 ms a backup of 10⁵
#: states of which no other row is looked at, 5.0 with it).
_AHEAD = 24


@strict_kernel
def _ahead(k, indptr, indices, data, v):  # type: ignore[no-untyped-def]
    """Return Σ p(s' | pair k) v(s').

    A plain loop: rows are short, and vectors of gathered numbers take longer (15 ms a backup of 5·10⁶ successors).
    Unsigned places need no test for negative ones (8 ms instead of 14).
    """
    total = 0.0
    for j in range(indptr[k], indptr[k + 1]):
        total += data[j] * v[indices[j]]
    return total


@lean_kernel
def _ask_for(s, hi, chosen, indptr, indices, data):  # type: ignore[no-untyped-def]
    """Ask for the chosen row of a state further on."""
    if s + _AHEAD < hi and chosen[s + _AHEAD] >= 0:
        first = np.int64(indptr[chosen[s + _AHEAD]])
        last = np.int64(indptr[chosen[s + _AHEAD] + 1]) - 1
        prefetch(data, first)
        prefetch(data, last)
        prefetch(indices, first)
        prefetch(indices, last)


@lean_kernel
def backup(lo, hi, start, indptr, indices, data, r, g, v, tie, rise, own, most, out, chosen):  # type: ignore[no-untyped-def]
    """Set out = Tv and the greedy pairs of the states lo … hi.

    IN v; tie: a pair stays chosen unless another is better by more than this; rise: the most by which the value of any
    pair has grown since the last backup, infinite where all are to be looked at; own (n,): the values of the chosen
    pairs, or (0,) where they are not known. OUT out (n,). IN/OUT chosen (n,), −1 where no pair is chosen yet; most
    (pairs,): upper bounds of the pairs' values. A pair whose bound is below the value of the chosen one is not the best
    and is not looked at: after a few backups that saves nine pairs in ten.
    """
    for s in range(lo, hi):
        old = chosen[s]
        kept = -np.inf
        if rise == np.inf:  # all pairs are looked at, in the order of memory
            pass
        elif len(own) > 0:
            kept = own[s]
        elif old >= 0:
            _ask_for(s, hi, chosen, indptr, indices, data)
            kept = r[old] + g * _ahead(old, indptr, indices, data, v)
        best = kept
        at = old
        for k in range(start[s], start[s + 1]):
            bound = most[k] + rise
            if k == old and rise < np.inf:
                bound = kept
            elif bound >= best:
                bound = r[k] + g * _ahead(k, indptr, indices, data, v)
                if bound > best:
                    best = bound
                    at = k
                if k == old:
                    kept = bound
            most[k] = bound
        out[s] = best
        if kept < best - tie:
            chosen[s] = at


@lean_kernel
def gather_rows(lo, hi, chosen, before, indptr, indices, data, out_indptr, out_indices, out_data):  # type: ignore[no-untyped-def]
    """Copy the rows of the chosen pairs of the states lo … hi side by side; out_indptr says where they begin.

    IN before (n,): the pairs whose rows are there already, or (0,).
    """
    for s in range(lo, hi):
        if len(before) > 0 and before[s] == chosen[s]:
            continue
        _ask_for(s, hi, chosen, indptr, indices, data)
        first = indptr[chosen[s]]
        to = out_indptr[s]
        for j in range(out_indptr[s + 1] - to):
            out_indices[to + j] = indices[first + j]
            out_data[to + j] = data[first + j]


@lean_kernel
def evaluate(lo, hi, indptr, indices, data, r, g, v, out):  # type: ignore[no-untyped-def]
    """Set out = T_π v of the states lo … hi; rows and rewards are those of the policy, one per state."""
    for s in range(lo, hi):
        out[s] = r[s] + g * _ahead(s, indptr, indices, data, v)


@lean_kernel
def gauss_seidel(start, indptr, indices, data, r, g, v, chosen):  # type: ignore[no-untyped-def]
    """Replace v by max_a Q(·, a), each state seeing the new values before it. Return the largest change."""
    most = 0.0
    for s in range(len(start) - 1):
        best = -np.inf
        for k in range(start[s], start[s + 1]):
            q = r[k] + g * _ahead(k, indptr, indices, data, v)
            if q > best:
                best = q
                chosen[s] = k
        most = max(most, abs(best - v[s]))
        v[s] = best
    return most


@lean_kernel
def _lift(heap, place, urgency, at):  # type: ignore[no-untyped-def]
    """Move the state at a place of the heap up until its parent is as urgent."""
    s = heap[at]
    while at > 0:
        above = (at - 1) // 2
        if urgency[heap[above]] >= urgency[s]:
            break
        heap[at] = heap[above]
        place[heap[at]] = at
        at = above
    heap[at] = s
    place[s] = at


@lean_kernel
def _sink(heap, place, urgency, size):  # type: ignore[no-untyped-def]
    """Move the state at the top down until its children are less urgent."""
    at = 0
    s = heap[0]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and urgency[heap[child + 1]] > urgency[heap[child]]:
            child += 1
        if urgency[heap[child]] <= urgency[s]:
            break
        heap[at] = heap[child]
        place[heap[at]] = at
        at = child
    heap[at] = s
    place[s] = at


@lean_kernel
def prioritised(  # type: ignore[no-untyped-def]
    start,
    indptr,
    indices,
    data,
    r,
    g,
    back_start,
    back_state,
    back_p,
    v,
    chosen,
    heap,
    place,
    urgency,
    least,
    most_steps,
):
    """Back up the most urgent state until no urgency exceeds `least`; return the number of backups.

    IN back_*: predecessors of each state with their largest probability. IN/OUT v, chosen; urgency (n,) of each state;
    heap, place (n,): the heap of all states, most urgent first.
    """
    size = len(heap)
    steps = 0
    while urgency[heap[0]] > least and steps < most_steps:
        s = heap[0]
        best = -np.inf
        for k in range(start[s], start[s + 1]):
            q = r[k] + g * _ahead(k, indptr, indices, data, v)
            if q > best:
                best = q
                chosen[s] = k
        change = abs(best - v[s])
        v[s] = best
        urgency[s] = 0.0
        _sink(heap, place, urgency, size)
        for j in range(back_start[s], back_start[s + 1]):
            before = back_state[j]
            asked = g * back_p[j] * change
            # Urgencies add: many small changes of successors make one large change.
            urgency[before] += asked
            _lift(heap, place, urgency, place[before])
        steps += 1
    return steps


@kernel
def robust_backup(lo, hi, start, indptr, indices, data, stop, r, g, radius, v, out, chosen):  # type: ignore[no-untyped-def]
    """Set out = max_a min over laws within `radius` (L1) of p(· | s, a), with its support, of r + γ Σ p v.

    The worst law moves radius/2 of probability from the best successors to the worst one; an end counts as a successor
    of value 0. IN radius (pairs,). OUT out, chosen (n,).
    """
    for s in range(lo, hi):
        best = -np.inf
        for k in range(start[s], start[s + 1]):
            first, last = indptr[k], indptr[k + 1]
            size = last - first + 1
            worth = np.empty(size)
            mass = np.empty(size)
            worth[0] = 0.0
            mass[0] = stop[k]
            for j in range(first, last):
                worth[j - first + 1] = v[indices[j]]
                mass[j - first + 1] = data[j]
            order = np.argsort(-worth)
            worst = -1
            for i in range(size):
                if mass[order[i]] > 0.0:
                    worst = order[i]
            left = min(0.5 * radius[k], 1.0 - mass[worst])
            moved = 0.0
            for i in range(size):
                j = order[i]
                if j == worst or left <= 0.0:
                    break
                taken = min(mass[j], left)
                mass[j] -= taken
                left -= taken
                moved += taken
            mass[worst] += moved
            q = 0.0
            for i in range(size):
                q += mass[i] * worth[i]
            q = r[k] + g * q
            if q > best:
                best = q
                chosen[s] = k
        out[s] = best
