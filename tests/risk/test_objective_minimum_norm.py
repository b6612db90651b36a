"""Without a penalty, dependent columns leave one solution: that of the smallest norm, whatever the solver."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable import GammaRegressor, LogisticRegression, PoissonRegressor, TweedieRegressor, verify

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

MODELS = {
    "poisson": PoissonRegressor(alpha=0.0),
    "gamma": GammaRegressor(alpha=0.0),
    "normal": TweedieRegressor(alpha=0.0),
    "logistic": LogisticRegression(C=np.inf),
}


def dependent_columns(seed, n=60):
    """Rows with a sum of columns, a copy in other units, and a constant column; counts and classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X = np.column_stack([X, X[:, 0] + X[:, 1], np.full(n, 2.0), 100.0 * X[:, 2]])
    return X, rng.poisson(np.exp(0.3 * X[:, 0])) + 1.0, (X[:, 0] + 2 * rng.normal(size=n) > 0).astype(int)


@settings(deadline=None, max_examples=12)
@given(
    seed=st.integers(0, 10**6),
    name=st.sampled_from(sorted(MODELS)),
    solver=st.sampled_from(["auto", "lbfgs", "newton-cg", "newton-cholesky"]),
    intercept=st.booleans(),
)
def test_the_solution_is_the_pseudo_inverse_of_its_own_scores(seed, name, solver, intercept):
    X, counts, codes = dependent_columns(seed)
    model = MODELS[name].set_params(solver=solver, fit_intercept=intercept, max_iter=1000)
    model.fit(X, codes if name == "logistic" else counts)
    rows = X - X.mean(axis=0) if intercept else X
    coef = np.ravel(model.coef_)
    np.testing.assert_allclose(coef, np.linalg.pinv(rows) @ (rows @ coef), atol=1e-10 * (1 + np.abs(coef).max()))


@pytest.mark.parametrize("name", MODELS)
def test_the_certificate_is_about_that_solution(name):
    X, counts, codes = dependent_columns(0)
    y = codes if name == "logistic" else counts
    model = MODELS[name].set_params(solver="auto", fit_intercept=True).fit(X, y)
    assert model.certificate_.holds and verify(model, X, y)
