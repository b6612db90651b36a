"""Dense layers: z = xW + b, the bias alone, and a table of vectors for categories."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .. import _kernels as kernels
from .base import TILE, Array, Bench, Cache, Layer, Weights, as_rows


@dataclass(frozen=True)
class Dense(Layer):
    """z = xW + b: every unit sees every input.

    Parameters
    ----------
    units : int
        Width of the output.
    bias : bool, default=True
        Whether b is there.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.neural import Dense, Network
    >>> net = Network([Dense(2)], n_inputs=3, dtype="float64")
    >>> net.predict(np.arange(8.0), np.ones((1, 3)))  # W row by row, then b
    array([[12., 16.]])
    """

    units: int
    bias: bool = True

    def width(self, n_inputs: int) -> int:
        """Return the number of units."""
        return self.units

    def weights(self, n_inputs: int) -> tuple[Weights, ...]:
        """Return W (n_inputs, units) and b (units,)."""
        fans = (n_inputs, self.units)
        W = Weights("W", fans, "weight", *fans)
        return (W, Weights("b", (self.units,), "bias", *fans)) if self.bias else (W,)

    def open(self, bench: Bench) -> Cache:
        """Return views of W and b, and of their gradients."""
        theta = bench.theta
        gradient = bench.gradient
        cache = Cache(W=theta["W"], W_t=theta["W"].T, gW=gradient.get("W"), b=theta.get("b"), gb=gradient.get("b"))
        cache.flat = len(bench.lead) == 1
        cache.padded = None
        n = math.prod(bench.lead)
        if bench.alone and n % TILE:
            rows = -(-n // TILE) * TILE
            cache.padded = np.zeros((rows, bench.n_inputs), dtype=bench.dtype)
            cache.result = np.empty((rows, self.units), dtype=bench.dtype)
        return cache

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Write xW + b."""
        if not cache.flat:
            x = as_rows(x)
            out = as_rows(out)
        cache.x = x
        if cache.padded is None:
            np.dot(x, cache.W, out=out)
        else:
            cache.padded[: len(x)] = x
            np.dot(cache.padded, cache.W, out=cache.result)
            out[:] = cache.result[: len(x)]
        if cache.b is not None:
            kernels.add_bias(cache.b, out)

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Write xᵀg, Σg and gWᵀ."""
        if not cache.flat:
            grad = as_rows(grad)
        np.dot(cache.x.T, grad, out=cache.gW)
        if cache.b is not None:
            kernels.sum_rows(grad, cache.gb)
        if out is not None:
            np.dot(grad, cache.W_t, out=out if cache.flat else as_rows(out))


@dataclass(frozen=True)
class Bias(Layer):
    """z = x + b."""

    def weights(self, n_inputs: int) -> tuple[Weights, ...]:
        """Return b (n_inputs,)."""
        return (Weights("b", (n_inputs,), "bias", n_inputs, n_inputs),)

    def open(self, bench: Bench) -> Cache:
        """Return views of b and of its gradient."""
        return Cache(b=bench.theta["b"], gb=bench.gradient.get("b"))

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Write x + b."""
        np.copyto(out, x)
        kernels.add_bias(cache.b, as_rows(out))

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Write Σg and g."""
        kernels.sum_rows(as_rows(grad), cache.gb)
        if out is not None:
            np.copyto(out, grad)


@dataclass(frozen=True)
class Embedding(Layer):
    """Columns of category codes become learned vectors; the other columns pass through, in front.

    Parameters
    ----------
    columns : tuple of int
        Which columns hold codes 0 … size − 1.
    sizes : tuple of int
        Categories of each of them.
    units : tuple of int
        Length of the vectors of each of them.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.neural import Embedding, Network
    >>> net = Network([Embedding(columns=(1,), sizes=(3,), units=(2,))], n_inputs=2, dtype="float64")
    >>> net.predict(np.arange(6.0), np.array([[7.0, 0.0], [7.0, 2.0]]))
    array([[7., 0., 1.],
           [7., 4., 5.]])
    """

    columns: tuple[int, ...]
    sizes: tuple[int, ...]
    units: tuple[int, ...]

    def width(self, n_inputs: int) -> int:
        """Return the number of other columns plus the lengths of the vectors."""
        return n_inputs - len(self.columns) + sum(self.units)

    def weights(self, n_inputs: int) -> tuple[Weights, ...]:
        """Return one table (size, units) for each column of codes."""
        shapes = zip(self.sizes, self.units, strict=True)
        return tuple(Weights(f"E{k}", shape, "weight", 1, shape[1]) for k, shape in enumerate(shapes))

    def open(self, bench: Bench) -> Cache:
        """Return the tables, their gradients and room for the codes."""
        others = np.array([j for j in range(bench.n_inputs) if j not in self.columns], dtype=np.intp)
        tables = [bench.theta[f"E{k}"] for k in range(len(self.columns))]
        gradients = [bench.gradient.get(f"E{k}") for k in range(len(self.columns))]
        return Cache(others=others, tables=tables, gradients=gradients, codes=[])

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Copy the other columns and look the vectors up; a code out of range takes the nearest one in range."""
        rows = as_rows(x)
        target = as_rows(out)
        start = len(cache.others)
        target[:, :start] = rows[:, cache.others]
        cache.codes = []
        for column, size, table in zip(self.columns, self.sizes, cache.tables, strict=True):
            codes = np.clip(rows[:, column], 0, size - 1).astype(np.int64)
            kernels.look_up(codes, table, start, target)
            cache.codes.append(codes)
            start += table.shape[1]

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Add the gradients of equal codes up; codes themselves have no gradient."""
        rows = as_rows(grad)
        start = len(cache.others)
        for codes, gradient in zip(cache.codes, cache.gradients, strict=True):
            gradient[:] = 0.0
            kernels.scatter_add(codes, rows, start, gradient)
            start += gradient.shape[1]
        if out is not None:
            as_rows(out)[:] = 0.0
            as_rows(out)[:, cache.others] = rows[:, : len(cache.others)]
