"""Checks of derivatives: right ones pass on every scale, one wrong entry is found and named."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.solvers.functions import rosenbrock, soft_plus_sum

from learnable.core.errors import DataError, ParameterError
from learnable.solvers import check_gradient, check_hessian, check_jacobian
from learnable.solvers.derivatives import numerical_jacobian


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(-8, 8), st.floats(-8, 8))
def test_right_derivatives_pass_on_every_scale(seed, log_value, log_x):
    rng = np.random.default_rng(seed)
    a, x = rng.normal(size=4), rng.normal(size=4)
    c, s = 10.0**log_value, 10.0**log_x
    z = x / s
    check = check_gradient(lambda u: c * np.sin(s * u @ a / 3), lambda u: c * s * a / 3 * np.cos(s * u @ a / 3), z)
    # Coordinates far smaller than one have derivatives that differences around them can only see for smooth functions.
    if s <= 10:
        assert check


def test_right_derivatives_of_real_functions_pass():
    for problem, x in ((rosenbrock(), [0.3, -0.7]), (soft_plus_sum(), np.linspace(-1, 1, 5))):
        assert check_gradient(problem._value, problem._gradient, x)
        assert check_hessian(problem._gradient, problem._hessian, x)
        assert check_hessian(problem._gradient, lambda z, p=problem: lambda v: p._hessian(z) @ v, x)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 4), st.floats(1e-4, 1.0))
def test_one_wrong_entry_is_found_and_named(entry, share):
    problem, x = soft_plus_sum(), np.linspace(-1, 1, 5)

    def wrong(w):
        g = problem._gradient(w)
        g[entry] *= 1 + share
        return g

    check = check_gradient(problem._value, wrong, x)
    assert not check
    assert check.where == (entry,)
    assert check.worst == pytest.approx(share / (1 + share), rel=1e-3)
    assert f"WRONG at [{entry}]" in repr(check)


def test_a_transposed_jacobian_is_wrong():
    f = lambda z: np.array([z[0] * z[1], z[1] ** 2])  # noqa: E731
    J = lambda z: np.array([[z[1], z[0]], [0.0, 2 * z[1]]])  # noqa: E731
    assert check_jacobian(f, J, [2.0, 3.0])
    assert not check_jacobian(f, lambda z: J(z).T, [2.0, 3.0])


def test_an_asymmetric_hessian_is_wrong():
    assert not check_hessian(lambda z: z[::-1].copy(), lambda z: np.array([[0.0, 1.0], [0.9, 0.0]]), [1.0, 2.0])


def test_rounding_noise_is_not_blamed_on_the_gradient():
    big = 1e9  # a large constant leaves seven digits of the differences
    assert check_gradient(lambda x: big + x @ x, lambda x: 2 * x, [1.0, 2.0])
    assert not check_gradient(lambda x: big + x @ x, lambda x: 3 * x, [1.0, 2.0])


def test_nan_is_wrong():
    check = check_gradient(lambda x: x @ x, lambda x: np.full(2, np.nan), [1.0, 2.0])
    assert not check
    assert check.worst == np.inf


def test_a_zero_gradient_passes():
    assert check_gradient(lambda x: 7.0, lambda x: np.zeros(3), np.ones(3))


def test_plain_differences_have_ten_digits():
    J = numerical_jacobian(lambda z: np.array([np.exp(z[0]) * z[1], z[1] ** 3]), np.array([0.5, 2.0]))
    np.testing.assert_allclose(J, [[2 * np.exp(0.5), np.exp(0.5)], [0.0, 12.0]], rtol=1e-9, atol=1e-12)


def test_functions_and_points_are_not_changed():
    x = np.array([1.0, 2.0])
    check_gradient(lambda z: z @ z, lambda z: z.__imul__(2), x)
    assert np.array_equal(x, [1.0, 2.0])


@pytest.mark.parametrize("x", [[], [[1.0]], [np.nan], [np.inf, 1.0], "abc", None])
def test_bad_points_are_refused(x):
    with pytest.raises(DataError, match="check_gradient: x must be"):
        check_gradient(lambda z: z @ z, lambda z: 2 * z, x)


def test_bad_shapes_are_refused():
    with pytest.raises(DataError, match="shape"):
        check_gradient(lambda z: z @ z, lambda z: 1.0, [1.0, 2.0])
    with pytest.raises(DataError, match="one number"):
        check_gradient(lambda z: z, lambda z: z, [1.0, 2.0])
    with pytest.raises(DataError, match="shape"):
        check_jacobian(lambda z: z, lambda z: np.eye(3), [1.0, 2.0])
    with pytest.raises(ParameterError, match="tolerance"):
        check_gradient(lambda z: z @ z, lambda z: 2 * z, [1.0], tolerance=-1)
