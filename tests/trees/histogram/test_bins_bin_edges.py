"""Bins of a column: equal shares, but values of large weight alone."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.trees.histogram.bins import bin_edges


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 60), st.booleans(), st.floats(0.0, 0.98))
def test_edges_ascend_and_heavy_values_are_alone(seed, max_bins, weighted, zeros):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 600))
    x = np.round(rng.standard_cauchy(n) * 10 ** rng.uniform(0, 2), int(rng.integers(0, 3)))
    x[rng.random(n) < zeros] = 0.0
    x[rng.random(n) < 0.1] = np.nan
    w = rng.integers(1, 5, n).astype(float) if weighted else None
    edges = bin_edges(x, w, max_bins)
    assert len(edges) <= max_bins - 1
    assert (np.diff(edges) > 0).all()
    known = ~np.isnan(x)
    values = np.unique(x[known])
    mass = np.array([(known & (x == v)).sum() if w is None else w[x == v].sum() for v in values])
    code = np.searchsorted(edges, values)
    assert len(np.unique(code)) == len(edges) + 1 if len(values) else not len(edges)
    if len(values) <= max_bins:
        assert len(edges) == max(0, len(values) - 1)
        return
    light = mass < mass.sum() / max_bins
    shares = np.bincount(code, mass * light, len(edges) + 1)
    # What a heavy value shares its bin with is less than half a bin of light values.
    for v in np.flatnonzero(~light):
        others = shares[code[v]]
        assert others <= 0.51 * max(mass[light].sum(), mass.max()) and np.sum(~light[code == code[v]]) == 1


def test_a_column_of_zeros_keeps_fine_bins_for_the_rest():
    x = np.r_[np.zeros(9000), np.linspace(1, 2, 1000)]
    edges = bin_edges(x, None, 255)
    assert len(edges) == 254 and edges[0] == 0.5
    counts = np.diff(np.searchsorted(x, edges))
    assert counts.max() <= 5


def test_without_heavy_values_shares_are_equal():
    x = np.random.default_rng(0).permutation(5100).astype(float)
    counts = np.diff(np.r_[0, np.searchsorted(np.sort(x), bin_edges(x, None, 255)), 5100])
    assert counts.min() >= 19 and counts.max() <= 21
