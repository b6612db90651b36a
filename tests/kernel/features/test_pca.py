"""Kernel principal components: eigenvectors, new points, PCA, scikit-learn, the inverse, the checker."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as SklearnKernelPCA
from tests.kernel.kernel_tables import curved, peak_bytes

from learnable import KernelPCA, load, save, verify
from learnable.core.errors import DataError, ParameterError
from learnable.risk.kernels import Matern

X, _, _ = curved(40)
NEW = curved(12, seed=7)[0]


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": "rbf", "n_components": 4},
        {"kernel": "poly", "n_components": 3, "eigen_solver": "arpack"},
        {"kernel": "linear"},
        {"kernel": "rbf", "gamma": 2.0, "n_components": 39, "eigen_solver": "dense"},
    ],
    ids=str,
)
def test_components_are_scikit_learns(settings):
    ours, theirs = KernelPCA(**settings).fit(X), SklearnKernelPCA(**settings).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(ours.transform(NEW), theirs.transform(NEW), atol=1e-6)
    assert verify(ours, X)


def test_linear_kernel_is_pca():
    components = KernelPCA(n_components=2).fit_transform(X)
    reference = PCA(n_components=2).fit_transform(X)
    np.testing.assert_allclose(np.abs(components), np.abs(reference), atol=1e-10)


def test_components_of_the_rows_are_centred_uncorrelated_and_have_the_eigenvalues():
    model = KernelPCA(kernel=Matern(1.0), n_components=6).fit(X)
    T = model.transform(X)
    np.testing.assert_allclose(T.mean(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(T.T @ T, np.diag(model.eigenvalues_), atol=1e-9)
    np.testing.assert_allclose(model.fit_transform(X), T, atol=1e-9)
    assert (np.diff(model.eigenvalues_) <= 0).all()


def test_all_components_keep_the_distances_of_features():
    model = KernelPCA(kernel="rbf", gamma=0.5).fit(X)
    T = model.transform(X)
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    square = ((T[:, None] - T) ** 2).sum(axis=2)
    np.testing.assert_allclose(square, 2.0 - 2.0 * K, atol=1e-9)


def test_few_components_by_arpack_are_those_of_the_whole():
    table = curved(260)[0]
    few = KernelPCA(kernel="rbf", n_components=3).fit(table)
    whole = KernelPCA(kernel="rbf", n_components=3, eigen_solver="dense").fit(table)
    np.testing.assert_allclose(few.eigenvalues_, whole.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(few.transform(NEW), whole.transform(NEW), atol=1e-9)
    assert few.certificate_.holds


def test_inverse_is_scikit_learns_ridge_regression():
    settings = {"kernel": "rbf", "n_components": 3, "fit_inverse_transform": True, "alpha": 0.1}
    ours, theirs = KernelPCA(**settings).fit(X), SklearnKernelPCA(**settings).fit(X)
    T = ours.transform(NEW)
    np.testing.assert_allclose(ours.inverse_transform(T), theirs.inverse_transform(theirs.transform(NEW)), atol=1e-7)


def test_given_and_sparse_tables():
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 3)
    K_new = np.exp(-((NEW[:, None] - X) ** 2).sum(axis=2) / 3)
    own = KernelPCA(kernel="rbf", n_components=3).fit(X)
    given = KernelPCA(kernel="precomputed", n_components=3).fit(K)
    np.testing.assert_allclose(given.transform(K_new), own.transform(NEW), atol=1e-9)
    assert verify(given, K)
    sparse = KernelPCA(kernel="rbf", n_components=3).fit(sp.csr_array(X))
    np.testing.assert_allclose(sparse.transform(NEW), own.transform(NEW), atol=1e-8)


def test_verify_notices_changes():
    model = KernelPCA(kernel="rbf", n_components=3).fit(X)
    model.eigenvectors_ = model.eigenvectors_ * 1.001
    assert not verify(model, X)
    model = KernelPCA(kernel="rbf", n_components=3).fit(X)
    model.kernel_means_ = model.kernel_means_ + 1e-3
    assert not verify(model, X)
    assert not verify(KernelPCA(kernel="rbf", n_components=3).fit(X), X[::-1] + 1e-3)


def test_refusals_and_hard_cases():
    with pytest.raises(ParameterError, match="needs rows"):
        KernelPCA(kernel="precomputed", fit_inverse_transform=True).fit(X @ X.T)
    with pytest.raises(DataError, match="dense rows"):
        KernelPCA(fit_inverse_transform=True).fit(sp.csr_array(X))
    with pytest.raises(DataError, match="not positive semidefinite"):
        KernelPCA(kernel="precomputed").fit(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 2.0], [0.0, 2.0, 0.0]]))
    constant = KernelPCA(n_components=2).fit(np.ones((5, 2)))
    np.testing.assert_array_equal(constant.eigenvalues_, 0.0)
    assert KernelPCA().fit(np.ones((5, 2))).transform([[1.0, 2.0]]).shape == (1, 0)


def test_round_trip(tmp_path):
    model = KernelPCA(kernel="rbf", n_components=3, fit_inverse_transform=True).fit(X)
    save(model, tmp_path / "m.safetensors")
    loaded = load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.transform(NEW), model.transform(NEW))
    np.testing.assert_array_equal(loaded.inverse_transform(NEW), model.inverse_transform(NEW))


@pytest.mark.parametrize(("settings", "most"), [
    ({}, 49), ({"n_components": 3}, 25), ({"fit_inverse_transform": True}, 75),
    ({"n_components": 3, "fit_inverse_transform": True}, 32),
])  # fmt: skip
def test_memory_is_what_the_docstring_says(settings, most):
    Z = curved(600, 4)[0]
    model = KernelPCA(kernel="rbf", **settings).fit(Z[:50])
    assert peak_bytes(lambda: model.fit(Z)) <= most * 600**2 + 2e6


def test_a_kernel_that_is_constant_to_rounding_has_no_components():
    model = KernelPCA(kernel="rbf").fit(1e-8 * X)
    assert model.certificate_.holds and len(model.eigenvalues_) == 0
    assert not KernelPCA(2, kernel="rbf").fit(1e-8 * X).eigenvalues_.any()
