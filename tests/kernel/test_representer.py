"""Which kernel a model's parameters name, which tables it takes, and what a file may hold."""

import numpy as np
import pytest
import sklearn.gaussian_process.kernels as sk
from sklearn.metrics.pairwise import pairwise_kernels
from tests.kernel.kernel_tables import curved

from learnable import KernelLogisticRegression, KernelPCA, KernelRidge, KernelRidgeClassifier, KernelRidgeCV, save
from learnable.core.errors import DataError, ModelFileError, ParameterError
from learnable.kernel.representer import kernel_of
from learnable.risk.kernels import Gaussian, Precomputed

X, y, _ = curved(30)


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
@pytest.mark.parametrize("settings", [{}, {"class_weight": "balanced"}])
def test_rows_must_be_in_memory(cls, settings):
    da = pytest.importorskip("dask.array")
    if settings and not hasattr(cls(), "class_weight"):
        return
    target = (y > 0).astype(int) if "class_weight" in cls().get_params() else y
    with pytest.raises(DataError, match=f"{cls.__name__}: .*all rows in memory"):
        cls(kernel="rbf", **settings).fit(da.from_array(X, chunks=(10, 3)), da.from_array(target, chunks=10))


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
