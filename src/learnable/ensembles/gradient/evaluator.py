"""Derivatives and mean loss of all rows in one pass: fused kernels on threads where there are some, else NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.threads import TaskTeam
from ._kernels import BLOCK, CLASSES, add_leaves, evaluate_classes, evaluate_scores
from .loss_base import BoostingLoss

Array = NDArray[np.float64]

_FEW_ROWS = 1 << 16  # handing work to a thread takes longer


class Evaluator:
    """The loss of the training rows.

    Parameters
    ----------
    loss : BoostingLoss
        V.
    y, w : (n,), (n,) or None
        Targets as the loss wants them, and weights.
    n_threads : int
        Threads; results do not depend on it.

    Attributes
    ----------
    g, h : (K, n)
        Derivatives at the scores of the last call; its next call overwrites them.
    """

    def __init__(self, loss: BoostingLoss, y: Array, w: Array | None, n_threads: int = 1) -> None:
        self.loss, self.y, self.w = loss, y, w
        n, K = len(y), loss.n_outputs
        self.blocks = -(-n // BLOCK)
        self.total_weight = float(n if w is None else w.sum())
        self.g = self.h = np.empty((0, 0))
        self._w = np.empty(0) if w is None else w
        self._sums = np.empty(self.blocks)
        if loss.fused is not None:
            self.g, self.h = np.empty((K, n)), np.empty((K, n))
        self._scores, self._leaves = np.empty((K, n)), np.empty((K if K > 1 else 0, n), np.int32)
        self.n_threads = n_threads if n >= _FEW_ROWS else 1
        self._team = TaskTeam(self.n_threads)

    def close(self) -> None:
        """End the threads."""
        self._team.close()

    def __call__(self, F: Array) -> float:
        """Return the mean loss at F, and compute the derivatives there."""
        kind, y, w = self.loss.fused, self.y, self._w
        if kind is None:
            value = mean_loss(self.loss, y, F, self.w)
            self.loss.prepare(y, F, self.w)
            self.g, self.h = self.loss.derivatives(y, F)
            return value
        if kind == CLASSES:
            self._share(lambda a, b: evaluate_classes(y, F, w, self.g, self.h, self._sums, a, b))
        else:
            self._share(lambda a, b: evaluate_scores(kind, y, F[0], w, self.g[0], self.h[0], self._sums, a, b))
        return float(self._sums.sum()) / self.total_weight

    def kept_scores(self, F: Array) -> Array:
        """Return a copy of the scores, in memory that the next call overwrites."""
        np.copyto(self._scores, F)
        return self._scores

    def kept_leaves(self, k: int, leaf: Any) -> Any:
        """Return a copy of the leaves of the rows in the tree of output k, which the next tree would overwrite."""
        np.copyto(self._leaves[k], leaf)
        return self._leaves[k]

    def add(self, F: Array, leaf: Any, value: Array) -> None:
        """Add the values of their leaves to the scores (n,) of one output."""
        self._share(lambda a, b: add_leaves(F, leaf, value, a, b))

    def _share(self, work: Callable[[int, int], None]) -> None:
        """Call work(first, last) for a run of blocks on each thread."""
        cuts = [self.blocks * t // self.n_threads for t in range(self.n_threads + 1)]
        self._team.run(lambda t: work(cuts[t], cuts[t + 1]), self.n_threads)


def mean_loss(loss: BoostingLoss, y: Array, F: Array, w: Array | None) -> float:
    """Return the weighted mean of the loss."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = loss.value(y, F)
        return float(values.mean()) if w is None else float(values @ w / w.sum())
