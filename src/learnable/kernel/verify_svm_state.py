r"""What a support vector machine stores beside its multipliers: each array must be what the data and the others define.

Predictions read `support_vectors_`, `gamma_` and `n_support_`, the certificate's value does not: it is a function of β,
b and the data. So these are compared here with the rows, the classes and the parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.errors import VerificationError
from ..data.checking import Rows, class_weights_of

Array = NDArray[Any]

_AT_BOUND = 1e-9  # share of its box, and of the largest one, by which a multiplier at a bound may be off
_GAMMA = 1e-9  # relative difference of two ways to sum the variance


def stored_state_agrees(model: Any, rows: Rows, kept: Array, n_given: int, gamma: float, given: bool) -> bool:
    """Tell whether support vectors, their numbers, their counts and γ are those of the data.

    Parameters
    ----------
    model : SVC, NuSVC, SVR, NuSVR or OneClassSVM
        Fitted.
    rows : Rows
        The rows with weight; `y` holds class codes if the model has classes.
    kept : (n,) array of int
        Their numbers among those given.
    n_given : int
        How many were given.
    gamma : float
        γ as the parameters and the data define it.
    given : bool
        Whether X is a matrix of kernel values, which leaves no support vectors to store.
    """
    codes = rows.y if hasattr(model, "classes_") else np.zeros(len(kept), dtype=np.int64)
    n_classes = len(model.classes_) if hasattr(model, "classes_") else 1
    n_pairs = max(1, n_classes * (n_classes - 1) // 2)
    support, coef = np.asarray(model.support_), dense(model.dual_coef_)
    if support.ndim != 1 or coef.shape != (max(1, n_classes - 1), len(support)):
        return False
    if model.shape_fit_[0] != n_given:
        raise VerificationError(f"verify: the fit had {model.shape_fit_[0]} rows; the data have {n_given}.")
    if np.shape(model.intercept_) != (n_pairs,) or tuple(model.shape_fit_) != (n_given, rows.n_columns):
        return False
    places = np.minimum(np.searchsorted(kept, support), max(0, len(kept) - 1))
    if len(support) and not (kept[places] == support).all():
        return False
    own = codes[places]
    order = np.lexsort((support, own))  # by class, then as the rows stand
    if not (order == np.arange(len(support))).all() or len(np.unique(support)) != len(support):
        return False
    if not np.array_equal(np.asarray(model.n_support_), np.bincount(own, minlength=n_classes)):
        return False
    if not coef.any(axis=0).all():
        return False
    if not np.isclose(model.gamma_, gamma, rtol=_GAMMA, atol=0.0):
        return False
    if hasattr(model, "classes_") and not _class_weights_agree(model, rows):
        return False
    X = next(iter(rows.pieces()))
    expected = np.empty((0, 0)) if given else dense(X[places])
    return np.array_equal(dense(model.support_vectors_), expected)


def offset_agrees(pull: Array, beta: Array, low: Array, high: Array, b: Any, allowance: float) -> bool:
    """Tell whether b is the mean pull of the multipliers inside their box or, without any, the middle of the rest."""
    room = _AT_BOUND * np.minimum(high - low, np.abs(beta).max(initial=0.0))
    below, above = beta < high - room, beta > low + room
    if (below & above).any():
        expected = pull[below & above].mean()
    else:
        top = np.max(pull, where=below, initial=-np.inf)
        bottom = np.min(pull, where=above, initial=np.inf)
        ends = [end for end in (top, bottom) if np.isfinite(end)]
        expected = np.mean(ends) if ends else 0.0
    return bool(abs(b - expected) <= allowance)


def dense(X: Any) -> Array:
    """Return a dense array of the same numbers."""
    return np.asarray(X.toarray() if sp.issparse(X) else X)


def _class_weights_agree(model: Any, rows: Rows) -> bool:
    found = np.asarray(model.class_weight_)
    expected = class_weights_of(model.class_weight, model.classes_, rows)
    return found.shape == expected.shape and np.allclose(found, expected, rtol=1e-9, atol=0.0)
