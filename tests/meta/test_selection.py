"""The choice of a parameter: by its rule, on the same folds, and right in the long run."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from learnable import LinearRegression, LogisticRegression, Ridge
from learnable.core import DataError, ParameterError
from learnable.meta.selection import select, standard_errors, within_one_error
from learnable.meta.splits import make_splits


def draw(n=80, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] - X[:, 1] + rng.normal(size=n)


def curve(n, seed=0, noise=0.5):
    """A parabola with noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, 1))
    return x, 1 + x[:, 0] - 2 * x[:, 0] ** 2 + noise * rng.normal(size=n)


POLYNOMIAL = make_pipeline(PolynomialFeatures(include_bias=False), LinearRegression())
DEGREE = "polynomialfeatures__degree"
ALPHAS = [1000.0, 100.0, 10.0, 1.0, 0.1]


# ---- rules ----


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=8), st.floats(0, 3))
def test_one_standard_error_holds_all_that_are_close_to_the_best(means, error):
    means = np.array(means)
    good = within_one_error(means, np.full(len(means), error))
    assert good[np.argmax(means)]
    assert (good == (means >= means.max() - error)).all()


def test_the_best_mean_is_that_of_a_grid_search():
    X, y = draw()
    splits = make_splits(80)
    grid = GridSearchCV(Ridge(), {"alpha": ALPHAS}, cv=splits, scoring="neg_mean_squared_error").fit(X, y)
    found = select(Ridge(), X, y, "alpha", ALPHAS, scoring="neg_mean_squared_error")
    assert found.value == grid.best_params_["alpha"] and found.metric == "neg_mean_squared_error"
    np.testing.assert_allclose(found.criterion, grid.cv_results_["mean_test_score"], rtol=1e-12)
    spread = np.array([grid.cv_results_[f"split{k}_test_score"] for k in range(5)]).std(axis=0, ddof=1)
    np.testing.assert_allclose(found.standard_errors, spread / np.sqrt(5), rtol=1e-10)
    np.testing.assert_allclose(found.model.coef_, grid.best_estimator_.coef_)
    assert found.scores.shape == (5, 5) and found.model.alpha == found.value == found.values[found.index]


@pytest.mark.parametrize("seed", range(5))
def test_one_standard_error_takes_the_simplest_within_it(seed):
    X, y = draw(40, seed=seed)
    best, simple = (select(Ridge(), X, y, "alpha", ALPHAS, rule=rule) for rule in ("min", "1se"))
    limit = best.criterion[best.index] - best.standard_errors[best.index]
    assert simple.index <= best.index
    assert simple.criterion[simple.index] >= limit
    assert (simple.criterion[: simple.index] < limit).all()
    turned = select(Ridge(), X, y, "alpha", ALPHAS[::-1], rule="1se", simplest="last")
    assert turned.value == simple.value


def test_a_tie_goes_to_the_simpler_value():
    X, y = draw()
    for rule in ("min", "1se", "aic", "bic"):
        assert select(Ridge(), X, y, "alpha", [1.0, 1.0, 1.0], rule=rule).index == 0
        assert select(Ridge(), X, y, "alpha", [1.0, 1.0, 1.0], rule=rule, simplest="last").index == 2


def test_number_of_neighbours_and_of_components():
    X, y = draw()
    found = select(KNeighborsClassifier(), X, y > 0, "n_neighbors", [30, 10, 3, 1], rule="1se")
    assert found.metric == "accuracy" and found.value in (30, 10, 3)
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(centre, 0.3, size=(100, 1)) for centre in (-3, 0, 4)])
    mixture = GaussianMixture(random_state=0)
    for rule in ("bic", "1se"):
        assert select(mixture, points, None, "n_components", [1, 2, 3, 4, 5], rule=rule).value == 3


# ---- in the long run ----


def test_bic_finds_the_degree_as_rows_come_in():
    degrees = [0, 1, 2, 3, 4, 5]
    hits = {}
    for n in (10, 300):
        hits[n] = sum(
            select(POLYNOMIAL, *curve(n, seed), DEGREE, degrees[1:], rule="bic", refit=False).value == 2
            for seed in range(20)
        )
    assert hits[300] >= 18 and hits[300] > hits[10]


def test_aic_allows_more_than_bic():
    """At n = 300 both never choose too small a degree; the AIC takes a larger one about one time in five."""
    chosen = {
        rule: [
            select(POLYNOMIAL, *curve(300, seed), DEGREE, [1, 2, 3, 4], rule=rule, refit=False).value
            for seed in range(40)
        ]
        for rule in ("aic", "bic")
    }
    assert min(chosen["aic"]) == min(chosen["bic"]) == 2
    assert sum(value > 2 for value in chosen["bic"]) < sum(value > 2 for value in chosen["aic"]) < 20


@pytest.mark.long
def test_bic_is_consistent():
    rates = []
    for n in (50, 500, 5000):
        chosen = [
            select(POLYNOMIAL, *curve(n, seed), DEGREE, [1, 2, 3, 4, 5], rule="bic", refit=False).value
            for seed in range(200)
        ]
        rates.append(np.mean(np.array(chosen) == 2))
    assert rates[0] < rates[1] <= rates[2] and rates[2] > 0.98


def test_the_criterion_of_least_squares_in_a_path():
    x, y = curve(100)
    found = select(POLYNOMIAL, x, y, DEGREE, [1, 2, 3], rule="aic")
    for number, degree in enumerate([1, 2, 3]):
        coefficients = np.polynomial.polynomial.polyfit(x[:, 0], y, degree)
        rss = ((y - np.polynomial.polynomial.polyval(x[:, 0], coefficients)) ** 2).sum()
        expected = 100 * (np.log(2 * np.pi * rss / 100) + 1) + 2 * (degree + 2)
        assert found.criterion[number] == pytest.approx(expected, rel=1e-9)
    assert found.metric == "AIC" and np.isnan(found.standard_errors).all() and found.scores.shape == (3, 0)


# ---- inputs ----


def test_frames_names_weights_and_groups():
    X, y = draw()
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(y=y, w=np.arange(80) + 1.0, city=np.arange(80) % 9)
    found = select(Ridge(), frame, "y", "alpha", ALPHAS, sample_weight="w", groups="city")
    same = select(Ridge(), X, y, "alpha", ALPHAS, sample_weight=frame["w"], groups=frame["city"])
    np.testing.assert_allclose(found.scores, same.scores, rtol=1e-10)
    assert list(found.model.feature_names_in_) == list("abcdef")
    expected = Ridge(found.value).fit(X, y, np.arange(80) + 1.0)
    np.testing.assert_allclose(found.model.coef_, expected.coef_)


def test_pipelines_and_splits():
    X, y = draw()
    model = make_pipeline(StandardScaler(), LogisticRegression())
    found = select(
        model, X, y > 0, "logisticregression__C", [0.01, 1.0, 100.0], scheme=make_splits(80, n_splits=3), refit=False
    )
    assert found.scores.shape == (3, 3) and found.model is None
    assert select(model, X, y > 0, "logisticregression__C", [0.01, 1.0, 100.0], rule="bic").model is not None
    assert "logisticregression__C=" in repr(found)


def test_one_fold_has_no_standard_error():
    assert standard_errors(np.ones((2, 1))).tolist() == [np.inf, np.inf]
    X, y = draw()
    found = select(Ridge(), X, y, "alpha", ALPHAS, rule="1se", scheme=[(np.arange(60), np.arange(60, 80))])
    assert found.index == 0  # nothing is known of the spread: the simplest


# ---- refusals ----


@pytest.mark.parametrize(
    ("name", "values", "options", "message"),
    [
        ("alpha", [], {}, "one or more candidates"),
        ("alpha", "abc", {}, "one or more candidates"),
        ("alfa", [1.0], {}, "has no parameter 'alfa'"),
        ("alpha", [1.0], {"rule": "best"}, "rule"),
        ("alpha", [1.0], {"simplest": "left"}, "simplest"),
        ("alpha", [1.0, -1.0], {}, r"fold 1 of 5 with alpha=-1\.0"),
        ("alpha", [1.0, -1.0], {"rule": "bic"}, r"the fit to all rows with alpha=-1\.0"),
        ("solver", ["auto", "magic"], {}, "solver"),
    ],
)
def test_wrong_parameters_are_named(name, values, options, message):
    with pytest.raises(ParameterError, match=message):
        select(Ridge(), *draw(), name, values, **options)


def test_data_that_do_not_suffice():
    with pytest.raises(DataError, match="select: 3 row"):
        select(Ridge(), np.ones((3, 1)), [1.0, 2.0, 3.0], "alpha", [1.0])
    with pytest.raises(DataError, match=r"fold 1 of 5 with alpha=1.0.*score.*nan"):
        select(Ridge(), *draw(), "alpha", [1.0], scoring=lambda model, X, y: np.nan)
