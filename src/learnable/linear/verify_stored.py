r"""Independent checks of what least-squares models store beside their coefficients: all of it is computed again.

- LinearRegression: means, norms and the factor FᵀF = Σ w (x − x̄)(x − x̄)ᵀ, from which its intervals come.
- RidgeCV: the scores of all penalties, by an SVD of the rows (leave-one-out) or of the rows of every fold.
- LassoCV and ElasticNetCV: the grid, and the errors on the folds, by a proximal gradient method on each of them.

Where a table is too large, its rows stand in another order than in the fit, or its folds were drawn at random without a
seed, only what needs no refit is checked.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv

from ..core import AnyArray
from ..data.checking import Rows

_AGREEMENT = 1e-5  # of stored and recomputed sums; rounding is far below, a change that matters above
_MOST_ENTRIES = 5e6  # of a table that is decomposed again
_MOST_WORK = 3e8  # products in the refits of a cross-validation
# of the proximal gradient method: most of them, and the change at which it stops
_STEPS = 20_000
_STILL = 1e-10


def is_near(stored: Any, expected: Any, *, slack: float = 0.0) -> bool:
    """Tell whether a stored array has the shape and the values expected; both may be infinite at the same places."""
    a = np.asarray(stored, dtype=np.float64)
    b = np.asarray(expected, dtype=np.float64)
    if a.shape != b.shape:
        return False
    return bool(((a == b) | (np.abs(a - b) <= _AGREEMENT * np.abs(b) + slack)).all())


def centred_rows(rows: Rows, intercept: bool) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray] | None:
    """Return √w(x − x̄) (n, d), √w(y − ȳ) (n, k), w (n,) and y (n, k) in float64; None if there are too many."""
    if len(rows.y) * rows.n_columns > _MOST_ENTRIES:
        return None
    chunks = [(Z.toarray() if hasattr(Z, "toarray") else Z, y, w) for Z, y, w in rows.chunks()]
    Z, y, w = (np.concatenate([chunk[part] for chunk in chunks]) for part in range(3))
    A, t = (Z - w @ Z / w.sum(), y - w @ y / w.sum()) if intercept else (Z, y)
    root = np.sqrt(w)[:, None]
    return tuple(np.asarray(array, dtype=np.float64) for array in (root * A, root * t, w, y))  # type: ignore[return-value]


# ---- least squares ----


def least_squares_arrays(model: Any, rows: Rows) -> bool:
    """Tell whether the arrays behind the standard errors and intervals are those of the rows."""
    d = rows.n_columns
    intercept = bool(model.fit_intercept)
    B = np.atleast_2d(model.coef_).T.astype(np.longdouble)
    W = np.longdouble(0)
    x_sum = np.zeros(d, dtype=np.longdouble)
    for Z, _, s in rows.chunks():
        W = W + s.sum()
        x_sum = x_sum + Z.T @ s
    centre = x_sum / W if intercept else 0 * x_sum
    spread = 0 * x_sum
    r_square = 0 * B[0]
    size = 0 * B[0]
    for Z, t, s in rows.chunks():
        fitted = Z @ B + model.intercept_
        r_square = r_square + s @ (t - fitted) ** 2
        size = size + s @ (t**2 + fitted**2)
        A = (Z.toarray() if hasattr(Z, "toarray") else Z) - centre
        spread = spread + s @ (A * A)
    norm = np.sqrt(r_square)
    same = [
        is_near(model.weight_sum_, W),
        _within(model.x_mean_, centre, 1e-9 * np.abs(centre) + 1e-6 * np.sqrt(spread / W)),
        _within(model.residual_norm_, norm, 1e-6 * norm + 1e-12 * np.sqrt(size)),
        model.n_rows_ == len(rows.y),
    ]
    if not hasattr(model, "gram_factor_"):
        return all(same) and model.df_resid_ == 0 and not hasattr(model, "rank_")
    blurred = np.sqrt(spread / W) <= 4.0 * np.finfo(float).eps * np.abs(centre)  # constant but for the last digit
    return all(same) and _is_factor(model, rows, centre, np.where(blurred, 0, np.sqrt(spread)))


def _within(stored: Any, expected: AnyArray, slack: AnyArray) -> bool:
    return np.shape(stored) == expected.shape and bool((np.abs(stored - expected) <= slack).all())


def _is_factor(model: Any, rows: Rows, centre: AnyArray, size: AnyArray) -> bool:
    """Tell whether the factor gives back the Gram matrix, or its spectrum where columns are dependent.

    `size` holds the norms of the centred columns, by which they are divided: in their own units squares may overflow.
    """
    F = np.asarray(model.gram_factor_)
    rank = model.rank_
    n = len(rows.y)
    d = rows.n_columns
    if F.ndim != 2 or F.shape[0] != F.shape[1] or np.tril(F, -1).any() or not np.isfinite(F).all():
        return False
    if not 0 <= rank <= min(n, d) or model.df_resid_ != n - rank - bool(model.fit_intercept):
        return False
    inverse = np.where(size > 0, 1 / np.where(size > 0, size, 1), 0)
    R = np.zeros((d, d))
    for Z, _, s in rows.chunks():
        A = ((Z.toarray() if hasattr(Z, "toarray") else Z) - centre) * inverse
        half = (np.sqrt(s)[:, None] * A).astype(np.float64)
        R += half.T @ half
    if rank == d:
        scaled = (F * inverse).astype(np.float64) if F.shape == (d, d) else np.zeros((d, d))
        return bool((np.abs(scaled.T @ scaled - R) <= 1e-6).all())
    # The rank is decided in scaled columns: what it leaves out must be small there.
    share = np.sort(np.linalg.eigvalsh(R))[::-1]
    if share[rank] > 1e-9 * max(float(share[0]), 1e-300) or (rank > 0 and not share[rank - 1] > 0):
        return False
    unit = max(size.max(initial=0), np.longdouble(np.abs(F).max(initial=0.0)), np.finfo(np.longdouble).tiny)
    shrunk = (size / unit).astype(np.float64)
    true = np.sort(np.linalg.eigvalsh(R * np.outer(shrunk, shrunk)))[::-1]
    found = np.zeros(max(d, len(F)))
    found[: len(F)] = np.sort(np.linalg.svd((F / unit).astype(np.float64), compute_uv=False) ** 2)[::-1]
    blur = 64 * np.finfo(float).eps * np.sqrt(rows.weight.sum()) * float(np.abs(centre).max(initial=0) / unit)
    return bool((np.abs(found[:d] - true) <= 1e-6 * max(float(true[0]), 1e-300) + blur**2).all())


# ---- ridge regression over a path ----


def ridge_choice(model: Any, rows: Rows, kept: AnyArray) -> bool:
    """Tell whether the scores, the best of them and the penalty that they choose belong together and to the rows."""
    alphas = np.asarray(model.alphas, dtype=np.float64).ravel()
    path = np.atleast_2d(np.asarray(model.criterion_path_, dtype=np.float64))
    chosen = np.atleast_1d(model.alpha_)
    best = np.atleast_1d(model.best_score_)
    if path.shape[1] != len(alphas) or not len(chosen) == len(best) == len(path):
        return False
    for scores, alpha, score in zip(path, chosen, best, strict=True):
        places = np.flatnonzero(alphas == alpha)
        if not len(places) or not (scores[places] == score).any() or score < np.nanmax(scores):
            return False
    whole = centred_rows(rows, model.fit_intercept)
    if whole is None:
        return True
    if model.cv is None:
        return _is_left_out(model, whole, alphas, path, _in_order(model, rows, kept))
    folds = _folds(model.cv, kept) if _in_order(model, rows, kept) else None
    if folds is None or len(folds) * min(whole[0].shape) * whole[0].size > _MOST_WORK:
        return True
    expected = _fold_scores(model, rows, folds, alphas)
    return expected is None or is_near(path, expected[None, :], slack=1e-9)


def _in_order(model: Any, rows: Rows, kept: AnyArray) -> bool:
    """Tell whether the rows stand in the order of the fit; without it folds and single rows cannot be found again."""
    checksum = zlib.crc32(np.ascontiguousarray(rows.y, dtype=np.float64).tobytes())
    if not kept.all():
        checksum = zlib.crc32(np.ascontiguousarray(kept, dtype=bool).tobytes(), checksum)
    return bool(getattr(model, "row_order_", None) == checksum)


def _is_left_out(model: Any, whole: Any, alphas: AnyArray, path: AnyArray, in_order: bool) -> bool:
    A, t, w, y = whole
    U, s, _ = np.linalg.svd(A, full_matrices=False)
    kept = s > np.finfo(float).eps * max(A.shape) * s.max(initial=0.0)
    U = U[:, kept]
    squares = s[kept] ** 2
    rest = squares[:, None] + alphas
    shrunk = alphas / rest  # (r, n_alphas), 1 − s²/(s² + α)
    everything = U.shape[1] == len(A) - bool(model.fit_intercept)
    outside = 0.0 if everything else t - U @ (U.T @ t)
    residual = np.einsum("ir,rk,ra->ika", U, U.T @ t, shrunk, optimize=True) + np.asarray(outside)[..., None]
    free = (U**2) @ shrunk
    if not everything:
        level = w / w.sum() if model.fit_intercept else 0.0
        free += np.maximum(1.0 - (U**2).sum(axis=1) - level, 0.0)[:, None]
    scoring = model.scoring
    per_target = model.alpha_per_target
    if model.criterion == "gcv" and scoring is None:
        scores = -((residual / free.mean(axis=0)) ** 2).sum(axis=0) / w.sum()
        expected = scores if per_target else scores.mean(axis=0, keepdims=True)
        return is_near(path, expected)
    if (free <= 1e-9 * free.max(axis=0)).any():
        return True  # a row that determines its own fit has no error to compare
    weighted = residual / free[:, None, :]  # √w times the error
    predictions = y[:, :, None] - weighted / np.sqrt(w)[:, None, None]
    if scoring is None:
        scores = -(weighted**2).mean(axis=0)
        expected = scores if per_target else scores.mean(axis=0, keepdims=True)
    else:
        expected = _scores(scoring, predictions, y, w, per_target)
    stored = True
    if hasattr(model, "cv_results_") and in_order:
        table = weighted**2 if scoring is None else predictions
        table = table[:, 0] if np.ndim(model.cv_results_) == 2 else table
        stored = is_near(model.cv_results_, table, slack=1e-9 * float(np.abs(table).max(initial=0.0)))
    return stored and (expected is None or is_near(path, expected, slack=1e-12))


class _Stated(RegressorMixin, BaseEstimator):
    """A model that predicts what it is given, for scorers."""

    def fit(self, X: Any, y: Any = None) -> _Stated:
        return self

    def predict(self, X: Any) -> Any:
        return X


def _score(scoring: Any, predictions: AnyArray, y: AnyArray, weight: AnyArray) -> float | None:
    """Return the score of predictions; None where the scorer wants more than predictions."""
    scorer = get_scorer(scoring or "r2") if scoring is None or isinstance(scoring, str) else scoring
    weights = [{}] if (weight == 1).all() else [{"sample_weight": weight}, {}]
    for extra in weights:
        try:
            return float(scorer(_Stated(), predictions, y, **extra))
        except (TypeError, ValueError, AttributeError, LookupError):
            continue
    return None


def _scores(scoring: Any, predictions: AnyArray, y: AnyArray, weight: AnyArray, per_target: bool) -> AnyArray | None:
    targets: list[Any] = list(range(y.shape[1])) if per_target or y.shape[1] == 1 else [slice(None)]
    found = [
        [_score(scoring, predictions[:, target, a], y[:, target], weight) for a in range(predictions.shape[2])]
        for target in targets
    ]
    return None if any(score is None for group in found for score in group) else np.array(found)


def _fold_scores(model: Any, rows: Rows, folds: list[tuple[AnyArray, AnyArray]], alphas: AnyArray) -> AnyArray | None:
    """Return the mean score of every penalty over the folds, each fitted by the SVD of its rows."""
    total = np.zeros(len(alphas))
    for train, test in folds:
        X, y, _, x_mean, y_mean = _parts(rows, train, model.fit_intercept)
        U, s, Vt = np.linalg.svd(X, full_matrices=False)
        s, U, Vt = (part[: max(1, int((s > 1e-14 * s.max(initial=0.0)).sum()))] for part in (s, U.T, Vt))
        Z, target, weight = _plain(rows, test)
        for number, alpha in enumerate(alphas.tolist()):
            coef = Vt.T @ ((s / (s**2 + alpha))[:, None] * (U @ y)) if alpha or s.min() > 0 else None
            if coef is None:
                return None
            predictions = y_mean + (Z - x_mean) @ coef
            flat = predictions.shape[1] == 1
            score = _score(
                model.scoring, predictions[:, 0] if flat else predictions, target[:, 0] if flat else target, weight
            )
            if score is None:
                return None
            total[number] += score
    return total / len(folds)


def _plain(rows: Rows, chosen: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    Z = np.concatenate([(Z.toarray() if hasattr(Z, "toarray") else Z) for Z, _, _ in rows.chunks()])
    return Z[chosen].astype(np.float64), rows.y[chosen], rows.weight[chosen]


def _parts(rows: Rows, train: AnyArray, intercept: bool) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray, AnyArray]:
    """Return √w(x − x̄), √w(y − ȳ), w, x̄ and ȳ of some rows."""
    Z, y, w = _plain(rows, train)
    x_mean, y_mean = (w @ Z / w.sum(), w @ y / w.sum()) if intercept else (np.zeros(Z.shape[1]), np.zeros(y.shape[1]))
    root = np.sqrt(w)[:, None]
    return root * (Z - x_mean), root * (y - y_mean), w, x_mean, y_mean


def _folds(cv: Any, kept: AnyArray) -> list[tuple[AnyArray, AnyArray]] | None:
    """Return the folds among the rows that have weight; None where they cannot be drawn again."""
    draws = getattr(cv, "shuffle", False) or hasattr(cv, "test_size")
    if isinstance(cv, Iterator) or (draws and not isinstance(getattr(cv, "random_state", None), int)):
        return None
    place = np.where(kept, np.cumsum(kept) - 1, -1)
    try:
        splits = list(check_cv(cv).split(np.zeros((len(kept), 1)), np.zeros(len(kept))))
    except (TypeError, ValueError):
        return None
    return [(place[train][kept[train]], place[test][kept[test]]) for train, test in splits] or None


# ---- the lasso over a path ----


def lasso_choice(model: Any, rows: Rows, kept: AnyArray) -> bool:
    """Tell whether the grid, the errors on the folds and the choice belong together and to the rows."""
    ratios = np.atleast_1d(np.asarray(getattr(model, "l1_ratio", 1.0), dtype=np.float64))
    single = np.ndim(getattr(model, "l1_ratio", 1.0)) == 0
    given = np.ndim(model.alphas) > 0
    mse = np.asarray(model.mse_path_, dtype=np.float64)
    mse = mse[None] if single else mse
    grids = np.asarray(model.alphas_, dtype=np.float64)
    grids = np.broadcast_to(grids, (len(ratios), grids.shape[-1])) if grids.ndim == 1 else grids
    n_alphas = np.size(model.alphas) if given else int(model.alphas)
    if mse.ndim != 3 or mse.shape[:2] != (len(ratios), n_alphas) or grids.shape != (len(ratios), n_alphas):
        return False
    whole = centred_rows(rows, model.fit_intercept)
    if not all(
        is_near(grid, _grid(model, rows, ratio, given, whole)) for grid, ratio in zip(grids, ratios, strict=True)
    ):
        return False
    mean = mse.mean(axis=-1)
    places = [
        (r, a) for r in range(len(ratios)) for a in range(n_alphas)
        if ratios[r] == model.l1_ratio_ and grids[r, a] == model.alpha_
    ]  # fmt: skip
    if not any(_is_chosen(model, mse, mean, r, a) for r, a in places):
        return False
    folds = _folds(model.cv, kept) if _in_order(model, rows, kept) else None
    if folds is None or whole is None:
        return True
    return mse.shape[2] == len(folds) and _are_errors(model, rows, folds, ratios, grids, mse)


def _grid(model: Any, rows: Rows, ratio: float, given: bool, whole: Any) -> AnyArray:
    if given:
        return np.sort(np.asarray(model.alphas, dtype=np.float64).ravel())[::-1]
    cross: Any
    weight: Any
    if whole is not None:
        A, t, w, _ = whole
        cross = A.T @ t
        weight = np.longdouble(w.sum())
    else:
        weight = np.longdouble(0)
        y_sum: Any = np.longdouble(0)
        x_sum: AnyArray = np.zeros(rows.n_columns, dtype=np.longdouble)
        raw: Any = np.longdouble(0)
        for Z, y, s in rows.chunks():
            weight = weight + s.sum()
            x_sum = np.asarray(x_sum + Z.T @ s)
            y_sum = y_sum + s @ y
            raw = raw + Z.T @ (s[:, None] * y)
        cross = np.asarray(raw - np.outer(x_sum, y_sum) / weight if model.fit_intercept else raw)
    size = cross if getattr(model, "positive", False) else np.sqrt((cross * cross).sum(axis=1))
    largest = max(0.0, float(size.max(initial=0.0))) / float(weight) / ratio
    number = int(model.alphas)
    return np.full(number, 1e-15) if largest <= 1e-15 else np.geomspace(largest, largest * model.eps, number)


def _is_chosen(model: Any, mse: AnyArray, mean: AnyArray, r: int, a: int) -> bool:
    best = int(np.argmin(mean.min(axis=1)))
    if mean[r].min() > mean[best].min():
        return False
    if model.rule == "min":
        return bool(mean[r, a] == mean[r].min())
    least = int(np.argmin(mean[r]))
    n_folds = mse.shape[2]
    error = mse[r, least].std(ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.inf
    limit = mean[r, least] + error
    slack = 1e-9 * abs(limit)
    return bool(mean[r, a] <= limit + slack and (mean[r, :a] >= limit - slack).all())


def _are_errors(
    model: Any, rows: Rows, folds: list[tuple[AnyArray, AnyArray]], ratios: AnyArray, grids: AnyArray, mse: AnyArray
) -> bool:
    """Compare the errors of the fits to the folds with those of fits by another method."""
    d = rows.n_columns
    every = grids.size * len(folds) * d * d * 50 <= _MOST_WORK
    for number, (train, test) in enumerate(folds):
        A, t, w, x_mean, y_mean = _parts(rows, train, model.fit_intercept)
        Z, target, weight = _plain(rows, test)
        for r, ratio in enumerate(ratios.tolist()):
            G = A.T @ A
            c = A.T @ t
            W = float(w.sum())
            beta = np.zeros(c.shape)
            for a, alpha in enumerate(grids[r].tolist()):
                if np.isinf(mse[r, a, number]):
                    break  # there was no time for the rest of this fold
                if not every and np.sqrt((c * c).sum(axis=1)).max(initial=0.0) > W * alpha * ratio:
                    break  # from here on coefficients are not zero, and there are too many of them to fit again
                positive = getattr(model, "positive", False)
                found = _proximal_gradient(G, c, W * alpha * ratio, W * alpha * (1 - ratio), beta, positive)
                if found is None:
                    break
                beta = found
                e = target - y_mean - (Z - x_mean) @ beta
                error = float((weight @ e**2).mean() / weight.sum())
                scale = float((weight @ (target - y_mean) ** 2).mean() / weight.sum())
                scale += 1e-20 * float((weight @ target**2).mean() / weight.sum())  # rounding of constant targets
                if not abs(mse[r, a, number] - error) <= 3e-4 * error + 1e-7 * scale:
                    return False
    return True


def _proximal_gradient(
    G: AnyArray, c: AnyArray, l1: float, l2: float, start: AnyArray, positive: bool
) -> AnyArray | None:
    """Minimise ½tr(BᵀGB − 2cᵀB) + λ₁Σⱼ‖Bⱼ‖₂ + ½λ₂‖B‖² by accelerated steps; None if they do not settle."""
    rate = 1.0 / (np.linalg.norm(G, 2) + l2 + 1e-300)
    beta = start
    ahead = start
    momentum = 1.0
    for _ in range(_STEPS):
        moved = ahead - rate * (G @ ahead - c + l2 * ahead)
        if positive:
            new = np.maximum(moved - rate * l1, 0.0)
        else:
            size = np.sqrt((moved * moved).sum(axis=1, keepdims=True))
            new = moved * (np.maximum(size - rate * l1, 0.0) / np.where(size > 0, size, 1.0))
        step = new - beta
        if np.abs(step).max(initial=0.0) <= _STILL * np.abs(new).max(initial=0.0):
            return new
        if ((ahead - new) * step).sum() > 0:  # uphill: start the acceleration afresh
            momentum = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = new + (momentum - 1.0) / following * step
        beta = new
        momentum = following
    return None
