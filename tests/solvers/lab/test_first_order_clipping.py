"""Gradient clipping: rescaling keeps the direction, truncation bounds every component."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from learnable.core.errors import ParameterError
from learnable.solvers import Rescale, Truncate, minimize

vectors = arrays(np.float64, st.integers(1, 6), elements=st.floats(-1e300, 1e300))


@given(vectors, st.floats(1e-6, 1e6))
def test_rescaling_bounds_the_length_and_keeps_the_direction(g, c):
    clipped = Rescale(c)(g)
    assert np.linalg.norm(clipped) <= c * (1 + 1e-12)
    largest = np.abs(g).max()
    if largest > 0 and np.linalg.norm(g / largest) * largest > c:
        unit = g / largest
        np.testing.assert_allclose(clipped / c, unit / np.linalg.norm(unit), rtol=1e-9, atol=1e-12)
    else:
        assert np.array_equal(clipped, g)


@given(vectors, st.floats(1e-6, 1e6))
def test_truncation_bounds_every_component_and_changes_no_other(g, c):
    clipped = Truncate(c)(g)
    assert (np.abs(clipped) <= c).all()
    assert np.array_equal(clipped[np.abs(g) <= c], g[np.abs(g) <= c])
    assert np.array_equal(np.sign(clipped), np.sign(g))


def test_infinite_gradients_become_finite():
    g = np.array([np.inf, 3.0, -np.inf])
    np.testing.assert_allclose(Rescale(2.0)(g), [np.sqrt(2), 0.0, -np.sqrt(2)])
    assert np.array_equal(Truncate(2.0)(g), [2.0, 2.0, -2.0])


def test_nan_stays_nan():
    assert np.isnan(Rescale(1.0)(np.array([np.nan, 1.0]))[0])
    assert np.isnan(Rescale(1.0)(np.array([np.nan, np.inf]))[0])
    assert np.isnan(Truncate(1.0)(np.array([np.nan, 1.0]))[0])


def cliff(x):
    """A slope of 0.1 that ends in a wall of slope 10⁶ at x = 0."""
    return 0.1 * x[0] if x[0] > 0 else -1e6 * x[0]


def cliff_slope(x):
    return np.array([0.1 if x[0] > 0 else -1e6])


@pytest.mark.parametrize("clip", [Rescale(1.0), Truncate(1.0)])
def test_a_cliff_throws_the_iterate_away_unless_the_gradient_is_clipped(clip):
    thrown = minimize(cliff, [0.05], cliff_slope, step=1.0, max_iter=2)
    held = minimize(cliff, [0.05], cliff_slope, step=1.0, clip=clip, max_iter=2)
    assert thrown.trace.path[-1, 0] > 1e5
    assert abs(held.trace.path[-1, 0]) <= 1.0


@pytest.mark.parametrize("kind", [Rescale, Truncate])
@pytest.mark.parametrize("threshold", [0.0, -1.0, np.nan, np.inf, None])
def test_thresholds_are_positive(kind, threshold):
    with pytest.raises(ParameterError, match="threshold must be"):
        kind(threshold)
