"""The convex problems that linear models state, as pairs of a loss and a penalty, with the dual points they name.

`evidence(model, X, y, weight)` lists one `Evidence` a problem: several targets, or one class against the rest, are
several problems. Only fitted attributes and parameters of the model are read.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from tests.oracles import duality
from tests.oracles.duality import HalfDeviance, Hinge, Joint, Penalty, Problem, Softmax, Squared, Tube, as_long


class Evidence(NamedTuple):
    """One convex problem at one model."""

    primal: Any  #: the model's objective
    dual: Any  #: the dual objective at a feasible point
    null: Any  #: the objective of the model without columns
    optimum: Callable[[], Any]  #: the least objective that a general solver finds

    @property
    def size(self):
        """What gaps are relative to."""
        return max(self.dual, np.longdouble(1e-8) * self.null)

    @property
    def gap(self):
        return float((self.primal - self.dual) / self.size)


def evidence(model, X, y, weight=None):
    """Return the evidence of every problem that the model states on the rows that have weight."""
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    weight = np.ones(len(y)) if weight is None else weight
    rows = weight > 0
    own = getattr(model, "dual_coef_", None)
    multipliers = None if own is None else as_long(np.atleast_2d(own))
    if multipliers is not None and multipliers.shape[1] == len(rows):
        multipliers = multipliers[:, rows]
    return list(STATED[type(model).__name__](model, X[rows], y[rows], weight[rows], multipliers))


def augmented(model, X):
    """Return the rows with a constant in front, and B with the intercept's coefficient: the intercept is penalised."""
    B, b = as_long(np.atleast_2d(model.coef_)).T, np.broadcast_to(model.intercept_, (len(np.atleast_2d(model.coef_)),))
    if not model.fit_intercept:
        return X, B
    scale = float(model.intercept_scaling)
    return np.column_stack([np.full(len(X), scale), X]), np.vstack([as_long(b)[None, :] / as_long([scale]), B])


def of_ridge(model, X, y, s, _):
    for k, target in enumerate(np.reshape(y, (len(y), -1)).T):
        B = np.atleast_2d(model.coef_).T[:, [k]]
        b = np.atleast_1d(model.intercept_)[[k]]
        alpha = np.ravel(model.alpha)[k if np.ndim(model.alpha) else 0]
        problem = Problem(X, Squared(target, 1.0), s, Penalty(l2=2 * alpha), free=model.fit_intercept)
        best = problem.best_intercept(B, b) if model.fit_intercept else b
        dual = problem.dual(centred_slopes(problem, B, best))
        null = least_null(problem, model.fit_intercept)
        yield Evidence(problem.primal(B, b), dual, null, partial(problem.minimum, 1))


def centred_slopes(problem, B, b):
    U = problem.loss.slope(problem.scores(B, b))
    return U - (problem.cost @ U / problem.cost.sum() if problem.free else 0)


def least_null(problem, free):
    y = problem.loss.y
    centre = problem.cost @ y / problem.cost.sum() if free else 0 * y[0]
    return problem.cost @ problem.loss.value(0 * y + centre)


def of_elastic_net(model, X, y, s, _, groups=False):
    alpha = model.alpha_ if hasattr(model, "alpha_") else model.alpha
    ratio = getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 1.0))
    l1, l2 = s.sum() * alpha * ratio, s.sum() * alpha * (1 - ratio)
    positive = getattr(model, "positive", False)
    Y = np.reshape(y, (len(y), -1))
    for columns in [slice(None)] if groups else [slice(k, k + 1) for k in range(Y.shape[1])]:
        B, b = np.atleast_2d(model.coef_).T[:, columns], np.atleast_1d(model.intercept_)[columns]
        penalty = Penalty(l1, l2, groups=groups, positive=positive)
        problem = Problem(X, Squared(Y[:, columns]), s, penalty, free=model.fit_intercept)
        U = centred_slopes(problem, B, b)
        # The elastic net is a lasso with d more rows √λ₂·I and targets zero, which no intercept reaches.
        x_mean = s @ X / s.sum() if model.fit_intercept else 0 * X[0]
        y_mean = s @ Y[:, columns] / s.sum() if model.fit_intercept else 0 * Y[0, columns]
        root = np.sqrt(as_long([l2]))
        rows = np.vstack([as_long(X) - x_mean, root * np.eye(X.shape[1], dtype=np.longdouble)])
        targets = np.vstack([as_long(Y[:, columns]) - y_mean, 0 * as_long(B)])
        lasso = Problem(
            rows,
            Squared(targets),
            np.r_[s, np.ones(X.shape[1])],
            Penalty(l1, groups=groups, positive=positive),
            free=False,
        )
        dual, _ = duality.scaled_dual(lasso, np.vstack([U, root * as_long(B)]))
        if l2 > 0:
            dual = max(dual, problem.dual(U))
        null = least_null(problem, model.fit_intercept)
        yield Evidence(problem.primal(B, b), dual, null, partial(problem.minimum, B.shape[1]))


def of_multi_task(model, X, y, s, _):
    yield from of_elastic_net(model, X, y, s, _, groups=True)


def class_costs(model, codes, s):
    if model.class_weight is None:
        return s
    totals = np.bincount(codes, s)
    return s * (s.sum() / (len(totals) * totals))[codes]


def of_logistic(model, X, y, s, _):
    codes, K = np.searchsorted(model.classes_, y), len(model.classes_)
    loss, cost = Softmax(codes, K), model.C * class_costs(model, codes, s)
    B, b, free = as_long(model.coef_).T, model.intercept_, model.fit_intercept
    if model.solver == "liblinear":
        (X, B), b, free = augmented(model, X), np.zeros(1), False
    ratio = model.l1_ratio
    problem = Problem(X, loss, cost, Penalty(ratio, 1 - ratio), free=free)
    polished = problem.best_intercept(B, b) if free and ratio == 0 else b
    p, m, v = duality.distributions(loss, problem.cost, problem.scores(B, polished), free)
    U = loss.of_distribution((1 - m) * p + m * v)
    chord = problem.cost @ ((1 - m) * duality.entropy(p) + m * duality.entropy(v))  # −Σcℓ*(U) is at least that
    steep = abs(problem.back(U)).max()
    if ratio == 1:
        share = min(1, problem.penalty.l1 / steep)
        dual, point = share * chord, share * (1 - as_long([1e-15])) * U
    else:
        dual, point = chord - problem.penalty.conjugate(problem.back(U)), U
        if ratio > 0:
            share = min(1, problem.penalty.l1 / steep)
            dual = max(dual, share * chord)
            point = max((U, share * U), key=problem.dual)
    assert problem.dual(point) >= dual - 1e-15 * abs(dual)  # what is recorded claims no more than the definition
    null = problem.cost.sum() * np.log(as_long([K]))[0]
    yield Evidence(problem.primal(B, b), dual, null, partial(problem.minimum, B.shape[1]))


def dual_point(problem, W, multipliers):
    """Return the slopes −β/c of the model's multipliers β, W = Σ βx; where it holds none, the slopes of its losses."""
    if multipliers is None:
        return problem.loss.slope(problem.scores(W))
    return -as_long(multipliers).T / problem.cost[:, None]


def of_svc(model, X, y, s, multipliers):
    codes = np.searchsorted(model.classes_, y)
    cost = model.C * class_costs(model, codes, s)
    rows, W = augmented(model, X)
    squared = model.loss == "squared_hinge"
    for k in range(W.shape[1]):
        sign = np.where(codes == (1 if len(model.classes_) == 2 else k), 1.0, -1.0)
        loss = Hinge(sign, 2 if squared else 1)
        if model.penalty == "l1":
            problem = Problem(rows, loss, cost, Penalty(l1=1.0), free=False)
            dual, _ = duality.scaled_dual(problem, loss.slope(problem.scores(W[:, [k]])))
        else:
            problem = Problem(rows, loss, cost, Penalty(l2=1.0), free=False)
            dual = problem.dual(dual_point(problem, W[:, [k]], None if multipliers is None else multipliers[[k]]))
        yield Evidence(
            problem.primal(W[:, [k]]),
            dual,
            as_long([cost.sum()])[0],
            partial(least_margin_loss, problem, sign, squared),
        )


def least_margin_loss(problem, sign, squared):
    if squared:
        return problem.minimum(1)
    every = np.arange(len(sign))
    return problem.primal(
        duality.margin_program(problem.X * sign[:, None], np.ones(len(sign)), every, problem.cost.astype(float))[
            :, None
        ]
    )


def of_crammer_singer(model, X, y, s, multipliers):
    codes, K = np.searchsorted(model.classes_, y), len(model.classes_)
    cost = model.C * class_costs(model, codes, s)
    rows, W = augmented(model, X)
    if K == 2:  # one score, half of the difference of the two
        W, multipliers = np.hstack([-W, W]) / 2, np.vstack([-multipliers, multipliers])
    problem = Problem(rows, Joint(codes, K), cost, Penalty(l2=1.0), free=False)
    dual = problem.dual(dual_point(problem, W, multipliers))

    def optimum():
        pairs = [(i, k) for i in range(len(codes)) for k in range(K) if k != codes[i]]
        A = np.zeros((len(pairs), K, rows.shape[1]))
        for number, (i, k) in enumerate(pairs):
            A[number, codes[i]], A[number, k] = rows[i], -rows[i]
        owner = np.array([i for i, _ in pairs])
        found = duality.margin_program(A.reshape(len(pairs), -1), np.ones(len(pairs)), owner, cost)
        return problem.primal(found.reshape(K, -1).T)

    yield Evidence(problem.primal(W), dual, as_long([cost.sum()])[0], optimum)


def of_svr(model, X, y, s, multipliers):
    cost = model.C * s
    rows, W = augmented(model, X)
    squared = model.loss == "squared_epsilon_insensitive"
    loss = Tube(y, model.epsilon, 2 if squared else 1)
    problem = Problem(rows, loss, cost, Penalty(l2=1.0), free=False)
    dual = problem.dual(dual_point(problem, W, multipliers))

    def optimum():
        if squared:
            return problem.minimum(1)
        A, p = np.vstack([rows, -rows]), np.r_[y - model.epsilon, -y - model.epsilon]
        return problem.primal(duality.margin_program(A, p, np.tile(np.arange(len(y)), 2), cost)[:, None])

    yield Evidence(problem.primal(W), dual, problem.primal(0 * W), optimum)


def of_glm(model, X, y, s, _):
    power = {"PoissonRegressor": 1, "GammaRegressor": 2}.get(type(model).__name__, getattr(model, "power", None))
    loss = Squared(y) if power == 0 else HalfDeviance(y, power)
    problem = Problem(X, loss, s / s.sum(), Penalty(l2=model.alpha), free=model.fit_intercept)
    B, b = as_long(model.coef_)[:, None], as_long([model.intercept_])
    best = problem.best_intercept(B, b) if model.fit_intercept else b
    U = loss.slope(problem.scores(B, best))
    mean = s @ y / s.sum()
    level = (mean if power == 0 else np.log(mean)) if model.fit_intercept else 0.0
    null = problem.cost @ loss.value(np.full((len(y), 1), as_long([level])))
    yield Evidence(problem.primal(B, b), problem.dual(U), null, partial(problem.minimum, 1))


STATED = {
    "Ridge": of_ridge,
    "Lasso": of_elastic_net,
    "LassoCV": of_elastic_net,
    "ElasticNet": of_elastic_net,
    "ElasticNetCV": of_elastic_net,
    "MultiTaskLasso": of_multi_task,
    "MultiTaskElasticNet": of_multi_task,
    "LogisticRegression": of_logistic,
    "LinearSVC": lambda model, *rest: (of_svc if model.multi_class == "ovr" else of_crammer_singer)(model, *rest),
    "LinearSVR": of_svr,
    "PoissonRegressor": of_glm,
    "GammaRegressor": of_glm,
    "TweedieRegressor": of_glm,
}


def residual_of_equations(model, X, y, weight=None):
    """Return the largest relative residual of Σ s r (x − x̄) = αβ and Σ s r = 0, r = y − b − xᵀβ; over β ≥ 0, of KKT.

    Each equation is measured by the size of its terms: a column's is its spread plus a share of its mean, which stands
    for the digits that a large mean takes from the spread.
    """
    X, Y, s = _rows(X, y, weight)
    B, b = as_long(np.atleast_2d(model.coef_)).T, as_long(np.atleast_1d(model.intercept_))
    alpha = as_long(np.ravel(getattr(model, "alpha_", getattr(model, "alpha", 0.0))))
    if hasattr(model, "l1_ratio"):
        alpha = alpha * s.sum() * (1 - model.l1_ratio)
    free = float(model.fit_intercept)
    x_mean, y_mean = free * (s @ X) / s.sum(), free * (s @ Y) / s.sum()
    R = Y - b - X @ B
    g = (X - x_mean).T @ (s[:, None] * R) - alpha * B
    if getattr(model, "positive", False):
        assert (B >= 0).all()
        g = np.where(B > 0, g, np.maximum(g, 0))
    share = 1e-14 / max(model.certificate_.tolerance, 1e-12) * np.sqrt(s.sum())
    x_size = np.sqrt(s @ (X - x_mean) ** 2) + share * abs(x_mean)
    y_size = np.sqrt(s @ (Y - y_mean) ** 2) + share * abs(y_mean)
    terms = y_size + x_size @ abs(B) + share * abs(b)
    slopes = abs(g) / (np.outer(x_size, terms) + alpha * abs(B).max(axis=0))
    level = free * abs(s @ R) / (np.sqrt(s.sum()) * terms)
    return float(max(slopes.max(), level.max()))


def gradient_of_likelihood(model, X, y, weight=None):
    """Return the largest slope of Σ s ℓ, relative to √(Σs·Σs(x − x̄)²): logistic regression without a penalty."""
    codes = np.searchsorted(model.classes_, y)
    X, codes, s = _rows(X, codes, weight)
    loss = Softmax(codes[:, 0].astype(int), len(model.classes_))
    x_mean = float(model.fit_intercept) * (s @ X) / s.sum()
    U = s[:, None] * loss.slope(X @ as_long(model.coef_).T + as_long(model.intercept_))
    slopes = abs((X - x_mean).T @ U) / np.sqrt(s.sum() * (s @ (X - x_mean) ** 2))[:, None]
    return float(max(slopes.max(), float(model.fit_intercept) * abs(U.sum(axis=0)).max() / s.sum()))


def gradient_of_deviance(model, X, y, weight=None):
    """Return the largest slope of P, relative to the root mean squares of its terms; with the logarithm as the link."""
    X, Y, s = _rows(X, y, weight)
    power = {"PoissonRegressor": 1, "GammaRegressor": 2}.get(type(model).__name__, getattr(model, "power", None))
    w, s, free = as_long(model.coef_), s / s.sum(), float(model.fit_intercept)
    Z = X @ w[:, None] + as_long([model.intercept_])
    mu, x_mean = np.exp(Z), free * (s @ X)
    U = HalfDeviance(Y, power).slope(Z)
    terms = np.sqrt(s @ (((mu + Y) * mu ** (1 - power)) ** 2)[:, 0])
    size = terms * np.sqrt(s @ (X - x_mean) ** 2) + model.alpha * abs(w)
    slopes = abs((X - x_mean).T @ (s * U[:, 0]) + model.alpha * w) / size
    return float(max(slopes.max(), free * abs(s @ U[:, 0]) / terms))


def _rows(X, y, weight):
    """Return the rows that have weight, their targets as columns, and the weights."""
    weight = np.ones(len(y)) if weight is None else weight
    rows = weight > 0
    return as_long(X[rows]), as_long(y[rows], columns=True), as_long(weight[rows])
