"""Arrays in mapped files."""

import errno

import numpy as np
import pytest

from learnable.core.errors import DataError
from learnable.data import mapped


def test_pages_that_are_taken_out_keep_what_they_hold():
    with mapped.MappedArrays("Model", budget=0) as arrays:
        x = arrays.empty((1000, 1000))
        x[:] = np.arange(1000.0)
        arrays.trim()
        assert x.sum() == 1000 * 999 * 500
        assert arrays.copy(x[0]).tolist() == x[0].tolist()
        assert arrays.empty((0, 3), np.uint8).shape == (0, 3)
    assert x[3, 7] == 7.0  # arrays outlive the watch


def test_resident_pages_stay_within_the_budget():
    before = mapped._resident()
    if before is None:
        pytest.skip("resident pages are known on Linux only")
    with mapped.MappedArrays("Model", budget=2**24) as arrays:
        x = arrays.empty(2**24)
        largest = 0
        for start in range(0, len(x), 2**20):
            x[start : start + 2**20] = 1.0
            arrays.trim()
            largest = max(largest, mapped._resident() - before)
        assert largest < 2**24
        assert x.sum() == 2**24


def test_a_full_disk_is_said_before_anything_is_written(monkeypatch):
    def full(descriptor, size):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(mapped, "_reserve", full)
    with mapped.MappedArrays("Model") as arrays, pytest.raises(DataError, match=r"Model: the folder .* TMPDIR"):
        arrays.empty(10)
