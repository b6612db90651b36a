"""The Normal–Gamma prior is the Normal–inverse-Gamma prior of the reciprocal."""

import numpy as np
import pytest

from learnable.core.errors import ParameterError
from learnable.probability import Normal, NormalGamma, NormalInverseGamma

NUMBERS = (0.3, 1.2, 2.0, 0.7)
X = [1.0, -0.4, 2.0]


def test_both_say_the_same():
    one, other = NormalGamma(*NUMBERS), NormalInverseGamma(*NUMBERS)
    assert one.log_marginal_likelihood(X) == pytest.approx(other.log_marginal_likelihood(X), rel=1e-12)
    assert one.update(X).predictive().parameters == other.update(X).predictive().parameters
    member = Normal(0.8, 1.3)
    # dτ = σ⁻⁴ dσ²
    assert one.logpdf(member) == pytest.approx(other.logpdf(member) + 4.0 * np.log(member.std), rel=1e-12)
    low, high = one.interval(0.9)["precision"]
    assert other.interval(0.9)["variance"] == pytest.approx((1.0 / high, 1.0 / low))


def test_no_mode():
    with pytest.raises(ParameterError, match="NormalGamma: map needs shape > 1/2"):
        NormalGamma(0.0, 1.0, 0.5, 1.0).map()
