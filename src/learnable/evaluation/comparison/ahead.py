"""Kernels that must be compiled are compiled by processes in the background, while other models race.

Where the cache has all kernels, nothing is started. Models that share kernels are compiled by one process. The race
takes the models whose kernels are there first, and waits only when none is; waiting is not the time of any model.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from ...core.registry import REGISTRY
from ...core.threads import Background
from .candidates import Candidate
from .clock import Clock
from .race import Server

_MOST_PROCESSES: Final = 4
_MOST_NAMES: Final = 3  # that are shown
_WARM: Final = "learnable.evaluation.comparison.warm"


class CompileAhead:
    """Compiles what a comparison will need.

    Parameters
    ----------
    server : Server
        Starts the processes.
    models : sequence of str
        The classes that take part; those that are not ours have nothing to compile.
    task : {"regression", "binary", "multiclass"}
        What is predicted.

    Examples
    --------
    >>> from learnable.evaluation.comparison.ahead import CompileAhead
    >>> from learnable.evaluation.comparison.race import Server
    >>> ahead = CompileAhead(Server(["Ridge"]), ["Ridge"], "regression")
    >>> ahead.wait(timeout=60)
    True
    """

    def __init__(self, server: Server, models: Sequence[str], task: str) -> None:
        self._server = server
        self._task = task
        self._missing = list(dict.fromkeys(name for name in models if name in REGISTRY))
        self._changed = threading.Condition()
        Background(self._work, daemon=True)

    def is_ready(self, model: str) -> bool:
        """Tell whether a fit of the class would not have to compile anything first."""
        return model not in self._missing

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until everything is compiled; False if that takes longer than `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._missing, timeout)

    def in_order(
        self,
        entries: Sequence[Any],
        candidate_of: Callable[[Any], Candidate],
        emit: Callable[[dict[str, Any]], None],
        clock: Clock,
    ) -> Iterator[Any]:
        """Yield entries as their kernels become ready, otherwise in their order; say what is waited for."""
        left = list(entries)
        told: list[str] = []
        while left:
            waiting = [candidate_of(one).name for one in left if not self.is_ready(candidate_of(one).model)]
            if waiting != told:
                emit({"kind": "compiling", "models": waiting})
                told = waiting
            chosen = next((one for one in left if self.is_ready(candidate_of(one).model)), None)
            if chosen is None:
                chosen = self._wait_for_one(left, candidate_of, emit, clock)
            left.remove(chosen)
            yield chosen
        if told:
            emit({"kind": "compiling", "models": []})

    def _wait_for_one(
        self,
        left: Sequence[Any],
        candidate_of: Callable[[Any], Candidate],
        emit: Callable[[dict[str, Any]], None],
        clock: Clock,
    ) -> Any:
        """Return the first entry that becomes ready; the first of all once its share of the time is over."""
        names = list(dict.fromkeys(candidate_of(one).model for one in left))
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        emit({"kind": "stage", "text": f"compiling {', '.join(names[:_MOST_NAMES])}{more} (once on this machine)"})
        share = clock.share(2, clock.reserve_for_end())
        end = None if share is None else time.monotonic() + share
        while end is None or time.monotonic() < end:
            for one in left:
                if self.is_ready(candidate_of(one).model):
                    return one
            with self._changed:
                self._changed.wait(0.1)  # short, so that Ctrl-C is heard
        return left[0]

    def _work(self) -> None:
        """Find out what is missing and have it compiled, the first models of the race first."""
        told = self._server.run({"function": f"{_WARM}:tell_ready"})
        ready = {name for name, task in (told.messages[0] if told.messages else []) if task == self._task}
        self._done(ready)
        groups = deque(_groups(self._missing))
        n_processes = min(len(groups), usable_cores(), _MOST_PROCESSES)
        for number in range(n_processes):
            Background(partial(self._compile, groups, number), daemon=True)

    def _compile(self, groups: deque[list[str]], number: int) -> None:
        """Compile groups until none is left: the first process from the front, the others from the back."""
        while True:
            try:
                names = groups.popleft() if number == 0 else groups.pop()
            except IndexError:
                return
            job = {"function": f"{_WARM}:compile_models", "names": names, "task": self._task}
            self._server.run(job, on_message=lambda name: self._done({name}))
            self._done(set(names))  # of those that failed, their own jobs will say why

    def _done(self, names: set[str]) -> None:
        with self._changed:
            self._missing = [name for name in self._missing if name not in names]
            self._changed.notify_all()


def usable_cores() -> int:
    """Return how many processors this process may run on: `taskset` and some containers allow fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _groups(names: Sequence[str]) -> list[list[str]]:
    """Return the names by what they share: all trees, boosting by histograms, and otherwise their packages."""
    found: dict[str, list[str]] = {}
    for name in names:
        package = REGISTRY[name].path.split(".")[1]
        if package == "ensembles":
            package = "histograms" if name.startswith("Hist") else "trees"
        found.setdefault(package, []).append(name)
    return list(found.values())
