r"""A mixture of experts as the two steps of EM.

    p(y | x) = Σₖ gₖ(x) pₖ(y | x),    g(x) = softmax(Vx̃),    x̃ = (1, x standardised)

with linear-Gaussian experts pₖ = N(y; wₖᵀx̃, σₖ²), each with its own variance, or logistic ones pₖ = softmax(Wₖx̃).

E-step: rᵢₖ ∝ gₖ(xᵢ) pₖ(yᵢ | xᵢ). M-step, from sums over the rows with residuals of the last step:
- a Gaussian expert is a weighted ridge regression, in closed form;
- gate and logistic experts are softmax regressions with weights. One Newton step Δ raises their concave share Q of the
  expected log-likelihood, if it is not too long. Its third derivative along Δ is at most R times the second, where R is
  how far the scores x̃ᵀΔ of two classes differ at most; so Q rises by the step t·Δ with t = log(1 + R)/R, which tends to
  the full step as R → 0. (A generalised M-step: Q need only rise.)

The objective has the log-prior −½α Σₖ‖wₖ‖²/σₖ² − ½ρ Σₖ 1/σₖ² for Gaussian experts (ρ = reg_variance·var(y)·W/K keeps
variances from zero), −½α Σ‖Wₖ‖² for logistic ones, −½γ‖V‖² for the gate; intercepts are free.

References: R. Jacobs, M. Jordan, S. Nowlan and G. Hinton, Adaptive mixtures of local experts, Neural Computation 3
(1991), 79–87; M. Jordan and R. Jacobs, Hierarchical mixtures of experts and the EM algorithm, Neural Computation 6
(1994), 181–214; F. Bach, Self-concordant analysis for logistic regression, Electron. J. Statist. 4 (2010), 384–414
(the length of the step).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from .normals import normalise

Array = NDArray[Any]

_CHUNK_ROWS = 2048
_LOG_2PI = float(np.log(2 * np.pi))


class Experts(NamedTuple):
    """The parameters, in the coordinates x̃ with p = d + 1 entries."""

    gate: Array  #: (K, p) V
    weights: Array  #: (K, p) w, or (K, C, p) W
    variances: Array  #: (K,) σ²; empty for logistic experts


class ExpertSteps:
    """The two steps; knows the standardisation of the columns, the penalties and the largest entries of x̃.

    Parameters
    ----------
    n_classes : int
        C, or 0 for Gaussian experts.
    shift, scale : (d,) arrays
        x̃ = (1, (x − shift)/scale).
    largest : (p,) array
        The largest |x̃ⱼ| of the table.
    alpha, gamma, rho : float
        The penalties α, γ and ρ.
    """

    def __init__(
        self, K: int, n_classes: int, shift: Array, scale: Array, largest: Array, alpha: float, gamma: float, rho: float
    ) -> None:
        self.K, self.C, self.shift, self.scale, self.largest = K, n_classes, shift, scale, largest
        self.alpha, self.gamma, self.rho = alpha, gamma, rho
        self.p = len(shift) + 1
        self.penalised = np.r_[0.0, np.ones(self.p - 1)]

    def expectation(self, block: Any, experts: Experts) -> tuple[tuple[Any, ...], float]:
        """Return the sums over a block's rows, and their log-likelihood."""
        sums: Any = None
        total = 0.0
        w = np.ones(len(block.X)) if block.weight is None else block.weight
        for start in range(0, len(block.X), _CHUNK_ROWS):
            part = slice(start, start + _CHUNK_ROWS)
            Z, y = self.extend(block.X[part]), block.y[part]
            likelihood, r = normalise(self.log_joint(Z, y, experts))
            total += float(w[part] @ likelihood)
            found = self.sums(Z, y, w[part], r, experts)
            sums = found if sums is None else tuple(a + b for a, b in zip(sums, found, strict=True))
        return sums, total

    def maximisation(self, statistics: tuple[Any, ...], experts: Experts) -> Experts:
        """Return parameters at which the expected log-likelihood and log-prior are no lower."""
        counts, gate_gradient, gate_hessian, *own = statistics
        gate = experts.gate + self._newton(gate_gradient, gate_hessian, experts.gate, self.gamma)
        if self.C:
            gradient, hessian = own
            steps = [self._newton(gradient[k], hessian[k], experts.weights[k], self.alpha) for k in range(self.K)]
            return Experts(gate, experts.weights + np.stack(steps), experts.variances)
        products, residuals, squares = own
        weights, variances = experts.weights.copy(), experts.variances.copy()
        penalty = self.alpha * np.diag(self.penalised)
        for k in range(self.K):
            if not counts[k] > 0:  # an expert without rows stays
                continue
            step = solve_symmetric(products[k] + penalty, residuals[k] - penalty @ weights[k])
            weights[k] += step
            rest = squares[k] - 2 * step @ residuals[k] + step @ products[k] @ step
            rest = max(rest, 0.0) + weights[k] @ penalty @ weights[k] + self.rho
            variances[k] = max(rest / counts[k], 1e-300)
        return Experts(gate, weights, variances)

    def log_prior(self, experts: Experts) -> float:
        """Return the logarithm of the prior, up to a constant."""
        value = -0.5 * self.gamma * float((self.penalised * experts.gate**2).sum())
        squares = self.alpha * (self.penalised * experts.weights**2)
        if self.C:
            return value - 0.5 * float(squares.sum())
        return value - 0.5 * float(((squares.sum(axis=1) + self.rho) / experts.variances).sum())

    def extend(self, X: Array) -> Array:
        """Return x̃, (m, p)."""
        out = np.ones((len(X), self.p))
        np.subtract(X, self.shift, out=out[:, 1:])
        out[:, 1:] /= self.scale
        return out

    def log_joint(self, Z: Array, y: Array, experts: Experts) -> Array:
        """Return log gₖ(x) + log pₖ(y | x) as (K, m)."""
        logs = log_softmax(experts.gate @ Z.T, axis=0)
        if self.C:
            rows = np.arange(len(Z))
            for k in range(self.K):
                logs[k] += log_softmax(Z @ experts.weights[k].T, axis=1)[rows, y]
            return np.asarray(logs)
        gap = y - experts.weights @ Z.T
        variances = experts.variances[:, None]
        return np.asarray(logs - 0.5 * (gap * gap / variances + np.log(variances) + _LOG_2PI))

    def sums(self, Z: Array, y: Array, w: Array, r: Array, experts: Experts) -> tuple[Any, ...]:
        """Return what the M-step needs of rows with responsibilities r (K, m)."""
        rw, K, p = r * w, self.K, self.p
        g = np.exp(log_softmax(experts.gate @ Z.T, axis=0))
        gate_gradient = (rw - g * w) @ Z
        gate_hessian = curvature(Z, g, w)
        if self.C:
            gradient, hessian = np.empty((K, self.C, p)), np.empty((K, self.C, self.C, p, p))
            truth = y == np.arange(self.C)[:, None]
            for k in range(K):
                P = np.exp(log_softmax(experts.weights[k] @ Z.T, axis=0))
                gradient[k] = ((truth - P) * rw[k]) @ Z
                hessian[k] = curvature(Z, P, rw[k])
            return rw.sum(axis=1), gate_gradient, gate_hessian, gradient, hessian
        gap = y - experts.weights @ Z.T
        products = np.stack([(Z.T * rw[k]) @ Z for k in range(K)])
        return rw.sum(axis=1), gate_gradient, gate_hessian, products, (rw * gap) @ Z, (rw * gap * gap).sum(axis=1)

    def _newton(self, gradient: Array, hessian: Array, at: Array, penalty: float) -> Array:
        """Return a step of a softmax regression that raises its log-likelihood less ½·penalty·‖slopes‖²."""
        C, p = at.shape
        H = hessian.transpose(0, 2, 1, 3).reshape(C * p, C * p) + penalty * np.diag(np.tile(self.penalised, C))
        step = solve_symmetric(H, (gradient - penalty * self.penalised * at).ravel()).reshape(C, p)
        reach = float(self.largest @ np.ptp(step, axis=0))
        return np.asarray(step * (np.log1p(reach) / reach if reach > 1e-12 else 1.0))


def curvature(Z: Array, P: Array, w: Array) -> Array:
    """Return Σᵢ wᵢ (diag(P) − PPᵀ)ᵢ ⊗ x̃x̃ᵀ as (C, C, p, p), of probabilities P (C, m)."""
    C, p = len(P), Z.shape[1]
    out = np.empty((C, C, p, p))
    for a in range(C):
        for b in range(a + 1):
            share = w * P[a] * ((1.0 if a == b else 0.0) - P[b])
            out[a, b] = out[b, a] = (Z.T * share) @ Z
    return out


def solve_symmetric(H: Array, g: Array) -> Array:
    """Return the least solution of Hs = g, H positive semi-definite: directions in which H vanishes are left alone."""
    values, vectors = np.linalg.eigh(H)
    keep = values > 1e-12 * max(values[-1], 1e-300)
    return np.asarray(vectors[:, keep] @ ((vectors[:, keep].T @ g) / values[keep]))
