"""Consistent learners: always consistent inside their class, and right on most of the distribution at the stated m."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from learnable.core.errors import DataError, ParameterError
from learnable.theory import pac

CUBE = np.array(list(itertools.product([0, 1], repeat=5)), dtype=bool)


def random_clauses(rng, n, k, count):
    all_clauses = pac._clauses(n, k)
    return [all_clauses[i] for i in rng.choice(len(all_clauses), count, replace=False)]


def concept(name, rng, X, n=5):
    cnf = np.ones(len(X), dtype=bool)
    for clause in random_clauses(rng, n, 2 if "2" in name else 1, 2):
        cnf &= np.any([X[:, i] == sign for i, sign in clause], axis=0)
    dnf = np.zeros(len(X), dtype=bool)
    for term in random_clauses(rng, n, 2 if "2" in name else 1, 2):
        dnf |= np.all([X[:, i] == sign for i, sign in term], axis=0)
    if "list" in name:
        y = np.full(len(X), bool(rng.integers(2)))
        for term in random_clauses(rng, n, 1, 3):
            y = np.where(np.all([X[:, i] == sign for i, sign in term], axis=0), bool(rng.integers(2)), y)
        return y
    if "threshold" in name:
        return X @ rng.integers(-3, 4, n) >= rng.integers(-2, 4)
    return {"cnf": cnf, "dnf": dnf, "or": cnf | dnf, "and": cnf & dnf}[name.rstrip("2")]


LEARNERS = {
    "cnf": pac.Monomials,
    "cnf2": lambda: pac.KCNF(2),
    "dnf": lambda: pac.KDNF(1),
    "dnf2": lambda: pac.KDNF(2),
    "or2": lambda: pac.CNFOrDNF(2),
    "and2": lambda: pac.DNFAndCNF(2),
    "list": pac.DecisionLists,
    "threshold": pac.Thresholds,
}


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), m=st.integers(1, 32))
@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_output_is_consistent_whenever_the_concept_is_in_the_class(name, seed, m):
    rng = np.random.default_rng(seed)
    X = CUBE[rng.integers(0, 32, m)]
    y = concept(name, np.random.default_rng(seed + 1), X)
    learner = LEARNERS[name]().fit(X, y)
    assert learner.consistent
    assert learner.formula()


@pytest.mark.parametrize("name", ["cnf", "dnf2", "list", "threshold"])
def test_error_is_below_eps_as_often_as_stated(name):
    eps, delta, n, trials = 0.1, 0.1, 5, 120
    rng = np.random.default_rng(7)
    m = LEARNERS[name]().sample_size(n, eps, delta)
    shares = rng.dirichlet(np.full(32, 0.5))  # a distribution with likely and unlikely corners
    failures = 0
    for trial in range(trials):
        rows = rng.choice(32, m, p=shares)
        truth = concept(name, np.random.default_rng(trial % 4), CUBE)
        learner = LEARNERS[name]().fit(CUBE[rows], truth[rows])
        failures += shares[learner.predict(CUBE) != truth].sum() > eps
    assert failures <= binom.isf(1e-4, trials, delta)


def test_too_few_examples_break_the_promise():
    """At a tenth of the stated m a monomial that is true once in 32 corners is missed too often."""
    eps, delta = 0.03, 0.05
    rng = np.random.default_rng(0)
    truth = CUBE.all(axis=1)
    m = 10
    failures = 0
    for _ in range(300):
        rows = rng.integers(0, 32, m)
        failures += (pac.Monomials().fit(CUBE[rows], truth[rows]).predict(CUBE) != truth).mean() > eps
    assert failures / 300 > delta
    assert pac.Monomials().sample_size(5, eps, delta) > 10 * m


def test_sample_sizes():
    assert pac.Monomials().sample_size(10, 0.1, 0.05) == 140
    assert pac.Monomials().sample_size(20, 0.1, 0.05) == 250
    assert pac.agnostic_complexity(10 * math.log(3), 0.1, 0.05) == math.ceil((10 * math.log(3) + math.log(40)) / 0.02)
    assert pac.KCNF(1).log_size(3) == pytest.approx(6 * math.log(2))
    assert pac.KDNF(2).log_size(3) == pytest.approx((6 + 12) * math.log(2))


def test_sizes_are_above_the_true_numbers_of_concepts():
    """All concepts over two and three variables, counted."""
    square = np.array(list(itertools.product([0, 1], repeat=2)))
    thresholds = sum(pac.Thresholds().fit(square, y).consistent for y in itertools.product([0, 1], repeat=4))
    assert thresholds == 14
    assert math.log(thresholds) <= pac.Thresholds().log_size(2) + 1e-9
    assert math.log(104) <= pac.Thresholds().log_size(3)  # of 256 (Muroga)
    cube = np.array(list(itertools.product([0, 1], repeat=3)))
    lists = sum(pac.DecisionLists().fit(cube, y).consistent for y in itertools.product([0, 1], repeat=8))
    monomials = sum(pac.Monomials().fit(cube, y).consistent for y in itertools.product([0, 1], repeat=8))
    assert monomials == 3**3 + 1
    assert math.log(lists) <= pac.DecisionLists().log_size(3)


def test_concepts_outside_the_class_are_noticed():
    parity = CUBE.sum(axis=1) % 2
    for make in LEARNERS.values():
        assert make().fit(CUBE, parity).consistent is False


def test_bad_examples_are_refused():
    with pytest.raises(DataError):
        pac.Monomials().fit([[0, 2]], [1])
    with pytest.raises(DataError):
        pac.Monomials().fit([[0, 1]], [1, 0])
    with pytest.raises(DataError):
        pac.Monomials().fit([[0, 1]], [1]).predict([[0]])
    with pytest.raises(ParameterError):
        pac.KCNF(0).fit([[0, 1]], [1])
    with pytest.raises(ParameterError):
        pac.sample_complexity(1.0, 0.1, 1.0)
