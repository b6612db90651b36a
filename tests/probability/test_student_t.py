"""Student's t distribution against SciPy and 30-digit arithmetic, against its own laws, and by simulation."""

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from learnable.core.errors import DataError, ParameterError
from learnable.probability import Normal, StudentT, student_t

DF = np.array([0.3, 1.0, 1.5, 2.0, 2.5, 4.0, 30.0, 59.9, 60.1, 1e4])
LOC, SCALE = np.linspace(-2.0, 3.0, DF.size), np.geomspace(0.01, 100.0, DF.size)
OURS, THEIRS = StudentT(DF, LOC, SCALE), stats.t(DF, LOC, SCALE)
X = LOC + SCALE * np.array([-1e4, -30.0, -2.0, -0.1, 0.0, 0.7, 8.0])[:, None]


def exact_cdf(df, t):
    with mpmath.workdps(30):
        df, t = mpmath.mpf(df), mpmath.mpf(t)
        return mpmath.betainc(df / 2, 0.5, 0, df / (df + t * t), regularized=True) / 2  # t < 0


def exact_logpdf(df, t):
    with mpmath.workdps(30):
        df, t = mpmath.mpf(df), mpmath.mpf(t)
        constant = mpmath.loggamma((df + 1) / 2) - mpmath.loggamma(df / 2) - mpmath.log(df * mpmath.pi) / 2
        return float(constant - (df + 1) / 2 * mpmath.log1p(t * t / df))


def exact_entropy(df):
    with mpmath.workdps(40):
        df = mpmath.mpf(df)
        step = mpmath.digamma((df + 1) / 2) - mpmath.digamma(df / 2)
        return float((df + 1) / 2 * step + mpmath.log(mpmath.sqrt(df) * mpmath.beta(df / 2, 0.5)))


def test_moments_and_entropy_against_scipy():
    assert np.array_equal(np.isnan(OURS.mean), DF <= 1)
    assert np.array_equal(np.isinf(OURS.std), DF <= 2)
    np.testing.assert_array_equal(OURS.mean[DF > 1], LOC[DF > 1])
    np.testing.assert_allclose(OURS.std[DF > 2], THEIRS.std()[DF > 2], rtol=1e-14)
    np.testing.assert_allclose(OURS.variance[DF > 2], THEIRS.var()[DF > 2], rtol=1e-14)
    assert np.all(np.isinf(OURS.variance[DF <= 2]))
    np.testing.assert_allclose(OURS.entropy(), THEIRS.entropy(), rtol=1e-12)


def test_functions_against_scipy():
    # SciPy's log-density subtracts two log-gammas of 4e4 at the greatest df, which leaves it 1e-11.
    np.testing.assert_allclose(OURS.logpdf(X), THEIRS.logpdf(X), rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(OURS.cdf(X), THEIRS.cdf(X), rtol=1e-12)
    p = np.array([1e-8, 0.025, 0.3, 0.7, 0.975])[:, None]
    np.testing.assert_allclose(OURS.quantile(p), THEIRS.ppf(p), rtol=1e-11)
    np.testing.assert_allclose(OURS.interval(0.9), THEIRS.interval(0.9), rtol=1e-12)


@pytest.mark.parametrize("df", [0.2, 1.0, 3.0, 59.9, 60.1, 1e3, 1e6, 1e12])
@pytest.mark.parametrize("t", [0.0, 1e-5, 0.5, 1.0, 3.0, 50.0])
def test_log_density_to_the_last_digits(df, t):
    exact = exact_logpdf(df, t)
    assert StudentT(df).logpdf(t) == pytest.approx(exact, rel=2e-14, abs=2e-14)


def test_series_are_exact_where_they_begin():
    assert StudentT(60.1).logpdf(0.0) == pytest.approx(exact_logpdf(60.1, 0.0), abs=5e-16)
    assert StudentT(60.1).entropy() == pytest.approx(exact_entropy(60.1), abs=2e-15)


def test_log_density_where_the_square_overflows():
    t = 1e300
    # log(1 + t²/ν) = 2 log t - log ν to all digits.
    expected = StudentT(3.0).logpdf(0.0) - 2.0 * (2.0 * np.log(t) - np.log(3.0))
    assert StudentT(3.0).logpdf(t) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("df", [0.2, 1.0, 2.0, 3.0, 4.0, 7.3, 60.0])
@pytest.mark.parametrize("t", [1e-8, 1e-3, 0.5, 3.0, 40.0, 1e4])
def test_cdf_to_the_last_digits(df, t):
    assert StudentT(df).cdf(-t) == pytest.approx(float(exact_cdf(df, -t)), rel=1e-14)
    assert StudentT(df).cdf(t) == pytest.approx(float(1 - exact_cdf(df, -t)), rel=1e-14)


@pytest.mark.parametrize("df", [0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 7.3, 60.0])
@pytest.mark.parametrize("p", [1e-300, 1e-100, 1e-30, 1e-16, 1e-5, 0.025, 0.3, 0.49, 0.5 - 1e-6, 0.5 - 1e-10])
def test_quantile_to_the_last_digits(df, p):
    t = StudentT(df).quantile(p)
    if -np.log(p) / df > 705:
        assert t < -1e300  # beyond the floats, or within a factor of the last of them
        return
    error_of_p = float(exact_cdf(df, t) - mpmath.mpf(p))
    # Twenty roundings of t, plus |log p|/ν of them, as the tail is a power; t·pdf(t) makes them errors of p.
    t_rounding = 2.3e-16 * (20 + abs(np.log(p)) / df)
    rounding_of_the_cdf = 1.2e-16 * p + 1.2e-16 * (p > 0.25)
    assert abs(error_of_p) <= t_rounding * np.exp(np.log(-t) + StudentT(df).logpdf(t)) + rounding_of_the_cdf


@pytest.mark.parametrize("df", [0.5, 1.0, 4.0, 30.0])
def test_quantile_is_odd_about_the_location(df):
    p = np.array([0.0, 2.0**-40, 0.125, 0.375, 0.5])
    distribution = StudentT(df)
    assert np.array_equal(distribution.quantile(1.0 - p), -distribution.quantile(p))


def test_interval_keeps_its_digits_close_to_level_one():
    lower, upper = StudentT(5.0).interval(1.0 - 2.0**-50)
    assert lower == -upper == StudentT(5.0).quantile(2.0**-51)


@pytest.mark.parametrize("df", [0.5, 1.5, 4.0, 80.0])
def test_density_integrates_to_the_cdf_and_the_entropy(df):
    distribution = StudentT(df, 0.3, 1.7)
    for end in (-2.0, 1.0):
        area = integrate.quad(distribution.pdf, -np.inf, end, epsabs=1e-12, limit=400)[0]
        assert area == pytest.approx(distribution.cdf(end), abs=1e-8)
    # x = quantile(p) turns the expectation into an integral over (0, 1); by symmetry, twice that over (0, ½).
    p, weight = np.polynomial.legendre.leggauss(400)
    s = 0.5 * (p + 1)
    probability = 0.5 * s**4  # clusters the nodes at the tail, where the integrand has a logarithm
    entropy = -np.sum(weight * 0.5 * 4 * s**3 * distribution.logpdf(distribution.quantile(probability)))
    assert entropy == pytest.approx(distribution.entropy(), rel=1e-7)


@pytest.mark.parametrize("df", [2.5, 4.0, 80.0])
def test_variance_is_the_second_moment(df):
    distribution = StudentT(df, 0.0, 1.7)
    half = integrate.quad(lambda x: x * x * distribution.pdf(x), 0, np.inf, limit=400, epsrel=1e-10)[0]
    assert 2 * half == pytest.approx(distribution.variance, rel=1e-6)


@pytest.mark.parametrize("df", [0.2, 1.0, 59.9, 60.1, 1e3, 1e8])
def test_entropy_to_the_last_digits(df):
    assert StudentT(df).entropy() == pytest.approx(exact_entropy(df), rel=5e-14)


def test_many_degrees_of_freedom_are_normal():
    t, normal = StudentT(1e12, 1.0, 2.0), Normal(1.0, 2.0)
    x = np.linspace(-8.0, 8.0, 9)
    np.testing.assert_allclose(t.logpdf(x), normal.logpdf(x), rtol=1e-10)
    np.testing.assert_allclose(t.cdf(x), normal.cdf(x), rtol=1e-9)
    assert t.entropy() == pytest.approx(normal.entropy(), rel=1e-12)


def test_samples_follow_the_distribution():
    distribution = StudentT(2.5, 2.0, 3.0)
    assert stats.kstest(distribution.sample(20_000, random_state=0), distribution.cdf).pvalue > 0.01


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_interval_covers_as_often_as_it_says(level):
    distribution = StudentT([0.8, 5.0], [2.0, -1.0], [3.0, 0.1])
    n = 40_000
    x = distribution.sample(n, random_state=1)
    lower, upper = distribution.interval(level)
    covered = ((lower <= x) & (x <= upper)).mean(axis=0)
    assert np.all(np.abs(covered - level) < 4 * np.sqrt(level * (1 - level) / n))


def test_interval_predicts_the_next_normal_observation():
    # (x_{n+1} - x̄)/(s √(1 + 1/n)) has n - 1 degrees of freedom, so a new draw falls inside that often.
    rng = np.random.default_rng(2)
    n, runs, level = 5, 20_000, 0.8
    past, new = rng.normal(3.0, 2.0, size=(runs, n)), rng.normal(3.0, 2.0, size=runs)
    predictive = StudentT(n - 1, past.mean(axis=1), past.std(axis=1, ddof=1) * np.sqrt(1 + 1 / n))
    lower, upper = predictive.interval(level)
    covered = np.mean((lower <= new) & (new <= upper))
    assert abs(covered - level) < 4 * np.sqrt(level * (1 - level) / runs)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"df": -1.0}, r"df must be > 0, got -1\.0\."),
        ({"df": [1.0, 0.0]}, r"df must be > 0, got 0\.0\."),
        ({"df": np.nan}, "df must be > 0, got nan"),
        ({"df": np.inf}, "df must be finite, got inf"),
        ({"df": 1.0, "loc": np.inf}, "loc must be finite, got inf"),
        ({"df": 1.0, "scale": 0.0}, r"scale must be > 0 and finite, got 0\.0"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ParameterError, match=f"StudentT: {message}"):
        StudentT(**parameters)


def test_fit_is_at_least_as_likely_as_scipys():
    x = StudentT(3.0, 1.0, 2.0).sample(500, random_state=0)
    ours, theirs = StudentT.fit_mle(x), stats.t.fit(x)
    assert ours.logpdf(x).sum() >= stats.t.logpdf(x, *theirs).sum() - 1e-9
    np.testing.assert_allclose([ours.df, ours.loc, ours.scale], theirs, rtol=1e-2)


def test_fit_solves_the_likelihood_equations():
    x = StudentT(3.0, 1.0, 2.0).sample(300, random_state=1)
    fit = StudentT.fit_mle(x, df=4.0)
    t = (x - fit.loc) / fit.scale
    weight = 5.0 / (4.0 + t**2)
    assert abs(np.mean(weight * t)) < 1e-12
    assert np.mean(weight * t**2) == pytest.approx(1.0, abs=1e-11)
    assert fit.df == 4.0


def test_em_never_lowers_the_likelihood():
    x = StudentT(1.5).sample(100, random_state=2)
    w, df = np.ones(100), np.asarray(1.5)
    path = [(5.0, 3.0)]
    for _ in range(30):
        path.append(_one_step(x, w, df, path[-1]))
    likelihood = [StudentT(1.5, m, s).logpdf(x).sum() for m, s in path]
    assert np.all(np.diff(likelihood) > -1e-10) and likelihood[-1] > likelihood[0] + 1.0


def _one_step(x, w, df, point):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(student_t, "_MAX_STEPS", 1)
        return student_t._em(x, w, df, point, tolerance=0.0)


def test_normal_samples_have_many_degrees_of_freedom():
    x = np.random.default_rng(3).normal(size=2000)
    fit = StudentT.fit_mle(x)
    assert fit.df > 20 and fit.loc == pytest.approx(x.mean(), abs=0.01)


def test_fit_refuses_a_value_that_is_too_frequent():
    with pytest.raises(DataError, match="so many samples have one value that with df = 2"):
        StudentT.fit_mle([1.0] * 9 + [2.0], df=2.0)
    with pytest.raises(DataError, match="two distinct values"):
        StudentT.fit_mle([1.0, 1.0])
