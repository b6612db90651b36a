"""Loops of k-medoids: what every swap of a medoid for another row would bring, and the swap itself.

Every row knows its nearest and its second nearest medoid. Then one look at the distances of a candidate tells what it
would bring in place of each of the K medoids (E. Schubert and P. Rousseeuw, Information Systems 101 (2021), 101804).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel

Array = NDArray[Any]


class Seats(NamedTuple):
    """The medoids, and what they mean for every row; changed in place."""

    medoids: Array  #: (K,) int64, rows
    to_medoids: Array  #: (K, n) distances
    nearest: Array  #: (n,) int32, which medoid
    second: Array  #: (n,) int32
    near: Array  #: (n,) distance to the nearest
    next: Array  #: (n,) to the second nearest; infinite if there is one medoid
    removal: Array  #: (K,) what J gains when a medoid is gone


@kernel
def seat_rows(seats: Seats, weight: Array, changed: int) -> None:
    """Find the nearest and second nearest medoid of every row, after one was replaced; changed = -1: all are new.

    OUT seats.nearest, second, near, next, removal.
    """
    K, n = seats.to_medoids.shape
    seats.removal[:] = 0.0
    for i in range(n):
        a, b, near, following = seats.nearest[i], seats.second[i], seats.near[i], seats.next[i]
        low, high = changed, changed + 1  # the others did not move
        if changed < 0 or a == changed or b == changed:
            a, b, near, following = np.int32(0), np.int32(0), np.inf, np.inf
            low, high = 0, K
        for k in range(low, high):
            distance = seats.to_medoids[k, i]
            if distance < near:
                b, following = a, near
                a, near = np.int32(k), distance
            elif distance < following:
                b, following = np.int32(k), distance
        seats.nearest[i], seats.second[i], seats.near[i], seats.next[i] = a, b, near, following
        if K > 1:
            seats.removal[a] += weight[i] * (following - near)


@kernel
def weigh_candidate(distances: Array, seats: Seats, weight: Array, change: Array) -> int:
    """Return the medoid that a candidate replaces best. OUT change (K,): of J, by replacing each.

    IN  distances (n,) of the candidate to all rows.
    """
    change[:] = seats.removal
    shared = 0.0
    single = change.size == 1
    for i in range(distances.size):
        distance = distances[i]
        if single:
            shared += weight[i] * (distance - seats.near[i])
        elif distance < seats.next[i]:
            a = seats.nearest[i]
            if distance < seats.near[i]:
                shared += weight[i] * (distance - seats.near[i])
                change[a] += weight[i] * (seats.near[i] - seats.next[i])
            else:
                change[a] += weight[i] * (distance - seats.next[i])
    best = 0
    for k in range(change.size):
        change[k] += shared
        if change[k] < change[best]:
            best = k
    return best


@kernel
def try_candidates(
    D: Array, first: int, seats: Seats, weight: Array, taken: Array, threshold: float, change: Array, out: Array
) -> None:
    """Go through candidates and make every swap that lowers J by more than the threshold, at once.

    IN  D (m, n) distances of the candidates first, first + 1, … to all rows; change (K,) scratch.
    OUT seats; taken (n,) bool: whether a row is a medoid; out (3,): candidates since the last swap, the lowest change
        among them, the number of swaps.
    """
    for c in range(D.shape[0]):
        if not taken[first + c]:
            k = weigh_candidate(D[c], seats, weight, change)
            if change[k] < -threshold:
                taken[seats.medoids[k]], taken[first + c] = False, True
                seats.medoids[k] = first + c
                seats.to_medoids[k] = D[c]
                seat_rows(seats, weight, k)
                out[0], out[1] = 0.0, 0.0
                out[2] += 1.0
                continue
            out[1] = min(out[1], change[k])
        out[0] += 1.0
        if out[0] >= taken.size:
            return
