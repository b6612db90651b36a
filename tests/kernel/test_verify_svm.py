"""The independent check accepts what was fitted and refuses what was changed."""

import copy
import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import learnable as ln
from learnable.core.errors import VerificationError
from learnable.risk.kernels import Matern

from .kernel_tables import curved, rings

CASES = [
    (ln.SVC(), "classes"),
    (ln.SVC(kernel="poly", class_weight="balanced", fit_intercept=False), "classes"),
    (ln.SVC(kernel=Matern(1.0)), "classes"),
    (ln.NuSVC(nu=0.2), "classes"),
    (ln.SVR(), "numbers"),
    (ln.SVR(epsilon=0.0, kernel="linear"), "numbers"),
    (ln.NuSVR(nu=0.3), "numbers"),
    (ln.OneClassSVM(nu=0.3), "none"),
]


def table(kind):
    X, y, w = curved(60) if kind == "numbers" else rings(60, 3)
    w = w.copy()
    w[::6] = 0.0
    return X, None if kind == "none" else y, w


@pytest.mark.parametrize(("model", "kind"), CASES)
def test_changes_are_found(model, kind):
    X, y, w = table(kind)
    model = model.fit(X, y, w)
    assert ln.verify(model, X, y, w)
    worse = copy.deepcopy(model)
    worse.dual_coef_ = model.dual_coef_ * 1.001
    assert not ln.verify(worse, X, y, w)
    moved = copy.deepcopy(model)
    moved.intercept_ = model.intercept_ + 2e-3
    assert not ln.verify(moved, X, y, w)
    one = copy.deepcopy(model)
    one.dual_coef_ = model.dual_coef_.copy()
    one.dual_coef_[0, 0] *= 1.001
    assert not ln.verify(one, X, y, w) or model.dual_coef_[0, 0] == 0
    assert not ln.verify(model, X + 1e-9, y, w)
    if kind == "classes":
        swapped = copy.deepcopy(model)
        swapped.classes_ = model.classes_[[1, 0, 2]]
        assert not ln.verify(swapped, X, y, w)


@pytest.mark.parametrize(("model", "kind"), CASES)
def test_a_bound_that_claims_too_much_is_found(model, kind):
    X, y, w = table(kind)
    model = clone(model).set_params(tol=0.1).fit(X, y, w)  # the bound is then far above rounding
    honest = model.certificate_
    assert ln.verify(model, X, y, w) and honest.bound > 1e-5
    model.certificate_ = dataclasses.replace(honest, bound=honest.bound / 3)
    verdict = ln.verify(model, X, y, w)
    assert not verdict and "bound of the suboptimality" in verdict.reasons[0]


def test_a_bound_of_an_indefinite_kernel_is_found():
    X, y, _ = table("classes")
    model = ln.SVC(kernel="sigmoid").fit(X, y)
    assert model.certificate_.bound is None
    model.certificate_ = dataclasses.replace(model.certificate_, bound=1e-3)
    assert not ln.verify(model, X, y)


@pytest.mark.parametrize("gamma", [5e4, 5e6, 1e10, 1e18, 1e300])
def test_rows_far_apart_keep_their_values_and_their_certificates(gamma):
    """Where k(x, z) = 0 for all pairs of rows, the machines are those of the identity matrix."""
    X, _, _ = rings(60, 3)
    t = np.linspace(-1.0, 1.0, len(X))
    models = (ln.SVR(gamma=gamma, tol=1e-7, C=0.3), ln.NuSVR(gamma=gamma, tol=1e-7), ln.OneClassSVM(gamma=gamma))
    for model in models:
        assert ln.verify(model.fit(X, t), X, t)
    np.testing.assert_allclose(models[0].predict(X), np.sign(t) * np.clip(np.abs(t) - 0.1, 0.0, 0.3), atol=1e-6)
    signs = np.where(t > 0, 1.0, -1.0)
    classes = ln.SVC(gamma=gamma, tol=1e-7).fit(X, signs)
    assert ln.verify(classes, X, signs)
    np.testing.assert_allclose(classes.decision_function(X), signs, atol=1e-6)


def test_sparse_rows_and_given_kernels():
    X, y, w = table("classes")
    model = ln.SVC().fit(sp.csr_array(X), y, w)
    assert ln.verify(model, sp.csr_array(X), y, w)
    K = X @ X.T
    assert ln.verify(ln.SVC(kernel="precomputed").fit(K, y, w), K, y, w)


def test_other_data_are_refused():
    X, y, _ = table("classes")
    model = ln.SVC().fit(X[:40], y[:40])
    with pytest.raises(VerificationError, match="the fit had 40 rows"):
        ln.verify(model, X, y)


def test_a_hard_margin_is_verified():
    X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), [0, 0, 1, 1]
    assert ln.verify(ln.SVC(kernel="linear", C=np.inf).fit(X, y), X, y)
