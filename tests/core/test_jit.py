import math
import threading

import numpy as np
import pytest

from learnable.core.jit import kernel
from learnable.core.run import StopFlag


@kernel
def weighted_sum(x, w):
    total = 0.0
    for i in range(x.size):
        total += w[i] * x[i]
    return total


@kernel
def wait_for(flag, most):
    for step in range(most):
        if flag[0] != 0:
            return step
    return -1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_kernel_computes_what_its_source_says(dtype):
    x, w = np.arange(100, dtype=dtype), np.linspace(0, 1, 100, dtype=dtype)
    exact = math.fsum(x.astype(float) * w.astype(float))
    assert weighted_sum(x, w) == pytest.approx(exact, rel=8 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_finite_numbers_keep_their_meaning(bad):
    x = np.ones(33)
    x[17] = bad
    assert np.isnan(weighted_sum(x, x)) if np.isnan(bad) else np.isinf(weighted_sum(x, x))


def test_a_kernel_releases_the_gil_and_is_cached():
    assert weighted_sum.targetoptions["nogil"]
    assert type(weighted_sum._cache).__name__ == "FunctionCache"


def test_source_that_is_not_in_a_file_compiles_without_a_cache():
    names = {}
    exec(compile("def double(x):\n    return 2 * x\n", "<notebook>", "exec"), names)
    double = kernel(names["double"])
    assert double(21) == 42
    assert type(double._cache).__name__ == "NullCache"


def test_a_kernel_sees_a_flag_that_another_thread_raises():
    flag = StopFlag()
    wait_for(flag.array, 1)  # compiled before the clock of the other thread starts
    steps = []
    waiter = threading.Thread(target=lambda: steps.append(wait_for(flag.array, 10**10)))
    waiter.start()
    flag.raise_()
    waiter.join(60)
    assert not waiter.is_alive()
    assert steps[0] >= 0
