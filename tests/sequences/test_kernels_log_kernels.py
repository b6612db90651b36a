"""Sums of logarithms against SciPy."""

import numpy as np
from scipy.special import logsumexp

from learnable.sequences import _kernels as kernels


def test_sums_of_logarithms():
    rng = np.random.default_rng(0)
    L, v, out = rng.normal(size=(3, 3)) * 500, rng.normal(size=3), np.empty(3)
    L[:, 1] = -np.inf
    kernels.log_mix(v, L, out)
    np.testing.assert_allclose(out, logsumexp(v[:, None] + L, axis=0), rtol=1e-13)
    assert kernels.log_total(np.full(3, -np.inf)) == -np.inf
