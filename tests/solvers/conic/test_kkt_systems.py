"""Systems of interior-point methods: dense and sparse solve the same equations."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tests.solvers.program_cases import parts, random_program

from learnable.solvers import QuadraticProgram
from learnable.solvers.conic.interior_point import Constraints, system_of


def whole(program, rows, inverse_weight):
    """Return the system as one matrix."""
    n = len(program.q)
    G = np.array([rows.apply(e) for e in np.eye(n)]).T.reshape(-1, n)
    A, m, k = np.asarray(rows.A), len(rows.h), len(rows.b)
    return np.block([
        [program.P, A.T, G.T],
        [A, np.zeros((k, k + m))],
        [G, np.zeros((m, k)), -np.diag(inverse_weight)],
    ])  # fmt: skip


@given(st.integers(0, 10_000))
def test_both_ways_solve_the_whole_system(seed):
    rng, program = np.random.default_rng(seed), random_program(seed)
    rows = Constraints.of(program)
    weight = rng.exponential(size=len(rows.h))
    K = whole(program, rows, weight)
    right = rng.normal(size=len(K))
    n, k = len(program.q), len(rows.b)
    split = right[:n], right[n : n + k], right[n + k :]
    expected = np.linalg.solve(K, right)
    found = np.concatenate(system_of(program.P, rows, weight).solve(*split))
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())
    sparse = QuadraticProgram(**(parts(program) | {"P": sp.csr_array(program.P)}))
    other = np.concatenate(system_of(sparse.P, Constraints.of(sparse), weight).solve(*split))
    np.testing.assert_allclose(other, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_back_is_the_transpose_of_apply():
    program = random_program(4)
    rows, rng = Constraints.of(program), np.random.default_rng(0)
    x, z = rng.normal(size=len(program.q)), rng.normal(size=len(rows.h))
    assert rows.apply(x) @ z == pytest.approx(x @ rows.back(z))


def test_convexity_is_judged_after_balancing():
    tiny = QuadraticProgram(np.diag([1e20, 1e-20]), [0.0, 0.0])
    assert Constraints.of(tiny).lowest_curvature() == 0.0
    bad = QuadraticProgram([[1e20, 2.0], [2.0, 1e-20]], [0.0, 0.0])
    assert Constraints.of(bad).lowest_curvature() == pytest.approx(-1.0, rel=1e-6)
