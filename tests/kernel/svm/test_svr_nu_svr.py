"""NuSVR: LIBSVM's optimum, and what ν means."""

import numpy as np
import pytest
import sklearn.svm
from tests.kernel.kernel_tables import curved

from learnable import SVR, NuSVR, verify
from learnable.kernel.svm.base import fill_up


@pytest.mark.parametrize("settings", [{}, {"nu": 0.2, "C": 5.0}, {"kernel": "linear", "nu": 0.8}])
def test_the_machine_is_that_of_libsvm(settings):
    X, y, w = curved(90)
    for weight in (None, w):
        ours = NuSVR(tol=1e-8, **settings).fit(X, y, weight)
        theirs = sklearn.svm.NuSVR(tol=1e-8, **settings).fit(X, y, weight)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=3e-5)
        assert ours.certificate_.holds and ours.certificate_.bound < 1e-5
        assert verify(ours, X, y, weight)


def test_nu_bounds_the_shares_and_its_tube_is_that_of_svr():
    X, y, _ = curved(200)
    model = NuSVR(nu=0.3, tol=1e-7).fit(X, y)
    r = np.abs(y - model.predict(X))
    assert np.mean(r > model.epsilon_ + 1e-5) <= 0.3 <= len(model.support_) / 200
    same = SVR(epsilon=model.epsilon_, tol=1e-7).fit(X, y)
    np.testing.assert_allclose(same.predict(X), model.predict(X), atol=1e-5)


def test_filling_up():
    np.testing.assert_allclose(fill_up(np.array([1.0, 2.0, 3.0]), 2.5), [1.0, 1.5, 0.0])
    assert fill_up(np.ones(4), 4.0).tolist() == [1.0] * 4
