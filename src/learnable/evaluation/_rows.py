"""Training rows for models that wrap other models: X stays as it came, y and the weights are read and checked.

A wrapper (conformal prediction, calibration) fits copies of a model on some rows and looks at others. What X may be is
the inner model's business: arrays, sparse arrays, lists, any dataframe. Here the rows are only counted and taken.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed

from ..core.errors import DataError, ParameterError
from ..core.parameters import Matches
from ..data.arrays import as_array, check_shape, sound_csr
from ..data.blocks import Blocks, Part
from ..data.files import read_table
from ..data.fingerprint import scan
from ..data.frames import is_frame, open_frame, take_named_columns
from ..data.targets import Target, check_two_classes, drop_absent_classes, read_target, read_weight
from ..meta.rows import count_rows, take_rows, weight_keyword

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


def _is_cv(value: Any) -> bool:
    if value is None or isinstance(value, (int, np.integer)):
        return value is None or (not isinstance(value, bool) and int(value) >= 2)
    return value == "prefit" if isinstance(value, str) else hasattr(value, "split") or hasattr(value, "__iter__")


#: What `cv` may be.
CV = Matches(_is_cv, "an integer >= 2, a splitter, a list of splits, 'prefit' or None")


@dataclass(frozen=True)
class Sample:
    """Training rows with positive weight.

    Attributes
    ----------
    X : any container of n rows
        As it was given, without the rows of weight zero.
    y : (n,) float64, or (n,) int64 class codes
        Targets.
    weight : (n,) float64 or None
        Positive weights; None means one each.
    classes : array or None
        The labels, sorted; `y` holds positions in it.
    fingerprint : str
        Checksum of the targets, the weights and their order: folds are sets of row numbers, so the order counts. A
        frame of text has no numbers to sum; that X is the same shows in the recomputed scores.
    kept : (n_given,) bool or None
        Which of the rows given are here; None if all are.
    """

    X: Any
    y: NDArray[Any]
    weight: Array | None
    classes: NDArray[Any] | None
    fingerprint: str
    kept: NDArray[np.bool_] | None

    @property
    def n_rows(self) -> int:
        """Number of rows with positive weight."""
        return len(self.y)

    def labels(self, rows: Rows) -> NDArray[Any]:
        """Return the targets of some rows as the inner model wants them: numbers, or the user's own labels."""
        return self.y[rows] if self.classes is None else self.classes[self.y[rows]]

    def weights(self, rows: Rows) -> Array | None:
        """Return the weights of some rows."""
        return None if self.weight is None else self.weight[rows]


def sample_door(target: Target) -> Callable[..., Sample]:
    """Return the door of a wrapper: a function of (estimator, X, y, sample_weight, run) that gives a `Sample`."""

    def read(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, run: Any = None) -> Sample:
        owner = type(estimator).__name__
        if isinstance(X, (str, os.PathLike)):
            X = read_table(X)
        X, y, sample_weight = take_named_columns(owner, X, y, sample_weight)
        X = _as_rows(owner, X)
        n = count_rows(X)
        codes, classes = read_target(owner, y, target, multi_output=False)
        if len(codes) != n:
            raise DataError(
                f"{owner}: X and y have inconsistent numbers of samples: X has {n} rows, y has {len(codes)}. "
                "Pass one target a row."
            )
        weight = read_weight(owner, sample_weight, n)
        kept = None
        if weight is not None and not weight.all():
            kept = weight > 0
            X, codes, weight = take_rows(X, np.flatnonzero(kept)), codes[kept], weight[kept]
            if classes is not None:
                codes, classes = drop_absent_classes(codes, classes)
        if classes is not None:
            check_two_classes(owner, classes)
        order = np.arange(len(codes), dtype=np.float64)[:, None]
        checksum, _ = scan(Blocks([Part(order, codes, weight)]), None, classes)
        return Sample(X, codes, weight, classes, f"{checksum:016x}", kept)

    return read


def as_container(owner: str, X: Any) -> Any:
    """Return X as something whose rows can be taken: a list becomes an array, a sparse array becomes CSR."""
    if is_frame(X):
        return X
    if sp.issparse(X):
        return sound_csr(owner, X)
    return X if hasattr(X, "shape") else np.asarray(X)


def is_prefit(estimator: Any, cv: Any) -> bool:
    """Tell whether the model comes fitted, so that every row may calibrate it."""
    return (isinstance(cv, str) and cv == "prefit") or isinstance(estimator, FrozenEstimator)


def fit_copies(owner: str, estimator: Any, sample: Sample, parts: list[Rows], n_jobs: int | None = None) -> list[Any]:
    """Fit one copy of the model on each part of the rows."""
    name = weight_keyword(owner, estimator) if sample.weight is not None else None
    if len(parts) == 1 or n_jobs in (None, 1):
        return [_fit_copy(estimator, sample, rows, name) for rows in parts]
    return list(Parallel(n_jobs=n_jobs)(delayed(_fit_copy)(estimator, sample, rows, name) for rows in parts))


def _fit_copy(estimator: Any, sample: Sample, rows: Rows, name: str | None) -> Any:
    extra = {} if name is None else {name: sample.weights(rows)}
    X = sample.X if len(rows) == sample.n_rows else take_rows(sample.X, rows)
    return clone(estimator).fit(X, sample.labels(rows), **extra)


def splits_of(owner: str, cv: Any, sample: Sample, classifier: bool) -> list[tuple[Rows, Rows]]:
    """Return the (train, test) rows of scikit-learn's `cv`: an integer, a splitter, or the splits themselves.

    An integer cuts the rows with positive weight; splits and splitters number the rows as they were given.
    """
    try:
        if cv is None or isinstance(cv, (int, np.integer)) or sample.kept is None:
            pairs = check_cv(cv, sample.y, classifier=classifier).split(np.zeros((sample.n_rows, 1)), sample.y)
            splits = [(np.asarray(train), np.asarray(test)) for train, test in pairs]
        else:
            splits = _positions(cv, sample)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise ParameterError(f"{owner}: cv={cv!r} does not work here: {str(error).splitlines()[0]}") from error
    for train, test in splits:
        if not (len(train) and len(test)):
            raise ParameterError(f"{owner}: cv={cv!r} leaves a fold without rows; use fewer folds.")
        if max(train.max(), test.max()) >= sample.n_rows:
            raise ParameterError(f"{owner}: cv names row {max(train.max(), test.max())} of {sample.n_rows}.")
    return [(train.astype(np.int64), test.astype(np.int64)) for train, test in splits]


def _positions(cv: Any, sample: Sample) -> list[tuple[Rows, Rows]]:
    """Return the splits of the rows given, as positions among the rows that have weight."""
    kept = np.asarray(sample.kept)
    position = np.where(kept, np.cumsum(kept) - 1, -1)
    y = np.zeros(len(kept), dtype=sample.y.dtype)
    y[kept] = sample.y
    found = []
    for train, test in check_cv(cv, sample.y).split(np.zeros((len(kept), 1)), y):
        pair = position[np.asarray(train)], position[np.asarray(test)]
        found.append((pair[0][pair[0] >= 0], pair[1][pair[1] >= 0]))
    return found


def adopt_features(wrapper: Any, inner: Any) -> None:
    """Give the wrapper the inner model's number and names of columns, where it has them."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(inner, name):
            setattr(wrapper, name, getattr(inner, name))


def _as_rows(owner: str, X: Any) -> Any:
    if is_frame(X):
        open_frame(owner, X)
        check_shape(owner, X.shape)
        return X
    if sp.issparse(X):
        return as_container(owner, X)
    array = as_array(owner, X, "X")
    if array.ndim == 0 or len(array) == 0:
        check_shape(owner, array.shape if array.ndim != 1 else (0, 1), X)
    return array
