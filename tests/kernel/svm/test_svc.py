"""SVC: LIBSVM's optimum, the conditions of optimality, hard margins, and what cannot be fitted."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from tests.kernel.kernel_tables import rings

from learnable import SVC, CalibratedClassifier, LinearSVC, verify
from learnable.core.errors import DataError, ParameterError
from learnable.kernel.svm.svc import solve_pair
from learnable.risk.kernels import Gaussian, Matern
from learnable.solvers.conic.quadratic import quadratic_program
from learnable.solvers.conic.smo import Team

X3, Y3 = load_iris(return_X_y=True)


def noisy(n, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(n) > 0).astype(int)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"kernel": "linear", "C": 0.3},
        {"kernel": "poly", "coef0": 1.0},
        {"kernel": "poly", "degree": 2, "gamma": 0.1},
        {"C": 30.0, "gamma": "auto", "decision_function_shape": "ovo"},
        {"class_weight": "balanced", "break_ties": True},
        {"class_weight": {0: 3.0}},
    ],
)
def test_the_machine_is_that_of_libsvm(settings, make):
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(Y3))
    balanced = settings.get("class_weight") == "balanced"  # scikit-learn counts rows there, not their weights
    for sample_weight in (None,) if balanced else (None, weight):
        ours = SVC(tol=1e-8, **settings).fit(make(X3), Y3, sample_weight)
        theirs = sklearn.svm.SVC(tol=1e-8, **settings).fit(make(X3), Y3, sample_weight)
        np.testing.assert_array_equal(ours.predict(X3), theirs.predict(make(X3)))
        if settings.get("kernel") != "linear":  # where the multipliers are not unique
            np.testing.assert_array_equal(ours.support_, theirs.support_)
            np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
        assert ours.shape_fit_ == theirs.shape_fit_ and ours.fit_status_ == 0
        # LIBSVM keeps its kernel in float32, which is good for four digits here; ours proves seven more.
        ours.decision_function_shape = theirs.decision_function_shape = "ovo"
        np.testing.assert_allclose(ours.decision_function(X3), theirs.decision_function(make(X3)), atol=2e-4)
        assert ours.certificate_.value <= 1e-8 and ours.certificate_.bound < 1e-8
        if settings.get("kernel") == "linear":
            coef = theirs.coef_.toarray() if sp.issparse(theirs.coef_) else theirs.coef_
            assert sp.issparse(ours.coef_) == sp.issparse(theirs.coef_)
            own = ours.coef_.toarray() if sp.issparse(ours.coef_) else ours.coef_
            np.testing.assert_allclose(own, coef, atol=2e-4)


def test_a_row_without_weight_is_no_row():
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(Y3))
    weight[::9] = 0.0
    kept = weight > 0
    for kernel, X in (("rbf", X3), ("precomputed", X3 @ X3.T)):
        whole = SVC(kernel=kernel).fit(X, Y3, weight)
        part = X[kept][:, kept] if kernel == "precomputed" else X[kept]
        fewer = SVC(kernel=kernel).fit(part, Y3[kept], weight[kept])
        np.testing.assert_array_equal(whole.dual_coef_, fewer.dual_coef_)
        np.testing.assert_array_equal(whole.support_, np.flatnonzero(kept)[fewer.support_])


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed", Matern(1.5)])
def test_shrinking_changes_the_way_and_not_the_machine(kernel):
    X, y = noisy(1500)
    X = X @ X.T if kernel == "precomputed" else X
    with_, without = (SVC(kernel=kernel, tol=1e-7, shrinking=s).fit(X, y) for s in (True, False))
    assert with_.certificate_.value <= 1e-7 and with_.certificate_.bound < 1e-7
    np.testing.assert_allclose(with_.decision_function(X), without.decision_function(X), atol=1e-5)


def test_two_classes_have_the_second_one_positive():
    X, y = noisy(120)
    ours, theirs = SVC(tol=1e-8).fit(X, y), sklearn.svm.SVC(tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    assert ours.decision_function(X).shape == (120,)


@given(st.integers(4, 40), st.sampled_from([1e-12, 0.1, 1.0, 50.0]), st.booleans(), st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_the_dual_is_that_of_the_general_quadratic_program(n, C, intercept, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, 2)), np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    kernel = Gaussian(1.0)
    with Team(1) as team:
        fit = solve_pair(kernel, X, y, np.full(n, C), team, fit_intercept=intercept, tol=1e-9)
    Q = y[:, None] * kernel(X) * y
    A, b = (y[None], np.zeros(1)) if intercept else (None, None)
    program = quadratic_program(Q, -np.ones(n), A=A, b=b, lower=0.0, upper=C)
    best = program.x.sum() - 0.5 * program.x @ Q @ program.x
    assert fit.dual == pytest.approx(best, rel=1e-6, abs=1e-9 * C)
    assert fit.primal >= fit.dual - 1e-9 * abs(fit.dual)
    assert fit.primal - fit.dual <= 1e-7 * n * C


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("intercept", [True, False])
def test_all_conditions_of_optimality_hold(kernel, intercept):
    X, y = noisy(200)
    model = SVC(kernel=kernel, C=0.7, tol=1e-5, fit_intercept=intercept).fit(X, y)
    margin = np.where(y > 0, 1.0, -1.0) * model.decision_function(X)
    alpha = np.zeros(len(y))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    assert (margin[alpha == 0] >= 1 - 1e-5).all() and (margin[alpha == 0.7] <= 1 + 1e-5).all()
    on = (alpha > 0) & (alpha < 0.7)
    np.testing.assert_allclose(margin[on], 1.0, atol=1e-5)
    assert model.certificate_.value <= 1e-5 and model.certificate_.bound < 1e-4
    assert intercept or model.intercept_[0] == 0.0
    assert verify(model, X, y)


def test_without_offset_the_linear_machine_is_that_of_linear_svc():
    X, y = noisy(150)
    X[:, 2] += 1.5 * y
    ours = SVC(kernel="linear", fit_intercept=False, tol=1e-8).fit(X, y)
    other = LinearSVC(loss="hinge", fit_intercept=False, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(ours.coef_, other.coef_, atol=1e-5)


def test_a_hard_margin_is_half_the_distance_of_the_hulls():
    X = np.array([[0.0, 0.0], [0.0, 2.0], [3.0, 1.0], [5.0, 4.0]])
    model = SVC(kernel="linear", C=np.inf, tol=1e-8).fit(X, [0, 0, 1, 1])
    assert 1.0 / np.linalg.norm(model.coef_) == pytest.approx(1.5)
    assert model.certificate_.holds and model.certificate_.bound < 1e-6
    np.testing.assert_allclose(model.decision_function([[1.5, 7.0]]), 0.0, atol=1e-7)


def test_classes_that_are_not_separable_have_no_hard_margin():
    with pytest.raises(DataError, match=r"SVC: C=inf asks for a hard margin.*Use a finite C"):
        SVC(kernel="linear", C=np.inf).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    with pytest.raises(DataError, match="not separable"):
        SVC(C=np.inf).fit([[0.0], [1.0], [1.0]], [0, 0, 1])


def test_a_large_table_in_float32_is_right_in_float64():
    X, y = noisy(2500)
    model = SVC(cache_size=5).fit(X, y)
    verdict = verify(model, X, y)
    assert verdict and model.certificate_.holds
    reference = sklearn.svm.SVC().fit(X, y)
    assert np.abs(model.decision_function(X) - reference.decision_function(X)).max() < 5e-3


@pytest.mark.threaded
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_same_bits_on_any_number_of_threads(n_classes):
    X, y, w = rings(2300, n_classes)
    models = [SVC(n_jobs=n_jobs).fit(X, y, w) for n_jobs in (1, 2)]
    for name in ("dual_coef_", "intercept_", "support_", "n_iter_"):
        np.testing.assert_array_equal(getattr(models[0], name), getattr(models[1], name))
    np.testing.assert_array_equal(models[0].decision_function(X), models[1].decision_function(X))


def test_limits_return_the_best_so_far_with_its_bound():
    X, y = noisy(2000)
    for limit in ({"max_iter": 10}, {"max_seconds": 1e-9}):
        with pytest.warns(ConvergenceWarning, match="SVC: stopped after"):
            model = SVC(**limit).fit(X, y)
        assert not model.certificate_.holds and model.certificate_.bound > 0 and model.fit_status_ == 1
    assert model.predict(X).shape == (2000,)


def test_kernels_of_all_kinds():
    K = X3 @ X3.T
    linear, given = SVC(kernel="linear", tol=1e-8).fit(X3, Y3), SVC(kernel="precomputed", tol=1e-8).fit(K, Y3)
    np.testing.assert_allclose(given.decision_function(K), linear.decision_function(X3), atol=1e-5)
    function = SVC(kernel=lambda A, B: A @ B.T, tol=1e-8).fit(X3, Y3)
    np.testing.assert_allclose(function.decision_function(X3), linear.decision_function(X3), atol=1e-5)
    gauss = SVC(kernel=Gaussian.from_gamma(0.3), tol=1e-8).fit(X3, Y3)
    named = SVC(gamma=0.3, tol=1e-8).fit(X3, Y3)
    np.testing.assert_allclose(gauss.decision_function(X3), named.decision_function(X3), atol=1e-6)
    for kernel in (Matern(1.0), "sigmoid"):
        assert SVC(kernel=kernel).fit(X3, Y3).certificate_.holds
    with pytest.raises(DataError, match="square matrix"):
        SVC(kernel="precomputed").fit(X3, Y3)
    with pytest.raises(DataError, match="expecting 150 features"):
        given.predict(K[:, :149])
    sparse = SVC(kernel=lambda A, B: A @ B.T, tol=1e-8).fit(sp.csr_array(X3), Y3)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X3)), linear.decision_function(X3), atol=1e-5)


def test_the_function_is_an_element_of_the_kernels_space():
    X, y = noisy(80)
    model = SVC().fit(X, y)
    np.testing.assert_allclose(model.function_(X) + model.intercept_, model.decision_function(X))
    K = Gaussian.from_gamma(model.gamma_)(X[model.support_])
    assert model.function_.norm() ** 2 == pytest.approx(model.dual_coef_[0] @ K @ model.dual_coef_[0])
    assert SVC().fit(X3, Y3).function_(X3).shape == (150, 3)


def test_probabilities_come_from_the_calibrator():
    X, y = noisy(300)
    model = CalibratedClassifier(SVC()).fit(X, y)
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert probability[y == 1, 1].mean() > 0.6 > probability[y == 0, 1].mean()


def test_ctrl_c_ends_all_pairs_and_leaves_the_machine_as_it_was():
    X, y, _ = rings(2000, 4)
    model = SVC().fit(X[:100], y[:100])
    before = model.dual_coef_

    calls = []

    def interrupt(A, B):
        calls.append(len(A))
        if len(calls) > 5:
            raise KeyboardInterrupt
        return A @ B.T

    model.set_params(kernel=interrupt, n_jobs=2)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.dual_coef_ is before


def test_odd_tables():
    X, y = noisy(60)
    twice = SVC(tol=1e-8).fit(np.vstack([X, X]), np.concatenate([y, y]))
    heavy = SVC(tol=1e-8).fit(X, y, np.full(60, 2.0))
    np.testing.assert_allclose(twice.decision_function(X), heavy.decision_function(X), atol=1e-5)
    constant = SVC().fit(np.ones((6, 2)), [0, 0, 0, 0, 1, 1])
    assert constant.predict([[1.0, 1.0]]) == 0
    for C in (1e-12, 1e12):
        assert SVC(C=C).fit(X, y).certificate_.holds
    assert SVC(kernel="poly", degree=0).fit(X, y).predict(X).shape == (60,)
    empty = sp.csr_array((6, 3))
    assert SVC().fit(empty, [0, 0, 0, 0, 1, 1]).predict(empty).tolist() == [0] * 6
    tiny = SVC().fit(X * 1e-90, y)
    np.testing.assert_allclose(tiny.decision_function(X * 1e-90), SVC().fit(X, y).decision_function(X), atol=5e-3)
    with pytest.raises(DataError, match="rescale it"):
        SVC().fit(X * 1e150, y)


def test_bad_parameters():
    X, y = noisy(20)
    for name, value in [
        ("C", 0.0),
        ("C", -1.0),
        ("gamma", "other"),
        ("kernel", "cubic"),
        ("tol", -1.0),
        ("max_iter", -2),
    ]:
        with pytest.raises(ParameterError, match=f"SVC: {name} must be"):
            SVC(**{name: value}).fit(X, y)
    with pytest.raises(DataError, match="class"):
        SVC().fit(X, np.zeros(20))
    with pytest.raises(ParameterError, match="break_ties must be False"):
        SVC(break_ties=True, decision_function_shape="ovo").fit(X3, Y3).predict(X3)
    with pytest.raises(AttributeError, match="linear kernel"):
        _ = SVC().fit(X, y).coef_


def test_a_multiplier_that_misses_its_bound_by_a_bit_breaks_no_certificate():
    rng = np.random.default_rng(7)
    left = rng.normal((-1.3, 0.6), (0.7, 0.8), (14, 2))
    right = rng.normal((1.3, -0.6), (0.7, 0.8), (14, 2))
    X = np.vstack([left, right]).round(2)
    X[13] = (1.24, 0.64)  # a row of the one class among the others: all multipliers end at a bound
    y = np.repeat([0, 1], 14)
    model = SVC(kernel="linear", tol=1e-6).fit(X, y)
    assert model.certificate_.holds and verify(model, X, y)
    assert model.support_.tolist() == sklearn.svm.SVC(kernel="linear", tol=1e-8).fit(X, y).support_.tolist()
