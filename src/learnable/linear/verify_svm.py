r"""Independent checks of support vector machines and perceptrons, in plain NumPy and extended precision.

A dual point is feasible or it is not: it lies in a box, and then D(α) bounds every P from below. Where the model
holds no dual point (squared losses), α = 2c·shortfall of its own weights is one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import Recheck, VerificationError
from ..data.checking import Array, Rows, coefficients_of, fingerprint_of
from ..data.sources import named_columns
from .verify import class_rows, rows_of

_ROUNDING = 1e-12  # what rounding may add to a relative gap
_EPSILON = 4 * np.finfo(np.float64).eps


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def linear_svc(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a LinearSVC."""
    rows, fingerprint = class_rows(model, X, y, sample_weight)
    codes = rows.y
    cost = np.longdouble(model.C) * rows.weight.astype(np.longdouble)
    W, bias = _weights(model)
    dual = _dual_of(model, _kept(X, y, sample_weight))
    if model.multi_class == "crammer_singer":
        return _joint_gap(rows, codes, cost, W, bias, dual, fingerprint)
    values = []
    for k, w in enumerate(W):
        label = np.where(codes == (1 if len(model.classes_) == 2 else k), 1, -1).astype(np.longdouble)
        edge = 1 - label * _scores(rows, w, bias)
        short = np.maximum(edge, 0)
        if model.penalty == "l1":
            values.append((_l1_gap(rows, label, cost, w, bias, short), _ROUNDING))
            continue
        squared = model.loss == "squared_hinge"
        alpha = 2 * cost * short if dual is None else label * dual[k]
        loss = (cost * (short * short if squared else short)).sum()
        linear = alpha.sum()
        values.append(
            _gap(rows, w, bias, loss, linear, label * alpha, cost, edge, squared, bool((alpha >= 0).all()), cost.sum())
        )
    value, rounding = np.max(values, axis=0)
    return Recheck(float(value), float(rounding), fingerprint)


@np.errstate(all="ignore")
def linear_svr(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a LinearSVR."""
    rows, kept = rows_of(model, X, y, sample_weight)
    cost = np.longdouble(model.C) * rows.weight.astype(np.longdouble)
    W, bias = _weights(model)
    t = rows.y[:, 0].astype(np.longdouble)
    epsilon = np.longdouble(model.epsilon)
    residual = t - _scores(rows, W[0], bias)
    edge = abs(residual) - epsilon
    short = np.maximum(edge, 0)
    squared = model.loss == "squared_epsilon_insensitive"
    dual = _dual_of(model, kept)
    beta = 2 * cost * short * np.sign(residual) if dual is None else dual[0]
    loss = (cost * (short * short if squared else short)).sum()
    at_zero = np.maximum(abs(t) - epsilon, 0)
    start_value = (cost * (at_zero * at_zero if squared else at_zero)).sum()
    linear = (t * beta - epsilon * abs(beta)).sum()
    value, rounding = _gap(rows, W[0], bias, loss, linear, beta, cost, edge, squared, True, start_value)
    return Recheck(float(value), float(rounding), fingerprint_of(rows))


@np.errstate(all="ignore")
def perceptron(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Count the share of rows that a Perceptron has on the wrong side of a score; certified fits have none."""
    rows, fingerprint = class_rows(model, X, y, sample_weight)
    codes = rows.y
    W = coefficients_of(model)
    b = np.broadcast_to(np.asarray(model.intercept_, dtype=np.longdouble), (len(W),))
    wrong = np.zeros(len(codes), dtype=bool)
    margins = []
    for k, w in enumerate(W):
        label = np.where(codes == (1 if len(model.classes_) == 2 else k), 1, -1)
        margin = label * (_scores(rows, np.r_[b[k], w], 1.0))
        wrong |= ~(margin > 0)
        margins.append(margin.min() / np.sqrt(w @ w + b[k] ** 2))
    if not wrong.any() and not _margins_agree(model, rows, np.array(margins)):
        return Recheck(np.inf, 0.0, fingerprint)
    return Recheck(float((rows.weight * wrong).sum() / rows.weight.sum()), 0.0, fingerprint)


def _margins_agree(model: Any, rows: Rows, margins: Array) -> bool:
    """Tell whether `margin_` and `mistake_bound_` = R²/margin² (times the ratio of the weights) are what they say."""
    radius = max(np.asarray((Z * Z).sum(axis=1)).max() for Z, _, _ in rows.chunks()) + bool(model.fit_intercept)
    positive = rows.weight[rows.weight > 0]
    bound = radius / margins**2 * (positive.max() / positive.min())
    pairs = ((model.margin_, margins), (model.mistake_bound_, bound))
    return all(
        np.shape(stored) == fresh.shape and bool((abs(stored - fresh) <= 1e-6 * abs(fresh)).all())
        for stored, fresh in pairs
    )


def _kept(X: Any, y: Any, sample_weight: Any) -> Array | None:
    """Return which rows have weight."""
    weight = named_columns("verify", X, y, sample_weight)[2]
    return None if weight is None else np.asarray(weight, dtype=np.float64) > 0


def _weights(model: Any) -> tuple[Array, Any]:
    """Return the weights with the intercept's in front, and the constant that it belongs to."""
    W = np.atleast_2d(coefficients_of(model))
    b = np.broadcast_to(np.asarray(model.intercept_, dtype=np.longdouble), (len(W),))
    if not model.fit_intercept:
        return np.column_stack([np.where(b == 0, b, np.inf), W]), np.longdouble(0)  # an intercept out of nowhere
    bias = np.longdouble(model.intercept_scaling)
    return np.column_stack([b / bias, W]), bias


def _dual_of(model: Any, kept: Array | None) -> Array | None:
    dual = getattr(model, "dual_coef_", None)
    if dual is None:
        return None
    dual = np.asarray(dual, dtype=np.longdouble)
    if kept is not None and dual.shape[1] == len(kept):
        dual = dual[:, kept]
    return dual


def _scores(rows: Rows, w: Array, bias: Any, absolute: bool = False) -> Array:
    return np.concatenate([(abs(Z) if absolute else Z) @ w[1:] for Z, _, _ in rows.chunks()]) + bias * w[0]


def _back(rows: Rows, r: Array, bias: Any, absolute: bool = False) -> Array:
    """Return Σ r(bias, x), or of |x|."""
    total = np.zeros((rows.n_columns, *r.shape[1:]), dtype=np.longdouble)
    start = 0
    for Z, _, s in rows.chunks():
        Z = abs(Z) if absolute else Z
        total = total + Z.T @ r[start : start + len(s)]
        start += len(s)
    return np.concatenate([bias * r.sum(axis=0, keepdims=True), total])


def _gap(
    rows: Rows,
    w: Array,
    bias: Any,
    loss: Any,
    linear: Any,
    beta: Array,
    cost: Array,
    edge: Array,
    squared: bool,
    feasible: bool,
    start_value: Any,
) -> tuple[Any, Any]:
    """Return the relative gap of P = ½‖w‖² + loss and D = linear − ½‖Σβx‖² (− Σβ²/4c), infinite outside the box.

    Besides, how far float64 may have been off: every row's score and term, and the sum Σβx, which may cancel. A row at
    the loss's kink (`edge` is zero there) may fall on its steep side, where the score's error counts at full cost.
    """
    if len(beta) != len(cost):
        raise VerificationError(f"verify: the model has {len(beta)} dual coefficients for {len(cost)} rows.")
    if not feasible or (not squared and not (abs(beta) <= cost * (1 + 1e-12)).all()):
        return np.inf, 0.0
    u = _back(rows, beta, bias)
    dual = linear - (u * u).sum() / 2 - ((beta * beta / (4 * cost)).sum() if squared else 0)
    primal = (w * w).sum() / 2 + loss
    reach = _scores(rows, abs(w), bias, absolute=True) + 1
    spread = abs(beta) + (2 * cost * reach if squared else 0)
    blurred = _EPSILON * (_back(rows, spread, bias, absolute=True) + abs(w))
    size = max(dual, start_value * 1e-8)
    noise = np.sqrt((blurred**2).sum())
    slope = np.sqrt(((w - u) ** 2).sum()) if squared else np.sqrt((u * u).sum())
    steep = np.where(edge > -_EPSILON * reach, cost, abs(beta))
    terms = _EPSILON * (primal + abs(linear) + (steep * reach).sum())
    return _relative(primal, dual, start_value), (noise * (noise + slope) + terms) / size if size > 0 else 0.0


def _l1_gap(rows: Rows, label: Array, cost: Array, w: Array, bias: Any, short: Array) -> Any:
    alpha = 2 * cost * short
    loss = (cost * short * short).sum()
    largest = abs(_back(rows, label * alpha, bias)).max()
    scale = 1 / largest if largest > 0 else np.inf
    scale = min(scale, alpha.sum() / (2 * loss) if loss > 0 else np.inf)
    dual = scale * alpha.sum() - scale**2 * loss if loss > 0 else 0
    return _relative(abs(w).sum() + loss, dual, cost.sum())


def _joint_gap(rows: Rows, y: Array, cost: Array, W: Array, bias: Any, dual: Array | None, mark: str) -> Recheck:
    """Return the gap of Crammer and Singer's problem."""
    if dual is None or dual.shape != (len(W), len(y)):
        return Recheck(np.inf, 0.0, mark)
    if len(W) == 1:  # the difference of two opposite vectors
        W = np.vstack([-W, W]) / 2
        dual = np.vstack([-dual, dual])
    own = np.arange(len(y)), y
    scores = np.stack([_scores(rows, w, bias) for w in W], axis=1)
    shifted = scores + 1
    shifted[own] -= 1
    loss = (cost * (shifted.max(axis=1) - scores[own])).sum()
    alpha = dual.T
    upper = np.zeros_like(alpha)
    upper[own] = cost
    slack = 1e-12 * cost[:, None]
    if not ((alpha <= upper + slack).all() and (abs(alpha.sum(axis=1)) <= slack[:, 0]).all()):
        return Recheck(np.inf, 0.0, mark)
    u = _back(rows, alpha, bias)
    value = -(u * u).sum() / 2 - (alpha.sum() - alpha[own].sum())
    return Recheck(float(_relative((W * W).sum() / 2 + loss, value, cost.sum())), _ROUNDING, mark)


def _relative(primal: Any, dual: Any, start_value: Any) -> Any:
    excess = primal - dual
    return np.maximum(excess, 0) / max(dual, start_value * 1e-8) if excess != 0 else excess
