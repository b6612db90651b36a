"""Shortest paths against SciPy's: random graphs, zero lengths, lengths of very different sizes, nodes out of reach."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import shortest_path

from learnable.manifold._kernels import widest_level
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


@given(st.integers(2, 40), st.integers(1, 3), st.integers(0, 10**6))
def test_the_widest_level_is_that_of_distances_in_edges(n, degree, seed):
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(n), degree)
    A = sp.csr_array((np.ones(n * degree), (rows, rng.integers(0, n, n * degree))), shape=(n, n))
    A = sp.csr_array(A + A.T)
    away = shortest_path(A, unweighted=True, indices=0)
    depth = np.empty(n, dtype=np.int32)
    queue = np.empty(n, dtype=np.int32)
    widest = widest_level(A.indptr.astype(np.int64), A.indices.astype(np.int32), 0, depth, queue)
    np.testing.assert_array_equal(depth, np.where(np.isfinite(away), away, -1))
    reached = away[np.isfinite(away)].astype(int)
    assert widest == np.bincount(reached).max() and depth[queue[0]] == reached.max()
