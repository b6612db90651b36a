"""`max_seconds` holds for every iterative model: at most 1.5 times the limit plus half a second.

The clock of the fit is replaced by the processor time of this process, on one thread, so that neither other programs
nor the number of cores decide; no time is measured by the wall.
"""

import inspect
import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags
from tests.registered import brief, build, is_sequence_model, small_table

import learnable as ln
from learnable.core import estimator as run
from learnable.core.registry import REGISTRY, estimator_names, registered_class
from learnable.core.threads import _controller

LIMIT = 0.4
MOST = 1.5 * LIMIT + 0.5
LIMITED = [name for name in estimator_names() if "max_seconds" in inspect.signature(registered_class(name)).parameters]
#: Of each package the first one is tried by `make test`: those of one package share the loop that reads the clock.
FIRST = {REGISTRY[name].path.rpartition(".")[0]: name for name in reversed(LIMITED)}.values()
EACH = [name if name in FIRST else pytest.param(name, marks=pytest.mark.long) for name in LIMITED]
#: Settings under which a fit would go on for very long.
ENDLESS = {
    "max_iter": 10**7,
    "n_iter": 10**6,
    "tol": 1e-14,
    "n_init": 10**4,
    "n_estimators": 10**5,
    "n_restarts_optimizer": 10**4,
    "n_components": 8,
    "n_clusters": 60,
    "C": 1e4,
}


def hard_table(name):
    """Return a table on which the model, with endless settings, takes far longer than the limit."""
    rng = np.random.default_rng(0)
    model = build(name)
    family = REGISTRY[name].path.split(".")[1]
    sizes = {"kernel": (1500, 10), "ensembles": (4000, 20), "mixtures": (4000, 20), "manifold": (2000, 300)}
    n, d = sizes.get(family, (2000, 1000))
    if is_sequence_model(model):
        return np.floor(4.0 * rng.random((20000, 1))), None
    # Columns that are nearly one column: coordinate steps crawl along the valley.
    X = rng.normal(size=(n, 1)) + 0.03 * rng.normal(size=(n, d))
    y = X[:, : d // 2].sum(axis=1) + np.sqrt(d) * rng.normal(size=n)
    tags = get_tags(model)
    if tags.input_tags.positive_only:
        X = np.minimum(np.floor(2.0 * np.abs(X)), 2.0)  # counts
    if is_classifier(model):
        y = np.digitize(y, np.quantile(y, [0.3, 0.7] if tags.classifier_tags.multi_class else [0.5]))
    if tags.target_tags.positive_only:
        y = np.exp(np.clip(y / np.abs(y).max(), -1.0, 1.0)).round(1)
    if not tags.target_tags.single_output:
        y = np.column_stack([y, rng.normal(size=(n, 3))])
    return X, y


def endless(name):
    """Return the model with a limit, and no other reason to stop."""
    model = build(name)
    known = model.get_params(deep=False)
    settings = {key: value for key, value in ENDLESS.items() if key in known and known[key] is not None}
    if isinstance(known.get("alpha"), float):
        settings["alpha"] = 1e-4
    if "n_jobs" in known:
        settings["n_jobs"] = 1
    return model.set_params(max_seconds=LIMIT, **settings)


@pytest.fixture
def processor_clock(monkeypatch):
    """Let fits read the processor time of this process."""
    monkeypatch.setattr(run.time, "perf_counter", time.process_time)
    with _controller().limit(limits=1):
        yield


def seconds_of_fit(small, model, small_table, table):
    """Return the processor time of a fit that would go on for very long, after a small one of the same kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small.fit(*small_table)  # kernels are loaded before the clock runs
        began = time.process_time()
        model.fit(*table)
    return time.process_time() - began


@pytest.mark.parametrize("name", EACH)
def test_a_fit_ends_when_its_time_is_up(name, processor_clock):
    small, hard = ([part for part in table if part is not None] for table in (small_table(name), hard_table(name)))
    model = brief(build(name))
    if "n_draws" in model.get_params():  # sampled by default: the kernels of that method have to be loaded
        model.set_params(method=build(name).method, n_draws=4, n_warmup=1)
    assert seconds_of_fit(model, endless(name), small, hard) <= MOST


#: Settings with a method of their own, on tables where one step of it takes seconds: model, rows, columns, classes.
OTHER_METHODS = {
    "joint margin, interior point": (
        ln.LinearSVC(multi_class="crammer_singer", C=1e4, tol=1e-14, max_iter=10**7, n_jobs=1), 50_000, 100, 14,
    ),
    "joint margin, descent": (
        ln.LinearSVC(multi_class="crammer_singer", solver="dual", C=1e4, tol=1e-14, max_iter=10**7, n_jobs=1),
        5000, 200, 10,
    ),
    "joint margin, rows as unknowns": (
        ln.LinearSVC(multi_class="crammer_singer", C=1e4, tol=1e-14, max_iter=10**7, n_jobs=1), 300, 4000, 4,
    ),
    "processes of a softmax": (ln.GaussianProcessClassifier(multi_class="softmax", tol=1e-14), 2000, 5, 8),
    "processes of pairs": (ln.GaussianProcessClassifier(multi_class="one_vs_one", tol=1e-14), 2000, 5, 8),
}  # fmt: skip


def labelled(n, d, n_classes):
    """Return rows and classes that no plane separates."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.argmax(X @ rng.normal(size=(d, n_classes)) + 2.0 * rng.normal(size=(n, n_classes)), axis=1)


@pytest.mark.threaded
@pytest.mark.parametrize("limit", [1.0, pytest.param(2.0, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", OTHER_METHODS)
def test_a_large_step_is_cut_when_its_time_is_up(name, limit, processor_clock):
    model, n, d, n_classes = OTHER_METHODS[name]
    small = clone(model).set_params(tol=1e-3, max_iter=10)
    model = clone(model).set_params(max_seconds=limit)
    assert seconds_of_fit(small, model, labelled(80, 3, 3), labelled(n, d, n_classes)) <= 1.5 * limit + 0.5
    assert not model.certificate_.holds
