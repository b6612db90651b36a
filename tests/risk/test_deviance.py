"""The penalised deviance against its definition: value, derivatives, and a duality gap that never lies."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.deviance import Deviance

from learnable.data import Blocks, Part
from learnable.risk.deviance import DevianceRisk, target_sums
from learnable.risk.losses import DevianceLoss
from learnable.risk.penalties import L2Penalty

FAMILIES = [(0, False), (0, True), (1, True), (1.5, True), (2, True), (3, True), (-1, True), (1, False), (2, False)]
family = pytest.mark.parametrize(
    ("power", "log_link"), FAMILIES, ids=[f"{p}-{'log' if log else 'identity'}" for p, log in FAMILIES]
)
FORMS = [(p, log, free) for p, log in FAMILIES for free in (True, False) if log or p == 0 or free]
form = pytest.mark.parametrize(
    ("power", "log_link", "intercept"),
    FORMS,
    ids=[f"{p}-{'log' if log else 'identity'}-{'free' if free else 'zero'}" for p, log, free in FORMS],
)
CONVEX = [(0, False), (1, True), (1.3, True), (2, True)]
convex = pytest.mark.parametrize(("power", "log_link"), CONVEX, ids=[f"{p}" for p, _ in CONVEX])
storages = pytest.mark.parametrize("storage", ["dense", "sparse"])
intercepts = pytest.mark.parametrize("intercept", [True, False], ids=["free", "zero"])


def draw(power, seed=0, n=40, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * [1.0, 2.0, 0.2] + [0.0, 1.0, -1.0]
    X[rng.random(X.shape) < 0.3] = 0.0
    mu = np.exp(0.3 * X[:, 0] + 0.5)
    y = rng.poisson(mu).astype(float) if 0 < power < 2 else rng.gamma(2.0, mu / 2)
    return X, y, rng.uniform(0.2, 2.0, n)


def make_problem(X, y, weight, power, log_link, alpha, storage="dense", intercept=True, **kwargs):
    blocks = Blocks([Part(sp.csr_array(X) if storage == "sparse" else X, y, weight)], **kwargs)
    sums = target_sums(blocks, intercept=intercept, n_jobs=1)
    mean = np.average(y, weights=weight)
    base = (np.log(mean) if log_link else mean) if intercept else 0.0
    loss = DevianceLoss(power, "log" if log_link else "identity")
    return DevianceRisk(loss, L2Penalty(alpha), blocks, sums=sums, base=base, intercept=intercept, n_jobs=1)


def oracle_point(problem, theta):
    """Return the same point for rows that are not centred."""
    theta = theta.copy()
    theta[0] = problem.base + theta[0] - theta[1:] @ problem.centre if problem.intercept else 0.0
    return theta


def random_theta(problem, seed, size=0.3):
    theta = size * np.random.default_rng(seed).normal(size=problem.width)
    if not problem.log_link and problem.power:
        theta *= 0.1  # means have to stay positive
    if not problem.intercept:
        theta[0] = 0.0
    return theta


@form
@storages
@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_value_and_gradient_are_those_of_the_definition(power, log_link, storage, intercept, alpha):
    X, y, weight = draw(power)
    problem = make_problem(X, y, weight, power, log_link, alpha, storage, intercept)
    exact = Deviance(X, y, power, alpha, log_link=log_link, weight=weight, intercept=intercept)
    for seed, size in enumerate([0.0, 0.1, 1.0]):
        theta = random_theta(problem, seed, size)
        found, at = problem.evaluate(theta), oracle_point(problem, theta)
        assert found.value == pytest.approx(float(exact.value(at)), rel=1e-12)
        g = exact.gradient(at)
        g[1:] -= problem.centre * g[0]
        if not intercept:
            g[0] = 0.0
        np.testing.assert_allclose(found.gradient, g.astype(float), rtol=1e-9, atol=1e-12 * np.abs(g).max())


@form
@storages
def test_hessian_is_the_derivative_of_the_gradient(power, log_link, storage, intercept):
    X, y, weight = draw(power)
    problem = make_problem(X, y, weight, power, log_link, 0.5, storage, intercept)
    theta, step = random_theta(problem, 2), 1e-5
    H = super(DevianceRisk, problem).hessian(theta)
    free = np.arange(0 if intercept else 1, problem.width)
    for j in free:
        e = step * np.eye(problem.width)[j]
        numeric = (problem.evaluate(theta + e).gradient - problem.evaluate(theta - e).gradient) / (2 * step)
        np.testing.assert_allclose(H[j, free], numeric[free], rtol=1e-6, atol=1e-6 * np.abs(H).max())


@family
def test_the_step_of_a_newton_method_always_goes_down(power, log_link):
    X, y, weight = draw(power)
    problem = make_problem(X, y, weight, power, log_link, 0.01)
    for seed in range(20):
        theta = random_theta(problem, seed, 2.0)
        at = problem.evaluate(theta)
        if not np.isfinite(at.value):
            continue
        H = problem.hessian(theta)
        assert np.linalg.eigvalsh(H).min() > 0
        product = problem.hessian_product(theta)
        v = np.random.default_rng(seed).normal(size=problem.width)
        assert v @ product(v) > 0
        if problem.convex:
            np.testing.assert_allclose(product(v), H @ v, rtol=1e-11, atol=1e-11 * np.abs(H).max())


@convex
@intercepts
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.floats(0.0, 3.0), alpha=st.floats(1e-4, 10.0))
def test_weak_duality_at_every_point(power, log_link, intercept, seed, size, alpha):
    X, y, weight = draw(power, seed % 7)
    problem = make_problem(X, y, weight, power, log_link, alpha, intercept=intercept)
    best = minimum(problem)
    at = problem.evaluate(random_theta(problem, seed, size))
    # measure = (P − D)/max(D, floor): solving for D gives a lower bound on the optimum.
    floor = 1e-8 * problem.null_value
    dual = at.value / (1 + at.measure)
    if dual >= floor:
        assert dual <= best * (1 + 1e-12)
    assert at.value >= best * (1 - 1e-12)


def minimum(problem):
    """Return the least value that plain Newton steps reach, which is an upper bound on the optimum."""
    theta, at = np.zeros(problem.width), problem.evaluate(np.zeros(problem.width))
    for _ in range(25):
        step, length = np.linalg.solve(problem.hessian(theta), at.gradient), 1.0
        while (new := problem.evaluate(theta - length * step)).value > at.value and length > 1e-12:
            length /= 2
        if new.value >= at.value:
            break
        theta, at = theta - length * step, new
    return at.value


@convex
def test_the_gap_is_that_of_the_best_intercept_evaluated_as_a_difference(power, log_link):
    X, y, weight = draw(power)
    alpha = 0.3
    problem = make_problem(X, y, weight, power, log_link, alpha)
    theta = random_theta(problem, 5)
    at = problem.evaluate(theta)
    moved = theta.copy()
    moved[0] += problem.step
    there = problem.evaluate(moved)
    assert abs(there.gradient[0]) <= 1e-13 * max(1.0, there.value)
    exact = Deviance(X - problem.centre, y, power, alpha, log_link=log_link, weight=weight)
    moved[0] += problem.base
    u, z = exact.slopes(moved), exact.rows @ moved.astype(np.longdouble)
    w_u = -((exact.weight * u) @ exact.rows[:, 1:]) / alpha
    conjugate = u * z - exact.half_deviance(exact.means(moved))
    dual = -exact.weight @ conjugate - alpha / 2 * (w_u @ w_u)
    assert at.measure == pytest.approx(float((at.value - dual) / max(dual, 1e-8 * problem.null_value)), rel=1e-9)


def test_a_problem_travels_without_its_rows():
    X, y, weight = draw(1)
    problem = make_problem(X, y, weight, 1, True, 0.1)
    assert pickle.loads(pickle.dumps(problem)).blocks is None


@storages
def test_every_thinned_row_has_the_weight_of_those_left_out(storage):
    X, y, weight = draw(1, n=90)
    problem = make_problem(X, y, weight, 1, True, 0.1, storage)
    thinned = problem.thinned(3)
    theta = random_theta(problem, 1)
    exact = Deviance(X[::3] - problem.centre, y[::3], 1, 0.1, weight=weight[::3])
    at = theta.copy()
    at[0] += problem.base
    assert thinned.evaluate(theta).value == pytest.approx(float(exact.value(at)), rel=1e-12)
    assert make_problem(X, np.r_[1.0, np.zeros(89)], weight, 1, True, 0.1).thinned(3) is not None
    assert make_problem(X, np.r_[0.0, 1.0, np.zeros(88)], weight, 1, True, 0.1).thinned(3) is None


@pytest.mark.threaded
def test_cut_into_any_blocks_the_value_is_the_same_to_the_bit():
    X, y, weight = draw(1, n=4000)
    theta = np.array([0.1, 0.2, -0.1, 0.3])
    whole, cut = (
        Blocks([Part(X, y, weight)]),
        Blocks([Part(X[:9], y[:9], weight[:9]), Part(X[9:], y[9:], weight[9:])]),
    )
    found = []
    for blocks in (whole, cut):
        sums = target_sums(blocks, intercept=True, n_jobs=2)
        problem = DevianceRisk(DevianceLoss(1.0, "log"), L2Penalty(0.1), blocks, sums=sums, base=0.2, n_jobs=2)
        at = problem.evaluate(theta)
        found.append((at.value, at.gradient.tobytes(), at.measure))
    assert found[0] == found[1]


def test_means_that_overflow_have_an_infinite_value_and_no_warning():
    X, y, weight = draw(1)
    problem = make_problem(X, y, weight, 1, True, 0.1)
    assert problem.evaluate(np.full(4, 1e4)).value == np.inf
