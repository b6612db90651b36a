"""A bound before it is judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...theory.concentration import Check


class Draft(NamedTuple):
    """A bound on a loss in [0, 1], at its share of δ."""

    name: str
    value: float
    empirical: float
    delta: float
    statement: str
    source: str
    inputs: dict[str, Any]
    assumptions: tuple[Check, ...]
    at: Callable[[int], float] | None = None
