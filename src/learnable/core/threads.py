"""One thread budget for BLAS and our own threads together, and the one place that starts threads.

Three forms of work share one engine, which captures errors, heeds a stop flag and answers Ctrl-C:

- `ordered_map(work, tasks, threads)`: results in the order of the tasks, for a stream of unknown length;
- `run_tasks(task, count, threads)` and `TaskTeam`: a queue of numbered tasks, for one call or for many;
- `BarrierTeam`: threads that run one compiled kernel together and meet inside it.

`Background` is a single function on a thread of its own, and `interruptible` waits for one so that Ctrl-C is heard.

The rule that makes results the same bits whatever `n_jobs`: sums over rows run on our threads, each calling BLAS with
one thread on a fixed cut of the rows; factorisations run on BLAS's own threads, whose number never depends on `n_jobs`.
"""

from __future__ import annotations

import itertools
import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ContextDecorator, contextmanager
from functools import cache, partial
from typing import Any, Final, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import OpenBLASController, ThreadpoolController

from .errors import ParameterError

R = TypeVar("R")
Flag = NDArray[np.int64]  #: [0] ≠ 0 asks all work that polls it to stop

_SHORT = 2**16  # entries of a matrix whose factorisation takes at most a tenth of a second
_TICK = 0.05  # seconds between two looks at the clock and at Ctrl-C
_AHEAD = 2  # results per thread that may wait to be fetched in order
MEETING_SIZE: Final = 16  #: entries of the array through which the threads of a `BarrierTeam` meet
ABORT: Final = 8  #: where that array is raised when a thread failed; on another cache line than the count of arrivals


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  before they can be counted

    return ThreadpoolController().select(user_api="blas")


@cache
def thread_budget() -> int:
    """Return how many threads this process may use: what BLAS was given, so that limits set outside are respected."""
    return max((library["num_threads"] for library in _controller().info()), default=1)


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


class _OwnPasses(threading.local):
    depth = 0  # passes that the thread is in, those of its starter included
    entered = 0  # those that it has entered itself


class _BlasState:
    """Who uses BLAS how: any number of passes with one thread each, or one factorisation with all threads."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.passes = 0
        self.factorising = False
        self.limited: list[tuple[Any, int]] = []  # BLAS libraries and the threads they had before the first pass
        self.own = _OwnPasses()


_blas = _BlasState()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas.__init__)  # type: ignore[misc]  # a lock held elsewhere stays held


class _OneThread(ContextDecorator):
    """What `one_thread_blas` returns; it holds nothing, so that one object serves every block and thread."""

    def __enter__(self) -> None:
        own = _blas.own
        if own.entered == 0:  # otherwise this thread holds the limit already: small fits enter a dozen inner blocks
            thread_budget()  # counted before the first limit
            with _blas.changed:
                while _blas.factorising and own.depth == 0:
                    _blas.changed.wait(0.1)
                if _blas.passes == 0:
                    _blas.limited = _limit_blas()
                _blas.passes += 1
        own.entered += 1
        own.depth += 1

    def __exit__(self, *error: object) -> None:
        own = _blas.own
        own.entered -= 1
        own.depth -= 1
        if own.entered == 0:
            with _blas.changed:
                _blas.passes -= 1
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
    if numbers:
        clear_control = getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)
        clear_control(force=True)
        for library, number in numbers:
            library.set_num_threads(number)
        clear_control(force=True)


@contextmanager
def _all_threads_blas() -> Iterator[None]:
    """Wait until no pass of another fit limits BLAS, so that a factorisation always has the same number of threads."""
    with _blas.changed:
        alone = _blas.own.depth == 0  # inside a pass of its own a fit has asked for one thread
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


def _on_helper_thread(function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    if not on_main_thread():
        return function(*args, **kwargs)  # signals reach the main thread only
    # Not a daemon: BLAS must not be unloaded under a running call.
    return Background(partial(function, *args, **kwargs)).result()


def on_main_thread() -> bool:
    """Tell whether the caller is the thread that Ctrl-C reaches."""
    return threading.current_thread() is threading.main_thread()


def _wait_for(
    done: threading.Event, watch: Callable[[], None] | None = None, stop: Callable[[], None] | None = None
) -> None:
    """Wait in short steps, so that Ctrl-C is heard, and call `watch` after each.

    When interrupted, call `stop` and go on waiting before the interruption is passed on: the tasks under way write to
    arrays that the caller will release. Without `stop` they run on by themselves.
    """
    try:
        while not done.wait(_TICK):  # a signal just before a step begins is seen by the next one
            if watch is not None:
                watch()
    except BaseException:
        if stop is not None:
            stop()
            _wait_for(done)
        raise


class Stopped(Exception):  # noqa: N818  it is no error
    """Raised by a task that saw the stop flag and ended itself; it is not passed on."""


class Background(Generic[R]):
    """A function on a thread of its own; what it raises is raised where its result is asked for.

    It takes part in the passes over rows that its starter is in (`one_thread_blas`). The interpreter may end before the
    function does if the thread is a daemon.
    """

    def __init__(self, function: Callable[[], R], *, name: str | None = None, daemon: bool = False) -> None:
        self._function = function
        self._depth = _blas.own.depth
        self._result: R | None = None
        self._error: BaseException | None = None
        self._done = threading.Event()  # a join that Ctrl-C interrupts takes the thread for ended
        threading.Thread(target=self._work, name=name, daemon=daemon).start()

    def wait(self) -> None:
        """Wait for the end; a signal ends the wait."""
        _wait_for(self._done)

    def result(self, stop: Callable[[], None] | None = None, watch: Callable[[], None] | None = None) -> R:
        """Wait, and return what the function returned or raise what it raised.

        `watch` is called every 50 ms. On Ctrl-C, or if `watch` raises, `stop` is called and its effect waited for;
        without it the function goes on in the background.
        """
        _wait_for(self._done, watch, stop)
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]

    def _work(self) -> None:
        _blas.own.depth = self._depth
        try:
            self._result = self._function()
        except BaseException as error:  # raised again by `result`
            self._error = error
        del self._function  # and with it what it holds
        self._done.set()


def call_later(seconds: float, function: Callable[[], None]) -> Callable[[], None]:
    """Call the function after some seconds, in the background; return what cancels it."""
    cancelled = threading.Event()

    def work() -> None:
        if not cancelled.wait(seconds):
            function()

    Background(work, daemon=True)
    return cancelled.set


def ordered_map(work: Callable[[Any], R], tasks: Iterable[Any], threads: int) -> Iterator[R]:
    """Yield work(task) for each task, in order; `tasks` may have to be read and may be of unknown length.

    The calling thread works too, which a pool's hand-over of every task would forbid. At most `_AHEAD` results per
    thread wait to be fetched. After Ctrl-C or an error no further task begins.
    """
    if threads == 1:
        yield from map(work, tasks)
        return
    line = _OrderedLine(work, iter(tasks), _AHEAD * threads)
    helpers = [Background(line.help, name=f"learnable-{number}") for number in range(1, threads)]
    try:
        number = 0
        while line.has(number):
            yield line.fetch(number)
            number += 1
    finally:
        line.end(None)  # blocks are short, so the helpers end at once, on Ctrl-C too
        for helper in helpers:
            helper.wait()


class _OrderedLine(Generic[R]):
    """Tasks that threads share, numbered as they are taken, with a bounded number of results waiting to be fetched."""

    def __init__(self, work: Callable[[Any], R], tasks: Iterator[Any], ahead: int) -> None:
        self.work = work
        self.tasks = tasks
        self.ahead = ahead
        self.taking = threading.Lock()  # one at a time: a task may have to be read from a file
        self.changed = threading.Condition()
        self.begun = 0
        self.fetched = 0
        self.ended = False
        self.results: dict[int, R] = {}
        self.error: BaseException | None = None

    def help(self) -> None:
        """Do tasks until there are none, or one has failed."""
        while self._do_one(wait=True):
            pass

    def has(self, number: int) -> bool:
        """Wait for one result, doing tasks as long as it is not there; return whether there is such a task."""
        while True:
            with self.changed:
                if self.error is not None:
                    raise self.error
                if self._is_settled(number):
                    return number in self.results
            if not self._do_one(wait=False):
                with self.changed:
                    if not self._is_settled(number):
                        self.changed.wait(_TICK)

    def fetch(self, number: int) -> R:
        """Return a result that is there."""
        with self.changed:
            self.fetched = number + 1
            self.changed.notify_all()
            return self.results.pop(number)

    def _do_one(self, wait: bool) -> bool:
        """Do the next task; return False if there is none, or none yet and the caller does not wait."""
        with self.changed:
            while not self._is_over() and self.begun >= self.fetched + self.ahead:
                if not wait:
                    return False
                self.changed.wait(_TICK)
        with self.taking:  # never while waiting for others: they may be waiting for this lock
            if self._is_over():
                return False
            try:
                task = next(self.tasks)
            except StopIteration:
                return self.end(None)
            except BaseException as error:
                return self.end(error)
            with self.changed:
                number = self.begun
                self.begun += 1
        try:
            result = self.work(task)
        except BaseException as error:  # raised again where the result is asked for
            return self.end(error)
        with self.changed:
            self.results[number] = result
            self.changed.notify_all()
        return True

    def _is_settled(self, number: int) -> bool:
        return number in self.results or self.error is not None or (self.ended and number >= self.begun)

    def _is_over(self) -> bool:
        return self.ended or self.error is not None

    def end(self, error: BaseException | None) -> bool:
        """Begin no further task, and keep the first error; return False, as `next` does without a task."""
        with self.changed:
            self.ended = self.ended or error is None
            self.error = self.error or error
            self.changed.notify_all()
        return False


class _Workers:
    """Threads that wait for work, each at a queue of its own; they end with the object that started them."""

    def __init__(self) -> None:
        self._queues: list[queue.SimpleQueue[Callable[[], None] | None]] = []

    def _hire(self, count: int) -> int:
        """Have `count` threads, or as many as the system allows; return how many there are."""
        while len(self._queues) < count:
            jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
            try:
                Background(partial(_serve, jobs), daemon=True)  # the caller that gives them work waits for its end
            except RuntimeError:  # the system has no more threads: those that run are enough
                break
            self._queues.append(jobs)
        return min(count, len(self._queues))

    def close(self) -> None:
        """End the threads."""
        for jobs in self._queues:
            jobs.put(None)
        self._queues = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


def _serve(jobs: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    """Do one job after the other; a job raises nothing, and None is the last."""
    while (job := jobs.get()) is not None:
        job()
        del job  # it holds arrays, and the next may be long in coming


class _Shift(Generic[R]):
    """Numbered tasks that some threads share, and what became of them."""

    def __init__(self, task: Callable[[int], R], count: int, stop: Flag | None) -> None:
        self.task = task
        self.count = count
        self.stop = np.zeros(1, np.int64) if stop is None else stop
        self.numbers = itertools.count()  # next() is atomic
        self.results: dict[int, R] = {}
        self.failures: dict[int, BaseException] = {}
        self.n_whole = 0  # tasks done, counted from the first, without a gap
        self.depth = _blas.own.depth
        self._left = itertools.count(1)
        self._workers = 0
        self.done = threading.Event()

    def work(self) -> None:
        """Take tasks until there are none, one has failed or the stop flag is raised."""
        number = -1
        try:
            while not (self.failures or self.stop[0]) and (number := next(self.numbers)) < self.count:
                self.results[number] = self.task(number)
        except BaseException as error:  # handed to the caller by `outcome`
            self.failures[number] = error
            self.stop[0] = 1

    def help(self) -> None:
        """Work on a thread of the team; the last one to end says so."""
        _blas.own.depth = self.depth
        self.work()
        if next(self._left) == self._workers:
            self.done.set()

    def share(self, queues: list[queue.SimpleQueue[Callable[[], None] | None]]) -> None:
        """Have the threads at these queues help."""
        self._workers = len(queues)
        if not queues:
            self.done.set()
        for jobs in queues:
            jobs.put(self.help)

    def cancel(self) -> None:
        """Begin no further task."""
        self.stop[0] = 1

    def finished(self) -> int:
        """Return how many tasks, counted from the first, are done without a gap."""
        while self.n_whole in self.results:
            self.n_whole += 1
        return self.n_whole

    def outcome(self) -> list[R]:
        """Return the results up to the first gap, or raise the failure of the first task that has one."""
        for number in sorted(self.failures):
            if not isinstance(self.failures[number], Stopped):
                raise self.failures[number]
        return [self.results[number] for number in range(self.finished())]


class TaskTeam(_Workers):
    """Threads that share numbered tasks, again and again; they start with the first tasks that need them.

    Parameters
    ----------
    n_threads : int
        Threads, the caller among them; what tasks compute must depend on their numbers alone.

    Examples
    --------
    >>> with TaskTeam(2) as team:  # and one thread of BLAS for each
    ...     team.run(lambda number: number * number, 4)
    [0, 1, 4, 9]
    """

    def __init__(self, n_threads: int) -> None:
        super().__init__()
        self.n_threads = n_threads

    def run(
        self,
        task: Callable[[int], R],
        count: int,
        *,
        stop: Flag | None = None,
        watch: Callable[[int], None] | None = None,
    ) -> list[R]:
        """Return [task(0), …, task(count − 1)]; each thread takes the next number as soon as it is free.

        The flag `stop` ends the run early: results up to the first gap are returned, and a task that sees it may end
        itself by `Stopped`. Ctrl-C and errors raise the flag and wait for the tasks under way. With `watch` the caller
        does no task but calls it every 50 ms, and at the end, with the number of tasks done without a gap.
        """
        n_helpers = max(0, min(self.n_threads, count) - (watch is None))
        if watch is None and stop is None and n_helpers == 0:
            return [task(number) for number in range(count)]
        shift = _Shift(task, count, stop)
        helpers = self._queues[: self._hire(n_helpers)]
        try:
            shift.share(helpers)
            if watch is None or not helpers:
                shift.work()
        except BaseException:  # Ctrl-C outside a task
            shift.cancel()
            raise
        _wait_for(shift.done, None if watch is None else lambda: watch(shift.finished()), shift.cancel)
        if watch is not None:
            watch(shift.finished())
        return shift.outcome()

    def __enter__(self) -> Self:
        """Limit BLAS to one thread per task."""
        _ONE_THREAD.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """Lift the limit and end the threads."""
        _ONE_THREAD.__exit__(*error)
        super().__exit__(*error)


def run_tasks(
    task: Callable[[int], R],
    count: int,
    threads: int,
    *,
    stop: Flag | None = None,
    watch: Callable[[int], None] | None = None,
) -> list[R]:
    """Return [task(0), …, task(count − 1)] from a team of its own; see `TaskTeam.run`."""
    return TaskTeam(threads).run(task, count, stop=stop, watch=watch)  # its threads end with it


class BarrierTeam(_Workers):
    """Threads that run one compiled kernel together and meet inside it.

    A kernel whose threads wait for each other needs all of them to run at the same time, which a queue of tasks does
    not promise. The team has its own threads, as many of those wanted as the system allows: `n_threads` says how many.
    The caller only waits, so that Ctrl-C reaches it.

    Examples
    --------
    >>> with BarrierTeam(2) as team:
    ...     team.run(lambda t, meeting, stop: None)
    """

    def __init__(self, n_threads: int) -> None:
        super().__init__()
        self._hire(max(1, n_threads))

    @property
    def n_threads(self) -> int:
        """Number of threads that take part in a run."""
        return max(1, len(self._queues))

    def run(self, function: Callable[..., Any], *args: Any, stop: Flag | None = None, inline: bool = False) -> None:
        """Call function(t, *args, meeting, stop) for t = 0 … n_threads − 1 at the same time; raise what one raises.

        With one thread, `inline` says that the work is short enough to be done by the caller. On Ctrl-C the meeting is
        aborted, at which every waiting thread leaves.
        """
        flag = np.zeros(1, np.int64) if stop is None else stop
        meeting = new_meeting()
        if not self._queues or (inline and self.n_threads == 1):
            function(0, *args, meeting, flag)
            return

        def take_part(t: int) -> None:
            try:
                function(t, *args, meeting, flag)
            except BaseException:
                meeting[ABORT] = 1
                raise

        shift = _Shift(take_part, len(self._queues), None)  # a kernel never returns alone: each thread gets one task
        shift.share(self._queues)
        _wait_for(shift.done, stop=lambda: meeting.__setitem__(ABORT, 1))
        shift.outcome()


def new_meeting() -> Any:
    """Return a counter for threads that have not met yet."""
    return np.zeros(MEETING_SIZE, np.int64)
