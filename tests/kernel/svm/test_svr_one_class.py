"""OneClassSVM: LIBSVM's optimum, what ν means, and scikit-learn's contract of outlier detectors."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm

from learnable import OneClassSVM, verify

TO_TOLERANCE = "both machines are right to the tolerance of 1e-3, not to the last digits; so in scikit-learn"


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("settings", [{}, {"nu": 0.1}, {"kernel": "linear", "nu": 0.3}])
def test_the_machine_is_that_of_libsvm(settings, make):
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((120, 3)) + 2.0, rng.uniform(0.5, 2.0, 120)
    for weight in (None, w):
        ours = OneClassSVM(tol=1e-9, **settings).fit(make(X), sample_weight=weight)
        theirs = sklearn.svm.OneClassSVM(tol=1e-9, **settings).fit(make(X), sample_weight=weight)
        scale = np.abs(theirs.score_samples(make(X))).max()
        np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(make(X)), atol=1e-5 * scale)
        np.testing.assert_allclose(ours.offset_, theirs.offset_, rtol=1e-5)
        assert ours.certificate_.bound < 1e-5 and verify(ours, make(X), sample_weight=weight)


def test_nu_bounds_the_share_of_outliers():
    X = np.random.default_rng(1).standard_normal((300, 2))
    model = OneClassSVM(nu=0.15, tol=1e-7).fit(X)
    outliers = np.mean(model.decision_function(X) < -1e-6)
    assert outliers <= 0.15 <= len(model.support_) / 300
    assert (model.predict(X) == np.where(model.decision_function(X) >= 0, 1, -1)).all()
    np.testing.assert_allclose(model.decision_function(X), model.score_samples(X) - model.offset_)
