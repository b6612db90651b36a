"""t-SNE: perplexities, forces by definition and by numbers, the grid, scikit-learn, clusters, new rows, bad data."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn import manifold
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from tests.oracles import tsne as oracle

from learnable import load, save, verify
from learnable.core.errors import DataError, ParameterError
from learnable.core.threads import TaskTeam
from learnable.manifold import PCA, TSNE, trustworthiness
from learnable.manifold.tsne import balance, gradient
from learnable.manifold.tsne_forces import (
    Edges,
    Grid,
    attraction,
    attraction_and_logs,
    conditional_affinities,
    joint_affinities,
    repulsion_of_pairs,
)

TEAM = TaskTeam(1)
IRIS = np.unique(load_iris().data, axis=0)


def pairs(Y):
    return repulsion_of_pairs(Y, TEAM)


def affinities(X, perplexity, k=None):
    """Return P by the functions of the fit."""
    D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    rows = np.argsort(D, axis=1)[:, : k or len(X) - 1]
    return joint_affinities(conditional_affinities(np.take_along_axis(D, rows, axis=1) ** 2, perplexity, TEAM), rows)


@pytest.fixture(scope="module")
def flowers():
    return TSNE(perplexity=15, max_iter=500).fit(IRIS)


@given(st.integers(5, 40), st.floats(1.5, 4.0), st.floats(-8, 8), st.integers(0, 10**6))
def test_every_row_has_the_perplexity(n, perplexity, exponent, seed):
    squares = np.random.default_rng(seed).exponential(10.0**exponent, size=(3, n)) + 10.0**exponent
    P = conditional_affinities(squares, perplexity, TEAM)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-12)
    entropy = -(P * np.log(np.where(P > 0, P, 1.0))).sum(axis=1)
    np.testing.assert_allclose(np.exp(entropy), perplexity, rtol=1e-10)
    assert (np.diff(np.take_along_axis(P, np.argsort(squares, axis=1), axis=1), axis=1) <= 0).all()


def test_equal_distances_have_equal_affinities():
    P = conditional_affinities(np.array([[1.0] * 8, [0.0] * 8, [0.0, 0, 0, 0, 1, 2, 3, 4]]), 3.0, TEAM)
    np.testing.assert_allclose(P[:2], 1 / 8, atol=1e-15)
    np.testing.assert_allclose(P[2, :4], 1 / 4, atol=1e-6)  # four rows are nearest: no perplexity below four


def test_joint_affinities_are_a_symmetric_distribution():
    P = affinities(IRIS, 10.0, 31)
    assert P.data.sum() == pytest.approx(1.0, abs=1e-14)
    assert abs(P - P.T).max() <= 1e-18 and (P.diagonal() == 0).all()


@settings(max_examples=20)
@given(st.integers(3, 12), st.integers(1, 4), st.integers(0, 10**6))
def test_forces_and_divergence_are_those_of_the_definition(n, k, seed):
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(n, k)) * 3.0
    Y[1] = Y[0]
    P = affinities(rng.normal(size=(n, 3)), 1.5)
    edges = Edges.of(P)
    dense = P.toarray()
    pushed, total = pairs(Y)
    expected, expected_total = oracle.repulsion(Y)
    np.testing.assert_allclose(pushed, expected, atol=1e-12)
    assert total == pytest.approx(expected_total, rel=1e-12)
    pulled, _ = attraction_and_logs(edges, Y, TEAM)
    np.testing.assert_allclose(pulled, oracle.attraction(dense, Y), atol=1e-13)
    np.testing.assert_allclose(attraction(edges, Y, TEAM), oracle.attraction(dense, Y), atol=1e-7)
    assert balance(edges, Y, pairs, TEAM).divergence == pytest.approx(oracle.divergence(dense, Y), abs=1e-10)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_gradient_is_the_numeric_one(k):
    rng = np.random.default_rng(k)
    Y = rng.normal(size=(15, k)) * 2.0
    P = affinities(rng.normal(size=(15, 4)), 4.0)
    found = gradient(Edges.of(P), Y, pairs, 1.0, TEAM)
    dense = P.toarray()
    numeric = np.empty_like(Y)
    for at in np.ndindex(Y.shape):
        up, down = Y.copy(), Y.copy()
        up[at] += 1e-5
        down[at] -= 1e-5
        numeric[at] = (oracle.divergence(dense, up) - oracle.divergence(dense, down)) / 2e-5
    np.testing.assert_allclose(found, numeric, atol=3e-8)


@pytest.mark.parametrize(("size", "error"), [(1e-3, 0.02), (0.5, 1e-3), (3.0, 5e-3), (30.0, 0.08)])
@pytest.mark.parametrize("k", [1, 2])
def test_the_grid_gives_the_repulsion_of_all_pairs(size, error, k):
    Y = np.random.default_rng(0).normal(size=(1200, k)) * size
    pushed, total = Grid(TEAM).repulsion(Y)
    expected, expected_total = pairs(Y)
    assert np.linalg.norm(pushed - expected) <= error * np.linalg.norm(expected)
    assert total == pytest.approx(expected_total, rel=5e-3)


def test_a_grid_is_used_again_and_grows_with_the_picture():
    Y = np.random.default_rng(0).normal(size=(400, 2))
    grid = Grid(TEAM)
    first = grid.repulsion(Y)[0]
    kernel = grid.kernel
    assert np.array_equal(grid.repulsion(Y)[0], first) and grid.kernel is kernel
    grid.repulsion(50.0 * Y)
    assert grid.kernel is not kernel and np.array_equal(grid.repulsion(Y)[0], first)


@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_plain_steps_never_raise_the_divergence(seed):
    rng = np.random.default_rng(seed)
    edges = Edges.of(affinities(rng.normal(size=(30, 4)), 5.0))
    Y = rng.normal(size=(30, 2))
    history = [balance(edges, Y, pairs, TEAM).divergence]
    for _ in range(30):
        Y = Y - 2.0 * gradient(edges, Y, pairs, 1.0, TEAM)
        history.append(balance(edges, Y, pairs, TEAM).divergence)
    assert (np.diff(history) <= 1e-12).all() and history[-1] < history[0]


def test_scikit_learn_reaches_no_lower_divergence(flowers):
    ours = TSNE(perplexity=15, method="exact").fit(IRIS)
    theirs = manifold.TSNE(perplexity=15, method="exact").fit(IRIS)
    P = affinities(IRIS, 15.0).toarray()
    assert ours.kl_divergence_ == pytest.approx(oracle.divergence(P, ours.embedding_), rel=1e-9)
    assert theirs.kl_divergence_ == pytest.approx(oracle.divergence(P, theirs.embedding_.astype(float)), rel=1e-3)
    assert ours.kl_divergence_ <= theirs.kl_divergence_ + 0.02
    kept = trustworthiness(IRIS, flowers.embedding_)
    assert kept >= trustworthiness(IRIS, PCA(2).fit_transform(IRIS)) and kept > 0.97


def test_clusters_stay_apart_through_the_grid():
    rng = np.random.default_rng(0)
    label = np.repeat(np.arange(4), 400)
    X = rng.normal(size=(1600, 5)) + 15.0 * rng.normal(size=(4, 5))[label]
    model = TSNE(perplexity=20, max_iter=400, n_jobs=2, tol=1.0).fit(X)
    near = np.argsort(cdist(model.embedding_, model.embedding_), axis=1)[:, 1:6]
    assert (label[near] == label[:, None]).all()
    again = TSNE(perplexity=20, max_iter=400, n_jobs=1, tol=1.0).fit(X)
    assert np.array_equal(model.embedding_, again.embedding_)  # the same bits for any number of threads


def test_few_rows_through_the_grid_have_the_divergence_of_all_pairs(flowers):
    grid = TSNE(perplexity=15, max_iter=500, method="interpolation").fit(IRIS)
    assert grid.kl_divergence_ == pytest.approx(flowers.kl_divergence_, abs=0.03) and verify(grid, IRIS)


def test_new_rows_are_placed_one_by_one(flowers):
    np.testing.assert_array_equal(flowers.transform(IRIS[:7]), flowers.embedding_[:7])
    near = IRIS[::10] + 1e-3
    placed = flowers.transform(near)
    np.testing.assert_array_equal(flowers.transform(near[3:5]), placed[3:5])
    spread = np.linalg.norm(flowers.embedding_.std(axis=0))
    assert np.median(np.linalg.norm(placed - flowers.embedding_[::10], axis=1)) < 0.2 * spread
    far = flowers.transform(np.full((1, 4), 100.0))
    assert np.isfinite(far).all()


def test_certificate_file_and_checker(flowers, tmp_path):
    assert flowers.certificate_.kind == "stationarity" and flowers.certificate_.holds
    assert verify(flowers, IRIS)
    save(flowers, tmp_path / "m.safetensors")
    back = load(tmp_path / "m.safetensors")
    assert np.array_equal(back.transform(IRIS[:5] + 0.1), flowers.transform(IRIS[:5] + 0.1)) and verify(back, IRIS)
    back.embedding_[3] *= 1.001
    assert not verify(back, IRIS)
    back.embedding_[3] = flowers.embedding_[3]
    back.kl_divergence_ *= 1.001
    assert not verify(back, IRIS)
    assert not verify(flowers, IRIS + 0.01 * np.eye(len(IRIS), 4))


def test_other_metrics_starts_and_dimensions():
    X = np.random.default_rng(0).normal(size=(100, 4))  # without ties
    given = {"perplexity": 10, "max_iter": 30, "tol": 1.0, "init": PCA(2).fit_transform(X)}
    same = TSNE(**given).fit(X).embedding_
    np.testing.assert_allclose(TSNE(metric="precomputed", **given).fit(cdist(X, X)).embedding_, same, atol=1e-6)
    given["init"] = "random"
    assert verify(TSNE(**given | {"metric": "manhattan"}).fit(IRIS), IRIS)
    for k in (1, 4):
        model = TSNE(k, perplexity=10, max_iter=60, tol=1.0, init="random", random_state=k).fit(IRIS)
        assert model.embedding_.shape == (len(IRIS), k) and verify(model, IRIS)
        again = TSNE(k, perplexity=10, max_iter=60, tol=1.0, init="random", random_state=k).fit(IRIS)
        assert np.array_equal(model.embedding_, again.embedding_)


def test_equal_rows_constant_columns_and_few_rows_end_well():
    X = np.repeat(np.arange(6.0), 10)[:, None] * [1.0, 0.0, 0.0]
    for rows, perplexity in ((X, 5), (X * 0.0, 5), (X[::10], 2), (X[[0, 20, 40]], 1)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = TSNE(perplexity=perplexity, max_iter=100).fit(rows)
        assert np.isfinite(model.embedding_).all() and np.isfinite(model.kl_divergence_)


@pytest.mark.parametrize(
    ("parameters", "X", "error", "said"),
    [
        ({}, IRIS[:20], ParameterError, r"perplexity \(30.0\) must be less than n_samples \(20\)"),
        ({"n_components": 3}, IRIS[:, :2], ParameterError, 'use init="random"'),
        ({"init": np.zeros((3, 2))}, IRIS, DataError, "init must be finite numbers of shape"),
        ({"metric": "precomputed"}, np.ones((40, 40)), ParameterError, 'init="random"'),
        ({"metric": "precomputed", "init": "random"}, -np.ones((40, 40)), DataError, "negative"),
        ({"metric": "precomputed", "init": "random"}, np.ones((40, 41)), DataError, "square"),
        ({"metric": lambda a, b: -1.0}, IRIS, DataError, "All distances should be positive"),
        ({"perplexity": 0.0}, IRIS, ParameterError, "perplexity"),
        ({"method": "tree"}, IRIS, ParameterError, "method"),
        ({}, np.where(IRIS[0] == IRIS, np.nan, IRIS), DataError, "NaN"),
    ],
)
def test_bad_input_is_named(parameters, X, error, said):
    with pytest.raises(error, match=said):
        TSNE(**parameters).fit(X)


def test_time_and_steps_end_a_fit():
    with pytest.warns(ConvergenceWarning, match="raise max_iter, or tol"):
        model = TSNE(perplexity=10, max_iter=5).fit(IRIS)
    assert model.n_iter_ == 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        stopped = TSNE(perplexity=10, max_seconds=1e-6).fit(IRIS)
    assert stopped.n_iter_ == 1 and np.isfinite(stopped.embedding_).all()
