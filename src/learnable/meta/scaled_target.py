"""A regressor of targets that have mean zero and variance one, whatever the units of the table.

Some models mean their parameters in the units of the target: the tube of a support vector regression, the penalty of a
kernel ridge regression without intercept. On targets of a million, or of a millionth, the usual values are senseless.
Here the targets are standardised for the fit, and predictions are turned back.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import MetaEstimatorMixin, RegressorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..core import Array, Certificate, DataError, Declared, Matches, NDArray, check_parameters, fitted, law, laws, param
from ..data.door import read_target, read_values, require_target, take_named_columns

_MODEL = Matches(
    lambda value: hasattr(value, "fit") and hasattr(value, "predict") and not isinstance(value, type), "a regressor"
)


class ScaledTargetRegressor(MetaEstimatorMixin, RegressorMixin, Declared):
    """Fit a regressor to (y − mean)/deviation and predict in the units of y.

    Notes
    -----
    scikit-learn's `TransformedTargetRegressor(regressor, transformer=StandardScaler())` does the same; it can be
    neither saved without pickle nor verified.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import LinearSVR
    >>> from learnable.meta import ScaledTargetRegressor
    >>> X = np.arange(40.0).reshape(-1, 1) / 40
    >>> y = 1e6 * (1.0 + X[:, 0])
    >>> model = ScaledTargetRegressor(LinearSVR()).fit(X, y)
    >>> bool(model.score(X, y) > 0.99)
    True
    """

    _theory = "wrapped"

    model: Any = param(
        _MODEL,
        "A regressor of this library or of scikit-learn, for one target. It is cloned, not changed.",
        kw_only=False,
    )
    model_: Any = fitted("regressor", "Fitted to the standardised targets.")
    center_: float = fitted("()", "Mean of the targets, weighted if the rows are.")
    scale_: float = fitted("()", "Their standard deviation; one where they are constant.")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to standardised targets.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Training data, as the inner regressor takes them.
        y : array of shape (n_samples,), or str
            Targets; with a dataframe, the name of a column.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights of the rows.

        Returns
        -------
        self
            The fitted model; as it was if the fit fails.
        """
        owner = type(self).__name__
        check_parameters(owner, self.get_params(deep=False), self._parameters)
        require_target(owner, y)
        X, y, sample_weight = take_named_columns(owner, X, y, sample_weight)
        targets, _ = read_target(owner, read_values(owner, y), "numeric", multi_output=False)
        targets = np.asarray(targets, dtype=np.float64).reshape(-1)
        weight = None if sample_weight is None else np.asarray(read_values(owner, sample_weight), dtype=np.float64)
        center, scale = center_and_scale(owner, targets, weight)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if weights and not has_fit_parameter(self.model, "sample_weight"):
            raise DataError(
                f"{owner}: sample_weight was passed, but {type(self.model).__name__} has no weights. Leave it out."
            )
        model = clone(self.model).fit(X, (targets - center) / scale, **weights)
        self.model_ = model
        self.center_ = center
        self.scale_ = scale
        return self

    def predict(self, X: Any) -> Array:
        """Return predictions in the units of y.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            New rows, as the inner regressor takes them.

        Returns
        -------
        array of shape (n_samples,)
            The predictions.
        """
        check_is_fitted(self)
        return self.center_ + self.scale_ * np.asarray(self.model_.predict(X), dtype=np.float64).reshape(-1)

    @property
    def certificate_(self) -> Certificate:
        """What the inner model proves."""
        return getattr(self.model_, "certificate_", None) or Certificate("none", np.nan, 0.0)

    @property
    def coef_(self) -> Array:
        """Coefficients of a linear model, in the units of y."""
        return self.scale_ * np.asarray(self.model_.coef_, dtype=np.float64)

    @property
    def intercept_(self) -> Any:
        """Intercept of a linear model, in the units of y."""
        return self.center_ + self.scale_ * np.asarray(self.model_.intercept_, dtype=np.float64)

    @property
    def n_features_in_(self) -> int:
        """The number of columns."""
        return int(self.model_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the columns."""
        return np.asarray(self.model_.feature_names_in_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.model)
        tags.input_tags = inner.input_tags
        tags.regressor_tags = inner.regressor_tags
        tags.non_deterministic = inner.non_deterministic
        return tags

    _laws = laws(
        law("{owner}: model_ is not of the class of model", lambda model: type(model.model_) is type(model.model)),
        law(
            "{owner}: center_ and scale_ must be finite numbers, scale_ positive",
            lambda model: (
                {type(model.center_), type(model.scale_)} == {float}
                and np.isfinite(model.center_)
                and 0 < model.scale_ < np.inf
            ),
        ),
    )


def center_and_scale(owner: str, y: Array, weight: Array | None) -> tuple[float, float]:
    """Return mean and standard deviation of the targets; a deviation of one where they do not vary.

    Examples
    --------
    >>> import numpy as np
    >>> center_and_scale("f", np.array([1.0, 3.0]), None), center_and_scale("f", np.array([2.0, 2.0]), None)
    ((2.0, 1.0), (2.0, 1.0))
    """
    share = np.full(len(y), 1.0 / max(len(y), 1))
    if weight is not None and weight.shape == y.shape and weight.sum() > 0:
        share = weight / weight.sum()
    center = float(share @ y)
    deviation = float(np.sqrt(share @ (y - center) ** 2))
    if not np.isfinite(deviation) or not np.isfinite(center):
        raise DataError(f"{owner}: y is so large that its squares overflow; rescale it.")
    return center, deviation if deviation > 1e-12 * abs(center) and deviation > 0 else 1.0
