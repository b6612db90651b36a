"""The wrapper around functions: what it counts, what it remembers, what the measure means."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from learnable.solvers.lab.objective import ALL_ROWS, Objective, Recorder, is_whole, relative_gradient


def test_value_and_gradient_together_count_once_and_the_last_point_is_free():
    objective = Objective(lambda x: x @ x, lambda x: 2 * x)
    x = np.ones(2)
    objective.evaluate(x)
    objective.evaluate(x.copy())
    assert objective.evaluations == 1
    objective.gradient(2 * x)
    assert objective.evaluations == 2


def test_differences_count_every_evaluation():
    objective = Objective(lambda x: x @ x)
    objective.evaluate(np.ones(3))
    assert objective.evaluations == 1 + 2 * 3


def test_a_batch_counts_as_its_share():
    objective = Objective(lambda x, rows: 0.0, lambda x, rows: 0 * x, n_rows=10)
    objective.gradient(np.ones(1), np.arange(3))
    objective.gradient(np.ones(1), slice(2, 4))
    assert objective.evaluations == 0.5
    assert is_whole(ALL_ROWS) and not is_whole(slice(0, 3)) and not is_whole(np.arange(3))


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_the_measure_is_its_formula(x, value, g):
    found = relative_gradient(np.array([x]), value, np.array([g]))
    np.testing.assert_allclose(found, abs(g) * max(abs(x), 1) / max(abs(value), 1))


def test_what_is_not_finite_is_never_optimal():
    assert relative_gradient(np.zeros(1), np.inf, np.zeros(1)) == np.inf
    assert relative_gradient(np.zeros(1), 1.0, np.array([np.nan])) == np.inf


def test_the_recorder_finds_the_point_that_a_solver_moved_to():
    objective = Objective(lambda x: x @ x, lambda x: 2 * x)
    recorder = Recorder(objective)
    recorder.add(np.array([4.0]), recorder.evaluate(np.array([4.0])), 0.0)
    taken = recorder.evaluate(np.array([2.0]))
    recorder.evaluate(np.array([3.0]))  # tried and dropped
    recorder.progress(1, taken.measure)
    trace = recorder.trace(np.array([2.0]))
    assert trace.path.ravel().tolist() == [4.0, 2.0]
    assert trace.step.tolist() == [0.0, 2.0]
    assert trace.mean.tolist() == [4.0]
