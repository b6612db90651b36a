"""The leaderboard: one line per model, intervals drawn on one scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ..core.errors import DataError
from ..plots.axes import extent
from ..plots.distributions import bars, scale_axis, sparkline, whisker
from ..plots.markup import Markup, clean, isolated, join, tag
from .numbers import Numbers, decimals_for, is_number, text_of
from .tables import dicts
from .words import STATUS, Standing, certificate_words, interval, listing, name

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


_COMPARED: Final = 3  # lines of the leaderboard whose intervals say how many decimals all scores have


def score_decimals(record: dict[str, Any]) -> int:
    """Return how many decimals the scores of this record deserve: what tells the best ones apart.

    The intervals of models far behind may be many times as wide.
    """
    rows = [row for row in record.get("leaderboard") or [] if not row.get("baseline")]
    judged = [*rows[:_COMPARED], (record.get("winner") or {}).get("holdout") or {}]
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
    marks = ["best"] if k == stand.leader and stand.winner is not None else []
    marks += ["chosen"] if k == stand.winner != stand.leader else []  # those before it were cut, or are baselines
    marks += ["equal"] if k in stand.tied else []
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
    word = STATUS.get(status, "no score" if status == "ok" else status)
    reason = str(row.get("reason") or "no reason was recorded")
    if reason.startswith("left behind: "):  # it was tried on fewer rows
        word, _, reason = reason.partition(": ")
    return Failure(name=name(row.get("name"), 100), status=word, reason=reason)


# --------------------------------------------------------------------------------------------------------------------
# The columns of the table: which ones to show, and what to say about each.


@dataclass(frozen=True)
class Column:
    """One line of the table of columns; every field is markup or plain text."""

    name: Markup
    kind: str
    role: str | None
    notes: list[str]
    figure: Markup | None
    typical: Markup | None
    missing: Markup
    has_missing: bool
    distinct: Markup


def order_columns(record: dict[str, Any]) -> list[int]:
    """Return the positions of all columns, the most interesting first.

    The target; then columns with a warning; then what the winner relies on; then columns with notes or missing values;
    then the others, as they come.
    """
    profile = record["data"].get("profile") or []
    warned = {w.get("column") for w in record["data"].get("warnings") or [] if w.get("kind") in ("leak", "missing")}
    rank = _relied_upon(record)

    def key(k: int) -> tuple[int, float, int]:
        column = profile[k]
        if column.get("role") == "target":
            return 0, 0.0, k
        if column.get("name") in warned:
            return 1, 0.0, k
        if column.get("name") in rank:
            return 2, rank[column["name"]], k
        noted = bool(column.get("notes")) or bool(column.get("missing")) or column.get("role") not in ("feature", None)
        return (3 if noted else 4), 0.0, k

    return sorted(range(len(profile)), key=key)


def show_columns(numbers: Numbers, positions: Sequence[int]) -> list[Column]:
    """Return what the table says about the columns at these positions."""
    return [_column(numbers, k) for k in positions]


def _relied_upon(record: dict[str, Any]) -> dict[Any, float]:
    """Return the columns that the winner's importances name, with their rank."""
    details = (record.get("details") or {}).get((record.get("winner") or {}).get("name")) or {}
    entries = details.get("importances") or details.get("coefficients") or []
    strength: dict[Any, float] = {}
    for entry in sorted(entries, key=lambda e: -abs(e.get("value") or 0.0)):
        # An encoded column is named after its source: "city=Paris", "sold: year".
        for shown in (entry.get("name"), *(str(entry.get("name")).split(mark)[0] for mark in ("=", ": "))):
            strength.setdefault(shown, float(len(strength)))
    return strength


def _column(numbers: Numbers, k: int) -> Column:
    place = ("data", "profile", k)
    record = numbers.at(*place)
    role = record.get("role")
    return Column(
        name=name(record.get("name"), 80),
        kind=str(record.get("kind") or "unknown"),
        role=None if role in (None, "feature") else {"dropped": "left out"}.get(role, str(role)),
        notes=[str(note) for note in record.get("notes") or []][:4],
        figure=_figure(record),
        typical=_typical(numbers, place, record),
        missing=_missing(numbers, place, record),
        has_missing=bool(record.get("missing")),
        distinct=numbers.show(*place, "distinct", style="count"),
    )


def _missing(numbers: Numbers, place: tuple[str | int, ...], record: dict[str, Any]) -> Markup:
    if not record.get("missing"):
        return numbers.show(*place, "missing", style="count")
    return numbers.share((*place, "missing"), ("data", "rows"))


def _figure(record: dict[str, Any]) -> Markup | None:
    title = f"Distribution of {isolated(record.get('name'), 60)}"
    bins = record.get("histogram")
    top = record.get("top")
    try:
        if bins and bins.get("counts"):
            return sparkline(bins["edges"], bins["counts"], title=title)
        if top:
            return bars([count for _, count in top[:10]], title=title)
    except DataError:  # a table from elsewhere may hold bins that cannot be drawn; its numbers are shown all the same
        return None
    return None


def _typical(numbers: Numbers, place: tuple[str | int, ...], record: dict[str, Any]) -> Markup | None:
    classes = numbers.at("data", "classes") if record.get("role") == "target" else None
    if classes:  # also where the labels are numbers
        shares = [
            (label, numbers.share(("data", "class_counts", k), ("data", "rows"))) for k, label in enumerate(classes)
        ]
        return listing([join([name(label, 28), "\N{NO-BREAK SPACE}", share]) for label, share in shares], 3)
    inside = (*place, "summary")
    if numbers.known(*inside, "median"):
        pieces: list[Any] = ["median ", numbers.show(*inside, "median")]
        if numbers.known(*inside, "min") and numbers.known(*inside, "max"):
            pieces += [", from ", numbers.show(*inside, "min"), " to ", numbers.show(*inside, "max")]
        return join(pieces)
    top = record.get("top") or []
    shown = [
        join([name(value, 28), "\N{NO-BREAK SPACE}", numbers.share((*place, "top", rank, 1), ("data", "rows"))])
        for rank, (value, _) in enumerate(top[:3])
    ]
    return listing(shown, 3) if shown else None


# --------------------------------------------------------------------------------------------------------------------
# How the numbers were made: protocol, seed, versions, command. What someone needs to get them again.


def how_measured(numbers: Numbers) -> list[tuple[str, Markup]]:
    """Return terms and their explanations."""
    record = numbers.record
    protocol = numbers.record["protocol"]
    found: list[tuple[str, Markup | None]] = [
        ("Scheme", _scheme(numbers, protocol)),
        ("Training rows", _shown(numbers, "protocol", "train_rows")),
        ("Hold-out rows", _shown(numbers, "protocol", "holdout_rows")),
        ("Training period", _period(protocol, "train")),
        ("Hold-out period", _period(protocol, "holdout")),
        ("Measure", _measure(protocol)),
        ("Level of intervals", _shown(numbers, "protocol", "level", style="level")),
        ("Time limit", _shown(numbers, "protocol", "seconds_limit", style="seconds")),
        ("Time spent", _time_spent(numbers)),
        ("Seed", _shown(numbers, "seed", style="plain")),
        ("Cores", _shown(numbers, "machine", "cores", style="plain")),
        ("Data fingerprint", _code(record["data"].get("fingerprint"))),
        ("Model file", _code((record.get("winner") or {}).get("model_file"))),
        ("Refitted on", _text((record.get("winner") or {}).get("refitted_on"))),
        ("Versions", _versions(record.get("versions"))),
    ]
    return [(term, text) for term, text in found if text is not None]


def created(text: Any) -> Markup | None:
    """Return the date of the record, as people write it."""
    if not text:
        return None
    try:
        day = datetime.fromisoformat(str(text))
    except ValueError:
        return join([clean(text, 40)])
    zone = " UTC" if day.utcoffset() is not None and not day.utcoffset() else ""
    return tag("time", f"{day.day} {day:%B %Y, %H:%M}{zone}", datetime=text)


def _shown(numbers: Numbers, *path: str, style: Any = "count") -> Markup | None:
    return numbers.show(*path, style=style) if numbers.known(*path) else None


def _scheme(numbers: Numbers, protocol: dict[str, Any]) -> Markup | None:
    scheme = protocol.get("scheme")
    if not scheme:
        return None
    again: list[Any] = []
    if (protocol.get("repeats") or 1) > 1:
        times = numbers.show("protocol", "repeats", style="count")
        again = ["; the folds were cut ", times, " times for models that the first could not tell apart"]
    return join([clean(scheme, 200), *again])


def _period(protocol: dict[str, Any], part: str) -> Markup | None:
    """Return the first and the last time of the training rows or of the hold-out, where the rows have a time."""
    ends = (protocol.get("time") or {}).get(part) or []
    return join([clean(ends[0], 40), " to ", clean(ends[1], 40)]) if len(ends) == 2 else None


def _measure(protocol: dict[str, Any]) -> Markup | None:
    metric = protocol.get("metric") or {}
    if not metric.get("label") and not metric.get("name"):
        return None
    better = "higher is better" if metric.get("greater_is_better", True) else "lower is better"
    also = [name(str(item).replace("_", " "), 40) for item in protocol.get("also") or []]
    return join(
        [
            name(metric.get("label") or metric["name"], 40),
            f" ({better})",
            *(["; also ", join(also, ", ")] if also else []),
        ]
    )


def _time_spent(numbers: Numbers) -> Markup | None:
    if not numbers.known("timing", "total"):
        return None
    pieces: list[Any] = [numbers.show("timing", "total", style="seconds")]
    if numbers.known("timing", "models"):
        pieces += [", of which ", numbers.show("timing", "models", style="seconds"), " in the models"]
    return join(pieces)


def _code(text: Any) -> Markup | None:
    return tag("code", clean(text, 400)) if text else None


def _text(text: Any) -> Markup | None:
    return join([clean(text, 200)]) if text else None


def _versions(versions: Any) -> Markup | None:
    items = [join([name(key, 40), " ", name(value, 40)]) for key, value in (versions or {}).items()]
    return join(items, ", ") if items else None


# --------------------------------------------------------------------------------------------------------------------
# The model card: what was made, from what, for what, how good it is, where it is weak, and how to check it.
#
# Reference: M. Mitchell et al., Model cards for model reporting, FAT* 2019.


_MOST_COLUMNS: Final = 30
_MOST_SETTINGS: Final = 12


def model_card(numbers: Numbers, stand: Standing, label: str) -> list[tuple[str, Markup]]:
    """Return terms and what is said of them; none if no model won.

    Parameters
    ----------
    numbers : Numbers
        Of the record.
    stand : Standing
        Who won.
    label : str
        The measure's name.
    """
    record = numbers.record
    winner = record.get("winner")
    if stand.winner is None or not isinstance(winner, dict):
        return []
    row = record["leaderboard"][stand.winner]
    found: list[tuple[str, Markup | None]] = [
        ("Model", _model(numbers, stand.winner, row)),
        ("Predicts", _predicts(numbers)),
        ("Made from", _made_from(numbers)),
        ("Learns from", _columns(numbers, "feature")),
        ("Leaves out", _columns(numbers, "dropped")),
        ("Score", _score(numbers, label)),
        ("Decides", _decides(numbers)),
        ("Intervals", _intervals(numbers)),
        ("Weaker where", _weaker(numbers, winner.get("name"))),
        ("Do not use it", _limits(record)),
        ("Check it", _check(record, winner)),
    ]
    return [(term, text) for term, text in found if text is not None]


def _model(numbers: Numbers, position: int, row: dict[str, Any]) -> Markup:
    settings = row.get("parameters") if isinstance(row.get("parameters"), dict) else {}
    at: tuple[str | int, ...] = ("leaderboard", position, "parameters")
    weights = (settings or {}).get("weights")
    if isinstance(weights, dict):  # of a blend, by the names of its members
        at = (*at, "weights")
        settings = weights
    shown = []
    for key, value in list((settings or {}).items())[:_MOST_SETTINGS]:
        text = numbers.show(*at, key, style="plain") if is_number(value) else name(value, 60)
        shown.append(join([name(key, 90), " = ", text]))
    pieces: list[Any] = [name(row.get("name"), 80)]
    if row.get("model") and row.get("model") != row.get("name"):
        pieces += [", a ", tag("code", clean(row["model"], 80))]
    if shown:
        pieces += [" with the weights " if isinstance(weights, dict) else " with ", join(shown, ", ")]
    return join(pieces)


def _predicts(numbers: Numbers) -> Markup:
    data = numbers.record["data"]
    task = {"regression": "a number", "binary": "one of two classes", "multiclass": "one of several classes"}
    return join([name(data.get("target"), 80), f", {task.get(str(data.get('task')), 'the target')}"])


def _made_from(numbers: Numbers) -> Markup | None:
    winner = numbers.record.get("winner") or {}
    data = numbers.record["data"]
    pieces: list[Any] = [name(data.get("source"), 80)] if data.get("source") else []
    if numbers.known("protocol", "train_rows"):
        pieces.append(join(["judged after a fit to ", numbers.show("protocol", "train_rows", style="count"), " rows"]))
    if winner.get("refitted_on"):
        pieces.append(join(["kept after a fit to ", clean(winner["refitted_on"], 200)]))
    return join(pieces, "; ") if pieces else None


def _columns(numbers: Numbers, role: str) -> Markup | None:
    names = [name(column.get("name"), 40) for _, column in dicts(numbers.at("data", "profile"))
             if column.get("role") == role or (role == "feature" and column.get("learned"))]  # fmt: skip
    return listing(names, _MOST_COLUMNS) if names else None


def _score(numbers: Numbers, label: str) -> Markup | None:
    if not numbers.known("winner", "holdout", "score"):
        return None
    pieces: list[Any] = [f"{label} ", numbers.show("winner", "holdout", "score")]
    ends = interval(numbers, ("winner", "holdout"))
    if ends is not None:
        pieces += [" (", ends, ")"]
    pieces.append(" on rows that took no part in fitting or choosing it")
    if numbers.known("winner", "against", "score"):
        pieces += ["; ", name(numbers.at("winner", "against", "name"), 60), " has ",
                   numbers.show("winner", "against", "score"), " there"]  # fmt: skip
    return join(pieces)


def _decides(numbers: Numbers) -> Markup | None:
    if not numbers.known("winner", "decision", "threshold"):
        return None
    return join([name(numbers.at("winner", "decision", "positive"), 40), " from a probability of ",
                 numbers.show("winner", "decision", "threshold", decimals=3), " on: ",
                 clean(numbers.at("winner", "decision", "criterion") or "", 100)])  # fmt: skip


def _intervals(numbers: Numbers) -> Markup | None:
    at = ("winner", "intervals")
    if not numbers.known(*at, "level") or not numbers.known(*at, "holdout_coverage"):
        return None
    return join([numbers.show(*at, "level", style="level"), " prediction intervals hold ",
                 numbers.show(*at, "holdout_coverage", style="percent"), " of the hold-out rows"])  # fmt: skip


def _weaker(numbers: Numbers, winner: Any) -> Markup | None:
    parts = dicts(numbers.at("details", str(winner), "slices", "parts"))
    if not parts:
        return None
    worse = [join([name(part.get("column"), 40), ": ", name(part.get("label"), 40)]) for _, part in parts
             if part.get("verdict") == "worse"]  # fmt: skip
    return listing(worse, 8) if worse else join(["no part of the hold-out that was looked at is worse beyond noise"])


def _limits(record: dict[str, Any]) -> Markup:
    pieces = [
        "for rows of another kind than those of the table",
        "to tell what would happen if a column were changed: effects here are of the model, not causes",
    ]
    if (record.get("protocol") or {}).get("time"):
        pieces.append("long after the last training row, without judging it again")
    return join(pieces, "; ")


def _check(record: dict[str, Any], winner: dict[str, Any]) -> Markup | None:
    file = winner.get("model_file")
    if not file:
        return None
    return join([tag("code", f"learnable verify {clean(file, 200)} DATA"), " re-derives its certificate"])
