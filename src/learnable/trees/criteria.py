r"""What a split is judged by: statistics of the rows, and the score of a node that they give.

Every criterion is a score s(node) that adds up over rows or sums, and the gain of a split is s(left) + s(right) −
s(node). With W = Σw, cₖ = Σ w 1[y = k], S = Σ w y:

| criterion                      | score of a node      | weighted impurity                        | value of a leaf  |
|--------------------------------|----------------------|------------------------------------------|------------------|
| `gini`                         | Σ cₖ²/W              | W − s                                    | cₖ/W             |
| `entropy`, `log_loss`          | Σ cₖ log₂(cₖ/W)      | − s                                      | cₖ/W             |
| `misclassification`            | max cₖ               | W − s                                    | cₖ/W             |
| `squared_error`, `friedman_mse`| S²/W                 | Σwy² − s = Σw(y − S/W)²                  | S/W              |
| `poisson`                      | S log(S/W)           | Σ w y log y − s, half the deviance       | S/W              |
| `absolute_error`               | −Σw\|y − median\|    | − s                                      | weighted median  |
| `gradient`                     | G²/(H + λ)           | − s                                      | −G/(H + λ)       |

G and H are the sums of gradients and hessians of any loss: a boosting tree minimises the second-order expansion of the
loss (Chen and Guestrin, XGBoost, KDD 2016, eq. 6). Several outputs add up. `friedman_mse` ranks the splits of one
output exactly as the squared error does; here the two are the same for several outputs as well.

Reference: L. Breiman, J. Friedman, R. Olshen, C. Stone, Classification and Regression Trees, 1984, chapters 4 and 8.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from ..core import Array, DataError, NDArray, ParameterError

GINI, ENTROPY, MISCLASSIFICATION, SQUARED, POISSON, ABSOLUTE, GRADIENT = range(7)
#: How a target is swept: two classes and Gini, any classes, one (W, S) a row, sums, absolute error.
TWO, CLASSES, PAIRS, SUMS, ABSOLUTE_ERROR = range(5)
CLASS_CRITERIA: Final = {"gini": GINI, "entropy": ENTROPY, "log_loss": ENTROPY, "misclassification": MISCLASSIFICATION}
NUMBER_CRITERIA: Final = {
    "squared_error": SQUARED,
    "friedman_mse": SQUARED,
    "poisson": POISSON,
    "absolute_error": ABSOLUTE,
}


#: The squares of what is larger than this overflow.
LARGEST_SPREAD: Final = 1e150
#: A target this many times further from the median than nine in ten of the targets are is far from them.
FAR_TARGET: Final = 1e5


@dataclass(frozen=True)
class Target:
    """Statistics of the rows.

    Attributes
    ----------
    kind : int
        Which criterion; the constants of this module.
    labels : (n, m) int32, or (0, 1)
        Class codes of m outputs.
    y : (n, m) float64, or (0, 1)
        Numbers, centred and scaled (poisson: only scaled); gradients as they are.
    hessian : (n, m) float64, or (0, 1)
        Second derivatives.
    weight : (n,) float64
        Weights of the rows.
    n_classes : (m,) int64
        Number of classes of each output; zeros for numbers.
    shift, scale : (m,), float
        y = shift + scale · (what was given).
    reg_lambda : float
        λ of `gradient`.
    unit : bool
        Whether all weights are one.
    """

    kind: int
    labels: NDArray[np.int32]
    y: Array
    hessian: Array
    weight: Array
    n_classes: NDArray[np.int64]
    shift: Array
    scale: float
    reg_lambda: float = 0.0
    unit: bool = False

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.weight)

    @property
    def n_outputs(self) -> int:
        """Number of outputs m."""
        return len(self.n_classes)

    @property
    def width(self) -> int:
        """Numbers in the value of a node: outputs × most classes, or outputs."""
        return self.n_outputs * max(1, int(self.n_classes.max()))

    @property
    def n_channels(self) -> int:
        """Sums that a node has: of classes or outputs, of hessians, and the weight."""
        return int(np.maximum(self.n_classes, 1).sum()) + (self.n_outputs if self.kind == GRADIENT else 0) + 1

    @property
    def gain_scale(self) -> float:
        """What gains and impurities have to be multiplied with to be in the units of what was given."""
        if self.kind == GRADIENT:
            return 1.0
        return self.scale**2 if self.kind == SQUARED else self.scale

    @property
    def has_small_weights(self) -> bool:
        """Whether all weights are whole numbers below 256."""
        return self.unit or bool((self.weight < 256).all() and (self.weight == np.trunc(self.weight)).all())

    @cached_property
    def family(self) -> int:
        """Which sweep is made for it; the constants of this module."""
        single = self.n_outputs == 1
        if single and self.kind in (GINI, ENTROPY) and self.has_small_weights and self.n_classes[0] < 2**24:
            return TWO if self.kind == GINI and self.n_classes[0] == 2 else CLASSES
        if single and (self.kind in (SQUARED, GRADIENT) or (self.kind == GINI and self.n_classes[0] == 2)):
            return PAIRS
        return ABSOLUTE_ERROR if self.kind == ABSOLUTE else SUMS

    def payload(self) -> NDArray[np.uint32]:
        """Return class << 8 | weight of each row, if the sweep wants it."""
        if self.family not in (TWO, CLASSES):
            return np.zeros(0, np.uint32)
        return (self.labels[:, 0].astype(np.uint32) << np.uint32(8)) | self.weight.astype(np.uint32)

    def pairs(self) -> Array:
        """Return (W, S) of each row, if the sweep wants it."""
        if self.family != PAIRS:
            return np.zeros((0, 2))
        if self.kind == GRADIENT:
            return np.stack([self.weight * self.hessian[:, 0], self.weight * self.y[:, 0]], axis=1)
        y = self.labels[:, 0] if self.kind == GINI else self.y[:, 0]
        return np.stack([self.weight, self.weight * y], axis=1)

    def repeated(self, times: NDArray[np.int64]) -> Target:
        """Return the target in which row i counts times[i] times."""
        return replace(self, weight=self.weight * times, unit=False)

    @staticmethod
    def classes(codes: Any, n_classes: Any, *, criterion: str = "gini", weight: Any = None) -> Target:
        """Return the target of a classification: codes (n,) or (n, m), classes of each output.

        Examples
        --------
        >>> Target.classes([0, 1, 1], 2).width
        2
        """
        if criterion not in CLASS_CRITERIA:
            raise ParameterError(f"criterion must be one of {', '.join(CLASS_CRITERIA)}; got {criterion!r}.")
        labels = _columns(codes, np.int32)
        counts = np.broadcast_to(np.asarray(n_classes, dtype=np.int64), (labels.shape[1],)).copy()
        w, unit = _weights(weight, len(labels))
        none = np.zeros((0, 1))
        kind = CLASS_CRITERIA[criterion]
        return Target(kind, labels, none, none, w, counts, np.zeros(labels.shape[1]), 1.0, unit=unit)

    @staticmethod
    def numbers(y: Any, *, criterion: str = "squared_error", weight: Any = None) -> Target:
        """Return the target of a regression: numbers (n,) or (n, m)."""
        if criterion not in NUMBER_CRITERIA:
            raise ParameterError(f"criterion must be one of {', '.join(NUMBER_CRITERIA)}; got {criterion!r}.")
        kind = NUMBER_CRITERIA[criterion]
        given = _columns(y, np.float64)
        w, unit = _weights(weight, len(given))
        shift = np.zeros(given.shape[1])
        scale = _power_of_two(np.abs(given).max(initial=0.0))
        scaled = given / scale
        if kind != POISSON:  # squares of a large mean would drown the differences
            middle = _middle(scaled, w, kind)
            spread = _power_of_two(np.abs(scaled - middle).max(initial=0.0))
            middle = np.rint(middle / spread * 2.0**20) / 2.0**20 * spread  # few digits: whole targets stay exact
            shift = middle * scale
            scaled = scaled - middle
            scale = scale * spread
            scaled = scaled / spread
            if kind == SQUARED and scale > LARGEST_SPREAD:
                raise DataError(f"y spreads over {scale:.3g}, and its squares overflow; divide it by a constant.")
        y_used = np.ascontiguousarray(scaled)
        none = np.zeros(given.shape[1], np.int64)
        empty = np.zeros((0, 1), np.int32)
        return Target(kind, empty, y_used, np.zeros((0, 1)), w, none, shift, float(scale), unit=unit)

    @staticmethod
    def gradients(g: Any, h: Any, *, reg_lambda: float = 0.0) -> Target:
        """Return the target of one round of boosting: first and second derivatives, each (n,) or (n, m)."""
        y = _columns(g, np.float64)
        hessian = _columns(h, np.float64)
        zeros = np.zeros(y.shape[1])
        none = zeros.astype(np.int64)
        empty = np.zeros((0, 1), np.int32)
        return Target(GRADIENT, empty, y, hessian, np.ones(len(y)), none, zeros, 1.0, reg_lambda, True)


def _middle(y: Array, weight: Array, kind: int) -> Array:
    """Return what to measure targets (n, m) from: their mean, or their median where a few lie far from all others.

    Sums about a mean that far targets have moved would lack the digits that tell the others apart.
    """
    if kind == ABSOLUTE:
        return np.asarray(np.median(y, axis=0))
    median = np.median(y, axis=0)
    away = np.abs(y - median)
    most = np.partition(away, (9 * len(y)) // 10, axis=0)[(9 * len(y)) // 10]
    far = (most > 0) & (away.max(axis=0, initial=0.0) > FAR_TARGET * most)
    return np.where(far, median, np.average(y, axis=0, weights=weight))


def _columns(values: Any, dtype: Any) -> NDArray[Any]:
    array = np.asarray(values, dtype=dtype)
    return np.ascontiguousarray(array[:, None] if array.ndim == 1 else array)


def _weights(weight: Any, n: int) -> tuple[Array, bool]:
    if weight is None:
        return np.ones(n), True
    w = np.ascontiguousarray(weight, dtype=np.float64)
    return w, bool((w == 1.0).all())


def _power_of_two(size: float) -> float:
    """Return a power of two near `size`: dividing by it changes no digit."""
    return float(2.0 ** np.clip(np.frexp(size)[1], -1000, 1000)) if size > 0 else 1.0
