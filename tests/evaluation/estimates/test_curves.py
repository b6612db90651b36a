"""Curves against scikit-learn's, and what every smaller training set promises."""

import json

import numpy as np
import pytest
from sklearn import model_selection as peer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from learnable import LinearRegression, LogisticRegression, Ridge
from learnable.core import DataError, ParameterError
from learnable.data.rows import read_rows
from learnable.evaluation import corrected_t_interval, learning_curve, make_splits, validation_curve
from learnable.evaluation.estimates import curves


def draw(n=100, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] - X[:, 1] + rng.normal(size=n)


# ---- oracles ----


def test_a_learning_curve_of_first_rows_is_scikit_learns():
    X, y = draw()
    splits = make_splits(100, n_splits=4)
    sizes, train, test = peer.learning_curve(Ridge(), X, y, cv=splits, train_sizes=[0.2, 0.6, 1.0])
    found = learning_curve(Ridge(), X, y, [0.2, 0.6, 1.0], scheme=splits, shuffle=False)
    assert found.values == sizes.tolist() == [15, 45, 75] and found.name == "rows"
    np.testing.assert_allclose(found.train_scores, train, rtol=1e-12)
    np.testing.assert_allclose(found.test_scores, test, rtol=1e-12)
    np.testing.assert_allclose(found.test, test.mean(axis=1))


def test_a_validation_curve_is_scikit_learns():
    X, y = draw()
    splits, alphas = make_splits(100), [0.01, 1.0, 100.0]
    train, test = peer.validation_curve(
        Ridge(), X, y, param_name="alpha", param_range=alphas, cv=splits, scoring="neg_mean_squared_error"
    )
    found = validation_curve(Ridge(), X, y, "alpha", alphas, scoring="neg_mean_squared_error")
    np.testing.assert_allclose(found.train_scores, train, rtol=1e-12)
    np.testing.assert_allclose(found.test_scores, test, rtol=1e-12)
    for number in range(3):
        band = corrected_t_interval(found.test_scores[number], 0.2)
        assert (found.low[number], found.high[number]) == (band.low, band.high)
        band = corrected_t_interval(found.train_scores[number], 0.2)
        assert (found.train_low[number], found.train_high[number]) == (band.low, band.high)


# ---- laws ----


def test_more_rows_and_the_right_degree_help():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(300, 1))
    y = np.sin(3 * x[:, 0]) + 0.2 * rng.normal(size=300)
    model = make_pipeline(PolynomialFeatures(8), LinearRegression())
    curve = learning_curve(model, x, y, [12, 40, 240])
    assert curve.test[0] < curve.test[1] < curve.test[2]
    assert curve.train[0] > curve.train[2]  # overfitting ends
    curve = validation_curve(model, x, y, "polynomialfeatures__degree", [1, 2, 3, 5])
    assert np.argmax(curve.test) >= 2 and (np.diff(curve.train) >= 0).all()


def test_smaller_training_sets_are_parts_of_larger_ones_with_classes_in_proportion():
    y = np.array(["a"] * 60 + ["b"] * 30 + ["c"] * 10)
    table = read_rows("test", np.zeros((100, 1)), y)
    train = np.arange(100)
    order = curves._order("test", KNeighborsClassifier(), table, train, "stratified", True, np.random.default_rng(0))
    assert np.array_equal(np.sort(order), train)
    for size in (10, 20, 50, 73):
        for label, share in (("a", 0.6), ("b", 0.3), ("c", 0.1)):
            assert abs(np.count_nonzero(y[order[:size]] == label) - share * size) <= 1


def test_by_time_the_latest_rows_are_kept_and_the_future_is_never_seen():
    times = np.random.default_rng(0).permutation(40)
    table = read_rows("test", np.zeros((40, 1)), np.zeros(40), time=times)
    for train, test in make_splits(40, scheme="time", time=times, n_splits=3):
        order = curves._order("test", Ridge(), table, train, "time", True, np.random.default_rng(0))
        assert (np.diff(times[order]) < 0).all() and times[order].max() < times[test].min()
    X, y = draw(40)
    assert learning_curve(Ridge(), X, y, [5, 10], time=times, n_splits=3).values == [5, 10]


def test_weights_and_groups_and_classes():
    X, y = draw()
    curve = learning_curve(Ridge(), X, y, [0.5, 1.0], groups=np.arange(100) % 9, sample_weight=np.arange(100) + 1.0)
    assert curve.test.shape == (2,)
    curve = learning_curve(LogisticRegression(), X, y > 0, [10, 80])
    assert curve.metric == "accuracy" and (curve.fit_seconds > 0).all()


def test_records_are_plain():
    X, y = draw()
    for curve in (learning_curve(Ridge(), X, y, [0.5]), validation_curve(Ridge(), X, y, "alpha", np.array([1.0, 2.0]))):
        record = json.loads(json.dumps(curve.to_dict(), allow_nan=False))
        assert record["test"] == curve.test.tolist() and record["values"] == list(curve.values)


# ---- refusals ----


@pytest.mark.parametrize("sizes", [[0.0], [-1], [81], [2.5, 3.0], ["all"], [], [np.nan]])
def test_sizes_that_make_no_sense(sizes):
    with pytest.raises(ParameterError, match="sizes"):
        learning_curve(Ridge(), *draw(), sizes)


@pytest.mark.parametrize(("name", "values"), [("alpha", []), ("alpha", "1"), ("degree", [1])])
def test_parameters_that_make_no_sense(name, values):
    with pytest.raises(ParameterError, match="validation_curve"):
        validation_curve(Ridge(), *draw(), name, values)


def test_failures_name_the_point_and_the_fold():
    X, y = draw()
    with pytest.raises(ParameterError, match=r"fold 1 of 5 with alpha=-1.*alpha must be"):
        validation_curve(Ridge(), X, y, "alpha", [1.0, -1])
    with pytest.raises(DataError, match=r"fold 1 of 5 with 1 training rows.*class"):
        learning_curve(LogisticRegression(), X, y > 0, [1, 50])
