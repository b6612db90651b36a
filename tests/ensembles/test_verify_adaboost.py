"""Every honest fit is verified, every forgery caught."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from learnable import verify
from learnable.core.errors import VerificationError
from learnable.ensembles import AdaBoostClassifier, AdaBoostRegressor
from learnable.linear import LogisticRegression, Ridge

RNG = np.random.default_rng(0)
X = np.round(RNG.standard_normal((200, 3)), 2)
SCORE = X[:, 0] * X[:, 1] + X[:, 0] + 0.4 * RNG.standard_normal(200)
Y = (SCORE > 0).astype(int)
THREE = np.digitize(SCORE, [-0.5, 0.5])
WEIGHT = RNG.random(200) * (RNG.random(200) > 0.1)

MODELS = {
    "stumps": (AdaBoostClassifier(n_estimators=8), Y),
    "SAMME": (AdaBoostClassifier(n_estimators=8), THREE),
    "real": (AdaBoostClassifier(n_estimators=8, variant="real"), Y),
    "float": (AdaBoostClassifier(n_estimators=25, variant="float"), Y),
    "float SAMME": (AdaBoostClassifier(n_estimators=15, variant="float"), THREE),
    "corrective": (AdaBoostClassifier(n_estimators=8, variant="totally-corrective"), Y),
    "half": (AdaBoostClassifier(n_estimators=8, vote="half", learning_rate=0.5), THREE),
    "validated": (AdaBoostClassifier(n_estimators=20, n_iter_no_change=4, random_state=0), Y),
    "models": (AdaBoostClassifier(LogisticRegression(), n_estimators=3), Y),
    "real models": (AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=4, variant="real"), THREE),
    "real odds": (AdaBoostClassifier(LogisticRegression(), n_estimators=3, variant="real"), Y),
    "regression": (AdaBoostRegressor(n_estimators=6, random_state=0), SCORE),
    "square": (AdaBoostRegressor(Ridge(), n_estimators=4, loss="square", random_state=0), SCORE),
    "exponential": (AdaBoostRegressor(n_estimators=4, loss="exponential", learning_rate=0.5, random_state=0), SCORE),
}
each = pytest.mark.parametrize("name", MODELS)


def fitted(name, weight=None):
    model, y = MODELS[name]
    return deepcopy(model).fit(X, y, weight), y


@each
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_every_honest_fit_is_verified(name, weight):
    model, y = fitted(name, weight)
    verdict = verify(model, X, y, weight)
    assert verdict, verdict


@each
def test_other_data_are_noticed(name):
    model, y = fitted(name)
    other = X.copy()
    other[3, 0] += 0.5
    assert not verify(model, other, y)
    assert not verify(model, X, np.roll(y, 1))
    assert not verify(model, X, y, np.r_[2.0, np.ones(199)])


@each
def test_a_vote_that_is_off_by_a_thousandth_is_noticed(name):
    model, y = fitted(name)
    model.estimator_weights_ = model.estimator_weights_ * np.r_[1.001, np.ones(len(model.estimator_weights_) - 1)]
    assert not verify(model, X, y)
    if hasattr(model, "rounds_"):  # and in both places
        model, y = fitted(name)
        scale = model.estimator_weights_[0] / model.rounds_["votes"][model.rounds_["removed"] < 0][0]
        first = np.flatnonzero(model.rounds_["removed"] < 0)[0]
        model.rounds_["votes"][first] *= 1.001
        model.estimator_weights_[0] = scale * model.rounds_["votes"][first]
        assert not verify(model, X, y)


@pytest.mark.parametrize("name", ["stumps", "SAMME", "real", "half", "validated"])
def test_a_threshold_that_is_moved_is_noticed(name):
    model, y = fitted(name)
    for change in (1.001, 1.5):
        forged = deepcopy(model)
        threshold = forged.stumps_.threshold * np.r_[change, np.ones(len(forged.stumps_) - 1)]
        assert threshold[0] != model.stumps_.threshold[0]
        forged.stumps_ = replace(forged.stumps_, threshold=threshold)
        assert not verify(forged, X, y)


@pytest.mark.parametrize("name", ["stumps", "real", "corrective"])
def test_swapped_sides_and_swapped_labels_are_noticed(name):
    model, y = fitted(name)
    forged = deepcopy(model)
    forged.stumps_ = replace(forged.stumps_, value=-forged.stumps_.value)
    assert not verify(forged, X, y)
    model.classes_ = model.classes_[::-1]
    assert not verify(model, X, y)


def test_a_stump_that_is_not_the_best_is_noticed():
    """Errors and votes all follow from the data, but a better stump was passed over."""
    model, _ = fitted("stumps")
    worse = AdaBoostClassifier(n_estimators=8).fit(X[:, 1:], Y)
    assert worse.estimator_errors_[0] > model.estimator_errors_[0]
    forged = deepcopy(worse)
    forged.n_features_in_ = 3
    forged.stumps_ = replace(forged.stumps_, feature=forged.stumps_.feature + 1)
    forged.certificate_ = replace(forged.certificate_, fingerprint=model.certificate_.fingerprint)
    verdict = verify(forged, X, Y)
    assert not verdict
    assert 0 < verdict.value <= 1


def test_a_removal_that_is_denied_is_noticed():
    model, y = fitted("float")
    gone = int(np.flatnonzero(model.rounds_["removed"] >= 0)[0])
    model.rounds_["removed"][gone] += 1
    assert not verify(model, X, y)


def test_a_loss_that_is_forged_is_noticed():
    model, y = fitted("stumps")
    model.exponential_loss_ = model.exponential_loss_ * np.r_[np.ones(7), 0.999]
    assert not verify(model, X, y)


def test_what_is_no_table_of_the_fit():
    model, y = fitted("stumps")
    with pytest.raises(VerificationError, match="the data are not"):
        verify(model, np.full((3, 3), np.nan), [0, 1, 1])
    with pytest.raises(VerificationError, match="3 columns"):
        verify(model, X[:, :2], y)
