import time
from dataclasses import replace

import pytest

from learnable.evaluation.comparison.clock import Clock


def test_without_a_limit_there_is_always_time():
    clock = Clock()
    assert clock.left() is None and clock.share(3) is None
    assert clock.reserve_for_end() == clock.reserve_for_finish(99.0) == 0.0


def test_a_limit_counts_from_its_start_and_never_below_zero():
    assert Clock(10.0, time.monotonic() - 100.0).left() == 0.0
    assert Clock(1000.0, time.monotonic() - 100.0).left() == pytest.approx(900.0, abs=5.0)


@pytest.mark.parametrize("seconds", [0.5, 5.0, 60.0, 3600.0])
@pytest.mark.parametrize("estimate", [0.0, 4.0, 1e6])
def test_the_models_always_get_some_time(seconds, estimate):
    clock = Clock(seconds)
    reserve = clock.reserve_for_finish(estimate)
    assert 0.0 < clock.reserve_for_end() < reserve < seconds
    assert clock.share(1, reserve) > 0.2 * seconds


def test_after_a_stop_there_is_a_little_time_to_judge_and_keep():
    plain = Clock(100.0)
    assert plain.stopped() is plain
    stopped = Clock(None, after_stop=20.0).stopped()
    assert 19.0 < stopped.left() <= 20.0 and stopped.seconds is None
    short = Clock(5.0, after_stop=20.0).stopped()
    assert short.left() <= 5.0 and short.seconds == 5.0


def test_on_a_busy_machine_more_time_is_left_to_the_caller():
    alone = Clock(60.0)
    assert alone.paced(1.0, 0.9).reserve_for_end() < 1.2 * alone.reserve_for_end()
    assert alone.paced(1.0, 0.5).reserve_for_end() == pytest.approx(2.0 * alone.reserve_for_end())
    assert alone.paced(100.0, 0.5).reserve_for_end() == pytest.approx(2.5 * alone.reserve_for_end())
    assert alone.paced(0.5, 0.001) is alone  # too little to tell
    assert Clock(2.0).paced(100.0, 0.5).reserve_for_end() == 0.5


def test_the_time_to_judge_and_keep_the_winner_does_not_shrink_while_the_race_goes_on():
    begun = Clock(100.0, time.monotonic() - 10.0).at_the_start()
    reserve = begun.reserve_for_finish(0.0)
    late = replace(begun, started=time.monotonic() - 80.0)
    assert late.reserve_for_finish(0.0) == reserve and late.left(reserve) < 3.0
    over = replace(begun, started=time.monotonic() - 90.0)
    assert over.left(over.reserve_for_finish(0.0)) == 0.0
    unstarted = replace(over, room=None)  # nothing to finish yet: half of what is left is for models
    assert unstarted.left(unstarted.reserve_for_finish(0.0)) > 1.0
