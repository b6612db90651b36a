"""The smooth problem of squared shortfalls: derivatives, the gap, updates of the Hessian."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.linear.svm_tables import numbers, two_classes
from tests.oracles.svm import svc_objective, svr_objective

from learnable.data.blocks import Blocks, Part
from learnable.linear.margin.solvers import minimise_squared
from learnable.risk import L2Penalty, Risk
from learnable.risk.shortfall import ShortfallRisk, Target


def problem_of(regression, sparse, n=60, bias=1.5):
    X, y = (numbers if regression else two_classes)(n, 3)
    s = np.random.default_rng(0).uniform(0.2, 2.0, n)
    target = Target(None, 0.1) if regression else Target(1)
    problem = ShortfallRisk.of(Blocks([Part(sp.csr_array(X) if sparse else X, y, s)]), target, 0.4, bias=bias)

    def value(w):
        if regression:
            return svr_objective(w, X, y, 0.4 * s, bias, 0.1, 2)
        return svc_objective(w, X, y, 0.4 * s, bias, 2)

    return problem, value


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_value_gradient_and_hessian(regression, sparse):
    problem, value = problem_of(regression, sparse)
    x = np.random.default_rng(1).normal(size=4) * 0.3
    at = problem.evaluate(x)
    np.testing.assert_allclose(at.value, value(x), rtol=1e-13)
    steps = 1e-6 * np.eye(4)
    np.testing.assert_allclose(at.gradient, [(value(x + e) - value(x - e)) / 2e-6 for e in steps], rtol=1e-6)
    H = problem.hessian(x)
    slopes = [(problem.evaluate(x + e).gradient - problem.evaluate(x - e).gradient) / 2e-6 for e in steps]
    np.testing.assert_allclose(H, slopes, rtol=1e-5, atol=1e-5)
    v = np.random.default_rng(2).normal(size=4)
    np.testing.assert_allclose(problem.hessian_product(x)(v), H @ v, rtol=1e-12)


@pytest.mark.parametrize("regression", [False, True])
def test_an_updated_hessian_is_the_hessian(regression):
    problem, _ = problem_of(regression, False, n=300)
    x, step = np.zeros(4), 0.02 * np.ones(4)
    for _ in range(6):
        x = x + step
        fresh, _ = problem_of(regression, False, n=300)
        np.testing.assert_allclose(problem.hessian(x), fresh.hessian(x), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("regression", [False, True])
def test_the_gap_bounds_the_distance_to_the_optimum(regression):
    problem, _ = problem_of(regression, False)
    best = minimise_squared(problem, None, tol=1e-14, max_iter=100, progress=lambda i, g: False)
    for seed in range(5):
        x = best.x + np.random.default_rng(seed).normal(size=4) * 10.0**-seed
        at = problem.evaluate(x)
        assert at.value - best.value <= 0.5 * at.gradient @ at.gradient * (1 + 1e-9)


def test_without_intercept_the_first_weight_stays_zero():
    problem, _ = problem_of(False, False, bias=0.0)
    assert minimise_squared(problem, None, tol=1e-10, max_iter=100, progress=lambda i, g: False).x[0] == 0.0


@pytest.mark.parametrize("target", [Target(1), Target(None, 0.3)], ids=["hinge", "tube"])
@pytest.mark.parametrize("bias", [0.0, 1.0])
@pytest.mark.parametrize("sparse", [False, True])
def test_compiled_sweeps_are_the_plain_risk_with_a_constant_column(target, bias, sparse):
    rng = np.random.default_rng(4)
    X, s = rng.normal(size=(50, 3)), rng.uniform(0.2, 2.0, 50)
    y = (X[:, 0] > 0).astype(int) if target.positive is not None else X[:, 0] + rng.normal(size=50)
    fused = ShortfallRisk.of(Blocks([Part(sp.csr_array(X) if sparse else X, y, s)]), target, 0.4, bias=bias)
    with_constant = np.column_stack([np.full(50, bias), X])
    limits = {"cost": 0.4, "intercept": False}
    plain = Risk.plain(fused.loss, L2Penalty(1.0), Blocks([Part(with_constant, target.of(y), s)]), **limits)
    theta = np.array([0.2 if bias else 0.0, 0.5, -0.3, 0.1])
    a, b = plain.evaluate(np.r_[0.0, theta]), fused.evaluate(theta)
    assert a.value == pytest.approx(b.value, rel=1e-13)
    np.testing.assert_allclose(a.gradient[1:], b.gradient, rtol=1e-11, atol=1e-12)
    assert a.measure <= b.measure * (1 + 1e-9)  # the better of several dual points
    np.testing.assert_allclose(plain.hessian(np.r_[0.0, theta])[1:, 1:], fused.hessian(theta), rtol=1e-11, atol=1e-12)


def test_the_dual_point_of_an_l1_penalty_lies_below_every_value():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(50, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=50) > 0).astype(int)
    risk = ShortfallRisk.of(Blocks([Part(X, y, rng.uniform(0.5, 2.0, 50))]), Target(1), 0.7, bias=1.0)
    points = [scale * rng.normal(size=4) for scale in (0.0, 0.1, 1.0) for _ in range(5)]
    found = [risk.l1_gap(x, *risk.losses(x)) for x in points]
    lowest = min(value for value, _, _ in found)
    for value, gap, relative in found:
        assert gap >= 0.0 and value - gap <= lowest
        assert relative == pytest.approx(gap / max(value - gap, 1e-8 * risk.start_value))
