"""Every certificate of the linear family, derived again from losses, penalties and Fenchel's inequality alone.

For each model, loss and penalty: the recorded value is the oracle's, at the tolerance, far from it and cut short; the
optimum that a general solver finds lies between the dual value and the model's own, hence within the bound; `verify`
agrees; a model that was changed is caught.
"""

import warnings
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from tests.linear.stated_problems import (
    STATED,
    evidence,
    gradient_of_deviance,
    gradient_of_likelihood,
    residual_of_equations,
)
from tests.oracles.duality import HalfDeviance, Hinge, Joint, Penalty, Softmax, Squared, Tube, as_long

import learnable as ln
from learnable.core.registry import REGISTRY

N = 40
ROUNDING = 1e-13  # of sums of N terms in float64, relative to their sizes


@cache
def table(seed=0):
    """Return rows, targets of every kind, and weights of which some are zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 4)) * [1.0, 0.5, 2.0, 1.0] + [0.0, 1.0, -2.0, 0.0]
    score = X @ [1.0, -1.0, 0.0, 0.5] + 0.3
    weight = rng.uniform(0.2, 3.0, N) * (rng.random(N) > 0.1)
    targets = {
        "number": score + rng.normal(size=N),
        "numbers": np.column_stack([score, -0.5 * score + X[:, 2]]) + rng.normal(size=(N, 2)),
        "two": np.where(score + rng.logistic(size=N) > 1.0, "yes", "no"),
        "three": np.array(["a", "b", "c"])[np.clip(np.round(score + rng.normal(size=N)), -1, 1).astype(int) + 1],
        "apart": np.where(score > np.median(score), "yes", "no"),
        "count": rng.poisson(np.exp(np.clip(0.4 * score, -3, 3))).astype(float),
        "positive": rng.gamma(2.0, np.exp(0.3 * score) / 2.0),
    }
    return X, targets, weight


GAPS = {
    "Ridge gd": (ln.Ridge, {"solver": "gd", "alpha": 2.0}, "number"),
    "Ridge cg": (ln.Ridge, {"solver": "sparse_cg", "alpha": [0.5, 30.0]}, "numbers"),
    "Ridge cg, no intercept": (ln.Ridge, {"solver": "sparse_cg", "fit_intercept": False}, "number"),
    "Lasso": (ln.Lasso, {"alpha": 0.1}, "number"),
    "Lasso, two targets": (ln.Lasso, {"alpha": 0.1}, "numbers"),
    "Lasso, no intercept": (ln.Lasso, {"alpha": 0.3, "fit_intercept": False}, "number"),
    "Lasso, positive": (ln.Lasso, {"alpha": 0.05, "positive": True}, "number"),
    "Lasso, all zero": (ln.Lasso, {"alpha": 1e3}, "number"),
    "LassoCV": (ln.LassoCV, {"cv": 3, "alphas": 10}, "number"),
    "ElasticNet": (ln.ElasticNet, {"alpha": 0.2, "l1_ratio": 0.5}, "number"),
    "ElasticNet, mostly ridge": (ln.ElasticNet, {"alpha": 1.0, "l1_ratio": 0.05}, "number"),
    "ElasticNet, positive": (ln.ElasticNet, {"alpha": 0.1, "positive": True}, "number"),
    "ElasticNetCV": (ln.ElasticNetCV, {"cv": 3, "alphas": 10, "l1_ratio": [0.3, 0.8]}, "number"),
    "MultiTaskLasso": (ln.MultiTaskLasso, {"alpha": 0.2}, "numbers"),
    "MultiTaskLasso, no intercept": (ln.MultiTaskLasso, {"alpha": 0.2, "fit_intercept": False}, "numbers"),
    "MultiTaskElasticNet": (ln.MultiTaskElasticNet, {"alpha": 0.3, "l1_ratio": 0.4}, "numbers"),
    "Logistic L2": (ln.LogisticRegression, {"solver": "lbfgs"}, "two"),
    "Logistic L2 gd": (ln.LogisticRegression, {"solver": "gd", "max_iter": 5000}, "two"),
    "Logistic L2, no intercept": (ln.LogisticRegression, {"fit_intercept": False, "C": 0.1}, "two"),
    "Logistic L2, balanced": (ln.LogisticRegression, {"class_weight": "balanced"}, "two"),
    "Logistic L2, liblinear": (ln.LogisticRegression, {"solver": "liblinear", "intercept_scaling": 3.0}, "two"),
    "Logistic L1": (ln.LogisticRegression, {"l1_ratio": 1.0}, "two"),
    "Logistic L1, no intercept": (ln.LogisticRegression, {"l1_ratio": 1.0, "fit_intercept": False}, "two"),
    "Logistic L1, liblinear": (ln.LogisticRegression, {"l1_ratio": 1.0, "solver": "liblinear"}, "two"),
    "Logistic elastic net": (ln.LogisticRegression, {"l1_ratio": 0.4, "C": 0.5}, "two"),
    "Softmax L2": (ln.LogisticRegression, {"solver": "lbfgs"}, "three"),
    "Softmax L2, no intercept": (ln.LogisticRegression, {"fit_intercept": False}, "three"),
    "Softmax L1": (ln.LogisticRegression, {"l1_ratio": 1.0}, "three"),
    "Softmax elastic net": (ln.LogisticRegression, {"l1_ratio": 0.5}, "three"),
    "SVC squared": (ln.LinearSVC, {}, "two"),
    "SVC squared, dual": (ln.LinearSVC, {"solver": "dual"}, "two"),
    "SVC squared, three": (ln.LinearSVC, {"C": 0.3, "intercept_scaling": 4.0}, "three"),
    "SVC hinge": (ln.LinearSVC, {"loss": "hinge"}, "two"),
    "SVC hinge, dual": (ln.LinearSVC, {"loss": "hinge", "solver": "dual", "C": 0.1}, "two"),
    "SVC hinge, subgradient": (
        ln.LinearSVC, {"loss": "hinge", "solver": "subgradient", "C": 0.01, "tol": 1e-2, "max_iter": 5000}, "two",
    ),
    "SVC hinge, three": (ln.LinearSVC, {"loss": "hinge", "C": 0.2, "class_weight": "balanced"}, "three"),
    "SVC hinge, no intercept": (ln.LinearSVC, {"loss": "hinge", "fit_intercept": False}, "two"),
    "SVC L1": (ln.LinearSVC, {"penalty": "l1", "C": 0.2}, "two"),
    "SVC L1, three": (ln.LinearSVC, {"penalty": "l1", "C": 0.2, "fit_intercept": False}, "three"),
    "SVC Crammer–Singer": (ln.LinearSVC, {"multi_class": "crammer_singer", "C": 0.1}, "three"),
    "SVC Crammer–Singer, two": (ln.LinearSVC, {"multi_class": "crammer_singer", "C": 0.1}, "two"),
    "SVR tube": (ln.LinearSVR, {"epsilon": 0.3}, "number"),
    "SVR tube, dual": (ln.LinearSVR, {"epsilon": 0.1, "solver": "dual", "C": 0.1}, "number"),
    "SVR squared tube": (ln.LinearSVR, {"epsilon": 0.3, "loss": "squared_epsilon_insensitive"}, "number"),
    "SVR squared tube, no intercept": (
        ln.LinearSVR, {"loss": "squared_epsilon_insensitive", "fit_intercept": False}, "number",
    ),
    "Poisson": (ln.PoissonRegressor, {"alpha": 0.1, "solver": "lbfgs"}, "count"),
    "Poisson, no intercept": (ln.PoissonRegressor, {"alpha": 0.5, "fit_intercept": False}, "count"),
    "Gamma": (ln.GammaRegressor, {"alpha": 0.1, "solver": "lbfgs"}, "positive"),
    "Tweedie 1.5": (ln.TweedieRegressor, {"power": 1.5, "alpha": 0.2, "solver": "lbfgs"}, "count"),
    "Tweedie 0": (ln.TweedieRegressor, {"power": 0, "alpha": 0.2}, "number"),
}  # fmt: skip

#: What no duality gap is recorded for: the equations that define the solution hold, or the gradient vanishes.
EQUATIONS = {
    "LinearRegression": (residual_of_equations, ln.LinearRegression, {}, "numbers"),
    "LinearRegression, gd": (residual_of_equations, ln.LinearRegression, {"solver": "gd", "tol": 1e-4}, "number"),
    "LinearRegression, positive": (residual_of_equations, ln.LinearRegression, {"positive": True}, "number"),
    "LinearRegression, no intercept": (residual_of_equations, ln.LinearRegression, {"fit_intercept": False}, "number"),
    "Ridge": (residual_of_equations, ln.Ridge, {"alpha": 3.0}, "numbers"),
    "Ridge, svd": (residual_of_equations, ln.Ridge, {"alpha": [1.0, 100.0], "solver": "svd"}, "numbers"),
    "Ridge, positive": (residual_of_equations, ln.Ridge, {"positive": True}, "number"),
    "RidgeCV": (residual_of_equations, ln.RidgeCV, {"alphas": [0.1, 1.0, 10.0]}, "number"),
    "ElasticNet without L1": (residual_of_equations, ln.ElasticNet, {"l1_ratio": 0.0, "alpha": 0.3}, "number"),
    "Logistic without penalty": (gradient_of_likelihood, ln.LogisticRegression, {"C": np.inf, "tol": 1e-5}, "two"),
    "Softmax without penalty": (gradient_of_likelihood, ln.LogisticRegression, {"C": np.inf, "tol": 1e-3}, "three"),
    "Poisson without penalty": (gradient_of_deviance, ln.PoissonRegressor, {"alpha": 0.0, "tol": 1e-4}, "count"),
    "Gamma without penalty": (gradient_of_deviance, ln.GammaRegressor, {"alpha": 0.0, "solver": "lbfgs"}, "positive"),
    "Tweedie 3, not convex": (gradient_of_deviance, ln.TweedieRegressor, {"power": 3, "alpha": 0.1}, "positive"),
}  # fmt: skip
every_gap = pytest.mark.parametrize("case", GAPS)
every_equation = pytest.mark.parametrize("case", EQUATIONS)
weighted = pytest.mark.parametrize("weights", [False, True], ids=["plain", "weighted"])


def fitted(cls, options, target, weights):
    X, targets, weight = table()
    y, weight = targets[target], weight if weights else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return cls(**options).fit(X, y, sample_weight=weight), (X, y, weight)


def forged(model, name, value):
    """Return a copy of the model with one attribute replaced."""
    copy = clone(model)
    copy.__dict__.update(model.__dict__ | {name: value})
    return copy


def changed(model):
    """Return copies with weights a thousandth off (more where the tolerance is rough) and with false records."""
    off = 1e-3 if model.certificate_.tolerance < 1e-3 else 0.2
    first = np.eye(1, np.size(model.intercept_))[0] if np.ndim(model.intercept_) else 1.0
    yield forged(model, "coef_", model.coef_ * (1 + off) + off)
    yield forged(model, "intercept_", np.asarray(model.intercept_) + 10 * off * first)
    yield forged(model, "certificate_", replace(model.certificate_, fingerprint="0" * 16))
    tenth = model.certificate_.value / 10 if model.certificate_.value > 1e-11 else 1e-3 * model.certificate_.tolerance
    yield forged(model, "certificate_", replace(model.certificate_, value=tenth + 1e-9))


@pytest.mark.sampled(8)
@every_gap
@weighted
@pytest.mark.parametrize("stop", [{}, {"tol": 1e-2}, {"max_iter": 1}], ids=["converged", "loose", "cut short"])
def test_the_recorded_gap_is_the_oracles(case, weights, stop):
    cls, options, target = GAPS[case]
    model, data = fitted(cls, options | stop, target, weights)
    problems = evidence(model, *data)
    recorded = model.certificate_
    assert recorded.kind == "gap" and recorded.bound == recorded.value
    assert recorded.value == pytest.approx(max(one.gap for one in problems), rel=1e-5, abs=ROUNDING)
    for one in problems:
        assert one.dual <= one.primal * (1 + 1e-15)  # weak duality, from definitions that share no term


@pytest.mark.sampled(8)
@every_gap
@weighted
def test_the_optimum_of_a_general_solver_lies_within_the_bound(case, weights):
    cls, options, target = GAPS[case]
    model, data = fitted(cls, options, target, weights)
    loose, _ = fitted(cls, options | {"tol": 1e-2}, target, weights)
    for one, rough in zip(evidence(model, *data), evidence(loose, *data), strict=True):
        optimum = one.optimum()
        slack = 1e-14 * abs(optimum)
        assert one.dual <= optimum + slack and rough.dual <= optimum + slack
        assert one.primal - optimum <= model.certificate_.bound * one.size + 1e-12 * one.null
        assert rough.primal - optimum <= loose.certificate_.bound * rough.size + 1e-12 * one.null
        assert optimum - one.primal <= 1e-10 * one.size  # the general solver has really come to the end


@pytest.mark.sampled(8)
@every_gap
@weighted
def test_verify_holds_and_catches_every_change(case, weights):
    cls, options, target = GAPS[case]
    model, (X, y, weight) = fitted(cls, options, target, weights)
    assert model.certificate_.holds
    assert ln.verify(model, X, y, weight), str(ln.verify(model, X, y, weight))
    assert ln.verify(model, sp.csr_array(X), y, weight)
    assert not ln.verify(model, X + 1e-6, y, weight)
    for copy in changed(model):
        assert not ln.verify(copy, X, y, weight)


@every_equation
@weighted
def test_residuals_and_gradients_are_the_oracles(case, weights):
    derive, cls, options, target = EQUATIONS[case]
    model, (X, y, weight) = fitted(cls, options, target, weights)
    recorded = model.certificate_
    assert recorded.kind in ("closed-form", "stationarity") and recorded.holds
    assert recorded.value == pytest.approx(derive(model, X, y, weight), rel=1e-5, abs=ROUNDING)
    assert ln.verify(model, X, y, weight), str(ln.verify(model, X, y, weight))
    for copy in changed(model):
        assert not ln.verify(copy, X, y, weight)


@weighted
def test_a_perceptron_certifies_that_it_separates(weights):
    model, (X, y, weight) = fitted(ln.Perceptron, {"tol": None}, "apart", weights)
    sign = np.where(y == model.classes_[1], 1, -1)
    margin = sign * (as_long(X) @ as_long(model.coef_[0]) + model.intercept_[0])
    rows = np.ones(N, dtype=bool) if weight is None else weight > 0
    assert (model.certificate_.value, model.certificate_.holds) == (0.0, True)
    assert (margin[rows] > 0).all()
    assert ln.verify(model, X, y, weight)
    assert not ln.verify(forged(model, "intercept_", model.intercept_ + 100.0), X, y, weight)
    overlapping, _ = fitted(ln.Perceptron, {}, "two", weights)
    assert overlapping.certificate_.kind == "none"


@pytest.mark.parametrize("strategy", [ln.OneVsRestClassifier, ln.OneVsOneClassifier])
@pytest.mark.parametrize(
    "inner",
    [
        ln.LogisticRegression(tol=1e-4),
        ln.LogisticRegression(l1_ratio=1.0),
        ln.LinearSVC(tol=1e-3),
        ln.LinearSVC(loss="hinge", C=0.1, solver="dual", tol=1e-3),
        ln.LinearSVC(penalty="l1"),
    ],
    ids=["logistic", "L1 logistic", "squared hinge", "hinge", "L1 squared hinge"],
)
@weighted
def test_strategies_record_the_worst_of_their_binary_problems(strategy, inner, weights):
    model, (X, y, weight) = fitted(strategy, {"estimator": inner}, "three", weights)
    problems = []
    if strategy is ln.OneVsRestClassifier:
        parts = [(np.ones(N, dtype=bool), y == label) for label in model.classes_]
    else:
        pairs = combinations(model.classes_, 2)
        parts = [((y == first) | (y == second), y == second) for first, second in pairs]
    for binary, (rows, positive) in zip(model.estimators_, parts, strict=True):
        part = None if weight is None else weight[rows]
        problems += evidence(binary, X[rows], positive[rows].astype(int), part)
    assert model.certificate_.value == pytest.approx(max(one.gap for one in problems), rel=1e-5, abs=ROUNDING)
    assert ln.verify(model, X, y, weight)
    others = [forged(model.estimators_[0], "coef_", model.estimators_[0].coef_ * 1.01), *model.estimators_[1:]]
    assert not ln.verify(forged(model, "estimators_", others), X, y, weight)


def test_every_model_of_the_family_that_certifies_is_here():
    family = {name for name, entry in REGISTRY.items() if entry.path.startswith("learnable.linear.") and entry.checker}
    covered = {cls.__name__ for cls, _, _ in GAPS.values()} | {cls.__name__ for _, cls, _, _ in EQUATIONS.values()}
    # The perceptron's claim has a test above; Bayesian regression, which is no optimum, likelihoods, subsets and models
    # that choose a penalty have theirs in their own files.
    others = {"Perceptron", "BayesianLinearRegression", "GLM", "NonconvexRegression", "RidgeClassifier"}
    others |= {name for name in family if name.endswith("CV")}
    others |= {name for name in family if ".subset." in REGISTRY[name].path}
    assert covered | others == family
    assert set(STATED) <= family


LOSSES = {
    "squared": (Squared([0.7]), 1),
    "logistic": (Softmax([1], 2), 1),
    "softmax": (Softmax([0], 3), 3),
    "hinge": (Hinge([-1.0], 1), 1),
    "squared hinge": (Hinge([1.0], 2), 1),
    "tube": (Tube([0.4], 0.3, 1), 1),
    "squared tube": (Tube([0.4], 0.3, 2), 1),
    "joint hinge": (Joint([2], 3), 3),
    "Poisson": (HalfDeviance([3.0], 1), 1),
    "Gamma": (HalfDeviance([2.0], 2), 1),
    "Tweedie": (HalfDeviance([0.0], 1.5), 1),
}
PENALTIES = {
    "L1": Penalty(l1=0.7),
    "L2": Penalty(l2=0.7),
    "elastic net": Penalty(0.4, 0.6),
    "groups": Penalty(0.5, groups=True),
    "groups and L2": Penalty(0.5, 0.3, groups=True),
    "positive": Penalty(0.4, 0.6, positive=True),
}


@pytest.mark.parametrize("name", LOSSES)
def test_the_oracles_conjugates_of_losses_obey_fenchel(name):
    loss, K = LOSSES[name]
    rng = np.random.default_rng(1)
    for _ in range(50):
        z, other = as_long(2 * rng.normal(size=(2, 1, K)))
        if name == "joint hinge":
            worst = (1 - loss.own + z).argmax()
            u = np.eye(K)[[worst]] - loss.own
        else:
            u = loss.slope(z)
        assert (u * z).sum() == pytest.approx(loss.value(z)[0] + loss.conjugate(u)[0], abs=1e-15)
        assert (u * other).sum() <= loss.value(other)[0] + loss.conjugate(u)[0] + 1e-15
    if name not in ("squared", "squared hinge", "squared tube", "Gamma"):
        assert np.isinf(loss.conjugate(np.full((1, K), -50.0))).all()


@pytest.mark.parametrize("name", PENALTIES)
def test_the_oracles_conjugates_of_penalties_obey_fenchel(name):
    penalty = PENALTIES[name]
    rng = np.random.default_rng(2)
    for _ in range(50):
        V = rng.normal(size=(3, 2))
        B = penalty.nearest(V, 1.0)  # so that V − B is a subgradient at B
        assert ((V - B) * B).sum() == pytest.approx(float(penalty.value(B) + penalty.conjugate(V - B)), abs=1e-12)
        other = abs(rng.normal(size=(3, 2)))
        assert ((V - B) * other).sum() <= penalty.value(other) + penalty.conjugate(V - B) + 1e-12
