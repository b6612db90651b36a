r"""Independent checks of best subsets by relaxations: every leaf's bound from its z, every subset from the definition.

Nothing here is shared with the fits. The leaves of a tree of splits on groups partition all subsets. A leaf in which
one subset is left is that subset's objective; of any other, z gives coefficients, these a dual point, and that point a
value that no subset of the leaf is below.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import nnls
from scipy.special import expit, xlog1py, xlogy

from ..core.checking import Recheck
from ..data.checking import Array, class_weights_of, read_classes, sound
from .verify_subset import Problem, _required, problem_of

_ROUNDING = 1e-8  # what rounding may add to a relative gap
_SMALLEST = 1e-6  # of z, as the fit takes it


def units_of(model: Any) -> list[list[int]]:
    """Return the groups of columns: those given, and every other column by itself."""
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    given = [
        sorted(names.index(item) if isinstance(item, str) else int(item) for item in one) for one in model.groups or []
    ]
    named = {j for one in given for j in one}
    return sorted([*given, *([j] for j in range(model.n_features_in_) if j not in named)], key=lambda one: one[0])


class _Squares:
    """‖y − Aβ‖² + α‖β‖²."""

    def __init__(self, A: Array, y: Array, alpha: float, positive: bool) -> None:
        self.A = A
        self.y = y
        self.alpha = alpha
        self.positive = positive
        self.scale = float(y @ y)

    def solve(self, columns: Array, z: Array) -> tuple[Array, float]:
        root = np.sqrt(z)
        part = self.A[:, columns] * root
        beta = np.zeros(self.A.shape[1])
        if len(columns):
            rows = np.vstack([part, np.sqrt(self.alpha) * np.eye(len(columns))])
            target = np.r_[self.y, np.zeros(len(columns))]
            found = nnls(rows, target)[0] if self.positive else np.linalg.lstsq(rows, target, rcond=None)[0]
            beta[columns] = root * found
        r = self.y - self.A @ beta
        return beta, float(r @ r + self.alpha * (beta[columns] ** 2 / z).sum())

    def dual(self, beta: Array, groups: list[Array], inside: list[int], free: list[int], k: int) -> float:
        r = self.y - self.A @ beta
        if self.alpha == 0:
            return float(r @ r)
        slopes = self.A.T @ r
        slopes = np.maximum(slopes, 0) if self.positive else slopes
        most = _most(np.array([float((slopes[g] ** 2).sum()) for g in groups]), inside, free, k)
        return float(max(0.0, r @ self.y) ** 2 / max(r @ r + most / self.alpha, 1e-300))


class _Logistic:
    """Σ w ℓ + ½α‖β‖²; A is centred where the intercept is free."""

    def __init__(self, A: Array, y: Array, w: Array, alpha: float, intercept: bool) -> None:
        self.A = A
        self.y = y
        self.w = w
        self.alpha = alpha
        self.intercept = intercept
        self.positive = False
        self.scale = float(w.sum() * np.log(2))

    def solve(self, columns: Array, z: Array) -> tuple[Array, float]:
        root = np.sqrt(z)
        Z = np.column_stack([self.A[:, columns] * root, np.full(len(self.A), float(self.intercept))])
        ridge = np.r_[np.full(len(columns), np.sqrt(self.alpha)), 0.0 if self.intercept else 1.0]
        theta = np.zeros(Z.shape[1])

        def value(at: Array) -> float:
            s = Z @ at
            return float(self.w @ (np.logaddexp(0, s) - self.y * s) + 0.5 * (ridge * at) @ (ridge * at))

        last = value(theta)
        for _ in range(60):
            m = expit(Z @ theta)
            half = np.sqrt(np.maximum(self.w * m * (1 - m), 1e-300))
            rows = np.vstack([half[:, None] * Z, np.diag(ridge)])
            target = np.r_[self.w * (self.y - m) / half, -ridge * theta]
            step = np.linalg.lstsq(rows, target, rcond=1e-13)[0]
            share = 1.0
            while value(theta + share * step) > last and share > 1e-9:
                share /= 2
            new = value(theta + share * step)
            if not new < last:
                break
            theta = theta + share * step
            if last - new <= 1e-15 * last:
                last = new
                break
            last = new
        beta = np.zeros(self.A.shape[1] + 1)
        beta[columns] = root * theta[:-1]
        beta[-1] = theta[-1] if self.intercept else 0.0
        return beta, last

    def dual(self, beta: Array, groups: list[Array], inside: list[int], free: list[int], k: int) -> float:
        u = expit(self.A @ beta[:-1] + beta[-1])
        if self.intercept:
            off = float(self.w @ (u - self.y))
            u = u * (1 - off / (self.w @ u)) if off > 0 else u - off / (self.w @ (1 - u)) * (1 - u)
        slopes = self.A.T @ (self.w * (u - self.y))
        most = _most(np.array([float((slopes[g] ** 2).sum()) for g in groups]), inside, free, k)
        return float(-self.w @ (xlogy(u, u) + xlog1py(1 - u, -u)) - most / (2 * self.alpha))


def _most(sums: Array, inside: list[int], free: list[int], k: int) -> float:
    rest = sorted((float(sums[g]) for g in free), reverse=True)[: max(0, k - len(inside))]
    return float(sums[inside].sum() + sum(rest))


def _lower_bounds(model: Any, loss: Any, groups: list[Array], required: list[int]) -> Array | None:
    """Return the least bound of the leaves of each size's tree; None if they are no trees, or the leaves too few."""
    proof = np.asarray(model.proof_).tolist()
    leaves = np.asarray(model.leaves_, dtype=float)
    place = leaf = 0
    lower = []
    for k in np.asarray(model.sizes_).tolist():
        stack = [(list(required), [g for g in range(len(groups)) if g not in required])]
        least = np.inf
        while stack:
            if place >= len(proof):
                return None
            inside, free = stack.pop()
            unit = proof[place]
            place += 1
            if unit >= 0:
                if unit not in free:
                    return None
                rest = [g for g in free if g != unit]
                stack.append((inside, rest))
                stack.append((sorted([*inside, unit]), rest))
                continue
            if leaf >= len(leaves):
                return None
            least = min(least, _bound(loss, groups, inside, free, k, leaves[leaf]))
            leaf += 1
        lower.append(least)
    return np.array(lower) if place == len(proof) and leaf == len(leaves) else None


def _bound(loss: Any, groups: list[Array], inside: list[int], free: list[int], k: int, z: Array) -> float:
    if len(inside) > k:
        return np.inf  # no subset of this size
    if len(inside) == k or len(inside) + len(free) <= k:
        here = inside if len(inside) == k else [*inside, *free]
        columns = np.sort(np.concatenate([groups[g] for g in here])) if here else np.zeros(0, dtype=int)
        return float(loss.solve(columns.astype(int), np.ones(len(columns)))[1])
    within = sorted([*inside, *free])
    columns = np.concatenate([groups[g] for g in within])
    share = np.concatenate([np.full(len(groups[g]), max(z[g], _SMALLEST)) for g in within])
    beta, _ = loss.solve(columns.astype(int), np.ones(len(columns)) if loss.alpha == 0 else share)
    return float(loss.dual(beta, groups, inside, free, k))


def _recheck(model: Any, loss: Any, columns_cost: Any, coef: Array, fingerprint: str) -> Recheck:
    """Check subsets, objectives, the choice and the proof."""
    units = units_of(model)
    groups = [np.array(one) for one in units]
    need = _required(model)
    required = [g for g, one in enumerate(units) if need[one].any()]
    sizes = np.asarray(model.sizes_)
    subsets = np.asarray(model.subsets_, dtype=bool)
    p = model.n_features_in_
    found = []
    sane = subsets.shape == (len(sizes), p) and (np.diff(sizes) == 1).all()
    for size, subset in zip(sizes.tolist(), subsets, strict=True):
        whole = [bool(subset[g].all()) for g in groups]
        sane = sane and all(bool(subset[g].any()) == all_in for g, all_in in zip(groups, whole, strict=True))
        sane = sane and sum(whole) == size and all(whole[g] for g in required)
        columns = np.flatnonzero(subset)
        found.append(loss.solve(columns, np.ones(len(columns)))[1])
    values = np.array(found)
    floor = max(1e-10 * loss.scale, np.finfo(float).tiny)
    near = 1e-7 * np.abs(values) + 1e-9 * loss.scale
    sane = sane and (np.abs(np.asarray(model.objective_path_) - values) <= near).all()
    cost = columns_cost(np.maximum(values, floor), subsets.sum(axis=1))
    chosen = np.flatnonzero((subsets == np.asarray(model.support_, dtype=bool)).all(axis=1))
    sane = sane and len(chosen) > 0 and cost[chosen[0]] <= cost.min() + 1e-6 * (1 + abs(cost.min()))
    if not sane:
        return Recheck(np.inf, 0.0, fingerprint)
    support = np.flatnonzero(subsets[chosen[0]])
    beta, _ = loss.solve(support, np.ones(len(support)))
    away = np.abs(coef - beta).max(initial=0.0)
    if (
        not away <= 1e-6 * (np.abs(beta).max(initial=0.0) + 1e-300)
        or np.delete(coef, support)[: p - len(support)].any()
    ):
        return Recheck(np.inf, 0.0, fingerprint)
    if model.certificate_.kind == "greedy":
        return Recheck(_best_exchange(loss, groups, subsets, values, required), 1e-9, fingerprint)
    lower = _lower_bounds(model, loss, groups, required)
    if lower is None:
        return Recheck(np.inf, 0.0, fingerprint)
    if loss.scale == 0:
        return Recheck(0.0, _ROUNDING, fingerprint)
    bound = np.minimum(values, lower)
    value = float(np.max((values - bound) / np.maximum(bound, 1e-8 * loss.scale)))
    return Recheck(value, _ROUNDING, fingerprint, bound=value)


def _best_exchange(loss: Any, groups: list[Array], subsets: Array, values: Array, required: list[int]) -> float:
    """Return by how much the exchange of the least useful groups for the most promising ones lowers an objective."""
    worst = 0.0
    norms = (loss.A**2).sum(axis=0)
    for subset, value in zip(subsets, values, strict=True):
        columns = np.flatnonzero(subset)
        beta, _ = loss.solve(columns, np.ones(len(columns)))
        slopes = loss.A.T @ (loss.y - loss.A @ beta)
        slopes = np.maximum(slopes, 0) if loss.positive else slopes
        inside = [g for g, one in enumerate(groups) if subset[one].all()]
        useful = sorted(
            (float((norms[groups[g]] * beta[groups[g]] ** 2).sum()), g) for g in inside if g not in required
        )
        others = [g for g in range(len(groups)) if g not in inside]
        promise = [-float((slopes[groups[g]] ** 2 / np.maximum(norms[groups[g]], 1e-300)).sum()) for g in others]
        strong = [others[place] for place in np.argsort(promise, kind="stable")]
        for size in range(1, min(len(useful), len(strong), 5) + 1):
            gone = {g for _, g in useful[:size]}
            trial = [g for g in inside if g not in gone] + strong[:size]
            chosen = np.sort(np.concatenate([groups[g] for g in trial])).astype(int)
            lower = loss.solve(chosen, np.ones(len(chosen)))[1]
            worst = max(worst, (value - lower) / max(value, 1e-8 * loss.scale, 1e-300))
    return float(worst)


@sound
@np.errstate(all="ignore")
def grouped(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a BestSubset that used relaxations, or splicing alone."""
    problem: Problem = problem_of(model, X, y, sample_weight)
    A = problem.A * problem.scale
    loss = _Squares(A, problem.y, float(model.alpha), bool(model.positive))
    n = problem.weight
    coef = np.asarray(model.coef_, dtype=float)
    terms = abs(problem.y_mean) + np.abs(problem.x_mean) @ np.abs(coef) + np.sqrt(problem.total / n)
    if abs(float(model.intercept_) - (problem.y_mean - problem.x_mean @ coef)) > 1e-9 * terms:
        return Recheck(np.inf, 0.0, problem.fingerprint)
    if hasattr(model, "cv_errors_"):
        errors = np.asarray(model.cv_errors_, dtype=float)
        units = units_of(model)
        low = sum(bool(_required(model)[one].any()) for one in units)
        if len(model.sizes_) != 1 or model.sizes_[0] != low + int(np.argmin(errors.mean(axis=1))):
            return Recheck(np.inf, 0.0, problem.fingerprint)

    def cost(values: Array, counts: Array) -> Array:
        if model.criterion == "cp":
            full = problem.least(np.ones((1, len(problem.scale)), dtype=bool))[0]
            return np.asarray(values / (full / (n - len(problem.scale) - 1)) + 2 * counts)
        factor = 2.0 if model.criterion == "aic" else max(0.0, float(np.log(n)))
        factor += 2.0 * float(np.log(max(1, len(problem.scale)))) if model.criterion == "ebic" else 0.0
        return np.asarray(n * np.log(values) + factor * counts)

    return _recheck(model, loss, cost, coef, problem.fingerprint)


@sound
@np.errstate(all="ignore")
def classifier(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a BestSubsetClassifier."""
    rows, fingerprint = read_classes(model, X, y, sample_weight)
    w = (rows.weight * class_weights_of(model.class_weight, model.classes_, rows)[rows.y]).astype(float)
    Z = np.concatenate([(part.toarray() if hasattr(part, "toarray") else part) for part, _, _ in rows.chunks()])
    Z = Z.astype(float)
    centre = w @ Z / w.sum() if model.fit_intercept else np.zeros(Z.shape[1])
    loss = _Logistic(Z - centre, rows.y.astype(float), w, float(model.alpha), bool(model.fit_intercept))
    raw = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    if np.shape(raw) != (1, Z.shape[1]) or np.shape(model.intercept_) != (1,):
        return Recheck(np.inf, 0.0, fingerprint)
    coef = np.r_[np.asarray(raw, dtype=float)[0], float(model.intercept_[0]) + centre @ np.asarray(raw, dtype=float)[0]]
    factor = 2.0 if model.criterion == "aic" else max(0.0, float(np.log(w.sum())))
    return _recheck(model, loss, lambda values, counts: 2 * values + factor * counts, coef, fingerprint)
