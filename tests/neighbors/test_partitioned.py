"""Neighbours among partitions are those among all rows, to the bit, ties included."""

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.on_disk import streamed

from learnable import NearestNeighbors
from learnable.core.errors import DataError, ParameterError
from learnable.neighbors import neighbors_in_partitions


@settings(deadline=None, max_examples=15)
@given(sizes=st.lists(st.integers(1, 30), min_size=1, max_size=5), k=st.integers(1, 9), seed=st.integers(0, 99))
def test_partitions_answer_as_all_rows_do(sizes, k, seed):
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    X = rng.integers(0, 4, size=(n, 2)).astype(float)  # many ties
    queries = rng.integers(0, 4, size=(6, 2)).astype(float)
    k = min(k, n)
    expected = NearestNeighbors(n_neighbors=k).fit(X).kneighbors(queries)
    with dask.config.set(scheduler="synchronous"):
        found = neighbors_in_partitions(da.from_array(X, chunks=(tuple(sizes), 2)), queries, k)
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one, other)


def test_files_and_another_metric(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    source = streamed(pd.DataFrame(X, columns=list("abc")), tmp_path, 3)
    expected = NearestNeighbors(n_neighbors=4, metric="manhattan").fit(X).kneighbors(X[:5] + 0.1)
    found = neighbors_in_partitions(source, X[:5] + 0.1, 4, metric="manhattan")
    assert np.array_equal(found[1], expected[1])
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-15)


def test_what_cannot_be_asked():
    X = da.from_array(np.ones((5, 2)), chunks=(2, 2))
    with pytest.raises(DataError, match="exceeds the 5 rows of X"):
        neighbors_in_partitions(X, [[0.0, 0.0]], 6)
    with pytest.raises(DataError, match="queries have 3 columns, X has 2"):
        neighbors_in_partitions(X, [[0.0, 0.0, 1.0]], 1)
    with pytest.raises(DataError, match="use NearestNeighbors for rows in memory"):
        neighbors_in_partitions(np.ones((5, 2)), [[0.0, 0.0]], 1)
    with pytest.raises(ParameterError, match="n_neighbors must be a whole number >= 1; got 0"):
        neighbors_in_partitions(X, [[0.0, 0.0]], 0)
