"""Boosting with exact splits of numbers."""

from __future__ import annotations

from typing import Any

from ...core.declare import param
from ...core.parameters import ArrayLike, Number
from .exact import ExactBoosting
from .kinds import BoostedRegressor


class GradientBoostingRegressor(BoostedRegressor, ExactBoosting):
    r"""Gradient boosting for regression with exact splits: scikit-learn's, and more.

    Minimises n⁻¹ Σ w V(y, F(x)) over sums of trees, one round at a time. There is no penalty (λ = 0) besides
    `reg_lambda` and `gamma`. Time O(d·n·depth) a tree; memory O(dn).

    Attributes
    ----------
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
    >>> from learnable import GradientBoostingRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 1.0, 5.0, 5.0]
    >>> model = GradientBoostingRegressor(n_estimators=1, learning_rate=1.0).fit(X, y)
    >>> model.predict([[0.2], [2.7]]).tolist(), model.training_loss_.tolist()
    ([1.0, 5.0], [2.0, 0.0])
    """

    _theory = "gradient-boosting"

    alpha: Any = param(
        Number(low=0.0, high=1.0, low_open=True, high_open=True) | ArrayLike(Number(low=0.0, high=1.0)),
        'Level of loss="quantile"; several, ascending, are fitted jointly and do not cross. Of '
        'loss="huber": the share of residuals that count as small.',
        default=0.9,
    )

    def _level(self) -> Any:
        return self.alpha
