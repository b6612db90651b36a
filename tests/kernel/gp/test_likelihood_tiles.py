"""Factors and inverses in tiles: those of LAPACK, and the same bits on any number of threads and in any worker."""

import hashlib
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from learnable import GaussianProcessRegressor
from learnable.kernel.gp.likelihood import inverse_from_factor, inverse_of_lower, lower_factor
from learnable.risk.kernels import Gaussian, Matern, White


def definite(n, seed=0):
    points = np.random.default_rng(seed).uniform(0, 10, n)
    return np.exp(-np.abs(points[:, None] - points)) + 0.1 * np.eye(n)


@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 511, 512, 513, 700])
def test_tiles_are_what_lapack_computes(n):
    A = definite(n, n)
    L = lower_factor(A.copy())
    np.testing.assert_allclose(L, np.linalg.cholesky(A), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(inverse_of_lower(L) @ L, np.eye(n), atol=1e-12)
    inverse = inverse_from_factor(L)
    np.testing.assert_allclose(inverse @ A, np.eye(n), atol=1e-11)
    np.testing.assert_allclose(inverse, inverse.T, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("place", [0, 255, 256, 400])
def test_what_is_not_positive_definite_has_no_factor(place):
    A = definite(401)
    A[place, place] = -1.0
    assert lower_factor(A) is None


def fingerprint(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(640, 3))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=640)
    kernel = {"gaussian": 1.0 * Gaussian(np.ones(3)) + White(0.1), "matern": Matern(1.0, 1.5) + White(0.1)}[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two steps are not enough, and enough here
        model = GaussianProcessRegressor(kernel, max_iter=2, mean="linear").fit(X, y)
    found = [*model.predict(X[:300], return_std=True), model.predict(X[:300], return_cov=True)[1]]
    found += [model.kernel_.theta, model.leave_one_out().mean]
    return hashlib.md5(b"".join(np.ascontiguousarray(one).tobytes() for one in found)).hexdigest()


@pytest.mark.threaded
@pytest.mark.parametrize("names", [["gaussian"], pytest.param(["matern", "gaussian"], marks=pytest.mark.long)], ids=len)
def test_workers_of_all_kinds_give_the_same_bits(names):
    here = [fingerprint(name) for name in names]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(fingerprint, names)) == here
    program = f"from tests.kernel.gp.test_likelihood_tiles import fingerprint; print(*map(fingerprint, {names}))"
    for threads in ("1", "2"):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "PYTHONPATH": os.pathsep.join(sys.path)}
        found = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert found.stdout.split() == here
