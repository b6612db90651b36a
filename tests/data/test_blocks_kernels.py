"""Rows made of columns, against NumPy; the scan by NumPy against the compiled one."""

import numpy as np
import pytest

from learnable.data.blocks import scan_by_numpy, scan_dense
from learnable.data.stream import rows_of_columns


@pytest.mark.parametrize("m, d", [(1, 1), (255, 3), (256, 2), (257, 5), (1000, 17), (3, 400), (0, 2)])
def test_rows_of_columns_that_lie_anywhere(m, d):
    rng = np.random.default_rng(m + d)
    columns = [rng.normal(size=m + j)[j:] for j in range(d)]  # a slice begins within its memory, as Arrow's do
    addresses = np.array([column.__array_interface__["data"][0] for column in columns], dtype=np.uint64)
    room = np.full((m + 2, d), np.nan)
    rows_of_columns(addresses, room[1 : m + 1])
    assert np.array_equal(room[1 : m + 1], np.column_stack(columns))
    assert np.isnan(room[[0, -1]]).all()  # nothing is written beside them


@pytest.mark.threaded
@pytest.mark.parametrize("n, d", [(0, 3), (3, 0), (1, 1), (150, 4), (1000, 20)])
@pytest.mark.parametrize("special", [[], [-0.0, 0.0], [np.nan, np.inf, -np.inf, 5e-324, 1.7e308]])
def test_numpy_scans_rows_to_the_same_bits(n, d, special):
    rng = np.random.default_rng(n + d)
    X = rng.normal(size=(n, d))
    for value in special if X.size else []:
        X[rng.integers(n), rng.integers(d)] = value
    multipliers = rng.integers(2**64, size=d, dtype=np.uint64)
    tail = rng.integers(2**64, size=n, dtype=np.uint64)
    before = X.copy()
    assert scan_by_numpy(X.view(np.uint64), multipliers, tail) == scan_dense(X.view(np.uint64), multipliers, tail)
    assert X.tobytes() == before.tobytes()
