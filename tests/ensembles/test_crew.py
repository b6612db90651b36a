import signal
import threading
import time

import pytest

from learnable.core.estimator import Run
from learnable.ensembles._crew import run_crew
from learnable.trees.growth import GrowthStopped


@pytest.mark.threaded
@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_come_in_the_order_of_the_jobs(n_threads):
    assert run_crew(lambda job: job * job, 17, n_threads, Run()) == [job * job for job in range(17)]
    assert run_crew(lambda job: job, 0, n_threads, Run()) == []


def test_the_first_error_is_raised_and_the_others_stop():
    seen = []

    def job(number):
        seen.append(number)
        if number >= 3:
            raise KeyError(number)

    with pytest.raises(KeyError, match="3"):
        run_crew(job, 1000, 2, Run())
    assert len(seen) < 1000


@pytest.mark.threaded
def test_out_of_time_the_jobs_that_are_done_are_returned():
    run = Run(max_seconds=1e-9)
    found = run_crew(lambda job: time.sleep(0.02) or job, 500, 2, run, at_least=3)
    assert 3 <= len(found) < 500
    assert found == list(range(len(found)))


@pytest.mark.threaded
def test_a_job_that_ends_itself_when_time_is_up_is_no_error():
    run = Run(max_seconds=1e-9)

    def job(number):
        while number > 0:
            if run.flag.raised:
                raise GrowthStopped
            time.sleep(0.01)
        return number

    assert run_crew(job, 4, 2, run, at_least=1) == [0]


@pytest.mark.threaded
def test_an_error_is_not_hidden_by_the_jobs_that_it_stops():
    run = Run()

    def job(number):
        if number == 1:
            raise KeyError(number)
        while not run.flag.raised:
            time.sleep(0.01)
        raise GrowthStopped

    with pytest.raises(KeyError, match="1"):
        run_crew(job, 2, 2, run)


def test_ctrl_c_stops_the_crew():
    run = Run()

    def job(number):
        if number == 0:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        while not run.flag.raised:
            time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        run_crew(job, 4, 2, run)
    assert run.flag.raised
