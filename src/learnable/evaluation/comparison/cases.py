"""Small cases of everything that has kernels: with them all kernels are compiled, cached on disk and loaded.

Registered models are fitted to few rows, to more rows and to more columns, and with each of their declared choices
(`warm`); public names run their documented examples (`core.examples`); what neither reaches has a case here or in a
`warm` file of its own package. `tools/kernel_reach.py` tells which kernels no case reaches; a test
holds its list of those that are left.
"""

from __future__ import annotations

import contextlib
import logging
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...core.examples import public_objects, run_examples
from ...core.registry import REGISTRY, estimator_names, registered_class
from ...decisions.warm import small_decisions
from ...mixtures.warm import small_partitions
from ...sampling.posterior import posterior
from .warm import Warmed, choice_fits, small_fits

#: Rows and columns from which on some models take other kernels than for a few rows.
MORE_ROWS: Final = (600, 5)
MORE_COLUMNS: Final = (30, 50)
#: Where models lie that have other kernels for tables of more columns than rows.
_WIDE: Final = tuple(f"learnable.linear.{folder}." for folder in ("sparse", "least_squares", "logistic", "margin"))


def warm_cases(names: Iterable[str] | None = None, *, others: bool = True, documented: bool = True) -> Iterator[Warmed]:
    """Run the cases of registered models (default: all), and what else has kernels; yield each as it is ready."""
    groups: dict[str, Iterator[Any]] = {
        name: model_cases(name) for name in (estimator_names() if names is None else names)
    }
    if others:
        groups["what is no model"] = other_cases()
    if documented:
        groups["documented examples"] = examples()
    for name, cases in groups.items():
        began = time.perf_counter()
        failure = None
        try:
            for _ in cases:
                pass
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
        yield Warmed(name, time.perf_counter() - began, failure)


def model_cases(name: str) -> Iterator[tuple[str, Any]]:
    """Yield what a registered model says after each of its small fits, with a name for each."""
    for case, found in enumerate(small_fits(name)):
        yield f"{name}, case {case}", found
    for case, found in enumerate(small_fits(name, shape=MORE_ROWS)):
        yield f"{name}, larger case {case}", found
    if REGISTRY[name].path.startswith(_WIDE):
        for case, found in enumerate(small_fits(name, single=False, shape=MORE_COLUMNS)):
            yield f"{name}, wider case {case}", found
    for choice, found in choice_fits(name):
        yield f"{name}, {choice}", found


def other_cases() -> Iterator[tuple[str, Any]]:
    """Yield what was done besides fitting registered models, and numbers that came out."""
    for case in OTHERS:
        yield from case()


def examples() -> Iterator[tuple[str, str]]:
    """Run the documented examples of public names; yield what they printed."""
    registered = {id(registered_class(name)) for name in estimator_names()}
    for name, value in public_objects():
        if id(value) not in registered:
            yield from run_examples(name, value)


def small_posteriors() -> Iterator[tuple[str, Any]]:
    """Draw a few times from the posterior of linear models."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    rows = np.arange(60)
    targets = {"Ridge": 1.0 + rows % 5, "PoissonRegressor": 1.0 + rows % 5, "LogisticRegression": rows % 3}
    few: dict[str, Any] = {"n_draws": 8, "n_warmup": 8, "n_chains": 2, "random_state": 0}
    for name, y in targets.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            drawn = posterior(registered_class(name)().fit(X, y), X, y, **few)
        yield f"posterior of {name}", len(drawn.chains.names)


def small_questions() -> Iterator[tuple[str, Any]]:
    """Ask models what they say besides predictions, and with settings that are no declared choice."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = X[:, 0]
    yield "draws of a hidden chain", registered_class("GaussianHMM")(2, random_state=0).fit(X).sample(4)[1]
    gaps = np.where(X > 1.0, np.nan, X)
    forest = registered_class("RandomForestRegressor")(n_estimators=2, random_state=0).fit(X, y)
    yield "quantiles of a forest", forest.predict_quantiles(X)
    yield "classes of rows with gaps", registered_class("GaussianNB")().fit(gaps, y > 0).predict(gaps)
    for metric, rows in (("manhattan", X), ("nan_euclidean", gaps)):
        neighbours = registered_class("KNeighborsRegressor")(metric=metric, algorithm="brute").fit(rows, y)
        yield f"neighbours by {metric}", neighbours.predict(rows)
    wide = np.random.default_rng(0).normal(size=(300, 3000))
    yield "many columns", registered_class("ElasticNet")(alpha=1e-3).fit(wide, wide[:, 0] + wide[:, 1]).predict(wide)


def small_files() -> Iterator[tuple[str, Any]]:
    """Fit to rows that are read from a file of columns, where pyarrow is installed."""
    with contextlib.suppress(ImportError), tempfile.TemporaryDirectory() as folder:
        import pyarrow as pa
        import pyarrow.parquet as pq

        X = np.random.default_rng(0).normal(size=(60, 3))
        path = Path(folder) / "rows.parquet"
        pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": X[:, 2]}), path)
        yield "a file of columns", registered_class("Ridge")().fit(path, "y").coef_


def small_clusters() -> Iterator[tuple[str, Any]]:
    """Fit ensembles to rows on a cluster of two threads, where Dask is installed."""
    with contextlib.suppress(ImportError):
        import dask.array as da
        import distributed

        X = np.random.default_rng(0).normal(size=(80, 3))
        y = X[:, 0] + np.arange(80) % 5
        settings = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
        quiet = {"silence_logs": logging.CRITICAL}
        with distributed.LocalCluster(**settings, **quiet) as cluster, distributed.Client(cluster):
            rows = da.from_array(X, chunks=(40, 3))
            for name in ("HistGradientBoosting", "RandomForest"):
                few = {"max_iter": 2} if name.startswith("Hist") else {"n_estimators": 2}
                for kind, target in (("Regressor", y), ("Classifier", y > 2)):
                    model = registered_class(name + kind)(random_state=0, **few)
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        model.fit(rows, da.from_array(target, chunks=40))
                    yield f"{name}{kind} on a cluster", model.predict(X)


#: Everything besides registered models.
OTHERS: Final = (small_decisions, small_partitions, small_posteriors, small_questions, small_files, small_clusters)
