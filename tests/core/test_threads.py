import ast
import gc
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import learnable
from learnable.core import ParameterError, threads

pytestmark = pytest.mark.threaded  # BLAS with all its threads

STARTERS = {
    "Thread",
    "Timer",
    "Barrier",
    "ThreadPoolExecutor",
    "ThreadPool",
    "start_new_thread",
}


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.parametrize(
    ("n_jobs", "expected"),
    [(None, 4), (1, 1), (3, 3), (4, 4), (100, 4), (-1, 4), (-2, 3), (-4, 1), (-100, 1)],
)
def test_n_jobs_within_the_budget(monkeypatch, n_jobs, expected):
    monkeypatch.setattr(threads, "thread_budget", lambda: 4)
    assert threads.resolve_n_jobs(n_jobs) == expected


def test_zero_jobs_are_refused():
    with pytest.raises(ParameterError, match="n_jobs must not be 0; use None"):
        threads.resolve_n_jobs(0)


def test_the_budget_does_not_shrink_inside_a_limit():
    budget = threads.thread_budget()
    assert budget >= 1
    with threads.one_thread_blas():
        assert threads.thread_budget() == budget
        assert threads.resolve_n_jobs(None) == budget


def test_one_thread_inside_the_block_and_the_old_number_after_it():
    before = blas_threads()
    with threads.one_thread_blas():
        assert blas_threads() == {1}
        with threads.one_thread_blas():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_the_outermost_block_of_a_thread_lifts_the_limit():
    before = blas_threads()
    with threads.one_thread_blas():
        with threads.one_thread_blas(), threads.one_thread_blas():
            assert blas_threads() == {1}
            assert threads._blas.passes == 1
        assert blas_threads() == {1}
    assert blas_threads() == before
    assert threads._blas.passes == threads._blas.own.depth == threads._blas.own.entered == 0


def test_a_thread_inside_its_starters_block_holds_a_limit_of_its_own():
    def seen():
        assert threads._blas.own.depth == 1
        assert threads._blas.own.entered == 0
        with threads.one_thread_blas():
            return threads._blas.passes

    with threads.one_thread_blas():
        assert threads.Background(seen).result() == 2


def test_an_error_inside_the_block_lifts_the_limit():
    before = blas_threads()
    with pytest.raises(RuntimeError), threads.one_thread_blas():
        raise RuntimeError
    assert blas_threads() == before


def test_blocks_that_overlap_in_two_threads_share_one_limit():
    before = blas_threads()
    entered, leave = threading.Event(), threading.Event()

    def other():
        with threads.one_thread_blas():
            entered.set()
            leave.wait(10)

    helper = threading.Thread(target=other)
    with threads.one_thread_blas():
        helper.start()
        assert entered.wait(10)
    assert blas_threads() == {1}
    leave.set()
    helper.join()
    assert blas_threads() == before


def test_interruptible_hands_back_the_result_and_the_error():
    assert threads.interruptible(divmod, 7, 2) == (3, 1)
    assert threads.interruptible(sorted, [1, 2], reverse=True) == [2, 1]
    with pytest.raises(ZeroDivisionError):
        threads.interruptible(divmod, 1, 0)


def test_interruptible_runs_in_place_where_no_signal_arrives():
    seen = []
    helper = threading.Thread(target=lambda: seen.append(threads.interruptible(threading.current_thread)))
    helper.start()
    helper.join()
    assert seen == [helper]


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to its own process")
def test_ctrl_c_is_answered_before_the_call_returns():
    started, release, returned = threading.Event(), threading.Event(), threading.Event()

    def long_call():
        started.set()
        release.wait(30)
        returned.set()

    def press():
        started.wait(10)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            threads.interruptible(long_call)
        assert not returned.is_set()
    finally:
        release.set()


def test_a_pass_may_run_inside_an_interruptible_pass():
    def passes():
        with threads.one_thread_blas():
            return [library["num_threads"] for library in threads._controller().info()]

    assert set(threads.interruptible_pass(passes)) == {1}


def test_only_the_engine_starts_threads():
    package = Path(learnable.__file__).parent
    found = {}
    for path in package.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not any(name in text for name in STARTERS):
            continue
        tree = ast.parse(text)
        names = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
        names += [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
        names += [one.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for one in node.names]
        if count := sum(name in STARTERS for name in names):
            found[path.relative_to(package).as_posix()] = count
    assert found == {"core/threads.py": 1}


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_maps_and_queues_keep_the_order(n_threads):
    squares = [number * number for number in range(40)]
    assert list(threads.ordered_map(lambda x: x * x, iter(range(40)), n_threads)) == squares
    assert threads.run_tasks(lambda x: x * x, 40, n_threads) == squares
    assert threads.run_tasks(lambda x: x, 0, n_threads) == []
    assert list(threads.ordered_map(abs, [], n_threads)) == []
    team = threads.TaskTeam(n_threads)
    for count in (40, 1, 3):
        assert team.run(lambda x: x * x, count) == squares[:count]


def test_the_first_failure_by_number_is_raised_and_tasks_end():
    seen = []

    def task(number):
        seen.append(number)
        time.sleep(0.01 if number == 3 else 0.02)
        if number >= 3:
            raise KeyError(number)

    team = threads.TaskTeam(2)
    with pytest.raises(KeyError, match="3"):
        team.run(task, 1000)
    assert len(seen) < 10
    assert team.run(abs, 3) == [0, 1, 2]  # the team is as good as new
    with pytest.raises(KeyError, match="3"):
        list(threads.ordered_map(task, range(3, 1000), 2))
    assert len(seen) < 20


def test_an_error_of_the_source_of_tasks_is_raised():
    def tasks():
        yield 1
        raise OSError("file is gone")

    with pytest.raises(OSError, match="gone"):
        list(threads.ordered_map(abs, tasks(), 3))


def test_a_raised_flag_ends_the_queue_at_the_first_gap():
    stop = np.zeros(1, np.int64)

    def task(number):
        if number == 5:
            stop[0] = 1
            raise threads.Stopped
        return number

    assert threads.run_tasks(task, 100, 2, stop=stop) == [0, 1, 2, 3, 4]


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to its own process")
@pytest.mark.parametrize("watch", [None, lambda n_done: None], ids=["caller works", "caller waits"])
def test_ctrl_c_raises_the_flag_and_waits_for_tasks(watch):
    stop = np.zeros(1, np.int64)
    ended = []

    def task(number):
        if number == 0:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        while not stop[0]:
            time.sleep(0.005)
        time.sleep(0.05)
        ended.append(number)

    with pytest.raises(KeyboardInterrupt):
        threads.run_tasks(task, 50, 2, stop=stop, watch=watch)
    assert stop[0] == 1
    assert len(ended) <= 2
    assert watch is None or 0 in ended  # it was waited for


def test_the_watcher_sees_tasks_done_and_its_errors_are_raised():
    seen = []
    threads.run_tasks(lambda number: time.sleep(0.02), 8, 2, watch=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 8

    def fail(n_done):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        threads.run_tasks(lambda number: time.sleep(0.06), 8, 2, watch=fail)


def test_threads_of_a_team_start_late_and_end_with_it():
    gate = threading.Barrier(3, timeout=120)
    team = threads.TaskTeam(3)
    assert team.run(lambda number: threading.current_thread(), 1) == [threading.current_thread()]
    seen = team.run(lambda number: (gate.wait(), threading.current_thread())[1], 3)
    assert len(set(seen)) == 3
    del team
    gc.collect()
    for thread in set(seen) - {threading.current_thread()}:
        thread.join(10)
        assert not thread.is_alive()


def test_work_on_other_threads_takes_part_in_the_pass_of_its_starter():
    def factorise(number):
        return threads.interruptible(lambda matrix: sorted(blas_threads()), np.eye(2))

    with threads.TaskTeam(2) as team:  # would wait for the pass to end, for ever, if it were another's
        assert team.run(factorise, 2) == [[1], [1]]


def test_a_call_may_be_cancelled_before_its_time():
    called = threading.Event()
    threads.call_later(30, called.set)()
    threads.call_later(0.01, called.set)
    assert called.wait(10)
