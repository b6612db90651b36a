"""Text and Graphviz: scikit-learn's own output, letter by letter, and categories."""

import io

import numpy as np
import pytest
import sklearn.tree
from sklearn.datasets import load_diabetes, load_iris, load_linnerud

from learnable import DecisionTreeClassifier, DecisionTreeRegressor, ID3Classifier
from learnable.core.errors import ParameterError
from learnable.trees import export_graphviz, export_text, plot_tree

IRIS, DIABETES, LINNERUD = (load(return_X_y=True) for load in (load_iris, load_diabetes, load_linnerud))
MODELS = {
    "classes": (sklearn.tree.DecisionTreeClassifier(random_state=0).fit(*IRIS), list("wxyz"), ["a", "b", 'c"']),
    "weights": (
        sklearn.tree.DecisionTreeClassifier(criterion="entropy", random_state=0).fit(*IRIS, np.linspace(0.5, 2, 150)),
        list("wxyz"),
        ["a", "b", "c"],
    ),
    "numbers": (sklearn.tree.DecisionTreeRegressor(max_depth=4, random_state=0).fit(*DIABETES), None, None),
    "several numbers": (sklearn.tree.DecisionTreeRegressor(max_depth=3, random_state=0).fit(*LINNERUD), None, None),
    "several classes": (
        sklearn.tree.DecisionTreeClassifier(max_depth=3).fit(IRIS[0], np.c_[IRIS[1], IRIS[1] > 0]),
        None,
        None,
    ),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "options",
    [{}, {"show_weights": True}, {"max_depth": 1}, {"max_depth": 0}, {"spacing": 5, "decimals": 4}, {"names": True}],
)
def test_text_is_scikit_learns(name, options):
    model, feature_names, class_names = MODELS[name]
    options = dict(options)
    if options.pop("names", False):
        options = {"feature_names": feature_names, "class_names": class_names}
    assert export_text(model, **options) == sklearn.tree.export_text(model, **options)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"filled": True},
        {"max_depth": 1, "filled": True},
        {"names": True},
        {"class_names": True},
        {"leaves_parallel": True, "rotate": True, "rounded": True, "filled": True},
        {"special_characters": True, "node_ids": True},
        {"proportion": True, "impurity": False, "label": "root"},
        {"label": "none", "precision": 1, "fontname": "x"},
    ],
)
def test_graphs_are_scikit_learns(name, options):
    model, feature_names, class_names = MODELS[name]
    options = dict(options)
    if options.pop("names", False):
        options = {"feature_names": feature_names, "class_names": class_names}
    assert export_graphviz(model, **options) == sklearn.tree.export_graphviz(model, **options)


def test_categories_are_named():
    X, y = [["a", "u"], ["b", "u"], ["c", "v"], ["c", "u"]], [0, 1, 1, 0]
    multiway = export_text(ID3Classifier().fit(X, y), feature_names=["first", "second"])
    assert multiway.splitlines()[:3] == ["|--- first = a", "|   |--- class: 0", "|--- first = b"]
    binary = export_text(ID3Classifier(split="binary").fit(X, y), feature_names=["first", "second"])
    assert "|--- first = a" in binary and "|--- first != a" in binary
    graph = export_graphviz(ID3Classifier().fit(X, y), feature_names=["first", "second"])
    assert '0 [label="first\\nentropy = 1.0' in graph and '0 -> 1 [label="a"] ;' in graph


def test_graphs_are_written_where_they_are_wanted(tmp_path):
    model = MODELS["classes"][0]
    text = export_graphviz(model)
    buffer = io.StringIO()
    assert export_graphviz(model, buffer) is None and buffer.getvalue() == text
    export_graphviz(model, tmp_path / "tree.dot")
    assert (tmp_path / "tree.dot").read_text(encoding="utf-8") == text
    with pytest.raises(ParameterError, match="out_file must be"):
        export_graphviz(model, 3)


@pytest.mark.parametrize("options", [{"max_depth": -1}, {"spacing": 0}, {"decimals": 1.5}, {"show_weights": "yes"}])
def test_options_of_the_text_are_checked(options):
    with pytest.raises(ParameterError, match=f"export_text: {next(iter(options))} must be"):
        export_text(MODELS["classes"][0], **options)


@pytest.mark.parametrize("options", [{"label": "some"}, {"filled": 1}, {"precision": -1}])
def test_options_of_the_graph_are_checked(options):
    with pytest.raises(ParameterError, match=f"export_graphviz: {next(iter(options))} must be"):
        export_graphviz(MODELS["classes"][0], **options)


def test_sets_of_categories_are_written_out():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 6, size=200).astype(float), rng.normal(size=200)])
    y = np.isin(X[:, 0], [1, 4]).astype(int)
    model = DecisionTreeClassifier(categorical_features=[0]).fit(X, y)
    assert export_text(model, feature_names=["kind", "size"]).splitlines() in (
        ["|--- kind in {1, 4}", "|   |--- class: 1", "|--- kind not in {1, 4}", "|   |--- class: 0"],
        ["|--- kind in {0, 2, 3, 5}", "|   |--- class: 0", "|--- kind not in {0, 2, 3, 5}", "|   |--- class: 1"],
    )
    graph = export_graphviz(model, feature_names=["kind", "size"])
    assert 'label="kind in ' in graph and 'headlabel="True"' in graph
    assert "kind in " in plot_tree(model, feature_names=["kind", "size"])


@pytest.mark.parametrize("data", [IRIS, DIABETES])
def test_our_own_trees_are_written_as_scikit_learns(data):
    ours, theirs = DecisionTreeClassifier, sklearn.tree.DecisionTreeClassifier
    if data is DIABETES:
        ours, theirs = DecisionTreeRegressor, sklearn.tree.DecisionTreeRegressor
    rng = np.random.default_rng(0)
    X = rng.permutation(200 * 3).reshape(200, 3) / 7.0  # all values differ: few ties
    y = (X[:, 0] > 40).astype(int) + (X[:, 1] > 30) if data is IRIS else X[:, 0] - X[:, 1] ** 2
    a, b = ours(max_depth=3).fit(X, y), theirs(max_depth=3, random_state=0).fit(X, y)
    assert export_text(a) == sklearn.tree.export_text(b)
    assert export_graphviz(a, filled=True) == sklearn.tree.export_graphviz(b, filled=True)
