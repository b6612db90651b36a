"""Training-set bounds of nearest neighbours: by leave-one-out, and by the rows on the boundary of the classes."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from scipy.spatial import Delaunay, QhullError

from ...theory import bounds
from ...theory.concentration import Check
from .linear import rows_of
from .record import Array, Draft, Evidence

#: Triangulations grow fast with the dimension: 20,000 rows take 0.1 s in the plane, 2 s in space.
MOST_VORONOI_COLUMNS = 3
MOST_VORONOI_ROWS = 20_000


def neighbours(evidence: Evidence, delta: float) -> Draft | str:
    """Leave-one-out errors of nearest neighbours, by the variance of their distance from the risk."""
    model = evidence.model
    if evidence.classes is None or np.asarray(evidence.codes).min() < 0:
        return "leave-one-out: for known classes only"
    if not isinstance(model.weights, str):
        return "leave-one-out: weights are a function, which may look at all rows"
    k = int(model.n_neighbors)
    n = evidence.n
    if n <= k + 1:
        return "leave-one-out: too few rows"
    distance, index = model.kneighbors()  # of the fitted rows, each without itself
    votes = np.zeros((n, len(evidence.classes)))
    weight = np.ones_like(distance)
    if model.weights == "distance":
        exact = distance == 0.0
        with np.errstate(divide="ignore"):
            weight = np.where(exact.any(axis=1, keepdims=True), exact.astype(np.float64), 1.0 / distance)
    codes = np.asarray(evidence.codes)
    for column in range(index.shape[1]):
        np.add.at(votes, (np.arange(n), codes[index[:, column]]), weight[:, column])
    error = float((votes.argmax(axis=1) != codes).mean())

    def at(m: int) -> float:
        return bounds.neighbours_bound(error, m, k, delta)

    statement = "R ≤ R̂_loo + √(s/δ), by E(R̂_loo − R)² ≤ s = 1/n + 4k/(n − 1) + 4k/n and Markov's inequality"
    source = "W. Rogers and T. Wagner, 1978; L. Devroye, L. Györfi and G. Lugosi, 1996, theorem 24.2"
    checks = (Check("k was fixed beforehand", None, f"k = {k}; a k chosen on these rows needs choices= their number"),)
    return Draft(
        "leave-one-out", at(n), error, delta, statement, source, {"k": k, "leave-one-out error": error}, checks, at
    )


def neighbours_compression(evidence: Evidence, delta: float) -> Draft | str:
    """Sample compression: the nearest neighbour's rule is a function of the rows on its boundary alone.

    Rows whose Voronoi cells touch only cells of their own class can go without a change of any prediction (Voronoi
    editing). The cells are those of the Delaunay triangulation, which is quick to find for few columns only.
    """
    model = evidence.model
    if evidence.classes is None or evidence.losses.any():
        return "compression: equal rows have different labels, so that no rows define the rule"
    if model.effective_metric_ != "euclidean":
        return "compression: for Euclidean distances only"
    n = evidence.n
    if n > MOST_VORONOI_ROWS:
        return f"compression: for at most {MOST_VORONOI_ROWS} rows"
    kept = boundary_rows(np.asarray(rows_of(evidence), dtype=np.float64), np.asarray(evidence.codes))
    if isinstance(kept, str):
        return kept
    k = len(kept)
    if k >= n:
        return "compression: every row is on the boundary"

    def at(m: int) -> float:
        return bounds.compression_bound(m, min(round(k / n * m), m - 1), 0, delta)

    statement = "P(Bin(n − k, R) = 0) ≤ δ/(n C(n, k)): k rows on the boundary of the classes define the rule"
    inputs = {"rows on the boundary": k, "errors on the others": 0}
    source = "G. Toussaint, B. Bhattacharya and R. Poulsen, 1984 (Voronoi editing); S. Floyd and M. Warmuth, 1995"
    check = Check("ties between equally near rows have probability zero", None, "columns are continuous")
    return Draft("sample compression", at(n), 0.0, delta, statement, source, inputs, (check,), at)


def boundary_rows(X: Array, codes: Any) -> Any:
    """Return the rows whose Voronoi cell touches that of another class; or why they are not found."""
    _, first = np.unique(X, axis=0, return_index=True)  # copies change nothing: their labels are the same
    points = X[first]
    labels = codes[first]
    if len(np.unique(labels)) < 2:
        return first[:1]
    if X.shape[1] == 1:
        ends = np.flatnonzero(labels[1:] != labels[:-1])  # np.unique has sorted them
        return first[np.union1d(ends, ends + 1)]
    try:
        corners = Delaunay(points).simplices
    except QhullError:
        return "compression: the rows lie in fewer dimensions than they have columns"
    touching = [corners[labels[corners[:, i]] != labels[corners[:, j]]][:, [i, j]].ravel() for i, j in _pairs(corners)]
    return first[np.unique(np.concatenate(touching))]


def _pairs(corners: Any) -> Any:
    return combinations(range(corners.shape[1]), 2)
