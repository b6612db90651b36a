"""Counts of 10⁹, single observations and the edges of the Beta–binomial pair."""

import numpy as np
import pytest
from scipy import stats

from learnable.probability import Beta, BetaBinomial, Binomial


def test_the_notes_posterior():
    posterior = BetaBinomial(2.0, 3.0, n=10).update([4])
    assert (posterior.a, posterior.b) == (6.0, 9.0)
    assert posterior.predictive().pmf(3) == pytest.approx(stats.betabinom(10, 6, 9).pmf(3), rel=1e-12)
    assert posterior.predictive(n=1).p == pytest.approx(0.4)
    assert isinstance(posterior.map(), Binomial)
    assert posterior.map().p == pytest.approx(5 / 13)


def test_counts_of_a_billion_keep_their_digits():
    # Under a flat prior every number of successes has the probability 1/(n + 1).
    n = 1e9
    for x in (0.0, 1.0, 3e8, n - 1.0, n):
        evidence = BetaBinomial(1.0, 1.0, n=n).log_marginal_likelihood([x])
        assert evidence == pytest.approx(-np.log(n + 1.0), rel=1e-12)
    posterior = BetaBinomial(1.0, 1.0, n=n).update([3e8])
    low, high = posterior.interval(0.95)
    half = 1.96 * np.sqrt(0.3 * 0.7 / n)
    assert (low, high) == (pytest.approx(0.3 - half, rel=1e-8), pytest.approx(0.3 + half, rel=1e-8))


def test_one_observation_and_flat_edges():
    posterior = BetaBinomial().update(1)
    assert (posterior.a, posterior.b) == (2.0, 1.0)
    assert posterior.map().p == 1.0
    assert BetaBinomial(0.5, 0.5).update([0]).predictive().p == pytest.approx(0.25)
    assert BetaBinomial(2.0, 2.0).marginal().parameters == Beta(2.0, 2.0).parameters
