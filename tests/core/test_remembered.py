"""Numba's answers that are kept while a kernel compiles: they are its own, and nothing of it stays hidden."""

from __future__ import annotations

import gc
import re
from typing import NamedTuple

import numpy as np
import pytest
from numba.core import errors, ir, postproc, types
from numba.core.registry import cpu_target

from learnable.core import kernel_cache, remembered
from learnable.core.jit import kernel, lean_kernel, strict_kernel


class Bundle(NamedTuple):
    values: np.ndarray
    counts: np.ndarray


def hidden_methods():
    """Return the methods of Numba that are hidden while a kernel compiles."""
    owners = [
        (types.Function, ("get_call_type",)),
        (type(cpu_target.typing_context), ("refresh", "resolve_getattr")),
        (type(cpu_target.target_context), ("refresh", "get_abi_sizeof")),
        (postproc.PostProcessor, ("run",)),
        (ir.Inst, ("_rec_list_vars",)),
    ]
    return {(owner, name): (name in vars(owner), getattr(owner, name)) for owner, names in owners for name in names}


def make_sum():
    @lean_kernel
    def weighted(bundle, start, step):
        total = 0.0
        for i in range(start, bundle.values.shape[0], step):
            total += min(bundle.values[i], 3.0) * max(bundle.counts[i], 1)
        return total

    return weighted


def test_numbas_methods_are_back_after_a_kernel_and_after_an_error():
    before = hidden_methods()
    with remembered.remembered_answers():
        assert all(method != before[key] for key, method in hidden_methods().items())
    assert hidden_methods() == before
    assert make_sum()(Bundle(np.arange(5.0), np.arange(5)), 0, 1) == 1 + 4 + 9 + 12
    assert hidden_methods() == before

    @kernel
    def wrong(x):
        return x.no_such_attribute

    with pytest.raises(errors.TypingError):
        wrong(np.ones(3))
    assert hidden_methods() == before


def test_the_same_machine_code_is_compiled_without_memory(monkeypatch):
    bundle = Bundle(np.arange(5.0), np.arange(5))

    def instructions():
        function = make_sum().dispatcher
        function._cache.disable()
        function(bundle, 0, 1)
        [text] = function.inspect_llvm().values()
        names = r"_ZN\S+|picklebuf\.\d+"  # those of functions and exceptions are made of numbers and addresses
        return [re.sub(names, "", line) for line in text.splitlines() if line.startswith("  ")]

    kept = instructions()
    assert len(kept) > 20
    assert kept == instructions()  # every answer is known now
    monkeypatch.setattr(kernel_cache, "_is_known_numba", lambda: False)
    assert kept == instructions()


@pytest.fixture(params=[True, False], ids=["collecting", "not collecting"])
def collects(request):
    """Whether Python collects garbage meanwhile."""
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def test_overloads_are_chosen_by_options(collects, monkeypatch):
    monkeypatch.setattr(remembered, "_overloads", {})

    def least(x):
        s = 0.0
        for i in range(x.size):
            s += min(x[i], 1.0)
        return s

    relaxed = kernel(least)
    x = np.array([0.5, 2.0])
    for one in (relaxed, strict_kernel(least), relaxed):
        one.dispatcher._cache.disable()
        assert one(x) == 1.5
    known = [key for key in remembered._overloads if key[0].typing_key is min]
    assert len({options for *_, options in known}) > 1
    assert gc.isenabled() == collects


def test_variables_are_listed_in_numbas_order():
    place = ir.Loc("here", 1)
    scope = ir.Scope(None, place)
    a, b, c, d = (ir.Var(scope, name, place) for name in "abcd")
    call = ir.Expr.call(a, (b, c), (("key", d), ("none", None)), place)
    statement = ir.Assign(call, a, place)
    before = [one.name for one in statement.list_vars()]
    with remembered.remembered_answers():
        assert [one.name for one in statement.list_vars()] == before
    assert sorted(before) == ["a", "a", "b", "c", "d"]


@kernel
def squares(n):
    for i in range(n):
        yield i * i


@kernel
def sum_of_squares(n):
    total = 0
    for square in squares(n):
        total += square
    return total


def test_generators_keep_their_variables():
    assert sum_of_squares(4) == 14
