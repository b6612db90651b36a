"""Norms as penalties: the proximal point pairs with a subgradient, and conjugates end at the ball of the dual norm."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.oracles.penalties import chain_prox

from learnable.core.errors import ParameterError
from learnable.risk import (
    GroupPenalty,
    L1Penalty,
    L2Penalty,
    Lq,
    NormPenalty,
    NuclearPenalty,
    ProximalPenalty,
    SupNormPenalty,
    TotalVariationPenalty,
)

NORMS = [
    NormPenalty(0.7),
    GroupPenalty((0, 0, 1, 1, 1, 2), 0.5),
    SupNormPenalty(0.8),
    TotalVariationPenalty(0.6),
    TotalVariationPenalty(0.6, 0.4),
    TotalVariationPenalty(0.6, 1.0),
    NuclearPenalty(0.5),
]


@pytest.mark.parametrize("norm", NORMS, ids=str)
@given(seed=st.integers(0, 10**6), size=st.floats(0.01, 10.0), outputs=st.integers(1, 3))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_fenchel_young_at_the_proximal_point(norm, seed, size, outputs):
    """(w − v)/step is a subgradient at v: Ω(v) = ⟨u, v⟩ and Ω°(u) <= λ, with equality where v is not zero."""
    w = size * np.random.default_rng(seed).normal(size=(6, outputs) if outputs > 1 else 6)
    v = norm.prox(w, 0.9)
    u = (w - v) / 0.9
    scale = norm.value(w) + 1e-12
    assert norm.value(v) == pytest.approx(float((u * v).sum()), abs=1e-12 * scale)
    assert norm.dual_norm(u) <= norm.strength * (1 + 1e-9)
    if norm.value(v) > 1e-9 * scale:
        assert norm.dual_norm(u) == pytest.approx(norm.strength, rel=1e-9)


@pytest.mark.parametrize("norm", NORMS, ids=str)
def test_the_dual_norm_is_a_supremum(norm):
    rng = np.random.default_rng(0)
    u = rng.normal(size=6)
    if getattr(norm, "l1_ratio", 1.0) == 0.0:
        u = u - u.mean()
    bound = norm.dual_norm(u)
    for _ in range(200):
        w = rng.normal(size=6)
        assert float(u @ w) <= bound * norm.value(w) / norm.strength * (1 + 1e-12) + 1e-12
    assert norm.conjugate(u * norm.strength / bound * (1 - 1e-12)) == 0.0
    assert norm.conjugate(u * norm.strength / bound * 1.001) == np.inf


def test_a_common_level_costs_nothing_and_so_has_no_dual_norm():
    norm = TotalVariationPenalty()
    assert norm.value(np.ones(5)) == 0.0
    assert norm.dual_norm(np.ones(5)) == np.inf
    np.testing.assert_array_equal(norm.free_directions(5), np.ones((5, 1)))
    assert TotalVariationPenalty(1.0, 0.1).free_directions(5) is None


@given(seed=st.integers(0, 10**6), strength=st.floats(0.01, 3.0), n=st.integers(1, 12))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_the_prox_of_a_chain(seed, strength, n):
    y = np.random.default_rng(seed).normal(size=n)
    np.testing.assert_allclose(TotalVariationPenalty(strength).prox(y, 1.0), chain_prox(y, strength), atol=1e-7)


def test_conjugates_of_ones_own_penalties():
    rng = np.random.default_rng(0)
    for known in (L2Penalty(0.7), Lq(0.5, 3.0)):
        own = ProximalPenalty(known.value, known.prox)
        for _ in range(5):
            u = rng.normal(size=4)
            assert own.conjugate(u) == pytest.approx(known.conjugate(u), rel=1e-9)
    own = ProximalPenalty(L1Penalty(1.0).value, L1Penalty(1.0).prox)
    assert own.conjugate(np.array([0.5, -0.99])) == 0.0
    assert own.conjugate(np.array([0.5, -1.01])) == np.inf
    assert ProximalPenalty(np.sum, np.add, dual=lambda u: 7.0).conjugate(np.ones(2)) == 7.0


def test_the_nuclear_norm_of_one_column_is_the_euclidean_one():
    w = np.arange(5.0)
    assert NuclearPenalty().value(w) == pytest.approx(NormPenalty().value(w))
    np.testing.assert_allclose(NuclearPenalty().prox(w, 1.0), NormPenalty().prox(w, 1.0))


def test_the_prox_of_groups_against_a_general_solver():
    norm = GroupPenalty(("a", "b", "a", "b"), 0.3)
    w = np.array([1.0, -2.0, 0.5, 0.1])
    found = minimize(lambda v: norm.value(v) + ((v - w) ** 2).sum() / 2, w, tol=1e-12).x
    np.testing.assert_allclose(norm.prox(w, 1.0), found, atol=1e-5)


def test_what_is_refused():
    with pytest.raises(ParameterError, match="strength must be >= 0"):
        NormPenalty(-1.0)
    with pytest.raises(ParameterError, match="l1_ratio"):
        TotalVariationPenalty(1.0, 2.0)
    with pytest.raises(ParameterError, match="each of 3 columns; got 2 names"):
        GroupPenalty((0, 1)).value(np.zeros(3))
