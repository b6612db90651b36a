"""Bootstrap estimates against the formulas of Efron and Tibshirani (1997), computed here once more by brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import SVC

from learnable import LinearRegression, LogisticRegression, Ridge
from learnable.core import DataError, ParameterError
from learnable.data.rows import read_rows
from learnable.evaluation import bootstrap_risk, evaluate
from learnable.evaluation.estimates import resampling as module

unit = st.floats(0.0, 1.0)


def classes(n=60, d=4, signal=1.0, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, d)) + signal * y[:, None], y


# ---- the rule ----


@given(unit, unit, unit)
def test_632_plus_is_between_the_apparent_and_the_out_of_bag_error(apparent, out_of_bag, no_information):
    value, overfitting, weight = module.point632_plus(apparent, out_of_bag, no_information)
    assert 0.0 <= overfitting <= 1.0 and 0.632 <= weight <= 1.0 + 1e-12
    low, high = sorted((apparent, out_of_bag))
    assert low - 1e-12 <= value <= high + 1e-12


@given(unit, unit, unit)
def test_632_plus_is_the_papers_formula(apparent, out_of_bag, no_information):
    """Equations (29) to (32): Err.632+ = Err.632 + (Err₁' − err) .368·.632·R'/(1 − .368 R')."""
    capped = min(out_of_bag, no_information)
    r = 0.0
    if out_of_bag > apparent and no_information > apparent:
        r = (capped - apparent) / (no_information - apparent)
    err1 = capped if r > 0 else out_of_bag
    plain = 0.368 * apparent + 0.632 * err1
    expected = plain + (err1 - apparent) * 0.368 * 0.632 * r / (1 - 0.368 * r)
    np.testing.assert_allclose(module.point632_plus(apparent, out_of_bag, no_information)[0], expected, atol=1e-12)


def test_nothing_learned_gives_the_out_of_bag_error_and_no_overfitting_the_plain_rule():
    assert module.point632_plus(0.0, 0.5, 0.5)[0] == pytest.approx(0.5)
    assert module.point632_plus(0.1, 0.1, 0.5) == pytest.approx((0.1, 0.0, 0.632))


# ---- against brute force ----


@pytest.mark.parametrize(
    ("model", "metric"),
    [
        (KNeighborsClassifier(1), "accuracy"),
        (LogisticRegression(), "neg_log_loss"),
        (Ridge(), "neg_mean_squared_error"),
        (KNeighborsRegressor(2), "neg_mean_absolute_error"),
        (LinearRegression(), "r2"),
        (LinearRegression(), "neg_root_mean_squared_error"),
    ],
)
def test_the_estimates_are_the_definitions(model, metric):
    X, y = classes(40)
    if not hasattr(model, "predict_proba"):
        y = y + np.random.default_rng(1).normal(size=40)

    def losses(fitted, rows):
        if metric == "accuracy":
            return (fitted.predict(X[rows]) != y[rows]).astype(float)
        if metric == "neg_log_loss":
            return -np.log(fitted.predict_proba(X[rows])[np.arange(len(rows)), y[rows]])
        difference = y[rows] - fitted.predict(X[rows])
        return np.abs(difference) if "absolute" in metric else difference**2

    found = bootstrap_risk(model, X, y, scoring=metric, n_resamples=30, random_state=3)
    table = read_rows("test", X, y)
    splits = module._resamples("test", model, table, 30, np.random.default_rng(3))
    out = [[] for _ in y]
    for train, test in splits:
        assert not set(train) & set(test) and len(train) == 40
        for row, value in zip(test, losses(clone(model).fit(X[train], y[train]), test), strict=True):
            out[row].append(value)
    err1 = np.mean([np.mean(values) for values in out])
    whole = clone(model).fit(X, y)
    err = losses(whole, np.arange(40)).mean()
    if metric == "neg_log_loss":
        proba = whole.predict_proba(X)
        gamma = np.mean([-np.log(proba[j, y[i]]) for i in range(40) for j in range(40)])
    else:
        predicted = whole.predict(X)
        pair = {"accuracy": lambda a, b: float(a != b), "neg_mean_absolute_error": lambda a, b: abs(a - b)}
        each = pair.get(metric, lambda a, b: (a - b) ** 2)
        gamma = np.mean([each(y[i], predicted[j]) for i in range(40) for j in range(40)])
    as_score = {
        "accuracy": lambda e: 1 - e,
        "r2": lambda e: 1 - e / y.var(),
        "neg_root_mean_squared_error": lambda e: -np.sqrt(e),
    }.get(metric, lambda e: -e)
    plus, overfitting, weight = module.point632_plus(err, err1, gamma)
    np.testing.assert_allclose(
        [found.apparent, found.out_of_bag, found.no_information, found.point632, found.point632_plus],
        [as_score(e) for e in (err, err1, gamma, 0.368 * err + 0.632 * err1, plus)],
        rtol=1e-9,
    )
    np.testing.assert_allclose([found.overfitting, found.weight], [overfitting, weight], rtol=1e-9)
    for name, value in (("bootstrap", found.out_of_bag), (".632", found.point632), (".632+", found.point632_plus)):
        assert found.interval[name].low <= value <= found.interval[name].high
        estimate = evaluate(model, X, y, scheme=name, scoring=metric, n_resamples=30, random_state=3)
        assert estimate.mean == value and estimate.interval == found.interval[name]


def test_metrics_that_are_no_means_over_rows():
    X, y = classes(60)
    found = bootstrap_risk(LogisticRegression(), X, y, scoring="roc_auc", n_resamples=20)
    assert found.out_of_bag == pytest.approx(found.scores.mean())
    assert abs(found.no_information - 0.5) < 0.05
    assert found.out_of_bag <= found.point632_plus <= found.point632 <= found.apparent
    assert found.interval[".632+"].low < found.point632_plus < found.interval[".632+"].high


# ---- what it is good for ----


def test_632_plus_sees_through_overfitting_and_632_does_not():
    """One nearest neighbour on noise: the true error is one half, the apparent error is none."""
    X, y = classes(80, signal=0.0, seed=1)
    found = bootstrap_risk(KNeighborsClassifier(1), X, y, n_resamples=50)
    assert found.apparent == 1.0
    assert abs(found.point632_plus - 0.5) < 0.1
    assert found.point632 > 0.62


@pytest.mark.long
def test_intervals_of_the_bootstrap_cover_the_risk():
    """At n = 100 the interval over rows holds the risk of the fit to all rows about as often as promised."""
    rng = np.random.default_rng(0)
    X_new = rng.normal(size=(20_000, 3))
    y_new = X_new.sum(axis=1) + rng.normal(size=20_000)
    covered = 0
    for _ in range(300):
        X = rng.normal(size=(100, 3))
        y = X.sum(axis=1) + rng.normal(size=100)
        risk = np.mean((y_new - LinearRegression().fit(X, y).predict(X_new)) ** 2)
        found = bootstrap_risk(
            LinearRegression(), X, y, scoring="neg_mean_squared_error", n_resamples=50, random_state=rng
        )
        covered += found.interval[".632+"].low <= -risk <= found.interval[".632+"].high
    assert covered / 300 > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 300) - 0.02


# ---- inputs ----


def test_weights_are_used_in_fits_and_scores():
    X, y = classes(50)
    target = y + 0.1 * X[:, 0]
    weight = np.where(np.arange(50) < 25, 1.0, 1e-9)
    found = bootstrap_risk(LinearRegression(), X, target, sample_weight=weight, n_resamples=20)
    heavy = LinearRegression().fit(X[:25], target[:25])
    assert found.apparent == pytest.approx(heavy.score(X[:25], target[:25]), abs=1e-6)
    with pytest.raises(DataError, match="takes no sample_weight"):
        bootstrap_risk(KNeighborsRegressor(), X, target, sample_weight=weight)


def test_a_rare_class_is_in_every_resample_or_the_error_says_so():
    X, y = classes(30)
    y[:] = 0
    y[3] = 1
    found = bootstrap_risk(LogisticRegression(), X, y, n_resamples=10, scoring="neg_log_loss")
    assert np.isfinite(found.point632_plus)
    found = bootstrap_risk(DummyClassifier(), X, np.zeros(30), n_resamples=5)
    assert found.apparent == found.out_of_bag == 1.0


def test_probabilities_of_a_class_that_a_resample_lacks():
    X, y = classes(30)
    y[5] = 2
    model = RandomForestClassifier(n_estimators=5, random_state=0)
    found = bootstrap_risk(model, X, y, n_resamples=10, scoring="neg_log_loss")
    assert np.isfinite(found.out_of_bag)


@pytest.mark.parametrize(("n_resamples", "level"), [(1, 0.9), (10.5, 0.9), (10, 90)])
def test_wrong_parameters_are_refused(n_resamples, level):
    with pytest.raises(ParameterError):
        bootstrap_risk(Ridge(), [[1.0], [2.0]], [1.0, 2.0], n_resamples=n_resamples, level=level)


def test_too_few_rows_and_no_targets():
    with pytest.raises(DataError, match="at least 2 rows"):
        bootstrap_risk(Ridge(), [[1.0]], [1.0])
    with pytest.raises(DataError, match="needs targets"):
        bootstrap_risk(Ridge(), [[1.0], [2.0]], None)


def test_a_model_that_fails_names_the_resample():
    X, y = classes(20)
    with pytest.raises(DataError, match="SVC failed in the fit to all rows"):
        bootstrap_risk(SVC(kernel="no such kernel"), X, y, n_resamples=5)
