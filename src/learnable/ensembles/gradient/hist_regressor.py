"""Histogram boosting of numbers."""

from __future__ import annotations

from typing import Any, ClassVar

from ...core.declare import param
from ...core.parameters import ArrayLike, Nothing, Number
from .hist import HistBoosting
from .kinds import BoostedRegressor


class HistGradientBoostingRegressor(BoostedRegressor, HistBoosting):
    r"""Gradient boosting for regression on histograms: scikit-learn's, and more.

    Minimises n⁻¹ Σ w V(y, F(x)) over sums of trees, one round at a time. A round minimises the second-order expansion
    plus γ·leaves + ½λ‖T‖², which is λ/(2n) for the mean. Memory: two bytes a cell, 50 a row.

    NaN in X is a missing value; infinity is a number beyond all others (the largest of float64).

    Attributes
    ----------
    trees_ : Trees
        All trees as flat arrays; tree m·K + k belongs to output k in round m. Values are multiplied by the step.
    n_iter_, n_trees_per_iteration_ : int
        Rounds that are kept, and trees in each.
    baseline_ : array of shape (K,)
        Scores before the first round.
    steps_, training_loss_ : arrays of shape (n_iter_,), (n_iter_ + 1,)
        Steps ρ, and the mean training loss before the first round and after each.
    descent_ : str
        Whether the training loss falls in every round, how many rounds took a smaller step for that, or why it rises.
    do_early_stopping_ : bool
        Whether rounds could end early.
    train_score_, validation_score_ : arrays of shape (n_rounds + 1,), or empty
        Scores before the first round and after each, also after those that are not kept.
    is_categorical_ : array of bool or None
        Columns of categories.
    certificate_ : Certificate
        `greedy`: every split is the best of its candidates for the derivatives at its round, up to the rounding of
        histograms, and values, steps and training losses are those of the definition.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import HistGradientBoostingRegressor
    >>> X = np.arange(200.0)[:, None]
    >>> model = HistGradientBoostingRegressor(max_iter=50).fit(X, np.sin(X[:, 0] / 20.0))
    >>> model.score(X, np.sin(X[:, 0] / 20.0)) > 0.95, model.n_iter_
    (True, 50)
    """

    _theory = "gradient-boosting"

    quantile: Any = param(
        Nothing() | Number(low=0.0, high=1.0) | ArrayLike(Number(low=0.0, high=1.0)),
        'Level of loss="quantile"; several, ascending, are fitted jointly and do not cross. Of '
        'loss="huber": the share of residuals that count as small, 0.9 if None.',
        default=None,
    )
    _positional: ClassVar[tuple[str, ...]] = ("loss",)

    def _level(self) -> Any:
        return self.quantile
