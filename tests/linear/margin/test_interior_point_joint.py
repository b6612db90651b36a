"""The interior-point method for Crammer and Singer's problem: a quadratic program as the oracle, units, hard tables."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.linear.margin.test_problem_joint import task_of
from tests.linear.svm_tables import several_classes
from tests.oracles.svm import crammer_singer_program

from learnable.linear.margin.interior_point import _curvature, joint_interior_point


@pytest.mark.parametrize("C", [0.1, 2.0, 50.0])
def test_the_weights_are_those_of_the_quadratic_program(C):
    X, y = several_classes(15, 2)
    found = joint_interior_point(task_of(X, y, C), tol=1e-9)
    W = crammer_singer_program(X, y, np.full(15, C), 1.0, 3)
    assert found.gap <= 1e-9
    np.testing.assert_allclose(found.w.T, W, atol=1e-3 * np.abs(W).max())


@pytest.mark.parametrize("sparse", [False, True])
def test_the_matrix_is_the_sum_of_its_definition(sparse):
    X, y = several_classes(12, 2)
    task = task_of(sp.csr_array(X) if sparse else X, y, bias=0.5)
    D = np.random.default_rng(0).exponential(size=(12, 3))
    expected = np.eye(9)
    for x, d in zip(np.column_stack([np.full(12, 0.5), X]), D, strict=True):
        expected += np.kron(np.diag(d) - np.outer(d, d) / d.sum(), np.outer(x, x))
    np.testing.assert_allclose(_curvature(task, D), expected, atol=1e-12)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    n_classes=st.integers(3, 5),
    scale=st.sampled_from([1e-8, 1e-3, 1.0, 1e3, 1e8]),
    C=st.sampled_from([1e-3, 1.0, 1e3]),
    sparse=st.booleans(),
)
@pytest.mark.long
def test_it_takes_a_few_tens_of_steps_in_whatever_units(seed, n_classes, scale, C, sparse):
    X, y = several_classes(60, 3, n_classes, seed=seed)
    X = X * [scale, 1.0, 1.0]
    weight = np.random.default_rng(seed).uniform(0.01, 3, 60)
    found = joint_interior_point(task_of(sp.csr_array(X) if sparse else X, y, C, weight))
    assert found.gap <= 1e-6 and found.n_iter <= 60


def test_many_classes_of_unequal_size():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5)) * [1.0, 10.0, 0.1, 100.0, 1.0]
    y = np.minimum(rng.geometric(0.4, 600) - 1, 7)
    y[:8] = np.arange(8)
    found = joint_interior_point(task_of(X, y))
    assert found.gap <= 1e-6


def test_it_stops_when_told_and_its_gap_still_holds():
    X, y = several_classes(60, 3)
    task = task_of(X, y)
    found = joint_interior_point(task, progress=lambda iteration, gap: iteration == 3)
    again = task.pair(found.alpha, found.w)
    assert found.n_iter == 3 and found.gap > 1e-6
    assert again.gap == pytest.approx(found.gap, rel=1e-9)
