"""The report of one fitted model on one table: a record of the same shape as a comparison's, from predictions alone.

Nothing is refitted. The score is on the rows given, and the report says so; where the model carries the fingerprint of
its training data, the report can tell whether these are the same.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..core.errors import DataError, DataTypeError, LearnableError
from ..core.estimator import Certificate, Estimator
from ..core.model_file import writing
from ..data.door import is_frame, read_values, take_named_columns
from ..data.frames import open_frame
from ..evaluation.comparison.judge import coefficients, draw_details, holdout_interval, proven_of
from ..evaluation.comparison.measures import Prediction, measure_all, measures_for, ranking_measure
from ..evaluation.comparison.record import FORMAT, VERSION, new_row, plain, timestamp, versions
from .advice import advise
from .render import render

_HEIGHT: Final = 720


@dataclass(frozen=True)
class Report:
    """A report, as a page and as the record it shows.

    Attributes
    ----------
    html : str
        The page: one file, offline, without scripts.
    record : dict
        Every number of the page, as plain JSON types.
    """

    html: str = field(repr=False)
    record: dict[str, Any] = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file and return its path."""
        with writing(path) as file:
            file.write(self.html.encode("utf-8"))
        return Path(path)

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own, so that its style does not touch the notebook's."""
        style = f"width:100%;height:{_HEIGHT}px;border:0"
        return f'<iframe sandbox="" title="Report" style="{style}" srcdoc="{escape(self.html)}"></iframe>'


def report(model: Any, X: Any, y: Any, *, file: str | os.PathLike[str] | None = None) -> Report:
    """Report on one fitted model: score, figures, coefficients, how well the fit was solved.

    Parameters
    ----------
    model : estimator
        A fitted regressor or classifier, of this library or of scikit-learn, pipelines included.
    X : array, sparse array, dataframe or path
        Rows to judge it on; rows that it was not fitted on, if you have them.
    y : array of shape (n_samples,) or str
        Their targets; with a dataframe or a path, the name of a column.
    file : path, optional
        Where to write the page.

    Returns
    -------
    Report
        `.html`, `.record` and `.save(path)`; a notebook shows it.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.linear import LinearRegression
    >>> from learnable.report import report
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> page = report(LinearRegression().fit(X, X @ [1.0, -2.0]), X, X @ [1.0, -2.0])
    >>> round(page.record["winner"]["holdout"]["score"], 6)
    1.0
    """
    check_is_fitted(model)
    X, y, target, source = _read(X, y)
    labels = _labels(model, y) if _classifies(model) else None
    truth = _numbers(y) if labels is None else np.searchsorted(labels, y)
    began = time.perf_counter()
    prediction = _predict(model, X, labels)
    seconds = time.perf_counter() - began
    if len(prediction.values) != len(truth):
        raise DataError(f"report: the model predicts {len(prediction.values)} values for {len(truth)} rows.")
    record = one_model_record(Subject(model, X, truth, prediction, labels, target, source, seconds))
    record["advice"] = advise(record)
    page = Report(render(record), record)
    if file is not None:
        page.save(file)
    return page


def _read(X: Any, y: Any) -> tuple[Any, NDArray[Any], str, str]:
    """Return rows, targets, the name of the target and where the rows come from."""
    source = f"{type(X).__name__} in memory"
    if isinstance(X, (str, os.PathLike)):
        from ..data.files import read_table

        source = Path(X).name
        X = read_table(X)
    name = y if isinstance(y, str) else str(getattr(y, "name", None) or "y")
    X, y, _ = take_named_columns("report", X, y, None)
    values = np.asarray(read_values("report", y))
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DataError(
            f"report: y must have one value per row, got shape {values.shape}. Report one target at a time."
        )
    if not len(values):
        raise DataError("report: y has no rows. Pass at least one.")
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_rows != len(values):
        raise DataError(f"report: X has {n_rows} rows, y has {len(values)}. Pass one target per row.")
    taken = {str(column) for column in open_frame("report", X).columns} if is_frame(X) else set()
    while name in taken:
        name += " (target)"
    return X, values, name, source


def _classifies(model: Any) -> bool:
    if not hasattr(model, "predict"):
        raise DataTypeError(f"report: {type(model).__name__} has no predict. Pass a regressor or a classifier.")
    return bool(is_classifier(model)) or hasattr(model, "classes_")


def _labels(model: Any, y: NDArray[Any]) -> NDArray[Any]:
    """Return all classes, those of the model and those of the targets, sorted."""
    known = getattr(model, "classes_", None)
    try:
        return np.unique(y) if known is None else np.union1d(known, y)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in y.tolist()})
        raise DataTypeError(
            f"report: labels of types {', '.join(kinds)} cannot be sorted. Make them one type."
        ) from error


def _numbers(y: NDArray[Any]) -> NDArray[np.float64]:
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataTypeError(f"report: a regressor needs numbers as targets; {error}.") from error
    if not np.isfinite(values).all():
        raise DataError("report: y holds values that are missing or infinite. Leave these rows out.")
    return values


def _predict(model: Any, X: Any, labels: NDArray[Any] | None) -> Prediction:
    values = np.asarray(read_values("report", model.predict(X))).reshape(-1)
    if labels is None:
        return Prediction(values.astype(np.float64))
    codes = np.searchsorted(labels, values)
    if not hasattr(model, "predict_proba"):
        return Prediction(codes)
    known = np.asarray(read_values("report", model.predict_proba(X)), dtype=np.float64)
    spread = np.zeros((len(codes), len(labels)))
    spread[:, np.searchsorted(labels, model.classes_)] = known
    return Prediction(codes, spread)


# --------------------------------------------------------------------------------------------------------------------
# The record of one fitted model on given rows, in the shape of a comparison's record.


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
    names = _feature_names(subject, np.shape(coef)[-1])
    rows = (subject.X, subject.targets) if _was_fitted_on_them(subject) else None
    return coefficients(inner, names, subject.classes, _LEVEL, rows)


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
    known = _was_fitted_on_them(subject)
    if known is None:
        return "If it was fitted on these rows, expect less on new ones."
    if known:
        return "It was fitted on these very rows: expect less on new ones."
    return "These are not the rows it was fitted on."


def _was_fitted_on_them(subject: Subject) -> bool | None:
    """Tell whether the model was fitted on these rows, by their fingerprint; None if it has none."""
    model = subject.model
    certificate = getattr(model, "certificate_", None)
    if not isinstance(model, Estimator) or not isinstance(certificate, Certificate) or not certificate.fingerprint:
        return None
    try:
        table = type(model)._door(model._draft(), subject.X, subject.targets, None, None)
    except LearnableError:  # rows that a fit would refuse were not fitted on
        return False
    return bool(table.fingerprint == certificate.fingerprint)


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
