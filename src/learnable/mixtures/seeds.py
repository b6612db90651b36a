r"""Where k-means starts: centres drawn by k-means++.

The first centre is drawn at random and every further one with probability proportional to the squared distance to the
nearest centre so far; of 2 + ⌊log K⌋ such draws the one that lowers the sum of these squares most is kept. The expected
objective is then within a factor O(log K) of the best one (D. Arthur and S. Vassilvitskii, k-means++: the advantages of
careful seeding, SODA 2007). Tables beyond memory draw from at most 2¹⁷ rows, every 2ᵏ-th: the same ones whether the
table lies in memory, in files or on Dask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ..core.estimator import never
from ..data.blocks import grid_rows, map_reduce
from ._kernels import lower_squares

Array = NDArray[Any]

#: Rows of a draw up to which SciPy's loop is as quick as ours: a centre from 4,000 rows takes 0.06 ms in both.
_FEW_ROWS = 2**12


def plus_plus(
    X: Any,
    K: int,
    rng: np.random.Generator,
    weight: Array | None = None,
    n_jobs: int | None = None,
    trials: int = 0,
    stop: Callable[[], bool] = never,
) -> tuple[Array, Array]:
    """Draw K centres by k-means++; return them (dense) and their row numbers.

    Parameters
    ----------
    X : (n, d) array or CSR array
        Rows; at least K.
    K : int
        How many centres.
    rng : numpy Generator
        The source of chance.
    weight : (n,) array, optional
        Weights of the rows.
    n_jobs : int or None
        Threads; the result does not depend on it.
    trials : int
        Draws for each centre; 0 means 2 + ⌊log K⌋.
    stop : function
        Asked before each centre; once it says True, the rest are drawn without regard to distances.
    """
    n = X.shape[0]
    trials = trials or 2 + int(np.log(K))
    weight = np.ones(n) if weight is None else weight
    lower = _lower_sparse if sp.issparse(X) else _lower_dense
    X = X if sp.issparse(X) else np.ascontiguousarray(X)
    chosen = np.empty(K, dtype=np.int64)
    chosen[0] = _draw(weight, rng, 1)[0]
    closest, _ = lower(X, chosen[:1], np.full(n, np.inf), weight, n_jobs)
    for k in range(1, K):
        if stop():
            chosen[k:] = rng.choice(np.setdiff1d(np.arange(n), chosen[:k]), K - k, replace=False)
            break
        mass = closest[0] * weight
        if not mass.sum() > 0:  # every row is a centre already: the others are as good as each other
            mass = weight
        candidates = _draw(mass, rng, trials)
        tried, potentials = lower(X, candidates, closest[0], weight, n_jobs)
        best = int(potentials.argmin())
        chosen[k] = candidates[best]
        closest = tried[best : best + 1]
    return rows_of(X, chosen), chosen


def rows_of(X: Any, rows: Array) -> Array:
    """Return some rows as a dense float64 array."""
    taken = X[rows]
    return np.array(taken.toarray() if sp.issparse(taken) else taken, dtype=np.float64)


def _draw(mass: Array, rng: np.random.Generator, size: int) -> Array:
    """Return positions, each with probability proportional to its mass."""
    ends = np.cumsum(mass)
    drawn = np.searchsorted(ends, rng.random(size) * ends[-1], side="right")
    return np.minimum(drawn, np.flatnonzero(mass > 0)[-1])


def _lower_dense(X: Array, candidates: Array, closest: Array, weight: Array, n_jobs: int | None) -> tuple[Array, Array]:
    n = X.shape[0]
    C = np.array(X[candidates], dtype=np.float64)
    if n <= _FEW_ROWS:
        few = np.minimum(cdist(C, X, "sqeuclidean"), closest)
        return few, few @ weight
    step = grid_rows(X.shape[1])
    tried = np.empty((len(C), n))
    parts = [slice(start, min(start + step, n)) for start in range(0, n, step)]

    def work(part: slice) -> Array:
        trials = np.empty((len(C), part.stop - part.start))
        potentials = np.empty(len(C))
        lower_squares(X[part], C, closest[part], weight[part], trials, potentials)
        tried[:, part] = trials
        return potentials

    return tried, map_reduce(parts, work, np.add, n_jobs=n_jobs)


def _lower_sparse(X: Any, candidates: Array, closest: Array, weight: Array, n_jobs: int | None) -> tuple[Array, Array]:
    squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    products = (X[candidates] @ X.T).toarray()
    tried = np.maximum(squares[candidates][:, None] + squares - 2 * products, 0.0)
    tried[np.arange(len(candidates)), candidates] = 0.0
    tried = np.minimum(tried, closest)
    return tried, tried @ weight
