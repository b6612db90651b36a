"""Independent check of AdaBoost.R2: distributions, errors and weights are replayed, trees walked again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checking import Recheck, flaw_of
from ..trees.verify import AGREE, Limits, Rules, TreeWalk
from ..trees.verify_scores import scores_for
from .verify_adaboost import ROUNDING, Rows, read_rows
from .verify_forest import drawn_rows
from .verify_stumps import column_of

Array = NDArray[np.float64]


@np.errstate(all="ignore")
def adaboost_regressor(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of an AdaBoostRegressor: replay its distributions, errors and weights.

    Trees are walked again on the rows that were drawn for them; what other regressors were fitted to is not judged.
    """
    rows = read_rows(model, X, y, sample_weight)
    T = len(model.estimator_weights_)
    flaw = flaw_of([model, *(model.models_ or [])])
    if not flaw and (np.shape(model.estimator_errors_) != (T,) or model.certificate_.n_iter != T):
        flaw = f"there are {T} weights, {np.size(model.estimator_errors_)} errors, {model.certificate_.n_iter} rounds"
    if flaw:
        return Recheck(np.inf, 0.0, f"{rows.fingerprint}, but {flaw}")
    D, value = np.exp(rows.log_weight), 0.0
    for t, predicted in enumerate(_regressions(model, rows.X)):
        if model.trees_ is not None and not _tree_follows(model, rows, D, t):
            return Recheck(np.inf, 0.0, f"{rows.fingerprint}, but tree {t} does not follow from its rows")
        error = np.abs(predicted - rows.y)
        L = error / error.max() if error.max() > 0 else error
        L = {"linear": L, "square": L * L, "exponential": 1 - np.exp(-L)}[model.loss]
        mean, recorded = float((D * L).sum()), float(model.estimator_errors_[t])
        if mean <= 0:
            right = float(model.estimator_weights_[:t].sum() + 1.0)
        else:
            right = float(model.learning_rate * np.log((1 - mean) / mean)) if mean < 0.5 else 1.0
        value = max(value, abs(mean - recorded), abs(float(model.estimator_weights_[t]) - right) / max(1.0, abs(right)))
        D = D * (mean / (1 - mean)) ** ((1 - L) * model.learning_rate) if 0 < mean < 0.5 else D
        D = D / D.sum()
    return Recheck(value if value == value else np.inf, ROUNDING, rows.fingerprint)


def _tree_follows(model: Any, rows: Rows, D: Array, number: int) -> bool:
    """Tell whether a tree of depth three is what the rows drawn from D make of it."""
    n = len(rows.y)
    counts = np.bincount(drawn_rows(model.seed_, number, n, n, D), minlength=n).astype(np.float64)
    rule = Rules(Limits(max_depth=3), np.zeros(model.n_features_in_, dtype=bool), True)
    scores = scores_for("squared_error", rows.y, [], counts)
    walk = TreeWalk(model.trees_.tree(number), rows.X, rows.X, counts, scores, rule, 0)
    return walk.shortfall() <= AGREE


def _regressions(model: Any, X: Any) -> Iterator[Array]:
    """Yield what each regressor predicts; trees are walked row by row of nodes, in plain NumPy."""
    if model.trees_ is None:
        for learner in model.models_:
            yield np.asarray(learner.predict(X), dtype=np.float64).ravel()
        return
    for number in range(model.trees_.n_trees):
        learner = model.trees_.tree(number)
        at = np.zeros(X.shape[0], dtype=np.int64)
        while (inner := learner.feature[at] >= 0).any():
            for node in np.unique(at[inner]):
                here = np.flatnonzero(at == node)
                left = column_of(X[here], int(learner.feature[node])) <= learner.threshold[node]
                at[here] = np.where(left, learner.left[node], learner.right[node])
        yield learner.value[at, 0]
