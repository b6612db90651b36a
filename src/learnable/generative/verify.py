r"""Independent checks of the naive Bayes models: sums over each class and what follows from them, in plain NumPy.

Nothing here is shared with the fits but the reading of column names: counts, means, squared deviations and the checksum
of the data are computed again, in extended precision, and every fitted number is compared with its definition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import digamma
from sklearn.base import clone

from ..core import AnyArray, Recheck, VerificationError, has_shapes, relative
from ..data.checking import Rows, read_classes

#: Both values are rounding errors; the tolerance itself is how far they may lie apart.
ROUNDING = 1e-9

#: A column whose spread within the classes is at most this share of its mean is constant but for rounding.
CONSTANT = 1e-14

#: Digits of a mean that rounding blurs, as a share of it, count little: 1e-14 of them are 1e-9 of this.
SHARE = 1e-5


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def gaussian_nb(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a GaussianNB."""
    rows, fingerprint = read_classes(model, X, y, sample_weight)
    K = len(model.classes_)
    d = rows.n_columns
    count, n, total, square = (np.zeros(shape, dtype=np.longdouble) for shape in (K, (K, d), (K, d), (K, d)))
    for Z, c, s in rows.chunks():
        there = ~np.isnan(Z)
        for k in range(K):
            mine = c == k
            count[k] += s[mine].sum()
            n[k] += s[mine] @ there[mine]
            total[k] += s[mine] @ np.where(there, Z, 0)[mine]
    some = np.where(n > 0, n, 1)
    mean = total / some
    centre = total.sum(axis=0) / np.maximum(n.sum(axis=0), np.finfo(float).tiny)
    whole = np.zeros(d, dtype=np.longdouble)
    for Z, c, s in rows.chunks():
        whole += s @ np.where(np.isnan(Z), 0, Z - centre) ** 2
        for k in range(K):
            square[k] += s[c == k] @ np.where(np.isnan(Z), 0, Z - mean[k])[c == k] ** 2
    epsilon = model.var_smoothing * (whole / np.maximum(n.sum(axis=0), np.finfo(float).tiny)).max()
    theta = mean
    var = square / some + epsilon
    if model.prior is not None:
        m, kappa, shape, rate = (
            np.asarray(model.prior[name], dtype=float) for name in ("mean", "kappa", "shape", "rate")
        )
        theta = (kappa * m + n * mean) / (kappa + n)
        rate = rate + (square + n * epsilon) / 2 + kappa * n / (kappa + n) * (mean - m) ** 2 / 2
        var = rate / (shape + n / 2 + 1.5)
    prior = count / count.sum() if model.priors is None else model.priors
    spread = np.sqrt(square / some)
    worst = max(
        relative(model.class_count_, count),
        relative(model.class_prior_, prior),
        relative(model.observed_, n),
        relative(model.mean_, mean, spread + SHARE * abs(mean)),
        relative(model.square_, square, square + SHARE**2 * some * mean**2),
        relative(model.epsilon_, epsilon, epsilon + model.var_smoothing * SHARE**2 * (mean**2).max()),
        relative(model.theta_, theta, spread + SHARE * abs(theta)),
        relative(model.var_, var, var + SHARE**2 * mean**2),
    )
    return Recheck(worst, ROUNDING, fingerprint)


@np.errstate(all="ignore")
def counts_nb(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a MultinomialNB, BernoulliNB or CategoricalNB."""
    rows, fingerprint = read_classes(model, X, y, sample_weight)
    K = len(model.classes_)
    count = np.zeros(K, dtype=np.longdouble)
    for _, c, s in rows.chunks():
        count += [s[c == k].sum() for k in range(K)]
    if model.class_prior is not None:
        log_prior = np.log(np.asarray(model.class_prior, dtype=float))
    else:
        log_prior = np.log(count / count.sum()) if model.fit_prior else np.full(K, -np.log(K))
    check = {"MultinomialNB": _multinomial, "BernoulliNB": _bernoulli, "CategoricalNB": _categorical}
    worst = max(
        relative(model.class_count_, count),
        relative(np.exp(model.class_log_prior_), np.exp(log_prior)),
        check[type(model).__name__](model, rows, count),
    )
    return Recheck(worst, ROUNDING, fingerprint)


def _multinomial(model: Any, rows: Rows, count: AnyArray) -> float:
    sums = _sums_by_class(rows, len(count), lambda Z: Z)
    smoothed = sums + _alpha(model)
    p = smoothed / smoothed.sum(axis=1, keepdims=True)
    return max(relative(model.feature_count_, sums), relative(np.exp(model.feature_log_prob_), p))


def _bernoulli(model: Any, rows: Rows, count: AnyArray) -> float:
    threshold = 0.5 if model.binarize is None else model.binarize
    sums = _sums_by_class(rows, len(count), lambda values: values > threshold)
    observed = count[:, None] - _sums_by_class(rows, len(count), np.isnan)
    p = (sums + _alpha(model)) / (observed + 2 * _alpha(model))
    if not has_shapes(model, feature_log_prob_=observed.shape):
        return np.inf
    found = np.exp(np.where((observed + 2 * _alpha(model)) > 0, model.feature_log_prob_, np.nan))
    p = np.where(np.isnan(p), 0, p)
    return max(
        relative(model.feature_count_, sums),
        relative(model.observed_, observed, np.maximum(observed, SHARE * count[:, None])),
        relative(np.where(np.isnan(found), 0, found), p),
    )


def _categorical(model: Any, rows: Rows, count: AnyArray) -> float:
    K = len(count)
    d = rows.n_columns
    if (
        not has_shapes(model, n_categories_=(d,))
        or len(model.category_count_) != d
        or len(model.feature_log_prob_) != d
    ):
        return np.inf
    sizes = np.asarray(model.n_categories_)
    least = np.broadcast_to(1 if model.min_categories is None else model.min_categories, (d,))
    tables = [np.zeros((K, size)) for size in sizes.tolist()]
    most = np.zeros(d)
    for Z, c, s in rows.chunks():
        most = np.maximum(most, np.where(np.isnan(Z), 0, Z).max(axis=0))
        if (most >= sizes).any():
            return np.inf
        for j in range(d):
            for k in range(K):
                mine = (c == k) & ~np.isnan(Z[:, j])
                tables[j][k] += np.bincount(Z[mine, j].astype(int), s[mine].astype(float), sizes[j])
    if (sizes != np.maximum(most + 1, least)).any():
        return np.inf
    worst = 0.0
    alpha = np.broadcast_to(_alpha(model), (d,))
    for j, table in enumerate(tables):
        smoothed = table + alpha[j]
        total = smoothed.sum(axis=1, keepdims=True)
        p = np.where(total > 0, smoothed / np.where(total > 0, total, 1), 0)
        worst = max(worst, relative(model.category_count_[j], table), relative(np.exp(model.feature_log_prob_[j]), p))
    return worst


def _sums_by_class(rows: Rows, n_classes: int, of_values: Any) -> AnyArray:
    """Return the weighted sums over each class of a function of the entries that is zero at zero, or of dense rows."""
    total = np.zeros((n_classes, rows.n_columns), dtype=np.longdouble)
    for Z, c, s in rows.chunks():
        if sp.issparse(Z):
            W = sp.csr_array((of_values(Z.data).astype(np.longdouble), Z.indices, Z.indptr), shape=Z.shape)
        else:
            W = of_values(Z).astype(np.longdouble)
        for k in range(n_classes):
            total[k] += W.T @ np.where(c == k, s, 0)
    return total


def _alpha(model: Any) -> AnyArray:
    alpha = np.asarray(model.alpha, dtype=np.longdouble)
    return alpha if model.force_alpha else np.maximum(alpha, 1e-10)


# Independent check of a `GenerativeClassifier` of exponential families: their mean statistics are those of the rows.
#
# At the maximum of the likelihood E t(x) under the density equals the mean of t(x) over the rows of the class. Both
# sides
# are written out here for each family, from its textbook formulas, and evaluated in extended precision.


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def generative_classifier(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a GenerativeClassifier."""
    rows, fingerprint = read_classes(model, X, y, sample_weight)
    K = len(model.classes_)
    records = model.fitted_
    if len(records) != K or not all(isinstance(record, dict) for record in records):
        raise VerificationError("verify: nothing is proven of these densities, so there is nothing to check.")
    if len({record["family"] for record in records}) > 1 or records[0]["family"] not in _FAMILIES:
        raise VerificationError(f"verify: no check is written for the family {records[0]['family']}.")
    statistic, expectation = _FAMILIES[records[0]["family"]]
    count = np.zeros(K, dtype=np.longdouble)
    total: list[Any] = [0] * K
    for Z, c, s in rows.chunks():
        for k in range(K):
            count[k] += s[c == k].sum()
            total[k] = total[k] + np.tensordot(s[c == k], statistic(Z[c == k]), axes=1)
    prior = count / count.sum() if model.priors is None else model.priors
    worst = max(relative(model.class_count_, count), relative(model.class_prior_, prior))
    for k, record in enumerate(records):
        goal = total[k] / count[k]
        try:
            found = expectation(**{key: np.asarray(v, dtype=np.longdouble) for key, v in record["parameters"].items()})
        except ValueError:  # parameters of different lengths
            return Recheck(np.inf, 0.0, fingerprint)
        size = abs(goal).max(axis=-1, keepdims=True) + 1e-300
        worst = max(worst, relative(found, goal, size))
    return Recheck(float(worst), ROUNDING, fingerprint)


def _pairs(*columns: Any) -> AnyArray:
    return np.stack(np.broadcast_arrays(*columns), axis=-1)


def _outer(x: AnyArray) -> AnyArray:
    return np.concatenate([x, (x[..., :, None] * x[..., None, :]).reshape(*x.shape[:-1], -1)], axis=-1)


def _psi(values: AnyArray) -> AnyArray:
    return digamma(np.asarray(values, dtype=np.float64))


def _normal_mean(mean: AnyArray, cov: AnyArray) -> AnyArray:
    return np.concatenate([mean, (cov + np.outer(mean, mean)).ravel()])


#: By family: t(x), and E t(x) from the parameters; the last axis runs over the entries of t.
_FAMILIES: dict[str, tuple[Any, Any]] = {
    "Normal": (lambda x: _pairs(x, x**2), lambda mean, std: _pairs(mean, mean**2 + std**2)),
    "MultivariateNormal": (_outer, _normal_mean),
    "Poisson": (lambda x: x[..., None], lambda rate: rate[..., None]),
    "Exponential": (lambda x: x[..., None], lambda rate: (1 / rate)[..., None]),
    "Bernoulli": (lambda x: x[..., None], lambda p: p[..., None]),
    "Gamma": (
        lambda x: _pairs(np.log(x), x),
        lambda shape, rate: _pairs(_psi(shape) - np.log(rate), shape / rate),
    ),
    "InverseGamma": (
        lambda x: _pairs(np.log(x), 1 / x),
        lambda shape, rate: _pairs(np.log(rate) - _psi(shape), shape / rate),
    ),
    "Beta": (
        lambda x: _pairs(np.log(x), np.log1p(-x)),
        lambda a, b: _pairs(_psi(a) - _psi(a + b), _psi(b) - _psi(a + b)),
    ),
    "Dirichlet": (np.log, lambda alpha: _psi(alpha) - _psi(alpha.sum())),
}


# Independent checks of the discriminants: class means and covariances in extended precision, and their equations.
#
# Nothing here is shared with the fits but the reading of column names. A rule is judged by the equations that define
# it,
# in columns scaled to one: Σ β_k = μ_k − x̄ for the linear one (in the directions that are kept), WᵀΣ_kW = I for the
# quadratic one.


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def linear_discriminant(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a LinearDiscriminantAnalysis."""
    rows, fingerprint = read_classes(model, X, y, sample_weight)
    K = len(model.classes_)
    d = rows.n_columns
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
    flat = std <= CONSTANT * abs(centre)
    std = np.where(flat, 1, std)
    R = np.where(flat | flat[:, None], 0, cov / np.outer(std, std))
    values, axes = np.linalg.eigh(R.astype(float))
    axes[flat] = 0
    floor = max(model.tol if model.solver == "svd" else 0.0, np.sqrt(d * np.finfo(float).eps * values[-1]))
    V = axes[:, np.sqrt(np.maximum(values, 0)) > floor]
    away = (mean - centre) / std
    coef = np.atleast_2d(model.coef_).astype(np.longdouble)
    intercept = np.asarray(model.intercept_, np.longdouble)
    n_rules = 1 if K == 2 else K
    sound = coef.shape == (n_rules, d) and has_shapes(model, intercept_=(n_rules,))
    if not sound or (model.solver != "lsqr" and not has_shapes(model, scalings_=(d, -1))):
        return Recheck(np.inf, 0.0, fingerprint)
    goal = away @ V @ V.T
    beta = coef * std
    exact = np.linalg.lstsq((V.T @ R @ V).astype(float), (V.T @ away.T).astype(float))[0].T @ V.T
    constant = np.log(priors) - (exact * away).sum(axis=1) / 2
    # The constant of a rule about the origin: rounding blurs 1e-14 of the terms that make it.
    blur = SHARE * abs(coef) @ abs(centre)
    if K == 2:
        goal = goal[1:] - goal[:1]
        constant = constant[1:] - constant[:1]
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
    K = len(model.classes_)
    d = rows.n_columns
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
        R = cov / np.outer(std, std)
        W = model.whiten_[k].astype(np.longdouble) * std[:, None]
        axes = model.rotations_[k].astype(np.longdouble)
        spread = model.scalings_[k].astype(np.longdouble)
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


def _priors(model: Any, count: AnyArray) -> AnyArray:
    if model.priors is None:
        return count / count.sum()
    given = np.asarray(model.priors, dtype=np.longdouble)
    return given / given.sum() if abs(given.sum() - 1) > 1e-5 else given


def _means(rows: Rows, n_classes: int) -> tuple[AnyArray, AnyArray]:
    count = np.zeros(n_classes, dtype=np.longdouble)
    total = np.zeros((n_classes, rows.n_columns), dtype=np.longdouble)
    for Z, c, s in rows.chunks():
        for k in range(n_classes):
            count[k] += s[c == k].sum()
            total[k] += s[c == k] @ Z[c == k]
    return count, total / count[:, None]


def _scatter(rows: Rows, k: int | None, mean: AnyArray) -> AnyArray:
    """Return Σ w (x − mean)(x − mean)ᵀ over one class, or over all rows."""
    total = np.zeros((rows.n_columns, rows.n_columns), dtype=np.longdouble)
    for Z, c, s in rows.chunks():
        mine = slice(None) if k is None else c == k
        away = (Z[mine] - mean).astype(float)  # centred: float64 has all the digits that matter
        total += away.T @ (away * s[mine, None].astype(float))
    return total


def _covariance(model: Any, rows: Rows, k: int | None, mean: AnyArray, count: Any) -> AnyArray:
    """Return the covariance of one class, or of all rows, by the method of the model."""
    d = rows.n_columns

    def mine(codes: AnyArray) -> AnyArray:
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
    n = count
    fourth = np.longdouble(0)
    for Z, c, s in rows.chunks():
        fourth += s[mine(c)] @ ((((Z[mine(c)] - mean) / std) ** 2).sum(axis=1) ** 2)
    level = np.trace(R) / d
    delta = ((R - level * np.eye(d)) ** 2).sum() / d
    beta = min((fourth / n - (R**2).sum()) / (n * d), delta)
    share = beta / delta if beta > 0 else 0.0
    return ((1 - share) * R + share * level * np.eye(d)) * np.outer(std, std)
