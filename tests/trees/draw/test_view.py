"""The view of a tree: names, groups of categories, the way of one row."""

import numpy as np
import pandas as pd
import pytest
import sklearn.tree
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from learnable import ID3Classifier, Ridge
from learnable.core.errors import DataError, DataTypeError
from learnable.trees.draw.view import path_of, view_tree

X, Y = load_iris(return_X_y=True)


def test_a_binary_tree_of_numbers():
    model = sklearn.tree.DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, Y)
    view = view_tree("owner", model)
    assert view.children[0] == [1, 2] and view.groups[0] is None and view.is_classifier
    assert view.depths() == [0, 1, 1, 2, 2] and view.heights() == [3, 1, 2, 1, 1]
    assert view.column(0) == f"feature_{model.tree_.feature[0]}"
    assert path_of("owner", model, view, X[0]) == {0, 1}
    assert path_of("owner", model, view, X[100]) == {0, 2, 4}


def test_branches_of_id3_have_the_names_of_their_categories():
    frame = pd.DataFrame({"sky": ["sun", "rain", "fog", None], "n": [1, 2, 2, 1]})
    model = ID3Classifier().fit(frame, [0, 1, 2, 3])
    view = view_tree("owner", model)
    assert view.column(0) == "sky"
    assert view.groups[0] == [["fog"], ["rain"], ["sun"], ["missing"]]
    binary = view_tree("owner", ID3Classifier(split="binary").fit(frame[["sky"]], [0, 1, 1, 1]))
    assert binary.groups[0] == [["sun"], ["fog", "rain", "missing"]]
    assert np.argmax(binary.value[binary.children[0][0], 0]) == 0  # the first branch is "yes"
    assert path_of("owner", model, view, frame.iloc[[1]]) == {0, view.children[0][1]}


def test_what_is_no_fitted_tree_is_refused():
    with pytest.raises(DataTypeError, match="owner: needs a fitted decision tree; got str"):
        view_tree("owner", "tree")
    with pytest.raises(DataTypeError, match="whose tree_ it can read; got Ridge"):
        view_tree("owner", Ridge().fit(X, Y))
    with pytest.raises(NotFittedError):
        view_tree("owner", ID3Classifier())


def test_names_must_fit():
    model = ID3Classifier().fit([["a", "x"], ["b", "y"]], [0, 1])
    with pytest.raises(DataError, match="owner: feature_names must contain 2 elements, got 1"):
        view_tree("owner", model, ["one"])
    with pytest.raises(DataError, match=r"owner: When `class_names` is an array.* Got 3 .* 2 classes"):
        view_tree("owner", model, None, ["p", "q", "r"])
    with pytest.raises(DataError, match="feature_names must contain 2"):
        view_tree("owner", model, "ab")
