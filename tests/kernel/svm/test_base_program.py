"""The program of a machine: its offset, its bound, and the same steps for a linear kernel, a function and a matrix."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernel.kernel_tables import rings

import learnable as ln
from learnable.core.errors import DataError
from learnable.kernel.svm.base import offset_between, put_on_bounds
from learnable.risk.objective import relative_gap
from learnable.solvers.conic.smo import BoxProgram, Solution

PROGRAM = BoxProgram(np.zeros(3), np.zeros(3), np.ones(3))
FREE = Solution(np.array([0.0, 0.5, 1.0]), np.array([1.0, 2.0, 3.0]), 0.0, (-1.0,), (-3.0,), 0, 0)


def test_offsets():
    assert offset_between(FREE, PROGRAM) == -2.0
    assert offset_between(FREE._replace(beta=np.array([0.0, 0.0, 1.0])), PROGRAM) == -2.0
    assert offset_between(FREE._replace(beta=np.ones(3)), PROGRAM) == -3.0  # nothing may rise
    assert offset_between(FREE, PROGRAM._replace(constrained=False)) == 0.0
    assert relative_gap(2.0, 1.0, 5.0) == 1.0 and relative_gap(0.0, 0.0, 0.0) == 0.0


@pytest.mark.threaded
@given(st.lists(st.floats(-1e-12, 1e-12), min_size=3, max_size=3), st.integers(0, 7))
@settings(deadline=None)
def test_the_last_bits_of_a_multiplier_at_its_bound_decide_nothing(noise, bits):
    bound = np.array([float(bits >> k & 1) for k in range(3)])
    near = np.clip(bound + np.array(noise), 0.0, 1.0)
    near = near if bits else bound  # without a multiplier there is nothing that noise is small beside
    assert offset_between(FREE._replace(beta=near), PROGRAM) == offset_between(FREE._replace(beta=bound), PROGRAM)


def test_a_wide_box_hides_no_multiplier():
    inside = FREE._replace(beta=np.array([0.0, 1e-3, 2e-3]))
    for high in (1.0, 1e10, np.inf):
        assert offset_between(inside, PROGRAM._replace(high=np.full(3, high))) == -2.5


def test_a_linear_kernel_a_function_and_a_matrix_take_the_same_steps():
    X, y, _ = rings(90, 3)
    for cls, target in ((ln.SVC, y), (ln.SVR, X[:, 0] ** 2), (ln.OneClassSVM, None)):
        linear = cls(kernel="linear").fit(X, target)
        function = cls(kernel=lambda A, B: A @ B.T).fit(X, target)
        given = cls(kernel="precomputed").fit(X @ X.T, target)
        for other in (function, given):
            np.testing.assert_array_equal(other.dual_coef_, linear.dual_coef_)
            np.testing.assert_array_equal(other.n_iter_, linear.n_iter_)
    with pytest.raises(DataError, match="must be symmetric"):
        ln.SVR(kernel=lambda A, B: A @ B.T + np.arange(len(A))[:, None]).fit(X, X[:, 0])


def test_last_bits_beyond_a_bound_are_dropped_and_nothing_else():
    eps = np.finfo(float).eps
    program = BoxProgram(np.array([-1.0, -1.0, 1.0, 1.0]), np.array([0.0, 0, -1, -1]), np.array([1.0, 1, 0, 0]))
    beta = np.array([eps, 1.0 - eps, -1.0 + 1e-9, -1e-9])
    f = np.array([0.5, 0.2, 0.1, -0.3])
    tidy = put_on_bounds(Solution(beta, f, 0.0, (0.0,), (0.0,), 1, 1), program)
    assert tidy.beta.tolist() == [0.0, 1.0, -1.0 + 1e-9, -1e-9]
    pull = -(f + program.linear)
    assert tidy.rises == (pull[[0, 2, 3]].max(),) and tidy.falls == (pull[1:].min(),)
    same = tidy._replace(n_steps=2)
    assert put_on_bounds(same, program) is same
