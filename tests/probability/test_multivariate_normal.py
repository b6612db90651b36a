"""The multivariate normal distribution: against SciPy, its algebra, and singular covariances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from learnable.core.errors import DataError, ParameterError
from learnable.probability import MultivariateNormal, Normal

RNG = np.random.default_rng(0)
D = 4
ROOT = RNG.normal(size=(D, D))
COV, MEAN = ROOT @ ROOT.T + 0.1 * np.eye(D), RNG.normal(size=D)
JOINT = MultivariateNormal(MEAN, COV)
X = RNG.normal(size=(3000, D))


def random_normal(seed, d=D, batch=()):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(*batch, d, d))
    return MultivariateNormal(rng.normal(size=(*batch, d)), root @ np.swapaxes(root, -1, -2) + 0.1 * np.eye(d))


def test_functions_against_scipy():
    theirs = stats.multivariate_normal(MEAN, COV)
    np.testing.assert_allclose(JOINT.logpdf(X), theirs.logpdf(X), rtol=1e-11)
    np.testing.assert_allclose(JOINT.logpdf(X[:5]), theirs.logpdf(X[:5]), rtol=1e-11)
    assert JOINT.entropy() == pytest.approx(theirs.entropy(), rel=1e-13)


@pytest.mark.parametrize("n", [3, 3000])
def test_many_components_at_once(n):
    for many in (
        random_normal(1, batch=(3,)),
        MultivariateNormal(RNG.normal(size=(3, D)), COV),
        random_normal(2, batch=(2, 3)),
    ):
        points = X[:n].reshape(n, *(1,) * len(many.batch_shape), D)
        table = many.logpdf(points)
        assert table.shape == (n, *many.batch_shape)
        for index in np.ndindex(many.batch_shape):
            np.testing.assert_allclose(table[(slice(None), *index)], many[index].logpdf(X[:n]), rtol=1e-11)


def test_one_dimension_is_normal():
    np.testing.assert_allclose(
        MultivariateNormal([1.0], [[4.0]]).logpdf([[0.3], [5.0]]), Normal(1.0, 2.0).logpdf([0.3, 5.0]), rtol=1e-14
    )


@pytest.mark.parametrize("on", [[0], [2, 0], [3, 1, 2], [-1]])
def test_condition_is_the_quotient_of_densities(on):
    rest = [i for i in range(D) if i not in np.array(on) % D]
    for x in X[:5]:
        quotient = JOINT.logpdf(x) - JOINT.marginal(on).logpdf(x[on])
        assert JOINT.condition(on, x[on]).logpdf(x[rest]) == pytest.approx(quotient, rel=1e-9)


def test_condition_is_the_schur_complement():
    on, rest = [2, 0], [1, 3]
    values = np.array([[1.0, 2.0], [0.0, -1.0]])
    given_values = JOINT.condition(on, values)
    gain = COV[np.ix_(rest, on)] @ np.linalg.inv(COV[np.ix_(on, on)])
    np.testing.assert_allclose(given_values.cov[0], COV[np.ix_(rest, rest)] - gain @ COV[np.ix_(on, rest)], rtol=1e-10)
    np.testing.assert_allclose(given_values.mean, MEAN[rest] + (values - MEAN[on]) @ gain.T, rtol=1e-10)
    assert random_normal(3, batch=(2,)).condition(on, np.zeros((5, 1, 2))).batch_shape == (5, 2)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_conditioning_in_two_steps_is_conditioning_at_once(seed):
    joint, x = random_normal(seed), np.random.default_rng(seed + 1).normal(size=D)
    at_once = joint.condition([0, 2], x[[0, 2]])
    in_steps = joint.condition([0], x[[0]]).condition([1], x[[2]])
    np.testing.assert_allclose(in_steps.mean, at_once.mean, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(in_steps.cov, at_once.cov, rtol=1e-7, atol=1e-9)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_product_of_densities(seed):
    p, q = random_normal(seed), random_normal(seed + 1)
    both, log_constant = p.product(q)
    np.testing.assert_allclose(
        p.logpdf(X[:5]) + q.logpdf(X[:5]), both.logpdf(X[:5]) + log_constant, rtol=1e-7, atol=1e-7
    )
    np.testing.assert_allclose(both.precision, p.precision + q.precision, rtol=1e-5)


def test_affine_image():
    A, b = RNG.normal(size=(2, D)), np.array([1.0, -2.0])
    image = JOINT.affine(A, b)
    np.testing.assert_allclose(image.mean, A @ MEAN + b)
    np.testing.assert_allclose(image.cov, A @ COV @ A.T)
    samples = JOINT.sample(40_000, random_state=0) @ A.T + b
    assert np.all(np.abs(samples.mean(axis=0) - image.mean) < 4.5 * image.std / 200)
    onto_more = JOINT.affine(RNG.normal(size=(6, D)))
    assert onto_more.rank == D and np.isfinite(onto_more.logpdf(onto_more.sample(random_state=0)))


def test_squared_lengths_of_white_samples_are_chi_squared():
    x = JOINT.sample(20_000, random_state=0)
    squares = -2 * (JOINT.logpdf(x) - JOINT.logpdf(MEAN))
    assert stats.kstest(squares, stats.chi2(D).cdf).pvalue > 1e-3


def test_singular_covariance():
    flat = MultivariateNormal(np.zeros(3), np.ones((3, 3)))
    x = flat.sample(5, random_state=0)
    assert flat.rank == 1
    theirs = stats.multivariate_normal(np.zeros(3), np.ones((3, 3)), allow_singular=True)
    np.testing.assert_allclose(flat.logpdf(x), theirs.logpdf(x), rtol=1e-10)
    assert flat.logpdf([0.0, 0.0, 1.0]) == -np.inf
    np.testing.assert_allclose(flat.condition([0], [2.0]).mean, [2.0, 2.0], rtol=1e-10)
    np.testing.assert_allclose(flat.condition([0, 1], [2.0, 2.0]).cov, [[0.0]], atol=1e-15)
    with pytest.raises(DataError, match="the values are impossible"):
        flat.condition([0, 1], [2.0, 1.0])
    with pytest.raises(ParameterError, match="cov must have full rank"):
        flat.precision  # noqa: B018
    still = MultivariateNormal([1.0, 2.0], np.diag([0.0, 3.0]))
    assert still.rank == 1 and np.all(still.sample(4)[:, 0] == 1.0)


@pytest.mark.parametrize("noise", [1e-4, 1e-8, 1e-12, 1e-15])
def test_nearly_singular_covariance_is_conditioned_to_its_digits(noise):
    # x₁ and x₂ are one variable of variance 1, each with its own noise: given x₁, x₂ has variance about 2·noise.
    joint = MultivariateNormal([0.0, 0.0], [[1 + noise, 1.0], [1.0, 1 + noise]])
    narrow = joint.condition([0], [0.5])
    exact = noise * (2 + noise) / (1 + noise)
    assert narrow.mean[0] == pytest.approx(0.5 / (1 + noise), rel=1e-12)
    assert narrow.cov[0, 0] >= 0.0
    assert narrow.cov[0, 0] == pytest.approx(exact, rel=1e-2, abs=4e-16)
    assert np.isfinite(joint.logpdf(joint.sample(random_state=0)))


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_units_do_not_matter(scale):
    units = np.array([1.0, scale, 1.0, 1 / scale])
    scaled = MultivariateNormal(MEAN * units, COV * units[:, None] * units)
    np.testing.assert_allclose(scaled.logpdf(X[:5] * units), JOINT.logpdf(X[:5]), rtol=1e-9)
    fit = MultivariateNormal.fit_mle(X * units)
    np.testing.assert_allclose(fit.cov / units[:, None] / units, np.cov(X.T, bias=True), rtol=1e-9, atol=1e-12)


def test_fit_far_from_zero():
    fit = MultivariateNormal.fit_mle(X + 1e8)
    np.testing.assert_allclose(fit.cov, np.cov(X.T, bias=True), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "cov, message",
    [
        ([[1.0, 2.0], [2.0, 1.0]], "cov must be positive semidefinite, got the eigenvalue -1"),
        ([[1.0, 0.5], [0.4, 1.0]], "cov must be symmetric"),
        ([[-1.0, 0.0], [0.0, 1.0]], r"cov must have a diagonal >= 0, got -1\.0"),
        ([[1.0, 0.0, 0.0]], r"cov must be 2 by 2, as mean has 2 entries, got shape \(1, 3\)"),
        ([1.0, 1.0], r"cov must be a matrix, or an array of such, got shape \(2,\)"),
        ([[np.nan, 0.0], [0.0, 1.0]], "cov must be finite"),
    ],
)
def test_bad_covariances(cov, message):
    with pytest.raises(ParameterError, match=f"MultivariateNormal: {message}"):
        MultivariateNormal([0.0, 0.0], cov)


def test_other_refusals():
    with pytest.raises(DataError, match="MultivariateNormal: fit_mle needs samples that do not lie in a plane"):
        MultivariateNormal.fit_mle(X[:4])
    with pytest.raises(DataError, match="x must have 4 entries along its last axis"):
        JOINT.logpdf(X[:, :3])
    with pytest.raises(ParameterError, match=r"on must name entries from 0 to 3, none of them twice, got \[0, 4\]"):
        JOINT.condition([0, 4], [1.0, 1.0])
    with pytest.raises(ParameterError, match="on must leave at least one entry"):
        JOINT.condition(range(4), np.zeros(4))
    with pytest.raises(ParameterError, match="values must have 1 entries"):
        JOINT.condition([0], [1.0, 1.0])
