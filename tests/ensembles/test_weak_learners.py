"""Weak learners as boosters see them."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from learnable.core.errors import DataError
from learnable.ensembles.adaboost.stumps import Stump
from learnable.ensembles.weak_learners import (
    ModelLearner,
    StumpLearner,
    labels_of,
    learner_outputs,
    model_vote,
    seed_parts,
    spread,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
Y = (X[:, 0] > 0.3).astype(np.int64)
CLASSES = np.array(["no", "yes"])
D = np.full(40, 1 / 40)


def test_a_stump_names_classes():
    found = StumpLearner(X, Y, 2, False, 1).find(D)
    np.testing.assert_array_equal(found.codes, Y)
    assert found.scores is None
    np.testing.assert_array_equal(labels_of(learner_outputs(found.learner, X, CLASSES, None)), found.codes)


def test_a_confident_stump_says_at_most_one():
    found = StumpLearner(X, RNG.integers(2, size=40), 2, True, 1).find(D)
    assert np.abs(found.scores).max() == pytest.approx(1.0)
    assert spread(found.learner.value) == pytest.approx(1.0)
    np.testing.assert_array_equal(learner_outputs(found.learner, X, CLASSES, None), found.scores)


@pytest.mark.parametrize("model", [GaussianNB(), DecisionTreeClassifier(max_depth=2)])
def test_a_models_scores_are_half_the_log_odds(model):
    found = ModelLearner(model, X, Y, CLASSES, True, seed=0).find(D)
    p = np.clip(found.learner.predict_proba(X)[:, 1], 1 / 80, 1 - 1 / 80)
    np.testing.assert_allclose(found.vote * found.scores[:, 0], 0.5 * np.log(p / (1 - p)), atol=1e-12)
    assert np.abs(found.scores).max() <= 1 + 1e-12
    np.testing.assert_array_equal(learner_outputs(found.learner, X, CLASSES, 1 / 80), found.scores)


def test_scores_of_several_classes_sum_to_zero_and_spread_by_one():
    y = RNG.integers(3, size=40)
    found = ModelLearner(DecisionTreeClassifier(), X, y, np.arange(3), True, seed=0).find(D)
    np.testing.assert_allclose(found.scores.sum(axis=1), 0.0, atol=1e-12)
    assert spread(found.scores) == pytest.approx(1.0)
    assert found.vote == model_vote(3, 1 / 80)


def test_learners_without_weights_or_probabilities_are_refused():
    with pytest.raises(DataError, match="takes no sample_weight"):
        ModelLearner(KNeighborsClassifier(), X, Y, CLASSES, False, 0)
    with pytest.raises(DataError, match="has no predict_proba"):
        ModelLearner(LinearSVC(), X, Y, CLASSES, True, 0)


def test_a_pipeline_gets_the_weights_at_its_last_step():
    found = ModelLearner(make_pipeline(StandardScaler(), GaussianNB()), X, Y, CLASSES, False, 0).find(D)
    assert np.mean(found.codes == Y) > 0.8


def test_every_part_gets_a_seed_of_its_own():
    one, two = (make_pipeline(DecisionTreeClassifier(), DecisionTreeClassifier()) for _ in range(2))
    seed_parts(one, 5, 0)
    seed_parts(two, 5, 1)
    seeds = [step.random_state for model in (one, two) for _, step in model.steps]
    assert len(set(seeds)) == 4
    seed_parts(two, 5, 0)
    assert [step.random_state for _, step in two.steps] == seeds[:2]
    seed_parts(LinearRegression(), 5, 0)


def test_ties_go_to_the_first_class():
    np.testing.assert_array_equal(labels_of(np.array([[0.0], [1.0]])), [0, 1])
    np.testing.assert_array_equal(labels_of(np.array([[0.5, 0.5, 0.0]])), [0])
    constant = Stump(0, 0.0, np.array([[1.0], [1.0]]))
    np.testing.assert_array_equal(learner_outputs(constant, X, CLASSES, None), np.ones((40, 1)))
