"""The leaderboard: one line a model, intervals drawn on one scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..plots.axes import extent
from ..plots.intervals import scale_axis, whisker
from ..plots.markup import Markup, isolated
from .numbers import Numbers, decimals_for, is_number, text_of
from .standing import Standing
from .words import STATUS, certificate_words, interval, name

#: The scale may be this many times as wide as the winner's interval; what lies beyond is an arrow at the edge.
_WIDEST: Final = 25.0


@dataclass(frozen=True)
class Line:
    """One model; every field is markup or plain text."""

    rank: Markup
    name: Markup
    parameters: str
    marks: list[str]
    figure: Markup
    score: Markup
    interval: Markup | None
    train: Markup
    also: list[Markup]
    fit: Markup
    predict: Markup
    certificate: tuple[str, Markup]
    p_value: Markup | None


@dataclass(frozen=True)
class Failure:
    """One model that has no score."""

    name: Markup
    status: str
    reason: str


@dataclass(frozen=True)
class Leaderboard:
    """The whole table."""

    lines: list[Line]
    failures: list[Failure]
    also: list[str]
    axis: Markup
    band: str
    decimals: int


def leaderboard(numbers: Numbers, stand: Standing, title: str) -> Leaderboard:
    """Return the table of models; `title` names the measure."""
    rows = numbers.record.get("leaderboard") or []
    decimals = score_decimals(numbers.record)
    domain = _domain(rows, stand)
    measures = list(dict.fromkeys(key for k in stand.ranked for key in rows[k].get("also") or {}))[:2]
    return Leaderboard(
        lines=[_line(numbers, stand, k, domain, decimals, measures) for k in stand.ranked],
        failures=[_failure(rows[k]) for k in stand.unfinished],
        also=measures,
        axis=scale_axis(domain, title=f"Scale of {title}"),
        band=_band(rows, stand, domain),
        decimals=decimals,
    )


def score_decimals(record: dict[str, Any]) -> int:
    """Return how many decimals the scores of this record deserve."""
    rows = record.get("leaderboard") or []
    judged = [row for row in rows if not row.get("baseline")] + [(record.get("winner") or {}).get("holdout") or {}]
    halves = [
        (row["high"] - row["low"]) / 2 for row in judged if is_number(row.get("low")) and is_number(row.get("high"))
    ]
    return decimals_for(halves)


def _domain(rows: Sequence[dict[str, Any]], stand: Standing) -> tuple[float, float]:
    """Return the scale: all scores, unless that would make the best intervals too small to see."""
    ends: list[float] = []
    widest = math.inf
    for k in [*([] if stand.winner is None else [stand.winner]), *stand.ranked]:
        row = rows[k]
        more = [row[key] for key in ("low", "mean", "high") if is_number(row.get(key))]
        if ends and max(ends + more) - min(ends + more) > widest:
            continue
        ends += more
        if widest == math.inf and max(ends) > min(ends):
            widest = _WIDEST * (max(ends) - min(ends))
    return extent(ends or [0.0, 1.0], pad=0.05)


def _band(rows: Sequence[dict[str, Any]], stand: Standing, domain: tuple[float, float]) -> str:
    """Return the winner's interval as shares of the scale, for the shaded band behind all lines; CSS properties."""
    row = {} if stand.winner is None else rows[stand.winner]
    if not is_number(row.get("low")) or not is_number(row.get("high")):
        return "--from:0%;--to:0%"
    left, right = (100 * (row[key] - domain[0]) / (domain[1] - domain[0]) for key in ("low", "high"))
    return f"--from:{min(max(left, 0.0), 100.0):.2f}%;--to:{min(max(right, 0.0), 100.0):.2f}%"


def _line(
    numbers: Numbers, stand: Standing, k: int, domain: tuple[float, float], decimals: int, measures: list[str]
) -> Line:
    place = ("leaderboard", k)
    row = numbers.at(*place)
    marks = [*(["best"] if k == stand.winner else []), *(["equal"] if k in stand.tied else [])]
    marks += ["undecided"] if k in stand.undecided else []
    marks += ["baseline"] if row.get("baseline") else []
    marks += ["cut"] if row.get("cut") else []
    known = is_number(row.get("p_value")) and k != stand.winner and not row.get("baseline")
    return Line(
        rank=numbers.show(*place, "rank", style="plain"),
        name=name(row.get("name"), 100),
        parameters=_parameters(row),
        marks=marks,
        figure=_whisker(row, domain, decimals),
        score=numbers.show(*place, "mean", decimals=decimals),
        interval=interval(numbers, place, decimals),
        train=numbers.show(*place, "train_mean", decimals=decimals),
        also=[numbers.show(*place, "also", key) for key in measures],
        fit=numbers.show(*place, "fit_seconds", style="seconds"),
        predict=numbers.show(*place, "predict_seconds", style="seconds"),
        certificate=_solved(numbers, place, row),
        p_value=numbers.show(*place, "p_value", decimals=2) if known else None,
    )


def _whisker(row: dict[str, Any], domain: tuple[float, float], decimals: int) -> Markup:
    title = f"{isolated(row.get('name'), 60)}: {text_of(row['mean'], decimals=decimals)}"
    if is_number(row.get("low")) and is_number(row.get("high")):
        low, high = (text_of(row[key], decimals=decimals) for key in ("low", "high"))
        title += f", interval {low} to {high}"
    ends = (row.get("low"), row.get("high"))
    return whisker(row["mean"], *ends, domain=domain, title=title, hollow=bool(row.get("baseline")))


def _parameters(row: dict[str, Any]) -> str:
    """Return parameters that the name does not tell already."""
    parameters = row.get("parameters") or {}
    weights = parameters.get("weights")
    if isinstance(weights, dict):  # of a blend, by the names of its members
        return ", ".join(f"{member} {weight:.2g}" for member, weight in weights.items() if is_number(weight))[:200]
    shown = [f"{key}={value}" for key, value in parameters.items()]
    told = str(row.get("name"))
    return ", ".join(item for item in shown if item.split("=")[0] not in told)[:200]


def _solved(numbers: Numbers, place: tuple[str, int], row: dict[str, Any]) -> Any:
    """Say how well a fit was solved, or how far it came before its time was up."""
    if row.get("cut"):
        return "misses", _cut_mark(row["cut"])
    return certificate_words(numbers, *place, "certificate")


def _cut_mark(cut: dict[str, Any]) -> str:
    """Say how far a fit came before its time was up."""
    total = "" if cut.get("of") is None else f" of {cut['of']}"
    return f"cut after {cut.get('done')}{total} {cut.get('unit')}"


def _failure(row: dict[str, Any]) -> Failure:
    status = str(row.get("status") or "failed")
    return Failure(
        name=name(row.get("name"), 100),
        status=STATUS.get(status, "no score" if status == "ok" else status),
        reason=str(row.get("reason") or "no reason was recorded"),
    )
