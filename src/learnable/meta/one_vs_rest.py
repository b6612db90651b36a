r"""One against the rest: K classes by K binary models, each of which tells one class from all others.

A row goes to the class whose model is most confident. The models are fitted apart, so their confidences are compared as
they are; probabilities are divided by their sum.

Reference: R. Rifkin and A. Klautau, In defense of one-vs-all classification, JMLR 5 (2004).
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..core import Boolean, Declared, ModelFileError, Number, fitted, param
from ..data.rows import ClassTable, count_rows
from ..data.sources import rowwise
from .binary import Array, BinaryReduction, Codes, Problem, confidence, models_have


class OneVsRestClassifier(BinaryReduction):
    """K classes by one binary model for each, against all other classes.

    Two classes need one model only. A row may have several labels: y is then a matrix with a column of zeros and ones
    for each label, dense or sparse, and predictions are such a matrix. A label that all rows have, or none, needs no
    model: it is predicted for all, with a warning, and such a classifier proves nothing.

    Examples
    --------
    >>> from learnable import LogisticRegression, OneVsRestClassifier
    >>> X, y = [[0.0], [1.0], [5.0], [6.0], [10.0], [11.0]], list("aabbcc")
    >>> model = OneVsRestClassifier(LogisticRegression(C=10.0)).fit(X, y)
    >>> model.predict([[0.5], [10.5]]).tolist(), len(model.estimators_)
    (['a', 'c'], 3)
    >>> model.certificate_.holds
    True
    """

    _theory = "one-vs-rest"

    verbose: int = param(Boolean() | Number(low=0, integer=True), "Kept for compatibility.", default=0)
    estimators_: list[Any] = fitted(
        "list of estimators",
        "The model of each class, fitted to label 1 for the class and 0 for the rest; one model for two classes.",
    )
    multilabel_: bool = fitted("bool", "Whether rows had several labels each.")

    _takes_several: ClassVar[bool] = True

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Fit one model for each class.

        Parameters
        ----------
        X : array, sparse array, dataframe, list of rows or path, of shape (n_samples, n_features)
            Training data, in any form that the estimator takes; files are read into memory.
        y : array of shape (n_samples,), or str; or array or sparse array of shape (n_samples, n_classes)
            Labels; with a dataframe or a path, the name of a column. With several labels per row, zeros and ones.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights of the rows; a row of weight zero is left out.
        **params : dict
            Passed on to the models' `fit`, with scikit-learn's metadata routing enabled.

        Returns
        -------
        self
            The fitted classifier; as it was if a fit fails.
        """
        super().fit(X, y, sample_weight, **params)
        self.sparse_labels_ = sp.issparse(y)
        return self

    def _problems(self, codes: Codes, n_classes: int) -> list[Problem]:
        if codes.ndim == 2:
            return [(None, column) for column in codes.T]
        if n_classes == 1:
            return [(None, np.zeros_like(codes))]  # no row is of a second class
        chosen = [1] if n_classes == 2 else range(n_classes)
        return [(None, (codes == k).astype(np.int64)) for k in chosen]

    def _check_table(self, table: ClassTable) -> None:
        for k, label in enumerate(table.classes.tolist() if table.several else []):
            column = table.codes[:, k]
            if column.all() or not column.any():
                shown = label if column.all() else f"not {label}"
                warnings.warn(f"Label {shown} is present in all training examples.", UserWarning, stacklevel=3)

    def _new_model(self, labels: Codes) -> Any:
        constant = labels.all() or not labels.any()
        return ConstantLabel(bool(labels.all())) if constant else super()._new_model(labels)

    def _keep_shape(self, table: ClassTable, problems: list[Problem]) -> None:
        self.multilabel_ = table.several
        self.sparse_labels_ = False

    def predict(self, X: Any) -> Any:
        """Return the label whose model is most confident, of several the first; or all labels that a row has."""
        check_is_fitted(self)
        if not self.multilabel_:
            return self._predict_one(X)
        found = (np.column_stack([confidence(model, X) for model in self.estimators_]) > 0).astype(np.int64)
        return sp.csr_matrix(found) if self.sparse_labels_ else found

    @rowwise
    def _predict_one(self, X: Any) -> NDArray[Any]:
        scores = self._confidences(X)
        return self.classes_[(scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)]

    @models_have("decision_function")
    @rowwise
    def decision_function(self, X: Any) -> Array:
        """Return the scores of the models, (n_samples, n_classes); (n_samples,) for two classes."""
        check_is_fitted(self)
        return self._confidences(X)

    @models_have("predict_proba")
    @rowwise
    def predict_proba(self, X: Any) -> Array:
        """Return each model's probability of its class, divided by their sum; all the same where that is zero.

        With several labels per row they are not divided: each is the probability that the row has the label.
        """
        check_is_fitted(self)
        columns = [np.asarray(model.predict_proba(X), dtype=np.float64)[:, 1] for model in self.estimators_]
        if self.multilabel_:
            return np.column_stack(columns)
        if len(columns) == 1:
            return np.column_stack([1.0 - columns[0], columns[0]])
        found = np.column_stack(columns)
        total = found.sum(axis=1, keepdims=True)
        return np.where(total > 0, found / np.where(total > 0, total, 1.0), 1.0 / found.shape[1])

    def _confidences(self, X: Any) -> Array:
        columns = [confidence(model, X) for model in self.estimators_]
        return columns[0] if len(columns) == 1 and not self.multilabel_ else np.column_stack(columns)

    def _check_loaded(self) -> None:
        n_classes = np.size(getattr(self, "classes_", ()))
        for name in ("multilabel_", "sparse_labels_"):
            if not isinstance(getattr(self, name, None), bool):
                raise ModelFileError(f"load: {type(self).__name__}: {name} must be true or false.")
        self._check_models(1 if n_classes == 2 and not self.multilabel_ else n_classes)


class ConstantLabel(Declared):
    """The model of a label that all training rows have, or none: it says so of every row."""

    present: bool = param(Boolean(), "Whether all rows have it.", default=False, kw_only=False)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Learn how many columns there are."""
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = int(X.shape[1]) if len(getattr(X, "shape", ())) == 2 else 0
        return self

    def decision_function(self, X: Any) -> Array:
        """Return one if the label is there, minus one if not."""
        return np.full(count_rows(X), 1.0 if self.present else -1.0)

    def predict_proba(self, X: Any) -> Array:
        """Return certainty."""
        return np.tile([1.0 - self.present, float(self.present)], (count_rows(X), 1))
