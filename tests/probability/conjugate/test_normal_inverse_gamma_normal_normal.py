"""The Normal–Normal pair at extreme scales and in the limits of the notes."""

import pytest

from learnable.probability import NormalNormal


def test_limits_of_the_prior():
    x = [2.0, 4.0]
    assert NormalNormal(0.0, 1e150, 1.0).update(x).mean == pytest.approx(3.0)
    assert NormalNormal(7.0, 1e-150, 1.0).update(x).mean == pytest.approx(7.0)
    # The weight of μ₀ is (σ²/n)/(σ²/n + σ₀²).
    assert NormalNormal(1.0, 2.0, 3.0).update(x).mean == pytest.approx(3.0 + (4.5 / (4.5 + 4.0)) * (1.0 - 3.0))


def test_extreme_scales():
    for s in (1e-300, 1e300):
        posterior = NormalNormal(0.0, s, s).update([s])
        assert posterior.mean == pytest.approx(0.5 * s, rel=1e-12)
        assert posterior.predictive().std == pytest.approx(s * 1.5**0.5, rel=1e-12)


def test_a_large_mean_keeps_its_spread():
    posterior = NormalNormal(1e9, 1.0, 1e-3).update([1e9 + 0.25, 1e9 + 0.75])
    assert posterior.mean - 1e9 == pytest.approx(0.5, abs=1e-6)
