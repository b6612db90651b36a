"""SVR: LIBSVM's optimum, the tube, and the general quadratic program."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.exceptions import ConvergenceWarning
from tests.kernel.kernel_tables import curved

from learnable import SVR, LinearSVR, verify
from learnable.core.errors import DataError, ParameterError
from learnable.risk.kernels import Gaussian
from learnable.solvers.conic.quadratic import quadratic_program


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "settings", [{}, {"kernel": "linear", "epsilon": 0.3}, {"kernel": "poly", "coef0": 1.0, "C": 0.1}]
)
def test_the_machine_is_that_of_libsvm(settings, make):
    X, y, w = curved(100)
    for weight in (None, w):
        ours = SVR(tol=1e-8, **settings).fit(make(X), y, weight)
        theirs = sklearn.svm.SVR(tol=1e-8, **settings).fit(make(X), y, weight)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(make(X)), atol=3e-5)
        np.testing.assert_array_equal(ours.support_, theirs.support_)
        assert ours.dual_coef_.shape == theirs.dual_coef_.shape and ours.intercept_.shape == (1,)
        assert ours.certificate_.bound < 1e-6 and verify(ours, make(X), y, weight)


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_tube(epsilon, intercept):
    X, y, _ = curved(120)
    model = SVR(epsilon=epsilon, tol=1e-6, fit_intercept=intercept).fit(X, y)
    r, beta = y - model.predict(X), np.zeros(120)
    beta[model.support_] = model.dual_coef_[0]
    assert (np.abs(r[beta == 0.0]) <= epsilon + 1e-6).all()
    assert (r[beta == 1.0] >= epsilon - 1e-6).all() and (r[beta == -1.0] <= -epsilon + 1e-6).all()
    on = (np.abs(beta) > 0) & (np.abs(beta) < 1)
    np.testing.assert_allclose(r[on], np.sign(beta[on]) * epsilon, atol=2e-6)
    assert verify(model, X, y)


def test_the_dual_is_that_of_the_general_quadratic_program():
    X, y, w = curved(30)
    model = SVR(gamma=0.5, tol=1e-9).fit(X, y, w)
    K, cost = Gaussian.from_gamma(0.5)(X), np.tile(w, 2)
    sign = np.repeat([1.0, -1.0], 30)
    P = sign[:, None] * np.tile(K, (2, 2)) * sign
    found = quadratic_program(P, 0.1 - sign * np.tile(y, 2), A=sign[None], b=np.zeros(1), lower=0.0, upper=cost)
    beta = np.zeros(30)
    beta[model.support_] = model.dual_coef_[0]
    value = 0.5 * beta @ K @ beta - y @ beta + 0.1 * np.abs(beta).sum()
    assert value == pytest.approx(0.5 * found.x @ P @ found.x + (0.1 - sign * np.tile(y, 2)) @ found.x, rel=1e-7)


def test_without_offset_the_linear_machine_is_that_of_linear_svr():
    X, y, _ = curved(80)
    ours = SVR(kernel="linear", fit_intercept=False, tol=1e-8).fit(X, y)
    other = LinearSVR(epsilon=0.1, loss="epsilon_insensitive", fit_intercept=False, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(ours.coef_[0], other.coef_, atol=1e-5)


@pytest.mark.threaded
def test_a_large_table_in_float32_and_any_number_of_threads():
    X, y, _ = curved(2300)
    models = [SVR(n_jobs=n_jobs, cache_size=10).fit(X, y) for n_jobs in (1, 2)]
    np.testing.assert_array_equal(models[0].dual_coef_, models[1].dual_coef_)
    assert models[0].certificate_.holds and verify(models[0], X, y)


def test_limits_and_bad_parameters():
    X, y, _ = curved(400)
    with pytest.warns(ConvergenceWarning, match="SVR: stopped after 5 iterations"):
        assert SVR(max_iter=5).fit(X, y).certificate_.bound > 0
    with pytest.raises(ParameterError, match="SVR: epsilon must be"):
        SVR(epsilon=-0.1).fit(X, y)
    with pytest.raises(DataError, match="NaN"):
        SVR().fit(np.full((3, 1), np.nan), [1.0, 2.0, 3.0])
    assert SVR().fit([[1.0]], [3.0]).predict([[2.0]]) == pytest.approx(3.0)
