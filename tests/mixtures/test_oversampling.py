"""k-means‖: the same bits for any blocks and partitions; draws proportional to w·D²; starts as good as k-means++."""

from itertools import pairwise

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.on_disk import streamed

from learnable import KMeans, MiniBatchKMeans
from learnable.data.blocks import Block, Blocks, Part
from learnable.data.sources import open_source
from learnable.mixtures.oversampling import _draw_from_block, _smallest, oversampled_start


def clouds(n=600, d=3, K=6, seed=0):
    rng = np.random.default_rng(seed)
    return 8.0 * rng.normal(size=(K, d))[np.arange(n) % K] + rng.normal(size=(n, d))


@settings(deadline=None, max_examples=15)
@given(cuts=st.lists(st.integers(1, 119), max_size=5), rows=st.integers(1, 130), seed=st.integers(0, 99))
def test_any_cut_of_the_rows_gives_the_same_bits(cuts, rows, seed):
    X = clouds(120, seed=seed)
    edges = [0, *sorted(set(cuts)), 120]
    parts = [Part(X[start:stop]) for start, stop in pairwise(edges)]
    expected = oversampled_start(Blocks([Part(X)]), 4, np.random.default_rng(seed))
    found = oversampled_start(Blocks(parts, rows=rows), 4, np.random.default_rng(seed))
    assert found.tobytes() == expected.tobytes()


def test_partitions_files_and_memory_give_the_same_bits(tmp_path):
    import pandas as pd

    X = clouds()
    expected = oversampled_start(Blocks([Part(X)]), 6, np.random.default_rng(1))
    sources = [da.from_array(X, chunks=((100, 7, 250, 243), 3)), da.from_array(X, chunks=(600, 3))]
    sources.append(streamed(pd.DataFrame(X, columns=["a", "b", "c"]), tmp_path, 3))
    with dask.config.set(scheduler="synchronous"):
        for source in sources:
            blocks = open_source("KMeans", source, None, None, "none").blocks
            blocks.scanned()  # numbers the rows
            assert oversampled_start(blocks, 6, np.random.default_rng(1)).tobytes() == expected.tobytes()


def test_draws_are_proportional_to_the_squared_distance():
    """The first row of a weighted sample without replacement has chance w·D²/Σw·D²; 4,000 draws, five deviations."""
    X = np.array([[1.0], [2.0], [3.0], [0.0]])
    weight = np.array([4.0, 1.0, 1.0, 9.0])
    share = weight * X[:, 0] ** 2 / (weight * X[:, 0] ** 2).sum()
    block = Block(X, None, weight, 0)
    origin = np.zeros((1, 1))
    first = [int(_draw_from_block(origin, seed, 1, block).numbers[0]) for seed in range(4000)]
    found = np.bincount(first, minlength=4) / 4000
    assert found[3] == 0.0  # a row on a candidate is never drawn again
    assert (np.abs(found - share) <= 5 * np.sqrt(share * (1 - share) / 4000)).all()


def test_the_smallest_keys_of_two_runs_are_those_of_all_rows():
    X = clouds(50)
    whole = _draw_from_block(X[:2], 7, 8, Block(X, None, None, 0))
    first = _draw_from_block(X[:2], 7, 8, Block(X[:20], None, None, 0))
    second = _draw_from_block(X[:2], 7, 8, Block(X[20:], None, None, 20))
    for one, other in zip(_smallest(8, first, second), whole, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("model", [KMeans, MiniBatchKMeans])
def test_starts_find_clusters_that_lie_apart(model):
    X = clouds()
    found = model(6, init="k-means||", random_state=0).fit(X)
    assert found.inertia_ <= 1.01 * KMeans(6, n_init=10, random_state=0).fit(X).inertia_


def test_sparse_rows_start_as_dense_ones():
    X = np.where(clouds() > 3, clouds(), 0.0)
    dense = oversampled_start(Blocks([Part(X)]), 5, np.random.default_rng(0))
    assert np.array_equal(oversampled_start(Blocks([Part(sp.csr_array(X))]), 5, np.random.default_rng(0)), dense)


def test_fewer_distinct_rows_than_centres():
    X = np.repeat([[0.0, 1.0], [5.0, 5.0]], 10, axis=0)
    start = oversampled_start(Blocks([Part(X)]), 4, np.random.default_rng(0))
    assert start.shape == (4, 2) and len(np.unique(start, axis=0)) == 2
