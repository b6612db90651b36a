"""One thread budget for BLAS and our own threads together.

The rule that makes results the same bits whatever `n_jobs`: sums over rows run on our threads, each calling BLAS with
one thread on a fixed cut of the rows; factorisations run on BLAS's own threads, whose number never depends on `n_jobs`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ContextDecorator, contextmanager
from functools import cache
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import OpenBLASController, ThreadpoolController

from .errors import ParameterError

R = TypeVar("R")

_SHORT = 2**16  # entries of a matrix whose factorisation takes at most a tenth of a second


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  before they can be counted

    return ThreadpoolController().select(user_api="blas")


@cache
def thread_budget() -> int:
    """Return how many threads this process may use: what BLAS was given, so that limits set outside are respected."""
    counts = [library["num_threads"] for library in _controller().info()]
    return max(counts, default=1)


def blas_libraries() -> list[str]:
    """Return the BLAS libraries in use, in words."""
    found = {
        f"{library['internal_api']} {library['version']} ({library.get('architecture', 'any processor')})"
        for library in _controller().info()
    }
    return sorted(found)


def resolve_n_jobs(n_jobs: int | None) -> int:
    """Translate `n_jobs` to a number of threads: None is the whole budget, -1 too, -2 all but one."""
    budget = thread_budget()
    if n_jobs is None:
        return budget
    if n_jobs == 0:
        raise ParameterError("n_jobs must not be 0; use None for all threads or 1 for one.")
    return min(n_jobs, budget) if n_jobs > 0 else max(1, budget + 1 + n_jobs)


class _BlasState:
    """Who uses BLAS how: any number of passes with one thread each, or one factorisation with all threads."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.passes = 0
        self.factorising = False
        self.limited: list[tuple[Any, int]] = []  # BLAS libraries and the threads they had before the first pass
        self.own = threading.local()  # how many passes this very thread is in

    def depth(self) -> int:
        """Return in how many nested passes the current thread is."""
        return getattr(self.own, "depth", 0)


_blas = _BlasState()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas.__init__)  # type: ignore[misc]  # a lock held elsewhere stays held


def _clear_control() -> None:
    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread(force=True)


class _OneThread(ContextDecorator):
    """What `one_thread_blas` returns; it holds nothing, so that one object serves every block and thread."""

    def __enter__(self) -> None:
        thread_budget()  # counted before the first limit
        with _blas.changed:
            while _blas.factorising and _blas.depth() == 0:
                _blas.changed.wait(0.1)
            if _blas.passes == 0:
                _blas.limited = _limit_blas()
            _blas.passes += 1
            _blas.own.depth = _blas.depth() + 1

    def __exit__(self, *error: object) -> None:
        with _blas.changed:
            _blas.passes -= 1
            _blas.own.depth -= 1
            if _blas.passes == 0:
                _set_threads(_blas.limited)
            _blas.changed.notify_all()


_ONE_THREAD = _OneThread()


def one_thread_blas() -> _OneThread:
    """Let BLAS use one thread inside a block or a decorated function; nests, and concurrent fits share one limit."""
    return _ONE_THREAD


def _limit_blas() -> list[tuple[Any, int]]:
    """Give every BLAS library one thread; return those that had more, with their numbers.

    This is `ThreadpoolController.limit` without its description of every library, which takes longer than a small fit.
    """
    numbers = [(library, library.get_num_threads()) for library in _controller().lib_controllers]
    limited = [(library, number) for library, number in numbers if number is not None and number > 1]
    _set_threads([(library, 1) for library, _ in limited])
    return limited


def _set_threads(numbers: list[tuple[Any, int]]) -> None:
    """Set the threads of BLAS libraries: threadpoolctl heeds one thread only, and here the last one out lifts it."""
    if not numbers:
        return
    _clear_control()
    for library, number in numbers:
        library.set_num_threads(number)
    _clear_control()


@contextmanager
def _all_threads_blas() -> Iterator[None]:
    """Wait until no pass of another fit limits BLAS, so that a factorisation always has the same number of threads."""
    with _blas.changed:
        alone = _blas.depth() == 0  # inside a pass of its own a fit has asked for one thread
        while alone and (_blas.passes > 0 or _blas.factorising):
            _blas.changed.wait(0.1)
        _blas.factorising = _blas.factorising or alone
    try:
        yield
    finally:
        with _blas.changed:
            _blas.factorising = _blas.factorising and not alone
            _blas.changed.notify_all()


def interruptible(function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """Run a long LAPACK call on a helper thread, so that Ctrl-C is answered at once and not when the call returns.

    The call has BLAS's whole budget of threads to itself. On interruption it goes on in the background and its result
    is dropped; the interpreter ends after it. A call on a small matrix, its first argument, ends by itself as soon: it
    needs no helper, whose start would take longer than the call.
    """
    with _all_threads_blas():
        if args and isinstance(args[0], np.ndarray) and args[0].size <= _SHORT:
            return function(*args, **kwargs)
        return _on_helper_thread(function, *args, **kwargs)


def interruptible_pass(function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """Run work of our own threads likewise, with one thread of BLAS for each: it may hold passes over rows."""
    with one_thread_blas():
        return _on_helper_thread(function, *args, **kwargs)


def on_threads(
    function: Callable[[Any], R],
    items: Iterable[Any],
    n_threads: int,
    stop: Callable[[], None] | None = None,
    tick: Callable[[], None] | None = None,
) -> list[R]:
    """Return [function(item) for item in items], worked off by threads with one thread of BLAS each.

    The caller only waits, so that Ctrl-C reaches it. On an error or Ctrl-C no further item is begun, `stop` is called
    for those that are under way, and the first error, in the order of the items, is raised when they have ended. The
    caller calls `tick` twenty times a second while it waits: to look at the clock, for example.
    """
    todo = list(items)
    with one_thread_blas():
        if min(n_threads, len(todo)) <= 1 and stop is None:
            return [function(item) for item in todo]
        return _worked_off(function, todo, n_threads, stop, tick)


def _worked_off(
    function: Callable[[Any], R],
    todo: list[Any],
    n_threads: int,
    stop: Callable[[], None] | None,
    tick: Callable[[], None] | None,
) -> list[R]:
    results: list[Any] = [None] * len(todo)
    errors: dict[int, BaseException] = {}
    places = iter(range(len(todo)))
    taking = threading.Lock()

    def work() -> None:
        while True:
            with taking:
                place = None if errors else next(places, None)
            if place is None:
                return
            try:
                results[place] = function(todo[place])
            except BaseException as error:  # handed to the caller below
                with taking:
                    errors[place] = error

    workers = [threading.Thread(target=work) for _ in range(min(n_threads, len(todo)))]
    for worker in workers:
        worker.start()
    interruption: BaseException | None = None
    while any(worker.is_alive() for worker in workers):
        try:
            for worker in workers:
                worker.join(0.05 / len(workers))
            if tick is not None:
                tick()
            if errors and stop is not None:
                stop()
        except KeyboardInterrupt as error:
            interruption = interruption or error
            with taking:
                places = iter(())
            if stop is not None:
                stop()
    if interruption is not None:
        raise interruption
    if errors:
        raise errors[min(errors)]
    return results


def _on_helper_thread(function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    if threading.current_thread() is not threading.main_thread():
        return function(*args, **kwargs)  # signals reach the main thread only
    outcome: list[Any] = []
    done = threading.Event()  # a join that Ctrl-C interrupts takes the thread for ended, and the interpreter too

    def work() -> None:
        try:
            outcome.append((True, function(*args, **kwargs)))
        except BaseException as error:  # handed to the caller below
            outcome.append((False, error))
        done.set()

    helper = threading.Thread(target=work)  # not a daemon: BLAS must not be unloaded under a running call
    helper.start()
    while not done.wait(0.1):
        pass  # a signal that arrives just before the wait begins does not end it; the next round does
    succeeded, result = outcome[0]
    if not succeeded:
        raise result
    return result  # type: ignore[no-any-return]
