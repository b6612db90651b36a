"""Which kernel a model's parameters name, which tables it takes, and what a file may hold."""

import numpy as np
import pytest
import sklearn.decomposition
import sklearn.gaussian_process.kernels as sk
import sklearn.kernel_approximation
import sklearn.kernel_ridge
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import pairwise_kernels
from tests.kernel.kernel_tables import curved

from learnable import (
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    Nystroem,
    save,
    verify,
)
from learnable.core.errors import DataError, ModelFileError, ParameterError
from learnable.kernel.representer import kernel_of
from learnable.risk.kernels import Gaussian, Precomputed

X, y, _ = curved(30)
POSITIVE = np.random.default_rng(0).uniform(0.1, 1.0, size=(25, 3))
WAVE = np.sin(3 * POSITIVE[:, 0])


@pytest.mark.parametrize("name", ["linear", "poly", "polynomial", "rbf", "sigmoid", "laplacian", "cosine"])
def test_names_are_scikit_learns(name):
    theirs = pairwise_kernels(X, metric=name, filter_params=True, gamma=None, degree=3, coef0=1)
    np.testing.assert_allclose(kernel_of(KernelRidge(kernel=name), 3)(X), theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["chi2", "additive_chi2"])
def test_kernels_of_histograms(name):
    theirs = pairwise_kernels(np.abs(X), metric=name, filter_params=True, gamma=0.5)
    np.testing.assert_allclose(kernel_of(KernelRidge(kernel=name, gamma=0.5), 3)(np.abs(X)), theirs, rtol=1e-10)


def test_objects_are_taken_as_they_are():
    assert kernel_of(KernelRidge(kernel=Gaussian(2.0), gamma=7.0), 3) == Gaussian(2.0)
    foreign = KernelRidge(kernel=sk.RBF(2.0)).fit(X, y)
    np.testing.assert_allclose(foreign.predict(X), KernelRidge(kernel=Gaussian(2.0)).fit(X, y).predict(X), rtol=1e-12)
    assert isinstance(kernel_of(KernelRidge(kernel="precomputed"), 3), Precomputed)
    with pytest.raises(ParameterError, match="kernel must be"):
        KernelRidge(kernel="nonsense").fit(X, y)


def test_the_model_keeps_its_rows():
    table = X.copy()
    model = KernelRidge(kernel="rbf").fit(table, y)
    before = model.predict(X)
    table[:] = 0.0
    np.testing.assert_array_equal(model.predict(X), before)


MODELS = [KernelRidge, KernelRidgeCV, KernelRidgeClassifier, KernelLogisticRegression, KernelPCA]


@pytest.mark.parametrize("cls", MODELS)
@pytest.mark.parametrize("more", [{}, {"class_weight": "balanced"}])
def test_rows_must_be_in_memory(cls, more):
    da = pytest.importorskip("dask.array")
    if more and not hasattr(cls(), "class_weight"):
        return
    target = (y > 0).astype(int) if "class_weight" in cls().get_params() else y
    with pytest.raises(DataError, match=f"{cls.__name__}: .*all rows in memory"):
        cls(kernel="rbf", **more).fit(da.from_array(X, chunks=(10, 3)), da.from_array(target, chunks=10))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dual_coef_", np.zeros(5)),
        ("dual_coef_", np.full(30, np.nan)),
        ("dual_coef_", np.zeros(30, dtype=np.float32)),
        ("X_fit_", X[:, :2]),
        ("X_fit_", np.full_like(X, np.inf)),
    ],
)
def test_unsound_members_are_refused(tmp_path, name, value):
    model = KernelRidge(kernel="rbf").fit(X, y)
    setattr(model, name, value)
    with pytest.raises(ModelFileError):
        save(model, tmp_path / "m.safetensors")


KERNELS = ["linear", "poly", "polynomial", "rbf", "sigmoid", "laplacian", "cosine", "chi2"]


@given(st.floats(0.0, 5.0), st.floats(0.0, 2.0), st.floats(0.0, 2.0))
@settings(deadline=None, max_examples=25)
def test_any_degree_is_that_of_scikit_learn(degree, gamma, coef0):
    named = {"kernel": "poly", "degree": degree, "gamma": gamma, "coef0": coef0}
    ours = KernelRidge(**named).fit(POSITIVE, WAVE)
    theirs = sklearn.kernel_ridge.KernelRidge(**named).fit(POSITIVE, WAVE)
    np.testing.assert_allclose(ours.predict(POSITIVE), theirs.predict(POSITIVE), atol=1e-7)
    assert verify(ours, POSITIVE, WAVE)


@pytest.mark.parametrize("degree", [0, 0.5, 1, 1.0, 2.5, np.float32(2.5), np.int64(3), 3.0])
def test_components_and_features_of_any_degree(degree):
    whole = {"kernel": "poly", "degree": degree, "gamma": 1.0, "coef0": 1.0}
    ours = KernelPCA(3, **whole).fit(POSITIVE)
    theirs = sklearn.decomposition.KernelPCA(3, **whole).fit(POSITIVE)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, atol=1e-9)
    assert verify(ours, POSITIVE)
    features = Nystroem(n_components=25, **whole).fit_transform(POSITIVE)
    K = pairwise_kernels(POSITIVE, metric="poly", degree=float(degree), gamma=1.0, coef0=1.0)
    values, vectors = np.linalg.eigh(K)  # a power that is not whole is no Mercer kernel: what is positive is kept
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    np.testing.assert_allclose(features @ features.T, positive, atol=1e-6)


def test_a_power_of_a_negative_number_is_refused():
    with pytest.raises(DataError, match="finite numbers"):
        KernelRidge(kernel="poly", degree=2.5, coef0=0.0).fit(POSITIVE - 0.5, WAVE)
    with pytest.raises(ParameterError, match="degree"):
        KernelRidge(kernel="poly", degree=-1).fit(POSITIVE, WAVE)


@pytest.mark.parametrize("kernel", KERNELS)
def test_defaults_of_landmarks_are_those_of_scikit_learn(kernel):
    ours = Nystroem(kernel, n_components=8, random_state=0).fit(POSITIVE)
    theirs = sklearn.kernel_approximation.Nystroem(kernel=kernel, n_components=8, random_state=0).fit(POSITIVE)
    own, other = ours.transform(POSITIVE), theirs.transform(POSITIVE)
    if kernel == "sigmoid":  # which is not positive semidefinite: only its own matrix is compared
        np.testing.assert_array_equal(ours.component_indices_, theirs.component_indices_)
        return
    np.testing.assert_allclose(own @ own.T, other @ other.T, atol=1e-6)


@pytest.mark.parametrize("name", ["gamma", "coef0", "degree"])
def test_parameters_that_nobody_reads_are_refused(name):
    for kernel in ("precomputed", lambda x, z: float(x @ z)):
        with pytest.raises(ParameterError, match="Don't pass gamma, coef0 or degree to Nystroem"):
            Nystroem(kernel, n_components=4, **{name: 1.0}).fit(POSITIVE @ POSITIVE.T)


def test_a_function_of_two_points_is_called_once_a_pair():
    calls = []

    def kernel(x, z):
        calls.append(1)
        return float(np.minimum(x, z).sum())

    Nystroem(kernel, n_components=9).fit(POSITIVE)
    assert len(calls) == 9 * 10 // 2


def test_a_matrix_that_centring_makes_symmetric():
    skew = POSITIVE @ POSITIVE.T + np.arange(25)[:, None]  # rows of different heights, which centring takes away
    ours = KernelPCA(2, kernel="precomputed").fit(skew)
    theirs = sklearn.decomposition.KernelPCA(2, kernel="precomputed").fit(skew)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_)
    np.testing.assert_allclose(np.abs(ours.transform(skew)), np.abs(theirs.transform(skew)), atol=1e-9)
    assert verify(ours, skew)
    with pytest.raises(DataError, match="symmetric"):
        KernelPCA(2, kernel="precomputed").fit(np.random.default_rng(0).normal(size=(6, 6)))
