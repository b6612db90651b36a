"""The record of one fitted model on given rows, in the shape of a comparison's record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from ..core.errors import LearnableError
from ..core.estimator import Certificate, Estimator
from ..data.door import is_frame
from ..data.frames import open_frame
from ..evaluation.comparison.judge import coefficients, draw_details, holdout_interval, proven_of
from ..evaluation.comparison.measures import Prediction, measure_all, measures_for, ranking_measure
from ..evaluation.comparison.record import FORMAT, VERSION, new_row, plain, timestamp, versions

_LEVEL: Final = 0.95
_MOST_PROFILED: Final = 5000
_MOST_SHUFFLED: Final = 60
_SHUFFLED_ROWS: Final = 2000
_REPEATS: Final = 5
_MOST_SECONDS: Final = 20.0


@dataclass(frozen=True)
class Subject:
    """A model, and what it says of some rows.

    Attributes
    ----------
    model : estimator
        Fitted.
    X : array, sparse array or dataframe
        The rows.
    truth : (n,) float64, or int64 codes of classes
        Targets.
    prediction : Prediction
        What the model says.
    labels : (K,) array or None
        The classes, sorted; None for a regression.
    target, source : str
        Names of the target and of where the rows come from.
    seconds : float
        How long the prediction took.
    """

    model: Any
    X: Any
    truth: NDArray[Any]
    prediction: Prediction
    labels: NDArray[Any] | None
    target: str
    source: str
    seconds: float

    @property
    def task(self) -> str:
        """What is predicted."""
        if self.labels is None:
            return "regression"
        return "binary" if len(self.labels) == 2 else "multiclass"

    @property
    def classes(self) -> list[str] | None:
        """The labels as text."""
        return None if self.labels is None else [str(label) for label in self.labels.tolist()]

    @property
    def targets(self) -> NDArray[Any]:
        """The targets as they were given."""
        return self.truth if self.labels is None else self.labels[self.truth]


def one_model_record(subject: Subject) -> dict[str, Any]:
    """Return the record that a report on one model shows."""
    model = subject.model
    measure = ranking_measure(subject.task)
    name = _name(model)
    certificate = getattr(model, "certificate_", getattr(_inner(model), "certificate_", None))
    proof = certificate.to_dict() if isinstance(certificate, Certificate) else None
    row = _row(subject, name, type(model).__name__, subject.prediction)
    row |= {"rank": 1, "certificate": proof, "predict_seconds": subject.seconds}
    method = row.pop("method")
    details = draw_details(subject.truth, subject.prediction, subject.classes, 0)
    details |= {"on": "given", "certificate": proof}
    details |= {"coefficients": _coefficients(subject), "importances": _importances(subject)}
    record = {
        "format": FORMAT,
        "version": VERSION,
        "subject": "model",
        "created": timestamp(),
        "seed": None,
        "versions": versions(),
        "command": None,
        "python": None,
        "machine": {},
        "status": "complete",
        "data": _data(subject),
        "protocol": {
            "scheme": "on the rows given; nothing was refitted",
            "folds": 0,
            "repeats": 0,
            "train_rows": None,
            "holdout_rows": None,
            "metric": measure.to_record(),
            "also": [other.name for other in measures_for(subject.task) if other is not measure],
            "level": _LEVEL,
            "seconds_limit": None,
        },
        "leaderboard": [row, _baseline(subject)],
        "winner": {
            "name": name,
            "holdout": {"score": row["mean"], "low": row["low"], "high": row["high"], "method": method}
            | {"proven": proven_of(model, subject.X, subject.targets)},
            "optimism_note": _whose_rows(subject),
            "model_file": None,
            "predict_command": None,
            "intervals": None,
        },
        "details": {name: details},
        "advice": [],
        "timing": {"total": subject.seconds, "models": subject.seconds, "overhead": 0.0},
    }
    return plain(record)  # type: ignore[no-any-return]


def _row(subject: Subject, name: str, kind: str, prediction: Prediction) -> dict[str, Any]:
    measure = ranking_measure(subject.task)
    also = measure_all(subject.task, subject.truth, prediction)
    interval = holdout_interval(measure, subject.truth, prediction, _LEVEL, 0)
    mean = also.pop(measure.name)
    scores = {"mean": mean, "low": interval.low, "high": interval.high, "method": interval.method}
    reason = None if np.isfinite(mean) else "the measure is not defined on these rows"
    return dict(new_row(name, kind, {})) | scores | {"status": "ok", "reason": reason, "also": also}


def _baseline(subject: Subject) -> dict[str, Any]:
    """Return the line of a constant guess, the best one for these rows."""
    n = len(subject.truth)
    if subject.labels is None:
        name = "Always the mean"
        guess = Prediction(np.full(n, subject.truth.mean()))
    else:
        shares = np.bincount(subject.truth, minlength=len(subject.labels)) / n
        name = "Always the most frequent class"
        guess = Prediction(np.full(n, int(shares.argmax())), np.tile(shares, (n, 1)))
    row = _row(subject, name, "constant", guess)
    row.pop("method")
    return row | {"rank": 2, "baseline": True}


def _name(model: Any) -> str:
    if isinstance(model, Pipeline):
        steps = [type(step).__name__ for _, step in model.steps if step is not None and step != "passthrough"]
        return " → ".join(steps) or "Pipeline"
    inner = getattr(model, "model_", None)
    return type(model).__name__ if inner is None else f"{type(inner).__name__} on an encoded table"


def _inner(model: Any) -> Any:
    """Return the model that sees the numbers: the last step of a pipeline, the model of a TableModel."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else getattr(model, "model_", model)


def _coefficients(subject: Subject) -> list[dict[str, Any]] | None:
    inner = _inner(subject.model)
    coef = getattr(inner, "coef_", None)
    if coef is None or sp.issparse(coef) or np.asarray(coef).dtype == object:
        return None
    return coefficients(inner, _feature_names(subject, np.shape(coef)[-1]), subject.classes, _LEVEL)


def _feature_names(subject: Subject, n_features: int) -> list[str]:
    """Return the names of what the inner model sees, as well as they are known."""
    model = subject.model
    encoder = getattr(model, "encoder_", None)
    if isinstance(model, Pipeline) and len(model.steps) > 1:
        encoder = model[:-1]
    try:
        names = list(model.feature_names_in_ if encoder is None else encoder.get_feature_names_out())
    except (AttributeError, ValueError, TypeError):  # a step that cannot name its output
        names = []
    return [str(name) for name in names] if len(names) == n_features else [f"x{j}" for j in range(n_features)]


def _importances(subject: Subject) -> list[dict[str, Any]] | None:
    """Return permutation importances on some of the rows, where that takes seconds and not minutes."""
    from ..evaluation.estimates.importance import permutation_importance

    n_rows, n_columns = subject.X.shape if hasattr(subject.X, "shape") else np.shape(subject.X)
    rows = np.unique(np.linspace(0, n_rows - 1, min(n_rows, _SHUFFLED_ROWS)).round().astype(int))
    expected = subject.seconds * len(rows) / n_rows * n_columns * _REPEATS
    if n_columns > _MOST_SHUFFLED or n_rows < 2 or expected > _MOST_SECONDS:
        return None
    try:
        found = permutation_importance(subject.model, _take(subject.X, rows), subject.targets[rows], n_repeats=_REPEATS)
    except (LearnableError, ValueError, TypeError):  # a model that cannot be asked this way goes without
        return None
    return found.to_dict()["importances"]  # type: ignore[no-any-return]


def _take(X: Any, rows: NDArray[np.int64]) -> Any:
    if is_frame(X):
        return open_frame("report", X)[rows.tolist()].to_native()
    return X[rows] if hasattr(X, "shape") else np.asarray(X)[rows]


def _whose_rows(subject: Subject) -> str:
    """Return what is known about whether the model was fitted on these rows."""
    model = subject.model
    certificate = getattr(model, "certificate_", None)
    if not isinstance(model, Estimator) or not isinstance(certificate, Certificate) or not certificate.fingerprint:
        return "If it was fitted on these rows, expect less on new ones."
    try:
        table = type(model)._door(model._draft(), subject.X, subject.targets, None, None)
    except LearnableError:  # rows that a fit would refuse were not fitted on
        return "These are not the rows it was fitted on."
    if table.fingerprint == certificate.fingerprint:
        return "It was fitted on these very rows: expect less on new ones."
    return "These are not the rows it was fitted on."


def _data(subject: Subject) -> dict[str, Any]:
    """Return what the rows hold."""
    n_rows, n_columns = subject.X.shape if hasattr(subject.X, "shape") else np.shape(subject.X)
    counts = None if subject.labels is None else np.bincount(subject.truth, minlength=len(subject.labels))
    known = {
        "source": subject.source,
        "rows": n_rows,
        "columns": n_columns + 1,
        "target": subject.target,
        "task": subject.task,
        "task_reason": "the model is a regressor" if subject.labels is None else "the model is a classifier",
        "classes": subject.classes,
        "class_counts": counts,
        "duplicate_rows": 0,
        "fingerprint": None,
        "profile": [],
        "warnings": [],
    }
    if sp.issparse(subject.X) or n_columns > _MOST_PROFILED:
        known["warnings"] = [
            {"kind": "size", "column": None, "text": "The columns are sparse or too many to describe."}
        ]
        return known
    from ..data.profile import profile

    found = profile(_with_target(subject), subject.target).to_dict()
    return known | {key: found[key] for key in ("duplicate_rows", "profile", "warnings")}


def _with_target(subject: Subject) -> Any:
    """Return one table of the columns and the target."""
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    values = subject.targets if subject.targets.dtype.kind in "biuf" else [str(value) for value in subject.targets]
    if is_frame(subject.X):
        frame = open_frame("report", subject.X)
        backend = nw.get_native_namespace(frame)
        series = nw.new_series(subject.target, values, backend=backend)
        return frame.with_columns(series).to_native()
    X = np.asarray(subject.X)
    return pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])} | {subject.target: pa.array(values)})
