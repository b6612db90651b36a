"""What all linear models share: coefficients, predictions from them, and the invariants of a loaded model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..core.errors import DataError, ModelFileError
from ..core.estimator import Estimator
from ..core.run import Run
from ..data.blocks import Blocks
from ..data.door import read_features
from ..data.sources import rowwise
from ..solvers.normal_equations import iterative_fit
from ..solvers.orthogonal import LinearFit
from . import descent

Array = NDArray[np.float64]


class LinearModel(Estimator):
    """A model that predicts from the score b + Xβ."""

    coef_: Array
    intercept_: Any
    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _score_rows(self, X: Any) -> Array:
        check_is_fitted(self)
        X = read_features(self, X)
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def _check_loaded(self) -> None:
        if not hasattr(self, "coef_"):
            return
        coef, intercept = self.coef_, np.asarray(self.intercept_)
        columns = getattr(self, "n_features_in_", None)
        if not isinstance(coef, np.ndarray) or coef.dtype.kind != "f" or coef.ndim not in (1, 2):
            raise ModelFileError("load: coef_ is not an array of real numbers.")
        if not isinstance(columns, int) or coef.shape[-1] != columns:
            raise ModelFileError(f"load: coef_ has shape {coef.shape}, which does not fit n_features_in_ = {columns}.")
        if intercept.dtype.kind != "f" or intercept.shape not in ((), (1,), coef.shape[:-1]):
            raise ModelFileError(
                f"load: intercept_ has shape {intercept.shape}, which does not fit coef_ {coef.shape}."
            )
        if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
            raise ModelFileError("load: coef_ or intercept_ is not finite.")
        names = getattr(self, "feature_names_in_", None)
        if names is not None and np.shape(names) != (columns,):
            raise ModelFileError("load: feature_names_in_ does not have one name a feature.")


class LinearRegressorModel(LinearModel):
    """A linear model of one or several real targets."""

    #: scikit-learn's ridge models treat y of shape (n, 1) like y of shape (n,); its least squares does not.
    _flattens_one_column = False

    fit_intercept: bool
    tol: float
    max_iter: int | None
    n_jobs: int | None
    solver: str = "auto"
    batch_size: int = descent.BATCH_SIZE
    random_state: Any = None

    @rowwise
    def predict(self, X: Any) -> Array:
        """Return the predictions b + Xβ.

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets)
            The predicted targets; a lazy Dask array for a Dask collection.
        """
        return self._score_rows(X)

    def _iterate(self, blocks: Blocks, alpha: float, run: Run) -> LinearFit:
        """Solve by conjugate gradients, or by (stochastic) gradient descent, with this model's limits."""
        try:
            if self.solver in descent.SOLVERS:
                return descent.descend_least_squares(
                    blocks,
                    alpha,
                    self.solver,
                    intercept=self.fit_intercept,
                    tol=self.tol,
                    max_iter=self.max_iter,
                    batch_size=self.batch_size,
                    random_state=self.random_state,
                    n_jobs=self.n_jobs,
                    progress=run.progress,
                )
            return iterative_fit(
                blocks,
                alpha,
                intercept=self.fit_intercept,
                tol=self.tol,
                max_iter=self.max_iter,
                n_jobs=self.n_jobs,
                progress=run.progress,
            )
        except OverflowError as error:
            raise DataError(f"{type(self).__name__}: {error}; rescale them, or use a direct solver.") from error

    def _set_coefficients(self, coef: Array, intercept: Array, y_shape: tuple[int, ...]) -> None:
        """Store (d, k) coefficients the way scikit-learn shows them: flat when y was one column."""
        if y_shape == () or (self._flattens_one_column and y_shape == (1,)):
            self.coef_ = coef[:, 0].copy()
            self.intercept_ = float(intercept[0]) if y_shape == () else intercept.copy()
        else:
            self.coef_, self.intercept_ = np.ascontiguousarray(coef.T), intercept.copy()
        if not getattr(self, "fit_intercept", True):
            self.intercept_ = 0.0
        if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
            column = int(np.argmax(~np.isfinite(coef).all(axis=1)))
            raise DataError(
                f"{type(self).__name__}: the coefficient of column {column} is beyond the range of float64; rescale it."
            )
