"""Shared by all tests: the folder of reference data sets, where there is one; Hypothesis's profiles; BLAS's threads."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from learnable.core.threads import _controller, thread_budget

# The same cases in every run, so that a red build is the change's own doing; `make test-full` draws new ones, and more.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("explore", deadline=None, print_blob=True, max_examples=200)
settings.load_profile(os.environ.get("LEARNABLE_HYPOTHESIS", "fixed"))

ROOT = Path(__file__).resolve().parents[1]
#: Tests about threads have one of these in their names or their file's; they meet BLAS as users do.
THREADED = ("thread", "job", "parallel", "process", "bits", "blocks", "reproducible")

# One thread for BLAS: those of several workers would wait for each other, spinning. Our own threads stay as many.
# `make test-machines` asks for two, to see that nothing depends on it.
BUDGET = thread_budget()  # is counted once, before the limit
_controller().limit(limits=int(os.environ.get("LEARNABLE_BLAS_THREADS", "1")))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Give tests about threads all of BLAS's."""
    if any(word in f"{item.path.stem} {item.name}" for word in THREADED):
        with _controller().limit(limits=BUDGET):
            return (yield)
    return (yield)


@pytest.fixture(scope="session")
def reference_data():
    """The folder of real data sets with published results; set LEARNABLE_DATA to point elsewhere."""
    folder = Path(os.environ.get("LEARNABLE_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no reference data at {folder}; set LEARNABLE_DATA to the folder that holds them")
    return folder
