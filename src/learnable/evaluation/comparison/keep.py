"""The model that is kept: encoder, model and, for numbers, prediction intervals with a guarantee, in one file."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...core.model_file import save
from ...core.registry import REGISTRY
from ...data.encoder import TableEncoder
from ...meta.table_model import TableModel
from ..conformal.models import ConformalRegressor
from ..splits import make_splits
from .candidates import Candidate, wants_dense
from .clock import cut_of
from .record import plain
from .warm import get_ready
from .workspace import FINAL, Report, dense_encoder, read_features, read_readings, read_rows

INTERVAL_METHODS: Final = ("cv+", "cv", "split", "jackknife+", "none")
LEVEL: Final = 0.9


def interval_method(candidate: Candidate) -> str:
    """Return how a candidate's intervals are made: "cv+" where the models of the folds are small, otherwise "cv".

    A model whose size grows with the rows, such as a forest, would be kept six times; of its folds only the residuals
    are kept.

    Examples
    --------
    >>> from learnable.evaluation.comparison.candidates import candidates_for
    >>> [interval_method(c) for c in candidates_for("regression", ["LinearRegression", "ExtraTreesRegressor"])[1:]]
    ['cv+', 'cv']
    """
    entry = REGISTRY.get(candidate.model)
    small = candidate.baseline or (entry is not None and entry.traits is not None and entry.traits.parametric)
    return "cv+" if small else "cv"


def table_model(
    model: Any,
    task: str,
    *,
    intervals: str = "cv+",
    seed: int = 0,
    groups: Any = None,
    dense: bool = False,
    readings: Any = None,
) -> Any:
    """Return an unfitted model that takes the table as it is; for numbers, with conformal intervals unless "none".

    With groups, the folds of "cv+" and "cv" keep them together: a new row is then one of a new group. `readings` says
    how columns of text are read that hold dates or amounts.
    """
    kind = "regression" if task == "regression" else "classification"
    encoder = TableEncoder(task=kind, readings=readings or None)
    if dense:  # as in the race: dense where the usual encoding would be sparse, otherwise the same
        encoder = dense_encoder(kind, readings or None)
    wrapped = TableModel(model, encoder=encoder)
    if task != "regression" or intervals == "none":
        return wrapped
    cv: Any = 5
    if groups is not None and intervals in ("cv", "cv+"):
        cv = make_splits(len(groups), scheme="grouped", n_splits=5, groups=groups, random_state=seed)
    return ConformalRegressor(wrapped, method=intervals, cv=cv, level=LEVEL, random_state=seed)


def chance_range(level: float, n_rows: int, n_new: int) -> dict[str, float]:
    """Return the share of new rows in which intervals of this level may hold the target, nineteen times in twenty.

    The level is an average over rows that calibrate: given n of them, the probability itself has a beta distribution
    (Vovk 2012), and the count of n_new rows is beta-binomial.

    Examples
    --------
    >>> found = chance_range(0.9, 960, 240)
    >>> round(found["low"], 3), round(found["high"], 3)
    (0.854, 0.942)
    """
    from scipy.stats import betabinom

    hits = int(np.ceil(level * (n_rows + 1)))
    law = betabinom(n_new, hits, max(n_rows + 1 - hits, 1))
    return {"low": float(law.ppf(0.025)) / n_new, "high": float(law.ppf(0.975)) / n_new}


def keep_candidate(
    report: Report,
    folder: str,
    candidate: Candidate,
    task: str,
    labels: Any,
    target: str,
    seed: int,
    file: str,
    groups: Any = None,
    max_seconds: float | None = None,
    intervals: bool = True,
    threshold: float | None = None,
) -> None:
    """Fit a candidate to all rows and save it in the folder; a job. Reports `{"seconds", "cut"}`."""
    warnings.simplefilter("ignore")
    get_ready(report, candidate, task)
    began = time.perf_counter()
    y = np.load(Path(folder) / "y.npy")
    method = interval_method(candidate) if intervals else "none"
    model = table_model(
        candidate.build(seed, max_seconds),
        task,
        intervals=method,
        seed=seed,
        groups=groups,
        dense=wants_dense(candidate),
        readings=read_readings(Path(folder)),
    )
    model.fit(read_features(Path(folder)), y if labels is None else labels[y])
    cut = cut_of(model)
    if cut is None and max_seconds is not None:
        forget_limits(model, limits_of(candidate.build(seed, max_seconds)) - limits_of(candidate.build(seed)))
    if threshold is not None and hasattr(model, "threshold"):
        model.threshold = threshold
    save(with_target(model, target), Path(folder) / file)
    report({"seconds": time.perf_counter() - began, "cut": cut})


def limits_of(model: Any) -> set[float]:
    """Return the values of `max_seconds` in a model that is not fitted, and in the models inside it."""
    given = model.get_params(deep=True).items()
    inside = [part for part in getattr(model, "estimators", None) or [] if hasattr(part, "get_params")]
    found = {value for key, value in given if key.rpartition("__")[2] == "max_seconds" and value is not None}
    return found.union(*(limits_of(part) for part in inside))


def forget_limits(model: Any, limits: set[float]) -> None:
    """Take the comparison's own time limits out of a fitted model: another fit has limits of its own.

    Only for a fit that is complete; of one that was cut, the limit is what explains it.
    """
    if getattr(model, "max_seconds", None) in limits:
        model.max_seconds = None
    for value in vars(model).values():
        for part in value if isinstance(value, (list, tuple)) else [value]:
            if hasattr(part, "get_params") and not isinstance(part, type):
                forget_limits(part, limits)


def with_target(model: Any, target: str) -> Any:
    """Let a fitted model remember the name of its target, so that it need not be named again."""
    model.target_name_ = target
    return model


def cover_holdout(
    report: Report,
    folder: str,
    candidate: Candidate,
    task: str,
    seed: int,
    groups: Any = None,
    max_seconds: float | None = None,
) -> None:
    """Fit prediction intervals to the training rows and count the rows of the hold-out in them; a job."""
    warnings.simplefilter("ignore")
    get_ready(report, candidate, task)
    where = Path(folder)
    features = read_features(where)
    y = np.load(where / "y.npy")
    train, test = read_rows(where, FINAL)
    method = interval_method(candidate)
    model = table_model(
        candidate.build(seed, max_seconds),
        task,
        intervals=method,
        seed=seed,
        groups=None if groups is None else groups[train],
        dense=wants_dense(candidate),
        readings=read_readings(where),
    )
    model.fit(features.take(train), y[train])
    lower, upper = model.predict_interval(features.take(test))
    covered = (lower <= y[test]) & (y[test] <= upper)
    finite = np.isfinite(lower) & np.isfinite(upper)
    found = {
        "method": method,
        "level": LEVEL,
        "holdout_coverage": float(np.mean(covered)),
        "chance": chance_range(LEVEL, len(train), len(test)),
        "mean_width": float(np.mean((upper - lower)[finite])) if finite.any() else None,
    }
    report(plain(found))
