"""Gaussian process regression: laws, published numbers, the limits of data and parameters."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, RationalQuadratic, WhiteKernel
from tests.kernel.traced import matrices, once

import learnable as ln
from learnable import GaussianProcessRegressor, KernelRidge
from learnable.core.errors import DataError, ModelFileError, ParameterError
from learnable.risk.kernels import Constant, Gaussian, Linear, Matern, White

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (40, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=40)
KERNEL = 1.0 * Gaussian([1.0, 1.0]) + White(0.1)


@pytest.fixture(scope="module")
def co2(reference_data):
    """The monthly series of Mauna Loa: years and deviations from the mean."""
    table = pd.read_csv(reference_data / "series" / "mauna_loa_co2_monthly.csv")
    date = pd.to_datetime(table.iloc[:, 0])
    kept = table["co2"].notna().to_numpy()
    x = (date.dt.year + (date.dt.month - 1) / 12).to_numpy()[kept, None]
    y = table["co2"].to_numpy()[kept]
    return x, y - y.mean()


def test_co2_reference_likelihood(co2):
    # reference_results.csv of the shared data: the kernel is not optimised; n = 521.
    kernel = (
        50**2 * RBF(50.0)
        + 2**2 * RBF(100.0) * ExpSineSquared(1.0, 1.0)
        + 0.5**2 * RationalQuadratic(1.0, 1.0)
        + 0.1**2 * RBF(0.1)
        + WhiteKernel(0.01)
    )
    model = GaussianProcessRegressor(kernel, alpha=1e-10, optimizer=None).fit(*co2)
    assert model.log_marginal_likelihood_value_ == pytest.approx(-380.2764, abs=5e-4)
    assert model.certificate_.kind == "closed-form" and model.certificate_.holds


def test_co2_learned_and_extrapolated(co2):
    x, y = co2
    kernel = (
        50**2 * RBF(50.0)
        + 2**2 * RBF(100.0) * ExpSineSquared(1.0, 1.0, periodicity_bounds="fixed")
        + 0.5**2 * RationalQuadratic(1.0, 1.0)
        + 0.1**2 * RBF(0.1)
        + WhiteKernel(0.01)
    )
    model = GaussianProcessRegressor(kernel, tol=1e-4).fit(x, y)
    assert model.log_marginal_likelihood_value_ == pytest.approx(-115.05, abs=0.01)  # reference_results.csv: ML-II
    shares = []
    for origin in range(1970, 1999, 3):  # three years ahead of each
        known, ahead = x[:, 0] < origin, (x[:, 0] >= origin) & (x[:, 0] < origin + 3)
        low, high = (
            GaussianProcessRegressor(model.kernel_, optimizer=None).fit(x[known], y[known]).predict_interval(x[ahead])
        )
        shares.append(np.mean((low <= y[ahead]) & (y[ahead] <= high)))
    assert abs(np.mean(shares) - 0.95) < 2 * np.std(shares) / np.sqrt(len(shares))


def test_learned_hyperparameters_are_certified():
    model = GaussianProcessRegressor(KERNEL).fit(X, Y)
    assert model.certificate_.kind == "stationarity" and model.certificate_.holds
    value, gradient = model.log_marginal_likelihood(model.kernel_.theta, eval_gradient=True)
    assert value == pytest.approx(model.log_marginal_likelihood_value_)
    assert np.abs(gradient).max() < 1e-3
    assert model.log_marginal_likelihood() == model.log_marginal_likelihood_value_


def test_the_mean_is_kernel_ridge_with_the_noise_as_penalty():
    kernel = Gaussian(1.0)
    process = GaussianProcessRegressor(kernel, alpha=0.3, optimizer=None).fit(X, Y)
    ridge = KernelRidge(alpha=0.3, kernel=kernel).fit(X, Y)
    np.testing.assert_allclose(process.predict(X), ridge.predict(X), atol=1e-10)


@given(st.integers(0, 1000))
def test_interpolation_without_noise(seed):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 10, 8))[:, None] + np.arange(8)[:, None]
    y = rng.normal(size=8)
    model = GaussianProcessRegressor(Matern(1.0, 1.5), alpha=0.0, optimizer=None).fit(x, y)
    mean, std = model.predict(x, return_std=True)
    np.testing.assert_allclose(mean, y, atol=1e-9)
    assert std.max() < 1e-6


@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
def test_leave_one_out_is_n_refits(mean):
    model = GaussianProcessRegressor(KERNEL, alpha=0.02, mean=mean, optimizer=None).fit(X, Y)
    found = model.leave_one_out()
    for i in range(0, 40, 7):
        rest = np.arange(40) != i
        refit = GaussianProcessRegressor(KERNEL, alpha=0.02, mean=mean, optimizer=None).fit(X[rest], Y[rest])
        there = refit.predict_dist(X[[i]])
        assert found.mean[i] == pytest.approx(there.mean[0], abs=1e-9)
        assert found.std[i] == pytest.approx(there.std[0], rel=1e-9)
    assert model.loo_log_density() == pytest.approx(float(found.logpdf(Y).sum()))


def test_noise_of_each_row():
    noise = np.where(np.arange(40) < 20, 1e-6, 100.0)
    model = GaussianProcessRegressor(Gaussian(1.0), alpha=noise, optimizer=None).fit(X, Y)
    error = np.abs(model.predict(X) - Y)
    assert error[:20].max() < 0.01 < error[20:].max()


def test_several_targets_add_their_likelihoods():
    both = np.column_stack([Y, Y**2])
    parts = [GaussianProcessRegressor(KERNEL, optimizer=None).fit(X, y).log_marginal_likelihood_value_ for y in both.T]
    model = GaussianProcessRegressor(KERNEL, optimizer=None, n_targets=2).fit(X, both)
    assert model.log_marginal_likelihood_value_ == pytest.approx(sum(parts))
    with pytest.raises(DataError, match="2 targets, but n_targets=3"):
        GaussianProcessRegressor(n_targets=3).fit(X, both)


def test_scikit_learns_optimizer_functions_work():
    from scipy.optimize import minimize

    def optimizer(function, start, bounds):
        found = minimize(
            function, start, jac=True, bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-7}
        )
        return found.x, found.fun

    mine, theirs = (
        GaussianProcessRegressor(KERNEL).fit(X, Y),
        GaussianProcessRegressor(KERNEL, optimizer=optimizer).fit(X, Y),
    )
    assert mine.log_marginal_likelihood_value_ == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-5)


@pytest.mark.threaded
def test_bands_of_the_true_process_have_their_coverage():
    inside = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        x = rng.uniform(0, 5, (40, 1))
        truth = GaussianProcessRegressor(1.0 * Gaussian(1.0) + White(0.04), optimizer=None)
        y = truth.sample_y(x, random_state=seed)[:, 0]
        low, high = truth.fit(x[:20], y[:20]).predict_interval(x[20:], 0.8)
        inside.append(np.mean((low <= y[20:]) & (y[20:] <= high)))
    # Points of one draw are dependent: the draws are what is counted.
    assert abs(np.mean(inside) - 0.8) < 4 * np.std(inside) / np.sqrt(30)


def test_ranks_of_the_truth_among_draws_are_uniform():
    ranks = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        x = rng.uniform(0, 3, (9, 1))
        process = GaussianProcessRegressor(1.0 * Gaussian(1.0) + White(0.1), optimizer=None)
        y = process.sample_y(x, random_state=seed)[:, 0]
        draws = process.fit(x[:8], y[:8]).sample_y(x[8:], 19, random_state=seed + 1000)[0]
        ranks.append(int((draws < y[8]).sum()))
    counts = np.bincount(ranks, minlength=20).reshape(5, 4).sum(axis=1)
    assert ((counts - 40) ** 2 / 40).sum() < 18.47  # χ²₄ at 0.1 %


@pytest.mark.parametrize("rows", [1, 2])
def test_very_few_rows(rows):
    model = GaussianProcessRegressor(Gaussian(1.0), alpha=1e-10, optimizer=None).fit(X[:rows], Y[:rows])
    np.testing.assert_allclose(model.predict(X[:rows]), Y[:rows], atol=1e-7)


def test_duplicates_and_constant_columns():
    twice, target = np.vstack([X, X]), np.r_[Y, Y + 0.1]
    flat = np.column_stack([twice, np.full(80, 7.0)])
    model = GaussianProcessRegressor(Gaussian(1.0), alpha=0.0, optimizer=None).fit(flat, target)
    assert 0.0 < model.jitter_ <= 1e-8
    assert np.isfinite(model.predict(flat)).all()
    model = GaussianProcessRegressor(KERNEL).fit(twice, target)
    np.testing.assert_allclose(model.predict(twice)[:40], model.predict(twice)[40:], atol=1e-8)
    assert model.jitter_ == 0.0 and model.certificate_.holds


def test_huge_and_tiny_numbers():
    with pytest.raises(DataError, match="squares overflow"):
        GaussianProcessRegressor().fit(X * 1e200, Y)
    with pytest.raises(DataError, match="squares overflow"):
        GaussianProcessRegressor().fit(X, Y * 1e200)
    model = GaussianProcessRegressor(Constant(1.0) * Gaussian(1.0), alpha=0.1, normalize_y=True, optimizer=None)
    np.testing.assert_allclose(model.fit(X, Y * 1e-200).predict(X) * 1e200, model.fit(X, Y).predict(X), rtol=1e-9)


def test_errors_teach():
    with pytest.raises(ParameterError, match="kernel must be a kernel"):
        GaussianProcessRegressor(kernel=3).fit(X, Y)
    with pytest.raises(ParameterError, match="alpha must be"):
        GaussianProcessRegressor(alpha=-1.0).fit(X, Y)
    with pytest.raises(ParameterError, match="mean must be"):
        GaussianProcessRegressor(mean="quadratic").fit(X, Y)
    with pytest.raises(DataError, match="not positive definite"):
        GaussianProcessRegressor(lambda A, B: -np.abs(A @ B.T), optimizer=None).fit(X, Y)
    with pytest.raises(ValueError, match="theta"):
        GaussianProcessRegressor(KERNEL, optimizer=None).fit(X, Y).log_marginal_likelihood(eval_gradient=True)


def test_out_of_time_the_best_so_far_is_returned():
    with pytest.warns(ConvergenceWarning, match="stationarity"):
        model = GaussianProcessRegressor(1.0 * Gaussian([9.0, 9.0]) + White(5.0), max_seconds=1e-6).fit(X, Y)
    assert not model.certificate_.holds and np.isfinite(model.predict(X)).all()


def test_a_file_keeps_everything(tmp_path):
    model = GaussianProcessRegressor(KERNEL + Linear(), mean="linear").fit(X, np.column_stack([Y, Y]))
    ln.save(model, tmp_path / "gp.safetensors")
    again = ln.load(tmp_path / "gp.safetensors")
    for a, b in zip(model.predict(X, return_std=True), again.predict(X, return_std=True), strict=True):
        np.testing.assert_array_equal(a, b)
    assert again.kernel_ == model.kernel_
    model.L_ = model.L_[:, :5]
    with pytest.raises(ModelFileError, match="L_"):
        ln.save(model, tmp_path / "bad.safetensors")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kernel", "stated"),
    [
        (1.0 * Gaussian(np.ones(3)) + White(0.1), 5),
        (1.0 * Matern(np.ones(3), 2.5) + White(0.1), 10),
        (1.0 * Matern(np.ones(3), 2.5) + White(0.1) + 1.0 * Matern(1.0), 15),
    ],
    ids=["Gaussian", "Matern", "sum"],
)
def test_memory_is_what_the_docstring_states(kernel, stated):
    many = RNG.normal(size=(660, 3))
    used = matrices(GaussianProcessRegressor(kernel, optimizer=once), many, np.sin(many[:, 0]))
    assert 0.4 * stated < used <= stated


@pytest.mark.threaded
def test_a_model_of_a_table_by_columns_loads_with_the_same_bits(tmp_path):
    X = np.asfortranarray(np.random.default_rng(0).standard_normal((50, 4)))
    model = GaussianProcessRegressor(mean="linear", alpha=0.1).fit(X, X[:, 0] - X[:, 1] ** 2)
    ln.save(model, tmp_path / "gp.safetensors")
    loaded = ln.load(tmp_path / "gp.safetensors")
    for a, b in zip(model.predict(X, return_std=True), loaded.predict(X, return_std=True), strict=True):
        np.testing.assert_array_equal(a, b)
