"""Independent checks of column selectors: every step is taken again, by plain loops over candidates and folds.

It costs as much as the fit. An estimator that draws without a seed gives other scores, and cannot be verified.
"""

from __future__ import annotations

import hashlib
from operator import attrgetter
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring, get_scorer
from sklearn.model_selection import check_cv

from ..core import REGISTRY, AnyArray, Recheck, registered_name, verify
from ..data.checking import sound

_SAME = 1e-9  # relative distance at which two scores are the same


def _read(X: Any, y: Any) -> tuple[Any, Any, str]:
    X = X.tocsr() if sp.issparse(X) else np.asarray(X)
    if not sp.issparse(X) and X.dtype.kind == "O":
        X = X.astype(np.float64)
    y = None if y is None else np.asarray(y)
    y = y[:, 0] if y is not None and y.ndim == 2 and y.shape[1] == 1 else y
    total = hashlib.blake2b(digest_size=8)
    for part in (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,):
        total.update(np.ascontiguousarray(part).tobytes())
    if y is not None:
        total.update(repr(y.tolist()).encode() if y.dtype.kind in "OUS" else np.ascontiguousarray(y).tobytes())
    return X, y, total.hexdigest()


def _mean_score(model: Any, scorer: Any, X: Any, y: Any, splits: list[Any], columns: AnyArray) -> float:
    scores = []
    for train, test in splits:
        fit = clone(model.estimator)
        if y is None:
            scores.append(float(scorer(fit.fit(X[train][:, columns]), X[test][:, columns])))
        else:
            scores.append(float(scorer(fit.fit(X[train][:, columns], y[train]), X[test][:, columns], y[test])))
    return float(np.mean(scores))


@sound
def sequential(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a SequentialFeatureSelector: every step against all its candidates."""
    X, y, fingerprint = _read(X, y)
    p = X.shape[1]
    splits = list(check_cv(model.cv, y, classifier=is_classifier(model.estimator)).split(X, y))
    scorer = check_scoring(model.estimator, model.scoring)
    forward = model.direction == "forward"
    moved = np.zeros(p, dtype=bool)
    worst = 0.0
    order = np.asarray(model.order_)
    same = len(np.unique(order)) == len(order) == len(model.scores_)
    for step, j in enumerate(order.tolist()):
        found = {}
        for candidate in np.flatnonzero(~moved).tolist():
            mask = moved.copy()
            mask[candidate] = True
            columns = np.flatnonzero(mask if forward else ~mask)
            found[candidate] = _mean_score(model, scorer, X, y, splits, columns)
        size = max(abs(value) for value in found.values())
        worst = max(worst, (max(found.values()) - found[j]) / max(size, 1e-300))
        same = same and abs(found[j] - model.scores_[step]) <= 1e-7 * max(size, 1e-9)
        moved[j] = True
    support = moved if forward else ~moved
    same = (
        same
        and np.array_equal(support, np.asarray(model.support_, dtype=bool))
        and model.n_features_to_select_ == int(support.sum())
        and _ends_rightly(model, p, len(order))
    )
    return Recheck(worst if same else np.inf, _SAME, fingerprint)


def _ends_rightly(model: Any, p: int, n_steps: int) -> bool:
    """Tell whether the number of steps is what the parameters ask for; with `tol` or a time limit it may be less."""
    wanted = model.n_features_to_select
    if wanted == "auto":
        count = p - 1 if model.tol is not None else p // 2
        most = count
    else:
        count = int(wanted) if isinstance(wanted, (int, np.integer)) else int(p * wanted)
        most = count if model.direction == "forward" else p - count
    open_end = model.max_seconds is not None or (model.tol is not None and wanted == "auto")
    return n_steps <= most if open_end else n_steps == most


def _importance(model: Any, fit: Any, p: int) -> AnyArray:
    getter = model.importance_getter
    if callable(getter):
        found = getter(fit)
    elif getter == "auto":
        found = fit.coef_ if hasattr(fit, "coef_") else fit.feature_importances_
    else:
        found = attrgetter(getter)(fit)
    found = np.asarray(found.toarray() if sp.issparse(found) else found, dtype=float) ** 2
    return np.asarray(found.reshape(-1, p).sum(axis=0))


def _replay(model: Any, X: Any, y: Any, ranking: AnyArray, wanted: int, weights: dict[str, Any]) -> float:
    """Return by how much a dropped column was more important than a kept one, relative to the largest importance."""
    p = X.shape[1]
    step = int(max(1, model.step * p)) if 0.0 < model.step < 1.0 else int(model.step)
    worst = 0.0
    support = np.ones(p, dtype=bool)
    last = int(ranking.max())
    for rank in range(last, 1, -1):
        columns = np.flatnonzero(support)
        gone = ranking[columns] == rank
        if gone.sum() != min(step, len(columns) - wanted):
            return np.inf
        fit = clone(model.estimator).fit(X[:, columns], y, **weights)
        importance = _importance(model, fit, len(columns))
        excess = importance[gone].max(initial=0.0) - importance[~gone].min(initial=np.inf)
        worst = max(worst, float(excess / max(importance.max(), 1e-300)))
        support[columns[gone]] = False
    return worst if support.sum() == min(wanted, p) else np.inf


@sound
def elimination(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of an RFE or RFECV: every elimination again, and the fit to the chosen columns."""
    X, y, fingerprint = _read(X, y)
    p = X.shape[1]
    ranking = np.asarray(model.ranking_)
    support = np.asarray(model.support_, dtype=bool)
    weights = {} if sample_weight is None else {"sample_weight": np.asarray(sample_weight)}
    wanted = int(model.n_features_)
    sane = ranking.shape == (p,) and np.array_equal(ranking == 1, support) and wanted == int(support.sum())
    if hasattr(model, "cv_results_"):
        sane = sane and _results_are(model, X, y, wanted)
    else:
        asked = model.n_features_to_select
        if asked is None:
            asked = p // 2
        elif not isinstance(asked, (int, np.integer)):
            asked = int(p * asked)
        sane = sane and wanted == min(int(asked), p)
    if not sane:
        return Recheck(np.inf, 0.0, fingerprint)
    worst = _replay(model, X, y, ranking, wanted, weights)
    inner = None
    name = registered_name(type(model.estimator_))
    if name and REGISTRY[name].checker:
        inner = verify(model.estimator_, X[:, np.flatnonzero(support)], y, sample_weight=sample_weight)
        worst = worst if inner else np.inf
    return Recheck(max(worst, 0.0), _SAME, fingerprint, inner=inner)


def _results_are(model: Any, X: Any, y: Any, wanted: int) -> bool:
    """Tell whether scores, supports and rankings of every fold are those of eliminations on it."""
    results = model.cv_results_
    counts = np.asarray(results["n_features"])
    splits = list(check_cv(model.cv, y, classifier=is_classifier(model.estimator)).split(X, y))
    default = "accuracy" if is_classifier(model.estimator) else "r2"
    scorer = get_scorer(default if model.scoring is None else model.scoring)
    scores = np.array([results[f"split{i}_test_score"] for i in range(len(splits))])
    names = {"mean_test_score", "std_test_score", "n_features"}
    for i in range(len(splits)):
        names |= {f"split{i}_test_score", f"split{i}_ranking", f"split{i}_support"}
    same = (
        set(results) == names
        and scores.shape == (len(splits), len(counts))
        and (np.diff(counts) > 0).all()
        and np.allclose(results["mean_test_score"], scores.mean(axis=0))
        and np.allclose(results["std_test_score"], scores.std(axis=0))
        and wanted == counts[np.argmax(scores.sum(axis=0))]
    )
    if not same:
        return False
    for i, (train, test) in enumerate(splits):
        supports = np.asarray(results[f"split{i}_support"], dtype=bool)
        rankings = np.asarray(results[f"split{i}_ranking"])
        if not np.array_equal(supports.sum(axis=1), counts) or not np.array_equal(rankings == 1, supports):
            return False
        if _replay(model, X[train], y[train], rankings[0], int(counts[0]), {}) > _SAME:
            return False
        for place in range(len(counts)):
            expected = np.maximum(rankings[0] - place, 1)
            if not np.array_equal(rankings[place], expected):
                return False
            columns = np.flatnonzero(supports[place])
            fit = clone(model.estimator).fit(X[train][:, columns], y[train])
            if abs(float(scorer(fit, X[test][:, columns], y[test])) - scores[i, place]) > 1e-7:
                return False
    return True
