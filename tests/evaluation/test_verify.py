"""The independent checkers: a true fit passes, every kind of tampering and other data fail."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from tests.evaluation.wrapped import classes, regression

from learnable import LinearRegression, LogisticRegression, Ridge, verify
from learnable.core import VerificationError
from learnable.evaluation import CalibratedClassifier, ConformalClassifier, ConformalRegressor
from learnable.evaluation.verify import _isotonic_residual

REGRESSORS = [
    ConformalRegressor(random_state=0),
    ConformalRegressor(random_state=0, scale=Ridge()),
    ConformalRegressor(method="cv+", random_state=0),
    ConformalRegressor(method="cv", random_state=0),
    ConformalRegressor(method="jackknife+"),
    ConformalRegressor(LinearRegression(fit_intercept=False), method="jackknife+"),
    ConformalRegressor(Ridge(positive=True), method="jackknife+"),
]
CLASSIFIERS = [
    ConformalClassifier(random_state=0),
    ConformalClassifier(method="cv+", conformity_score="lac", random_state=0),
    ConformalClassifier(method="cv+", randomized=True, random_state=0),
    CalibratedClassifier(),
    CalibratedClassifier(method="isotonic"),
    CalibratedClassifier(method="temperature"),
    CalibratedClassifier(LogisticRegression().fit(*classes(80, seed=9)), cv="prefit"),
    CalibratedClassifier(GaussianNB(), method="temperature"),
]


def data_for(model):
    X, y = regression(60) if isinstance(model, ConformalRegressor) else classes(90)
    return X, y, np.random.default_rng(0).uniform(0.2, 2.0, size=len(y))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", REGRESSORS + CLASSIFIERS, ids=repr)
def test_a_true_fit_passes_and_other_data_fail(model, weighted):
    X, y, weight = data_for(model)
    weight = weight if weighted else None
    model.fit(X, y, weight)
    assert model.certificate_.holds
    assert verify(model, X, y, weight)
    assert not verify(model, 1.001 * X, y, weight)
    assert not verify(model, X[::-1], y[::-1], None if weight is None else weight[::-1])
    assert not verify(model, X[1:], y[1:], None if weight is None else weight[1:])
    assert not verify(model, X, np.roll(y, 1), weight)
    assert not verify(model, X, y, np.linspace(1, 2, len(y)))


@pytest.mark.parametrize("model", REGRESSORS + CLASSIFIERS[:3], ids=repr)
def test_tampering_with_a_conformal_model_is_found(model):
    X, y, _ = data_for(model)
    model.fit(X, y)
    model.scores_ = model.scores_ * 1.001
    assert not verify(model, X, y)
    model.fit(X, y).estimator_.coef_ *= 1.001
    assert not verify(model, X, y)
    if model.fit(X, y).estimators_:
        model.estimators_[1].coef_ *= 1.001
        assert not verify(model, X, y)
    if hasattr(model, "loo_coef_"):
        model.loo_coef_[7] *= 1.001
        assert not verify(model, X, y)
        # A change of coefficient and score that agree with each other breaks the equations.
        model.scores_[7] = abs(y[7] - X[7] @ model.loo_coef_[7] - model.loo_intercept_[7])
        assert not verify(model, X, y)
    if hasattr(model, "uniform_") and model.uniform_.any():
        model.fit(X, y).uniform_ = np.roll(model.uniform_, 1)
        assert not verify(model, X, y)


@pytest.mark.parametrize("model", CLASSIFIERS[3:6], ids=repr)
def test_tampering_with_a_calibrator_is_found(model):
    X, y, _ = data_for(model)
    model.fit(X, y).estimators_[2].coef_ *= 1.001
    assert not verify(model, X, y)
    for part in model.fit(X, y).calibrators_[1]:
        for name, value in vars(part).items():
            if name != "scores":
                object.__setattr__(part, name, value * 0.999)
    assert not verify(model, X, y)


def test_swapped_labels_are_found():
    X, y = classes(90)
    swapped = np.where(y == "ant", "bee", np.where(y == "bee", "ant", y))
    for model in (ConformalClassifier(random_state=0), CalibratedClassifier()):
        assert not verify(model.fit(X, y), X, swapped)
        assert not verify(model, X, np.where(y == "ant", "asp", y))


def test_what_cannot_be_recomputed_claims_nothing():
    X, y = classes(90)
    model = CalibratedClassifier(ensemble=False).fit(X, y)
    assert model.certificate_.kind == "none"
    with pytest.raises(VerificationError, match="proves nothing"):
        verify(model, X, y)
    with pytest.raises(VerificationError, match="the data are not those of a fit"):
        verify(CalibratedClassifier().fit(X, y), X, np.zeros(90))


def test_isotonic_conditions_tell_the_optimum_from_its_neighbours():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1))
    y = rng.random(200) < 1 / (1 + np.exp(-X[:, 0]))
    model = CalibratedClassifier(method="isotonic").fit(X, y)
    [best] = model.calibrators_[0]
    rows = model.calibration_rows_[0]
    scores = model.estimators_[0].decision_function(X[rows])
    arguments = scores, y[rows], np.ones(len(rows))
    assert _isotonic_residual(best, *arguments) < 1e-14
    flat = type(best)(best.scores, np.full(len(best.scores), y[rows].mean()))  # monotone, right on average
    assert _isotonic_residual(flat, *arguments) > 1e-3
    steep = type(best)(best.scores, np.linspace(0, 1, len(best.scores)))
    assert _isotonic_residual(steep, *arguments) > 1e-3
