"""Splitting: sums of functions known by their proximal operators; subgradients are exact, limits are obeyed."""

import numpy as np
import pytest
from scipy.optimize import linprog

from learnable.solvers.composite.splitting import split


class Identity:
    """A function of x itself."""

    def __init__(self, prox, weight=1.0):
        self.prox = prox
        self.weight = weight

    def forward(self, x):
        return x

    def adjoint(self, y):
        return y


class Residual(Identity):
    """‖Ax − b‖₁."""

    def __init__(self, A, b):
        super().__init__(lambda y, step: y - np.clip(y - b, -step, step))
        self.A = A

    def forward(self, x):
        return self.A @ x

    def adjoint(self, y):
        return self.A.T @ y


def agreement(point):
    return max(float(np.abs(value - value.mean()).max()) for value in np.array(point.values).T[:, None, :])


def test_least_absolute_deviations_over_a_box_are_a_linear_program():
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(15, 3)), rng.normal(size=15)
    terms = [Residual(A, b), Identity(lambda y, step: np.clip(y, -0.2, 0.2))]
    inverse = np.linalg.inv(A.T @ A + np.eye(3))

    def residual(point):
        return float(np.abs(A @ point.values[1] - point.values[0]).max())

    point, steps, stopped = split(terms, lambda r: inverse @ r, np.zeros(3), judge=residual, tol=1e-10, max_iter=5000)
    c = np.r_[np.zeros(3), np.ones(15)]
    walls = np.block([[A, -np.eye(15)], [-A, -np.eye(15)]])
    peer = linprog(c, A_ub=walls, b_ub=np.r_[b, -b], bounds=[(-0.2, 0.2)] * 3 + [(0, None)] * 15, method="highs")
    assert np.abs(A @ point.values[1] - b).sum() == pytest.approx(peer.fun, rel=1e-7)
    assert steps < 5000 and not stopped
    # The duals are subgradients: signs of the residuals, and normals of the box; together they balance.
    signs, normal = point.duals
    assert np.abs(signs).max() <= 1.0 + 1e-12
    np.testing.assert_allclose(A.T @ signs + normal, 0.0, atol=1e-6)


def test_a_metric_changes_the_way_and_not_the_end():
    target = np.array([3.0, -0.5, 1.0])
    ends = []
    for weight in (0.1, 1.0, 10.0):
        pull = Identity(lambda y, step, w=weight: (w * y + step * target) / (w + step), weight)
        soft = Identity(lambda y, step, w=weight: y - np.clip(y, -step / w, step / w), weight)
        point, _, _ = split(
            [pull, soft], lambda r, w=weight: r / (2 * w), np.zeros(3), judge=agreement, tol=1e-10, max_iter=2000
        )
        ends.append(point.values[1])
    np.testing.assert_allclose(ends, [[2.0, 0.0, 0.0]] * 3, atol=1e-7)


def test_limits_of_steps_and_time():
    never = Identity(lambda y, step: y + 1.0)
    _, steps, stopped = split(
        [never, Identity(lambda y, step: y)], lambda r: r / 2, np.zeros(2), judge=lambda p: 1.0, tol=0.5, max_iter=37
    )
    assert steps == 37 and not stopped
    seen = []

    def progress(step, value):
        seen.append(step)
        return len(seen) == 3

    _, steps, stopped = split(
        [never, never], lambda r: r / 2, np.zeros(2), judge=lambda p: 1.0, tol=0.5, max_iter=1000, progress=progress
    )
    assert stopped and seen == [0, 10, 20] and steps == 20
