"""Classical scaling: eurodist to the published digits, PCA, new points, dissimilarities that are not Euclidean."""

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import manifold

from learnable import PCA, load, save, verify
from learnable.core.errors import DataError
from learnable.manifold import ClassicalMDS
from learnable.manifold.scaling import centred_products

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4)) * [3.0, 2.0, 1.0, 0.5]


def euclidean(A, B):
    return np.sqrt(((A[:, None] - B) ** 2).sum(axis=2))


def test_eurodist(reference_data):
    with open(reference_data / "manifold" / "eurodist.csv", encoding="utf-8") as file:
        D = np.array([[float(cell) for cell in row[1:]] for row in list(csv.reader(file))[1:]])
    with open(reference_data / "manifold" / "reference.csv", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] == "eurodist"]
    values = np.array([float(row["value"]) for row in rows if row["quantity"] == "eigenvalue"])
    axes = [np.array([float(row["value"]) for row in rows if row["quantity"] == f"coord{j}"]) for j in (1, 2)]
    model = ClassicalMDS(2, metric="precomputed").fit(D)
    # R's cmdscale(eurodist, eig = TRUE).
    np.testing.assert_allclose(model.eigenvalues_, [19538377.0895, 11856555.3340], atol=1e-3)
    for ours, theirs in zip(model.embedding_.T, axes, strict=True):
        np.testing.assert_allclose(ours * np.sign(ours @ theirs), theirs, atol=1e-4)
    assert model.negative_share_ == pytest.approx(-values[values < 0].sum() / np.abs(values).sum(), rel=1e-8)
    assert verify(model, D)


@given(st.integers(2, 15), st.integers(1, 4), st.integers(0, 10**6))
def test_of_euclidean_distances_it_is_pca(n, d, seed):
    Z = np.random.default_rng(seed).normal(size=(n, d))
    k = min(n - 1, d)
    mds = ClassicalMDS(k).fit(Z)
    scores = PCA(k).fit_transform(Z)
    np.testing.assert_allclose(mds.eigenvalues_, (scores**2).sum(axis=0), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(euclidean(mds.embedding_, mds.embedding_), euclidean(Z, Z), atol=1e-6)
    assert mds.negative_share_ < 1e-12
    assert verify(mds, Z)


def test_scikit_learn_has_the_same_coordinates():
    for metric in ("euclidean", "manhattan"):
        ours, theirs = ClassicalMDS(3, metric=metric).fit(X), manifold.ClassicalMDS(3, metric=metric).fit(X)
        np.testing.assert_allclose(ours.embedding_, theirs.embedding_, atol=1e-9)
        np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-10)


def test_new_rows_are_placed_by_gower():
    model = ClassicalMDS(4).fit(X)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-9)
    new = RNG.normal(size=(7, 4))
    placed = model.transform(new)
    # In all four dimensions every distance to the rows is kept.
    np.testing.assert_allclose(euclidean(placed, model.embedding_), euclidean(new, X), atol=1e-8)
    np.testing.assert_allclose(model.transform(new[2:3]), placed[2:3], atol=1e-12)
    given_distances = ClassicalMDS(4, metric="precomputed").fit(euclidean(X, X))
    np.testing.assert_allclose(given_distances.transform(euclidean(new, X)), placed, atol=1e-8)


def test_products_are_centred():
    B = centred_products(euclidean(X, X) ** 2)
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(B, centred @ centred.T, atol=1e-10)


@pytest.mark.parametrize(
    ("D", "match"),
    [
        (np.ones((3, 4)), "square matrix"),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), "must be symmetric"),
        (np.array([[0.0, -1.0], [-1.0, 0.0]]), "must not be negative"),
        (np.zeros((1, 1)), "n_samples = 1"),
    ],
    ids=str,
)
def test_what_is_no_dissimilarity_is_refused(D, match):
    with pytest.raises(DataError, match=match):
        ClassicalMDS(1, metric="precomputed").fit(D)


def test_hard_tables_end_well(tmp_path):
    same = ClassicalMDS().fit(np.full((4, 2), 3.0))
    assert same.embedding_.tolist() == np.zeros((4, 2)).tolist()
    assert ClassicalMDS(5).fit(X[:3]).embedding_.shape == (3, 3)
    with pytest.raises(DataError, match="gives no distances"):
        ClassicalMDS(metric="nothing").fit(X)
    twice = np.vstack([X, X])
    model = ClassicalMDS().fit(twice)
    np.testing.assert_allclose(model.embedding_[:30], model.embedding_[30:], atol=1e-9)
    assert verify(model, twice)
    save(model, tmp_path / "mds.safetensors")
    assert load(tmp_path / "mds.safetensors").transform(X).tobytes() == model.transform(X).tobytes()
