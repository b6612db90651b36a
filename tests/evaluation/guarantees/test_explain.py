"""Every class declares its theorem, and the checks notice what is broken on purpose."""

import copy

import numpy as np
import pytest
from tests.registered import fitted

import learnable as ln
from learnable.core.errors import DataError, ParameterError
from learnable.core.registry import estimator_names, registered_class
from learnable.evaluation import explain_theory
from learnable.evaluation.guarantees.explain import CHECKS, equal_covariances
from learnable.evaluation.guarantees.theorems import THEOREMS

pytestmark = pytest.mark.sampled(1)  # every case is a promise of its own


KINDS = {
    *("optimality", "consistency", "rate", "oracle inequality"),
    *("coverage", "approximation", "reduction", "none"),
}


@pytest.mark.parametrize("name", estimator_names())
def test_every_registered_class_declares_its_theory_itself(name):
    cls = registered_class(name)
    assert "_theory" in vars(cls), f"{name} declares no theory: add _theory = '…' below its docstring"
    found = explain_theory(name)
    assert found.kind in KINDS
    assert found.guarantees and found.reference
    assert found.assumes or found.kind == "none"


def test_theorems_are_known_and_name_known_checks():
    used = {registered_class(name)._theory for name in estimator_names()}
    assert used <= set(THEOREMS)
    for theorem in THEOREMS.values():
        assert set(theorem.checks) <= set(CHECKS)
        assert theorem.kind in KINDS
        assert theorem.guarantees and theorem.reference


@pytest.mark.parametrize("name", estimator_names())
def test_fitted_models_are_held_against_their_data(name):
    model, X, y = fitted(name)
    found = explain_theory(copy.deepcopy(model), X, y)
    for check in found.checks:
        assert check.assumption and check.detail
        assert check.holds in (True, False, None)
    assert name in str(found)
    found.to_dict()


def named(found, word):
    return next(check for check in found.checks if word in check.assumption)


def test_gauss_markov():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X @ [1.0, -1.0, 0.5] + rng.normal(size=400)
    fine = explain_theory(ln.LinearRegression().fit(X, y), X, y)
    assert not fine.broken
    bent = X @ [1.0, -1.0, 0.5] + X[:, 0] ** 2 + 0.1 * rng.normal(size=400)
    assert named(explain_theory(ln.LinearRegression().fit(X, bent), X, bent), "linear").holds is False
    fan = X @ [1.0, -1.0, 0.5] + np.exp(X[:, 0]) * rng.normal(size=400)
    assert named(explain_theory(ln.LinearRegression().fit(X, fan), X, fan), "variance").holds is False
    far = X.copy()
    far[7] = 1000.0
    assert named(explain_theory(ln.LinearRegression().fit(far, y), far, y), "single row").holds is False
    drift = y + np.linspace(0.0, 3.0, 400)
    assert named(explain_theory(ln.LinearRegression().fit(X, drift), X, drift), "exchangeable").holds is False


def test_false_alarms_of_the_regression_checks_are_rare():
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(150):
        X = rng.normal(size=(80, 2))
        y = X[:, 0] + rng.normal(size=80)
        alarms += len(explain_theory(ln.LinearRegression().fit(X, y), X, y).broken)
    assert alarms <= 6


def test_lasso_irrepresentable_condition_is_the_formula():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=300)
    model = ln.Lasso(alpha=0.1).fit(X, y)
    assert named(explain_theory(model, X, y), "irrepresentable").holds is True
    # A third column that is the sum of the two others: its value is about 2.
    Z = np.column_stack([X[:, :2], X[:, 0] + X[:, 1] + 0.01 * rng.normal(size=300)])
    model = ln.Lasso(alpha=0.1).fit(Z, y)
    chosen = model.coef_ != 0
    centred = Z - Z.mean(axis=0)
    S, N = centred[:, chosen], centred[:, ~chosen]
    value = np.abs(N.T @ S @ np.linalg.inv(S.T @ S) @ np.sign(model.coef_[chosen])).max()
    check = named(explain_theory(model, Z, y), "irrepresentable")
    assert f"{value:.3f}" in check.detail
    assert check.holds is bool(value < 1)


def test_duplicates_overlap_and_chains():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    twice, labels = np.vstack([X, X[:5]]), np.r_[y, y[:5]]
    order = rng.permutation(65)
    twice, labels = twice[order], labels[order]
    found = explain_theory(ln.LogisticRegression().fit(twice, labels), twice, labels)
    assert "5 of 65" in named(found, "twice").detail and named(found, "twice").holds is False
    noisy = y ^ (rng.random(60) < 0.3)
    assert named(explain_theory(ln.LogisticRegression().fit(X, noisy), X, noisy), "overlap").holds is True
    model, rows, _ = fitted("GaussianHMM")
    model = copy.deepcopy(model)
    k = len(model.transmat_)
    model.transmat_ = np.full((k, k), 1.0 / k)
    assert explain_theory(model, rows).checks[0].holds is True
    model.transmat_ = np.roll(np.eye(k), 1, axis=1)
    assert explain_theory(model, rows).checks[0].holds is False  # a cycle has a period
    model.transmat_ = np.eye(k)
    assert explain_theory(model, rows).checks[0].holds is False  # nobody leaves


def test_discriminants():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 2))
    y = rng.integers(0, 2, 400)
    same = X + y[:, None]
    assert not explain_theory(ln.LinearDiscriminantAnalysis().fit(same, y), same, y).broken
    wide = X * (1.0 + 2.0 * y[:, None]) + y[:, None]
    assert named(explain_theory(ln.LinearDiscriminantAnalysis().fit(wide, y), wide, y), "covariance").holds is False
    tied = np.column_stack([X[:, 0], X[:, 0] + 0.3 * X[:, 1]])
    assert named(explain_theory(ln.GaussianNB().fit(tied, y), tied, y), "within classes").holds is False


def test_what_cannot_be_explained_is_refused():
    with pytest.raises(ParameterError, match="no model"):
        explain_theory("Ridgee")
    with pytest.raises(ParameterError, match="declares no theory"):
        explain_theory(object())
    with pytest.raises(ParameterError, match="Fit it first"):
        explain_theory("Ridge", [[1.0]], [1.0])
    with pytest.raises(DataError, match="not fitted"):
        explain_theory(ln.Ridge(), [[1.0]], [1.0])


@pytest.mark.parametrize("equal", [True, False])
def test_covariances_are_compared_although_indicators_of_a_category_add_up_to_one(equal):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    x = rng.normal(size=2000) * (1.0 if equal else 1.0 + y)
    level = rng.integers(0, 3, 2000)
    X = np.column_stack([x + y, level == 0, level == 1, level == 2]).astype(float)
    found = equal_covariances(ln.LinearDiscriminantAnalysis().fit(X, y), X, y)
    statistic = float(found.detail.split("χ² = ")[1].split(",")[0])
    assert statistic >= 0.0 and found.holds is (None if equal else False)
