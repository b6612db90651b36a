"""A model of a table as it comes: an encoder, and a model of the features it makes.

The two are fitted, saved, loaded and verified as one. The features of the training rows are cross-fitted where they
look at the target (see `TableEncoder`), so that the model is not misled by them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..core import (
    Certificate,
    DataError,
    Declared,
    Estimator,
    Matches,
    Number,
    ParameterError,
    check_parameters,
    fitted,
    law,
    laws,
    optional,
    param,
)
from ..data.door import is_dask, is_dask_frame, is_external, require_target, take_named_columns
from ..data.encoder import TableEncoder, encode_external
from ..data.encoder_categories import COMPONENTS
from ..data.encoder_input import read_whole
from ..data.sources import NamedScore, open_files, rowwise

Method = TypeVar("Method", bound=Callable[..., Any])

_MODEL = Matches(
    lambda value: hasattr(value, "fit") and hasattr(value, "get_params") and not isinstance(value, type), "an estimator"
)
_ENCODER = Matches(lambda value: isinstance(value, TableEncoder), "a TableEncoder")


def _model_has(name: str) -> Callable[[Method], Method]:
    """Return the decorator of a method that is there if the inner model has it."""

    def check(self: TableModel) -> bool:
        getattr(getattr(self, "model_", self.model), name)
        return True

    return cast(Callable[[Method], Method], available_if(check))


class TableModel(MetaEstimatorMixin, Declared):
    """Fit a model on a table of numbers, categories, dates, text and gaps.

    Examples
    --------
    >>> import pandas as pd
    >>> from learnable import Ridge
    >>> from learnable.meta import TableModel
    >>> table = pd.DataFrame({"size": [50, 80, None, 120], "town": ["A", "B", "A", "B"], "price": [1.0, 2.0, 1.2, 2.8]})
    >>> model = TableModel(Ridge(alpha=0.1)).fit(table, "price")
    >>> model.predict(pd.DataFrame({"town": ["B", "C"], "size": [100, None]})).round(1)
    array([2.4, 1.5])
    >>> model.certificate_.holds
    True
    """

    _theory = "wrapped"

    model: Any = param(
        _MODEL,
        "A classifier or regressor, of this library or of scikit-learn. It is cloned, not changed. Only "
        "models of this library can be saved and verified.",
        kw_only=False,
    )
    encoder: TableEncoder | None = param(
        optional(_ENCODER), "How columns become numbers; the default is `TableEncoder()`.", default=None, kw_only=False
    )
    threshold: float | None = param(
        optional(Number(low=0.0)),
        "For two classes: `predict` gives the second one where its probability reaches this; None gives the class that "
        "is more probable.",
        default=None,
        kw_only=False,
    )
    encoder_: TableEncoder = fitted(
        "TableEncoder", "The fitted encoder; `encoder_.get_feature_names_out()` names the features of `model_`."
    )
    model_: Any = fitted("estimator", "The fitted model.")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the encoder, then the model on the features.

        Parameters
        ----------
        X : dataframe, array, list of rows, path or Dask collection, of shape (n_samples, n_features)
            The table. Large files and Dask dataframes stay where they are if the model is one of this library; for
            other models they are read into memory.
        y : array of shape (n_samples,) or (n_samples, n_targets), or str
            Targets; with a dataframe, a path or Dask, the name of a column.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights of the rows; or the name of a column.

        Returns
        -------
        self
            The fitted model; as it was if the fit fails.
        """
        owner = type(self).__name__
        check_parameters(owner, self.get_params(deep=False), self._parameters)
        if get_tags(self).target_tags.required:
            require_target(owner, y)
        encoder = self._new_encoder()
        if self._stays_outside(X):
            encoder, Z, y, sample_weight = encode_external(
                owner, encoder, X, y, sample_weight, classes=is_classifier(self.model)
            )
        else:
            X, y, sample_weight = take_named_columns(owner, *read_whole(owner, X, y, sample_weight))
            Z = encoder.fit_transform(X, y, sample_weight)
        weights = {}
        if sample_weight is not None:
            if not has_fit_parameter(self.model, "sample_weight"):
                raise DataError(
                    f"{owner}: sample_weight was passed, but {type(self.model).__name__} has no weights. Leave it out."
                )
            weights["sample_weight"] = sample_weight
        model = clone(self.model).fit(Z, y, **weights)
        self.encoder_ = encoder
        self.model_ = model
        return self

    def _stays_outside(self, X: Any) -> bool:
        """Tell whether the model can be fitted on rows that are not in memory, and these are not."""
        if not is_external(X) or not isinstance(self.model, Estimator):
            return False
        return is_dask_frame(X) or (not is_dask(X) and not open_files(type(self).__name__, X).is_small())

    @rowwise
    def predict(self, X: Any) -> Any:
        """Return the predictions of `model_`.

        Parameters
        ----------
        X : dataframe, array, list of rows, path or Dask collection, of shape (n_samples, n_features)
            Rows with the columns of the fit; others are ignored. Files are read piece by piece.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets)
            Labels or numbers; of a Dask array or frame a lazy array or series.
        """
        if self.threshold is None:
            return self._ask("predict", X)
        if not hasattr(self.model_, "predict_proba") or len(self.classes_) != 2:
            raise ParameterError(
                "TableModel: threshold needs a classifier of two classes with predict_proba; set None."
            )
        reached = np.asarray(self._ask("predict_proba", X))[:, 1] >= self.threshold
        return np.asarray(self.classes_)[reached.astype(np.intp)]

    @_model_has("predict_proba")
    @rowwise
    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class, columns as in `classes_`."""
        return self._ask("predict_proba", X)

    @_model_has("predict_log_proba")
    @rowwise
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithm of the probability of each class."""
        return self._ask("predict_log_proba", X)

    @_model_has("decision_function")
    @rowwise
    def decision_function(self, X: Any) -> Any:
        """Return the scores of the classes."""
        return self._ask("decision_function", X)

    @_model_has("predict_interval")
    @rowwise
    def predict_interval(self, X: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the prediction intervals of `model_`."""
        return self._ask("predict_interval", X, *args, **kwargs)

    @_model_has("predict_dist")
    def predict_dist(self, X: Any) -> Any:
        """Return the predictive distributions of `model_`."""
        return self._ask("predict_dist", X)

    @_model_has("score")
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the score of `model_`: accuracy for classes, R² for numbers.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. Large files are read piece by piece where the score is R² or the accuracy.

        Returns
        -------
        float
            The score.
        """
        check_is_fitted(self)
        if self._stays_outside(X) and type(self.model_).score is NamedScore.score:
            return NamedScore.score(self, X, y, sample_weight)  # type: ignore[arg-type]  # piece by piece
        owner = type(self).__name__
        X, y, sample_weight = take_named_columns(owner, *read_whole(owner, X, y, sample_weight))
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self._ask("score", X, y, **weights))

    @property
    def certificate_(self) -> Certificate:
        """What the inner model proves."""
        return getattr(self.model_, "certificate_", None) or Certificate("none", np.nan, 0.0)

    @property
    def classes_(self) -> Any:
        """The labels, sorted."""
        return self.model_.classes_

    @property
    def n_features_in_(self) -> int:
        """The number of columns of the table."""
        return self.encoder_.n_features_in_

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the columns of the table."""
        return self.encoder_.feature_names_in_

    def _ask(self, method: str, X: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the fitted model on the features of X."""
        check_is_fitted(self)
        return getattr(self.model_, method)(self.encoder_.transform(X), *args, **kwargs)

    def _new_encoder(self) -> TableEncoder:
        encoder = TableEncoder() if self.encoder is None else clone(self.encoder)
        if encoder.task == "auto" and (is_classifier(self.model) or is_regressor(self.model)):
            encoder.task = "classification" if is_classifier(self.model) else "regression"
        if encoder.sparse == "auto" and not get_tags(self.model).input_tags.sparse:
            encoder.sparse = False
            if encoder.n_text_components is None:
                encoder.n_text_components = COMPONENTS
        encoder.set_output(transform="default")
        return encoder

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.model)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.target_tags = inner.target_tags
        tags.non_deterministic = inner.non_deterministic
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    _laws = laws(
        law(
            "TableModel: a fitted model has model_ and encoder_",
            lambda model: hasattr(model, "model_") and isinstance(model.encoder_, TableEncoder),
        ),
        law("TableModel: model_ is not of the class of model", lambda model: type(model.model_) is type(model.model)),
        law(
            "TableModel: model_ does not have one feature for each column of encoder_",
            lambda model: getattr(model.model_, "n_features_in_", None) == len(getattr(model.encoder_, "sources_", ())),
        ),
    )
