r"""What all generative classifiers share: Bayes' rule, and fits that are sums over the rows of each class.

    P(class k | x) = π_k p_k(x) / Σ_l π_l p_l(x)

A model supplies the logarithms of π_k p_k(x). Where its fit is a sum over rows it supplies the sums, how two of them
merge and what follows from them: then `fit` takes them from memory, files and Dask, and `partial_fit` adds some rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..core import (
    N_JOBS,
    Array,
    ArrayLike,
    Certificate,
    DataError,
    Estimator,
    NDArray,
    Number,
    ParameterError,
    Rule,
    Run,
    check_parameters,
    fitted,
    is_labels,
    law,
    laws,
    optional,
    param,
    tags,
)
from ..data.blocks import Block, Blocks, Part, Scan, map_reduce, scan, whole_checksum
from ..data.door import Table, check_count, encode_classes, read_features, read_target, read_weight, take_named_columns
from ..data.sources import NamedScore, rowwise


class UnsupportedError(ParameterError, NotImplementedError):
    """A combination of parameters that has no meaning, or is not implemented."""


class RankError(DataError, np.linalg.LinAlgError):
    """A covariance matrix that cannot be inverted."""


PRIORS: Rule = optional(ArrayLike(Number()))  # that they are not negative is said in scikit-learn's words
#: Of closed forms that are sums: relative to the size of each number.
TOLERANCE = 1e-9
EPS = float(np.finfo(np.float64).eps)
#: A column whose spread within the classes is at most this share of its mean is constant but for rounding.
CONSTANT = 1e-14


class GenerativeModel(NamedScore, ClassifierMixin, Estimator, ABC):
    """A classifier by the largest π_k p_k(x)."""

    #: Whether NaN in X is left out of the densities.
    _missing: ClassVar[bool] = False
    _sparse: ClassVar[bool] = False

    classes_: NDArray[Any] = fitted("array of shape (n_classes,)", "Labels.")
    _tags = tags(sparse=lambda model: model._sparse, allow_nan=lambda model: model._missing)

    @abstractmethod
    def _joint(self, X: Any) -> Array:
        """Return log π_k p_k(x) of checked rows, up to a constant that is the same for all k."""

    def _read_rows(self, X: Any) -> Any:
        return read_features(self, X, sparse=self._sparse, missing=self._missing)

    @rowwise
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row; of equally probable ones, the first in `classes_`."""
        best = self._possible(X).argmax(axis=1)
        return self.classes_[best]

    @rowwise
    def predict_log_proba(self, X: Any) -> Array:
        """Return log P(class | x), in the order of `classes_`."""
        joint = self._possible(X)
        joint -= joint.max(axis=1, keepdims=True)
        joint -= logsumexp(joint, axis=1, keepdims=True)
        return joint

    @rowwise
    def predict_proba(self, X: Any) -> Array:
        """Return P(class | x), in the order of `classes_`."""
        joint = self._possible(X)
        joint -= joint.max(axis=1, keepdims=True)
        np.exp(joint, out=joint)
        joint /= joint.sum(axis=1, keepdims=True)
        return joint

    def _possible(self, X: Any) -> Array:
        """Return the joint log-probabilities, unless a row is impossible under every class."""
        check_is_fitted(self)
        joint = self._joint(self._read_rows(X))
        best = joint.max(axis=1)
        if not np.isfinite(best).all():
            row = int(np.argmin(np.isfinite(best)))
            raise DataError(
                f"{type(self).__name__}: row {row} has probability zero under every class, so that Bayes' rule says "
                "nothing about it; smooth more (a larger alpha, var_smoothing or shrinkage), or leave the row out."
            )
        return joint

    _laws = laws(
        law("classes_ must be an array of labels", lambda model: is_labels(model.classes_, 1), "classes_"),
        law("n_features_in_ must be a positive integer", lambda model: model.n_features_in_ >= 1, "classes_"),
    )


class DensityModel(GenerativeModel):
    """A generative classifier that knows π_k p_k(x) itself, not only up to a factor."""

    n_jobs: int | None = param(
        N_JOBS, "Threads; None uses all that BLAS may use. The result does not depend on it.", default=None
    )

    @rowwise
    def predict_joint_log_proba(self, X: Any) -> Array:
        """Return log P(x, class) of each row and class, in the order of `classes_`."""
        check_is_fitted(self)
        return self._joint(self._read_rows(X))


class SummedModel(DensityModel, ABC):
    """A generative classifier that is a function of sums over the rows."""

    @abstractmethod
    def _sums(self, blocks: Any, n_classes: int) -> Any:
        """Return the sums over all rows."""

    @abstractmethod
    def _merge(self, a: Any, b: Any) -> Any:
        """Return the sums over the rows of both."""

    @abstractmethod
    def _stored(self) -> Any:
        """Return the sums that the fitted attributes hold."""

    @abstractmethod
    def _learn(self, sums: Any) -> float:
        """Set the fitted attributes that follow from the sums; return the certificate's value."""

    def _fit(self, table: Table, run: Run) -> Certificate:
        self.classes_ = np.asarray(table.classes)
        value = self._learn(self._sums(table.blocks, len(self.classes_)))
        self.n_rows_ = table.n_rows
        return Certificate("closed-form", value, TOLERANCE)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from some more rows; the result is that of one fit on all rows, in any order.

        Parameters
        ----------
        X : array, sparse array, dataframe or list of shape (n_samples, n_features)
            Rows, in memory.
        y : array of shape (n_samples,) or str
            Their labels; with a dataframe, the name of a column.
        classes : array of shape (n_classes,), optional
            All labels that will ever be seen; needed in the first call.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights of the rows.

        Returns
        -------
        self
            If something is wrong with the rows, the estimator stays as it was.
        """
        owner = type(self).__name__
        check_parameters(owner, self.get_params(deep=False), self._parameters)
        draft = object.__new__(type(self))
        draft.__dict__.update(vars(self))
        known = getattr(self, "classes_", None)
        draft.classes_ = _check_classes(owner, known, classes)
        chunk = _read_chunk(draft, X, y, sample_weight)
        sums = draft._sums(chunk.blocks, len(draft.classes_)) if chunk.blocks.n_rows else None
        if known is not None:
            sums = self._stored() if sums is None else draft._merge(self._stored(), sums)
        if sums is None:
            raise DataError(f"{owner}: the first rows have no weight; pass at least one row of positive weight.")
        value = draft._learn(sums)
        before = 0 if known is None else self.n_rows_
        draft.n_rows_ = before + chunk.blocks.n_rows
        checksum = chunk.checksum + (0 if known is None else _checksum_of_rows(self))
        fingerprint = whole_checksum(Scan(checksum, 0), (draft.n_rows_, draft.n_features_in_, 1), draft.classes_)
        record = Certificate("closed-form", value, TOLERANCE)
        draft.certificate_ = replace(record, fingerprint=f"{fingerprint:016x}")
        self.__dict__.update(draft.__dict__)
        return self


class _Chunk(NamedTuple):
    blocks: Blocks
    checksum: int  #: of the rows alone, without shape and labels


def _check_classes(owner: str, known: Any, given: Any) -> NDArray[Any]:
    """Return the labels of all partial fits, sorted."""
    if known is None and given is None:
        raise ParameterError(f"{owner}: classes must be passed on the first call to partial_fit.")
    if given is None:
        return known
    labels = np.asarray(given)
    classes = encode_classes(owner, labels)[1]
    if labels.dtype.kind == "O" and all(isinstance(label, str) for label in classes.tolist()):
        classes = classes.astype(np.str_)
    if known is not None and not np.array_equal(classes, known):
        raise ParameterError(
            f"{owner}: classes={given!r} is not the same as on last call to partial_fit, which had {known!r}."
        )
    return classes


def _read_chunk(draft: SummedModel, X: Any, y: Any, sample_weight: Any) -> _Chunk:
    """Return some rows whose labels are numbered as in `draft.classes_`."""
    owner = type(draft).__name__
    X, y, sample_weight = take_named_columns(owner, X, y, sample_weight)
    first = not hasattr(draft, "n_features_in_")
    X = read_features(draft, X, sparse=draft._sparse, missing=draft._missing, reset=first)
    codes, labels = read_target(owner, y, "classes", multi_output=False)
    check_count(owner, X.shape[0], len(codes))
    place = {label: code for code, label in enumerate(draft.classes_.tolist())}
    unknown = [label for label in labels.tolist() if label not in place]
    if unknown:
        raise DataError(
            f"{owner}: The target label(s) {unknown[:5]!r} in y do not exist in the initial classes "
            f"{draft.classes_.tolist()!r}, those of the first call."
        )
    codes = np.array([place[label] for label in labels.tolist()], dtype=np.int64)[codes]
    weight = read_weight(owner, sample_weight, X.shape[0], whole=False)
    if weight is not None and not weight.all():
        kept = weight > 0
        X = X[kept]
        codes = codes[kept]
        weight = weight[kept]
    blocks = Blocks([Part(X, codes, weight)])
    found = scan(blocks, draft.n_jobs).checksum - whole_checksum(Scan(0, 0), (blocks.n_rows, X.shape[1], 1), None)
    return _Chunk(blocks, found)


def _checksum_of_rows(model: SummedModel) -> int:
    """Return the checksum of the rows of a fitted model, taken back out of its certificate."""
    shape = (model.n_rows_, model.n_features_in_, 1)
    return int(model.certificate_.fingerprint, 16) - whole_checksum(Scan(0, 0), shape, model.classes_)


def check_priors(owner: str, name: str, priors: Any, n_classes: int) -> Array:
    """Return given class probabilities, checked; scikit-learn's words where it has them."""
    values = np.array(priors, dtype=np.float64)
    if values.shape != (n_classes,):
        raise ParameterError(
            f"{owner}: Number of priors must match number of classes: {name} has shape {values.shape}, there are "
            f"{n_classes} classes."
        )
    if (values < 0.0).any():
        raise ParameterError(f"{owner}: Priors must be non-negative; {name} holds {values.min():g}.")
    if not np.isclose(values.sum(), 1.0):
        raise ParameterError(f"{owner}: The sum of the priors should be 1; {name} sums to {values.sum():g}.")
    return values


def codes_of(block: Block) -> NDArray[np.uint64]:
    """Return the class codes of a block as kernels want them."""
    return np.ascontiguousarray(block.y, dtype=np.int64).view(np.uint64)  # type: ignore[arg-type]


def weights_of(block: Block) -> Array:
    """Return the weights of a block's rows."""
    return np.ones(block.X.shape[0]) if block.weight is None else block.weight


def score_rows(X: Any, n_classes: int, score: Callable[[Any, Array], None], n_jobs: int | None) -> Array:
    """Return an (n, K) array that `score(rows, out)` fills, some rows at a time on each thread."""
    out = np.empty((X.shape[0], n_classes))

    def work(block: Block) -> None:
        score(block.X, out[block.start : block.start + block.X.shape[0]])

    map_reduce(Blocks([Part(X)]), work, lambda a, b: None, n_jobs=n_jobs)
    return out


def log_or_minus_inf(values: Array) -> Array:
    """Return logarithms, −inf of zero."""
    with np.errstate(divide="ignore"):
        return np.log(values)
