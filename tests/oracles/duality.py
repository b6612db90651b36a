"""Duality gaps of penalised linear models from the definitions, in extended precision, for any loss and penalty.

    P(B, b) = Σᵢ cᵢ ℓᵢ(zᵢ) + Ω(B),   zᵢ = Bᵀxᵢ + b,          D(U) = −Σᵢ cᵢ ℓᵢ*(uᵢ) − Ω*(−Σᵢ cᵢ xᵢuᵢᵀ)

By Fenchel's inequality D(U) ≤ P(B, b) for all points; with a free intercept b only if Σᵢ cᵢuᵢ = 0. A loss is its value,
its slope and its conjugate ℓ*, which is infinite outside its domain; a penalty is its value, its proximal point and its
conjugate. B has shape (d, K), U shape (n, K). Nothing here comes from the library.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

Long = np.longdouble
_EDGE = Long(1e-15)  # a constraint holds if it holds up to this share of its terms


def as_long(values, columns=False):
    """Return the values in extended precision; as a matrix with one column per target, if asked."""
    values = np.asarray(values.toarray() if hasattr(values, "toarray") else values).astype(Long)
    return values.reshape(len(values), -1) if columns else values


class Squared:
    """ℓ(z) = scale·‖z − y‖²."""

    def __init__(self, y, scale=0.5):
        self.y, self.scale = as_long(y, columns=True), Long(scale)

    def value(self, Z):
        return self.scale * ((Z - self.y) ** 2).sum(axis=1)

    def slope(self, Z):
        return 2 * self.scale * (Z - self.y)

    def conjugate(self, U):
        return (U * self.y + U**2 / (4 * self.scale)).sum(axis=1)


class Softmax:
    """ℓ(z) = log Σₖ exp zₖ − z_y; two classes have one score, that of the second."""

    def __init__(self, codes, n_classes):
        self.own, self.n_scores = np.eye(n_classes, dtype=Long)[codes], 1 if n_classes == 2 else n_classes

    def probabilities(self, Z):
        Z = np.column_stack([0 * Z, Z]) if self.n_scores == 1 else Z
        e = np.exp(Z - Z.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def value(self, Z):
        Z = np.column_stack([0 * Z, Z]) if self.n_scores == 1 else Z
        Z = Z - Z.max(axis=1, keepdims=True)
        return np.log(np.exp(Z).sum(axis=1)) - (self.own * Z).sum(axis=1)

    def slope(self, Z):
        return self.of_distribution(self.probabilities(Z))

    def of_distribution(self, v):
        """Return the slope at scores whose probabilities are v."""
        return (v - self.own)[:, 2 - self.n_scores :] if self.n_scores == 1 else v - self.own

    def conjugate(self, U):
        U = np.column_stack([-U, U]) if self.n_scores == 1 else U
        v = U + self.own
        outside = (v < -_EDGE).any(axis=1) | (abs(v.sum(axis=1) - 1) > 100 * _EDGE)
        return np.where(outside, np.inf, (v * np.log(np.where(v > 0, v, 1))).sum(axis=1))


class Hinge:
    """ℓ(z) = max(0, 1 − yz)^power for y = ±1."""

    def __init__(self, y, power):
        self.y, self.power = as_long(y, columns=True), power

    def value(self, Z):
        return (np.maximum(1 - self.y * Z, 0) ** self.power)[:, 0]

    def slope(self, Z):
        short = np.maximum(1 - self.y * Z, 0)
        return -self.y * (2 * short if self.power == 2 else (short > 0))

    def conjugate(self, U):
        a = -self.y * U
        outside = (a < -_EDGE) | ((a > 1 + 1000 * _EDGE) if self.power == 1 else False)
        return np.where(outside, np.inf, -a + (a**2 / 4 if self.power == 2 else 0))[:, 0]


class Tube:
    """ℓ(z) = max(0, |z − y| − ε)^power."""

    def __init__(self, y, epsilon, power):
        self.y, self.epsilon, self.power = as_long(y, columns=True), Long(epsilon), power

    def value(self, Z):
        return (np.maximum(abs(Z - self.y) - self.epsilon, 0) ** self.power)[:, 0]

    def slope(self, Z):
        short = np.maximum(abs(Z - self.y) - self.epsilon, 0)
        return np.sign(Z - self.y) * (2 * short if self.power == 2 else (short > 0))

    def conjugate(self, U):
        outside = (abs(U) > 1 + 1000 * _EDGE) if self.power == 1 else np.zeros(U.shape, dtype=bool)
        return np.where(outside, np.inf, U * self.y + self.epsilon * abs(U) + (U**2 / 4 if self.power == 2 else 0))[
            :, 0
        ]


class Joint:
    """ℓ(z) = maxₖ (1[k ≠ y] + zₖ) − z_y: the hinge of Crammer and Singer."""

    def __init__(self, codes, n_classes):
        self.own = np.eye(n_classes, dtype=Long)[codes]

    def value(self, Z):
        return (1 - self.own + Z).max(axis=1) - (self.own * Z).sum(axis=1)

    def conjugate(self, U):
        v = U + self.own
        outside = (v < -1000 * _EDGE).any(axis=1) | (abs(v.sum(axis=1) - 1) > 1000 * _EDGE)
        return np.where(outside, np.inf, (self.own * v).sum(axis=1) - 1)


class HalfDeviance:
    """ℓ(z) = ∫ (y − t) t⁻ᵖ dt from μ to y, with μ = e^z; its conjugate by bisection of ℓ′(z) = u."""

    def __init__(self, y, power):
        self.y, self.p = as_long(y, columns=True), Long(power)

    def value(self, Z):
        y, p, mu = self.y, self.p, np.exp(Z)
        own = np.where(y > 0, y, 1)
        if p == 1:
            return (np.where(y > 0, y * np.log(own / mu), 0) - y + mu)[:, 0]
        if p == 2:
            return (y / mu - 1 - np.log(y / mu))[:, 0]
        start = np.where(y > 0, own ** (2 - p), 0) / ((1 - p) * (2 - p))
        return (start - y * mu ** (1 - p) / (1 - p) + mu ** (2 - p) / (2 - p))[:, 0]

    def slope(self, Z):
        mu = np.exp(Z)
        return (mu - self.y) * mu ** (1 - self.p)

    def conjugate(self, U):
        low, high = np.full(U.shape, Long(-300)), np.full(U.shape, Long(300))
        outside = ((self.slope(low) > U) | (self.slope(high) < U))[:, 0]
        for _ in range(90):
            middle = (low + high) / 2
            right = self.slope(middle) < U
            low, high = np.where(right, middle, low), np.where(right, high, middle)
        return np.where(outside, np.inf, (U * low)[:, 0] - self.value(low))


class Penalty:
    """Ω(B) = λ₁ Σ|B| + ½λ₂ Σ B²; of groups, |B| is the length of a row; over B ≥ 0 if positive."""

    def __init__(self, l1=0.0, l2=0.0, *, groups=False, positive=False):
        self.l1, self.l2, self.groups, self.positive = Long(l1), Long(l2), groups, positive

    def sizes(self, B):
        return np.sqrt((B**2).sum(axis=1, keepdims=True)) if self.groups else B if self.positive else abs(B)

    def value(self, B):
        if self.positive and (B < 0).any():
            return np.inf
        return self.l1 * self.sizes(B).sum() + self.l2 / 2 * (B**2).sum()

    def conjugate(self, V):
        over = np.maximum(self.sizes(V) - self.l1, 0)
        if self.l2 == 0:
            return Long(0) if (over <= 100 * _EDGE * self.l1).all() else np.inf
        return (over**2).sum() / (2 * self.l2)

    def nearest(self, B, step):
        """Return argmin ½‖A − B‖² + step·Ω(A)."""
        sizes = self.sizes(B)
        share = np.maximum(1 - step * float(self.l1) / np.where(sizes > 0, sizes, np.inf), 0)
        return np.where(sizes > 0, share * B, 0) / (1 + step * float(self.l2))


class Problem:
    """P and D of rows X (n, d), a loss, costs c (n,), a penalty, and an intercept that is free or absent."""

    def __init__(self, X, loss, cost, penalty, *, free):
        self.X, self.loss, self.cost = as_long(X), loss, as_long(cost)
        self.penalty, self.free = penalty, free

    def scores(self, B, b=0):
        return self.X @ as_long(B) + as_long(np.atleast_1d(b))

    def primal(self, B, b=0):
        return self.cost @ self.loss.value(self.scores(B, b)) + self.penalty.value(as_long(B))

    def back(self, U):
        """Return −Σ c x uᵀ: the point at which the penalty's conjugate is taken."""
        return -self.X.T @ (self.cost[:, None] * U)

    def dual(self, U):
        """Return D(U), −∞ where U is not feasible."""
        U = as_long(U)
        if self.free and (abs(self.cost @ U) > 10 * _EDGE * (self.cost @ (abs(U) + 1))).any():
            return -np.inf
        return -(self.cost @ self.loss.conjugate(U)) - self.penalty.conjugate(self.back(U))

    def best_intercept(self, B, b=0):
        """Return the intercepts at which the slopes sum to zero, by damped Newton steps with differences for slopes."""
        b = as_long(np.atleast_1d(b)).copy()
        Z, K = self.X @ as_long(B), len(b)

        def total(at):
            return self.cost @ self.loss.slope(Z + at)

        for _ in range(100):
            now, moves = total(b), Long(1e-8) * np.eye(K, dtype=Long)
            H = np.array([(total(b + move) - total(b - move)) / Long(2e-8) for move in moves], dtype=float)
            step = as_long(np.linalg.lstsq(H, now.astype(float), rcond=1e-12)[0])
            step = step / max(1, abs(step).max())
            if abs(step).max() <= 1e-18 * (1 + abs(b).max()) or not abs(total(b - step)).sum() < abs(now).sum():
                return b
            b = b - step
        return b

    def minimum(self, K, n_iter=60_000):
        """Return the least P that an accelerated proximal gradient method with restarts finds; the loss is smooth."""
        X, c, d = self.X.astype(float), self.cost.astype(float), self.X.shape[1]
        free = float(self.free)

        def split(theta):
            return theta[:d], theta[d] * free

        def value(theta):
            B, b = split(theta)
            return float(c @ self.loss.value(X @ B + b))

        def slope(theta):
            B, b = split(theta)
            U = c[:, None] * self.loss.slope(X @ B + b).astype(float)
            return np.vstack([X.T @ U, free * U.sum(axis=0)])

        def nearest(theta, step):
            return np.vstack([self.penalty.nearest(theta[:d], step), theta[d:]])

        theta = ahead = np.zeros((d + 1, K))
        step, t = 1.0, 1.0
        for _ in range(n_iter):
            f, g = value(ahead), slope(ahead)
            while True:
                new = nearest(ahead - step * g, step)
                move = new - ahead
                if value(new) <= f + (g * move).sum() + (move**2).sum() / (2 * step) + 1e-14 * abs(f):
                    break
                step /= 2
            if abs(new - ahead).max() <= 1e-13 * (1 + abs(new).max()):
                break
            if ((ahead - new) * (new - theta)).sum() > 0:
                t = 1.0
            after = (1 + np.sqrt(1 + 4 * t * t)) / 2
            theta, ahead, t = new, new + (t - 1) / after * (new - theta), after
        return self.primal(*split(new))


def margin_program(A, p, member, cost):
    """Minimise ½‖w‖² + Σ cξ over ξ ≥ 0 and Aw + ξ[member] ≥ p, by sequential quadratic programming; return w."""
    A, p, d = np.asarray(A, dtype=float), np.asarray(p, dtype=float), A.shape[1]
    G, linear = np.hstack([A, np.eye(len(cost))[member]]), np.r_[np.zeros(d), cost]
    start = np.r_[np.zeros(d), np.full(len(cost), 1.0 + max(p.max(), 0.0))]
    found = minimize(
        lambda v: 0.5 * v[:d] @ v[:d] + linear @ v,
        start,
        jac=lambda v: linear + np.r_[v[:d], np.zeros(len(cost))],
        method="SLSQP",
        constraints=[{"type": "ineq", "fun": lambda v: G @ v - p, "jac": lambda v: G}],
        bounds=[(None, None)] * d + [(0.0, None)] * len(cost),
        options={"maxiter": 1000, "ftol": 1e-15},
    )
    return found.x[:d]


def scaled_dual(problem, U, most=np.inf):
    """Return D(τU) for the best τ that keeps a squared loss's U feasible: D is a parabola of τ under a constraint."""
    V, l1 = problem.back(U), problem.penalty.l1
    largest = problem.penalty.sizes(V).max()
    limit = l1 / largest if largest > 0 else np.inf
    at_one, at_half = (-(problem.cost @ problem.loss.conjugate(t * U)) for t in (Long(1), Long(0.5)))
    bend, rise = 4 * at_half - 2 * at_one, 4 * at_half - at_one  # D(τ) = rise·τ − bend·τ²
    tau = min(max(rise / (2 * bend), 0), limit, most) if bend > 0 else min(limit, most)
    return problem.dual(tau * U * (1 - _EDGE)), tau


def distributions(loss, cost, Z, free):
    """Return the model's probabilities p, a share m and a constant distribution v, such that (1 − m)p + mv is feasible.

    Feasible with a free intercept means Σ c(· − own) = 0 for every class; m is the least share that allows it.
    """
    p = loss.probabilities(Z)
    own, found = cost @ loss.own, cost @ p
    share = max(Long(0), ((found - own) / found).max()) if free else Long(0)
    v = np.maximum(own - (1 - share) * found, 0)
    return p, share, v / v.sum() if v.sum() > 0 else own / own.sum()


def entropy(p):
    """Return −Σ p log p of every row."""
    return -(p * np.log(np.where(p > 0, p, 1))).sum(axis=-1)
