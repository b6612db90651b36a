r"""Random forests: trees on bootstrap bags, each split the best of a few columns drawn at random.

The mean of T trees of variance σ² and pairwise correlation ρ has variance ρσ² + (1 − ρ)σ²/T: bags lower the second
term, drawing m of d columns at every node lowers ρ. Usual choices are m = √d for classes and m = d/3 for numbers; the
defaults are scikit-learn's (√d, and all columns for numbers, which is bagging), `max_features="third"` is d/3.

The certificate says that every split is the best of its node's candidates. `verify` draws the bags and the columns
again and recomputes every split of every tree in NumPy, which takes several times as long as the fit.

Reference: L. Breiman, Random forests, Machine Learning 45 (2001).
"""

from __future__ import annotations

from typing import ClassVar

from ._forest_kinds import ForestClassifier, ForestRegressor


class RandomForestClassifier(ForestClassifier):
    """Trees on bootstrap bags with drawn columns; the class with the largest mean share in the leaves.

    Exact unless `max_bins` is set: a split may be between any two values of a column that are neighbours in the node.
    Memory of a fit: 4 bytes for each cell of X, about 100 bytes a row and thread, and the trees. Missing values (NaN)
    go to the side where they help more. If rows are drawn, weights of rows and classes are the chances of being
    drawn, as in scikit-learn.

    Attributes
    ----------
    trees_ : Trees
        All trees in one set of arrays.
    classes_, n_classes_ : array and int, or lists of them for several targets
        The labels, and their number.
    oob_score_, oob_decision_function_
        Accuracy and mean shares of the trees that have not seen the row; NaN where all have.
    feature_importances_ : array of shape (n_features,)
        Shares of the columns in the fall of impurity. They favour columns with many values; `oob_importances` does not.
    estimators_ : list of DecisionTreeClassifier
        The fitted trees, views of `trees_`; the forest is a sequence of them. They name classes by their numbers.
    estimator_ : DecisionTreeClassifier
        The tree that they are copies of.
    estimators_samples_ : list of arrays
        The rows of each tree's bag.
    n_outputs_, n_features_in_, feature_names_in_, certificate_
        As in scikit-learn, and what is proven.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from learnable import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RandomForestClassifier(oob_score=True, random_state=0).fit(X, y)
    >>> model.oob_score_ > 0.93, model.certificate_.holds
    (True, True)
    """

    _theory = "forest"

    _splitter: ClassVar[str] = "best"


class RandomForestRegressor(ForestRegressor):
    """Trees on bootstrap bags with drawn columns; the mean of the leaves, and their quantiles.

    Exact unless `max_bins` is set: a split may be between any two values of a column that are neighbours in the node.
    Memory of a fit: 4 bytes for each cell of X, about 100 bytes a row and thread, and the trees. Missing values (NaN)
    go to the side where they help more. If rows are drawn, weights of rows and classes are the chances of being
    drawn, as in scikit-learn.

    Attributes
    ----------
    trees_ : Trees
        All trees in one set of arrays.
    leaves_ : LeafTargets
        The training targets in the leaves, for `predict_quantiles` and `predict_interval`.
    oob_score_, oob_prediction_
        R² and mean of the trees that have not seen the row; NaN where all have.
    feature_importances_ : array of shape (n_features,)
        Shares of the columns in the fall of impurity. They favour columns with many values; `oob_importances` does not.
    estimators_ : list of DecisionTreeRegressor
        The fitted trees, views of `trees_`; the forest is a sequence of them.
    estimator_ : DecisionTreeRegressor
        The tree that they are copies of.
    estimators_samples_ : list of arrays
        The rows of each tree's bag.
    n_outputs_, n_features_in_, feature_names_in_, certificate_
        As in scikit-learn, and what is proven.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from learnable import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RandomForestRegressor(min_samples_leaf=5, random_state=0).fit(X[:400], y[:400])
    >>> lower, upper = model.predict_interval(X[400:], level=0.9)
    >>> bool(np.mean((lower <= y[400:]) & (y[400:] <= upper)) > 0.8)
    True
    """

    _theory = "forest"

    _splitter: ClassVar[str] = "best"
