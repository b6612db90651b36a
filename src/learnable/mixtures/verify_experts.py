r"""Independent check of mixtures of experts: the objective before and after one more step, by the definitions.

Gate and logistic experts take one damped Newton step; its gradient and Hessian are summed here row by row, over
Kronecker products, and the equations are solved by a pseudo-inverse. Gaussian experts are least squares of y itself,
not of residuals. Nothing is shared with the fit but the reading of the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checking import Recheck
from ..data.blocks import map_reduce
from ..data.checking import read_table

Array = NDArray[Any]

_CHUNK = 2**22


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def mixture_of_experts(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a MixtureOfExperts: what one more step adds to the objective, per unit of weight."""
    table = read_table(model, X, y, sample_weight)
    wrong = Recheck(np.inf, 0.0, table.fingerprint)
    rows, y, w = map_reduce(table.blocks, _rows_of, _join)
    classes = model.experts == "logistic"
    if classes and not np.array_equal(np.asarray(table.classes), np.asarray(model.classes_)):
        return wrong
    mean = np.average(rows, axis=0, weights=w)
    spread, reach = np.sqrt(np.average((rows - mean) ** 2, axis=0, weights=w)), np.abs(rows - mean).max(axis=0)
    spread = np.where(reach > 1e-12 * np.abs(mean), np.where(spread > 0, spread, reach), 1.0)
    largest = np.r_[1.0, reach / spread]
    var_y = 0.0 if classes else float(np.average((y - np.average(y, weights=w)) ** 2, weights=w))
    var_y = var_y if classes or var_y > 0 else max(1e-12, float(np.average(y, weights=w)) ** 2)
    pairs = [(model.shift_, mean), (model.scale_, spread), (model.largest_, largest), (model.y_variance_, var_y)]
    if not all(np.allclose(a, b, rtol=1e-6, atol=1e-9 * (np.abs(b).max() + 1e-300)) for a, b in pairs):
        return wrong
    check = _Objective(model, np.column_stack([np.ones(len(rows)), (rows - mean) / spread]), y, w, largest, var_y)
    gate = _with_intercept(model.gate_coef_, model.gate_intercept_, mean, spread)
    weights = _with_intercept(model.coef_, model.intercept_, mean, spread)
    before, r = check.value(gate, weights, model.variances_)
    after = check.value(*check.step(r, gate, weights, model.variances_))[0]
    size = 1.0 + abs(before) / w.sum()
    # Saturated probabilities hardly depend on their scores: only a sharp comparison tells. Scores lose the digits that
    # columns far from the origin take.
    blur = 1e-12 + 1e-15 * float(np.abs(mean / spread).max())
    if not abs(before / w.sum() - model.lower_bound_) <= blur * size:
        return wrong
    rise = (after - before) / w.sum()
    return Recheck(max(rise, 0.0) if np.isfinite(rise) else np.inf, 1e-10 * size, table.fingerprint)


class _Objective:
    """The objective and its step, on all rows at once."""

    def __init__(self, model: Any, Z: Array, y: Array, w: Array, largest: Array, var_y: float) -> None:
        self.Z, self.y, self.w, self.largest = Z, y, w, largest
        self.K, self.C = model.n_experts, len(model.classes_) if model.experts == "logistic" else 0
        self.alpha, self.gamma = model.alpha, model.gate_alpha
        self.rho = model.reg_variance * var_y * w.sum() / self.K
        self.D = np.diag(np.r_[0.0, np.ones(Z.shape[1] - 1)])

    def value(self, gate: Array, weights: Array, variances: Array) -> tuple[float, Array]:
        Z, K = self.Z, self.K
        logs = np.log(_softmax(Z @ gate.T))
        for k in range(K):
            if self.C:
                logs[:, k] += np.log(_softmax(Z @ weights[k].T)[np.arange(len(Z)), self.y])
            else:
                gap = self.y - Z @ weights[k]
                logs[:, k] -= 0.5 * (np.log(2 * np.pi * variances[k]) + gap**2 / variances[k])
        top = logs.max(axis=1, keepdims=True)
        sums = np.exp(logs - top).sum(axis=1, keepdims=True)
        total = float(self.w @ (top + np.log(sums))[:, 0]) - 0.5 * self.gamma * sum(v @ self.D @ v for v in gate)
        for k in range(K):
            if self.C:
                total -= 0.5 * self.alpha * sum(v @ self.D @ v for v in weights[k])
            else:
                total -= 0.5 * (self.alpha * weights[k] @ self.D @ weights[k] + self.rho) / variances[k]
        return total, np.exp(logs - top) / sums

    def step(self, r: Array, gate: Array, weights: Array, variances: Array) -> tuple[Array, Array, Array]:
        Z, y, wr = self.Z, self.y, self.w[:, None] * r
        new_gate = gate + self._newton(gate, r, self.w, self.gamma)
        weights, variances = weights.copy(), np.array(variances)
        for k in range(self.K):
            if self.C:
                weights[k] += self._newton(weights[k], np.eye(self.C)[y], wr[:, k], self.alpha)
            elif wr[:, k].sum() > 0:
                penalty = self.alpha * self.D
                # About the weighted mean of y, where the intercept is free: smaller numbers, fewer digits lost.
                center = np.average(y, weights=wr[:, k])
                found = np.linalg.pinv((Z.T * wr[:, k]) @ Z + penalty, 1e-12, hermitian=True)
                found = found @ (Z.T @ (wr[:, k] * (y - center)))
                found[0] += center
                rest = wr[:, k] @ (y - Z @ found) ** 2 + found @ penalty @ found + self.rho
                weights[k], variances[k] = found, rest / wr[:, k].sum()
        return new_gate, weights, variances

    def _newton(self, at: Array, target: Array, w: Array, penalty: float) -> Array:
        """Return the damped Newton step of a softmax regression on target probabilities."""
        Z, (C, p) = self.Z, at.shape
        P = _softmax(Z @ at.T)
        gradient = ((target - P) * w[:, None]).T @ Z - penalty * at @ self.D
        H = penalty * np.kron(np.eye(C), self.D)
        for start in range(0, len(Z), max(1, _CHUNK // (C * p) ** 2)):
            part = slice(start, start + max(1, _CHUNK // (C * p) ** 2))
            outer = np.einsum("i,ia,ib->iab", w[part], Z[part], Z[part])
            spread = np.einsum("ia,ab->iab", P[part], np.eye(C)) - np.einsum("ia,ib->iab", P[part], P[part])
            H = H + np.einsum("iab,icd->acbd", spread, outer).reshape(C * p, C * p)
        step = (np.linalg.pinv(H, 1e-12, hermitian=True) @ gradient.ravel()).reshape(C, p)
        reach = float(self.largest @ (step.max(axis=0) - step.min(axis=0)))
        return step * (np.log(1 + reach) / reach if reach > 1e-12 else 1.0)


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _with_intercept(coef: Array, intercept: Array, mean: Array, spread: Array) -> Array:
    coef, intercept = np.asarray(coef), np.asarray(intercept)
    return np.concatenate([(intercept + coef @ mean)[..., None], coef * spread], axis=-1)


def _rows_of(block: Any) -> tuple[Array, Array, Array]:
    X = np.array(block.X, dtype=np.float64)
    return X, np.array(block.y), np.ones(len(X)) if block.weight is None else block.weight.copy()


def _join(a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(np.concatenate([x, y]) for x, y in zip(a, b, strict=True))
