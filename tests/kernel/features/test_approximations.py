"""Nyström and Fourier features: the kernel they stand for, scikit-learn's draws, how far they can be off."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.kernel_approximation as sk
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernel.kernel_tables import curved, peak_bytes
from tests.oracles.kernel import gaussian_matrix

from learnable import Nystroem, RBFSampler, load, save
from learnable.core.errors import DataError, ModelFileError
from learnable.risk.kernels import Gaussian, Matern

X, _, _ = curved(50)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "laplacian"])
def test_nystroem_has_scikit_learns_landmarks_and_kernel(kernel):
    ours, theirs = (module(kernel, n_components=20, random_state=3).fit(X) for module in (Nystroem, sk.Nystroem))
    np.testing.assert_array_equal(ours.component_indices_, theirs.component_indices_)
    A, B = ours.transform(X), theirs.transform(X)
    np.testing.assert_allclose(A @ A.T, B @ B.T, rtol=1e-5, atol=1e-7)


def test_nystroem_is_exact_at_its_landmarks_and_never_above_the_kernel():
    model = Nystroem(kernel=Matern(1.5), n_components=15, random_state=0).fit(X)
    features = model.transform(X)
    K = Matern(1.5)(X)
    at = model.component_indices_
    np.testing.assert_allclose((features @ features.T)[at], K[at], atol=1e-9)
    assert np.linalg.eigvalsh(K - features @ features.T)[0] >= -1e-9


def test_all_rows_as_landmarks_give_the_kernel_itself():
    with pytest.warns(UserWarning, match="all 50 rows"):
        features = Nystroem(gamma=0.3, n_components=80).fit_transform(X)
    np.testing.assert_allclose(features @ features.T, gaussian_matrix(X, X, 0.3), atol=1e-9)


def test_nystroem_of_a_given_matrix_and_of_sparse_rows():
    K = gaussian_matrix(X, X, 1 / 3)
    given = Nystroem("precomputed", n_components=10, random_state=0).fit(K)
    own = Nystroem(n_components=10, random_state=0).fit(X)
    np.testing.assert_allclose(given.transform(K[:7]), own.transform(X[:7]), rtol=1e-8)
    sparse = Nystroem(n_components=10, random_state=0).fit(sp.csr_array(X))
    np.testing.assert_allclose(sparse.transform(sp.csr_array(X[:7])), own.transform(X[:7]), rtol=1e-8)
    with pytest.raises(DataError, match="square matrix"):
        Nystroem("precomputed", n_components=10).fit(X)


def test_equal_landmarks_are_no_trouble():
    features = Nystroem(n_components=8, random_state=0).fit_transform(np.ones((10, 2)))
    np.testing.assert_allclose(features @ features.T, 1.0, rtol=1e-9)


def test_fourier_features_are_scikit_learns():
    for gamma in (0.4, "scale"):
        ours = RBFSampler(gamma=gamma, n_components=30, random_state=5).fit(X)
        theirs = sk.RBFSampler(gamma=gamma, n_components=30, random_state=5).fit(X)
        np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-12, atol=1e-13)


def test_fourier_features_obey_hoeffding():
    """Of 1,225 pairs, none is off by more than what all of them together pass with probability 1e-6."""
    D = 4000
    features = RBFSampler(gamma=0.3, n_components=D, random_state=0).fit_transform(X)
    off = np.abs(features @ features.T - gaussian_matrix(X, X, 0.3)).max()
    pairs = len(X) * (len(X) + 1) / 2
    assert off <= np.sqrt(8 / D * np.log(2 * pairs / 1e-6))


def test_fourier_features_are_unbiased():
    z = []
    for seed in range(40):
        features = RBFSampler(gamma=0.5, n_components=200, random_state=seed).fit_transform(X[:2])
        z.append(features[0] @ features[1] - gaussian_matrix(X[:1], X[1:2], 0.5)[0, 0])
    assert abs(np.mean(z)) <= 4 * np.std(z) / np.sqrt(len(z))


@given(st.integers(1, 30), st.integers(0, 10**6))
@settings(max_examples=15)
def test_nystroem_features_of_more_landmarks_are_closer(n_components, seed):
    order = np.random.default_rng(seed)
    rows = order.permutation(50)[:40]
    K = Gaussian(1.0)(X[rows])

    def missing(m):
        features = Nystroem(kernel=Gaussian(1.0), n_components=m, random_state=seed % 1000).fit_transform(X[rows])
        return np.trace(K - features @ features.T)

    assert missing(n_components + 10) <= missing(n_components) + 1e-9


def test_float32_stays_float32_and_bad_numbers_are_refused():
    for cls in (Nystroem, RBFSampler):
        assert cls(n_components=5, random_state=0).fit_transform(X.astype(np.float32)).dtype == np.float32
        with pytest.raises(DataError, match="NaN"):
            cls(n_components=5).fit(np.where(X > 2, np.nan, X))
    with pytest.raises(DataError, match="overflows"):
        RBFSampler(gamma="scale").fit(1e200 * X)


def test_round_trip_and_hostile_files(tmp_path):
    for model in (Nystroem(n_components=7, random_state=0).fit(X), RBFSampler(n_components=9, random_state=0).fit(X)):
        save(model, tmp_path / "m.safetensors")
        np.testing.assert_array_equal(load(tmp_path / "m.safetensors").transform(X), model.transform(X))
    model = Nystroem(n_components=7, random_state=0).fit(X)
    model.normalization_ = model.normalization_[:3]
    with pytest.raises(ModelFileError, match="normalization_"):
        save(model, tmp_path / "m.safetensors")


def test_a_matrix_that_is_not_symmetric_is_refused():
    K = gaussian_matrix(X, X, 0.5)
    K[3, 7] += 0.1
    with pytest.raises(DataError, match="Nystroem: the kernel matrix must be symmetric"):
        Nystroem("precomputed", n_components=50).fit(K)


def test_memory_is_what_the_docstring_says():
    Z, m = curved(4000, 3)[0], 300
    model = Nystroem(n_components=m, random_state=0).fit(Z[:400])
    assert peak_bytes(lambda: model.fit(Z)) <= 50 * m * m + 16 * len(Z) + 1e6
    assert peak_bytes(lambda: model.transform(Z)) <= 24 * m * len(Z) + 1e6
