"""How much score a model loses when a column of the table is shuffled; of very many columns, for those it leans on."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..estimates.importance import permutation_importance
from .measures import Measure
from .record import plain

Array = NDArray[np.float64]

_MOST_COLUMNS: Final = 60
_SHOWN_COLUMNS: Final = 30
_REPEATS: Final = 5


def importances(
    model: Any, X: Any, y: NDArray[Any], sources: list[str], measure: Measure, seed: int
) -> list[dict[str, Any]]:
    """Return how much score is lost when all features of one column of the table are shuffled together."""
    groups: dict[str, list[int]] = {}
    for position, source in enumerate(sources):
        groups.setdefault(source, []).append(position)
    if len(groups) > _MOST_COLUMNS:
        groups = _weightiest(groups, model, X)
    found = permutation_importance(
        model, X, y, scoring=measure.scoring, n_repeats=_REPEATS, groups=groups, random_state=seed
    )
    shown: list[dict[str, Any]] = plain(found.to_dict()["importances"])
    return shown[:_SHOWN_COLUMNS]


def _weightiest(groups: dict[str, list[int]], model: Any, X: Any) -> dict[str, list[int]]:
    """Return the columns that a model leans on most, by what it says of itself or by what its predictions follow."""
    weight = weights_of(model, X.shape[1])
    if weight is None:
        weight = _followed(model, X)
    order = sorted(groups, key=lambda name: -float(weight[groups[name]].max()))
    return {name: groups[name] for name in order[:_MOST_COLUMNS]}


def weights_of(model: Any, n_columns: int) -> Array | None:
    """Return how much a fitted model uses each column, as shares: by coefficients or importances, of blends together.

    None where it does not say.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import LinearRegression
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> weights_of(LinearRegression().fit(X, 3.0 * X[:, 1]), 2).round(6)
    array([0., 1.])
    """
    members = getattr(model, "members_", None)
    if members:
        parts = [weights_of(member, n_columns) for member in members]
        known = [part * share for part, share in zip(parts, model.weights_, strict=True) if part is not None]
        return np.asarray(sum(known)) if known else None
    for name in ("coef_", "feature_importances_"):
        found = getattr(model, name, None)
        if found is None:
            continue
        found = np.atleast_2d(found.toarray() if sp.issparse(found) else np.asarray(found, dtype=np.float64))
        size = np.abs(found).max(axis=0)
        if found.ndim == 2 and size.shape == (n_columns,) and np.isfinite(size).all() and size.sum() > 0:
            return np.asarray(size / size.sum())
    inside = getattr(model, "model_", None) or getattr(model, "estimator_", None)
    return None if inside is None else weights_of(inside, n_columns)


def _followed(model: Any, X: Any) -> Array:
    """Return the absolute correlation of every column with what a model predicts, the largest over its outputs."""
    told = model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
    P = np.asarray(told, dtype=np.float64).reshape(X.shape[0], -1)
    P = P - P.mean(axis=0)
    numbers = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    centred = numbers - numbers.mean(axis=0)
    size = np.sqrt((centred**2).sum(axis=0))[:, None] * np.sqrt((P**2).sum(axis=0))
    together = np.abs(centred.T @ P)
    return np.asarray(np.divide(together, size, out=np.zeros_like(together), where=size > 0).max(axis=1))
