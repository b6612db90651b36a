"""Mixtures of normal distributions as distributions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import kstest

from learnable.core.errors import ParameterError
from learnable.mixtures import MixedNormal
from learnable.probability import Normal

TWO = MixedNormal([0.3, 0.7], [-1.0, 2.0], [0.5, 1.5])


def test_one_component_is_a_normal_distribution():
    one, plain = MixedNormal([1.0], [1.5], [2.0]), Normal(1.5, 2.0)
    x, p = np.linspace(-5, 8, 7), np.linspace(0.01, 0.99, 7)
    np.testing.assert_allclose(one.logpdf(x), plain.logpdf(x))
    np.testing.assert_allclose(one.cdf(x), plain.cdf(x))
    np.testing.assert_allclose(one.quantile(p), plain.quantile(p), rtol=1e-10)
    assert one.entropy() == pytest.approx(plain.entropy(), rel=1e-8)
    other = MixedNormal([1.0], [0.0], [1.0])
    assert one.kl(other) == pytest.approx(plain.kl(Normal()), rel=1e-6)


def test_moments_and_entropy_are_integrals():
    mean = quad(lambda x: x * TWO.pdf(x), -20, 20, limit=200)[0]
    assert TWO.mean == pytest.approx(mean, rel=1e-8)
    assert TWO.variance == pytest.approx(quad(lambda x: (x - mean) ** 2 * TWO.pdf(x), -20, 20, limit=200)[0], rel=1e-8)
    assert TWO.entropy() == pytest.approx(quad(lambda x: -TWO.pdf(x) * TWO.logpdf(x), -20, 20, limit=200)[0], rel=1e-6)
    assert TWO.kl(TWO) == pytest.approx(0.0, abs=1e-12)


@given(st.integers(0, 2**31), st.floats(0.001, 0.999))
@settings(max_examples=30)
def test_quantiles_invert_the_cdf(seed, p):
    rng = np.random.default_rng(seed)
    many = MixedNormal(rng.dirichlet(np.ones(3), 4), rng.normal(size=(4, 3)) * 10, rng.uniform(0.01, 3.0, (4, 3)))
    np.testing.assert_allclose(many.cdf(many.quantile(p)), p, atol=1e-9)
    low, high = many.interval(0.8)
    np.testing.assert_allclose(many.cdf(high) - many.cdf(low), 0.8, atol=1e-9)


def test_samples_follow_the_distribution():
    assert kstest(TWO.sample(4000, random_state=0), TWO.cdf).pvalue > 1e-3
    assert MixedNormal([[0.5, 0.5]] * 3, [0.0, 1.0], [1.0, 1.0]).sample(5, 0).shape == (5, 3)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([0.5, 0.6], [0.0, 1.0], [1.0, 1.0]), "sum"),
        (([0.5, 0.5], [0.0, 1.0], [1.0, 0.0]), "std"),
        (([0.5, 0.5], [0.0, 1.0, 2.0], [1.0, 1.0]), "components"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(ParameterError, match=message):
        MixedNormal(*arguments)
