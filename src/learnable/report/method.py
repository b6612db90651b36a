"""How the numbers were made: protocol, seed, versions, command. What someone needs to get them again."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ..plots.markup import Markup, clean, join, tag
from .numbers import Numbers
from .words import name


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
    repeats = protocol.get("repeats")
    times = [", repeated ", numbers.show("protocol", "repeats", style="count"), " times"] if (repeats or 1) > 1 else []
    return join([clean(scheme, 200), *times])


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
