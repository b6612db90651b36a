"""NuSVC: LIBSVM's optimum, what ν means, and where there is no machine."""

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import load_iris
from tests.kernel.kernel_tables import rings

from learnable import SVC, NuSVC, verify
from learnable.core.errors import DataError

X3, Y3 = load_iris(return_X_y=True)


@pytest.mark.parametrize("settings", [{"nu": 0.3}, {"nu": 0.5, "kernel": "poly", "coef0": 1.0}])
def test_the_machine_is_that_of_libsvm(settings):
    weight = np.random.default_rng(0).uniform(0.8, 1.2, 150)
    for sample_weight in (None, weight):
        ours = NuSVC(tol=1e-9, **settings).fit(X3, Y3, sample_weight)
        theirs = sklearn.svm.NuSVC(tol=1e-9, **settings).fit(X3, Y3, sample_weight)
        np.testing.assert_allclose(ours.decision_function(X3), theirs.decision_function(X3), atol=3e-5)
        np.testing.assert_array_equal(ours.predict(X3), theirs.predict(X3))
        assert ours.certificate_.holds and verify(ours, X3, Y3, sample_weight)


def test_nu_bounds_the_shares_and_its_machine_is_an_svc():
    X, y, _ = rings(150)
    model = NuSVC(nu=0.4, tol=1e-9).fit(X, y)
    margin = np.where(y > 0, 1.0, -1.0) * model.decision_function(X)
    assert np.mean(margin < 1 - 1e-5) <= 0.4 <= len(model.support_) / 150
    same = SVC(C=float(np.abs(model.dual_coef_).max()), tol=1e-9).fit(X, y)
    np.testing.assert_allclose(same.decision_function(X), model.decision_function(X), atol=1e-4)


def test_where_there_is_no_machine():
    X, y = np.random.default_rng(0).standard_normal((20, 2)), np.arange(20) < 2
    with pytest.raises(DataError, match=r"NuSVC: specified nu is infeasible: .* at most 0.2"):
        NuSVC(nu=0.5).fit(X, y)
    with pytest.raises(DataError, match="margin of this kernel is zero"):
        NuSVC(nu=1.0).fit(np.ones((4, 1)), [0, 0, 1, 1])


def test_a_larger_nu_parts_classes_that_overlap():
    X, y = np.random.default_rng(0).random((300, 2)), np.arange(300) % 2
    with pytest.raises(DataError, match="Use a larger nu"):
        NuSVC(nu=0.3).fit(X, y)
    assert NuSVC(nu=0.95).fit(X, y).certificate_.holds
