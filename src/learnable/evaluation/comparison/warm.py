"""Small fits of every registered model, so that all kernels are compiled, cached on disk and loaded."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...core.registry import REGISTRY, estimator_names, registered_class


class Warmed(NamedTuple):
    """One model that is ready."""

    name: str
    seconds: float
    failure: str | None  #: what it raised on a few rows; its kernels may not be ready then


def warm_models(*, sparse: bool = True) -> Iterator[Warmed]:
    """Fit each registered model of data to a few rows of float64, float32 and, on demand, sparse numbers.

    Examples
    --------
    >>> from learnable.evaluation.comparison.warm import warm_models
    >>> [warmed.name for warmed in warm_models(sparse=False)][:2]
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
                    for X in _tables(sparse):
                        _fit_and_predict(registered_class(name)(), X, task)
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
        yield Warmed(name, time.perf_counter() - began, failure)


def _tables(sparse: bool) -> list[Any]:
    X = np.random.default_rng(0).normal(size=(60, 3))
    tables: list[Any] = [X, X.astype(np.float32)]
    if sparse:
        thin = np.where(np.abs(X) > 1.0, X, 0.0)
        tables += [sp.csr_array(thin), sp.csr_array(thin.astype(np.float32))]
    return tables


def _fit_and_predict(model: Any, X: Any, task: str) -> None:
    n_classes = {"regression": 0, "binary": 2, "multiclass": 3}[task]
    rows = np.arange(X.shape[0])
    y = rows % n_classes if n_classes else 1.0 + rows % 5  # counts, which are positive too, suit every model
    model.fit(X, y)
    (model.predict_proba if n_classes and hasattr(model, "predict_proba") else model.predict)(X)
