"""Laws of the penalties: proximal operators, conjugates, and the identities that tie the two together."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize_scalar

from learnable.core.errors import ParameterError
from learnable.risk.penalties import ElasticNetPenalty, L1Penalty, L2Penalty

PENALTIES = [
    L2Penalty(0.7),
    L1Penalty(0.7),
    ElasticNetPenalty(0.7, 0.3),
    ElasticNetPenalty(0.7, 0.0),
    ElasticNetPenalty(0.7, 1.0),
    L2Penalty(0.0),
    L1Penalty(0.0),
    ElasticNetPenalty(0.0, 0.5),
]
weights = arrays(np.float64, 5, elements=st.floats(-10, 10))
steps = st.floats(0.01, 5.0)


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@given(w=weights, v=weights, step=steps)
def test_prox_minimises_its_objective(penalty, w, v, step):
    def objective(candidate):
        return penalty.value(candidate) + np.square(candidate - w).sum() / (2 * step)

    best = penalty.prox(w, step)
    for candidate in (v, w, np.zeros(5), best + 1e-4 * v):
        assert objective(best) <= objective(candidate) + 1e-12 * (1 + objective(candidate))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@pytest.mark.parametrize("w", [-3.0, -0.2, 0.0, 0.05, 0.9, 4.0])
@pytest.mark.parametrize("step", [0.1, 1.0, 3.0])
def test_prox_against_numeric_minimisation(penalty, w, step):
    numeric = minimize_scalar(
        lambda v: penalty.value(np.array([v])) + (v - w) ** 2 / (2 * step),
        bounds=(-5, 5),
        method="bounded",
        options={"xatol": 1e-10},
    ).x
    # A minimiser found by comparing values is known to the root of the rounding only.
    assert penalty.prox(np.array([w]), step)[0] == pytest.approx(numeric, abs=1e-6)


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@given(w=weights, u=weights)
def test_fenchel_young(penalty, w, u):
    u = np.clip(u, -1.0, 1.0) * 0.7  # the domain of the lasso's conjugate; the others contain it
    assert penalty.value(w) + penalty.conjugate(u) >= u @ w - 1e-12 * (1 + abs(u @ w))


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@given(w=weights, step=steps)
def test_moreau_the_remainder_of_the_prox_is_a_subgradient(penalty, w, step):
    # w = prox_tΩ(w) + t·prox_Ω*/t(w/t), equivalently u = (w - v)/t attains equality in Fenchel-Young at v.
    v = penalty.prox(w, step)
    u = (w - v) / step
    u = u * (1 - 1e-12) if penalty.strength > 0 else np.round(u, 9)  # rounding may leave u an ulp outside
    gap = penalty.value(v) + penalty.conjugate(u) - u @ v
    assert abs(gap) <= 1e-10 * (1 + abs(u @ v))


@given(w=weights, step=steps)
def test_moreau_with_the_known_proxes_of_the_conjugates(w, step):
    projection = np.clip(w / step, -0.7, 0.7)  # prox of the indicator of a box
    np.testing.assert_allclose(L1Penalty(0.7).prox(w, step) + step * projection, w, atol=1e-13)
    shrunken = (w / step) / (1 + 1 / (0.7 * step))  # prox of ‖u‖²/(2λ), divided by t
    np.testing.assert_allclose(L2Penalty(0.7).prox(w, step) + step * shrunken, w, atol=1e-13)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("penalty", [L2Penalty(0.7), L1Penalty(0.7), ElasticNetPenalty(0.7, 0.3)], ids=repr)
@pytest.mark.parametrize("u", [-0.7, -0.4, 0.0, 0.2, 0.21, 0.69, 0.7])
def test_conjugate_is_the_supremum(penalty, u):
    w = np.linspace(-10, 10, 20_001)
    supremum = np.max(u * w - [penalty.value(np.array([entry])) for entry in w])
    gap = penalty.conjugate(np.array([u])) - supremum
    assert -1e-13 <= gap <= 0.5 * 0.7 * 0.0005**2 + 1e-13  # the grid is at most 0.0005 from the maximiser


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_value_and_conjugate_are_sums_over_the_entries(penalty):
    w = np.array([[0.3, -0.2], [0.0, 0.5]])
    assert penalty.value(w) == pytest.approx(sum(penalty.value(np.array([e])) for e in w.ravel()), rel=1e-15)
    parts = sum(penalty.conjugate(np.array([e])) for e in w.ravel())
    assert penalty.conjugate(w) == (parts if np.isinf(parts) else pytest.approx(parts, rel=1e-15))
    assert penalty.prox(w, 0.5).shape == w.shape


def test_formulas_on_one_vector():
    w = np.array([3.0, -4.0])
    assert L2Penalty(2.0).value(w) == 25.0
    assert L1Penalty(2.0).value(w) == 14.0
    assert ElasticNetPenalty(2.0, 0.25).value(w) == 2.0 * (0.25 * 7.0 + 0.5 * 0.75 * 25.0)
    assert np.array_equal(L2Penalty(2.0).gradient(w), [6.0, -8.0])


def test_gradient_of_l2_is_the_derivative():
    w, h = np.array([0.5, -1.5, 2.0]), 1e-5
    slope = [(L2Penalty(0.7).value(w + h * e) - L2Penalty(0.7).value(w - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(L2Penalty(0.7).gradient(w), slope, atol=1e-9)


@pytest.mark.parametrize("penalty", [L1Penalty(0.7), ElasticNetPenalty(0.7, 1.0)], ids=repr)
def test_lasso_conjugate_is_exact_at_its_boundary(penalty):
    assert penalty.conjugate(np.array([0.7, -0.7])) == 0.0
    assert penalty.conjugate(np.array([0.0, np.nextafter(0.7, 1.0)])) == np.inf


def test_no_penalty():
    w = np.array([1e300, -2.0])
    for penalty in (L2Penalty(0.0), L1Penalty(0.0), ElasticNetPenalty(0.0, 0.5)):
        assert penalty.value(w) == 0.0
        assert np.array_equal(penalty.prox(w, 3.0), w)
        assert penalty.conjugate(np.zeros(2)) == 0.0
        assert penalty.conjugate(np.array([0.0, 5e-324])) == np.inf


def test_elastic_net_contains_both():
    w = np.array([0.4, -2.0, 0.0])
    for mixed, pure in (
        (ElasticNetPenalty(0.7, 1.0), L1Penalty(0.7)),
        (ElasticNetPenalty(0.7, 0.0), L2Penalty(0.7)),
    ):
        assert mixed.value(w) == pure.value(w)
        assert np.array_equal(mixed.prox(w, 0.8), pure.prox(w, 0.8))
        assert mixed.conjugate(0.3 * w) == pure.conjugate(0.3 * w)


def test_soft_threshold_gives_exact_zeros():
    assert np.array_equal(L1Penalty(1.0).prox(np.array([0.5, -0.5, 1.0, -1.0, 1.5]), 1.0), [0, 0, 0, 0, 0.5])


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_extreme_weights_give_neither_nan_nor_warning(penalty):
    w = np.array([-1e300, -5e-324, 0.0, 1e-300, 1e154, 1e300])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not np.isnan(penalty.value(w))
        assert not np.isnan(penalty.conjugate(w))
        assert not np.isnan(penalty.prox(w, 1e10)).any()


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("kind", [L2Penalty, L1Penalty, ElasticNetPenalty])
def test_bad_strength(kind, bad):
    with pytest.raises(ParameterError, match=rf"{kind.__name__}: strength must be >= 0 and finite, got"):
        kind(bad)


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan])
def test_bad_ratio(bad):
    with pytest.raises(ParameterError, match=r"ElasticNetPenalty: l1_ratio must be in \[0, 1\], got"):
        ElasticNetPenalty(1.0, bad)
