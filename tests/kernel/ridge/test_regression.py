"""Kernel ridge regression: its equations, its objective, leave-one-out, other libraries, laws, refusals."""

from itertools import count

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from tests.kernel.kernel_tables import curved, peak_bytes
from tests.oracles.kernel import gaussian_matrix, ridge_coefficients, ridge_objective

from learnable import GaussianProcessRegressor, KernelRidge, Ridge, load, save, verify
from learnable.core.errors import DataError, ParameterError
from learnable.evaluation import leave_one_out_predictions
from learnable.risk.kernels import Gaussian, Linear, Matern, White

X, y, weight = curved()
X2, Y2, _ = curved(targets=2)

KERNELS = {
    "rbf": {"kernel": "rbf", "gamma": 0.4},
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2, "alpha": 0.1},
    "laplacian": {"kernel": "laplacian"},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.01},
    "cosine": {"kernel": "cosine"},
    "function": {"kernel": lambda x, z, power=1: float((x @ z) ** power), "kernel_params": {"power": 3}},
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("weights", [None, weight], ids=["equal", "weighted"])
def test_same_predictions_as_scikit_learn(kernel, weights):
    ours = KernelRidge(**KERNELS[kernel]).fit(X, y, weights)
    theirs = SklearnKernelRidge(**KERNELS[kernel]).fit(X, y, weights)
    np.testing.assert_allclose(ours.predict(X[:9]), theirs.predict(X[:9]), rtol=1e-8, atol=1e-10)
    assert ours.certificate_.holds
    assert verify(ours, X, y, weights)


def test_several_targets_with_a_penalty_each():
    alpha = np.array([0.1, 3.0])
    ours = KernelRidge(alpha=alpha, kernel="rbf").fit(X2, Y2)
    for k in range(2):
        alone = KernelRidge(alpha=alpha[k], kernel="rbf").fit(X2, Y2[:, k])
        np.testing.assert_allclose(ours.dual_coef_[:, k], alone.dual_coef_, rtol=1e-10)
    with pytest.raises(ParameterError, match="one per target"):
        KernelRidge(alpha=[1.0, 2.0, 3.0]).fit(X2, Y2)


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_it_minimises_the_objective(solver):
    K = gaussian_matrix(X, X, 0.5)
    model = KernelRidge(alpha=0.3, kernel="rbf", gamma=0.5, solver=solver, tol=1e-10).fit(X, y, weight)
    best = ridge_objective(K, y, ridge_coefficients(K, y, 0.3, weight), 0.3, weight)
    assert ridge_objective(K, y, model.dual_coef_, 0.3, weight) <= best * (1 + 1e-8)
    assert model.certificate_.bound <= 1e-12


def test_the_bound_is_one(monkeypatch):
    """The objective is above its least value by no more than the certificate says, however early a fit ends."""
    monkeypatch.setattr("learnable.kernel.ridge.systems._MOST_RANK", 3)
    K = gaussian_matrix(X, X, 0.5)
    best = ridge_objective(K, y, np.linalg.solve(K + np.diag(1e-3 / weight), y), 1e-3, weight)
    for steps in (1, 5, 20):
        model = KernelRidge(alpha=1e-3, kernel="rbf", gamma=0.5, solver="cg", max_iter=steps)
        with pytest.warns(UserWarning, match="stopped after"):
            model.fit(X, y, weight)
        above = ridge_objective(K, y, model.dual_coef_, 1e-3, weight) - best
        start = ridge_objective(K, y, 0.0 * y, 1e-3, weight)
        assert 0 < above <= model.certificate_.bound * max(best, 1e-8 * start) * (1 + 1e-6)


def test_linear_kernel_is_ridge_regression():
    for table in (X, sp.csr_array(X)):
        model = KernelRidge(alpha=0.7).fit(table, y, weight)
        ridge = Ridge(alpha=0.7, fit_intercept=False).fit(table, y, weight)
        np.testing.assert_allclose(model.predict(table), ridge.predict(table), rtol=1e-9)
        np.testing.assert_allclose(X.T @ model.dual_coef_, ridge.coef_, rtol=1e-9)


def test_it_is_the_mean_of_a_gaussian_process_with_that_noise():
    process = GaussianProcessRegressor(kernel=Gaussian(1.2), alpha=0.3, optimizer=None).fit(X, y)
    ridge = KernelRidge(alpha=0.3, kernel=Gaussian(1.2)).fit(X, y)
    np.testing.assert_allclose(process.predict(X + 0.1), ridge.predict(X + 0.1), rtol=1e-8, atol=1e-10)


def test_without_a_penalty_it_is_least_squares():
    model = KernelRidge(alpha=0.0).fit(X, y, weight)
    coef = np.linalg.lstsq(np.sqrt(weight)[:, None] * X, np.sqrt(weight) * y, rcond=None)[0]
    np.testing.assert_allclose(model.predict(X), X @ coef, rtol=1e-8)
    assert model.certificate_.holds
    assert verify(model, X, y, weight)


def test_without_a_penalty_a_gaussian_kernel_interpolates():
    points = np.linspace(0.0, 4.0, 12)[:, None]
    model = KernelRidge(alpha=0.0, kernel=Gaussian(0.4)).fit(points, np.cos(points[:, 0]))
    np.testing.assert_allclose(model.predict(points), np.cos(points[:, 0]), atol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("weights", [None, weight], ids=["equal", "weighted"])
def test_leave_one_out_is_n_refits(kernel, weights):
    model = KernelRidge(alpha=0.2, kernel=kernel)
    found = model.leave_one_out(X, y, weights)
    for i in range(0, len(X), 7):
        others = np.arange(len(X)) != i
        refit = KernelRidge(alpha=0.2, kernel=kernel).fit(
            X[others], y[others], None if weights is None else weights[others]
        )
        np.testing.assert_allclose(found[i], refit.predict(X[[i]])[0], rtol=1e-8, atol=1e-10)


def test_leave_one_out_of_the_evaluation_takes_the_closed_form():
    found = leave_one_out_predictions(KernelRidge(kernel="rbf"), X, y)
    assert found.method == "closed form"
    np.testing.assert_array_equal(found.predictions, KernelRidge(kernel="rbf").leave_one_out(X, y))


def test_a_row_without_weight_is_no_row():
    some = weight.copy()
    some[::3] = 0.0
    for kernel in ("rbf", "precomputed"):
        table = gaussian_matrix(X, X, 1 / 3) if kernel == "precomputed" else X
        model = KernelRidge(kernel=kernel).fit(table, y, some)
        fewer = KernelRidge(kernel="rbf").fit(X[some > 0], y[some > 0], some[some > 0])
        np.testing.assert_allclose(model.predict(table), fewer.predict(X), rtol=1e-9)
        assert verify(model, table, y, some)
        left_out = KernelRidge(kernel=kernel).leave_one_out(table, y, some)
        np.testing.assert_allclose(left_out[::3], fewer.predict(X)[::3], rtol=1e-9)


def test_a_weight_of_two_is_a_row_twice():
    twice = KernelRidge(kernel="rbf").fit(np.r_[X, X[:5]], np.r_[y, y[:5]])
    heavy = KernelRidge(kernel="rbf").fit(X, y, np.where(np.arange(len(X)) < 5, 2.0, 1.0))
    np.testing.assert_allclose(twice.predict(X), heavy.predict(X), rtol=1e-9)


def test_single_precision_factor_reaches_full_accuracy():
    """Beyond 1,500 rows the factor is in float32; the equations still hold to the last digits."""
    Z, t, w = curved(1600, 4)
    model = KernelRidge(alpha=0.5, kernel="rbf").fit(Z, t, w)
    assert model.certificate_.value <= 1e-13
    assert verify(model, Z, t, w)


def test_matrix_free_is_the_same_as_dense(monkeypatch):
    from learnable.kernel.ridge import regression as ridge

    Z, t, w = curved(1100, 2, targets=2)
    dense = KernelRidge(alpha=0.1, kernel="rbf", solver="cholesky").fit(Z, t, w)
    monkeypatch.setattr(ridge, "MOST_ROWS_KEPT", 100)
    free = KernelRidge(alpha=0.1, kernel="rbf", solver="cg", tol=1e-10).fit(Z, t, w)
    assert free.certificate_.holds
    np.testing.assert_allclose(free.predict(Z), dense.predict(Z), atol=1e-7)
    again = KernelRidge(alpha=0.1, kernel="rbf", solver="cg", tol=1e-10, n_jobs=1).fit(Z, t, w)
    np.testing.assert_array_equal(free.dual_coef_, again.dual_coef_)


def test_a_large_table_without_a_penalty_is_refused(monkeypatch):
    monkeypatch.setattr("learnable.kernel.ridge.regression.MOST_ROWS_KEPT", 10)
    with pytest.raises(ParameterError, match="alpha=0 needs the whole kernel matrix"):
        KernelRidge(alpha=0.0, kernel="rbf").fit(X, y)


def test_the_function_is_exposed():
    model = KernelRidge(alpha=0.3, kernel="rbf", gamma=0.5).fit(X, y)
    f = model.function_
    np.testing.assert_allclose(f(X[:5]), model.predict(X[:5]), rtol=1e-12)
    c, K = model.dual_coef_, gaussian_matrix(X, X, 0.5)
    np.testing.assert_allclose(f.norm() ** 2, c @ K @ c, rtol=1e-9)
    with pytest.raises(DataError, match="no points"):
        KernelRidge(kernel="precomputed").fit(K, y).function_  # noqa: B018


@given(st.integers(2, 25), st.floats(-6, 6), st.integers(0, 10**6))
@settings(max_examples=20)
def test_training_error_grows_and_norm_falls_with_the_penalty(n, exponent, seed):
    rng = np.random.default_rng(seed)
    Z, t = rng.standard_normal((n, 2)), rng.standard_normal(n)
    less, more = (KernelRidge(alpha=a, kernel="rbf").fit(Z, t) for a in (10.0**exponent, 10.0 ** (exponent + 1)))
    assert ((t - less.predict(Z)) ** 2).sum() <= ((t - more.predict(Z)) ** 2).sum() * (1 + 1e-6) + 1e-12
    assert less.function_.norm() >= more.function_.norm() * (1 - 1e-6)


def test_a_component_orthogonal_to_the_data_only_raises_the_norm():
    """The representer theorem: adding k(·, z) minus its projection changes no value at the rows."""
    kernel = Gaussian(1.0)
    model = KernelRidge(alpha=0.5, kernel=kernel).fit(X[:20], y[:20])
    from learnable.risk.kernels import RKHSFunction

    z = np.array([[3.0, -3.0, 3.0]])
    shadow = np.linalg.solve(kernel(X[:20]), kernel(X[:20], z)[:, 0])
    extra = RKHSFunction(kernel, z, [1.0]) - RKHSFunction(kernel, X[:20], shadow)
    np.testing.assert_allclose(extra(X[:20]), 0.0, atol=1e-10)
    larger = model.function_ + 0.5 * extra
    np.testing.assert_allclose(larger(X[:20]), model.predict(X[:20]), atol=1e-9)
    assert larger.norm() > model.function_.norm()


@pytest.mark.parametrize("scale", [1e-150, 1e250])
def test_targets_of_any_size(scale):
    model, plain = KernelRidge(kernel="rbf").fit(X, scale * y), KernelRidge(kernel="rbf").fit(X, y)
    np.testing.assert_allclose(model.predict(X) / scale, plain.predict(X), rtol=1e-9)


def test_hard_cases():
    assert KernelRidge(kernel="rbf").fit([[1.0]], [2.0]).predict([[1.0]])[0] == 1.0
    same = KernelRidge(alpha=2.0, kernel="rbf").fit(np.ones((4, 2)), [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(same.predict([[1.0, 1.0]]), 10.0 / 6.0, rtol=1e-12)
    tiny = KernelRidge(alpha=1e-14, kernel="rbf").fit(X, y)
    assert tiny.certificate_.holds
    with pytest.raises(DataError, match="too large to compute"):
        KernelRidge(kernel="poly").fit(1e90 * X, y)
    for kernel in ("linear", "rbf"):
        with pytest.raises(DataError, match="rescale"):
            KernelRidge(kernel=kernel).fit(1e150 * X, y)
        with pytest.raises(DataError, match="rescale"):
            KernelRidge(kernel=kernel).fit(X, y).predict(1e150 * X)
    with pytest.raises(DataError, match="square matrix"):
        KernelRidge(kernel="precomputed").fit(X, y)
    with pytest.raises(DataError, match="symmetric"):
        KernelRidge(kernel="precomputed").fit(np.arange(9.0).reshape(3, 3), [1.0, 2.0, 3.0])
    with pytest.raises(ParameterError, match="singular"):
        KernelRidge(alpha=0.0).leave_one_out(X, y)
    with pytest.raises(DataError, match="at least 2 rows"):
        KernelRidge().leave_one_out([[1.0]], [1.0])


def test_a_fit_that_is_cut_says_how_far_it_is():
    Z, t, _ = curved(1700, 6)
    model = KernelRidge(alpha=1e-6, kernel="rbf", gamma=2.0, solver="cg", max_iter=2)
    with pytest.warns(UserWarning, match="stopped after"):
        model.fit(Z, t)
    assert not model.certificate_.holds
    assert model.certificate_.bound > 0


def test_round_trip(tmp_path):
    for kernel in ("poly", Matern([1.0, 2.0, 3.0], nu=2.5) + 0.1 * Linear() + White(0.2)):
        model = KernelRidge(kernel=kernel).fit(X, y)
        save(model, tmp_path / "m.safetensors")
        np.testing.assert_array_equal(load(tmp_path / "m.safetensors").predict(X), model.predict(X))


def test_memory_is_what_the_docstring_says(monkeypatch):
    n, small = 1200, 2e6  # what does not grow: tiles, code
    Z, t, _ = curved(n, 5)
    for changes, most in (({}, 21), ({"alpha": 0.0}, 42), ({"solver": "cg"}, 24)):
        model = KernelRidge(**{"kernel": "rbf", "gamma": 0.2} | changes).fit(Z[:50], t[:50])
        assert peak_bytes(lambda model=model: model.fit(Z, t)) <= most * n * n + small
    assert peak_bytes(lambda: KernelRidge().fit(Z, t)) <= 40 * Z.size + small
    monkeypatch.setattr("learnable.kernel.ridge.regression.MOST_ROWS_KEPT", 100)
    monkeypatch.setattr("learnable.kernel.ridge.systems._MOST_RANK", 200)
    wide, many, _ = curved(4000, 40, targets=8)
    model = KernelRidge(kernel="rbf", gamma=0.01, alpha=10.0, tol=1e-5, solver="cg")
    factor = 4 * 200 * 4000
    assert peak_bytes(lambda: model.fit(wide, many)) <= factor + 40 * wide.size + 100 * many.size + 5 * small


@pytest.mark.parametrize("kernel", ["rbf", Matern(2.0, nu=1.5)])
def test_a_time_limit_is_kept_and_what_is_returned_is_measured(kernel, monkeypatch):
    monkeypatch.setattr("learnable.kernel.ridge.regression.MOST_ROWS_KEPT", 100)
    monkeypatch.setattr("learnable.kernel.ridge.systems._MOST_RANK", 20)
    Z, t, _ = curved(600, 4)
    with pytest.warns(UserWarning, match="stopped after"):
        none = KernelRidge(kernel=kernel, solver="cg", max_seconds=1e-9).fit(Z, t)
    assert none.certificate_.value == 1.0 and not none.dual_coef_.any()
    clock = count()  # every look at the clock takes a second of it
    monkeypatch.setattr("learnable.kernel.ridge.regression._seconds_left", lambda limit, run: 30.0 - next(clock))
    with pytest.warns(UserWarning, match="stopped after"):
        some = KernelRidge(alpha=0.1, kernel=kernel, solver="cg", tol=1e-6).fit(Z, t)
    K = some.kernel(Z) if not isinstance(kernel, str) else gaussian_matrix(Z, Z, 0.25)
    residual = np.linalg.norm(t - K @ some.dual_coef_ - 0.1 * some.dual_coef_) / np.linalg.norm(t)
    assert some.certificate_.value == pytest.approx(residual, rel=1e-3) and some.certificate_.bound is not None


@pytest.mark.threaded
def test_never_whole_is_the_same_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("learnable.kernel.ridge.regression.MOST_ROWS_KEPT", 100)
    Z, T, _ = curved(1100, 3, targets=2)
    for targets in (T, T[:, 0]):
        one, two = (KernelRidge(kernel="rbf", solver="cg", n_jobs=n).fit(Z, targets) for n in (1, 2))
        assert one.dual_coef_.tobytes() == two.dual_coef_.tobytes()
        direct = KernelRidge(kernel="rbf", solver="cholesky").fit(Z, targets)
        np.testing.assert_allclose(one.dual_coef_, direct.dual_coef_, atol=1e-6 * np.abs(direct.dual_coef_).max())
