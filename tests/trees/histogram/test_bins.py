"""Bins: edges, codes, categories, bundles, and that blocks see the same edges as the whole table."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from learnable.core.errors import DataError, ParameterError
from learnable.trees.histogram import bins as module
from learnable.trees.histogram.bins import BinnedTable, Bins, sample_rows


def edges_of(bins, j):
    return bins.edges[bins.edge_start[j] : bins.edge_start[j + 1]]


def expected(bins, X):
    codes = np.empty(X.shape, int)
    for j in range(X.shape[1]):
        codes[:, j] = np.where(np.isnan(X[:, j]), bins.n_bins[j], np.searchsorted(edges_of(bins, j), X[:, j]))
    return codes


def decoded(table):
    """Return the bin of every cell from the stored codes, bundles undone."""
    bins, out = table.bins, np.empty((table.n_rows, table.n_columns), int)
    for j in range(table.n_columns):
        code = table.columns[bins.stored[j]].astype(int)
        if bins.default[j] < 0:
            out[:, j] = code
            continue
        own = code - bins.first[j]
        inside = (own >= 0) & (own < bins.n_bins[j] - 1 + int(table.has_missing[j]))
        own = own + (own >= bins.default[j])
        out[:, j] = np.where(inside, own, bins.default[j])
    return out


@settings(max_examples=40, deadline=None)
@given(
    arrays(np.float64, st.tuples(st.integers(1, 60), st.integers(1, 5)), elements=st.floats(-1e300, 1e300, width=64)),
    st.integers(2, 20),
)
def test_codes_count_the_edges_below(X, max_bins):
    X[X > 1e299] = np.nan
    table = BinnedTable.build(X, max_bins=max_bins)
    assert (table.bins.n_bins <= max_bins).all()
    assert np.array_equal(table.columns.T, expected(table.bins, X))
    assert np.array_equal(table.rows[:, table.bins.position], table.columns.T)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_both_precisions_have_the_same_edges_and_codes(dtype):
    X = np.random.default_rng(0).normal(size=(20_000, 3)).astype(np.float32)
    one, two = BinnedTable.build(X.astype(dtype)), BinnedTable.build(X.astype(np.float64), n_threads=2)
    assert np.array_equal(one.bins.edges, two.bins.edges)
    assert np.array_equal(one.columns, two.columns)
    counts = np.bincount(one.columns[0])
    assert len(counts) == 255
    assert counts.max() < 2 * counts.min() + 3


def test_few_values_have_a_bin_each():
    X = np.array([[3.0], [1.0], [1.0], [2.0], [np.nan]])
    table = BinnedTable.build(X)
    assert edges_of(table.bins, 0).tolist() == [1.5, 2.5]
    assert table.columns[0].tolist() == [2, 0, 0, 1, 3]
    assert table.has_missing.tolist() == [True]


def test_weights_move_the_edges_and_zero_weights_do_not_count():
    x = np.arange(1000.0)[:, None]
    weight = np.where(x[:, 0] < 100, 100.0, 1.0)
    bins = Bins.fit(x, max_bins=10, weight=weight)
    share = [weight[(np.searchsorted(edges_of(bins, 0), x[:, 0]) == b)].sum() for b in range(10)]
    assert max(share) < 1.3 * min(share)
    weight[500:] = 0.0
    assert edges_of(Bins.fit(x, max_bins=10, weight=weight), 0).max() < 500


def test_a_sample_by_row_number_gives_the_edges_of_the_whole(monkeypatch):
    monkeypatch.setattr(module, "SAMPLE_ROWS", 500)
    X = np.random.default_rng(0).normal(size=(3000, 2))
    whole = Bins.fit(X, seed=4)
    rows = sample_rows(3000, 4)
    assert len(np.unique(rows)) == 500
    assert np.array_equal(rows, np.sort(rows))
    assert np.array_equal(Bins.fit(X[rows], seed=4).edges, whole.edges)
    blocks = [whole.encode(part).columns for part in np.array_split(X, 7)]
    assert np.array_equal(np.concatenate(blocks, axis=1), whole.encode(X).columns)


def test_frequent_levels_have_their_own_bin():
    codes = np.r_[np.repeat([5, 7, 9], 10), 0, 1, 2].astype(float)[:, None]
    bins = Bins.fit(codes, max_bins=4, categorical=np.array([True]))
    assert bins.level_bin.tolist() == [3, 3, 3, -1, -1, 0, -1, 1, -1, 2]
    table = bins.encode(np.array([[5.0], [1.0], [3.0], [88.0], [np.nan]]))
    assert table.columns[0].tolist() == [0, 3, 4, 4, 4]
    with pytest.raises(DataError, match="codes 0, 1"):
        Bins.fit(np.array([[0.5]]), categorical=np.array([True]))
    with pytest.raises(ParameterError, match="max_bins must be"):
        Bins.fit(codes, max_bins=256)


def test_exclusive_columns_share_a_byte_and_lose_nothing():
    rng = np.random.default_rng(0)
    dense = np.zeros((400, 40))
    for group in range(4):
        dense[np.arange(400), 10 * group + rng.integers(0, 10, 400)] = rng.integers(-2, 3, 400)
    dense[3, 5] = np.nan
    dense[:, 39] = rng.normal(size=400)
    X = sp.csr_array(dense)
    table = BinnedTable.build(X)
    assert table.columns.shape[0] < 12
    assert table.bins.n_columns == 40
    found = decoded(table)
    wanted = expected(table.bins, dense)
    lost = np.isnan(dense)
    assert np.array_equal(found[~lost], wanted[~lost])
    assert np.array_equal(table.rows[:, table.bins.position], table.columns.T)
    assert table.has_missing[5]


def test_groups_are_balanced_and_padded():
    table = BinnedTable.build(np.random.default_rng(0).normal(size=(50, 28)))
    assert np.diff(table.bins.group_start).tolist() == [14, 14]
    assert table.rows.shape == (50, 32)
