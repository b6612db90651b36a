"""From the record of a comparison to one HTML file: no script, no request, nothing unescaped, under two megabytes.

Text of the record reaches the page through Jinja2's autoescape or through `plots.markup.tag`, and nowhere else. The
page forbids itself scripts and requests by a content security policy, in case someone adds to it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..core.errors import DataError
from ..plots.markup import clean, join
from ..report import words
from .advice import advise
from .figures import correlation_figures, figures
from .numbers import Numbers
from .sections import created, how_measured, leaderboard, model_card, order_columns, show_columns
from .tables import Figure, preview_grid
from .words import Standing, standing

if TYPE_CHECKING:
    from jinja2 import Environment, Template

FORMAT: Final = "learnable-comparison"
VERSION: Final = 1
MOST_BYTES: Final = 2_000_000
_LONGEST: Final = 2000


class Limits(NamedTuple):
    """How much is shown."""

    columns: int  #: in the table of columns
    folded: int  #: names of further columns
    models: int  #: in the leaderboard before the fold
    details: int  #: models with figures
    warnings: int


#: Tried in turn until the page is small enough.
_LIMITS: Final = (Limits(60, 5000, 20, 4, 12), Limits(40, 500, 20, 2, 8), Limits(10, 0, 20, 1, 4))


def render(record: dict[str, Any]) -> str:
    """Return the report of a comparison as one HTML page.

    Parameters
    ----------
    record : dict
        A comparison record, as `learnable.evaluation.compare` returns it.

    Returns
    -------
    str
        The page: offline, without scripts, under 2 MB.

    Examples
    --------
    >>> from learnable.report import render
    >>> record = {"format": "learnable-comparison", "version": 1, "data": {"target": "price"}, "protocol": {}}
    >>> "No model was tried" in render(record)
    True
    """
    _check(record)
    tidy = _tidy(record)
    page_template = template()
    page = ""
    for limits in _LIMITS:
        page = page_template.render(_view(tidy, limits))
        if len(page.encode()) <= MOST_BYTES:
            break
    return page


def _check(record: Any) -> None:
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        kind = record.get("format") if isinstance(record, dict) else type(record).__name__
        raise DataError(f"render: the record must be of format {FORMAT!r}, got {kind!r}. Pass what compare returned.")
    if record.get("version") != VERSION:
        raise DataError(
            f"render: the record is of version {record.get('version')!r}, this report reads version {VERSION}. "
            "Write it again with the same version of learnable."
        )
    for part in ("data", "protocol"):
        if not isinstance(record.get(part), dict):
            raise DataError(f"render: the record has no {part!r}. Pass the record whole.")


def _tidy(value: Any) -> Any:
    """Return the record with text that a file can hold: no control characters, no endless names."""
    if isinstance(value, str):
        return clean(value, _LONGEST)
    if isinstance(value, dict):
        return {clean(key, _LONGEST): _tidy(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_tidy(item) for item in value]
    return value


@cache
def template() -> Template:
    """Return the page's template, compiled once; calling it early saves the time later."""
    return environment().get_template("report.html")


@cache
def environment() -> Environment:
    """Return where the templates of all pages come from."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("report: jinja2 is not installed. Install learnable[cli].") from error
    found = Environment(
        loader=PackageLoader("learnable.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    found.filters |= {
        "clip": clean,
        "capital": lambda text: text[:1].upper() + text[1:],
        "words": lambda text: str(text).replace("_", " "),
    }
    return found


def _view(record: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """Return everything that the template shows."""
    numbers = Numbers(record)
    stand = standing(record)
    data = record["data"]
    metric = record["protocol"].get("metric") or {}
    label = clean(metric.get("label") or metric.get("name") or "score", 40)
    board = leaderboard(numbers, stand, label)
    order = order_columns(record)
    warnings = [w for w in data.get("warnings") or [] if isinstance(w, dict)]
    one_model = record.get("subject") == "model"
    return {
        "one_model": one_model,
        "interrupted": record.get("status") == "interrupted",
        "target": words.name(data.get("target"), 80),
        "title": clean(f"{data.get('target') or 'Report'} · {data.get('source') or 'learnable'}", 120),
        "source": data.get("source"),
        "created": created(record.get("created")),
        "numbers": numbers,
        "verdict": words.verdict(numbers, stand, board.decimals),
        "metric": label,
        "greater": metric.get("greater_is_better", True),
        "task_reason": data.get("task_reason"),
        "classes": _classes(numbers, data),
        "warnings": warnings[: limits.warnings],
        "warning_kinds": words.WARNINGS,
        "more_warnings": warnings[limits.warnings : limits.warnings + limits.folded],
        "columns": show_columns(numbers, order[: limits.columns]),
        "folded": _folded(data, order[limits.columns :], limits.folded),
        "n_folded": len(order[limits.columns :]),
        "rest_of_columns": numbers.rest(limits.columns, "data", "profile"),
        "rest_of_warnings": numbers.rest(limits.warnings, "data", "warnings"),
        "board": board,
        "most_models": limits.models,
        "optimism": None if one_model else (record.get("winner") or {}).get("optimism_note"),
        "models": _models(numbers, stand, label, limits.details),
        "claims": _claims(numbers, stand),
        "holdout_words": words.interval_sentence(((record.get("winner") or {}).get("holdout") or {}).get("method")),
        "coverage": words.coverage_sentences(numbers),
        "proven": _proven(record),
        "how": how_measured(numbers),
        "command": record.get("command"),
        "python": record.get("python"),
        "card": [] if one_model else model_card(numbers, stand, label),
        "preview": preview_grid(data.get("preview"), limits.columns),
        "correlations": _correlations(numbers),
        "advice": _advice(record),
        "predict_command": (record.get("winner") or {}).get("predict_command"),
    }


def _proven(record: dict[str, Any]) -> dict[str, Any] | None:
    """Return what is proven about new rows; older records do not have it."""
    found = ((record.get("winner") or {}).get("holdout") or {}).get("proven")
    if not isinstance(found, dict) or not found.get("sentence"):
        return None
    return {"checks": [], "theorem": None} | found


def _advice(record: dict[str, Any]) -> list[str]:
    """Return what to do next; how to predict stands below it as a command."""
    found = [str(item) for item in record.get("advice") or advise(record)]
    command = (record.get("winner") or {}).get("predict_command")
    return [item for item in found if not (command and item.startswith("Predict new rows with: "))]


def _correlations(numbers: Numbers) -> list[Figure]:
    part = numbers.at("data", "correlations")
    return correlation_figures(numbers, part) if isinstance(part, dict) else []


def _classes(numbers: Numbers, data: dict[str, Any]) -> Any:
    labels = data.get("classes") or []
    counts = data.get("class_counts") or []
    if not labels or len(labels) != len(counts):
        return None
    shares = [numbers.share(("data", "class_counts", k), ("data", "rows")) for k in range(len(labels[:6]))]
    shown = [
        join([words.name(label, 40), ":\N{NO-BREAK SPACE}", share])
        for label, share in zip(labels[:6], shares, strict=True)
    ]
    if len(labels) <= 6:
        return join(["Classes: ", join(shown, ", "), "."])
    return join(["Of the ", numbers.length("data", "classes"), " classes: ", join(shown, ", "), " …"])


def _folded(data: dict[str, Any], order: list[int], most: int) -> list[Any]:
    profile = data.get("profile") or []
    return [(words.name(profile[k].get("name"), 60), str(profile[k].get("kind") or "")) for k in order[:most]]


def _models(numbers: Numbers, stand: Standing, label: str, most: int) -> list[dict[str, Any]]:
    """Return the models with figures, the winner first."""
    details = numbers.record.get("details") or {}
    rows = numbers.record.get("leaderboard") or []
    winner = (numbers.record.get("winner") or {}).get("name")
    names = [winner, *(rows[k].get("name") for k in stand.ranked), *details]
    found = []
    for key in dict.fromkeys(name for name in names if name in details):
        drawn = figures(numbers, key, label)
        claim = words.certificate_sentence(numbers, "details", key, "certificate")
        on = clean((details[key] or {}).get("on") or "", 60)
        if drawn:
            found.append({"name": words.name(key), "figures": drawn, "claim": claim, "on": on})
        if len(found) == most:
            break
    return found


def _claims(numbers: Numbers, stand: Standing) -> list[tuple[Any, Any, Any]]:
    rows = numbers.record.get("leaderboard") or []
    found = []
    for k in stand.ranked:
        sentence = words.certificate_sentence(numbers, "leaderboard", k, "certificate")
        if sentence is not None and not rows[k].get("baseline"):
            mark = words.certificate_words(numbers, "leaderboard", k, "certificate")
            found.append((words.name(rows[k].get("name"), 80), mark, sentence))
    return found
