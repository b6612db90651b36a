"""The weights with which neighbours speak.

With `weights="uniform"` each of the k neighbours has one vote, with "distance" 1/distance (neighbours at distance zero
then speak alone), with a function what it returns. A training row of weight w counts as w rows at its place: the
neighbourhood is filled, from the nearest row outwards, up to a total weight of k, and the last row counts with what is
left. So integer weights are the same as repeated rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..core import (
    AnyArray,
    Certificate,
    DataError,
    Matches,
    Nothing,
    Options,
    Run,
    fitted,
    is_array,
    is_labels,
    law,
    laws,
    param,
)
from ..data.door import Table
from ..data.sources import NamedScore, rowwise
from .base import NeighborsModel, neighbors_door


class VotingModel(NeighborsModel):
    """A model that predicts from the targets of the nearest rows."""

    weights: Any = param(
        Options("uniform", "distance") | Matches(callable, "a function of distances") | Nothing(),
        "Votes of the neighbours: one each, 1/distance, or a function from an array of distances to an array of votes.",
        default="uniform",
    )
    row_weights_: AnyArray = fitted(
        "(n_samples_fit_,)", "Their weights, if weights were given: a row of weight w counts as w rows.", optional=True
    )

    def _votes(self, X: Any) -> tuple[AnyArray, AnyArray]:
        """Return the neighbours of each query and their votes, of shape (n_queries, k) each."""
        k = self._check_count(self.n_neighbors, X is None)
        row_weights = getattr(self, "row_weights_", None)
        if row_weights is None:
            distances, rows = self._find(X, k)
            return rows, self._speak(distances, np.ones_like(distances))
        available = self.n_samples_fit_ - (X is None)
        while True:
            distances, rows = self._find(X, min(k, available))
            counts = row_weights[rows]
            total = np.cumsum(counts, axis=1)
            if k >= available or (total[:, -1] >= self.n_neighbors).all():
                break
            k *= 2  # rows that weigh less than one: more of them are needed
        if (total[:, -1] < self.n_neighbors * (1 - 1e-12)).any():
            raise DataError(
                f"{type(self).__name__}: the rows weigh {row_weights.sum():g} in all, less than n_neighbors = "
                f"{self.n_neighbors}; a row of weight w counts as w rows. Ask for fewer neighbours, or scale them."
            )
        return rows, self._speak(distances, np.clip(self.n_neighbors - (total - counts), 0.0, counts))

    def _speak(self, distances: AnyArray, counts: AnyArray) -> AnyArray:
        """Return the votes of neighbours at these distances that count so many times."""
        owner = type(self).__name__
        if self.weights in (None, "uniform"):
            return counts
        if self.weights == "distance":
            with np.errstate(divide="ignore", over="ignore"):
                nearness = 1.0 / distances
            touching = np.isinf(nearness) & (counts > 0)
            alone = touching.any(axis=1)
            nearness[alone] = touching[alone]
            largest = nearness.max(axis=1, keepdims=True)  # sums of huge numbers would overflow
            nearness = np.where(largest > 0, nearness / np.where(largest > 0, largest, 1.0), 1.0)  # all infinitely far
        else:
            nearness = np.asarray(self.weights(distances), dtype=np.float64)
            if nearness.shape != distances.shape:
                raise DataError(
                    f"{owner}: the function weights must return an array of the shape it got, {distances.shape}; got "
                    f"{nearness.shape}."
                )
            if not (nearness >= 0).all() or np.isinf(nearness).any():
                raise DataError(f"{owner}: the function weights must return numbers >= 0; got NaN, infinity or less.")
        votes = nearness * counts
        if not votes.any(axis=1).all():
            raise DataError(
                f"{owner}: All neighbors of some sample is getting zero weights. Please modify 'weights' to avoid this "
                "case if you are using a user-defined function."
            )
        return votes


# Classification by the nearest rows.
#
# The rule estimates P(class | x) by the share of the class among the k rows nearest to x. With k = 1 and many rows
# its
# error is at most twice the Bayes error, more precisely at most 2ε(1 − ε) for two classes and Bayes error ε.
#
# Reference: T. Cover and P. Hart, Nearest neighbor pattern classification, IEEE Transactions on Information Theory 13
# (1967), 21–27.


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
    targets_: AnyArray = fitted(
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
    def predict(self, X: Any) -> AnyArray:
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

    def _tallies(self, X: Any) -> list[AnyArray]:
        """Return, for each output, the votes for each class."""
        check_is_fitted(self)
        rows, votes = self._votes(X)
        if not self.outputs_2d_:
            return [_tally(self.targets_[rows], votes, len(self.classes_))]
        outputs = zip(self.targets_.T, self.classes_, strict=True)
        return [_tally(targets[rows], votes, len(labels)) for targets, labels in outputs]

    _laws = laws(
        law(
            "outputs_2d_ must say whether classes_ is a list",
            lambda model: model.outputs_2d_ is isinstance(model.classes_, list),
        ),
        law(
            "targets_ must be int64 class numbers, one per row",
            lambda model: is_array(
                model.targets_,
                (model.n_samples_fit_, len(model.classes_)) if model.outputs_2d_ else (model.n_samples_fit_,),
                np.int64,
            ),
        ),
        law(
            "classes_ must be an array of labels",
            lambda model: all(is_labels(labels, 1) for labels in model._label_arrays()),
        ),
        law(
            "targets_ names a class that classes_ does not have",
            lambda model: all(
                numbers.max() < len(labels)
                for labels, numbers in zip(
                    model._label_arrays(), model.targets_.reshape(model.n_samples_fit_, -1).T, strict=True
                )
            ),
        ),
    )

    def _label_arrays(self) -> list[Any]:
        """Return the labels of each column of y."""
        return self.classes_ if isinstance(self.classes_, list) else [self.classes_]


def _tally(targets: AnyArray, votes: AnyArray, K: int) -> AnyArray:
    """Return the votes (m, K) for classes that neighbours (m, k) have."""
    places = np.arange(len(targets))[:, None] * K + targets
    return np.bincount(places.ravel(), votes.ravel(), len(targets) * K).reshape(-1, K)


# Regression by the nearest rows: the mean of the targets of the k rows nearest to x estimates E(y | x).
#
# Reference: T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical Learning, 2nd ed., section 2.3.2.


class KNeighborsRegressor(NamedScore, MultiOutputMixin, RegressorMixin, VotingModel):
    """The (weighted) mean target of the k nearest training rows.

    Neighbours are exact, with ties by row number. Memory and time are those of `KNeighborsClassifier`. Columns count in
    their own units: scale them first.

    Examples
    --------
    >>> from learnable import KNeighborsRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 4.0, 9.0]
    >>> KNeighborsRegressor(n_neighbors=2).fit(X, y).predict([[1.4]])
    array([2.5])
    >>> KNeighborsRegressor(n_neighbors=2, weights="distance").fit(X, y).predict([[1.25]])
    array([1.75])
    """

    _theory = "neighbours"

    targets_: AnyArray = fitted("(n_samples_fit_,) or (n_samples_fit_, n_targets)", "Their targets.")

    _door = staticmethod(neighbors_door(target="numeric", multi_output=True))

    @rowwise
    def predict(self, X: Any) -> AnyArray:
        """Return the mean target of the neighbours; None predicts each training row from the others."""
        check_is_fitted(self)
        rows, votes = self._votes(X)
        shares = votes / votes.sum(axis=1, keepdims=True)
        targets = self.targets_[rows]
        return np.einsum("ij,ij...->i...", shares, targets)
