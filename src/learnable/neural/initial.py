r"""Where weights start.

| name            | weights (biases are 0 unless it says otherwise)                                        |
|-----------------|----------------------------------------------------------------------------------------|
| `"uniform"`     | U(−1/√d, 1/√d), d the inputs of a unit; biases too                                     |
| `"glorot"`      | U(−√(6/(d + m)), √(6/(d + m))), m the units; biases too: scikit-learn's start          |
| `"he"`          | N(0, 2/d), for units that are off half of the time                                     |
| `"orthogonal"`  | orthonormal rows or columns, times the gain √2                                         |
| `"lsuv"`        | orthonormal, then each layer is scaled until its outputs on the data have variance 1   |
| `"zeros"`       | all zero: equal units get equal gradients and stay equal for ever                      |

References: X. Glorot and Y. Bengio, AISTATS 2010; K. He et al., ICCV 2015; A. Saxe et al., ICLR 2014; D. Mishkin and
J. Matas, All you need is a good init, ICLR 2016.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .layers.base import Weights

Array = NDArray[Any]
Rule = Callable[[Weights, np.random.Generator], Array]


def _uniform(item: Weights, rng: np.random.Generator) -> Array:
    bound = 1.0 / math.sqrt(max(item.fan_in, 1))
    return rng.uniform(-bound, bound, item.shape)


def _glorot(item: Weights, rng: np.random.Generator) -> Array:
    bound = math.sqrt(6.0 / (item.fan_in + item.fan_out))
    return rng.uniform(-bound, bound, item.shape)


def _glorot_logistic(item: Weights, rng: np.random.Generator) -> Array:
    bound = math.sqrt(2.0 / (item.fan_in + item.fan_out))
    return rng.uniform(-bound, bound, item.shape)


def _he(item: Weights, rng: np.random.Generator) -> Array:
    if item.role == "bias":
        return np.zeros(item.shape)
    return rng.normal(0.0, math.sqrt(2.0 / max(item.fan_in, 1)), item.shape)


def _orthogonal(item: Weights, rng: np.random.Generator) -> Array:
    if item.role == "bias" or len(item.shape) != 2:
        return np.zeros(item.shape)
    rows, columns = item.shape
    q, r = np.linalg.qr(rng.normal(size=(max(rows, columns), min(rows, columns))))
    q = q * np.sign(np.diag(r))  # otherwise the signs are those of the algorithm, not of chance
    return math.sqrt(2.0) * (q if rows >= columns else q.T)


def _zeros(item: Weights, rng: np.random.Generator) -> Array:
    return np.zeros(item.shape)


RULES: dict[str, Rule] = {
    "uniform": _uniform,
    "glorot": _glorot,
    "glorot_logistic": _glorot_logistic,
    "he": _he,
    "orthogonal": _orthogonal,
    "lsuv": _orthogonal,
    "zeros": _zeros,
}
NAMES: tuple[str, ...] = ("uniform", "glorot", "he", "orthogonal", "lsuv", "zeros")


def scale_by_data(network: Any, theta: Array, X: Array) -> None:
    """Scale the weights of every dense layer in turn until its outputs on X have variance 1 (LSUV). OUT theta.

    A layer whose outputs do not vary is left as it is.
    """
    for k in range(len(network.layers)):
        span = network.span(k, "W")
        if span is None:
            continue
        for _ in range(10):  # more than two rounds are needed only where normalisation follows
            spread = float(np.std(network.activations(theta, X)[k], dtype=np.float64))
            if not spread > 0.0 or abs(spread - 1.0) < 0.01:
                break
            theta[span] /= spread
