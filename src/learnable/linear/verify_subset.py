r"""Independent checks of subsets and steps: every least squares fit from the definition, the proof walked leaf by leaf.

Nothing here is shared with the fits. A proof is a tree of splits on columns, so its leaves partition all subsets; a
leaf with the columns I in and O out holds I itself, whose residual sum of squares is computed, and larger subsets, none
of which is below that of all columns but O.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.special import betainc

from ..core.checking import Recheck
from ..data.checking import Array, fingerprint_of, numbers_of, sound
from ..data.sources import named_columns
from . import verify
from .verify_stored import _folds, _in_order

_ROUNDING = 1e-14  # of the total sum of squares
_EXACT = 1e-10  # share of the total sum of squares below which a fit counts as exact
_SAME = 1e-9  # relative
_RANK = 1e-8  # relative size below which a singular value counts as zero
_MOST_ENUMERATED = 8  # columns up to which the subsets of every fold are enumerated
_BATCH = 2**21  # numbers in one stack of matrices


class Problem(NamedTuple):
    """Least squares of unit-norm columns without an intercept."""

    A: Array  #: (m, p)
    y: Array  #: (m,)
    scale: Array  #: (p,)
    weight: float
    total: float
    dependent: bool
    x_mean: Array
    y_mean: float
    fingerprint: str

    def rss(self, columns: Array) -> Array:
        """Return the residual sums of squares of subsets (L, p) given as truth values; exact fits count as one."""
        return np.asarray(np.maximum(self.least(columns), _EXACT * self.total))

    def least(self, columns: Array) -> Array:
        """Return the residual sums of squares of subsets (L, p) given as truth values."""
        found = np.empty(len(columns))
        sizes = columns.sum(axis=1)
        for size in np.unique(sizes).tolist():
            rows = np.flatnonzero(sizes == size)
            step = max(1, _BATCH // max(1, size * len(self.y)))
            for start in range(0, len(rows), step):
                part = rows[start : start + step]
                found[part] = self._stack(np.nonzero(columns[part])[1].reshape(len(part), size))
        return found

    def _stack(self, numbers: Array) -> Array:
        if numbers.shape[1] == 0:
            return np.full(len(numbers), self.y @ self.y)
        stack = self.A.T[numbers].transpose(0, 2, 1)
        if self.dependent:
            Q, sizes, _ = np.linalg.svd(stack, full_matrices=False)
            Q = Q * (sizes > _RANK * np.maximum(sizes[:, :1], 1.0))[:, None, :]
        else:
            Q = np.linalg.qr(stack)[0]
        fit = np.einsum("lms,ls->lm", Q, np.einsum("lms,m->ls", Q, self.y))
        return np.asarray(((self.y - fit) ** 2).sum(axis=1))


def problem_of(model: Any, X: Any, y: Any, sample_weight: Any, alpha: float = 0.0) -> Problem:
    """Read the data in extended precision: centred, weighted, compressed by one QR."""
    rows, _ = verify.rows_of(model, X, y, sample_weight)
    parts = [(np.asarray(Z.toarray() if hasattr(Z, "toarray") else Z), t[:, 0], s) for Z, t, s in rows.chunks()]
    Z, t, s = (np.concatenate(part) for part in zip(*parts, strict=True))
    W = s.sum()
    x_mean, y_mean = (s @ Z / W, s @ t / W) if model.fit_intercept else (0 * Z[0], 0 * t[0])
    root = np.sqrt(s)
    A = root[:, None] * (Z - x_mean)
    b = root * (t - y_mean)
    norm = np.sqrt((A * A).sum(axis=0))
    flat = norm <= 1e-14 * np.sqrt(W) * abs(x_mean)
    A = np.where(flat, 0, A)
    scale = np.where(flat | (norm == 0), 1, norm)
    total = float(b @ b)
    A = A / scale
    if alpha > 0:
        A = np.vstack([A, np.diag(np.sqrt(np.longdouble(alpha)) / scale)])
        b = np.r_[b, np.zeros(len(scale))]
    T = np.column_stack([A, b]).astype(float)
    if len(T) > T.shape[1]:
        T = np.asarray(np.linalg.qr(T, mode="r"))
    sizes = np.linalg.svd(T[:, :-1], compute_uv=False)
    dependent = len(sizes) < len(scale) or sizes[-1] <= _RANK * len(scale) * sizes[0]
    return Problem(
        T[:, :-1],
        T[:, -1],
        scale.astype(float),
        float(W),
        total,
        bool(dependent),
        x_mean.astype(float),
        float(y_mean),
        fingerprint_of(rows),
    )


def is_least_squares(model: Any, problem: Problem, support: Array) -> bool:
    """Tell whether the coefficients are zero off the support and solve its normal equations, with their intercept."""
    coef = np.asarray(model.coef_, dtype=float)
    if coef.shape != support.shape or coef[~support].any() or np.shape(model.intercept_) != ():
        return False
    scaled = coef * problem.scale
    r = problem.y - problem.A @ scaled
    size = np.sqrt(problem.y @ problem.y) + np.abs(scaled).sum()
    wanted = problem.y_mean - problem.x_mean @ coef
    terms = abs(problem.y_mean) + np.abs(problem.x_mean) @ np.abs(coef)
    level = abs(float(model.intercept_) - wanted) <= 1e-12 * terms + 1e-10 * size / np.sqrt(problem.weight)
    return bool(level) and bool((np.abs(problem.A[:, support].T @ r) <= 1e-10 * size).all())


@sound
@np.errstate(all="ignore")
def best_subset(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a BestSubset from its proof."""
    if hasattr(model, "leaves_"):
        from .verify_relaxation import grouped

        return cast(Recheck, grouped(model, X, y, sample_weight))
    problem = problem_of(model, X, y, sample_weight, float(model.alpha))
    p = len(problem.scale)
    n = problem.weight
    required = _required(model)
    low, high = _range(model, p, int(required.sum()))
    sizes = np.asarray(model.sizes_)
    if model.size is None and model.criterion == "cv":
        if len(sizes) != 1 or not _chose_by_folds(model, X, y, sample_weight, low, high, int(sizes[0])):
            return Recheck(np.inf, 0.0, problem.fingerprint)
        low = high = int(sizes[0])
    by_criterion = model.size is None and model.criterion in ("aic", "bic", "ebic")
    penalty = 2.0 if model.criterion in ("aic", "cp") else max(0.0, float(np.log(n)))
    penalty += 2.0 * float(np.log(max(1, p))) if model.criterion == "ebic" else 0.0
    subsets = np.asarray(model.subsets_, dtype=bool)
    floor = max(_EXACT * problem.total, np.finfo(float).tiny)
    found = np.full(p + 1, np.inf)
    objective = np.maximum(problem.rss(subsets), floor)
    found[sizes] = objective
    noise = _ROUNDING * problem.total
    sane = (
        subsets.shape == (len(sizes), p)
        and (subsets.sum(axis=1) == sizes).all()
        and (subsets[:, required]).all()
        and (len(sizes) == 1 if by_criterion else np.array_equal(sizes, np.arange(low, high + 1)))
        and (np.abs(np.maximum(model.objective_path_, floor) - objective) <= _SAME * objective + noise).all()
    )
    cost = n * np.log(objective) + penalty * sizes
    if model.criterion == "cp":
        whole = problem_of(model, X, y, sample_weight).least(np.ones((1, p), dtype=bool))[0]
        cost = objective / max(whole / (n - p - 1), np.finfo(float).tiny) + penalty * sizes
    chosen = np.flatnonzero((subsets == np.asarray(model.support_, dtype=bool)).all(axis=1))
    chose_well = len(chosen) == 1 and cost[chosen[0]] <= cost.min() + n * (_SAME + noise / objective.min())
    if not (sane and chose_well and is_least_squares(model, problem, np.asarray(model.support_, dtype=bool))):
        return Recheck(np.inf, 0.0, problem.fingerprint)
    lower = _lower_bounds(model, problem, required, low, high, found, penalty if by_criterion else None)
    if lower is None:
        return Recheck(np.inf, 0.0, problem.fingerprint)
    every = np.arange(low, high + 1)
    bound = np.minimum(found[every], lower[every])
    if problem.total == 0:
        return Recheck(0.0, _ROUNDING, problem.fingerprint)
    if by_criterion:
        value = np.expm1((cost.min() - (n * np.log(bound) + penalty * every).min()) / n)
        rounding = _SAME + noise / max(bound.min(), floor)
    else:
        value = ((found[every] - bound) / np.maximum(bound, 1e-8 * problem.total)).max()
        rounding = _SAME + noise / max(bound.min(), 1e-8 * problem.total)
    return Recheck(float(value), float(rounding), problem.fingerprint, bound=float(value))


def _chose_by_folds(model: Any, X: Any, y: Any, sample_weight: Any, low: int, high: int, size: int) -> bool:
    """Tell whether the size has the least error on the folds; with few columns these are found again by enumeration."""
    errors = np.asarray(model.cv_errors_, dtype=float)
    if errors.shape[0] != high - low + 1 or size != low + int(np.argmin(errors.mean(axis=1))):
        return False
    rows, kept = verify.rows_of(model, X, y, sample_weight)
    p = rows.n_columns
    if p > _MOST_ENUMERATED or not _in_order(model, rows, kept):
        return True
    folds = _folds(model.cv, kept)
    if folds is None:
        return True
    if errors.shape[1] != len(folds):
        return False
    Z = np.concatenate([(part.toarray() if hasattr(part, "toarray") else part) for part, _, _ in rows.chunks()])
    Z = Z.astype(float)
    t = rows.y[:, 0]
    w = rows.weight
    required = _required(model)
    for number, (train, test) in enumerate(folds):
        inner = problem_of(model, Z[train], t[train], w[train], float(model.alpha))
        for k in range(low, high + 1):
            every = np.array([[j in some for j in range(p)] for some in itertools.combinations(range(p), k)])
            every = every.reshape(-1, p)
            every = every[every[:, required].all(axis=1)]
            best = every[np.argmin(inner.least(every))]
            beta = np.zeros(p)
            if k:
                found = np.linalg.lstsq(inner.A[:, best], inner.y, rcond=None)[0]
                beta[best] = found / inner.scale[best]
            e = t[test] - inner.y_mean - (Z[test] - inner.x_mean) @ beta
            error = float(w[test] @ e**2 / w[test].sum())
            if not abs(error - errors[k - low, number]) <= 1e-6 * error + 1e-9 * inner.total / inner.weight:
                return False
    return True


def _required(model: Any) -> Array:
    """Return which columns every subset must contain."""
    inside = np.zeros(model.n_features_in_, dtype=bool)
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    for item in [] if model.required is None else model.required:
        inside[names.index(item) if isinstance(item, str) else int(item)] = True
    return inside


def _range(model: Any, p: int, k: int) -> tuple[int, int]:
    """Return the smallest and largest size that the model was asked for."""
    if model.size is None:
        return k, p
    ends = (model.size, model.size) if isinstance(model.size, (int, np.integer)) else model.size
    return max(int(ends[0]), k), int(ends[1])


def _lower_bounds(
    model: Any, problem: Problem, required: Array, low: int, high: int, found: Array, penalty: float | None
) -> Array | None:
    """Return the least residual sum of squares that the leaves leave to each size; None if they are no partition."""
    p = len(problem.scale)
    if len(model.proof_):
        leaves = leaves_of(np.asarray(model.proof_).tolist(), required)
    else:
        leaves = list(_search(problem, required, low, high, found, penalty))
    if leaves is None:
        return None
    inside, within = (_truth_values([leaf[side] for leaf in leaves], p) for side in (0, 1))
    n_in = inside.sum(axis=1)
    n_within = within.sum(axis=1)
    lower = np.full(p + 1, np.inf)
    exact = (n_in >= low) & (n_in <= high)
    np.minimum.at(lower, n_in[exact], problem.rss(inside[exact]))
    first = np.maximum(n_in + 1, low)
    last = np.minimum(n_within, high)
    open_still = first <= last
    relaxed = problem.rss(within[open_still])
    for size in range(low, high + 1):
        holds = (first[open_still] <= size) & (size <= last[open_still])
        lower[size] = min(lower[size], relaxed[holds].min(initial=np.inf))
    return lower


def leaves_of(proof: list[int], required: Array) -> list[tuple[int, int]] | None:
    """Walk a proof: return its leaves as bit sets (columns in, columns not out); None if it is no tree of splits."""
    start = sum(1 << int(j) for j in np.flatnonzero(required))
    stack = [(start, (1 << len(required)) - 1)]
    leaves = []
    for column in proof:
        if not stack:
            return None
        inside, within = stack.pop()
        if column < 0:
            leaves.append((inside, within))
            continue
        bit = 1 << column
        if inside & bit or not within & bit:
            return None
        stack.append((inside | bit, within))
        stack.append((inside, within ^ bit))
    return None if stack else leaves


def _truth_values(sets: list[int], p: int) -> Array:
    """Return bit sets as rows of truth values."""
    width = (p + 7) // 8
    data = np.frombuffer(b"".join(one.to_bytes(width, "little") for one in sets), dtype=np.uint8)
    return np.unpackbits(data.reshape(len(sets), width), axis=1, bitorder="little")[:, :p].astype(bool)


def _search(
    problem: Problem, required: Array, low: int, high: int, found: Array, penalty: float | None
) -> Iterator[tuple[int, int]]:
    """Search again where no proof was kept: yield leaves that cannot beat what was found, or show that they do."""
    p = len(problem.scale)
    reach = np.minimum.accumulate(found)
    if penalty is not None:
        size = int(np.argmin(found))
        reach = found[size] * np.exp((size - np.arange(p + 1)) * penalty / problem.weight)
    strength = problem.rss(~np.eye(p, dtype=bool))
    order = [int(j) for j in np.argsort(-strength, kind="stable") if not required[j]]
    stack = [(sum(1 << int(j) for j in np.flatnonzero(required)), (1 << p) - 1, 0)]
    while stack:
        inside, within, depth = stack.pop()
        n_in = inside.bit_count()
        n_within = within.bit_count()
        first = max(n_in + 1, low)
        done = depth == len(order) or n_in >= high or n_within <= low
        if done or float(problem.rss(_truth_values([within], p))[0]) >= reach[first]:
            yield inside, within
            continue
        bit = 1 << order[depth]
        stack.append((inside | bit, within, depth + 1))
        stack.append((inside, within ^ bit, depth + 1))


@sound
@np.errstate(all="ignore")
def stepwise(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a ForwardStepwise or BackwardStepwise: every step against all its candidates."""
    problem = problem_of(model, X, y, sample_weight)
    p = len(problem.scale)
    n = problem.weight
    required = np.flatnonzero(_required(model))
    k = len(required)
    order = np.asarray(model.order_)
    floor = max(_EXACT * problem.total, np.finfo(float).tiny)
    forward = type(model).__name__ == "ForwardStepwise"
    prefixes = np.array([np.isin(np.arange(p), order[:size]) for size in range(k, len(order) + 1)])
    rss = np.maximum(problem.rss(prefixes), floor)
    stored = np.asarray(model.objective_path_, dtype=float)
    sane = (
        len(np.unique(order)) == len(order)
        and np.array_equal(np.sort(order[:k]), required)
        and stored.shape == rss.shape
        and (np.abs(np.maximum(stored, floor) - rss) <= _SAME * rss + _ROUNDING * problem.total).all()
        and (
            len(order) == p
            or (forward and rss[-1] - max(problem.rss(np.ones((1, p), dtype=bool))[0], floor) <= 1e-8 * problem.total)
        )
    )
    place = int(np.asarray(model.support_, dtype=bool).sum()) - k
    sane = sane and np.array_equal(prefixes[place], np.asarray(model.support_, dtype=bool))
    if model.criterion == "cv" and model.size is None:
        errors = np.asarray(model.cv_errors_, dtype=float)
        sane = sane and errors.shape[0] == len(rss) and place == int(np.argmin(errors.mean(axis=1)))
        sane = sane and _step_errors_are(model, X, y, sample_weight, required, errors)
    else:
        sane = sane and _keeps_the_right_size(model, rss, k, n, place)
    if not (sane and is_least_squares(model, problem, prefixes[place])):
        return Recheck(np.inf, 0.0, problem.fingerprint)
    unit = np.maximum(rss, 1e-6 * problem.total)
    worst = 0.0
    for step in range(len(prefixes) - 1):
        if forward:
            others = np.flatnonzero(~prefixes[step])
            best = problem.rss(prefixes[step] | np.eye(p, dtype=bool)[others]).min()
            worst = max(worst, float((rss[step + 1] - best) / unit[step + 1]))
        else:
            others = np.setdiff1d(np.flatnonzero(prefixes[step + 1]), required)
            best = problem.rss(prefixes[step + 1] & ~np.eye(p, dtype=bool)[others]).min()
            worst = max(worst, float((rss[step] - best) / unit[step]))
    if problem.total == 0:
        return Recheck(0.0, _SAME, problem.fingerprint, bound=0.0)
    bound = _above_the_best(problem, required, k + place, rss[place]) if p <= 16 else None
    return Recheck(worst, _SAME, problem.fingerprint, bound=bound)


def _step_errors_are(model: Any, X: Any, y: Any, sample_weight: Any, required: Array, errors: Array) -> bool:
    """Tell whether errors on folds are those of paths on their training rows, which are walked again."""
    rows, kept = verify.rows_of(model, X, y, sample_weight)
    folds = _folds(model.cv, kept) if _in_order(model, rows, kept) else None
    if folds is None:
        return True
    if errors.shape[1] != len(folds):
        return False
    Z = np.concatenate([(part.toarray() if hasattr(part, "toarray") else part) for part, _, _ in rows.chunks()])
    Z = Z.astype(float)
    t = rows.y[:, 0]
    w = rows.weight
    p = Z.shape[1]
    forward = type(model).__name__ == "ForwardStepwise"
    for number, (train, test) in enumerate(folds):
        inner = problem_of(model, Z[train], t[train], w[train])
        if inner.dependent:
            continue  # equal columns are told apart by their last digits
        order = [int(j) for j in required]
        if forward:
            while len(order) < p:
                others = [j for j in range(p) if j not in order]
                trials = np.array([np.isin(np.arange(p), [*order, j]) for j in others])
                order.append(others[int(np.argmin(inner.least(trials)))])
        else:
            gone: list[int] = []
            while len(gone) < p - len(order):
                others = [j for j in range(p) if j not in gone and j not in order]
                trials = np.array([~np.isin(np.arange(p), [*gone, j]) for j in others])
                gone.append(others[int(np.argmin(inner.least(trials)))])
            order = [*order, *reversed(gone)]
        for row in range(len(errors)):
            columns = order[: len(required) + row]
            beta = np.zeros(p)
            if columns:
                found = np.linalg.lstsq(inner.A[:, columns], inner.y, rcond=None)[0]
                beta[columns] = found / inner.scale[columns]
            e = t[test] - inner.y_mean - (Z[test] - inner.x_mean) @ beta
            error = float(w[test] @ e**2 / w[test].sum())
            if not abs(error - errors[row, number]) <= 1e-6 * error + 1e-9 * inner.total / inner.weight:
                return False
    return True


def _keeps_the_right_size(model: Any, rss: Array, k: int, n: float, place: int) -> bool:
    """Tell whether the model kept the size that its criterion asks for."""
    if model.size is not None:
        return place == min(model.size - k, len(rss) - 1)
    sizes = k + np.arange(len(rss))
    if model.criterion != "f":
        penalty = 2.0 if model.criterion == "aic" else max(0.0, float(np.log(n)))
        cost = n * np.log(rss) + penalty * sizes
        return bool(cost[place] <= cost.min() + 1e-7 * n)

    def p_value(step: int) -> float:
        freedom = n - model.fit_intercept - sizes[step + 1]
        if freedom <= 0:
            return 1.0
        return float(betainc(freedom / 2, 0.5, rss[step + 1] / (rss[step + 1] + max(rss[step] - rss[step + 1], 0.0))))

    if type(model).__name__ == "ForwardStepwise":
        expected = 0
        while expected < len(rss) - 1 and p_value(expected) <= model.p_value:
            expected += 1
    else:
        expected = len(rss) - 1
        while expected > 0 and p_value(expected - 1) > model.p_value:
            expected -= 1
    return place == expected


def _above_the_best(problem: Problem, required: Array, size: int, rss: float) -> float:
    """Return how far above the best subset of its size a residual sum of squares is, by enumeration."""
    p = len(problem.scale)
    free = np.setdiff1d(np.arange(p), required)
    every = np.zeros((math.comb(len(free), size - len(required)), p), dtype=bool)
    every[:, required] = True
    for row, chosen in enumerate(itertools.combinations(free.tolist(), size - len(required))):
        every[row, list(chosen)] = True
    best = float(problem.rss(every).min())
    gap = max(0.0, (rss - best) / max(best, 1e-8 * problem.total))
    return gap if gap > 1e-8 else 0.0


def by_target(check: Callable[[Any, Any, Any, Any], Recheck]) -> Callable[[Any, Any, Any, Any], Recheck]:
    """Return a check of models of several targets: each target by itself, as if it had been fitted alone."""

    @wraps(check)
    def every_target(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
        if np.ndim(model.coef_) != 2 and np.ndim(model.intercept_) == 0:
            return check(model, X, y, sample_weight)
        if np.ndim(model.coef_) != 2:  # a target in one column
            alone = copy.copy(model)
            alone.intercept_ = np.float64(np.ravel(model.intercept_)[0])
            return check(alone, X, y, sample_weight)
        X, y, sample_weight = named_columns("verify", X, y, sample_weight)
        whole = fingerprint_of(verify.rows_of(model, X, y, sample_weight)[0])
        targets = numbers_of(y)
        if targets.ndim != 2 or targets.shape[1] != len(model.coef_):
            return Recheck(np.inf, 0.0, whole)
        found = []
        for k in range(len(model.coef_)):
            alone = copy.copy(model)
            alone.coef_ = model.coef_[k]
            alone.intercept_ = np.float64(np.broadcast_to(model.intercept_, (len(model.coef_),))[k])
            for name in ("alphas_", "active_", "coef_path_", "n_iter_", "order_"):
                if hasattr(model, name):
                    setattr(alone, name, getattr(model, name)[k])
            found.append(check(alone, X, targets[:, k], sample_weight))
        bounds = [one.bound for one in found if one.bound is not None]
        return Recheck(
            max(one.value for one in found),
            max(one.rounding for one in found),
            whole,
            bound=max(bounds) if bounds else None,
        )

    return every_target


@by_target
@sound
@np.errstate(all="ignore")
def lasso_lars(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a LassoLars: the gap at its end, and the optimality of every corner."""
    problem = problem_of(model, X, y, sample_weight)
    A = problem.A * problem.scale
    b = problem.y
    W = problem.weight
    total = problem.total
    alphas = np.asarray(model.alphas_, dtype=float)
    coefs = np.asarray(model.coef_path_, dtype=float)
    coef = np.asarray(model.coef_, dtype=float)
    size = np.sqrt(b @ b)
    terms = abs(problem.y_mean) + np.abs(problem.x_mean) @ np.abs(coef)
    level = abs(float(model.intercept_) - (problem.y_mean - problem.x_mean @ coef))
    residuals = b[:, None] - A @ coefs
    positive = bool(getattr(model, "positive", False))
    slopes = A.T @ residuals / W - np.sign(coefs) * alphas
    outside = slopes if positive else np.abs(slopes)
    slopes = np.where(coefs == 0, np.maximum(outside - alphas, 0), np.abs(slopes))
    active = np.asarray(model.active_)
    least = 1e-9 * problem.scale[:, None] * (size + np.abs(problem.scale[:, None] * coefs).sum(axis=0)) / W
    ended = alphas[-1] <= model.alpha * (1 + 1e-12) + 1e-11 * alphas[0] or not model.certificate_.holds
    sane = (
        coefs.shape == (len(coef), len(alphas))
        and (np.diff(alphas) <= 0).all()
        and not coefs[:, 0].any()
        and np.array_equal(coefs[:, -1], coef)
        and ended
        and model.n_iter_ == max(1, len(alphas) - 1)
        and len(np.unique(active)) == len(active)
        and np.isin(np.flatnonzero(coef), active).all()
        and not (positive and (coefs < 0).any())
        and level <= 1e-12 * terms + 1e-10 * size / np.sqrt(W)
        and (slopes <= least).all()
    )
    if not sane:
        return Recheck(np.inf, 0.0, problem.fingerprint)
    if total == 0:
        return Recheck(0.0, _ROUNDING, problem.fingerprint)
    r = residuals[:, -1]
    primal = r @ r / 2 + W * model.alpha * np.abs(coef).sum()
    dual = problem.least(np.ones((1, len(coef)), dtype=bool))[0] / 2
    if model.alpha > 0:
        correlation = A.T @ r
        largest = (correlation if positive else np.abs(correlation)).max()
        tau = min(b @ r / (r @ r), W * model.alpha / largest if largest > 0 else np.inf) if r @ r > 0 else 0.0
        dual = max(dual, tau * (b @ r) - tau**2 * (r @ r) / 2)
    unit = max(dual, 1e-8 * total / 2)
    value = float(max(0.0, primal - dual) / unit)
    return Recheck(value, float(1e-13 * (1 + total / unit)) + 1e-12, problem.fingerprint, bound=value)


@sound
@np.errstate(all="ignore")
def stagewise(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a ForwardStagewise: make every move again and compare its correlation."""
    problem = problem_of(model, X, y, sample_weight)
    p = len(problem.scale)
    length = np.sqrt(problem.total)
    moves = np.asarray(model.moves_).astype(int)
    unit = model.epsilon * length / problem.scale
    counts = np.zeros(p)
    np.add.at(counts, np.abs(moves) - 1, np.sign(moves))
    coef = counts * unit
    found = np.asarray(model.coef_, dtype=float)
    terms = abs(problem.y_mean) + np.abs(problem.x_mean) @ np.abs(coef)
    level = abs(float(model.intercept_) - (problem.y_mean - problem.x_mean @ coef))
    near = 1e-9 * (np.abs(coef) + unit)
    sane = (
        found.shape == (p,)
        and (np.abs(np.asarray(model.unit_) - unit) <= 1e-9 * unit).all()
        and (np.abs(found - coef) <= near).all()
        and level <= 1e-9 * (terms + length / np.sqrt(problem.weight))
        and len(moves) <= model.n_steps
    )
    if not sane:
        return Recheck(np.inf, 0.0, problem.fingerprint)
    r = problem.y / (length if length > 0 else 1.0)
    worst = 0.0
    for move in moves.tolist():
        correlation = problem.A.T @ r
        greatest = np.abs(correlation).max()
        column = abs(move) - 1
        worst = max(worst, float((greatest - np.sign(move) * correlation[column]) / greatest))
        r = r - np.sign(move) * model.epsilon * problem.A[:, column]
    ended = np.abs(problem.A.T @ r).max() <= 0.5 * model.epsilon * (1 + 1e-6) + 1e-12
    stopped = len(moves) == model.n_steps or model.max_seconds is not None
    return Recheck(worst if ended or stopped else np.inf, _SAME, problem.fingerprint)
