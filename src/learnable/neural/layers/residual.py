"""Layers made of layers: one after the other, and around a shortcut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.errors import ParameterError
from .. import _kernels as kernels
from .base import Array, Bench, Buffer, Cache, Layer, Weights


@dataclass(frozen=True)
class Chain(Layer):
    """Layers one after the other, as one layer.

    Parameters
    ----------
    layers : tuple of Layer
        In the order of the forward pass.
    """

    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))

    def width(self, n_inputs: int) -> int:
        """Return the width of the last layer."""
        for layer in self.layers:
            n_inputs = layer.width(n_inputs)
        return n_inputs

    def weights(self, n_inputs: int) -> tuple[Weights, ...]:
        """Return all parameters, each with its layer's number in front."""
        found: list[Weights] = []
        for k, layer in enumerate(self.layers):
            found += [item._replace(name=f"{k}.{item.name}") for item in layer.weights(n_inputs)]
            n_inputs = layer.width(n_inputs)
        return tuple(found)

    def buffers(self, n_inputs: int) -> tuple[Buffer, ...]:
        """Return all buffers, likewise."""
        found: list[Buffer] = []
        for k, layer in enumerate(self.layers):
            found += [item._replace(name=f"{k}.{item.name}") for item in layer.buffers(n_inputs)]
            n_inputs = layer.width(n_inputs)
        return tuple(found)

    def out_lead(self, lead: tuple[int, ...]) -> tuple[int, ...]:
        """Return the leading shape after the last layer."""
        for layer in self.layers:
            lead = layer.out_lead(lead)
        return lead

    def open(self, bench: Bench) -> Cache:
        """Open every layer; arrays between two layers live here."""
        cache = Cache(caches=[], outs=[], grads=[])
        n_inputs = bench.n_inputs
        lead = bench.lead
        for k, layer in enumerate(self.layers):
            inner = bench.child(f"{k}.", n_inputs)
            inner.lead = lead
            cache.caches.append(layer.open(inner))
            cache.grads.append(inner.empty())
            n_inputs = layer.width(n_inputs)
            lead = layer.out_lead(lead)
            cache.outs.append(np.empty((*lead, n_inputs), dtype=bench.dtype))
        cache.steps = list(zip(self.layers, cache.outs, cache.caches, strict=True))
        back = list(zip(self.layers, cache.grads, cache.caches, strict=True))
        cache.last_first = back[:0:-1]
        cache.first = back[0] if back else None
        return cache

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Run all layers; the last one writes to `out`."""
        last = len(self.layers) - 1
        for k, (layer, inner, own) in enumerate(cache.steps):
            target = out if k == last else inner
            layer.forward(x, target, own)
            x = target
        if last < 0:
            np.copyto(out, x)

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Run all layers backwards; the first one writes to `out`."""
        for layer, target, own in cache.last_first:
            layer.backward(grad, own, target)
            grad = target
        if cache.first is not None:
            cache.first[0].backward(grad, cache.first[2], out)
        elif out is not None:
            np.copyto(out, grad)


@dataclass(frozen=True)
class Residual(Layer):
    """out = x + F(x): with F = 0 the identity, and gradients reach x whatever F is.

    Parameters
    ----------
    layers : tuple of Layer
        F, whose output has the width of x.
    """

    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))

    def width(self, n_inputs: int) -> int:
        """Return the width of x."""
        inner = Chain(self.layers).width(n_inputs)
        if inner != n_inputs:
            raise ParameterError(
                f"Residual: the layers map {n_inputs} columns to {inner}; x + F(x) needs the same number of both. "
                "End the block with Dense(units) of the block's own width."
            )
        return n_inputs

    def weights(self, n_inputs: int) -> tuple[Weights, ...]:
        """Return the parameters of F."""
        return Chain(self.layers).weights(n_inputs)

    def buffers(self, n_inputs: int) -> tuple[Buffer, ...]:
        """Return the buffers of F."""
        return Chain(self.layers).buffers(n_inputs)

    def open(self, bench: Bench) -> Cache:
        """Open F."""
        chain = Chain(self.layers)
        return Cache(chain=chain, inner=chain.open(bench), end=bench.empty())

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Write x + F(x)."""
        cache.chain.forward(x, cache.end, cache.inner)  # not to `out`: the last layer may keep what it has written
        kernels.add(x.reshape(-1), cache.end.reshape(-1), out.reshape(-1))

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Write g + F′(x)ᵀg."""
        cache.chain.backward(grad, cache.inner, out)
        if out is not None:
            kernels.add(grad.reshape(-1), out.reshape(-1), out.reshape(-1))
