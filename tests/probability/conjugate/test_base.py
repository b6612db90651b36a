"""The laws of conjugacy, for every pair: Bayes' rule, batches, weights, predictions, evidence, calibration."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.probability.conjugate.pairs import NAMES, PAIRS, assert_same, repeated

from learnable.core.errors import DataError, ParameterError
from learnable.probability import Beta, BetaBinomial, Conjugate, NormalNormal, fit_map
from learnable.probability.normal import Normal

LINE = [n for n in NAMES if n not in ("DirichletCategorical", "DirichletMultinomial", "NormalWishart")]


@pytest.mark.parametrize("name", NAMES)
def test_posterior_is_the_product_of_prior_and_likelihood(name):
    prior, data = PAIRS[name]
    posterior = prior.update(data)
    members = prior.sample(50, random_state=0)
    x = np.asarray(data, dtype=float)
    x = x[:, None]  # against the fifty members
    likelihood = 0.0
    for row in x:
        member = members
        if name == "DirichletMultinomial":
            member = type(members)(np.sum(row), members.p)
        likelihood = likelihood + member.logpdf(row)
    product = prior.logpdf(members) + likelihood
    constant = product - posterior.logpdf(members)  # the same for every member: the evidence
    np.testing.assert_allclose(constant, prior.log_marginal_likelihood(data), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_updates_one_by_one_in_any_order_equal_one_update(name):
    prior, data = PAIRS[name]
    at_once = prior.update(data)
    for order in (list(data), list(data)[::-1]):
        one_by_one = prior
        for x in order:
            one_by_one = one_by_one.update(x)
        assert_same(one_by_one, at_once)
    assert_same(prior.update(data[:1]).update(data[1:]), at_once)


@pytest.mark.parametrize("name", NAMES)
def test_statistics_say_what_the_data_say(name):
    prior, data = PAIRS[name]
    sums = [prior._member().sum_statistic(part) for part in (data[:2], data[2:])]
    weight, total = (sum(part) for part in zip(*sums, strict=True))
    assert_same(prior.update(statistics=(weight, total)), prior.update(data), rtol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_repetitions_and_weight_zero_is_absence(name):
    prior, data = PAIRS[name]
    w = np.array([2.0, 0.0, 1.0] + [1.0] * (len(data) - 3))
    again = [data[0], data[0], *data[2:]]
    assert_same(prior.update(data, w), prior.update(again))
    one, other = prior.log_marginal_likelihood(data, w), prior.log_marginal_likelihood(again)
    np.testing.assert_allclose(one, other, rtol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_seen_nothing_learned(name):
    prior, data = PAIRS[name]
    none = np.zeros((0, *np.shape(data)[1:]))
    assert_same(prior.update(none), prior)
    assert prior.log_marginal_likelihood(none) == pytest.approx(0.0, abs=1e-12)
    assert_same(prior.update(data, np.zeros(len(data))), prior)


@pytest.mark.parametrize("name", NAMES)
def test_evidence_is_the_product_of_predictions(name):
    prior, data = PAIRS[name]
    total, posterior = 0.0, prior
    for x in data:
        predictive = posterior.predictive(n=np.sum(x)) if name == "DirichletMultinomial" else posterior.predictive()
        total += predictive.logpdf(x)
        posterior = posterior.update([x])
    np.testing.assert_allclose(prior.log_marginal_likelihood(data), total, rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_prediction_is_the_integral_of_the_likelihood(name):
    prior, data = PAIRS[name]
    posterior = prior.update(data)
    x = np.asarray(data, dtype=float)[:2]
    if name == "DirichletMultinomial":
        x = np.eye(3)[:2]  # one draw
    draws = posterior.sample(40_000, random_state=1)
    for point in x:
        p = np.exp(draws.logpdf(point))
        expected, error = p.mean(), p.std() / math.sqrt(len(p))
        assert abs(posterior.predictive().pdf(point) - expected) < 5.0 * error + 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_expected_mean_is_linear_in_the_observation(name):
    """E[E(X | θ) | x] = ax + b, the mark of a conjugate prior."""
    prior, data = PAIRS[name]
    x = np.asarray(data, dtype=float)
    if name in ("GammaNormal", "InverseGammaNormal"):
        expect, x = (lambda p: p.marginal("variance").mean), np.sqrt([1.0, 4.0, 9.0]) + 0.5  # linear in t = (x - μ)²
        prior, t = PAIRS["InverseGammaNormal"][0], np.array([1.0, 4.0, 9.0])
    elif name == "GammaExponential":
        expect, x = (lambda p: p.predictive().mean), np.array([0.3, 1.0, 4.0])
        t = x
    elif name == "DirichletCategorical":
        expect, x, t = (lambda p: p.predictive().p), np.arange(3.0), np.eye(3)
    elif name == "DirichletMultinomial":
        expect, x = (lambda p: p.predictive().p), np.array([[4.0, 0, 0], [2, 1, 1], [0, 2, 2]])
        t = x
    else:
        expect, t = (lambda p: p.predictive().mean), x[:3]
    m = [np.atleast_1d(expect(prior.update([value]))) for value in x[:3]]
    d = [np.atleast_1d(value) for value in t[:3]]
    # A line through the first two points meets the third; a is a number, whatever the dimension.
    a = (m[1] - m[0])[np.argmax(abs(d[1] - d[0]))] / (d[1] - d[0])[np.argmax(abs(d[1] - d[0]))]
    for i in (1, 2):
        np.testing.assert_allclose(m[i] - m[0], a * (d[i] - d[0]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_map_is_the_greatest_density(name):
    prior, data = PAIRS[name]
    posterior = prior.update(data)
    best = posterior.map()
    near = posterior.sample(2000, random_state=2)
    assert np.all(posterior.logpdf(near) <= posterior.logpdf(best) + 1e-9)
    assert posterior.logpdf(near).max() > posterior.logpdf(best) - 1.0
    assert_same(fit_map(type(best), data, prior), best)


@pytest.mark.parametrize("name", LINE)
def test_intervals_hold_their_probability(name):
    prior, data = PAIRS[name]
    posterior = prior.update(data)
    found = posterior.interval(0.8)
    intervals = found if isinstance(found, dict) else {posterior._unknown[0]: found}
    for parameter, (low, high) in intervals.items():
        marginal = posterior.marginal(parameter)
        np.testing.assert_allclose(marginal.cdf([low, high]), [0.1, 0.9], atol=1e-9)


def ranks(name, m):
    """Return, for m worlds drawn from the prior, where the truth lies in the posterior after some data."""
    prior, data = PAIRS[name]
    many = repeated(prior, m)
    rng = np.random.default_rng(7)
    truth = many.sample((), rng)
    x = truth.sample(len(data), rng)
    posterior = many.update(x)
    if name.startswith("Dirichlet"):
        total = posterior.alpha.sum(axis=-1)
        return [Beta(posterior.alpha[:, 0], total - posterior.alpha[:, 0]).cdf(truth.p[:, 0])]
    if name == "NormalWishart":
        mean = posterior.marginal("mean").marginal(1).cdf(truth.mean[:, 1])
        low, high = posterior.interval(0.5)["variance"]
        inside = (truth.cov[:, 0, 0] > low[:, 0]) & (truth.cov[:, 0, 0] < high[:, 0])
        assert abs(inside.mean() - 0.5) < 4.0 * math.sqrt(0.25 / m)
        return [mean]
    values = {"mean": "mean", "variance": "variance", "p": "p", "rate": "rate"}
    out = []
    for parameter in posterior._unknown:
        value = 1.0 / truth.variance if parameter == "precision" else getattr(truth, values[parameter])
        out.append(posterior.marginal(parameter).cdf(value))
    return out


@pytest.mark.parametrize("name", NAMES)
def test_posteriors_are_calibrated(name):
    """Simulation-based calibration: ranks of the truth in its posterior are uniform (Talts et al., 2018)."""
    for u in ranks(name, 3000):
        assert stats.kstest(u, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_an_array_of_priors_is_many_priors(name):
    prior, data = PAIRS[name]
    both = repeated(prior, 2).update(np.stack([data, np.asarray(data)[::-1]], axis=1))
    assert both.batch_shape == (2,)
    assert_same(both[0], prior.update(data))
    evidence = repeated(prior, 2).log_marginal_likelihood(data)
    np.testing.assert_allclose(evidence, np.full(2, prior.log_marginal_likelihood(data)), rtol=1e-12)
    assert_same(pickle.loads(pickle.dumps(both)), both)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-50, 50), min_size=1, max_size=8), st.floats(0.1, 5), st.floats(0.1, 5))
def test_precisions_add(x, std, noise):
    posterior = NormalNormal(1.0, std, noise).update(x)
    assert posterior.std**-2 == pytest.approx(std**-2 + len(x) * noise**-2, rel=1e-10)
    expected = (1.0 / std**2 + sum(x) / noise**2) * posterior.std**2
    assert posterior.mean == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_refusals():
    prior = BetaBinomial(1.0, 1.0)
    assert isinstance(prior, Conjugate)
    with pytest.raises(ParameterError, match="update needs either data or statistics"):
        prior.update()
    with pytest.raises(DataError, match=r"BetaBinomial: observations must be 0 or 1, got 2\.0"):
        prior.update([0, 2])
    with pytest.raises(DataError, match="observations must be finite"):
        prior.update([0, np.nan])
    assert_same(prior.update([1, np.nan], [1.0, 0.0]), prior.update([1]))
    with pytest.raises(DataError, match=r"weights must have one entry an observation, shape \(2,\)"):
        prior.update([0, 1], [1.0])
    with pytest.raises(DataError, match="weights must be finite and >= 0"):
        prior.update([0, 1], [1.0, -1.0])
    with pytest.raises(DataError, match="do not broadcast"):
        repeated(prior, 3).update(np.zeros((5, 2)))
    with pytest.raises(DataError, match="a sum between 0 and n times the weight"):
        prior.update(statistics=(3.0, [4.0]))
    with pytest.raises(ParameterError, match="name must be one of p"):
        prior.marginal("mean")
    with pytest.raises(ParameterError, match="map needs a >= 1 and b >= 1, not both equal to 1"):
        prior.map()
    with pytest.raises(AttributeError):
        prior.a = 2.0
    with pytest.raises(TypeError):
        Conjugate()
    assert isinstance(NormalNormal().map(), Normal)


@pytest.mark.parametrize(
    "name", ["NormalInverseGamma", "NormalGamma", "GammaNormal", "InverseGammaNormal", "NormalWishart"]
)
def test_squares_beyond_the_floats_are_refused(name):
    prior, data = PAIRS[name]
    with pytest.raises(ParameterError, match=r"(finite|definite)"):
        prior.update(1e300 * np.asarray(data))
    tiny = prior.update(1e-300 * np.asarray(data))  # as good as zero
    assert_same(tiny, prior.update(0.0 * np.asarray(data)))
