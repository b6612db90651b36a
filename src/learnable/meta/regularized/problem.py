r"""A regularised risk as a convex problem: the terms of the splitting method, and lower bounds from dual points.

With n rows, weights πᵢ that sum to one, scores Z = XW + b and constraints W ∈ C,

    R(W, b) = Σᵢ πᵢ V(yᵢ, zᵢ),          D(θ, s, ν, λ) = −R*(θ) − λΩ*(q/λ) − σ(s) − ⟨ν, e⟩,   q = −(Xᵀθ + s + Aᵀν),

where 1ᵀθ = 0 (with an intercept), R*(θ) = Σᵢ πᵢ V*(yᵢ, θᵢ/πᵢ), σ(s) = Σⱼ max(lⱼsⱼ, hⱼsⱼ), and C = {l ≤ W ≤ h, AW =
e}. For every (W, b) and every such dual point R + λΩ ≥ D. So one dual point bounds the optimum of all three forms:

    Tikhonov   min R + λΩ              ≥ D
    Ivanov     min R, Ω ≤ τ            ≥ D − λτ         for any λ ≥ 0
    Phillips   min Ω, R ≤ κ            ≥ (D − κ)/λ      for any λ > 0

The scale of a gap does not depend on the loss's constant: R is counted from Σ πᵢ min V(yᵢ, ·) = −R*(0).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.optimize import minimize_scalar

from ...core import Array, DataError, Progress, no_progress
from ...risk.losses.multiclass import ArgmaxLoss
from ...risk.penalties import L2Penalty
from ...solvers.composite.splitting import SplitPoint, split
from .sets import CoefficientSet

_HALVINGS = 60  # of an interval, after which it is as short as float64 can tell
_LAST_DIGITS = 1e-14  # by which a point is kept inside a ball, so that rounding does not take it out again


@dataclass(frozen=True)
class DualPoint:
    """A feasible dual point and the λ that goes with it.

    Attributes
    ----------
    theta : (n, k) array
        θ.
    bounds : (p, k) array
        s, the multipliers of lower and upper bounds.
    equalities : (m, k) array
        ν.
    strength : float
        λ.
    value : float
        D.
    """

    theta: Array
    bounds: Array
    equalities: Array
    strength: float
    value: float


class Problem:
    """Rows, a loss, a penalty and constraints.

    Parameters
    ----------
    X : (n, p) array or CSR array
        Rows.
    y : (n, k) array of numbers or signs, or (n,) codes of a multiclass loss
        Targets.
    n_scores : int
        k.
    weight : (n,) array
        π, positive, with sum one.
    loss, penalty : objects of `learnable.risk`
        V and Ω.
    intercept : bool
        Whether b is free.
    allowed : CoefficientSet
        C.
    """

    def __init__(
        self,
        X: Any,
        y: Array,
        n_scores: int,
        weight: Array,
        loss: Any,
        penalty: Any,
        intercept: bool,
        allowed: CoefficientSet,
    ) -> None:
        self.X = X
        self.y = y
        self.weight = weight
        self.loss = loss
        self.penalty = penalty
        self.intercept = intercept
        self.allowed = allowed
        self.shape = (X.shape[1], n_scores)
        self.multiclass = isinstance(loss, ArgmaxLoss)
        self.centre = np.asarray(X.T @ weight, dtype=np.float64) if intercept else np.zeros(X.shape[1])
        self.base = 0.0 - self.risk_conjugate(np.zeros((X.shape[0], n_scores)))  # Σ π min V
        self._ends: tuple[Array, Array] | None = None

    # --- primal ---

    def scores(self, x: Array) -> Array:
        """Return XW + b, (n, k), of x = (b; W)."""
        return np.asarray(self.X @ x[1:] + x[:1])

    def risk(self, Z: Array) -> float:
        """Return R counted from its base."""
        return self.raw_risk(Z) - self.base

    def raw_risk(self, Z: Array) -> float:
        """Return R."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = self.loss.value(self.y, Z)
        per_row = values if values.ndim == 1 else values.sum(axis=1)
        return float(self.weight @ per_row)

    def omega(self, x: Array) -> float:
        """Return Ω of x = (b; W)."""
        return float(self.penalty.value(x[1:]))

    def allow(self, x: Array, W: Array) -> Array:
        """Return the point of C next to W, with the intercept of x moved along."""
        inside = self.allowed.project(W)[0]
        shift = self.centre @ (x[1:] - inside) if self.intercept else np.zeros(self.shape[1])
        return np.vstack([x[0] + shift, inside])

    # --- dual ---

    def risk_conjugate(self, theta: Array) -> float:
        """Return R*(θ)."""
        u = theta / self.weight[:, None]
        values = self.loss.conjugate(self.y, u)
        per_row = values if values.ndim == 1 else values.sum(axis=1)
        return float(self.weight @ per_row)

    def penalty_conjugate(self, q: Array, strength: float) -> float:
        """Return (λΩ)*(q)."""
        return strength * float(self.penalty.conjugate(q / strength))

    def slopes(self, x: Array) -> Array:
        """Return θ = π V'(y, Xw + b), where the loss is smooth the best dual point that w gives."""
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = self.loss.gradient(self.y, self.scores(x))
        return np.asarray(self.weight[:, None] * slopes)

    def dual_point(
        self, theta: Array, bounds: Array, equalities: Array, strength: float, form: str, value: float
    ) -> DualPoint:
        """Return a feasible dual point near the one given, for the form and its parameter, with its bound on R + λΩ.

        For Tikhonov λ is fixed, and θ, s, ν are scaled into the domain of Ω*; otherwise λ is chosen.
        """
        theta = self._feasible(theta, bounds, equalities)
        q = self.pull(theta, bounds, equalities)
        gauge = penalty_gauge(self.penalty, q)
        if not math.isfinite(gauge):  # nothing but zero is feasible
            theta = np.zeros_like(theta)
            bounds = np.zeros_like(bounds)
            equalities = np.zeros_like(equalities)
            q = np.zeros_like(q)
            gauge = 0.0
        if form == "ivanov":
            strength = self._best_strength(q, gauge, strength, value)
        if strength < gauge * (1.0 + _LAST_DIGITS):
            if form == "phillips":
                strength = gauge * (1.0 + _LAST_DIGITS)
            else:
                share = strength / gauge * (1.0 - _LAST_DIGITS)
                theta = share * theta
                bounds = share * bounds
                equalities = share * equalities
            q = self.pull(theta, bounds, equalities)
        dual = -self.risk_conjugate(theta) - self.base - self.allowed.support(bounds, equalities)
        if strength > 0.0:
            dual -= self.penalty_conjugate(q, strength)
        elif q.any():
            dual = -math.inf
        return DualPoint(theta, bounds, equalities, strength, dual if not math.isnan(dual) else -math.inf)

    def pull(self, theta: Array, bounds: Array, equalities: Array) -> Array:
        """Return q = −(Xᵀθ + s + Aᵀν)."""
        return -np.asarray(self.X.T @ theta + bounds + self.allowed.A.T @ equalities)

    def _best_strength(self, q: Array, gauge: float, near: float, tau: float) -> float:
        """Return the λ that makes λτ + (λΩ)*(q) least."""
        if not q.any():
            return 0.0
        if isinstance(self.penalty, L2Penalty):
            return float(np.linalg.norm(q)) / math.sqrt(2.0 * self.penalty.strength * tau)
        if gauge > 0.0 and self.penalty_conjugate(q, gauge * (1.0 + _LAST_DIGITS)) == 0.0:
            return gauge * (1.0 + _LAST_DIGITS)  # a norm: the conjugate is zero from there on
        near = max(near, gauge, 1e-6 * float(np.abs(q).max()))
        found = minimize_scalar(
            lambda t: min(math.exp(t) * tau + self.penalty_conjugate(q, math.exp(t)), 1e300),
            bounds=(math.log(near) - 5.0, math.log(near) + 5.0),
            method="bounded",
            options={"xatol": 1e-10},
        )
        return max(math.exp(found.x), gauge)

    def _feasible(self, theta: Array, bounds: Array, equalities: Array) -> Array:
        """Return a θ near the one given in the domain of R*, orthogonal to what is neither penalised nor bounded."""
        if self.multiclass:
            theta = _into_simplex(self.y, theta, self.weight)
        else:
            low, high = self._domain()
            theta = self.weight[:, None] * np.clip(theta / self.weight[:, None], low, high)
        free = self._free_directions(bounds, equalities)
        if free is not None:
            return self._without(theta, *free)
        if not self.intercept:
            return theta
        return _with_class_totals(self.y, theta, self.weight) if self.multiclass else _balanced(theta)

    def _free_directions(self, bounds: Array, equalities: Array) -> tuple[Array, Array] | None:
        """Return the scores M of directions of W that cost nothing, and what Mᵀθ must be; None if there are none."""
        directions = getattr(self.penalty, "free_directions", None)
        basis = None if directions is None else directions(self.shape[0])
        if basis is None:
            return None
        columns = np.asarray(self.X @ basis)
        targets = -basis.T @ (bounds + self.allowed.A.T @ equalities)
        if self.intercept:
            columns = np.column_stack([np.ones(len(columns)), columns])
            targets = np.vstack([np.zeros(self.shape[1]), targets])
        return columns, targets

    def _without(self, theta: Array, M: Array, targets: Array) -> Array:
        """Return θ in the domain with Mᵀθ = targets, by Newton's method on the multipliers of these equations."""
        if self.multiclass:
            return _tilted(self.y, theta, self.weight, M, targets)
        low, high = self._domain()
        out = np.empty_like(theta)
        for k in range(theta.shape[1]):
            out[:, k] = _clipped_to(theta[:, k], M, targets[:, k], self.weight, low[:, k], high[:, k])
        return out

    def _domain(self) -> tuple[Array, Array]:
        """Return the ends of the domain of V*(yᵢ, ·), found by bisection, as (n, k) arrays."""
        if self._ends is None:
            self._ends = (-_domain_end(self.loss, self.y, -1.0), _domain_end(self.loss, self.y, 1.0))
        return self._ends

    # --- the engine ---

    def split(
        self,
        forms: tuple[Any, Any],
        judge: Any,
        x0: Array,
        *,
        tol: float,
        max_iter: int,
        progress: Progress = no_progress,
    ) -> tuple[SplitPoint, int, bool]:
        """Run the splitting method with proximal operators of the loss's and the penalty's part."""
        terms: list[Any] = [_Scores(self, forms[0])]
        spread = self.spread
        if forms[1] is not None:
            terms.append(_Copy(forms[1], spread))
        if self.allowed.constrains:
            terms.append(_Copy(lambda v, step: self.allowed.project(v)[0], spread))
        solve = self._normal_equations(spread * (len(terms) - 1))
        return split(terms, solve, x0, judge=judge, tol=tol, max_iter=max_iter, progress=progress)

    @cached_property
    def gram(self) -> Array:
        """Return XᵀΠX of the centred columns."""
        root = np.sqrt(self.weight)
        scaled = sp.diags_array(root) @ self.X if sp.issparse(self.X) else root[:, None] * self.X
        product = scaled.T @ scaled
        return np.asarray(product.toarray() if sp.issparse(product) else product) - np.outer(self.centre, self.centre)

    @cached_property
    def spread(self) -> float:
        """Return the mean variance of a column: the unit in which copies of W are weighed against scores."""
        squares = self.X.multiply(self.X) if sp.issparse(self.X) else np.square(self.X)
        total = float(np.sum(squares.T @ self.weight)) - float(self.centre @ self.centre)
        return max(total / max(1, self.shape[0]), 1e-12)

    def _normal_equations(self, ridge: float) -> Any:
        """Return r ↦ (Σ BᵀWB)⁻¹r for scores with metric π and copies of W with metric `ridge` in all."""
        n, p = self.X.shape
        ridge = max(ridge, 1e-10 * self.spread)
        wide = p > n
        root = np.sqrt(self.weight)
        if wide:
            X = self.X
            product = np.asarray((X @ X.T).toarray() if sp.issparse(X) else X @ X.T)
            along = np.asarray(X @ self.centre)
            product = product - along[:, None] - along + float(self.centre @ self.centre)
            matrix = product * (root[:, None] * root)
        else:
            matrix = self.gram.copy()
        matrix.flat[:: len(matrix) + 1] += ridge
        try:
            factor = scipy.linalg.cho_factor(matrix, lower=True)
        except np.linalg.LinAlgError as error:
            raise DataError(
                "RegularizedRisk: products of the columns of X have lost their digits, because a column lies far from "
                "zero; subtract its mean, for example by StandardScaler."
            ) from error

        def solve(r: Array) -> Array:
            right = r[1:] - np.outer(self.centre, r[0])
            if wide:
                inner = root[:, None] * (self.X @ right - self.centre @ right)
                back = root[:, None] * scipy.linalg.cho_solve(factor, inner)
                W = (right - (self.X.T @ back - np.outer(self.centre, back.sum(axis=0)))) / ridge
            else:
                W = scipy.linalg.cho_solve(factor, right)
            b = r[0] - self.centre @ W if self.intercept else np.zeros(self.shape[1])
            return np.vstack([b, W])

        return solve


class _Scores:
    """The scores XW + b, with the rows' weights as metric."""

    def __init__(self, problem: Problem, prox: Any) -> None:
        self.problem = problem
        self.weight: Array | float = problem.weight[:, None]
        self.prox = prox

    def forward(self, x: Array) -> Array:
        return self.problem.scores(x)

    def adjoint(self, Z: Array) -> Array:
        top = Z.sum(axis=0) if self.problem.intercept else np.zeros(Z.shape[1])
        return np.vstack([top, self.problem.X.T @ Z])


class _Copy:
    """W itself."""

    def __init__(self, prox: Any, weight: float) -> None:
        self.weight: Array | float = weight
        self._prox = prox

    def forward(self, x: Array) -> Array:
        return x[1:]

    def adjoint(self, W: Array) -> Array:
        return np.vstack([np.zeros(W.shape[1]), W])

    def prox(self, W: Array, step: float) -> Array:
        """Return the proximal point; the metric is a number, which divides the step."""
        return np.asarray(self._prox(W, step / float(self.weight)))


def penalty_gauge(penalty: Any, q: Array) -> float:
    """Return the least μ with Ω*(q/μ) finite: zero where Ω* is finite everywhere, the dual norm for norms."""
    if not q.any():
        return 0.0
    if hasattr(penalty, "dual_norm"):
        return float(penalty.dual_norm(q)) / penalty.strength if penalty.strength > 0.0 else math.inf
    size = float(np.abs(q).max())
    if math.isfinite(penalty.conjugate(q / (1e-12 * size))):
        return 0.0
    high = size
    for _ in range(_HALVINGS):
        if math.isfinite(penalty.conjugate(q / high)):
            break
        high *= 4.0
    else:
        return math.inf
    low = 0.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if math.isfinite(penalty.conjugate(q / middle)):
            high = middle
        else:
            low = middle
    return high


def _domain_end(loss: Any, y: Array, sign: float) -> Array:
    """Return the largest t with V*(y, sign·t) finite, entry by entry: inf if 1e12 is."""
    far = np.full(y.shape, 1e12)
    endless = np.isfinite(loss.conjugate(y, sign * far))
    low = np.zeros(y.shape)
    high = np.where(endless, 0.0, far)
    for _ in range(2 * _HALVINGS):
        middle = 0.5 * (low + high)
        inside = np.isfinite(loss.conjugate(y, sign * middle))
        low = np.where(inside, middle, low)
        high = np.where(inside, high, middle)
    return np.where(endless, np.inf, low)


def _balanced(theta: Array) -> Array:
    """Return θ with the heavier of its positive and negative parts scaled down, so that each column sums to zero."""
    positive = np.maximum(theta, 0.0).sum(axis=0)
    negative = np.maximum(-theta, 0.0).sum(axis=0)
    least = np.minimum(positive, negative)
    up = np.divide(least, positive, out=np.zeros_like(least), where=positive > 0)
    down = np.divide(least, negative, out=np.zeros_like(least), where=negative > 0)
    return np.where(theta > 0, theta * up, theta * down)


def _into_simplex(y: Array, theta: Array, weight: Array) -> Array:
    """Return θ with θ/π + e_y in the simplex, row by row."""
    p = theta / weight[:, None]
    p[np.arange(len(y)), y] += 1.0
    p = np.maximum(p, 0.0)
    p /= p.sum(axis=1, keepdims=True)
    return _from_probabilities(y, p, weight)


def _from_probabilities(y: Array, p: Array, weight: Array) -> Array:
    """Return π(p − e_y), whose rows sum to zero up to the last digit."""
    u = p.copy()
    u[np.arange(len(y)), y] = 0.0
    u[np.arange(len(y)), y] = np.maximum(-u.sum(axis=1), -1.0)
    return np.asarray(weight[:, None] * u)


def _with_class_totals(y: Array, theta: Array, weight: Array) -> Array:
    """Mix probabilities with a constant distribution until every class has its total weight, as a free b asks."""
    p = theta / weight[:, None]
    p[np.arange(len(y)), y] += 1.0
    totals = np.bincount(y, weight, p.shape[1])
    sums = weight @ p
    with np.errstate(divide="ignore", invalid="ignore"):
        share = float(np.clip(np.nanmax(np.where(sums > 0, (sums - totals) / sums, 0.0)), 0.0, 1.0))
    if share > 0.0:
        share = min(1.0, share * (1.0 + 1e-9))
        rest = np.maximum(totals - (1.0 - share) * sums, 0.0)
        p = (1.0 - share) * p + share * rest / rest.sum()
    return _from_probabilities(y, p, weight)


def _clipped_to(theta: Array, M: Array, target: Array, weight: Array, low: Array, high: Array) -> Array:
    """Return π clip(θ/π + Mν) with the ν that gives Mᵀ(·) = target, by Newton's method with halved steps."""
    u = theta / weight
    nu = np.zeros(M.shape[1])

    def miss_of(nu: Array) -> tuple[Array, Array]:
        raw = u + M @ nu
        v = np.clip(raw, low, high)
        return v, M.T @ (weight * v) - target

    v, miss = miss_of(nu)
    for _ in range(100):
        size = float(np.abs(miss).max())
        if size <= 1e-16 * float(np.abs(M).T.dot(weight * np.abs(v)).max(initial=0.0)):
            break
        inside = (u + M @ nu > low) & (u + M @ nu < high)
        curvature = (M[inside].T * weight[inside]) @ M[inside]
        step = np.linalg.lstsq(curvature, -miss, rcond=1e-12)[0]
        length = 1.0
        for _ in range(30):
            trial, new_miss = miss_of(nu + length * step)
            if float(np.abs(new_miss).max()) < size:
                break
            length /= 2.0
        else:
            break
        nu = nu + length * step
        v = trial
        miss = new_miss
    return np.asarray(weight * v)


def _tilted(y: Array, theta: Array, weight: Array, M: Array, targets: Array) -> Array:
    """Return π(p − e_y) with p ∝ p e^{Mν} and Mᵀ(·) = targets, by Newton's method on the multipliers ν."""
    n, K = theta.shape
    p = theta / weight[:, None]
    p[np.arange(n), y] += 1.0
    p = np.maximum(p, 1e-14)
    log_p = np.log(p / p.sum(axis=1, keepdims=True))
    m = M.shape[1]
    nu = np.zeros((m, K))

    def at(nu: Array) -> tuple[Array, Array]:
        raw = log_p + M @ nu
        tilted = np.exp(raw - raw.max(axis=1, keepdims=True))
        tilted /= tilted.sum(axis=1, keepdims=True)
        return tilted, M.T @ _from_probabilities(y, tilted, weight) - targets

    p, miss = at(nu)
    for _ in range(60):
        size = float(np.abs(miss).max())
        if size <= 1e-16 * float(np.abs(M).T.dot(weight).max()):
            break
        block = np.einsum("i,ia,ib,ik,kl->akbl", weight, M, M, p, np.eye(K)) - np.einsum(
            "i,ia,ib,ik,il->akbl", weight, M, M, p, p
        )
        step = np.linalg.lstsq(block.reshape(m * K, m * K), -miss.ravel(), rcond=1e-12)[0].reshape(m, K)
        length = 1.0
        for _ in range(30):
            trial, new_miss = at(nu + length * step)
            if float(np.abs(new_miss).max()) < size:
                break
            length /= 2.0
        else:
            break
        nu = nu + length * step
        p = trial
        miss = new_miss
    return _from_probabilities(y, p, weight)
