"""The decomposition finds the optimum that a general quadratic program has, and tells when there is none."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.solvers.conic.quadratic import quadratic_program
from learnable.solvers.conic.smo import BoxProgram, decompose


class Whole:
    """A matrix in memory, with rows rounded to float32 if asked."""

    def __init__(self, K, rounded=False):
        self.K, self.n, self.rounded = K, len(K), rounded
        self.seen = K.astype(np.float32).astype(np.float64) if rounded else K
        self.parts = []

    def rounding(self):
        return self.rounded

    def diagonal(self):
        return self.K.diagonal().copy()

    def block(self, rows):
        K = np.ascontiguousarray(self.seen[np.ix_(rows, rows)])
        K[rows < 0], K[:, rows < 0] = 0.0, 0.0
        return K

    def add(self, f, rows, delta):
        f += self.seen[:, rows] @ delta

    def sums(self, rows, support, beta):
        return self.seen[np.ix_(rows, support)] @ beta

    def exact(self, rows, support, beta):
        return self.K[np.ix_(rows, support)] @ beta

    def part(self, rows):
        part = Whole(self.K[np.ix_(rows, rows)], self.rounded)
        self.parts.append((len(rows), part.parts))
        return part


def matrix(n, rank, seed):
    Z = np.random.default_rng(seed).standard_normal((n, rank))
    return Z @ Z.T


def objective(K, program, beta):
    total = beta.reshape(-1, len(K)).sum(axis=0)
    return 0.5 * total @ K @ total + program.linear @ beta


def by_general_program(K, program, sums):
    """Return the least objective; `sums` are the values of the equality constraints."""
    copies = len(program.linear) // len(K)
    P = np.tile(K, (copies, copies))
    second = np.zeros(len(program.linear), bool) if program.second is None else program.second
    A = np.stack([~second, second])[: 1 if program.second is None else 2].astype(float)
    A, b = (A, np.asarray(sums, dtype=float)) if program.constrained else (None, None)
    found = quadratic_program(P, program.linear, A=A, b=b, lower=program.low, upper=program.high)
    return 0.5 * found.x @ P @ found.x + program.linear @ found.x


@pytest.mark.parametrize("constrained", [True, False])
@given(st.integers(2, 40), st.integers(1, 10), st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_the_optimum_is_that_of_a_general_quadratic_program(constrained, n, rank, seed):
    rng = np.random.default_rng(seed)
    K, y = matrix(n, rank, seed), np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    cost = rng.uniform(0.1, 3.0, n)
    program = BoxProgram(-y, np.where(y > 0, 0.0, -cost), np.where(y > 0, cost, 0.0), constrained=constrained)
    found = decompose(Whole(K), program, tol=1e-9)
    assert (found.beta >= program.low).all() and (found.beta <= program.high).all()
    assert not constrained or abs(found.beta.sum()) < 1e-10 * n
    np.testing.assert_allclose(found.f, K @ found.beta, atol=1e-9)
    best = by_general_program(K, program, [0.0])
    assert objective(K, program, found.beta) == pytest.approx(best, rel=1e-6, abs=1e-7)


@given(st.integers(3, 25), st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_two_variables_a_row_and_two_groups(n, seed):
    rng = np.random.default_rng(seed)
    K, t = matrix(n, 5, seed), rng.standard_normal(n)
    cost, zero = rng.uniform(0.5, 2.0, n), np.zeros(n)
    low, high = np.concatenate([zero, -cost]), np.concatenate([cost, zero])
    tube = BoxProgram(np.concatenate([0.1 - t, -0.1 - t]), low, high)
    found = decompose(Whole(K), tube, tol=1e-9)
    assert objective(K, tube, found.beta) == pytest.approx(by_general_program(K, tube, [0.0]), rel=1e-6, abs=1e-7)
    nu = BoxProgram(np.concatenate([-t, -t]), low, high, np.arange(2 * n) >= n)
    start = 0.3 * np.concatenate([cost, -cost])
    found, total = decompose(Whole(K), nu, tol=1e-9, start=start), 0.3 * cost.sum()
    assert found.beta[:n].sum() == pytest.approx(total) and found.beta[n:].sum() == pytest.approx(-total)
    assert objective(K, nu, found.beta) == pytest.approx(by_general_program(K, nu, [total, -total]), rel=1e-6, abs=1e-7)


def noisy(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    K = np.exp(-0.25 * ((X[:, None] - X) ** 2).sum(axis=2))
    return K, BoxProgram(-y, np.minimum(y, 0.0), np.maximum(y, 0.0))


def test_small_working_sets_reach_the_same_optimum():
    K, program = noisy(700)
    whole = decompose(Whole(K), program, tol=1e-6, block=1024)
    parts = decompose(Whole(K), program, tol=1e-6, block=64)
    assert parts.n_rounds > whole.n_rounds and parts.violation <= 1e-6
    assert objective(K, program, parts.beta) == pytest.approx(objective(K, program, whole.beta), rel=1e-9)


@cache
def unshrunk(kind):
    """Return a matrix, a program, a start and the solution without leaving out rows."""
    K, program = noisy(900)
    n, start = len(K), None
    cost, zero = np.ones(n), np.zeros(n)
    if kind == "no offset":
        program = program._replace(constrained=False)
    elif kind == "tube":
        t = -program.linear
        program = BoxProgram(np.append(0.5 - t, -0.5 - t), np.append(zero, -cost), np.append(cost, zero))
    elif kind == "two groups":
        program = program._replace(linear=zero, second=program.linear > 0)
        start = 0.3 * (program.high + program.low)
    return K, program, start, decompose(Whole(K), program, tol=1e-7, block=64, start=start, shrinking=False)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("rounded", [True, False])
@pytest.mark.parametrize("kind", ["offset", "no offset", "tube", "two groups"])
def test_rows_at_rest_are_left_out_and_the_optimum_stays(kind, rounded):
    K, program, start, whole = unshrunk(kind)
    n = len(K)
    matrix = Whole(K, rounded)
    tol = 1e-3 if rounded else 1e-7
    found = decompose(matrix, program, tol=tol, block=64, start=start)
    assert matrix.parts and min(size for size, _ in matrix.parts) <= n / 2 and found.violation <= tol
    worse = objective(K, program, found.beta) - objective(K, program, whole.beta)
    assert abs(worse) <= tol * np.abs(found.beta - whole.beta).sum() + 1e-7  # convex: no further than slope times way
    np.testing.assert_allclose(found.f, K @ found.beta.reshape(-1, n).sum(axis=0), atol=1e-3 if rounded else 1e-9)


def test_a_search_that_ends_among_some_rows_knows_the_sums_of_all():
    K, program = noisy(900)
    matrix = Whole(K)
    found = decompose(matrix, program, tol=1e-9, block=64, progress=lambda iteration, value: bool(matrix.parts))
    assert found.n_rounds > 0 and found.violation > 1e-9
    np.testing.assert_allclose(found.f, K @ found.beta, atol=1e-9)
    v = -(found.f + program.linear)
    assert found.violation == pytest.approx(
        v[found.beta < program.high].max() - v[found.beta > program.low].min(), rel=1e-9
    )


def test_rows_left_out_wrongly_are_taken_back():
    K, program = noisy(900)
    hasty = decompose(Whole(K), program, tol=1e-1, block=64).beta  # near the optimum, but some of its rest is wrong
    matrix = Whole(K)
    found = decompose(matrix, program, tol=1e-8, block=64, start=hasty)
    assert matrix.parts and found.violation <= 1e-8


def test_the_violation_of_rounded_rows_is_exact():
    K, program = noisy(600)
    found = decompose(Whole(K, rounded=True), program, tol=1e-3, block=64)
    v = -(K @ found.beta + program.linear)
    exact = v[found.beta < program.high].max() - v[found.beta > program.low].min()
    assert found.violation == pytest.approx(exact, abs=1e-9) and exact <= 1e-3


def test_a_limit_of_steps_leaves_a_feasible_point_and_its_violation():
    K, program = noisy(300)
    found = decompose(Whole(K), program, tol=1e-6, max_steps=20)
    assert found.n_steps == 20 and found.violation > 1e-6
    assert abs(found.beta.sum()) < 1e-12
    assert objective(K, program, found.beta) < 0.0


def test_a_warm_start_needs_fewer_steps():
    K, program = noisy(400)
    cold = decompose(Whole(K), program, tol=1e-6)
    warm = decompose(Whole(K), program, tol=1e-6, start=cold.beta)
    assert warm.n_steps == 0 and warm.violation <= 1e-6


def test_a_program_without_bound_runs_away_and_says_so():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, -1.0, 1.0, -1.0])
    free = BoxProgram(-y, np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0))
    assert decompose(Whole(X @ X.T), free).runs_away
    apart = BoxProgram(-np.array([1.0, 1.0, -1.0, -1.0]), free.low[[0, 0, 1, 1]], free.high[[0, 0, 1, 1]])
    found = decompose(Whole(X @ X.T), apart, tol=1e-9)
    assert not found.runs_away and np.abs(found.beta).sum() == pytest.approx(4.0)  # 1/margin², margin ½


def test_progress_can_stop_it():
    K, program = noisy(400)
    found = decompose(Whole(K), program, tol=1e-9, block=64, progress=lambda iteration, value: iteration >= 3)
    assert found.n_rounds == 3
