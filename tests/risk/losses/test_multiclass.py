"""Laws of the multiclass losses: calculus, duality, constants, and the binary losses at K = 2."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from learnable.risk.losses import (
    HingeLoss,
    LogisticLoss,
    MulticlassHingeLoss,
    MulticlassZeroOneLoss,
    SoftmaxLoss,
)

CONVEX = [SoftmaxLoss(), MulticlassHingeLoss()]


def draw(n, K, seed=0, spread=3.0):
    rng = np.random.default_rng(seed)
    return rng.integers(K, size=n), spread * rng.standard_normal((n, K))


def unit(y, K):
    return np.eye(K)[y]


def numeric_gradient(function, z, h):
    columns = [(function(z + h * e) - function(z - h * e)) / (2 * h) for e in np.eye(z.shape[1])]
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("loss", CONVEX)
@pytest.mark.parametrize("K", [2, 3, 6])
def test_gradient_is_the_derivative_of_the_value(loss, K):
    y, z = draw(200, K)
    # Random real scores are further than h from every kink of the hinge, with this seed.
    slope = numeric_gradient(lambda scores: loss.value(y, scores), z, h=1e-5)
    np.testing.assert_allclose(loss.gradient(y, z), slope, atol=1e-9)


@pytest.mark.parametrize("loss", CONVEX)
def test_gradient_is_a_subgradient_everywhere_ties_included(loss):
    z = np.array(list(itertools.product([-1.0, 0.0, 1.0], repeat=3)))  # full of ties and of leads of exactly one
    for k in range(3):
        y = np.full(len(z), k)
        value, slope = loss.value(y, z), loss.gradient(y, z)
        tangent = value[:, None] + slope @ z.T - np.sum(slope * z, axis=1)[:, None]
        assert np.all(value >= tangent - 1e-14)


def test_hinge_subgradient_chosen_at_ties():
    z = np.array([[2.0, 1.0, 1.0], [1.0, 1.0, 2.0]])
    gradient = MulticlassHingeLoss().gradient(np.array([0, 2]), z)
    assert np.array_equal(gradient, [[-1, 1, 0], [1, 0, -1]])


@pytest.mark.parametrize("K", [2, 3, 6])
def test_curvature_product_is_the_derivative_of_the_gradient(K):
    loss = SoftmaxLoss()
    y, z = draw(50, K)
    v = np.random.default_rng(1).standard_normal((50, K))
    h = 1e-5
    slope = (loss.gradient(y, z + h * v) - loss.gradient(y, z - h * v)) / (2 * h)
    np.testing.assert_allclose(loss.curvature_product(z, v), slope, atol=1e-9)


score = st.floats(-30, 30)


@pytest.mark.parametrize("loss", CONVEX)
@given(
    z=arrays(np.float64, (1, 4), elements=score),
    p=arrays(np.float64, (1, 4), elements=st.floats(0, 1)),
    k=st.integers(0, 3),
)
def test_fenchel_young(loss, z, p, k):
    y = np.array([k])
    value = loss.value(y, z)[0]
    p = (p + 1e-3) / (p + 1e-3).sum()
    u = p - unit(y, 4)
    dual = loss.conjugate(y, u)[0]
    assert np.isfinite(dual)
    inner = np.sum(u * z)
    assert value + dual >= inner - 1e-13 * (1 + np.abs(z).max())
    g = loss.gradient(y, z)
    assert abs(value + loss.conjugate(y, g)[0] - np.sum(g * z)) <= 1e-13 * (1 + np.abs(z).max())


DUAL_POINTS = np.array([[0.2, 0.3, 0.5], [0.01, 0.01, 0.98], [0.6, 0.4, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize("loss, tolerance", [(SoftmaxLoss(), 4e-4), (MulticlassHingeLoss(), 1e-12)])
@pytest.mark.parametrize("k", [0, 1, 2])
def test_conjugate_is_the_supremum(loss, tolerance, k):
    # The supremum does not change when a constant is added to z. The kinks of the hinge lie on this grid. The
    # softmax's maximiser is at most 0.025 away in both coordinates: at most ¼ · 2 · 0.025² = 3.2e-4 are lost;
    # or it is at infinity, where 25 is far enough.
    axis = np.arange(-500, 501) / 20
    a, b = np.meshgrid(axis, axis)
    z = np.stack([np.zeros(a.size), a.ravel(), b.ravel()], axis=1)
    value = loss.value(np.full(len(z), k), z)
    y = np.full(len(DUAL_POINTS), k)
    u = DUAL_POINTS - unit(y, 3)
    supremum = np.array([np.max(z @ row - value) for row in u])
    gap = loss.conjugate(y, u) - supremum
    assert np.all(gap >= -1e-12)
    assert np.all(gap <= tolerance)


@pytest.mark.parametrize("loss", CONVEX)
def test_conjugate_is_infinite_outside_the_simplex(loss):
    y = np.zeros(4, dtype=np.intp)
    p = np.array([[0.5, 0.5 + 1e-12, 0.0], [1.0, -5e-324, 0.0], [1.0 + 2.0**-52, -(2.0**-52), 0.0], [2.0, -1.0, 0.0]])
    assert np.all(loss.conjugate(y, p - unit(y, 3)) == np.inf)


@pytest.mark.parametrize("K", [2, 50, 5000])
def test_softmax_gradient_is_dual_feasible_despite_rounding(K):
    loss = SoftmaxLoss()
    y, z = draw(20, K, spread=5.0)
    g = loss.gradient(y, z)
    np.testing.assert_allclose(loss.value(y, z) + loss.conjugate(y, g), np.sum(g * z, axis=1), atol=1e-12)
    assert np.all(np.isfinite(loss.conjugate(y, 0.3 * g)))


def test_softmax_gradient_stays_in_the_dual_domain_at_its_corner():
    # The other probabilities can sum to one and an ulp; the own entry must not follow them below -1.
    y, z = draw(20_000, 4, spread=20.0)
    g = SoftmaxLoss().gradient(y, z)
    assert g.min() >= -1.0
    assert np.all(np.isfinite(SoftmaxLoss().conjugate(y, g)))


@pytest.mark.parametrize("loss", CONVEX)
@pytest.mark.parametrize("K", [2, 3, 6])
def test_constants_bound_in_the_euclidean_norm(loss, K):
    y, a = draw(2000, K, seed=2)
    _, b = draw(2000, K, seed=3)
    run = np.linalg.norm(a - b, axis=1)
    assert np.all(np.abs(loss.value(y, a) - loss.value(y, b)) <= loss.lipschitz * run)
    if np.isfinite(loss.smoothness):
        rise = np.linalg.norm(loss.gradient(y, a) - loss.gradient(y, b), axis=1)
        assert np.all(rise <= loss.smoothness * run)


def test_constants_are_attained():
    y, z = np.array([0]), np.array([[-40.0, 40.0, -40.0]])
    for loss in CONVEX:
        assert np.linalg.norm(loss.gradient(y, z)) == pytest.approx(loss.lipschitz, rel=1e-14)
    v = np.array([[1.0, -1.0, 0.0]])
    curvature = SoftmaxLoss().curvature_product(np.array([[0.0, 0.0, -800.0]]), v)
    assert np.linalg.norm(curvature) / np.linalg.norm(v) == pytest.approx(SoftmaxLoss().smoothness, rel=1e-14)


def test_two_classes_agree_with_the_binary_losses():
    y, z = draw(100, 2)
    sign, difference = 2.0 * y - 1.0, z[:, 1] - z[:, 0]
    for multiclass, binary in ((SoftmaxLoss(), LogisticLoss()), (MulticlassHingeLoss(), HingeLoss())):
        np.testing.assert_allclose(multiclass.value(y, z), binary.value(sign, difference), rtol=1e-13)
        np.testing.assert_allclose(multiclass.gradient(y, z)[:, 1], binary.gradient(sign, difference), rtol=1e-13)
        assert np.array_equal(2 * multiclass.predict(z) - 1, binary.predict(difference))
    np.testing.assert_allclose(SoftmaxLoss().probability(z)[:, 1], LogisticLoss().probability(difference), rtol=1e-13)


def test_softmax_keeps_the_digits_of_a_small_loss():
    z = np.array([[1000.0, 950.0, 940.0]])
    small = np.exp(-50.0) + np.exp(-60.0)
    np.testing.assert_allclose(SoftmaxLoss().value(np.array([0]), z), small, rtol=1e-14)
    np.testing.assert_allclose(SoftmaxLoss().gradient(np.array([0]), z)[0, 0], -small, rtol=1e-14)


def test_softmax_does_not_change_when_a_constant_is_added():
    y, z = draw(50, 4)
    np.testing.assert_allclose(SoftmaxLoss().value(y, z + 512.0), SoftmaxLoss().value(y, z), rtol=1e-10)
    np.testing.assert_allclose(SoftmaxLoss().gradient(y, z).sum(axis=1), 0.0, atol=1e-15)


def test_argmax_and_zero_one():
    z = np.array([[1.0, 3.0, 3.0], [2.0, 0.0, 1.0]])
    for loss in (*CONVEX, MulticlassZeroOneLoss()):
        assert np.array_equal(loss.predict(z), [1, 0])
    assert np.array_equal(MulticlassZeroOneLoss().value(np.array([2, 0]), z), [1.0, 0.0])


def test_extreme_scores_give_neither_nan_nor_warning():
    levels = [-1e300, -710.0, 0.0, 5e-324, 1e16, 1e300]
    z = np.array(list(itertools.product(levels, repeat=3)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k, loss in itertools.product(range(3), CONVEX):
            y = np.full(len(z), k)
            for result in (loss.value(y, z), loss.gradient(y, z), loss.conjugate(y, z)):
                assert not np.isnan(result).any()
            assert np.all(loss.value(y, z) >= 0.0)
        assert not np.isnan(SoftmaxLoss().probability(z)).any()
        assert not np.isnan(SoftmaxLoss().curvature_product(z, np.ones_like(z))).any()


def test_arguments_are_left_alone():
    y, z = draw(5, 3)
    before = z.copy()
    for loss in CONVEX:
        loss.value(y, z), loss.gradient(y, z), loss.conjugate(y, z)
    assert np.array_equal(z, before)
