"""The conjugate prior of any exponential family."""

import pickle

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import gammaln
from tests.probability.families import EXPONENTIAL

from learnable.core.errors import DataError, NotExponentialFamilyError, ParameterError
from learnable.probability import ExponentialFamilyPrior, Gamma, Normal, StudentT

CLOSED = [name for name in EXPONENTIAL if ExponentialFamilyPrior(EXPONENTIAL[name][0], 2.0).pair() is not None]
NUMERIC = [name for name in EXPONENTIAL if name not in CLOSED]


@pytest.mark.parametrize("name", EXPONENTIAL)
def test_update_adds_statistics(name):
    member = EXPONENTIAL[name][1]
    prior = ExponentialFamilyPrior(EXPONENTIAL[name][0], 2.5)
    x = member.sample(6, random_state=0)
    posterior = prior.update(x)
    np.testing.assert_allclose(posterior.tau, prior.tau + member.sufficient_statistic(x).sum(axis=0), rtol=1e-12)
    assert posterior.strength == 8.5
    again = prior.update(x[:2]).update(statistics=member.sum_statistic(x[2:]))
    np.testing.assert_allclose(again.tau, posterior.tau, rtol=1e-10)
    # The mode in η is the member whose mean statistic is τ/τ₀.
    np.testing.assert_allclose(posterior.map().mean_statistic, posterior.expected_mean_statistic, rtol=1e-7, atol=1e-9)
    assert pickle.loads(pickle.dumps(posterior)).map().parameters.keys() == member.parameters.keys()


@pytest.mark.parametrize("name", CLOSED)
def test_pairs_have_the_expected_mean_statistic(name):
    """E[E(t(x) | η)] = τ/τ₀: the theorem of Diaconis and Ylvisaker, by simulation with an error bar."""
    prior = ExponentialFamilyPrior(EXPONENTIAL[name][0], 6.0)
    statistic = prior.sample(40_000, random_state=0).mean_statistic
    if name == "Multinomial":  # its pair is about one draw
        statistic = statistic * EXPONENTIAL[name][0].n
    error = statistic.std(axis=0) / np.sqrt(len(statistic))
    assert np.all(np.abs(statistic.mean(axis=0) - prior.expected_mean_statistic) < 5.0 * error + 1e-12)


@pytest.mark.parametrize("name", NUMERIC)
def test_nodes_have_the_expected_mean_statistic(name):
    prior = ExponentialFamilyPrior(EXPONENTIAL[name][0], 6.0)
    nodes = prior._on_nodes()
    found = nodes.weights @ nodes.members.mean_statistic
    exact = name not in ("Wishart", "InverseWishart")  # four coordinates: importance sampling
    np.testing.assert_allclose(
        found, prior.expected_mean_statistic, rtol=1e-6 if exact else 0.05, atol=0.02 * (not exact)
    )


def test_normalising_constant_of_the_gamma_family():
    posterior = ExponentialFamilyPrior(Gamma(2.0, 1.0), 1.5).update([0.5, 1.0, 1.5, 3.0])
    tau, n = posterior.tau, float(posterior.strength)

    def inner(a):  # the rate integrates in closed form: ∫ b^(na) e^(-b τ₁) db
        return np.exp((a - 1.0) * tau[0] - n * gammaln(a) + gammaln(n * a + 1.0) - (n * a + 1.0) * np.log(tau[1]))

    total = integrate.quad(inner, 0.0, 200.0, epsabs=0.0, epsrel=1e-12, limit=500)[0]
    assert posterior._on_nodes().log_total == pytest.approx(np.log(total), abs=1e-9)


def test_evidence_is_the_product_of_predictions():
    prior, data = ExponentialFamilyPrior(Gamma(2.0, 1.0), 2.0), [0.5, 2.0, 1.0]
    total, posterior = 0.0, prior
    for x in data:
        total += posterior.predictive().logpdf(x)
        posterior = posterior.update([x])
    assert prior.log_marginal_likelihood(data) == pytest.approx(total, abs=1e-6)


def test_numeric_predictions_and_intervals():
    posterior = ExponentialFamilyPrior(Gamma(2.0, 1.0), 4.0).update(Gamma(3.0, 2.0).sample(400, random_state=0))
    predictive = posterior.predictive()
    assert predictive.cdf(200.0) == pytest.approx(1.0, abs=1e-12)
    assert predictive.mean == pytest.approx(posterior.expected_mean_statistic[1], rel=1e-9)
    low, high = posterior.interval(0.95)["shape"]
    assert low < 3.0 < high and high - low < 1.2
    draws = posterior.sample(2000, random_state=1)
    assert abs(np.mean((draws.shape > low) & (draws.shape < high)) - 0.95) < 0.02
    x = predictive.sample(3000, random_state=2)
    assert abs(x.mean() - predictive.mean) < 5.0 * np.sqrt(predictive.variance / 3000)


def test_refusals():
    with pytest.raises(NotExponentialFamilyError, match="StudentT is no exponential family"):
        ExponentialFamilyPrior(StudentT(4.0))
    with pytest.raises(ParameterError, match="member must be a distribution"):
        ExponentialFamilyPrior("Gamma")
    with pytest.raises(ParameterError, match="strength must be > 0"):
        ExponentialFamilyPrior(Normal(), 0.0)
    with pytest.raises(ParameterError, match="single ones"):
        ExponentialFamilyPrior(Normal([0.0, 1.0]))
    with pytest.raises(DataError, match="observations must be > 0"):
        ExponentialFamilyPrior(Gamma(1.0)).update([-1.0])


def test_numeric_posteriors_are_calibrated():
    """Simulation-based calibration of the shape of a Gamma distribution, whose posterior is on nodes."""
    prior, rng = ExponentialFamilyPrior(Gamma(2.0, 1.0), 6.0), np.random.default_rng(5)
    ranks = []
    truth = prior.sample(50, random_state=4)
    for shape, rate in zip(truth.shape, truth.rate, strict=True):
        nodes = prior.update(Gamma(shape, rate).sample(5, rng))._on_nodes()
        ranks.append(nodes.weights @ (nodes.members.shape < shape))
    assert stats.kstest(ranks, "uniform").pvalue > 1e-3
