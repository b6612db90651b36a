r"""Recurrent layers: x (T, n, d) → states (T, n, h), by back-propagation through time.

With the state h₀ = 0 (and c₀ = 0) and products by entry:

- `Recurrent`: h_t = σ(x_t Wx + h_{t−1} Wh + b), σ tanh or ReLU.
- `GRU`: (z, r) = σ(…), n = tanh(x_t Wn + b + r (h_{t−1} Un + b′)), h_t = (1 − z) n + z h_{t−1}.

A sequence shorter than T keeps its state after its end, so that the last state is the one at its end. With
`truncation=k` no gradient passes from a step to the one before at every k-th step.

`layers.lstm` has long short-term memory, which makes all its steps in one compiled call.

Backwards, the gradient of h_{t−1} is that of h_t times diag(σ′) Whᵀ: after i − j steps at most (‖Wh‖ max σ′)^(i−j).

Reference: K. Cho et al., Learning phrase representations using RNN encoder–decoder, EMNLP 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ...core.errors import ParameterError
from .. import _kernels as kernels
from .. import _recurrent_kernels as steps
from .base import Array, Bench, Cache, Layer, Weights, as_rows


@dataclass(frozen=True)
class OverTime(Layer):
    """What the recurrent layers share; here one product for all inputs, then one small product for every step."""

    units: int
    truncation: int | None = None
    gates: ClassVar[int] = 1
    in_few_calls: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.truncation is not None and self.truncation < 1:
            raise ParameterError(
                f"{type(self).__name__}: truncation must be an integer >= 1, or None; got {self.truncation!r}."
            )

    def width(self, n_inputs: int) -> int:
        """Return the number of units."""
        return self.units

    def weights(self, n_inputs: int) -> tuple[Weights, ...]:
        """Return Wx (d, gates·h), Wh (h, gates·h) and b (gates·h,)."""
        wide = self.gates * self.units
        return (
            Weights("Wx", (n_inputs, wide), "weight", n_inputs, self.units),
            Weights("Wh", (self.units, wide), "weight", self.units, self.units),
            Weights("b", (wide,), "bias", self.units, self.units),
        )

    def begin(self, bench: Bench) -> Cache:
        """Return views of the parameters and of their gradients."""
        if len(bench.lead) != 2:
            raise ParameterError(f"{type(self).__name__}: needs sequences, x of shape (T, n, d).")
        theta = bench.theta
        cache = Cache(T=bench.lead[0], lengths=bench.lengths, Wx=theta["Wx"], Wh=theta["Wh"], b=theta["b"])
        cache.gWx, cache.gWh, cache.gb = (bench.gradient.get(name) for name in ("Wx", "Wh", "b"))
        return cache

    def open(self, bench: Bench) -> Cache:
        """Return views, and all states of a pass."""
        cache = self.begin(bench)
        T, n = bench.lead
        wide = self.gates * self.units
        u = self.units
        cache.pre = np.empty((T, n, wide), dtype=bench.dtype)
        cache.d_pre = np.empty((T, n, wide), dtype=bench.dtype)
        cache.h = np.zeros((T + 1, n, u), dtype=bench.dtype)
        cache.rec = np.empty((n, wide), dtype=bench.dtype)
        cache.dh, cache.hold = (np.zeros((n, u), dtype=bench.dtype) for _ in range(2))
        cache.Wh_t = cache.Wh.T
        cache.Wx_t = cache.Wx.T
        cache.dots = [(cache.h[t], cache.Wh, cache.rec) for t in range(T)]
        cache.updates = self._updates(cache, bench)
        return cache

    def _updates(self, cache: Cache, bench: Bench) -> list[tuple[Any, ...]]:
        """Return the arguments of the compiled step at every time."""
        raise TypeError(f"{type(self).__name__} does not define _updates")

    _step: ClassVar[Any]

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Write all states h₁ … h_T."""
        cache.x = as_rows(x)
        flat = as_rows(cache.pre)
        np.dot(cache.x, cache.Wx, out=flat)
        kernels.add_bias(cache.b, flat)
        dot = np.dot
        step = type(self)._step
        for product, update in zip(cache.dots, cache.updates, strict=True):
            dot(*product)
            step(*update)
        np.copyto(out, cache.h[1:])

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Go back through time, then form the gradients of the weights by one product each."""
        cache.dh[:] = 0.0
        self._begin_back(cache)
        cuts = self.truncation or cache.T
        ragged = bool((cache.lengths < cache.T).any()) or self._always_holds
        for t in range(cache.T - 1, -1, -1):
            rec = self._back(grad[t], t, cache)
            if t % cuts == 0:
                self._cut(cache)
                if t > 0 and bool((cache.lengths <= t).any()):
                    self._keep_ended(t, cache)
                continue
            np.dot(rec, cache.Wh_t, out=cache.dh)
            if ragged:
                steps.add_hold(cache.hold, cache.dh)
        d_pre = as_rows(cache.d_pre)
        np.dot(cache.x.T, d_pre, out=cache.gWx)
        np.dot(as_rows(cache.h[:-1]).T, self._recurrent_gradient(cache), out=cache.gWh)
        kernels.sum_rows(d_pre, cache.gb)
        if out is not None:
            np.dot(d_pre, cache.Wx_t, out=as_rows(out))

    _always_holds: ClassVar[bool] = False

    def _keep_ended(self, t: int, cache: Cache) -> None:
        """At a cut, keep the gradient of sequences that have ended before: it has not reached their last step yet."""
        ended = cache.lengths <= t
        cache.dh[ended] = cache.hold[ended]

    def _begin_back(self, cache: Cache) -> None:
        """Set further gradients of the state to zero."""

    def _cut(self, cache: Cache) -> None:
        cache.dh[:] = 0.0

    def _back(self, grad: Array, t: int, cache: Cache) -> Array:
        """Write the gradients of step t; return those that go on by Wh."""
        raise TypeError(f"{type(self).__name__} does not define _back")

    def _recurrent_gradient(self, cache: Cache) -> Array:
        return as_rows(cache.d_pre)

    def step_gradients(self, cache: Cache) -> Array:
        """Return the gradients of the gates' inputs (T, n, ·) of the last way back, which gave dL/dx too."""
        found: Array = cache.d_pre
        return found


@dataclass(frozen=True)
class Recurrent(OverTime):
    """Plain recurrent units: h_t = σ(x_t Wx + h_{t−1} Wh + b).

    Parameters
    ----------
    units : int
        h.
    truncation : int or None, default=None
        No gradient passes back at every k-th step.
    activation : {"tanh", "relu"}, default="tanh"
        σ.
    """

    activation: Literal["tanh", "relu"] = "tanh"
    _step: ClassVar[Any] = staticmethod(steps.rnn_step)

    def _updates(self, cache: Cache, bench: Bench) -> list[tuple[Any, ...]]:
        h = cache.h
        relu = self.activation == "relu"
        return [(cache.pre[t], cache.rec, h[t], cache.lengths, t, relu, h[t + 1]) for t in range(cache.T)]

    def _back(self, grad: Array, t: int, cache: Cache) -> Array:
        relu = self.activation == "relu"
        out: Array = cache.d_pre[t]
        steps.rnn_back(grad, cache.h[t + 1], cache.lengths, t, relu, cache.dh, cache.hold, out)
        return out


@dataclass(frozen=True)
class GRU(OverTime):
    """Gated recurrent units: the state is a mean of the old one and a new proposal.

    Parameters
    ----------
    units : int
        h.
    truncation : int or None, default=None
        No gradient passes back at every k-th step.
    """

    gates: ClassVar[int] = 3
    _step: ClassVar[Any] = staticmethod(steps.gru_step)
    _always_holds: ClassVar[bool] = True

    def weights(self, n_inputs: int) -> tuple[Weights, ...]:
        """Return those of every recurrent layer, and b′ (h,), which the reset gate multiplies."""
        return (*super().weights(n_inputs), Weights("bn", (self.units,), "bias", self.units, self.units))

    def _updates(self, cache: Cache, bench: Bench) -> list[tuple[Any, ...]]:
        T, n = bench.lead
        cache.inner = np.empty((T, n, self.units), dtype=bench.dtype)
        cache.d_rec = np.empty((T, n, 3 * self.units), dtype=bench.dtype)
        cache.bn = bench.theta["bn"]
        cache.gbn = bench.gradient.get("bn")
        h = cache.h
        return [(cache.pre[t], cache.rec, cache.bn, h[t], cache.lengths, t, cache.inner[t], h[t + 1]) for t in range(T)]

    def _back(self, grad: Array, t: int, cache: Cache) -> Array:
        rec: Array = cache.d_rec[t]
        gates = cache.pre[t]
        inner = cache.inner[t]
        out = cache.d_pre[t]
        steps.gru_back(grad, gates, inner, cache.h[t], cache.lengths, t, cache.dh, cache.hold, out, rec)
        return rec

    def _recurrent_gradient(self, cache: Cache) -> Array:
        rec = as_rows(cache.d_rec)
        cache.gbn[:] = rec[:, 2 * self.units :].sum(axis=0)
        return rec


@dataclass(frozen=True)
class LastStep(Layer):
    """(T, n, d) → (n, d): the state at the end of each sequence, which every later step repeats."""

    def out_lead(self, lead: tuple[int, ...]) -> tuple[int, ...]:
        """Return (n,)."""
        return lead[1:]

    def forward(self, x: Array, out: Array, cache: Cache) -> None:
        """Copy the last step."""
        np.copyto(out, x[-1])

    def backward(self, grad: Array, cache: Cache, out: Array | None) -> None:
        """Write the gradient to the last step, zero elsewhere."""
        if out is not None:
            if getattr(cache, "cleared", None) is not out:  # only this layer writes there
                out[:-1] = 0.0
                cache.cleared = out
            np.copyto(out[-1], grad)
