"""A mixin: the Shapley values of a model of trees as a method. The work is done by `ensembles.shap_values`."""

from __future__ import annotations

from typing import Any

from ..core.registry import resolve


class ShapleyValues:
    """Adds `shap_values` to a model whose score can be a sum of trees."""

    def shap_values(self, X: Any) -> Any:
        """Return the exact Shapley values of the score of each row, and their base.

        The same as `learnable.ensembles.shap_values(model, X)`.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Rows to explain.

        Returns
        -------
        ShapValues
            `values` and `base`; base + values.sum(axis=1) is the score: shares of classes or numbers for trees,
            forests and bags of trees, votes for AdaBoost.

        Raises
        ------
        DataError
            If the score is no sum of trees, as that of a bag of other models.
        """
        explain = resolve("learnable.ensembles.gradient.shap:shap_values")  # it stands above this layer
        return explain(self, X, n_jobs=getattr(self, "n_jobs", None))
