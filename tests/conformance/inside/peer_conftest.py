"""Beside the rewritten tests: the other package's fixtures, the choice of a sample, and a record of every outcome."""

import json
import os
import pathlib
import signal
import zlib

import pytest

if os.environ["PEERS_ROOT"] == "hmmlearn":
    from hmmlearn.tests.conftest import *  # noqa: F403
else:
    from sklearn.conftest import *  # noqa: F403
    from sklearn.conftest import pytest_collection_modifyitems as _their_choice

EVERY = int(os.environ["PEERS_EVERY"])
#: No public test takes a tenth of this; one that hangs must not hold up the others.
SECONDS = 300

if json.loads(pathlib.Path(__file__).with_name("ours.json").read_text()):
    # A whole file of public tests goes through this private method, which states the problem and not the fit.
    from sklearn import linear_model

    import learnable

    for _name in ("PoissonRegressor", "GammaRegressor", "TweedieRegressor"):
        getattr(learnable, _name)._get_loss = vars(getattr(linear_model, _name))["_get_loss"]


def pytest_collection_modifyitems(config, items):
    """Keep every m-th test, by a checksum of its name: the same ones in every run, spread over all files."""
    items[:] = [item for item in items if zlib.crc32(item.nodeid.encode()) % EVERY == 0]
    if os.environ["PEERS_ROOT"] == "sklearn":
        _their_choice(config, items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Raise in a test that takes too long."""

    def stop(number, frame):
        raise TimeoutError(f"more than {SECONDS} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        return (yield)
    finally:
        signal.alarm(0)


def pytest_runtest_logreport(report):
    """Write one line for each test."""
    if report.when == "call" or report.outcome != "passed":
        crash = getattr(getattr(report.longrepr, "reprcrash", None), "message", "")
        file, _, name = report.nodeid.partition("::")
        row = {"file": file, "name": name, "outcome": report.outcome, "message": str(crash)[:300]}
        with open(os.environ["PEERS_RECORD"], "a", encoding="utf-8") as record:
            record.write(json.dumps(row) + "\n")
