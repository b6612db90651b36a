r"""Independent checks of logistic, Poisson, Gamma and Tweedie regression, in plain NumPy and extended precision.

A dual point of logistic regression is made of the model's own probabilities, mixed with a constant distribution until
every class has its total weight, which is what a free intercept asks. With p those probabilities, e the labels and
g = C Σ s (p − e)x, D = C Σ s H(p) − Σⱼ max(0, |gⱼ| − ρ)²/(2(1 − ρ)) for the share ρ of the L1 norm; any multiple of the
point that obeys |gⱼ| ≤ ρ bounds the optimum as well.

Of the other families the duality gap is evaluated as P − D from its two values: with the model's coefficients, the
intercept is moved to where the slopes u = ∂ℓ/∂z sum to zero, by bisection; there D(u) = −mean ℓ*(u) − ½α‖w_u‖² with
ℓ*(u) = uz − ℓ(z).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..core.checking import Recheck
from ..data.checking import Array, Rows, coefficients_of, fingerprint_of
from .verify import class_rows, rows_of

_ROUNDING = 1e-13  # what rounding may add to a relative measure
_DIGITS = 2e-16  # rounding of a score relative to its size
_EPSILON = 2.0**-52  # distance from one to the next float64
_BLUR = 8.0  # times the standard deviation of a sum of rounding errors


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def glm(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a PoissonRegressor, GammaRegressor or TweedieRegressor."""
    rows, _ = rows_of(model, X, y, sample_weight)
    rows = rows._replace(y=rows.y[:, 0])
    fingerprint = fingerprint_of(rows)
    power, log_link = _family_of(model)
    alpha = np.longdouble(model.alpha)
    w = np.asarray(model.coef_, dtype=np.longdouble)
    b = np.longdouble(model.intercept_)
    if not model.fit_intercept and b != 0:
        return Recheck(np.inf, 0.0, fingerprint)
    s = rows.weight.astype(np.longdouble)
    t = rows.y.astype(np.longdouble)
    S = s.sum()
    mean = _mean(rows)
    z = (
        b
        + mean @ w
        + np.concatenate([(Z @ w - mean @ w) if sp.issparse(Z) else (Z - mean) @ w for Z, _, _ in rows.chunks()])
    )
    if not _dispersion_is_true(model, rows, power, log_link):
        return Recheck(np.inf, 0.0, fingerprint)
    if model.certificate_.kind == "stationarity":
        return Recheck(_relative_gradient(model, rows, z, power, log_link), _ROUNDING, fingerprint)
    primal = s @ _loss(t, z, power, log_link) / S + alpha / 2 * (w @ w)
    best = z + _best_shift(s, t, z, power, log_link) if model.fit_intercept else z
    u = _slope(t, best, power, log_link)
    loss = _loss(t, best, power, log_link)
    pull, square, _ = _products(rows, s * u, bool(model.fit_intercept))
    w_u = -pull / (alpha * S)
    middle = (
        s @ best / S if model.fit_intercept else 0
    )  # the slopes sum to zero: any common part of the scores drops out
    dual = s @ (loss - u * (best - middle)) / S - alpha / 2 * (w_u @ w_u)
    constant = s @ t / S if model.fit_intercept else int(log_link)
    null = s @ _loss(t, np.full(len(t), np.log(constant) if log_link else constant), power, log_link) / S
    level = np.log(constant) if log_link else constant
    off = 1e-11 * (1 + abs(level)) if log_link else 1e-11 * abs(level)
    finest = (np.exp((2 - power) * level) if log_link else 1) * off**2  # the loss of scores off by that: an exact fit
    size = max(dual, 1e-8 * null, finest)
    terms = s @ (abs(u * z) + loss) / S + alpha * (w @ w)  # what is added up here, in digits of long double
    # A slope has the rounding of its score, e^z that of z; the fit's gap is its gradient's square over 2α.
    digits = _DIGITS * (1 + abs(best).max())
    g = abs(pull / S + alpha * w)
    off = digits * np.sqrt(square / S) * _size_of_slopes(s, t, best, power, log_link)
    noise = (g @ off + off @ off / 2) / alpha
    rounding = _ROUNDING + float((1e-16 * terms + 3e-14 * null + 1e-9 * finest + noise) / size)
    return Recheck(float((primal - dual) / size), rounding, fingerprint)


def _dispersion_is_true(model: Any, rows: Rows, power: float, log_link: bool) -> bool:
    """Tell whether φ is Pearson's χ²/(n − p) within what rounding of the scores can make of it."""
    known = getattr(model, "dispersion_", None)
    if known is None:
        return True
    w = np.asarray(model.coef_, dtype=np.longdouble)
    b = np.longdouble(model.intercept_)
    chi2 = blur = np.longdouble(0)
    n_rows = 0
    for Z, y, s in rows.chunks():
        z = Z @ w + b
        size = abs(Z) @ abs(w) + abs(b)
        mu = np.exp(z) if log_link else z
        off = 4 * _EPSILON * (size * (mu if log_link else 1) + abs(mu) + abs(y))
        rest = abs(y - mu)
        chi2 += s @ (rest**2 / mu**power)
        relative = abs(power) * 4 * _EPSILON * (1 + (size if log_link else size / abs(mu)))
        blur += s @ ((2 * rest * off + off**2 + rest**2 * relative) / abs(mu**power))
        n_rows += int(np.count_nonzero(s))
    df = n_rows - len(w) - int(model.fit_intercept)
    return bool(df > 0 and abs(chi2 - df * np.longdouble(known)) <= 1e-9 * chi2 + blur)


def _family_of(model: Any) -> tuple[float, bool]:
    name = type(model).__name__
    if name != "TweedieRegressor":
        return {"PoissonRegressor": (1.0, True), "GammaRegressor": (2.0, True)}[name]
    return float(model.power), model.link == "log" or (model.link == "auto" and model.power > 0)


def _loss(y: Array, z: Array, p: float, log_link: bool) -> Array:
    """Return half the unit deviance, from its integral ∫ (y − t) t⁻ᵖ dt from μ to y."""
    mu = np.exp(z) if log_link else z
    if p == 0:
        return (y - mu) ** 2 / 2
    positive = np.where(y > 0, y, 1)
    ratio = np.log(mu / positive)
    if p == 1:
        return np.where(y > 0, y * (np.expm1(ratio) - ratio), mu)
    if p == 2:
        return np.expm1(-ratio) + ratio
    near = positive ** (2 - p) * (np.expm1((2 - p) * ratio) / (2 - p) - np.expm1((1 - p) * ratio) / (1 - p))
    return np.where(y > 0, near, mu ** (2 - p) / (2 - p) - y * mu ** (1 - p) / (1 - p))


def _slope(y: Array, z: Array, p: float, log_link: bool) -> Array:
    mu = np.exp(z) if log_link else z
    return (mu - y) * (mu ** (1 - p) if log_link else mu ** (-p))


def _best_shift(s: Array, y: Array, z: Array, p: float, log_link: bool) -> Any:
    """Return the change of intercept at which the slopes sum to zero: the sum rises with it, so bisection finds it."""
    if p == 0 and not log_link:
        return s @ (y - z) / s.sum()

    def total(shift: Any) -> Any:
        return s @ _slope(y, z + shift, p, log_link)

    reach = np.longdouble(1e-12)
    while not total(-reach) <= 0 <= total(reach):
        reach *= 16
        if not reach < 1e300:
            return np.longdouble(np.nan)
    low = -reach
    high = reach
    for _ in range(140):
        middle = (low + high) / 2
        if total(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _mean(rows: Rows) -> Array:
    """Return the weighted mean of each column: far from zero, rows have more digits about it."""
    total = np.zeros(rows.n_columns, dtype=np.longdouble)
    weight = np.longdouble(0)
    for Z, _, s in rows.chunks():
        total = total + Z.T @ s
        weight = weight + s.sum()
    return total / weight


def _products(rows: Rows, r: Array, centred: bool) -> tuple[Array, Array, Any]:
    """Return Σ r (x − x̄), Σ s (x − x̄)² and Σ s, about zero unless centred."""
    mean = _mean(rows) if centred else np.zeros(rows.n_columns, dtype=np.longdouble)
    pull = np.zeros(rows.n_columns, dtype=np.longdouble)
    square = np.zeros(rows.n_columns, dtype=np.longdouble)
    W = np.longdouble(0)
    start = 0
    for Z, _, s in rows.chunks():
        part = r[start : start + len(s)]
        start = start + len(s)
        W = W + s.sum()
        if sp.issparse(Z):
            pull = pull + Z.T @ part - part.sum() * mean
            square = square + (Z * Z).T @ s
            square = square - 2 * mean * (Z.T @ s) + s.sum() * mean**2
        else:
            moved = Z - mean
            pull = pull + moved.T @ part
            square = square + (moved * moved).T @ s
    return pull, np.maximum(square, 0), W


def _relative_gradient(model: Any, rows: Rows, z: Array, p: float, log_link: bool) -> float:
    """Return max_j |gⱼ| over the root mean squares of xⱼ and of the terms of the slope."""
    s = rows.weight.astype(np.longdouble)
    y = rows.y.astype(np.longdouble)
    u = _slope(y, z, p, log_link)
    alpha = np.longdouble(model.alpha)
    w = np.asarray(model.coef_, dtype=np.longdouble)
    pull, square, W = _products(rows, s * u, bool(model.fit_intercept))
    size = _size_of_slopes(s, y, z, p, log_link) * np.sqrt(np.r_[W, square] / W)
    g = np.r_[s @ u / W if model.fit_intercept else 0, pull / W + alpha * w]
    size[1:] += alpha * abs(w)
    return float(np.max(abs(g) / np.where(size > 0, size, np.inf)))


def _size_of_slopes(s: Array, y: Array, z: Array, p: float, log_link: bool) -> Any:
    """Return the root mean square of the two terms that a slope is the difference of."""
    mu = np.exp(z) if log_link else z
    terms = (abs(mu) + abs(y)) * (mu ** (1 - p) if log_link else mu ** (-p))
    return np.sqrt(s @ terms**2 / s.sum())


@np.errstate(all="ignore")
def logistic(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a LogisticRegression, with whatever penalty."""
    rows, fingerprint = class_rows(model, X, y, sample_weight)
    if not model.fit_intercept and np.any(model.intercept_):
        return Recheck(np.inf, 0.0, fingerprint)
    strength, share = penalty_of(model)
    W = coefficients_of(model)
    b = np.asarray(model.intercept_, dtype=np.longdouble)
    scores = np.concatenate([Z @ W.T for Z, _, _ in rows.chunks()])
    level = b
    if len(model.classes_) == 2:  # scores (0, z): the same probabilities
        scores = np.column_stack([0 * scores[:, 0], scores[:, 0]])
        level = np.r_[0 * b, b]
    shift = scores.mean(axis=0)  # large where columns lie far from zero; it belongs to the intercept
    scores = scores - shift
    level = level + shift
    if np.isinf(strength):
        return Recheck(_relative_slopes(model, rows, scores + level, W, b), _ROUNDING, fingerprint)
    loss = cross_entropy(scores + level, rows)
    movable = model.fit_intercept and model.solver != "liblinear"
    if share == 0 and movable:  # the dual point of the best intercept, and what the last digits of the slopes do to it
        best = _best_intercept(scores, rows, level)
        value, rounding, _ = _logistic_gap(model, rows, scores + best, best - shift, loss, W, b)
        return Recheck(value, rounding, fingerprint)
    value, rounding, far = _logistic_gap(model, rows, scores + level, level - shift, loss, W, b)
    if model.fit_intercept:
        # The intercept is stored to 53 digits: what its last one does to the value is rounding.
        last = _EPSILON * (np.abs(b) + far)
        last = np.r_[0 * last, last] if len(model.classes_) == 2 else last
        moved = scores + (level + last)
        near = level + last - shift
        again = _logistic_gap(model, rows, moved, near, cross_entropy(moved, rows), W, b + last[-len(b) :])[0]
        rounding += abs(again - value)
    if rounding > model.certificate_.tolerance and movable:
        # The dual point of the best intercept does not see the last digit of the stored one.
        best = _best_intercept(scores, rows, level)
        value = min(value, _logistic_gap(model, rows, scores + best, best - shift, loss, W, b)[0])
    return Recheck(value, rounding, fingerprint)


class _ClassSums(NamedTuple):
    N: Array  #: (K,), weight of each class
    slope_sum: Array  #: (K,), Σ s (p − e)
    slopes: Array  #: (K, d), Σ s (p − e)(x − x̄); x̄ = 0 unless the intercept is free
    members: Array  #: (K, d), Σ s e (x − x̄)
    square: Array  #: (d,), Σ s (x − x̄)²
    centre: Array  #: (d,), the mean of each column
    origin: Array  #: (d,), x̄
    noise: Array  #: (K, d), squares of what a last digit of every score does to the slopes


def _class_sums(model: Any, rows: Rows, p: Array, W: Array, b: Array) -> _ClassSums:
    """Return the sums for probabilities p (n, K)."""
    K = p.shape[1]
    N = weight_of_classes(rows, K)
    slope_sum = rows.weight @ p - N
    slopes, members, noise = (np.zeros((K, W.shape[1]), dtype=np.longdouble) for _ in range(3))
    square = np.zeros(W.shape[1], dtype=np.longdouble)
    start = 0
    for Z, t, s in rows.chunks():
        own = s[:, None] * np.eye(K)[t.astype(int)]
        here = p[start : start + len(s)]
        start += len(s)
        r = s[:, None] * here - own
        # A score is off by its last digit; so then is the slope, in proportion to the curvature.
        terms = (abs(Z) @ np.abs(W).T + np.abs(b)).max(axis=1, keepdims=True)
        blur = np.abs(r) + s[:, None] * here * (1 - here) * terms
        slopes = slopes + (Z.T @ r).T
        members = members + (Z.T @ own).T
        square = square + (Z * Z).T @ s
        noise = noise + ((Z * Z).T @ (blur * blur)).T
    centre = members.sum(axis=0) / N.sum()
    origin = np.zeros_like(centre)
    if model.fit_intercept and getattr(model, "solver", "") != "liblinear":
        origin = centre
        slopes = slopes - np.outer(slope_sum, centre)
        members = members - np.outer(N, centre)
        square = np.maximum(square - N.sum() * centre**2, 0)
    return _ClassSums(N, slope_sum, slopes, members, square, centre, origin, noise)


def _relative_slopes(model: Any, rows: Rows, scores: Array, W: Array, b: Array) -> float:
    """Return the largest slope of the likelihood against the sizes of what is added up in it."""
    sums = _class_sums(model, rows, probabilities(scores), W, b)
    free = slice(1, None) if len(sums.N) == 2 else slice(None)  # the scores that are parameters
    size = np.sqrt(sums.N.sum() * np.r_[sums.N.sum(), sums.square])
    slope = np.column_stack([sums.slope_sum[free] * bool(model.fit_intercept), sums.slopes[free]])
    return float(np.max(abs(slope) / np.where(size > 0, size, np.inf)))


def _logistic_gap(
    model: Any, rows: Rows, scores: Array, level: Array, primal_loss: Any, W: Array, b: Array
) -> tuple[float, float, Array]:
    """Return (P − D)/max(D, 1e-8·P₀) with the dual point of the scores level + Wx, its rounding in 53 digits, Σⱼ|x̄ⱼWⱼ|.

    The entropy is Σ s(loss) − Σ s(p − e)·z, summed in the coefficients: scores of columns far from zero lack digits.
    """
    strength, ratio = penalty_of(model)
    p = probabilities(scores)
    sums = _class_sums(model, rows, p, W, b)
    C = np.longdouble(strength)
    N = sums.N
    K = len(N)
    slopes = sums.slopes
    all_weights = np.vstack([0 * W, W]) if K == 2 else W
    level = level + all_weights @ sums.origin
    entropy = cross_entropy(scores, rows) - (slopes * all_weights).sum() - sums.slope_sum @ level
    far = np.abs(W * sums.centre).sum(axis=1)
    if model.fit_intercept and model.solver == "liblinear":
        scaling = np.longdouble(model.intercept_scaling)
        slopes = np.column_stack([slopes, scaling * sums.slope_sum])
        W = np.column_stack([W, b / scaling])
    elif model.fit_intercept:
        mix = min(1, (sums.slope_sum / (N + sums.slope_sum)).max() * (1 + 1e-9))
        if mix > 0:  # with a constant distribution v, until the class sums are right
            v = np.maximum(mix * (N + sums.slope_sum) - sums.slope_sum, 0)
            v = v / v.sum()
            entropy = (1 - mix) * entropy - mix * N.sum() * (v * np.log(np.where(v > 0, v, 1))).sum()
            slopes = (1 - mix) * slopes - mix * sums.members
    slopes = slopes[1:] if K == 2 else slopes
    steep = C * abs(slopes)
    l2 = 1 - ratio
    primal = C * primal_loss + ratio * abs(W).sum() + l2 * (W**2).sum() / 2
    duals = []
    if ratio > 0 or model.solver == "liblinear":
        duals.append(min(1, ratio / steep.max()) * C * entropy if steep.max() > 0 else C * entropy)
    if l2 > 0:
        duals.append(C * entropy - (np.maximum(steep - ratio, 0) ** 2).sum() / (2 * l2))
    dual = max(duals)
    start = C * N.sum() * np.log(K)  # P₀; the fit sums terms of this size in float64
    size = max(dual, 1e-8 * start)
    rounding = _ROUNDING + float(3e-13 * start / size)
    if ratio > 0:  # the multiple of the slopes that is feasible is known no better than the slopes
        rounding += float(_BLUR * _EPSILON * C * np.sqrt(sums.noise.max(initial=0)) / ratio * min(1, dual / size))
    elif model.solver != "liblinear":  # the last digit of the slopes' terms; the gap is the slopes' square
        terms = C * np.sqrt(N.sum() * np.r_[N.sum(), sums.square])
        blur = _EPSILON / 2 * (terms + np.r_[abs(level).max(), abs(W).max(axis=0)])
        off = np.sqrt(len(W) * (blur * blur).sum())
        rounding += float(off * (np.sqrt(((C * slopes + W) ** 2).sum()) + off / 2) / size)
    return float((primal - dual) / size), rounding, far


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
