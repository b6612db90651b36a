"""The small cases reach every kernel: what they compile, `learnable warmup` and the wheel have."""

import pytest
from tools import kernel_reach

from learnable.core import kernel_cache
from learnable.core.jit import kernel
from learnable.core.registry import estimator_names
from learnable.evaluation.comparison import cases
from learnable.evaluation.comparison.warm import choice_fits, choices_of


@pytest.fixture(scope="module")
def kernels():
    return kernel_reach.take_inventory()


def test_a_kernel_is_reached_where_it_is_called_or_part_of_one_that_is():
    @kernel
    def inner(x):
        return x + 1

    @kernel
    def outer(x):
        return 2 * inner(x)

    @kernel
    def other(x):
        return x

    known = {kernel_cache.name_of(one.py_func): one for one in (inner, outer, other)}
    names = list(known)
    assert kernel_reach.missing(known, []) == sorted(names)
    assert kernel_reach.missing(known, [names[1]]) == [names[2]]


def test_kernels_that_are_called_are_remembered():
    @kernel
    def apply(function, x):
        return function(x)

    @kernel
    def double(x):
        return 2 * x

    assert apply(double.dispatcher, 3.0) == 6.0
    assert {kernel_cache.name_of(one.py_func) for one in (apply, double)} <= kernel_cache.called


def test_the_inventory_has_kernels_of_every_kind(kernels):
    assert len(kernels) > 600
    assert all(name.startswith("learnable.") for name in kernels)


def test_every_exemption_is_a_kernel_and_has_a_reason(kernels):
    assert set(kernel_reach.EXEMPT) <= set(kernels) and set(kernels) >= kernel_reach.GAPS
    assert not kernel_reach.GAPS & set(kernel_reach.EXEMPT)
    assert all(len(reason.split()) > 3 for reason in kernel_reach.EXEMPT.values())


def test_models_are_fitted_with_each_of_their_choices():
    fitted = dict(choice_fits("LinearSVC"))
    assert "{'loss': 'hinge'}" in fitted and "{'loss': 'hinge'}, sparse" in fitted
    assert all("verbose" not in choice for name in estimator_names() for choice in choices_of(name))


@pytest.mark.long
def test_every_kernel_is_reached(kernels):
    assert [warmed for warmed in cases.warm_cases() if warmed.failure is not None] == []
    assert kernel_reach.missing(kernels, kernel_cache.called) == []
