"""The two steps of mixtures of experts: a damped Newton step never overshoots, sums are those of the definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax

from learnable.data.blocks import Part
from learnable.mixtures.experts import Experts, ExpertSteps, curvature, solve_symmetric


def steps_of(Z, C=0, alpha=0.0, gamma=0.0):
    d = Z.shape[1] - 1
    return ExpertSteps(2, C, np.zeros(d), np.ones(d), np.abs(Z).max(axis=0), alpha, gamma, 0.0)


@given(st.integers(0, 2**31), st.floats(0.1, 30.0), st.floats(0.0, 2.0))
def test_a_damped_newton_step_never_lowers_a_softmax_regression(seed, size, penalty):
    rng = np.random.default_rng(seed)
    Z = np.column_stack([np.ones(20), rng.normal(size=(20, 2)) * size])
    at, target, w = rng.normal(size=(3, 3)), rng.dirichlet(np.ones(3), 20).T, rng.uniform(0.1, 2, 20)
    slopes = np.array([0.0, 1.0, 1.0])

    def objective(V):
        return float((w * target * log_softmax(V @ Z.T, axis=0)).sum() - 0.5 * penalty * (slopes * V**2).sum())

    P = np.exp(log_softmax(at @ Z.T, axis=0))
    gradient, hessian = ((target - P) * w) @ Z, curvature(Z, P, w)
    step = steps_of(Z)._newton(gradient, hessian, at, penalty)
    assert objective(at + step) >= objective(at) - 1e-9 * (1 + abs(objective(at)))
    # The gradient and the curvature are the derivatives of the objective.
    v = rng.normal(size=(3, 3)) * 1e-4 / size
    second = np.einsum("ap,abpq,bq->", v, hessian, v) + penalty * (slopes * v**2).sum()
    slope = float(((gradient - penalty * slopes * at) * v).sum())
    found = objective(at + v) - objective(at)
    assert found == pytest.approx(slope - 0.5 * second, rel=1e-3, abs=1e-9)


def test_expected_sums_lead_to_weighted_least_squares():
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(50, 2)), rng.normal(size=50), rng.uniform(0.5, 2.0, 50)
    Z = np.column_stack([np.ones(50), X])
    steps = steps_of(Z)
    experts = Experts(rng.normal(size=(2, 3)), rng.normal(size=(2, 3)), np.array([0.5, 2.0]))
    statistics, likelihood = steps.expectation(Part(X, y, w), experts)
    logs = steps.log_joint(Z, y, experts)
    assert likelihood == pytest.approx(w @ np.logaddexp(*logs))
    r = np.exp(logs - np.logaddexp(*logs)) * w
    stepped = steps.maximisation(statistics, experts)
    for k in range(2):
        root = np.sqrt(r[k])
        expected = np.linalg.lstsq(Z * root[:, None], y * root, rcond=None)[0]
        np.testing.assert_allclose(stepped.weights[k], expected, rtol=1e-8)
        assert stepped.variances[k] == pytest.approx(np.average((y - Z @ expected) ** 2, weights=r[k]), rel=1e-8)


def test_directions_without_curvature_are_left_alone():
    H = np.diag([2.0, 0.0, 1.0])
    np.testing.assert_allclose(solve_symmetric(H, np.array([4.0, 0.0, 3.0])), [2.0, 0.0, 3.0])
