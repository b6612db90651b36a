"""The declared costs are those of the docstrings, and the harness that measures slopes finds them."""

import inspect
import sys

import numpy as np
import pytest
from benchmarks import scaling
from benchmarks.scaling import COSTS, SLACK, Cost, Slope, measure, to_markdown

from learnable.core.registry import registered_class


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
