"""Sums of kernels at new points against the definition."""

import numpy as np
import pytest
import scipy.sparse as sp

from learnable.kernel.rows import kernel_scores
from learnable.risk.kernels import Gaussian, Linear, Matern, Polynomial

KERNELS = [Gaussian(2.0), Polynomial(3, 0.1, 1.0), Linear(), Matern(1.0)]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_each_run_of_points_has_its_own_sum(kernel, make):
    if isinstance(kernel, Matern) and make is not np.asarray:
        make = np.asarray
    rng = np.random.default_rng(0)
    X, Z, c = rng.standard_normal((600, 3)), rng.standard_normal((80, 3)), rng.standard_normal((80, 2))
    runs = [(0, 30), (30, 30), (30, 80)]
    found = kernel_scores(kernel, make(X), make(Z), c, runs)
    for (i, j), values in zip(runs, found, strict=True):
        np.testing.assert_allclose(values, kernel(X, Z[i:j]) @ c[i:j] if j > i else np.zeros((600, 2)), atol=1e-9)


@pytest.mark.threaded
@pytest.mark.parametrize("kernel", [Gaussian(2.0), Polynomial(3, 0.1, 1.0)])
def test_many_values_are_right_to_six_digits_and_the_same_on_any_number_of_threads(kernel):
    rng = np.random.default_rng(1)
    X, Z, c = rng.standard_normal((3000, 4)), rng.standard_normal((1500, 4)), rng.standard_normal((1500, 1))
    exact = kernel(X, Z) @ c
    found = [kernel_scores(kernel, X, Z, c, [(0, 1500)], n_jobs=n_jobs)[0] for n_jobs in (1, 2)]
    assert np.abs(found[0] - exact).max() <= 1e-6 * np.abs(kernel(X, Z) @ np.abs(c)).max()
    np.testing.assert_array_equal(found[0], found[1])


def test_nothing_sums_to_nothing():
    assert not kernel_scores(Gaussian(1.0), np.ones((3, 2)), np.ones((0, 2)), np.ones((0, 1)), [(0, 0)])[0].any()
