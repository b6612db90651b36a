"""Standard errors, tests and intervals of least squares: against the formulas written out, and by their coverage."""

import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats
from tests.oracles.exact import exact_least_squares, exact_unit_errors
from tests.oracles.least_squares import normal_inference, normal_interval

from learnable import LinearRegression
from learnable.core.errors import DataError, ParameterError
from learnable.probability import StudentT


def table(seed=0, n=30, d=4, k=None, *, weighted=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 1.0
    y = X @ np.linspace(-1, 2, d)[:, None] + rng.normal(size=(n, k or 1)) + 2.0
    return X, y if k else y[:, 0], rng.uniform(0.2, 3.0, n) if weighted else None


CASES = [
    (shape, weighted, intercept)
    for shape in ((30, 4), (8, 1), (7, 5))
    for weighted in (False, True)
    for intercept in (True, False)
] + [((500, 70), True, True)]


@pytest.mark.parametrize("shape, weighted, intercept", CASES)
@pytest.mark.parametrize("level", [0.95, 0.5])
def test_summary_is_that_of_the_normal_linear_model(shape, weighted, intercept, level):
    X, y, weight = table(1, *shape, weighted=weighted)
    model = LinearRegression(fit_intercept=intercept).fit(X, y, weight)
    found = model.summary(level)
    expected = normal_inference(X, y, weight, intercept=intercept, level=level)
    for name in ("estimate", "std_error", "t", "p_value", "lower", "upper"):
        np.testing.assert_allclose(
            getattr(found, name)[0], getattr(expected, name), rtol=1e-8, atol=1e-13, err_msg=name
        )
    assert found.residual_std[0] == pytest.approx(expected.residual_std, rel=1e-11)
    assert (found.df_resid, model.df_resid_, found.level) == (expected.df, expected.df, level)
    skip = int(intercept)
    np.testing.assert_allclose(model.conf_int(level), (expected.lower[skip:], expected.upper[skip:]), rtol=1e-8)


@pytest.mark.parametrize("shape, weighted, intercept", CASES)
@pytest.mark.parametrize("kind", ["prediction", "confidence"])
def test_intervals_are_those_of_the_normal_linear_model(shape, weighted, intercept, kind):
    X, y, weight = table(2, *shape, weighted=weighted)
    X_new = table(3, 9, shape[1])[0] * 2
    model = LinearRegression(fit_intercept=intercept).fit(X, y, weight)
    expected = normal_inference(X, y, weight, intercept=intercept)
    for level in (0.5, 0.99):
        found = model.predict_interval(X_new, level, kind)
        new_observation = kind == "prediction"
        ends = normal_interval(X_new, expected, intercept=intercept, level=level, new_observation=new_observation)
        np.testing.assert_allclose(found, ends, rtol=0, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", [0.0, 1e4])
def test_standard_errors_are_exact_to_rounding(weighted, mean):
    X, y, weight = table(4, 15, 3, weighted=weighted)
    X = X + mean
    model = LinearRegression().fit(X, y, weight)
    exact = exact_least_squares(X, y, weight)
    errors = exact_unit_errors(X, weight) * exact.residual_norm[0] / np.sqrt(11)
    np.testing.assert_allclose(model.summary().std_error[0], errors, rtol=1e-14 * (1 + mean))


@pytest.mark.parametrize("exponent", [-900, -300, 300, 900])
@pytest.mark.parametrize("shape", [(30, 3), (500, 70)])
def test_standard_errors_follow_the_units_of_the_columns(exponent, shape):
    X, y, _ = table(5, *shape)
    factors = np.where(np.arange(shape[1]) == 1, 2.0**exponent, 1.0)
    plain, scaled = LinearRegression().fit(X, y).summary(), LinearRegression().fit(X * factors, y).summary()
    np.testing.assert_allclose(scaled.std_error[0] * np.r_[1.0, factors], plain.std_error[0], rtol=1e-9)
    np.testing.assert_allclose(scaled.t, plain.t, rtol=1e-9)
    np.testing.assert_allclose(scaled.p_value, plain.p_value, rtol=1e-6)


@pytest.mark.parametrize("exponent", [-900, -300, 300, 900])
@pytest.mark.parametrize("shape", [(30, 3), (500, 70)])
def test_standard_errors_follow_the_units_of_the_target(exponent, shape):
    X, y, _ = table(6, *shape)
    plain, scaled = LinearRegression().fit(X, y), LinearRegression().fit(X, np.ldexp(y, exponent))
    np.testing.assert_allclose(np.ldexp(scaled.summary().std_error, -exponent), plain.summary().std_error, rtol=1e-9)
    np.testing.assert_allclose(
        np.ldexp(scaled.predict_interval(X[:3]), -exponent), plain.predict_interval(X[:3]), rtol=0, atol=1e-9
    )


def test_several_targets_are_several_regressions():
    X, y, weight = table(7, k=3, weighted=True)
    model = LinearRegression().fit(X, y, weight)
    X_new = X[:5] + 1
    joint, lower = model.summary(), model.predict_interval(X_new)[0]
    assert lower.shape == (5, 3)
    assert model.conf_int()[0].shape == model.coef_.shape == (3, 4)
    for target in range(3):
        single = LinearRegression().fit(X, y[:, target], weight)
        np.testing.assert_allclose(joint.std_error[target], single.summary().std_error[0], rtol=1e-12)
        np.testing.assert_allclose(joint.p_value[target], single.summary().p_value[0], rtol=1e-9, atol=1e-16)
        np.testing.assert_allclose(lower[:, target], single.predict_interval(X_new)[0], rtol=1e-11)


def test_predictive_distribution_is_student_t():
    X, y, _ = table(8)
    model = LinearRegression().fit(X, y)
    distribution = model.predict_dist(X[:6])
    assert isinstance(distribution, StudentT)
    assert distribution.batch_shape == (6,)
    assert np.all(distribution.df == 25)
    np.testing.assert_allclose(distribution.mean, model.predict(X[:6]), rtol=1e-13)
    np.testing.assert_allclose(distribution.interval(0.8), model.predict_interval(X[:6], 0.8), rtol=1e-13)
    leverage = np.einsum("ij,ij->i", D := np.column_stack([np.ones(30), X]), D @ np.linalg.inv(D.T @ D))[:6]
    np.testing.assert_allclose(distribution.scale, model.residual_std_[0] * np.sqrt(1 + leverage), rtol=1e-12)


def test_sparse_rows_have_the_same_intervals():
    X, y, _ = table(9)
    X[X < 0.5] = 0.0
    dense, sparse = LinearRegression().fit(X, y), LinearRegression().fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.predict_interval(sp.csr_array(X)), dense.predict_interval(X), rtol=1e-12)
    np.testing.assert_allclose(sparse.summary().std_error, dense.summary().std_error, rtol=1e-12)


def test_intervals_grow_with_the_level_and_away_from_the_data():
    X, y, _ = table(10)
    model = LinearRegression().fit(X, y)
    widths = [np.ptp(model.predict_interval(X, level), axis=0) for level in (0.5, 0.9, 0.99)]
    assert (widths[0] < widths[1]).all() and (widths[1] < widths[2]).all()
    near, far = (np.ptp(model.predict_interval(X.mean(axis=0)[None] + shift), axis=0)[0] for shift in (0.0, 10.0))
    assert near < far
    confidence = np.ptp(model.predict_interval(X, kind="confidence"), axis=0)
    assert (confidence < np.ptp(model.predict_interval(X), axis=0)).all()


def assert_binomial(hits, level):
    """Require the number of hits to lie where a binomial lies with probability 0.9998."""
    low, high = stats.binom.ppf([1e-4, 1 - 1e-4], hits.size, level)
    assert low <= hits.sum() <= high, (hits.mean(), level, hits.size)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_intervals_cover_as_often_as_they_say(weighted, intercept, level):
    """Five thousand independent targets on one small design are as many repetitions of the experiment."""
    n, d, repetitions = 9, 3, 5000
    rng = np.random.default_rng([int(100 * level), weighted, intercept])
    X, beta, b = rng.normal(size=(n, d)), rng.normal(size=d), 3.0 * intercept
    weight = rng.uniform(0.1, 5.0, n) if weighted else None
    noise = rng.normal(size=(n, repetitions)) / np.sqrt(1.0 if weight is None else weight[:, None])
    model = LinearRegression(fit_intercept=intercept).fit(X, (b + X @ beta)[:, None] + 0.7 * noise, weight)
    lower, upper = model.conf_int(level)
    for j in range(d):
        assert_binomial((lower[:, j] <= beta[j]) & (beta[j] <= upper[:, j]), level)
    x_new = rng.normal(size=(1, d)) * 2
    mean = b + x_new[0] @ beta
    observation = mean + 0.7 * rng.normal(size=repetitions)
    lower, upper = (end[0] for end in model.predict_interval(x_new, level))
    assert_binomial((lower <= observation) & (observation <= upper), level)
    lower, upper = (end[0] for end in model.predict_interval(x_new, level, "confidence"))
    assert_binomial((lower <= mean) & (mean <= upper), level)


def test_p_values_are_uniform_where_there_is_nothing_to_find():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(12, 2))
    p = LinearRegression().fit(X, rng.normal(size=(12, 4000))).summary().p_value
    for j in range(3):
        assert stats.kstest(p[:, j], "uniform").pvalue > 1e-3


def test_summary_prints_the_names_of_the_columns():
    X, y, _ = table(12, d=2)
    frame = pd.DataFrame(X, columns=["height", "a rather long column name"])
    text = str(LinearRegression().fit(frame, y).summary())
    lines = text.splitlines()
    assert [line.split("  ")[0].strip() for line in lines[1:4]] == [
        "(intercept)",
        "height",
        "a rather long column name",
    ]
    assert "95% interval" in lines[0]
    assert "27 degrees of freedom" in lines[-1]
    assert "x0" in str(LinearRegression().fit(X, y).summary())


def test_summary_of_several_targets_prints_a_table_each():
    X, y, _ = table(13, k=2)
    text = str(LinearRegression(fit_intercept=False).fit(X, y).summary(0.9))
    assert text.count("degrees of freedom") == 2
    assert "target 1" in text
    assert "90% interval" in text
    assert "(intercept)" not in text


def test_a_rank_deficient_fit_explains_why_it_has_no_intervals():
    X, y, _ = table(14)
    model = LinearRegression().fit(np.column_stack([X, X[:, 0]]), y)
    for use in (model.predict_dist, model.predict_interval):
        with pytest.raises(DataError, match=r"LinearRegression.*rank 4 is below 5 columns"):
            use(np.zeros((1, 5)))
    for use in (model.summary, model.conf_int):
        with pytest.raises(DataError, match=r"LinearRegression.*rank 4 is below 5 columns"):
            use()


@pytest.mark.parametrize("intercept", [True, False])
def test_a_saturated_fit_explains_why_it_has_no_intervals(intercept):
    X, y, _ = table(15, 4 + intercept, 4)
    model = LinearRegression(fit_intercept=intercept).fit(X, y)
    assert model.df_resid_ == 0
    assert np.isnan(model.residual_std_).all()
    for use in (lambda: model.predict_dist(X), lambda: model.predict_interval(X), model.summary, model.conf_int):
        with pytest.raises(DataError, match=r"LinearRegression.*degrees of freedom"):
            use()


def test_a_constrained_fit_explains_why_it_has_no_intervals():
    X, y, _ = table(16)
    model = LinearRegression(positive=True).fit(X, y)
    for use in (lambda: model.predict_dist(X), lambda: model.predict_interval(X), model.summary, model.conf_int):
        with pytest.raises(DataError, match=r"LinearRegression.*positive=True"):
            use()


def test_a_wide_sparse_fit_explains_why_it_has_no_intervals():
    rng = np.random.default_rng(17)
    X = sp.random_array((6000, 3500), density=0.001, rng=rng, format="csr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LinearRegression(max_iter=2).fit(X, rng.normal(size=6000))
    with pytest.raises(DataError, match="LinearRegression") as caught:
        model.summary()
    assert "rank 3500 is below 3500" not in str(caught.value)


def test_wrong_kinds_and_levels_are_named():
    X, y, _ = table(18)
    model = LinearRegression().fit(X, y)
    with pytest.raises(ParameterError, match="kind must be 'prediction' or 'confidence'"):
        model.predict_interval(X, kind="both")
    for level in (-0.1, 1.5, np.nan):
        with pytest.raises(ParameterError, match="level"):
            model.predict_interval(X, level)
        with pytest.raises(ParameterError, match="level"):
            model.conf_int(level)


def test_a_perfect_fit_has_intervals_of_no_width_or_says_why_not():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = LinearRegression().fit(X, [1.0, 3.0, 5.0, 7.0])
    np.testing.assert_allclose(model.conf_int(), 2.0, rtol=1e-12)
    assert (model.summary().p_value < 1e-12).all()
    with suppress(DataError):
        np.testing.assert_allclose(model.predict_interval(X), np.tile([1.0, 3.0, 5.0, 7.0], (2, 1)), rtol=1e-12)
    with suppress(DataError):
        np.testing.assert_allclose(model.predict_dist(X).mean, [1.0, 3.0, 5.0, 7.0], rtol=1e-12)


def test_a_zero_target_has_a_summary():
    X = table(19)[0]
    summary = LinearRegression().fit(X, np.zeros(30)).summary()
    assert not summary.estimate.any()
    assert not summary.std_error.any()
    assert isinstance(str(summary), str)
