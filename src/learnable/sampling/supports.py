r"""Where parameters live, and the maps from free coordinates onto these sets.

A sampler moves on free coordinates u ∈ Rⁿ. A support gives the map u ↦ x and log|dx/du|, so that users write the
density of x as it stands in the book; the sampler adds the Jacobian.

| support | map | log of the Jacobian |
|---|---|---|
| `Real(shape)` | x = u | 0 |
| `Positive(shape)`, `AtLeast(a, shape)` | x = a + eᵘ | Σu |
| `AtMost(b, shape)` | x = b − eᵘ | Σu |
| `Interval(a, b, shape)` | x = a + (b − a) σ(u) | Σ log (b − a) σ(u) σ(−u) |
| `Simplex(k)` | stick breaking; u = 0 is the centre | Σ log of each stick's factor |
| `Ordered(k)` | x₀ = u₀, xᵢ = xᵢ₋₁ + e^{uᵢ} | Σ_{i>0} uᵢ |
| `CovarianceCholesky(d)` | lower triangle, e^u on the diagonal | Σ of the diagonal's u |

The density of a simplex is the one of its first k − 1 coordinates; that of a Cholesky factor the one of the d(d + 1)/2
entries of its lower triangle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, ParameterError
from . import _target_kernels as kernels
from .states import Variable

Array = NDArray[np.float64]


class Support:
    """Base of all supports: shape of a draw, number of free coordinates, the kernels' row."""

    kind: int = kernels.REAL

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one draw."""
        raise TypeError(f"{type(self).__name__} has no shape")

    @property
    def n_free(self) -> int:
        """Number of free coordinates."""
        return math.prod(self.shape)

    @property
    def ends(self) -> tuple[float, float]:
        """The two numbers that the map needs, a and b."""
        return 0.0, 0.0

    def fault(self, x: Array) -> str | None:
        """Return why x is not in the support, in words; None if it is."""
        return None if np.isfinite(x).all() else "must be finite"

    def free(self, x: Array) -> Array:
        """Return the free coordinates of a point of the support."""
        return x.ravel()


@dataclass(frozen=True)
class Real(Support):
    """Any real numbers, of a shape.

    Examples
    --------
    >>> from learnable.sampling import Real
    >>> Real(3).shape, Real().n_free
    ((3,), 1)
    """

    size: Any = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one draw."""
        return _shape(self.size)


@dataclass(frozen=True)
class AtLeast(Support):
    """Numbers above a.

    Examples
    --------
    >>> from learnable.sampling import Parameters, AtLeast
    >>> float(Parameters({"x": AtLeast(2.0)}).natural([0.0])["x"])
    3.0
    """

    a: float
    size: Any = ()
    kind = kernels.LOWER

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one draw."""
        return _shape(self.size)

    @property
    def ends(self) -> tuple[float, float]:
        """The lower end."""
        return float(self.a), math.inf

    def fault(self, x: Array) -> str | None:
        """Return why x is not in the support."""
        return None if (np.isfinite(x) & (x > self.a)).all() else f"must be above {self.a:g}"

    def free(self, x: Array) -> Array:
        """Return log(x − a)."""
        return np.log(x.ravel() - self.a)


def Positive(size: Any = ()) -> AtLeast:  # noqa: N802  # it reads as a class beside the others
    """Return the support of positive numbers of a shape."""
    return AtLeast(0.0, size)


@dataclass(frozen=True)
class AtMost(Support):
    """Numbers below b.

    Examples
    --------
    >>> from learnable.sampling import Parameters, AtMost
    >>> float(Parameters({"x": AtMost(2.0)}).natural([0.0])["x"])
    1.0
    """

    b: float
    size: Any = ()
    kind = kernels.UPPER

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one draw."""
        return _shape(self.size)

    @property
    def ends(self) -> tuple[float, float]:
        """The upper end."""
        return -math.inf, float(self.b)

    def fault(self, x: Array) -> str | None:
        """Return why x is not in the support."""
        return None if (np.isfinite(x) & (x < self.b)).all() else f"must be below {self.b:g}"

    def free(self, x: Array) -> Array:
        """Return log(b − x)."""
        return np.log(self.b - x.ravel())


@dataclass(frozen=True)
class Interval(Support):
    """Numbers strictly between a and b.

    Examples
    --------
    >>> from learnable.sampling import Parameters, Interval
    >>> float(Parameters({"x": Interval(0, 4)}).natural([0.0])["x"])
    2.0
    """

    a: float
    b: float
    size: Any = ()
    kind = kernels.INTERVAL

    def __post_init__(self) -> None:
        if not (math.isfinite(self.a) and math.isfinite(self.b) and self.a < self.b):
            raise ParameterError(f"Interval: a must be below b, both finite; got {self.a!r} and {self.b!r}.")

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one draw."""
        return _shape(self.size)

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends."""
        return float(self.a), float(self.b)

    def fault(self, x: Array) -> str | None:
        """Return why x is not in the support."""
        return None if ((x > self.a) & (x < self.b)).all() else f"must lie between {self.a:g} and {self.b:g}"

    def free(self, x: Array) -> Array:
        """Return the logit of the place between the ends."""
        share = (x.ravel() - self.a) / (self.b - self.a)
        return np.asarray(np.log(share) - np.log1p(-share))


@dataclass(frozen=True)
class Simplex(Support):
    """Vectors of k positive numbers that add up to 1.

    Examples
    --------
    >>> from learnable.sampling import Parameters, Simplex
    >>> Parameters({"p": Simplex(4)}).natural([0.0, 0.0, 0.0])["p"].round(2)
    array([0.25, 0.25, 0.25, 0.25])
    """

    k: int
    kind = kernels.SIMPLEX

    def __post_init__(self) -> None:
        _check_length("Simplex", "k", self.k, 2)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one draw."""
        return (int(self.k),)

    @property
    def n_free(self) -> int:
        """One less than the numbers."""
        return int(self.k) - 1

    def fault(self, x: Array) -> str | None:
        """Return why x is not in the support."""
        inside = (x > 0).all() and abs(x.sum() - 1) < 1e-8
        return None if inside else "must be positive and add up to 1"

    def free(self, x: Array) -> Array:
        """Return the logits of the broken sticks."""
        left = np.cumsum(x[::-1])[::-1]
        k = np.arange(self.k - 1)
        return np.asarray(np.log(x[:-1]) - np.log(left[1:]) + np.log(self.k - 1 - k))


@dataclass(frozen=True)
class Ordered(Support):
    """Vectors of k increasing numbers.

    Examples
    --------
    >>> from learnable.sampling import Parameters, Ordered
    >>> Parameters({"x": Ordered(3)}).natural([-1.0, 0.0, 0.0])["x"]
    array([-1.,  0.,  1.])
    """

    k: int
    kind = kernels.ORDERED

    def __post_init__(self) -> None:
        _check_length("Ordered", "k", self.k, 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one draw."""
        return (int(self.k),)

    def fault(self, x: Array) -> str | None:
        """Return why x is not in the support."""
        return None if np.isfinite(x).all() and (np.diff(x) > 0).all() else "must increase"

    def free(self, x: Array) -> Array:
        """Return the first number and the logarithms of the steps."""
        return np.concatenate([x[:1], np.log(np.diff(x))])


@dataclass(frozen=True)
class CovarianceCholesky(Support):
    """Lower triangular d × d matrices with a positive diagonal: Cholesky factors of covariances.

    Examples
    --------
    >>> from learnable.sampling import Parameters, CovarianceCholesky
    >>> Parameters({"L": CovarianceCholesky(2)}).natural([0.0, 0.5, 0.0])["L"]
    array([[1. , 0. ],
           [0.5, 1. ]])
    """

    d: int
    kind = kernels.CHOLESKY

    def __post_init__(self) -> None:
        _check_length("CovarianceCholesky", "d", self.d, 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one draw."""
        return (int(self.d), int(self.d))

    @property
    def n_free(self) -> int:
        """Entries of the lower triangle."""
        return int(self.d) * (int(self.d) + 1) // 2

    def fault(self, x: Array) -> str | None:
        """Return why x is not in the support."""
        sound = np.isfinite(x).all() and (np.triu(x, 1) == 0).all() and (np.diag(x) > 0).all()
        return None if sound else "must be lower triangular with a positive diagonal"

    def free(self, x: Array) -> Array:
        """Return the lower triangle, row by row, with logarithms on the diagonal."""
        inside = x - np.diag(np.diag(x)) + np.diag(np.log(np.diag(x)))
        return np.asarray(inside[np.tril_indices(self.d)])


class Parameters:
    """Named parameters with supports, side by side in one vector of free coordinates.

    Parameters
    ----------
    supports : mapping of str to Support, shape or int
        A shape stands for `Real(shape)`.

    Examples
    --------
    >>> from learnable.sampling import Parameters, Positive, Real
    >>> parameters = Parameters({"mu": Real(), "tau": Positive(), "theta": 8})
    >>> parameters.n_free, parameters.natural([0.0] * 10)["tau"]
    (10, array(1.))
    """

    def __init__(self, supports: Mapping[str, Any]) -> None:
        if not isinstance(supports, Mapping) or not supports:
            raise ParameterError("parameters must be a mapping of names to supports, such as {'tau': Positive()}.")
        self.supports = {name: given if isinstance(given, Support) else Real(given) for name, given in supports.items()}
        for name in self.supports:
            if not isinstance(name, str) or not name:
                raise ParameterError(f"parameters: a name must be a string; got {name!r}.")
        self.variables = tuple(Variable(name, support.shape) for name, support in self.supports.items())
        rows = []
        ends = []
        u = 0
        x = 0
        for support in self.supports.values():
            length = math.prod(support.shape)
            rows.append([support.kind, u, support.n_free, x, length])
            ends.append(support.ends)
            u += support.n_free
            x += length
        self.n_free = u
        self.n_natural = x
        self.blocks = np.array(rows, dtype=np.int64)
        self.bounds = np.array(ends, dtype=np.float64)

    def flat(self, u: Any) -> Array:
        """Return the natural parameters of free coordinates as one vector; of several rows, row by row."""
        u = np.ascontiguousarray(u, dtype=np.float64)
        x = np.empty((*u.shape[:-1], self.n_natural))
        if u.ndim == 1:
            kernels.constrain_one(u, self.blocks, self.bounds, x)
        else:
            kernels.constrain_all(u, self.blocks, self.bounds, x)
        return x

    def natural(self, u: Any) -> dict[str, Array]:
        """Return the natural parameters of one point by name."""
        return self.named(self.flat(u))

    def named(self, x: Array) -> dict[str, Array]:
        """Return the parts of one flat natural vector by name."""
        found = {}
        start = 0
        for variable in self.variables:
            found[variable.name] = x[start : start + variable.size].reshape(variable.shape)
            start += variable.size
        return found

    def free(self, owner: str, values: Mapping[str, Any]) -> Array:
        """Return the free coordinates of values by name; an error names the parameter that is not in its support."""
        if not isinstance(values, Mapping) or set(values) != set(self.supports):
            got = sorted(values) if isinstance(values, Mapping) else type(values).__name__
            raise DataError(f"{owner}: x0 must give a value for each of {sorted(self.supports)}; got {got}.")
        parts = []
        for name, support in self.supports.items():
            x = np.asarray(values[name], dtype=np.float64)
            if x.shape != support.shape:
                raise DataError(f"{owner}: x0[{name!r}] must have shape {support.shape}; got {x.shape}.")
            fault = support.fault(x)
            if fault is not None:
                raise DataError(f"{owner}: x0[{name!r}] {fault}; got {_brief(x)}.")
            parts.append(np.atleast_1d(support.free(x)))
        return np.concatenate(parts)

    def free_labels(self) -> list[str]:
        """Return for each free coordinate the parameter that it belongs to, with its place."""
        found = []
        for name, support in self.supports.items():
            n = support.n_free
            found += [name] if n == 1 and not support.shape else [f"{name}[{i}]" for i in range(n)]
        return found


def _shape(size: Any) -> tuple[int, ...]:
    shape = (size,) if isinstance(size, (int, np.integer)) else tuple(size)
    if any(not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1 for k in shape):
        raise ParameterError(f"a support's shape must be made of positive integers; got {size!r}.")
    return tuple(int(k) for k in shape)


def _check_length(owner: str, name: str, value: Any, least: int) -> None:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ParameterError(f"{owner}: {name} must be an integer of at least {least}; got {value!r}.")


def _brief(x: Array) -> str:
    return f"{float(x):.4g}" if x.ndim == 0 else np.array2string(x, threshold=6, precision=4)
