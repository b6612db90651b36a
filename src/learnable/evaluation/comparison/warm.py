"""Small fits of every registered model, so that all kernels are compiled, cached on disk and loaded."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import get_tags

from ...core.registry import REGISTRY, estimator_names, registered_class


class Warmed(NamedTuple):
    """One model that is ready."""

    name: str
    seconds: float
    failure: str | None  #: what it raised on a few rows; its kernels may not be ready then


def warm_models(*, sparse: bool = True, single: bool = True) -> Iterator[Warmed]:
    """Fit each registered model of data to a few rows of float64 and, on demand, float32 and sparse numbers.

    Examples
    --------
    >>> from learnable.evaluation.comparison.warm import warm_models
    >>> [warmed.name for warmed in warm_models(sparse=False, single=False)][:2]
    ['LinearRegression', 'Ridge']
    """
    for name in estimator_names():
        traits = REGISTRY[name].traits
        if traits is None or not REGISTRY[name].variants:
            continue
        began, failure = time.perf_counter(), None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for task in traits.tasks:
                    for X in _tables(sparse, single):
                        model = _brief(registered_class(name)())
                        if not sp.issparse(X) or get_tags(model).input_tags.sparse:
                            _fit_and_predict(model, X, task)
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
        yield Warmed(name, time.perf_counter() - began, failure)


def _tables(sparse: bool, single: bool) -> list[Any]:
    X = np.random.default_rng(0).normal(size=(60, 3))
    tables: list[Any] = [X, sp.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))] if sparse else [X]
    return [*tables, *(table.astype(np.float32) for table in tables)] if single else tables


def _brief(model: Any) -> Any:
    """Return the model with a short grid, where it makes one: the kernels are the same."""
    return model.set_params(alphas=3) if isinstance(model.get_params(deep=False).get("alphas"), int) else model


def _fit_and_predict(model: Any, X: Any, task: str) -> None:
    n_classes = {"regression": 0, "binary": 2, "multiclass": 3}[task]
    rows = np.arange(X.shape[0])
    y = rows % n_classes if n_classes else 1.0 + rows % 5  # counts, which are positive too, suit every model
    model.fit(X, y)
    (model.predict_proba if n_classes and hasattr(model, "predict_proba") else model.predict)(X)
