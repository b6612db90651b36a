"""Laws of the q-norm, SCAD and MCP penalties: global minimisers, exact thresholds, conjugates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnable.core.errors import ParameterError
from learnable.risk.penalties import L1Penalty, L2Penalty, Lq, MCPenalty, SCADPenalty

PENALTIES = [
    *(Lq(0.7, q) for q in (0.1, 0.5, 2.0 / 3.0, 0.9, 1.0, 1.3, 2.0, 3.0)),
    *(SCADPenalty(0.7, a) for a in (2.1, 3.7)),
    *(MCPenalty(0.7, gamma) for gamma in (0.5, 3.0)),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@given(w=st.floats(-8.0, 8.0), step=st.floats(0.05, 5.0))
def test_prox_is_the_global_minimiser(penalty, w, step):
    def objective(v):
        return penalty.value(np.array([v])) + (v - w) ** 2 / (2 * step)

    found = float(penalty.prox(np.array([w]), step)[0])
    least = min(objective(v) for v in np.r_[np.linspace(-abs(w), abs(w), 401), 0.0, w].tolist())
    assert objective(found) <= least + 1e-12 * (1 + least)
    assert found * w >= 0
    assert abs(found) <= abs(w) * (1 + 1e-12)


@pytest.mark.parametrize("q", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("kappa", [0.3, 1.0, 4.0])
def test_the_threshold_of_a_small_power_is_exact(q, kappa):
    """At the threshold zero and the other root cost the same; below it the prox is zero, above it jumps."""
    jump = (2 * kappa * (1 - q)) ** (1 / (2 - q))
    threshold = jump + kappa * q * jump ** (q - 1)
    cost = kappa * jump**q + 0.5 * (jump - threshold) ** 2
    assert cost == pytest.approx(0.5 * threshold**2, rel=1e-12)
    penalty = Lq(kappa, q)
    below, above = penalty.prox(np.array([threshold * (1 - 1e-9), threshold * (1 + 1e-9)]), 1.0)
    assert below == 0.0
    assert above == pytest.approx(jump, rel=1e-4)


def test_half_has_its_closed_form():
    """Z. Xu, X. Chang, F. Xu and H. Zhang, L½ regularization, 2012: ⅔w(1 + cos(⅔π − ⅔ arccos(κ/4 (|w|/3)^(−3/2))))."""
    w, kappa = np.array([3.0, 5.0, 9.0]), 1.3
    angle = np.arccos(2 * kappa / 8 * (w / 3) ** -1.5)
    expected = 2 / 3 * w * (1 + np.cos(2 * np.pi / 3 - 2 / 3 * angle))
    np.testing.assert_allclose(Lq(kappa, 0.5).prox(w, 1.0), expected, rtol=1e-12)


@pytest.mark.parametrize("q", [1.0, 1.3, 2.0, 3.0])
@pytest.mark.parametrize("u", [-0.7, 0.0, 0.3, 0.69])
def test_conjugate_is_the_supremum(q, u):
    penalty = Lq(0.7, q)
    grid = np.linspace(-4, 4, 20001)
    numeric = (u * grid - 0.7 * np.abs(grid) ** q).max()
    assert penalty.conjugate(np.array([u])) == pytest.approx(numeric, abs=1e-6)


def test_special_powers_are_the_known_penalties():
    w = np.array([-3.0, 0.2, 1.5, 0.0])
    np.testing.assert_allclose(Lq(0.7, 2.0).prox(w, 0.6), L2Penalty(1.4).prox(w, 0.6), rtol=1e-12)
    np.testing.assert_array_equal(Lq(0.7, 1.0).prox(w, 0.6), L1Penalty(0.7).prox(w, 0.6))
    assert Lq(0.7, 2.0).conjugate(w) == pytest.approx(L2Penalty(1.4).conjugate(w))
    np.testing.assert_allclose(MCPenalty(0.7, 1e9).prox(w, 0.6), L1Penalty(0.7).prox(w, 0.6), atol=1e-8)


def test_the_prox_of_scad_is_the_one_of_the_paper():
    """J. Fan and R. Li, 2001: soft, then ((a − 1)w − sign(w)aλ)/(a − 2), then w."""
    a, level = 3.7, 0.8
    w = np.array([0.5, 1.2, 1.6, 2.0, 2.9, 3.0, 7.0])
    soft = np.maximum(w - level, 0.0)
    middle = ((a - 1) * w - a * level) / (a - 2)
    expected = np.where(w <= 2 * level, soft, np.where(w <= a * level, middle, w))
    np.testing.assert_allclose(SCADPenalty(level, a).prox(w, 1.0), expected, rtol=1e-12)


@pytest.mark.parametrize("penalty", [Lq(0.7, 0.5), SCADPenalty(0.7), MCPenalty(0.7)], ids=repr)
def test_what_is_not_convex_says_so(penalty):
    assert not penalty.convex
    assert penalty.conjugate(np.array([0.0])) == 0.0
    assert penalty.conjugate(np.array([0.1])) == np.inf
    assert Lq(0.7, 1.0).convex


@pytest.mark.parametrize("build", [lambda: Lq(1.0, 0.0), lambda: SCADPenalty(1.0, 2.0), lambda: MCPenalty(1.0, 0.0)])
def test_bad_shapes_are_told(build):
    with pytest.raises(ParameterError, match="must be >"):
        build()
