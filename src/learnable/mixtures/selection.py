"""How many components: fit every candidate, compare by an information criterion.

    BIC = p·log n − 2 log L,        AIC = 2p − 2 log L,

p the number of free parameters. BIC recovers the number of components of a mixture as n grows; AIC tends to take more.

Reference: G. Schwarz, Estimating the dimension of a model, Ann. Statist. 6 (1978), 461–464; C. Keribin, Consistent
estimation of the order of mixture models, Sankhyā A 62 (2000), 49–66.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.base import clone

from ..core.errors import ParameterError


class Selection(NamedTuple):
    """The outcome of `select_components`."""

    best: Any  #: the fitted model of least criterion
    models: list[Any]  #: all fitted models
    values: NDArray[np.float64]  #: their criteria
    settings: list[dict[str, Any]]  #: n_components of each, and covariance_type if it has one


def select_components(
    model: Any,
    X: Any,
    n_components: Sequence[int] = (1, 2, 3, 4, 5, 6),
    covariance_types: Sequence[str] | None = None,
    criterion: str = "bic",
) -> Selection:
    """Fit a mixture with every number of components, and take the one of least BIC or AIC.

    Parameters
    ----------
    model : GaussianMixture or MixtureModel
        Its other parameters are kept.
    X : array or dataframe of shape (n_samples, n_features)
        Rows.
    n_components : sequence of int
        The candidates.
    covariance_types : sequence of str, optional
        Kinds of covariances to try; by default the model's own.
    criterion : {"bic", "aic"}
        What is compared.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.mixtures import GaussianMixture, select_components
    >>> X = np.concatenate([np.random.default_rng(0).normal(size=(200, 2)) + m for m in (0.0, 6.0)])
    >>> select_components(GaussianMixture(random_state=0), X, [1, 2, 3]).best.n_components
    2
    """
    if criterion not in ("bic", "aic"):
        raise ParameterError(f"select_components: criterion must be 'bic' or 'aic'; got {criterion!r}.")
    if len(n_components) == 0:
        raise ParameterError("select_components: n_components must name at least one candidate; got none.")
    kinds: list[dict[str, Any]] = [{}]  # a model may have no types of covariances
    if covariance_types is not None or hasattr(model, "covariance_type"):
        kinds = [{"covariance_type": kind} for kind in covariance_types or [model.covariance_type]]
    settings = [{"n_components": int(K), **kind} for kind in kinds for K in n_components]
    models = [clone(model).set_params(**each).fit(X) for each in settings]
    values = np.array([getattr(fitted, criterion)(X) for fitted in models])
    return Selection(models[int(values.argmin())], models, values, settings)


# --------------------------------------------------------------------------------------------------------------------
# Label switching: which component of one run is which of another.
#
# A mixture's likelihood does not change when its components are renumbered, so runs, folds and draws of a sampler
# number them differently. Components are matched by the permutation of least total cost (an assignment problem): the
# squared distance of the centres, or, where responsibilities of the same rows are given, how often they disagree.
#
# Reference: M. Stephens, Dealing with label switching in mixture models, JRSS B 62 (2000), 795–809.


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
    return np.asarray(run, dtype=np.float64)


def _are_probabilities(A: NDArray[np.float64]) -> bool:
    return bool((A >= 0).all() and np.allclose(A.sum(axis=1), 1.0))
