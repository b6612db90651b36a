"""The negative binomial distribution against SciPy, with counts of 10⁹."""

import numpy as np
import pytest
from scipy import stats

from learnable.core.errors import ParameterError
from learnable.probability import NegativeBinomial


def test_functions_against_scipy():
    r, p = np.array([0.4, 7.0]), np.array([0.1, 0.6])
    ours, theirs = NegativeBinomial(r, p), stats.nbinom(r, p)
    x = np.array([-1.0, 0.0, 1.0, 2.5, 40.0])[:, None]
    np.testing.assert_allclose(ours.logpmf(x[[0, 1, 2, 4]]), theirs.logpmf(x[[0, 1, 2, 4]]), rtol=1e-11)
    assert np.all(ours.logpmf(2.5) == -np.inf)
    np.testing.assert_allclose(ours.cdf(x), theirs.cdf(x), rtol=1e-11)
    np.testing.assert_allclose(ours.quantile([[0.2], [0.999]]), theirs.ppf([[0.2], [0.999]]))
    np.testing.assert_allclose([ours.mean, ours.variance], [theirs.mean(), theirs.var()])
    k = np.arange(2000.0)
    for j in range(2):
        pmf = ours[j].pmf(k)
        assert ours[j].entropy() == pytest.approx(-(pmf[pmf > 0] * np.log(pmf[pmf > 0])).sum(), rel=1e-8)
    other = NegativeBinomial(3.0, 0.3)
    pmf = ours[1].pmf(k[:400])
    expected = (pmf * (ours[1].logpmf(k[:400]) - other.logpmf(k[:400]))).sum()
    assert ours[1].kl(other) == pytest.approx(expected, rel=1e-8)


def test_a_billion():
    # r = 1 is geometric.
    p = 1e-9
    x = 2e9
    expected = np.log(p) + x * np.log1p(-p)
    assert NegativeBinomial(1.0, p).logpmf(x) == pytest.approx(expected, rel=1e-11)


def test_samples_and_refusals():
    x = NegativeBinomial(3.0, 0.4).sample(4000, random_state=0)
    assert abs(x.mean() - 4.5) < 5 * np.sqrt(4.5 / 0.4 / 4000)
    with pytest.raises(ParameterError, match="NegativeBinomial: p must be between 0 and 1"):
        NegativeBinomial(1.0, 1.0)
