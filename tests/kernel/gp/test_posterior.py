"""Predictions of a Gaussian process: conditional normal distributions, draws, intervals, functions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor as Peer
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from tests.oracles.gaussian_process import condition

from learnable import GaussianProcessRegressor
from learnable.core.errors import DataError
from learnable.kernel.gp.posterior import cross_values, lower_times, noise_free
from learnable.risk.kernels import Constant, Gaussian, Linear, White

RNG = np.random.default_rng(0)
X, Q = RNG.normal(size=(40, 2)), RNG.normal(size=(7, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=40)
KERNEL = 1.5 * Gaussian([1.0, 2.0]) + White(0.05)


def fixed(**parameters):
    return GaussianProcessRegressor(KERNEL, optimizer=None, **parameters)


def test_mean_and_covariance_are_conditional():
    model = fixed(alpha=0.01).fit(X, Y)
    K = KERNEL(X) + 0.01 * np.eye(40)
    mean, cov = condition(K, KERNEL(X, Q), KERNEL(Q), Y)
    found = model.predict(Q, return_cov=True)
    np.testing.assert_allclose(found[0], mean, atol=1e-12)
    np.testing.assert_allclose(found[1], cov, atol=1e-12)
    std = np.sqrt(np.diag(cov))
    np.testing.assert_allclose(model.predict(Q, return_std=True)[1], std, rtol=1e-10)
    np.testing.assert_allclose(model.predict_dist(Q).std, np.sqrt(std**2 + 0.01), rtol=1e-10)
    np.testing.assert_allclose(model.predict_function(Q).std, np.sqrt(std**2 - 0.05), rtol=1e-9)
    low, high = model.predict_interval(Q, 0.9)
    np.testing.assert_allclose(0.5 * (low + high), mean, atol=1e-12)
    with pytest.raises(RuntimeError, match="At most one"):
        model.predict(Q, return_std=True, return_cov=True)


@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("targets", [1, 2])
def test_the_same_as_scikit_learn(normalize_y, targets):
    y = Y if targets == 1 else np.column_stack([Y, 5.0 + Y**2])
    given = ConstantKernel(1.5) * RBF([1.0, 2.0]) + WhiteKernel(0.05)
    mine = GaussianProcessRegressor(given, optimizer=None, normalize_y=normalize_y).fit(X, y)
    theirs = Peer(given, optimizer=None, normalize_y=normalize_y).fit(X, y)
    for options in ({"return_std": True}, {"return_cov": True}):
        for a, b in zip(mine.predict(Q, **options), theirs.predict(Q, **options), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)
    assert mine.sample_y(Q, 3).shape == theirs.sample_y(Q, 3).shape


@pytest.mark.parametrize("n_targets", [None, 2])
def test_before_the_fit_there_is_the_prior(n_targets):
    mine, theirs = GaussianProcessRegressor(n_targets=n_targets), Peer(n_targets=n_targets)
    for options in ({}, {"return_std": True}, {"return_cov": True}):
        a, b = mine.predict(Q, **options), theirs.predict(Q, **options)
        for u, v in zip(np.atleast_1d(a) if not options else a, np.atleast_1d(b) if not options else b, strict=True):
            np.testing.assert_allclose(u, v, atol=1e-12)


@pytest.mark.threaded
def test_draws_have_the_moments_of_the_process():
    model = fixed().fit(X, Y)
    draws = model.sample_y(Q, 20_000, random_state=1)
    mean, cov = model.predict(Q, return_cov=True)
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=5 * np.sqrt(cov.max() / 20_000))
    np.testing.assert_allclose(np.cov(draws), cov, atol=0.02)
    smooth = model.sample_y(Q, 20_000, random_state=1, latent=True)
    np.testing.assert_allclose(np.var(smooth, axis=1), np.square(model.predict_function(Q).std), rtol=0.1)
    prior = model.sample_prior(Q, 20_000, random_state=2)
    np.testing.assert_allclose(np.cov(prior), 1.5 * Gaussian([1.0, 2.0])(Q), atol=0.1)
    np.testing.assert_array_equal(draws, model.sample_y(Q, 20_000, random_state=1))


@pytest.mark.threaded
def test_a_block_at_a_time_and_any_number_of_threads_give_the_same_bits():
    many = np.random.default_rng(3).normal(size=(5000, 2))
    found = [fixed(n_jobs=jobs).fit(X, Y).predict(many, return_std=True) for jobs in (1, 2)]
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_mean_is_a_function_of_the_kernels_space():
    model = fixed().fit(X, Y)
    f = model.function_
    np.testing.assert_allclose(f(Q), model.predict(Q), atol=1e-12)
    assert f.norm() == pytest.approx(float(np.sqrt(model.alpha_ @ f.kernel(X) @ model.alpha_)))
    with pytest.raises(DataError, match="noise alone"):
        _ = GaussianProcessRegressor(White(1.0), optimizer=None).fit(X, Y).function_


@given(st.integers(0, 1000))
def test_variance_is_never_negative_and_never_above_the_priors(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(12, 1))
    model = GaussianProcessRegressor(Gaussian(rng.uniform(0.3, 3.0)), alpha=1e-10, optimizer=None).fit(
        A, rng.normal(size=12)
    )
    std = model.predict(np.vstack([A, rng.normal(size=(10, 1))]), return_std=True)[1]
    assert (std >= 0.0).all() and (std <= 1.0 + 1e-12).all()


def test_noise_can_be_taken_out_of_any_composition():
    kernel = 2.0 * (Gaussian(1.0) + White(1.0)) * Constant(3.0) + White(0.5) + Linear().on(0) * White(2.0)
    free = noise_free(kernel)
    np.testing.assert_allclose(free(X), kernel(X, X.copy()), atol=1e-12)
    assert noise_free(White(1.0) * Gaussian(1.0)) is None


@pytest.mark.parametrize("m", [1, 255, 600])
def test_products_with_a_triangle(m):
    rng = np.random.default_rng(m)
    A, K = np.tril(rng.normal(size=(m, m))), rng.normal(size=(5, m))
    np.testing.assert_allclose(lower_times(A, K), K @ A.T, atol=1e-10)


@pytest.mark.parametrize("kernel", [Gaussian([0.5, 2.0]), 3.0 * Gaussian(1.5), 2.0 * Linear(), None])
def test_values_of_many_rows_are_those_of_the_kernel(kernel):
    rows, own = RNG.normal(size=(30, 2)) * 3.0 + 100.0, RNG.normal(size=(50, 2)) + 100.0
    expected = np.zeros((30, 50)) if kernel is None else kernel(rows, own)
    for many in (1, 2**20):
        np.testing.assert_allclose(cross_values(kernel, own, many)(rows), expected, rtol=1e-12, atol=1e-280)


def draw_world(rng, kernel, level, n):
    """Return rows, the function there, and observations; the last six rows are new."""
    x = rng.uniform(0.0, 5.0, (n + 6, 1))
    f = level + 2.0 * x[:, 0] * level + np.linalg.cholesky(kernel(x) + 1e-9 * np.eye(n + 6)) @ rng.normal(size=n + 6)
    return x, f, f + 0.3 * rng.normal(size=n + 6)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("mean", "inducing"), [("zero", None), ("linear", None), ("zero", "all rows")], ids=["zero", "line", "inducing"]
)
def test_the_posterior_is_calibrated(mean, inducing):
    """Simulation-based calibration (Talts et al., 2018): the truth has uniform ranks in its posterior."""
    rng, ranks, n = np.random.default_rng(5), [], 10
    kernel = 1.5 * Gaussian(0.8)
    for _ in range(300):
        x, f, y = draw_world(rng, kernel, 7.0 if mean == "linear" else 0.0, n)
        points = x[:n] if inducing else None
        model = GaussianProcessRegressor(kernel + White(0.09), optimizer=None, mean=mean, inducing=points)
        model.fit(x[:n], y[:n])
        draws = model.sample_y(x[n:], 99, random_state=rng, latent=True)
        truth = f[n:]
        statistics = (lambda v: v[0], lambda v: v.sum(axis=0), lambda v: v.max(axis=0), lambda v: v[0] * v[1])
        own = [(np.sum(T(draws) < T(truth)) + rng.random()) / 100.0 for T in statistics]
        own.append(model.predict_dist(x[n:]).cdf(y[n:])[2])
        own.append(model.predict_function(x[n:]).cdf(truth)[3])
        if inducing is None:
            own.append(model.leave_one_out().cdf(y[:n])[0])
        ranks.append(own)
    for column in np.array(ranks).T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3


def test_a_wrong_noise_is_not_calibrated():
    rng, ranks = np.random.default_rng(5), []
    for _ in range(300):
        x, _, y = draw_world(rng, 1.5 * Gaussian(0.8), 0.0, 10)
        model = GaussianProcessRegressor(1.5 * Gaussian(0.8) + White(0.5), optimizer=None).fit(x[:10], y[:10])
        ranks.append(model.predict_dist(x[10:]).cdf(y[10:])[2])
    assert stats.kstest(ranks, "uniform").pvalue < 1e-3
