"""Independent check of scaling by majorisation: the stress before and after one more step, by dense NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ..core.checking import Recheck, relative
from ..core.errors import VerificationError
from ..data.checking import read_table
from .verify import signs_are_fixed, stated_dissimilarities

Array = NDArray[Any]


@np.errstate(all="ignore")
def mds(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Recompute the certificate of an MDS."""
    table = read_table(model, X, None, sample_weight)
    n = table.n_rows
    Y = np.asarray(model.embedding_)
    if len(Y) != n:
        raise VerificationError(f"verify: this MDS has {len(Y)} rows, the data {n}; pass the rows of the fit.")
    older = isinstance(model.metric, (bool, np.bool_))
    metric = "euclidean" if older else model.metric
    metric = metric if model.dissimilarity == "deprecated" else model.dissimilarity
    ordinal = not (bool(model.metric) if older else model.metric_mds)
    stated = stated_dissimilarities(model, table, metric)
    np.fill_diagonal(stated, 0.0)
    D = np.asarray(model.dissimilarity_matrix_)  # its ties are those of the fit, once it agrees up to rounding
    stored = model.X_fit_
    same = stored.shape == table.X.shape and abs(stored - table.X).max() == 0
    size = n * (n - 1) / 2.0 if ordinal else 0.5 * float((D**2).sum())
    unit = size or 1.0
    targets = _disparities(D, Y) if ordinal else D
    before = _stress(targets, Y)
    distance = cdist(Y, Y)
    ratio = np.where(distance > 0, targets / np.where(distance > 0, distance, 1.0), 0.0)
    moved = (np.diag(ratio.sum(axis=1)) - ratio) @ Y / n
    after = _stress(_disparities(D, moved) if ordinal else D, moved)
    normalised = ordinal if model.normalized_stress == "auto" else bool(model.normalized_stress)
    spread = 0.5 * float((distance**2).sum()) or 1.0
    history = np.asarray(model.stress_history_)
    facts = [
        relative(D, stated, np.abs(stated).max(initial=0.0) or 1.0),
        relative(np.asarray(history[-1]), np.asarray(before), unit),
        0.0 if same and (np.diff(history) <= 1e-9 * unit).all() else np.inf,
    ]
    inner = Y.T @ Y
    lengths = np.diag(inner)
    longest = float(lengths.max(initial=0.0)) or 1.0
    facts.append(float(np.abs(inner - np.diag(lengths)).max(initial=0.0)) / longest)
    facts.append(float(np.abs(Y.mean(axis=0)).max(initial=0.0)) / np.sqrt(longest))
    facts.append(0.0 if signs_are_fixed(Y[:, lengths > 0]) and (np.diff(lengths) <= 1e-9 * longest).all() else np.inf)
    shown = float(model.stress_)
    facts.append(relative(np.asarray(shown**2 * spread if normalised else shown), np.asarray(before), unit))
    if ordinal:
        steps = np.asarray(model.steps_)
        upper = np.triu_indices(n, 1)
        at = np.minimum(np.searchsorted(steps[:, 0] * (1.0 + 1e-9), D[upper]), len(steps) - 1)
        facts.append(relative(steps[at, 1], targets[upper], float(targets.max())))
        facts.append(0.0 if np.isin(steps[:, 0], D[upper]).all() else np.inf)
    fall = (before - after) / unit
    value = max(fall, 0.0) if max(facts) <= 1e-8 and np.isfinite(fall) else np.inf
    return Recheck(value, 1e-11, table.fingerprint)


def _stress(targets: Array, Y: Array) -> float:
    return 0.5 * float(((targets - cdist(Y, Y)) ** 2).sum())


def _disparities(D: Array, Y: Array) -> Array:
    """Return the increasing function of D that is nearest to the distances, of size n(n − 1)/2: adjacent violators."""
    n = len(D)
    upper = np.triu_indices(n, 1)
    given = D[upper]
    shown = cdist(Y, Y)[upper]
    levels: list[list[float]] = []  # mean, weight, number of different dissimilarities
    order = np.argsort(given, kind="stable")
    new = np.flatnonzero(np.diff(given[order]) > 1e-12 * given.max(initial=0.0)) + 1
    for own in np.split(shown[order], new):
        levels.append([float(own.mean()), float(len(own)), 1.0])
        while len(levels) > 1 and levels[-2][0] >= levels[-1][0]:
            mean, weight, count = levels.pop()
            last = levels[-1]
            last[0] = (last[0] * last[1] + mean * weight) / (last[1] + weight)
            last[1] += weight
            last[2] += count
    heights = np.repeat([level[0] for level in levels], [int(level[2]) for level in levels])
    found = np.empty(len(given))
    found[order] = np.repeat(heights, np.diff(np.concatenate([[0], new, [len(given)]])))
    total = float((found**2).sum())
    if total <= 0:
        found = D[upper] if D.any() else np.ones(len(found))
        total = float((found**2).sum())
    out = np.zeros((n, n))
    out[upper] = found * np.sqrt(n * (n - 1) / 2.0 / total)
    return out + out.T
