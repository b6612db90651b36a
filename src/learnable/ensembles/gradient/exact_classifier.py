"""Boosting with exact splits of classes."""

from __future__ import annotations

from .exact import ExactBoosting
from .kinds import BoostedClassifier


class GradientBoostingClassifier(BoostedClassifier, ExactBoosting):
    r"""Gradient boosting for classification with exact splits: scikit-learn's, and more.

    Minimises n⁻¹ Σ w V(y, F(x)) over sums of trees, one round at a time; V is the logistic loss of two classes, the
    cross-entropy of K, or the exponential loss. There is no penalty (λ = 0) besides `reg_lambda` and `gamma`. Time
    O(d·n·depth) a tree; memory O(dn).

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    trees_ : Trees
        All trees as flat arrays; tree m·K + k belongs to output k in round m. Values are multiplied by the step.
    estimators_ : array of shape (n_estimators_, K)
        The trees as fitted `DecisionTreeRegressor`s, before the step is applied; also `model[m]`, `len(model)`.
    n_estimators_, n_trees_per_iteration_, max_features_ : int
        Rounds, trees in each, columns drawn at a node.
    baseline_, init_ : array of shape (K,), model or None
        Scores before the first round.
    steps_, training_loss_ : arrays of shape (n_estimators_,), (n_estimators_ + 1,)
        Steps ρ, and the mean training loss before the first round and after each.
    descent_ : str
        Whether the training loss falls in every round, how many rounds took a smaller step for that, or why it rises.
    train_score_ : array of shape (n_estimators_,)
        The training loss after each round, times two for squares and for two classes, as in scikit-learn; over all
        rows, also where a round draws some.
    oob_scores_, oob_improvement_, oob_score_ : arrays of shape (n_estimators_,), float
        With subsample < 1: the same for the rows that the round did not draw, and by how much they fell.
    validation_score_ : array
        Minus the loss of the rows held out, before the first round and after each, also after those not kept.
    feature_importances_ : array of shape (n_features,)
        Each column's share in the fall of impurity.
    is_categorical_ : array of bool or None
        Columns of categories.
    certificate_ : Certificate
        `greedy`: every split is the best of its candidates for the derivatives at its round, and values, steps and
        training losses are those of the definition.

    Examples
    --------
    >>> from learnable import GradientBoostingClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], list("aabbaa")
    >>> model = GradientBoostingClassifier(n_estimators=20).fit(X, y)
    >>> model.score(X, y), model.certificate_.holds
    (1.0, True)
    """

    _theory = "gradient-boosting"
