"""The comparison record: everything a comparison found, as plain JSON.

The command-line tool prints it, the HTML report renders it, and nothing else passes between them: every number of the
report stands here. A number that does not exist is `null`, never NaN.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from importlib import metadata
from typing import Any, Final, Literal, NotRequired, TypedDict

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

    `models` is the cross-validation: fits, predictions and their scores, one process a model. `finish` is the models'
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
