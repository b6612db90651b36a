"""Predictive distributions: their own laws, and calibration on fresh rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

import learnable as ln
from learnable.core.errors import DataError, ParameterError
from learnable.ensembles import GradientBoostingRegressor, HistGradientBoostingRegressor, QuantileDistribution
from learnable.ensembles.gradient.distribution import NormalScale, predict_dist
from learnable.probability import Normal

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]


def spread(x):
    return 0.3 + 0.5 * np.abs(x)


def table(seed, n=3000):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + spread(X[:, 1]) * rng.standard_normal(n)


# The distribution


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_cdf_quantile_density_and_moments_agree(seed, L):
    rng = np.random.default_rng(seed)
    levels = np.sort(rng.uniform(0.02, 0.98, L))
    levels += np.arange(L) * 1e-3
    d = QuantileDistribution(levels / (1 + 1e-3 * L), np.cumsum(rng.random(L) + 0.05))
    p = rng.uniform(0.001, 0.999, 20)
    np.testing.assert_allclose(d.cdf(d.quantile(p)), p, atol=1e-10)
    lo, hi, knots = float(d.quantile(1e-9)), float(d.quantile(1 - 1e-9)), d.quantiles.tolist()
    assert quad(d.pdf, lo, hi, points=knots, limit=200)[0] == pytest.approx(1.0, abs=1e-6)
    mean = quad(lambda x: x * d.pdf(x), lo, hi, points=knots, limit=200)[0]
    second = quad(lambda x: (x - mean) ** 2 * d.pdf(x), lo, hi, points=knots, limit=200)[0]
    assert float(d.mean) == pytest.approx(mean, abs=1e-5)
    assert float(d.variance) == pytest.approx(second, rel=1e-4)
    entropy = quad(lambda x: -d.pdf(x) * d.logpdf(x), lo, hi, points=knots, limit=200)[0]
    assert float(d.entropy()) == pytest.approx(entropy, abs=1e-4)


def test_arrays_of_them_atoms_and_samples():
    d = QuantileDistribution([0.25, 0.75], [[0.0, 1.0], [2.0, 2.0]])
    assert d.batch_shape == (2,) and d.mean.tolist() == [0.5, 2.0] and d[1].variance == 0.0
    assert d.cdf([1.0, 2.0]).tolist() == [0.75, 1.0] and d.cdf([-1.0, 1.9])[1] == 0.0
    drawn = d.sample(4000, random_state=0)
    assert drawn.shape == (4000, 2) and abs((drawn[:, 0] <= 0.0).mean() - 0.25) < 0.03 and (drawn[:, 1] == 2).all()
    low, high = d.interval(0.5)
    assert low.tolist() == [0.0, 2.0] and high.tolist() == [1.0, 2.0]
    for levels, quantiles, said in [
        ([0.5], [1.0], "at least 2"),
        ([0.5, 0.2], [1.0, 2.0], "ascending"),
        ([0.2, 0.5], [2.0, 1.0], "ascending"),
        ([0.0, 0.5], [1.0, 2.0], "> 0 and < 1"),
    ]:
        with pytest.raises(ParameterError, match=said):
            QuantileDistribution(levels, quantiles)


# The loss


def test_derivatives_of_the_normal_loss_are_those_of_differences():
    rng = np.random.default_rng(0)
    y, F, loss, e = rng.standard_normal(50), rng.standard_normal((2, 50)), NormalScale(), 1e-6
    g, h = loss.derivatives(y, F)
    for k in range(2):
        step = np.zeros((2, 1))
        step[k] = e
        np.testing.assert_allclose(
            g[k], (loss.value(y, F + step) - loss.value(y, F - step)) / (2 * e), rtol=1e-5, atol=1e-6
        )
    assert (h > 0).all()
    start = loss.targets.start(loss, y, None)
    np.testing.assert_allclose(start, [y.mean(), np.log(y.std())])


# The models


def coverage(model, X, y, level):
    low, high = model.predict_interval(X, level)
    return float(np.mean((y >= low) & (y <= high)))


@pytest.mark.parametrize(
    "model",
    [
        HistGradientBoostingRegressor(
            loss="normal", max_iter=150, max_leaf_nodes=6, early_stopping=True, random_state=0
        ),
        GradientBoostingRegressor(loss="normal", n_estimators=60, max_depth=2),
        HistGradientBoostingRegressor(
            loss="quantile", quantile=LEVELS, max_iter=150, max_leaf_nodes=6, early_stopping=True, random_state=0
        ),
    ],
    ids=["normal", "normal, exact", "quantiles"],
)
def test_intervals_cover_fresh_rows_and_follow_the_spread(model):
    X, y = table(0)
    Z, truth = table(1)
    model.fit(X, y)
    for level in (0.5, 0.9):  # three binomial deviations of 3000 rows are 0.027; the rest is what the fit may miss
        assert abs(coverage(model, Z, truth, level) - level) < 0.06
    d = model.predict_dist(Z)
    assert np.corrcoef(d.std, spread(Z[:, 1]))[0, 1] > 0.7
    assert -d.logpdf(truth).mean() < -Normal(y.mean(), y.std()).logpdf(truth).mean() - 0.2
    ranks = d.cdf(truth)
    assert abs(ranks.mean() - 0.5) < 0.03 and abs(ranks.var() - 1 / 12) < 0.012


def test_only_losses_with_a_distribution_have_one():
    assert not hasattr(HistGradientBoostingRegressor(), "predict_dist")
    assert not hasattr(HistGradientBoostingRegressor(loss="quantile", quantile=0.5), "predict_dist")
    X, y = table(0, 50)
    with pytest.raises(DataError, match="ConformalRegressor"):
        predict_dist(HistGradientBoostingRegressor(max_iter=2).fit(X, y), X)


def test_constant_targets_have_a_narrow_distribution():
    X = np.arange(30.0)[:, None]
    d = HistGradientBoostingRegressor(loss="normal", max_iter=3).fit(X, np.full(30, 7.0)).predict_dist(X)
    np.testing.assert_allclose(d.mean, 7.0)
    assert (d.std < 1e-6).all()


@pytest.mark.parametrize(
    "model", [HistGradientBoostingRegressor(max_iter=4), GradientBoostingRegressor(n_estimators=4)]
)
def test_the_normal_loss_is_verified_and_survives_a_file(model, tmp_path):
    X, y = table(3, 150)
    model.set_params(loss="normal", random_state=0).fit(X, y)
    assert ln.verify(model, X, y) and not ln.verify(model, X, y[::-1])
    assert (np.diff(model.training_loss_) < 0).all()
    ln.save(model, tmp_path / "m.safetensors")
    loaded = ln.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict_dist(X).std, model.predict_dist(X).std)
