"""Mixins: what a boosted model says about itself. The work is done by functions that take any model of trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from ..permutation import Importances
from .dependence import PartialDependence, partial_dependence
from .shap import ShapValues, shap_interactions, shap_values

Array = NDArray[np.float64]


class ExplainedTrees:
    """Adds explanations to a model whose score is a sum of trees; see `additive`."""

    n_jobs: int | None

    def shap_values(self, X: Any) -> ShapValues:
        """Return the exact Shapley values of the score of each row, and their base; see `shap_values`."""
        return shap_values(self, X, n_jobs=self.n_jobs)

    def shap_interactions(self, X: Any) -> Array:
        """Return the exact Shapley interaction values of each row; see `shap_interactions`."""
        return shap_interactions(self, X, n_jobs=self.n_jobs)

    def partial_dependence(self, X: Any, features: Any, **options: Any) -> PartialDependence:
        """Return the mean score as a function of one or two columns; see `partial_dependence`."""
        return partial_dependence(self, X, features, n_jobs=self.n_jobs, **options)

    def importances(self, kind: str = "gain", *, normalize: bool = True) -> Array:
        """Return the importance of each column by "gain" or "split"; see `tree_importances`."""
        from .importance import tree_importances

        return tree_importances(self, kind, normalize=normalize)

    def permutation_importances(
        self, X: Any, y: Any, sample_weight: Any = None, *, n_repeats: int = 5, random_state: Any = None
    ) -> Importances:
        """Return the rise of the model's loss when a column is shuffled; see `loss_importances`."""
        from .importance import loss_importances

        return loss_importances(
            self, X, y, sample_weight, n_repeats=n_repeats, random_state=random_state, n_jobs=self.n_jobs
        )


def _has_distribution(model: Any) -> bool:
    several = model.loss == "quantile" and np.ndim(model.quantile if hasattr(model, "quantile") else model.alpha) > 0
    return bool(model.loss == "normal" or several)


class PredictiveDistribution:
    """Adds a distribution for each row, where the loss fits one; see `distribution`."""

    @available_if(_has_distribution)  # type: ignore[untyped-decorator]
    def predict_dist(self, X: Any) -> Any:
        """Return the predictive distribution of each row: from the quantiles, or Normal; see `distribution`.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            New rows.
        """
        from .distribution import predict_dist

        return predict_dist(self, X)

    @available_if(_has_distribution)  # type: ignore[untyped-decorator]
    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Array, Array]:
        """Return the ends of the equal-tailed interval that has probability `level`, of each row."""
        from .distribution import predict_interval

        return predict_interval(self, X, level)
