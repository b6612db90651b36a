"""The dual of the support vector machines: weak duality everywhere, and what a pair proves."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.linear.svm_tables import numbers, two_classes
from tests.oracles.svm import augmented, svc_objective, svr_objective

from learnable.data.blocks import Blocks, Part
from learnable.linear.margin.problem import better, relative_gap, weighted_gram
from learnable.linear.margin.solvers import Settings, margin_task
from learnable.risk.shortfall import Target


def task_of(X, y, squared=False, C=0.7, bias=1.0, regression=False, weight=None, epsilon=0.2):
    target = Target(None, epsilon) if regression else Target(1)
    settings = Settings("test", target, squared, C, bias, "auto", 1e-6, 100, 1, np.random.default_rng(0))
    return margin_task(Blocks([Part(X, y, weight)]), settings)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6), squared=st.booleans(), regression=st.booleans(), sparse=st.booleans(),
    size=st.sampled_from([1e-3, 1.0, 1e3]),
)  # fmt: skip
def test_weak_duality_at_every_pair_of_points(seed, squared, regression, sparse, size):
    rng = np.random.default_rng(seed)
    X, y = (numbers if regression else two_classes)(25, 3, seed=seed)
    s = rng.uniform(0.2, 3.0, 25)
    task = task_of(sp.csr_array(X) if sparse else X, y, squared, regression=regression, weight=s)
    pair = task.pair(rng.normal(size=task.sign.shape) * size, w=rng.normal(size=4) * size)
    power = 2 if squared else 1
    if regression:
        value = svr_objective(pair.w, X, y, 0.7 * s, 1.0, 0.2, power)
    else:
        value = svc_objective(pair.w, X, y, 0.7 * s, 1.0, power)
    np.testing.assert_allclose(pair.primal, value, rtol=1e-12)
    assert pair.dual <= pair.primal * (1 + 1e-12)
    assert (pair.alpha >= 0).all() and (squared or (pair.alpha <= 0.7 * s).all())
    np.testing.assert_allclose(task.weights_of(pair.alpha), augmented(X, 1.0).T @ (task.sign * pair.alpha).sum(axis=0))


def test_the_best_of_two_pairs_is_never_worse():
    X, y = two_classes(30, 3)
    task, rng = task_of(X, y), np.random.default_rng(0)
    a, b = (task.pair(rng.uniform(size=(1, 30))) for _ in range(2))
    best = better(a, b, task.start_value)
    assert best.gap <= min(a.gap, b.gap) and best.primal == min(a.primal, b.primal) and best.dual == max(a.dual, b.dual)


@pytest.mark.parametrize("sparse", [False, True])
def test_weighted_gram(sparse):
    X = np.random.default_rng(0).normal(size=(50, 3))
    weight = np.where(np.arange(50) % 3, np.arange(50.0), 0.0)
    Z = augmented(X, 2.0)
    np.testing.assert_allclose(weighted_gram(sp.csr_array(X) if sparse else X, weight, 2.0), (Z.T * weight) @ Z)


def test_relative_gap():
    assert relative_gap(2.0, 1.0, 4.0) == 1.0
    assert relative_gap(1.0, -1.0, 1.0) == 2e8
    assert relative_gap(0.0, 0.0, 0.0) == 0.0
