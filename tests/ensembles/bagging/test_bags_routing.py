"""Bagging passes metadata on to its members, as scikit-learn's does with enable_metadata_routing=True."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import UnsetMetadataPassedError

from learnable import BaggingClassifier, BaggingRegressor, GaussianNB, LogisticRegression, Ridge, verify
from learnable.core.errors import ParameterError

X = np.arange(20.0).reshape(10, 2)
Y = np.array([0, 1] * 5)


class Recorder(ClassifierMixin, BaseEstimator):
    """A classifier that keeps what it was given."""

    def fit(self, X, y, sample_weight=None, tag=None, colour=None):
        self.classes_ = np.unique(y)
        self.got_ = {"fit": (np.asarray(X), sample_weight, tag, colour)}
        return self

    def predict(self, X, tag=None):
        self.got_["predict"] = tag
        return np.full(len(X), self.classes_[0])


class WithProbabilities(Recorder):
    def predict_proba(self, X, tag=None):
        self.got_["predict_proba"] = tag
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


class WithLogarithms(WithProbabilities):
    def predict_log_proba(self, X, tag=None):
        self.got_["predict_log_proba"] = tag
        return np.full((len(X), len(self.classes_)), -np.log(len(self.classes_)))

    def decision_function(self, X, tag=None):
        self.got_["decision_function"] = tag
        return np.zeros(len(X))


class Mean(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.mean_ = np.mean(y)
        return self

    def predict(self, X, shift=0.0):
        return np.full(len(X), self.mean_ + shift)


@pytest.mark.parametrize(
    ("Member", "caller", "callee"),
    [
        (Recorder, "predict", "predict"),
        (Recorder, "predict_proba", "predict"),
        (Recorder, "predict_log_proba", "predict"),
        (WithProbabilities, "predict", "predict_proba"),
        (WithProbabilities, "predict_proba", "predict_proba"),
        (WithProbabilities, "predict_log_proba", "predict_proba"),
        (WithLogarithms, "predict_log_proba", "predict_log_proba"),
        (WithLogarithms, "decision_function", "decision_function"),
    ],
)
@config_context(enable_metadata_routing=True)
def test_answers_ask_the_first_method_that_members_have(Member, caller, callee):
    member = getattr(Member(), f"set_{callee}_request")(tag=True)
    model = BaggingClassifier(member, n_estimators=3, random_state=0).fit(X, Y)
    answer = getattr(model, caller)(X, tag="a")
    assert len(answer) == len(X)
    assert [inner.got_[callee] for inner in model.estimators_] == ["a"] * 3
    with pytest.raises(UnsetMetadataPassedError, match="tag"):  # nobody asked for it
        getattr(BaggingClassifier(Member(), n_estimators=3, random_state=0).fit(X, Y), caller)(X, tag="a")


@config_context(enable_metadata_routing=True)
def test_members_get_the_metadata_of_their_rows():
    member = Recorder().set_fit_request(tag=True, colour=True)
    model = BaggingClassifier(member, n_estimators=4, random_state=0).fit(X, Y, tag=np.arange(10), colour="red")
    for inner, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        seen, weight, tag, colour = inner.got_["fit"]
        np.testing.assert_array_equal(tag, rows)  # weights were not asked for: the rows as they were drawn
        np.testing.assert_array_equal(seen, X[rows])
        assert weight is None and colour == "red"


@pytest.mark.parametrize("tag", [list(range(10)), pd.Series(range(10)), sp.csr_array(np.arange(10.0)[:, None])])
@config_context(enable_metadata_routing=True)
def test_members_that_ask_for_weights_get_distinct_rows_and_their_metadata(tag):
    member = Recorder().set_fit_request(tag=True, sample_weight=True)
    model = BaggingClassifier(member, n_estimators=4, random_state=0).fit(X, Y, tag=tag)
    for inner, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        distinct, counts = np.unique(rows, return_counts=True)
        seen, weight, own, _ = inner.got_["fit"]
        own = own.toarray()[:, 0] if sp.issparse(own) else own
        np.testing.assert_array_equal(own, distinct)
        np.testing.assert_array_equal(seen, X[distinct])
        np.testing.assert_array_equal(weight, counts)


@config_context(enable_metadata_routing=True)
def test_regressors_too():
    model = BaggingRegressor(Mean().set_predict_request(shift=True), n_estimators=5, random_state=0).fit(X, X[:, 0])
    np.testing.assert_allclose(model.predict(X, shift=2.0), model.predict(X) + 2.0)
    with pytest.raises(UnsetMetadataPassedError, match="shift"):
        BaggingRegressor(Mean(), random_state=0).fit(X, X[:, 0]).predict(X, shift=2.0)


def test_without_routing_metadata_are_refused_by_name():
    model = BaggingClassifier(WithLogarithms(), n_estimators=2, random_state=0)
    with pytest.raises(ParameterError, match=r"fit got colour, tag.*enable_metadata_routing"):
        model.fit(X, Y, tag="a", colour="b")
    model.fit(X, Y)
    for name in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        with pytest.raises(ParameterError, match=f"{name} got tag"):
            getattr(model, name)(X, tag="a")


def test_a_fit_with_routing_is_verified_without_it_and_the_other_way_round():
    with config_context(enable_metadata_routing=True):
        routed = BaggingRegressor(Ridge(), n_estimators=3, random_state=0).fit(X, X[:, 0])
    plain = BaggingRegressor(Ridge(), n_estimators=3, random_state=0).fit(X, X[:, 0])
    assert not routed.counted_ and plain.counted_
    assert verify(routed, X, X[:, 0])
    with config_context(enable_metadata_routing=True):
        assert verify(plain, X, X[:, 0])
        assert verify(routed, X, X[:, 0])
    np.testing.assert_allclose(routed.predict(X), plain.predict(X))


def test_logarithms_of_small_probabilities_do_not_vanish():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(60, 2)), np.repeat([0, 1], 30)
    rows[labels == 1] += 30.0
    model = BaggingClassifier(GaussianNB(), n_estimators=5, random_state=0).fit(rows, labels)
    logs = model.predict_log_proba(rows)
    assert np.isfinite(logs).all() and logs.min() < -750  # exp of it is 0 in float64
    kept = logs > -700
    np.testing.assert_allclose(np.exp(logs)[kept], model.predict_proba(rows)[kept], rtol=1e-9)


@pytest.mark.parametrize(
    "container", [sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.csc_array, sp.coo_matrix, sp.lil_array]
)
@pytest.mark.parametrize("max_features", [1.0, 1])
def test_members_get_the_container_of_the_rows(container, max_features):
    seen = []

    class Kind(LogisticRegression):
        def fit(self, X, y):
            seen.append(type(X))
            return super().fit(X, y)

        def predict_proba(self, X):
            seen.append(type(X))
            return super().predict_proba(X)

    model = BaggingClassifier(Kind(), n_estimators=2, max_features=max_features, random_state=0).fit(container(X), Y)
    model.predict(container(X))
    row_wise = sp.csr_matrix if issubclass(container, sp.spmatrix) else sp.csr_array
    expected = container if container(X).format in ("csr", "csc") else row_wise
    assert set(seen) == {expected}
