import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Lasso

from learnable.core.errors import ParameterError
from learnable.core.registry import REGISTRY, registered_class
from learnable.evaluation.comparison.candidates import blend_of, candidates_for, with_probabilities


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
        model = {"scaled target": "model", "calibrated": "estimator"}.get(candidate.around, model)
        model = getattr(candidate.build(seed=3), model) if isinstance(model, str) else model
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
    with pytest.raises(ParameterError, match=r"MultiTaskLasso predicts several targets per row.*use Lasso"):
        candidates_for("regression", ["MultiTaskLasso"])


def test_the_registry_knows_which_classifiers_have_only_scores():
    for name, entry in REGISTRY.items():
        if entry.traits is not None and "binary" in entry.traits.tasks:
            model = registered_class(name)()
            scores_only = hasattr(model, "decision_function") and not hasattr(model, "predict_proba")
            assert entry.only_scores == scores_only, name


@pytest.mark.parametrize("name", ["LinearSVC", "SVC", "NuSVC", "Perceptron", "sklearn.svm:LinearSVC"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_classifier_in_the_race_gives_probabilities(name, n_classes):
    rng = np.random.default_rng(0)
    y = np.arange(90) % n_classes
    X = rng.normal(size=(90, 2)) + y[:, None]
    candidate = candidates_for("binary" if n_classes == 2 else "multiclass", [name], y)[1]
    p = candidate.build(seed=0).fit(X, y).predict_proba(X)
    assert p.shape == (90, n_classes) and np.allclose(p.sum(axis=1), 1.0)
    assert (p.argmax(axis=1) == y).mean() > 0.5


def test_too_few_rows_of_a_class_are_not_calibrated():
    y = np.r_[np.zeros(50, int), np.ones(4, int)]
    assert [c.around for c in candidates_for("binary", ["LinearSVC"], y)[1:]] == [None, None]
    found, note = with_probabilities(candidates_for("binary", None, y), "log loss")
    assert {c.model for c in found} >= {"LogisticRegression", "DummyClassifier", "GaussianNB"}
    assert not {c.model for c in found} & {"LinearSVC", "SVC"} and "LinearSVC, SVC left out" in note
    enough = candidates_for("binary", None, np.r_[np.zeros(50, int), np.ones(40, int)])
    assert with_probabilities(enough, "log loss") == (enough, None)


@pytest.mark.parametrize("name", ["LinearSVR", "SVR", "NuSVR", "KernelRidge", "KernelRidgeCV"])
def test_models_in_the_units_of_the_target_get_standardised_targets(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = 5e5 + 1e5 * (X @ [1.0, 0.5, -1.0]) + 1e3 * rng.normal(size=120)
    for candidate in candidates_for("regression", [name], y)[1:]:
        assert candidate.around == "scaled target"
        assert candidate.build(seed=0).fit(X[:80], y[:80]).score(X[80:], y[80:]) > 0.7


def test_a_blend_is_a_candidate_like_any_other():
    members = candidates_for("regression", ["Ridge"])[1:]
    blend = blend_of(members, [0.25, 0.75], "regression")
    X = np.arange(12.0).reshape(-1, 1)
    model = blend.build(seed=0, max_seconds=4.0).fit(X, X[:, 0] ** 2)
    assert model.weights_.tolist() == [0.25, 0.75]
    assert [member.max_seconds for member in model.members_] == [2.0, 2.0]
