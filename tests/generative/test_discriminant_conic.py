"""Kinds of boundaries: every conic section, from equations and from densities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.core.errors import ParameterError
from learnable.generative.discriminant import boundary_between, kind_of

CONICS = [
    ("ellipse", np.diag([1.0, 2.0]), [0.0, 0.0], -1.0),
    ("one point", np.diag([1.0, 2.0]), [0.0, 0.0], 0.0),
    ("none", np.diag([1.0, 2.0]), [0.0, 0.0], 1.0),
    ("hyperbola", np.diag([1.0, -2.0]), [0.0, 0.0], 1.0),
    ("two intersecting lines", np.diag([1.0, -2.0]), [0.0, 0.0], 0.0),
    ("parabola", np.diag([1.0, 0.0]), [0.0, 3.0], 1.0),
    ("two parallel lines", np.diag([1.0, 0.0]), [0.0, 0.0], -4.0),
    ("one line", np.diag([1.0, 0.0]), [0.0, 0.0], 0.0),
    ("line", np.zeros((2, 2)), [1.0, 3.0], 1.0),
    ("everywhere", np.zeros((2, 2)), [0.0, 0.0], 0.0),
    ("none", np.zeros((2, 2)), [0.0, 0.0], 2.0),
]


@pytest.mark.threaded
@settings(max_examples=20)
@given(st.floats(0.0, 6.28), st.floats(-3.0, 3.0), st.floats(-3.0, 3.0), st.sampled_from([-5.0, -1.0, 0.3, 7.0]))
@pytest.mark.parametrize(("kind", "A", "b", "c"), CONICS)
def test_kinds_survive_turning_moving_and_scaling(kind, A, b, c, angle, p, q, factor):
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    centre, b = np.array([p, q]), turn @ np.asarray(b)
    A = turn @ A @ turn.T
    moved = factor * A, factor * (b - 2 * A @ centre), factor * (c - b @ centre + centre @ A @ centre)
    if kind in ("one point", "one line", "two intersecting lines") and np.abs(centre).max() < 1e-3:
        return  # a constant that is rounding alone
    assert kind_of(*moved) == kind


@pytest.mark.threaded
@pytest.mark.parametrize(
    ("kind", "diagonal", "b", "c"),
    [
        ("ellipsoid", [1, 2, 3], [0, 0, 0], -1),
        ("hyperboloid", [1, 2, -3], [0, 0, 0], -1),
        ("cone", [1, 2, -3], [0, 0, 0], 0),
        ("paraboloid", [1, 2, 0], [0, 0, 1], 0),
        ("parabolic cylinder", [1, 0, 0], [0, 0, 1], 0),
        ("cylinder", [1, 2, 0], [0, 0, 0], -1),
        ("two parallel hyperplanes", [1, 0, 0], [0, 0, 0], -1),
        ("two hyperplanes", [1, -1, 0], [0, 0, 0], 0),
        ("hyperplane", [0, 0, 0], [1, 0, 0], 0),
    ],
)
def test_kinds_in_space(kind, diagonal, b, c):
    assert kind_of(np.diag(np.array(diagonal, float)), np.array(b, float), float(c)) == kind


def test_kinds_on_the_line():
    assert kind_of(np.array([[1.0]]), np.array([0.0]), -1.0) == "two points"
    assert kind_of(np.array([[1.0]]), np.array([2.0]), 1.0) == "one point"
    assert kind_of(np.array([[1.0]]), np.array([0.0]), 1.0) == "none"
    assert kind_of(np.array([[0.0]]), np.array([2.0]), 1.0) == "one point"


def between(P, Q, m, k, priors=(0.5, 0.5)):
    covs = np.linalg.inv(P), np.linalg.inv(Q)
    dets = [np.linalg.slogdet(c)[1] for c in covs]
    return boundary_between(("a", "b"), priors, (np.array(m), np.array(k)), (P, Q), dets)


def test_boundaries_of_normal_classes():
    eye = np.eye(2)
    assert between(eye, eye, [0.0, 0.0], [2.0, 1.0]).kind == "line"
    assert between(eye, eye, [0.0, 0.0], [0.0, 0.0], (0.7, 0.3)).kind == "none"
    assert between(eye, 0.25 * eye, [0.0, 0.0], [0.0, 0.0]).kind == "circle"
    assert between(np.diag([2.0, 3.0]), eye, [0.0, 0.0], [0.3, 0.0]).kind == "ellipse"
    assert between(np.diag([2.0, 0.5]), eye, [1.0, 0.0], [0.3, 0.5]).kind == "hyperbola"
    assert between(np.diag([2.0, 1.0]), eye, [0.0, 1.0], [0.0, 0.0]).kind == "parabola"
    assert between(np.diag([2.0, 1.0]), eye, [0.0, 0.0], [0.0, 0.0]).kind == "two parallel lines"
    circle = between(eye, 0.25 * eye, [1.0, 2.0], [1.0, 2.0])
    radius = np.sqrt(2 * np.log(4) / 0.75)
    np.testing.assert_allclose(circle.evaluate([[1 + radius, 2], [1, 2 - radius]]), 0, atol=1e-12)


def test_equations_in_words():
    line = between(np.eye(2), np.eye(2), [0.0, 0.0], [2.0, 1.0])
    assert line.equation() == "−2 x0 − 1 x1 + 2.5 = 0" and str(line).startswith("line: ")
    assert "height weight" in between(np.array([[2.0, 0.5], [0.5, 1.0]]), np.eye(2), [0.0, 0.0], [1.0, 0.0]).equation(
        ["height", "weight"]
    )
    with pytest.raises(ParameterError, match="A must have shape"):
        kind_of(np.eye(3), np.zeros(2), 0.0)
