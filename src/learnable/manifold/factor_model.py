"""What a normal density with hidden factors answers, however it was fitted: factors, filled gaps, densities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from ..data.door import read_features
from .factors import Factors, filled_rows, posterior

Array = NDArray[np.float64]


class FactorModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """The public methods of a density N(μ, WWᵀ + Ψ); an estimator gives `_factors`."""

    components_: Any

    def _factors(self) -> Factors:
        """Return μ, W and Ψ of a fitted model."""
        raise NotImplementedError

    def transform(self, X: Any) -> Array:
        """Return E[z | row], the factors of rows given what they show.

        Parameters
        ----------
        X : array or dataframe of shape (n_samples, n_features)
            Rows; NaN is a gap.

        Returns
        -------
        array of shape (n_samples, n_components)
            Float32 for float32.
        """
        p = self._factors()
        rows = read_features(self, X, sparse=False, missing=True)
        return np.asarray(posterior(rows, p).means, dtype=rows.dtype)

    def impute(self, X: Any) -> Array:
        """Return rows with their gaps filled by the mean of what is missing, given what was observed."""
        p = self._factors()
        return filled_rows(read_features(self, X, sparse=False, missing=True), p)

    def get_covariance(self) -> Array:
        """Return WWᵀ + Ψ."""
        p = self._factors()
        return np.asarray(p.loadings @ p.loadings.T + np.diag(p.noise))

    def score_samples(self, X: Any) -> Array:
        """Return the log-density of what each row shows."""
        p = self._factors()
        return posterior(read_features(self, X, sparse=False, missing=True), p).log_density

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-density of the rows."""
        return float(self.score_samples(X).mean())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])
