"""One thread budget for BLAS and our own threads together.

The rule that makes results the same bits whatever `n_jobs`: sums over rows run on our threads, each calling BLAS with
one thread on a fixed cut of the rows; factorisations run on BLAS's own threads, whose number never depends on `n_jobs`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import OpenBLASController, ThreadpoolController

from .errors import ParameterError

R = TypeVar("R")


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  before they can be counted

    return ThreadpoolController().select(user_api="blas")


@cache
def thread_budget() -> int:
    """Return how many threads this process may use: what BLAS was given, so that limits set outside are respected."""
    counts = [library["num_threads"] for library in _controller().info()]
    return max(counts, default=1)


def resolve_n_jobs(n_jobs: int | None) -> int:
    """Translate `n_jobs` to a number of threads: None is the whole budget, -1 too, -2 all but one."""
    budget = thread_budget()
    if n_jobs is None:
        return budget
    if n_jobs == 0:
        raise ParameterError("n_jobs must not be 0; use None for all threads or 1 for one.")
    return min(n_jobs, budget) if n_jobs > 0 else max(1, budget + 1 + n_jobs)


_limit_lock = threading.Lock()
_limit_state: dict[str, Any] = {"depth": 0, "limiter": None}


def _take_control() -> None:
    """Let this thread set OpenBLAS's limit: threadpoolctl heeds one thread only, and here the last one out lifts it."""
    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread(force=True)


@contextmanager
def one_thread_blas() -> Iterator[None]:
    """Let BLAS use one thread inside the block; nests, and concurrent fits share one limit."""
    with _limit_lock:
        thread_budget()  # counted before the first limit
        if _limit_state["depth"] == 0:
            _take_control()
            _limit_state["limiter"] = _controller().limit(limits=1)
        _limit_state["depth"] += 1
    try:
        yield
    finally:
        with _limit_lock:
            _limit_state["depth"] -= 1
            if _limit_state["depth"] == 0:
                _take_control()
                _limit_state["limiter"].restore_original_limits()
                _take_control()


def interruptible(function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """Run a long LAPACK call on a helper thread, so that Ctrl-C is answered at once and not when the call returns.

    On interruption the call goes on in the background and its result is dropped.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*args, **kwargs)  # signals reach the main thread only
    outcome: list[Any] = []

    def work() -> None:
        try:
            outcome.append((True, function(*args, **kwargs)))
        except BaseException as error:  # handed to the caller below
            outcome.append((False, error))

    helper = threading.Thread(target=work, daemon=True)
    helper.start()
    while helper.is_alive():
        helper.join(0.1)  # a signal that arrives just before the wait begins does not end it; the next round does
    succeeded, result = outcome[0]
    if not succeeded:
        raise result
    return result  # type: ignore[no-any-return]
