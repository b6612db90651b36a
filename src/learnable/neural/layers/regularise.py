r"""Layers that behave otherwise in training: dropout, batch normalisation; and layer normalisation, which does not.

- `Dropout(p)`: in training every number is 0 with probability p and multiplied by 1/(1 − p) otherwise, so that its
  expectation is what inference passes on.
- `BatchNorm`: x̂ = (x − μ)/√(σ² + ε), out = γx̂ + β, with mean and variance of the batch in training, and with their
  running means in inference. γ = √(σ² + ε), β = μ is the identity.
- `LayerNorm`: the same with mean and variance of each row; no state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.errors import ParameterError
from .. import _kernels as kernels
from .base import Array, Bench, Buffer, Cache, Layer, Weights, as_rows


@dataclass(frozen=True)
class Dropout(Layer):
    """Drop numbers at random in training; do nothing in inference.

    Parameters
    ----------
    rate : float, default=0.5
        p in [0, 1).
    """

    rate: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 <= self.rate < 1.0:
            raise ParameterError(f"Dropout: rate must be a number >= 0 and < 1; got {self.rate!r}.")

    def open(self, bench: Bench) -> Cache:
        """Return room for the mask; none in inference."""
        active = bench.training and self.rate > 0.0
        kept = bench.empty().reshape(-1) if active else None
        return Cache(kept=kept, keys=bench.keys, cut=np.uint32(min(self.rate * 2.0**32, 2.0**32 - 1)))

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Write x times the mask."""
        if cache.kept is None:
            np.copyto(out, x)
        else:
            scale = 1.0 / (1.0 - self.rate)
            kernels.drop(x.reshape(-1), cache.keys.advance(), cache.cut, scale, cache.kept, out.reshape(-1))

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Write g times the mask."""
        if out is None:
            return
        if cache.kept is None:
            np.copyto(out, grad)
        else:
            kernels.multiply(grad.reshape(-1), cache.kept, out.reshape(-1))


@dataclass(frozen=True)
class BatchNorm(Layer):
    """γ(x − μ)/√(σ² + ε) + β over the rows of a batch.

    Parameters
    ----------
    momentum : float, default=0.1
        Share of the newest batch in the running mean and (unbiased) variance that inference uses.
    epsilon : float, default=1e-5
        ε > 0.
    """

    momentum: float = 0.1
    epsilon: float = 1e-5

    def weights(self, n_inputs: int) -> tuple[Weights, ...]:
        """Return γ and β."""
        return Weights("gain", (n_inputs,), "gain"), Weights("shift", (n_inputs,), "bias")

    def buffers(self, n_inputs: int) -> tuple[Buffer, ...]:
        """Return the running mean and variance."""
        return Buffer("mean", (n_inputs,), 0.0), Buffer("var", (n_inputs,), 1.0)

    def open(self, bench: Bench) -> Cache:
        """Return views and room for x̂."""
        k = bench.n_inputs
        moments = (np.empty(k, dtype=bench.dtype) for _ in range(3))
        cache = Cache(training=bench.training, scaled=as_rows(bench.empty()), buffers=bench.buffers)
        cache.mean, cache.var, cache.inverse = moments
        cache.gain = bench.theta["gain"]
        cache.shift = bench.theta["shift"]
        cache.g_gain = bench.gradient.get("gain")
        cache.g_shift = bench.gradient.get("shift")
        return cache

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Normalise, and in training move the running moments."""
        rows = as_rows(x)
        target = as_rows(out)
        mean = cache.buffers["mean"]
        var = cache.buffers["var"]
        if cache.training:
            kernels.batch_moments(rows, cache.mean, cache.var)
            n = len(rows)
            share = self.momentum
            mean += share * (cache.mean - mean)
            var += share * (cache.var * (n / max(n - 1, 1)) - var)
            mean = cache.mean
            var = cache.var
        np.divide(1.0, np.sqrt(var + self.epsilon), out=cache.inverse, casting="same_kind")
        kernels.normalise_columns(
            rows, mean.astype(rows.dtype, copy=False), cache.inverse, cache.gain, cache.shift, cache.scaled, target
        )

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Write the exact gradients; in inference the moments are constants."""
        rows = as_rows(grad)
        target = np.empty_like(rows) if out is None else as_rows(out)
        kernels.batch_norm_back(rows, cache.scaled, cache.inverse, cache.gain, cache.g_shift, cache.g_gain, target)
        if not cache.training:
            np.multiply(rows, cache.gain * cache.inverse, out=target)


@dataclass(frozen=True)
class LayerNorm(Layer):
    """γ(x − μ)/√(σ² + ε) + β over the columns of a row.

    Parameters
    ----------
    epsilon : float, default=1e-5
        ε > 0.
    """

    epsilon: float = 1e-5

    def weights(self, n_inputs: int) -> tuple[Weights, ...]:
        """Return γ and β."""
        return Weights("gain", (n_inputs,), "gain"), Weights("shift", (n_inputs,), "bias")

    def open(self, bench: Bench) -> Cache:
        """Return views and room for x̂."""
        scaled = as_rows(bench.empty())
        cache = Cache(scaled=scaled, inverse=np.empty(len(scaled), dtype=bench.dtype))
        cache.gain = bench.theta["gain"]
        cache.shift = bench.theta["shift"]
        cache.g_gain = bench.gradient.get("gain")
        cache.g_shift = bench.gradient.get("shift")
        return cache

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Normalise every row."""
        kernels.layer_norm(as_rows(x), cache.gain, cache.shift, self.epsilon, cache.inverse, cache.scaled, as_rows(out))

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Write the exact gradients."""
        rows = as_rows(grad)
        target = np.empty_like(rows) if out is None else as_rows(out)
        kernels.layer_norm_back(rows, cache.scaled, cache.inverse, cache.gain, cache.g_shift, cache.g_gain, target)
