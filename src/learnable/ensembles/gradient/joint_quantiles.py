"""Several quantiles at once that cannot cross: the middle one, and the logarithms of the gaps beside it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .loss_base import BoostingLoss, quantiles_by_leaf

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

_TINY = 1e-300


class JointQuantiles(BoostingLoss):
    r"""Several quantiles at once: Σ_k pinball_{τ_k}(y − q_k), with q ascending in τ by construction.

    Score c is the quantile nearest to the median; the others are logarithms of gaps, q_{k+1} = q_k + e^{F_{k+1}} above
    it and q_{k−1} = q_k − e^{F_{k−1}} below. In one score's leaf the loss is, in s = e^{step}, a sum of pinball losses
    of (y − rest)/gap with weights w·gap, so that the best s is a weighted quantile: exact, as for a single level.
    """

    smooth = False  # type: ignore[assignment]

    def __init__(self, levels: Array) -> None:
        super().__init__(None)
        self.levels = np.asarray(levels, dtype=np.float64)
        self.n_outputs = len(levels)
        self.middle = int(np.argmin(np.abs(self.levels - 0.5)))
        self.smallest = _TINY

    def predict(self, F: Array) -> Array:
        """Return the quantiles, (n, K), ascending in each row."""
        return np.ascontiguousarray(self._quantiles(F).T)

    def _quantiles(self, F: Array) -> Array:
        with np.errstate(over="ignore"):
            q, c = np.exp(F), self.middle
        q[c] = F[c]
        np.cumsum(q[c:], axis=0, out=q[c:])
        below = -q[:c][::-1]
        q[:c] = (np.cumsum(below, axis=0) + F[c])[::-1]
        return q

    def value(self, y: Array, F: Array) -> Array:
        """Return the sum over the levels."""
        r = self._quantiles(F) - y
        tau = self.levels[:, None]
        return np.asarray(np.maximum(-tau * r, (1.0 - tau) * r).sum(axis=0))

    def derivatives(self, y: Array, F: Array) -> tuple[Array, Array]:
        """Return the chain rule through the gaps, and h = the gap, the weight that a row has in its leaf."""
        q, c = self._quantiles(F), self.middle
        tau = self.levels[:, None]
        slope = np.where(q > y, 1.0 - tau, np.where(q < y, -tau, 0.0))
        g, h = np.empty_like(F), np.exp(F)
        h[c] = 1.0
        g[c] = slope.sum(axis=0)
        for k in range(c + 1, len(g)):
            g[k] = slope[k:].sum(axis=0) * h[k]
        for k in range(c):
            g[k] = -slope[: k + 1].sum(axis=0) * h[k]
        return g, h

    def best_leaf_values(self, k: int, leaf: Ids, n_leaves: int, y: Array, F: Array, w: Array | None) -> Array:
        """Return the exact step of score k in each leaf; of gaps at most a factor of 20 either way."""
        q, c = self._quantiles(F), self.middle
        if k == c:
            moved, gap, sign, tau = q, np.ones(len(y)), 1.0, self.levels
        elif k > c:
            moved, gap, sign, tau = q[k:], np.exp(F[k]), 1.0, self.levels[k:]
        else:
            moved, gap, sign, tau = q[: k + 1], np.exp(F[k]), -1.0, 1.0 - self.levels[: k + 1]
        shift = 0.0 if k == c else gap
        # (y − rest)/gap, where rest is the quantile without this gap
        t = np.concatenate([(sign * (y - line) + shift) / gap for line in moved])
        weight = gap if w is None else gap * w
        s = quantiles_by_leaf(np.tile(leaf, len(moved)), n_leaves, t, np.tile(weight, len(moved)), float(tau.mean()))
        return s if k == c else np.log(np.clip(s, 0.05, 20.0))

    def start(self, y: Array, w: Array | None) -> Array:
        """Return the quantiles of all rows; equal ones get a gap of a millionth of the spread."""
        one = np.zeros(len(y), np.int32)
        q = np.array([quantiles_by_leaf(one, 1, y, w, level)[0] for level in self.levels])
        least = max(1e-6 * float(y.max() - y.min()), _TINY)
        F, c = np.empty(len(q)), self.middle
        F[c] = q[c]
        F[c + 1 :] = np.log(np.maximum(np.diff(q[c:]), least))
        F[:c] = np.log(np.maximum(np.diff(q[: c + 1]), least))
        return F
