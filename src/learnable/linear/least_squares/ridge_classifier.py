r"""Ridge regression of labels: a linear classifier by least squares, with α given or chosen.

    min_{b, W}  Σᵢ sᵢ ‖tᵢ − b − Wxᵢ‖² + α‖W‖²,

where tᵢ is +1 for the row's class and −1 for every other (two classes: one target, +1 for the second). A row goes to
the class with the largest score. Where rows may have several labels or none, y has a column of zeros and ones per
label, tᵢ is +1 for each of the row's labels, and a row gets all labels with a positive score. In the form n⁻¹ΣV + λΩ,
with V the squared loss of the targets and Ω = ‖W‖², α = nλ.

Reference: C. Bishop, Pattern Recognition and Machine Learning, section 4.1.3.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight

from ...core import (
    Array,
    ArrayLike,
    Boolean,
    Certificate,
    DataError,
    Matches,
    NDArray,
    Nothing,
    Number,
    Options,
    ParameterError,
    Run,
    fitted,
    law,
    laws,
    param,
)
from ...data.blocks import Blocks, Part
from ...data.door import Table, class_weights, door
from ...data.sources import rowwise
from ..base import LinearClassifierModel
from ..choosing import ChoosingModel
from .ridge import Ridge
from .ridge_cv import RidgeCV

_PENALTY = Number(low=0.0)


_read_labels = door(target="classes", one_class=True)
_read_indicators = door(target="numeric", multi_output=True)


def read_labels(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, run: Any = None) -> Table:
    """Read rows with one label each, or with a column of zeros and ones per label."""
    if not is_table_of_labels(y):
        return _read_labels(estimator, X, y, sample_weight, run)
    table = _read_indicators(estimator, X, y.toarray() if sp.issparse(y) else y, sample_weight, run)
    if not np.isin(table.y, (0.0, 1.0)).all():
        raise DataError(
            f"{type(estimator).__name__}: y of several columns must hold zeros and ones, one column per label; fit one "
            "model per column where each has labels of its own."
        )
    return table


def is_table_of_labels(y: Any) -> bool:
    """Tell whether y has several columns."""
    shape = getattr(y, "shape", None)
    if shape is None and isinstance(y, (list, tuple)) and y and isinstance(y[0], (list, tuple, np.ndarray)):
        shape = (len(y), len(y[0]))
    return shape is not None and len(shape) == 2 and shape[1] > 1


class LabelRidge(LinearClassifierModel):
    """What the two classifiers share."""

    copy_X: bool = param(Boolean(), "Kept for compatibility; X is never changed.", default=True)
    coef_: Any = fitted(
        "(n_features,) or (n_classes, n_features)", "The weights W, flat for two classes; sparse after `sparsify`."
    )

    multilabel_: bool = fitted("bool", "True if y had a column per label; absent if rows have one.", optional=True)

    _one_score_is_flat = True
    _fewest_classes = 1
    _door = staticmethod(read_labels)
    verbose = 0
    warm_start = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    @property
    def has_many_labels(self) -> bool:
        """Whether rows may have several labels."""
        return bool(getattr(self, "multilabel_", False))

    def _n_scores(self, n_classes: int) -> int:
        return n_classes if self.has_many_labels else super()._n_scores(n_classes)

    @rowwise
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each row; if rows may have several, zeros and ones of shape (n_samples, n_classes)."""
        if self.has_many_labels:
            return (self._score_rows(X) > 0).astype(np.int64)
        return np.asarray(super().predict(X))

    def _read_classes(self, table: Table) -> None:
        """Learn the labels; of a table of zeros and ones they are the numbers of its columns."""
        if table.classes is None:
            self.multilabel_ = True
        self.classes_ = np.arange(table.y_shape[0]) if table.classes is None else np.asarray(table.classes)

    def _set_from(self, inner: Any) -> None:
        """Take over the coefficients of a ridge regression of the targets."""
        self.coef_ = inner.coef_
        n_scores = 1 if self.coef_.ndim == 1 else len(self.coef_)
        self.intercept_ = np.atleast_1d(np.asarray(inner.intercept_, dtype=np.float64)).copy()
        if len(self.intercept_) != n_scores:
            self.intercept_ = np.zeros(n_scores)
        self.n_iter_ = inner.n_iter_


class RidgeClassifier(LabelRidge):
    r"""Classification by ridge regression of ±1: minimise Σᵢ sᵢ ‖tᵢ − b − Wxᵢ‖² + α‖W‖².

    In the form n⁻¹ΣV + λΩ, α = nλ. One factorisation serves all classes. Time and memory as `Ridge`. A y with a column
    of zeros and ones per label gives each row any number of labels.

    Examples
    --------
    >>> from learnable import RidgeClassifier
    >>> model = RidgeClassifier().fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
    >>> model.predict([[0.5], [2.5]]).tolist(), model.certificate_.kind
    (['no', 'yes'], 'closed-form')
    """

    _theory = "ridge"

    alpha: float = param(_PENALTY, "α ≥ 0.", default=1.0, kw_only=False)
    max_iter: int | None = param(Nothing() | Number(low=1, integer=True), "As in `Ridge`.", default=None)
    tol: float = param(_PENALTY, "As in `Ridge`.", default=1e-8)
    solver: str = param(Options(*Ridge._parameters["solver"].words), "As in `Ridge`.", default="auto")  # type: ignore[attr-defined]
    positive: bool = param(Boolean(), "Constrain W ≥ 0.", default=False)
    random_state: Any = param(Ridge._parameters["random_state"], "As in `Ridge`.", default=None)
    n_iter_: int = fitted("int", "As in `Ridge`.")
    solver_: str = fitted("str", "As in `Ridge`.")
    certificate_: Certificate = fitted("Certificate", "As in `Ridge`.")

    def _fit(self, table: Table, run: Run) -> Certificate:
        self._read_classes(table)
        names = ("alpha", "fit_intercept", "max_iter", "tol", "solver", "positive", "random_state", "n_jobs")
        inner = Ridge(**{name: getattr(self, name) for name in names})
        certificate = inner._fit(signed_targets(self, table), run)
        self._set_from(inner)
        self.solver_ = inner.solver_
        return certificate


class RidgeClassifierCV(ChoosingModel, LabelRidge):
    r"""Classification by ridge regression of ±1 with α chosen: minimise Σᵢ sᵢ ‖tᵢ − b − Wxᵢ‖² + α‖W‖².

    In the form n⁻¹ΣV + λΩ, α = nλ. By default α has the least exact leave-one-out error of the targets, at the cost of
    one factorisation; with `cv`, the best accuracy on the folds.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import RidgeClassifierCV
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = RidgeClassifierCV(alphas=[0.1, 1.0, 10.0]).fit(X, X[:, 0] + 0.5 * np.cos(np.arange(60)) > 0)
    >>> float(model.alpha_), model.certificate_.kind
    (1.0, 'closed-form')
    """

    _theory = "ridge"

    alphas: Any = param(
        ArrayLike(_PENALTY) | _PENALTY,
        "The candidates: positive, or with `cv` also 0.",
        default=(0.1, 1.0, 10.0),
        kw_only=False,
    )
    scoring: Any = param(
        Nothing() | Matches(lambda v: isinstance(v, str) or callable(v), "a scorer or its name"),
        "How predictions are scored; None is the squared error of the targets (the accuracy with `cv`).",
        default=None,
    )
    cv: Any = param(
        Nothing() | Matches(lambda v: not isinstance(v, (str, float, bool)), "a number of folds or a splitter"),
        "None is exact leave-one-out; otherwise folds as in scikit-learn.",
        default=None,
    )
    store_cv_results: bool = param(Boolean(), "Keep `cv_results_`.", default=False)
    alpha_: float = fitted("()", "The chosen penalty.", low=0.0)
    best_score_: float = fitted("()", "Its score; −∞ where a row alone decides a coefficient.", infinite=True)
    criterion_path_: Array = fitted("(n_alphas,)", "The score of every candidate.", infinite=True)
    cv_results_: Array = fitted(
        "array of shape (n_samples, n_targets, n_alphas)",
        "Squared leave-one-out errors of the targets (predictions when `scoring` is given); only with "
        "`store_cv_results`.",
    )
    n_iter_: int = fitted("int", "One.")
    row_order_: int = fitted(
        "int", "Checksum of the targets in their order, by which `verify` knows whether it can draw the folds again."
    )
    certificate_: Certificate = fitted("Certificate", "Relative residual of the equations that define the chosen fit.")

    copy_X = True
    max_seconds = None

    def _get_scorer(self) -> Any:
        return self._inner()._get_scorer()

    def _inner(self) -> _LabelRidgeCV:
        names = ("alphas", "scoring", "cv", "store_cv_results", "fit_intercept", "n_jobs")
        inner = _LabelRidgeCV(**{name: getattr(self, name) for name in names})
        inner._outer = self
        return inner

    def _fit(self, table: Table, run: Run) -> Certificate:
        self._read_classes(table)
        inner = self._inner()
        certificate = inner._fit(signed_targets(self, table), run)
        self._set_from(inner)
        for name in ("alpha_", "best_score_", "criterion_path_", "cv_results_", "row_order_"):
            if hasattr(inner, name):
                setattr(self, name, getattr(inner, name))
        if hasattr(self, "cv_results_") and self.cv_results_.ndim == 2:
            self.cv_results_ = self.cv_results_[:, None, :]
        return certificate

    _laws = laws(
        law(
            "criterion_path_ must have one score per candidate",
            lambda model: model.criterion_path_.shape == (np.size(model.alphas),),
            "criterion_path_",
        ),
    )


class _LabelRidgeCV(RidgeCV):
    """RidgeCV of targets ±1 whose predictions are scored as labels."""

    _own_metric = "accuracy"
    _outer: Any = None

    def get_metadata_routing(self) -> Any:
        return self._outer.get_metadata_routing()

    def _metadata(self, table: Table) -> Any:
        return self._outer._metadata(table)

    def _get_scorer(self) -> Any:
        from sklearn.metrics import check_scoring

        from ...meta.binary import is_routing

        scorer = check_scoring(_StatedClassifier(), self.scoring or "accuracy")
        return scorer.set_score_request(sample_weight=True) if is_routing() and self.scoring is None else scorer

    def _labels(self, table: Table) -> Any:
        return self._truth(table.y)

    def _stated(self) -> Any:
        return _StatedClassifier(self._outer.classes_, self._outer.has_many_labels)

    def _truth(self, y: Array) -> Any:
        columns = y.reshape(len(y), -1)
        if self._outer.has_many_labels:
            return (columns > 0).astype(np.int64)
        codes = (columns[:, 0] > 0).astype(np.int64) if columns.shape[1] == 1 else columns.argmax(axis=1)
        return self._outer.classes_[codes]

    def _member(self, alpha: float, coef: Array, intercept: Array) -> Any:
        model = RidgeClassifier(alpha=alpha)
        model.classes_ = self._outer.classes_
        if self._outer.has_many_labels:
            model.multilabel_ = True
        model.coef_ = np.atleast_2d(coef)
        model.intercept_ = np.atleast_1d(intercept)
        model.n_features_in_ = model.coef_.shape[1]
        return model


class _StatedClassifier(ClassifierMixin, BaseEstimator):
    """A classifier whose scores are what it is given: a scorer then scores leave-one-out predictions."""

    def __init__(self, classes: Any = None, multilabel: bool = False) -> None:
        self.classes = classes
        self.multilabel = multilabel

    @property
    def classes_(self) -> Any:
        """The labels."""
        return self.classes

    def fit(self, X: Any, y: Any = None) -> _StatedClassifier:
        """Learn nothing."""
        return self

    def decision_function(self, X: Any) -> Any:
        """Return what is given."""
        return X

    def predict(self, X: Any) -> Any:
        """Return the label of the largest score, or all labels of positive ones."""
        if self.multilabel:
            return (X > 0).astype(np.int64)
        codes = (X > 0).astype(np.int64) if np.ndim(X) == 1 else np.argmax(X, axis=1)
        return self.classes[codes]


def signed_targets(model: Any, table: Table) -> Table:
    """Return the table with targets ±1, and weights that hold those of the classes."""
    if model.has_many_labels:
        weight = label_weights(model, table)
        y = 2.0 * table.y - 1.0
        return replace(table, blocks=Blocks([Part(table.X, y, weight)]), y=y, weight=weight)
    of_class = class_weights(table, model.class_weight, type(model).__name__)
    if not table.in_memory:
        rows = table.blocks if of_class is None else table.blocks.reweighted(of_class)
        return replace(table, blocks=rows)
    codes = np.asarray(table.y)
    n_classes = len(np.asarray(table.classes))
    y = 2.0 * codes - 1.0
    if n_classes > 2:
        y = np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)
    weight = table.weight
    if of_class is not None:
        weight = of_class[codes] if weight is None else weight * of_class[codes]
    return replace(table, blocks=Blocks([Part(table.X, y, weight)]), y=y, weight=weight)


def label_weights(model: Any, table: Table) -> Array | None:
    """Return the weights of rows with several labels; balanced ones are products over the columns."""
    if model.class_weight is None:
        return table.weight
    if model.class_weight != "balanced":
        raise ParameterError(
            f"{type(model).__name__}: class_weight must be None or 'balanced' where y has a column per label; got "
            f"{model.class_weight!r}. Weight the rows by sample_weight instead."
        )
    own = np.asarray(compute_sample_weight("balanced", table.y), dtype=np.float64)
    return own if table.weight is None else table.weight * own
