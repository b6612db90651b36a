"""Steps of the best path against NumPy; whole paths are compared in test_inference.py."""

import numpy as np
import pytest

from learnable.sequences import _kernels as kernels


@pytest.mark.parametrize("M", [4, 12])
def test_steps_of_the_best_path(M):
    rng = np.random.default_rng(M)
    L, v, out = rng.normal(size=(M, M)), rng.normal(size=M), np.empty(M)
    L[:, 1] = -np.inf
    kernels.max_mix(v, 0, L.ravel(), out, 0, M)
    np.testing.assert_array_equal(out, (v[:, None] + L).max(axis=0))
    assert kernels.arg_max(v, 0, L.ravel(), 2 * M, M) == np.argmax(v + L[2])


def test_far_logarithms_are_shifted_and_the_shift_is_told():
    v, w, out = np.array([-2000.0, -2001.0, -np.inf, -3000.0]), np.zeros(4), np.empty(4)
    assert kernels.plus(v, 0, w, 0, out, 0, 4) == -2000.0
    np.testing.assert_array_equal(out, [0.0, -1.0, -np.inf, -1000.0])
    assert kernels.plus(np.full(4, -np.inf), 0, w, 0, out, 0, 4) == 0.0


def test_of_equal_states_the_first_is_taken():
    assert kernels.arg_max(np.zeros(8), 0, np.array([0, 1, 1, 0, 1, 0, 0, 0.0]), 0, 8) == 1
