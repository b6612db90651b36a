r"""One against the rest: K classes by K binary models, each of which tells one class from all others.

A row goes to the class whose model is most confident. The models are fitted apart, so their confidences are compared as
they are; probabilities are divided by their sum.

Reference: R. Rifkin and A. Klautau, In defense of one-vs-all classification, JMLR 5 (2004).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..core.parameters import N_JOBS, Boolean, Number, Rule
from ..data.sources import rowwise
from .binary import MODEL, Array, BinaryReduction, Codes, Problem, confidence, models_have


class OneVsRestClassifier(BinaryReduction):
    """K classes by one binary model for each, against all other classes.

    Two classes need one model only. Rows with several labels each (scikit-learn's multilabel targets) are not taken.

    Parameters
    ----------
    estimator : estimator
        A binary classifier, of this library or of scikit-learn. It is cloned, not changed. Only models of this library
        can be saved and verified.
    n_jobs : int or None, default=None
        Models fitted at the same time, each in a process of its own; None fits one after the other.
    verbose : int, default=0
        Kept for compatibility.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    estimators_ : list of estimators
        The model of each class, fitted to label 1 for the class and 0 for the rest; one model for two classes.
    n_classes_, n_features_in_, feature_names_in_
        As in scikit-learn.
    certificate_ : Certificate
        That of the model which is furthest from its tolerance; `none` if a model has none.

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

    _parameters: ClassVar[dict[str, Rule]] = {
        "estimator": MODEL,
        "n_jobs": N_JOBS,
        "verbose": Boolean() | Number(low=0, integer=True),
    }

    def __init__(self, estimator: Any, *, n_jobs: int | None = None, verbose: int = 0) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _problems(self, codes: Codes, n_classes: int) -> list[Problem]:
        chosen = [1] if n_classes == 2 else range(n_classes)
        return [(None, (codes == k).astype(np.int64)) for k in chosen]

    @rowwise
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label whose model is most confident; of several, the first."""
        check_is_fitted(self)
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
        """Return each model's probability of its class, divided by their sum; all the same where that is zero."""
        check_is_fitted(self)
        columns = [np.asarray(model.predict_proba(X), dtype=np.float64)[:, 1] for model in self.estimators_]
        if len(columns) == 1:
            return np.column_stack([1.0 - columns[0], columns[0]])
        found = np.column_stack(columns)
        total = found.sum(axis=1, keepdims=True)
        return np.where(total > 0, found / np.where(total > 0, total, 1.0), 1.0 / found.shape[1])

    def _confidences(self, X: Any) -> Array:
        columns = [confidence(model, X) for model in self.estimators_]
        return columns[0] if len(columns) == 1 else np.column_stack(columns)

    def _check_loaded(self) -> None:
        n_classes = np.size(getattr(self, "classes_", ()))
        self._check_models(1 if n_classes == 2 else n_classes)
