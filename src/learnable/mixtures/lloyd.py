r"""Lloyd's algorithm as the two steps of EM with hard assignments, exactly, without measuring every distance.

    J(c) = Σᵢ wᵢ minₖ ‖xᵢ − cₖ‖²

The E-step gives every row its nearest centre; what it leaves are the weights and the sums of the clusters, which add
over blocks. The M-step puts every centre in the mean of its rows. −J never falls. Rows in memory remember bounds on
their distances (`_kernels.py`): a row whose upper bound on the distance to its own centre lies below its lower bound on
all others keeps its centre, unmeasured. For the rest one matrix product in float32 of the extended rows

    (x, (½ + 2γ)‖x‖², 1)  and  (−c, 1, (½ + 2γ)‖c‖²),       γ = (d + 8)·2⁻²⁴,

is at least ½‖x − c‖², and too large by 4γ(‖x‖² + ‖c‖²) at most (rounding: Higham, Accuracy and Stability of Numerical
Algorithms, section 3.1). Only the centres that may be the nearest after that are measured, in float64 from the
coordinates. So labels are those of plain Lloyd in float64, with ties decided by the number of the centre.

References: S. Lloyd, IEEE Trans. Inf. Theory 28 (1982), 129–137; G. Hamerly, Making k-means even faster, SDM 2010.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from ..core import AnyArray, never
from ..core.jit import kernel
from ..data.blocks import Blocks, Part, grid_rows, map_reduce
from ..neighbors.ranges import scaled_norms
from ..solvers.em import em
from ._kernels import RowState, Tile, assign_rows, lower_squares

_FLOAT32 = 2.0**-24  # relative rounding of one operation in float32
FLOAT64 = 2.0**-53  # and in float64

TILE = 2**16  # scores that are compared while they are in the cache

_LARGEST = 1e140  # above it, sums of squares may overflow

_SMALLEST_SQUARE = 1e-280  # below it, a square may have lost digits

# Distances of one call, and rows of a draw, up to which SciPy's loop is at least as quick as ours: for 10 columns,
# 5 centres and 4,000 rows it takes 0.16 ms instead of 0.41; a draw of a centre from 4,000 rows takes 0.06 ms in both.
_FEW_DISTANCES = 2**18
_FEW_ROWS = 2**12

NOISE = 1e-12  # share of the inertia that its own rounding may be

_FAR_ROWS = 32  # rows that a source beyond memory offers as new centres


class Farthest(NamedTuple):
    """The rows farthest from their centres; two of these add to the farthest of both."""

    squares: AnyArray  #: (m,) descending
    rows: AnyArray  #: (m, d)
    labels: AnyArray  #: (m,)
    weights: AnyArray  #: (m,)

    def __add__(self, other: Any) -> Farthest:  # type: ignore[override]
        squares = np.concatenate([self.squares, other.squares])
        order = np.argsort(-squares, kind="stable")[:_FAR_ROWS]
        return Farthest(*(np.concatenate(pair)[order] for pair in zip(self, other, strict=True)))


class Lloyd:
    """The two steps over any source of blocks, dense or sparse; remembers nothing between passes.

    Sums are those of the rows less an origin. With None it is the centre that a row belongs to: a mean then keeps its
    digits whatever other rows are, and a centre that is the mean already stays where it is.
    """

    def __init__(self, origin: AnyArray | None = None, spherical: bool = False) -> None:
        self.origin = origin
        self.spherical = spherical  # centres have length one

    def expectation(self, block: Any, centres: AnyArray) -> tuple[tuple[Any, ...], float]:
        """Return weights and sums of the clusters and the farthest rows; and −J."""
        labels, squares = nearest_centres(block.X, centres)
        weight = np.ones(len(labels)) if block.weight is None else block.weight
        origins = np.ascontiguousarray(np.broadcast_to(self._origins(centres), centres.shape))
        if sp.issparse(block.X):
            counts, sums = sums_of_clusters(block.X, labels, weight, origins)
        else:
            counts = np.zeros(len(centres))
            sums = np.zeros(centres.shape)
            sum_rows(block.X, labels, weight, origins, counts, sums)
        # A cluster without any row has none in this block either: if all have some here, no far row is asked for.
        far = np.argsort(-squares, kind="stable")[:_FAR_ROWS] if (counts <= 0).any() else np.empty(0, np.int64)
        rows = block.X[far].toarray() if sp.issparse(block.X) else block.X[far]
        return (counts, sums, Farthest(squares[far], rows, labels[far], weight[far])), -float(weight @ squares)

    def maximisation(self, statistics: tuple[Any, ...], centres: AnyArray) -> AnyArray:
        """Return the means of the clusters; a cluster without rows gets the row farthest from its centre."""
        counts, sums, far = statistics
        means = means_of_clusters(counts, sums, far, self._origins(centres), centres)
        return directions_of(means, centres) if self.spherical else means

    def _origins(self, centres: AnyArray) -> AnyArray:
        """Return the origin of each cluster's sums, or the one of all."""
        return centres if self.origin is None else self.origin

    def log_prior(self, centres: AnyArray) -> float:
        """Return zero: there is no prior."""
        return 0.0


def far_rows(block: Any, centres: AnyArray) -> Farthest:
    """Return the rows of a block that are farthest from their centres."""
    labels, squares = nearest_centres(block.X, centres)
    far = np.argsort(-squares, kind="stable")[:_FAR_ROWS]
    weight = np.ones(len(far)) if block.weight is None else block.weight[far]
    return Farthest(squares[far], block.X[far], labels[far], weight)


def cluster(X: AnyArray, K: int, rng: np.random.Generator) -> tuple[AnyArray, AnyArray]:
    """Return K centres and each row's: one climb from k-means++ over a few thousand rows, where other models start."""
    unit = unit_of(largest_entry(X))
    X = X * unit
    variance = float(X.var(axis=0).mean())

    start = plus_plus(X, K, rng)[0]
    found = em(
        Lloyd(),
        Blocks([Part(X)]),
        [start],
        max_iter=300,
        settled=partial(has_settled, tol=1e-4, variance=variance),
        rounding=1e-11 * X.size * variance,
    )
    return found.parameters / unit, nearest_centres(X, found.parameters)[0]


def has_settled(
    before: AnyArray, after: AnyArray, rise: float, objective: float, tol: float, variance: float, blur: float = 0.0
) -> bool:
    """Tell whether a step ends a climb: scikit-learn's rule for the centres, and no fall of J by more than `tol`.

    An inertia below `blur` is not known.
    """
    size = max(-objective, blur)
    if (np.abs(after - before) <= 4 * np.spacing(np.abs(after))).all():  # no more progress: rounding limit
        return abs(rise) <= NOISE * size + blur
    shift = float(((after - before) ** 2).sum())
    return shift <= tol * variance and -1e-10 * size - blur <= rise <= tol * size


def means_of_clusters(
    counts: AnyArray, sums: AnyArray, far: Farthest | None, origin: AnyArray, centres: AnyArray
) -> AnyArray:
    """Return the mean of each cluster; one without rows gets the row farthest from its centre, which leaves its own."""
    counts = counts.copy()
    sums = sums.copy()
    moved: dict[int, AnyArray] = {}
    empty = np.flatnonzero(counts <= 0)
    for number, k in enumerate(empty.tolist() if far is not None else []):
        if far is None or number >= len(far.squares) or not far.squares[number] > 0:
            break  # every row lies on a centre: there is nothing to gain
        a = int(far.labels[number])
        w = far.weights[number]
        if counts[a] <= w * (1 + 1e-9):
            continue
        moved[int(k)] = far.rows[number]
        counts[a] -= w
        sums[a] -= w * (far.rows[number] - np.broadcast_to(origin, centres.shape)[a])
    means = np.where((counts > 0)[:, None], origin + sums / np.where(counts > 0, counts, 1.0)[:, None], centres)
    for at, row in moved.items():
        means[at] = row
    return np.ascontiguousarray(means)


def directions_of(means: AnyArray, centres: AnyArray) -> AnyArray:
    """Return the means at length one: of all such points they have the least Σ‖x − c‖². One at zero stays put."""
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    return np.where(lengths > 1e-12, means / np.where(lengths > 1e-12, lengths, 1.0), centres)


def nearest_centres(X: Any, centres: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return each row's nearest centre, the lowest number among equals, and the squared distance to it."""
    largest = max(largest_entry(X), largest_entry(centres))
    if largest > _LARGEST:
        return measured_centres(X, centres)
    labels, squares = (_nearest_of_sparse if sp.issparse(X) else _nearest_of_dense)(X, centres)
    odd = np.flatnonzero(squares < _SMALLEST_SQUARE)  # equal to the centre, or so close that squares underflow
    if not sp.issparse(X):
        odd = odd[(X[odd] != centres[labels[odd]]).any(axis=1)]
    if len(odd) and largest > 0:
        labels[odd], squares[odd] = measured_centres(X[odd], centres)
    return labels, squares


def measured_centres(X: Any, centres: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return the same from distances that neither overflow nor underflow; all of them are measured."""
    distances = _measured_distances(X, centres)
    labels = distances.argmin(axis=1).astype(np.int32)
    with np.errstate(over="ignore"):
        return labels, distances[np.arange(len(labels)), labels] ** 2


def _nearest_of_sparse(X: Any, centres: AnyArray) -> tuple[AnyArray, AnyArray]:
    squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    lengths = (centres * centres).sum(axis=1)
    gaps = lengths - 2 * (X @ centres.T)
    labels = gaps.argmin(axis=1).astype(np.int32)
    found = squares + gaps[np.arange(X.shape[0]), labels]
    # Where almost all of it cancels, rows are measured from their coordinates.
    doubtful = np.flatnonzero(found < 1e-6 * (squares + lengths[labels]))
    if len(doubtful):
        labels[doubtful], found[doubtful] = measured_centres(X[doubtful], centres)
    return labels, np.maximum(found, 0.0)


def _nearest_of_dense(X: AnyArray, centres: AnyArray) -> tuple[AnyArray, AnyArray]:
    n = X.shape[0]
    K, d = centres.shape
    if n * K <= _FEW_DISTANCES:
        all_squares = cdist(X, centres, "sqeuclidean")
        nearest = all_squares.argmin(axis=1)
        return nearest.astype(np.int32), all_squares[np.arange(n), nearest]
    X = np.ascontiguousarray(X)
    labels = np.full(n, -1, np.int32)
    bounds = np.empty((2, n))
    origin = centres.mean(axis=0)
    state = RowState(labels, bounds[0], bounds[1], np.zeros(K), np.zeros((K, d)))
    none = np.empty(0)
    height = max(32, TILE // K)
    rows = np.arange(n)
    names = np.arange(K, dtype=np.int32)
    for part in (slice(start, min(start + height, n)) for start in range(0, n, height)):
        shifted = X[part] - origin
        squares = np.einsum("ij,ij->i", shifted, shifted)
        unit = unit_of(float(np.sqrt(max(squares.max(), ((centres - origin) ** 2).sum(axis=1).max()))))
        extended, c_squares = extend_centres(centres, origin, unit)
        squares *= unit * unit
        panel = np.empty((len(shifted), d + 2), np.float32)
        panel[:, :d] = shifted * unit
        panel[:, d] = (0.5 + 2 * gamma_of(d)) * squares
        panel[:, d + 1] = 1.0
        margin = 4 * gamma_of(d) * (squares + c_squares.max()) + 2.0**-100
        tile = tile_of(panel @ extended.T, names, margin, unit)
        assign_rows(tile, rows[part], False, X, centres, none, origin, state)
    return labels, bounds[0] ** 2


def distances_to(X: Any, centres: AnyArray) -> AnyArray:
    """Return all distances, measured from the coordinates."""
    rows = X.toarray() if sp.issparse(X) else X
    distances = np.asarray(cdist(rows, centres))
    odd = np.flatnonzero(((distances < _SMALLEST_SQUARE**0.5) | np.isinf(distances)).any(axis=1))
    if len(odd):
        distances[odd] = _measured_distances(rows[odd], centres)
    return distances


def _measured_distances(X: Any, centres: AnyArray) -> AnyArray:
    """Return all distances in the whole range of float64."""
    distances = np.empty((X.shape[0], len(centres)))
    step = max(1, TILE // X.shape[1])
    for start in range(0, X.shape[0], step):
        rows = X[start : start + step]
        rows = rows.toarray() if sp.issparse(rows) else rows
        for k, centre in enumerate(centres):
            with np.errstate(over="ignore"):
                distances[start : start + step, k] = scaled_norms(rows - centre, 2.0)
    return distances


def largest_entry(X: Any) -> float:
    """Return the largest |entry|."""
    values = X.data if sp.issparse(X) else X
    return float(max(values.max(), -values.min())) if values.size else 0.0


def extend_centres(centres: AnyArray, origin: AnyArray, unit: float) -> tuple[AnyArray, AnyArray]:
    """Return the extended centres in float32, and their squared lengths in units of 1/unit."""
    K, d = centres.shape
    shifted = (centres - origin) * unit
    squares = np.einsum("ij,ij->i", shifted, shifted)
    extended = np.empty((K, d + 2), np.float32)
    extended[:, :d] = -shifted
    extended[:, d] = 1.0
    extended[:, d + 1] = (0.5 + 2 * gamma_of(d)) * squares
    return extended, squares


def gamma_of(d: int) -> float:
    """Return the relative rounding error of a float32 product of d + 2 terms."""
    return (d + 8) * _FLOAT32


def unit_of(radius: float) -> float:
    """Return the power of two that brings a length to about one."""
    return float(2.0 ** -np.frexp(radius)[1]) if 0 < radius < np.inf else 1.0


def tile_of(scores: AnyArray, names: AnyArray, margin: AnyArray, unit: float) -> Tile:
    """Return scores of rows and centres with what a comparison of them needs."""
    level = np.empty(1, np.float32)
    return Tile(scores.view(np.int32), names, margin, unit, level, level.view(np.int32))


def nothing(a: None, b: None) -> None:
    """Merge what has no result: blocks that write their part of a shared array."""
    return None


@kernel
def sum_rows(
    X: AnyArray, labels: AnyArray, weight: AnyArray, origins: AnyArray, counts: AnyArray, sums: AnyArray
) -> None:
    """Add up the rows of each cluster, less its origin, (K, d). OUT counts (K,), sums (K, d)."""
    for i in range(labels.size):
        k = labels[i]
        w = weight[i] if weight.size else 1.0
        counts[k] += w
        for j in range(X.shape[1]):
            sums[k, j] += w * (X[i, j] - origins[k, j])


def sums_of_clusters(X: Any, labels: AnyArray, weight: AnyArray, origins: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return weight and sum of each cluster's rows, less its origin."""
    K = len(origins)
    n = len(labels)
    of_cluster = sp.csr_array((weight, (labels, np.arange(n))), shape=(K, n))
    counts = np.bincount(labels, weight, K)
    if sp.issparse(X):
        return counts, (of_cluster @ X).toarray() - counts[:, None] * origins
    return counts, of_cluster @ (X - origins[labels])


# --------------------------------------------------------------------------------------------------------------------
# Where the search starts: k-means++ and random rows.
#
# k-means++ takes the first centre at random and every further one with probability proportional to the squared distance
# to the nearest centre so far; of 2 + ⌊log K⌋ such draws the one that lowers the sum of these squares most is kept. The
# expected objective is then within a factor O(log K) of the best one (D. Arthur and S. Vassilvitskii, k-means++: the
# advantages of careful seeding, SODA 2007). Both draw from at most 2¹⁷ rows, every 2ᵏ-th: the same ones whether the
# table lies in memory, in files or on Dask.


def plus_plus(
    X: Any,
    K: int,
    rng: np.random.Generator,
    weight: AnyArray | None = None,
    n_jobs: int | None = None,
    trials: int = 0,
    stop: Callable[[], bool] = never,
) -> tuple[AnyArray, AnyArray]:
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


def rows_of(X: Any, rows: AnyArray) -> AnyArray:
    """Return some rows as a dense float64 array."""
    taken = X[rows]
    return np.array(taken.toarray() if sp.issparse(taken) else taken, dtype=np.float64)


def _draw(mass: AnyArray, rng: np.random.Generator, size: int) -> AnyArray:
    """Return positions, each with probability proportional to its mass."""
    ends = np.cumsum(mass)
    drawn = np.searchsorted(ends, rng.random(size) * ends[-1], side="right")
    return np.minimum(drawn, np.flatnonzero(mass > 0)[-1])


def _lower_dense(
    X: AnyArray, candidates: AnyArray, closest: AnyArray, weight: AnyArray, n_jobs: int | None
) -> tuple[AnyArray, AnyArray]:
    n = X.shape[0]
    C = np.array(X[candidates], dtype=np.float64)
    if n <= _FEW_ROWS:
        few = np.minimum(cdist(C, X, "sqeuclidean"), closest)
        return few, few @ weight
    step = grid_rows(X.shape[1])
    tried = np.empty((len(C), n))
    parts = [slice(start, min(start + step, n)) for start in range(0, n, step)]

    def work(part: slice) -> AnyArray:
        trials = np.empty((len(C), part.stop - part.start))
        potentials = np.empty(len(C))
        lower_squares(X[part], C, closest[part], weight[part], trials, potentials)
        tried[:, part] = trials
        return potentials

    return tried, map_reduce(parts, work, np.add, n_jobs=n_jobs)


def _lower_sparse(
    X: Any, candidates: AnyArray, closest: AnyArray, weight: AnyArray, n_jobs: int | None
) -> tuple[AnyArray, AnyArray]:
    squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    products = (X[candidates] @ X.T).toarray()
    tried = np.maximum(squares[candidates][:, None] + squares - 2 * products, 0.0)
    tried[np.arange(len(candidates)), candidates] = 0.0
    tried = np.minimum(tried, closest)
    return tried, tried @ weight
