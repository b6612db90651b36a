r"""Units: one function of one number each, with its derivative.

| unit          | σ(x)                     | σ′(x)                              | max σ′ |
|---------------|--------------------------|------------------------------------|--------|
| `Identity`    | x                        | 1                                  | 1      |
| `Logistic`    | 1/(1 + e^(−x))           | σ(1 − σ)                           | ¼      |
| `Tanh`        | tanh x                   | 1 − σ²                             | 1      |
| `Threshold`   | 1 if x > 0, else 0       | 0; the surrogate is 1 on [−1, 1]   | 1      |
| `ReLU`        | max(x, 0)                | 1 if x > 0, else 0                 | 1      |
| `LeakyReLU`   | x if x > 0, else ax      | 1 if x > 0, else a                 | 1      |
| `GELU`        | xΦ(x)                    | Φ(x) + xφ(x)                       | 1.129  |
| `SiLU`        | x/(1 + e^(−x))           | s(1 + x(1 − s)), s logistic        | 1.0998 |

A threshold has the derivative zero wherever it has one, so that nothing could be learned through it. Its backward pass
uses the derivative of the ramp between −1 and 1 instead, as in straight-through estimates; a gradient check therefore
fails for it, and has to.

Reference: Y. Bengio, N. Léonard and A. Courville, Estimating or propagating gradients through stochastic neurons, 2013.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...core.errors import ParameterError
from .. import _kernels as kernels
from .base import Array, Bench, Cache, Layer


class Unit(Layer):
    """A layer that maps every number by itself."""

    #: max |σ′|, for bounds on how gradients grow.
    steepest: ClassVar[float] = 1.0
    #: Gain for weights at the start, so that the spread of values is kept: variance gain²/fan_in.
    gain: ClassVar[float] = 1.0

    def open(self, bench: Bench) -> Cache:
        """Return an empty cache."""
        return Cache(x=None, y=None)

    def slope(self, x: Array) -> Array:
        """Return σ′(x)."""
        grad = np.ones_like(x)
        out = np.empty_like(x)
        cache = Cache(x=None, y=None)
        self.forward(x, np.empty_like(x), cache)
        self.backward(grad, cache, out)
        return out


@dataclass(frozen=True)
class Identity(Unit):
    """σ(x) = x."""

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Copy x."""
        np.copyto(out, x)

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Copy the gradient."""
        if out is not None:
            np.copyto(out, grad)


@dataclass(frozen=True)
class Logistic(Unit):
    """σ(x) = 1/(1 + e^(−x))."""

    steepest: ClassVar[float] = 0.25

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Write σ(x)."""
        cache.y = out
        kernels.logistic(x.reshape(-1), out.reshape(-1))

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Write gσ(1 − σ)."""
        if out is not None:
            kernels.logistic_back(cache.y.reshape(-1), grad.reshape(-1), out.reshape(-1))


@dataclass(frozen=True)
class Tanh(Unit):
    """σ(x) = tanh x."""

    gain: ClassVar[float] = 5.0 / 3.0

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Write tanh x."""
        cache.y = out
        np.tanh(x, out=out)

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Write g(1 − σ²)."""
        if out is not None:
            kernels.tanh_back(cache.y.reshape(-1), grad.reshape(-1), out.reshape(-1))


@dataclass(frozen=True)
class Threshold(Unit):
    """σ(x) = 1 if x > 0, else 0; backwards the derivative of the ramp between −1 and 1."""

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Write 1 or 0."""
        cache.x = x
        np.greater(x, 0, out=out, casting="unsafe")

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Write g where |x| <= 1, else 0."""
        if out is not None:
            np.multiply(grad, np.abs(cache.x) <= 1, out=out)


@dataclass(frozen=True)
class ReLU(Unit):
    """σ(x) = max(x, 0); at 0 the derivative is 0."""

    gain: ClassVar[float] = 2.0**0.5

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Write max(x, 0)."""
        cache.y = out
        kernels.relu(x.reshape(-1), out.reshape(-1))

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Write g where the unit is on."""
        if out is not None:
            kernels.leaky_back(cache.y.reshape(-1), 0.0, grad.reshape(-1), out.reshape(-1))


@dataclass(frozen=True)
class LeakyReLU(Unit):
    """σ(x) = x if x > 0, else ax; at 0 the derivative is a.

    Parameters
    ----------
    slope : float, default=0.01
        a in [0, 1).
    """

    slope_below: float = 0.01
    gain: ClassVar[float] = 2.0**0.5

    def __post_init__(self) -> None:
        if not 0.0 <= self.slope_below < 1.0:
            raise ParameterError(f"LeakyReLU: slope_below must be a number >= 0 and < 1; got {self.slope_below!r}.")

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Write x or ax."""
        cache.x = x
        kernels.leaky(x.reshape(-1), self.slope_below, out.reshape(-1))

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Write g or ag."""
        if out is not None:
            kernels.leaky_back(cache.x.reshape(-1), self.slope_below, grad.reshape(-1), out.reshape(-1))


@dataclass(frozen=True)
class GELU(Unit):
    """σ(x) = xΦ(x), Φ the standard normal distribution function."""

    steepest: ClassVar[float] = 1.1289
    gain: ClassVar[float] = 2.0**0.5

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Write xΦ(x)."""
        cache.x = x
        kernels.gelu(x.reshape(-1), out.reshape(-1))

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Write g(Φ + xφ)."""
        if out is not None:
            kernels.gelu_back(cache.x.reshape(-1), grad.reshape(-1), out.reshape(-1))


@dataclass(frozen=True)
class SiLU(Unit):
    """σ(x) = x/(1 + e^(−x)), also called swish."""

    steepest: ClassVar[float] = 1.0999
    gain: ClassVar[float] = 2.0**0.5

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Write x/(1 + e^(−x))."""
        cache.x = x
        kernels.silu(x.reshape(-1), out.reshape(-1))

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Write gs(1 + x(1 − s))."""
        if out is not None:
            kernels.silu_back(cache.x.reshape(-1), grad.reshape(-1), out.reshape(-1))


#: scikit-learn's names and ours.
UNITS: dict[str, Unit] = {
    "identity": Identity(),
    "linear": Identity(),
    "logistic": Logistic(),
    "tanh": Tanh(),
    "threshold": Threshold(),
    "relu": ReLU(),
    "leaky_relu": LeakyReLU(),
    "gelu": GELU(),
    "silu": SiLU(),
}
