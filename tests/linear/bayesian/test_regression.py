"""Bayesian linear regression: ridge, limits, partial fits, streams, calibration, degenerate data."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.linear_model import BayesianRidge

import learnable as ln
from learnable.core.errors import DataError, ParameterError
from learnable.linear import BayesianLinearRegression, LinearRegression, Ridge

NOISES = ("evidence", "known", "unknown")


def rows(seed=0, n=60, d=4, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + rng.normal(size=d)
    return X, X @ rng.normal(size=d) + 2.0 + noise * rng.normal(size=n)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("n", "d"), [(60, 4), (15, 40), (2, 3), (1500, 60)])
@pytest.mark.parametrize("intercept", [True, False])
def test_posterior_mean_is_ridge(noise, n, d, intercept):
    X, y = rows(1, n, d)
    w = np.random.default_rng(2).uniform(0.5, 2.0, n)
    model = BayesianLinearRegression(noise, fit_intercept=intercept).fit(X, y, w)
    ridge = Ridge(model.ratio_, fit_intercept=intercept).fit(X, y, w)
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=1e-8, atol=1e-9)
    assert model.intercept_ == pytest.approx(ridge.intercept_, rel=1e-8, abs=1e-9)
    assert model.certificate_.holds
    assert ln.verify(model, X, y, w)


def test_known_noise_has_the_notes_posterior():
    X, y = rows(2, 30, 3)
    sigma, tau = 0.7, 1.4
    model = BayesianLinearRegression("known", noise_std=sigma, prior_std=tau, fit_intercept=False).fit(X, y)
    cov = np.linalg.inv(np.eye(3) / tau**2 + X.T @ X / sigma**2)
    mean = cov @ X.T @ y / sigma**2
    np.testing.assert_allclose(model.coef_, mean, rtol=1e-11)
    np.testing.assert_allclose(model.sigma_, cov, rtol=1e-10)
    x = np.array([[0.3, -1.0, 2.0]])
    predicted = model.predict_dist(x)
    assert predicted.mean[0] == pytest.approx(x[0] @ mean)
    assert predicted.variance[0] == pytest.approx(sigma**2 + x[0] @ cov @ x[0])
    expected = stats.multivariate_normal(np.zeros(30), sigma**2 * np.eye(30) + tau**2 * X @ X.T).logpdf(y)
    assert model.log_marginal_likelihood_ == pytest.approx(expected, rel=1e-10)


def test_limits_of_the_prior():
    X, y = rows(3)
    wide = BayesianLinearRegression("known", noise_std=0.5, prior_std=1e6).fit(X, y)
    np.testing.assert_allclose(wide.coef_, LinearRegression().fit(X, y).coef_, rtol=1e-9)
    narrow = BayesianLinearRegression("known", noise_std=0.5, prior_std=1e-9).fit(X, y)
    np.testing.assert_allclose(narrow.coef_, 0.0, atol=1e-12)
    assert narrow.intercept_ == pytest.approx(y.mean())
    # With a flat prior and unknown noise the intervals are those of the t-test of least squares, but for a - 0.
    vague = BayesianLinearRegression("unknown", prior_std=1e6, shape=1e-9, rate=1e-9).fit(X, y)
    least_squares = LinearRegression().fit(X, y)
    new = X[:5] + 0.3
    ours, theirs = vague.predict_interval(new, 0.9), least_squares.predict_interval(new, 0.9)
    # 2a = n - 1 degrees of freedom here, n - d - 1 there: the prior counts as knowledge, however wide.
    np.testing.assert_allclose(np.mean(ours, axis=0), np.mean(theirs, axis=0), rtol=1e-6)


def evidence_of(X, y, alpha, lam):
    """Return log p(y | α, λ) with a flat intercept, from the n by n covariance."""
    n = len(y)
    cov = np.eye(n) / alpha + (X - X.mean(axis=0)) @ (X - X.mean(axis=0)).T / lam
    basis = stats.ortho_group.rvs(n, random_state=0)
    basis[0] = 1.0 / np.sqrt(n)
    basis = np.linalg.qr(basis.T)[0][:, 1:].T  # orthogonal to the constant
    return stats.multivariate_normal(np.zeros(n - 1), basis @ cov @ basis.T).logpdf(basis @ y) - 0.5 * np.log(n)


@pytest.mark.parametrize("seed", range(4))
def test_evidence_is_that_of_bayesian_ridge_or_better(seed):
    X, y = rows(seed, 50, 6)
    ours, theirs = BayesianLinearRegression().fit(X, y), BayesianRidge(max_iter=2000, tol=1e-12).fit(X, y)
    best = evidence_of(X, y, ours.alpha_, ours.lambda_)
    assert ours.log_marginal_likelihood_ == pytest.approx(best, rel=1e-9)
    assert best >= evidence_of(X, y, theirs.alpha_, theirs.lambda_) - 1e-9
    assert ours.lambda_ == pytest.approx(theirs.lambda_, rel=0.05)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("d", [4, 50])
def test_partial_fits_equal_one_fit(noise, d):
    X, y = rows(5, 40, d)
    w = np.random.default_rng(1).uniform(0.0, 2.0, 40) * (np.arange(40) % 5 > 0)
    whole = BayesianLinearRegression(noise).fit(X, y, w)
    parts = BayesianLinearRegression(noise)
    for start in range(0, 40, 13):
        part = slice(start, start + 13)
        parts.partial_fit(X[part], y[part], w[part])
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(parts.predict_dist(X).std, whole.predict_dist(X).std, rtol=1e-6)
    assert parts.log_marginal_likelihood_ == pytest.approx(whole.log_marginal_likelihood_, rel=1e-7)
    assert parts.certificate_.fingerprint == whole.certificate_.fingerprint
    assert ln.verify(parts, X, y, w)


def test_partial_fit_refuses_other_columns():
    X, y = rows()
    model = BayesianLinearRegression().partial_fit(X, y)
    before = model.coef_.copy()
    with pytest.raises(DataError, match="X has 3 features, but BayesianLinearRegression is expecting 4 features"):
        model.partial_fit(X[:, :3], y)
    assert np.array_equal(model.coef_, before)


def test_weights_are_repetitions():
    X, y = rows(6, 20)
    w = np.random.default_rng(0).integers(0, 4, 20)
    for noise in NOISES:
        one = BayesianLinearRegression(noise).fit(X, y, w)
        other = BayesianLinearRegression(noise).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
        np.testing.assert_allclose(one.predict_dist(X).std, other.predict_dist(X).std, rtol=1e-9)
        assert one.log_marginal_likelihood_ == pytest.approx(other.log_marginal_likelihood_, rel=1e-9)


def test_sparse_rows_files_and_dask(tmp_path):
    pd, da = pytest.importorskip("pandas"), pytest.importorskip("dask.array")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6)) * (rng.random((400, 6)) < 0.4)
    y = X @ rng.normal(size=6) + 1.0 + 0.3 * rng.normal(size=400)
    here = BayesianLinearRegression().fit(X, y)
    sparse = BayesianLinearRegression().fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.coef_, here.coef_, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(sparse.predict_dist(sp.csr_array(X)).std, here.predict_dist(X).std, rtol=1e-9)
    wide = BayesianLinearRegression("known").fit(sp.csr_array(X[:4]), y[:4])
    np.testing.assert_allclose(wide.coef_, BayesianLinearRegression("known").fit(X[:4], y[:4]).coef_, rtol=1e-9)
    lazy = BayesianLinearRegression().fit(da.from_array(X, chunks=(90, 6)), da.from_array(y, chunks=90))
    np.testing.assert_allclose(lazy.coef_, here.coef_, rtol=1e-9)
    assert lazy.log_marginal_likelihood_ == pytest.approx(here.log_marginal_likelihood_, rel=1e-9)
    mean, std = lazy.predict(da.from_array(X, chunks=(90, 6)), return_std=True)
    np.testing.assert_allclose(mean.compute(), here.predict(X), rtol=1e-8)
    np.testing.assert_allclose(std.compute(), here.predict(X, return_std=True)[1], rtol=1e-8)
    low, _ = lazy.predict_interval(da.from_array(X, chunks=(90, 6)), 0.9)
    np.testing.assert_allclose(low.compute(), here.predict_interval(X, 0.9)[0], rtol=1e-8)
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(y=y)
    frame.to_parquet(tmp_path / "rows.parquet")
    filed = BayesianLinearRegression().fit(str(tmp_path / "rows.parquet"), "y")
    np.testing.assert_allclose(filed.coef_, here.coef_, rtol=1e-9)
    assert ln.verify(filed, str(tmp_path / "rows.parquet"), "y")


@pytest.mark.threaded
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_same_bits_for_any_number_of_threads(n_jobs):
    X, y = rows(7, 30_000, 40)
    one = BayesianLinearRegression(n_jobs=n_jobs).fit(X, y)
    assert np.array_equal(one.coef_, BayesianLinearRegression(n_jobs=None).fit(X, y).coef_)


def test_save_and_load(tmp_path):
    X, y = rows()
    for noise in NOISES:
        model = BayesianLinearRegression(noise).fit(X, y)
        ln.save(model, tmp_path / "m.safetensors")
        again = ln.load(tmp_path / "m.safetensors")
        assert np.array_equal(again.predict(X, return_std=True)[1], model.predict(X, return_std=True)[1])
        assert ln.verify(again, X, y)


def draw_world(rng, noise):
    X = rng.normal(size=(15, 3))
    variance = 0.25 if noise == "known" else 1.0 / rng.gamma(3.0, 1.0 / 2.0)
    beta = rng.normal(size=3) * (0.8 if noise == "known" else 0.8 * np.sqrt(variance))
    y = X @ beta + np.sqrt(variance) * rng.normal(size=15)
    return X, y, beta, variance


@pytest.mark.parametrize("noise", ["known", "unknown"])
def test_posterior_and_predictions_are_calibrated(noise):
    """Simulation-based calibration of a coefficient, of the noise, and of a new observation."""
    rng = np.random.default_rng(11)
    ranks = []
    for _ in range(500):
        X, y, beta, variance = draw_world(rng, noise)
        model = BayesianLinearRegression(
            noise, noise_std=0.5, prior_std=0.8, shape=3.0, rate=2.0, fit_intercept=False
        ).fit(X, y)
        x = rng.normal(size=(1, 3))
        new = x[0] @ beta + np.sqrt(variance) * rng.normal()
        rank = [model.coef_dist().cdf(beta)[1], model.predict_dist(x).cdf(new)[0]]
        ranks.append([*rank, model.noise_dist().cdf(variance) if noise == "unknown" else rng.random()])
    for column in np.array(ranks).T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3


def test_degenerate_data():
    # Perfect fit: almost no noise, and finite numbers.
    X = np.arange(10.0)[:, None]
    model = BayesianLinearRegression().fit(X, 3.0 * X[:, 0] + 1.0)
    assert model.coef_[0] == pytest.approx(3.0, rel=1e-6) and np.isfinite(model.log_marginal_likelihood_)
    assert model.predict_dist(X).std.max() < 1e-3
    # A constant target, and columns that do not vary.
    constant = BayesianLinearRegression().fit(X, np.full(10, 5.0))
    assert constant.predict(X) == pytest.approx(np.full(10, 5.0))
    flat = BayesianLinearRegression("unknown").fit(np.ones((10, 2)), np.arange(10.0))
    np.testing.assert_allclose(flat.coef_, 0.0, atol=1e-12)
    assert flat.intercept_ == pytest.approx(4.5)
    zero = BayesianLinearRegression().fit(X, np.zeros(10))
    assert np.all(zero.predict(X) == 0.0)
    # One row is enough where the noise is known.
    one = BayesianLinearRegression("known", fit_intercept=False).fit([[2.0]], [3.0])
    assert one.coef_[0] == pytest.approx(6.0 / 5.0)
    with pytest.raises(DataError, match="one sample, or a total weight of 1, leaves nothing to learn the noise from"):
        BayesianLinearRegression().fit([[2.0]], [3.0])
    with pytest.raises(DataError, match="rescale"):
        BayesianLinearRegression().fit([[1e300], [2e300]], [1.0, 2.0])
    with pytest.raises(ParameterError, match="noise_std must be"):
        BayesianLinearRegression("known", noise_std=0.0).fit(X, X[:, 0])


def test_large_means_do_not_matter():
    X, y = rows(9, 200, 3)
    near = BayesianLinearRegression().fit(X, y)
    far = BayesianLinearRegression().fit(X + 1e6, y + 1e6)
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-6)
    assert far.log_marginal_likelihood_ == pytest.approx(near.log_marginal_likelihood_, rel=1e-6)


def test_columns_of_very_different_sizes_keep_their_posteriors():
    X, y = rows(10, 80, 4)
    sizes = np.array([1e-6, 1.0, 1e8, 1e3])
    model = BayesianLinearRegression("known", noise_std=0.5, prior_std=3.0, fit_intercept=False).fit(X * sizes, y)
    # In units in which the columns are alike, the prior is not: N(0, diag(3 sizes)²).
    precision = X.T @ X / 0.25 + np.diag(1.0 / (3.0 * sizes) ** 2)
    scale = 1.0 / np.sqrt(np.diag(precision))
    cov = np.linalg.inv(precision * np.outer(scale, scale)) * np.outer(scale, scale)
    np.testing.assert_allclose(model.coef_dist().std * sizes, np.sqrt(np.diag(cov)), rtol=1e-8)
    np.testing.assert_allclose(model.coef_ * sizes, cov @ X.T @ y / 0.25, rtol=1e-7)
    assert ln.verify(model, X * sizes, y)


def test_small_weights_are_no_missing_rows():
    X, y = rows(11, 50, 4)
    light = BayesianLinearRegression().fit(X, y, np.full(50, 0.1))
    assert light.alpha_**-0.5 > 0.2  # a total weight of 5 with 4 columns, but 50 rows that show the noise
    assert ln.verify(light, X, y, np.full(50, 0.1))


def test_sizes_whose_squares_underflow_are_refused():
    X, y = rows()
    with pytest.raises(DataError, match=r"X reaches only .*e-200, below 1e-100"):
        BayesianLinearRegression().fit(1e-200 * X, y)
    with pytest.raises(DataError, match=r"y reaches only .*e-(199|200), below 1e-100"):
        BayesianLinearRegression().fit(X, 1e-200 * y)


def test_more_directions_than_memory_are_refused():
    X = sp.random_array((30_000, 40_000), density=1e-5, format="csr", rng=np.random.default_rng(0))
    with pytest.raises(DataError, match="use Ridge, or fewer columns"):
        BayesianLinearRegression().fit(X, np.arange(30_000.0))


def test_nearly_dependent_columns():
    x = np.linspace(0.0, 1.0, 60)
    y = np.sin(5.0 * x) + 0.1 * np.random.default_rng(0).normal(size=60)
    for X in (np.vander(x, 25), np.vander(x[:15], 40)):
        for noise in NOISES:
            model = BayesianLinearRegression(noise).fit(X, y[: len(X)])
            assert model.certificate_.holds and ln.verify(model, X, y[: len(X)])
