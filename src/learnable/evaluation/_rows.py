"""Training rows for models that wrap other models: X stays as it came, y and the weights are read and checked.

A wrapper (conformal prediction, calibration) fits copies of a model on some rows and looks at others. What X may be is
the inner model's business: arrays, sparse arrays, lists, any dataframe. Here the rows are only counted and taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed

from ..core.declare import Matches
from ..core.errors import ParameterError
from ..data.rows import Sample, take_rows, weight_keyword

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


def _is_cv(value: Any) -> bool:
    if value is None or isinstance(value, (int, np.integer)):
        return value is None or (not isinstance(value, bool) and int(value) >= 2)
    return value == "prefit" if isinstance(value, str) else hasattr(value, "split") or hasattr(value, "__iter__")


#: What `cv` may be.
CV = Matches(_is_cv, "an integer >= 2, a splitter, a list of splits, 'prefit' or None")


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
