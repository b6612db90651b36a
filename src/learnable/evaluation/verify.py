"""Independent checks of conformal and calibrated models: their defining equations, from the models and the rows alone.

The rows must come in the order of the fit, because folds are sets of row numbers; the fingerprint knows the order. A
conformal model is what it says if every score is what the model of its fold gives for that row (for the leave-one-out
coefficients of jackknife+: if each of them solves the equations without its row). A calibrator is what it says if no
change improves its fit to its rows. Where the inner model carries a certificate of its own, it is checked too.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import clone

from ..core import Array, LearnableError, NDArray, Recheck, VerificationError, verify
from ..data.rows import Sample, sample_door, take_rows

#: What predictions may differ by when the same numbers are added in another order.
_ROUNDING = 1e-10


@np.errstate(all="ignore")  # a model may hold anything; NaN then fails the comparison
def conformal_regressor(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a ConformalRegressor."""
    sample = _read("numeric", model, X, y, sample_weight)
    if sample is None:
        return _OTHER_ROWS
    size = np.abs(sample.y).max(initial=0.0) or 1.0
    if model._is_linear():
        coef = model.loo_coef_
        intercept = model.loo_intercept_
        table = _numbers(sample.X)
        again = np.abs(sample.y - (table * coef).sum(axis=1) - intercept)
        value = _equations_without_each_row(table, sample, coef, intercept, model)
        return _with_inner(model, sample, max(value, float(np.abs(again - model.scores_).max()) / size))
    value = 0.0
    for k, rows in _folds(model):
        part = take_rows(sample.X, rows)
        again = np.abs(sample.y[rows] - np.ravel(_fold_model(model, k, sample).predict(part)))
        spread = 1.0
        if model.scale is not None:
            low, high = model.scale_range_
            spread = np.exp(np.minimum(np.maximum(np.ravel(model.scale_.predict(part)), low), high))
        stored = model.scores_[np.searchsorted(np.flatnonzero(model.folds_ >= 0), rows)] * spread
        value = max(value, float(np.abs(again - stored).max()) / size)
    return _with_inner(model, sample, value)


@np.errstate(all="ignore")
def conformal_classifier(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a ConformalClassifier."""
    sample = _read("classes", model, X, y, sample_weight)
    labels = model.classes_.tolist()
    # The labels of the rows in their order; of a model that came fitted, all that it knows in its own order.
    stated = [np.asarray(known).tolist() for known in (model.estimator_.classes_, getattr(sample, "classes", []))]
    if sample is None or labels not in stated or not set(stated[1]) <= set(labels):
        return _OTHER_ROWS
    value = 0.0
    for k, rows in _folds(model):
        inner = _fold_model(model, k, sample)
        known = np.asarray(inner.classes_).tolist()
        found = np.asarray(inner.predict_proba(take_rows(sample.X, rows)), dtype=np.float64)
        p = dict(zip(known, found.T, strict=True))
        nothing = np.zeros(len(rows))
        table = np.stack([p.get(label, nothing) for label in labels])  # (K, rows)
        own = np.array([p.get(label, nothing)[i] for i, label in enumerate(sample.labels(rows).tolist())])
        place = np.searchsorted(np.flatnonzero(model.folds_ >= 0), rows)
        if model.conformity_score == "lac":
            again = 1.0 - own
        else:
            again = np.where(table > own, table, 0.0).sum(axis=0) + model.uniform_[place] * own
        value = max(value, float(np.abs(again - model.scores_[place]).max()))
    return _with_inner(model, sample, value)


@np.errstate(all="ignore")
def calibrated_classifier(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a CalibratedClassifier: the worst gradient of its calibrators."""
    sample = _read("classes", model, X, y, sample_weight)
    if sample is None or not np.array_equal(np.asarray(sample.classes), model.classes_):
        return _OTHER_ROWS
    value = 0.0
    w = np.ones(sample.n_rows) if sample.weight is None else sample.weight
    for inner, maps, rows in zip(model.estimators_, model.calibrators_, model.calibration_rows_, strict=True):
        scores = _columns(inner, take_rows(sample.X, rows))
        labels = sample.labels(rows)
        known = np.asarray(inner.classes_)
        if model.method == "temperature":
            seen = np.isin(labels, known)
            codes = np.searchsorted(known, labels[seen])
            logits = scores[seen] if hasattr(inner, "decision_function") else np.log(scores[seen] + 1e-12)
            value = max(value, _temperature_residual(maps[0].beta, logits, codes, w[rows][seen]))
            continue
        pairs = [(scores[:, 1], known[1])] if len(model.classes_) == 2 else list(zip(scores.T, known, strict=True))
        for one, (column, label) in zip(maps, pairs, strict=True):
            residual = _sigmoid_residual if model.method == "sigmoid" else _isotonic_residual
            value = max(value, residual(one, column, labels == label, w[rows]))
    return Recheck(value, _ROUNDING, sample.fingerprint)


_OTHER_ROWS = Recheck(np.inf, 0.0, "of other rows or labels")


def _read(target: Any, model: Any, X: Any, y: Any, sample_weight: Any) -> Sample | None:
    """Return the rows; None if they cannot be those of the fit."""
    try:
        sample = sample_door(target)(model, X, y, sample_weight)
    except LearnableError as error:
        raise VerificationError(f"verify: the data are not those of a fit: {error}") from error
    if hasattr(model, "folds_"):
        return sample if len(model.folds_) == sample.n_rows else None
    largest = max(int(rows.max(initial=-1)) for rows in model.calibration_rows_)
    return sample if largest < sample.n_rows else None


def _folds(model: Any) -> list[tuple[int, NDArray[np.int64]]]:
    return [(k, np.flatnonzero(model.folds_ == k)) for k in range(int(model.folds_.max()) + 1)]


def _fold_model(model: Any, k: int, sample: Sample) -> Any:
    """Return the model that scored a fold; one that was not kept is fitted again."""
    if model.method != "cv":
        return model.estimator_ if model.method == "split" else model.estimators_[k]
    train = np.flatnonzero(model.folds_ != k)
    weight = sample.weights(train)
    weights = {} if weight is None else {"sample_weight": weight}
    inner = clone(model.estimator_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return inner.fit(take_rows(sample.X, train), sample.labels(train), **weights)


def _with_inner(model: Any, sample: Sample, value: float) -> Recheck:
    """Return the finding, with the verdict on the model behind `predict` from the rows that it was fitted to."""
    inner = model.estimator_
    # A model that came fitted has rows of its own, which are not here.
    train = np.flatnonzero(model.folds_ < 0) if model.method == "split" else np.arange(sample.n_rows)
    certificate = getattr(inner, "certificate_", None)
    verdict = None
    if len(train) and certificate is not None and certificate.kind != "none":
        with contextlib.suppress(VerificationError):  # a model of another library, with a certificate of its own
            verdict = verify(inner, take_rows(sample.X, train), sample.labels(train), sample.weights(train))
    return Recheck(value, _ROUNDING, sample.fingerprint, verdict)


def _numbers(X: Any) -> Array:
    dense = X.toarray() if hasattr(X, "toarray") else X
    return np.asarray(dense.to_numpy() if hasattr(dense, "to_numpy") else dense, dtype=np.float64)


def _equations_without_each_row(X: Array, sample: Sample, coef: Array, intercept: Array, model: Any) -> float:
    """Return the relative residual of Σ_{j≠i} wⱼ(yⱼ − b₋ᵢ − xⱼᵀβ₋ᵢ)x̃ⱼ = αβ₋ᵢ over all i, in extended precision."""
    inner = model.estimator_
    w = np.ones(len(X)) if sample.weight is None else sample.weight
    alpha = float(getattr(inner, "alpha", 0.0)) / float(w.sum())
    w = (w / w.sum()).astype(np.longdouble)
    centre = w @ X if inner.fit_intercept else np.zeros(X.shape[1])
    Z = X - centre
    offset = intercept + coef @ centre
    y = sample.y.astype(np.longdouble)
    gram = Z.T @ (w[:, None] * Z)
    moment = Z.T @ (w * y)
    left_out = w * (y - (Z * coef).sum(axis=1) - offset)
    first = w @ Z  # zero with an intercept
    slopes = moment - coef @ gram - offset[:, None] * first - left_out[:, None] * Z - alpha * coef
    spread = np.sqrt(w @ Z**2)
    size = np.sqrt(w @ y**2)
    worst = float((np.abs(slopes) / np.where(spread > 0, spread * size, 1.0)).max())
    if inner.fit_intercept:
        total = w @ y - coef @ first - offset - left_out
        worst = max(worst, float(np.abs(total).max() / size))
    return worst


def _columns(inner: Any, X: Any) -> Array:
    """Return a score for each class that the classifier knows."""
    if hasattr(inner, "decision_function"):
        scores = np.asarray(inner.decision_function(X), dtype=np.float64)
        return np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
    return np.asarray(inner.predict_proba(X), dtype=np.float64)


def _sigmoid_residual(sigmoid: Any, scores: Array, positive: NDArray[np.bool_], w: Array) -> float:
    """Return the gradient of Platt's likelihood in the offset, and in the slope for scores of deviation one."""
    plus = w[positive].sum()
    minus = w[~positive].sum()
    target = np.where(positive, (plus + 1.0) / (plus + 2.0), 1.0 / (minus + 2.0))
    share = w / w.sum()
    r = share * (expit(-(sigmoid.a * scores + sigmoid.b)) - target)
    centred = scores - share @ scores
    deviation = np.sqrt(share @ centred**2)
    slope = abs(r @ centred) / deviation if deviation > 1e-14 * np.abs(scores).max() else 0.0
    return float(max(abs(r.sum()), slope))


def _isotonic_residual(isotonic: Any, scores: Array, positive: NDArray[np.bool_], w: Array) -> float:
    """Return the worst violation of the conditions of the isotonic optimum, relative to the weight of all rows.

    f is optimal iff it is nondecreasing and, along the sorted scores, the partial sums of w(y − f) are nowhere
    negative, and zero where f rises and at the end.
    """
    order = np.argsort(scores, kind="stable")
    f = np.interp(scores[order], isotonic.scores, isotonic.values)
    last = np.append(np.diff(scores[order]) > 0, True)  # rows of one score stand or fall together
    sums = np.cumsum(w[order] * (positive[order] - f))[last] / w.sum()
    level = f[last]
    rises = np.append(np.diff(level) > 0, True)
    return float(max(np.max(-sums, initial=0.0), np.abs(sums[rises]).max(), np.max(-np.diff(level), initial=0.0)))


def _temperature_residual(beta: float, logits: Array, codes: NDArray[np.int64], w: Array) -> float:
    """Return the slope of the log loss in β, relative; at the ends of its range only if it points inwards."""
    excess = logits - logits[np.arange(len(codes)), codes][:, None]
    e = np.exp(beta * (logits - logits.max(axis=1, keepdims=True)))
    size = w @ np.abs(excess).max(axis=1)
    slope = float(w @ ((e * excess).sum(axis=1) / e.sum(axis=1)) / (size if size > 0 else 1.0))
    at_low = np.isclose(np.log(beta), -10.0, atol=1e-9)
    at_high = np.isclose(np.log(beta), 10.0, atol=1e-9)
    if at_low:
        return max(0.0, -slope)
    return max(0.0, slope) if at_high else abs(slope)
