import pytest

from learnable.core.registry import REGISTRY
from learnable.evaluation.comparison.candidates import candidates_for, short_name, short_names


@pytest.mark.parametrize(
    ("name", "model", "short"),
    [
        ("HistGradientBoostingRegressor", "HistGradientBoostingRegressor", "HistGradientBoosting"),
        ("RandomForestClassifier (min_samples_leaf=5)", "RandomForestClassifier", "RandomForest leaf=5"),
        ("KNeighborsRegressor (n_neighbors=25, weights=distance)", "KNeighborsRegressor", "KNN k=25 weights=distance"),
        ("Ridge (tuned)", "Ridge", "Ridge tuned"),
        ("Ridge (alpha=1) #2", "Ridge", "Ridge alpha=1 #2"),
        ("blend of 3 models", "BlendRegressor", "blend of 3 models"),
        ("Classifier", "Classifier", "Classifier"),
    ],
)
def test_names_are_shortened_alike(name, model, short):
    assert short_name(name, model) == short


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_every_line_of_a_comparison_has_a_short_name_of_its_own(task):
    rows = [{"name": c.name, "model": c.model} for c in candidates_for(task)]
    found = short_names(rows)
    assert len(set(found)) == len(found) == len(rows) and len(REGISTRY) > len(rows) > 10
    assert max(map(len, found)) <= 40


def test_two_lines_with_one_short_name_keep_their_full_ones():
    rows = [{"name": name, "model": name} for name in ("BaggingRegressor", "BaggingClassifier")]
    assert short_names(rows) == ["BaggingRegressor", "BaggingClassifier"]


def test_settings_that_all_lines_of_a_class_share_are_left_out():
    names = ["KernelRidge (alpha=0.1, kernel=rbf)", "KernelRidge (alpha=1, kernel=rbf)", "KernelRidge (tuned)"]
    rows = [{"name": name, "model": "KernelRidge"} for name in names]
    assert short_names(rows) == ["KernelRidge alpha=0.1", "KernelRidge alpha=1", "KernelRidge tuned"]
    assert short_names(rows[:1]) == ["KernelRidge alpha=0.1 kernel=rbf"]
