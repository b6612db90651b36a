"""Decisions on the line: every crossing is found, whatever the scales."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from learnable.evaluation.bayes.rules import finite_support, risk_on_the_line
from learnable.probability import Bernoulli, Binomial, Gamma, Normal, Poisson


@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(0.2, 3)), min_size=2, max_size=4), st.integers(0, 100))
def test_normal_classes_against_quadrature(parameters, seed):
    line = [Normal(m, s) for m, s in parameters]
    priors = np.random.default_rng(seed).dirichlet(np.ones(len(line)))
    found = risk_on_the_line(line, priors, 1.0 - np.eye(len(line))).value
    grid = np.linspace(-40, 40, 400_001)
    joint = np.stack([p * d.pdf(grid) for p, d in zip(priors, line, strict=True)])
    assert found == pytest.approx(np.trapezoid(joint.sum(axis=0) - joint.max(axis=0), grid), abs=2e-7)


def test_scales_far_apart():
    line = [Normal(0.0, 1e-6), Normal(0.0, 1e6)]
    assert 0 < risk_on_the_line(line, np.array([0.5, 0.5]), 1.0 - np.eye(2)).value < 1e-9


def test_costs_need_not_be_symmetric():
    line, costs = [Gamma(2.0, 1.0), Gamma(5.0, 1.0)], np.array([[0.0, 3.0], [1.0, 0.0]])
    expected = quad(lambda x: min(0.5 * 3.0 * line[0].pdf(x), 0.5 * line[1].pdf(x)), 0, 60, limit=400)[0]
    assert risk_on_the_line(line, np.array([0.5, 0.5]), costs).value == pytest.approx(expected, abs=1e-7)


def test_supports():
    assert finite_support((Bernoulli(0.3), Binomial(4, 0.5))).ravel().tolist() == [0, 1, 2, 3, 4]
    assert finite_support((Bernoulli([0.3, 0.2]), Bernoulli([0.3, 0.1]))).shape == (4, 2)
    assert len(finite_support((Poisson(3.0), Poisson(1.0)))) > 20
    assert finite_support((Normal(0.0, 1.0), Normal(1.0, 1.0))) is None
    assert finite_support((Poisson(np.full(9, 50.0)), Poisson(np.full(9, 40.0)))) is None
