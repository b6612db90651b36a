"""Bernoulli naive Bayes: scikit-learn's numbers, Beta posteriors, and the exact Bayes classifier by enumeration."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.naive_bayes import BernoulliNB as Reference
from tests.oracles.generative import exact_posterior

from learnable import BernoulliNB, verify
from learnable.core.errors import DataError


def make(n=200, d=6, K=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    return (rng.random((n, d)) < rng.uniform(0.1, 0.9, (K, d))[y]).astype(float), y


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("parameters", [{}, {"alpha": 0.2, "fit_prior": False}, {"binarize": None}, {"binarize": 0.7}])
def test_it_is_scikit_learns(container, parameters):
    X, y = make()
    ours, theirs = BernoulliNB(**parameters).fit(container(X), y), Reference(**parameters).fit(container(X), y)
    for name in ("class_count_", "class_log_prior_", "feature_count_", "feature_log_prob_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-12, err_msg=name)
    np.testing.assert_allclose(ours.predict_proba(container(X)), theirs.predict_proba(container(X)), rtol=1e-9)
    assert verify(ours, container(X), y)


def test_with_independent_features_it_is_the_exact_bayes_classifier():
    """Weighted by its probabilities, the table of all rows gives the exact P(class | x) for every row."""
    rng = np.random.default_rng(2)
    p, prior = rng.uniform(0.05, 0.95, (3, 4)), np.array([0.2, 0.3, 0.5])
    rows = np.array(list(product([0.0, 1.0], repeat=4)))
    joint = np.stack([prior[k] * np.prod(np.where(rows == 1, p[k], 1 - p[k]), axis=1) for k in range(3)], axis=1)
    X, y, w = np.repeat(rows, 3, axis=0), np.tile([0, 1, 2], len(rows)), joint.ravel()
    model = BernoulliNB(alpha=0).fit(X, y, w)
    np.testing.assert_allclose(model.predict_proba(rows), exact_posterior(joint), rtol=1e-11)


def test_missing_values_are_integrated_out_dense_and_sparse():
    X, y = make()
    holes = X.copy()
    holes[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    model = BernoulliNB().fit(holes, y)
    for k in range(3):
        for j in range(6):
            column = holes[y == k, j]
            seen = column[~np.isnan(column)]
            assert np.exp(model.feature_log_prob_[k, j]) == pytest.approx((seen.sum() + 1) / (len(seen) + 2), rel=1e-12)
    sparse = BernoulliNB().fit(sp.csr_array(holes), y)
    assert np.array_equal(sparse.observed_, model.observed_)
    np.testing.assert_allclose(sparse.predict_proba(sp.csr_array(holes)), model.predict_proba(holes), rtol=1e-10)
    narrow = BernoulliNB().fit(X[:, :3], y).predict_proba(X[:, :3])
    hidden = np.column_stack([X[:, :3], np.full((len(X), 3), np.nan)])
    np.testing.assert_allclose(BernoulliNB().fit(X, y).predict_proba(hidden), narrow, rtol=1e-10)
    assert verify(model, holes, y) and verify(sparse, sp.csr_array(holes), y)


def test_the_posterior_predictive_is_the_estimate_itself():
    X, y = make()
    model = BernoulliNB(alpha=0.7).fit(X, y)
    np.testing.assert_allclose(model.posterior().predictive().p, np.exp(model.feature_log_prob_), rtol=1e-12)


def test_impossible_features_exclude_a_class():
    model = BernoulliNB(alpha=0).fit([[1, 0], [1, 1], [0, 1], [0, 1]], ["a", "a", "b", "b"])
    assert model.predict_proba([[1, 1], [0, 1]]).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    with pytest.raises(DataError, match="row 0 has probability zero under every class"):
        model.predict([[0, 0]])


def test_partial_fits_equal_one_fit():
    X, y = make()
    X[::5, 2] = np.nan
    parts = BernoulliNB().partial_fit(X[:50], y[:50], classes=[0, 1, 2]).partial_fit(X[50:], y[50:])
    whole = BernoulliNB().fit(X, y)
    assert np.array_equal(parts.feature_log_prob_, whole.feature_log_prob_)
    assert parts.certificate_.fingerprint == whole.certificate_.fingerprint


def test_bad_data_are_named():
    with pytest.raises(DataError, match="with binarize=None X must hold 0 and 1; got 2"):
        BernoulliNB(binarize=None).fit([[0, 2], [1, 0]], [0, 1])
    with pytest.raises(DataError, match="Cannot binarize a sparse matrix"):
        BernoulliNB(binarize=-1.0).fit(sp.csr_array([[0.0, 2.0], [1.0, 0.0]]), [0, 1])
