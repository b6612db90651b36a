"""Independent check of stumps: where they cut, what they say, and the classes on both sides of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]

NEAR = 1e-9  # what sums of weights may differ by


def stumps_follow(model: Any, rows: Any, D: Array | None) -> bool:
    """Tell whether the stumps of corrected votes cut between two values, say a class, and know their rows."""
    if model.stumps_ is None:
        return True
    return all(
        _is_placed(rows, stump) and sides_agree(model, rows, D, t, stump) for t, stump in enumerate(model.stumps_)
    )


def _is_placed(rows: Any, stump: Any) -> bool:
    values = np.unique(column_of(rows.X, stump[0]))
    if stump[1] == values[-1]:
        return True
    middle = values[:-1] / 2 + values[1:] / 2
    middle = np.where((middle >= values[:-1]) & (middle < values[1:]), middle, values[:-1])
    return bool((middle == stump[1]).any())


def sides_agree(model: Any, rows: Any, D: Array | None, t: int, stump: Any) -> bool:
    """Tell whether a stump's recorded sides are what D makes of them, and what it says follows from them.

    Of corrected votes D is not known any more: then only the rows, the sum and the classes are compared.
    """
    if model.variant != "real" and not _says_a_class(stump[2], model.n_classes_):
        return False
    members = np.flatnonzero(model.rounds_["removed"] < 0)
    if t not in members and D is not None:
        return True  # removed later: it has no entry
    recorded = model.stump_sides_[int(np.searchsorted(members, t)) if D is not None else t]
    right = column_of(rows.X, stump[0]) > stump[1]
    if not np.array_equal(recorded[:, -1], [np.count_nonzero(~right), np.count_nonzero(right)]):
        return False
    K = model.n_classes_
    if D is None:
        present = np.array([[(rows.y[side] == k).any() for k in range(K)] for side in (~right, right)])
        says = [int(value[0] > 0) if len(value) == 1 else int(value.argmax()) for value in stump[2]]
        sided = [s for s in (0, 1) if recorded[s, -1] > 0]
        follows = all(recorded[s, says[s]] >= recorded[s, :-1].max() - NEAR for s in sided)
        return bool(follows and abs(recorded[:, :-1].sum() - 1) <= NEAR and not recorded[:, :-1][~present].any())
    wanted = np.array([[D[side & (rows.y == k)].sum() for k in range(K)] for side in (~right, right)])
    return bool(np.allclose(recorded[:, :-1], wanted, rtol=0.0, atol=NEAR))


def _says_a_class(value: Any, K: int) -> bool:
    """Tell whether both sides name a class: ±1 of two, else 1 for one class and −1/(K−1) for the others."""
    value = np.asarray(value)
    if K == 2:
        return bool((np.abs(value) == 1.0).all())
    return bool((np.sort(value, axis=1) == np.r_[np.full(K - 1, -1.0 / (K - 1)), 1.0]).all())


def column_of(X: Any, j: int) -> Array:
    """Return a column of a dense or sparse table."""
    return X[:, [j]].toarray().ravel() if sp.issparse(X) else np.asarray(X[:, j], dtype=np.float64)
