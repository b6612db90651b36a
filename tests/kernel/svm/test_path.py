"""The machine along C: every solution is that of a fit of its own, and the path obeys its laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernel.svm_tables import noisy

from learnable.core.errors import DataError, ParameterError
from learnable.kernel import SVC, svm_path


def test_on_paper():
    """Rows 0, 1 | 2, 3 on a line: ‖f‖ = 4C with all inside the margin, ⅔ with the outer on it, then C, then 2."""
    path = svm_path([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], [0.1, 0.2, 1.0, 10.0], kernel="linear", tol=1e-8)
    assert path.norms == pytest.approx([0.4, 2 / 3, 1.0, 2.0], rel=1e-6)
    assert path.cases.tolist() == [[0, 0, 4], [0, 2, 2], [2, 0, 2], [2, 2, 0]]
    assert path.intercepts[-1] == pytest.approx(-3.0, rel=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_every_point_is_a_fit_of_its_own(fit_intercept):
    X, y = noisy(70, 2)
    path = svm_path(X, y, [0.1, 1.0, 10.0], gamma=0.5, tol=1e-6, fit_intercept=fit_intercept)
    for C, coef, b, scores in zip(path.Cs, path.coefs, path.intercepts, path.scores, strict=True):
        model = SVC(C=C, gamma=0.5, tol=1e-6, fit_intercept=fit_intercept).fit(X, y)
        np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-5)
        assert b == pytest.approx(model.intercept_[0], abs=1e-5)
        assert (np.abs(coef) <= C).all() and (coef * y >= 0).all()
    assert (path.violations <= 1e-6).all()


@settings(max_examples=10)
@given(st.integers(0, 1000), st.sampled_from(["linear", "rbf"]))
def test_the_margin_narrows_the_slacks_fall_and_the_bound_rises(seed, kernel):
    X, y = noisy(50, 2, seed)
    path = svm_path(X, y, np.logspace(-2, 2, 7), kernel=kernel, gamma=0.5, tol=1e-6)
    assert (np.diff(path.norms) >= -1e-5 * path.norms[:-1]).all()
    assert (np.diff(path.slacks) <= 1e-5 * path.slacks[:-1]).all()
    assert (np.diff(path.dual) >= 0).all()
    assert (path.primal >= path.dual * (1 - 1e-12)).all()
    assert (path.cases.sum(axis=1) == 50).all()
    assert (path.n_support == path.cases[:, 1:].sum(axis=1)).all()


def test_coefficients_are_linear_in_c_between_events():
    X, y = noisy(40, 2)
    Cs = np.linspace(1.0, 1.0003, 4)
    path = svm_path(X, y, Cs, gamma=0.5, tol=1e-9)
    np.testing.assert_allclose(np.diff(path.coefs, n=2, axis=0), 0.0, atol=1e-6)
    assert np.abs(np.diff(path.coefs, axis=0)).max() > 1e-5


def test_weights_multiply_costs_and_rows_of_weight_zero_are_gone():
    X, y = noisy(60, 2)
    weight = np.random.default_rng(0).integers(0, 3, 60).astype(float)
    path = svm_path(X, y, [1.0], sample_weight=weight, gamma=0.5, tol=1e-6)
    repeated = np.repeat(np.arange(60), weight.astype(int))
    twice = svm_path(X[repeated], y[repeated], [1.0], gamma=0.5, tol=1e-6)
    assert path.dual[0] == pytest.approx(twice.dual[0], rel=1e-6)
    assert path.coefs.shape[1] == (weight > 0).sum()


@pytest.mark.threaded
def test_threads_change_nothing():
    X, y = noisy(150, 2)
    one, two = (svm_path(X, y, 4, n_jobs=n) for n in (1, 2))
    assert one.coefs.tobytes() == two.coefs.tobytes() and one.intercepts.tobytes() == two.intercepts.tobytes()


def test_time_ends_the_path_early():
    X, y = noisy(60, 2)
    assert 1 <= len(svm_path(X, y, 20, max_seconds=1e-6).Cs) < 20


def test_bad_calls():
    X, y = noisy(20)
    with pytest.raises(ParameterError, match="Cs must be numbers > 0"):
        svm_path(X, y, [1.0, -1.0])
    with pytest.raises(ParameterError, match="Cs must be numbers > 0"):
        svm_path(X, y, 0)
    with pytest.raises(ParameterError, match="Cs must be numbers > 0"):
        svm_path(X, y, "all")
    with pytest.raises(ParameterError, match="leave solver out"):
        svm_path(X, y, solver="primal")
    with pytest.raises(ParameterError, match="svm_path: tol"):
        svm_path(X, y, tol=-1.0)
    with pytest.raises(DataError, match="two classes"):
        svm_path(X, np.arange(20) % 3)
