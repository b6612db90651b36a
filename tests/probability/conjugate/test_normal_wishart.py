"""The Normal–Wishart pair: one dimension is Normal–Gamma, and the notes' formula, corrected."""

import numpy as np
import pytest

from learnable.core.errors import DataError, ParameterError
from learnable.probability import NormalGamma, NormalWishart


def test_one_dimension_is_the_normal_gamma_pair():
    x = np.array([1.0, 2.5, -0.3])
    wide = NormalWishart([0.3], 1.5, 3.0, [[2.0]])
    narrow = NormalGamma(0.3, 1.5, 1.5, 1.0)
    evidence = wide.log_marginal_likelihood(x[:, None])
    assert evidence == pytest.approx(narrow.log_marginal_likelihood(x), rel=1e-11)
    posterior, scalar = wide.update(x[:, None]), narrow.update(x)
    assert posterior.map().cov[0, 0] == pytest.approx(scalar.map().variance, rel=1e-12)
    low, high = posterior.interval(0.8)["mean"]
    assert (low[0], high[0]) == pytest.approx(scalar.interval(0.8)["mean"], rel=1e-9)
    assert posterior.predictive().logpdf([0.7]) == pytest.approx(scalar.predictive().logpdf(0.7), rel=1e-11)


def test_worked_update():
    posterior = NormalWishart([0.0, 0.0], 1.0, 4.0, np.eye(2)).update([[1.0, 2.0], [3.0, 0.0]])
    # x̄ = (2, 1), S = [[2, -2], [-2, 2]], nκ₀/(n + κ₀) = 2/3.
    expected = np.eye(2) + [[2.0, -2.0], [-2.0, 2.0]] + 2.0 / 3.0 * np.outer([2.0, 1.0], [2.0, 1.0])
    np.testing.assert_allclose(posterior.scatter, expected, rtol=1e-14)
    assert posterior.df == 6.0 and posterior.kappa == 3.0


def test_fewer_observations_than_dimensions():
    posterior = NormalWishart(np.zeros(5)).update(np.ones((1, 5)))
    assert np.isfinite(posterior.predictive().logpdf(np.zeros(5)))
    assert np.linalg.eigvalsh(posterior.map().cov).min() > 0.0


def test_refusals():
    with pytest.raises(ParameterError, match="NormalWishart: df must be > 1"):
        NormalWishart([0.0, 0.0], df=1.0)
    with pytest.raises(ParameterError, match="scatter must be 2 by 2"):
        NormalWishart([0.0, 0.0], scatter=np.eye(3))
    with pytest.raises(DataError, match="an observation must have 2 entries, got 3"):
        NormalWishart([0.0, 0.0]).update([[1.0, 2.0, 3.0]])
    with pytest.raises(ParameterError, match="map needs df > 2"):
        NormalWishart([0.0, 0.0], df=1.5).map()
