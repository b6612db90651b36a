"""The gradient report: the bound holds, and what is wrong is said in words."""

import warnings

import numpy as np
import pytest

from learnable import LSTMRegressor, MLPClassifier, MLPRegressor, ResNetClassifier, RNNRegressor
from learnable.core.errors import DataError, ParameterError
from learnable.neural import double_descent, gradient_report, loss_along_line, loss_on_plane
from learnable.neural.report import _ends_of_the_spectrum, _words_of_trace

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def rows(n=80, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def test_vanishing_and_exploding_gradients_are_found_and_stay_under_the_bound():
    X, y = rows()
    for activation, scale, word in (("logistic", 1.0, "vanish"), ("relu", 3.0, "explode"), ("tanh", 1.0, None)):
        deep = MLPClassifier((10,) * 12, activation=activation, max_iter=1, random_state=0, learning_rate_init=1e-9)
        deep.fit(X, y)
        deep.theta_ = (deep.theta_ * np.float32(scale)).astype(np.float32)
        report = gradient_report(deep, X, y)
        assert (report.measured <= report.bound * (1 + 1e-9)).all()
        if word is not None:
            assert word in str(report)


def test_shortcuts_keep_gradients_alive():
    X, y = rows()
    blocks = ResNetClassifier(20, 8, activation="tanh", max_iter=1, random_state=0).fit(X, y)
    assert gradient_report(blocks, X, y).measured[0] > 0.1


def test_dead_and_saturated_units_are_counted():
    X, y = rows()
    model = MLPClassifier((10,), max_iter=1, random_state=0).fit(X, y)
    network = model._built()
    views = network.views(model.theta_[0], 0)
    views["b"][:4] = -1e3
    report = gradient_report(model, X, y)
    assert report.layers[1].dead == pytest.approx(0.4)
    assert "40% of the units are dead" in str(report)
    flat = MLPClassifier((10,), activation="tanh", max_iter=1, random_state=0).fit(1e3 * X, y)
    assert gradient_report(flat, 1e3 * X, y).layers[1].saturated > 0.9


def test_the_report_goes_through_time():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 60, 1)), rng.normal(size=30)
    plain = RNNRegressor(5, max_iter=1, random_state=0).fit(X, y)
    report = gradient_report(plain, X, y)
    assert report.by_step.shape == (60,)
    assert "Through time they vanish" in str(report)
    assert gradient_report(LSTMRegressor(3, max_iter=1, random_state=0).fit(X, y), X, y).by_step[-1] == 1.0


def test_models_of_every_step_have_reports():
    """With a target at every step the last step has no more gradient than the others; the loss is that of the fit."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 1)) for n in rng.integers(3, 8, 30)]
    y = [x[:, 0].cumsum() for x in X]
    settings = {"predicts": "every_step", "solver": "lbfgs", "max_iter": 20, "random_state": 0}
    for model in (LSTMRegressor(3, **settings), RNNRegressor(3, **settings)):
        report = gradient_report(model.fit(X, y), X, y)
        assert report.loss == pytest.approx(model.loss_)
        assert report.by_step.shape == (7,)
        assert report.gradient_norm >= model.certificate_.value * 0.999


def test_saddles_and_minima_are_told_apart():
    X, y = rows()
    at_zero = MLPRegressor(hidden_layer_sizes=(4,), activation="tanh", init="zeros", max_iter=1, alpha=0.0)
    at_zero.set_params(learning_rate_init=1e-30).fit(X, y - y.mean())
    assert gradient_report(at_zero, X, y - y.mean()).kind == "saddle"
    bowl = MLPRegressor(hidden_layer_sizes=(), solver="lbfgs", tol=1e-8, alpha=0.1).fit(X, y)
    report = gradient_report(bowl, X, y)
    assert report.kind == "minimum"
    exact = np.linalg.eigvalsh(
        np.cov(np.c_[X, np.ones(80)].T, bias=True) * 0 + np.c_[X, np.ones(80)].T @ np.c_[X, np.ones(80)] / 80
    )
    assert report.eigenvalues[1] == pytest.approx(exact[-1], rel=0.05)


def test_lanczos_finds_the_ends():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 30))
    A = A + A.T
    low, high = _ends_of_the_spectrum(lambda v: A @ v, 30)
    np.testing.assert_allclose([low, high], np.linalg.eigvalsh(A)[[0, -1]], rtol=1e-3)


def test_steps_that_are_too_long_are_called_so():
    X, y = rows()
    model = MLPRegressor(hidden_layer_sizes=(5,), max_iter=3, random_state=0).fit(X, y)
    assert "too long" in str(gradient_report(model, X, y, step=1e3))
    assert "too long" not in str(gradient_report(model, X, y, step=1e-6))


def test_plateaus_and_cliffs_of_a_trace():
    assert any("Plateau" in word for word in _words_of_trace([3.0, 2.0, 1.0, *[1.0] * 20]))
    assert any("Cliff: in epoch 5" in word for word in _words_of_trace([5.0, 4.0, 3.0, 2.0, 1.0, 9.0, 4.0, 2.0, 1.0]))
    assert _words_of_trace(list(np.geomspace(10.0, 0.1, 20))) == []


def test_the_landscape_is_lowest_at_a_fit():
    X, y = rows()
    model = MLPRegressor(hidden_layer_sizes=(4,), activation="tanh", solver="lbfgs", random_state=0, alpha=0.1).fit(
        X, y
    )
    line = loss_along_line(model, X, y, n_points=21)
    assert np.argmin(line.loss) == 10
    assert line.loss[10] == pytest.approx(model.loss_, rel=1e-6)
    plane = loss_on_plane(model, X, y, n_points=5)
    assert plane.loss.min() == plane.loss[2, 2]
    other = MLPRegressor(hidden_layer_sizes=(4,), activation="tanh", solver="lbfgs", random_state=1, alpha=0.1).fit(
        X, y
    )
    between = loss_along_line(model, X, y, towards=other, reach=0.0, n_points=2)
    assert between.loss[1] == pytest.approx(other.loss_, rel=1e-6)


def test_double_descent_has_its_peak_where_units_are_as_many_as_rows():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(40, 5)), rng.normal(size=(400, 5))
    y = X[:, 0] + 0.3 * rng.normal(size=40)
    found = double_descent(X, y, new, new[:, 0], [5, 20, 40, 100, 1000])
    assert np.argmax(found.test) == 2
    assert found.test[4] < 0.5 * found.test[2]
    assert (np.diff(found.train) <= 1e-9).all()
    with pytest.raises(DataError, match="do not fit"):
        double_descent(X, y[:-1], new, new[:, 0], [5])


def test_only_fitted_networks_have_reports():
    with pytest.raises(ParameterError, match="fitted"), warnings.catch_warnings():
        gradient_report(MLPClassifier(), np.zeros((2, 1)), [0, 1])
