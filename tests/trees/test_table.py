"""Codes of columns: ranks, bins, categories, missing values, sparse tables."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.core.errors import DataError
from learnable.trees import Columns

VALUES = st.floats(-1e300, 1e300, allow_subnormal=True) | st.sampled_from([0.0, -0.0, 1.0, np.nan])


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=40), st.sampled_from([np.float64, np.float32]))
def test_ranks_keep_the_order_and_the_values(values, dtype):
    with np.errstate(over="ignore"):
        x = np.array(values, dtype=dtype)
    x = x[~np.isinf(x)]
    if not len(x):
        return
    columns = Columns.build(x[:, None])
    codes, present = columns.codes[0], ~np.isnan(x)
    np.testing.assert_array_equal(columns.low[codes[present]], x[present].astype(np.float64))
    assert (codes[~present] == columns.n_codes[0]).all()
    assert (np.diff(columns.low) > 0).all()
    assert columns.n_codes[0] == len(np.unique(x[present]))


@settings(max_examples=40, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=60), st.integers(2, 12))
def test_bins_keep_the_order(values, max_bins):
    x = np.array(values)
    columns = Columns.build(x[:, None], max_bins=max_bins)
    codes, present = columns.codes[0].astype(int), ~np.isnan(x)
    assert columns.codes.dtype == np.uint8 and columns.n_codes[0] <= max_bins
    order = np.argsort(x[present], kind="stable")
    assert (np.diff(codes[present][order]) >= 0).all()
    assert (x[present] <= columns.high[codes[present]]).all() and (x[present] >= columns.low[codes[present]]).all()
    assert (codes[~present] == columns.n_codes[0]).all()


def test_bins_hold_about_the_same_number_of_rows():
    x = np.random.default_rng(0).normal(size=(10_000, 1))
    counts = np.bincount(Columns.build(x, max_bins=100).codes[0])
    assert counts.min() > 80 and counts.max() < 120


def test_few_distinct_values_have_a_bin_each():
    x = np.repeat([1.0, 5.0, 7.0], [100, 1, 3])[:, None]
    columns = Columns.build(x, max_bins=8)
    assert np.bincount(columns.codes[0]).tolist() == [100, 1, 3]


@pytest.mark.parametrize("max_bins", [None, 5])
@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array])
def test_sparse_codes_are_the_dense_ones(make, max_bins):
    rng = np.random.default_rng(1)
    X = np.where(rng.random((50, 4)) < 0.4, rng.normal(size=(50, 4)), 0.0)
    X[:, 3] = rng.normal(size=50)  # no zero at all
    X[3, 0] = np.nan
    dense, sparse = Columns.build(X, max_bins=max_bins), Columns.build(make(X), max_bins=max_bins)
    assert sparse.sparse and not dense.sparse
    np.testing.assert_array_equal(dense.n_codes, sparse.n_codes)
    for j in range(4):
        codes = np.full(50, sparse.zero[j])
        part = slice(sparse.start[j], sparse.start[j + 1])
        codes[sparse.rows[part]] = sparse.entries[part]
        np.testing.assert_array_equal(codes, dense.codes[j])


@pytest.mark.threaded
def test_threads_change_nothing():
    X = np.random.default_rng(0).normal(size=(500, 7))
    one, three = Columns.build(X), Columns.build(X, n_threads=3)
    np.testing.assert_array_equal(one.codes, three.codes)


def test_categories_are_their_own_codes():
    X = np.array([[3.0], [0.0], [np.nan], [3.0]])
    columns = Columns.build(X, categorical=np.array([True]))
    assert columns.codes[0].tolist() == [3, 0, 4, 3]


@pytest.mark.parametrize("value", [-1.0, 0.5, 65_536.0])
def test_what_is_no_code_of_a_category_is_refused(value):
    X = np.array([[0.0], [value]])
    with pytest.raises(DataError, match="Tree: column 0 is categorical"):
        Columns.build(X, categorical=np.array([True]), owner="Tree")


def test_a_column_of_gaps_has_no_codes():
    columns = Columns.build(np.full((3, 1), np.nan))
    assert columns.n_codes[0] == 0 and (columns.codes == 0).all()
