"""Scaling by majorisation: the step, stress that never rises, ordinal scaling, published numbers, new rows, checker."""

import csv
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn import manifold
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from tests.oracles.scaling import guttman

from learnable import load, save, verify
from learnable.core.errors import DataError, ParameterError
from learnable.manifold import MDS, ClassicalMDS
from learnable.manifold._kernels import guttman_rows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 5))
IRIS = np.unique(load_iris().data, axis=0)[::3]


@given(st.integers(2, 9), st.integers(1, 3), st.integers(0, 10**6))
def test_the_step_is_that_of_the_definition(n, k, seed):
    rng = np.random.default_rng(seed)
    targets = squareform(rng.random(n * (n - 1) // 2))
    Y = rng.normal(size=(n, k)).round()  # some rows in one place
    moved, losses = np.empty((n, k)), np.empty(n)
    guttman_rows(targets, np.ascontiguousarray(Y.T), 0, moved, losses)
    expected, losses_expected = guttman(targets, Y)
    np.testing.assert_allclose(moved, expected, atol=1e-12)
    np.testing.assert_allclose(losses, losses_expected, atol=1e-12)


@settings(max_examples=15)
@given(st.integers(3, 12), st.integers(1, 3), st.booleans(), st.integers(0, 10**6))
def test_the_stress_never_rises(n, k, metric, seed):
    D = squareform(np.random.default_rng(seed).random(n * (n - 1) // 2))
    model = MDS(k, metric_mds=metric, metric="precomputed", init="random", random_state=seed, eps=1e-12, max_iter=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(D)
    assert (np.diff(model.stress_history_) <= 1e-12 * len(D) ** 2).all()
    if metric:
        assert model.stress_ == pytest.approx(((squareform(D) - pdist(model.embedding_)) ** 2).sum(), abs=1e-12)


def test_one_step_of_borg_and_groenen():
    # Modern multidimensional scaling, page 154.
    D = np.array([[0, 5, 3, 4], [5, 0, 2, 2], [3, 2, 0, 1], [4, 2, 1, 0]], dtype=float)
    Z = np.array([[-0.266, -0.539], [0.451, 0.252], [0.016, -0.238], [-0.200, 0.524]])
    expected = np.array([[-1.415, -2.471], [1.633, 1.107], [0.249, -0.067], [-0.468, 1.431]])
    np.testing.assert_allclose(guttman(D, Z)[0], expected, atol=1e-3)
    moved = np.empty((4, 2))
    guttman_rows(D, np.ascontiguousarray(Z.T), 0, moved, np.empty(4))
    np.testing.assert_allclose(moved, expected, atol=1e-3)


def test_distances_in_a_plane_are_found_and_eurodist_is_better_than_classical(reference_data):
    plane = RNG.normal(size=(30, 2))
    model = MDS(eps=1e-14, max_iter=2000).fit(plane)
    np.testing.assert_allclose(cdist(model.embedding_, model.embedding_), cdist(plane, plane), atol=1e-5)
    with (reference_data / "manifold" / "eurodist.csv").open(encoding="utf-8") as file:
        D = np.array([[float(cell) for cell in row[1:]] for row in list(csv.reader(file))[1:]])
    classical = ClassicalMDS(metric="precomputed").fit(D).embedding_
    roads = MDS(metric="precomputed").fit(D)
    assert roads.stress_ < ((squareform(D) - pdist(classical)) ** 2).sum()
    assert verify(roads, D)
    best = manifold.MDS(metric="precomputed", init="random", n_init=4, eps=1e-9, max_iter=2000, random_state=0)
    theirs = best.fit(D).stress_
    assert roads.stress_ <= theirs * (1 + 1e-3)


@pytest.mark.parametrize("metric", [True, False])
def test_scikit_learn_reaches_no_lower_stress_from_the_same_start(metric):
    start = ClassicalMDS().fit(IRIS).embedding_  # from random ones either may end in the poorer minimum
    ours = MDS(metric_mds=metric, eps=1e-9, max_iter=3000).fit(IRIS, init=start)
    theirs = manifold.smacof(
        cdist(IRIS, IRIS), metric=metric, init=start, n_init=1, eps=1e-9, max_iter=3000, normalized_stress=not metric
    )[1]
    assert ours.stress_ <= theirs * 1.001
    assert verify(ours, IRIS)


def test_only_the_order_counts_for_ordinal_scaling():
    D = squareform(pdist(X))
    settings_of = {"metric_mds": False, "metric": "precomputed", "init": "classical_mds", "eps": 1e-10}
    start = ClassicalMDS(metric="precomputed").fit(D).embedding_
    plain = MDS(**settings_of).fit(D, init=start)
    bent = MDS(**settings_of).fit(np.exp(D) - 1.0, init=start)
    np.testing.assert_allclose(plain.embedding_, bent.embedding_, atol=1e-9)
    assert plain.stress_ == pytest.approx(bent.stress_, rel=1e-9)
    normed = MDS(normalized_stress=True).fit(X)
    assert plain.stress_ < normed.stress_  # Stress-1, both
    assert (np.diff(plain.steps_[:, 1]) > 0).all()
    assert verify(plain, D)


@pytest.mark.parametrize("metric", [True, False])
def test_new_rows_and_a_file(metric, tmp_path):
    model = MDS(metric_mds=metric, max_iter=1000).fit(X)
    np.testing.assert_allclose(model.transform(X), model.embedding_)
    new = RNG.normal(size=(6, 5))
    placed = model.transform(new)
    np.testing.assert_allclose(placed[2:4], model.transform(new[2:4]), atol=1e-12)
    if metric:  # no place near it has less stress
        away = cdist(new, X)
        stress = ((away - cdist(placed, model.embedding_)) ** 2).sum(axis=1)
        for _ in range(20):
            other = placed + 0.05 * RNG.normal(size=placed.shape)
            assert (((away - cdist(other, model.embedding_)) ** 2).sum(axis=1) >= stress - 1e-9).all()
    save(model, tmp_path / "mds.safetensors")
    assert load(tmp_path / "mds.safetensors").transform(new).tobytes() == placed.tobytes()


def test_the_same_bits_for_any_number_of_threads():
    big = RNG.normal(size=(300, 4))
    one, two = MDS(n_jobs=1).fit(big), MDS(n_jobs=2).fit(big)
    assert one.embedding_.tobytes() == two.embedding_.tobytes()


@pytest.mark.parametrize(
    ("model", "table", "match"),
    [
        (MDS(metric="precomputed"), np.arange(6.0).reshape(2, 3), "square"),
        (MDS(), X[:1], "n_samples = 1"),
        (MDS(metric="cosine", dissimilarity="euclidean"), X, "provided both"),
        (MDS(metric="nonsense"), X, "gives no distances"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_bad_input_is_refused_in_words(model, table, match):
    with pytest.raises((DataError, ParameterError), match=match):
        model.fit(table)
    with pytest.raises(DataError, match="init matrix"):
        MDS().fit(X, init=np.ones((3, 2)))


def test_equal_rows_and_more_dimensions_than_rows_end_well():
    same = MDS().fit(np.ones((4, 2)))
    assert same.stress_ == 0.0
    assert np.isfinite(MDS(metric_mds=False).fit(np.ones((4, 2))).embedding_).all()
    assert MDS(5).fit(X[:3]).embedding_.shape == (3, 5)
    assert verify(MDS(5).fit(X[:3]), X[:3])
