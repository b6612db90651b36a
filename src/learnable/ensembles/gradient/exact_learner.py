"""Trees for one round of boosting with exact splits, or bins of `Columns`, grown by `trees.grow`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...trees.criteria import Target
from ...trees.exact.grower import Grown, GrowthRule, grow
from ...trees.table import Columns
from ..forest.models import _prune

Array = NDArray[np.float64]

LEAST_MASS = 1e-14  # of a row, relative to that of all: what a difference of sums still resolves


class ExactLearner:
    """Trees with exact splits, grown by `trees.grow`."""

    def __init__(
        self,
        X: Any,
        columns: Columns,
        rule: GrowthRule,
        reg_lambda: float,
        gamma: float,
        ccp_alpha: float,
        n_threads: int,
        stop: Any,
    ) -> None:
        self.X, self.columns, self.rule, self.reg_lambda, self.gamma = X, columns, rule, reg_lambda, gamma
        self.ccp_alpha, self.n_threads, self.stop = ccp_alpha, n_threads, stop

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing has to be given back."""

    def grow(self, direction: str, g: Array, h: Array, w: Array | None, rows: Any, seed: int) -> Grown:
        """Return a tree for the derivatives, and the leaf of every row."""
        rule, scale = self.rule, 1.0
        if direction == "newton":
            scale = power_of_two(g)
            weight = 1.0 if w is None else w
            # A row that is predicted perfectly has h = 0, but a leaf of such rows must have some mass.
            h = np.maximum(h, max(LEAST_MASS * float(h.sum()), 1e-150))
            target = Target.gradients(g / scale * weight, h * weight, reg_lambda=self.reg_lambda)
            # Gains are in units of G²/(H + λ); a split has to lower the objective, half of it, by γ.
            rule = replace(rule, min_gain=max(2.0 * self.gamma / scale**2, 0.0), min_impurity_decrease=0.0)
        elif direction == "gradient":
            target = Target.numbers(-g, weight=w)
        else:
            size = np.abs(g) if w is None else np.abs(g) * w
            target = Target.classes((g < 0).astype(np.int32), 2, criterion="misclassification", weight=size)
        found = grow(self.columns, target, rule, rows=rows, seed=seed, n_threads=self.n_threads, stop=self.stop)
        if direction == "newton" and scale != 1.0:
            found.tree.value[:] *= scale
            found.tree.impurity[:] *= scale**2
        if direction == "inner-product":
            signs = np.where(found.tree.value[:, 1] >= 0.5, 1.0, -1.0)[:, None]
            found = Grown(replace(found.tree, value=signs), found.leaf_of_row)
        elif self.ccp_alpha > 0 and direction == "gradient":
            found = Grown(*_prune(found, self.ccp_alpha))
        return complete(found, self.X, self.n_threads)


def complete(found: Grown, X: Any, n_threads: int) -> Grown:
    """Return the tree with the leaves of the rows that it was not grown on."""
    missing = np.flatnonzero(found.leaf_of_row < 0)
    if len(missing):
        found.leaf_of_row[missing] = found.tree.apply(X[missing], n_threads)[:, 0]
    return found


def power_of_two(g: Array) -> float:
    """Return what to divide gradients by where their squares would leave the floats; else one."""
    size = max(float(g.max()), -float(g.min()))
    return float(2.0 ** np.frexp(size)[1]) if size > 1e100 or 0 < size < 1e-100 else 1.0
