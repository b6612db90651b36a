"""The best stump of all, on any table and any weights."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import boosting as oracle

from learnable.core.errors import ModelFileError
from learnable.ensembles.adaboost.stumps import (
    Stump,
    Stumps,
    StumpSearch,
    coded,
    confidences,
    stump_outputs,
    stump_tree,
    weighted_scores,
)

TABLES = st.tuples(st.integers(0, 10**6), st.integers(2, 25), st.integers(1, 3), st.integers(1, 6), st.integers(2, 4))


def draw(case):
    seed, n, d, distinct, K = case
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(K), rng.integers(K, size=max(0, n - K))]
    D = rng.random(len(y)) ** 4 + 1e-6
    return rng.integers(distinct, size=(len(y), d)).astype(float), y, D / D.sum(), K


@given(TABLES)
def test_no_stump_has_a_smaller_error(case):
    X, y, D, K = draw(case)
    stump, right = StumpSearch(X, y, K).find(D)
    named = coded_classes(stump.value, K)[right.astype(int)]
    assert D[named != y].sum() == pytest.approx(oracle.least_error(X, y, D, K), abs=1e-12)
    np.testing.assert_array_equal(right, X[:, stump.feature] > stump.threshold)


@given(TABLES)
def test_no_split_has_a_smaller_z(case):
    X, y, D, _ = draw(case)
    y = (y > 0).astype(np.int64)
    n = len(y)
    stump, right = StumpSearch(X, y, 2, confident=True).find(D)
    Z = 0.0
    for side, value in zip((~right, right), stump.value[:, 0], strict=True):
        W = [D[side & (y == k)].sum() + 0.5 / n for k in (0, 1)]
        if side.any():
            assert value == pytest.approx(0.5 * np.log(W[1] / W[0]))
            Z += 2 * np.sqrt(W[0] * W[1])
    np.testing.assert_allclose(Z, oracle.least_z(X, y, D, 0.5 / n), atol=1e-12)


def coded_classes(value, K):
    return (value[:, 0] > 0).astype(int) if K == 2 else value.argmax(axis=1)


@given(TABLES)
def test_sparse_tables_give_the_same_stump(case):
    X, y, D, K = draw(case)
    X = X - 1.0
    dense, goes = StumpSearch(X, y, K).find(D)
    stored, too = StumpSearch(sp.csr_array(X), y, K).find(D)
    assert dense[:2] == stored[:2]
    np.testing.assert_array_equal(dense.value, stored.value)
    np.testing.assert_array_equal(goes, too)


@pytest.mark.threaded
def test_threads_and_float32_give_the_same_stump():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50_000, 12)).astype(np.float32), rng.integers(3, size=50_000)
    D = rng.random(50_000)
    D /= D.sum()
    one, two = (StumpSearch(X, y, 3, n_jobs=n_jobs).find(D)[0] for n_jobs in (1, 2))
    wide = StumpSearch(X.astype(float), y, 3).find(D)[0]
    assert one[:2] == two[:2] == wide[:2]
    np.testing.assert_array_equal(one.value, two.value)


@pytest.mark.parametrize("scale", [1e300, 1e-300, 5e-324])
def test_thresholds_lie_between_the_values_at_any_scale(scale):
    X, y = np.array([[-1.0], [1.0], [1.0]]) * scale, np.array([0, 1, 1])
    stump, right = StumpSearch(X, y, 2).find(np.full(3, 1 / 3))
    assert -scale <= stump.threshold < scale
    assert right.tolist() == [False, True, True]


def test_a_midpoint_that_rounds_up_is_the_lower_value():
    low = 1.0
    X = np.array([[low], [np.nextafter(low, 2)]])
    stump, right = StumpSearch(X, np.array([0, 1]), 2).find(np.array([0.5, 0.5]))
    assert stump.threshold == low
    assert right.tolist() == [False, True]


def test_constant_columns_give_the_constant_classifier():
    stump, right = StumpSearch(np.ones((4, 2)), np.array([0, 1, 1, 1]), 2).find(np.full(4, 0.25))
    assert not right.any()
    np.testing.assert_array_equal(stump.value, [[1.0], [1.0]])
    tree = stump_tree(stump, np.array([[0.25, 0.75], [0.0, 0.0]]), np.array([4, 0]))
    assert tree.n_nodes == 1 and tree.value.tolist() == [[0.25, 0.75]]


@pytest.mark.parametrize("sparse", [False, True])
def test_a_stump_is_a_tree_of_two_leaves(sparse):
    X = np.array([[0.0, 3.0], [0.0, 5.0]])
    stump = Stump(1, 4.0, coded(np.array([2, 0]), 3))
    tree = stump_tree(stump, np.array([[0.0, 0.1, 0.4], [0.3, 0.2, 0.0]]), np.array([5, 7]))
    shares = tree.mean(sp.csr_array(X) if sparse else X)
    np.testing.assert_allclose(shares, [[0.0, 0.2, 0.8], [0.6, 0.4, 0.0]])
    np.testing.assert_array_equal(shares.argmax(axis=1), stump_outputs(stump, X).argmax(axis=1))
    np.testing.assert_array_equal(tree.feature_importances(2), [0.0, 1.0])
    tree.check(2, 3)


@pytest.mark.parametrize("sparse", [False, True])
def test_scores_are_sums_of_votes(sparse):
    rng = np.random.default_rng(4)
    X = np.round(rng.standard_normal((20_000, 5)))
    stumps = Stumps(rng.integers(5, size=30), rng.standard_normal(30), rng.standard_normal((30, 2, 3)))
    votes, table = rng.random(30), sp.csr_array(X) if sparse else X
    expected = sum(vote * stump_outputs(stump, X) for vote, stump in zip(votes, stumps, strict=True))
    for n_jobs in (1, 2):
        np.testing.assert_allclose(weighted_scores(stumps, votes, table, n_jobs), expected, atol=1e-12)


def test_codes_and_confidences():
    np.testing.assert_array_equal(coded(np.array([0, 1]), 2), [[-1.0], [1.0]])
    np.testing.assert_array_equal(coded(np.array([2]), 3), [[-0.5, -0.5, 1.0]])
    np.testing.assert_allclose(confidences(np.array([1.0, np.e**2])), [1.0])
    np.testing.assert_allclose(confidences(np.array([1.0, 1.0, np.e**3])), [-2.0, -2.0, 4.0])


GOOD = {"feature": np.array([0]), "threshold": np.array([0.5]), "value": np.ones((1, 2, 1))}


@pytest.mark.parametrize(
    "bad",
    [
        {"feature": np.array([-1])},
        {"feature": np.array([0, 1])},
        {"feature": np.array([0.0])},
        {"threshold": np.array([np.nan])},
        {"threshold": np.array([0.5, 0.5])},
        {"value": np.ones((1, 3, 1))},
        {"value": np.full((1, 2, 1), np.inf)},
        {"value": np.ones((2, 2, 1))},
        {"value": np.ones((1, 2, 1), dtype=np.int64)},
    ],
)
def test_unsound_stumps_are_refused(bad):
    Stumps(**GOOD)._check_loaded()
    with pytest.raises(ModelFileError):
        Stumps(**(GOOD | bad))._check_loaded()
