"""How many rows to label, test and compare, before any are there."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from scipy.special import ndtri

from ...core import Number, ParameterError, check_parameters
from ...theory.concentration import ClopperPearson, Hoeffding

_SHARE = Number(low=0.0, high=1.0, high_open=True)
_OPEN = Number(low=0.0, high=1.0, low_open=True, high_open=True)


@dataclass(frozen=True)
class Plan:
    """Rows for a test of one model, and for a comparison.

    Attributes
    ----------
    error, margin, delta : float
        What was asked: at an error rate of `error`, the upper bound should be at most `error` + `margin`.
    models : int
        Models judged by the same rows.
    exact : int
        Rows for one model, by Clopper and Pearson's bound.
    leaderboard : int
        Rows for all models at once: δ is divided by their number.
    any_error : int
        Rows for a two-sided interval of ± `margin` whatever the error rate (Hoeffding).
    no_errors : int
        Rows without one error after which the rate is below `error` + `margin`.
    compare : int
        Rows to tell two models apart whose error rates differ by `margin`, one of them `error`, with probability 80
        %, if their errors are independent: fewer if they err on the same rows.
    """

    error: float
    margin: float
    delta: float
    models: int
    exact: int
    leaderboard: int
    any_error: int
    no_errors: int
    compare: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return asdict(self)


def plan_rows(error: float, margin: float, delta: float = 0.05, models: int = 1) -> Plan:
    """Return how many rows a test needs.

    Parameters
    ----------
    error : float
        The error rate that is expected.
    margin : float
        How far above it the bound may be.
    delta : float
        Probability that the bound fails.
    models : int
        How many models are judged by the same rows.

    Examples
    --------
    >>> from learnable.evaluation import plan_rows
    >>> plan = plan_rows(0.05, 0.01)
    >>> plan.exact, plan.any_error
    (1574, 18445)
    """
    given = {"error": error, "margin": margin, "delta": delta, "models": models}
    rules = {"error": _SHARE, "margin": _OPEN, "delta": _OPEN, "models": Number(low=1, integer=True)}
    check_parameters("plan_rows", given, rules)
    if error + margin >= 1.0:
        raise ParameterError(f"plan_rows: error + margin must be below 1; got {error + margin:g}.")
    per_row = 10**6  # the rate, as a count among so many rows
    rate = ClopperPearson(per_row, errors=error * per_row)
    pooled = error + margin / 2.0
    spread = 2.0 * pooled * (1.0 - pooled)
    z = float(ndtri(1.0 - delta / 2.0) + ndtri(0.8))
    return Plan(
        error=error,
        margin=margin,
        delta=delta,
        models=models,
        exact=rate.sample_size(margin, delta),
        leaderboard=rate.sample_size(margin, delta / models),
        any_error=Hoeffding(1, sides=2).sample_size(margin, delta),
        no_errors=ClopperPearson(1, errors=0.0).sample_size(error + margin, delta),
        compare=math.ceil(z**2 * spread / margin**2),
    )
