r"""One against one: K classes by K(K − 1)/2 binary models, each of which tells two classes apart.

The models' answers have to be reconciled, because they need not agree: a may beat b, b beat c, and c beat a.

- **Votes.** Every model votes for one of its two classes. A tie is broken by the sum of the confidences for a class,
  made smaller than half a vote, so that it decides nothing else.
- **Tournament.** Classes meet in pairs, in their order; the winners meet again, until one is left: K − 1 models are
  asked for a row instead of all. A class that beats every other one (a Condorcet winner) wins both ways; if the
  relation is transitive, there is one.

References: S. Knerr, L. Personnaz and G. Dreyfus, 1990; J. Friedman, Another approach to polychotomous classification,
1996; U. Kreßel, Pairwise classification and support vector machines, 1999.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from ..core import DataError, ModelFileError, Options, fitted, param
from ..data.rows import ClassTable, read_rows, take_columns, take_rows
from ..data.sources import rowwise
from .binary import Array, BinaryReduction, Codes, Problem, confidence


class OneVsOneClassifier(BinaryReduction):
    """K classes by one binary model for each pair of them.

    Examples
    --------
    >>> from learnable import LogisticRegression, OneVsOneClassifier
    >>> X, y = [[0.0], [1.0], [5.0], [6.0], [10.0], [11.0]], list("aabbcc")
    >>> model = OneVsOneClassifier(LogisticRegression(), reconcile="tournament").fit(X, y)
    >>> model.predict([[0.5], [5.5], [10.5]]).tolist()
    ['a', 'b', 'c']
    """

    _theory = "one-vs-one"

    reconcile: str = param(
        Options("votes", "tournament"),
        "How one label comes of all answers: most votes, as in scikit-learn, or the last class in a tournament.",
        default="votes",
    )
    estimators_: list[Any] = fitted(
        "list of estimators",
        "The models of the pairs (0, 1), (0, 2), …, (1, 2), …, fitted to label 1 for the second class of the pair.",
    )
    pairwise_indices_: Any = fitted(
        "list of int arrays, or None",
        'With an estimator of kernel matrices (`kernel="precomputed"`), the training rows of each pair, '
        "which are the columns that its model was given.",
    )

    def _problems(self, codes: Codes, n_classes: int) -> list[Problem]:
        problems: list[Problem] = []
        for first, second in combinations(range(n_classes), 2):
            rows = (codes == first) | (codes == second)
            problems.append((rows, (codes[rows] == second).astype(np.int64)))
        return problems

    def _check_table(self, table: ClassTable) -> None:
        if len(table.classes) < 2:
            raise DataError(
                f"{type(self).__name__}: needs at least two classes in y; it can not be fit when only one class is "
                f"present: {table.classes[0]!r}. Add rows of another class."
            )

    def _rows_of(self, table: ClassTable, rows: NDArray[np.bool_] | None) -> tuple[Any, Array | None]:
        X, weight = super()._rows_of(table, rows)
        if rows is not None and self._is_pairwise():
            X = take_columns(X, table.kept[np.flatnonzero(rows)])
        return X, weight

    def _keep_shape(self, table: ClassTable, problems: list[Problem]) -> None:
        self.pairwise_indices_ = None
        if self._is_pairwise():
            self.pairwise_indices_ = [table.kept[np.flatnonzero(rows)] for rows, _ in problems if rows is not None]
            self.n_columns_ = int(table.n_columns or 0)

    def _is_pairwise(self) -> bool:
        return bool(get_tags(self.estimator).input_tags.pairwise)

    @property
    def n_features_in_(self) -> int:
        """The number of columns of X, of which models of kernel matrices see some."""
        return super().n_features_in_ if self._indices() is None else int(self.n_columns_)

    def _indices(self) -> Any:
        return getattr(self, "pairwise_indices_", None)

    def _confidence(self, number: int, X: Any) -> Array:
        """Return how sure the model of a pair is of its second class."""
        indices = self._indices()
        if indices is not None:
            X = take_columns(X, indices[number])
        return confidence(self.estimators_[number], X)

    @rowwise
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label with most votes, or the winner of the tournament."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)]

    @rowwise
    def decision_function(self, X: Any) -> Array:
        """Return a score for each class, the largest for the one predicted.

        Parameters
        ----------
        X : array, sparse array, dataframe, list of rows, path or Dask collection, of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_classes); (n_samples,) for two classes
            Votes: their number, plus less than one half for the confidence, as in scikit-learn. Tournament: in how many
            rounds the class was still there. Two classes: the votes' score of the second one, positive if it wins.
        """
        check_is_fitted(self)
        if self.reconcile == "tournament" and len(self.classes_) > 2:
            return self._rounds_survived(read_rows(type(self).__name__, X).X)
        columns = [self._confidence(number, X) for number in range(len(self.estimators_))]
        scores = count_votes(np.column_stack(columns), len(self.classes_))
        return scores[:, 1] if len(columns) == 1 else scores

    def _rounds_survived(self, X: Any) -> Array:
        """Let the classes meet in a tree, asking each model about the rows for which its two classes meet."""
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        n_classes = len(self.classes_)
        number = {pair: k for k, pair in enumerate(combinations(range(n_classes), 2))}
        survived = np.zeros((n_rows, n_classes))
        left: list[Codes] = [np.full(n_rows, k, dtype=np.int64) for k in range(n_classes)]  # the class in each place
        while len(left) > 1:
            winners = []
            for one, other in zip(left[0::2], left[1::2], strict=False):  # places keep the order of the classes
                winner = one.copy()
                for pair, rows in _meetings(one, other):
                    second = self._confidence(number[pair], take_rows(X, rows)) > 0
                    winner[rows] = np.where(second, pair[1], pair[0])
                winners.append(winner)
            left = winners + left[len(left) - len(left) % 2 :]  # the last one of an odd number waits
            for place in left:
                survived[np.arange(n_rows), place] += 1.0
        return survived

    def _check_loaded(self) -> None:
        n_classes = np.size(getattr(self, "classes_", ()))
        indices = self._indices()
        self._check_models(n_classes * (n_classes - 1) // 2, same_width=indices is None)
        if indices is not None:
            self._check_indices(indices)

    def _check_indices(self, indices: Any) -> None:
        sound = isinstance(indices, list) and len(indices) == len(self.estimators_)
        sound = sound and isinstance(getattr(self, "n_columns_", None), int)
        for model, rows in zip(self.estimators_, indices, strict=True) if sound else []:
            whole = isinstance(rows, np.ndarray) and rows.ndim == 1 and rows.dtype.kind == "i"
            within = whole and len(rows) == model.n_features_in_ and rows.min() >= 0 and rows.max() < self.n_columns_
            sound = sound and bool(within)
        if not sound:
            raise ModelFileError(f"load: {type(self).__name__}: pairwise_indices_ must name the columns of each model.")


def count_votes(confidences: Array, n_classes: int) -> Array:
    """Return the votes for each class, plus x/(3(|x| + 1)) of the sum x of the confidences for it.

    Parameters
    ----------
    confidences : (n, K(K − 1)/2) array
        Of the models of the pairs (0, 1), (0, 2), …; positive for the second class of the pair.
    n_classes : int
        K.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.meta.one_vs_one import count_votes
    >>> count_votes(np.array([[-1.0, -2.0, 0.5]]), 3).round(2)
    array([[ 2.25, -0.2 ,  0.8 ]])
    """
    votes, total = np.zeros((2, len(confidences), n_classes))
    for k, (first, second) in enumerate(combinations(range(n_classes), 2)):
        second_wins = confidences[:, k] > 0
        votes[:, first] += ~second_wins
        votes[:, second] += second_wins
        total[:, first] -= confidences[:, k]
        total[:, second] += confidences[:, k]
    return votes + total / (3.0 * (np.abs(total) + 1.0))


def _meetings(one: Codes, other: Codes) -> list[tuple[tuple[int, int], Codes]]:
    """Return each pair of classes that meet, with the rows for which they do."""
    return [
        ((first, second), np.flatnonzero((one == first) & (other == second)))
        for first, second in sorted(set(zip(one.tolist(), other.tolist(), strict=True)))
    ]
