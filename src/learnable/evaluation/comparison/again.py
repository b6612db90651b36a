"""A model of a finished comparison, fitted again: every line of a leaderboard can be asked, not only the winner.

A comparison keeps one model. The others are in its record by their class and their settings; with the table and the
seed that is enough to fit one as it was judged: to the training rows, encoded as they were, with the same rows set
aside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from ...core.errors import DataError, ParameterError
from ...core.registry import REGISTRY
from .aside import Aside
from .candidates import Candidate, blend_of, surrounded, wants_dense
from .judge import holdout_interval
from .keep import table_model, with_target
from .measures import Prediction, ranking_measure
from .problem import read_problem
from .splitting import cut

#: Arguments of `compare` that say what the problem is.
_OF_PROBLEM: Final = ("groups", "time", "task", "drop", "keep", "dayfirst", "kinds", "copies")
_BLENDS: Final = ("BlendRegressor", "BlendClassifier")


class FittedAgain(NamedTuple):
    """A line of a leaderboard as a model."""

    model: Any  #: a TableModel, fitted to the training rows
    aside: Aside  #: what it says of the rows set aside
    holdout: dict[str, Any]  #: its score there, with an interval
    rows: int  #: how many it was fitted to


def can_be_fitted(row: Mapping[str, Any]) -> bool:
    """Tell whether a line of a leaderboard is a model that can be asked: it was finished, and is registered."""
    return row.get("status") == "ok" and row.get("mean") is not None and (row.get("model") in REGISTRY)


def candidate_of(name: str, record: Mapping[str, Any], y: Any) -> Candidate:
    """Return the candidate of a line, with what was put around it in the race."""
    rows = {row["name"]: row for row in record["leaderboard"]}
    row = rows.get(name)
    if row is None or not can_be_fitted(row):
        raise ParameterError(f"The leaderboard has no finished model {name[:80]!r} that can be asked.")
    task = record["data"]["task"]
    weights = row["parameters"].get("weights")
    if row["model"] in _BLENDS and isinstance(weights, Mapping):
        members = [candidate_of(member, record, y) for member in weights]
        return blend_of(members, list(weights.values()), task)
    plain = Candidate(row["name"], row["model"], dict(row["parameters"]), REGISTRY[row["model"]].path)
    return surrounded(plain, task, y)


def fit_again(
    table: Any, record: Mapping[str, Any], settings: Mapping[str, Any], name: str, *, level: float = 0.95
) -> FittedAgain:
    """Fit a line of a comparison's leaderboard again, as it was judged.

    Parameters
    ----------
    table : pyarrow.Table
        The table that was compared.
    record : dict
        The comparison's record.
    settings : dict
        What `compare` was called with.
    name : str
        The name of the line.
    level : float
        Of the interval of its score.

    Returns
    -------
    FittedAgain
        The model, and what it says of the rows set aside.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa
    >>> from learnable.evaluation import compare
    >>> from learnable.evaluation.comparison.again import fit_again
    >>> x = np.linspace(0.0, 1.0, 60)
    >>> table = pa.table({"x": x, "y": 2.0 * x + np.sin(40 * x)})
    >>> record = compare(table, "y", models=["LinearRegression"])
    >>> again = fit_again(table, record, {"target": "y"}, "LinearRegression")
    >>> bool(np.isclose(again.holdout["score"], record["winner"]["holdout"]["score"])), again.rows
    (True, 48)
    """
    target = record["data"]["target"]
    given = {key: settings[key] for key in _OF_PROBLEM if settings.get(key) is not None}
    problem = read_problem("compare", table, target, **given)
    seed = record["seed"]
    _, (train, test), _ = cut(problem, int(settings.get("folds") or 5), seed)
    if len(test) != record["protocol"]["holdout_rows"]:
        raise DataError("The table is no longer the one that was compared. Compare again.")
    candidate = candidate_of(name, record, problem.y)
    model = table_model(
        candidate.build(seed),
        problem.task,
        intervals="none",
        seed=seed,
        dense=wants_dense(candidate),
        readings=problem.readings,
    )
    targets = problem.y if problem.labels is None else problem.labels[problem.y]
    model.fit(problem.features.take(train), targets[train])
    said = _say(model, problem.features.take(test), problem.labels)
    rows = test if problem.places is None else problem.places[test]
    aside = Aside(rows, problem.y[test], said, problem.classes)
    measure = ranking_measure(problem.task, record["protocol"]["metric"]["name"])
    prediction: Prediction = aside.prediction
    interval = holdout_interval(measure, aside.actual, prediction, level, seed, None)
    score = measure.function(aside.actual, prediction)
    found = {"score": float(score), "low": interval.low, "high": interval.high, "method": interval.method}
    return FittedAgain(with_target(model, target), aside, found, len(train))


def _say(model: Any, features: Any, labels: Any) -> Any:
    """Return predictions, probabilities of all classes, or codes of the classes."""
    if labels is None:
        return np.asarray(model.predict(features), dtype=np.float64)
    if not hasattr(model, "predict_proba"):
        return np.searchsorted(labels, model.predict(features)).astype(np.float64)
    found = np.zeros((features.num_rows, len(labels)))
    found[:, np.searchsorted(labels, model.classes_)] = model.predict_proba(features)
    return found
