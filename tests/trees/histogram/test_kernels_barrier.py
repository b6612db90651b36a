"""Threads that meet: nobody passes before all have come, and all leave when one is asked to."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from learnable.core.jit import lean_kernel
from learnable.core.threads import ABORT, BarrierTeam, new_meeting
from learnable.trees.histogram._kernels import atomic_add, atomic_load, meet


@lean_kernel
def take_turns(t, n_threads, rounds, log, meeting, stop):
    """Each thread writes its number in each round and checks that all others have written theirs."""
    wrong = 0
    for k in range(rounds):
        log[k, t] = t + 1
        if not meet(meeting, stop, n_threads, k + 1):
            log[rounds, t] = -1
            return
        for u in range(n_threads):
            if log[k, u] != u + 1:
                wrong += 1
    log[rounds, t] = wrong


@lean_kernel
def count_up(counter, times):
    for _ in range(times):
        atomic_add(counter, 0, 1)
    return atomic_load(counter, 0)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_all_have_come_before_one_goes_on(n_threads):
    log = np.zeros((301, n_threads), np.int64)
    with BarrierTeam(n_threads) as crew:
        crew.run(take_turns, n_threads, 300, log)
    assert (log[300] == 0).all()


def test_additions_are_not_lost():
    counter = np.zeros(1, np.int64)
    threads = [threading.Thread(target=count_up, args=(counter, 20_000)) for _ in range(3)]
    count_up(counter, 0)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter[0] == 60_000


@pytest.mark.threaded
@pytest.mark.parametrize("how", ["stop", "abort"])
def test_a_thread_that_waits_for_nobody_leaves_when_asked(how):
    log, meeting, stop = np.zeros((2, 2), np.int64), new_meeting(), np.zeros(1, np.int64)
    thread = threading.Thread(target=take_turns, args=(0, 2, 1, log, meeting, stop))
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()
    if how == "stop":
        stop[0] = 1
    else:
        meeting[ABORT] = 1
    thread.join(5)
    assert not thread.is_alive()
    assert log[1, 0] == -1
