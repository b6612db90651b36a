"""The checker of the generalised linear models: honest fits pass, forgeries of every part fail."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import learnable as ln
from learnable.core.errors import VerificationError

OPTIONS = [
    (power, link, alpha, intercept)
    for power, link in [(1, "log"), (2, "log"), (1.5, "log"), (3, "log"), (0, "log"), (0, "identity"), (-1, "log")]
    for alpha in (0.0, 1e-6, 1e-2, 1.0)
    for intercept in (True, False)
] + [(1, "identity", 0.01, True), (2, "identity", 0.0, True)]


def draw(power, n=200, d=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) + np.array([0, 1, 2, 0])
    mu = np.exp(X @ [0.2, -0.1, 0.2, 0.3] + 0.5)
    y = rng.poisson(mu).astype(float) if 0 < power < 2 else rng.gamma(2.0, mu / 2)
    weight = rng.uniform(0.1, 3.0, n)
    weight[:5] = 0
    return X, y, weight


def fitted(power=1, link="log", alpha=0.01, intercept=True, **more):
    X, y, weight = draw(power)
    model = ln.TweedieRegressor(power=power, link=link, alpha=alpha, fit_intercept=intercept, **more).fit(X, y, weight)
    return model, X, y, weight


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("power", "link", "alpha", "intercept"), OPTIONS)
def test_every_option_is_verified_and_every_forgery_caught(power, link, alpha, intercept):
    model, X, y, weight = fitted(power, link, alpha, intercept)
    for table in (X, sp.csr_array(X), pd.DataFrame(X)):
        assert ln.verify(model, table, y, weight), str(ln.verify(model, table, y, weight))
    coef, b = model.coef_, model.intercept_
    model.coef_ = coef * 1.001
    assert not ln.verify(model, X, y, weight)
    model.coef_, model.intercept_ = coef, b + 1e-3
    assert not ln.verify(model, X, y, weight)
    model.intercept_ = b
    other = y.copy()
    other[10] += 1
    assert not ln.verify(model, X, other, weight)
    assert not ln.verify(model, X, y, weight * (1 + (np.arange(len(y)) == 20)))


@pytest.mark.parametrize("cls", [ln.PoissonRegressor, ln.GammaRegressor])
def test_a_gap_that_is_not_small_is_recomputed(cls):
    X, y, weight = draw(2 if cls is ln.GammaRegressor else 1)
    with pytest.warns(UserWarning, match="stopped after"):
        model = cls(alpha=1e-3, max_iter=2).fit(X, y, weight)
    verdict = ln.verify(model, X, y, weight)
    assert not verdict
    assert verdict.value == pytest.approx(model.certificate_.value, rel=1e-8)


def test_a_changed_parameter_is_another_problem():
    model, X, y, weight = fitted(alpha=0.1)
    model.alpha = 0.11
    assert not ln.verify(model, X, y, weight)
    model.alpha, model.power = 0.1, 1.1
    assert not ln.verify(model, X, y, weight)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308])
def test_numbers_that_are_none_are_caught(value):
    model, X, y, weight = fitted()
    model.coef_ = model.coef_.copy()
    model.coef_[0] = value
    assert not ln.verify(model, X, y, weight)


def test_data_of_another_shape_are_refused():
    model, X, y, weight = fitted()
    for wrong in ((X[:, :2], y, weight), (X, y[:-1], weight), (X, ["a"] * len(y), weight)):
        with pytest.raises(VerificationError):
            ln.verify(model, *wrong)
