r"""Heads: what the scores of a network cost, and what they predict.

A head joins a loss V(y, z) of `risk.losses` to a batch:

    L = Σᵢ wᵢ V(yᵢ, zᵢ) / Σᵢ wᵢ,    dL/dzᵢ = wᵢ V′(yᵢ, zᵢ) / Σᵢ wᵢ.

| head            | targets                   | V(y, z)                            | prediction  |
|-----------------|---------------------------|------------------------------------|-------------|
| `SquaredHead`   | (n, k) numbers            | ½‖z − y‖²                          | z           |
| `LogisticHead`  | (n, k) numbers in [0, 1]  | Σⱼ log(1 + e^zⱼ) − yⱼzⱼ            | 1/(1 + e^−z)|
| `SoftmaxHead`   | (n,) codes                | log Σₖ e^zₖ − z_y                  | softmax z   |
| `LossHead(V)`   | as V wants them           | any loss of `risk.losses`, summed over columns | V's own |

The first three are compiled; the last calls the loss in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from ..core.errors import ParameterError
from ..risk.losses import SoftmaxLoss, SquaredLoss
from . import _kernels as kernels

Array = NDArray[Any]


class Head(Protocol):
    """What a network needs of a loss."""

    def evaluate(self, z: Array, y: Array, weight: Array, share: float, out: Array) -> float:
        """Return share·Σ wᵢV(yᵢ, zᵢ) and write its gradient in z to `out`."""
        ...

    def mean(self, z: Array) -> Array:
        """Return what the scores predict."""
        ...


@dataclass(frozen=True)
class SquaredHead:
    """½‖z − y‖²."""

    def evaluate(self, z: Array, y: Array, weight: Array, share: float, out: Array) -> float:
        """Return the loss and write its gradient."""
        return float(kernels.squared_head(z, y, weight, share, out))

    def mean(self, z: Array) -> Array:
        """Return z."""
        return z


@dataclass(frozen=True)
class LogisticHead:
    """log(1 + e^z) − yz for each column: two classes, or several labels that do not exclude each other."""

    def evaluate(self, z: Array, y: Array, weight: Array, share: float, out: Array) -> float:
        """Return the loss and write its gradient."""
        return float(kernels.logistic_head(z, y, weight, share, out))

    def mean(self, z: Array) -> Array:
        """Return the probabilities of y = 1."""
        return np.asarray(expit(z))


@dataclass(frozen=True)
class SoftmaxHead:
    """log Σₖ e^zₖ − z_y."""

    def evaluate(self, z: Array, y: Array, weight: Array, share: float, out: Array) -> float:
        """Return the loss and write its gradient."""
        return float(kernels.softmax_head(z, y, weight, share, out))

    def mean(self, z: Array) -> Array:
        """Return the probabilities of the classes."""
        return np.asarray(softmax(z, axis=1))


@dataclass(frozen=True)
class LossHead:
    """Any loss of `risk.losses`, summed over the columns of z.

    Parameters
    ----------
    loss : ConvexLoss
        Its targets are those of its own docstring: numbers, ±1, or codes of classes.
    """

    loss: Any

    def evaluate(self, z: Array, y: Array, weight: Array, share: float, out: Array) -> float:
        """Return the loss and write its gradient."""
        scores = z.astype(np.float64)
        values = self.loss.value(y, scores)
        gradient = self.loss.gradient(y, scores)
        by_row = values.reshape(len(z), -1).sum(axis=1)
        out[:] = gradient * (share * weight.astype(np.float64))[:, None]
        return float(share * (weight.astype(np.float64) @ by_row))

    def mean(self, z: Array) -> Array:
        """Return what the loss takes the scores for."""
        scores = z.astype(np.float64)
        probability = getattr(self.loss, "probability", None)
        return np.asarray(self.loss.predict(scores) if probability is None else probability(scores))


def head_of(loss: Any) -> Head:
    """Return the head of a loss of `risk.losses`: the compiled one where it exists; a head stays what it is.

    Examples
    --------
    >>> from learnable.neural.heads import head_of
    >>> from learnable.risk import HuberLoss, SquaredLoss
    >>> head_of(SquaredLoss()), head_of(HuberLoss(1.0))
    (SquaredHead(), LossHead(loss=HuberLoss(delta=1.0)))
    """
    if hasattr(loss, "evaluate") and hasattr(loss, "mean"):
        return loss  # type: ignore[no-any-return]
    if isinstance(loss, SquaredLoss):
        return SquaredHead()
    if isinstance(loss, SoftmaxLoss):
        return SoftmaxHead()
    if hasattr(loss, "value") and hasattr(loss, "gradient"):
        return LossHead(loss)
    raise ParameterError(f"Network: loss must be a loss of learnable.risk, or a head; got {loss!r}.")
