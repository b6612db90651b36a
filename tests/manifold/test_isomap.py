"""Isomap: paths by SciPy, scaling as its limit, the swiss roll, new rows, landmarks, graphs in parts, the checker."""

import gzip
import warnings

import numpy as np
import pytest
from scipy.sparse.csgraph import shortest_path
from scipy.spatial import procrustes
from scipy.spatial.distance import cdist
from sklearn import manifold
from sklearn.datasets import load_digits, make_swiss_roll
from sklearn.exceptions import ConvergenceWarning

from learnable import load, save, verify
from learnable.core.errors import DataError, ParameterError
from learnable.manifold import ClassicalMDS, Isomap
from learnable.manifold.graphs import paths_from, symmetric_graph
from learnable.manifold.scaling import centred_products
from learnable.solvers.eigen import symmetric_pairs

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))


def roll(n, seed=0):
    return make_swiss_roll(n, random_state=seed)


def distances(Y):
    return np.sqrt(((Y[:, None] - Y) ** 2).sum(axis=2))


def test_with_all_neighbours_it_is_classical_scaling():
    ours = Isomap(n_neighbors=59).fit(X)
    np.testing.assert_allclose(ours.embedding_, ClassicalMDS().fit(X).embedding_, atol=1e-9)
    assert verify(ours, X)


@pytest.mark.parametrize("settings", [{"n_neighbors": 6}, {"n_neighbors": None, "radius": 1.6}, {"p": 1}], ids=str)
def test_scikit_learn_has_the_same_paths_and_coordinates(settings):
    Z = roll(150)[0] / 5.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = Isomap(**settings).fit(Z), manifold.Isomap(**settings).fit(Z)
    if ours.n_parts_ == 1:
        np.testing.assert_allclose(ours.dist_matrix_, theirs.dist_matrix_, rtol=1e-10)
        np.testing.assert_allclose(np.abs(ours.embedding_), np.abs(theirs.embedding_), atol=1e-6)
        assert ours.reconstruction_error() == pytest.approx(theirs.reconstruction_error(), rel=1e-6)
    assert verify(ours, Z)


def test_paths_are_scipys():
    model = Isomap(n_neighbors=4, on_parts="join").fit(roll(200)[0])
    np.testing.assert_allclose(model.dist_matrix_, shortest_path(model.graph_, directed=False), rtol=1e-12)


def test_the_swiss_roll_is_unrolled():
    Z, position = roll(800)
    model = Isomap(n_neighbors=8).fit(Z)
    assert model.residual_variance_ < 0.01
    along, across = model.embedding_.T
    ranks = np.argsort(np.argsort(position))
    assert abs(np.corrcoef(np.argsort(np.argsort(along)), ranks)[0, 1]) > 0.99
    assert abs(np.corrcoef(across, Z[:, 1])[0, 1]) > 0.95


def test_frey_faces(reference_data):
    faces = np.load(reference_data / "manifold" / "frey_faces.npz")
    Z = faces[faces.files[0]].reshape(1965, -1).astype(float)
    with gzip.open(reference_data / "manifold" / "frey_isomap_reference.csv.gz", "rt", encoding="utf-8") as file:
        rows = [line.strip().split(",") for line in file]
    theirs = np.array([[float(cell) for cell in row[-6:]] for row in rows[1:]])
    # R's vegan: isomap(dist(X), ndim = 6, k = 12). It keeps both of two rows that are equally far as twelfth neighbour.
    D = cdist(Z, Z)
    i, j = np.nonzero(np.sort(D, axis=1)[:, 12:13] >= D)
    graph = symmetric_graph(1965, i[i != j], j[i != j], D[i, j][i != j])
    assert graph.nnz == 2 * 16274
    pairs = symmetric_pairs(centred_products(paths_from(graph, np.arange(1965), 2) ** 2), 6)
    expected = [2.048641233e9, 1.709804388e9, 9.70653946e8]
    np.testing.assert_allclose(pairs.values[:3], expected, rtol=1e-8)
    np.testing.assert_allclose(np.abs(pairs.vectors * np.sqrt(pairs.values)), np.abs(theirs), atol=1e-6)
    model = Isomap(n_neighbors=12, n_components=3).fit(Z)
    assert (model.n_parts_, model.graph_.nnz) == (1, 2 * 16273)
    np.testing.assert_allclose(model.eigenvalues_, expected, rtol=1e-5)


def test_new_rows_are_placed_and_old_ones_where_they_are():
    Z = roll(300)[0]
    model = Isomap(n_neighbors=7).fit(Z)
    np.testing.assert_allclose(model.transform(Z), model.embedding_, atol=1e-8 * np.abs(model.embedding_).max())
    new = roll(20, seed=3)[0]
    placed = model.transform(new)
    theirs = manifold.Isomap(n_neighbors=7).fit(Z)
    signs = np.sign((theirs.embedding_ * model.embedding_).sum(axis=0))
    np.testing.assert_allclose(placed, theirs.transform(new) * signs, atol=1e-6)
    np.testing.assert_allclose(model.transform(new[4:5]), placed[4:5], atol=1e-9)


def test_a_far_row_leaves_the_others_where_they_are():
    far = np.vstack([X, np.full((1, 3), 1e6)])
    model = Isomap(n_neighbors=5).fit(far)
    assert bool(verify(model, far))
    np.testing.assert_allclose(model.transform(far), model.embedding_, atol=1e-3)


def test_landmarks_are_nearly_all_rows():
    Z = roll(600)[0]
    full, some = Isomap(n_neighbors=8).fit(Z), Isomap(n_neighbors=8, n_landmarks=120).fit(Z)
    spread = full.embedding_.std()
    assert procrustes(full.embedding_, some.embedding_)[2] < 0.01  # up to a rigid motion
    assert some.residual_variance_ == pytest.approx(full.residual_variance_, abs=0.01)
    assert verify(some, Z)
    np.testing.assert_allclose(some.transform(Z[:9]), some.embedding_[:9], atol=1e-8 * spread)


def test_a_graph_in_parts_is_joined_and_said_or_refused():
    Z = np.vstack([X, X + 50.0, X - 80.0])
    with pytest.warns(ConvergenceWarning, match="connected components of the neighbors graph is 3"):
        model = Isomap().fit(Z)
    assert model.n_parts_ == 3
    assert np.isfinite(model.embedding_).all()
    assert verify(model, Z)
    with pytest.raises(DataError, match="3 connected components"):
        Isomap(on_parts="error").fit(Z)


def test_equal_rows_and_bad_input():
    twice = np.vstack([X, X])
    model = Isomap(n_neighbors=8).fit(twice)
    np.testing.assert_allclose(model.embedding_[:60], model.embedding_[60:], atol=1e-8)
    assert verify(model, twice)
    with pytest.raises(DataError, match="n_neighbors < n_samples"):
        Isomap(n_neighbors=60).fit(X)
    with pytest.raises(ParameterError, match="Both n_neighbors and radius"):
        Isomap(radius=1.0).fit(X)
    with pytest.raises(DataError, match="NaN"):
        Isomap().fit(np.where(X > 1, np.nan, X))


def test_precomputed_distances_are_those_of_the_rows():
    given_distances = Isomap(metric="precomputed").fit(distances(X))
    np.testing.assert_allclose(given_distances.embedding_, Isomap().fit(X).embedding_, atol=1e-8)
    assert verify(given_distances, distances(X))


def test_the_same_bits_for_any_number_of_threads_and_a_file_keeps_them(tmp_path):
    Z = load_digits().data[:300]
    one, two = Isomap(n_neighbors=12, n_jobs=1).fit(Z), Isomap(n_neighbors=12, n_jobs=2).fit(Z)
    assert one.embedding_.tobytes() == two.embedding_.tobytes()
    save(one, tmp_path / "isomap.safetensors")
    assert load(tmp_path / "isomap.safetensors").transform(Z[:5]).tobytes() == one.transform(Z[:5]).tobytes()
