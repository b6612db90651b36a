"""Inequalities: their numbers, their inversions, and their truth near the extremal case."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from learnable.core.errors import DataError, ParameterError
from learnable.theory import concentration as c

RNG_SAMPLE = np.random.default_rng(0).beta(1, 9, 500)


def examples(n=40):
    return [
        c.Chebyshev(n, variance=0.09),
        c.Chebyshev(n, sides=2, variance=0.09),
        c.Hoeffding(n),
        c.Hoeffding(n, sides=2, low=-1.0, high=3.0),
        c.RademacherSum(n, mean_square=2.0),
        c.Azuma(n, sides=2, mean_square=0.5),
        c.McDiarmid(n, difference=1.0 / n),
        c.EmpiricalMinimum(n),
        c.Bennett(n, variance=0.09),
        c.Bernstein(n, sides=2, variance=0.09, bound=2.0),
        c.EmpiricalBernstein(n, variance=0.04),
        c.Chernoff(n, mean=0.3),
        c.Chernoff(n, sides=2, mean=0.3),
        c.KLBound(n, mean=0.2),
        c.KLBound(n, sides=2, mean=0.2),
        c.ClopperPearson(n, errors=6),
        c.ClopperPearson(n, sides=2, errors=6),
    ]


each = pytest.mark.parametrize("inequality", examples(), ids=lambda one: f"{one.name}, {one.sides}")


# Reference numbers.


def test_binomial_inversions_have_all_their_digits():
    """The research note prints .358976827934 and kl .28252880089/.20065891277: wrong from the tenth digit on."""
    with mpmath.workdps(30):
        exact = mpmath.findroot(lambda p: mpmath.betainc(193, 408, 0, p, regularized=True) - mpmath.mpf("0.975"), 0.359)
        q = mpmath.mpf("0.24")
        divergence = lambda p: q * mpmath.log(q / p) + (1 - q) * mpmath.log((1 - q) / (1 - p))  # noqa: E731
        upper = mpmath.findroot(lambda p: divergence(p) - mpmath.log(40) / 800, 0.28)
        lower = mpmath.findroot(lambda p: divergence(p) - mpmath.log(40) / 800, 0.2)
    assert c.binomial_upper(192, 600, 0.025) == pytest.approx(float(exact), rel=1e-12)
    assert c.binomial_upper(192, 600, 0.025) == pytest.approx(0.358976827934, abs=2e-10)
    bound = math.log(40) / 800
    assert c.kl_upper(0.24, bound) == pytest.approx(float(upper), rel=1e-12)
    assert c.kl_lower(0.24, bound) == pytest.approx(float(lower), rel=1e-12)
    assert c.kl_upper(0.24, bound) == pytest.approx(0.28252880089, abs=3e-10)
    assert c.kl_lower(0.24, bound) == pytest.approx(0.20065891277, abs=3e-10)


def test_numbers_of_the_research_note():
    assert c.binomial_upper(192, 800, 0.025) == pytest.approx(0.27114663, abs=5e-9)
    assert c.binomial_lower(192, 800, 0.025) == pytest.approx(0.21078326, abs=5e-9)
    assert c.binomial_upper(0, 100, 0.05) == pytest.approx(0.029513, abs=5e-7)
    assert c.binomial_upper(10, 100, 0.05) == pytest.approx(0.163718, abs=5e-7)
    assert c.binomial_upper(67, 332, 0.05) == pytest.approx(0.241477, abs=5e-7)
    assert 0.1 + c.KLBound(100, mean=0.1).radius(0.05) == pytest.approx(0.188829, abs=5e-7)
    assert 0.1 + c.Hoeffding(100).radius(0.05) == pytest.approx(0.222387, abs=5e-7)
    ten = [1.0] * 10 + [0.0] * 90
    assert 0.1 + c.EmpiricalBernstein.of(ten).radius(0.05) == pytest.approx(0.268840, abs=5e-7)
    assert c.Hoeffding(1, sides=2).sample_size(0.01, 0.05) == 18_445
    assert c.Hoeffding(1, sides=2).sample_size(0.02, 0.05) == 4_612
    assert c.ClopperPearson(1, errors=0).sample_size(0.01, 0.05) == 299


def test_betting_is_as_tight_as_published():
    low, high = c.betting_interval(RNG_SAMPLE, 0.05)
    assert (low, high) == pytest.approx((0.0906, 0.1151), abs=2e-4)
    assert c.EmpiricalBernstein.of(RNG_SAMPLE, sides=2).radius(0.05) == pytest.approx(0.0323, abs=5e-5)
    assert c.Hoeffding(500, sides=2).radius(0.05) == pytest.approx(0.0607, abs=5e-5)


def test_betting_interval_is_that_of_a_grid_of_means():
    """An oracle that follows the definition: the capital of both gamblers, mean by mean, value by value."""
    x = RNG_SAMPLE[:60]
    alpha, n = 0.1, 60
    kept = []
    for m in np.linspace(0.001, 0.999, 999):
        up = down = 1.0
        total, squares, variance = 0.0, 0.0, 0.25
        refuted = False
        for i, value in enumerate(x, 1):
            bet = math.sqrt(2.0 * math.log(2.0 / alpha) / (n * variance))
            up *= 1.0 + min(bet, 0.5 / m) * (value - m)
            down *= 1.0 - min(bet, 0.5 / (1.0 - m)) * (value - m)
            total += value
            squares += (value - (0.5 + total) / (i + 1)) ** 2
            variance = (0.25 + squares) / (i + 1)
            refuted |= max(0.5 * up, 0.5 * down) >= 1.0 / alpha
        if not refuted:
            kept.append(m)
    low, high = c.betting_interval(x, alpha)
    assert kept[0] - 0.001 <= low <= kept[0] + 1e-9
    assert kept[-1] - 1e-9 <= high <= kept[-1] + 0.001


# Laws.


@each
def test_radius_and_sample_size_invert_the_tail(inequality):
    for delta in (0.3, 0.05, 1e-4):
        radius = inequality.radius(delta)
        assert inequality.tail(radius * (1 + 1e-9)) <= delta * (1 + 1e-6)
        assert inequality.tail(radius * (1 - 1e-6)) >= delta * (1 - 1e-3) or radius >= 0.69
    for eps in (0.3, 0.05):
        n = inequality.sample_size(eps, 0.05)
        assert inequality._at(n).radius(0.05) <= eps
        assert n == 1 or inequality._at(n - 1).radius(0.05) > eps


@each
def test_every_inequality_says_what_it_is(inequality):
    assert inequality.statement and inequality.source and inequality.assumptions
    checks = inequality.check(np.clip(RNG_SAMPLE, 0.0, 1.0))
    assert all(check.assumption and check.detail for check in checks)
    assert inequality.tail(0.0) == 1.0
    assert inequality.tail(1e6) <= 1e-4


def test_markov_is_attained_and_no_sample_size_helps_it():
    markov = c.Markov(mean=0.5)
    assert markov.tail(5.0) == 0.1
    assert markov.radius(0.1) == pytest.approx(5.0)
    with pytest.raises(ParameterError, match="no sample size"):
        markov.sample_size(0.1, 0.05)


@settings(max_examples=60, deadline=None)
@given(q=st.floats(0.0, 1.0), bound=st.floats(1e-6, 20.0))
def test_kl_inverse_inverts(q, bound):
    p = c.kl_upper(q, bound)
    assert q <= p <= 1.0
    if p < 1.0 - 1e-9:
        assert c.binary_kl(q, p) == pytest.approx(bound, rel=1e-6, abs=1e-12)
    assert c.kl_lower(q, bound) <= q


@settings(max_examples=60, deadline=None)
@given(n=st.integers(2, 500), share=st.floats(0.0, 1.0), delta=st.floats(1e-6, 0.5))
def test_exact_is_below_kl_is_below_hoeffding(n, share, delta):
    errors = round(share * n)
    exact = c.binomial_upper(errors, n, delta)
    kl = c.kl_upper(errors / n, math.log(1.0 / delta) / n)
    assert exact <= kl + 1e-12
    assert kl <= errors / n + c.Hoeffding(n).radius(delta) + 1e-9
    assert c.Bennett(n, variance=0.1).radius(delta) <= c.Bernstein(n, variance=0.1).radius(delta) * (1 + 1e-9)


# The truth, near the extremal case.


@pytest.mark.parametrize(
    ("inequality", "mean"),
    [
        (c.Hoeffding(50), 0.5),
        (c.Chebyshev(50, variance=0.25), 0.5),
        (c.Bennett(50, variance=0.09, bound=0.9), 0.1),
        (c.Bernstein(50, variance=0.09, bound=0.9), 0.1),
        (c.Chernoff(50, mean=0.1), 0.1),
        (c.EmpiricalMinimum(50), 0.5),
        (c.McDiarmid(50, difference=0.02), 0.5),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_tails_are_above_those_of_coins(inequality, mean):
    """Two-point values are the extremal case of all of these; their tail is a sum of binomial probabilities."""
    counts = np.arange(51)
    for count in counts[counts > 50 * mean]:
        t = count / 50 - mean
        truth = binom.sf(count - 1, 50, mean)
        assert inequality.tail(t) >= truth * (1.0 - 1e-9)  # attained at the end of the range
    near = 50 * mean + 10
    if inequality.name != "Chebyshev":
        assert inequality.tail(near / 50 - mean) < 60 * binom.sf(near - 1, 50, mean) + 0.01


def test_random_signs_and_a_martingale_stay_within_their_tails():
    rng = np.random.default_rng(1)
    signs = rng.choice([-1.0, 1.0], size=(20_000, 60))
    weights = rng.uniform(0.5, 2.0, 60)
    mean = signs @ weights / 60
    inequality = c.RademacherSum.of(weights)
    stakes = np.ones_like(signs)
    for i in range(1, 60):  # bets that depend on the past: 1 after a loss, ½ after a win
        stakes[:, i] = np.where(signs[:, i - 1] > 0, 0.5, 1.0)
    martingale = (signs * stakes).mean(axis=1)
    for t in (0.1, 0.2, 0.3):
        assert (mean >= t).mean() <= inequality.tail(t)
        assert (martingale >= t).mean() <= c.Azuma(60).tail(t)
    assert (mean >= 0.3).mean() > 0.1 * inequality.tail(0.3)


@pytest.mark.parametrize("p", [0.02, 0.1, 0.5])
def test_confidence_bounds_of_coins_cover(p):
    """The exact probability that a bound lies below the truth, summed over all counts."""
    n, delta = 80, 0.05
    mass = binom.pmf(np.arange(n + 1), n, p)
    for upper in (
        lambda k: c.binomial_upper(k, n, delta),
        lambda k: c.kl_upper(k / n, math.log(1 / delta) / n),
        lambda k: k / n + c.EmpiricalBernstein.of([1.0] * k + [0.0] * (n - k)).radius(delta),
    ):
        missed = sum(mass[k] for k in range(n + 1) if upper(k) < p)
        assert missed <= delta
    exact = sum(mass[k] for k in range(n + 1) if c.binomial_upper(k, n, delta) < p)
    assert exact > 0.2 * delta or p == 0.02


@pytest.mark.sampled(6)
@pytest.mark.parametrize("draw", ["coins", "beta", "rare"])
def test_betting_covers(draw):
    rng = np.random.default_rng(3)
    trials, n, delta = 400, 60, 0.1
    misses = sequence_misses = 0
    for _ in range(trials):
        if draw == "coins":
            x, mean = (rng.random(n) < 0.3).astype(float), 0.3
        elif draw == "beta":
            x, mean = rng.beta(0.5, 2.0, n), 0.2
        else:
            x, mean = (rng.random(n) < 0.02).astype(float), 0.02
        low, high = c.betting_interval(x, delta)
        misses += not low <= mean <= high
        _, lows, highs = c.betting_sequence(x, delta, times=[10, 30, 60])
        sequence_misses += not bool(((lows <= mean) & (mean <= highs)).all())
    # A rate of δ is exceeded by this much once in ten thousand runs.
    limit = binom.isf(1e-4, trials, delta)
    assert misses <= limit
    assert sequence_misses <= limit


def test_assumptions_broken_on_purpose_break_the_inequality():
    rng = np.random.default_rng(4)
    # Dependent rows: one coin, repeated.
    same = np.repeat(rng.random((4000, 1)) < 0.5, 50, axis=1).mean(axis=1)
    t = c.Hoeffding(50).radius(0.05)
    assert (same - 0.5 >= t).mean() > 0.3
    # Values outside the range.
    wide = 10.0 * (rng.random((4000, 50)) < 0.1).mean(axis=1)
    assert (wide - 1.0 >= t).mean() > 0.2
    # A variance larger than stated.
    coins = (rng.random((4000, 50)) < 0.5).mean(axis=1)
    assert (coins - 0.5 >= c.Bernstein(50, variance=0.001, bound=0.5).radius(0.05)).mean() > 0.1
    # A martingale with drift.
    assert ((2.0 * rng.integers(0, 2, (4000, 50)) - 1 + 0.5).mean(axis=1) >= c.Azuma(50).radius(0.05)).mean() > 0.5


def test_checks_notice_what_is_broken():
    rng = np.random.default_rng(5)
    x = rng.random(400)
    trend = np.sort(x)
    assert c.Hoeffding(400).check(x)[0].holds is None
    assert c.Hoeffding(400).check(trend)[0].holds is False
    assert c.Hoeffding(400).check(2.0 * x)[1].holds is False
    assert c.Bernstein(400, variance=0.01).check(x)[1].holds is False
    assert c.ClopperPearson(400, errors=3).check(x)[1].holds is False
    assert c.Markov(mean=1.0).check(x - 0.5)[1].holds is False
    assert c.Azuma(400).check(x)[0].holds is False
    neighbours = np.repeat(rng.random(100), 4)
    assert c.Hoeffding(400).check(neighbours)[0].holds is False


def test_false_alarms_are_rare():
    rng = np.random.default_rng(6)
    alarms = sum(c.Hoeffding(50).check(rng.random(50))[0].holds is False for _ in range(2000))
    assert alarms <= 10


def test_the_empirical_minimum_concentrates_below_the_smallest_risk():
    rng = np.random.default_rng(7)
    risks = np.linspace(0.3, 0.5, 20)
    minima = (rng.random((3000, 100, 20)) < risks).mean(axis=1).min(axis=1)
    assert minima.mean() <= 0.3
    inequality = c.EmpiricalMinimum(100)
    for t in (0.05, 0.1):
        assert (minima - minima.mean() >= t).mean() <= inequality.tail(t)


def test_jensen_gap_lies_between_its_bounds():
    rng = np.random.default_rng(8)
    x = rng.uniform(-1.0, 1.0, 200)
    gap = c.jensen_gap(np.exp, x, curvature=(math.exp(-1), math.e))
    assert gap.low <= gap.gap <= gap.high
    weighted = c.jensen_gap(np.square, [0.0, 1.0], weights=[3.0, 1.0])
    assert weighted.gap == pytest.approx(0.25 * 0.75)
    assert c.jensen_gap(lambda v: 2.0 * v, x).gap == pytest.approx(0.0, abs=1e-12)


def test_compare_sorts_and_says_why():
    found = c.compare_inequalities(RNG_SAMPLE)
    assert found[0].name == "betting"
    assert found[-1].name == "Clopper–Pearson" and "0 or 1" in found[-1].reason
    finite = [one.upper for one in found[:-1]]
    assert finite == sorted(finite)
    coins = c.compare_inequalities([0.0, 0.0, 2.0] * 50, high=2.0)
    assert coins[0].name == "Clopper–Pearson"
    assert coins[0].upper == pytest.approx(2.0 * c.binomial_upper(50, 150, 0.05))


@pytest.mark.parametrize(
    "call",
    [
        lambda: c.Hoeffding(10).radius(0.0),
        lambda: c.Hoeffding(10).radius(1.0),
        lambda: c.Hoeffding(0),
        lambda: c.Hoeffding(10, sides=3),
        lambda: c.Hoeffding(10, low=1.0, high=0.0),
        lambda: c.Bernstein(10, variance=-1.0),
        lambda: c.ClopperPearson(10, errors=11),
        lambda: c.binomial_upper(5, 3, 0.1),
        lambda: c.betting_interval([0.5, 2.0]),
        lambda: c.compare_inequalities([0.5, 2.0]),
        lambda: c.compare_inequalities([np.nan]),
        lambda: c.kl_upper(2.0, 0.1),
        lambda: c.betting_sequence([0.1, 0.2], times=[3]),
    ],
)
def test_bad_arguments_are_refused(call):
    with pytest.raises((ParameterError, DataError), match=r"must be|outside|sample is"):
        call()
