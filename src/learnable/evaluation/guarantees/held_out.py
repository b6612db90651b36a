"""Bounds from rows that the model has not seen."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...theory.concentration import Betting, ClopperPearson, EmpiricalBernstein, Hoeffding, KLBound, kl_upper
from ...theory.concentration.base import Check, check_order
from ...theory.concentration.betting import betting_interval
from .draft import Draft
from .evidence import Evidence

_ONE_USE = "the model was fixed before these rows were looked at"


def held_out_drafts(evidence: Evidence, delta: float, uses: int, known: tuple[Check, ...]) -> list[Draft]:
    """Return every held-out bound, each at its share of δ/uses.

    For errors, Clopper and Pearson's bound is never above the others at the same δ, so that all may have the whole
    of it. For losses in [0, 1], δ is split evenly over kl, empirical Bernstein and betting.
    """
    checks = (*known, _use_check(uses))
    losses = evidence.losses
    n = evidence.n
    mean = float(losses.mean())
    level = delta / uses
    if evidence.classes is not None:
        errors = evidence.errors
        exact = ClopperPearson(n, errors=float(errors))

        def exact_at(m: int) -> float:
            return mean + ClopperPearson(m, errors=mean * m).radius(level)

        def kl_at(m: int) -> float:
            return kl_upper(mean, -math.log(level) / m)

        def one_at(m: int) -> float:
            return mean + Hoeffding(m).radius(level)

        inputs = {"errors": errors, "n": n, "uses": uses}
        return [
            Draft(
                exact.name,
                mean + exact.radius(level),
                mean,
                level,
                exact.statement,
                exact.source,
                inputs,
                checks,
                exact_at,
            ),
            Draft("kl", kl_at(n), mean, level, KLBound.statement, KLBound.source, inputs, checks, kl_at),
            Draft(
                "one function (Hoeffding)",
                one_at(n),
                mean,
                level,
                Hoeffding.statement,
                Hoeffding.source,
                inputs,
                checks,
                one_at,
            ),
        ]
    level /= 3.0
    given = {"mean loss": mean * evidence.scale, "n": n, "uses": uses}
    bernstein = EmpiricalBernstein.of(losses)
    upper = betting_interval(losses, level, sides=1).high

    def bernstein_at(m: int) -> float:
        return mean + EmpiricalBernstein(max(m, 2), variance=bernstein.variance).radius(level)

    def loss_kl_at(m: int) -> float:
        return kl_upper(mean, -math.log(level) / m)

    def betting_at(m: int) -> float:
        return min(1.0, mean + (upper - mean) * math.sqrt(n / m))

    return [
        Draft(
            bernstein.name,
            bernstein_at(n),
            mean,
            level,
            bernstein.statement,
            bernstein.source,
            given,
            checks,
            bernstein_at,
        ),
        Draft("kl", loss_kl_at(n), mean, level, KLBound.statement, KLBound.source, given, checks, loss_kl_at),
        Draft("betting", upper, mean, level, Betting.statement, Betting.source, given, checks, betting_at),
    ]


def rows_in_order(evidence: Evidence) -> Check:
    """Look for drift and dependence in the order of the rows, in the losses."""
    check = check_order(evidence.losses)
    if check.holds is False:
        return check
    if evidence.n >= 40 and evidence.classes is not None:
        half = evidence.n // 2
        gap = float(evidence.losses[:half].mean() - evidence.losses[half:].mean())
        spread = max(float(evidence.losses.std()), 1e-12) * math.sqrt(1.0 / half + 1.0 / (evidence.n - half))
        if abs(gap) / spread > 4.0:
            return Check(check.assumption, False, f"errors differ between the halves: z = {gap / spread:.1f}")
    return check


def _use_check(uses: int) -> Check:
    detail = (
        "one model was judged by them" if uses == 1 else f"{uses} models were judged by them: δ is divided by {uses}"
    )
    return Check(_ONE_USE, None, detail)


def widen_by_shared(evidence: Evidence, shared: NDArray[np.bool_]) -> Evidence:
    """Return the evidence with every row that stands in the training table, too, counted as a full loss."""
    return replace(evidence, memory={}, losses=np.where(shared, 1.0, evidence.losses))
