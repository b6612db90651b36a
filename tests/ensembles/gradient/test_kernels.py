"""Fused kernels against the formulas of `risk.losses`; exp and log against NumPy's."""

import numpy as np
import pytest

from learnable.ensembles.gradient._kernels import BLOCK, TILE, exp_tile, log1p_tile
from learnable.ensembles.gradient.driver import Evaluator, mean_loss
from learnable.ensembles.gradient.losses import class_loss, regression_loss

N = 2 * BLOCK + 777


def case(name):
    rng = np.random.default_rng(0)
    if name == "softmax":
        return class_loss("t", "log_loss", 4), rng.integers(0, 4, N), rng.normal(size=(4, N)) * 5
    if name in ("log_loss", "exponential"):
        return class_loss("t", name, 2), np.where(rng.random(N) < 0.5, 1.0, -1.0), rng.normal(size=(1, N)) * 8
    return regression_loss("t", name, None), rng.exponential(size=N) + 0.01, rng.normal(size=(1, N)) * 3


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["squared_error", "poisson", "gamma", "log_loss", "exponential", "softmax"])
def test_one_pass_gives_the_derivatives_and_the_mean_of_the_formulas(name, weighted):
    loss, y, F = case(name)
    w = np.random.default_rng(1).uniform(0.1, 3.0, N) if weighted else None
    evaluate = Evaluator(loss, y, w)
    value = evaluate(F)
    g, h = loss.derivatives(y, F)
    np.testing.assert_allclose(evaluate.g, g, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(evaluate.h, h, rtol=1e-12, atol=1e-14)
    assert value == pytest.approx(mean_loss(loss, y, F, w), rel=1e-12)


@pytest.mark.threaded
@pytest.mark.parametrize("name", ["log_loss", "softmax"])
def test_bits_do_not_depend_on_threads(name):
    loss, y, F = case(name)
    found = []
    for n_threads in (1, 2, 3):
        evaluate = Evaluator(loss, np.tile(y, 3), None, n_threads)
        assert evaluate.n_threads == n_threads
        scores = np.ascontiguousarray(np.tile(F, 3))
        found.append((evaluate(scores), evaluate.g.copy(), evaluate.h.copy()))
        evaluate.close()
    for value, g, h in found[1:]:
        assert value == found[0][0]
        assert np.array_equal(g, found[0][1]) and np.array_equal(h, found[0][2])


def test_values_of_leaves_are_added():
    loss, y, F = case("squared_error")
    leaf = np.random.default_rng(0).integers(0, 5, N).astype(np.int32)
    value = np.array([0.5, -1.0, 2.0, 0.0, 3.0])
    wanted = F[0] + value[leaf]
    Evaluator(loss, y, None).add(F[0], leaf, value)
    assert np.array_equal(F[0], wanted)


def test_exp_and_log_have_all_their_digits():
    x = np.linspace(-699.0, 699.0, TILE)
    out, scratch = np.empty(TILE), np.empty(2 * TILE)
    exp_tile(x, out, TILE)
    np.testing.assert_allclose(out, np.exp(x), rtol=1e-15)
    x = np.exp(x)
    log1p_tile(x, out, scratch, scratch.view(np.int64), TILE)
    np.testing.assert_allclose(out, np.log1p(x), rtol=1e-15)
