"""A boosted model as a sequence of fitted trees; monitors, lines that are printed, rows left out of a round."""

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1

from learnable import DecisionTreeRegressor, GradientBoostingClassifier, GradientBoostingRegressor

X, Y = make_friedman1(200, n_features=5, random_state=0)
XC, YC = make_classification(200, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)


@pytest.mark.parametrize(
    "model, x, y",
    [(GradientBoostingRegressor(n_estimators=7, step="sqrt-decay"), X, Y),
     (GradientBoostingRegressor(n_estimators=7, loss="absolute_error"), X, Y),
     (GradientBoostingClassifier(n_estimators=7), XC, YC), (GradientBoostingClassifier(n_estimators=7), XC, YC > 0)],
)  # fmt: skip
def test_scores_are_the_start_and_the_steps_times_the_trees(model, x, y):
    model.fit(x, y)
    assert len(model) == 7 and model.estimators_.shape == (7, model.n_trees_per_iteration_)
    total = np.tile(model.baseline_, (len(x), 1))
    for step, trees in zip(model.steps_, model, strict=True):
        assert all(isinstance(tree, DecisionTreeRegressor) for tree in trees)
        total += step * np.column_stack([tree.predict(x) for tree in trees])
    raw = model.decision_function(x) if hasattr(model, "decision_function") else model.predict(x)
    np.testing.assert_allclose(total if total.shape[1] > 1 else total[:, 0], raw)
    leaves = np.stack([[tree.apply(x) for tree in trees] for trees in model])
    found = model.apply(x).reshape(len(x), 7, -1)
    np.testing.assert_array_equal(np.moveaxis(leaves, 2, 0), found)
    assert model[2][0].tree_.node_count == model[-5][0].tree_.node_count
    assert model[0][0].get_depth() <= 3


def test_a_monitor_sees_every_round_and_ends_them():
    seen = []

    def monitor(i, model, variables):
        seen.append((i, model.estimators_.shape, len(model.train_score_), len(model.oob_improvement_)))
        return i == 4

    model = GradientBoostingRegressor(n_estimators=9, subsample=0.5, random_state=0).fit(X, Y, monitor=monitor)
    assert seen == [(i, (i + 1, 1), i + 1, i + 1) for i in range(5)]
    assert model.n_estimators_ == len(model.oob_scores_) == 5
    whole = GradientBoostingRegressor(n_estimators=5, subsample=0.5, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


def test_rows_left_out_are_remembered_by_a_warm_start():
    model = GradientBoostingRegressor(n_estimators=6, subsample=0.5, random_state=0, warm_start=True).fit(X, Y)
    first = model.oob_scores_
    model.set_params(n_estimators=10).fit(X, Y)
    whole = GradientBoostingRegressor(n_estimators=10, subsample=0.5, random_state=0).fit(X, Y)
    np.testing.assert_allclose(model.oob_scores_[:6], first)
    np.testing.assert_allclose(model.oob_scores_, whole.oob_scores_)
    np.testing.assert_allclose(model.oob_improvement_, whole.oob_improvement_)
    late = GradientBoostingRegressor(n_estimators=4, random_state=0, warm_start=True).fit(X, Y)
    assert not hasattr(late, "oob_scores_")
    late.set_params(n_estimators=6, subsample=0.5).fit(X, Y)
    assert (late.oob_improvement_[:4] == 0).all() and (late.oob_improvement_[4:] != 0).all()


@pytest.mark.parametrize("verbose, lines", [(0, 0), (1, 1 + 10 + 2), (2, 1 + 30)])
def test_lines_of_rounds(verbose, lines, capsys):
    GradientBoostingRegressor(n_estimators=30, verbose=verbose).fit(X, Y)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == lines
    assert not lines or printed[0].split() == ["Iter", "Train", "Loss", "Remaining", "Time"]


def test_the_criterion_has_no_effect_and_says_so():
    with pytest.warns(FutureWarning, match="criterion"):
        GradientBoostingRegressor(n_estimators=2, criterion="friedman_mse").fit(X, Y)
