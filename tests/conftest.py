"""Shared fixtures: the folder of reference data sets, where there is one; Hypothesis's profiles."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# The same cases in every run, so that a red build is the change's own doing; `make test-full` draws new ones.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("LEARNABLE_HYPOTHESIS", "fixed"))

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def reference_data():
    """The folder of real data sets with published results; set LEARNABLE_DATA to point elsewhere."""
    folder = Path(os.environ.get("LEARNABLE_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no reference data at {folder}; set LEARNABLE_DATA to the folder that holds them")
    return folder
