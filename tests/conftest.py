"""Shared fixtures: the folder of reference data sets, where there is one."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def reference_data():
    """The folder of real data sets with published results; set LEARNABLE_DATA to point elsewhere."""
    folder = Path(os.environ.get("LEARNABLE_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no reference data at {folder}; set LEARNABLE_DATA to the folder that holds them")
    return folder
