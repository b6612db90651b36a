"""Jobs in processes of their own: what they report, how they end, and that they end."""

import os
import signal
import threading
import time

import pytest

from learnable.evaluation.comparison.race import Server

HERE = "tests.evaluation.comparison.test_race"


def echo(report, words):
    for word in words:
        report(word)


def fail_after(report, words):
    echo(report, words)
    raise RuntimeError("enough")


def sleep(report, seconds):
    report(os.getpid())
    time.sleep(seconds)


def address_space(report):
    report((os.getpgid(0) == os.getpid(), signal.getsignal(signal.SIGINT) == signal.SIG_IGN))


def flood(report):
    report(b"x" * 2**24)


@pytest.fixture(scope="module")
def server():
    server = Server()
    assert server.wait_until_ready(120)
    return server


def job(function, **arguments):
    return {"function": f"{HERE}:{function}", **arguments}


@pytest.mark.threaded
def test_a_job_reports_and_is_done(server):
    heard = []
    outcome = server.run(job("echo", words=["a", "b"]), on_message=heard.append)
    assert outcome.status == "ok" and outcome.reason is None and outcome.messages == heard == ["a", "b"]


def test_what_was_reported_before_a_failure_is_kept(server):
    outcome = server.run(job("fail_after", words=["a"]))
    assert (outcome.status, outcome.reason, outcome.messages) == ("failed", "enough", ["a"])


@pytest.mark.threaded
def test_a_job_is_killed_at_its_limit(server):
    outcome = server.run(job("sleep", seconds=600), seconds=2)
    assert outcome.status == "timeout" and "2 s" in outcome.reason
    with pytest.raises(ProcessLookupError):
        os.kill(outcome.messages[0], 0)


@pytest.mark.threaded
def test_a_job_leads_its_own_session_and_ignores_ctrl_c(server):
    assert server.run(job("address_space")).messages == [(True, True)]


@pytest.mark.threaded
def test_an_interrupt_ends_the_job(server):
    def interrupt(_):  # only once the job runs, however slowly it came up
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()

    outcome = server.run(job("sleep", seconds=600), on_message=interrupt)
    assert outcome.status == "interrupted"
    with pytest.raises(ProcessLookupError):
        os.kill(outcome.messages[0], 0)


def test_a_large_report_passes(server):
    assert len(server.run(job("flood")).messages[0]) == 2**24


@pytest.mark.threaded
def test_a_job_that_does_not_exist_fails_in_words(server):
    outcome = server.run(job("nonsense"))
    assert outcome.status == "failed" and "nonsense" in outcome.reason


def test_the_callers_script_is_put_back(server):
    import sys

    main = sys.modules["__main__"]
    server.run(job("echo", words=[]))
    assert sys.modules["__main__"] is main


def prepare_then_sleep(report, preparing, seconds):
    time.sleep(preparing)
    report.ready(preparing)
    report("ready")
    time.sleep(seconds)
    report("done")


@pytest.mark.threaded
def test_getting_ready_is_not_the_jobs_time(server):
    outcome = server.run(job("prepare_then_sleep", preparing=2.0, seconds=0.0), seconds=1.5, preparing=60.0)
    assert outcome.status == "ok" and outcome.messages == ["ready", "done"]
    assert outcome.preparing == 2.0 and outcome.seconds >= 0.0


@pytest.mark.threaded
def test_the_jobs_own_time_begins_when_it_is_ready(server):
    outcome = server.run(job("prepare_then_sleep", preparing=0.1, seconds=600), seconds=1.0, preparing=600.0)
    assert outcome.status == "timeout" and outcome.messages == ["ready"]
