"""Classification by the nearest rows.

The rule estimates P(class | x) by the share of the class among the k rows nearest to x. With k = 1 and many rows its
error is at most twice the Bayes error, more precisely at most 2ε(1 − ε) for two classes and Bayes error ε.

Reference: T. Cover and P. Hart, Nearest neighbor pattern classification, IEEE Transactions on Information Theory 13
(1967), 21–27.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..core.certificate import Certificate
from ..core.declare import fitted
from ..core.errors import ModelFileError
from ..core.run import Run
from ..data.door import Table
from ..data.sources import NamedScore, rowwise
from .base import neighbors_door
from .voting import VotingModel

Array = NDArray[Any]


class KNeighborsClassifier(NamedScore, ClassifierMixin, VotingModel):
    """The majority among the k nearest training rows.

    Neighbours are exact, with ties by row number; between classes with equal votes the first in `classes_` wins. A fit
    takes O(nd) memory (the rows, and half as much again for the search) and little time; a prediction compares with all
    rows by BLAS, or walks a k-d tree where that is quicker. Columns count in their own units: scale them first.

    Examples
    --------
    >>> from learnable import KNeighborsClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> model = KNeighborsClassifier(n_neighbors=3).fit(X, y)
    >>> model.predict([[1.1], [2.4]])
    array(['a', 'b'], dtype='<U1')
    >>> model.predict_proba([[0.9]]).round(3)
    array([[0.667, 0.333]])
    """

    _theory = "neighbours"

    classes_: Any = fitted(
        "array of shape (n_classes,), or a list of such arrays", "Labels; for y with several columns, those of each."
    )
    targets_: Array = fitted(
        "(n_samples_fit_,) or (n_samples_fit_, n_outputs)",
        "Their classes, as positions in `classes_`.",
        kind="i",
        low=0,
    )
    outputs_2d_: bool = fitted("bool", "Whether y had several columns.")

    _door = staticmethod(neighbors_door(target="classes", multi_output=True, one_class=True))

    def _fit(self, table: Table, run: Run) -> Certificate:
        self.outputs_2d_ = isinstance(table.classes, list)
        self.classes_ = list(table.classes) if self.outputs_2d_ else np.asarray(table.classes)
        return super()._fit(table, run)

    @rowwise
    def predict(self, X: Any) -> Array:
        """Return the class of most votes; None predicts each training row from the others."""
        tallies = self._tallies(X)
        if not self.outputs_2d_:
            return np.asarray(self.classes_[tallies[0].argmax(axis=1)])
        best = [labels[tally.argmax(axis=1)] for labels, tally in zip(self.classes_, tallies, strict=True)]
        return np.stack(best, axis=1)

    @rowwise
    def predict_proba(self, X: Any) -> Any:
        """Return the share of the votes of each class, in the order of `classes_`; for several outputs, a list."""
        shares = [tally / tally.sum(axis=1, keepdims=True) for tally in self._tallies(X)]
        return shares if self.outputs_2d_ else shares[0]

    def _tallies(self, X: Any) -> list[Array]:
        """Return, for each output, the votes for each class."""
        check_is_fitted(self)
        rows, votes = self._votes(X)
        if not self.outputs_2d_:
            return [_tally(self.targets_[rows], votes, len(self.classes_))]
        outputs = zip(self.targets_.T, self.classes_, strict=True)
        return [_tally(targets[rows], votes, len(labels)) for targets, labels in outputs]

    def _check_loaded(self) -> None:
        super()._check_loaded()
        classes, codes = getattr(self, "classes_", None), getattr(self, "targets_", None)
        several = isinstance(classes, list)
        if getattr(self, "outputs_2d_", None) is not several:
            raise ModelFileError("load: outputs_2d_ must say whether classes_ is a list.")
        outputs: list[Any] = classes if isinstance(classes, list) else [classes]
        shape = (self.n_samples_fit_, len(outputs)) if several else (self.n_samples_fit_,)
        if not isinstance(codes, np.ndarray) or codes.dtype != np.int64 or codes.shape != shape:
            raise ModelFileError("load: targets_ must be int64 class numbers, one a row.")
        for labels, numbers in zip(outputs, codes.reshape(len(codes), -1).T, strict=True):
            if not isinstance(labels, np.ndarray) or labels.ndim != 1 or len(labels) < 1:
                raise ModelFileError("load: classes_ must be an array of labels.")
            if numbers.max() >= len(labels):
                raise ModelFileError("load: targets_ names a class that classes_ does not have.")


def _tally(targets: Array, votes: Array, K: int) -> Array:
    """Return the votes (m, K) for classes that neighbours (m, k) have."""
    places = np.arange(len(targets))[:, None] * K + targets
    return np.bincount(places.ravel(), votes.ravel(), len(targets) * K).reshape(-1, K)
