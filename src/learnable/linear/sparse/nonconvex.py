r"""Regression with penalties between the lasso and best subsets: SCAD, MCP and sums of powers.

    min_{b, β}  1/(2W) Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)² + Σⱼ Ω(sⱼβⱼ),      W = Σᵢ wᵢ,

with sⱼ the standard deviation of column j (or one). SCAD and MCP shrink small coefficients as the lasso does and large
ones not at all; |·|^q with q < 1 comes close to counting them. Proximal gradient steps with the exact (global) proximal
operator of each coordinate, from larger penalties downwards and from least squares; the better end is kept. It is a
stationary point, not a proven minimum; for powers q ≥ 1, where the problem is convex, the certificate is a duality gap.

References: J. Fan and R. Li, JASA 96, 2001; C.-H. Zhang, Annals of Statistics 38, 2010; G. Marjanovic and V. Solo, IEEE
Transactions on Signal Processing 60, 2012.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import RegressorMixin

from ...core import (
    MAX_ITER,
    TOLERANCE,
    Array,
    Boolean,
    Certificate,
    Number,
    Options,
    Progress,
    Run,
    fitted,
    law,
    laws,
    no_progress,
    param,
)
from ...data.door import Table, door
from ...data.sources import NamedScore
from ...risk.objective import relative_gap
from ...risk.penalties import Lq, MCPenalty, SCADPenalty
from ..base import LinearRegressorModel
from ..subset.compressed import Compressed, compressed


class Smooth(NamedTuple):
    """½θᵀGθ − cᵀθ, the loss in scaled coefficients up to a constant."""

    G: Array  #: (p, p)
    c: Array  #: (p,)
    half: float  #: ½ Σ w (y − ȳ)² / W
    lipschitz: float  #: largest eigenvalue of G

    def value(self, theta: Array) -> float:
        """Return the loss."""
        return float(0.5 * theta @ self.G @ theta - self.c @ theta + self.half)


class NonconvexRegression(NamedScore, RegressorMixin, LinearRegressorModel):
    r"""SCAD, MCP or power penalty: minimise 1/(2W) Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)² + Σⱼ Ω(sⱼβⱼ) to a stationary point.

    In the form n⁻¹ΣV + λΩ (V squared loss), λ = 2α. "scad" and "mcp" have slope α at zero and none beyond aα or γα,
    "lq" is α|·|^q. The path from the smallest α at which all coefficients are zero down to `alpha` is stored. O(np²)
    for a Gram matrix, then O(p²) per step; memory O(p²).

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import NonconvexRegression
    >>> X = np.random.default_rng(0).normal(size=(80, 6))
    >>> y = 3 * X[:, 1] - 2 * X[:, 4] + 0.5 * np.cos(np.arange(80))
    >>> model = NonconvexRegression("mcp", alpha=0.3).fit(X, y)
    >>> np.flatnonzero(model.coef_).tolist(), model.certificate_.kind, model.certificate_.holds
    ([1, 4], 'stationarity', True)
    """

    _theory = "best-subset"

    penalty: str = param(Options("scad", "mcp", "lq"), "Which Ω.", default="mcp", kw_only=False)
    alpha: float = param(Number(low=0.0, low_open=True), "α > 0, the strength.", default=1.0)
    gamma: float = param(Number(low=0.0, low_open=True), "γ of MCP.", default=3.0)
    a: float = param(Number(low=2.0, low_open=True), "a of SCAD, > 2.", default=3.7)
    q: float = param(Number(low=0.0, low_open=True, high=4.0), "The power of |·|^q.", default=0.5)
    standardize: bool = param(Boolean(), "Whether coefficients are penalised in standard deviations.", default=True)
    n_alphas: int = param(MAX_ITER, "Penalties on the way down to `alpha`.", default=20)
    max_iter: int = param(MAX_ITER, "Most steps for each of them.", default=10_000)
    tol: float = param(
        TOLERANCE, "Relative violation of the optimality conditions, or relative duality gap, to reach.", default=1e-7
    )
    coef_: Any = fitted("(n_features,)", "β.")
    alphas_: Any = fitted("(n_path,)", "The penalties of the path, falling to `alpha`.", low=0.0)
    coef_path_: Any = fitted("(n_features, n_path)", "β along the path; its last column need not be `coef_`.")
    objective_: float = fitted("()", "The objective at `coef_`.", low=0.0)
    n_iter_: int = fitted("int", "Steps.")
    certificate_: Certificate = fitted("Certificate", "`stationarity`; `gap` for powers q ≥ 1.")

    _door = staticmethod(door(target="numeric"))
    _remedy = "raise max_iter or max_seconds"

    def _fit(self, table: Table, run: Run) -> Certificate:
        problem = compressed(type(self).__name__, table, intercept=self.fit_intercept, n_jobs=self.n_jobs)
        scale = problem.scale / np.sqrt(problem.weight) if self.standardize else np.ones(len(problem.scale))
        smooth = smooth_part(problem, scale)
        largest = self._largest(smooth)
        self.alphas_ = np.array([self.alpha])
        if largest > self.alpha:
            self.alphas_ = np.geomspace(largest, self.alpha, self.n_alphas + 1)
            self.alphas_[-1] = self.alpha
        theta = np.zeros(len(scale))
        corners = []
        steps = 0
        for alpha in self.alphas_.tolist():
            theta, used = descend(smooth, self._omega(alpha), theta, self.tol, self.max_iter, run.progress)
            corners.append(theta / scale)
            steps += used
        omega = self._omega(self.alpha)
        start = np.asarray(np.linalg.lstsq(smooth.G, smooth.c, rcond=1e-10)[0], dtype=np.float64)
        other, used = descend(smooth, omega, start, self.tol, self.max_iter, run.progress)
        if objective(smooth, omega, other) < objective(smooth, omega, theta):
            theta = other
        self.coef_path_ = np.column_stack(corners)
        self.objective_ = max(0.0, objective(smooth, omega, theta))
        self.n_iter_ = max(1, steps + used)
        coef = theta / scale
        self._set_coefficients(coef[:, None], np.array([problem.y_mean - problem.x_mean @ coef]), ())
        if omega.convex:
            value = power_gap(problem, scale, smooth, omega, theta)
            return Certificate("gap", value, self.tol, value, self.n_iter_)
        return Certificate("stationarity", violation(smooth, omega, theta), self.tol, None, self.n_iter_)

    def _omega(self, alpha: float) -> Any:
        """Return Ω with some strength."""
        if self.penalty == "scad":
            return SCADPenalty(alpha, self.a)
        return MCPenalty(alpha, self.gamma) if self.penalty == "mcp" else Lq(alpha, self.q)

    def _largest(self, smooth: Smooth) -> float:
        """Return the smallest α at which a step from zero stays there; for q > 1 none does, and the path is short."""
        steepest = float(np.abs(smooth.c).max(initial=0.0))
        if self.penalty != "lq" or self.q == 1.0:
            return steepest
        if self.q > 1.0:
            return 0.0
        height = (2.0 * (1.0 - self.q)) ** (1.0 / (2.0 - self.q)) * (1.0 + self.q / (2.0 * (1.0 - self.q)))
        L = smooth.lipschitz
        return float(L * (steepest / (L * height)) ** (2.0 - self.q)) if L > 0 else 0.0

    _laws = laws(
        law("alphas_ must fall", lambda model: (np.diff(model.alphas_) <= 0).all(), "alphas_"),
    )


def smooth_part(problem: Compressed, scale: Array) -> Smooth:
    """Return the loss in scaled coefficients."""
    A = problem.rows / scale
    G = A.T @ A / problem.weight
    L = float(np.linalg.eigvalsh(G)[-1]) if len(G) else 0.0
    return Smooth(G, A.T @ problem.target / problem.weight, problem.total / problem.weight / 2, max(L, 0.0))


def objective(smooth: Smooth, omega: Any, theta: Array) -> float:
    """Return loss and penalty."""
    return smooth.value(theta) + float(omega.value(theta))


def descend(
    smooth: Smooth, omega: Any, start: Array, tol: float, max_iter: int, progress: Progress = no_progress
) -> tuple[Array, int]:
    """Take accelerated proximal steps that never raise the objective, until the conditions hold."""
    if smooth.lipschitz == 0:
        return np.zeros_like(start), 0
    rate = 1.0 / (1.0001 * smooth.lipschitz)
    theta = omega.prox(start - rate * (smooth.G @ start - smooth.c), rate)
    ahead = theta
    momentum = 1.0
    best = objective(smooth, omega, theta)
    for step in range(1, max_iter + 1):
        new = omega.prox(ahead - rate * (smooth.G @ ahead - smooth.c), rate)
        value = objective(smooth, omega, new)
        if value > best:  # the acceleration overshot: a plain step cannot
            momentum = 1.0
            new = omega.prox(theta - rate * (smooth.G @ theta - smooth.c), rate)
            value = objective(smooth, omega, new)
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = new + (momentum - 1.0) / following * (new - theta)
        moved = float(np.abs(new - theta).max(initial=0.0))
        theta = new
        momentum = following
        best = min(best, value)
        if step % 10 == 0 or moved == 0.0:
            off = violation(smooth, omega, theta)
            # Half of what is asked for: the check computes it from other sums.
            if off <= 0.1 * tol or moved == 0.0 or progress(step, off):
                break
    return theta, step


def violation(smooth: Smooth, omega: Any, theta: Array) -> float:
    """Return the largest |∇ⱼ + Ω′(θⱼ)| where θⱼ ≠ 0, or excess of |∇ⱼ| over Ω′(0) elsewhere, relative to max|c|."""
    steepest = float(np.abs(smooth.c).max(initial=0.0))
    if steepest == 0:
        return float(np.abs(theta).max(initial=0.0))
    gradient = smooth.G @ theta - smooth.c
    used = theta != 0
    inside = np.zeros_like(theta)
    inside[used] = np.abs(gradient[used] + np.sign(theta[used]) * slope_of(omega, np.abs(theta[used])))
    outside = np.maximum(np.abs(gradient) - slope_of(omega, np.zeros(1))[0], 0.0)
    return float(np.where(used, inside, outside).max(initial=0.0) / steepest)


def slope_of(omega: Any, v: Array) -> Array:
    """Return Ω′(v) for v ≥ 0, from the right."""
    level = omega.strength
    if isinstance(omega, SCADPenalty):
        return np.where(v <= level, level, np.clip(omega.a * level - v, 0.0, None) / (omega.a - 1.0))
    if isinstance(omega, MCPenalty):
        return np.maximum(level - v / omega.gamma, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(level * omega.q * v ** (omega.q - 1.0))


def power_gap(problem: Compressed, scale: Array, smooth: Smooth, omega: Any, theta: Array) -> float:
    """Return (P − D)/max(D, 1e-8·P₀) of a convex power, with the residual, scaled for q = 1, as dual point."""
    A = problem.rows / scale
    W = problem.weight
    r = problem.target - A @ theta
    slopes = A.T @ r / W
    if omega.q == 1.0:
        largest = float(np.abs(slopes).max(initial=0.0))
        shrink = min(1.0, omega.strength / largest) if largest > 0 else 1.0
        r = shrink * r
        slopes = np.clip(shrink * slopes, -omega.strength, omega.strength)
    dual = float((problem.target @ r - 0.5 * r @ r) / W - omega.conjugate(slopes))
    primal = objective(smooth, omega, theta)
    return 0.0 if smooth.half == 0 else relative_gap(primal, dual, smooth.half)
