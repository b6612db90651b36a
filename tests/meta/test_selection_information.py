"""AIC and BIC against the textbook, published numbers and brute force."""

import json

import numpy as np
import pytest
from scipy import stats
from sklearn import linear_model as peer
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from learnable import LinearRegression, LogisticRegression, Ridge, RidgeCV
from learnable.core import ParameterError
from learnable.data.rows import read_rows
from learnable.meta.selection import degrees_of_freedom, information_criterion, log_likelihood


def draw(n=50, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * [1.0, 5.0, 0.2][:d]
    return X, X.sum(axis=1) + rng.normal(size=n)


def criteria(model, X, y, weight=None):
    table = read_rows("test", X, y, weight)
    return [information_criterion("test", model, table, rule) for rule in ("aic", "bic")]


# ---- least squares ----


@pytest.mark.parametrize("make", [LinearRegression, peer.LinearRegression])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_a_linear_model_has_the_textbooks_criteria(make, fit_intercept, weighted):
    X, y = draw()
    weight = np.random.default_rng(1).uniform(0.3, 3.0, 50) if weighted else None
    model = make(fit_intercept=fit_intercept).fit(X, y, weight)
    w = np.ones(50) if weight is None else weight
    residual = y - model.predict(X)
    sigma = np.sqrt(w @ residual**2 / 50)
    likelihood = stats.norm.logpdf(residual, scale=sigma / np.sqrt(w)).sum()
    k = 3 + fit_intercept + 1
    expected = [-2 * likelihood + 2 * k, -2 * likelihood + np.log(50) * k]
    np.testing.assert_allclose(criteria(model, X, y, weight), expected, rtol=1e-12)


def test_longley_has_its_known_criteria(reference_data):
    """From the certified residual sum of squares; R's AIC(lm(...)) counts the variance as well."""
    folder = reference_data / "nist_strd"
    data = np.genfromtxt(folder / "Longley.csv", delimiter=",", skip_header=1)
    certified = json.loads((folder / "certified.json").read_text(encoding="utf-8"))["Longley"]
    X, y = data[:, :-1], data[:, -1]
    spread = float(certified["residual_std"])
    likelihood = -8 * (np.log(2 * np.pi * 9 * spread**2 / 16) + 1)
    expected = [-2 * likelihood + 16, -2 * likelihood + 8 * np.log(16)]
    np.testing.assert_allclose(criteria(LinearRegression().fit(X, y), X, y), expected, rtol=1e-10)
    # statsmodels 0.15, OLS of these data: aic 233.2348696169703, bic 238.64299067264875, the variance not counted.
    np.testing.assert_allclose(expected[0] - 2, 233.2348696169703, rtol=1e-10)
    np.testing.assert_allclose(expected[1] - np.log(16), 238.64299067264875, rtol=1e-10)


def test_dependent_columns_do_not_count():
    X, y = draw()
    wide = np.column_stack([X, X[:, 0] - X[:, 1], np.ones(50)])
    table = read_rows("test", wide, y)
    assert degrees_of_freedom("test", LinearRegression().fit(wide, y), table) == pytest.approx(5.0)


def test_several_targets_add_up():
    X, y = draw()
    Y = np.column_stack([y, y**2])
    both = criteria(LinearRegression().fit(X, Y), X, Y)
    each = [criteria(LinearRegression().fit(X, Y[:, k]), X, Y[:, k]) for k in range(2)]
    np.testing.assert_allclose(both, np.sum(each, axis=0))


def test_a_perfect_fit_is_finite():
    X, _ = draw()
    assert np.isfinite(criteria(LinearRegression().fit(X, X[:, 0]), X, X[:, 0])).all()
    assert np.isfinite(criteria(LinearRegression().fit(X, np.zeros(50)), X, np.zeros(50))).all()


# ---- penalties ----


@pytest.mark.parametrize("alpha", [1e-6, 1.0, 50.0, 1e9])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_ridge_has_the_trace_of_its_hat_matrix(alpha, fit_intercept, weighted):
    X, y = draw(20)
    weight = np.random.default_rng(1).uniform(0.3, 3.0, 20) if weighted else None
    model = Ridge(alpha=alpha, fit_intercept=fit_intercept)
    trace = np.trace(model.fit(X, np.eye(20), weight).predict(X))
    table = read_rows("test", X, y, weight)
    for one in (Ridge(alpha, fit_intercept=fit_intercept), peer.Ridge(alpha, fit_intercept=fit_intercept)):
        found = degrees_of_freedom("test", one.fit(X, y, weight), table)
        assert found == pytest.approx(trace + 1, rel=1e-9)


def test_ridge_cv_and_one_penalty_a_target():
    X, y = draw()
    table = read_rows("test", X, y)
    chosen = RidgeCV([0.1, 10.0]).fit(X, y)
    assert degrees_of_freedom("test", chosen, table) == degrees_of_freedom(
        "test", Ridge(chosen.alpha_).fit(X, y), table
    )
    Y = np.column_stack([y, y])
    both = degrees_of_freedom("test", Ridge([1.0, 100.0]).fit(X, Y), read_rows("test", X, Y))
    assert both == pytest.approx(sum(degrees_of_freedom("test", Ridge(a).fit(X, y), table) for a in (1.0, 100.0)))


def test_the_lasso_counts_what_is_not_zero():
    X, y = draw()
    model = peer.Lasso(0.5).fit(X, y)
    expected = np.count_nonzero(model.coef_) + 2
    assert degrees_of_freedom("test", model, read_rows("test", X, y)) == expected < 5


# ---- classification ----


@pytest.mark.parametrize("n_classes", [2, 4])
def test_unpenalised_logistic_regression_counts_its_coefficients(n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) * [1.0, 100.0, 0.01]
    y = rng.integers(n_classes, size=300)
    model = LogisticRegression(C=np.inf).fit(X, y)
    table = read_rows("test", X, y)
    k = (n_classes - 1) * 4
    assert degrees_of_freedom("test", model, table) == pytest.approx(k, rel=1e-6)
    likelihood = np.log(model.predict_proba(X)[np.arange(300), y]).sum()
    assert log_likelihood("test", model, table) == pytest.approx(likelihood)
    np.testing.assert_allclose(criteria(model, X, y), [-2 * likelihood + 2 * k, -2 * likelihood + k * np.log(300)])


def test_penalised_logistic_regression_has_fewer():
    X, y = draw(200)
    y = y > 0
    table = read_rows("test", X, y)
    found = [degrees_of_freedom("test", LogisticRegression(C=c).fit(X, y), table) for c in (1e-4, 1e-2, 1.0, 1e6)]
    assert (np.diff(found) > 0).all() and found[0] > 1.0 and found[-1] == pytest.approx(4.0, abs=1e-3)


def test_penalised_logistic_freedom_is_how_fitted_values_follow_the_targets():
    """k = Σ ∂p̂ᵢ/∂yᵢ: refits to targets moved by weights, one row at a time."""
    X, y = draw(40)
    y = (y > 0).astype(int)
    rows, labels = np.vstack([X, X]), np.r_[y, 1 - y]
    slope = 0.0
    for row in range(40):
        shares = []
        for step in (1e-4, 2e-4):  # a share `step` of the row gets the other label
            weight = np.r_[np.ones(40), np.zeros(40)]
            weight[row], weight[40 + row] = 1 - step, step
            model = LogisticRegression(C=0.5, tol=1e-14).fit(rows, labels, weight)
            shares.append(model.predict_proba(X[row : row + 1])[0, 1])
        slope += (shares[1] - shares[0]) / 1e-4 * (1 if y[row] == 0 else -1)
    found = degrees_of_freedom("test", LogisticRegression(C=0.5).fit(X, y), read_rows("test", X, y))
    assert found == pytest.approx(slope, rel=1e-2)


# ---- other models ----


def test_pipelines_are_looked_into():
    X, y = draw()
    table = read_rows("test", X, y)
    assert degrees_of_freedom(
        "test", make_pipeline(PolynomialFeatures(2), LinearRegression()).fit(X, y), table
    ) == pytest.approx(11)
    scaled = make_pipeline(StandardScaler(), Ridge(3.0)).fit(X, y)
    expected = degrees_of_freedom(
        "test", Ridge(3.0).fit(scaled[0].transform(X), y), read_rows("test", scaled[0].transform(X), y)
    )
    assert degrees_of_freedom("test", scaled, table) == expected


def test_models_with_their_own_criteria():
    X, _ = draw()
    model = GaussianMixture(2, random_state=0).fit(X)
    assert criteria(model, X, None) == [model.aic(X), model.bic(X)]


class OwnNumbers(RegressorMixin, BaseEstimator):
    degrees_of_freedom_ = 4.0

    def log_likelihood(self, X, y, sample_weight=None):
        return -10.0


def test_models_that_say_their_likelihood():
    X, y = draw()
    assert criteria(OwnNumbers(), X, y) == [20.0 + 2 * 5, pytest.approx(20.0 + 5 * np.log(50))]


def test_models_without_a_likelihood_or_a_number_of_parameters():
    X, y = draw()
    table = read_rows("test", X, y)
    model = KNeighborsRegressor().fit(X, y)
    with pytest.raises(ParameterError, match="degrees of freedom of KNeighborsRegressor are not known"):
        information_criterion("test", model, table, "aic")
    assert np.isfinite(information_criterion("test", model, table, "aic", lambda fitted: 10))
    with pytest.raises(ParameterError, match="StandardScaler has none"):
        information_criterion("test", StandardScaler().fit(X), table, "bic")
