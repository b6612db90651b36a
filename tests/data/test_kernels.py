"""Rows made of columns, against NumPy."""

import numpy as np
import pytest

from learnable.data._kernels import rows_of_columns


@pytest.mark.parametrize("m, d", [(1, 1), (255, 3), (256, 2), (257, 5), (1000, 17), (3, 400), (0, 2)])
def test_rows_of_columns_that_lie_anywhere(m, d):
    rng = np.random.default_rng(m + d)
    columns = [rng.normal(size=m + j)[j:] for j in range(d)]  # a slice begins within its memory, as Arrow's do
    addresses = np.array([column.__array_interface__["data"][0] for column in columns], dtype=np.uint64)
    room = np.full((m + 2, d), np.nan)
    rows_of_columns(addresses, room[1 : m + 1])
    assert np.array_equal(room[1 : m + 1], np.column_stack(columns))
    assert np.isnan(room[[0, -1]]).all()  # nothing is written beside them
