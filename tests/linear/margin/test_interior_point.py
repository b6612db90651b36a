"""The interior-point method: feasible at every step, exact at the end."""

from itertools import pairwise

import numpy as np
import pytest
from tests.linear.margin.test_problem import task_of
from tests.linear.svm_tables import numbers, two_classes

from learnable.linear.margin.interior_point import interior_point


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_every_iterate_is_certified_and_the_gap_falls(regression, C):
    X, y = (numbers if regression else two_classes)(200, 5)
    task = task_of(X, y, C=C, regression=regression)
    gaps = []
    found = interior_point(task, progress=lambda iteration, gap: bool(gaps.append(gap)))
    optimum = found.primal
    assert found.gap <= 1e-12
    assert all(b <= a for a, b in pairwise(gaps))
    for steps in range(1, len(gaps)):
        early = interior_point(task, max_iter=steps)
        assert early.dual <= optimum * (1 + 1e-12) <= early.primal * (1 + 2e-12)


def test_about_right_weights_are_a_start():
    X, y = two_classes(500, 5)
    task = task_of(X, y)
    best = interior_point(task)
    again = interior_point(task, best.w + 0.01)
    np.testing.assert_allclose(again.w, best.w, rtol=1e-8)


def test_it_stops_when_asked():
    X, y = two_classes(200, 5)
    found = interior_point(task_of(X, y), progress=lambda iteration, gap: iteration == 2)
    assert found.n_iter == 2 and np.isfinite(found.gap)
