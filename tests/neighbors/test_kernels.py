"""Heaps, keys and scans, each against a line of NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from learnable.neighbors import _kernels as kernels
from learnable.neighbors._kernels import CHEBYSHEV, HAMMING, NO_ROW


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.integers(1, 12), st.randoms(use_true_random=False))
def test_a_heap_keeps_the_best_with_ties_by_row_number(numbers, k, random):
    keys, rows = np.full((1, k), np.inf), np.full((1, k), NO_ROW)
    offers = list(enumerate(numbers))
    random.shuffle(offers)
    for row, key in offers:
        kernels.offer(keys[0], rows[0], float(key), row)
    kernels.sort_heaps(keys, rows)
    best = sorted((float(key), row) for row, key in enumerate(numbers))[:k]
    assert list(zip(keys[0], rows[0], strict=True))[: len(best)] == best
    assert (rows[0, len(best) :] == NO_ROW).all() and np.isinf(keys[0, len(best) :]).all()


@pytest.mark.parametrize(
    ("power", "definition"),
    [
        (1.0, lambda gap: abs(gap).sum(axis=1)),
        (2.0, lambda gap: (gap**2).sum(axis=1)),
        (3.0, lambda gap: (abs(gap) ** 3).sum(axis=1)),
        (CHEBYSHEV, lambda gap: abs(gap).max(axis=1)),
        (HAMMING, lambda gap: (gap != 0).sum(axis=1)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_keys_are_their_definitions(power, definition, dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, (300, 5)).astype(dtype)
    q = X[7].astype(float) + np.array([0, 1, 0, 0, 2])
    out = np.empty(300)
    kernels.keys_of_run(q, np.ascontiguousarray(X.T), 0, 300, 1.0, power, out)
    np.testing.assert_allclose(out, definition(q - X.astype(float)), rtol=1e-14)
    keys, rows = np.full((1, 9), np.inf), np.full((1, 9), NO_ROW)
    kernels.scan_rows(np.ascontiguousarray(X.T), q[None], np.ones(1), np.array([7]), power, keys, rows)
    kernels.sort_heaps(keys, rows)
    others = np.delete(np.arange(300), 7)
    assert rows[0].tolist() == others[np.argsort(out[others], kind="stable")[:9]].tolist()


def test_squares_of_dense_and_sparse_pairs_agree():
    rng = np.random.default_rng(1)
    X, Q = (sp.random_array((40, 12), density=0.3, rng=rng, format="csr") for _ in range(2))
    queries, rows = rng.integers(0, 40, (2, 100))
    dense, sparse, units = np.empty(100), np.empty(100), np.full(40, 0.5)
    kernels.squares_of_pairs(X.toarray(), Q.toarray() * 0.5, units, queries, rows, dense)
    inner = (X.indptr, X.indices, X.data, Q.indptr, Q.indices, Q.data * 0.5)
    kernels.sparse_squares_of_pairs(*inner, units, queries, rows, sparse)
    np.testing.assert_allclose(dense, (((Q.toarray()[queries] - X.toarray()[rows]) / 2) ** 2).sum(axis=1), rtol=1e-14)
    np.testing.assert_allclose(sparse, dense, rtol=1e-14)


def test_given_keys_are_sorted_with_ties_by_number():
    given_keys = np.array([[3.0, 1.0, 1.0, 2.0, 1.0]])
    keys, rows = np.full((1, 3), np.inf), np.full((1, 3), NO_ROW)
    kernels.scan_keys(given_keys, 10, np.array([11]), keys, rows)
    kernels.sort_heaps(keys, rows)
    assert rows.tolist() == [[12, 14, 13]]


def test_a_row_is_measured_exactly_when_its_bound_admits_it():
    X, Q = np.arange(70.0)[::-1, None].copy(), np.zeros((1, 1))
    order, units, own = np.arange(70), np.ones(1), np.array([-1])
    bounds = (0.5 * X.T**2).astype(np.float32)
    bounds[0, 66] = 1e9  # a false bound: the row is never looked at
    bounds[0, 20] = -1.0  # too low a bound does no harm
    keys, rows = np.full((1, 5), np.inf), np.full((1, 5), NO_ROW)
    kernels.scan_bounds(bounds, 0, order, X, Q, units, own, np.full(1, 0.5), np.zeros(1), keys, rows)
    kernels.sort_heaps(keys, rows)
    assert rows.tolist() == [[69, 68, 67, 65, 64]]
