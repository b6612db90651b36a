"""A crew of threads that take numbered jobs one after the other, and a caller that can be interrupted.

A job is a kernel that releases the interpreter for most of its time. Each thread is dedicated and takes the next number
as soon as it is free, so that jobs of unequal length keep all cores busy. What a job computes must depend on its number
alone: then results are the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..core import Run, run_tasks

R = TypeVar("R")


def run_crew(job: Callable[[int], R], count: int, n_threads: int, run: Run, *, at_least: int = 0) -> list[R]:
    """Return [job(0), job(1), …]; cut short, after the first `at_least`, when the run's time is up.

    A job that sees the run's flag raised may end itself by `Stopped`. Ctrl-C raises the flag and waits for the jobs
    under way.
    """
    n_reported = 0

    def watch(n_done: int) -> None:
        nonlocal n_reported
        stop = run.out_of_time
        while n_reported < n_done:
            n_reported += 1
            stop |= run.progress(n_reported, 1.0 - n_reported / count)
        if stop and n_done >= at_least:
            run.flag.raise_()

    return run_tasks(job, count, n_threads, stop=run.flag.array, watch=watch)
