r"""Independent checks of the linear models' certificates: the definitions, evaluated in plain NumPy.

Nothing here is shared with the fits but the reading of column names: sums, scores, dual points and the checksum of the
data are computed again, in extended precision, whose digits and range make centring and scaling unnecessary.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checking import Recheck
from ..core.errors import VerificationError
from ..data.checking import (
    Rows,
    class_weights_of,
    codes_of,
    coefficients_of,
    fingerprint_of,
    numbers_of,
    plain_rows,
    sound,
)
from ..data.sources import named_columns
from .verify_stored import least_squares_arrays, ridge_choice

Array = NDArray[Any]

_CLOSED_FORM_ROUNDING = 1e-13
_GAP_ROUNDING = 1e-13


@sound
@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def least_squares(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a LinearRegression, and what its intervals are made of."""
    found = check_quadratic(model, X, y, sample_weight, alpha=np.zeros(1))
    rows, _ = rows_of(model, X, y, sample_weight)
    return found if least_squares_arrays(model, rows) else found._replace(value=np.inf)


@sound
@np.errstate(all="ignore")
def ridge(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a Ridge or RidgeCV, and the scores by which the latter chose."""
    alpha = model.alpha_ if hasattr(model, "alpha_") else model.alpha
    found = check_quadratic(model, X, y, sample_weight, alpha=np.atleast_1d(np.asarray(alpha, dtype=float)))
    if hasattr(model, "alpha_") and not ridge_choice(model, *rows_of(model, X, y, sample_weight)):
        return found._replace(value=np.inf)
    return found


def rows_of(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, Array]:
    """Return the rows of a regression, and which of those given they are."""
    X, y, sample_weight = named_columns("verify", X, y, sample_weight)
    targets = numbers_of(y)
    kept = (
        np.broadcast_to(1.0 if sample_weight is None else np.asarray(sample_weight, dtype=float), (len(targets),)) > 0
    )
    return plain_rows(model, X, targets, sample_weight), kept


def check_quadratic(model: Any, X: Any, y: Any, sample_weight: Any, alpha: Array) -> Recheck:
    """Evaluate the equations Σ w r (x − x̄) = αβ, Σ w r = 0 that define a (ridge) least squares fit."""
    X, y, sample_weight = named_columns("verify", X, y, sample_weight)
    rows = plain_rows(model, X, numbers_of(y), sample_weight)
    B = np.atleast_2d(model.coef_).T.astype(np.longdouble)
    b = np.atleast_1d(np.asarray(model.intercept_, dtype=np.longdouble))
    d, k = B.shape
    if rows.y.shape[1] != k:
        raise VerificationError(f"verify: the model has {k} targets, the data {rows.y.shape[1]}.")
    if not model.fit_intercept and b.any():
        return Recheck(np.inf, 0.0, fingerprint_of(rows))
    W, x_sum, y_sum, total, x_square, y_square, r_square, g = (
        np.zeros(shape, dtype=np.longdouble) for shape in ((), d, k, k, d, k, k, (d, k))
    )
    for Z, t, s in rows.chunks():
        r = t - b - Z @ B
        W, x_sum, y_sum, total = W + s.sum(), x_sum + Z.T @ s, y_sum + s @ t, total + s @ r
        x_square, y_square, r_square = x_square + (Z * Z).T @ s, y_square + s @ t**2, r_square + s @ r**2
        g = g + Z.T @ (s[:, None] * r)
    x_mean, y_mean = x_sum / W, y_sum / W
    if not model.fit_intercept:
        x_mean, y_mean, total = 0 * x_mean, 0 * y_mean, 0 * total
    g = g - np.outer(x_mean, total) - alpha * B
    x_square, y_square = np.maximum(x_square - W * x_mean**2, 0), np.maximum(y_square - W * y_mean**2, 0)
    if model.certificate_.kind == "gap":
        gap, offset = (g**2).sum(axis=0) / alpha, total**2 / W  # what the best intercept would gain
        dual = r_square - offset + alpha * (B**2).sum(axis=0) - gap
        value = (gap + offset) / np.maximum(dual, 1e-8 * y_square)
        return Recheck(float(np.max(value)), 1e-14, fingerprint_of(rows))
    if getattr(model, "positive", False):
        g = np.where(B > 0, g, np.maximum(g, 0)) if (B >= 0).all() else np.full_like(g, np.inf)
    root = np.sqrt(W)
    share = 1e-14 / max(model.certificate_.tolerance, 1e-12) * root  # digits that rounding blurs at a large mean
    x_size, y_size = np.sqrt(x_square) + share * abs(x_mean), np.sqrt(y_square) + share * abs(y_mean)
    terms = y_size + x_size @ abs(B) + share * abs(b)
    size = np.outer(x_size, terms) + alpha * abs(B).max(axis=0)
    # Coefficients below the range of float64 are stored to its smallest step: what that step does is no error.
    step = np.longdouble(np.finfo(float).smallest_subnormal)
    g = np.maximum(abs(g) - step * (np.outer(x_size, x_size.sum() + root) + alpha), 0)
    total = np.maximum(abs(total) - step * (root * x_size.sum() + W * (1 + abs(x_mean).sum())), 0)
    worst = max(_largest_ratio(g, size), _largest_ratio(total, root * terms))
    return Recheck(worst, _CLOSED_FORM_ROUNDING, fingerprint_of(rows))


def _largest_ratio(numerator: Array, denominator: Array) -> float:
    ratio = np.where(denominator > 0, numerator / np.where(denominator > 0, denominator, 1), np.inf)
    return float(np.max(np.where(numerator == 0, 0, ratio), initial=0.0))  # NaN stays NaN


@np.errstate(all="ignore")
def logistic(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a LogisticRegression."""
    X, y, sample_weight = named_columns("verify", X, y, sample_weight)
    rows = plain_rows(model, X, np.asarray([] if y is None else y).ravel(), sample_weight)
    rows = rows._replace(y=codes_of(model.classes_, rows.y))
    K, fingerprint = len(model.classes_), fingerprint_of(rows, model.classes_)
    rows = rows._replace(weight=rows.weight * class_weights_of(model.class_weight, model.classes_, rows)[rows.y])
    strength = penalty_of(model)[0]
    W, b = coefficients_of(model), np.asarray(model.intercept_, dtype=np.longdouble)
    if K == 2:  # scores (0, z): the same probabilities
        W, b = np.vstack([0 * W, W]), np.r_[0 * b, b]
    scores = np.concatenate([Z @ W.T for Z, _, _ in rows.chunks()])
    offset = scores.mean(axis=0)  # large where columns lie far from zero; it belongs to the intercept
    scores, b = scores - offset, b + offset
    best = _best_intercept(scores, rows, b) if model.fit_intercept and np.isfinite(strength) else b
    N, slope_sum, square, slopes, members = (
        np.zeros(shape, dtype=np.longdouble) for shape in (K, K, W.shape[1], W.shape, W.shape)
    )
    start = 0
    for Z, t, s in rows.chunks():
        part, codes = slice(start, start + len(s)), t.astype(int)
        start += len(s)
        own = s[:, None] * np.eye(K)[codes]
        r = s[:, None] * probabilities(scores[part] + best) - own
        N, slope_sum, square = N + own.sum(axis=0), slope_sum + r.sum(axis=0), square + (Z * Z).T @ s
        slopes, members = slopes + (Z.T @ r).T, members + (Z.T @ own).T
    centre = np.zeros(W.shape[1])
    if model.fit_intercept:
        centre = members.sum(axis=0) / N.sum()
        members, slopes = members - np.outer(N, centre), slopes - np.outer(slope_sum, centre)
        square = np.maximum(square - N.sum() * centre**2, 0)
    if not model.fit_intercept and np.any(model.intercept_):
        return Recheck(np.inf, 0.0, fingerprint)
    free = slice(1, None) if K == 2 else slice(None)  # the scores that are parameters
    if np.isinf(strength):
        size = np.sqrt(N.sum() * np.r_[N.sum(), square])
        slope = np.column_stack([slope_sum[free] * bool(model.fit_intercept), slopes[free]])
        value = float(np.max(abs(slope) / np.where(size > 0, size, np.inf)))
        return Recheck(value, _CLOSED_FORM_ROUNDING, fingerprint)
    C = np.longdouble(strength)
    primal = 0.5 * (W * W).sum() + C * cross_entropy(scores + b, rows)
    loss, level = cross_entropy(scores + best, rows), best - offset + W @ centre
    dual = _dual_value(C, W, level, slopes, slope_sum, loss, N, members, free, model.fit_intercept)
    start_value = C * N.sum() * np.log(K)  # P₀; the fit sums terms of this size in float64
    size = max(dual, 1e-8 * start_value)
    # The last digit of the slopes' terms; the gap that a fit computes is the slopes' square.
    blur = 2.0**-53 * (C * np.sqrt(N.sum() * np.r_[N.sum(), square]) + np.r_[abs(level).max(), abs(W).max(axis=0)])
    off = np.sqrt(len(W[free]) * (blur * blur).sum())
    noise = off * (np.sqrt(((C * slopes + W)[free] ** 2).sum()) + off / 2) / size
    rounding = _GAP_ROUNDING + float(3e-13 * start_value / size + noise)
    return Recheck(float((primal - dual) / size), rounding, fingerprint)


def penalty_of(model: Any) -> tuple[float, float]:
    """Return C and the share of the L1 penalty, as the parameters of a LogisticRegression state them."""
    kind = getattr(model, "penalty", "deprecated")  # kernel models have no such parameter
    if kind is None:
        return np.inf, 0.0
    if kind in ("l1", "l2"):
        return float(model.C), float(kind == "l1")
    return float(model.C), float(getattr(model, "l1_ratio", 0.0) or 0.0)


def probabilities(scores: Array) -> Array:
    """Return the softmax of each row of scores."""
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def cross_entropy(scores: Array, rows: Rows) -> Any:
    """Return Σ s (log Σₖ e^{zₖ} − z_y)."""
    z = scores - scores.max(axis=1, keepdims=True)
    own = z[np.arange(len(z)), rows.y]
    return (rows.weight * (np.log(np.exp(z).sum(axis=1)) - own)).sum()


def weight_of_classes(rows: Rows, n_classes: int) -> Array:
    """Return the weight of each class, summed in extended precision: slopes are differences from it."""
    return np.array([rows.weight[rows.y == k].sum(dtype=np.longdouble) for k in range(n_classes)])


def _best_intercept(scores: Array, rows: Rows, b: Array) -> Array:
    """Minimise the likelihood over the intercepts alone: then the probabilities have the right class sums."""
    N = weight_of_classes(rows, len(b))
    for _ in range(30):
        p = probabilities(scores + b)
        slope = rows.weight @ p - N
        H = np.diag(rows.weight @ p) - (p * rows.weight[:, None]).T @ p
        step = np.zeros_like(b)
        if not np.isfinite(H).all():
            break
        step[1:] = np.linalg.lstsq(H[1:, 1:].astype(float), slope[1:].astype(float), rcond=1e-14)[0]
        if not np.isfinite(step).all() or abs(step).max() > 10:
            break  # far from the optimum; the mixture below makes any point feasible
        b = b - step
        if abs(step).max() < 1e-18 * (1 + abs(b).max()):
            break
    return b


def _dual_value(
    C: Any,
    W: Array,
    b: Array,
    slopes: Array,
    slope_sum: Array,
    loss: Any,
    N: Array,
    members: Array,
    free: slice,
    intercept: bool,
) -> Any:
    """Evaluate the dual at the model's probabilities, mixed with a constant distribution until they are feasible."""
    # −Σ s Σ u log u = Σ s(loss) − Σ s(u − e)·z
    entropy = C * (loss - (slopes * W).sum() - slope_sum @ b)
    w_u = -C * slopes[free]
    mix = np.clip((slope_sum / (N + slope_sum)).max() * (1 + 1e-9), 0, 1) if intercept else 0
    if mix > 0:
        v = np.maximum(mix * (N + slope_sum) - slope_sum, 0)
        v = v / v.sum()
        entropy = (1 - mix) * entropy - mix * C * N.sum() * (v * np.log(np.where(v > 0, v, 1))).sum()
        w_u = (1 - mix) * w_u - mix * C * (np.outer(v, members.sum(axis=0)) - members)[free]
    return entropy - 0.5 * (w_u * w_u).sum()
