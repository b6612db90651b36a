"""SCAD, MCP and powers: closed forms on orthogonal columns, enumeration in one dimension, and honest certificates."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import Lasso

import learnable as ln
from learnable import NonconvexRegression
from learnable.risk.penalties import Lq, MCPenalty, SCADPenalty

PENALTIES = {"scad": SCADPenalty, "mcp": MCPenalty, "lq": lambda strength: Lq(strength, 0.5)}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 8)) @ (np.eye(8) + 0.3 * rng.normal(size=(8, 8)))
    return X, X @ [3.0, 0, 0, -2.0, 0, 0, 1.0, 0] + rng.normal(size=80)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_orthogonal_columns_have_the_exact_thresholds(penalty):
    n = 64
    Q = np.linalg.qr(np.column_stack([np.ones(n), np.random.default_rng(1).normal(size=(n, 5))]))[0][:, 1:]
    X = np.sqrt(n) * Q
    target = np.array([3.0, -1.2, 0.4, 0.05, 2.0])
    y = X @ target + 1.0
    model = NonconvexRegression(penalty, alpha=0.5).fit(X, y)
    np.testing.assert_allclose(model.coef_, PENALTIES[penalty](0.5).prox(target, 1.0), atol=1e-6)
    assert model.certificate_.holds
    assert ln.verify(model, X, y)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("alpha", [0.05, 0.4])
def test_the_end_is_stationary_and_no_worse_than_other_descents(rows, penalty, alpha):
    X, y = rows
    model = NonconvexRegression(penalty, alpha=alpha, standardize=False).fit(X, y)
    assert model.certificate_.holds
    assert ln.verify(model, X, y)
    Z, t = X - X.mean(axis=0), y - y.mean()
    omega = PENALTIES[penalty](alpha)

    def objective(beta):
        return 0.5 * np.mean((t - Z @ beta) ** 2) + omega.value(beta)

    assert objective(model.coef_) == pytest.approx(model.objective_)
    around = model.coef_ + 1e-4 * np.random.default_rng(2).normal(size=(50, 8))
    assert all(objective(beta) >= model.objective_ - 1e-12 for beta in around)
    nearby = minimize(objective, model.coef_, method="Nelder-Mead", options={"maxiter": 400}).fun
    assert nearby >= model.objective_ - 1e-8


def test_the_true_columns_are_found_without_shrinking_them(rows):
    X, y = rows
    model = NonconvexRegression("mcp", alpha=0.6).fit(X, y)
    assert np.flatnonzero(model.coef_).tolist() == [0, 3, 6]
    chosen = np.column_stack([np.ones(80), X[:, [0, 3, 6]]])
    np.testing.assert_allclose(model.coef_[[0, 3, 6]], np.linalg.lstsq(chosen, y, rcond=None)[0][1:], atol=0.05)


def test_convex_powers_have_a_duality_gap(rows):
    X, y = rows
    lasso = NonconvexRegression("lq", q=1.0, alpha=0.3, standardize=False, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(lasso.coef_, Lasso(alpha=0.3, tol=1e-12).fit(X, y).coef_, atol=1e-4)
    smooth = NonconvexRegression("lq", q=1.5, alpha=0.3).fit(X, y)
    for model in (lasso, smooth):
        assert model.certificate_.kind == "gap"
        assert model.certificate_.holds
        assert ln.verify(model, X, y)


@pytest.mark.parametrize("attribute", ["coef_", "coef_path_", "alphas_", "objective_"])
def test_forged_ends_are_refused(rows, attribute):
    model = NonconvexRegression("scad", alpha=0.3).fit(*rows)
    setattr(model, attribute, getattr(model, attribute) * 1.001)
    assert not ln.verify(model, *rows)


def test_collinear_columns_more_columns_than_rows_and_constant_targets():
    X = np.random.default_rng(3).normal(size=(10, 4))
    wide = np.column_stack([X, X, X, np.ones(10)])
    for y in (X[:, 0], np.ones(10)):
        model = NonconvexRegression("mcp", alpha=0.1).fit(wide, y)
        assert np.isfinite(model.coef_).all()
        assert ln.verify(model, wide, y)
