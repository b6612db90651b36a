"""Functions in the space of a kernel: reproducing property, inner products, the representer theorem."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.core.errors import DataError
from learnable.risk.kernels import Gaussian, Linear, Matern, Polynomial, RKHSFunction, feature

RNG = np.random.default_rng(3)
KERNEL = 2.0 * Gaussian(0.8) + Polynomial(2, 0.3)
X, Z = RNG.standard_normal((12, 2)), RNG.standard_normal((5, 2))
f = RKHSFunction(KERNEL, X, RNG.standard_normal(12))
g = RKHSFunction(KERNEL, Z, RNG.standard_normal(5))


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_evaluation_is_an_inner_product_and_bounded_by_the_norm(seed):
    x = np.random.default_rng(seed).standard_normal(2)
    value = f([x])[0]
    assert f.inner(feature(KERNEL, x)) == pytest.approx(value, rel=1e-9, abs=1e-9)
    assert abs(value) <= f.bound([x])[0] * (1 + 1e-12)


def test_inner_products_are_bilinear_and_norms_obey_cauchy_schwarz():
    assert f.inner(g) == pytest.approx(g.inner(f))
    assert (2.0 * f + g).inner(g) == pytest.approx(2 * f.inner(g) + g.norm() ** 2)
    assert abs(f.inner(g)) <= f.norm() * g.norm()
    np.testing.assert_allclose((f - g)(Z), f(Z) - g(Z))
    assert (f - f).norm() == pytest.approx(0.0, abs=1e-6)


def test_linear_functions_have_their_weights_norm():
    h = RKHSFunction(Linear(), X, np.ones(12))
    assert h.norm() == pytest.approx(np.linalg.norm(X.sum(axis=0)))


def test_what_is_orthogonal_to_the_data_only_raises_the_norm():
    """The representer theorem: take a function with other points, and its projection on those of the data."""
    kernel = Matern(1.0, nu=1.5)
    h = RKHSFunction(kernel, np.vstack([X, Z]), RNG.standard_normal(17))
    projected = RKHSFunction(kernel, X, np.linalg.solve(kernel(X), h(X)))
    np.testing.assert_allclose(projected(X), h(X), atol=1e-8)
    rest = h - projected
    assert abs(rest.inner(projected)) < 1e-8
    assert h.norm() ** 2 == pytest.approx(projected.norm() ** 2 + rest.norm() ** 2)
    assert projected.norm() < h.norm()


def test_several_functions_at_once():
    C = RNG.standard_normal((12, 3))
    several = RKHSFunction(KERNEL, X, C)
    assert several(Z).shape == (5, 3) and several.bound(Z).shape == (5, 3)
    one = [RKHSFunction(KERNEL, X, C[:, k]) for k in range(3)]
    np.testing.assert_allclose(several.norm(), [h.norm() for h in one])


def test_sparse_points():
    S = sp.csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    a, b = RKHSFunction(Linear(), S, np.ones(12)), RKHSFunction(Linear(), S.toarray(), np.ones(12))
    np.testing.assert_allclose((a + a)(S), 2 * b(S.toarray()))


def test_other_spaces_and_shapes_are_refused():
    with pytest.raises(DataError, match="same kernel"):
        f.inner(RKHSFunction(Gaussian(), X, np.ones(12)))
    with pytest.raises(DataError, match="12 points"):
        RKHSFunction(KERNEL, X, np.ones(3))
