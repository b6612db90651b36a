"""One score's walk of the perceptron, and the rows of a partial fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.errors import DataError, ParameterError
from ..data.blocks import unsigned
from ..data.door import read_features
from ..data.targets import read_weight
from ._perceptron_kernels import penalised_pass, perceptron_dense, perceptron_sparse

Array = NDArray[np.float64]

_CACHED_ENTRIES = 2**20
_RUN = 16  # rows


class Stepper:
    """The state of one score's walk: its weights, and what averaging or a penalty keeps beside them."""

    def __init__(self, model: Any, rows: tuple[Any, ...], label: Array, step: Array, w: Array) -> None:
        self.model, self.label, self.step, self.w = model, label, step, w
        self.total, self.done = np.zeros_like(w), np.zeros(1)  # the mean of all w is w − total/done
        self.state, self.shrunk = np.array([1.0, 0.0]), np.zeros(len(w) - 1)
        self.rows = rows
        if model.penalty is not None and len(rows) == 1:
            X = sp.csr_array(rows[0].astype(np.float64))
            self.rows = (X.data, unsigned(X.indices), unsigned(X.indptr))

    def make_pass(self, order: NDArray[np.int64]) -> tuple[int, float]:
        """Visit rows; return the mistakes and the loss."""
        model = self.model
        if model.penalty is None:
            one_pass: Callable[..., tuple[int, float]] = perceptron_dense if len(self.rows) == 1 else perceptron_sparse
            kept = (self.w, self.total, self.done)
            return one_pass(*self.rows, order, self.label, self.step, model.fit_intercept, model.average, *kept)
        l1_share = {"l1": 1.0, "l2": 0.0}.get(model.penalty, float(model.l1_ratio))
        strength = float(model.eta0 * model.alpha)
        form = (bool(model.fit_intercept), strength * l1_share, strength * (1.0 - l1_share))
        penalised: Callable[..., tuple[int, float]] = penalised_pass
        return penalised(*self.rows, order, self.label, self.step, form, self.w, self.state, self.shrunk)

    def weights(self, *, average: bool) -> Array:
        """Return (b, w)."""
        if average:
            return np.asarray(self.w - self.total / max(1.0, self.done[0]))
        return np.r_[self.w[0], self.state[0] * self.w[1:]]


class Batch(NamedTuple):
    """The rows of a partial fit."""

    X: Any
    y: NDArray[np.int64]
    weight: Array | None
    classes: NDArray[Any]
    class_weight: None = None  #: totals of rows beyond memory, which there are none of

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.X.shape[0])

    @property
    def n_columns(self) -> int:
        """How many columns a row has."""
        return int(self.X.shape[1])


def classes_of(known: Any, given: Any) -> NDArray[Any]:
    """Return the labels of all partial fits, sorted."""
    if known is None and given is None:
        raise ParameterError("Perceptron: classes must be passed on the first call to partial_fit.")
    if given is None:
        return np.asarray(known)
    classes = np.unique(np.asarray(given))
    if known is not None and not np.array_equal(classes, known):
        raise ParameterError(
            f"Perceptron: classes={given!r} is not the same as on the last call to partial_fit, which had {known!r}."
        )
    if len(classes) < 2:
        raise DataError("Perceptron: the number of classes has to be greater than one; got 1 class.")
    return classes


def read_batch(draft: Any, X: Any, y: Any, sample_weight: Any, *, first: bool) -> Batch:
    """Return some rows whose labels are numbered as in `draft.classes_`."""
    if isinstance(draft.class_weight, str):
        raise ParameterError(
            "Perceptron: class_weight='balanced' is not supported for partial_fit, which does not see all rows; pass "
            "the weights as a dict."
        )
    X = read_features(draft, X, reset=first)
    labels = np.asarray(y).ravel()
    if len(labels) != X.shape[0]:
        raise DataError(
            f"Perceptron: X and y have inconsistent numbers of samples: X has {X.shape[0]} rows, y has {len(labels)}."
        )
    codes = np.searchsorted(draft.classes_, labels)
    unknown = draft.classes_[np.minimum(codes, len(draft.classes_) - 1)] != labels
    if unknown.any():
        raise DataError(f"Perceptron: y has the label {labels[unknown][0]!r}, which is none of `classes`.")
    return Batch(X, codes, read_weight("Perceptron", sample_weight, X.shape[0]), draft.classes_)


def random_order(rng: np.random.Generator, n: int, width: int) -> NDArray[np.int64]:
    """Return the rows in random order; of a table beyond the cache, runs of neighbours, which memory serves faster."""
    if n * width <= _CACHED_ENTRIES:
        return rng.permutation(n)
    runs = rng.permutation(-(-n // _RUN))[:, None] * _RUN + np.arange(_RUN)
    return runs[runs < n]


def rows_of(X: Any) -> tuple[Any, ...]:
    """Return the arrays of the rows as the compiled passes take them."""
    if hasattr(X, "indptr"):
        return X.data.astype(np.float64, copy=False), unsigned(X.indices), unsigned(X.indptr)
    return (np.ascontiguousarray(X),)
