"""Proximal Newton by columns: weak duality anywhere, the same optimum as with a Hessian, and its kernels."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from tests.oracles.sparse import gap_of_logistic, logistic_optimum

from learnable.data.blocks import Blocks, Part
from learnable.linear.logistic.columns import (
    BinaryModel,
    Columns,
    SoftmaxModel,
    column_newton,
    curved_epoch,
    curved_moments,
    recentre,
    softmax_epoch,
    softmax_moments,
)
from learnable.risk.classes import Penalties, class_sums, penalised_gap

RNG = np.random.default_rng(3)
X = RNG.standard_normal((80, 7)) * (RNG.random((80, 7)) < 0.6)
CODES = {2: (X[:, 0] + RNG.logistic(size=80) > 0).astype(int), 3: np.digitize(X[:, 0] + RNG.logistic(size=80), [-1, 1])}
WEIGHT = RNG.random(80) + 0.2


def problem(n_classes, intercept):
    """Return the model, its columns, the class sums and the loss with its slopes as a function of θ."""
    y = CODES[n_classes]
    sums = class_sums(Blocks([Part(sp.csr_array(X), y, WEIGHT)]), n_classes, intercept=intercept, n_jobs=1)
    columns = Columns(sp.csc_array(X))
    if n_classes == 2:
        model = BinaryModel(columns, y, WEIGHT, intercept)
    else:
        model = SoftmaxModel(columns, y, WEIGHT, n_classes, intercept)

    def evaluate(theta):
        z = X @ theta[:, 1:].T + theta[:, 0] - theta[:, 1:] @ sums.centre
        loss = model.evaluate(np.ascontiguousarray(z[:, 0] if n_classes == 2 else z))
        slope = model.slope.reshape(80, -1)
        return loss, np.column_stack([-slope.sum(axis=0) * intercept, -((X - sums.centre).T @ slope).T])

    return model, columns, sums, evaluate


@given(
    st.integers(0, 10_000), st.floats(0.02, 20.0), st.sampled_from([1.0, 0.4]), st.sampled_from([2, 3]), st.booleans()
)
@settings(max_examples=12, deadline=None)
def test_weak_duality_holds_anywhere(seed, C, l1, n_classes, intercept):
    _, _, sums, evaluate = problem(n_classes, intercept)
    theta = np.random.default_rng(seed).standard_normal((1 if n_classes == 2 else n_classes, 8))
    theta[:, 0] *= intercept
    loss, slopes = evaluate(theta)
    penalty = Penalties(C, l1, 1 - l1)
    gap, value = penalised_gap(theta, loss, slopes, sums, penalty, intercept=intercept)
    primal = C * loss + penalty.of(theta[:, 1:])
    optimum = logistic_optimum(X, CODES[n_classes], n_classes, C, l1, 1 - l1, WEIGHT, intercept)
    assert primal - gap <= optimum * (1 + 1e-9) + 1e-9 and optimum <= primal * (1 + 1e-9)
    b = theta[:, 0] - theta[:, 1:] @ sums.centre
    by_hand = gap_of_logistic(X, CODES[n_classes], n_classes, theta[:, 1:], b, C, l1, 1 - l1, WEIGHT, intercept)
    assert value == pytest.approx(by_hand, rel=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("l1", [1.0, 0.3])
@pytest.mark.parametrize("C", [0.1, 3.0])
def test_steps_end_at_the_optimum_and_never_rise(n_classes, intercept, l1, C):
    model, columns, sums, evaluate = problem(n_classes, intercept)
    penalty, seen = Penalties(C, l1, 1 - l1), []
    theta = np.zeros((1 if n_classes == 2 else n_classes, 8))
    for most in range(1, 8):  # from the start each time: steps are deterministic
        found = column_newton(
            model, columns, theta, sums, penalty, intercept=intercept, tol=1e-9, max_iter=most
        )  # fmt: skip
        seen.append(C * evaluate(found.theta)[0] + penalty.of(found.theta[:, 1:]))
    assert (np.diff(seen) <= 1e-11 * seen[0]).all()
    found = column_newton(model, columns, theta, sums, penalty, intercept=intercept, tol=1e-9, max_iter=100)
    optimum = logistic_optimum(X, CODES[n_classes], n_classes, C, l1, 1 - l1, WEIGHT, intercept)
    reached = C * evaluate(found.theta)[0] + penalty.of(found.theta[:, 1:])
    assert reached == pytest.approx(optimum, rel=2e-9)
    assert not theta.any()  # the start is not changed


def test_progress_can_stop_it():
    model, columns, sums, _ = problem(2, True)
    found = column_newton(
        model, columns, np.zeros((1, 8)), sums, Penalties(5.0, 1.0, 0.0), intercept=True, tol=0.0, max_iter=50,
        progress=lambda step, value: step == 2,
    )  # fmt: skip
    assert found.stopped and found.n_iter == 2


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=6), st.floats(0.1, 2.0), st.sampled_from([0.0, 0.5]))
@settings(max_examples=60, deadline=None)
def test_a_shift_is_where_the_penalty_is_least(values, l1, l2):
    v = np.array(values)
    moved = v.copy()
    recentre(moved, l1, l2)

    def penalty(c):
        return l1 * np.abs(v + c).sum() + 0.5 * l2 * ((v + c) ** 2).sum()

    best = minimize_scalar(penalty, bounds=(-4, 4), method="bounded", options={"xatol": 1e-10}).fun
    assert penalty(moved[0] - v[0]) <= best + 1e-8
    np.testing.assert_allclose(moved - v, moved[0] - v[0], atol=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
def test_an_epoch_keeps_the_slopes_of_the_model(intercept):
    model, columns, _, _ = problem(2, intercept)
    model.evaluate(np.zeros(80))
    moments, rho, w = np.empty((2, 7)), model.slope.copy(), np.zeros(7)
    curved_moments(*columns.entries, model.D, moments)
    np.testing.assert_allclose(moments, [X.T @ model.D, (X * X).T @ model.D])
    mass = model.D.sum()
    moments[1] -= moments[0] ** 2 / mass * intercept
    total = np.array([rho.sum(), 1 / mass]) * intercept
    visited = np.array([0, 1, 2, 5, 6], dtype=np.uint64)
    assert curved_epoch(*columns.entries, model.D, 1.0, 0.1, moments, visited, w, rho, total) > 0
    assert w[0] != 0 and not w[3:5].any()  # only what is visited moves
    np.testing.assert_allclose(rho, model.slope - model.D * (X @ w), atol=1e-12)
    if intercept:
        assert total[0] == pytest.approx(rho.sum(), abs=1e-11)


def test_an_epoch_of_the_softmax_keeps_its_slopes():
    model, columns, _, _ = problem(3, False)
    model.evaluate(RNG.standard_normal((80, 3)))
    P, R, W, curvature = model.P, model.slope.copy(), np.zeros((7, 3)), np.empty((7, 3))
    softmax_moments(*columns.entries, P, WEIGHT, curvature)
    np.testing.assert_allclose(curvature, (X * X).T @ (WEIGHT[:, None] * P * (1 - P)))
    assert softmax_epoch(*columns.entries, P, WEIGHT, 0.5, 0.1, curvature, W, R) > 0
    u = X @ W
    expected = model.slope - WEIGHT[:, None] * (P * u - P * (P * u).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(R, expected, atol=1e-12)
