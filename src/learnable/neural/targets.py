"""Targets of network models: classes and labels, or numbers; their heads, scores, predictions and spreads."""

from __future__ import annotations

import math
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.exceptions import DataConversionWarning

from ..core.declare import ArrayLike, Matches, Nothing, Number, Options, fitted
from ..core.errors import DataError, ModelFileError, ParameterError
from ..core.loaded import law, laws
from ..data.door import Table, check_two_classes, read_features, read_target
from ..risk.losses import AbsoluteLoss, GammaLoss, HuberLoss, PoissonLoss
from .heads import Head, LogisticHead, LossHead, SoftmaxHead, SquaredHead, head_of
from .model import Data, NetworkModel, _dense_rows
from .presets import bend, edges_of_bins, effective, measure_columns

Array = NDArray[Any]

_LOSSES: dict[str, Any] = {
    "poisson": PoissonLoss(),
    "absolute_error": AbsoluteLoss(),
    "huber": HuberLoss(1.0),
    "gamma": GammaLoss(),
}


_COLUMN = (
    "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples, ), for "
    "example using ravel()."
)


class _Scaled(NetworkModel):
    """Inputs that a preset scales."""

    center_: Any = fitted("(n_features,)", "Median of each column, where a preset scales.", optional=True)
    scale_: Any = fitted("(n_features,)", "1/(difference of its quartiles).", optional=True, low=0.0)

    edges_: Any = fitted(
        "(n_features, n_edges)", "Edges of the bins that a preset encodes the scaled columns by.", optional=True
    )

    def _scaled_inputs(self, X: Any, settings: SimpleNamespace) -> Any:
        self.center_ = None
        self.scale_ = None
        self.edges_ = None
        if settings.preset is None:
            return X
        rows = _dense_rows(X, np.float64)
        self.center_, self.scale_ = measure_columns(rows)
        bent = bend(rows, self.center_, self.scale_)
        self.edges_ = edges_of_bins(bent)
        return bent

    def _inputs(self, X: Array) -> Array:
        if getattr(self, "center_", None) is None:
            return X
        return np.ascontiguousarray(bend(X.astype(np.float64), self.center_, self.scale_), dtype=X.dtype)

    def _check_columns(self, draft: Any, known: bool) -> None:
        if known and draft.n_features_in_ != self.n_features_in_:
            owner = type(self).__name__
            raise DataError(
                f"{owner}: X has {draft.n_features_in_} features, but {owner} is expecting {self.n_features_in_} "
                "features as input. Pass the columns of the first call."
            )

    def _check_loaded(self) -> None:
        super()._check_loaded()
        scaled = all(getattr(self, name, None) is not None for name in ("center_", "scale_", "edges_"))
        if scaled and (self.edges_.shape[1] < 2 or (np.diff(self.edges_, axis=1) < 0).any()):
            raise ModelFileError("load: edges_ must not decrease, and there are at least two.")
        if (effective(self).preset is not None) != scaled:
            raise ModelFileError(
                f"load: {type(self).__name__} with a preset has center_, scale_ and edges_, without it none."
            )


class ClassTargets(_Scaled):
    """Labels: one column of classes, or an indicator matrix."""

    CLASS_WEIGHT = Nothing() | Options("balanced") | Matches(lambda v: isinstance(v, dict), "a dict of weights")

    classes_: Any = fitted(
        "array of labels", "The classes, sorted; for an indicator matrix the numbers of its columns."
    )
    multilabel_: bool = fitted("bool", "Whether labels do not exclude each other.")

    def _prepare(self, table: Table, settings: SimpleNamespace) -> Data:
        owner = type(self).__name__
        self.multilabel_ = isinstance(table.classes, list)
        if self.multilabel_:
            return self._prepare_labels(table, settings)
        known = getattr(self, "_known_classes", None)
        codes = np.asarray(table.y)
        classes = np.asarray(table.classes)
        if known is not None:
            codes = self._codes_among(known, classes, codes)
            classes = known
        else:
            check_two_classes(owner, classes)
        self.classes_ = classes
        K = len(classes)
        if K < 2:
            check_two_classes(owner, classes)
        weight = self._class_weighted(codes, K, table.weight)
        self.n_outputs_ = 1 if K == 2 else K
        self.out_activation_ = "logistic" if K == 2 else "softmax"
        y = codes[:, None].astype(np.float64) if K == 2 else codes.astype(np.int64)
        return Data(self._scaled_inputs(table.X, settings), y, weight)

    def _prepare_labels(self, table: Table, settings: SimpleNamespace) -> Data:
        owner = type(self).__name__
        values = [np.asarray(labels)[table.y[:, k]] for k, labels in enumerate(table.classes)]
        try:
            Y = np.column_stack(values).astype(np.float64)
        except (TypeError, ValueError):
            Y = np.full((1, 1), np.nan)
        if not np.isin(Y, (0.0, 1.0)).all():
            raise DataError(
                f"{owner}: Multioutput target data is not supported with label binarization: a y of several columns "
                "must be an indicator matrix of zeros and ones. Fit one model for each column otherwise."
            )
        if self.class_weight is not None:
            raise ParameterError(f"{owner}: class_weight is for one column of classes; got an indicator matrix.")
        self.classes_ = np.arange(Y.shape[1])
        self.n_outputs_ = Y.shape[1]
        self.out_activation_ = "logistic"
        return Data(self._scaled_inputs(table.X, settings), Y, table.weight)

    def _codes_among(self, known: Array, classes: Array, codes: Array) -> Array:
        strange = [label for label in classes.tolist() if label not in known.tolist()]
        if strange:
            raise DataError(
                f"{type(self).__name__}: y has the label {strange[0]!r}, which is not in the classes "
                f"{known.tolist()!r}. Pass all labels in the first call."
            )
        place = {label: k for k, label in enumerate(known.tolist())}
        return np.array([place[label] for label in classes.tolist()], dtype=np.int64)[codes]

    def _class_weighted(self, codes: Array, K: int, weight: Array | None) -> Array | None:
        given = getattr(self, "class_weight", None)
        if given is None:
            return weight
        if isinstance(given, str):
            totals = np.bincount(codes, weight, K)
            of_class = totals.sum() / (K * np.maximum(totals, 1e-300))
        else:
            of_class = np.array([given.get(label, 1.0) for label in self.classes_.tolist()], dtype=np.float64)
            if not ArrayLike(Number(low=0.0)).allows(of_class) or not of_class.any():
                raise ParameterError(
                    f"{type(self).__name__}: class_weight must be numbers >= 0, not all zero; got {given!r}."
                )
        own = of_class[codes]
        return np.asarray(own if weight is None else weight * own)

    def _head(self) -> Head:
        return SoftmaxHead() if self.out_activation_ == "softmax" else LogisticHead()

    def _score_of(self, z: Array, y: Array, weight: Array | None) -> float:
        if not np.isfinite(z).all():
            return math.nan
        right = (z.argmax(axis=1) == y) if y.ndim == 1 else ((z > 0) == (y > 0.5)).all(axis=1)
        return float(np.average(right, weights=weight))

    def _given_validation(self, X_val: Any, y_val: Any, settings: SimpleNamespace) -> Data:
        owner = type(self).__name__
        X = self._inputs(_dense_rows(read_features(self, X_val), np.float64))
        codes, classes = read_target(owner, y_val, "classes", self.multilabel_)
        if self.multilabel_:
            Y = np.column_stack([np.asarray(labels)[codes[:, k]] for k, labels in enumerate(classes)])
            return Data(X, Y.astype(np.float64), None)
        codes = self._codes_among(self.classes_, np.asarray(classes), np.asarray(codes))
        y = codes[:, None].astype(np.float64) if self.n_outputs_ == 1 else codes
        return Data(X, y, None)

    def _probabilities(self, z: Array) -> Array:
        if self.out_activation_ == "softmax":
            return np.asarray(softmax(z, axis=-1).mean(axis=0))
        p = np.asarray(expit(z).mean(axis=0))
        if self.multilabel_:
            return p
        return np.concatenate([1.0 - p, p], axis=-1)

    def _check_loaded(self) -> None:
        super()._check_loaded()
        K = len(self.classes_)
        wanted = K if self.multilabel_ or K > 2 else 1
        activation = "softmax" if K > 2 and not self.multilabel_ else "logistic"
        if self.n_outputs_ != wanted or self.out_activation_ != activation or K < 1:
            raise ModelFileError(f"load: {K} classes need {wanted} outputs and {activation}.")


class NumberTargets(_Scaled):
    """Numbers: one column or several."""

    LOSS = Matches(lambda v: hasattr(v, "value") and hasattr(v, "gradient"), "a loss of learnable.risk")

    y_mean_: Any = fitted("(n_outputs,)", "Means of the targets, where a preset standardises.", optional=True)
    y_scale_: Any = fitted("(n_outputs,)", "Their standard deviations.", optional=True, low=0.0)
    single_: bool = fitted("bool", "Whether y was one column, so that predictions are too.")
    noise_: Any = fitted("(n_outputs,)", "Mean squared residual, on the calibration rows if there are any.", low=0.0)
    calibration_scores_: Any = fitted(
        "(n_calibration,)", "Sorted |y − ŷ| of the rows kept out.", optional=True, low=0.0
    )
    calibration_rows_: Any = fitted("(n_calibration,)", "Their numbers.", optional=True, kind="iu", low=0)

    def _prepare(self, table: Table, settings: SimpleNamespace) -> Data:
        y = np.asarray(table.y, dtype=np.float64)
        if y.ndim == 2 and y.shape[1] == 1:
            warnings.warn(_COLUMN, DataConversionWarning, stacklevel=5)
            y = y[:, 0]
        self.single_ = y.ndim == 1
        y = y.reshape(len(y), -1)
        self.n_outputs_ = y.shape[1]
        head = self._head()
        exponential = isinstance(head, LossHead) and isinstance(head.loss, (PoissonLoss, GammaLoss))
        self.out_activation_ = "exp" if exponential else "identity"
        low = {PoissonLoss: 0.0, GammaLoss: np.nextafter(0.0, 1.0)}.get(type(getattr(head, "loss", None)))
        if low is not None and (y < low).any():
            rule = ">= 0" if low == 0.0 else "> 0"
            raise DataError(f"{type(self).__name__}: loss={self.loss!r} needs targets {rule}; got {y.min():g}.")
        self.y_mean_ = None
        self.y_scale_ = None
        if settings.preset is not None and self.out_activation_ == "identity":
            self.y_mean_ = np.average(y, axis=0, weights=table.weight)
            spread = np.sqrt(np.average((y - self.y_mean_) ** 2, axis=0, weights=table.weight))
            self.y_scale_ = np.where(spread > 0, spread, 1.0)
            y = (y - self.y_mean_) / self.y_scale_
        return Data(self._scaled_inputs(table.X, settings), y, table.weight)

    def _train(self, data: Data, settings: SimpleNamespace, previous: Any, run: Any) -> Any:
        share = getattr(settings, "calibration_fraction", None)
        self.calibration_rows_ = None
        self.calibration_scores_ = None
        kept = None
        if share is not None:
            data, kept = self._keep_out(data, share)
        certificate = super()._train(data, settings, previous, run)  # type: ignore[misc]
        self._measure_residuals(data if kept is None else kept)
        return certificate

    def _measure_residuals(self, rows: Data) -> None:
        """Set the noise and, of rows that were kept out, the calibration scores."""
        residual = self._from_scores(self._raw_scores(rows.X)) - self._from_targets(rows.y)
        self.noise_ = np.average(residual**2, axis=0, weights=rows.weight)
        if self.calibration_rows_ is not None:
            self.calibration_scores_ = np.sort(np.abs(residual).max(axis=1))

    def _keep_out(self, data: Data, share: float) -> tuple[Data, Data]:
        n = data.X.shape[0]
        wanted = math.ceil(share * n)
        if n - wanted < 1:
            raise DataError(f"{type(self).__name__}: calibration_fraction={share} of {n} rows leaves none to train on.")
        rng = np.random.default_rng([self.seed_, 2**21])
        held = np.zeros(n, dtype=bool)
        held[rng.permutation(n)[:wanted]] = True
        self.calibration_rows_ = np.flatnonzero(held)
        return data.part(~held), data.part(held)

    def _raw_scores(self, X: Any) -> Array:
        """Return the mean scores of rows that are scaled already."""
        network = self._built()
        parts = [network.predict(t, X, buffers=b) for t, b in zip(self.theta_, self.buffers_, strict=True)]
        return np.asarray(np.stack(parts).astype(np.float64))

    def _from_scores(self, z: Array) -> Array:
        """Return predictions in the units of y from the scores of all members."""
        head = self._head()
        mean = np.stack([head.mean(part) for part in z]).mean(axis=0)
        return np.asarray(mean if getattr(self, "y_mean_", None) is None else mean * self.y_scale_ + self.y_mean_)

    def _from_targets(self, y: Array) -> Array:
        return y if self.y_mean_ is None else y * self.y_scale_ + self.y_mean_

    def _head(self) -> Head:
        loss = getattr(self, "loss", "squared_error")
        if loss == "squared_error":
            return SquaredHead()
        return head_of(_LOSSES[loss] if isinstance(loss, str) else loss)

    def _score_of(self, z: Array, y: Array, weight: Array | None) -> float:
        prediction = self._head().mean(z.astype(np.float64))
        if not np.isfinite(prediction).all():
            return math.nan
        mean = np.average(y, axis=0, weights=weight)
        rest = np.average((y - prediction) ** 2, axis=0, weights=weight)
        total = np.average((y - mean) ** 2, axis=0, weights=weight)
        return float(np.mean(np.where(total > 0, 1.0 - rest / np.where(total > 0, total, 1.0), 0.0)))

    def _given_validation(self, X_val: Any, y_val: Any, settings: SimpleNamespace) -> Data:
        X = self._inputs(_dense_rows(read_features(self, X_val), np.float64))
        y, _ = read_target(type(self).__name__, y_val, "numeric", not self.single_)
        y = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
        return Data(X, y if self.y_mean_ is None else (y - self.y_mean_) / self.y_scale_, None)

    _laws = laws(
        law(
            "y_mean_ and y_scale_ belong together, and no scale is zero",
            lambda model: (
                (model.y_mean_ is None) == (model.y_scale_ is None) and (model.y_scale_ is None or model.y_scale_.all())
            ),
        ),
    )
