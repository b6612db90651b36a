"""Cuts drawn at random: thresholds between the ends, and counts of classes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.trees.random._kernels import count_classes, draw_between

FINITE = st.floats(-1.7e308, 1.7e308)


@settings(max_examples=200, deadline=None)
@given(FINITE, FINITE, st.floats(0.0, 1.0, exclude_max=True))
def test_both_sides_of_a_drawn_threshold_have_a_value(a, b, u):
    low, high = min(a, b), max(a, b)
    if low < high:
        assert low <= draw_between(low, high, u) < high


def test_neighbours_in_the_order_of_floats_are_separated():
    assert draw_between(1.0, np.nextafter(1.0, 2.0), 0.999) == 1.0


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 300), st.integers(2, 10))
def test_packed_counts_are_counts(seed, n, m):
    rng = np.random.default_rng(seed)
    values, labels, threshold = rng.normal(size=n), rng.integers(0, m, n), rng.normal()
    left = values <= threshold
    bits = 52 // m
    for y, b in ((labels.astype(float), 0), (2.0 ** (bits * labels), bits)):
        counts = np.full(m, np.nan)
        assert count_classes(values, y, np.ones(n), threshold, b, counts) == left.sum()
        np.testing.assert_array_equal(counts, np.bincount(labels[left], minlength=m))
    weight = rng.random(n)
    count_classes(values, labels.astype(float), weight, threshold, 0, counts)
    np.testing.assert_allclose(counts, np.bincount(labels[left], weight[left], m), rtol=1e-12)
