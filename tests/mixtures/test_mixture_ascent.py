"""Gradient ascent climbs the hill that EM climbs, and ends with the same certificate."""

import numpy as np
import pytest
from tests.mixtures.draws import KNOWN, rows_of

import learnable as ln
from learnable import MixtureModel, probability
from learnable.data.blocks import Blocks, Part
from learnable.mixtures.mixture import NegativeLikelihood, family_problem


@pytest.mark.parametrize(
    "name, solver",
    [("Poisson", "gd"), ("Bernoulli", "gd"), ("Normal", "lbfgs"), ("Gamma", "lbfgs"), ("Multinomial", "lbfgs")],
)
def test_both_ways_end_at_the_same_height(name, solver):
    X, _ = rows_of(name, 100)
    settings = {"known": KNOWN.get(name), "random_state": 0, "max_iter": 5000, "tol": 1e-6}
    climbed = MixtureModel(name, 2, solver=solver, **settings).fit(X)
    stepped = MixtureModel(name, 2, **settings).fit(X)
    assert climbed.lower_bound_ == pytest.approx(stepped.lower_bound_, abs=1e-4)
    assert climbed.certificate_.kind == "ascent" and bool(ln.verify(climbed, X))
    assert (np.diff(climbed.bound_history_) >= 0).all()


def test_the_measure_is_zero_at_a_stationary_point_only():
    X, labels = rows_of("Poisson", 80)
    problem = family_problem("Test", probability.Poisson, 2, Blocks([Part(X)]), {}, 0.0, 1.0, 1)
    objective = NegativeLikelihood(problem, Blocks([Part(X)]), 80.0)
    model = MixtureModel("Poisson", 2, random_state=0, tol=1e-12, max_iter=2000).fit(X)
    there = objective.evaluate(problem.pack(model._members()))
    assert there.measure < 1e-10 and np.abs(there.gradient).max() < 1e-4
    assert there.value == pytest.approx(-model.lower_bound_, rel=1e-9)
    away = objective.evaluate(problem.pack(problem.start(X, np.eye(2)[labels])))
    assert away.measure > 1e-5 and away.value > there.value
    assert np.isinf(objective.evaluate(np.full(6, np.nan)).value)


def test_a_limit_ends_the_climb_with_an_honest_certificate():
    X, _ = rows_of("Normal", 200)
    with pytest.warns(Warning, match="above the tolerance"):
        model = MixtureModel("Normal", 2, solver="gd", max_iter=1, tol=1e-12, random_state=0).fit(X)
    assert not model.converged_ and model.certificate_.value > 1e-12
