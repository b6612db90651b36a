"""From the scores of the folds to the lines of the leaderboard: means, intervals, ranks and ties."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence
from html import escape
from typing import Any, Final, cast

import numpy as np

from ..intervals import score_interval
from ..ties import verdict_on
from .cut import cut_sentence, earliest
from .measures import Measure
from .race import Outcome
from .record import ComparisonRecord, Row, plain
from .scoring import weakest

#: What a measure can be, for the ends of its interval.
_BOUNDS = {
    "r2": (-math.inf, 1.0),
    "accuracy": (0.0, 1.0),
    "balanced_accuracy": (0.0, 1.0),
    "auc": (0.0, 1.0),
    "rmse": (0.0, math.inf),
    "mae": (0.0, math.inf),
    "log_loss": (0.0, math.inf),
}

_ORDER = ("ok", "timeout", "interrupted", "failed", "skipped")


def fill_row(row: Row, outcome: Outcome, measure: Measure, n_folds: int, test_share: float, level: float) -> None:
    """Write into a line what a model's job reported and how it ended."""
    folds = outcome.messages
    row["status"] = outcome.status
    row["reason"] = outcome.reason
    scores = [fold["test"][measure.name] for fold in folds]
    row["scores"] = plain(scores)
    if not folds:
        return
    row["fit_seconds"] = statistics.median(fold["fit_seconds"] for fold in folds)
    row["predict_seconds"] = statistics.median(fold["predict_seconds"] for fold in folds)
    row["certificate"] = weakest([fold["certificate"] for fold in folds])
    row["cut"] = plain(earliest([fold.get("cut") for fold in folds]))
    if row["cut"] is not None and row["certificate"] is not None:  # what is proven is of a smaller model
        row["certificate"] |= {"holds": False, "sentence": cut_sentence(row["cut"])}
    if row["status"] == "ok" and not all(math.isfinite(score) for score in scores):
        row["status"] = "failed"
        row["reason"] = f"{measure.label} is not defined for what it predicts: nothing finite, or no probabilities"
    if not all(math.isfinite(score) for score in scores):
        return
    row["mean"] = float(np.mean(scores))
    row["train_mean"] = _mean([fold["train"][measure.name] for fold in folds])
    others = [name for name in folds[0]["test"] if name != measure.name]
    row["also"] = {name: _mean([fold["test"][name] for fold in folds]) for name in others}
    if len(folds) == n_folds and n_folds > 1:
        bounds = _BOUNDS[measure.name]
        interval = score_interval(scores, bounds=bounds, test_share=test_share, level=level)
        row["low"] = plain(interval.low)
        row["high"] = plain(interval.high)


def rank_rows(rows: Sequence[Row], measure: Measure, n_train: float, n_test: float) -> list[Row]:
    """Set rank, verdict and p-value of every complete line; return the lines, the best first, the incomplete ones last.

    `verdict` says how a line stands to the best one by the folds that both were scored on: "worse", "equal" (within
    the measure's margin) or "undecided". `tied` is true of the best line and of equal ones. Lines that were scored on
    fewer folds than others are placed by their mean plus what the further folds changed for the others on average.

    Examples
    --------
    >>> from learnable.evaluation.comparison.leaderboard import rank_rows
    >>> from learnable.evaluation.comparison.measures import ranking_measure
    >>> from learnable.evaluation.comparison.record import new_row
    >>> rows = [new_row("a", "A", {}), new_row("b", "B", {})]
    >>> for row, scores in zip(rows, ([0.1, 0.2], [0.8, 0.9])):
    ...     row.update(status="ok", scores=scores, mean=sum(scores) / 2)
    >>> [(row["name"], row["rank"]) for row in rank_rows(rows, ranking_measure("regression"), 80, 20)]
    [('b', 1), ('a', 2)]
    """
    sign = 1.0 if measure.greater_is_better else -1.0
    complete = [row for row in rows if row["status"] == "ok"]
    shift = _shifts(complete)
    complete.sort(key=lambda row: -sign * (_number(row["mean"]) + shift.get(len(row["scores"]), 0.0)))
    for position, row in enumerate(complete, start=1):
        row["rank"] = position
        row["tied"] = position == 1
        row["p_value"] = None
        row["verdict"] = "best" if position == 1 else None
        row["difference"] = None
    for row in complete[1:]:
        _judge(row, complete[0], measure, sign, n_train, n_test)
    rest = [row for row in rows if row["status"] != "ok"]
    return complete + sorted(rest, key=lambda row: _ORDER.index(row["status"]))


def _shifts(rows: Sequence[Row]) -> dict[int, float]:
    """Return, by the number of folds, what the further folds changed in the mean of lines that were scored on all."""
    most = max((len(row["scores"]) for row in rows), default=0)
    full = np.array([row["scores"] for row in rows if len(row["scores"]) == most], dtype=np.float64)
    counts = {len(row["scores"]) for row in rows if 0 < len(row["scores"]) < most}
    return {count: float(full.mean() - full[:, :count].mean()) for count in counts}


def _judge(row: Row, best: Row, measure: Measure, sign: float, n_train: float, n_test: float) -> None:
    """Say how a line stands to the best one."""
    shared = min(len(row["scores"]), len(best["scores"]))
    a, b = (sign * np.array(line["scores"][:shared], dtype=np.float64) for line in (best, row))
    if shared < 1 or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return
    found = verdict_on(a - b, n_train, n_test, measure.margin(_number(best["mean"])))
    row["verdict"] = found.word
    row["tied"] = found.word == "equal"
    row["p_value"] = plain(found.p)
    row["difference"] = plain({"value": found.difference, "low": found.low, "high": found.high})


def winner_of(rows: Sequence[Row]) -> Row | None:
    """Return the best complete line that is not the baseline.

    A model that the clock cut wins only where every complete one is worse.
    """
    models = [row for row in rows if row["rank"] is not None and not row["baseline"]]
    if models and min(models, key=lambda row: row["rank"] or 0).get("cut") is not None:
        whole = [row for row in models if row.get("cut") is None and row.get("verdict") in ("equal", "undecided")]
        models = whole or models
    return min(models, key=lambda row: row["rank"] or 0, default=None)


def _mean(values: list[Any]) -> float | None:
    mean: float | None = plain(float(np.mean(values)))
    return mean


def _number(value: float | None) -> float:
    return -math.inf if value is None else value


# Short names of models for narrow tables; the record keeps the full ones beside them.

#: Endings of classes that the task tells already; what is left must say something.
_ENDINGS: Final = ("Regressor", "Classifier")

_FAMILIES: Final = {
    "KNeighbors": "KNN",
    "GaussianProcess": "GP",
    "LinearDiscriminantAnalysis": "LDA",
    "QuadraticDiscriminantAnalysis": "QDA",
    "BayesianLinearRegression": "BayesianLinear",
}

_SETTINGS: Final = {
    "n_neighbors": "k",
    "min_samples_leaf": "leaf",
    "max_depth": "depth",
    "max_leaf_nodes": "leaves",
    "n_estimators": "trees",
    "max_features": "features",
    "learning_rate": "rate",
    "ccp_alpha": "pruning",
    "l1_ratio": "l1",
    "reg_lambda": "lambda",
}

_PARTS: Final = re.compile(r"^(?P<name>[^()]+?)(?: \((?P<inside>.*)\))?(?P<number> #\d+)?$", re.DOTALL)


def short_name(name: str, model: str) -> str:
    """Return a model's name in fewer letters; one that the caller chose stays as it is.

    Parameters
    ----------
    name : str
        The name of its line, such as "RandomForestRegressor (min_samples_leaf=5, max_features=third)".
    model : str
        Its class.

    Examples
    --------
    >>> from learnable.evaluation.comparison.leaderboard import short_name
    >>> short_name("RandomForestRegressor (min_samples_leaf=5, max_features=third)", "RandomForestRegressor")
    'RandomForest leaf=5 features=third'
    >>> short_name("KNeighborsClassifier (n_neighbors=5)", "KNeighborsClassifier")
    'KNN k=5'
    >>> short_name("my model (v2)", "Ridge")
    'my model (v2)'
    """
    found = _PARTS.match(name)
    if found is None or found["name"] != model:
        return name
    family = model
    for ending in _ENDINGS:
        family = family.removesuffix(ending) or family
    pieces = [_FAMILIES.get(family, family)]
    for setting in (found["inside"] or "").split(", "):
        key, equals, value = setting.partition("=")
        pieces.append(f"{_SETTINGS.get(key, key)}={value}" if equals else setting)
    return " ".join(piece for piece in pieces if piece) + (found["number"] or "")


def short_names(rows: Sequence[Any]) -> list[str]:
    """Return the short names of some lines; where two would be the same, both keep their full names.

    Examples
    --------
    >>> from learnable.evaluation.comparison.leaderboard import short_names
    >>> short_names([{"name": "Ridge (alpha=1)", "model": "Ridge"}, {"name": "Ridge", "model": "Ridge"}])
    ['Ridge alpha=1', 'Ridge']
    """
    found = [short_name(str(row["name"]), str(row["model"])) for row in rows]
    return [short if found.count(short) == 1 else str(row["name"]) for short, row in zip(found, rows, strict=True)]


# The record of a comparison as people see it: a plain table in a terminal, an HTML table in a notebook.
#
# It is the dict that it was, so that JSON, the report and every reader take it as before.

_STYLE = "text-align:left;padding:2px 10px 2px 0"


class ShownRecord(dict[str, Any]):
    """A comparison record that shows its leaderboard.

    Examples
    --------
    >>> from learnable.evaluation.comparison.leaderboard import ShownRecord
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
            lines.append(f"Hold-out: {winner.get('name')} {_shown_number(holdout['score'])}{_interval(holdout)}")
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
        _shown_number(row.get("mean")),
        _interval(row).strip(),
        (row.get("verdict") or "–") if ranked else "",
        " ".join("; ".join(notes).split())[:100],
    ]


def _interval(record: dict[str, Any]) -> str:
    low = record.get("low")
    high = record.get("high")
    return f" [{_shown_number(low)}, {_shown_number(high)}]" if _is_number(low) and _is_number(high) else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shown_number(value: Any) -> str:
    if not _is_number(value):
        return ""
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:.6g}"
