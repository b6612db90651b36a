"""The declared costs are those of the docstrings, and the harness that measures slopes finds them."""

import gc
import inspect
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from benchmarks import scaling
from benchmarks.scaling import COSTS, SLACK, Cost, Slope, measure, to_markdown
from tests.data.on_disk import streamed

from learnable.core.registry import registered_class

pytestmark = pytest.mark.sampled(1)  # every case is a promise of its own


def words_of(cls):
    """Return the docstrings of a class, its bases and their modules, in one line each."""
    texts = []
    for base in cls.__mro__:
        if base.__module__.startswith("learnable"):
            texts += [inspect.getdoc(base) or "", inspect.getdoc(sys.modules[base.__module__]) or ""]
    package = cls.__module__.rpartition(".")[0]
    texts += [inspect.getdoc(m) or "" for name, m in list(sys.modules.items()) if name.startswith(package)]
    return " ".join(" ".join(text.split()) for text in texts)


@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: cost.model)
def test_the_declared_cost_is_in_the_docstring(cost):
    assert cost.quote in words_of(registered_class(cost.model))
    assert set(cost.sizes) <= set(scaling.VARIABLES)
    for sizes in cost.sizes.values():
        ratios = np.diff(np.log2(sizes))
        assert len(sizes) >= 4 and np.allclose(ratios, 1.0)


def test_slopes_of_known_costs_are_found():
    sizes = (10, 20, 40, 80)
    assert scaling._slope(sizes, [5.0 * size**2 for size in sizes]) == pytest.approx(2.0)
    quadratic = Slope("Model", "n", 1, 2.0, "time")
    assert quadratic.exceeds and not Slope("Model", "n", 2, 2.0 + SLACK / 2, "time").exceeds


def test_a_model_that_needs_more_memory_than_declared_is_flagged(monkeypatch):
    def prepare(sizes):
        return lambda: np.empty((sizes["n"], sizes["n"]))

    monkeypatch.setattr(scaling, "_seconds", lambda fit, per_iteration: 1.0)
    cost = Cost("Greedy", "none", "O(n)", {"n": 1}, {"n": 1}, prepare, {"n": (200, 400, 800, 1600)}, {})
    found = [slope for slope in measure(cost) if slope.what == "memory"]
    assert [slope.exceeds for slope in found] == [True] and found[0].measured == pytest.approx(2.0, abs=0.01)
    monkeypatch.setattr(scaling, "COSTS", (cost,))
    assert "memory in n EXCEEDS" in to_markdown(found)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Return files of 8 columns and a target, the second with four times the rows of the first."""
    found = []
    for n in (160_000, 640_000):
        X = np.random.default_rng(0).normal(size=(n, 8))
        frame = pd.DataFrame(X, columns=list("abcdefgh")).assign(y=(X[:, 0] > 0).astype(float))
        found.append(streamed(frame, tmp_path_factory.mktemp("rows") / str(n), 2, rows_at_once=10_000))
    return found


@pytest.mark.parametrize("name", ["Ridge", "PCA"])
def test_a_fit_allocates_what_it_declares(name, tables):
    """A fit from files holds some blocks of rows, however many there are: counted bytes, of NumPy and of Arrow.

    How many blocks are under way depends on the threads; a fit that held the rows would hold four times as many.
    """
    model = registered_class(name)()
    y = () if name == "PCA" else ("y",)
    model.fit(tables[0], *y)  # what is loaded once is no part of a fit
    small, large = (_bytes_of_a_fit(model, source, y) for source in tables)
    assert large[0] < 2.0 * small[0] and large[1] < 2.0 * small[1]
    assert large[0] < 8 * 9 * 640_000 / 2


def _bytes_of_a_fit(model, source, y):
    """Return the most bytes that NumPy and Arrow held during a fit."""
    gc.collect()
    default = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(default)
    pa.set_memory_pool(counted)
    tracemalloc.start()
    try:
        model.fit(source, *y)
        return tracemalloc.get_traced_memory()[1], counted.max_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(default)
