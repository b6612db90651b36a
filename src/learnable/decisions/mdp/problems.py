"""Processes that textbooks solve, each as an `MDP`; the rules are in `decisions.tables`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..tables import (
    StepTable,
    blackjack_table,
    car_rental_table,
    cliff_walking_table,
    frozen_lake_table,
    gambler_table,
    grid_table,
    taxi_table,
)
from .model import MDP


def from_steps(table: StepTable, gamma: float) -> MDP:
    """Return the process of a table of steps."""
    return MDP.from_table(*table[:5], gamma, terminal=table.terminal, n_states=len(table.start), start=table.start)


def frozen_lake(layout: str | Sequence[str] = "4x4", slippery: bool = True, gamma: float = 0.99) -> MDP:
    """Return FrozenLake: 4 × 4 or 8 × 8 fields of ice."""
    return from_steps(frozen_lake_table(layout, slippery), gamma)


def cliff_walking(gamma: float = 1.0) -> MDP:
    """Return CliffWalking."""
    return from_steps(cliff_walking_table(), gamma)


def taxi(gamma: float = 1.0) -> MDP:
    """Return Taxi."""
    return from_steps(taxi_table(), gamma)


def gambler(p_heads: float = 0.4, goal: int = 100, gamma: float = 1.0) -> MDP:
    """Return the gambler's problem."""
    return from_steps(gambler_table(p_heads, goal), gamma)


def car_rental(gamma: float = 0.9) -> MDP:
    """Return Jack's car rental."""
    return from_steps(car_rental_table(), gamma)


def blackjack(sab: bool = True, natural: bool = False, gamma: float = 1.0) -> MDP:
    """Return blackjack."""
    return from_steps(blackjack_table(sab, natural), gamma)


def grid_world(lines: Sequence[str], gamma: float = 0.95, **rules: Any) -> MDP:
    """Return a world of fields; `rules` are `step_reward`, `rewards` and `slip`."""
    return from_steps(grid_table(lines, **rules), gamma)
