r"""Independent checks of linear models that choose: the fit, every fit to a fold, its scores, and the choice.

Nothing here is shared with the fits. Where rows stand in another order than in the fit, or folds were drawn at random
without a seed, only what needs no folds is checked.
"""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer, make_scorer
from sklearn.model_selection import check_cv

from ..core.checking import Recheck
from ..data.checking import Array, class_weights_of, fingerprint_of, read_classes, sound
from ..data.sources import named_columns
from . import verify, verify_glm
from .verify_stored import is_near, ridge_choice
from .verify_subset import Problem, by_target, problem_of

_SAME = 1e-9  # relative distance at which two scores are the same
_MOST_ENTRIES = 5e6  # numbers of all folds for which scores are computed again: a few seconds


def folds_of(cv: Any, kept: Array, y: Array, classifier: bool) -> list[tuple[Array, Array]] | None:
    """Return the folds among the rows that have weight; None where they cannot be drawn again."""
    draws = getattr(cv, "shuffle", False) or hasattr(cv, "test_size")
    if isinstance(cv, Iterator) or (draws and not isinstance(getattr(cv, "random_state", None), int)):
        return None
    place = np.where(kept, np.cumsum(kept) - 1, -1)
    try:
        splits = list(check_cv(cv, y, classifier=classifier).split(np.zeros((len(kept), 1)), y))
    except (TypeError, ValueError):
        return None
    return [(place[train][kept[train]], place[test][kept[test]]) for train, test in splits] or None


def _kept(sample_weight: Any, n: int) -> Array:
    return np.broadcast_to(1.0 if sample_weight is None else np.asarray(sample_weight, dtype=float), (n,)) > 0


# ---- logistic regression ----


class _Linear(ClassifierMixin, BaseEstimator):
    """A classifier of given coefficients, for scorers."""

    def __init__(self, classes: Any, coef: Any, intercept: Any) -> None:
        self.classes = classes
        self.coef = coef
        self.intercept = intercept
        self.classes_ = classes

    def fit(self, X: Any, y: Any = None) -> _Linear:
        return self

    def decision_function(self, X: Any) -> Array:
        scores = np.asarray(X @ self.coef.T) + self.intercept
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> Array:
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([0 * scores, scores])
        return verify_glm.probabilities(scores)

    def predict(self, X: Any) -> Array:
        scores = self.decision_function(X)
        return np.asarray(self.classes[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)])


@np.errstate(all="ignore")
def logistic_cv(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a LogisticRegressionCV, and the paths by which it chose."""
    return _logistic_cv(model, X, y, sample_weight)


@sound
def _logistic_cv(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    n_scores = 1 if len(model.classes_) == 2 else len(model.classes_)
    C = np.atleast_1d(model.C_)
    ratio = np.atleast_1d(model.l1_ratio_)
    scores, coefs, n_iter = _new_shapes(model, n_scores)
    grid = np.logspace(-4, 4, model.Cs) if np.ndim(model.Cs) == 0 else np.asarray(model.Cs, dtype=float).ravel()
    repeated = n_scores if np.ndim(model.C_) else 1
    sane = (
        len(C) == repeated
        and len(ratio) == repeated
        and np.ptp(C) == 0
        and np.ptp(ratio) == 0
        and is_near(model.Cs_, grid)
        and scores.shape[1:] == (len(model.l1_ratios_), len(grid))
        and coefs.shape[:-1] == (*scores.shape, n_scores)
        and coefs.shape[-1] == model.n_features_in_ + bool(model.fit_intercept)
        and n_iter.shape == scores.shape
        and _is_best(model, scores, coefs, float(C[0]), float(ratio[0]))
    )
    if model.refit:
        twin = _twin(model, float(C[0]), float(ratio[0]), model.coef_, model.intercept_)
        found = verify_glm.logistic(twin, X, y, sample_weight)
    else:
        found = Recheck(np.inf, 0.0, fingerprint_of(read_classes(model, X, y, sample_weight)[0], model.classes_))
    if not (sane and _are_paths(model, X, y, sample_weight, scores, coefs)):
        return found._replace(value=np.inf)
    return found


def _twin(model: Any, C: float, ratio: float, coef: Array, intercept: Array, class_weight: Any = None) -> Any:
    return SimpleNamespace(
        C=C,
        l1_ratio=ratio,
        penalty="deprecated",
        solver=model.solver,
        fit_intercept=model.fit_intercept,
        intercept_scaling=model.intercept_scaling,
        class_weight=model.class_weight if class_weight is None else class_weight,
        classes_=model.classes_,
        coef_=np.asarray(coef),
        intercept_=np.asarray(intercept),
        n_features_in_=model.n_features_in_,
        certificate_=model.certificate_,
        **({"feature_names_in_": model.feature_names_in_} if hasattr(model, "feature_names_in_") else {}),
    )


def _new_shapes(model: Any, n_scores: int) -> tuple[Array, Array, Array]:
    """Return scores (n_folds, n_ratios, n_cs), coefficients (…, n_scores, d) and iterations, from either shape."""
    if not isinstance(model.scores_, dict):
        return np.asarray(model.scores_), np.asarray(model.coefs_paths_), np.asarray(model.n_iter_)
    keys = model.classes_.tolist()[-1:] if n_scores == 1 else model.classes_.tolist()
    if list(model.scores_) != keys or list(model.coefs_paths_) != keys:
        raise ValueError("scores_ and coefs_paths_ must have the labels as keys")
    parts = [np.asarray(model.scores_[key]) for key in keys]
    if any(not np.array_equal(part, parts[0]) for part in parts):
        raise ValueError("scores_ must be the same for every label")
    scores = parts[0]
    coefs = np.stack([model.coefs_paths_[key] for key in keys])
    n_iter = model.n_iter_[0]
    if scores.ndim == 2:
        scores = scores[:, :, None]
        coefs = coefs[:, :, :, None]
        n_iter = n_iter[:, :, None]
    return scores.transpose(0, 2, 1), coefs.transpose(1, 3, 2, 0, 4), n_iter.transpose(0, 2, 1)


def _is_best(model: Any, scores: Array, coefs: Array, C: float, ratio: float) -> bool:
    """Tell whether C and ρ are what the scores choose, and means over folds what they say."""
    by_size = scores.transpose(0, 2, 1)
    shape = by_size.shape[1:]
    if model.refit:
        c, r = np.unravel_index(np.argmax(by_size.sum(axis=0)), shape)
        return bool(model.Cs_[c] == C and model.l1_ratios_[r] == ratio)
    places = [np.unravel_index(np.argmax(one), shape) for one in by_size]
    chosen = np.mean([coefs[fold, r, c] for fold, (c, r) in enumerate(places)], axis=0)
    d = model.n_features_in_
    level = chosen[:, d] if model.fit_intercept else np.zeros(len(chosen))
    return (
        is_near(C, np.mean([model.Cs_[c] for c, _ in places]))
        and is_near(ratio, np.mean([model.l1_ratios_[r] for _, r in places]), slack=1e-12)
        and is_near(model.coef_, chosen[:, :d], slack=1e-12)
        and is_near(model.intercept_, level, slack=1e-12)
    )


def _are_paths(model: Any, X: Any, y: Any, sample_weight: Any, scores: Array, coefs: Array) -> bool:
    """Tell whether the coefficients of the folds are their optima, and the scores theirs."""
    rows, _ = read_classes(model, X, y, sample_weight)
    _, labels, weights = named_columns("verify", X, y, sample_weight)
    labels = np.asarray(labels).ravel()
    kept = _kept(weights, len(labels))
    order = zlib.crc32(np.ascontiguousarray(rows.y, dtype=np.int64).tobytes())
    order = order if kept.all() else zlib.crc32(np.ascontiguousarray(kept).tobytes(), order)
    folds = folds_of(model.cv, kept, labels, True) if order == model.row_order_ else None
    if folds is None or len(rows.y) * rows.n_columns * scores.size > _MOST_ENTRIES:
        return True
    if len(folds) != len(scores):
        return False
    Z = np.concatenate([(part.toarray() if hasattr(part, "toarray") else part) for part, _, _ in rows.chunks()])
    Z = Z.astype(float)
    own = class_weights_of(model.class_weight, model.classes_, rows)
    scorer = _scorer(model)
    d = rows.n_columns
    for number, (train, test) in enumerate(folds):
        absent = len(np.unique(rows.y[train])) < len(model.classes_)
        for r, c in np.ndindex(scores.shape[1:]):
            if np.isneginf(scores[number, r, c]):
                continue  # there was no time
            B = coefs[number, r, c]
            level = B[:, d] if model.fit_intercept else np.zeros(len(B))
            weight = rows.weight[test]
            extra = {} if (rows.weight == 1).all() else {"sample_weight": weight}
            found = _score(
                scorer, _Linear(model.classes_, B[:, :d], level), Z[test], model.classes_[rows.y[test]], extra
            )
            if found is not None and not abs(found - scores[number, r, c]) <= 1e-6 * (1 + abs(found)):
                return False
            if absent or np.isinf(model.Cs_[c]):
                continue  # without a class its intercept has no optimum
            twin = _twin(model, float(model.Cs_[c]), float(model.l1_ratios_[r]), B[:, :d], level, {})
            weighted = rows.weight[train] * own[rows.y[train]]
            again = verify_glm.logistic(twin, Z[train], model.classes_[rows.y[train]], weighted)
            if not again.value <= model.certificate_.tolerance + again.rounding:
                return False
    return True


def _scorer(model: Any) -> Any:
    scoring = None if isinstance(model.scoring, str) and model.scoring == "warn" else model.scoring
    scorer = get_scorer(scoring or "accuracy")
    metric = getattr(scorer, "_score_func", None)
    known = {} if metric is None else inspect.signature(metric).parameters
    if scoring is None or "labels" not in known:
        return scorer
    positive = {"pos_label": model.classes_[-1]} if len(model.classes_) == 2 and "pos_label" in known else {}
    settings = {"labels": model.classes_, **positive} | scorer._kwargs
    return make_scorer(metric, greater_is_better=scorer._sign == 1, response_method=scorer._response_method, **settings)


def _score(scorer: Any, model: Any, X: Array, y: Array, extra: dict[str, Any]) -> float | None:
    for given in [extra, {}] if extra else [{}]:
        try:
            return float(scorer(model, X, y, **given))
        except (TypeError, ValueError, AttributeError, LookupError):
            continue
    return None


# ---- ridge regression of labels ----


@sound
@np.errstate(all="ignore")
def ridge_classifier(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a RidgeClassifier or RidgeClassifierCV, and the scores by which the latter chose."""
    if getattr(model, "multilabel_", False):
        rows, kept = verify.rows_of(model, X, y.toarray() if hasattr(y, "toarray") else y, sample_weight)
        fingerprint = fingerprint_of(rows)
        targets = np.where(rows.y == 1, 1.0, -1.0)
        weight = rows.weight * _balance(model.class_weight, rows.y)
    else:
        rows, fingerprint = read_classes(model, X, y, sample_weight)
        K = len(model.classes_)
        own = class_weights_of(model.class_weight, model.classes_, rows)
        targets = np.where(rows.y[:, None] == np.arange(K), 1.0, -1.0)
        if K <= 2:  # one target: +1 for the second class
            targets = np.where(rows.y == 1, 1.0, -1.0)[:, None]
        weight = rows.weight * own[rows.y]
        _, labels, weights = named_columns("verify", X, y, sample_weight)
        kept = _kept(weights, len(np.asarray(labels).ravel()))
    alpha = float(model.alpha_ if hasattr(model, "alpha_") else model.alpha)
    coef = np.atleast_2d(model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_)
    if coef.shape[0] != targets.shape[1] or np.shape(model.intercept_) != (len(coef),):
        return Recheck(np.inf, 0.0, fingerprint)
    twin = SimpleNamespace(**{**vars(model), "coef_": coef, "n_features_in_": model.n_features_in_})
    signed = rows._replace(y=targets, weight=weight)
    found = verify.check_quadratic(twin, signed, np.array([alpha]))
    if hasattr(model, "alpha_") and not _chose_penalty(model, signed, kept):
        return Recheck(np.inf, 0.0, fingerprint)
    return found._replace(fingerprint=fingerprint)


def _balance(class_weight: Any, indicators: Array) -> Array:
    """Return the weights of rows with a column of zeros and ones per label: n/(2·count) of each, multiplied."""
    weight = np.ones(len(indicators))
    if class_weight == "balanced":
        for column in indicators.T:
            values, place, counts = np.unique(column, return_inverse=True, return_counts=True)
            weight *= (len(column) / (len(values) * counts))[place]
    return weight


def _chose_penalty(model: Any, rows: Any, kept: Array) -> bool:
    """Tell whether the penalty is what the scores choose, and the scores those of the rows."""
    path = np.asarray(model.criterion_path_, dtype=float)
    alphas = np.asarray(model.alphas, dtype=float).ravel()
    places = np.flatnonzero(alphas == model.alpha_)
    if path.shape != alphas.shape or not len(places):
        return False
    if not (path[places] == model.best_score_).any() or model.best_score_ < path.max():
        return False
    if model.cv is not None or model.scoring is not None:
        return True
    settings = SimpleNamespace(**vars(model), criterion="loo", alpha_per_target=False)
    if hasattr(model, "cv_results_") and rows.y.shape[1] == 1:
        settings.cv_results_ = np.asarray(model.cv_results_)[:, 0]
    return ridge_choice(settings, rows, kept)


# ---- least angle regression ----


def _path_is_sound(model: Any, problem: Problem) -> bool:
    """Tell whether corners, active columns and coefficients belong together, with the intercept."""
    alphas = np.asarray(model.alphas_, dtype=float)
    coefs = np.asarray(model.coef_path_, dtype=float)
    coef = np.asarray(model.coef_, dtype=float)
    active = np.asarray(model.active_)
    terms = abs(problem.y_mean) + np.abs(problem.x_mean) @ np.abs(coef)
    level = abs(float(model.intercept_) - (problem.y_mean - problem.x_mean @ coef))
    size = np.sqrt(problem.y @ problem.y)
    used = np.flatnonzero(coefs[:, -1])
    return bool(
        coefs.shape == (len(problem.scale), len(alphas))
        and coef.shape == (len(problem.scale),)
        and (np.diff(alphas) <= 0).all()
        and not coefs[:, 0].any()
        and len(np.unique(active)) == len(active)
        and np.isin(used, active).all()
        and model.n_iter_ == max(1, len(alphas) - 1)
        and level <= 1e-12 * terms + 1e-10 * size / np.sqrt(problem.weight)
    )


def _slack(problem: Problem, coefs: Array) -> Array:
    size = np.sqrt(problem.y @ problem.y) + np.abs(problem.scale[:, None] * coefs).sum(axis=0)
    return 1e-9 * problem.scale[:, None] * size / problem.weight


def _angles(model: Any, problem: Problem) -> tuple[float, bool]:
    """Return by how much the correlations differ from the corners' levels, and whether the path is sound."""
    alphas = np.asarray(model.alphas_, dtype=float)
    coefs = np.asarray(model.coef_path_, dtype=float)
    A = problem.A * problem.scale
    correlations = A.T @ (problem.y[:, None] - A @ coefs) / problem.weight
    entered = np.cumsum(coefs != 0, axis=1) > 0
    off = np.where(entered, np.abs(np.abs(correlations) - alphas), np.maximum(np.abs(correlations) - alphas, 0))
    value = float(off.max(initial=0.0) / alphas[0]) if alphas[0] > 0 else 0.0
    return value, _path_is_sound(model, problem) and np.array_equal(coefs[:, -1], model.coef_)


@by_target
@sound
@np.errstate(all="ignore")
def lars(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a Lars: all active columns have one correlation at every corner, others less."""
    problem = problem_of(model, X, y, sample_weight)
    value, sane = _angles(model, problem)
    return Recheck(value if sane else np.inf, _SAME, problem.fingerprint)


def _lasso_gap(model: Any, problem: Problem, alpha: float, positive: bool) -> float:
    """Return (P − D)/max(D, 1e-8·P₀) of the stored coefficients."""
    A = problem.A * problem.scale
    b = problem.y
    coef = np.asarray(model.coef_, dtype=float)
    if positive and (coef < 0).any():
        return np.inf
    r = b - A @ coef
    W = problem.weight
    primal = r @ r / 2 + W * alpha * np.abs(coef).sum()
    dual = problem.least(np.ones((1, len(coef)), dtype=bool))[0] / 2
    correlation = A.T @ r
    largest = float((correlation if positive else np.abs(correlation)).max(initial=0.0))
    if alpha > 0 and r @ r > 0:
        tau = min(b @ r / (r @ r), W * alpha / largest if largest > 0 else np.inf)
        dual = max(dual, tau * (b @ r) - tau**2 * (r @ r) / 2)
    if problem.total == 0:
        return 0.0
    return float(max(0.0, primal - dual) / max(dual, 1e-8 * problem.total / 2))


def corners_are_optimal(model: Any, problem: Problem, positive: bool) -> bool:
    """Tell whether every corner solves the lasso at its α."""
    alphas = np.asarray(model.alphas_, dtype=float)
    coefs = np.asarray(model.coef_path_, dtype=float)
    A = problem.A * problem.scale
    correlations = A.T @ (problem.y[:, None] - A @ coefs) / problem.weight
    away = np.abs(correlations - np.sign(coefs) * alphas)
    outside = np.maximum((correlations if positive else np.abs(correlations)) - alphas, 0)
    slopes = np.where(coefs == 0, outside, away)
    return bool((slopes <= _slack(problem, coefs)).all()) and not (positive and (coefs < 0).any())


@sound
@np.errstate(all="ignore")
def lars_cv(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a LassoLarsCV or LarsCV, and, by following the folds' corners, its choice."""
    problem = problem_of(model, X, y, sample_weight)
    lasso = type(model).__name__ == "LassoLarsCV"
    positive = bool(getattr(model, "positive", False))
    mse = np.asarray(model.mse_path_, dtype=float)
    alphas = np.asarray(model.cv_alphas_, dtype=float)
    ended = model.alphas_[-1] <= model.alpha_ * (1 + 1e-12) + 1e-11 * model.alphas_[0]
    chosen = (
        mse.shape[0] == len(alphas)
        and (np.diff(alphas) > 0).all()
        and (ended or not model.certificate_.holds)
        and alphas[int(np.argmin(mse.mean(axis=1)))] == model.alpha_
        and _lars_errors(model, X, y, sample_weight, lasso, positive)
    )
    if lasso:
        sane = _path_is_sound(model, problem) and np.array_equal(model.coef_path_[:, -1], model.coef_)
        sane = sane and corners_are_optimal(model, problem, positive)
        value = _lasso_gap(model, problem, float(model.alpha_), positive)
        rounding = 1e-12
        return Recheck(value if sane and chosen else np.inf, rounding, problem.fingerprint, bound=value)
    value, sane = _angles(model, problem)
    return Recheck(value if sane and chosen else np.inf, _SAME, problem.fingerprint)


def _lars_errors(model: Any, X: Any, y: Any, sample_weight: Any, lasso: bool, positive: bool) -> bool:
    """Compare errors on the folds with those of the lasso by another method; of `LarsCV` only the two ends."""
    rows, kept = verify.rows_of(model, X, y, sample_weight)
    order = zlib.crc32(np.ascontiguousarray(rows.y, dtype=np.float64).tobytes())
    order = order if kept.all() else zlib.crc32(np.ascontiguousarray(kept).tobytes(), order)
    if order != model.row_order_ or len(rows.y) * rows.n_columns > _MOST_ENTRIES:
        return True
    folds = folds_of(model.cv, kept, np.zeros(len(kept)), False)
    mse = np.asarray(model.mse_path_, dtype=float)
    alphas = np.asarray(model.cv_alphas_, dtype=float)
    if folds is None:
        return True
    if mse.shape[1] != len(folds):
        return False
    Z = np.concatenate([(part.toarray() if hasattr(part, "toarray") else part) for part, _, _ in rows.chunks()])
    Z = Z.astype(float)
    for number, (train, test) in enumerate(folds):
        t = rows.y[train, 0]
        w = rows.weight[train]
        x_mean, y_mean = (w @ Z[train] / w.sum(), w @ t / w.sum()) if model.fit_intercept else (0 * Z[0], 0.0)
        A = Z[train] - x_mean
        b = t - y_mean
        G = A.T @ (w[:, None] * A)
        c = A.T @ (w * b)
        W = float(w.sum())
        places = range(len(alphas)) if lasso else ()
        beta = np.zeros((rows.n_columns, 1))
        for place in reversed(places):
            from .verify_stored import _proximal_gradient

            found = _proximal_gradient(G, c[:, None], W * alphas[place], 0.0, beta, positive)
            if found is None:
                break
            beta = found
            e = rows.y[test, 0] - y_mean - (Z[test] - x_mean) @ beta[:, 0]
            error = float(rows.weight[test] @ e**2 / rows.weight[test].sum())
            scale = float(rows.weight[test] @ (rows.y[test, 0] - y_mean) ** 2 / rows.weight[test].sum())
            if not abs(mse[place, number] - error) <= 3e-4 * error + 1e-6 * scale:
                return False
        if not lasso and not _lar_end(mse[-1, number], rows, test, y_mean, alphas[-1], np.abs(c).max() / W):
            return False
    return True


def _lar_end(stored: float, rows: Any, test: Array, y_mean: float, alpha: float, largest: float) -> bool:
    """Tell whether the error at the largest α is that of the mean, where no column of the fold has joined yet."""
    if alpha < largest:
        return True
    weight = rows.weight[test]
    error = float(weight @ (rows.y[test, 0] - y_mean) ** 2 / weight.sum())
    return bool(abs(stored - error) <= 1e-6 * error + 1e-300)


@sound
@np.errstate(all="ignore")
def lars_ic(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a LassoLarsIC: every corner's optimality and criterion, and the least of them."""
    problem = problem_of(model, X, y, sample_weight)
    n = problem.weight
    p = len(problem.scale)
    coefs = np.asarray(model.coef_path_, dtype=float)
    A = problem.A * problem.scale
    squares = ((problem.y[:, None] - A @ coefs) ** 2).sum(axis=0)
    noise = float(model.noise_variance_)
    expected = noise if model.noise_variance is None else float(model.noise_variance)
    if model.noise_variance is None and not model.positive:
        expected = float(problem.least(np.ones((1, p), dtype=bool))[0] / (n - p - bool(model.fit_intercept)))
    elif model.noise_variance is None:
        expected = float(squares[-1] / (n - p - bool(model.fit_intercept)))
    counts = (np.abs(coefs) > np.finfo(float).eps).sum(axis=0)
    factor = 2.0 if model.criterion == "aic" else float(np.log(n))
    some = max(noise, np.finfo(float).tiny)  # an exact fit leaves no noise
    criterion = n * np.log(2 * np.pi * some) + squares / some + factor * counts
    corner = int(np.argmin(criterion))
    sane = (
        _path_is_sound(model, problem)
        and corners_are_optimal(model, problem, bool(model.positive))
        and is_near(noise, expected, slack=1e-10 * problem.total / n)
        and is_near(model.criterion_, criterion, slack=1e-7 * n)
        and model.alpha_ == model.alphas_[corner]
        and np.array_equal(model.coef_, coefs[:, corner])
    )
    value = _lasso_gap(model, problem, float(model.alpha_), bool(model.positive))
    return Recheck(value if sane else np.inf, 1e-12, problem.fingerprint, bound=value)


# ---- orthogonal matching pursuit ----


@by_target
@sound
@np.errstate(all="ignore")
def pursuit(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of an OrthogonalMatchingPursuit, or of one that chose its size: every step again."""
    problem = problem_of(model, X, y, sample_weight)
    A = problem.A * problem.scale
    p = len(problem.scale)
    order = np.asarray(model.order_)
    tol = getattr(model, "tol", None)
    worst = 0.0
    r = problem.y
    for step, j in enumerate(order.tolist()):
        correlation = np.abs(A.T @ r)
        correlation[order[:step]] = 0.0
        greatest = correlation.max()
        if greatest > 0:
            worst = max(worst, float((greatest - correlation[j]) / greatest))
        Q = np.linalg.qr(problem.A[:, order[: step + 1]])[0]
        r = problem.y - Q @ (Q.T @ problem.y)
    coef = np.asarray(model.coef_, dtype=float)
    beta = np.zeros(p)
    if len(order):
        beta[order] = np.linalg.lstsq(A[:, order], problem.y, rcond=None)[0]
    near = 1e-7 * (np.abs(beta).max(initial=0.0) + 1e-300)
    level = abs(float(model.intercept_) - (problem.y_mean - problem.x_mean @ coef))
    terms = abs(problem.y_mean) + np.abs(problem.x_mean) @ np.abs(coef) + np.sqrt(problem.total / problem.weight)
    exact = r @ r <= 1e-9 * problem.total
    if tol is not None:
        full = r @ r <= tol * (1 + 1e-9) or exact or len(order) == p
        wanted = bool(full) and model.n_nonzero_coefs_ is None
    else:
        wanted = bool(len(order) == min(model.n_nonzero_coefs_, p) or exact or problem.dependent)
        asked = getattr(model, "n_nonzero_coefs", None)
        if hasattr(model, "mse_path_"):
            mse = np.asarray(model.mse_path_, dtype=float)
            wanted = wanted and model.n_nonzero_coefs_ == (int(np.argmin(mse.mean(axis=1))) + 1 if len(mse) else 1)
            wanted = wanted and _pursuit_errors(model, X, y, sample_weight, mse)
        else:
            wanted = wanted and model.n_nonzero_coefs_ == (max(int(0.1 * p), 1) if asked is None else asked)
    sane = (
        len(np.unique(order)) == len(order)
        and model.n_iter_ == len(order)
        and coef.shape == (p,)
        and (np.abs(coef - beta) <= near).all()
        and level <= 1e-9 * terms
        and wanted
    )
    return Recheck(worst if sane else np.inf, 1e-7, problem.fingerprint)


def _pursuit_errors(model: Any, X: Any, y: Any, sample_weight: Any, mse: Array) -> bool:
    """Compare errors on the folds with those of steps taken again."""
    rows, kept = verify.rows_of(model, X, y, sample_weight)
    order = zlib.crc32(np.ascontiguousarray(rows.y, dtype=np.float64).tobytes())
    order = order if kept.all() else zlib.crc32(np.ascontiguousarray(kept).tobytes(), order)
    folds = folds_of(model.cv, kept, np.zeros(len(kept)), False) if order == model.row_order_ else None
    if folds is None or len(rows.y) * rows.n_columns > _MOST_ENTRIES:
        return True
    if mse.shape[1] != len(folds):
        return False
    Z = np.concatenate([(part.toarray() if hasattr(part, "toarray") else part) for part, _, _ in rows.chunks()])
    Z = Z.astype(float)
    for number, (train, test) in enumerate(folds):
        t = rows.y[train, 0]
        w = rows.weight[train]
        x_mean, y_mean = (w @ Z[train] / w.sum(), w @ t / w.sum()) if model.fit_intercept else (0 * Z[0], 0.0)
        root = np.sqrt(w)
        A = root[:, None] * (Z[train] - x_mean)
        b = root * (t - y_mean)
        r = b
        chosen: list[int] = []
        for size in range(len(mse)):
            correlation = np.abs(A.T @ r)
            correlation[chosen] = -1.0
            chosen.append(int(np.argmax(correlation)))
            beta = np.linalg.lstsq(A[:, chosen], b, rcond=None)[0]
            r = b - A[:, chosen] @ beta
            e = rows.y[test, 0] - y_mean - (Z[test][:, chosen] - x_mean[chosen]) @ beta
            error = float(rows.weight[test] @ e**2 / rows.weight[test].sum())
            if not abs(mse[size, number] - error) <= 1e-6 * error + 1e-9 * float(b @ b / w.sum()):
                return False
    return True
