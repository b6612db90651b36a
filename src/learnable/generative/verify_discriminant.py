r"""Independent checks of the discriminants: class means and covariances in extended precision, and their equations.

Nothing here is shared with the fits but the reading of column names. A rule is judged by the equations that define it,
in columns scaled to one: Σ β_k = μ_k − x̄ for the linear one (in the directions that are kept), WᵀΣ_kW = I for the
quadratic one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..core.checking import Recheck, has_shapes, relative
from ..data.checking import Rows, read_classes
from .verify import ROUNDING, SHARE

Array = NDArray[Any]


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def linear_discriminant(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a LinearDiscriminantAnalysis."""
    rows, fingerprint = read_classes(model, X, y, sample_weight)
    K, d = len(model.classes_), rows.n_columns
    count, mean = _means(rows, K)
    priors = _priors(model, count)
    if model.solver == "svd":
        each = np.stack([_scatter(rows, k, mean[k]) for k in range(K)])
        cov = each.sum(axis=0) / count.sum()
        stored = np.einsum("k,kij->ij", priors, each / count[:, None, None])
    else:
        cov = np.einsum(
            "k,kij->ij", priors, np.stack([_covariance(model, rows, k, mean[k], count[k]) for k in range(K)])
        )
        stored = cov
    centre = priors @ mean
    std = np.sqrt(np.diag(cov))
    std = np.where(std > 0, std, 1)
    R = cov / np.outer(std, std)
    values, axes = np.linalg.eigh(R.astype(float))
    floor = max(model.tol if model.solver == "svd" else 0.0, np.sqrt(d * np.finfo(float).eps * values[-1]))
    V = axes[:, np.sqrt(np.maximum(values, 0)) > floor]
    away = (mean - centre) / std
    coef, intercept = np.atleast_2d(model.coef_).astype(np.longdouble), np.asarray(model.intercept_, np.longdouble)
    n_rules = 1 if K == 2 else K
    sound = coef.shape == (n_rules, d) and has_shapes(model, intercept_=(n_rules,))
    if not sound or (model.solver != "lsqr" and not has_shapes(model, scalings_=(d, -1))):
        return Recheck(np.inf, 0.0, fingerprint)
    goal, beta = away @ V @ V.T, coef * std
    exact = np.linalg.lstsq((V.T @ R @ V).astype(float), (V.T @ away.T).astype(float))[0].T @ V.T
    constant = np.log(priors) - (exact * away).sum(axis=1) / 2
    # The constant of a rule about the origin: rounding blurs 1e-14 of the terms that make it.
    blur = SHARE * abs(coef) @ abs(centre)
    if K == 2:
        goal, constant = goal[1:] - goal[:1], constant[1:] - constant[:1]
        exact = exact[1:] - exact[:1]
    digits = max(
        1.0, float(values[-1] / max(values[np.sqrt(np.maximum(values, 0)) > floor].min(initial=np.inf), 1e-300))
    )
    size = abs(beta) @ abs(R) + abs(goal)
    worst = max(
        relative(model.priors_, priors),
        relative(model.means_, mean, std + SHARE * abs(mean)),
        relative(model.xbar_, centre, std + SHARE * abs(mean).max(axis=0)),
        relative(beta @ R, goal, size),
        relative(beta, exact, (abs(exact).max() + 1e-300) * digits),
        relative(intercept + coef @ centre, constant, (1 + abs(constant) + (exact**2).sum(axis=1)) * digits + blur),
    )
    if hasattr(model, "covariance_"):
        worst = max(worst, relative(model.covariance_, stored, np.outer(std, std)))
    if model.solver != "lsqr":
        S = np.asarray(model.scalings_, dtype=np.longdouble) * std[:, None]
        size = abs(S).T @ abs(R) @ abs(S)
        worst = max(worst, relative(S.T @ R @ S, np.eye(S.shape[1]), size))
        if model.solver == "svd":
            shares = np.sqrt(priors)[:, None] * (mean - centre)
            between = shares.T @ shares
        else:
            whole = count @ mean / count.sum()
            between = _covariance(model, rows, None, whole, count.sum()) - cov
        # The means spread along the axes, most along the first.
        product = S.T @ (between / np.outer(std, std)) @ S
        along = np.diag(product)
        worst = max(worst, relative(product, np.diag(along), abs(along).max() * digits))
        shares_of = (along / along.sum())[: model.n_components_]
        worst = max(worst, relative(model.explained_variance_ratio_, shares_of, digits))
        if (np.diff(along) > 1e-9 * along.max()).any():
            worst = np.inf
    return Recheck(float(worst), ROUNDING, fingerprint)


@np.errstate(all="ignore")
def quadratic_discriminant(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a QuadraticDiscriminantAnalysis."""
    rows, fingerprint = read_classes(model, X, y, sample_weight)
    K, d = len(model.classes_), rows.n_columns
    count, mean = _means(rows, K)
    worst = relative(model.priors_, _priors(model, count))
    axes = [np.shape(one) for one in (*model.rotations_, *model.scalings_)]
    if axes != [(d, d)] * K + [(d,)] * K or not has_shapes(model, means_=(K, d)):
        return Recheck(np.inf, 0.0, fingerprint)
    if np.shape(model.whiten_) != (K, d, d) or len(model.scalings_) != K or len(model.rotations_) != K:
        return Recheck(np.inf, 0.0, fingerprint)
    for k in range(K):
        cov = _covariance(model, rows, k, mean[k], count[k])
        if model.solver == "svd":
            cov = (1 - model.reg_param) * cov + model.reg_param * np.eye(d)
        std = np.sqrt(np.diag(cov))
        R, W = cov / np.outer(std, std), model.whiten_[k].astype(np.longdouble) * std[:, None]
        axes, spread = model.rotations_[k].astype(np.longdouble), model.scalings_[k].astype(np.longdouble)
        worst = max(
            worst,
            relative(model.means_[k], mean[k], std + SHARE * abs(mean[k])),
            relative(W.T @ R @ W, np.eye(d), abs(W).T @ abs(R) @ abs(W)),
            relative((axes * spread) @ axes.T, cov, abs(cov).max()),
            relative(axes.T @ axes, np.eye(d), 1.0),
        )
        if hasattr(model, "covariance_"):
            worst = max(worst, relative(model.covariance_[k], cov, np.outer(std, std)))
    return Recheck(float(worst), ROUNDING, fingerprint)


def _priors(model: Any, count: Array) -> Array:
    if model.priors is None:
        return count / count.sum()
    given = np.asarray(model.priors, dtype=np.longdouble)
    return given / given.sum() if abs(given.sum() - 1) > 1e-5 else given


def _means(rows: Rows, n_classes: int) -> tuple[Array, Array]:
    count = np.zeros(n_classes, dtype=np.longdouble)
    total = np.zeros((n_classes, rows.n_columns), dtype=np.longdouble)
    for Z, c, s in rows.chunks():
        for k in range(n_classes):
            count[k] += s[c == k].sum()
            total[k] += s[c == k] @ Z[c == k]
    return count, total / count[:, None]


def _scatter(rows: Rows, k: int | None, mean: Array) -> Array:
    """Return Σ w (x − mean)(x − mean)ᵀ over one class, or over all rows."""
    total = np.zeros((rows.n_columns, rows.n_columns), dtype=np.longdouble)
    for Z, c, s in rows.chunks():
        mine = slice(None) if k is None else c == k
        away = (Z[mine] - mean).astype(float)  # centred: float64 has all the digits that matter
        total += away.T @ (away * s[mine, None].astype(float))
    return total


def _covariance(model: Any, rows: Rows, k: int | None, mean: Array, count: Any) -> Array:
    """Return the covariance of one class, or of all rows, by the method of the model."""
    d = rows.n_columns

    def mine(codes: Array) -> Array:
        return np.ones(len(codes), dtype=bool) if k is None else codes == k

    if model.covariance_estimator is not None:
        X = np.concatenate([np.asarray(Z[mine(c)], dtype=float) for Z, c, _ in rows.chunks()])
        fitted = clone(model.covariance_estimator, safe=False)
        fitted.fit(X)
        return np.atleast_2d(fitted.covariance_).astype(np.longdouble)
    cov = _scatter(rows, k, mean) / count
    if model.shrinkage is None:
        return cov
    if model.shrinkage != "auto":
        return (1 - model.shrinkage) * cov + model.shrinkage * np.trace(cov) / d * np.eye(d)
    std = np.sqrt(np.diag(cov))
    std = np.where(std > 0, std, 1)
    R = cov / np.outer(std, std)
    n, fourth = count, np.longdouble(0)
    for Z, c, s in rows.chunks():
        fourth += s[mine(c)] @ ((((Z[mine(c)] - mean) / std) ** 2).sum(axis=1) ** 2)
    level = np.trace(R) / d
    delta = ((R - level * np.eye(d)) ** 2).sum() / d
    beta = min((fourth / n - (R**2).sum()) / (n * d), delta)
    share = beta / delta if beta > 0 else 0.0
    return ((1 - share) * R + share * level * np.eye(d)) * np.outer(std, std)
