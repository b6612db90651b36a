"""The Lomax distribution against SciPy."""

import numpy as np
import pytest
from scipy import integrate, stats

from learnable.core.errors import ParameterError
from learnable.probability import Lomax


def test_functions_against_scipy():
    ours, theirs = Lomax([0.7, 2.5], 1.3), stats.lomax([0.7, 2.5], scale=1.3)
    x = np.array([-1.0, 0.0, 1e-9, 2.0, 1e6])[:, None]
    np.testing.assert_allclose(ours.logpdf(x), theirs.logpdf(x), rtol=1e-12)
    np.testing.assert_allclose(ours.cdf(x), theirs.cdf(x), rtol=1e-12)
    np.testing.assert_allclose(ours.quantile([[0.0], [0.3], [1.0]]), theirs.ppf([[0.0], [0.3], [1.0]]), rtol=1e-12)
    np.testing.assert_allclose(ours.entropy(), theirs.entropy(), rtol=1e-12)
    np.testing.assert_allclose([ours.mean, ours.variance], [theirs.mean(), theirs.var()], rtol=1e-12)
    assert stats.kstest(Lomax(2.5, 1.3).sample(2000, random_state=0), stats.lomax(2.5, scale=1.3).cdf).pvalue > 1e-3


def test_divergence():
    p, q = Lomax(2.5, 1.3), Lomax(1.5, 1.0)
    expected, _ = integrate.quad(lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), 0.0, np.inf)
    assert p.kl(q) == pytest.approx(expected, rel=1e-7)
    with pytest.raises(ParameterError, match="Lomax: shape must be > 0"):
        Lomax(0.0)
