"""Probabilities of support vector classifiers: sigmoids of scores from folds, coupled over the pairs."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.exceptions import NotFittedError
from tests.kernel.kernel_tables import rings

from learnable import SVC, NuSVC, load, save, verify
from learnable.kernel.svm.platt import couple, fit_sigmoid, folds_of

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


@given(st.integers(0, 10_000), st.integers(4, 40), st.sampled_from([1e-8, 1.0, 1e8]))
@settings(deadline=None, max_examples=50)
def test_the_sigmoid_is_the_optimum(seed, n, size):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 3 == 0, -1.0, 1.0)
    scores = size * (0.7 * y + rng.normal(size=n))
    slope, offset = fit_sigmoid(scores, y)
    target = np.where(y > 0, ((y > 0).sum() + 1) / ((y > 0).sum() + 2), 1 / ((y < 0).sum() + 2))

    def loss(w):
        z = w[0] * scores / size + w[1]
        return float((np.logaddexp(0.0, z) - (1 - target) * z).sum())

    best = minimize(loss, [0.0, 0.0], tol=1e-12).fun
    assert loss([slope * size, offset]) <= best + 1e-9 * n


def test_equal_scores_give_the_share_of_a_class():
    slope, offset = fit_sigmoid(np.full(6, 0.3), np.array([1.0, 1.0, 1.0, 1.0, -1.0, -1.0]))
    assert 1 / (1 + np.exp(0.3 * slope + offset)) == pytest.approx((4 * 5 / 6 + 2 * 1 / 4) / 6)


@given(st.integers(0, 10_000), st.integers(3, 6))
@settings(deadline=None, max_examples=30)
def test_coupling_gives_back_a_distribution(seed, n_classes):
    p = np.random.default_rng(seed).dirichlet(np.ones(n_classes), size=20)
    i, j = np.triu_indices(n_classes, 1)
    first = p[:, i] / (p[:, i] + p[:, j])
    np.testing.assert_allclose(couple(first, n_classes), p, atol=1e-8)


def test_folds_are_balanced_in_both_classes():
    fold = folds_of(np.where(np.arange(37) < 20, 1.0, -1.0))
    assert np.ptp(np.bincount(fold)) <= 1
    assert np.ptp(np.bincount(fold[:20])) <= 1 and np.ptp(np.bincount(fold[20:], minlength=5)) <= 1


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("own", "theirs"), [(SVC, sklearn.svm.SVC), (NuSVC, sklearn.svm.NuSVC)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_near_libsvms(own, theirs, n_classes, make):
    X, y, _ = rings(200, n_classes)
    given = {"nu": 0.3} if own is NuSVC else {}
    ours = own(probability=True, **given).fit(make(X), y)
    other = theirs(probability=True, random_state=0, **given).fit(make(X), y)
    found, expected = ours.predict_proba(make(X)), other.predict_proba(make(X))
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert np.abs(found - expected).mean() < 0.03  # folds differ
    np.testing.assert_allclose(np.exp(ours.predict_log_proba(make(X))), found)
    assert ours.probA_.shape == other.probA_.shape and (ours.probA_ < 0).all()
    assert verify(ours, make(X), y)


def test_a_saved_model_has_its_probabilities(tmp_path):
    X, y, _ = rings(60, 3)
    model = SVC(probability=True).fit(sp.csr_array(X), y)
    save(model, tmp_path / "svc.safetensors")
    loaded = load(tmp_path / "svc.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert sp.issparse(loaded.dual_coef_) and verify(loaded, X, y)


@pytest.mark.parametrize("cls", [SVC, NuSVC])
def test_the_method_is_there_when_it_is_asked_for(cls):
    X, _, _ = rings(40, 2)
    y = np.arange(40) % 2
    assert not hasattr(cls(), "predict_proba") and hasattr(cls(probability=True), "predict_proba")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = cls(gamma=1.0).fit(X, y)
    model.probability = True
    with pytest.raises(NotFittedError, match="when fitted with probability=False"):
        model.predict_proba(X)
    with pytest.warns(FutureWarning, match="probability.+parameter.+deprecated"):
        cls(probability=False, gamma=1.0).fit(X, y)
    with pytest.warns(FutureWarning, match="`probB_` was deprecated"):
        assert model.probB_.shape == (0,)
