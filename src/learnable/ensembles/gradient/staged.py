"""Predictions after every round: F_0 + ρ_1T_1, then + ρ_2T_2, and so on; each stage costs one round of trees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .driver import take_trees

Array = NDArray[np.float64]


def staged_raw(model: Any, X: Any) -> Iterator[Array]:
    """Yield the scores (K, n) of rows after the first round, the second, …; the array is the same each time."""
    K = model.n_trees_per_iteration_
    raw = model._raw_start(X)
    for m in range(model.trees_.n_trees // K):
        for k in range(K):
            raw[k] += take_trees(model.trees_, [m * K + k]).sum(X, model.n_jobs)[:, 0]
        yield raw
