import math

import numpy as np
import pytest

from learnable.core import Run
from learnable.core import estimator as run
from learnable.core.estimator import StopFlag, no_progress


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that the test moves."""

    class Clock:
        now = 100.0

    monkeypatch.setattr(run.time, "perf_counter", lambda: Clock.now)
    return Clock


def test_a_raised_flag_stays_raised():
    flag = StopFlag()
    assert not flag.raised
    flag.raise_()
    flag.raise_()
    assert flag.raised
    assert flag.array.dtype == np.int64 and flag.array[0] == 1


def test_no_progress_never_stops():
    assert no_progress(10**9, math.nan) is False


def test_the_clock_counts_from_the_beginning(clock):
    fit = Run()
    clock.now += 2.5
    assert fit.seconds == 2.5
    assert not fit.out_of_time


def test_progress_stops_after_the_deadline_and_not_before(clock):
    fit = Run(max_seconds=1.0)
    clock.now += 0.9
    assert not fit.progress(1, 1.0)
    clock.now += 0.2
    assert fit.out_of_time
    assert fit.progress(2, 0.5)


def test_progress_stops_when_the_flag_is_raised():
    fit = Run(max_seconds=None, n_jobs=3)
    assert not fit.progress(1, 1.0)
    fit.flag.raise_()
    assert fit.progress(2, 1.0)
    assert fit.n_jobs == 3


def test_every_run_has_a_flag_of_its_own():
    first, second = Run(), Run()
    first.flag.raise_()
    assert not second.flag.raised
