"""The rows kept are a function of their numbers alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnable.data.sample import MOST_ROWS, RowSample, most_rows, stride_for


@given(st.lists(st.integers(0, 40), min_size=1, max_size=12), st.integers(1, 30))
def test_pieces_do_not_change_the_sample(sizes, most):
    rows = np.arange(sum(sizes))
    pieces, whole = RowSample(most), RowSample(most)
    whole.update(rows)
    for piece in np.split(rows, np.cumsum(sizes)[:-1]):
        pieces.update(piece)
    assert pieces.stride == whole.stride
    if len(rows):
        np.testing.assert_array_equal(pieces.rows(), whole.rows())


@given(st.integers(0, 10_000), st.integers(1, 300))
def test_the_stride_is_the_smallest_power_of_two_that_suffices(n, most):
    stride = stride_for(n, most)
    assert stride & (stride - 1) == 0
    assert len(range(0, n, stride)) <= most
    assert stride == 1 or len(range(0, n, stride // 2)) > most


def test_every_stride_th_row_is_kept():
    sample = RowSample(most=10)
    for start in range(0, 100, 7):
        sample.update(np.arange(start, min(start + 7, 100)))
    np.testing.assert_array_equal(sample.rows(), np.arange(0, 100, 16))


def test_a_long_piece_is_not_kept_alive():
    sample = RowSample(most=10)
    piece = np.zeros(1000)
    sample.update(piece)
    assert not np.shares_memory(sample.rows(), piece)


@pytest.mark.parametrize(("columns", "rows"), [(1, MOST_ROWS), (30, MOST_ROWS), (2000, 2**13), (10**7, 2**10)])
def test_wide_tables_keep_fewer_rows(columns, rows):
    assert most_rows(columns) == rows
