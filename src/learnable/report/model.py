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
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from ..core.atomic import writing
from ..core.errors import DataError, DataTypeError
from ..data.door import is_frame, read_values, take_named_columns
from ..data.frames import open_frame
from ..evaluation.comparison.measures import Prediction
from .advice import advise
from .one_model import Subject, one_model_record
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
        raise DataError(f"report: y must have one value a row, got shape {values.shape}. Report one target at a time.")
    if not len(values):
        raise DataError("report: y has no rows. Pass at least one.")
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_rows != len(values):
        raise DataError(f"report: X has {n_rows} rows, y has {len(values)}. Pass one target a row.")
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
