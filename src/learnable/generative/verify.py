r"""Independent checks of the naive Bayes models: sums over each class and what follows from them, in plain NumPy.

Nothing here is shared with the fits but the reading of column names: counts, means, squared deviations and the checksum
of the data are computed again, in extended precision, and every fitted number is compared with its definition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.checking import Recheck, has_shapes, relative
from ..data.checking import Rows, read_classes

Array = NDArray[Any]

#: Both values are rounding errors; the tolerance itself is how far they may lie apart.
ROUNDING = 1e-9
#: Digits of a mean that rounding blurs, as a share of it, count little: 1e-14 of them are 1e-9 of this.
SHARE = 1e-5


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def gaussian_nb(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a GaussianNB."""
    rows, fingerprint = read_classes(model, X, y, sample_weight)
    K, d = len(model.classes_), rows.n_columns
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
    theta, var = mean, square / some + epsilon
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
        relative(model.epsilon_, epsilon),
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


def _multinomial(model: Any, rows: Rows, count: Array) -> float:
    sums = _sums_by_class(rows, len(count), lambda Z: Z)
    smoothed = sums + _alpha(model)
    p = smoothed / smoothed.sum(axis=1, keepdims=True)
    return max(relative(model.feature_count_, sums), relative(np.exp(model.feature_log_prob_), p))


def _bernoulli(model: Any, rows: Rows, count: Array) -> float:
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


def _categorical(model: Any, rows: Rows, count: Array) -> float:
    K, d = len(count), rows.n_columns
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
    worst, alpha = 0.0, np.broadcast_to(_alpha(model), (d,))
    for j, table in enumerate(tables):
        smoothed = table + alpha[j]
        total = smoothed.sum(axis=1, keepdims=True)
        p = np.where(total > 0, smoothed / np.where(total > 0, total, 1), 0)
        worst = max(worst, relative(model.category_count_[j], table), relative(np.exp(model.feature_log_prob_[j]), p))
    return worst


def _sums_by_class(rows: Rows, n_classes: int, of_values: Any) -> Array:
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


def _alpha(model: Any) -> Array:
    alpha = np.asarray(model.alpha, dtype=np.longdouble)
    return alpha if model.force_alpha else np.maximum(alpha, 1e-10)
