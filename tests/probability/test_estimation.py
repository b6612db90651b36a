"""MLE and MAP of any family: against closed forms of conjugate pairs, and in their limits."""

import numpy as np
import pytest
from tests.probability.families import PAIRS

from learnable.core.errors import DataError, ParameterError
from learnable.probability import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Dirichlet,
    Exponential,
    Gamma,
    InverseWishart,
    Laplace,
    MultivariateNormal,
    Normal,
    Poisson,
    StudentT,
    Wishart,
    fit_map,
    fit_mle,
)

RNG = np.random.default_rng(0)


def test_fit_mle_is_the_familys_own():
    x = Gamma(2.0, 3.0).sample(50, random_state=0)
    assert repr(fit_mle(Gamma, x)) == repr(Gamma.fit_mle(x))
    assert fit_mle(Binomial, [3, 5], n=10).p == 0.4


def test_conjugate_pairs():
    assert fit_map(Bernoulli, [1, 1, 1], {"p": Beta(2.0, 2.0)}).p == pytest.approx(4 / 5, rel=1e-8)
    assert fit_map(Binomial, [3, 4], {"p": Beta(2.0, 3.0)}, n=10).p == pytest.approx(8 / 23, rel=1e-8)
    assert fit_map(Poisson, [3, 4, 5], {"rate": Gamma(2.0, 3.0)}).rate == pytest.approx(13 / 6, rel=1e-8)
    assert fit_map(Exponential, [3.0, 4.0], {"rate": Gamma(2.0, 3.0)}).rate == pytest.approx(3 / 10, rel=1e-8)
    p = fit_map(Categorical, [0, 0, 2], {"p": Dirichlet([2.0, 3.0, 2.0, 2.0])}, n_categories=4).p
    np.testing.assert_allclose(p, np.array([3, 2, 2, 1]) / 8, rtol=1e-7)


def test_covariance_with_an_inverse_wishart_prior():
    x = RNG.normal(size=(30, 2))
    fit = fit_map(MultivariateNormal, x, {"cov": InverseWishart(5.0, np.eye(2))})
    np.testing.assert_allclose(fit.mean, x.mean(axis=0), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(fit.cov, (np.eye(2) + 30 * np.cov(x.T, bias=True)) / (30 + 5 + 3), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", PAIRS)
def test_a_flat_prior_gives_the_mle(name):
    d = PAIRS[name][0]
    x = d.sample(300, random_state=0)
    known = {"n_categories": 3} if name == "Categorical" else getattr(d, "known", {})
    mle, flat = fit_mle(type(d), x, **known), fit_map(type(d), x, lambda member: 0.0, **known)
    for key, value in mle.parameters.items():
        np.testing.assert_allclose(flat.parameters[key], value, rtol=1e-4, atol=1e-6, err_msg=key)
    assert flat.logpdf(x).sum() == pytest.approx(mle.logpdf(x).sum(), rel=1e-9)


def test_limits_of_a_normal_mean():
    x = RNG.normal(3.0, 1.0, size=20)
    wide, narrow = ({"mean": Normal(0.0, s), "std": Gamma(2.0, 1.0)} for s in (1e6, 1e-6))
    assert fit_map(Normal, x, wide).mean == pytest.approx(x.mean(), rel=1e-7)
    assert fit_map(Normal, x, narrow).mean == pytest.approx(0.0, abs=1e-5)
    many = np.tile(x, 200)
    assert fit_map(Normal, many, {"mean": Normal(0.0, 1.0)}).mean == pytest.approx(x.mean(), rel=1e-3)


def test_weights_are_repetitions():
    prior = {"shape": Gamma(2.0, 1.0), "rate": Gamma(2.0, 1.0)}
    once = fit_map(Gamma, [1.0, 2.0, 5.0], prior, weights=[2, 0, 1])
    twice = fit_map(Gamma, [1.0, 1.0, 5.0], prior)
    np.testing.assert_allclose([once.shape, once.rate], [twice.shape, twice.rate], rtol=1e-6)


def test_without_data_the_mode_of_the_prior():
    assert fit_map(Bernoulli, [], {"p": Beta(2.0, 3.0)}).p == pytest.approx(1 / 3, rel=1e-7)
    assert Normal.fit_map([], {"mean": Normal(4.0, 1.0), "std": Gamma(3.0, 2.0)}).std == pytest.approx(1.0, rel=1e-7)


def test_a_prior_rescues_data_without_an_mle():
    fit = fit_map(Normal, [5.0], {"mean": Normal(0.0, 1.0), "std": Gamma(3.0, 1.0)})
    objective = lambda m, s: Normal(m, s).logpdf(5.0) + Normal(0, 1).logpdf(m) + Gamma(3.0, 1.0).logpdf(s)  # noqa: E731
    best = objective(fit.mean, fit.std)
    for step in (-1e-3, 1e-3):
        assert objective(fit.mean + step, fit.std) < best and objective(fit.mean, fit.std + step) < best


def test_a_kink_is_found():
    # Σ|x - m|/b is least at the median; a weak prior does not move it off its kink.
    fit = fit_map(Laplace, [1.0, 2.0, 7.0], {"loc": Normal(2.5, 10.0)})
    assert fit.loc == pytest.approx(2.0, abs=1e-6)
    assert fit.scale == pytest.approx(2.0, rel=1e-5)


def test_matrix_parameters():
    x = Wishart(6.0, np.eye(2)).sample(40, random_state=0)
    fit = fit_map(Wishart, x, {"df": Gamma(60.0, 10.0)})
    assert 5.0 < fit.df < 7.0


def test_a_conjugate_prior_is_asked():
    class Prior:
        def update(self, x, weights=None):
            self.seen = x, weights
            return self

        def map(self):
            return Normal(7.0, 1.0)

    prior = Prior()
    assert fit_map(Normal, [1.0], prior, weights=[2.0]).mean == 7.0
    assert prior.seen == ([1.0], [2.0])


def test_refusals():
    with pytest.raises(ParameterError, match="Normal: prior must name parameters among mean, std, got 'sigma'"):
        fit_map(Normal, [1.0, 2.0], {"sigma": Gamma(1.0)})
    with pytest.raises(ParameterError, match="Normal: prior must be a dict"):
        fit_map(Normal, [1.0, 2.0], 3.0)
    with pytest.raises(DataError, match="Normal: fit_map found no maximum"):
        fit_map(Normal, [1.0, 1.0], {"mean": Normal()})
    with pytest.raises(DataError, match="StudentT: the prior and the data exclude each other"):
        fit_map(StudentT, [1.0, 2.0, 4.0], {"loc": Exponential(1.0), "df": Beta(1.0, 1.0)})
