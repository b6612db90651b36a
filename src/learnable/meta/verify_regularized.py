r"""Independent check of a `RegularizedRisk`: its objective, its constraints, and the lower bound of its dual point.

Formulas of losses, penalties and their conjugates are written again here, by the names of the classes; a penalty of the
user's own is a parameter, and asked for its value and conjugate. With π the rows' shares of weight and
q = −(Xᵀθ + s + Aᵀν) (with a kernel and the norm of its space, ‖q‖² = θᵀKθ),

    D = −Σ πᵢ V*(yᵢ, θᵢ/πᵢ) − (λΩ)*(q) − Σⱼ max(lⱼsⱼ, hⱼsⱼ) − ⟨ν, e⟩

bounds R + λΩ from below, D − λτ Ivanov's optimum and (D − κ)/λ Phillips's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import entr, xlog1py, xlogy

from ..core import AnyArray, Recheck
from ..data.checking import fingerprint_of, numbers_of, plain_rows, read_classes, sound
from ..data.sources import named_columns
from ..risk.kernels import as_kernel

_EQUAL = 1e-9  # relative difference up to which a stored number is the one recomputed
_FEASIBLE = 1e-9  # relative violation of a constraint that rounding explains
_NAMED_LOSSES = {
    "squared": "SquaredLoss",
    "absolute": "AbsoluteLoss",
    "huber": "HuberLoss",
    "epsilon_insensitive": "EpsilonInsensitiveLoss",
    "squared_epsilon_insensitive": "SquaredEpsilonInsensitiveLoss",
    "quantile": "QuantileLoss",
    "poisson": "PoissonLoss",
    "gamma": "GammaLoss",
    "logistic": "LogisticLoss",
    "hinge": "HingeLoss",
    "squared_hinge": "SquaredHingeLoss",
    "exponential": "ExponentialLoss",
    "perceptron": "PerceptronLoss",
    "softmax": "SoftmaxLoss",
    "multiclass_hinge": "MulticlassHingeLoss",
}
_MARGINS = ("LogisticLoss", "HingeLoss", "SquaredHingeLoss", "ExponentialLoss", "PerceptronLoss")
_MULTICLASS = ("SoftmaxLoss", "MulticlassHingeLoss")
_NAMED_PENALTIES = {
    "l1": ("L1Penalty", {}),
    "l2": ("L2Penalty", {}),
    "elasticnet": ("ElasticNetPenalty", {"l1_ratio": 0.5}),
    "norm": ("NormPenalty", {}),
    "sup": ("SupNormPenalty", {}),
    "tv": ("TotalVariationPenalty", {"l1_ratio": 0.0}),
    "fused": ("TotalVariationPenalty", {"l1_ratio": 0.5}),
    "nuclear": ("NuclearPenalty", {}),
}


class _Data(NamedTuple):
    X: Any
    y: AnyArray  #: (n, k) numbers or signs, or (n,) codes
    share: AnyArray  #: π
    fingerprint: str
    kept: AnyArray  #: which of the rows given have weight


@sound
@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def regularized_risk(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a RegularizedRisk."""
    loss, settings = _loss_of(model)
    data = _read(model, loss, X, y, sample_weight)
    n = len(data.share)
    b = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    k = len(b)
    design, W, size, gram = _coefficients(model, data, k)
    refused = Recheck(np.inf, 0.0, data.fingerprint)
    if W is None or (not model.fit_intercept and b.any()):
        return refused
    Z = np.asarray(design @ W + b)
    values = _loss_values(loss, settings, model, data.y, Z)
    risk = float(data.share @ values)
    omega = size
    if not (_agree(model.risk_, risk) and _agree(model.penalty_, omega)):
        return refused
    theta = np.asarray(model.dual_point_, dtype=np.float64).reshape(n, -1)
    bounds, equalities = _constraint_duals(model, design.shape[1], k)
    if theta.shape != (n, k) or not _is_allowed(model, W) or not _is_free(model, theta):
        return refused
    dual = -float(data.share @ _conjugates(loss, settings, model, data.y, theta / data.share[:, None]))
    low, high, A, e = _limits(model, design.shape[1])
    ends = np.where(bounds > 0, high[:, None] * bounds, np.where(bounds < 0, low[:, None] * bounds, 0.0))
    dual -= float(ends.sum()) + float((equalities * e[:, None]).sum())
    q = -np.asarray(design.T @ theta + bounds + A.T @ equalities)
    norm = math.sqrt(max(0.0, float((theta * (gram @ theta)).sum()))) if gram is not None else None
    base = -float(data.share @ _conjugates(loss, settings, model, data.y, np.zeros((n, k))))
    if not _agree(model.least_risk_, base):
        return refused
    multiplier = float(model.multiplier_)
    value = float(model.value)
    size_of = float(np.abs(values) @ data.share) + abs(base)
    if model.form == "phillips":
        if risk > value + 1e-7 * max(abs(value), size_of):
            return refused
        primal = omega
        beyond = multiplier * max(0.0, risk - value)  # what it would cost to lower the risk to κ
        if multiplier == 0.0:
            below = (
                -_penalty_conjugate(model, q, 1.0, norm) - float(ends.sum()) - float((equalities * e[:, None]).sum())
            )
        else:
            below = multiplier * (dual - _penalty_conjugate(model, q, 1.0 / multiplier, norm) - value)
        floor = 1e-8 * primal
        rounding = 1e-12 * (1.0 + multiplier * size_of / max(primal, 1e-300))
    else:
        if model.form == "tikhonov" and multiplier != value:
            return refused
        primal = risk - base + (multiplier * omega if model.form == "tikhonov" else 0.0)
        below = dual - base - _penalty_conjugate(model, q, multiplier, norm)
        if model.form == "ivanov":
            if omega > value * (1.0 + _FEASIBLE):
                return refused
            below -= multiplier * value
        floor = 1e-8 * (float(data.share @ _loss_values(loss, settings, model, data.y, np.zeros_like(Z))) - base)
        rounding = 1e-12 * (1.0 + size_of / max(primal, floor, 1e-300))
    excess = primal - below
    if model.form == "phillips":
        excess += beyond
    gap = excess / max(below, floor, 1e-300) if excess > 0.0 else 0.0
    return Recheck(float(gap) if not math.isnan(gap) else np.inf, rounding, data.fingerprint)


def _read(model: Any, loss: str, X: Any, y: Any, sample_weight: Any) -> _Data:
    """Return the rows with weight as plain arrays."""
    X, y, sample_weight = named_columns("verify", X, y, sample_weight)
    given = np.ones(len(np.asarray(y))) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    labelled = loss in _MARGINS or loss in _MULTICLASS
    if labelled:
        rows, fingerprint = read_classes(model, X, y, sample_weight)
    else:
        rows = plain_rows(model, X, numbers_of(y), sample_weight)
        fingerprint = fingerprint_of(rows)
    pieces = list(rows.pieces())
    table = sp.csr_array(sp.vstack(pieces)) if sp.issparse(pieces[0]) else np.concatenate(pieces)
    targets = np.asarray(rows.y)
    if loss in _MARGINS:
        targets = np.where(targets == 1, 1.0, -1.0)[:, None]
    weight = np.asarray(rows.weight, dtype=np.float64)
    return _Data(table, targets, weight / weight.sum(), fingerprint, given > 0)


def _coefficients(model: Any, data: _Data, k: int) -> tuple[Any, Any, float, Any]:
    """Return the columns, their coefficients (p, k), Ω, and K where the penalty is a norm of the kernel's space."""
    if model.kernel is None:
        W = np.asarray(model.coef_, dtype=np.float64).reshape(k, -1).T
        if W.shape[0] != data.X.shape[1]:
            return data.X, None, 0.0, None
        return data.X, W, _penalty_value(model, W), None
    c = np.asarray(model.expansion_, dtype=np.float64)
    c = c.reshape(len(c), -1)
    if model.kernel == "precomputed":
        if c[~data.kept].any():
            return data.X, None, 0.0, None
        c = c[data.kept]
        K = data.X[:, np.flatnonzero(data.kept)]
        K = np.asarray(K.toarray() if sp.issparse(K) else K)
    else:
        points = model.X_fit_
        same = points.shape == data.X.shape and abs(points - data.X).max() == 0.0
        if not same:
            return data.X, None, 0.0, None
        gamma = 1.0 / data.X.shape[1] if model.gamma is None else float(model.gamma)
        kernel = as_kernel(model.kernel, gamma=gamma, degree=model.degree, coef0=float(model.coef0))
        K = np.asarray(kernel(data.X), dtype=np.float64)
    K = (K + K.T) / 2.0
    name, settings = _penalty_of(model)
    if name not in ("L2Penalty", "NormPenalty"):
        return K, c, _penalty_value(model, c), None
    square = max(0.0, float((c * (K @ c)).sum()))
    size = 0.5 * settings["strength"] * square if name == "L2Penalty" else settings["strength"] * math.sqrt(square)
    return K, c, size, K


def _constraint_duals(model: Any, p: int, k: int) -> tuple[AnyArray, AnyArray]:
    """Return s (p, k) and ν (m, k)."""
    m = len(_limits(model, p)[3])
    bounds = getattr(model, "bound_dual_", None)
    equalities = getattr(model, "equality_dual_", None)
    s = np.zeros((p, k)) if bounds is None else np.asarray(bounds, dtype=np.float64).reshape(p, k)
    nu = np.zeros((m, k)) if equalities is None else np.asarray(equalities, dtype=np.float64).reshape(m, k)
    return s, nu


def _limits(model: Any, p: int) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    """Return the bounds and equalities that the parameters state."""
    low = np.broadcast_to(-np.inf if model.lower is None else np.asarray(model.lower, dtype=np.float64), (p,))
    high = np.broadcast_to(np.inf if model.upper is None else np.asarray(model.upper, dtype=np.float64), (p,))
    low = np.maximum(low, 0.0) if model.positive else low
    A = np.zeros((0, p))
    e = np.zeros(0)
    if model.total is not None:
        A = np.ones((1, p))
        e = np.array([float(model.total)])
    if model.equalities is not None:
        A = np.vstack([A, np.atleast_2d(np.asarray(model.equalities[0], dtype=np.float64))])
        e = np.r_[e, np.atleast_1d(np.asarray(model.equalities[1], dtype=np.float64))]
    return low, high, A, e


def _is_allowed(model: Any, W: AnyArray) -> bool:
    """Tell whether coefficients satisfy the constraints, up to rounding of the equalities."""
    low, high, A, e = _limits(model, len(W))
    inside = (low[:, None] <= W).all() and (high[:, None] >= W).all()
    slack = _FEASIBLE * (np.abs(A) @ np.abs(W) + np.abs(e)[:, None] + 1e-300)
    return bool(inside and (np.abs(A @ W - e[:, None]) <= slack).all())


def _is_free(model: Any, theta: AnyArray) -> bool:
    """Tell whether θ is orthogonal to a free intercept."""
    return not model.fit_intercept or bool(
        (np.abs(theta.sum(axis=0)) <= 1e-12 * np.abs(theta).sum(axis=0) + 1e-300).all()
    )


def _agree(stored: Any, found: float) -> bool:
    return abs(float(stored) - found) <= _EQUAL * max(abs(found), 1e-12)


def _loss_of(model: Any) -> tuple[str, dict[str, float]]:
    if isinstance(model.loss, str):
        return _NAMED_LOSSES[model.loss], {"delta": 1.0, "epsilon": 0.1, "level": 0.5}
    return type(model.loss).__name__, dict(vars(model.loss))


def _per_row(values: AnyArray) -> AnyArray:
    return np.asarray(values if values.ndim == 1 else values.sum(axis=1))


def _loss_values(name: str, settings: dict[str, float], model: Any, y: AnyArray, Z: AnyArray) -> AnyArray:
    """Return V of each row."""
    if name in _MULTICLASS:
        own = np.take_along_axis(Z, y[:, None], axis=1)[:, 0]
        if name == "SoftmaxLoss":
            top = Z.max(axis=1)
            return np.asarray(top + np.log(np.exp(Z - top[:, None]).sum(axis=1)) - own)
        others = Z.copy()
        np.put_along_axis(others, y[:, None], -np.inf, axis=1)
        return np.maximum(0.0, 1.0 + others.max(axis=1) - own)
    r = Z - y
    m = y * Z
    formulas: dict[str, Callable[[], AnyArray]] = {
        "SquaredLoss": lambda: 0.5 * r**2,
        "AbsoluteLoss": lambda: np.abs(r),
        "HuberLoss": lambda: np.where(
            np.abs(r) <= settings["delta"], 0.5 * r**2, settings["delta"] * (np.abs(r) - 0.5 * settings["delta"])
        ),
        "EpsilonInsensitiveLoss": lambda: np.maximum(0.0, np.abs(r) - settings["epsilon"]),
        "SquaredEpsilonInsensitiveLoss": lambda: np.maximum(0.0, np.abs(r) - settings["epsilon"]) ** 2,
        "QuantileLoss": lambda: np.maximum(-settings["level"] * r, (1.0 - settings["level"]) * r),
        "PoissonLoss": lambda: np.exp(Z) - m,
        "GammaLoss": lambda: Z + y * np.exp(-Z),
        "LogisticLoss": lambda: np.logaddexp(0.0, -m),
        "HingeLoss": lambda: np.maximum(0.0, 1.0 - m),
        "SquaredHingeLoss": lambda: np.maximum(0.0, 1.0 - m) ** 2,
        "ExponentialLoss": lambda: np.exp(-m),
        "PerceptronLoss": lambda: np.maximum(0.0, -m),
    }
    found = formulas[name]() if name in formulas else model.loss.value(y, Z)  # another loss is a parameter
    return _per_row(np.asarray(found))


def _conjugates(name: str, settings: dict[str, float], model: Any, y: AnyArray, u: AnyArray) -> AnyArray:
    """Return V* of each row; inf outside its domain, which ends where rounding cannot tell any more."""
    loose = 1.0 + 1e-12
    if name in _MULTICLASS:
        p = u.copy()
        p[np.arange(len(y)), y] += 1.0
        inside = (p >= -1e-12).all(axis=1) & (np.abs(u.sum(axis=1)) <= 1e-12)
        p = np.clip(p, 0.0, 1.0)
        own = np.take_along_axis(u, y[:, None], axis=1)[:, 0]
        value = xlogy(p, p).sum(axis=1) if name == "SoftmaxLoss" else own
        return np.where(inside, value, np.inf)
    p = -y * u
    unit = (p >= -1e-12) & (p <= loose)
    one = np.clip(p, 0.0, 1.0)

    def within(limit: float, value: AnyArray) -> AnyArray:
        return np.where(np.abs(u) <= limit * loose, value, np.inf)

    formulas: dict[str, Callable[[], AnyArray]] = {
        "SquaredLoss": lambda: u * y + 0.5 * u**2,
        "AbsoluteLoss": lambda: within(1.0, u * y),
        "HuberLoss": lambda: within(settings["delta"], u * y + 0.5 * u**2),
        "EpsilonInsensitiveLoss": lambda: within(1.0, u * y + settings["epsilon"] * np.abs(u)),
        "SquaredEpsilonInsensitiveLoss": lambda: u * y + settings["epsilon"] * np.abs(u) + 0.25 * u**2,
        "QuantileLoss": lambda: np.where(
            (u >= -settings["level"] * loose) & (u <= (1.0 - settings["level"]) * loose), u * y, np.inf
        ),
        "PoissonLoss": lambda: -entr(np.where(np.abs(u + y) < 1e-12 * np.abs(y), 0.0, u + y)) - (u + y),
        "GammaLoss": lambda: -entr(np.where(np.abs(1 - u) < 1e-12, 0.0, 1 - u)) - (1 - u) * (1.0 + np.log(y)),
        "LogisticLoss": lambda: np.where(unit, xlogy(one, one) + xlog1py(1.0 - one, -one), np.inf),
        "HingeLoss": lambda: np.where(unit, -p, np.inf),
        "SquaredHingeLoss": lambda: np.where(p >= -1e-12, 0.25 * p**2 - p, np.inf),
        "ExponentialLoss": lambda: np.where(p >= -1e-12, xlogy(np.maximum(p, 0), np.maximum(p, 0)) - p, np.inf),
        "PerceptronLoss": lambda: np.where(unit, 0.0, np.inf),
    }
    found = formulas[name]() if name in formulas else model.loss.conjugate(y, u)
    return _per_row(np.asarray(found))


def _penalty_of(model: Any) -> tuple[str, dict[str, Any]]:
    if isinstance(model.penalty, str):
        name, settings = _NAMED_PENALTIES[model.penalty]
        return name, {"strength": 1.0, **settings}
    return type(model.penalty).__name__, dict(vars(model.penalty))


def _groups(settings: dict[str, Any]) -> list[AnyArray]:
    names = np.asarray(settings["groups"])
    return [np.flatnonzero(names == name) for name in dict.fromkeys(names.tolist())]


def _penalty_value(model: Any, W: AnyArray) -> float:
    """Return Ω(W)."""
    name, settings = _penalty_of(model)
    strength = float(settings.get("strength", 1.0))
    ratio = float(settings.get("l1_ratio", 0.0))
    formulas: dict[str, Callable[[], Any]] = {
        "L1Penalty": lambda: np.abs(W).sum(),
        "L2Penalty": lambda: 0.5 * (W**2).sum(),
        "ElasticNetPenalty": lambda: ratio * np.abs(W).sum() + 0.5 * (1.0 - ratio) * (W**2).sum(),
        "Lq": lambda: (np.abs(W) ** settings["q"]).sum(),
        "NormPenalty": lambda: math.sqrt((W**2).sum()),
        "GroupPenalty": lambda: sum(math.sqrt(len(g) * (W[g] ** 2).sum()) for g in _groups(settings)),
        "SupNormPenalty": lambda: np.abs(W).max(),
        "TotalVariationPenalty": lambda: ratio * np.abs(W).sum() + (1.0 - ratio) * np.abs(np.diff(W, axis=0)).sum(),
        "NuclearPenalty": lambda: np.linalg.svd(W, compute_uv=False).sum(),
    }
    if name not in formulas:
        return float(model.penalty.value(W))
    return strength * float(formulas[name]())


def _penalty_conjugate(model: Any, q: AnyArray, scale: float, norm: float | None) -> float:
    """Return (λΩ)*(q); `norm` is ‖q‖ in the kernel's space."""
    name, settings = _penalty_of(model)
    if scale == 0.0:
        return 0.0 if not q.any() else np.inf
    level = scale * float(settings.get("strength", 1.0))
    ratio = float(settings.get("l1_ratio", 0.0))
    if name == "L2Penalty":
        return float((q**2).sum() if norm is None else norm**2) / (2.0 * level)
    if name == "ElasticNetPenalty" and ratio < 1.0:
        return float((np.maximum(np.abs(q) - level * ratio, 0.0) ** 2).sum()) / (2.0 * level * (1.0 - ratio))
    if name == "Lq" and settings["q"] > 1.0:
        power = settings["q"]
        return float((1.0 - 1.0 / power) * (np.abs(q) * (np.abs(q) / (level * power)) ** (1.0 / (power - 1.0))).sum())
    dual_norms: dict[str, Callable[[], Any]] = {
        "L1Penalty": lambda: np.abs(q).max(),
        "ElasticNetPenalty": lambda: np.abs(q).max(),
        "Lq": lambda: np.abs(q).max(),
        "NormPenalty": lambda: math.sqrt((q**2).sum()) if norm is None else norm,
        "GroupPenalty": lambda: max(math.sqrt((q[g] ** 2).sum() / len(g)) for g in _groups(settings)),
        "SupNormPenalty": lambda: np.abs(q).sum(),
        "TotalVariationPenalty": lambda: max(_segment_norm(column, ratio) for column in q.T),
        "NuclearPenalty": lambda: np.linalg.svd(q, compute_uv=False).max(),
    }
    if name not in dual_norms:
        return scale * float(model.penalty.conjugate(q / scale))
    return 0.0 if float(dual_norms[name]()) <= level * (1.0 + 1e-10) else np.inf


def _segment_norm(u: AnyArray, ratio: float) -> float:
    """Return the largest |sum over a segment|/its cost: every segment of columns, one start at a time."""
    p = len(u)
    sums = np.r_[0.0, np.cumsum(u)]
    if ratio == 0.0:
        if abs(sums[-1]) > 1e-11 * float(np.abs(u).sum()):
            return np.inf
        sums = sums - sums[-1] * np.arange(p + 1.0) / p
    worst = 0.0
    for first in range(p):
        last = np.arange(first + 1, p + 1)
        cost = ratio * (last - first) + (1.0 - ratio) * ((first > 0) + (last < p) * 1.0)
        paid = cost > 0
        worst = max(worst, float(np.max(np.abs(sums[last] - sums[first])[paid] / cost[paid], initial=0.0)))
    return worst
