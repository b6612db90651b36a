"""A risk is its definition; what is compiled for a loss is the same function; the dual never exceeds it."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.data.blocks import Blocks, Part
from learnable.risk import (
    DevianceLoss,
    ElasticNetPenalty,
    HuberLoss,
    L1Penalty,
    L2Penalty,
    LogisticLoss,
    PoissonLoss,
    Risk,
    SoftmaxLoss,
    SquaredHingeLoss,
    SquaredLoss,
)
from learnable.risk.classes import ClassRisk
from learnable.risk.deviance import DevianceRisk
from learnable.risk.objective import FUSED, relative_gap, share_in_domain
from learnable.solvers import newton
from learnable.solvers.smooth.shapes import solve

REAL = [SquaredLoss(), HuberLoss(delta=0.7)]
SIGNS = [LogisticLoss(), SquaredHingeLoss()]
SMOOTH = [*REAL, *SIGNS, PoissonLoss()]
PENALTIES = [L2Penalty(0.3), L1Penalty(0.1), ElasticNetPenalty(0.3, 0.5)]


def rows_of(loss, storage=np.asarray, seed=0, n=60, d=3, **kwargs):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * [1.0, 2.0, 0.3] + [0.0, 1.0, -1.0]
    X[rng.random(X.shape) < 0.3] = 0.0
    trend = X[:, 0] - X[:, 2] + rng.normal(size=n)
    if isinstance(loss, tuple(type(one) for one in SIGNS)):
        y = np.where(trend > 0, 1.0, -1.0)
    elif isinstance(loss, PoissonLoss):
        y = rng.poisson(np.exp(0.3 * trend)).astype(float)
    else:
        y = trend
    return Blocks([Part(storage(X), y, rng.uniform(0.2, 2.0, n))], **kwargs)


def definition(loss, penalty, rows, theta, intercept=True):
    X, y, s = rows.joined()
    X = X.toarray() if sp.issparse(X) else X
    centre = np.average(X, axis=0, weights=s) if intercept else 0.0
    z = theta[0] * intercept + (X - centre) @ theta[1:]
    return float(s @ loss.value(y, z)) / s.sum() + penalty.value(theta[1:])


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda penalty: type(penalty).__name__)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("intercept", [True, False], ids=["free", "zero"])
def test_value_gradient_and_hessian_are_those_of_the_definition(loss, penalty, storage, intercept):
    rows = rows_of(loss, storage, rows=16)
    risk = Risk.plain(loss, penalty, rows, intercept=intercept)
    theta = np.array([0.3 * intercept, 0.2, -0.1, 0.4])
    at = risk.evaluate(theta)
    assert at.value == pytest.approx(definition(loss, penalty, rows, theta, intercept), rel=1e-12)
    assert risk.value(theta) == pytest.approx(at.value, rel=1e-14)
    if not isinstance(penalty, L2Penalty):
        return
    h = 1e-6
    steps = h * np.eye(4)[0 if intercept else 1 :]
    slopes = [(risk.value(theta + step) - risk.value(theta - step)) / (2 * h) for step in steps]
    np.testing.assert_allclose(at.gradient[0 if intercept else 1 :], slopes, rtol=1e-6, atol=1e-8)
    H = risk.hessian(theta)
    np.testing.assert_allclose(risk.hessian_product(theta)(steps[0] / h), H @ (steps[0] / h), rtol=1e-10, atol=1e-12)
    if not isinstance(loss, (HuberLoss, SquaredHingeLoss)):  # whose curvature jumps
        change = risk.evaluate(theta + steps[-1]).gradient - risk.evaluate(theta - steps[-1]).gradient
        np.testing.assert_allclose(H[:, -1], change / (2 * h), rtol=1e-5, atol=1e-7)


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from([loss for loss in SMOOTH if not isinstance(loss, PoissonLoss)]),
    st.sampled_from(PENALTIES),
    st.booleans(),
    st.lists(st.floats(-2, 2), min_size=8, max_size=8),
)
def test_the_dual_value_is_below_the_risk_everywhere(loss, penalty, intercept, numbers):
    risk = Risk.plain(loss, penalty, rows_of(loss), intercept=intercept)
    here, there = np.array(numbers[:4]), np.array(numbers[4:])
    if not intercept:
        here[0] = there[0] = 0.0
    theta = here.reshape(risk.shape)
    assert risk.dual_value(theta, risk.sweep(theta)[1]) <= risk.value(there) * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: type(loss).__name__)
def test_newton_closes_the_gap(loss):
    risk = Risk.plain(loss, L2Penalty(0.1), rows_of(loss))
    found = newton(risk, np.zeros(4), tol=1e-9, max_iter=50)
    assert found.converged and found.measure <= 1e-9
    assert risk.certified(found.x) <= 1e-9


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton-cg", "newton-cholesky"])
def test_every_smooth_method_takes_a_risk(solver):
    loss = HuberLoss(delta=2.0)
    found = solve(Risk(loss, L2Penalty(0.1), rows_of(loss)), None, solver, tol=1e-8, max_iter=200)
    assert found.converged


def test_few_rows_are_solved_in_their_own_space():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 40))
    risk = Risk(SquaredLoss(), L2Penalty(0.5), Blocks([Part(X, X[:, 0], None)]))
    found = solve(risk, None, tol=1e-10, max_iter=50)
    centred = X - X.mean(axis=0)
    exact = np.linalg.solve(centred.T @ centred / 12 + 0.5 * np.eye(40), centred.T @ (X[:, 0] - X[:, 0].mean()) / 12)
    np.testing.assert_allclose(found.x[1:], exact, atol=1e-6)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("intercept", [True, False], ids=["free", "zero"])
def test_compiled_logistic_sweeps_are_the_plain_risk(storage, intercept):
    rows = rows_of(LogisticLoss(), storage)
    plain, fused = (make(LogisticLoss(), L2Penalty(0.1), rows, intercept=intercept) for make in (Risk.plain, Risk))
    assert type(fused) is ClassRisk
    theta = np.array([0.2 * intercept, 0.5, -0.3, 0.1])
    assert_same(plain, fused, theta)
    best = newton(fused, np.zeros(4), tol=1e-10).x
    assert fused.certified(best) <= 1e-10
    assert plain.evaluate(best).measure <= 1e-7  # another feasible dual point


def test_compiled_softmax_sweeps_are_the_plain_risk():
    X, _, s = rows_of(SquaredLoss()).joined()
    codes = np.arange(len(X)) % 3
    plain = Risk.plain(SoftmaxLoss(), L2Penalty(1.0), Blocks([Part(X, codes, s)]), cost=2.0, n_scores=3)
    fused = Risk(SoftmaxLoss(), L2Penalty(1.0), Blocks([Part(X, codes, s)]), cost=2.0, n_classes=3)
    theta = np.random.default_rng(1).normal(size=12)
    a, b = plain.evaluate(theta), fused.evaluate(theta)
    assert a.value == pytest.approx(b.value, rel=1e-12)
    np.testing.assert_allclose(a.gradient, b.gradient, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("power", [0.0, 1.0, 1.4, 2.0, 3.0])
@pytest.mark.parametrize("link", ["log", "identity"])
def test_compiled_deviance_sweeps_are_the_plain_risk(power, link):
    X, y, s = rows_of(PoissonLoss()).joined()
    rows = Blocks([Part(X, y + (1.0 if power >= 2 else 0.0), s)])
    loss = DevianceLoss(power, link)
    plain, fused = (make(loss, L2Penalty(0.2), rows, intercept=True) for make in (Risk.plain, Risk))
    assert type(fused) is DevianceRisk
    theta = np.array([3.2 if link == "identity" else 0.2, 0.05, -0.03, 0.02])
    if not loss.convex:  # steps use the Fisher information instead
        a, b = plain.evaluate(theta), fused.evaluate(theta)
        assert a.value == pytest.approx(b.value, rel=1e-12)
        np.testing.assert_allclose(a.gradient, b.gradient, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(plain.hessian(theta), Risk.hessian(fused, theta), rtol=1e-9, atol=1e-12)
        return
    assert_same(plain, fused, theta)
    best = newton(fused, theta, tol=1e-10).x
    assert plain.evaluate(best).measure <= 1e-6


def assert_same(plain, fused, theta):
    a, b = plain.evaluate(theta), fused.evaluate(theta)
    assert a.value == pytest.approx(b.value, rel=1e-12)
    np.testing.assert_allclose(a.gradient, b.gradient, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(plain.hessian(theta), fused.hessian(theta), rtol=1e-9, atol=1e-12)
    v = np.array([0.3, -1.0, 2.0, 0.5])
    np.testing.assert_allclose(plain.hessian_product(theta)(v), fused.hessian_product(theta)(v), rtol=1e-9, atol=1e-12)


def test_each_registered_class_is_found():
    assert set(FUSED) == {"LogisticLoss", "SoftmaxLoss", "DevianceLoss"}
    assert type(Risk(SquaredLoss(), L2Penalty(1.0), rows_of(SquaredLoss()))) is Risk
    assert type(Risk(LogisticLoss(), L1Penalty(1.0), rows_of(LogisticLoss()))) is Risk  # compiled for squared norms


def test_a_risk_travels_without_its_rows():
    risk = Risk(HuberLoss(), L2Penalty(0.1), rows_of(HuberLoss()))
    copy = pickle.loads(pickle.dumps(risk))
    assert copy.blocks is None and type(copy) is Risk and copy.cost == risk.cost


def test_blocks_and_threads_give_the_same_bits():
    values = set()
    for n_jobs in (1, 2):
        risk = Risk(HuberLoss(), L2Penalty(0.1), rows_of(HuberLoss(), n=5000), n_jobs=n_jobs)
        at = risk.evaluate(np.array([0.1, 0.2, 0.3, 0.4]))
        values.add((at.value, at.gradient.tobytes(), at.measure))
    assert len(values) == 1


def test_without_a_penalty_the_measure_is_the_gradient():
    risk = Risk(SquaredLoss(), L2Penalty(0.0), rows_of(SquaredLoss()))
    found = newton(risk, np.zeros(4), tol=1e-12)
    assert found.measure <= 1e-12
    assert np.abs(found.gradient).max() <= 1e-11


def test_a_share_of_a_dual_point_lies_in_the_domain():
    v = np.array([3.0, -1.0])
    assert share_in_domain(L1Penalty(1.5), v) == pytest.approx(0.5, rel=1e-12)
    assert np.isfinite(L1Penalty(1.5).conjugate(share_in_domain(L1Penalty(1.5), v) * v))
    assert share_in_domain(L2Penalty(1.0), v) == 1.0


def test_the_gap_is_relative_and_infinite_where_nothing_is_proven():
    assert relative_gap(3.0, 2.0, 10.0) == 0.5
    assert relative_gap(2.0, 2.5, 10.0) == 0.0
    assert relative_gap(3.0, -np.inf, 10.0) == np.inf
