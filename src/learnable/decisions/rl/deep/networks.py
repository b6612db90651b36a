"""Networks of the agents: dense layers over one flat vector, and their form in compiled play."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....core import AnyArray
from ....neural.layers.activations import UNITS
from ....neural.layers.base import Cache, Layer
from ....neural.layers.dense import Dense
from ....neural.network import Network
from ._play_kernels import RELU, TANH, PolicyArrays

UNIT_CODES = {"relu": RELU, "tanh": TANH}


@dataclass(frozen=True)
class Dueling(Layer):
    """Q = V + A − mean A: the first input is the value V of the state, the others are advantages A of the actions.

    Reference: Z. Wang et al., Dueling network architectures for deep reinforcement learning, ICML 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.decisions.rl.deep import Dueling
    >>> from learnable.neural import Network
    >>> Network([Dueling()], n_inputs=3, dtype="float64").predict(np.zeros(0), np.array([[5.0, 1.0, 3.0]]))
    array([[4., 6.]])
    """

    def width(self, n_inputs: int) -> int:
        """Return the number of actions."""
        return n_inputs - 1

    def forward(self, x: AnyArray, out: AnyArray, cache: Cache) -> None:
        """Write V + A − mean A."""
        np.subtract(x[:, 1:], x[:, 1:].mean(axis=1, keepdims=True), out=out)
        out += x[:, :1]

    def backward(self, grad: AnyArray, cache: Cache, out: AnyArray | None) -> None:
        """Write Σg for V, and g − mean g for A."""
        if out is None:
            return
        np.sum(grad, axis=1, out=out[:, 0])
        np.subtract(grad, grad.mean(axis=1, keepdims=True), out=out[:, 1:])


def outputs_in_double(network: Network, theta: AnyArray, X: AnyArray) -> AnyArray:
    """Return a network's outputs in double precision: what is proven of values must not hang on single rounding."""
    return Network(network.layers, network.n_inputs, dtype="float64").predict(theta.astype(np.float64), X)


def build(
    n_inputs: int, hidden: Sequence[int], unit: str, n_outputs: int, dtype: str, dueling: bool = False
) -> Network:
    """Return a network of dense layers with a unit in between."""
    layers: list[Layer] = []
    for width in hidden:
        layers += [Dense(int(width)), UNITS[unit]]
    layers.append(Dense(n_outputs + 1 if dueling else n_outputs))
    if dueling:
        layers.append(Dueling())
    return Network(layers, n_inputs, dtype=dtype)


def layout_of(network: Network) -> AnyArray:
    """Return where the weights and biases of each dense layer stand: rows (W, b, inputs, outputs)."""
    rows = []
    for k, layer in enumerate(network.layers):
        W = network.span(k, "W")
        b = network.span(k, "b")
        if W is not None and b is not None and isinstance(layer, Dense):
            rows.append((W.start, b.start, network.widths[k], network.widths[k + 1]))
    return np.array(rows, dtype=np.int64)


def scratch_of(layout: AnyArray, dtype: Any) -> AnyArray:
    """Return room for the activations of one observation."""
    return np.zeros((2, int(layout[:, 2:].max())), dtype=dtype)


def start_small(network: Network, theta: AnyArray, gain: float) -> None:
    """Scale the last layer's orthogonal start, which has the gain √2, to another gain. OUT theta."""
    last = max(k for k, layer in enumerate(network.layers) if isinstance(layer, Dense))
    span = network.span(last, "W")
    if span is not None:
        theta[span] *= gain / math.sqrt(2.0)


def policy_arrays(
    kind: int, unit: str, network: Network, theta: AnyArray, centre: AnyArray, scale: AnyArray, log_std: AnyArray,
    low: AnyArray, high: AnyArray, skip: int = 0
) -> PolicyArrays:  # fmt: skip
    """Return a policy as compiled play takes it; `theta` may be changed in place afterwards."""
    layout = layout_of(network)
    return PolicyArrays(
        kind=kind,
        unit=UNIT_CODES[unit],
        skip=skip,
        theta=theta,
        layout=layout,
        work=scratch_of(layout, theta.dtype),
        centre=centre,
        scale=scale,
        log_std=log_std,
        low=low,
        high=high,
    )
