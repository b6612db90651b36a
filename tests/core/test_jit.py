import math
import pickle
import subprocess
import sys
import threading
from typing import Any, NamedTuple

import numpy as np
import pytest

from learnable.core import simd
from learnable.core.estimator import StopFlag
from learnable.core.jit import kernel
from learnable.core.kernel_cache import KernelCache


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
    assert weighted_sum.dispatcher.targetoptions["nogil"]
    assert isinstance(weighted_sum.dispatcher._cache, KernelCache)


def test_source_that_is_not_in_a_file_compiles():
    names = {"__name__": "notebook"}
    exec(compile("def double(x):\n    return 2 * x\n", "<notebook>", "exec"), names)
    assert kernel(names["double"])(21) == 42


def test_a_kernel_pickles_by_its_name():
    assert pickle.loads(pickle.dumps(weighted_sum)) is weighted_sum


def test_declaring_kernels_does_not_import_numba():
    modules = "learnable.core.simd, learnable.data.blocks, learnable.trees.histogram._kernels"
    code = f"import sys, {modules}; print('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_an_intrinsic_is_for_kernels_only():
    with pytest.raises(TypeError, match="exp is a part of kernels"):
        simd.exp(1.0)


@pytest.mark.threaded
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


class Bundle(NamedTuple):
    x: Any
    weights: Any


@kernel
def _weighted_total(bundle, rows, out):
    total = 0.0
    for i in rows:
        total += bundle.x[i] * bundle.weights[i]
    out[0] = total


def test_read_only_arrays_are_served_by_the_code_for_others():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=6), rng.random(6), np.arange(6)]
    fixed = [array.copy() for array in arrays]
    for array in fixed:
        array.flags.writeable = False
    found = []
    for x, weights, rows in (arrays, fixed, [fixed[0], arrays[1], fixed[2]], fixed):
        out = np.zeros(1)
        _weighted_total(Bundle(x, weights), rows, out)
        found.append(out[0])
    assert found == [found[0]] * 4 and found[0] == pytest.approx(arrays[0] @ arrays[1])
    assert len(_weighted_total.dispatcher.signatures) == 1
