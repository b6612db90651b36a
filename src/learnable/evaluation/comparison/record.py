"""The comparison record: everything a comparison found, as plain JSON.

The command-line tool prints it, the HTML report renders it, and nothing else passes between them: every number of the
report stands here. A number that does not exist is `null`, never NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from html import escape
from importlib import metadata
from typing import Any, Final, Literal, NotRequired, TypedDict, cast

import numpy as np

FORMAT: Final = "learnable-comparison"
VERSION: Final = 1
_DISTRIBUTIONS: Final = ("learnable", "numpy", "scipy", "scikit-learn", "numba", "narwhals", "pyarrow")

Status = Literal["ok", "failed", "timeout", "interrupted", "skipped"]


class DataRecord(TypedDict):
    """The table: what `learnable.data.profile` found, and where the table came from."""

    source: str
    rows: int
    columns: int
    target: str
    task: str
    task_reason: str
    classes: list[str] | None
    class_counts: list[int] | None
    duplicate_rows: int
    fingerprint: str
    profile: list[dict[str, Any]]
    warnings: list[dict[str, Any]]
    copies: NotRequired[dict[str, Any]]
    preview: NotRequired[dict[str, Any]]
    correlations: NotRequired[dict[str, Any]]


class MetricRecord(TypedDict):
    """The measure that ranks the models."""

    name: str
    label: str
    greater_is_better: bool


class ProtocolRecord(TypedDict):
    """How the models were judged."""

    scheme: str
    folds: int
    repeats: int
    train_rows: int
    holdout_rows: int
    metric: MetricRecord
    also: list[str]
    level: float
    seconds_limit: float | None
    margin: NotRequired[float | None]
    time: NotRequired[dict[str, Any] | None]


class Row(TypedDict):
    """One line of the leaderboard."""

    rank: int | None
    name: str
    model: str
    parameters: dict[str, Any]
    baseline: bool
    status: Status
    reason: str | None
    scores: list[float | None]
    mean: float | None
    low: float | None
    high: float | None
    train_mean: float | None
    also: dict[str, float | None]
    fit_seconds: float | None
    predict_seconds: float | None
    certificate: dict[str, Any] | None
    tied: bool
    p_value: float | None
    verdict: NotRequired[str | None]
    difference: NotRequired[dict[str, float | None] | None]
    limit: NotRequired[str | None]
    settings_tried: NotRequired[int]  #: by tuning that began at this line
    short: NotRequired[str]  #: the name in fewer letters, as the terminal shows it
    cut: dict[str, Any] | None  #: how far the model that came least far got before its time was up; None if complete


class WinnerRecord(TypedDict):
    """The best model, on rows that nothing has seen."""

    name: str
    holdout: dict[str, Any] | None
    optimism_note: str
    model_file: str | None
    predict_command: str | None
    refitted_on: NotRequired[str | None]
    decision: NotRequired[dict[str, Any] | None]
    intervals: dict[str, Any] | None
    against: NotRequired[dict[str, Any] | None]
    as_given: NotRequired[dict[str, Any] | None]


class TimingRecord(TypedDict):
    """Seconds: `total` = `models` + `encoding` + `finish` + `overhead`.

    `models` is the cross-validation: fits, predictions and their scores, one process per model. `finish` is the models'
    time as well: the fit that the hold-out judges, the one that is kept, those of the intervals and of the learning
    curves, and the predictions of the importances. `encoding` fits the encoder of every fold and applies it. `overhead`
    is the tool's own: starting, reading and looking at the table, ranking, rendering.
    """

    total: float
    models: float
    encoding: float
    finish: float
    overhead: float


class ComparisonRecord(TypedDict):
    """The whole comparison."""

    format: str
    version: int
    created: str
    seed: int
    versions: dict[str, str]
    command: str
    python: str | None
    machine: dict[str, Any]
    status: Literal["complete", "interrupted"]
    data: DataRecord
    protocol: ProtocolRecord
    leaderboard: list[Row]
    winner: WinnerRecord | None
    details: dict[str, dict[str, Any]]
    advice: list[str]
    timing: TimingRecord


def new_row(name: str, model: str, parameters: dict[str, Any], *, baseline: bool = False) -> Row:
    """Return the line of a model that has not run yet."""
    return Row(
        rank=None,
        name=name,
        model=model,
        parameters=plain(parameters),
        baseline=baseline,
        status="skipped",
        reason=None,
        scores=[],
        mean=None,
        low=None,
        high=None,
        train_mean=None,
        also={},
        fit_seconds=None,
        predict_seconds=None,
        certificate=None,
        tied=False,
        p_value=None,
        cut=None,
    )


def plain(value: Any) -> Any:
    """Return `value` as JSON types; NaN and infinities become None, arrays lists, what is unknown its text.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.evaluation.comparison.record import plain
    >>> plain({"a": np.float64(0.5), "b": [np.nan, np.int64(2)], "c": np.array([True])})
    {'a': 0.5, 'b': [None, 2], 'c': [True]}
    """
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate has no place in JSON
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return str(value)


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that the numbers depend on."""
    import platform

    found = {"python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def timestamp() -> str:
    """Return the time now, in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --------------------------------------------------------------------------------------------------------------------
# The record of a comparison as people see it: a plain table in a terminal, an HTML table in a notebook.
#
# It is the dict that it was, so that JSON, the report and every reader take it as before.


_STYLE = "text-align:left;padding:2px 10px 2px 0"


class ShownRecord(dict[str, Any]):
    """A comparison record that shows its leaderboard.

    Examples
    --------
    >>> from learnable.evaluation.comparison.record import ShownRecord
    >>> row = {"rank": 1, "name": "Ridge", "status": "ok", "mean": 0.5, "low": 0.4, "high": 0.6, "verdict": None}
    >>> ShownRecord(leaderboard=[row], data={"target": "y", "rows": 60}, protocol={"metric": {"label": "R²"}})
    Comparison: 1 model for 'y', 60 rows
       model  R² (CV)  interval          to the first  note
    1  Ridge  0.5000   [0.4000, 0.6000]  –
    """

    def __repr__(self) -> str:
        heads, rows = self._table()
        widths = [max(len(line[i]) for line in [heads, *rows]) for i in range(len(heads))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in [heads, *rows]
        ]
        return "\n".join([self._title(), *lines, *self._closing()])

    def _repr_html_(self) -> str:
        heads, rows = self._table()
        head = "".join(f'<th style="{_STYLE}">{escape(cell)}</th>' for cell in heads)
        body = "".join(
            "<tr>" + "".join(f'<td style="{_STYLE}">{escape(cell)}</td>' for cell in row) + "</tr>" for row in rows
        )
        below = "".join(f"<p>{escape(line)}</p>" for line in self._closing())
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<div><p><b>{escape(self._title())}</b></p>{table}{below}</div>"

    def _title(self) -> str:
        data = self.get("data") or {}
        board = self.get("leaderboard") or []
        models = sum(not row.get("baseline") for row in board)
        counted = "1 model" if models == 1 else f"{models} models"
        return f"Comparison: {counted} for {data.get('target')!r}, {data.get('rows')} rows"

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return the heads and the rows of the leaderboard, as text."""
        metric = ((self.get("protocol") or {}).get("metric") or {}).get("label", "score")
        heads = ["", "model", f"{metric} (CV)", "interval", "to the first", "note"]
        return heads, [_cells(row) for row in self.get("leaderboard") or []]

    def _closing(self) -> list[str]:
        """Return what follows the table: the score of the winner on rows set aside, and where it is saved."""
        lines = []
        if self.get("status") == "interrupted":
            lines.append("Interrupted: only what was finished is here.")
        winner = self.get("winner") or {}
        holdout = winner.get("holdout") or {}
        if _is_number(holdout.get("score")):
            lines.append(f"Hold-out: {winner.get('name')} {_number(holdout['score'])}{_interval(holdout)}")
        if winner.get("model_file"):
            lines.append(f"Saved: {winner['model_file']}")
        return lines


def shown(record: ComparisonRecord) -> ComparisonRecord:
    """Return the record as a dict that shows its leaderboard."""
    return cast(ComparisonRecord, ShownRecord(record))


def _cells(row: dict[str, Any]) -> list[str]:
    ranked = row.get("rank") is not None
    notes = [] if row.get("status") == "ok" else [f"{row.get('status')}: {row.get('reason') or 'not started'}"]
    if row.get("cut"):
        notes.append(f"cut: {row['cut']}")
    return [
        str(row["rank"]) if ranked else "",
        str(row.get("name")),
        _number(row.get("mean")),
        _interval(row).strip(),
        (row.get("verdict") or "–") if ranked else "",
        " ".join("; ".join(notes).split())[:100],
    ]


def _interval(record: dict[str, Any]) -> str:
    low = record.get("low")
    high = record.get("high")
    return f" [{_number(low)}, {_number(high)}]" if _is_number(low) and _is_number(high) else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _number(value: Any) -> str:
    if not _is_number(value):
        return ""
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:.6g}"


# --------------------------------------------------------------------------------------------------------------------
# The Python lines that run a comparison again.


#: Arguments of `compare` with their defaults, in the order in which they are written.
_DEFAULTS: Final[dict[str, Any]] = {
    "groups": None,
    "time": None,
    "seconds": None,
    "models": None,
    "folds": 5,
    "seed": 0,
    "task": None,
    "metric": None,
    "drop": [],
    "keep": [],
    "dayfirst": None,
    "kinds": {},
    "copies": "together",
    "memory": None,
    "tune": None,
    "cost": None,
    "model_file": None,
}


def python_lines(
    source: str | None, target: str, arguments: Mapping[str, Any], reading: Mapping[str, Any] | None = None
) -> str:
    """Return Python code that compares again; models that were given as objects are named in a comment.

    Parameters
    ----------
    source : str or None
        The path of the table; None if it was an object in memory.
    target : str
        The column to predict.
    arguments : mapping
        Arguments of `compare`; those at their defaults are left out, except the seed.
    reading : mapping or None
        How the tool reads the source, with `learnable.cli.tables.load_table`; None if `compare` reads it itself.

    Examples
    --------
    >>> from learnable.evaluation.comparison.record import python_lines
    >>> print(python_lines("houses.csv", "price", {"seconds": 60.0, "models": ["Ridge"], "seed": 0}))
    from learnable.evaluation import compare
    <BLANKLINE>
    record = compare('houses.csv', 'price', seconds=60.0, models=['Ridge'], seed=0)
    """
    lines = ["from learnable.evaluation import compare"]
    data = "table" if source is None or reading is not None else repr(source)
    if source is not None and reading is not None:
        options = "".join(f", {name}={value!r}" for name, value in reading.items() if value is not None)
        lines += ["from learnable.cli.tables import load_table", "", f"table = load_table({source!r}{options})"]
    elif source is None:
        lines += ["", "# table: the dataframe that was compared"]
    else:
        lines.append("")
    said = [data, repr(target)]
    for name, default in _DEFAULTS.items():
        value = arguments.get(name, default)
        if name == "models" and value is not None:
            strange = [one for one in value if not isinstance(one, str)]
            if strange:
                lines.append(f"# models: {len(strange)} estimator(s) that were given as objects; pass them again")
            value = [one for one in value if isinstance(one, str)] or None
        if name == "seed" or (value is not None and value != default):
            said.append(f"{name}={value!r}")
    return "\n".join([*lines, f"record = compare({', '.join(said)})"])
