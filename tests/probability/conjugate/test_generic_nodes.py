"""Finite mixtures of a family, the predictive distributions on nodes."""

import numpy as np
import pytest
from scipy import integrate

from learnable.core.errors import ParameterError
from learnable.probability import Gamma
from learnable.probability.conjugate.generic import FamilyMixture

MIXTURE = FamilyMixture(Gamma([1.0, 5.0], [1.0, 2.0]), [0.25, 0.75])


def test_moments_density_and_cdf():
    mean, _ = integrate.quad(lambda x: x * MIXTURE.pdf(x), 0.0, 60.0)
    second, _ = integrate.quad(lambda x: x * x * MIXTURE.pdf(x), 0.0, 60.0)
    assert MIXTURE.mean == pytest.approx(mean, rel=1e-8)
    assert MIXTURE.variance == pytest.approx(second - mean**2, rel=1e-7)
    assert MIXTURE.cdf(2.0) == pytest.approx(integrate.quad(MIXTURE.pdf, 0.0, 2.0)[0], rel=1e-8)
    assert MIXTURE.sample((3, 2), random_state=0).shape == (3, 2)
    assert np.ndim(MIXTURE.sample(random_state=0)) == 0


def test_refusals():
    with pytest.raises(ParameterError, match="no closed form"):
        MIXTURE.entropy()
    with pytest.raises(ParameterError, match="no closed form"):
        MIXTURE.kl(MIXTURE)
    with pytest.raises(ParameterError, match="sum 1"):
        FamilyMixture(Gamma([1.0, 2.0]), [0.5, 0.6])
    with pytest.raises(ParameterError, match="one per member"):
        FamilyMixture(Gamma([1.0, 2.0]), [1.0])
