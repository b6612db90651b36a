r"""Label switching: which component of one run is which of another.

A mixture's likelihood does not change when its components are renumbered, so runs, folds and draws of a sampler number
them differently. Components are matched by the permutation of least total cost (an assignment problem): the squared
distance of the centres, or, where responsibilities of the same rows are given, how often they disagree.

Reference: M. Stephens, Dealing with label switching in mixture models, JRSS B 62 (2000), 795–809.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from ..core.errors import ParameterError


def align_components(reference: Any, other: Any) -> NDArray[np.intp]:
    """Return the permutation of the components of `other` that matches those of `reference` best.

    Parameters
    ----------
    reference, other : fitted mixtures or k-means, arrays of centres (K, d), or arrays of responsibilities
        Two runs. Models are compared by their centres. Two arrays of the same shape (n, K) whose rows are probabilities
        are compared row by row.

    Returns
    -------
    order : array of shape (K,)
        Component `order[k]` of `other` is component k of `reference`.

    Examples
    --------
    >>> from learnable.mixtures import align_components
    >>> align_components([[0.0, 0.0], [5.0, 5.0], [9.0, 0.0]], [[9.1, 0.0], [0.2, 0.0], [5.0, 4.9]])
    array([1, 2, 0])
    """
    A = _centres_of(reference)
    B = _centres_of(other)
    if A.shape != B.shape or A.ndim != 2:
        raise ParameterError(
            f"align_components: both runs must have one shape (K, d) or (n, K); got {A.shape}, {B.shape}."
        )
    if _are_probabilities(A) and _are_probabilities(B) and A.shape[0] > A.shape[1]:
        cost = -(A.T @ B)
    else:
        cost = cdist(A, B, "sqeuclidean")
    return np.asarray(linear_sum_assignment(cost)[1])


def _centres_of(run: Any) -> NDArray[np.float64]:
    for name in ("means_", "cluster_centers_"):
        if hasattr(run, name):
            return np.asarray(getattr(run, name), dtype=np.float64)
    return _as_array(run)


def _as_array(values: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64)


def _are_probabilities(A: NDArray[np.float64]) -> bool:
    return bool((A >= 0).all() and np.allclose(A.sum(axis=1), 1.0))
