"""Loops over ranges of states or replications, on the threads that a caller may use."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise

from ..core.threads import resolve_n_jobs
from ..data.blocks import reduce_loads


class Clock:
    """The time limit of one computation."""

    def __init__(self, max_seconds: float | None) -> None:
        self._began = time.perf_counter()
        self._limit = max_seconds

    @property
    def seconds(self) -> float:
        """Time since it began."""
        return time.perf_counter() - self._began

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self._limit is not None and self.seconds > self._limit


def over_ranges(work: Callable[[int, int], None], n_items: int, n_jobs: int | None, least: int) -> None:
    """Call `work(first, last)` for ranges that cover 0 … n_items, at once on several threads.

    Parameters
    ----------
    work : function of two integers
        Writes what belongs to its range and nothing else, so that the cut does not show in the results.
    n_items : int
        How many there are.
    n_jobs : int or None
        Threads; None is the whole budget.
    least : int
        A range is not shorter than this: starting a thread has to pay.
    """
    threads = min(resolve_n_jobs(n_jobs), max(n_items // least, 1))
    if threads == 1:
        work(0, n_items)
        return
    n_ranges = min(4 * threads, n_items // least)
    ends = [n_items * part // n_ranges for part in range(n_ranges + 1)]
    loads = (partial(_pair, first, last) for first, last in pairwise(ends))
    reduce_loads(loads, lambda ends: work(*ends), lambda one, other: None, threads=threads)


def _pair(first: int, last: int) -> tuple[int, int]:
    return first, last
