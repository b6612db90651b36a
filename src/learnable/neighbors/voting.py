"""The weights with which neighbours speak.

With `weights="uniform"` each of the k neighbours has one vote, with "distance" 1/distance (neighbours at distance zero
then speak alone), with a function what it returns. A training row of weight w counts as w rows at its place: the
neighbourhood is filled, from the nearest row outwards, up to a total weight of k, and the last row counts with what is
left. So integer weights are the same as repeated rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.declare import fitted, param
from ..core.errors import DataError
from ..core.parameters import Matches, Nothing, Options
from .base import NeighborsModel

Array = NDArray[Any]


class VotingModel(NeighborsModel):
    """A model that predicts from the targets of the nearest rows."""

    weights: Any = param(
        Options("uniform", "distance") | Matches(callable, "a function of distances") | Nothing(),
        "Votes of the neighbours: one each, 1/distance, or a function from an array of distances to an array of votes.",
        default="uniform",
    )
    row_weights_: Array = fitted(
        "(n_samples_fit_,)", "Their weights, if weights were given: a row of weight w counts as w rows.", optional=True
    )

    def _votes(self, X: Any) -> tuple[Array, Array]:
        """Return the neighbours of each query and their votes, of shape (n_queries, k) each."""
        k, row_weights = self._check_count(self.n_neighbors, X is None), getattr(self, "row_weights_", None)
        if row_weights is None:
            distances, rows = self._find(X, k)
            return rows, self._speak(distances, np.ones_like(distances))
        available = self.n_samples_fit_ - (X is None)
        while True:
            distances, rows = self._find(X, min(k, available))
            counts = row_weights[rows]
            total = np.cumsum(counts, axis=1)
            if k >= available or (total[:, -1] >= self.n_neighbors).all():
                break
            k *= 2  # rows that weigh less than one: more of them are needed
        if (total[:, -1] < self.n_neighbors * (1 - 1e-12)).any():
            raise DataError(
                f"{type(self).__name__}: the rows weigh {row_weights.sum():g} in all, less than n_neighbors = "
                f"{self.n_neighbors}; a row of weight w counts as w rows. Ask for fewer neighbours, or scale them."
            )
        return rows, self._speak(distances, np.clip(self.n_neighbors - (total - counts), 0.0, counts))

    def _speak(self, distances: Array, counts: Array) -> Array:
        """Return the votes of neighbours at these distances that count so many times."""
        owner = type(self).__name__
        if self.weights in (None, "uniform"):
            return counts
        if self.weights == "distance":
            with np.errstate(divide="ignore", over="ignore"):
                nearness = 1.0 / distances
            touching = np.isinf(nearness) & (counts > 0)
            alone = touching.any(axis=1)
            nearness[alone] = touching[alone]
            largest = nearness.max(axis=1, keepdims=True)  # sums of huge numbers would overflow
            nearness = np.where(largest > 0, nearness / np.where(largest > 0, largest, 1.0), 1.0)  # all infinitely far
        else:
            nearness = np.asarray(self.weights(distances), dtype=np.float64)
            if nearness.shape != distances.shape:
                raise DataError(
                    f"{owner}: the function weights must return an array of the shape it got, {distances.shape}; got "
                    f"{nearness.shape}."
                )
            if not (nearness >= 0).all() or np.isinf(nearness).any():
                raise DataError(f"{owner}: the function weights must return numbers >= 0; got NaN, infinity or less.")
        votes = nearness * counts
        if not votes.any(axis=1).all():
            raise DataError(
                f"{owner}: All neighbors of some sample is getting zero weights. Please modify 'weights' to avoid this "
                "case if you are using a user-defined function."
            )
        return votes
