"""What reductions of K classes to two share: reading the data, fitting binary models, and what these prove together.

A binary model gets labels 0 and 1. Its confidence is its decision function, or its probability of label 1 minus one
half, or its prediction minus one half: positive for label 1.
"""

from __future__ import annotations

import copy
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from ..core import (
    N_JOBS,
    Certificate,
    Declared,
    Matches,
    ModelFileError,
    ParameterError,
    Rule,
    check_parameters,
    fitted,
    param,
)
from ..core.progress import shows_progress
from ..data.door import is_frame
from ..data.rows import ClassTable, read_classes, take_rows, weight_keyword

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
#: Rows of a binary problem (None: all), and their labels 0 and 1.
Problem = tuple[NDArray[np.bool_] | None, Codes]
Method = TypeVar("Method", bound=Callable[..., Any])

MODEL = Matches(
    lambda value: hasattr(value, "fit") and hasattr(value, "get_params") and not isinstance(value, type), "an estimator"
)


def models_have(*names: str) -> Callable[[Method], Method]:
    """Return the decorator of a method that is there if the binary models have one of these methods."""

    def check(self: Any) -> bool:
        model = self.estimators_[0] if hasattr(self, "estimators_") else self.estimator
        if not any(hasattr(model, name) for name in names):
            getattr(model, names[0])
        return True

    return cast(Callable[[Method], Method], available_if(check))


class BinaryReduction(ClassifierMixin, MetaEstimatorMixin, Declared, ABC):
    """Base of `OneVsRestClassifier` and `OneVsOneClassifier`; not to be used directly."""

    _parameters: ClassVar[dict[str, Rule]]

    estimator: Any = param(
        MODEL,
        "A binary classifier, of this library or of scikit-learn. It is cloned, not changed. Only models of this "
        "library can be saved and verified.",
        kw_only=False,
    )
    n_jobs: int | None = param(
        N_JOBS,
        "Models fitted at the same time, each in a process of its own; None fits one after the other.",
        default=None,
    )
    classes_: NDArray[Any] = fitted("array of shape (n_classes,)", "The labels.")

    @shows_progress
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Fit one model for each binary problem.

        Parameters
        ----------
        X : array, sparse array, dataframe, list of rows or path, of shape (n_samples, n_features)
            Training data, in any form that the estimator takes; files are read into memory.
        y : array of shape (n_samples,), or str
            Labels; with a dataframe or a path, the name of a column.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights of the rows; a row of weight zero is left out.
        **params : dict
            Passed on to the models' `fit`, with scikit-learn's metadata routing enabled; of what has an entry for
            each row, a model gets the entries of its rows.

        Returns
        -------
        self
            The fitted classifier; as it was if a fit fails.
        """
        owner = type(self).__name__
        check_parameters(owner, self.get_params(deep=False), self._parameters)
        sample_weight, extra = self._routed("fit", sample_weight, params)
        table = read_classes(owner, X, y, sample_weight, several=self._takes_several, one=True)
        self._check_table(table)
        keyword = None if table.rows.weight is None else weight_keyword(owner, self.estimator)
        problems = self._problems(table.codes, len(table.classes))
        jobs = (
            delayed(_fit_one)(
                self._new_model(labels), *self._rows_of(table, rows), labels, keyword, _some(extra, table, rows)
            )
            for rows, labels in problems
        )
        models = list(Parallel(n_jobs=self.n_jobs)(jobs))
        self.classes_ = table.classes
        self.estimators_ = models
        self._keep_shape(table, problems)
        return self

    @models_have("partial_fit")
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Go on with some more rows; there if the estimator has this method.

        Parameters
        ----------
        X, y, sample_weight, **params
            As for `fit`; what is passed on goes to the models' `partial_fit`.
        classes : array of shape (n_classes,), optional
            All labels; needed in the first call.

        Returns
        -------
        self
            The fitted classifier; as it was if a fit fails.
        """
        owner = type(self).__name__
        check_parameters(owner, self.get_params(deep=False), self._parameters)
        first = not hasattr(self, "estimators_")
        if first and classes is None:
            raise ValueError(f"{owner}: classes must be passed on the first call to partial_fit.")
        known = np.unique(np.asarray(classes)) if first else self.classes_
        if not first and classes is not None and not np.array_equal(np.unique(np.asarray(classes)), known):
            raise ValueError(f"{owner}: `classes={classes!r}` is not the same as on last call to partial_fit.")
        sample_weight, extra = self._routed("partial_fit", sample_weight, params)
        table = read_classes(owner, X, y, sample_weight, one=True)
        unknown = ~np.isin(table.classes, known)
        if unknown.any():
            words = "classes must" if self._takes_several else "it must"
            raise ValueError(f"{owner}: Mini-batch contains {table.classes} while {words} be subset of {known}")
        codes = np.searchsorted(known, table.classes)[table.codes]
        keyword = None if table.rows.weight is None else weight_keyword(owner, self.estimator)
        problems = self._problems(codes, len(known))
        models = [clone(self.estimator) for _ in problems] if first else copy.deepcopy(self.estimators_)
        for model, (rows, labels) in zip(models, problems, strict=True):
            if len(labels):
                part, weight = self._rows_of(table, rows)
                weights = {} if keyword is None else {keyword: weight}
                more = _some(extra, table, rows)
                model.partial_fit(part, labels, classes=np.array([0, 1]), **weights, **more)
        self.classes_ = known
        self.estimators_ = models
        self._keep_shape(table, problems)
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Return what scikit-learn's metadata routing passes on to the models."""
        mapping = MethodMapping().add(caller="fit", callee="fit").add(caller="partial_fit", callee="partial_fit")
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)

    def _routed(self, caller: str, sample_weight: Any, params: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the weights, if the models are to have them, and what else goes to their method `caller`."""
        if not is_routing():
            refuse_without_routing(type(self).__name__, caller, params)
            return sample_weight, {}
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        found = dict(process_routing(self, caller, **weights, **params).estimator[caller])
        return found.pop("sample_weight", None), found

    #: Whether a row may have several labels, and all rows the same one.
    _takes_several: ClassVar[bool] = False

    def _check_table(self, table: ClassTable) -> None:
        """Warn of, or refuse, what a reduction cannot do."""

    def _keep_shape(self, table: ClassTable, problems: list[Problem]) -> None:
        """Keep what predictions have to know of the table."""

    def _new_model(self, labels: Codes) -> Any:
        """Return the unfitted model of a binary problem."""
        return clone(self.estimator)

    def _rows_of(self, table: ClassTable, rows: NDArray[np.bool_] | None) -> tuple[Any, Array | None]:
        if rows is None:
            return table.rows.X, table.rows.weight
        X, _, weight = table.rows.take(np.flatnonzero(rows))
        return X, weight

    @abstractmethod
    def _problems(self, codes: Codes, n_classes: int) -> list[Problem]:
        """Return the rows (None: all) of each binary problem, and 0 or 1 for each of them."""

    @property
    def n_classes_(self) -> int:
        """The number of classes."""
        return len(self.classes_)

    @property
    def n_features_in_(self) -> int:
        """The number of features that the binary models were fitted on."""
        return int(self._any_fitted().n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of these features."""
        return self._any_fitted().feature_names_in_

    def _any_fitted(self) -> Any:
        """Return a binary model that has seen rows; of a stream, some may not have seen any yet."""
        return next((one for one in self.estimators_ if hasattr(one, "n_features_in_")), self.estimators_[0])

    @property
    def certificate_(self) -> Certificate:
        """The certificate of the binary model that is furthest from its tolerance; its fingerprint covers them all."""
        check_is_fitted(self, "estimators_")
        return combined_certificate(self.estimators_, self.classes_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.non_deterministic = inner.non_deterministic
        return tags

    def _check_models(self, count: int, same_width: bool = True) -> None:
        """Raise ModelFileError unless a loaded model has `count` fitted copies of its estimator, for one table."""
        owner = type(self).__name__
        classes = getattr(self, "classes_", None)
        if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
            raise ModelFileError(f"load: {owner}: classes_ must hold at least two labels.")
        models = getattr(self, "estimators_", None)
        if not isinstance(models, list) or len(models) != count:
            raise ModelFileError(f"load: {owner}: estimators_ must hold {count} models.")
        if any(type(model) is not type(self.estimator) for model in models):
            raise ModelFileError(f"load: {owner}: estimators_ must be of the class of estimator.")
        if same_width and len({getattr(model, "n_features_in_", None) for model in models}) != 1:
            raise ModelFileError(f"load: {owner}: estimators_ must have the same features.")
        if any(list(getattr(model, "classes_", [])) != [0, 1] for model in models):
            raise ModelFileError(f"load: {owner}: estimators_ must tell the labels 0 and 1 apart.")


def confidence(model: Any, X: Any) -> Array:
    """Return how sure a binary model is of label 1: positive where it prefers it."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X), dtype=np.float64).ravel()
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X), dtype=np.float64)[:, 1] - 0.5
    return np.asarray(model.predict(X), dtype=np.float64).ravel() - 0.5


def combined_certificate(models: Sequence[Any], classes: NDArray[Any]) -> Certificate:
    """Return what models prove together: the certificate furthest from its tolerance; `none` if one has none."""
    own = [getattr(model, "certificate_", None) for model in models]
    certificates = [found for found in own if isinstance(found, Certificate) and found.kind != "none"]
    if len(certificates) < len(own):
        return Certificate("none", np.nan, 0.0)
    worst = max(certificates, key=_distance)
    bounds = [found.bound for found in certificates if found.bound is not None]
    return Certificate(
        worst.kind,
        worst.value,
        worst.tolerance,
        max(bounds) if len(bounds) == len(certificates) else None,
        sum(found.n_iter for found in certificates),
        sum(found.seconds for found in certificates),
        combined_fingerprint([found.fingerprint for found in certificates], classes),
        worst.by_construction,
    )


def combined_fingerprint(fingerprints: Sequence[str], classes: NDArray[Any]) -> str:
    """Return one checksum of the checksums of all binary problems and the labels."""
    labels = [label if isinstance(label, str) else int(label) for label in classes.tolist()]
    text = json.dumps([list(fingerprints), labels])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _distance(certificate: Certificate) -> float:
    ratio = certificate.value / certificate.tolerance if certificate.tolerance else np.inf * certificate.value
    return float(np.inf if np.isnan(ratio) and not certificate.holds else np.nan_to_num(ratio, posinf=np.inf))


def _fit_one(
    model: Any, X: Any, weight: Array | None, labels: Codes, keyword: str | None, extra: dict[str, Any]
) -> Any:
    return model.fit(X, labels, **({} if keyword is None else {keyword: weight}), **extra)


def _some(extra: dict[str, Any], table: ClassTable, rows: NDArray[np.bool_] | None) -> dict[str, Any]:
    """Return what goes to the model of these rows (None: all that have weight) beside them."""
    chosen = table.kept if rows is None else table.kept[np.flatnonzero(rows)]
    return of_rows(extra, table.n_given, chosen) if extra else {}


# --------------------------------------------------------------------------------------------------------------------
# Metadata of scikit-learn (`enable_metadata_routing=True`) on their way from a model of models to its members.


def is_routing() -> bool:
    """Tell whether metadata are routed."""
    return bool(get_config()["enable_metadata_routing"])


def refuse_without_routing(owner: str, caller: str, given: Mapping[str, Any]) -> None:
    """Raise ParameterError if something is to be passed on that only routing passes on."""
    if given:
        raise ParameterError(
            f"{owner}: {caller} got {', '.join(sorted(given))}, which is not allowed without "
            "metadata routing: set it with sklearn.set_config(enable_metadata_routing=True)."
        )


def of_rows(metadata: Mapping[str, Any], n_rows: int, rows: Any) -> dict[str, Any]:
    """Return the metadata of some rows: of what has an entry for each of `n_rows`, these; all else as it is."""
    found = {}
    for name, value in metadata.items():
        if isinstance(value, (list, tuple)) and len(value) == n_rows:
            found[name] = [value[row] for row in rows]
        elif np.size(getattr(value, "shape", ())) and value.shape[0] == n_rows:
            found[name] = take_rows(value if is_frame(value) or sp.issparse(value) else np.asarray(value), rows)
        else:
            found[name] = value
    return found
