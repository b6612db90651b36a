"""Degrees that are not whole, γ = 0 and defaults of named kernels, as scikit-learn has them."""

import numpy as np
import pytest
import sklearn.decomposition
import sklearn.kernel_approximation
import sklearn.kernel_ridge
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import pairwise_kernels

import learnable as ln
from learnable.core.errors import DataError, ParameterError

X = np.random.default_rng(0).uniform(0.1, 1.0, size=(25, 3))
Y = np.sin(3 * X[:, 0])
KERNELS = ["linear", "poly", "polynomial", "rbf", "sigmoid", "laplacian", "cosine", "chi2"]


@given(st.floats(0.0, 5.0), st.floats(0.0, 2.0), st.floats(0.0, 2.0))
@settings(deadline=None, max_examples=25)
def test_any_degree_is_that_of_scikit_learn(degree, gamma, coef0):
    named = {"kernel": "poly", "degree": degree, "gamma": gamma, "coef0": coef0}
    ours = ln.KernelRidge(**named).fit(X, Y)
    theirs = sklearn.kernel_ridge.KernelRidge(**named).fit(X, Y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-7)
    assert ln.verify(ours, X, Y)


@pytest.mark.parametrize("degree", [0, 0.5, 1, 1.0, 2.5, np.float32(2.5), np.int64(3), 3.0])
def test_components_and_features_of_any_degree(degree):
    whole = {"kernel": "poly", "degree": degree, "gamma": 1.0, "coef0": 1.0}
    ours = ln.KernelPCA(3, **whole).fit(X)
    theirs = sklearn.decomposition.KernelPCA(3, **whole).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, atol=1e-9)
    assert ln.verify(ours, X)
    features = ln.Nystroem(n_components=25, **whole).fit_transform(X)
    K = pairwise_kernels(X, metric="poly", degree=float(degree), gamma=1.0, coef0=1.0)
    values, vectors = np.linalg.eigh(K)  # a power that is not whole is no Mercer kernel: what is positive is kept
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    np.testing.assert_allclose(features @ features.T, positive, atol=1e-6)


def test_a_power_of_a_negative_number_is_refused():
    with pytest.raises(DataError, match="finite numbers"):
        ln.KernelRidge(kernel="poly", degree=2.5, coef0=0.0).fit(X - 0.5, Y)
    with pytest.raises(ParameterError, match="degree"):
        ln.KernelRidge(kernel="poly", degree=-1).fit(X, Y)


@pytest.mark.parametrize("kernel", KERNELS)
def test_defaults_of_landmarks_are_those_of_scikit_learn(kernel):
    ours = ln.Nystroem(kernel, n_components=8, random_state=0).fit(X)
    theirs = sklearn.kernel_approximation.Nystroem(kernel=kernel, n_components=8, random_state=0).fit(X)
    own, other = ours.transform(X), theirs.transform(X)
    if kernel == "sigmoid":  # which is not positive semidefinite: only its own matrix is compared
        np.testing.assert_array_equal(ours.component_indices_, theirs.component_indices_)
        return
    np.testing.assert_allclose(own @ own.T, other @ other.T, atol=1e-6)


@pytest.mark.parametrize("name", ["gamma", "coef0", "degree"])
def test_parameters_that_nobody_reads_are_refused(name):
    for kernel in ("precomputed", lambda x, z: float(x @ z)):
        with pytest.raises(ParameterError, match="Don't pass gamma, coef0 or degree to Nystroem"):
            ln.Nystroem(kernel, n_components=4, **{name: 1.0}).fit(X @ X.T)


def test_a_function_of_two_points_is_called_once_a_pair():
    calls = []

    def kernel(x, z):
        calls.append(1)
        return float(np.minimum(x, z).sum())

    ln.Nystroem(kernel, n_components=9).fit(X)
    assert len(calls) == 9 * 10 // 2


def test_a_matrix_that_centring_makes_symmetric():
    skew = X @ X.T + np.arange(25)[:, None]  # rows of different heights, which centring takes away
    ours = ln.KernelPCA(2, kernel="precomputed").fit(skew)
    theirs = sklearn.decomposition.KernelPCA(2, kernel="precomputed").fit(skew)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_)
    np.testing.assert_allclose(np.abs(ours.transform(skew)), np.abs(theirs.transform(skew)), atol=1e-9)
    assert ln.verify(ours, skew)
    with pytest.raises(DataError, match="symmetric"):
        ln.KernelPCA(2, kernel="precomputed").fit(np.random.default_rng(0).normal(size=(6, 6)))
