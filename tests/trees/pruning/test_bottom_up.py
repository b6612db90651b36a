"""Bottom-up pruning: the procedure of the notes by enumeration, the bound by hand, and held-out rows."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import pruning as oracle

import learnable as ln
from learnable.core.errors import DataError, DataTypeError, ParameterError
from learnable.trees import Columns, GrowthRule, Trees, grow, prune
from learnable.trees.criteria import Target
from learnable.trees.pruning.bottom_up import PruningRows, count_questions, description_bound, prune_generic, prune_tree


def noisy(seed, n=90, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, size=(n, 4)).astype(float)
    y = ((X[:, 0] > 2) ^ (X[:, 1] > 1)).astype(int)
    y = np.where(rng.random(n) < 0.3, rng.integers(0, classes, size=n), y)
    y[:classes] = np.arange(classes)
    return X, y, rng.integers(1, 4, size=n).astype(float)


def grown(X, y, classes):
    return grow(Columns.build(X), Target.classes(y, classes), GrowthRule()).tree


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), classes=st.sampled_from([2, 3]), name=st.sampled_from(["reduced-error", "mdl"]))
def test_it_is_the_procedure_of_the_notes(seed, classes, name):
    X, y, weight = noisy(seed, classes=classes)
    part = slice(60, None) if name == "reduced-error" else slice(0, 60)
    tree = grown(X[:60], y[:60], classes)
    rows = PruningRows(X[part], y[part], weight[part])
    m, q = len(rows.y), count_questions(rows.X)

    def estimate(error, n_nodes):
        return error if name == "reduced-error" else description_bound(error, n_nodes, q, classes, m, 0.05)

    def error(predicted):
        return float(rows.weight @ (predicted != rows.y) / rows.weight.sum())

    def whole(candidate):
        return estimate(error(np.argmax(candidate.value[candidate.apply(rows.X)[:, 0]], axis=1)), candidate.n_nodes)

    def nested(candidate):
        predicted = np.array([oracle.predict(candidate, row) for row in rows.X])
        return estimate(error(predicted), oracle.count(candidate))

    fast, generic = prune_tree(tree, rows, estimate), prune_generic(tree, whole)
    fast.check(4, classes)
    for field in ("feature", "threshold", "left", "value"):
        np.testing.assert_array_equal(getattr(fast, field), getattr(generic, field))
    assert whole(fast) <= whole(tree) + 1e-12
    assert whole(fast) == pytest.approx(nested(oracle.nested(fast)), abs=1e-12)
    assert whole(fast) == pytest.approx(oracle.best_estimate(oracle.nested(tree), range(classes), nested), abs=1e-9)


def test_the_bound_is_that_of_the_notes():
    # d = 5 binary columns, two classes: q + K + 1 = d + 3
    wanted = 0.1 + math.sqrt((4 * math.log2(8) + math.log(2 / 0.05)) / 2000)
    assert description_bound(0.1, 3, 5, 2, 1000, 0.05) == pytest.approx(wanted)
    assert count_questions(np.array([[0.0, 1.0, np.nan], [1.0, 1.0, 2.0], [1.0, 1.0, 5.0]])) == 2


def test_the_bound_holds():
    """With probability 1 − δ the true error is below the bound, for every tree over binary columns at once."""
    rng = np.random.default_rng(0)
    everything = np.array([[i >> j & 1 for j in range(6)] for i in range(64)], dtype=float)
    truth = (everything[:, 0] + everything[:, 1] + everything[:, 2] > 1).astype(int)
    broken = 0
    for _ in range(40):
        at = rng.integers(0, 64, size=200)
        y = np.where(rng.random(200) < 0.1, 1 - truth[at], truth[at])
        model = ln.DecisionTreeClassifier().fit(everything[at], y)
        pruned = prune(model, everything[at], y, "mdl")
        wrong = (pruned.predict(everything) != truth).mean()
        true_error = 0.9 * wrong + 0.1 * (1 - wrong)
        bound = description_bound(1 - pruned.score(everything[at], y), pruned.tree_.node_count, 6, 2, 200, 0.05)
        broken += true_error > bound
    assert broken == 0


def by_hand():
    """The root asks about column 0, and only its right branch about column 1, which decides."""
    n = 5
    return Trees(
        start=np.array([0, n]),
        feature=np.array([0, -1, 1, -1, -1], dtype=np.int32),
        threshold=np.array([0.5, 0.0, 0.5, 0.0, 0.0]),
        left=np.array([1, -1, 3, -1, -1], dtype=np.int32),
        right=np.array([2, -1, 4, -1, -1], dtype=np.int32),
        missing_left=np.zeros(n, dtype=np.uint8),
        category=np.full(n, -1),
        bits=np.zeros(0, dtype=np.uint32),
        impurity=np.zeros(n),
        n_rows=np.ones(n, dtype=np.int64),
        weight=np.ones(n),
        value=np.array([[0.6, 0.4], [1.0, 0.0], [0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]),
    )


def test_a_subtree_takes_the_place_of_its_parent():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    rows = PruningRows(X, np.array([0, 1, 0, 1]), np.ones(4))
    pruned = prune_tree(by_hand(), rows, lambda error, n_nodes: error)
    pruned.check(2, 2)
    assert pruned.feature.tolist() == [1, -1, -1]
    assert np.argmax(pruned.value[pruned.apply(X)[:, 0]], axis=1).tolist() == [0, 1, 0, 1]


def test_a_leaf_may_change_its_label():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    rows = PruningRows(X, np.array([1, 1, 0, 0]), np.ones(4))
    pruned = prune_tree(by_hand(), rows, lambda error, n_nodes: error)
    assert pruned.feature.tolist() == [0, -1, -1]
    np.testing.assert_array_equal(pruned.value[1:], [[0.0, 1.0], [0.5, 0.5]])


def test_pima_is_predicted_better_by_pruned_trees(reference_data):
    table = pd.read_csv(reference_data / "pima_diabetes.csv").to_numpy(dtype=float)
    X, y = table[:, :-1], table[:, -1].astype(int)
    scores = {"full": [], "reduced-error": [], "mdl": [], "cv": [], "cv-1se": []}
    for seed in range(12):
        rows = np.random.default_rng(seed).permutation(len(y))
        train, test = rows[:570], rows[570:]
        tree = ln.DecisionTreeClassifier(random_state=0).fit(X[train], y[train])
        part = ln.DecisionTreeClassifier(random_state=0).fit(X[train[:380]], y[train[:380]])
        models = {
            "full": tree,
            "reduced-error": prune(part, X[train[380:]], y[train[380:]]),
            "mdl": prune(tree, X[train], y[train], "mdl"),
            "cv": ln.DecisionTreeClassifier(ccp_alpha="cv", random_state=0).fit(X[train], y[train]),
            "cv-1se": ln.DecisionTreeClassifier(ccp_alpha="cv-1se", random_state=0).fit(X[train], y[train]),
        }
        for name, model in models.items():
            scores[name].append(model.score(X[test], y[test]))
            assert model.get_n_leaves() <= tree.get_n_leaves()
    mean = {name: np.mean(values) for name, values in scores.items()}
    assert min(mean, key=mean.get) == "full", mean
    assert mean["cv"] > mean["full"] + 0.02 and mean["cv-1se"] > mean["full"] + 0.02, mean


def test_the_tree_given_is_not_changed_and_the_new_one_is_a_model(tmp_path):
    X, y, weight = noisy(0, n=200)
    tree = ln.DecisionTreeClassifier(random_state=0).fit(X[:120], y[:120])
    before = tree.get_n_leaves()
    small = prune(tree, X[120:], y[120:], sample_weight=weight[120:])
    assert tree.get_n_leaves() == before > small.get_n_leaves()
    assert type(small) is type(tree) and small.get_params() == tree.get_params()
    assert small.certificate_.kind == "none"  # what was greedy has been undone
    ln.save(small, tmp_path / "m.safetensors")
    np.testing.assert_array_equal(ln.load(tmp_path / "m.safetensors").predict_proba(X), small.predict_proba(X))


def test_any_function_may_judge():
    X, y, _ = noisy(1, n=150)
    tree = ln.DecisionTreeClassifier(random_state=0, max_depth=4).fit(X[:80], y[:80])
    by_name = prune(tree, X[80:], y[80:], "reduced-error")
    by_function = prune(tree, X[80:], y[80:], lambda model, X, y: 1 - model.score(X, y))
    np.testing.assert_array_equal(by_name.tree_.feature, by_function.tree_.feature)
    stump = prune(tree, X[80:], y[80:], lambda model, X, y: model.get_n_leaves())
    assert stump.get_n_leaves() == 1
    with pytest.raises(DataError, match="prune: the estimate must be a finite number"):
        prune(tree, X, y, lambda model, X, y: math.nan)


def test_labels_of_any_kind_and_classes_the_tree_does_not_know():
    X, y, _ = noisy(2)
    words = np.array(["no", "yes"])[y]
    tree = ln.DecisionTreeClassifier(random_state=0).fit(X[:60], words[:60])
    small = prune(tree, X[60:], words[60:])
    assert set(small.predict(X)) <= {"no", "yes"}
    prune(tree, X[60:], np.where(X[60:, 3] > 4, "other", words[60:]))  # always wrong there, whatever the tree


def test_what_cannot_be_pruned_is_refused():
    X, y, _ = noisy(3)
    tree = ln.DecisionTreeClassifier(random_state=0).fit(X, y)
    for wrong, words in (({"estimate": "gini"}, "estimate"), ({"delta": 0.0}, "delta")):
        with pytest.raises(ParameterError, match=f"prune: {words} must be"):
            prune(tree, X, y, **wrong)
    with pytest.raises(DataTypeError, match="prune: needs a fitted DecisionTreeClassifier"):
        prune(ln.DecisionTreeRegressor().fit(X, y), X, y)
    with pytest.raises(DataError, match="3 features"):
        prune(tree, X[:, :3], y)
    with pytest.raises(DataError, match="prune: X and y have inconsistent numbers"):
        prune(tree, X, y[:-1])
