"""Histogram kernels: packed sums against float64, rounding that is right on average, subtraction that is exact."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from learnable.trees.histogram._kernels import CODES, Fields, add_packed, quantise, subtract
from learnable.trees.histogram.bins import BinnedTable
from learnable.trees.histogram.grower import HistogramRule, grow_on_histograms

H_BITS, G_BITS = 24, 24


def entries_of(rows, g, h):
    high = (np.asarray(g, np.int64).astype(np.uint64) & np.uint64(0xFFFF)) << np.uint64(48)
    return np.asarray(rows, np.uint64) | (np.asarray(h, np.uint64) << np.uint64(32)) | high


def unpack(hist):
    h = hist & ((1 << H_BITS) - 1)
    rest = (hist - h) >> H_BITS
    g = (rest << (64 - G_BITS)) >> (64 - G_BITS)
    return g, h, ((rest - g) >> G_BITS) & ((1 << (64 - H_BITS - G_BITS)) - 1)


def fields():
    return Fields(False, np.int64(H_BITS), np.int64(G_BITS), 1.0, 1.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize("width", [1, 2, 3, 5, 7, 8, 12, 15, 16])
def test_packed_sums_are_those_of_numpy(width):
    rng = np.random.default_rng(width)
    n = 700
    rows = rng.integers(0, 256, (n, 16)).astype(np.uint8)
    g, h = rng.integers(-300, 300, n), rng.integers(0, 500, n)
    used = np.flatnonzero(rng.random(n) < 0.6)
    hist = np.zeros(width * CODES, np.int64)
    add_packed(rows.reshape(-1), 16, 0, width, entries_of(used, g[used], h[used]), hist, fields())
    for k in range(width):
        code = rows[used, k]
        for found, weight in zip(unpack(hist[k * CODES : (k + 1) * CODES]), (g, h, np.ones(n)), strict=True):
            assert np.array_equal(found, np.bincount(code, weight[used], CODES).astype(np.int64))


def test_parent_minus_child_is_the_sibling_to_the_last_bit():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 256, (900, 16)).astype(np.uint8)
    g, h = rng.integers(-300, 300, 900), rng.integers(0, 500, 900)
    left = rng.random(900) < 0.3

    def hist(mask):
        out = np.zeros(16 * CODES, np.int64)
        used = np.flatnonzero(mask)
        add_packed(rows.reshape(-1), 16, 0, 16, entries_of(used, g[used], h[used]), out, fields())
        return out

    parent = hist(np.ones(900, bool))
    subtract(parent, hist(left), False)
    assert np.array_equal(parent, hist(~left))


def test_rounding_is_right_on_average_and_depends_on_row_and_key_alone():
    drawn = np.array([quantise(r, r, 2.3, 5.75, 1.0, 1.0, np.uint32(9)) for r in range(20_000)], np.uint64)
    again = quantise(123, 123, 2.3, 5.75, 1.0, 1.0, np.uint32(9))
    assert again == drawn[123]
    g = (drawn.view(np.int64) >> 48).astype(float)
    h = ((drawn >> np.uint64(32)) & np.uint64(0xFFFF)).astype(float)
    assert set(g) == {2.0, 3.0}
    assert set(h) == {5.0, 6.0}
    for found, mean in ((g, 2.3), (h, 5.75)):
        assert abs(found.mean() - mean) < 5 * found.std() / np.sqrt(len(found))
    assert abs(np.corrcoef(g, h)[0, 1]) < 0.04
    negative = np.array([quantise(r, r, -0.4, 1.0, 1.0, 1.0, np.uint32(1)) for r in range(20_000)], np.uint64)
    values = (negative.view(np.int64) >> 48).astype(float)
    assert set(values) == {-1.0, 0.0}
    assert abs(values.mean() + 0.4) < 5 * values.std() / np.sqrt(len(values))
    assert set(((negative >> np.uint64(32)) & np.uint64(0xFFFF)).tolist()) == {1}


@pytest.mark.parametrize("histogram", ["float64", "quantised"])
def test_a_bundled_table_gives_the_tree_of_the_dense_one(histogram):
    rng = np.random.default_rng(0)
    dense = np.zeros((800, 30))
    for group in range(3):
        dense[np.arange(800), 10 * group + rng.integers(0, 10, 800)] = rng.integers(-2, 3, 800)
    dense[dense[:, 4] == 1, 4] = np.nan
    g = np.nan_to_num(dense, nan=3.0) @ rng.normal(size=30)
    rule = HistogramRule(12, min_samples_leaf=3, histogram=histogram)
    bundled = BinnedTable.build(sp.csr_array(dense))
    assert bundled.columns.shape[0] < 10
    one = grow_on_histograms(bundled, g, np.ones(800), rule)
    two = grow_on_histograms(BinnedTable.build(dense), g, np.ones(800), rule)
    assert np.array_equal(one.tree.feature, two.tree.feature)
    assert np.array_equal(one.leaf_of_row, two.leaf_of_row)
    assert np.allclose(one.tree.value, two.tree.value, rtol=1e-12)
    assert np.array_equal(one.tree.apply(sp.csr_array(dense))[:, 0], one.leaf_of_row)
    rows = np.arange(0, 800, 2)
    part = grow_on_histograms(bundled, g, np.ones(800), rule, rows=rows)
    assert np.array_equal(part.tree.apply(dense)[:, 0], part.leaf_of_row)
