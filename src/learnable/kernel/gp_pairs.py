r"""Values k(xᵢ, zₖ) between rows and inducing points, and the way back from them to the hyperparameters.

A Gaussian kernel, with a variance and with noise besides, is done by matrix products and two compiled loops: with
a = (x − c)/ℓ√2, b = (z − c)/ℓ√2 the values are exp(2⟨a, b⟩ − ‖a‖² − ‖b‖²), and with M = S∘K

    Σᵢₖ Mᵢₖ(xᵢⱼ − zₖⱼ)²/ℓⱼ² = 2 Σᵢ (aᵢⱼ² Mᵢ1 − 2aᵢⱼ Mᵢbⱼ + Mᵢbⱼ²),

where one product M[1, b, b²] gives all three. Every other kernel goes through its tape (`risk.kernels.tape`).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..risk.kernels.base import Kernel
from ..risk.kernels.composed import Product, Scaled, Sum
from ..risk.kernels.dot import Constant
from ..risk.kernels.stationary import Gaussian
from ..risk.kernels.tape import record
from ._gp_kernels import multiply_rows
from ._kernels import gauss_tile64
from .gp_posterior import noise_free

Array = NDArray[np.float64]


class Pairs(Protocol):
    """Kernel values of some rows with the inducing points, up to a factor, and the way back."""

    factor: float  #: k = factor × values

    def values(self, X: Array) -> Array:
        """Return the values of some rows, (c, m); they and the rows are remembered for `back`."""
        ...

    def back(self, T: Array, share: Array) -> Array:
        """Return Σₖ Tᵢₖ kᵢₖ of each row, and remember Σᵢₖ shareᵢ Tᵢₖ ∂kᵢₖ/∂θ; T may be overwritten."""
        ...

    def slopes(self) -> Array:
        """Return the sum of all that was remembered, (p,)."""
        ...


def pairs_of(kernel: Kernel, Z: Array) -> Pairs:
    """Return the fastest way to the values of a kernel; white parts count nothing, because points differ."""
    inside = noise_free(kernel)
    scale = inside.scale if isinstance(inside, Scaled) else 1.0
    inside = inside.inner if isinstance(inside, Scaled) else inside
    return _GaussianPairs(kernel, inside, scale, Z) if isinstance(inside, Gaussian) else _TapedPairs(kernel, Z)


class _TapedPairs:
    """Any kernel."""

    factor = 1.0

    def __init__(self, kernel: Kernel, Z: Array) -> None:
        self.kernel, self.Z, self.total = kernel, Z, np.zeros(len(kernel.theta))

    def values(self, X: Array) -> Array:
        self.tape = record(self.kernel, X, self.Z)
        return self.tape.K

    def back(self, T: Array, share: Array) -> Array:
        sums = np.einsum("ij,ij->i", T, self.tape.K)
        T *= share[:, None]
        self.total += self.tape.back(T)
        return sums

    def slopes(self) -> Array:
        return self.total


class _GaussianPairs:
    """A Gaussian kernel times a number, besides noise."""

    def __init__(self, kernel: Kernel, gaussian: Gaussian, scale: float, Z: Array) -> None:
        self.kernel, self.factor, self.per_column = kernel, scale, np.ndim(gaussian.length_scale) > 0
        self.unit, self.centre = np.sqrt(2.0) * gaussian.length_scale, Z.mean(axis=0)
        self.B = np.ascontiguousarray((Z - self.centre) / self.unit)
        self.squares = np.einsum("ij,ij->i", self.B, self.B)
        self.right = np.column_stack([np.ones(len(Z)), self.B, self.B**2])
        self.by_scale, self.by_length = 0.0, np.zeros(Z.shape[1])
        self._work: Any = None

    def values(self, X: Array) -> Array:
        self.A = (X - self.centre) / self.unit
        c = len(X)
        if self._work is None or len(self._work.values) < c:
            shape = c, len(self.B)
            self._work = _Work(np.empty(shape), np.empty(shape), np.arange(c))
        dots, out, slots = (array[:c] for array in self._work)
        np.matmul(self.A, self.B.T, out=dots)
        gauss_tile64(dots, np.einsum("ij,ij->i", self.A, self.A), self.squares, out, slots, 0)
        return np.asarray(out)

    def back(self, T: Array, share: Array) -> Array:
        A, (c, d) = self.A, self.A.shape
        M, sums = self._work.dots[:c], np.empty(c)
        multiply_rows(T, self._work.values[:c], self.factor * share, M, sums)
        right = M @ self.right
        self.by_scale += float(right[:, 0].sum())
        self.by_length += right[:, 0] @ (A * A) - 2.0 * np.einsum("ij,ij->j", A, right[:, 1 : d + 1])
        self.by_length += right[:, d + 1 :].sum(axis=0)
        sums *= self.factor
        return sums

    def slopes(self) -> Array:
        by_length = 2.0 * self.by_length
        return _in_order(self.kernel, self.by_scale, by_length if self.per_column else by_length.sum(keepdims=True))


class _Work(NamedTuple):
    dots: Array  #: (c, m)
    values: Array  #: (c, m)
    slots: NDArray[np.int64]  #: (c,)


def _in_order(kernel: Kernel, by_scale: float, by_length: Array) -> Array:
    """Return the slopes of a variance and of length scales where the kernel's own θ has them, else zeros."""
    if noise_free(kernel) is None:
        return np.zeros(len(kernel.theta))
    if isinstance(kernel, (Sum, Product)):
        parts = [_in_order(part, by_scale, by_length) for part in (kernel.left, kernel.right)]
        return np.concatenate(parts)
    if isinstance(kernel, Scaled):
        own = [by_scale] if kernel._free() else []
        return np.r_[own, _in_order(kernel.inner, by_scale, by_length)]
    if isinstance(kernel, Gaussian):
        return by_length if kernel._free() else np.zeros(0)
    return np.array([by_scale] if isinstance(kernel, Constant) and kernel._free() else [])
