"""Kernels of the grower: the codes of a node's rows, gathered and brought into order.

A key is code << 32 | payload. The payload is what the sweep needs of the row: its class and weight, or its place in the
node. Few rows are sorted by insertion; some by one pass into about as many buckets as rows, then insertion, because
ranks are spread evenly; many by radix passes of at most ten bits, whose buckets stay in the fastest cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.jit import lean_kernel

Keys = NDArray[np.uint64]
Int = Any  # int or np.int64, which the compiler does not tell apart

_FEW = 16  # keys up to which they are sorted by insertion
_SOME = 2048  # keys up to which one pass into buckets is tried before radix passes
_MOST_PER_BUCKET = 24  # more rows of different code in one bucket: radix passes instead
COUNTS = 4096  # counters that `sort_keys` needs


@lean_kernel
def sort_keys(keys: Keys, other: Keys, counts: NDArray[np.int64], low: Int, high: Int) -> bool:
    """Sort keys by code, codes being low … high; return whether the result is in `other`."""
    n = keys.size
    if n <= _FEW:
        insert(keys)
        return False
    if n <= _SOME and _into_buckets(keys, other, counts, low, high):
        insert(other)
        return True
    bits = 1
    while (high - low) >> bits > 0:
        bits += 1
    n_passes = (bits + 9) // 10
    digit = (bits + n_passes - 1) // n_passes
    base = np.uint64(low) << np.uint64(32)
    _count_digits(keys, counts, base, n_passes, digit)
    for p in range(0, n_passes, 2):
        _radix_pass(keys, other, counts[p << digit : (p + 1) << digit], base, 32 + p * digit)
        if p + 1 == n_passes:
            return True
        _radix_pass(other, keys, counts[(p + 1) << digit : (p + 2) << digit], base, 32 + (p + 1) * digit)
    return False


@lean_kernel
def _count_digits(keys: Keys, counts: NDArray[np.int64], base: np.uint64, n_passes: Int, digit: Int) -> None:
    """Write where the keys of each digit begin, for all passes at once: which keys have a digit does not change."""
    mask = np.uint64((1 << digit) - 1)
    for b in range(n_passes << digit):
        counts[b] = 0
    if n_passes == 2:
        low = counts[: 1 << digit]
        high = counts[1 << digit :]
        for i in range(keys.size):
            code = (keys[i] - base) >> np.uint64(32)
            low[np.int64(code & mask)] += 1
            high[np.int64(code >> np.uint64(digit))] += 1
    else:
        for i in range(keys.size):
            code = (keys[i] - base) >> np.uint64(32)
            for p in range(n_passes):
                counts[(p << digit) + np.int64(code >> np.uint64(p * digit) & mask)] += 1
    for p in range(n_passes):
        place: Int = 0
        for b in range(p << digit, (p + 1) << digit):
            here = counts[b]
            counts[b] = place
            place += here


@lean_kernel
def insert(keys: Keys) -> None:
    """Sort by insertion."""
    for i in range(1, keys.size):
        key = keys[i]
        j = i
        while j > 0 and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key


@lean_kernel
def _into_buckets(keys: Keys, other: Keys, counts: NDArray[np.int64], low: Int, high: Int) -> bool:
    """Distribute the keys over buckets in order of code; give up if one bucket gets too many."""
    n = keys.size
    n_buckets = 32
    while n_buckets < n:
        n_buckets *= 2
    shift = np.uint64(32)
    while np.int64(np.uint64(high - low) >> (shift - np.uint64(32))) >= n_buckets:
        shift += np.uint64(1)
    base = np.uint64(low) << np.uint64(32)
    counts = counts[:n_buckets]
    for b in range(n_buckets):
        counts[b] = 0
    for i in range(n):
        counts[np.int64((keys[i] - base) >> shift)] += 1
    place: Int = 0
    most: Int = 0
    for b in range(n_buckets):
        here = counts[b]
        counts[b] = place
        place += here
        most = max(most, here)
    if most > _MOST_PER_BUCKET and shift > np.uint64(32):
        return False
    for i in range(n):
        bucket = np.int64((keys[i] - base) >> shift)
        other[counts[bucket]] = keys[i]
        counts[bucket] += 1
    return True


@lean_kernel
def _radix_pass(source: Keys, target: Keys, counts: NDArray[np.int64], base: np.uint64, shift: Int) -> None:
    """Sort stably by some bits of the code; counts holds where the keys of each digit begin."""
    mask = np.uint64(counts.size - 1)
    by = np.uint64(shift)
    for i in range(source.size):
        bucket = np.int64(((source[i] - base) >> by) & mask)
        target[counts[bucket]] = source[i]
        counts[bucket] += 1


@lean_kernel
def load_codes(
    cols: Any, sparse: Any, column: Int, rows: NDArray[np.int32], out: NDArray[np.uint32]
) -> tuple[Int, Int]:
    """Gather the codes of one column for (ascending) rows; return the smallest and the largest."""
    low = np.uint32(0xFFFFFFFF)
    high = np.uint32(0)
    if sparse is None:
        codes = cols.codes[column]
        for i in range(rows.size):
            c = np.uint32(codes[rows[i]])
            out[i] = c
            low = min(low, c)
            high = max(high, c)
    if sparse is not None:
        at = sparse.start[column]
        end = sparse.start[column + 1]
        zero = np.uint32(sparse.zero[column])
        for i in range(rows.size):
            at = _gallop(sparse.rows, at, end, rows[i])
            c = sparse.entries[at] if at < end and sparse.rows[at] == rows[i] else zero
            out[i] = c
            low = min(low, c)
            high = max(high, c)
    return np.int64(low), np.int64(high)


@lean_kernel
def _gallop(stored: NDArray[np.int32], at: Int, end: Int, row: Int) -> Int:
    """Return the first place from `at` on whose row is not below `row`, in the logarithm of the distance."""
    step = np.int64(1)
    while at + step < end and stored[at + step] < row:
        at += step
        step *= 2
    while step > 0:
        if at + step < end and stored[at + step] < row:
            at += step
        step //= 2
    return at + 1 if at < end and stored[at] < row else at


@lean_kernel
def order_of(values: NDArray[np.float64], order: NDArray[np.int64], spare: NDArray[np.int64]) -> None:
    """Write the stable order of the values (none of them NaN), by merging runs of growing length."""
    n = values.size
    for i in range(n):
        order[i] = i
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle = min(start + width, n)
            end = min(start + 2 * width, n)
            a = start
            b = middle
            for k in range(start, end):
                first = b >= end or (a < middle and values[order[a]] <= values[order[b]])
                spare[k] = order[a] if first else order[b]
                a += 1 if first else 0
                b += 0 if first else 1
        for k in range(n):
            order[k] = spare[k]
        width *= 2
