"""The parts add up to the measured risk, and equal the formulas of cases that can be computed by hand."""

import json

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.tree import DecisionTreeRegressor

from learnable import LinearRegression, Ridge
from learnable.core import DataError, ParameterError
from learnable.evaluation import bias_variance


def sine(X):
    return np.sin(3 * X[:, 0])


def uniform(m, rng):
    return rng.uniform(-1, 1, size=(m, 1))


def polynomial(degree=3):
    return make_pipeline(PolynomialFeatures(degree), LinearRegression())


CASES = [
    (polynomial(), 0.3),
    (Ridge(5.0), 0.3),
    (KNeighborsRegressor(3), 0.5),
    (DecisionTreeRegressor(max_depth=3), 0.2),
    (polynomial(2), lambda X, rng: np.abs(X[:, 0]) * rng.standard_normal(len(X))),  # louder at the ends
    (Ridge(1.0), lambda X, rng: rng.exponential(0.4, len(X)) - 0.4),  # not symmetric
    (polynomial(), 0.0),
]


# ---- the law ----


@pytest.mark.parametrize(("model", "noise"), CASES)
def test_the_parts_add_up_to_the_measured_risk(model, noise):
    parts = bias_variance(model, sine, uniform, noise=noise, n=40, n_repeats=60, n_test=400)
    split = parts.bias2 + parts.variance + parts.noise
    assert abs(parts.risk - split) < 4 * parts.standard_error
    np.testing.assert_allclose(parts.approximation + parts.estimation + parts.irreducible, split, rtol=1e-12)
    assert parts.gap == parts.risk - parts.train_risk


def test_the_error_bar_is_honest():
    """The deviations, in units of the error bar, have a standard deviation near one."""
    z = []
    for seed in range(40):
        parts = bias_variance(
            Ridge(1.0), sine, uniform, noise=0.5, n=15, n_repeats=12, n_test=60, n_best=200, random_state=seed
        )
        z.append((parts.risk - parts.bias2 - parts.variance - parts.noise) / parts.standard_error)
    assert abs(np.mean(z)) < 4 / np.sqrt(40)
    assert 0.6 < np.std(z) < 1.4


# ---- by hand ----


def test_the_mean_as_a_model():
    """f(x) = x on U(−1, 1): the mean has bias² = 1/3, variance = (σ² + 1/3)/n, training error (σ² + 1/3)(1 − 1/n)."""
    n, sigma = 20, 0.7
    parts = bias_variance(DummyRegressor(), lambda X: X[:, 0], uniform, noise=sigma, n=n, n_repeats=800, n_test=1000)
    assert parts.bias2 == pytest.approx(1 / 3, abs=0.03)
    assert parts.variance == pytest.approx((sigma**2 + 1 / 3) / n, rel=0.1)
    assert parts.noise == pytest.approx(sigma**2)
    assert parts.approximation == pytest.approx(1 / 3, abs=0.03)
    assert parts.train_risk == pytest.approx((sigma**2 + 1 / 3) * (1 - 1 / n), rel=0.05)
    assert parts.gap == pytest.approx(2 * (sigma**2 + 1 / 3) / n, rel=0.5)


def test_least_squares_in_its_own_model():
    """A linear truth has no bias; with normal inputs the variance is (σ²/n)(1 + (n + 1)d/(n − d − 2))."""
    n, d, sigma = 30, 3, 1.0
    parts = bias_variance(
        LinearRegression(),
        lambda X: X @ np.array([1.0, -2.0, 0.5]),
        lambda m, rng: rng.normal(size=(m, d)),
        noise=sigma,
        n=n,
        n_repeats=600,
        n_test=200,
    )
    expected = sigma**2 / n * (1 + (n + 1) * d / (n - d - 2))
    assert parts.variance == pytest.approx(expected, rel=0.15)
    assert abs(parts.bias2) < 0.01 and parts.approximation < 1e-20
    assert parts.estimation == pytest.approx(parts.bias2 + parts.variance)


def test_estimation_is_the_distance_to_the_best_of_the_class():
    """For least squares R(f̂) − R(f*) = E(f̂ − f*)², by Pythagoras: the approximation of sin by a line is known."""
    parts = bias_variance(LinearRegression(), sine, uniform, noise=0.3, n=50, n_repeats=100, n_test=4000, n_best=50_000)
    slope = 3 * (np.sin(3) / 9 - np.cos(3) / 3)  # of the best line: 3∫x sin 3x / 2 over (−1, 1)
    best = (1 - np.sin(6) / 6) / 2 - slope**2 / 3
    assert parts.approximation == pytest.approx(best, rel=0.05)
    assert 0 < parts.estimation < 0.1


# ---- sweeps ----


def test_complexity_trades_bias_for_variance():
    parts = bias_variance(
        polynomial(),
        sine,
        uniform,
        noise=0.3,
        n=40,
        name="polynomialfeatures__degree",
        values=[0, 1, 3, 7],
        n_repeats=60,
    )
    assert parts.over == "polynomialfeatures__degree" and parts.values == [0, 1, 3, 7]
    assert (np.diff(parts.bias2) < 0.003).all() and parts.variance[3] > 2 * parts.variance[2]
    assert (np.diff(parts.approximation) < 1e-6).all() and (np.diff(parts.train_risk) < 0).all()
    assert (np.abs(parts.risk - parts.bias2 - parts.variance - parts.noise) < 4 * parts.standard_error).all()


def test_a_penalty_trades_variance_for_bias():
    model = Ridge(fit_intercept=False)
    parts = bias_variance(model, sine, uniform, noise=0.5, n=20, name="alpha", values=[0.0, 3.0, 100.0], n_repeats=100)
    assert (np.diff(parts.bias2) > 0).all() and (np.diff(parts.variance) < 0).all()
    # The class of functions is the same: with many rows without noise the penalty loses its pull.
    assert np.ptp(parts.approximation) < 0.1 * parts.approximation[0]
    free = bias_variance(
        Ridge(), sine, uniform, noise=0.5, n=20, name="alpha", values=[0.0, 3.0], n_repeats=10, best=LinearRegression()
    )
    assert free.approximation[0] == free.approximation[1]


def test_rows_reduce_variance_but_not_bias():
    parts = bias_variance(LinearRegression(), sine, uniform, noise=0.5, sizes=[10, 40, 160], n_repeats=100)
    assert parts.over == "n" and (np.diff(parts.variance) < 0).all()
    assert parts.variance[0] / parts.variance[2] == pytest.approx(16, rel=0.6)
    assert (np.diff(np.abs(parts.gap)) < 0).all()
    assert np.ptp(parts.bias2) < 0.1


def test_points_of_a_sweep_see_the_same_random_numbers():
    parts = bias_variance(Ridge(), sine, uniform, name="alpha", values=[1.0, 1.0], n_repeats=5, n_test=50)
    assert parts.risk[0] == parts.risk[1]
    alone = bias_variance(Ridge(1.0), sine, uniform, n_repeats=5, n_test=50)
    assert alone.risk == parts.risk[0] and isinstance(alone.risk, float)
    other = bias_variance(Ridge(1.0), sine, uniform, n_repeats=5, n_test=50, random_state=1)
    assert other.risk != alone.risk


def test_records_print_and_are_plain():
    parts = bias_variance(Ridge(), sine, uniform, name="alpha", values=[0.1, 1.0], n_repeats=5, n_test=50)
    assert len(str(parts).splitlines()) == 3 and "variance" in str(parts)
    record = json.loads(json.dumps(parts.to_dict(), allow_nan=False))
    assert record["risk"] == parts.risk.tolist() and record["values"] == [0.1, 1.0]
    alone = bias_variance(Ridge(), sine, uniform, n_repeats=5, n_test=50)
    assert json.loads(json.dumps(alone.to_dict()))["risk"] == alone.risk and len(str(alone).splitlines()) == 2


# ---- refusals ----


@pytest.mark.parametrize(
    "options",
    [
        {"noise": -1.0},
        {"noise": "normal"},
        {"n": 0},
        {"n_repeats": 1},
        {"n_test": 1},
        {"name": "alpha"},
        {"values": [1.0]},
        {"name": "alpha", "values": []},
        {"name": "degree", "values": [1]},
        {"name": "alpha", "values": [1.0], "sizes": [10]},
        {"sizes": []},
        {"sizes": [0]},
    ],
)
def test_wrong_parameters_are_refused(options):
    with pytest.raises(ParameterError, match="bias_variance"):
        bias_variance(Ridge(), sine, uniform, **options)


@pytest.mark.parametrize(
    ("f", "draw", "noise", "message"),
    [
        (lambda X: X, uniform, 1.0, "f must give one finite number per row"),
        (lambda X: X[:, 0] / 0.0 if len(X) else X, uniform, 1.0, "finite"),
        (sine, lambda m, rng: rng.normal(size=m), 1.0, "rows of X"),
        (sine, lambda m, rng: rng.normal(size=(m + 1, 1)), 1.0, "rows of X"),
        (sine, uniform, lambda X, rng: np.ones(len(X)), "mean 1 instead of zero"),
        (sine, uniform, lambda X, rng: np.ones(3), "noise must give"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_a_truth_that_makes_no_sense(f, draw, noise, message):
    with pytest.raises(DataError, match=message):
        bias_variance(Ridge(), f, draw, noise=noise)


def test_a_failing_model_names_the_data_set():
    with pytest.raises(DataError, match=r"failed in data set 1 of 3 with 2 rows.*"):
        bias_variance(KNeighborsRegressor(5), sine, uniform, n=2, n_repeats=3)
