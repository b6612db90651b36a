"""The checkers of Gaussian processes accept what was fitted and notice what was changed."""

import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import WhiteKernel
from sklearn.gaussian_process.tests._mini_sequence_kernel import MiniSeqKernel
from tests.mutations import arrays_of, unnoticed

from learnable import GaussianProcessClassifier, GaussianProcessRegressor, Ridge, verify
from learnable.risk.kernels import Gaussian, Matern, RationalQuadratic, White

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 2))
Y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=50)
KERNEL = 1.0 * Gaussian([1.0, 1.0]) + White(0.1)
LABELS = np.where(Y > 0, "a", "b")

MODELS = {
    "learned": (GaussianProcessRegressor(KERNEL), Y),
    "constant": (GaussianProcessRegressor(KERNEL, mean="constant"), Y),
    "linear": (GaussianProcessRegressor(KERNEL, mean="linear", optimizer=None), Y),
    "regressor": (GaussianProcessRegressor(KERNEL, mean=Ridge()), Y),
    "units": (GaussianProcessRegressor(KERNEL, normalize_y=True), 100 + 7 * Y),
    "noise of each row": (GaussianProcessRegressor(Matern(1.0, 1.5) * 1.0, alpha=np.linspace(0.01, 0.1, 50)), Y),
    "two targets": (GaussianProcessRegressor(RationalQuadratic(1.0, 1.0) + White(0.1)), np.column_stack([Y, Y**2])),
    "inducing": (GaussianProcessRegressor(KERNEL, inducing=20), Y),
    "inducing, fixed": (GaussianProcessRegressor(KERNEL, inducing=20, optimizer=None), Y),
    "two classes": (GaussianProcessClassifier(), LABELS),
    "two classes, fixed": (GaussianProcessClassifier(optimizer=None), LABELS),
    "three classes": (GaussianProcessClassifier(Gaussian(1.0)), np.digitize(Y, [-0.7, 0.7])),
    "pairs": (GaussianProcessClassifier(Gaussian(1.0), multi_class="one_vs_one"), np.digitize(Y, [-0.7, 0.7])),
    "softmax": (GaussianProcessClassifier(2.0 * Gaussian(1.0), multi_class="softmax"), np.digitize(Y, [-0.7, 0.7])),
}


@pytest.fixture(params=MODELS, ids=str)
def fitted(request):
    model, y = MODELS[request.param]
    return model.fit(X, y), y


def test_what_was_fitted_is_verified_and_what_was_changed_is_not(fitted):
    model, y = fitted
    verdict = verify(model, X, y)
    assert verdict, str(verdict)
    holder = model.estimators_[1] if hasattr(model, "estimators_") else model
    weights = holder.alpha_ if hasattr(holder, "alpha_") else holder.g_
    weights.flat[np.abs(weights).argmax()] *= 1.001
    assert not verify(model, X, y)


def test_another_kernel_or_other_data_are_noticed(fitted):
    model, y = fitted
    assert not verify(model, X[::-1] * 1.0001, y)
    if isinstance(model.kernel_, list):
        model.kernel_ = [model.kernel_[0].with_theta(model.kernel_[0].theta + 1e-3), *model.kernel_[1:]]
    else:
        model.kernel_ = model.kernel_.with_theta(model.kernel_.theta + 1e-3)
    assert not verify(model, X, y)


def test_swapped_labels_are_noticed():
    model = GaussianProcessClassifier(optimizer=None).fit(X, LABELS)
    model.classes_ = model.classes_[::-1]
    assert not verify(model, X, LABELS)


def test_a_changed_likelihood_is_noticed():
    model = GaussianProcessRegressor(KERNEL).fit(X, Y)
    model.log_marginal_likelihood_value_ += 0.01
    assert not verify(model, X, Y)


_RNG = np.random.default_rng(5)
_X = _RNG.normal(size=(40, 3)) * [1.0, 2.0, 0.5] + [3.0, 0.0, 1.0]
_Y = np.sin(_X[:, 0]) + 0.5 * _X[:, 1] + 0.1 * _RNG.normal(size=40)
_CODES = np.digitize(_Y, [-0.5, 0.7])
_KERNEL = 1.0 * Gaussian([1.0, 1.0, 1.0]) + White(0.1)
_CASES = {
    "exact": (GaussianProcessRegressor(_KERNEL), _Y),
    "a line": (GaussianProcessRegressor(_KERNEL, mean="linear", normalize_y=True), _Y),
    "two targets": (GaussianProcessRegressor(_KERNEL, optimizer=None), np.column_stack([_Y, _Y**2])),
    "inducing": (GaussianProcessRegressor(_KERNEL, inducing=8), _Y),
    "two classes": (GaussianProcessClassifier(), _Y > 0),
    "three classes": (GaussianProcessClassifier(), _CODES),
    "pairs": (GaussianProcessClassifier(multi_class="one_vs_one"), _CODES),
    "softmax": (GaussianProcessClassifier(multi_class="softmax"), _CODES),
}


@pytest.mark.parametrize("name", _CASES)
def test_a_change_of_any_fitted_array_is_noticed(name):
    model, y = _CASES[name]
    model.fit(_X, y)
    assert verify(model, _X, y)
    assert len(arrays_of(model)) > 5
    assert unnoticed(model, _X, y) == []


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("mean", ["zero", "linear"])
@pytest.mark.parametrize("kernel", [None, _KERNEL, Matern(1.0, 1.5) + White(1.0)])
def test_columns_and_targets_of_any_size_are_verified(scale, mean, kernel):
    for shift in (0.0, 1.0):
        X, y = (_X + shift) * [scale, 1.0, 1.0 / scale], _Y * scale
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a kernel in other units than the columns may fit badly
            model = GaussianProcessRegressor(kernel, mean=mean, normalize_y=True).fit(X, y)
        assert bool(verify(model, X, y)) is model.certificate_.holds


def test_points_that_are_no_rows_of_numbers_are_verified():
    words, y = ["A", "AB", "B", "BBA"], np.array([1.0, 2.0, 0.5, 1.5])
    for kernel in (MiniSeqKernel(), MiniSeqKernel() + WhiteKernel(0.1)):
        model = GaussianProcessRegressor(kernel).fit(words, y)
        assert verify(model, words, y)
        assert not verify(model, words[::-1], y)
        model.y_train_ = model.y_train_ * 1.001
        assert not verify(model, words, y)
    model = GaussianProcessClassifier(MiniSeqKernel()).fit(words, [0, 1, 0, 1])
    assert verify(model, words, [0, 1, 0, 1])
    assert not verify(model, words, [0, 1, 1, 1])
