r"""The penalised deviance of a generalised linear model as a problem for the solvers, with its duality gap.

    P(w, b) = (1/S) Σᵢ sᵢ ℓ(yᵢ, zᵢ) + ½α‖w‖²,   z = b + (x − x̄)ᵀw,   S = Σ sᵢ,   ℓ half the unit deviance

of the variance function μᵖ, at μ = e^z (log link) or μ = z. With the log link ℓ′ = m − a, m = μ²⁻ᵖ, a = yμ¹⁻ᵖ, and ℓ is
convex for 1 ≤ p ≤ 2; so it is for p = 0 with the identity. Then the dual value at u is

    D(u) = −(1/S) Σᵢ sᵢ ℓ*(yᵢ, uᵢ) − ½α‖w_u‖²,   w_u = −(1/αS) Σᵢ sᵢ uᵢ (xᵢ − x̄),   if Σᵢ sᵢ uᵢ = 0 (free intercept).

At u = ℓ′(z), P − D = ‖∇_w P‖²/(2α) + b ∂_b P. The constraint holds at the intercept that is best for w, which has a
closed form: b + δ with e^δ = Σ s a/Σ s m. So the slopes there are a feasible dual point, for every w and b; how they
differ from the slopes here follows from the sums of a and m, without another sweep.

Without a penalty, or without convexity, the measure is the gradient relative to the size of its terms, which is at most
one by Cauchy–Schwarz whatever the units.

One compiled sweep over the rows gives deviance, gradient and curvature. Half the unit deviance of a target y at the
mean μ, for the variance function V(μ) = μᵖ, with L = log(μ/y), is

    y²⁻ᵖ ((e^{(2−p)L} − 1)/(2−p) − (e^{(1−p)L} − 1)/(1−p)),        (e^{qL} − 1)/q = L at q = 0,

which loses no digits near μ = y. Its derivative by the score z is m − a, a being the part that has y in it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from math import exp, expm1, inf, log
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from ..core import Array, NDArray
from ..core.jit import kernel
from ..data.blocks import Block, Blocks, map_reduce, unsigned
from ..solvers.problem import Evaluation
from ..solvers.systems.moments import provisional_mean
from .objective import FIRST_ROWS, Risk, add_sums

Index = NDArray[np.uint32] | NDArray[np.uint64]

# half squares; z = log μ; z = μ > 0 with a power other than 0
SQUARES = 0
LOG = 1
IDENTITY = 2


@kernel
def column_products(X: Array, shift: Array, y: Array, weight: Array, x_sum: Array, xy: Array, square: Array) -> None:
    """OUT, each (d,): x_sum += Σ s x̃, xy += Σ s y x̃, square += Σ s x̃², with x̃ = x − shift. One sweep."""
    n, d = X.shape
    for i in range(n):
        row = X[i]
        s = weight[i]
        sy = weight[i] * y[i]
        for j in range(d):
            moved = row[j] - shift[j]
            x_sum[j] += s * moved
            xy[j] += sy * moved
            square[j] += s * moved * moved


@kernel
def half_deviance(y: float, mu: float, log_mu: float, power: float) -> float:
    """Return half the unit deviance; what does not depend on μ is left out where y ≤ 0 and p ≠ 0."""
    if power == 0.0:
        return 0.5 * (mu - y) * (mu - y)
    if y <= 0.0:
        if power == 1.0:
            return mu
        return exp((2.0 - power) * log_mu) / (2.0 - power) - y * exp((1.0 - power) * log_mu) / (1.0 - power)
    log_ratio = log_mu - log(y)
    if power == 1.0:
        if abs(log_ratio) > 0.5:
            return mu - y - y * log_ratio
        return y * (expm1(log_ratio) - log_ratio)
    if power == 2.0:
        return expm1(-log_ratio) + log_ratio
    scale = exp((2.0 - power) * log(y))
    return scale * (expm1((2.0 - power) * log_ratio) / (2.0 - power) - expm1((1.0 - power) * log_ratio) / (1.0 - power))


@kernel
def deviance_point(z: float, y: float, power: float, kind: int) -> tuple[float, float, float, float, float]:
    """Return the loss, m and a (its slope is m − a), its curvature, and the curvature's expectation."""
    if kind == SQUARES:
        return 0.5 * (z - y) * (z - y), z, y, 1.0, 1.0
    if kind == IDENTITY:
        if not z > 0.0:
            return inf, 0.0, 0.0, 0.0, 0.0
        log_mu = log(z)
        expected = exp(-power * log_mu)
        m = expected * z
        a = expected * y
        return half_deviance(y, z, log_mu, power), m, a, expected - power * (m - a) / z, expected
    mu = exp(z)
    if power == 1.0:
        m = mu
        a = y
    elif power == 2.0:
        m = 1.0
        a = y * exp(-z)
    else:
        m = exp((2.0 - power) * z)
        a = y * exp((1.0 - power) * z)
    return half_deviance(y, mu, z, power), m, a, (2.0 - power) * m - (1.0 - power) * a, m


@kernel
def deviance_dense(
    X: Array, centre: Array, y: Array, weight: Array, w: Array, b: float, form: tuple[float, int, bool],
    slopes: Array, other: Array, curvature: Array,
) -> tuple[float, float, float, float]:  # fmt: skip
    """Return Σ s of loss, m − a, a and (|m| + |a|)². OUT slopes (d,) += Σ s (m − a) x̃; curvature (n,).

    OUT other (d,) += Σ s a x̃; a length of zero leaves it out. `form` is (power, kind, whether to give the expected
    curvature).
    """
    n, d = X.shape
    power, kind, scoring = form
    loss = total = y_total = size = 0.0
    for i in range(n):
        row = X[i]
        z = b
        for j in range(d):
            z += (row[j] - centre[j]) * w[j]
        value, m, a, bend, expected = deviance_point(z, y[i], power, kind)
        r = weight[i] * (m - a)
        t = weight[i] * a
        for j in range(d):
            slopes[j] += r * (row[j] - centre[j])
        for j in range(other.size):
            other[j] += t * (row[j] - centre[j])
        loss += weight[i] * value
        total += r
        y_total += t
        size += weight[i] * (abs(m) + abs(a)) ** 2
        curvature[i] = weight[i] * (expected if scoring else bend)
    return loss, total, y_total, size


@kernel
def deviance_sparse(
    data: Array, indices: Index, indptr: Index, y: Array, weight: Array, w: Array, b: float,
    form: tuple[float, int, bool], slopes: Array, other: Array, curvature: Array,
) -> tuple[float, float, float, float]:  # fmt: skip
    """Return the same sums for CSR rows; b already holds −centreᵀw, and the vectors are not moved."""
    power, kind, scoring = form
    loss = total = y_total = size = 0.0
    for i in range(indptr.size - 1):
        z = b
        for k in range(indptr[i], indptr[i + 1]):
            z += data[k] * w[indices[k]]
        value, m, a, bend, expected = deviance_point(z, y[i], power, kind)
        r = weight[i] * (m - a)
        t = weight[i] * a
        for k in range(indptr[i], indptr[i + 1]):
            slopes[indices[k]] += r * data[k]
        if other.size > 0:
            for k in range(indptr[i], indptr[i + 1]):
                other[indices[k]] += t * data[k]
        loss += weight[i] * value
        total += r
        y_total += t
        size += weight[i] * (abs(m) + abs(a)) ** 2
        curvature[i] = weight[i] * (expected if scoring else bend)
    return loss, total, y_total, size


class TargetSums(NamedTuple):
    """What the problem has to know of all rows at once."""

    weight: float  #: S
    y: float  #: Σ s y
    lowest: float  #: min y
    x: Array  #: (d,), Σ s (x − centre)
    xy: Array  #: (d,), Σ s y (x − centre)
    square: Array  #: (d,), Σ s (x − centre)²
    centre: Array  #: (d,)

    def about(self, centre: Array) -> TargetSums:
        """Return the sums about another centre."""
        moved = self.centre - centre
        square = self.square + 2 * moved * self.x + self.weight * moved**2
        return self._replace(
            x=self.x + self.weight * moved, xy=self.xy + self.y * moved, square=np.maximum(square, 0.0), centre=centre
        )


def target_sums(blocks: Blocks, *, intercept: bool, n_jobs: int | None) -> TargetSums:
    """Return the sums about the weighted mean (about zero without an intercept)."""
    d = blocks.n_columns
    shift = provisional_mean(blocks.head().X[:FIRST_ROWS]) if intercept and not blocks.sparse else np.zeros(d)
    found = map_reduce(blocks, partial(_sums_of_block, shift=shift), _merge_sums, n_jobs=n_jobs)
    if not intercept:
        return found
    centred = found.about(found.centre + found.x / found.weight)
    return centred._replace(x=np.zeros(d))


def _sums_of_block(block: Block, shift: Array) -> TargetSums:
    y = np.asarray(block.y, dtype=np.float64)
    s = np.ones(len(y)) if block.weight is None else block.weight
    x, xy, square = np.zeros((3, block.X.shape[1]))
    if hasattr(block.X, "indptr"):
        x = block.X.T @ s
        xy = block.X.T @ (s * y)
        square = (block.X * block.X).T @ s
    else:
        column_products(block.X, shift, y, s, x, xy, square)
    return TargetSums(float(s.sum()), float(s @ y), float(y.min(initial=np.inf)), x, xy, square, shift)


def _merge_sums(a: TargetSums, b: TargetSums) -> TargetSums:
    weight, y, x, xy, square = add_sums(list(a[:2] + a[3:6]), list(b[:2] + b[3:6]))
    return TargetSums(weight, y, min(a.lowest, b.lowest), x, xy, square, a.centre)


class DevianceRisk(Risk):
    """P as a function of θ = (b − b₀, w), with gradient, measure of optimality and Hessian.

    b₀ is the best intercept for w = 0, so that θ = 0 is the model without features.

    Parameters
    ----------
    loss : DevianceLoss
        With its power p and its link.
    penalty : L2Penalty
        Of strength α ≥ 0.
    rows : Blocks
        Rows with targets and weights.
    intercept : bool
        Whether b is free or zero.
    sums : TargetSums, optional
        Of the same rows; θ is about their centre.
    base : float
        b₀; zero without an intercept.
    """

    def __init__(
        self,
        loss: Any,
        penalty: Any,
        rows: Blocks,
        *,
        intercept: bool = True,
        sums: TargetSums | None = None,
        base: float = 0.0,
        n_jobs: int | None = None,
    ) -> None:
        self.sums = target_sums(rows, intercept=intercept, n_jobs=n_jobs) if sums is None else sums
        limits: dict[str, Any] = {"intercept": intercept, "centre": self.sums.centre, "n_jobs": n_jobs}
        super().__init__(loss, penalty, rows, cost=1.0 / self.sums.weight, **limits)
        self.power = float(loss.power)
        self.base = base
        self.log_link = loss.link == "log"
        self.kind = LOG
        if not self.log_link:
            self.kind = IDENTITY if self.power else SQUARES
        self.convex = loss.convex
        self.has_gap = self.convex and self.strength > 0
        self.keeps_both = self.has_gap and intercept and self.log_link and 1 < self.power < 2
        self.scoring = False  # whether `state` gets the expected curvature, which is never negative
        self.step = 0.0  # to the best intercept, from the last evaluation

    @property
    def moments(self) -> tuple[float, Array, Array]:  # type: ignore[override]
        """Σ s, Σ s (x − centre) and Σ s (x − centre)² of all rows."""
        return self.sums.weight, self.sums.x, self.sums.square

    @np.errstate(all="ignore")  # far from the optimum e^z overflows; such a point has the value infinity
    def evaluate(self, x: Array) -> Evaluation:
        """Return P, its gradient, and the relative duality gap or relative gradient."""
        theta = x.reshape(self.shape)
        totals, slopes, other = map_reduce(self.blocks, partial(self._sweep, theta=theta), add_sums, n_jobs=self.n_jobs)
        self.at = x.copy()
        w = theta[0, 1:]
        gradient = self.cost * slopes
        gradient[1:] += self.strength * w
        if not self.intercept:
            gradient[0] = 0.0
        value = 0.5 * self.strength * float(w @ w) + self.cost * float(totals[0])
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return Evaluation(np.inf, np.zeros_like(gradient), np.inf)
        if self.has_gap:
            measure = self._gap(w, gradient, value, totals, slopes[1:], other)
        else:
            measure = self._relative_gradient(w, gradient, float(totals[3]))
        measure = measure if np.isfinite(measure) else np.inf
        sizes = self._sizes(w, float(totals[3]))
        return Evaluation(value, gradient, self._stopping_measure(measure, gradient, sizes, value))

    def hessian(self, x: Array) -> Array:
        """Return the Hessian; where it is not positive definite, the Fisher information, whose step goes down."""
        H = super().hessian(x)
        if self.convex:
            return H
        scale = 1.0 / np.sqrt(np.maximum(np.diag(H), 1e-300))
        if (np.diag(H) >= 0).all() and lapack.dpotrf(H * np.outer(scale, scale), lower=0)[1] == 0:
            return H
        with self._expected():
            return super().hessian(x)

    def hessian_product(self, x: Array) -> Callable[[Array], Array]:
        """Return v ↦ Hv, with the Fisher information for H where the loss is not convex."""
        if self.convex:
            return super().hessian_product(x)
        with self._expected():
            product = super().hessian_product(x)

        def expected_product(v: Array) -> Array:
            with self._expected():  # rows beyond memory are swept again
                return product(v)

        return expected_product

    def thinned(self, stride: int) -> Risk | None:
        """Return the risk on every `stride`-th row, weights scaled up; None where its optimum would be no start."""
        if self.kind == IDENTITY:
            return None  # its means could be negative on the other rows
        rows = self.blocks.every(stride)
        targets = np.asarray(rows.y, dtype=np.float64)
        total = float(targets.sum() if rows.weight is None else rows.weight @ targets)
        if self.intercept and self.log_link and not total > 0:
            return None
        return self._of_few(rows)

    def curvature_bound(self) -> Array:
        """Return the diagonal that the Hessian has at θ = 0 with the expected curvature of b₀ for each row."""
        b = self.base
        p = self.power
        at_null = np.exp((2 - p) * b) if self.log_link else max(b, 1e-300) ** -p
        if self.kind == SQUARES:
            at_null = 1.0
        bound = self.cost * at_null * np.r_[self.sums.weight, self.sums.square] + self.strength
        return np.where(bound > 0, bound, 1.0)

    @cached_property
    def null_value(self) -> float:
        """P₀, the value at θ = 0, from the targets alone."""
        with np.errstate(all="ignore"):
            return self.cost * float(map_reduce(self.blocks, self._null_of_block, np.add, n_jobs=self.n_jobs))

    def _like(self, rows: Blocks, centre: Array) -> DevianceRisk:
        sums = target_sums(rows, intercept=False, n_jobs=self.n_jobs).about(centre)
        limits: dict[str, Any] = {"base": self.base, "intercept": self.intercept, "n_jobs": self.n_jobs}
        return DevianceRisk(self.loss, self.penalty, rows, sums=sums, **limits)

    def _expected(self) -> _Scoring:
        return _Scoring(self)

    def _sweep_into(self, block: Block, theta: Array, weight: Array, state: Array) -> list[Array]:
        w = np.ascontiguousarray(theta[0, 1:])
        y = np.asarray(block.y, dtype=np.float64)
        b = self.base + theta[0, 0]
        form = (self.power, self.kind, self.scoring)
        slopes = np.zeros(self.width)
        other = np.zeros(self.width - 1 if self.keeps_both else 0)
        if self.sparse:
            X = block.X
            b = b - self.centre @ w
            rows = (X.data, unsigned(X.indices), unsigned(X.indptr))
            totals = deviance_sparse(*rows, y, weight, w, b, form, slopes[1:], other, state)
            slopes[1:] -= totals[1] * self.centre
            other -= totals[2] * self.centre[: len(other)]
        else:
            totals = deviance_dense(block.X, self.centre, y, weight, w, b, form, slopes[1:], other, state)
        slopes[0] = totals[1]
        return [np.array(totals), slopes, other]

    def _gap(self, w: Array, gradient: Array, value: float, totals: Array, slopes: Array, other: Array) -> float:
        """Return (P − D)/max(D, 1e-8·P₀) at the slopes of the best intercept, summed from small terms."""
        # the gradient at the best intercept, and how far P is above that point
        here = gradient[1:]
        above = 0.0
        p = self.power
        S = self.sums.weight
        if self.intercept and self.kind == SQUARES:
            self.step = -float(totals[1]) / S
            here = here + self.cost * self.step * self.sums.x
            above = 0.5 * self.step**2
        elif self.intercept:
            A = float(totals[2])
            M = float(totals[1] + totals[2])
            self.step = delta = float(np.log1p(-totals[1] / M))
            a = other
            if p == 1:
                a = self.sums.xy
            elif p == 2:
                a = self.sums.x - slopes
            here = here + self.cost * (np.expm1((2 - p) * delta) * (slopes + a) - np.expm1((1 - p) * delta) * a)
            above = self.cost * max(0.0, A * _growth(1 - p, delta) - M * _growth(2 - p, delta))
        gap = above + float(here @ here) / (2 * self.strength)
        return gap / max(value - gap, 1e-8 * self.null_value, self.finest_loss(), 1e-300)

    def finest_loss(self) -> float:
        """Return the loss of scores that are off by 1e-11 of their size: below it, a fit is exact."""
        b = self.base
        unit, off = (np.exp((2 - self.power) * b), 1e-11 * (1 + abs(b))) if self.log_link else (1.0, 1e-11 * abs(b))
        return float(unit * off**2)

    def _relative_gradient(self, w: Array, gradient: Array, size: float) -> float:
        """Return max_j |gⱼ| / (√(Σ s(|m| + |a|)²/S · Σ s x̃ⱼ²/S) + α|wⱼ|), at most one."""
        scale = self._sizes(w, size)
        return float(np.max(np.divide(np.abs(gradient), scale, out=np.zeros_like(gradient), where=scale > 0)))

    def _sizes(self, w: Array, size: float) -> Array:
        scale: Array = np.sqrt(self.cost * size) * np.sqrt(self.cost * np.r_[self.sums.weight, self.sums.square])
        scale[1:] += self.strength * np.abs(w)
        return scale

    def _null_of_block(self, block: Block) -> float:
        m = block.X.shape[0]
        nothing = np.zeros(0)
        weight = np.ones(m) if block.weight is None else block.weight
        form = (self.power, self.kind, False)
        y = np.asarray(block.y, dtype=np.float64)
        empty = np.zeros((m, 0))
        return float(
            deviance_dense(empty, nothing, y, weight, nothing, self.base, form, nothing, nothing, np.empty(m))[0]
        )


class _Scoring:
    """While it is entered, the state holds the expected curvature."""

    def __init__(self, problem: DevianceRisk) -> None:
        self.problem = problem

    def __enter__(self) -> None:
        self.problem.scoring = True
        self.problem.at = None

    def __exit__(self, *error: object) -> None:
        self.problem.scoring = False
        self.problem.at = None


def _growth(rate: float, x: float) -> float:
    """Return (e^{rx} − 1)/r, or x at r = 0."""
    return float(np.expm1(rate * x) / rate) if rate else x
