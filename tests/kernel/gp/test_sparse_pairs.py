"""Kernel values of rows and inducing points, and their way back, against the kernels' own."""

import numpy as np
import pytest

from learnable.kernel.gp.sparse import pairs_of
from learnable.risk.kernels import Constant, Gaussian, Linear, Periodic, White
from learnable.risk.kernels.tape import record

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(90, 2)) + 5.0, RNG.normal(size=(11, 2)) + 5.0
KERNELS = [
    Gaussian(1.5),
    2.0 * Gaussian([1.5, 0.5]) + White(0.1),
    White(0.1) + Constant(3.0) * (White(0.2) + Gaussian(0.8)),
    3.0 * (Gaussian(1.0).hold() + White(0.2)) + White(0.2) * Gaussian(3.0),
    2.0 * Gaussian(1.0) + Linear() + White(0.1),
    Gaussian(1.0) * Periodic(1.0, period=2.0),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.formula)
def test_values_and_slopes_are_those_of_the_kernel(kernel):
    pairs, tape = pairs_of(kernel, Z), record(kernel, X, Z)
    T, share = RNG.normal(size=(90, 11)), RNG.uniform(0.5, 2.0, size=90)
    for rows in (slice(0, 40), slice(40, 80), slice(80, 90)):  # the last one shorter
        found = pairs.factor * pairs.values(X[rows])
        np.testing.assert_allclose(found, tape.K[rows], rtol=1e-12, atol=1e-300)
        sums = pairs.back(T[rows].copy(), share[rows])
        np.testing.assert_allclose(sums, np.sum(T[rows] * tape.K[rows], axis=1), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(pairs.slopes(), tape.back(share[:, None] * T), rtol=1e-10, atol=1e-11)
