"""Mehrotra's step: what it solves, how far it may go, and that a guarded one never raises the complementarity."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.solvers.conic.interior_point import BACK_OFF, CentralPath, mehrotra_step


class Arrays(NamedTuple):
    x: np.ndarray
    s: np.ndarray


class Point(CentralPath, Arrays):
    complementary = (("x", "s"),)


def bounded_minimum(point, Q, q):
    """Return the direction for min ½xᵀQx + qᵀx over x ≥ 0, whose slopes are s = Qx + q."""

    def direction(t):
        residual = point.s - Q @ point.x - q
        dx = np.linalg.solve(np.diag(point.s) + point.x[:, None] * Q, t + point.x * residual)
        return Point(dx, Q @ dx - residual)

    return direction


def test_the_longest_step_stops_short_of_zero():
    point = Point(np.array([1.0, 2.0]), np.array([4.0, 1.0]))
    step = Point(np.array([-0.5, 1.0]), np.array([0.0, -2.0]))
    assert point.longest(step) == pytest.approx(BACK_OFF / 2.0)
    assert point.longest(Point(step.x * 0, step.s * 0)) == 1.0
    assert point.centrality() == pytest.approx(3.0)
    assert point.moved(step, 0.5).x == pytest.approx([0.75, 2.5])


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(0, 10**6), st.booleans())
def test_the_path_ends_at_the_optimum(n, seed, guarded):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, n + 1))
    Q, q = Z @ Z.T, rng.normal(size=n)
    point = Point(np.ones(n), np.ones(n))
    for _ in range(60):
        if point.centrality() < 1e-13:
            break
        found = mehrotra_step(point, bounded_minimum(point, Q, q), guarded=guarded)
        after = point.moved(found.step, point.longest(found.step))
        assert (after.x > 0).all() and (after.s > 0).all()
        if guarded:
            assert after.centrality() <= point.centrality() * (1 + 1e-12)
        point = after
    if guarded:
        assert np.abs(point.s - Q @ point.x - q).max() < 1e-6
        assert point.centrality() < 1e-6


def test_without_pairs_the_step_is_newtons():
    nothing = Point(np.zeros(0), np.zeros(0))
    found = mehrotra_step(nothing, lambda t: nothing)
    assert found.aims == [] and found.step is nothing
