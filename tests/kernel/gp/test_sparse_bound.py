"""The variational bound: that of Titsias, below the likelihood, with its gradient, its rounding and its memory."""

import itertools
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from tests.oracles.gaussian_process import titsias

from learnable.data.blocks import Blocks, Part
from learnable.kernel.gp.likelihood import Observations, evidence
from learnable.kernel.gp.sparse import Bound, Rows, SparseData, solve
from learnable.risk.kernels import Constant, Gaussian, Linear, Matern, White

RNG = np.random.default_rng(0)
N = 120
X = RNG.uniform(-2, 2, (N, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * RNG.normal(size=N)
KERNEL = 1.3 * Gaussian([1.0, 2.0]) + White(0.05) + 0.2 * Linear()


def data_of(Z, y=Y, alpha=0.01, jitter=1e-10):
    columns = y.reshape(N, -1)
    t = columns.shape[1]
    sample = Observations(X, columns, np.broadcast_to(np.asarray(alpha), (N,)), np.zeros((N, 0)))
    rows = Rows(np.atleast_1d(np.asarray(alpha, dtype=float)), np.zeros(t), np.ones(t))
    return SparseData(Blocks([Part(X, y)]), rows, Z, jitter, sample)


@pytest.mark.parametrize("alpha", [0.01, np.linspace(0.01, 0.3, N)], ids=["one noise", "noise of each row"])
def test_the_bound_is_that_of_titsias(alpha):
    Z = X[:15]
    found = solve(*data_of(Z, alpha=alpha, jitter=1e-8).sums(KERNEL)).value
    free = 1.3 * Gaussian([1.0, 2.0]) + 0.2 * Linear()
    noise = np.broadcast_to(0.05 + np.asarray(alpha), (N,))
    jitter = 1e-8 * free.diagonal(Z).mean()
    expected = titsias(free(Z) + jitter * np.eye(15), free(X, Z), free.diagonal(X), noise, Y)
    assert found == pytest.approx(expected, rel=1e-7)


def test_it_is_a_lower_bound_that_all_rows_reach():
    exact = evidence(KERNEL, Observations(X, Y[:, None], np.full(N, 0.01), np.zeros((N, 0))), gradient=False).value
    bounds = [solve(*data_of(X[:m]).sums(KERNEL)).value for m in (2, 5, 15, 40, N)]
    assert all(a <= b + 1e-6 for a, b in itertools.pairwise(bounds))  # more points never hurt
    assert bounds[-1] == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize(
    "kernel",
    [
        KERNEL,
        Matern([1.0, 1.5], 2.5) + White(0.1) * (0.5 * Linear().hold() + White(1.0)),
        1.3 * Gaussian([1.0, 2.0]) + White(0.05),
        White(0.1) * Gaussian(2.0) + Constant(0.7) * (Gaussian(1.5) + White(0.3)),
        White(0.1) + Constant(0.7).hold() * Gaussian([1.5, 0.7]),
    ],
    ids=lambda kernel: kernel.formula,
)
def test_gradient(kernel, targets):
    y = Y if targets == 1 else np.column_stack([Y, Y**2])
    p = len(kernel.theta)
    bound, h = Bound(kernel, data_of(X[:12], y, alpha=0.1, jitter=1e-6), np.full((p, 2), [-9.0, 9.0])), 1e-4
    found = bound.evaluate(kernel.theta)
    for j, e in enumerate(np.eye(p)):
        slope = (bound.value(kernel.theta + h * e) - bound.value(kernel.theta - h * e)) / (2 * h)
        assert found.gradient[j] == pytest.approx(slope, rel=1e-5, abs=1e-4)


def test_rounding_of_value_and_gradient_is_what_is_stated():
    kernel = 1e5 * Gaussian([4.0, 5.0]) + White(0.04)  # two million times the noise: sums cancel in their first digits
    data = data_of(X[:40])
    bound = Bound(kernel, data, np.full((4, 2), [-20.0, 20.0]))
    nudges = 1e-13 * np.random.default_rng(1).normal(size=(8, 4))
    found = [bound.evaluate(kernel.theta + nudge) for nudge in nudges]
    solved = solve(*data.sums(kernel))
    spread = np.ptp([one.value for one in found])
    assert 1e-3 * solved.rounding < spread <= solved.rounding
    spread = np.ptp([one.gradient for one in found], axis=0).max() / solved.size
    assert 0.5 * spread < bound.rounding(kernel.theta) < 20.0 * spread


def test_a_pass_needs_the_memory_of_a_block():
    n, m = 400_000, 60  # the matrix of kernel values would take 192 MB
    many = np.random.default_rng(0).normal(size=(n, 2))
    y = np.sin(many[:, 0])
    sample = Observations(many[:300], y[:300, None], np.full(300, 0.1), np.zeros((300, 0)))
    rows = Rows(np.array([0.1]), np.zeros(1), np.ones(1))
    kernel = 1.3 * Gaussian([1.0, 2.0]) + White(0.05)
    bound = Bound(kernel, SparseData(Blocks([Part(many, y)]), rows, many[:m], 1e-10, sample, 2), np.ones((4, 2)))
    bound.evaluate(kernel.theta)
    tracemalloc.start()
    try:
        bound.evaluate(kernel.theta)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 32e6


def test_some_rows_are_the_same_rows_with_their_noise():
    data = data_of(X[:5], alpha=np.linspace(0.1, 1.0, N))
    some = data.some(np.array([3, 7, 50]))
    assert len(some.y) == 3
    np.testing.assert_allclose(some.rows.alpha, np.linspace(0.1, 1.0, N)[[3, 7, 50]])
    assert replace(some, jitter=1.0).jitter == 1.0
