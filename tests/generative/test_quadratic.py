"""Quadratic discriminants: scikit-learn's numbers, the definition, published errors, units that differ by 10¹⁷."""

import numpy as np
import pytest
from sklearn.covariance import OAS
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis as Reference
from tests.oracles.generative import discriminant, normal_posterior

from learnable import QuadraticDiscriminantAnalysis, verify
from learnable.core.errors import DataError, ParameterError


def make(n=400, d=3, K=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    X = np.empty((n, d))
    for k in range(K):
        X[y == k] = rng.normal(size=((y == k).sum(), d)) @ (np.eye(d) + 0.2 * rng.normal(size=(d, d))) + rng.normal(
            size=d
        )
    return X, y


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"reg_param": 0.2, "store_covariance": True},
        {"solver": "eigen", "shrinkage": 0.3},
        {"solver": "eigen", "shrinkage": "auto", "store_covariance": True},
        {"solver": "eigen", "covariance_estimator": OAS()},
    ],
    ids=str,
)
def test_it_is_scikit_learns(parameters, K):
    X, y = make(K=K)
    ours, theirs = QuadraticDiscriminantAnalysis(**parameters).fit(X, y), Reference(**parameters).fit(X, y)
    for method in ("predict_proba", "decision_function", "predict"):
        np.testing.assert_allclose(getattr(ours, method)(X), getattr(theirs, method)(X), rtol=1e-8, atol=1e-10)
    for k in range(K):
        np.testing.assert_allclose(ours.scalings_[k], theirs.scalings_[k], rtol=1e-10)
        np.testing.assert_allclose(abs(ours.rotations_[k]), abs(theirs.rotations_[k]), rtol=1e-6, atol=1e-9)
        if "store_covariance" in parameters:
            np.testing.assert_allclose(ours.covariance_[k], theirs.covariance_[k], rtol=1e-9, atol=1e-12)
    assert verify(ours, X, y)


def test_it_is_bayes_rule_with_normal_densities():
    X, y = make()
    means, _, own, shares = discriminant(X, y)
    model = QuadraticDiscriminantAnalysis().fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), normal_posterior(X, means, own, shares), rtol=1e-8, atol=1e-14)
    joint = np.stack([model.densities()[k].logpdf(X) for k in range(3)], axis=1) + np.log(shares)
    np.testing.assert_allclose(model.predict_joint_log_proba(X), joint, rtol=1e-9)


def test_reference_errors(reference_data):
    """Test errors that scikit-learn 1.9.1 gives: Pima .23494, letters .12525 (Statlog's split: .113)."""
    pd = pytest.importorskip("pandas")
    train, test = (pd.read_csv(reference_data / f"pima_ripley_{part}.csv") for part in ("train", "test"))
    model = QuadraticDiscriminantAnalysis().fit(train.iloc[:, :-1], train.iloc[:, -1])
    assert 1 - model.score(test.iloc[:, :-1], test.iloc[:, -1]) == pytest.approx(0.23494, abs=1e-5)
    letters = pd.read_csv(reference_data / "letter_recognition.csv.gz")
    X, y = letters.iloc[:, :-1].to_numpy(float), letters.iloc[:, -1].to_numpy()
    model = QuadraticDiscriminantAnalysis().fit(X[:16_000], y[:16_000])
    assert 1 - model.score(X[16_000:], y[16_000:]) == pytest.approx(0.12525)


def test_units_do_not_matter():
    X, y = make()
    units, offset = np.array([1e-8, 1.0, 1e9]), np.array([0.0, 1e6, 1e12])
    moved = X * units + offset
    model = QuadraticDiscriminantAnalysis().fit(moved, y)
    np.testing.assert_allclose(
        model.predict_proba(moved), QuadraticDiscriminantAnalysis().fit(X, y).predict_proba(X), atol=1e-6
    )
    assert verify(model, moved, y)


@pytest.mark.threaded
def test_weights_count_rows_and_threads_change_no_bit():
    X, y = make()
    w = np.random.default_rng(1).integers(0, 3, len(y))
    weighted = QuadraticDiscriminantAnalysis().fit(X, y, w)
    repeated = QuadraticDiscriminantAnalysis().fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-8)
    one, two = (QuadraticDiscriminantAnalysis(n_jobs=n).fit(X, y) for n in (1, 2))
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))


def test_a_class_without_a_density_is_named():
    X, y = make()
    for rows, labels in (
        (X[:5], [0, 0, 0, 0, 1]),
        (np.column_stack([X, X[:, 0]]), y),
        (np.column_stack([X, 0 * y]), y),
    ):
        with pytest.raises(DataError, match=r"covariance matrix of class \d is not full rank.*`reg_param`"):
            QuadraticDiscriminantAnalysis().fit(rows, labels)
    assert QuadraticDiscriminantAnalysis(reg_param=0.1).fit(X[:8], [0, 0, 0, 0, 0, 0, 0, 1]).certificate_.holds
    with pytest.raises(ParameterError, match="shrinkage not supported"):
        QuadraticDiscriminantAnalysis(shrinkage="auto").fit(X, y)


def test_the_boundary_is_where_probabilities_are_equal():
    X, y = make(d=2, K=2)
    model = QuadraticDiscriminantAnalysis().fit(X, y)
    surface = model.boundary(0, 1)
    np.testing.assert_allclose(surface.evaluate(X), model.decision_function(X), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(model.boundary(1, 0).evaluate(X), -model.decision_function(X), rtol=1e-8, atol=1e-9)
