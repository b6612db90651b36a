"""Small fits of every registered model, so that all kernels are compiled, cached on disk and loaded."""

from __future__ import annotations

import contextlib
import inspect
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import get_tags

from ...core.declare import choices
from ...core.errors import LearnableError
from ...core.registry import REGISTRY, estimator_names, registered_class


class Warmed(NamedTuple):
    """One model that is ready."""

    name: str
    seconds: float
    failure: str | None  #: what it raised on a few rows; its kernels may not be ready then


#: Models of whole numbers, one per step.
_COUNTS = ("CategoricalHMM", "PoissonHMM")
#: What models say of rows.
_METHODS = ("predict_proba", "predict", "transform", "kneighbors", "decision_function", "score_samples")
#: What a setting raises that these rows, or this installation, do not allow.
_REFUSALS = (TypeError, ValueError, ImportError)
#: Models and tasks whose kernels this process has loaded.
READY: set[tuple[str, str]] = set()


def warm_models(
    names: Iterable[str] | None = None, *, sparse: bool = True, single: bool = True, task: str | None = None
) -> Iterator[Warmed]:
    """Fit registered models (default: all) to a few rows of float64 and, on demand, float32 and sparse numbers.

    Each is fitted for one of its tasks, or for all, with each of the settings that a comparison tries.

    Examples
    --------
    >>> from learnable.evaluation.comparison.warm import warm_models
    >>> [warmed.name for warmed in warm_models(["Ridge"], sparse=False, single=False)]
    ['Ridge']
    """
    for name in estimator_names() if names is None else names:
        began = time.perf_counter()
        failure = None
        try:
            for one in tasks_of(name) if task is None else (task,):
                for _ in small_fits(name, sparse=sparse, single=single, task=one):
                    pass
                READY.add((name, one))
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
        yield Warmed(name, time.perf_counter() - began, failure)


def tasks_of(name: str) -> tuple[str, ...]:
    """Return what a model predicts: "regression", "binary", "multiclass"; a guess for what is no model of tables."""
    traits = REGISTRY[name].traits
    return traits.tasks if traits else ("regression" if name.endswith("Regressor") else "binary",)


def small_fits(
    name: str,
    *,
    sparse: bool = True,
    single: bool = True,
    task: str | None = None,
    shape: tuple[int, int] = (60, 3),
) -> Iterator[Any]:
    """Fit one model to a few rows of each kind, for one task or all of its; yield what it says of them."""
    for one in tasks_of(name) if task is None else (task,):
        for settings in REGISTRY[name].variants or ({},):
            for X in _tables(sparse, single, shape):
                model = _brief(_built(name).set_params(**settings))
                if not sp.issparse(X) or get_tags(model).input_tags.sparse:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        found = _fit_and_predict(model, X, one)
                    yield found


def choices_of(name: str) -> Iterator[dict[str, Any]]:
    """Yield the settings that differ from a model's defaults in one declared choice: an option, a truth value.

    Examples
    --------
    >>> from learnable.evaluation.comparison.warm import choices_of
    >>> next(choices_of("Ridge"))
    {'fit_intercept': False}
    """
    known = _built(name).get_params(deep=False)
    rules = getattr(registered_class(name), "_parameters", {})
    for parameter in [one for one in rules if one in known and one != "verbose"]:
        default = known[parameter]
        for value in choices(rules[parameter]):
            if type(default) is not type(value) or default != value:
                yield {parameter: value}


def choice_fits(name: str) -> Iterator[tuple[str, Any]]:
    """Fit one model to a few rows with each of its declared choices; yield the choice and what the model says.

    Choices that need others, or that the rows do not allow, are refused by the model and left out.
    """
    task = tasks_of(name)[-1]
    for settings in choices_of(name):
        for X in _tables(True, False, (60, 3)):
            model = _brief(_built(name)).set_params(**settings)
            if sp.issparse(X) and not get_tags(model).input_tags.sparse:
                continue
            with warnings.catch_warnings(), contextlib.suppress(LearnableError, *_REFUSALS):
                warnings.simplefilter("ignore")
                yield f"{settings}{', sparse' * sp.issparse(X)}", _fit_and_predict(model, X, task)


def make_ready(name: str, task: str) -> None:
    """Load the kernels of a model, if it is ours and they are not there yet."""
    if name in REGISTRY and (name, task) not in READY:
        for _ in warm_models([name], sparse=False, single=False, task=task):
            pass


def get_ready(report: Any, candidate: Any, task: str) -> None:
    """Load the kernels of a candidate and of what is inside it, and tell how long that took: it is not the job's time.

    Parameters
    ----------
    report : callable
        Of a job; where it has `ready`, that is called with the seconds.
    candidate : Candidate
        Who is about to be fitted.
    task : str
        What is predicted.
    """
    began = time.perf_counter()
    for one in (candidate, *candidate.members):
        make_ready(one.model, task)
    told = getattr(report, "ready", None)
    if told is not None:
        told(time.perf_counter() - began)


def tell_ready(report: Callable[[Any], None]) -> None:
    """Report the models and tasks whose kernels are loaded; a job."""
    report(sorted(READY))


def compile_models(report: Callable[[Any], None], names: list[str], task: str) -> None:
    """Compile the kernels of models for the cache, giving way to whatever else runs, and report each; a job."""
    if hasattr(os, "nice"):
        os.nice(5)
    for warmed in warm_models(names, sparse=False, single=False, task=task):
        report(warmed.name)


def _tables(sparse: bool, single: bool, shape: tuple[int, int]) -> list[Any]:
    X = np.random.default_rng(0).normal(size=shape)
    tables: list[Any] = [X, sp.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))] if sparse else [X]
    return [*tables, *(table.astype(np.float32) for table in tables)] if single else tables


def _built(name: str) -> Any:
    """Return the estimator; one that wraps another gets one that suits it."""
    cls = registered_class(name)
    first = next(iter(inspect.signature(cls).parameters.values()), None)
    if first is None or first.default is not inspect.Parameter.empty:
        return cls()
    return cls(registered_class("LogisticRegression" if "Classifier" in name else "Ridge")())


def _brief(model: Any) -> Any:
    """Return the model with a short grid, where it makes one, few steps and a fixed seed: the kernels are the same."""
    settings = model.get_params(deep=False)
    changed: dict[str, Any] = {grid: 3 for grid in ("alphas", "Cs") if isinstance(settings.get(grid), int)}
    if "random_state" in settings:
        changed["random_state"] = 0
    if "n_draws" in settings:  # sampled models
        changed |= {"n_draws": 4, "n_warmup": 1}
    if isinstance(settings.get("n_estimators"), int):
        changed["n_estimators"] = min(10, settings["n_estimators"])
    if "max_leaf_nodes" in settings and "max_iter" in settings:  # boosting by histograms
        changed["max_iter"] = 10
    if "learning_rate_init" in settings:  # networks
        changed["max_iter"] = 3
    if "n_restarts_optimizer" in settings or "metric_mds" in settings:  # steps on all pairs of rows
        changed["max_iter"] = 3
    if settings.get("method") == "barnes_hut":  # t-SNE: few rows would not need its grid
        changed |= {"method": "interpolation", "max_iter": 20}
    return model.set_params(**changed)


def _fit_and_predict(model: Any, X: Any, task: str) -> Any:
    n_classes = {"regression": 0, "binary": 2, "multiclass": 3}[task]
    rows = np.arange(X.shape[0])
    y = rows % n_classes if n_classes else 1.0 + rows % 5  # counts, which are positive too, suit every model
    tags = get_tags(model)
    if tags.input_tags.positive_only or type(model).__name__ in _COUNTS:  # counts, or codes of categories
        X = abs(X).floor() if sp.issparse(X) else np.floor(np.abs(X))
    if "ploidy" in model.get_params(deep=False):  # copies of an allele
        X = np.minimum(X, 2.0)
    if type(model).__name__ in _COUNTS:
        X = X[:, :1].astype(np.int64)
    if not tags.target_tags.single_output:
        y = np.column_stack([y, -y])
    if type(model).__name__.endswith("HMM"):
        model.fit(X)
    else:
        model.fit(X, y)
    found = []
    for method in _METHODS:
        if hasattr(model, method):
            with contextlib.suppress(LearnableError, NotImplementedError):  # not with these settings
                found.append(getattr(model, method)(X))
    if not found:
        raise TypeError(f"{type(model).__name__} says nothing of rows")
    return found
