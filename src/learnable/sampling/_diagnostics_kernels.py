"""Compiled: normal scores, R-hat and autocorrelation times of split chains, one parameter after the other.

The formulas are those of `diagnostics`, whose NumPy functions (`rhat`, `ess_bulk`, `ess_tail`) are the slow twins.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..core.jit import ieee_kernel

Array = NDArray[np.float64]
Places = NDArray[np.int64]
Words = NDArray[np.uint64]

#: Sorting: values of a digit of eleven bits, its mask, and how far a draw may be moved at the end, in the mean.
DIGITS: Final = 2048
LAST: Final = np.uint64(DIGITS - 1)
MOST_MOVES: Final = 16

# Rows of the series of a parameter.
SCORES: Final = 0  #: normal scores of the draws
LOW: Final = 1  #: whether a draw is at most the 5 % quantile
HIGH: Final = 2  #: whether it is at most the 95 % quantile


@ieee_kernel
def take_halves(x: Array, start: int, halves: Array) -> None:
    """OUT halves (k, 2·chains, n): the first halves of all chains, then the second, of k columns of x from `start`."""
    n_chains, n_draws, _ = x.shape
    k, _, n = halves.shape
    for c in range(2 * n_chains):
        chain = x[c % n_chains]
        offset = 0 if c < n_chains else n_draws - n
        for i in range(n):
            for q in range(k):
                halves[q, c, i] = chain[offset + i, start + q]


@ieee_kernel
def judge(
    halves: Array, table: Array, cuts: Array, most: int, series: Array, scratch: Array, places: Places, found: Array
) -> None:
    """OUT found (k, 4): R-hat, and τ of the three series of each parameter, NaN where it is not defined.

    IN halves (k, m, n) split chains, places (k + 1, mn) of their draws from the smallest to the largest, with a spare
    row, table (2mn − 1,) scores of the ranks 1, 1½, 2 …, cuts (k, 2) the two quantiles (NaN: those of the halves),
    `most` as in `initial_time`. OUT series (k, 3, m, n). Scratch (4, mn).
    """
    k, m, n = halves.shape
    S = m * n
    ordered = scratch[0]
    distance = scratch[1]
    folded = scratch[2].reshape(m, n)
    centred = scratch[3].reshape(m, n)
    for j in range(k):
        x = halves[j].reshape(S)
        if not all_finite(x):
            for c in range(4):
                found[j, c] = math.nan
            continue
        order = places[j]
        for i in range(S):
            ordered[i] = x[order[i]]
        scores = series[j, SCORES].reshape(S)
        put_scores(ordered, order, table, scores)
        middle = 0.5 * (ordered[(S - 1) // 2] + ordered[S // 2])
        merge_distances(ordered, order, middle, distance, places[k])
        put_scores(distance, places[k], table, scratch[2])
        worst = plain_rhat(series[j, SCORES])
        by_distance = plain_rhat(folded)
        found[j, 0] = worst if worst >= by_distance or by_distance != by_distance else by_distance
        found[j, 1] = math.nan if ordered[0] == ordered[S - 1] else initial_time(series[j, SCORES], most, centred)
        for which in range(2):
            cut = cuts[j, which]
            if cut != cut:
                cut = quantile(ordered, 0.05 if which == 0 else 0.95)
            marks = series[j, LOW + which].reshape(S)
            count = mark_low(x, cut, marks)
            alone = count == 0 or count == S
            found[j, 2 + which] = math.nan if alone else initial_time(series[j, LOW + which], most, centred)


@ieee_kernel
def sort_all(halves: Array, scratch: Array, bits: Words, places: Places, counts: Places, sorted_: Places) -> None:
    """OUT places (k + 1, S): those of each row of halves (k, S), see `sort_places`; sorted_ (k,): whether found."""
    k = halves.shape[0]
    for j in range(k):
        sorted_[j] = sort_places(halves[j], scratch, bits, places[j], places[k], counts)


@ieee_kernel
def sort_places(x: Array, shifted: Array, bits: Words, order: Places, other: Places, counts: Places) -> bool:
    """OUT order: the places of x from the smallest number to the largest; return whether it was found.

    Three counting passes over the leading 33 bits of x − min x, whose bits rise with it, and then an insertion of those
    few that the bits left do not tell apart. Numbers that crowd far from the smallest take too long: then it gives up.
    Else it takes 35 µs for 4,000 numbers, NumPy's argsort 115.
    Scratch: shifted (S,) and bits, the same memory as words, other (S,), counts (3 · 2048,).
    """
    S = x.size
    least = x[0]
    for i in range(S):
        least = min(least, x[i])
    for i in range(S):
        shifted[i] = x[i] - least
    for c in range(counts.size):
        counts[c] = 0
    low = counts[:DIGITS]
    middle = counts[DIGITS : 2 * DIGITS]
    high = counts[2 * DIGITS :]
    for i in range(S):
        key = bits[i] >> np.uint64(30)
        low[key & LAST] += 1
        middle[(key >> np.uint64(11)) & LAST] += 1
        high[(key >> np.uint64(22)) & LAST] += 1
    a, b, c = 0, 0, 0
    for d in range(DIGITS):
        a, low[d] = a + low[d], a
        b, middle[d] = b + middle[d], b
        c, high[d] = c + high[d], c
    for i in range(S):
        digit = (bits[i] >> np.uint64(30)) & LAST
        order[low[digit]] = i
        low[digit] += 1
    for i in range(S):
        digit = (bits[order[i]] >> np.uint64(41)) & LAST
        other[middle[digit]] = order[i]
        middle[digit] += 1
    for i in range(S):
        digit = (bits[other[i]] >> np.uint64(52)) & LAST
        order[high[digit]] = other[i]
        high[digit] += 1
    left = MOST_MOVES * S
    for i in range(1, S):
        place = order[i]
        value = x[place]
        j = i
        while j > 0 and x[order[j - 1]] > value:
            order[j] = order[j - 1]
            j -= 1
        order[j] = place
        left -= i - j
        if left < 0:
            return False
    return True


@ieee_kernel
def all_finite(x: Array) -> bool:
    """Tell whether no number is infinite or NaN: then 0·x adds up to zero."""
    total = 0.0
    for i in range(x.size):
        total += 0.0 * x[i]
    return total == 0.0


@ieee_kernel
def put_scores(ordered: Array, order: Places, table: Array, scores: Array) -> None:
    """OUT scores, in the order of the draws; ties share the score of their mean rank."""
    S = ordered.size
    start = 0
    while start < S:
        end = start + 1
        while end < S and ordered[end] == ordered[start]:
            end += 1
        score = table[start + end - 1]
        for i in range(start, end):
            scores[order[i]] = score
        start = end


@ieee_kernel
def merge_distances(ordered: Array, order: Places, middle: float, distance: Array, places: Places) -> None:
    """OUT distance: |x − middle| from the smallest to the largest, places: which draw each is of.

    They fall and then rise along the ordered draws: two runs, merged from the middle outwards.
    """
    S = ordered.size
    right = 0
    end = S
    while right < end:  # by halving: the first draw that is not below the middle
        at = (right + end) // 2
        if ordered[at] < middle:
            right = at + 1
        else:
            end = at
    left = right - 1
    below = middle - ordered[left] if left >= 0 else math.inf
    above = ordered[right] - middle if right < S else math.inf
    for i in range(S):
        if below <= above:
            distance[i] = below
            places[i] = order[left]
            left -= 1
            below = middle - ordered[left] if left >= 0 else math.inf
        else:
            distance[i] = above
            places[i] = order[right]
            right += 1
            above = ordered[right] - middle if right < S else math.inf


@ieee_kernel
def quantile(ordered: Array, probability: float) -> float:
    """Return the quantile of sorted numbers, interpolated as NumPy does by default."""
    place = probability * (ordered.size - 1)
    below = int(place)
    gap = ordered[min(below + 1, ordered.size - 1)] - ordered[below]
    return float(ordered[below] + gap * (place - below))


@ieee_kernel
def mark_low(x: Array, cut: float, marks: Array) -> int:
    """OUT marks = 1 where x ≤ cut, else 0; return how many."""
    count = 0.0
    for i in range(x.size):
        mark = 1.0 if x[i] <= cut else 0.0
        marks[i] = mark
        count += mark
    return int(count)


@ieee_kernel
def plain_rhat(halves: Array) -> float:
    """Return √((n − 1 + B/W)/n) of (m, n); chains that stand still are infinitely far apart, or nothing is known."""
    m, n = halves.shape
    overall = 0.0
    for c in range(m):
        overall += mean_of(halves[c]) / m
    spread = 0.0
    within = 0.0
    still = True
    apart = False
    for c in range(m):
        x = halves[c]
        mean = mean_of(x)
        spread += (mean - overall) ** 2
        moved = 0.0
        for i in range(n):
            shift = x[i] - mean
            within += shift * shift
            moved += 1.0 if x[i] != x[0] else 0.0
        if moved > 0.0:  # rounding of the mean must not count as movement
            still = False
        if x[0] != halves[0, 0]:
            apart = True
    if still:
        return math.inf if apart else math.nan
    between = n * spread / (m - 1) if m > 1 else 0.0
    return math.sqrt((between / (within / (m * (n - 1))) + n - 1.0) / n)


@ieee_kernel
def mean_of(x: Array) -> float:
    """Return the mean."""
    total = 0.0
    for i in range(x.size):
        total += x[i]
    return float(total / x.size)


@ieee_kernel
def initial_times(halves: Array, most: int, centred: Array, tau: Array) -> None:
    """OUT tau (k,): τ of chains (k, m, n); see `initial_time`. Scratch centred (m, n)."""
    for j in range(halves.shape[0]):
        tau[j] = initial_time(halves[j], most, centred)


@ieee_kernel
def initial_time(x: Array, most: int, centred: Array) -> float:
    """Return τ of chains (m, n) by Geyer's initial monotone sequence, lag by lag; −2 if `most` lags are too few.

    Chains that mix need few lags, which take less time than the Fourier transforms of the twin
    `diagnostics._times_by_fourier`. Scratch centred (m, n).
    """
    m, n = x.shape
    last = max(0, (n - 4) // 2)  # the last pair of lags that is looked at
    overall = 0.0
    for c in range(m):
        overall += mean_of(x[c]) / m
    spread = 0.0
    for c in range(m):
        row = x[c]
        to = centred[c]
        mean = mean_of(row)
        spread += (mean - overall) ** 2
        for i in range(n):
            to[i] = row[i] - mean
    start = lagged(centred, 0) / n
    within = start * n / (n - 1)
    total = start + (spread / (m - 1) if m > 1 else 0.0)
    found = 0.0
    least = math.inf
    at = 0
    while True:
        even = 1.0 if at == 0 else 1.0 - (within - lagged(centred, 2 * at) / n) / total
        pair = even + 1.0 - (within - lagged(centred, 2 * at + 1) / n) / total
        if not pair > 0.0 or at == last:
            break
        least = min(least, pair)
        found += least
        at += 1
        if 2 * at > most:
            break
    if 2 * at > most and at <= last and pair > 0.0:
        return -2.0
    if not pair >= 0.0:
        even = even if even > 0.0 else 0.0
    return -1.0 + 2.0 * found + even


@ieee_kernel
def lagged(x: Array, lag: int) -> float:
    """Return the mean over chains (m, n) of Σ xᵢxᵢ₊ₗ."""
    total = 0.0
    for c in range(x.shape[0]):
        first = x[c, : x.shape[1] - lag]
        second = x[c, lag:]
        for i in range(first.size):
            total += first[i] * second[i]
    return float(total / x.shape[0])
