"""Intervals hold the truth as often as they say, and tests refuse it as rarely: by simulation, family by family."""

import numpy as np
import pytest

import learnable as ln
from learnable.linear import GLM, infer

ROUNDS = 200
N = 150
GROUPS = np.repeat(np.arange(50), 3)
SLOPE = 0.5


def logistic(rng, eta):
    return (eta + rng.logistic(size=len(eta)) > 0).astype(int)


def gamma_counts(rng, eta, a):
    return rng.poisson(np.exp(eta) * rng.gamma(1 / a, a, len(eta))).astype(float)


#: model, how targets are drawn at the scores η, and the covariance whose level is meant to hold
CASES = {
    "normal": (ln.LinearRegression, lambda rng, eta: eta + rng.normal(size=N), "classical"),
    "normal, unequal spread": (ln.LinearRegression, lambda rng, eta: eta + eta * rng.normal(size=N), "HC3"),
    "logistic": (lambda: ln.LogisticRegression(C=np.inf), logistic, "classical"),
    "probit": (
        lambda: GLM("binomial", link="probit"),
        lambda rng, eta: (eta + rng.normal(size=N) > 0).astype(float),
        "observed",
    ),
    "poisson": (
        lambda: ln.PoissonRegressor(alpha=0),
        lambda rng, eta: rng.poisson(np.exp(eta)).astype(float),
        "classical",
    ),
    "poisson, overdispersed": (
        lambda: ln.PoissonRegressor(alpha=0),
        lambda rng, eta: gamma_counts(rng, eta, 1.0),
        "HC1",
    ),
    "gamma": (
        lambda: ln.GammaRegressor(alpha=0),
        lambda rng, eta: np.exp(eta) * rng.gamma(2.0, 0.5, N),
        "classical",
    ),
    "negative binomial": (
        lambda: GLM("negative-binomial"),
        lambda rng, eta: gamma_counts(rng, eta, 0.5),
        "classical",
    ),
    "firth": (lambda: GLM("binomial", bias_reduction=True), logistic, "classical"),
}


def shares(model, draw, covariance, *, clustered=False, rounds=ROUNDS):
    """Return how often a 90 % interval holds the slope, and how often a true hypothesis is refused at 10 %."""
    rng = np.random.default_rng(0)
    held = 0
    refused = 0
    for _ in range(rounds):
        X = rng.normal(size=(N, 2))
        if clustered:
            X[:, 0] = rng.normal(size=50)[GROUPS]
        y = draw(rng, 0.3 + SLOPE * X[:, 0])
        clusters = GROUPS if covariance == "cluster" else None
        found = infer(model().fit(X, y), X, y, covariance=covariance, clusters=clusters, level=0.9)
        lower, upper = found.conf_int()
        held += int(lower[1] <= SLOPE <= upper[1])
        refused += int(found.wald_test("x1").p_value < 0.1)
    return held / rounds, refused / rounds


def is_near(share, level, rounds=ROUNDS):
    return abs(share - level) < 4 * np.sqrt(0.09 / rounds)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.sampled(6)
def test_levels_are_what_they_say(case):
    held, refused = shares(*CASES[case])
    assert is_near(held, 0.9)
    assert is_near(refused, 0.1)


def common_noise(rng):
    return rng.normal(size=50)[GROUPS]


CLUSTERED = {
    "normal": (ln.LinearRegression, lambda rng, eta: eta + common_noise(rng) + 0.5 * rng.normal(size=N)),
    # the noise that rows share is part of the mean: the slope of the marginal model is the one of the scores
    "poisson": (
        lambda: ln.PoissonRegressor(alpha=0),
        lambda rng, eta: rng.poisson(np.exp(eta) * rng.gamma(2.0, 0.5, 50)[GROUPS]).astype(float),
    ),
}


@pytest.mark.parametrize("case", CLUSTERED)
def test_rows_that_share_their_noise_need_clustered_errors(case):
    model, draw = CLUSTERED[case]
    held, refused = shares(model, draw, "cluster", clustered=True)
    assert is_near(held, 0.9)
    assert is_near(refused, 0.1)
    alone, _ = shares(model, draw, "HC1", clustered=True, rounds=100)
    assert alone < 0.85  # as if all rows were independent: too short
