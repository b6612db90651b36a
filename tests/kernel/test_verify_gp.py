"""The checkers of Gaussian processes accept what was fitted and notice what was changed."""

import numpy as np
import pytest

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
