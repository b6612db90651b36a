"""All leave-one-out fits at once against n refits, exactly."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model as peer

from learnable import LinearRegression, Ridge, RidgeCV
from learnable.data.rows import sample_door
from learnable.evaluation.conformal.base import leave_one_out_fits, numbers_of, penalty_of

read = sample_door("numeric")


def draw(n=40, d=4, seed=0, offset=3.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + offset
    return X, X @ rng.normal(size=d) + rng.normal(size=n) - 2.0, rng.uniform(0.2, 3.0, size=n)


def refit_without_each(model, X, y, weight):
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        fitted = model.fit(X[rest], y[rest], None if weight is None else weight[rest])
        yield np.ravel(fitted.coef_), float(np.ravel(fitted.intercept_)[0])


MODELS = [
    Ridge(alpha=2.0),
    Ridge(alpha=1e-9),
    Ridge(alpha=1e6, fit_intercept=False),
    LinearRegression(),
    LinearRegression(fit_intercept=False),
    peer.Ridge(alpha=0.5),
    peer.LinearRegression(),
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("shape", [(40, 4), (12, 30)], ids=["tall", "wide"])
def test_formula_equals_refits(model, weighted, shape):
    X, y, weight = draw(*shape)
    weight = weight if weighted else None
    sample = read(Ridge(), X, y, weight)
    alpha = penalty_of(model)
    fits = leave_one_out_fits("test", model, model.fit(X, y, weight), sample, alpha)
    if shape == (12, 30) and alpha < 1e-3:
        # With as many columns as rows every row determines its own fit: nothing is left to divide by.
        assert fits is None
        return
    for i, (coef, intercept) in enumerate(refit_without_each(model, X, y, weight)):
        size = np.abs(coef).max()
        np.testing.assert_allclose(fits.coef[i], coef, rtol=1e-8, atol=1e-8 * size)
        assert abs(y[i] - X[i] @ coef - intercept - fits.errors[i]) <= 1e-9 * np.abs(y).max()
    assert fits.disagreement < 1e-12


def test_a_row_that_alone_supports_a_column_is_refitted():
    X, y, _ = draw(20, 3)
    X = np.column_stack([X, np.zeros(20)])
    X[7, 3] = 1.0
    sample = read(Ridge(), X, y)
    model = LinearRegression()
    fits = leave_one_out_fits("test", model, model.fit(X, y), sample, 0.0)
    expected = list(refit_without_each(model, X, y, None))
    np.testing.assert_allclose(fits.coef, [coef for coef, _ in expected], atol=1e-9)
    np.testing.assert_allclose(fits.intercept, [intercept for _, intercept in expected], atol=1e-8)


def test_a_duplicated_column_keeps_the_minimum_norm():
    X, y, _ = draw(20, 3)
    X = np.column_stack([X, X[:, 0]])
    model = LinearRegression()
    fits = leave_one_out_fits("test", model, model.fit(X, y), read(Ridge(), X, y), 0.0)
    expected = list(refit_without_each(model, X, y, None))
    np.testing.assert_allclose(fits.coef, [coef for coef, _ in expected], atol=1e-9)


def test_sparse_rows_are_written_out():
    X, y, _ = draw()
    model = Ridge().fit(X, y)
    np.testing.assert_array_equal(numbers_of(model, sp.csr_array(X)), X)


@pytest.mark.parametrize(
    ("model", "alpha"),
    [
        (Ridge(alpha=3.0), 3.0),
        (LinearRegression(), 0.0),
        (peer.Ridge(alpha=3.0, solver="sag"), None),
        (Ridge(alpha=[1.0]), None),
        (Ridge(positive=True), None),
        (LinearRegression(positive=True), None),
        (RidgeCV(), None),
        (peer.Lasso(), None),
    ],
    ids=repr,
)
def test_only_a_fixed_quadratic_penalty_has_the_formula(model, alpha):
    assert penalty_of(model) == alpha
