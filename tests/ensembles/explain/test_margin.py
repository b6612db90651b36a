"""Margins, the bound, and the linear program of the largest margin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.ensemble import AdaBoostClassifier as SklearnAdaBoost
from sklearn.ensemble import BaggingClassifier as SklearnBagging
from sklearn.tree import DecisionTreeClassifier
from tests.oracles import boosting as oracle

from learnable.core.errors import DataError
from learnable.ensembles import AdaBoostClassifier, margin_optimum, margins, training_bound
from learnable.ensembles.explain.margin import label_codes, vote_margins


@given(st.lists(st.floats(0.01, 0.5), min_size=1, max_size=30))
def test_the_bound_is_below_the_exponential_of_the_edges(errors):
    gamma = 0.5 - np.array(errors)
    assert (training_bound(errors) <= np.exp(-2 * np.cumsum(gamma**2)) * (1 + 1e-12)).all()
    np.testing.assert_allclose(training_bound(errors), np.cumprod(np.sqrt(1 - 4 * gamma**2)), rtol=1e-9, atol=1e-12)


def test_the_bound_of_a_guess_is_one_for_any_number_of_classes():
    for K in (2, 3, 10):
        assert training_bound([1 - 1 / K], K) == pytest.approx(1.0)


@pytest.mark.parametrize("bad", [[1.5], [-0.1], [np.nan], [[0.1]]])
def test_errors_that_are_none(bad):
    with pytest.raises(DataError, match="between 0 and 1"):
        training_bound(bad)


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 8))
def test_the_largest_margin_is_the_smallest_edge(seed, n, T):
    U = np.random.default_rng(seed).choice([-1.0, 1.0], size=(n, T))
    found = margin_optimum(U)
    assert found.margin == pytest.approx(oracle.smallest_edge(U), abs=1e-9)
    assert (U @ found.votes).min() == pytest.approx(found.margin, abs=1e-9)
    assert (found.distribution @ U).max() == pytest.approx(found.margin, abs=1e-9)
    assert found.votes.sum() == pytest.approx(1.0)


def test_tables_without_a_solution_are_refused():
    for bad in ([1.0, 2.0], np.empty((0, 2)), [[np.nan]]):
        with pytest.raises(DataError, match="finite numbers"):
            margin_optimum(bad)


def test_a_margin_is_positive_where_the_vote_is_right():
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    for model in (AdaBoostClassifier(n_estimators=7), SklearnAdaBoost(n_estimators=7), SklearnBagging(n_estimators=5)):
        model.fit(X, names)
        found = margins(model, X, names)
        assert (np.abs(found) <= 1 + 1e-12).all()
        if not isinstance(model, SklearnBagging):  # which averages probabilities and does not vote
            clear = np.abs(found) > 1e-12
            np.testing.assert_array_equal((found > 0)[clear], (model.predict(X) == names)[clear])


def test_margins_of_another_ensemble_are_counted_votes():
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(max_depth=1)
    ours = AdaBoostClassifier(tree, n_estimators=9, random_state=0).fit(X, y)
    theirs = SklearnAdaBoost(tree, n_estimators=9, random_state=0).fit(X, y)
    np.testing.assert_allclose(margins(ours, X, y), margins(theirs, X, y), atol=1e-12)
    bag = SklearnBagging(DecisionTreeClassifier(max_depth=2), n_estimators=8, max_features=2, random_state=1).fit(X, y)
    pairs = zip(bag.estimators_, bag.estimators_features_, strict=True)
    votes = np.stack([member.predict(X[:, columns]) for member, columns in pairs])
    shares = np.stack([(votes == k).mean(axis=0) for k in range(3)], axis=1)
    np.testing.assert_allclose(margins(bag, X, y), vote_margins(shares, y), atol=1e-12)


def test_labels_that_were_never_seen_are_refused():
    with pytest.raises(DataError, match="'z'"):
        label_codes(["a", "z"], np.array(["a", "b"]), "margins")
