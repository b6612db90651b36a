import os
import signal
import threading

import pytest
from threadpoolctl import threadpool_info

from learnable.core import ParameterError, threads


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


def test_a_team_returns_results_in_order_and_raises_what_a_task_raises():
    with threads.Team(3) as team:
        for _ in range(20):
            assert team.run([lambda: "a", lambda: "b", lambda: "c"]) == ["a", "b", "c"]
        assert team.run([lambda: "a"]) == ["a"]
        with pytest.raises(ZeroDivisionError):
            team.run([lambda: 1, lambda: 1 // 0])
        assert team.run([lambda: 1, lambda: 2]) == [1, 2]  # it goes on
    before = threading.active_count()
    with threads.Team(2):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
