"""Fits with inducing points: near the exact one, the same from memory, files and Dask; units, noise and limits."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from tests.data.on_disk import streamed

import learnable as ln
from learnable import GaussianProcessRegressor, Ridge
from learnable.core.errors import DataError, ParameterError
from learnable.kernel.gp.sparse import _chosen_points
from learnable.risk.kernels import Gaussian, Linear, White

RNG = np.random.default_rng(0)
N = 120
X = RNG.uniform(-2, 2, (N, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * RNG.normal(size=N)
KERNEL = 1.3 * Gaussian([1.0, 2.0]) + White(0.05) + 0.2 * Linear()


def test_chosen_points_are_rows_and_the_first_are_those_of_fewer():
    few, many = (_chosen_points("GP", m, X, KERNEL) for m in (5, 20))
    np.testing.assert_array_equal(few, many[:5])
    assert {tuple(z) for z in many} <= {tuple(x) for x in X}
    twice = np.vstack([X[:3]] * 10)
    assert len(_chosen_points("GP", 20, twice, Gaussian(1.0))) == 3


def test_a_fit_is_near_the_exact_one():
    kernel = 1.0 * Gaussian([1.0, 1.0]) + White(0.1)
    exact = GaussianProcessRegressor(kernel).fit(X, Y)
    sparse = GaussianProcessRegressor(kernel, inducing=60).fit(X, Y)
    assert sparse.certificate_.kind == "stationarity" and sparse.certificate_.holds
    assert exact.log_marginal_likelihood_value_ - 1.0 < sparse.log_marginal_likelihood_value_
    assert sparse.log_marginal_likelihood_value_ <= exact.log_marginal_likelihood_value_ + 1e-6
    for a, b in zip(exact.predict(X, return_std=True), sparse.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, atol=0.03)
    with pytest.raises(AttributeError, match="exact fit"):
        sparse.leave_one_out()


def test_given_points_units_and_a_mean():
    Z = X[:30]
    fixed = {"kernel": Gaussian([1.0, 1.0]) + White(0.1), "optimizer": None}
    model = GaussianProcessRegressor(inducing=Z, normalize_y=True, mean=Ridge(), **fixed).fit(X, 100.0 + 5.0 * Y)
    assert model.certificate_.kind == "closed-form" and model.certificate_.holds
    np.testing.assert_array_equal(model.inducing_points_, Z)
    assert model.score(X, 100.0 + 5.0 * Y) > 0.9
    again = GaussianProcessRegressor(inducing=Z, normalize_y=True, mean=Ridge(), n_jobs=1, **fixed).fit(
        X, 100.0 + 5.0 * Y
    )
    np.testing.assert_array_equal(model.alpha_, again.alpha_)


@pytest.mark.parametrize("optimizer", [None, "fmin_l_bfgs_b"])
def test_files_and_dask_give_the_fit_in_memory(tmp_path, optimizer):
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=Y)
    path = streamed(frame, tmp_path, 3)
    settings = {
        "kernel": 1.0 * Gaussian([1.0, 1.0]) + White(0.1),
        "inducing": 20,
        "normalize_y": True,
        "optimizer": optimizer,
    }
    memory = GaussianProcessRegressor(**settings).fit(X, Y)
    disk = GaussianProcessRegressor(**settings).fit(path, "y")
    low, high = disk.predict_interval(path)
    cloud = GaussianProcessRegressor(**settings).fit(da.from_array(X, chunks=(50, 2)), da.from_array(Y, chunks=50))
    for other in (disk, cloud):
        np.testing.assert_allclose(other.predict(X), memory.predict(X), atol=1e-4)
        assert other.certificate_.fingerprint == memory.certificate_.fingerprint
        assert other.certificate_.holds
    assert ln.verify(disk, path, "y")
    np.testing.assert_array_less(low, high)


def test_errors_teach(tmp_path):
    with pytest.raises(ParameterError, match="mean='linear' has coefficients"):
        GaussianProcessRegressor(inducing=5, mean="linear").fit(X, Y)
    with pytest.raises(ParameterError, match="with 2 columns"):
        GaussianProcessRegressor(inducing=np.zeros((3, 1))).fit(X, Y)
    with pytest.raises(DataError, match="no variance without its noise"):
        GaussianProcessRegressor(White(1.0), inducing=5, optimizer=None).fit(X, Y)
    path = streamed(pd.DataFrame(X, columns=["a", "b"]).assign(y=Y), tmp_path)
    with pytest.raises(DataError, match="pass inducing="):
        GaussianProcessRegressor().fit(path, "y")


def test_a_bound_whose_terms_cancel_is_still_climbed_to_its_top():
    rng = np.random.default_rng(2)
    many = rng.normal(size=(4000, 3))
    y = np.sin(many[:, 0]) + 0.2 * rng.normal(size=4000)
    model = GaussianProcessRegressor(1e4 * Gaussian(np.full(3, 5.0)) + White(0.05), inducing=25).fit(many, y)
    assert model.certificate_.holds and model.certificate_.tolerance == 1e-6


@pytest.mark.parametrize("scale", [1e299, 1e-300])
@pytest.mark.parametrize("inducing", [None, 10])
def test_units_of_any_size(inducing, scale):
    fixed = {"kernel": Gaussian([1.0, 1.0]) + White(0.1), "optimizer": None, "normalize_y": True}
    plain, other = (GaussianProcessRegressor(inducing=inducing, **fixed).fit(X, Y * s) for s in (1.0, scale))
    np.testing.assert_allclose(other.predict(X) / scale, plain.predict(X), rtol=1e-9)
    np.testing.assert_allclose(other.predict_dist(X).std / scale, plain.predict_dist(X).std, rtol=1e-9)
    assert ln.verify(other, X, Y * scale)


def test_inducing_points_need_noise():
    with pytest.raises(ParameterError, match="need noise"):
        GaussianProcessRegressor(Gaussian(1.0), alpha=0.0, inducing=5).fit(X, Y)
