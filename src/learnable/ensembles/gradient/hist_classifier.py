"""Histogram boosting of classes."""

from __future__ import annotations

from typing import ClassVar

from .hist import HistBoosting
from .kinds import BoostedClassifier


class HistGradientBoostingClassifier(BoostedClassifier, HistBoosting):
    r"""Gradient boosting for classification on histograms: scikit-learn's, and more.

    Minimises n⁻¹ Σ w V(y, F(x)) over sums of trees, one round at a time; V is the logistic loss of two classes, the
    cross-entropy of K, or the exponential loss. A round minimises the second-order expansion plus γ·leaves + ½λ‖T‖²,
    which is λ/(2n) for the mean. Memory: two bytes a cell, 50 a row.

    NaN in X is a missing value; infinity is a number beyond all others (the largest of float64).

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
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
    >>> from learnable import HistGradientBoostingClassifier
    >>> X = np.arange(200.0)[:, None]
    >>> y = np.where(X[:, 0] % 100 < 50, "low", "high")
    >>> model = HistGradientBoostingClassifier(max_iter=20).fit(X, y)
    >>> model.score(X, y), model.certificate_.holds
    (1.0, True)
    """

    _theory = "gradient-boosting"

    _positional: ClassVar[tuple[str, ...]] = ("loss",)
