"""Shortest paths against SciPy's: random graphs, zero lengths, lengths of very different sizes, nodes out of reach."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import shortest_path

from learnable.manifold.graphs import paths_from, symmetric_graph


@given(st.integers(1, 25), st.integers(0, 60), st.integers(0, 10**6), st.sampled_from([0.0, 1.0, 12.0]))
def test_paths_are_scipys(n, m, seed, spread):
    rng = np.random.default_rng(seed)
    i, j = rng.integers(0, n, (2, m))
    kept = i < j
    lengths = np.exp(spread * rng.normal(size=m)) * (rng.random(m) > 0.2)
    pairs = np.unique(np.column_stack([i[kept], j[kept]]), axis=0)
    lengths = lengths[: len(pairs)]
    graph = symmetric_graph(n, pairs[:, 0], pairs[:, 1], lengths)
    # SciPy drops zeros of dense input, not of sparse input.
    expected = shortest_path(sp.csr_array(graph), method="D", directed=True)
    np.testing.assert_allclose(paths_from(graph, np.arange(n), 2), expected, rtol=1e-12)
