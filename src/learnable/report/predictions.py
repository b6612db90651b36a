"""Predictions beside the truth, for regressors and classifiers of every kind: what `ln.plot` shows of all of them."""

from __future__ import annotations

import contextlib
from typing import Any, Final, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor

from ..core.errors import DataError, LearnableError
from ..data.door import is_frame
from ..data.frames import open_frame
from ..evaluation.comparison.judge import draw_details, roc_curves
from ..evaluation.comparison.measures import Prediction
from ..plots import confusion_matrix, function_bands, reliability_diagram, residual_plot, scatter
from ..plots import roc_curves as draw_roc
from ..plots.markup import Markup, clean

Array = NDArray[np.float64]

_CELLS: Final = 12  # classes of a confusion matrix whose counts are written out
_GRID: Final = 200  # points of a curve
_LEVEL: Final = 0.9


class Shown(NamedTuple):
    """A model and the rows to look at."""

    model: Any
    X: Any  #: as it was given, for predictions; None if there are no rows
    rows: Array | None  #: the same as numbers; None if they are no numbers
    y: NDArray[Any] | None
    names: list[str]

    @property
    def owner(self) -> str:
        """The name of the model."""
        return type(self.model).__name__

    def has(self, *attributes: str) -> bool:
        """Tell whether the fit has left all of these."""
        return all(vars(self.model).get(name) is not None for name in attributes)

    def need_rows(self, what: str) -> Array:
        """Return the rows, or say that they are needed."""
        if self.rows is None:
            raise DataError(f"plot: {self.owner} needs rows of numbers to show {what}; call plot(model, X).")
        return self.rows


def predictions(shown: Shown, beside: int) -> list[Markup]:
    """Return how predictions compare with the targets, for a place beside other figures; nothing without targets."""
    if shown.y is None or shown.X is None or not hasattr(shown.model, "predict"):
        return []
    if is_classifier(shown.model):
        return _class_predictions(shown)
    if not is_regressor(shown.model) or shown.y.ndim != 1:
        return []
    predicted = np.asarray(shown.model.predict(shown.X), dtype=np.float64)
    if predicted.ndim != 1:
        return []
    actual = np.asarray(shown.y, dtype=np.float64)
    residuals = residual_plot(predicted, actual, title="Residuals")
    if beside == 1:
        return [residuals]  # one pair of figures
    agreement = scatter(
        predicted, actual, title="Actual against predicted", x_label="predicted", y_label="actual", reference="diagonal"
    )
    return [agreement, residuals]


def _class_predictions(shown: Shown) -> list[Markup]:
    model = shown.model
    if shown.y is None or shown.y.ndim != 1 or not isinstance(getattr(model, "classes_", None), np.ndarray):
        return []
    labels = np.union1d(model.classes_, shown.y)
    truth = np.searchsorted(labels, shown.y)
    codes = np.searchsorted(labels, np.asarray(model.predict(shown.X)))
    names = [clean(label, 20) for label in labels.tolist()]
    known = np.searchsorted(labels, model.classes_)
    figures = []
    probabilities = None
    if hasattr(model, "predict_proba"):
        probabilities = np.zeros((len(codes), len(labels)))
        probabilities[:, known] = model.predict_proba(shown.X)
    curves = roc_curves(truth, _scores(shown, probabilities, known, len(labels)), names)
    details = draw_details(truth, Prediction(codes, probabilities), names, 0)
    if curves:
        areas = sorted(curve["auc"] for curve in curves)
        title = f"ROC of {curves[0]['label']}: area {areas[0]:.3f}"
        if len(curves) > 1:
            title = f"ROC, each class against the rest: areas {areas[0]:.3f} to {areas[-1]:.3f}"
        figures.append(draw_roc([(curve["label"], curve["fpr"], curve["tpr"]) for curve in curves], title=title))
    table = details["calibration"]
    if table is not None:
        figures.append(
            reliability_diagram(table["mean_predicted"], table["observed"], table["count"], title="Calibration")
        )
    matrix = details["confusion"]
    side = 220.0 if len(matrix["labels"]) <= _CELLS else 300.0
    write = len(matrix["labels"]) <= _CELLS
    figures.append(confusion_matrix(matrix["labels"], matrix["counts"], side=side, numbers=write))
    return figures


def _scores(shown: Shown, probabilities: Any, known: Any, n_labels: int) -> Array:
    """Return a number per class that grows with its chance: probabilities, scores, or the prediction itself."""
    if probabilities is not None:
        return np.asarray(probabilities)
    spread = np.full((len(shown.y), n_labels), -np.inf) if shown.y is not None else np.empty((0, 0))
    if not hasattr(shown.model, "decision_function"):
        chosen = np.searchsorted(shown.model.classes_, np.asarray(shown.model.predict(shown.X)))
        spread[:, known] = np.eye(len(known))[chosen]
    else:
        found = np.asarray(shown.model.decision_function(shown.X), dtype=np.float64)
        spread[:, known] = np.column_stack([-found, found]) if found.ndim == 1 else found[:, : len(known)]
    return np.where(np.isfinite(spread), spread, -1e300)


def curve(shown: Shown) -> list[Markup]:
    """Return the predicted function of one column, with its band where the model has one, and the rows."""
    rows = shown.need_rows("its curve")
    low = float(np.nanmin(rows))
    high = float(np.nanmax(rows))
    margin = 0.05 * (high - low or 1.0)
    grid = np.linspace(low - margin, high + margin, _GRID)[:, None]
    asked = like(shown.X, grid)
    mean = np.asarray(shown.model.predict(asked), dtype=np.float64).reshape(_GRID, -1)[:, 0]
    bands: dict[str, Any] = {}
    if hasattr(shown.model, "predict_interval"):
        with contextlib.suppress(LearnableError, ValueError, TypeError, AttributeError):  # not all fits have intervals
            bands[f"{100 * _LEVEL:g} % of new values"] = shown.model.predict_interval(asked, level=_LEVEL)
    points = None if shown.y is None else (rows[:, 0], np.asarray(shown.y, dtype=np.float64))
    drawn = function_bands(
        grid[:, 0], mean, bands, points=points, title=f"{shown.owner}: predicted function", x_label=shown.names[0]
    )
    return [drawn]


def like(X: Any, columns: Array) -> Any:
    """Return columns of numbers in the container of X: a frame with the same names, or the array."""
    if not is_frame(X):
        return columns
    frame = open_frame("plot", X)
    named = {name: columns[:, j] for j, name in enumerate(frame.columns)}
    return nw.from_dict(named, backend=frame.implementation).to_native()
