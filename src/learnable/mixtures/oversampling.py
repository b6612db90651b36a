r"""k-means‖: starts for k-means from all rows, in a few passes instead of one per centre.

k-means++ draws one centre after the other, each with probability proportional to the squared distance D² to the nearest
centre so far: K passes over the rows. k-means‖ draws ℓ = 2K rows at once in each of R = 5 passes, gives every one of
these 1 + Rℓ candidates the weight of the rows nearest to it, and draws the K centres among them by k-means++.

Rows are drawn here as the ℓ smallest keys −log(u)/(w·D²), with u from a hash of the number of the row: a sample
without replacement whose chances are proportional to w·D². The key of a row depends on nothing but the row, its number
and the candidates, and the smallest of two runs of rows are those of their smallest. So the candidates are the same, to
the bit, in memory, in files and on Dask, for any blocks, partitions and workers, and no sum over all rows is needed to
draw them.

References: B. Bahmani, B. Moseley, A. Vattani, R. Kumar and S. Vassilvitskii, Scalable k-means++, PVLDB 5 (2012),
622–633; P. Efraimidis and P. Spirakis, Weighted random sampling with a reservoir, Inf. Process. Lett. 97 (2006),
181–185.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from ..core import AnyArray
from ..data.blocks import map_reduce, odd_numbers
from .lloyd import plus_plus

_ROUNDS = 5  # the authors find no gain beyond it
_OVERSAMPLING = 2  # ℓ/K, likewise


class Drawn(NamedTuple):
    """The rows with the smallest keys so far."""

    keys: AnyArray  #: (m,) ascending
    numbers: AnyArray  #: (m,) of the rows
    rows: AnyArray  #: (m, d)


def oversampled_start(blocks: Any, K: int, rng: np.random.Generator, n_jobs: int | None = None) -> AnyArray:
    """Return K centres, drawn by k-means‖ from all rows of a source of blocks.

    Parameters
    ----------
    blocks : source of blocks
        Numbered rows; at least K.
    K : int
        How many centres.
    rng : numpy Generator
        The source of chance.
    n_jobs : int or None
        Threads; the result does not depend on it.
    """
    candidates = np.empty((0, blocks.n_columns))
    for round_ in range(_ROUNDS + 1):
        count = _OVERSAMPLING * K if round_ else 1
        seed = int(rng.integers(2**62))
        draw = partial(_draw_from_block, candidates, seed, count)
        found = map_reduce(blocks, draw, partial(_smallest, count), n_jobs=n_jobs)
        candidates = np.concatenate([candidates, found.rows])
        if not len(found.rows) and len(candidates) >= K:  # every row is a candidate already
            break
    if len(candidates) <= K:  # fewer distinct rows than centres: some centres are the same
        return np.ascontiguousarray(np.resize(candidates, (K, candidates.shape[1])))
    mass = map_reduce(blocks, partial(_mass_of_block, candidates), np.add, n_jobs=n_jobs)
    # Sums of weights may differ in their last digits with the order of the rows; draws must not.
    return plus_plus(candidates, K, rng, mass.astype(np.float32).astype(np.float64))[0]


def _draw_from_block(candidates: AnyArray, seed: int, count: int, block: Any) -> Drawn:
    """Return the rows of a block with the smallest keys."""
    n = block.X.shape[0]
    numbers = np.arange(block.start, block.start + n)
    mass = np.ones(n) if block.weight is None else block.weight
    if len(candidates):
        mass = mass * _squares(block.X, candidates).min(axis=1)
    uniform = ((odd_numbers(numbers ^ seed) >> np.uint64(11)) + 0.5) * 2.0**-53
    with np.errstate(divide="ignore"):
        keys = -np.log(uniform) / mass
    order = np.lexsort((numbers, keys))[:count]
    order = order[np.isfinite(keys[order])]
    rows = block.X[order]
    return Drawn(keys[order], numbers[order], np.array(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64))


def _smallest(count: int, a: Drawn, b: Drawn) -> Drawn:
    both = [np.concatenate(pair) for pair in zip(a, b, strict=True)]
    order = np.lexsort((both[1], both[0]))[:count]
    return Drawn(*(column[order] for column in both))


def _mass_of_block(candidates: AnyArray, block: Any) -> AnyArray:
    """Return the weight of the rows nearest to each candidate."""
    nearest = _squares(block.X, candidates).argmin(axis=1)
    return np.asarray(np.bincount(nearest, block.weight, len(candidates)), dtype=np.float64)


def _squares(X: Any, candidates: AnyArray) -> AnyArray:
    """Return squared distances, each computed from its row and its candidate alone."""
    return np.asarray(cdist(X.toarray() if sp.issparse(X) else X, candidates, "sqeuclidean"))
