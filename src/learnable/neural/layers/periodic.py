r"""Periodic features of numbers: every column becomes itself and a few learned mixtures of its cosines.

    e_j = A_jᵀ cos(2π f_j x_j + p_j) + c_j,    out = (x, e₁, …, e_d)

A network on raw columns is smooth in each of them and slow to learn steps and peaks, such as those of longitude and
latitude; learned frequencies give it a finer scale from the start.

References: Y. Gorishniy et al., On embeddings for numerical features in tabular deep learning, NeurIPS 2022; D.
Holzmüller et al., Better by default, 2024, whose "PBLD" this is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .base import Array, Bench, Cache, Layer, Weights

_TURN = 2.0 * np.pi


@dataclass(frozen=True)
class Periodic(Layer):
    """(x, Aᵀ cos(2πfx + p) + c), column by column.

    Parameters
    ----------
    frequencies : int, default=16
        Cosines of each column.
    units : int, default=3
        Mixtures of them that are passed on.
    spread : float, default=0.1
        Standard deviation of the frequencies at the start.
    """

    frequencies: int = 16
    units: int = 3
    spread: float = 0.1

    def width(self, n_inputs: int) -> int:
        """Return d(1 + units)."""
        return n_inputs * (1 + self.units)

    def weights(self, n_inputs: int) -> tuple[Weights, ...]:
        """Return A (d, k, m), f (d, k), p (d, k) and c (d, m)."""
        k = self.frequencies
        m = self.units
        return (
            Weights("A", (n_inputs, k, m), "weight", k, m),
            Weights("f", (n_inputs, k), "bias", k, m),
            Weights("p", (n_inputs, k), "bias", k, m),
            Weights("c", (n_inputs, m), "bias", k, m),
        )

    def adjust_start(self, views: dict[str, Array], rng: np.random.Generator) -> None:
        """Draw frequencies from N(0, spread²), phases from a whole turn, mixtures from U(−1/√k, 1/√k)."""
        bound = 1.0 / np.sqrt(self.frequencies)
        views["f"][:] = rng.normal(0.0, self.spread, views["f"].shape)
        views["p"][:] = rng.uniform(-np.pi, np.pi, views["p"].shape)
        views["A"][:] = rng.uniform(-bound, bound, views["A"].shape)
        views["c"][:] = 0.0

    def open(self, bench: Bench) -> Cache:
        """Return views and room for the cosines, column by column."""
        n = int(np.prod(bench.lead))
        d = bench.n_inputs
        k = self.frequencies
        m = self.units
        cache = Cache(**{name: bench.theta[name] for name in "Afpc"})
        cache.gA, cache.gf, cache.gp, cache.gc = (bench.gradient.get(name) for name in "Afpc")
        cache.angle, cache.cosine, cache.slope = (np.empty((d, n, k), dtype=bench.dtype) for _ in range(3))
        cache.mixed, cache.grad = (np.empty((d, n, m), dtype=bench.dtype) for _ in range(2))
        return cache

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Write the columns, then their mixtures."""
        rows = x.reshape(-1, x.shape[-1])
        target = out.reshape(-1, out.shape[-1])
        d = rows.shape[1]
        cache.x = rows
        np.multiply(rows.T[:, :, None], x.dtype.type(_TURN) * cache.f[:, None, :], out=cache.angle)
        cache.angle += cache.p[:, None, :]
        np.cos(cache.angle, out=cache.cosine)
        np.matmul(cache.cosine, cache.A, out=cache.mixed)
        cache.mixed += cache.c[:, None, :]
        target[:, :d] = rows
        target[:, d:].reshape(len(rows), d, self.units)[:] = cache.mixed.transpose(1, 0, 2)

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Write the gradients of A, f, p, c and x."""
        rows = grad.reshape(-1, grad.shape[-1])
        d = cache.x.shape[1]
        np.copyto(cache.grad, rows[:, d:].reshape(len(rows), d, self.units).transpose(1, 0, 2))
        np.matmul(cache.cosine.transpose(0, 2, 1), cache.grad, out=cache.gA)
        np.sum(cache.grad, axis=1, out=cache.gc)
        np.matmul(cache.grad, cache.A.transpose(0, 2, 1), out=cache.slope)
        np.sin(cache.angle, out=cache.cosine)
        cache.slope *= cache.cosine
        np.negative(cache.slope, out=cache.slope)
        np.sum(cache.slope, axis=1, out=cache.gp)
        turn = grad.dtype.type(_TURN)
        np.matmul(cache.x.T[:, None, :], cache.slope, out=cache.gf[:, None, :])
        cache.gf *= turn
        if out is not None:
            inner = np.matmul(cache.slope, cache.f[:, :, None])[:, :, 0].T
            out.reshape(-1, d)[:] = rows[:, :d] + turn * inner
