import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Lasso

from learnable.core.errors import ParameterError
from learnable.core.registry import REGISTRY
from learnable.evaluation.comparison.candidates import candidates_for


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_every_registered_variant_of_the_task_takes_part(task):
    found = candidates_for(task)
    expected = [
        (name, variant)
        for name, entry in REGISTRY.items()
        if entry.traits is not None and task in entry.traits.tasks and entry.traits.targets == "any"
        for variant in entry.variants
    ]
    assert found[0].baseline and [(c.model, c.parameters) for c in found[1:]] == expected
    assert len({c.name for c in found}) == len(found)
    for candidate in found:
        model = candidate.build(seed=3)
        assert {key: model.get_params()[key] for key in candidate.parameters} == candidate.parameters


def test_estimators_names_and_paths_can_be_given():
    forest = RandomForestRegressor(max_depth=2)
    found = candidates_for("regression", ["Ridge", "sklearn.linear_model:Lasso", forest, ("mine", Lasso(0.5))])
    names = [c.name for c in found[1:]]
    assert names[-3:] == ["Lasso", "RandomForestRegressor (max_depth=2)", "mine"]
    built = found[-2].build(seed=7)
    assert built is not forest and built.random_state == 7 and forest.random_state is None


def test_a_time_limit_is_set_only_where_the_user_set_none():
    [_, candidate] = candidates_for("binary", ["LogisticRegression"])[:2]
    assert candidate.build(0, max_seconds=2.5).max_seconds == 2.5
    assert candidate.build(0).max_seconds is None


def test_the_same_model_twice_gets_two_names():
    assert [c.name for c in candidates_for("regression", [Lasso(), Lasso()])[1:]] == ["Lasso", "Lasso #2"]


@pytest.mark.parametrize(
    "wrong", ["sklearn.nowhere:Model", "sklearn.linear_model:Nobody", "numpy:zeros", 3, np.ones(2)]
)
def test_what_is_no_estimator_is_refused(wrong):
    with pytest.raises(ParameterError, match="compare: "):
        candidates_for("regression", [wrong])


def test_models_of_counts_and_of_positive_numbers_take_part_only_there():
    def names(y):
        return {candidate.model for candidate in candidates_for("regression", None, np.array(y))}

    special = {"PoissonRegressor", "GammaRegressor"}
    assert names([0.0, 3.0, 7.0]) & special == {"PoissonRegressor"}
    assert names([0.5, 3.0]) & special == {"GammaRegressor"}
    assert names([1.0, 3.0]) & special == special
    assert not names([-1.0, 3.0]) & special
    assert not names([0.0, 0.0]) & special
    assert not {candidate.model for candidate in candidates_for("regression")} & special
    assert [c.model for c in candidates_for("regression", ["PoissonRegressor"], np.array([-1.0]))][1:] == [
        "PoissonRegressor"
    ]


@pytest.mark.parametrize("task", ["regression", "binary"])
def test_models_that_cost_much_take_part_in_short_tables_only(task):
    costly = {name: entry.most_rows for name, entry in REGISTRY.items() if entry.most_rows is not None}
    costly = {name: most for name, most in costly.items() if task in REGISTRY[name].traits.tasks}
    assert costly
    for name, most in costly.items():
        assert name in {c.model for c in candidates_for(task, None, np.arange(most) % 2)}
        assert name not in {c.model for c in candidates_for(task, None, np.arange(most + 1) % 2)}
        assert name in {c.model for c in candidates_for(task, [name], np.arange(most + 1) % 2)}


def test_models_of_several_targets_are_refused_with_their_kin():
    with pytest.raises(ParameterError, match=r"MultiTaskLasso predicts several targets a row.*use Lasso"):
        candidates_for("regression", ["MultiTaskLasso"])
