r"""Regularised least-squares classification (RLSC): kernel ridge regression of the labels ±1.

    min_f  Σᵢ wᵢ (tᵢ − f(xᵢ))² + α‖f‖²,        tᵢ = ±1,

and the class is the sign of f. Of K > 2 classes, each has a function of its own, +1 for its rows and −1 for all others,
and the largest value wins: K right-hand sides of one and the same matrix.

Reference: R. Rifkin, G. Yeo and T. Poggio, Regularized least-squares classification, 2003.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from ..core.certificate import Certificate
from ..core.declare import fitted, param
from ..core.errors import ModelFileError
from ..core.run import Run
from ..data.door import Table
from ..data.sources import NamedScore, rowwise
from ..linear._base import CLASS_WEIGHT, class_weights
from .representer import memory_door
from .ridge import PENALTY, KernelSmoother

Array = NDArray[np.float64]


class KernelRidgeClassifier(NamedScore, ClassifierMixin, KernelSmoother):
    r"""Classification by kernel ridge regression of ±1: minimise Σᵢ wᵢ (tᵢ − f(xᵢ))² + α‖f‖².

    In the form n⁻¹ΣV + λΩ, α = nλ; there is no offset. Time and memory are those of `KernelRidge`: all classes
    share one factorisation.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_classes)
        c; one column for two classes, whose positive one is the second.
    X_fit_, function_, n_iter_
        As in `KernelRidge`.
    certificate_ : Certificate
        `closed-form`: the relative residual of (K + αW⁻¹)c = t.

    Examples
    --------
    >>> from learnable import KernelRidgeClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["in", "out", "out", "in"]
    >>> model = KernelRidgeClassifier(alpha=0.1, gamma=1.0).fit(X, y)
    >>> model.predict([[0.1], [1.5]])
    array(['in', 'out'], dtype='<U3')
    """

    _theory = "kernel-ridge"

    alpha: float = param(PENALTY, "α ≥ 0.", default=1.0, kw_only=False)
    class_weight: Any = param(CLASS_WEIGHT, "Weights of the classes, multiplied onto the sample weights.", default=None)

    _door = staticmethod(memory_door(target="classes"))

    classes_: NDArray[Any] = fitted("(n_classes,)", "The labels.", kind="biufOUST")

    def _fit(self, table: Table, run: Run) -> Certificate:
        self.classes_ = np.asarray(table.classes)
        return self._fit_numbers(table, signs_of(table.y, len(self.classes_)), self._weights(table), run)

    @rowwise
    def decision_function(self, X: Any) -> Array:
        """Return f(x): of shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        return self._values(X)

    @rowwise
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each row of X: by the sign of f, or the largest of several."""
        return self._labels(self._values(X))

    def leave_one_out(self, X: Any, y: Any, sample_weight: Any = None) -> NDArray[Any]:
        """Return the label that the fit to all other rows predicts for each, exactly and without refits.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`; the model need not be fitted. class_weight="balanced" keeps the weights of all rows.

        Returns
        -------
        array of shape (n_samples,)
            Labels.
        """
        draft = self._draft()
        table = type(self)._door(draft, X, y, sample_weight)
        draft.classes_ = np.asarray(table.classes)
        signs = signs_of(table.y, len(draft.classes_))
        labels = draft._labels(draft._leave_one_out_values(table, signs, draft._weights(table)))
        if table.kept is None:
            return labels
        out = np.asarray(draft.fit(X, y, sample_weight).predict(X))
        out[table.kept] = labels
        return out

    def _weights(self, table: Table) -> Array | None:
        """Return the weights of the rows times those of their classes."""
        of_class = class_weights(table, self.class_weight, type(self).__name__)
        if of_class is None:
            return table.weight
        return of_class[table.y] if table.weight is None else table.weight * of_class[table.y]

    def _labels(self, values: Array) -> NDArray[Any]:
        codes = (values > 0).astype(np.int64) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def _check_loaded(self) -> None:
        super()._check_loaded()
        classes = getattr(self, "classes_", None)
        if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
            raise ModelFileError("load: classes_ must hold at least two labels.")
        if self.dual_coef_.shape[1:] != (() if len(classes) == 2 else (len(classes),)):
            raise ModelFileError(f"load: dual_coef_ {self.dual_coef_.shape} does not fit {len(classes)} classes.")


def signs_of(codes: NDArray[np.int64], n_classes: int) -> Array:
    """Return +1 for a row's own class and −1 for the others: (n,) of two classes, else (n, K).

    Examples
    --------
    >>> signs_of(np.array([0, 1]), 2), signs_of(np.array([2]), 3)
    (array([-1.,  1.]), array([[-1., -1.,  1.]]))
    """
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)
    return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)
