"""One bound, and all bounds of one model, as plain records."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from ...core.errors import ParameterError
from ...theory.concentration import Check

Kind = Literal["held-out", "training"]
Verdict = Literal["vacuous", "useless", "informative"]
#: Beyond this many rows none are counted.
_MOST_ROWS = 10**12


@dataclass(frozen=True)
class Bound:
    """An upper bound on the risk of a fitted model.

    Attributes
    ----------
    name : str
        Of the theorem.
    kind : {"held-out", "training"}
        Which rows it is computed from.
    value : float
        The risk is at most this, with probability at least 1 − `delta` over the rows.
    empirical : float
        What the bound starts from: the share of errors, the mean loss, the mean loss at a margin …
    delta : float
        This bound's share of the probability of failure.
    n : int
        Rows it is computed from.
    verdict : {"vacuous", "useless", "informative"}
        No better than knowing nothing; no better than the best constant prediction; better than that.
    statement, source : str
        The theorem, and where it stands.
    inputs : dict
        What went into the formula.
    assumptions : tuple of Check
        What it assumes; `holds` is False where the data break it, None where they cannot tell.
    """

    name: str
    kind: Kind
    value: float
    empirical: float
    delta: float
    n: int
    verdict: Verdict
    statement: str
    source: str
    inputs: dict[str, Any]
    assumptions: tuple[Check, ...]
    at: Callable[[int], float] | None = field(default=None, repr=False, compare=False)

    @property
    def broken(self) -> tuple[Check, ...]:
        """The assumptions that the data break."""
        return tuple(check for check in self.assumptions if check.holds is False)

    def rows_for(self, value: float) -> int | None:
        """Return how many rows would bring the bound down to `value` if all rates stayed; None if none would."""
        if self.at is None:
            return None
        low = 0
        high = self.n
        while self.at(high) > value:
            low = high
            high = 2 * high
            if high > _MOST_ROWS:
                return None
        while high - low > max(1, high // 10_000):
            middle = (low + high) // 2
            low, high = (middle, high) if self.at(middle) > value else (low, middle)
        return high

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "name": self.name,
            "kind": self.kind,
            "value": self.value if math.isfinite(self.value) else None,
            "empirical": self.empirical,
            "delta": self.delta,
            "n": self.n,
            "verdict": self.verdict,
            "statement": self.statement,
            "source": self.source,
            "inputs": self.inputs,
            "assumptions": [check._asdict() for check in self.assumptions],
        }


@dataclass(frozen=True)
class RiskBounds:
    """Every bound that applies to one fitted model, the tightest first.

    Attributes
    ----------
    model : str
        Its class.
    loss : str
        What is bounded: "error rate", or "mean squared error of clipped predictions".
    largest : float
        The largest value of the loss.
    delta : float
        Held-out bounds fail, any of them, with at most this probability; training-set bounds likewise.
    bounds : tuple of Bound
        Sorted by value; those whose assumptions the data break stand last.
    baseline : float
        Lower bound on the risk of the best constant prediction, at the same δ: what separates useless from informative.
    reasons : tuple of str
        Which bounds do not apply, and why.
    """

    model: str
    loss: str
    largest: float
    delta: float
    bounds: tuple[Bound, ...]
    baseline: float
    reasons: tuple[str, ...]

    @property
    def best(self) -> Bound | None:
        """The tightest bound whose assumptions the data do not break; None if there is none."""
        return next((bound for bound in self.bounds if not bound.broken), None)

    def of(self, kind: Kind) -> Bound | None:
        """Return the tightest held-out or training-set bound; None if there is none."""
        if kind not in ("held-out", "training"):
            raise ParameterError(f"RiskBounds.of: kind must be 'held-out' or 'training'; got {kind!r}.")
        return next((bound for bound in self.bounds if bound.kind == kind and not bound.broken), None)

    @property
    def sentence(self) -> str:
        """The tightest bound in words; or why there is none."""
        best = self.of("held-out") or self.best
        if best is None:
            return "nothing is proven about its risk: " + (self.reasons[0] if self.reasons else "no bound applies")
        return self.sentence_of(best)

    def sentence_of(self, bound: Bound) -> str:
        """Return one bound in words."""
        level = f"{100.0 * (1.0 - self.delta):.4g} %"
        rows = f"{bound.name}, {bound.n} {'held-out' if bound.kind == 'held-out' else 'training'} rows"
        if self.loss == "error rate":
            shown = f"the error is below {100.0 * min(bound.value, 1.0):.1f} %"
        else:
            shown = f"the {self.loss} is below {min(bound.value, self.largest):.4g}"
        return f"with {level} confidence {shown} ({rows}): {bound.verdict}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "model": self.model,
            "loss": self.loss,
            "largest": self.largest,
            "delta": self.delta,
            "baseline": self.baseline,
            "sentence": self.sentence,
            "bounds": [bound.to_dict() for bound in self.bounds],
            "reasons": list(self.reasons),
        }

    def __str__(self) -> str:
        lines = [self.sentence]
        for bound in self.bounds:
            broken = "; broken: " + ", ".join(check.assumption for check in bound.broken) if bound.broken else ""
            lines.append(f"  {bound.kind:9s} {bound.name:36s} {bound.value:10.4g}  {bound.verdict}{broken}")
        lines += [f"  none      {reason}" for reason in self.reasons]
        return "\n".join(lines)


def verdict_of(value: float, largest: float, baseline: float) -> Verdict:
    """Return the word for a bound: vacuous at the largest loss, to three digits, useless at the best constant's."""
    if not value < 0.9995 * largest:
        return "vacuous"
    return "useless" if value >= baseline else "informative"
