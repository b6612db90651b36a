"""Laplacian eigenmaps: known spectra, scikit-learn, components, new rows, the checker."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import manifold
from sklearn.datasets import load_digits, make_swiss_roll
from sklearn.exceptions import ConvergenceWarning

from learnable import load, save, verify
from learnable.core.errors import DataError
from learnable.manifold import LaplacianEigenmaps, SpectralEmbedding
from learnable.manifold.spectral import laplacian_of, without_diagonal

X = np.random.default_rng(0).normal(size=(50, 3))


def path(n):
    return np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)


def test_paths_and_cycles_have_their_eigenvalues():
    n = 40
    model = SpectralEmbedding(4, affinity="precomputed", normalized=False).fit(path(n))
    np.testing.assert_allclose(model.eigenvalues_, 2 - 2 * np.cos(np.pi * np.arange(1, 5) / n), atol=1e-12)
    assert verify(model, path(n))
    cycle = path(n)
    cycle[0, -1] = cycle[-1, 0] = 1.0
    model = SpectralEmbedding(4, affinity="precomputed", normalized=False).fit(sp.csr_array(cycle))
    np.testing.assert_allclose(model.eigenvalues_, 2 - 2 * np.cos(2 * np.pi * np.array([1, 1, 2, 2]) / n), atol=1e-12)
    assert verify(model, sp.csr_array(cycle))


@pytest.mark.parametrize("settings", [{"affinity": "rbf", "gamma": 0.7}, {"n_neighbors": 8}], ids=str)
def test_scikit_learn_has_the_same_coordinates(settings):
    ours, theirs = SpectralEmbedding(3, **settings).fit(X), manifold.SpectralEmbedding(3, **settings).fit(X)
    np.testing.assert_allclose(
        without_diagonal(ours.affinity_matrix_).sum(), without_diagonal(theirs.affinity_matrix_).sum()
    )
    scale = np.linalg.norm(ours.embedding_, axis=0) / np.linalg.norm(theirs.embedding_, axis=0)
    np.testing.assert_allclose(np.abs(ours.embedding_), np.abs(theirs.embedding_) * scale, atol=1e-6)
    assert verify(ours, X)


def test_coordinates_solve_the_generalised_problem():
    model = LaplacianEigenmaps(3, gamma=0.4).fit(X)
    A = without_diagonal(model.affinity_matrix_)
    D = np.diag(A.sum(axis=1))
    Y = model.embedding_
    np.testing.assert_allclose((D - A) @ Y, D @ Y * model.eigenvalues_, atol=1e-10)
    np.testing.assert_allclose(Y.T @ D @ Y, np.eye(3), atol=1e-10)
    np.testing.assert_allclose(D.sum(axis=0) @ Y, 0.0, atol=1e-9)


def test_zero_eigenvalues_count_the_components():
    Z = np.vstack([X, X + 100.0, X - 100.0])
    with pytest.warns(ConvergenceWarning, match="not fully connected"):
        model = SpectralEmbedding(4, n_neighbors=9).fit(Z)
    assert model.n_parts_ == 3
    assert (model.eigenvalues_[:2] < 1e-12).all()
    assert model.eigenvalues_[2] > 1e-4
    assert verify(model, Z)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("settings", [{"affinity": "rbf", "gamma": 0.5}, {"n_neighbors": 9}], ids=str)
def test_rows_of_the_fit_keep_their_coordinates_and_new_ones_are_placed_one_by_one(settings, normalized):
    model = SpectralEmbedding(2, normalized=normalized, **settings).fit(X)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-9)
    new = np.random.default_rng(1).normal(size=(6, 3))
    np.testing.assert_allclose(model.transform(new)[3:4], model.transform(new[3:4]), atol=1e-12)


def test_the_order_along_a_roll_is_found():
    Z, position = make_swiss_roll(500, random_state=0)
    model = SpectralEmbedding(1, n_neighbors=10).fit(Z)
    ranks = [np.argsort(np.argsort(v)) for v in (model.embedding_[:, 0], position)]
    assert abs(np.corrcoef(*ranks)[0, 1]) > 0.99


def test_the_sparse_factor_finds_what_lapack_finds():
    Z = load_digits().data[:700]
    model = SpectralEmbedding(3, n_neighbors=12).fit(Z)
    L = laplacian_of(without_diagonal(model.affinity_matrix_), model.degrees_, True).toarray()
    np.testing.assert_allclose(model.eigenvalues_, np.linalg.eigvalsh(L)[1:4], atol=1e-12)
    assert model.certificate_.holds


def test_hard_graphs_end_well(tmp_path):
    lonely = path(6)
    lonely[5] = lonely[:, 5] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SpectralEmbedding(2, affinity="precomputed").fit(lonely)
    assert model.n_parts_ == 2
    assert np.isfinite(model.embedding_).all()
    assert verify(model, lonely)
    half = np.triu(2.0 * path(6))
    with pytest.warns(UserWarning, match="not symmetric"):
        model = SpectralEmbedding(2, affinity="precomputed").fit(half)
    np.testing.assert_array_equal(model.affinity_matrix_, path(6))
    assert verify(model, half)
    for bad, match in [(-path(4), "not negative"), (np.ones((3, 4)), "square")]:
        with pytest.raises(DataError, match=match):
            SpectralEmbedding(1, affinity="precomputed").fit(bad)
    model = SpectralEmbedding(2, n_neighbors=6).fit(X)
    save(model, tmp_path / "map.safetensors")
    assert load(tmp_path / "map.safetensors").transform(X).tobytes() == model.transform(X).tobytes()
