"""Inducing points: the variational bound and its gradient; the same fit from memory, files and Dask."""

import itertools
from dataclasses import replace

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from tests.data.on_disk import streamed
from tests.oracles.gaussian_process import titsias

import learnable as ln
from learnable import GaussianProcessRegressor, Ridge
from learnable.core.errors import DataError, ParameterError
from learnable.data.blocks import Blocks, Part
from learnable.kernel.gp_likelihood import Observations, evidence
from learnable.kernel.gp_sparse import Bound, Rows, SparseData, _chosen_points, solve
from learnable.risk.kernels import Gaussian, Linear, Matern, White

RNG = np.random.default_rng(0)
N = 120
X = RNG.uniform(-2, 2, (N, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * RNG.normal(size=N)
KERNEL = 1.3 * Gaussian([1.0, 2.0]) + White(0.05) + 0.2 * Linear()
WIDE = np.full((5, 2), [-9.0, 9.0])


def data_of(Z, y=Y, alpha=0.01, jitter=1e-10):
    columns = y.reshape(N, -1)
    t = columns.shape[1]
    sample = Observations(X, columns, np.broadcast_to(np.asarray(alpha), (N,)), np.zeros((N, 0)))
    rows = Rows(np.atleast_1d(np.asarray(alpha, dtype=float)), np.zeros(t), np.ones(t))
    return SparseData(Blocks([Part(X, y)]), rows, Z, jitter, sample)


@pytest.mark.parametrize("alpha", [0.01, np.linspace(0.01, 0.3, N)], ids=["one noise", "noise of each row"])
def test_the_bound_is_that_of_titsias(alpha):
    Z = X[:15]
    found = solve(*data_of(Z, alpha=alpha, jitter=1e-8).sums(KERNEL)).value
    free = 1.3 * Gaussian([1.0, 2.0]) + 0.2 * Linear()
    noise = np.broadcast_to(0.05 + np.asarray(alpha), (N,))
    jitter = 1e-8 * free.diagonal(Z).mean()
    expected = titsias(free(Z) + jitter * np.eye(15), free(X, Z), free.diagonal(X), noise, Y)
    assert found == pytest.approx(expected, rel=1e-7)


def test_it_is_a_lower_bound_that_all_rows_reach():
    exact = evidence(KERNEL, Observations(X, Y[:, None], np.full(N, 0.01), np.zeros((N, 0))), gradient=False).value
    bounds = [solve(*data_of(X[:m]).sums(KERNEL)).value for m in (2, 5, 15, 40, N)]
    assert all(a <= b + 1e-6 for a, b in itertools.pairwise(bounds))  # more points never hurt
    assert bounds[-1] == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize(
    "kernel", [KERNEL, Matern([1.0, 1.5], 2.5) + White(0.1) * (0.5 * Linear().hold() + White(1.0))]
)
def test_gradient(kernel, targets):
    y = Y if targets == 1 else np.column_stack([Y, Y**2])
    p = len(kernel.theta)
    bound, h = Bound(kernel, data_of(X[:12], y, alpha=0.1, jitter=1e-6), WIDE[:1].repeat(p, axis=0)), 1e-4
    found = bound.evaluate(kernel.theta)
    for j, e in enumerate(np.eye(p)):
        slope = (bound.value(kernel.theta + h * e) - bound.value(kernel.theta - h * e)) / (2 * h)
        assert found.gradient[j] == pytest.approx(slope, rel=1e-5, abs=1e-4)


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


def test_some_rows_are_the_same_rows_with_their_noise():
    data = data_of(X[:5], alpha=np.linspace(0.1, 1.0, N))
    some = data.some(np.array([3, 7, 50]))
    assert len(some.y) == 3
    np.testing.assert_allclose(some.rows.alpha, np.linspace(0.1, 1.0, N)[[3, 7, 50]])
    assert replace(some, jitter=1.0).jitter == 1.0
