r"""The optimisers of `solvers` over the flat vector of a network: the same objects, their updates fused into kernels.

    g ← ∇L + λθ on the weights (coupled decay),  g ← clip(g),  (θ, v, r) ← step(g),  θ ← (1 − ηλ′)θ (decoupled decay)

`Nesterov` takes its gradient at w + αv. Here θ is that point itself, so that no second vector is needed; the steps are
the same, and the point that is returned is the one that the gradient was last asked for plus its step.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ParameterError
from ..core.threads import TaskTeam
from ..solvers.lab.first_order import (
    Adagrad,
    Adam,
    GradientDescent,
    Momentum,
    Nesterov,
    Rescale,
    RMSprop,
    State,
    Truncate,
)
from . import _optimiser_kernels as kernels

Array = NDArray[Any]

METHODS = (GradientDescent, Momentum, Nesterov, Adagrad, RMSprop, Adam)

#: Numbers from which two threads share a pass over a vector: half of it then takes longer than handing it over.
SHARED_NUMBERS = 2**17


def halves_of(n: int) -> tuple[slice, slice]:
    """Return the two halves of a vector."""
    return slice(0, n // 2), slice(n // 2, n)


class Optimiser:
    """One run of an update rule on a vector that is changed in place.

    Parameters
    ----------
    update : GradientDescent, Momentum, Nesterov, Adagrad, RMSprop or Adam, or another update of `solvers`
        The rule.
    theta : (p,) array
        Changed in place.
    n_decayed : int
        How many parameters, the first ones, decay.
    clip : Rescale, Truncate or None
        What is done to every gradient.
    decay : float
        λ, coupled: part of the gradient.
    decoupled : float
        λ′: θ shrinks by ηλ′ after the step, as in AdamW.

    Attributes
    ----------
    t : int
        Steps made.
    v, r : (p,) arrays
        The rule's memory; with `t` they are all that a resumed run needs.
    """

    def __init__(
        self,
        update: Any,
        theta: Array,
        n_decayed: int,
        *,
        clip: Any = None,
        decay: float = 0.0,
        decoupled: float = 0.0,
    ) -> None:
        if not hasattr(update, "move"):
            raise ParameterError(f"Optimiser: {update!r} is no update of learnable.solvers, such as Adam().")
        self.update = update
        self.theta = theta
        self.m = n_decayed
        self.clip = clip
        self.decay = decay
        self.decoupled = decoupled
        self.t = 0
        self.v = np.zeros_like(theta)
        self.r = np.zeros_like(theta)

    def step(self, g: Array, rate: float, decay: float | None = None, team: TaskTeam | None = None) -> None:
        """Make one step with the gradient g, which is overwritten.

        Parameters
        ----------
        g : (p,) array
            The gradient.
        rate : float
            η.
        decay : float, optional
            This step's λ.
        team : TaskTeam, optional
            Threads that share long vectors, in halves: every number is treated by itself.
        """
        coupled = self.decay if decay is None else decay
        by_itself = self.clip is None and type(self.update) in METHODS
        if team is not None and by_itself and len(g) >= SHARED_NUMBERS:
            halves = halves_of(len(g))

            def step_half(number: int) -> None:
                half = halves[number]
                m = min(max(self.m - half.start, 0), half.stop - half.start)
                self._step_part(self.theta[half], g[half], self.v[half], self.r[half], m, rate, coupled)

            team.run(step_half, 2)
        else:
            self._step_part(self.theta, g, self.v, self.r, self.m, rate, coupled)
        self.t += 1

    def _step_part(self, theta: Array, g: Array, v: Array, r: Array, m: int, rate: float, decay: float) -> None:
        """Make the step of the whole vector, or of a part of it whose first m parameters decay."""
        if decay > 0.0 or self.clip is not None:
            self._prepare(theta, g, m, decay)
        self._move(theta, g, v, r, rate)
        if self.decoupled > 0.0:
            kernels.shrink(theta, m, min(rate * self.decoupled, 1.0))

    def _prepare(self, theta: Array, g: Array, m: int, decay: float) -> None:
        if self.clip is None:
            kernels.couple(theta, g, m, 1.0, decay, math.inf)
        elif isinstance(self.clip, Truncate):
            kernels.couple(theta, g, m, 1.0, decay, self.clip.threshold)
        elif isinstance(self.clip, Rescale):
            kernels.couple(theta, g, m, 1.0, decay, math.inf)
            norm = kernels.norm_of(g)
            if norm > self.clip.threshold:
                np.copyto(g, self.clip(g.astype(np.float64)), casting="same_kind")
        else:
            kernels.couple(theta, g, m, 1.0, decay, math.inf)
            np.copyto(g, self.clip(g.astype(np.float64)), casting="same_kind")

    def _move(self, theta: Array, g: Array, v: Array, r: Array, rate: float) -> None:
        update = self.update
        kind = type(update)
        if kind is Adam:
            t = self.t + 1
            lift1 = 1.0 / (1.0 - update.rho1**t)
            lift2 = math.sqrt(1.0 / (1.0 - update.rho2**t))
            kernels.adam(theta, g, v, r, rate, update.rho1, update.rho2, update.delta, lift1, lift2)
        elif kind is GradientDescent:
            kernels.descent(theta, g, rate)
        elif kind is Momentum:
            kernels.momentum(theta, g, v, rate, update.momentum)
        elif kind is Nesterov:
            fixed = update.momentum
            alpha = self.t / (self.t + 3.0) if fixed is None else fixed
            ahead = (self.t + 1.0) / (self.t + 4.0) if fixed is None else fixed
            kernels.nesterov(theta, g, v, rate, alpha, ahead)
        elif kind is Adagrad:
            kernels.adagrad(theta, g, r, rate, update.delta)
        elif kind is RMSprop:
            kernels.rmsprop(theta, g, r, rate, update.rho, update.delta)
        else:
            state = State(self.t, v.astype(np.float64), r.astype(np.float64))
            point, state = update.move(theta.astype(np.float64), state, g.astype(np.float64), rate)
            np.copyto(theta, point, casting="same_kind")
            np.copyto(v, state.v, casting="same_kind")
            np.copyto(r, state.r, casting="same_kind")
