"""Inverses of mean-statistic maps over many orders of magnitude."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma

from learnable.core.errors import DataError
from learnable.probability.saddle import solve_dirichlet, solve_log_minus_digamma, solve_wishart_df


@given(log_a=st.floats(-12, 25))
def test_gamma_shape(log_a):
    a = np.exp(log_a)
    with np.errstate(all="raise"):
        gap = np.log(a) - digamma(a) if a < 30 else 0.5 / a + 1 / (12 * a**2) - 1 / (120 * a**4) + 1 / (252 * a**6)
        assert solve_log_minus_digamma(np.asarray(gap)) == pytest.approx(a, rel=1e-11)


@given(logs=st.lists(st.floats(-4, 7), min_size=2, max_size=6))
def test_dirichlet_solves_its_equations(logs):
    alpha = np.exp(np.array(logs))
    target = digamma(alpha) - digamma(alpha.sum())
    found = solve_dirichlet(target)
    np.testing.assert_allclose(digamma(found) - digamma(found.sum()), target, rtol=1e-9, atol=1e-9)


def test_dirichlet_in_batches_is_each_alone():
    alpha = np.array([[0.1, 0.2, 5.0], [30.0, 2.0, 1.0], [1e4, 1e3, 2e4]])
    target = digamma(alpha) - digamma(alpha.sum(axis=-1, keepdims=True))
    np.testing.assert_allclose(solve_dirichlet(target), alpha, rtol=1e-7)


def test_dirichlet_of_a_constant():
    with pytest.raises(DataError, match=r"Dirichlet: .* of a constant"):
        solve_dirichlet(np.log([0.2, 0.3, 0.5]))


@given(excess=st.floats(-5, 8), d=st.integers(1, 6))
def test_wishart_degrees_of_freedom(excess, d):
    df = d - 1.0 + np.exp(excess)
    gap = d * np.log(df / 2) - sum(digamma((df - j) / 2) for j in range(d))
    found = solve_wishart_df(np.asarray(gap), d)
    again = d * np.log(found / 2) - sum(digamma((found - j) / 2) for j in range(d))
    assert again == pytest.approx(gap, rel=1e-8, abs=1e-11)
