"""Crammer and Singer's problem and its dual: against the objective written out, and weak duality everywhere."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tests.linear.svm_tables import several_classes
from tests.oracles.svm import crammer_singer_objective

from learnable.data.blocks import Blocks, Part
from learnable.linear.margin.problem import joint_task


def task_of(X, y, C=1.0, weight=None, bias=1.0, n_jobs=None):
    return joint_task(Blocks([Part(X, y, weight)], rows=16), int(y.max()) + 1, C, bias, n_jobs)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_values_weights_and_scores_are_those_of_the_formulas(sparse, bias):
    X, y = several_classes(50, 3)
    weight = np.random.default_rng(1).uniform(0.5, 2, 50)
    task = task_of(sp.csr_array(X) if sparse else X, y, 0.3, weight, bias)
    rng = np.random.default_rng(2)
    W, rows = rng.normal(size=(4, 3)), np.column_stack([np.full(50, bias), X])
    alpha = task.feasible(rng.normal(size=(50, 3)))
    found = task.pair(alpha, W)
    assert found.primal == pytest.approx(crammer_singer_objective(W.T, X, y, 0.3 * weight, bias))
    np.testing.assert_allclose(task.scores(W), rows @ W, atol=1e-13)
    np.testing.assert_allclose(task.weights_of(alpha), rows.T @ alpha, atol=1e-13)
    np.testing.assert_allclose(task.row_norms, (rows**2).sum(axis=1))
    others = alpha.sum() - alpha[np.arange(50), y].sum()
    assert found.dual == pytest.approx(-others - 0.5 * np.square(rows.T @ alpha).sum())


@given(seed=st.integers(0, 10**6), size=st.sampled_from([1e-8, 1.0, 1e8]), C=st.sampled_from([1e-3, 1.0, 1e3]))
def test_every_point_made_feasible_obeys_the_constraints_and_lies_below_every_primal(seed, size, C):
    X, y = several_classes(20, 2)
    rng = np.random.default_rng(seed)
    task = task_of(X, y, C, rng.uniform(0.1, 2, 20))
    alpha = task.feasible(size * rng.normal(size=(20, 3)))
    assert (alpha <= task.upper).all()
    assert (abs(alpha.sum(axis=1)) <= 1e-14 * task.cost).all()
    found = task.pair(alpha, rng.normal(size=(3, 3)))
    assert found.dual <= found.primal and found.gap >= 0
    np.testing.assert_allclose(task.feasible(alpha), alpha, rtol=1e-14, atol=1e-14 * task.cost.max())


@pytest.mark.threaded
def test_the_same_bits_for_any_number_of_threads():
    X, y = several_classes(200, 4)
    one, two = (task_of(X, y, n_jobs=jobs) for jobs in (1, 2))
    alpha = one.feasible(np.random.default_rng(0).normal(size=(200, 3)))
    assert np.array_equal(one.weights_of(alpha), two.weights_of(alpha))
    assert one.pair(alpha).gap == two.pair(alpha).gap
