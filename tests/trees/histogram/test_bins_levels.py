"""Bins of levels: one each, or one for levels that are alike."""

import numpy as np
import pytest

from learnable.core.errors import DataError
from learnable.trees.histogram.sharing import level_bins


def test_few_levels_have_a_bin_each_and_unseen_ones_none():
    assert level_bins(np.array([4.0, 2, np.nan, 2]), None, 255, "x").tolist() == [-1, -1, 0, -1, 1]


def test_without_targets_the_most_frequent_levels_have_a_bin_each():
    values = np.repeat(np.arange(6.0), [1, 9, 1, 8, 7, 1])
    assert level_bins(values, None, 4, "x").tolist() == [3, 0, 3, 1, 2, 3]


def test_rare_levels_of_like_means_share_a_bin():
    values = np.repeat(np.arange(6.0), [20, 30, 5, 5, 5, 5])
    target = np.repeat([0.0, 1, -9, 9, -8, 8], [20, 30, 5, 5, 5, 5])
    assert level_bins(values, target, 4, "x").tolist() == [0, 1, 2, 3, 2, 3]


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_the_scale_of_the_target_does_not_matter(scale):
    rng = np.random.default_rng(0)
    values, target = rng.integers(0, 100, 2000).astype(float), rng.normal(size=2000)
    assert np.array_equal(level_bins(values, target, 8, "x"), level_bins(values, target * scale, 8, "x"))


def test_two_classes_are_grouped_as_their_share_is():
    rng = np.random.default_rng(0)
    values, target = rng.integers(0, 100, 5000).astype(float), rng.integers(0, 2, 5000)
    by_class, by_share = level_bins(values, target, 8, "x"), level_bins(values, target.astype(float), 8, "x")
    rare = by_share >= 4
    same = np.array_equal(by_class[rare], by_share[rare])
    counts = np.bincount(by_share[rare] - 4, minlength=4)
    assert same or np.abs(counts - np.bincount(by_class[rare] - 4, minlength=4)[::-1]).max() <= 1


def test_all_bins_have_about_the_same_rows():
    rng = np.random.default_rng(0)
    values, target = rng.integers(0, 3000, 60_000).astype(float), rng.normal(size=60_000)
    bins = level_bins(values, target, 255, "x")
    assert bins.min() >= 0 and bins.max() == 254
    rows = np.bincount(bins[values.astype(int)])[127:]
    assert rows.min() > 0.8 * rows.max()


@pytest.mark.parametrize("bad", [-1.0, 0.5, 70_000.0])
def test_other_values_are_refused(bad):
    with pytest.raises(DataError, match="x is categorical"):
        level_bins(np.array([0.0, bad]), None, 255, "x")
