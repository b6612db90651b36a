"""One-vs-rest and one-vs-one pass metadata on to their models, as scikit-learn does with metadata routing."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import UnsetMetadataPassedError

from learnable import LogisticRegression, OneVsOneClassifier, OneVsRestClassifier, verify
from learnable.core.errors import ParameterError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
Y = np.repeat([0, 1, 2], 10)
WEIGHT = np.where(np.arange(30) % 5 == 0, 0.0, 1.0 + np.arange(30))
REDUCTIONS = [OneVsRestClassifier, OneVsOneClassifier]


class Recorder(ClassifierMixin, BaseEstimator):
    """A classifier that keeps what it was given."""

    def fit(self, X, y, sample_weight=None, place=None, colour=None):
        self.classes_ = np.unique(y)
        self.got_ = np.asarray(X), sample_weight, place, colour
        return self

    def partial_fit(self, X, y, classes=None, sample_weight=None, place=None, colour=None):
        return self.fit(X, y, sample_weight, place, colour)

    def predict(self, X):
        return np.zeros(len(X))


@pytest.mark.parametrize("Reduction", REDUCTIONS)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_each_model_gets_the_metadata_of_its_rows(Reduction, method):
    with config_context(enable_metadata_routing=True):
        inner = Recorder()
        getattr(inner, f"set_{method}_request")(sample_weight=True, place=True, colour=True)
        first = {"classes": [0, 1, 2]} if method == "partial_fit" else {}
        model = Reduction(inner)
        getattr(model, method)(X, Y, sample_weight=WEIGHT, place=np.arange(30), colour="red", **first)
    for one in model.estimators_:
        rows, weight, place, colour = one.got_
        assert colour == "red"
        assert (WEIGHT[place] > 0).all()
        np.testing.assert_array_equal(rows, X[place])
        np.testing.assert_array_equal(weight, WEIGHT[place])
    n_rows = {len(one.got_[2]) for one in model.estimators_}
    assert n_rows == ({24} if Reduction is OneVsRestClassifier else {16})


@pytest.mark.parametrize("Reduction", REDUCTIONS)
def test_what_nobody_asked_for_is_refused(Reduction):
    with pytest.raises(ParameterError, match="fit got place, which is not allowed without metadata routing"):
        Reduction(Recorder()).fit(X, Y, place=np.arange(30))
    with config_context(enable_metadata_routing=True):
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            Reduction(Recorder()).fit(X, Y, sample_weight=WEIGHT)
        with pytest.raises(TypeError, match="place"):
            Reduction(LogisticRegression()).fit(X, Y, place=np.arange(30))


@pytest.mark.parametrize("Reduction", REDUCTIONS)
def test_weights_give_the_same_models_with_and_without_routing(Reduction):
    plain = Reduction(LogisticRegression()).fit(X, Y, sample_weight=WEIGHT)
    with config_context(enable_metadata_routing=True):
        routed = Reduction(LogisticRegression().set_fit_request(sample_weight=True)).fit(X, Y, sample_weight=WEIGHT)
        unweighted = Reduction(LogisticRegression()).fit(X, Y)
    for a, b in zip(plain.estimators_, routed.estimators_, strict=True):
        np.testing.assert_array_equal(a.coef_, b.coef_)
    assert verify(routed, X, Y, WEIGHT)
    assert verify(unweighted, X, Y)
