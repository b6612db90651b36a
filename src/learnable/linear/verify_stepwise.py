r"""Independent checks of stepwise generalised linear models: every candidate of every step is fitted again by IRLS.

Nothing here is shared with the fits: deviances are sums of their definition, fits weighted least squares in plain
loops.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from scipy.special import betainc, expit, gammaincc, xlogy

from ..core.checking import Recheck
from ..data.checking import Array, fingerprint_of, sound
from . import verify
from .verify_choice import folds_of
from .verify_stored import _in_order
from .verify_subset import _required

_SAME = 1e-6  # relative distance at which two values of the objective are the same
_STEPS = 200  # of iterated least squares; with the expected curvature of a gamma regression they converge linearly


class _Rows:
    def __init__(self, X: Array, y: Array, w: Array, family: str, intercept: bool) -> None:
        self.X = X
        self.y = y
        self.w = w
        self.family = family
        self.intercept = intercept
        self.known: dict[tuple[int, ...], tuple[Array, float, Array]] = {}

        self.dispersion = 1.0

    def part(self, rows: Array) -> _Rows:
        return _Rows(self.X[rows], self.y[rows], self.w[rows], self.family, self.intercept)

    def pearson(self) -> float:
        """Return the dispersion of a gamma regression on all columns."""
        m = np.exp(self.fit(range(self.X.shape[1]))[2])
        freedom = self.w.sum() - self.X.shape[1] - int(self.intercept)
        return max(float(np.sum(self.w * (self.y - m) ** 2 / m**2) / freedom), 1e-12)

    def mean(self, z: Array) -> Array:
        return np.asarray(expit(z) if self.family == "binomial" else np.exp(z))

    def deviance(self, z: Array) -> float:
        m = self.mean(z)
        y = self.y
        if self.family == "binomial":
            loss = np.where(z > 0, np.log1p(np.exp(-np.abs(z))) + (1 - y) * z, np.log1p(np.exp(-np.abs(z))) - y * z)
            return float(2 * self.w @ (loss + xlogy(y, y) + xlogy(1 - y, 1 - y)))
        if self.family == "gamma":
            return float(2 * self.w @ (np.log(m / y) + (y - m) / m))
        return float(2 * self.w @ (xlogy(y, y) - y * z - y + m))

    def variance(self, z: Array) -> Array:
        """Return the expected curvature of half the deviance by the score."""
        m = self.mean(z)
        if self.family == "gamma":
            return np.ones(len(m))
        return np.asarray(m * (1 - m) if self.family == "binomial" else m)

    def excess(self, z: Array) -> Array:
        """Return minus the slope of half the deviance by the score."""
        m = self.mean(z)
        return np.asarray((self.y - m) / m if self.family == "gamma" else self.y - m)

    def design(self, columns: Any) -> Array:
        Z = self.X[:, list(columns)]
        return np.column_stack([np.ones(len(Z)), Z]) if self.intercept else Z

    def fit(self, columns: Any) -> tuple[Array, float, Array]:
        """Return coefficients, deviance and scores, by iterated weighted least squares."""
        key = tuple(sorted(int(j) for j in columns))
        if key not in self.known:
            self.known[key] = self._irls(key)
        return self.known[key]

    def _irls(self, columns: tuple[int, ...]) -> tuple[Array, float, Array]:
        Z = self.design(columns)
        if not Z.shape[1]:
            return np.zeros(0), self.deviance(np.zeros(len(Z))), np.zeros(len(Z))
        beta = np.zeros(Z.shape[1])
        if self.intercept:
            level = self.w @ self.y / self.w.sum()
            level = np.clip(level, 1e-12, 1 - 1e-12) if self.family == "binomial" else max(level, 1e-12)
            beta[0] = np.log(level / (1 - level)) if self.family == "binomial" else np.log(level)
        last = self.deviance(Z @ beta)
        for _ in range(_STEPS):
            z = Z @ beta
            root = np.sqrt(np.maximum(self.w * self.variance(z), 1e-300))
            move = np.linalg.lstsq(root[:, None] * Z, self.w * self.excess(z) / root, rcond=1e-12)[0]
            share = 1.0
            while self.deviance(Z @ (beta + share * move)) > last and share > 1e-6:
                share /= 2
            value = self.deviance(Z @ (beta + share * move))
            if not value < last:
                break
            beta = beta + share * move
            if last - value <= 1e-13 * max(value, 1e-8):
                last = value
                break
            last = value
        return beta, last, Z @ beta

    def statistic(self, test: str, inner: list[int], j: int) -> float:
        """Return the statistic of column j beside the columns `inner`."""
        if test == "lr":
            return (self.fit(inner)[1] - self.fit([*inner, j])[1]) / self.dispersion
        outer = sorted([*inner, j])
        if test == "wald":
            beta, _, z = self.fit(outer)
            Z = self.design(outer)
            inverse = np.linalg.pinv(Z.T @ (Z * (self.w * self.variance(z))[:, None]), hermitian=True)
            place = outer.index(j) + int(self.intercept)
            return float(beta[place] ** 2 / (self.dispersion * inverse[place, place]))
        z = self.fit(inner)[2]
        v = self.w * self.variance(z)
        Z = self.design(inner)
        x = self.X[:, j]
        left = x.copy()
        if Z.shape[1]:
            root = np.sqrt(v)
            left = x - Z @ np.linalg.lstsq(root[:, None] * Z, root * x, rcond=1e-12)[0]
        return float((self.w * self.excess(z) @ x) ** 2 / (self.dispersion * (v @ left**2)))


@sound
@np.errstate(all="ignore")
def stepwise_glm(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a StepwiseGLM: every step against all its candidates, and the size that was kept."""
    rows, kept = verify.rows_of(model, X, y, sample_weight)
    Z = np.concatenate([(part.toarray() if hasattr(part, "toarray") else part) for part, _, _ in rows.chunks()])
    data = _Rows(Z.astype(float), rows.y[:, 0], rows.weight.astype(float), model.family, bool(model.fit_intercept))
    fingerprint = fingerprint_of(rows)
    data.dispersion = data.pearson() if model.family == "gamma" else 1.0
    if not abs(float(getattr(model, "dispersion_", 1.0)) - data.dispersion) <= 1e-6 * data.dispersion:
        return Recheck(np.inf, 0.0, fingerprint)
    required = [int(j) for j in np.flatnonzero(_required(model))]
    order = [int(j) for j in np.asarray(model.order_)]
    k = len(required)
    p = Z.shape[1]
    forward = model.direction == "forward"
    deviances = np.array([data.fit(order[:size])[1] for size in range(k, len(order) + 1)])
    stored = np.asarray(model.deviance_path_, dtype=float)
    statistics = np.asarray(model.statistics_, dtype=float)
    whole = max(float(deviances[0]), 1e-12)
    place = int(np.asarray(model.support_, dtype=bool).sum()) - k
    columns = order[: k + place]
    beta = np.zeros(p)
    found = data.fit(columns)[0]
    beta[sorted(columns)] = found[int(data.intercept) :]
    level = found[0] if data.intercept else 0.0
    near = 1e-5 * (1 + np.abs(beta).max(initial=0.0))
    sane = (
        len(set(order)) == len(order)
        and sorted(order[:k]) == required
        and stored.shape == deviances.shape
        and statistics.shape == (len(order) - k,)
        and (np.abs(stored - deviances) <= 1e-7 * whole).all()
        and np.array_equal(np.isin(np.arange(p), columns), np.asarray(model.support_, dtype=bool))
        and np.shape(model.coef_) == (p,)
        and not np.asarray(model.coef_)[~np.asarray(model.support_, dtype=bool)].any()
        and (np.abs(model.coef_ - beta) <= near).all()
        and abs(float(model.intercept_) - level) <= near
        and place == _kept_place(model, deviances, statistics, k, data, order, kept, rows)
    )
    if not sane:
        return Recheck(np.inf, 0.0, fingerprint)
    worst = 0.0
    for step in range(len(order) - k):
        inner = order[: k + step]
        own = data.statistic(model.test, inner, order[k + step])
        if abs(own - statistics[step]) > 1e-5 * (1 + own):
            return Recheck(np.inf, 0.0, fingerprint)
        if forward:
            others = [j for j in range(p) if j not in inner and not _depends(data, inner, j)]
            best = max(data.statistic(model.test, inner, j) for j in others)
            worst = max(worst, (best - own) / max(best, 1e-300))
        else:
            outer = order[: k + step + 1]
            free = [j for j in outer if j not in required]
            least = min(data.statistic(model.test, [i for i in outer if i != j], j) for j in free)
            worst = max(worst, (own - least) / max(own, 1e-3))
    free = [j for j in range(p) if j not in required]
    bound = None
    if math.comb(len(free), place) <= 200:
        best = min(data.fit([*required, *some])[1] for some in itertools.combinations(free, place))
        gap = max(0.0, deviances[place] - best) / max(best, 1e-8 * whole, 1e-300)
        bound = gap if gap > 1e-6 else 0.0
    return Recheck(float(worst), _SAME, fingerprint, bound=bound)


def _depends(data: _Rows, inner: list[int], j: int) -> bool:
    v = data.w * data.variance(data.fit(inner)[2])
    Z = data.design(inner)
    x = data.X[:, j]
    root = np.sqrt(v)
    left = x
    if Z.shape[1]:
        left = x - Z @ np.linalg.lstsq(root[:, None] * Z, root * x, rcond=1e-13)[0]
    return bool(v @ left**2 <= 1e-9 * max(float(v @ x**2), 1e-300))


def _kept_place(
    model: Any, deviances: Array, statistics: Array, k: int, data: _Rows, order: list[int], kept: Array, rows: Any
) -> int:
    """Return the place on the path that the parameters ask for; −1 if stored deviances are not those of folds."""
    last = len(deviances) - 1
    if model.size is not None:
        return min(model.size - k, last)
    sizes = k + np.arange(last + 1)
    if model.criterion == "cv":
        table = np.asarray(model.cv_deviances_, dtype=float)
        if table.shape[0] != last + 1 or not _are_deviances(model, data, kept, rows, table, k):
            return -1
        return int(np.argmin(table.mean(axis=1)))
    if model.criterion != "test":
        factor = 2.0 if model.criterion == "aic" else max(0.0, float(np.log(data.w.sum())))
        return int(np.argmin(deviances / data.dispersion + factor * sizes))
    found = np.maximum(statistics, 0)
    small = gammaincc(0.5, found / 2) <= model.p_value
    if model.family == "gamma":
        freedom = data.w.sum() - data.X.shape[1] - int(data.intercept)
        small = betainc(freedom / 2, 0.5, freedom / (freedom + found)) <= model.p_value
    expected = 0
    if model.direction == "forward":
        while expected < last and small[expected]:
            expected += 1
    else:
        expected = last
        while expected > 0 and not small[expected - 1]:
            expected -= 1
    return expected


def _are_deviances(model: Any, data: _Rows, kept: Array, rows: Any, table: Array, k: int) -> bool:
    """Tell whether deviances on folds are those of paths on their training rows; forward paths are walked again."""
    if not _in_order(model, rows, kept):
        return True
    folds = folds_of(model.cv, kept, np.zeros(len(kept)), False)
    if folds is None:
        return True
    if table.shape[1] != len(folds):
        return False
    if model.direction != "forward":
        return True
    required = [int(j) for j in np.flatnonzero(_required(model))]
    for number, (train, test) in enumerate(folds):
        inner = data.part(train)
        outer = data.part(test)
        columns = list(required)
        for size in range(len(table)):
            beta = inner.fit(columns)[0]
            value = outer.deviance(outer.design(sorted(columns)) @ beta) / outer.w.sum()
            if not abs(value - table[size, number]) <= 1e-5 * (abs(value) + 1e-6):
                return False
            free = [j for j in range(data.X.shape[1]) if j not in columns and not _depends(inner, columns, j)]
            if not free:
                break
            columns.append(max(free, key=lambda j: inner.statistic(model.test, columns, j)))
    return True
