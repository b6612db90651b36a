"""What simulations show: means settle, sums become normal as fast as Berry and Esseen say, and what breaks it."""

import math
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.stats import binom

from learnable.core.errors import ParameterError
from learnable.theory import demonstrate as d


@pytest.mark.parametrize("name", ["coin", "rare", "uniform", "exponential"])
def test_moments_of_the_laws_are_those_of_their_draws(name):
    law = d.LAWS[name]
    x = law.draw(np.random.default_rng(0), (400_000,))
    assert x.mean() == pytest.approx(law.mean, abs=5 * math.sqrt(law.variance / 400_000))
    assert x.var() == pytest.approx(law.variance, rel=0.02)
    assert (np.abs(x - law.mean) ** 3).mean() == pytest.approx(law.third, rel=0.03)


def test_means_settle_within_chebyshevs_band_as_often_as_stated_and_cauchys_do_not():
    shown = d.law_of_large_numbers("rare", n=3000, runs=400, delta=0.05)
    outside = np.abs(shown.values - 0.05) >= shown.bound
    assert outside.mean(axis=0).max() <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 400)
    wild = d.law_of_large_numbers("cauchy", n=3000, runs=400)
    early, late = np.median(np.abs(wild.values[:, 5])), np.median(np.abs(wild.values[:, -1]))
    assert late > 0.5 * early  # the mean of Cauchy values is Cauchy again


def test_distance_of_coins_is_the_exact_one():
    """For coins the distance is a maximum over binomial probabilities."""
    n = 16
    shown = d.central_limit("coin", sizes=(4, n), draws=40_000)
    k = np.arange(n + 1)
    z = (k - n / 2) / math.sqrt(n / 4)
    from scipy.special import ndtr

    above = np.abs(binom.cdf(k, n, 0.5) - ndtr(z)).max()
    below = np.abs(binom.cdf(k - 1, n, 0.5) - ndtr(z)).max()
    assert shown.values[1] == pytest.approx(max(above, below), abs=4 / math.sqrt(40_000))
    assert max(above, below) <= shown.bound[1]


@pytest.mark.parametrize("name", ["coin", "rare", "uniform", "exponential"])
def test_berry_esseen_holds(name):
    shown = d.central_limit(name, sizes=(1, 4, 16, 64), draws=10_000)
    assert (shown.values <= shown.bound + 1.95 / math.sqrt(10_000)).all()
    assert shown.values[-1] < shown.values[0]


def test_consistent_and_inconsistent_estimators():
    mean = d.consistency(lambda x: x.mean(axis=1), 1.0)
    assert mean.values[-1, 1] * math.sqrt(3000 / 10) == pytest.approx(mean.values[0, 1], rel=0.2)
    smallest = d.consistency(lambda x: x.min(axis=1), 0.5)
    assert smallest.values[-1, 1] > 0.4


@pytest.mark.parametrize(
    "shown", [d.law_of_large_numbers(n=50), d.central_limit(sizes=(1, 2), draws=500), d.law_of_large_numbers("cauchy")]
)
def test_figures_move(shown):
    root = ElementTree.fromstring(shown.figure)
    assert sum(node.tag.endswith("animate") for node in root.iter()) >= 2
    assert shown.statement


def test_bad_arguments_are_refused():
    with pytest.raises(ParameterError):
        d.central_limit("cauchy")
    with pytest.raises(ParameterError):
        d.law_of_large_numbers("gauss")
    with pytest.raises(ParameterError):
        d.central_limit(sizes=(4, 2))
