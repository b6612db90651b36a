r"""Metrics that are means over rows: then rows, and not only folds, say how uncertain a score is.

A score is a function of the mean loss L̄ of the rows: 1 − L̄ for accuracy, −√L̄ for the root mean squared error,
1 − L̄/Var(y) for R². Each also knows its mean loss over all pairs of a target and a prediction of another row,

    γ = n⁻² Σᵢ Σⱼ L(yᵢ, f(xⱼ)),

the error where x says nothing about y, which the .632+ bootstrap needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .intervals import Interval, binomial_interval, empirical_bernstein, t_interval

Array = NDArray[np.float64]
_SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class RowLoss:
    """A metric that is a function of the mean loss.

    Attributes
    ----------
    response : str
        The method that gives what is judged: "predict" or "predict_proba".
    loss : callable
        (y, response, classes) to one loss a row.
    independent : callable
        (y, response, classes, share of each row) to γ.
    score : callable
        (mean loss, variance of y) to the score, falling in the first; greater is better.
    relative : bool
        Whether the score divides by the variance of y.
    """

    response: str
    loss: Callable[[NDArray[Any], NDArray[Any], Any], Array]
    independent: Callable[[NDArray[Any], NDArray[Any], Any, Array], float]
    score: Callable[[float, float], float]
    relative: bool = False

    def mean(self, losses: Array, weight: Array | None = None) -> float:
        """Return the mean loss."""
        return float(np.average(losses, weights=weight))

    def score_of(self, mean_loss: float, y: NDArray[Any], weight: Array | None = None) -> float:
        """Return the score for a mean loss on rows with targets y."""
        return self.score(mean_loss, self._variance(y, weight))

    def interval(
        self,
        losses: Array,
        y: NDArray[Any],
        weight: Array | None = None,
        *,
        level: float,
        bounds: tuple[float, float] | None = None,
    ) -> Interval:
        """Return the interval of the score: exact binomial, empirical Bernstein (with `bounds`), or t over rows."""
        n = len(losses)
        mean = self.mean(losses, weight)
        equal = weight is None or bool((weight == weight[0]).all())
        if equal and not self.relative and bool(np.isin(losses, (0.0, 1.0)).all()):
            found = binomial_interval(int(losses.sum()), n, level)
        elif equal and not self.relative and bounds is not None:
            found = empirical_bernstein(losses, *bounds, level=level)
        else:
            share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
            found = t_interval(mean + n * share * self._deviations(losses, mean, y, share), level)
            found = found._replace(method="t over rows")
        variance = self._variance(y, weight)
        return found._replace(low=self.score(found.high, variance), high=self.score(found.low, variance))

    def _deviations(self, losses: Array, mean: float, y: NDArray[Any], share: Array) -> Array:
        """Return how far each row moves the mean loss; of a relative loss, by moving the variance of y as well."""
        deviations = losses - mean
        if self.relative:
            squares = (y - share @ y) ** 2
            variance = float(share @ squares)
            deviations = deviations - (mean / variance) * (squares - variance)
        return np.asarray(deviations)

    def _variance(self, y: NDArray[Any], weight: Array | None) -> float:
        if not self.relative:
            return 1.0
        share = np.full(len(y), 1.0 / len(y)) if weight is None else weight / weight.sum()
        return float(share @ (y - share @ y) ** 2)


def row_loss(metric: str, y: NDArray[Any] | None) -> RowLoss | None:
    """Return the row loss behind a metric's name, or None if it has none (or y has several columns)."""
    return _ROW_LOSSES.get(metric) if y is not None and y.ndim == 1 else None


def no_information_score(
    loss: RowLoss, y: NDArray[Any], response: NDArray[Any], classes: Any, weight: Array | None = None
) -> float:
    """Return γ, the mean loss when targets and predictions are paired at random."""
    share = np.full(len(y), 1.0 / len(y)) if weight is None else weight / weight.sum()
    return loss.independent(y, response, classes, share)


def _wrong(y: NDArray[Any], predicted: NDArray[Any], classes: Any) -> Array:
    return np.asarray(y != predicted, dtype=np.float64)


def _wrong_by_chance(y: NDArray[Any], predicted: NDArray[Any], classes: Any, share: Array) -> float:
    labels = np.unique(y)
    return 1.0 - sum(float(share @ (y == label)) * float(share @ (predicted == label)) for label in labels)


def _squares(y: NDArray[Any], predicted: NDArray[Any], classes: Any) -> Array:
    return np.asarray((y - predicted) ** 2, dtype=np.float64)


def _squares_by_chance(y: NDArray[Any], predicted: NDArray[Any], classes: Any, share: Array) -> float:
    y_mean = share @ y
    f_mean = share @ predicted
    return float(share @ (y - y_mean) ** 2 + share @ (predicted - f_mean) ** 2 + (y_mean - f_mean) ** 2)


def _distances(y: NDArray[Any], predicted: NDArray[Any], classes: Any) -> Array:
    return np.asarray(np.abs(y - predicted), dtype=np.float64)


def _distances_by_chance(y: NDArray[Any], predicted: NDArray[Any], classes: Any, share: Array) -> float:
    """Return E|Y − F| for independent Y and F in O(n log n): Σⱼ sⱼ (fⱼ(2P(Y ≤ fⱼ) − 1) + E[Y] − 2E[Y; Y ≤ fⱼ])."""
    order = np.argsort(y, kind="stable")
    position = np.searchsorted(y[order], predicted, side="right")
    below = np.concatenate([[0.0], np.cumsum(share[order])])[position]
    sums = np.concatenate([[0.0], np.cumsum((share * y)[order])])
    return float(share @ (predicted * (2.0 * below - 1.0) + sums[-1] - 2.0 * sums[position]))


def _log_probabilities(response: NDArray[Any]) -> Array:
    return np.asarray(np.log(np.clip(response, _SMALLEST_PROBABILITY, 1.0)))


def _surprises(y: NDArray[Any], response: NDArray[Any], classes: Any) -> Array:
    column = np.searchsorted(classes, y)
    return np.asarray(-_log_probabilities(response)[np.arange(len(y)), column])


def _surprises_by_chance(y: NDArray[Any], response: NDArray[Any], classes: Any, share: Array) -> float:
    of_class = np.array([share @ (y == label) for label in classes])
    return float(-of_class @ (share @ _log_probabilities(response)))


_ROW_LOSSES = {
    "accuracy": RowLoss("predict", _wrong, _wrong_by_chance, lambda loss, _: 1.0 - loss),
    "neg_mean_squared_error": RowLoss("predict", _squares, _squares_by_chance, lambda loss, _: -loss),
    "neg_root_mean_squared_error": RowLoss(
        "predict", _squares, _squares_by_chance, lambda loss, _: -math.sqrt(max(loss, 0.0))
    ),
    "r2": RowLoss("predict", _squares, _squares_by_chance, lambda loss, variance: 1.0 - loss / variance, relative=True),
    "neg_mean_absolute_error": RowLoss("predict", _distances, _distances_by_chance, lambda loss, _: -loss),
    "neg_log_loss": RowLoss("predict_proba", _surprises, _surprises_by_chance, lambda loss, _: -loss),
}
