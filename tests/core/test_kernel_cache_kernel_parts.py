"""Kernels that others call: their results, their exceptions, and what compiling leaves behind."""

import gc

import numpy as np
import pytest

from learnable.core import kernel_cache as kernel_parts
from learnable.core.jit import kernel, strict_kernel
from learnable.core.kernel_cache import MissingKernelError, loading_only, origins


@strict_kernel
def root(x):
    return np.sqrt(x) + 1.0


@kernel
def twice(x):
    return root(x) + root(x)


@kernel
def whole(x, out):
    for i in range(x.size):
        out[i] = twice(x[i]) - root(x[i])
    return np.empty(3)


@kernel
def pick(x, i):
    if i < 0:
        raise ValueError("negative")
    return x[i]


@kernel
def pick_two(x, i):
    return pick(x, i) + pick(x, i + 1)


@kernel
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


def test_a_kernel_is_the_same_alone_and_as_a_part():
    x = np.linspace(0.0, 9.0, 50)
    out = np.zeros(50)
    assert whole(x, out).shape == (3,)
    np.testing.assert_allclose(out, [root(value) for value in x], rtol=1e-15)
    np.testing.assert_allclose(out, np.sqrt(x) + 1.0, rtol=1e-15)


def test_what_a_part_raises_arrives():
    assert pick_two(np.arange(4.0), 1) == 3.0
    with pytest.raises(ValueError, match="negative"):
        pick_two(np.arange(4.0), -1)
    with pytest.raises(ValueError, match="negative"):
        pick(np.arange(4.0), -1)


def test_a_kernel_may_call_itself():
    assert fibonacci(10) == 55


def test_parts_are_neither_looked_up_nor_counted():
    @kernel
    def inner(x):
        return x - 7

    @kernel
    def outer(x):
        return inner(inner(x))

    before = sum(origins.values())
    assert outer(20) == 6
    assert sum(origins.values()) == before + 1


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_left_as_it_was(enabled):
    def three(x):
        return x + 3

    def broken(x):
        return x.no_such_thing

    was = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        assert kernel(three)(1) == 4
        assert gc.isenabled() == enabled
        with pytest.raises(Exception, match="no_such_thing"):
            kernel(broken)(1)
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if was else gc.disable)()


def test_nothing_is_compiled_where_only_loading_is_allowed(monkeypatch, tmp_path):
    from learnable.core import kernel_cache

    monkeypatch.setattr(kernel_cache, "user_folder", lambda: tmp_path)

    @kernel
    def minus_four(x):
        return x - 4

    with loading_only(), pytest.raises(MissingKernelError, match="minus_four"):
        minus_four(1)
    assert minus_four(1) == -3
    with loading_only():
        assert minus_four(1) == -3


def test_with_an_unknown_numba_every_kernel_is_compiled_on_its_own(monkeypatch):
    options = {"nogil": True, "fastmath": ()}
    assert kernel_parts.make_part(root.py_func, options).targetoptions.get("no_cpython_wrapper")
    monkeypatch.setattr(kernel_parts, "_LAST_TESTED", (0, 1))
    assert not kernel_parts.make_part(root.py_func, options).targetoptions.get("no_cpython_wrapper")
