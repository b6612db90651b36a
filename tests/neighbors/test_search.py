"""The searches against exact arithmetic: neighbours, ties, distances, whatever the data's scale, offset and order."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.oracles.neighbors import exact_neighbours, exact_squares, first_k, plain_distances

from learnable.neighbors.metrics import TreeSearch
from learnable.neighbors.search import FunctionSearch, PlainSearch, ScreenedSearch, SparseSearch

SEARCHES = {
    "screened": ScreenedSearch,
    "plain": lambda X: PlainSearch(X, 2.0),
    "tree": lambda X: TreeSearch(X, 2.0, 4),
    "sparse": lambda X: SparseSearch(sp.csr_array(X)),
}


def queries_for(search, Q):
    return sp.csr_array(Q) if isinstance(search, SparseSearch) else np.asarray(Q)


@pytest.mark.parametrize("name", SEARCHES)
@given(data=st.data())
@settings(max_examples=30)
def test_neighbours_of_whole_numbers_are_exact_with_ties_by_row_number(name, data):
    n, d = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 4))
    numbers = st.integers(-4, 4).map(float)
    X, Q = data.draw(arrays(float, (n, d), elements=numbers)), data.draw(arrays(float, (3, d), elements=numbers))
    k = data.draw(st.integers(1, n))
    search = SEARCHES[name](X)
    keys, rows, _ = search.nearest(queries_for(search, Q), k)
    for i in range(3):
        order, squares = exact_neighbours(X, Q[i], k)
        assert rows[i].tolist() == order
        assert keys[i].tolist() == [float(square) for square in squares]


@pytest.mark.parametrize("name", SEARCHES)
@given(data=st.data())
@settings(max_examples=30)
def test_no_row_is_nearer_than_the_neighbours_found(name, data):
    """The law of the screening: float32 may doubt, it may not decide. Offsets make float32 blind."""
    scale, offset = 10.0 ** data.draw(st.integers(-30, 30)), 10.0 ** data.draw(st.integers(-3, 9))
    seed = data.draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    n, d, k = 60, int(rng.integers(1, 8)), int(rng.integers(1, 10))
    X, Q = ((rng.normal(size=(m, d)) + offset) * scale for m in (n, 3))
    X[: n // 3] *= 10.0 ** rng.integers(-6, 7, (n // 3, 1))
    search = SEARCHES[name](X)
    _, rows, _ = search.nearest(queries_for(search, Q), k)
    for i in range(3):
        squares = exact_squares(X, Q[i])
        best = sorted(squares)[:k]
        for row, true in zip(rows[i], best, strict=True):
            assert abs(squares[row] - true) <= true * 1e-14


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_distances_at_the_ends_of_the_range(name, scale):
    X, Q = np.random.default_rng(0).uniform(-1, 1, (2, 50, 4))
    search = SEARCHES[name](X * scale)
    scaled = queries_for(search, Q * scale)
    keys, rows, _ = search.nearest(scaled, 5)
    true = plain_distances(X * scale, Q * scale)
    assert (rows == first_k(true, 5)).all()
    found = np.sqrt(keys) / search.units(scaled)[:, None]
    np.testing.assert_allclose(found, np.sort(true, axis=1)[:, :5].astype(float), rtol=1e-13)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_query_far_away_and_rows_of_very_different_lengths(name):
    X = np.array([[1.0, 2.0], [3.0, 5.0], [1e12, 0.0], [-1.0, 1e-9], [0.0, 0.0]])
    Q = np.array([[1e200, 0.0], [1e12, 1.0], [1e-9, 0.0]])
    search = SEARCHES[name](X)
    queries = queries_for(search, Q)
    keys, rows, _ = search.nearest(queries, 2)
    assert rows[1].tolist() == [2, 1] and rows[2].tolist() == [4, 3]
    assert rows[0].tolist() == [0, 1]  # at 1e200 all rows are equally far in float64
    np.testing.assert_allclose(np.sqrt(keys[0]) / search.units(queries)[0], 1e200, rtol=1e-15)


def test_identical_rows_are_numbered():
    X = np.full((3000, 7), 1 / 3)
    keys, rows, _ = ScreenedSearch(X).nearest(X[:5], 4)
    assert rows.tolist() == [[0, 1, 2, 3]] * 5 and not keys.any()


@pytest.mark.threaded
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_many_tiles_blocks_and_threads_give_the_same_bits(dtype):
    rng = np.random.default_rng(5)
    X, Q = (rng.normal(size=(m, 11)).astype(dtype) for m in (5000, 700))
    true = plain_distances(X, Q[:40])
    found = [ScreenedSearch(X).nearest(Q, 6, n_jobs=n_jobs) for n_jobs in (1, 2)]
    assert (found[0].rows == found[1].rows).all() and (found[0].keys == found[1].keys).all()
    assert (found[0].rows[:40] == first_k(true, 6)).all()
    by_row_number = ScreenedSearch(X[np.argsort(X[:, 0])])  # sorted rows change numbers, not distances
    np.testing.assert_allclose(by_row_number.nearest(Q, 6).keys, found[0].keys, rtol=1e-14)


@pytest.mark.parametrize("name", SEARCHES)
def test_own_rows_are_left_out_and_balls_are_complete(name):
    X = np.random.default_rng(2).integers(0, 3, (90, 3)).astype(float)
    search, own = SEARCHES[name](X), np.arange(90)
    queries = queries_for(search, X)
    squares = np.round(plain_distances(X, X) ** 2).astype(float)
    _, rows, _ = search.nearest(queries, 5, own)
    np.fill_diagonal(squares, np.inf)
    assert (rows == first_k(squares, 5)).all()
    ball = search.within(queries, np.full(90, 2.0), own)
    assert (ball.counts == (squares <= 2).sum(axis=1)).all()
    assert (ball.rows == np.nonzero(squares <= 2)[1]).all() and (ball.keys == squares[squares <= 2]).all()


def test_a_function_of_the_queries_is_searched_like_a_table():
    D = np.random.default_rng(1).integers(0, 4, (20, 30)).astype(float)
    search = FunctionSearch(30, lambda Q: D[Q[:, 0].astype(int)], 7)
    keys, rows, _ = search.nearest(np.arange(20.0)[:, None], 4)
    assert (rows == first_k(D, 4)).all() and (keys == np.sort(D, axis=1)[:, :4]).all()


@pytest.mark.threaded
def test_an_interrupted_search_leaves_no_thread_and_no_limit_behind():
    def distances(Q):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        FunctionSearch(3, distances, 1).nearest(np.zeros((9, 1)), 1)
    assert FunctionSearch(3, lambda Q: np.zeros((len(Q), 3)), 1).nearest(np.zeros((9, 1)), 1).rows.max() == 0
