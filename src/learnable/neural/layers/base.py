"""What a layer is: shapes, names of its parameters, and a pair of functions over preallocated arrays.

A layer object is an immutable recipe without numbers. `Network` asks it for the shapes of its parameters, puts all of
them into one flat vector, and opens it: `open(bench)` returns a `Cache` with views of that vector, of the gradient and
of the arrays that one pass needs. Then

    forward(x, out, cache)       writes the layer's output to `out` and keeps in `cache` what the way back needs,
    backward(grad, cache, out)   gets dL/d(output), adds nothing anywhere: writes dL/d(parameters) to the cache's
                                 gradient views and dL/dx to `out` (None where it is not needed).

Rows may have any leading shape: (n,) for tables, (T, n) for sequences, time first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Role = Literal["weight", "bias", "gain"]

#: Predictions multiply so many rows at a time, or multiples, padded with zeros: BLAS treats the rows at the edge of a
#: product otherwise than those inside, and a row's prediction must not depend on its neighbours.
TILE = 64


class Weights(NamedTuple):
    """One array of parameters of a layer."""

    name: str  #: unique in its layer
    shape: tuple[int, ...]
    role: Role = "weight"  #: only weights decay; biases start at zero and gains at one
    fan_in: int = 1  #: inputs of a unit, for the scale at the start
    fan_out: int = 1  #: units that an input goes to


class Buffer(NamedTuple):
    """One array that a layer keeps and no gradient trains, such as the running mean of batch normalisation."""

    name: str
    shape: tuple[int, ...]
    start: float


@dataclass
class Bench:
    """What a network hands to a layer that it opens.

    Attributes
    ----------
    n_inputs : int
        Width of x.
    lead : tuple of int
        Leading shape of x: (n,), or (T, n).
    dtype : dtype
        Of all arrays.
    theta, gradient, buffers : dict of arrays
        Views of the layer's own arrays, by name.
    training : bool
        Whether dropout drops and batch normalisation uses the batch.
    lengths : (n,) int64 array
        Steps of each sequence; what stands in it counts at every pass.
    keys : Keys
        Where dropout takes its keys from.
    alone : bool
        Whether a row's output must not depend, in its last digit, on how many rows there are: `Dense` then pads them.
    """

    n_inputs: int
    lead: tuple[int, ...]
    dtype: np.dtype[Any]
    theta: dict[str, Array]
    gradient: dict[str, Array]
    buffers: dict[str, Array]
    training: bool = False
    lengths: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    keys: Any = None
    alone: bool = False

    def empty(self, *width: int) -> Array:
        """Return an array of the leading shape with rows of this width (of the inputs' width by default)."""
        return np.empty((*self.lead, *(width or (self.n_inputs,))), dtype=self.dtype)

    def child(self, prefix: str, n_inputs: int) -> Bench:
        """Return the bench of a layer inside this one: its names are those that begin with the prefix."""
        theta, gradient, buffers = (
            {name.removeprefix(prefix): value for name, value in part.items() if name.startswith(prefix)}
            for part in (self.theta, self.gradient, self.buffers)
        )
        return Bench(
            n_inputs, self.lead, self.dtype, theta, gradient, buffers, self.training, self.lengths, self.keys,
            self.alone,
        )  # fmt: skip


class Keys:
    """Keys of dropout: one counter for a whole network, so that every layer and every pass has its own."""

    def __init__(self, seed: int = 0) -> None:
        self.state = np.array([seed % 2**32], dtype=np.uint32)

    def reseed(self, seed: int) -> None:
        """Begin a new series of keys."""
        self.state[0] = seed % 2**32

    def advance(self) -> Array:
        """Return the next key, as an array of one number."""
        self.state[0] = (int(self.state[0]) * 747796405 + 2891336453) % 2**32
        return self.state


class Cache(SimpleNamespace):
    """Arrays of one opened layer; which, the layer knows."""


class Layer:
    """A recipe of one layer: the base has no parameters and keeps the width."""

    #: Whether a pass is a few long calls, which threads can make at the same time, not one from Python for each step.
    in_few_calls: ClassVar[bool] = True

    def width(self, n_inputs: int) -> int:
        """Return the width of the output for inputs of this width."""
        return n_inputs

    def weights(self, n_inputs: int) -> tuple[Weights, ...]:
        """Return the arrays of parameters."""
        return ()

    def buffers(self, n_inputs: int) -> tuple[Buffer, ...]:
        """Return the arrays that are kept and not trained."""
        return ()

    def out_lead(self, lead: tuple[int, ...]) -> tuple[int, ...]:
        """Return the leading shape of the output."""
        return lead

    def open(self, bench: Bench) -> Cache:
        """Return views and scratch arrays for passes over rows of the bench's leading shape."""
        return Cache()

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Write the output."""
        raise TypeError(f"{type(self).__name__} does not define forward")

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Write the gradients of the parameters and, unless `out` is None, of the input."""
        raise TypeError(f"{type(self).__name__} does not define backward")


def as_rows(x: Array) -> Array:
    """Return a view with one leading dimension."""
    return x.reshape(-1, x.shape[-1])
