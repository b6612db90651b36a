"""Ranges of constructor arguments, declared on the class and checked by `fit`.

    class Ridge(Estimator):
        _parameters = {"alpha": Number(low=0.0) | ArrayLike(), "fit_intercept": Boolean()}

A rule knows how to test a value and how to say itself in words, so that the error can name owner, parameter, rule,
value and remedy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from .errors import ParameterError


class Rule:
    """What a parameter may be: `allows(value)` and a phrase that completes "must be …"."""

    phrase: str = ""

    def allows(self, value: Any) -> bool:
        """Tell whether `value` is allowed."""
        raise TypeError("a Rule must define allows")

    def __or__(self, other: Rule) -> Rule:
        return Either(self, other)


@dataclass(frozen=True)
class Either(Rule):
    """One rule or another."""

    first: Rule
    second: Rule

    @property
    def phrase(self) -> str:  # type: ignore[override]
        """Both phrases, joined."""
        return f"{self.first.phrase}, or {self.second.phrase}"

    def allows(self, value: Any) -> bool:
        """Tell whether one of the two allows it."""
        return self.first.allows(value) or self.second.allows(value)


@dataclass(frozen=True)
class Number(Rule):
    """A real number (or an integer only) between two ends; NaN never passes.

    Examples
    --------
    >>> Number(low=0.0).allows(0), Number(low=0.0, low_open=True).allows(0), Number(integer=True).allows(1.5)
    (True, False, False)
    """

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False
    integer: bool = False
    finite: bool = True

    @property
    def phrase(self) -> str:  # type: ignore[override]
        """The range in words."""
        what = "an integer" if self.integer else "a number"
        ends = []
        if self.low > -math.inf:
            ends.append(f"{'>' if self.low_open else '>='} {self.low:g}")
        if self.high < math.inf:
            ends.append(f"{'<' if self.high_open else '<='} {self.high:g}")
        return " ".join([what, " and ".join(ends)]).strip()

    def allows(self, value: Any) -> bool:
        """Tell whether `value` is such a number."""
        plain = type(value) is int or (type(value) is float and not self.integer)  # the abstract types are slow to ask
        if not plain and (
            isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral if self.integer else Real)
        ):
            return False
        try:
            x = float(value)
        except OverflowError:  # an integer beyond every float
            return False
        if math.isnan(x) or (self.finite and math.isinf(x)):
            return False
        above = x > self.low if self.low_open else x >= self.low
        below = x < self.high if self.high_open else x <= self.high
        return above and below


@dataclass(frozen=True)
class Boolean(Rule):
    """True or False."""

    phrase: str = "True or False"

    def allows(self, value: Any) -> bool:
        """Tell whether `value` is a truth value."""
        return isinstance(value, (bool, np.bool_))


class Options(Rule):
    """One of a few words."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.phrase = "one of " + ", ".join(repr(word) for word in words)

    def allows(self, value: Any) -> bool:
        """Tell whether `value` is one of the words."""
        return isinstance(value, str) and value in self.words


@dataclass(frozen=True)
class Nothing(Rule):
    """None."""

    phrase: str = "None"

    def allows(self, value: Any) -> bool:
        """Tell whether `value` is None."""
        return value is None


@dataclass(frozen=True)
class ArrayLike(Rule):
    """A sequence of numbers, each of which obeys `each`."""

    each: Rule = Number()

    @property
    def phrase(self) -> str:  # type: ignore[override]
        """The rule in words."""
        return f"an array of numbers, each {self.each.phrase}"

    def allows(self, value: Any) -> bool:
        """Tell whether `value` is a non-empty array whose members all obey the rule."""
        if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
            return False
        try:
            array = np.asarray(value)
        except (TypeError, ValueError):
            return False
        return array.dtype.kind in "iuf" and array.size > 0 and all(self.each.allows(float(x)) for x in array.flat)


@dataclass(frozen=True)
class Matches(Rule):
    """Whatever a predicate accepts; for callables, splitters and other objects."""

    predicate: Callable[[Any], bool]
    phrase: str

    def allows(self, value: Any) -> bool:
        """Tell whether the predicate accepts `value`."""
        return bool(self.predicate(value))


def optional(rule: Rule) -> Rule:
    """Return `rule` or None."""
    return Either(rule, Nothing())


#: Shared by every iterative model and every model with randomness or threads.
MAX_ITER = Number(low=1, integer=True)
MAX_SECONDS = optional(Number(low=0.0, low_open=True))
TOLERANCE = Number(low=0.0)
N_JOBS = optional(Number(low=1, integer=True) | Number(high=-1, integer=True))
RANDOM_STATE = optional(
    Number(low=0, integer=True)
    | Matches(lambda v: isinstance(v, (np.random.RandomState, np.random.Generator)), "a NumPy Generator or RandomState")
)


def check_parameters(owner: str, values: Mapping[str, Any], rules: Mapping[str, Rule]) -> None:
    """Check `values` against `rules`.

    Raises
    ------
    ParameterError
        Naming the owner, the parameter, the rule and the value received.
    """
    for name, rule in rules.items():
        if not rule.allows(values[name]):
            received = repr(values[name])
            shown = received if len(received) <= 80 else received[:77] + "..."
            finite = " and finite" if isinstance(values[name], float) and math.isinf(values[name]) else ""
            raise ParameterError(f"{owner}: {name} must be {rule.phrase}{finite}; got {shown}.")
