"""A crew of dedicated threads that run one kernel together and meet inside it.

A kernel whose threads wait for each other needs all of them to run at the same time, which a shared pool does not
promise. The crew has its own threads, starts as many as the system allows, and tells the kernel how many there are.
The caller only waits, so that Ctrl-C reaches it; it then raises the stop flag, at which every waiting thread leaves.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ._barrier import ABORT, new_meeting

_TICK = 0.05  # seconds between two chances for Ctrl-C
_Flag = NDArray[np.int64]


class Crew:
    """Threads for kernels with barriers.

    Parameters
    ----------
    n_threads : int
        Threads wanted; `n_threads` afterwards says how many there are.

    Examples
    --------
    >>> with Crew(2) as crew:
    ...     crew.run(lambda t, meeting, stop: None)
    """

    def __init__(self, n_threads: int) -> None:
        self._jobs: list[queue.SimpleQueue[Any]] = []
        for _ in range(max(1, n_threads)):
            jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
            try:
                threading.Thread(target=self._work, args=(jobs,), daemon=True).start()
            except RuntimeError:  # the system has no more threads: those that run are enough
                break
            self._jobs.append(jobs)

    @property
    def n_threads(self) -> int:
        """Number of threads that take part in a run."""
        return max(1, len(self._jobs))

    def run(self, function: Callable[..., Any], *args: Any, stop: _Flag | None = None, inline: bool = False) -> None:
        """Call function(t, *args, meeting, stop) for t = 0 … n_threads − 1 at the same time; raise what one raises.

        With one thread, `inline` says that the work is short enough to be done by the caller.
        """
        flag = np.zeros(1, np.int64) if stop is None else stop
        meeting = new_meeting()
        if not self._jobs or (inline and self.n_threads == 1):
            function(0, *args, meeting, flag)
            return
        waiting = 0
        done: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        failures: list[BaseException] = []
        try:
            for t, jobs in enumerate(self._jobs):
                jobs.put((function, (t, *args, meeting, flag), meeting, done))
                waiting += 1
            while waiting:
                try:
                    error = done.get(timeout=_TICK)
                except queue.Empty:
                    continue
                waiting -= 1
                if error is not None:
                    failures.append(error)
        except BaseException:
            meeting[ABORT] = 1
            while waiting:  # they write to arrays that the caller will let go
                done.get()
                waiting -= 1
            raise
        if failures:
            raise failures[0]

    def close(self) -> None:
        """End the threads."""
        for jobs in self._jobs:
            jobs.put(None)
        self._jobs = []

    def __enter__(self) -> Self:
        """Return the crew."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the threads."""
        self.close()

    @staticmethod
    def _work(jobs: queue.SimpleQueue[Any]) -> None:
        while (job := jobs.get()) is not None:
            function, args, meeting, done = job
            try:
                function(*args)
                done.put(None)
            except BaseException as error:  # handed to the caller
                meeting[ABORT] = 1
                done.put(error)
            del job, function, args, meeting, done
