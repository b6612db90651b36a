"""Rows of sparse arrays are taken by one door, which no damaged array passes."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tests.damaged_sparse import KINDS, damaged

from learnable.core.errors import DataError
from learnable.data.arrays import sound_csr, take_sparse_rows
from learnable.data.rows import read_rows, take_rows

TABLE = sp.random_array((20, 6), density=0.4, rng=np.random.default_rng(0), format="csr")


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_arrays_are_refused_where_rows_are_read(kind):
    with pytest.raises(DataError, match=r"owner: X is a damaged .* array"):
        read_rows("owner", damaged(TABLE, kind))
    with pytest.raises(DataError, match=r"owner: X is a damaged .* array"):
        sound_csr("owner", damaged(TABLE, kind))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_sound_arrays_of_every_format_pass(form):
    X = TABLE.asformat(form)
    np.testing.assert_array_equal(sound_csr("owner", X).toarray(), TABLE.toarray())
    np.testing.assert_array_equal(take_rows(X, np.array([3, 0, 3])).toarray(), TABLE.toarray()[[3, 0, 3]])


@given(
    st.one_of(
        st.lists(st.integers(-20, 19), max_size=30).map(lambda rows: np.array(rows, dtype=np.int64)),
        st.lists(st.booleans(), min_size=20, max_size=20).map(np.array),
        st.slices(20).filter(lambda rows: rows.step is None or rows.step > 0),
    )
)
def test_rows_are_those_of_the_array(rows):
    np.testing.assert_array_equal(take_sparse_rows(TABLE, rows).toarray(), TABLE.toarray()[rows])


@given(st.integers(0, 20), st.integers(-(2**31), 2**31 - 1), st.integers(0, 19))
def test_no_row_end_leads_out_of_the_array(place, value, row):
    X = TABLE.copy()
    X.indptr[place] = value
    begin, end = int(X.indptr[row]), int(X.indptr[row + 1])
    if 0 <= begin <= end <= len(X.data):
        assert take_sparse_rows(X, np.array([row])).nnz == end - begin
    else:
        with pytest.raises(DataError, match="damaged"):
            take_sparse_rows(X, np.array([row]))
