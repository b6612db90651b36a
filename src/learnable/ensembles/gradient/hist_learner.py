"""Trees for one round of boosting on a binned table, grown by `trees.histogram_grower`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...core.threads import BarrierTeam
from ...trees.bins import BinnedTable
from ...trees.columns import Columns
from ...trees.grower import Grown, GrowthRule
from ...trees.histogram_grower import HistogramGrower, HistogramRule
from .exact_learner import ExactLearner, power_of_two

Array = NDArray[np.float64]


class HistLearner:
    """Trees on histograms, one after the other, by a crew of threads of its own.

    Direction "gradient" is "newton" with h = 1 and λ = 0: G²/W is what least squares gain. "inner-product" has another
    score, Σ|G|, and is left to `trees.grow` on the same number of bins.
    """

    def __init__(
        self, X: Any, binned: BinnedTable, rule: HistogramRule, max_bins: int, n_threads: int, stop: NDArray[np.int64]
    ) -> None:
        self.X, self.rule, self.max_bins, self.n_threads, self.stop = X, rule, max_bins, n_threads, stop
        self.categorical = binned.bins.categorical
        self.crew = BarrierTeam(n_threads)
        self.grower = HistogramGrower(binned, rule, self.crew)
        self.signs: ExactLearner | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the threads."""
        self.crew.close()

    def grow(self, direction: str, g: Array, h: Array, w: Array | None, rows: Any, seed: int) -> Grown:
        """Return a tree for the derivatives, and the leaf of every row."""
        if direction == "inner-product":
            return self._sign_learner().grow(direction, g, h, w, rows, seed)
        scale = power_of_two(g)
        if scale != 1.0:
            g = g / scale
        if direction == "gradient":
            h = np.ones_like(g)
        if w is not None:
            g, h = g * w, h * w
        found = self.grower.grow(g, h, rows=rows, seed=seed, stop=self.stop)
        if scale != 1.0:
            found.tree.value[:] *= scale
            found.tree.impurity[:] *= scale**2
        return found

    def _sign_learner(self) -> ExactLearner:
        if self.signs is None:
            rule = GrowthRule(
                max_depth=self.rule.max_depth,
                max_leaf_nodes=self.rule.max_leaf_nodes,
                min_samples_leaf=self.rule.min_samples_leaf,
            )
            columns = Columns.build(
                self.X, max_bins=self.max_bins, categorical=self.categorical, n_threads=self.n_threads
            )
            self.signs = ExactLearner(self.X, columns, rule, 0.0, 0.0, 0.0, self.n_threads, self.stop)
        return self.signs
