"""Shared by all tests: the folder of reference data sets, where there is one; Hypothesis's profiles; BLAS's threads."""

import gc
import os
import signal
import zlib
from collections import defaultdict
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

from learnable.core.threads import _controller, thread_budget

# The same cases in every run, so that a red build is the change's own doing; `make test-full` draws new ones, and more.
PROFILE = os.environ.get("LEARNABLE_HYPOTHESIS", "fixed")
IS_BRIEF = os.environ.get("LEARNABLE_CASES", "few") == "few"  # `make test-machines` asks for more than `make test`
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=10 if IS_BRIEF else 30)
settings.register_profile("explore", deadline=None, print_blob=True, max_examples=200)
settings.load_profile(PROFILE)

MANY = 8  #: from so many cases on, `make test` runs
SHARE = 3  #: one in so many of them, where no mark says otherwise
ROOT = Path(__file__).resolve().parents[1]
gc.disable()  # until the tests are collected
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background jobs; tests of Ctrl-C would wait forever
    signal.signal(signal.SIGINT, signal.default_int_handler)
# One thread for BLAS: those of several workers would wait for each other, spinning. Our own threads stay as many.
# `make test-machines` asks for two, to see that nothing depends on it.
BUDGET = thread_budget()  # is counted once, before the limit
_controller().limit(limits=int(os.environ.get("LEARNABLE_BLAS_THREADS", "1")))


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for examples in docstrings of the package only, not in those of tests."""
    return [found for found in (yield) if not isinstance(found, DoctestModule)]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark all but about one in n of the cases of a test as long: `sampled(n)` says n, or their number does.

    A hash of the name chooses, so that no value of a parameter is left out for its place in a list; the first case of
    a test is always kept. Tests of many cases that are to be whole are marked `sampled(1)`: those that say something
    of every model or public name, and those of hostile files.
    """
    if PROFILE == "fixed" and IS_BRIEF:
        for test in {getattr(item, "obj", None) for item in items}:
            fewer_examples(test)
    tests = defaultdict(list)
    for item in items:
        if not item.get_closest_marker("long"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for first, *others in tests.values():
        mark = first.get_closest_marker("sampled")
        share = mark.args[0] if mark else SHARE if len(others) + 1 >= MANY else 1
        if not IS_BRIEF:
            share = max(1, share // 2)
        for item in others:
            if zlib.crc32(item.name.encode()) % share:
                item.add_marker(pytest.mark.long)


def fewer_examples(test):
    """Let a test whose number of Hypothesis's cases is its own try a third of them, at least ten."""
    own = getattr(test, "_hypothesis_internal_use_settings", None)
    if own is not None and own.max_examples > 10:
        test._hypothesis_internal_use_settings = settings(own, max_examples=max(10, own.max_examples // 3))


def pytest_collection_finish():
    """Let the garbage collector begin now, and pass over tests and modules, which stay until the end.

    Walking through them takes a quarter of the time of collecting the tests, and a tenth of running them.
    """
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Give tests that are marked `threaded` all of BLAS's."""
    if item.get_closest_marker("threaded"):
        with _controller().limit(limits=BUDGET):
            return (yield)
    return (yield)


class ReferenceFolder:
    """Folders that are looked through in order for a file; a test whose file is in none of them is skipped."""

    def __init__(self, *folders):
        self.folders = folders

    def __truediv__(self, name):
        found = [folder / name for folder in self.folders if (folder / name).exists()]
        if not found:
            pytest.skip(
                f"no {name} in {' or '.join(map(str, self.folders))}; set LEARNABLE_DATA to a folder that has it"
            )
        return found[0] if found[0].is_file() else ReferenceFolder(*found)


@pytest.fixture(scope="session")
def reference_data():
    """Real data sets with published results: those of the folder LEARNABLE_DATA, and the small ones that ship."""
    given = Path(os.environ.get("LEARNABLE_DATA", ROOT.parent / "shared" / "data"))
    return ReferenceFolder(given, Path(__file__).parent / "reference" / "tables")
