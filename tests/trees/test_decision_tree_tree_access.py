"""scikit-learn's names of a tree's arrays."""

import numpy as np
from sklearn.tree import DecisionTreeClassifier as Theirs

from learnable.trees import DecisionTreeClassifier


def test_every_array_is_the_one_of_scikit_learn():
    X, y = np.arange(12.0).reshape(6, 2) ** 2, np.array([0, 0, 1, 1, 2, 2])
    X = X.astype(np.float32).astype(float)
    ours, theirs = (model(random_state=0).fit(X[:, :1], y).tree_ for model in (DecisionTreeClassifier, Theirs))
    for name in (
        "node_count", "n_leaves", "max_depth", "n_features", "n_outputs", "max_n_classes", "children_left",
        "children_right", "feature", "threshold", "impurity", "n_node_samples", "weighted_n_node_samples", "value",
        "n_classes", "missing_go_to_left",
    ):  # fmt: skip
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), err_msg=name)
    rows = X[:, :1].astype(np.float32)
    np.testing.assert_array_equal(ours.apply(rows), theirs.apply(rows))
    np.testing.assert_allclose(ours.predict(rows), theirs.predict(rows))
    np.testing.assert_array_equal(ours.decision_path(rows).toarray(), theirs.decision_path(rows).toarray())
    for normalize in (True, False):
        np.testing.assert_allclose(
            ours.compute_feature_importances(normalize), theirs.compute_feature_importances(normalize)
        )


def test_sets_of_categories_are_lists_of_codes():
    code = np.array([0, 1, 2, 40, 0, 1, 2, 40], dtype=float)[:, None]
    model = DecisionTreeClassifier(categorical_features=[0]).fit(code, np.isin(code[:, 0], [1, 40]))
    found = set(model.tree_.category_set(0))
    assert (found & {0, 1, 2, 40}) in ({0, 2}, {1, 40})
    assert model.tree_.category_set(1) is None
