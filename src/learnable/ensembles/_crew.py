"""A crew of threads that take numbered jobs one after the other, and a caller that can be interrupted.

A job is a kernel that releases the interpreter for most of its time. Each thread is dedicated and takes the next number
as soon as it is free, so that jobs of unequal length keep all cores busy. What a job computes must depend on its number
alone: then results are the same for any number of threads.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import TypeVar

from ..core.run import Run
from ..trees.grower import GrowthStopped

R = TypeVar("R")

_TICK = 0.05  # seconds between two looks at the clock and at Ctrl-C


def run_crew(job: Callable[[int], R], count: int, n_threads: int, run: Run, *, at_least: int = 0) -> list[R]:
    """Return [job(0), job(1), …]; cut short, after the first `at_least`, when the run's time is up.

    A job that sees the run's flag raised may end itself by GrowthStopped. Ctrl-C raises the flag and waits for the jobs
    under way.
    """
    results: dict[int, R] = {}
    failures: dict[int, BaseException] = {}
    numbers = itertools.count()
    done = threading.Event()
    left = itertools.count(1)

    def work() -> None:
        try:
            while not run.flag.raised and (number := next(numbers)) < count:
                results[number] = job(number)
        except BaseException as error:  # handed to the caller below
            failures[number] = error
            run.flag.raise_()
        if next(left) == len(threads):
            done.set()

    threads = [threading.Thread(target=work) for _ in range(min(n_threads, count))]
    try:
        for thread in threads:
            thread.start()
        reported, over = 0, not threads
        while not over:
            over = done.wait(_TICK)
            finished = _first_gap(results)
            stop = run.out_of_time
            while reported < finished:
                reported += 1
                stop |= run.progress(reported, 1.0 - reported / count)
            if stop and finished >= at_least:
                run.flag.raise_()
    except BaseException:
        run.flag.raise_()
        raise
    finally:
        for thread in threads:
            if thread.ident is not None:  # an interruption may come before they are all started
                thread.join()
    for number in sorted(failures):
        if not isinstance(failures[number], GrowthStopped):
            raise failures[number]
    return [results[number] for number in range(_first_gap(results))]


def _first_gap(results: dict[int, R]) -> int:
    """Return how many jobs, counted from the first, are done without a gap."""
    found = 0
    while found in results:
        found += 1
    return found
