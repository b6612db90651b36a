"""The crew: errors reach the caller, nobody waits for the dead, and fewer threads than asked for are enough."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from tests.trees.histogram.test_kernels_barrier import take_turns

from learnable.core.threads import BarrierTeam


@pytest.mark.threaded
def test_every_thread_runs_at_the_same_time():
    gate = threading.Barrier(3, timeout=120)
    with BarrierTeam(3) as crew:
        assert crew.n_threads == 3
        crew.run(lambda t, meeting, stop: gate.wait())


@pytest.mark.threaded
def test_an_error_of_one_thread_frees_the_others():
    log = np.zeros((2, 2), np.int64)

    def work(t, meeting, stop):
        if t == 1:
            raise ValueError("lost")
        take_turns(t, 2, 1, log, meeting, stop)

    with BarrierTeam(2) as crew:
        with pytest.raises(ValueError, match="lost"):
            crew.run(work)
        assert log[1, 0] == -1
        crew.run(take_turns, 2, 1, np.zeros((2, 2), np.int64))


@pytest.mark.threaded
@pytest.mark.parametrize("allowed", [0, 1])
def test_threads_that_cannot_start_are_done_without(monkeypatch, allowed):
    start, started = threading.Thread.start, []

    def limited(self):
        if len(started) >= allowed:
            raise RuntimeError("can't start new thread")
        started.append(self)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", limited)
    crew = BarrierTeam(3)
    monkeypatch.undo()
    seen = []
    with crew:
        assert crew.n_threads == 1
        crew.run(lambda t, meeting, stop: seen.append(t))
    assert seen == [0]


@pytest.mark.threaded
def test_a_small_job_of_one_is_done_by_the_caller():
    seen = []
    with BarrierTeam(1) as crew:
        crew.run(lambda *_: seen.append(threading.current_thread()), inline=True)
        crew.run(lambda *_: seen.append(threading.current_thread()))
    assert seen[0] is threading.current_thread()
    assert seen[1] is not threading.current_thread()


def test_the_caller_waits_for_all_when_it_is_interrupted(monkeypatch):
    log = np.zeros((2, 2), np.int64)
    wait = threading.Event.wait
    calls = []

    def interrupted(self, timeout=None):
        calls.append(timeout)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return wait(self, timeout)

    def work(t, meeting, stop):
        if t == 0:
            take_turns(0, 2, 1, log, meeting, stop)

    with BarrierTeam(2) as crew:
        monkeypatch.setattr(threading.Event, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            crew.run(work)
        monkeypatch.undo()
    assert len(calls) > 1
    assert log[1, 0] == -1
