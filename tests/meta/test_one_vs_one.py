"""One against one: votes are consistent, a Condorcet winner wins, and the rest is scikit-learn's."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import multiclass as peer
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression as SklearnLogistic
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC as SklearnSVC
from tests.meta.test_one_vs_rest import draw

import learnable as ln
from learnable import LogisticRegression, OneVsOneClassifier
from learnable.core.errors import ModelFileError, ParameterError
from learnable.meta.one_vs_one import count_votes

reconciling = pytest.mark.parametrize("reconcile", ["votes", "tournament"])


class Judge(ClassifierMixin, BaseEstimator):
    """A binary model whose confidence for each row is a column of X; it counts the rows it is asked about."""

    def __init__(self, column=0):
        self.column = column
        self.asked = 0

    def decision_function(self, X):
        self.asked += len(X)
        return X[:, self.column]


def judged(n_classes, reconcile):
    """Return a model of K classes whose pairwise confidences are the columns of X."""
    model = OneVsOneClassifier(Judge(), reconcile=reconcile)
    model.classes_ = np.arange(n_classes)
    model.estimators_ = [Judge(k) for k in range(n_classes * (n_classes - 1) // 2)]
    return model


def beats(confidences, n_classes):
    """Return the relation of each row: who beats whom, (n, K, K)."""
    relation = np.zeros((len(confidences), n_classes, n_classes), dtype=bool)
    for k, (first, second) in enumerate(combinations(range(n_classes), 2)):
        relation[:, second, first] = confidences[:, k] > 0
        relation[:, first, second] = ~relation[:, second, first]
    return relation


sizes = given(n_classes=st.integers(3, 7), seed=st.integers(0, 10**6))


@settings(max_examples=50, deadline=None)
@sizes
def test_votes_are_consistent(n_classes, seed):
    """Every pair gives one vote; confidence breaks ties and overrules nobody; the order of the classes is nothing."""
    C = np.random.default_rng(seed).normal(size=(50, n_classes * (n_classes - 1) // 2)) * 10
    scores, relation = count_votes(C, n_classes), beats(C, n_classes)
    votes = relation.sum(axis=2)
    assert (votes.sum(axis=1) == n_classes * (n_classes - 1) // 2).all()
    assert (np.abs(scores - votes) < 0.5).all()
    chosen = scores.argmax(axis=1)
    np.testing.assert_array_equal(votes[np.arange(50), chosen], votes.max(axis=1))
    # The same models with the classes numbered backwards: confidences change sign and place.
    pairs = list(combinations(range(n_classes), 2))
    place = [pairs.index((n_classes - 1 - j, n_classes - 1 - i)) for i, j in pairs]
    np.testing.assert_allclose(count_votes(-C[:, place], n_classes)[:, ::-1], scores, rtol=1e-12)


@reconciling
@settings(max_examples=50, deadline=None)
@sizes
def test_a_transitive_relation_has_the_condorcet_winner(reconcile, n_classes, seed):
    """If a strength of each class decides every pair, the strongest class wins."""
    strength = np.random.default_rng(seed).normal(size=(40, n_classes))
    C = np.column_stack([strength[:, j] - strength[:, i] for i, j in combinations(range(n_classes), 2)])
    np.testing.assert_array_equal(judged(n_classes, reconcile).predict(C), strength.argmax(axis=1))


@reconciling
@settings(max_examples=50, deadline=None)
@sizes
def test_who_beats_everybody_wins_whatever_the_others_do(reconcile, n_classes, seed):
    C = np.random.default_rng(seed).normal(size=(200, n_classes * (n_classes - 1) // 2))
    wins = beats(C, n_classes).sum(axis=2)
    there = (wins == n_classes - 1).any(axis=1)
    np.testing.assert_array_equal(judged(n_classes, reconcile).predict(C)[there], wins[there].argmax(axis=1))


@settings(max_examples=50, deadline=None)
@sizes
def test_the_winner_of_a_tournament_has_beaten_its_finalist_and_few_models_were_asked(n_classes, seed):
    C = np.random.default_rng(seed).normal(size=(60, n_classes * (n_classes - 1) // 2))
    model = judged(n_classes, "tournament")
    rounds = model.decision_function(C)
    assert sum(judge.asked for judge in model.estimators_) == 60 * (n_classes - 1)
    order = np.sort(rounds, axis=1)
    assert (order[:, -1] > order[:, -2]).all()
    winner = rounds.argmax(axis=1)
    assert beats(C, n_classes)[np.arange(60), winner].any(axis=1).all()


def test_a_circle_of_three_is_decided_by_confidence_or_by_the_draw():
    circle = np.array([[-1.0, 3.0, -1.0]])  # 0 beats 1, 1 beats 2, and 2 beats 0 by far
    assert judged(3, "votes").predict(circle).tolist() == [2]
    assert judged(3, "tournament").predict(circle).tolist() == [2]  # 0 beats 1, then meets 2
    np.testing.assert_array_equal(beats(circle, 3).sum(axis=2), 1)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("inner", [SklearnLogistic(), SklearnSVC(random_state=0)], ids=lambda m: type(m).__name__)
def test_votes_are_scikit_learns(inner, n_classes):
    X, y, _ = draw(n_classes=n_classes)
    ours, theirs = OneVsOneClassifier(inner).fit(X, y), peer.OneVsOneClassifier(inner).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-12)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)


@reconciling
def test_a_model_with_probabilities_only_is_taken(reconcile):
    X, y, _ = draw(n_classes=4)
    ours, theirs = (
        OneVsOneClassifier(GaussianNB(), reconcile=reconcile).fit(X, y),
        peer.OneVsOneClassifier(GaussianNB()),
    )
    assert (ours.predict(X) == theirs.fit(X, y).predict(X)).mean() > 0.95


@reconciling
def test_weights_sparse_tables_and_frames(reconcile):
    X, y, weight = draw()
    weight[:10] = 0
    model = OneVsOneClassifier(LogisticRegression(tol=1e-12), reconcile=reconcile)
    expected = model.fit(X[10:], y[10:], weight[10:]).decision_function(X)
    frame = pd.DataFrame(X, columns=list("abcd"))
    for table in (X, sp.csr_array(X), frame, sp.csc_array(X)):
        model.fit(table, y, weight)
        np.testing.assert_allclose(model.decision_function(table), expected, rtol=1e-3, atol=1e-3)
    model.fit(frame.assign(label=y, s=weight), "label", "s")
    np.testing.assert_array_equal(model.predict(frame), model.classes_[expected.argmax(axis=1)])
    model.fit(X, y, weight)
    np.testing.assert_array_equal(model.predict(X.tolist()), model.predict(X))


@reconciling
def test_certificate_checker_and_file(reconcile, tmp_path):
    X, y, weight = draw()
    model = OneVsOneClassifier(LogisticRegression(), reconcile=reconcile).fit(X, y, weight)
    assert model.certificate_.holds
    assert model.certificate_.value == max(inner.certificate_.value for inner in model.estimators_)
    ln.save(model, tmp_path / "m.safetensors")
    loaded = ln.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert ln.verify(loaded, X, y, weight), str(ln.verify(loaded, X, y, weight))
    assert not ln.verify(loaded, X, np.where(y == "class 0", "class 1", np.where(y == "class 1", "class 0", y)), weight)
    loaded.estimators_[2].intercept_ = loaded.estimators_[2].intercept_ + 0.01
    assert not ln.verify(loaded, X, y, weight)
    del loaded.estimators_[0]
    with pytest.raises(ModelFileError, match="estimators_ must hold 6 models"):
        ln.save(loaded, tmp_path / "m.safetensors")


def test_a_way_to_reconcile_that_is_none_is_refused():
    X, y, _ = draw()
    with pytest.raises(ParameterError, match="OneVsOneClassifier: reconcile must be one of"):
        OneVsOneClassifier(LogisticRegression(), reconcile="duel").fit(X, y)


@reconciling
def test_kernel_matrices_are_cut_to_the_rows_of_a_pair(reconcile, tmp_path):
    X, y, _ = draw(n=60)
    K, weight = X @ X.T, np.ones(60)
    weight[[3, 17, 40]] = 0.0
    model = OneVsOneClassifier(ln.SVC(kernel="precomputed"), reconcile=reconcile).fit(K, y, weight)
    plain = OneVsOneClassifier(ln.SVC(kernel="linear"), reconcile=reconcile).fit(X, y, weight)
    np.testing.assert_array_equal(model.predict(K), plain.predict(X))
    assert model.n_features_in_ == 60
    assert [len(rows) for rows in model.pairwise_indices_] == [one.n_features_in_ for one in model.estimators_]
    assert ln.verify(model, K, y, weight)
    ln.save(model, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(ln.load(tmp_path / "model.safetensors").predict(K), model.predict(K))
    model.pairwise_indices_[0] = model.pairwise_indices_[0][::-1]
    assert not ln.verify(model, K, y, weight)
