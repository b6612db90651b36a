r"""How far a round may go: bounded Newton steps, and no rise of the training loss.

Newton's step v = −G/(H + λ) trusts a parabola. Where a class is rare, H is tiny and |v| is hundreds: the parabola is
far from the loss by then, and later rounds overcorrect. On a logarithmic scale (log-odds, logarithms of means)
|V‴| ≤ V″, hence H(v) ≤ H e^{|v|}, and the loss of a leaf is at most

    Gv + (H + λ)(e^{|v|} − 1 − |v|),    which is least at    |v| = log(1 + |G|/(H + λ)):

for Poisson and gamma deviances the exact minimiser on the steep side. A step is therefore cut at

    max(Δ, log(1 + |v|)),

so that it stays Newton's where it is short. Afterwards the training loss is compared with that before the round. If it
has risen, the step of the round is halved until it has not; after `_HALVINGS` of them the round is refused. Where rows
are drawn, the loss of the drawn rows, with the weights they were drawn with, may fall instead.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .evaluator import mean_loss
from .loss_base import BoostingLoss

Array = NDArray[np.float64]

#: Δ of second-order rounds, in units of the score before the learning rate. Two is Newton's step of a pure leaf at even
#: odds. Of 1.5, 2, 4, 8 and none on tables with 0.5 to 2 % of a rare class, two had the smallest median log loss.
TRUST = 2.0
#: Δ of Friedman's rounds ("gradient"): wide, so that ordinary fits are scikit-learn's; at a learning rate of 0.1 the
#: bound above still proves a fall.
FRIEDMAN_TRUST = 32.0
_HALVINGS = 40
_SLACK = 1e-10  # what rounding may add to a mean loss, relative to the largest of the trace


def radius(logarithmic: bool, direction: str) -> float:
    """Return Δ."""
    if not logarithmic:
        return np.inf
    return TRUST if direction == "newton" else FRIEDMAN_TRUST


def bounded(values: Array, loss: BoostingLoss, direction: str) -> Array:
    """Return Newton's steps, cut where they leave the region in which they are trusted."""
    limit = radius(loss.logarithmic, direction)
    if not np.isfinite(limit):
        return values
    size = np.maximum(limit, np.log1p(np.abs(values)))
    return np.clip(values, -size, size)


def planned_step(plan: Any, m: int) -> float:
    """Return ρ of round m before any damping: η, or η/√(m + 1)."""
    return float(plan.learning_rate / (np.sqrt(m + 1.0) if plan.step == "sqrt-decay" else 1.0))


def rises(before: float, after: float, scale: float) -> bool:
    """Tell whether a loss has risen by more than rounding explains; NaN has."""
    return not after <= before + _SLACK * max(abs(before), abs(scale))


class Descent:
    """The training loss before one round, and what becomes of a round that raises it.

    Parameters
    ----------
    loss, y, w : BoostingLoss, (n,), (n,) or None
        The loss, targets and weights.
    weight, rows : (n,) or None
        Weights and numbers of the rows that the round has drawn; None: all.
    start : (K, n)
        Scores before the round.
    trace : list of float
        Mean losses so far.
    """

    def __init__(
        self, loss: BoostingLoss, y: Array, w: Array | None, weight: Array | None, rows: Any, start: Array, trace: Any
    ) -> None:
        self.loss, self.y, self.w, self.weight, self.rows, self.start = loss, y, w, weight, rows, start
        self.scale = trace[0]
        # Huber's δ is new in each round, so that the last entry of the trace is of another loss.
        self.before = mean_loss(loss, y, start, w) if loss.moving else trace[-1]

    def broken(self, F: Array, after: float) -> bool:
        """Tell whether scores F, whose mean loss is `after`, are worse than those before the round."""
        if not rises(self.before, after, self.scale):
            return False
        if self.rows is None:
            return True
        if self.loss.moving:
            self.loss.prepare(self.y, self.start, self.w)
        return rises(self._drawn(self.start), self._drawn(F), self.scale)

    def damped(self, F: Array, move: Callable[[float], None], rho: float) -> float:
        """Return the largest of ρ/2, ρ/4, … that keeps the law, or zero; F has moved by it."""
        self.loss.prepare(self.y, self.start, self.w)  # δ of this round
        for _ in range(_HALVINGS):
            rho /= 2.0
            move(rho)
            if not self.broken(F, mean_loss(self.loss, self.y, F, self.w)):
                return rho
        np.copyto(F, self.start)
        return 0.0

    def _drawn(self, F: Array) -> float:
        weight = None if self.weight is None else self.weight[self.rows]
        return mean_loss(self.loss, self.y[self.rows], F[:, self.rows], weight)


def describe_descent(trace: Array, steps: Array, plan: Any, loss: Any) -> str:
    """Say in words whether a trace of losses falls, how many rounds were damped, and why it rises where it does."""
    n = len(steps)
    damped = 0
    if plan.step != "line-search":
        damped = sum(float(step) != planned_step(plan, m) for m, step in enumerate(steps))
    ups = int(sum(rises(a, b, trace[0]) for a, b in pairwise(trace)))
    words = f"the training loss falls or stays in all {n} rounds"
    if ups:
        reason = "Huber's δ, and with it the loss, is new in each round" if loss == "huber" else ""
        reason = reason or "rows are drawn, and it is the loss of the drawn rows that falls in each round"
        words = f"the training loss of all rows rises in {ups} of {n} rounds: {reason}"
    return words + (f"; {damped} rounds took a smaller step than planned, so as not to raise it" if damped else "")
