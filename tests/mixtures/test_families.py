"""The two steps of any family: the M-step is a maximum, the gain is what it adds, the gradient is the gradient."""

import numpy as np
import pytest
from tests.mixtures.draws import KNOWN, PAIRS, rows_of

from learnable import probability
from learnable.data.blocks import Blocks, Part
from learnable.mixtures.families import Members, as_events, log_joint
from learnable.mixtures.mixture import family_problem


def problem_of(name, rows=2.0, alpha=1.5, n=60):
    X, labels = rows_of(name, n)
    blocks = Blocks([Part(X)])
    problem = family_problem("Test", getattr(probability, name), 2, blocks, KNOWN.get(name, {}), rows, alpha, 1)
    return problem, X, problem.start(X, np.eye(2)[labels] * 0.8 + 0.1)


def objective(problem, X, mixture):
    return problem.expectation(Part(X), mixture)[1] + problem.log_prior(mixture)


@pytest.mark.parametrize("name", PAIRS)
def test_vectors_stand_for_mixtures(name):
    problem, X, mixture = problem_of(name)
    again = problem.unpack(problem.pack(mixture))
    np.testing.assert_allclose(again.weights, mixture.weights)
    np.testing.assert_allclose(log_joint(again, X), log_joint(mixture, X), rtol=1e-7)
    assert problem.unpack(np.full_like(problem.pack(mixture), np.nan)) is None


@pytest.mark.parametrize("name", PAIRS)
def test_the_gradient_is_the_gradient(name):
    problem, X, mixture = problem_of(name)
    z = problem.pack(mixture)
    statistics, _ = problem.expectation(Part(X), problem.unpack(z))
    found = problem.gradient(statistics, problem.unpack(z))
    rng = np.random.default_rng(0)
    for _ in range(3):
        v = rng.normal(size=len(z)) * 1e-5
        if name in ("MultivariateNormal", "Wishart", "InverseWishart"):  # along symmetric matrices
            v = problem.pack(problem.unpack(z + v)) - z
        up, down = (objective(problem, X, problem.unpack(z + sign * v)) for sign in (1, -1))
        assert up - down == pytest.approx(2 * found @ v, rel=2e-4, abs=1e-6 * np.linalg.norm(found) * np.linalg.norm(v))


@pytest.mark.parametrize("name", PAIRS)
def test_the_m_step_raises_the_bound_by_its_gain_and_nothing_near_it_is_better(name):
    problem, X, mixture = problem_of(name)
    statistics, before = problem.expectation(Part(X), mixture)
    stepped = problem.maximisation(statistics, mixture)
    gain = problem.gain(statistics, mixture, stepped)
    rise = objective(problem, X, stepped) - before - problem.log_prior(mixture)
    assert gain >= -1e-9 and rise >= gain - 1e-8 * abs(before)  # the rest is the divergence of the responsibilities
    rng = np.random.default_rng(0)
    z = problem.pack(stepped)
    for _ in range(4):
        near = problem.unpack(z + 1e-3 * rng.normal(size=len(z)))
        if near is not None:
            assert problem.gain(statistics, near, stepped) >= -1e-9


@pytest.mark.parametrize("name", PAIRS)
def test_the_linear_form_is_the_density(name):
    problem, X, mixture = problem_of(name)
    statistics, likelihood = problem.expectation(Part(X), mixture)
    assert likelihood == pytest.approx(np.logaddexp(*log_joint(mixture, X)).sum(), rel=1e-11)
    problem.reach = np.full(1, np.inf)  # digits would be lost: densities one by one instead
    slow, same = problem.expectation(Part(X), mixture)
    assert likelihood == pytest.approx(same, rel=1e-11)
    for a, b in zip(statistics, slow, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10 * np.abs(b).max())


def test_impossible_rows_have_no_share():
    mixture = Members(np.array([0.5, 0.5]), probability.Bernoulli([[0.0, 0.5], [0.5, 0.5]]))
    problem = problem_of("Bernoulli")[0]
    problem.reach = np.ones(2)
    (counts, _), likelihood = problem.expectation(Part(np.array([[1.0, 0.0]])), mixture)
    assert counts.tolist() == [0.0, 1.0] and likelihood == pytest.approx(np.log(0.125))


def test_events_and_members():
    assert as_events(probability.Wishart, np.arange(8.0).reshape(2, 4)).shape == (2, 2, 2)
    mixture = Members(np.array([1.0, 0.0]), probability.Poisson([[1.0], [2.0]]))
    logs = log_joint(mixture, np.array([[0.0], [1.0]]))
    assert np.isneginf(logs[1]).all() and logs[0] == pytest.approx([-1.0, -1.0])
