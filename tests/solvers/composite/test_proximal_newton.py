"""Proximal Newton steps: the quadratic model's minimum, the optimum with its gap, and stops that are obeyed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.risk.losses import LogisticLoss
from learnable.solvers.composite.coordinate import Penalty
from learnable.solvers.composite.proximal_newton import CompositePoint, proximal_newton, quadratic_minimum


class Sparse:
    """Σ log(1 + e^{−yz}) + λ‖w‖₁ with the dual point that the slopes give, scaled until |Xᵀu| ≤ λ."""

    rounding = 1e-13

    def __init__(self, X, y, strength):
        self.X, self.y, self.strength, self.loss = X, y, strength, LogisticLoss()

    def at(self, w):
        z = self.X @ w
        u = self.loss.gradient(self.y, z)
        slope = self.X.T @ u
        share = min(1.0, self.strength / max(np.abs(slope).max(), 1e-300))
        value = float(self.loss.value(self.y, z).sum()) + self.strength * float(np.abs(w).sum())
        dual = -float(self.loss.conjugate(self.y, share * u).sum())
        return CompositePoint(w, value, value - dual, (value - dual) / max(dual, 1e-300), slope)

    def model_minimum(self, point):
        z = self.X @ point.x
        H = self.X.T @ (self.loss.curvature(self.y, z)[:, None] * self.X)
        penalty = Penalty(np.full(len(H), self.strength), np.zeros(len(H)))
        loss = float(self.loss.value(self.y, z).sum())
        return quadratic_minimum(H, point.detail, point.x, loss, penalty, goal=1e-12)


def problem_of(seed, n=60, d=5, strength=2.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return Sparse(X, np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0), strength)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.1, 30.0))
def test_the_optimum_obeys_its_conditions(seed, strength):
    problem = problem_of(seed, strength=strength)
    found, n_iter, stopped = proximal_newton(problem, problem.at(np.zeros(5)), tol=1e-10, max_iter=50)
    assert found.relative <= 1e-10 and not stopped and n_iter <= 50
    used = found.x != 0
    np.testing.assert_allclose(found.detail[used], -strength * np.sign(found.x[used]), atol=1e-3 * strength)
    assert (np.abs(found.detail) <= strength * (1 + 1e-3)).all()


def test_every_step_lowers_the_objective_or_the_gap():
    problem, seen = problem_of(3), []
    point = problem.at(np.full(5, 3.0))

    def watch(iteration, value):
        seen.append((iteration, value))
        return False

    found, n_iter, _ = proximal_newton(problem, point, tol=1e-12, max_iter=50, progress=watch, done=7)
    assert [iteration for iteration, _ in seen] == list(range(8, n_iter + 1))
    assert found.value < point.value and seen[-1][1] == found.relative


def test_it_stops_when_told_to():
    problem = problem_of(4)
    _, n_iter, stopped = proximal_newton(
        problem, problem.at(np.full(5, 3.0)), tol=1e-14, max_iter=50, progress=lambda i, v: True
    )
    assert stopped and n_iter == 1


@pytest.mark.parametrize("l2", [0.0, 0.7])
def test_the_minimum_of_a_diagonal_model_is_a_soft_threshold(l2):
    H, slope, w = np.diag([1.0, 2.0, 4.0]), np.array([3.0, -0.5, 1.0]), np.array([0.5, 0.0, -1.0])
    penalty = Penalty(np.full(3, 1.0), np.full(3, l2))
    u = np.diag(H) * w - slope
    expected = np.sign(u) * np.maximum(np.abs(u) - 1.0, 0.0) / (np.diag(H) + l2)
    np.testing.assert_allclose(quadratic_minimum(H, slope, w, 10.0, penalty, goal=1e-14), expected, atol=1e-12)
