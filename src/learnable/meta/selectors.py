"""What selectors of columns share: reading the rows, metadata for the fits, and the chosen columns."""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, is_classifier
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ..core import Certificate, DataError, Estimator, Matches, Nothing, Number, fitted, param, tags
from ..data.arrays import as_csr
from .binary import MODEL, is_routing

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Split = tuple[NDArray[np.intp], NDArray[np.intp]]

#: By how much a recomputed score may differ: the last digits of sums in another order.
TOLERANCE = 1e-9
CV = Nothing() | Matches(lambda v: not isinstance(v, (str, float, bool)), "a number of folds or a splitter")
SCORING = Nothing() | Matches(lambda v: isinstance(v, str) or callable(v), "a scorer or its name")
COUNT = Number(low=0.0, low_open=True, high=1.0) | Number(low=1, integer=True)


class Given(NamedTuple):
    """Training rows as scikit-learn's readers return them."""

    X: Any
    y: Any
    fingerprint: str

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])


def read_given(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, run: Any = None) -> Given:
    """Read the rows: at least two columns, numbers that may be missing where the estimator allows it."""
    finite = not get_tags(estimator).input_tags.allow_nan and estimator._reads_finite
    settings: dict[str, Any] = {"accept_sparse": "csr", "ensure_min_features": 2, "ensure_all_finite": finite}
    if sp.issparse(X):
        as_csr(type(estimator).__name__, X)  # damaged arrays would be read beyond their ends
    try:
        if y is None and not estimator._needs_y:
            X = validate_data(estimator, X, **settings)
        else:
            X, y = validate_data(estimator, X, y, multi_output=True, **settings)
    except ValueError as error:
        raise DataError(f"{type(estimator).__name__}: {error}") from error
    if is_classifier(estimator.estimator):
        check_classification_targets(y)
    return Given(X, y, fingerprint_of(X, y))


def fingerprint_of(X: Any, y: Any) -> str:
    """Return a checksum of rows and targets in their order: folds are sets of row numbers."""
    total = hashlib.blake2b(digest_size=8)
    parts = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    for part in parts:
        total.update(np.ascontiguousarray(part).tobytes())
    if y is not None:
        y = np.asarray(y)
        total.update(repr(y.tolist()).encode() if y.dtype.kind in "OUS" else np.ascontiguousarray(y).tobytes())
    return total.hexdigest()


def refuse_endless_scores(owner: str, scores: Any) -> None:
    """Raise DataError unless scores are finite: others have no best one."""
    if not np.isfinite(scores).all():
        raise DataError(f"{owner}: a score on a fold is not finite; rescale y, or choose another scoring.")


class ColumnSelector(SelectorMixin, MetaEstimatorMixin, Estimator):
    """What the selectors share; not to be used directly."""

    estimator: Any = param(MODEL, "Any estimator, of this library or of scikit-learn; it is cloned.", kw_only=False)
    support_: Any = fitted("(n_features,)", "The chosen columns.", kind="b")
    certificate_: Certificate = fitted(
        "Certificate", "`greedy`: by how much a step falls short of the best of its candidates."
    )

    _door = staticmethod(read_given)
    _needs_y: ClassVar[bool] = True
    _reads_finite: ClassVar[bool] = False
    _iterates = True
    _tags = tags(inner=lambda model: model.estimator)

    def transform(self, X: Any) -> Any:
        """Return the chosen columns of X."""
        if sp.issparse(X):
            as_csr(type(self).__name__, X)  # damaged arrays would be read beyond their ends
        return super().transform(X)

    def inverse_transform(self, X: Any) -> Any:
        """Return X with columns of zeros where columns were left out."""
        if sp.issparse(X):
            as_csr(type(self).__name__, X)
        return super().inverse_transform(X)

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Choose the columns.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Training data.
        y : array of shape (n_samples,) or (n_samples, n_targets), optional
            Targets.
        **params : dict
            For the `fit` of the estimator, such as `sample_weight`; with scikit-learn's metadata routing enabled also
            for the splitter and the scorer.

        Returns
        -------
        self
            The fitted selector; as it was if a fit fails.
        """
        if params and not is_routing():
            refused = sorted(set(params) - set(self._passed_on(params)))
            if refused:
                raise ValueError(
                    f"Passing extra keyword arguments to {type(self).__name__}.fit is only supported if "
                    f"enable_metadata_routing=True, which you can set using `sklearn.set_config`; got {refused}."
                )
        self._params = params
        try:
            return super().fit(X, y)
        finally:
            del self._params

    def _passed_on(self, params: dict[str, Any]) -> list[str]:
        """Return the names of metadata that are passed on without routing."""
        return list(params)

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self)
        return np.asarray(self.support_)
