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

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ..core.estimator import never
from ..data.blocks import Blocks, Part, grid_rows, map_reduce
from ..neighbors.ranges import scaled_norms
from ..solvers.em import em
from ._kernels import Motion, RowState, Tile, assign_rows, lower_squares, screen_rows, squares_to_own, sum_rows
from ._scratch import Scratch

Array = NDArray[Any]

_FLOAT32 = 2.0**-24
_FLOAT64 = 2.0**-53
_TILE = 2**16  # scores that are compared while they are in the cache
_TILE_ROWS = 2**12

_SAMPLED_ROWS = 2**12  # rows that decide which centres are measured apart

_OVERHEAD = 40  # what a row costs besides its scores, in scores

_LARGEST = 1e140  # above it, sums of squares may overflow

_SMALLEST_SQUARE = 1e-280  # below it, a square may have lost digits

# Distances of one call, and rows of a draw, up to which SciPy's loop is at least as quick as ours: for 10 columns,
# 5 centres and 4,000 rows it takes 0.16 ms instead of 0.41; a draw of a centre from 4,000 rows takes 0.06 ms in both.
_FEW_DISTANCES = 2**18
_FEW_ROWS = 2**12

NOISE = 1e-12  # share of the inertia that its own rounding may be

FAR_ROWS = 32  # rows that a source beyond memory offers as new centres


class Farthest(NamedTuple):
    """The rows farthest from their centres; two of these add to the farthest of both."""

    squares: Array  #: (m,) descending
    rows: Array  #: (m, d)
    labels: Array  #: (m,)
    weights: Array  #: (m,)

    def __add__(self, other: Any) -> Farthest:  # type: ignore[override]
        squares = np.concatenate([self.squares, other.squares])
        order = np.argsort(-squares, kind="stable")[:FAR_ROWS]
        return Farthest(*(np.concatenate(pair)[order] for pair in zip(self, other, strict=True)))


class Lloyd:
    """The two steps over any source of blocks, dense or sparse; remembers nothing between passes.

    Sums are those of the rows less an origin. With None it is the centre that a row belongs to: a mean then keeps its
    digits whatever other rows are, and a centre that is the mean already stays where it is.
    """

    def __init__(self, origin: Array | None = None, spherical: bool = False) -> None:
        self.origin = origin
        self.spherical = spherical  # centres have length one

    def expectation(self, block: Any, centres: Array) -> tuple[tuple[Any, ...], float]:
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
        far = np.argsort(-squares, kind="stable")[:FAR_ROWS] if (counts <= 0).any() else np.empty(0, np.int64)
        rows = block.X[far].toarray() if sp.issparse(block.X) else block.X[far]
        return (counts, sums, Farthest(squares[far], rows, labels[far], weight[far])), -float(weight @ squares)

    def maximisation(self, statistics: tuple[Any, ...], centres: Array) -> Array:
        """Return the means of the clusters; a cluster without rows gets the row farthest from its centre."""
        counts, sums, far = statistics
        means = means_of_clusters(counts, sums, far, self._origins(centres), centres)
        return directions_of(means, centres) if self.spherical else means

    def _origins(self, centres: Array) -> Array:
        """Return the origin of each cluster's sums, or the one of all."""
        return centres if self.origin is None else self.origin

    def log_prior(self, centres: Array) -> float:
        """Return zero: there is no prior."""
        return 0.0


class BoundedLloyd(Lloyd):
    """The same over dense rows in memory, with bounds that spare most distances.

    Memory besides X: (d + 2) float32 and 20 bytes for a row, and a K × d array for a block.
    """

    def __init__(
        self,
        X: Array,
        weight: Array | None,
        origin: Array,
        K: int,
        n_jobs: int | None = None,
        spherical: bool = False,
    ) -> None:
        super().__init__(origin, spherical)
        self.origin: Array = origin
        self.X = np.ascontiguousarray(X)
        self.n_jobs = n_jobs
        self.weight = np.empty(0) if weight is None else weight
        n, d = X.shape
        self.step = grid_rows(d)
        self.parts = [slice(start, min(start + self.step, n)) for start in range(0, n, self.step)]
        self.panel = np.empty((n, d + 2), np.float32)
        self.squares = np.empty(n)
        self.scatter = np.zeros(len(self.parts))
        self.labels = np.empty(n, np.int32)
        self.bounds = np.empty((2, n))
        self.counts = np.zeros((len(self.parts), K))
        self.sums = np.zeros((len(self.parts), K, d))
        self.scratch = Scratch()
        self._build_panel()
        self.passed: Array | None = None  # the centres of the last pass, which the bounds are about

    def restart(self, centres: Array) -> None:
        """Forget everything about labels and bounds, and begin at these centres."""
        self.labels[:] = -1
        self.counts[:] = 0.0
        self.sums[:] = 0.0
        self.passed = None
        self._prepare(centres, np.zeros(len(centres)))

    def move_to(self, centres: Array) -> None:
        """Let the next pass be at these centres; bounds are kept."""
        moved = np.zeros(centres.shape) if self.passed is None else centres - self.passed
        self._prepare(centres, np.sqrt((moved * moved).sum(axis=1)))

    def expectation(self, part: Any, centres: Array) -> tuple[tuple[Any, ...], float]:
        """Return weights and sums of the clusters of some rows, and −J."""
        number = part.start // self.step
        X = self.X[part]
        self.passed = centres
        weight = self.weight[part] if self.weight.size else self.weight
        state = RowState(
            self.labels[part], self.bounds[0, part], self.bounds[1, part], self.counts[number], self.sums[number]
        )
        rows = self.scratch("rows", (2, len(X)), np.int64)
        count = np.empty(2, np.int64)
        screen_rows(X, centres, state, self.motion, rows, count)
        panel = self.panel[part]
        squares = self.squares[part]
        for which, names in enumerate((self.everyone, self.movers)):
            doubtful = rows[which, : count[which]]
            extended = self.extended if which == 0 else self.extended[names]
            for some in _tiles(doubtful, len(names)):
                if len(doubtful) < len(X):
                    mine = self.scratch("panel", (len(some), panel.shape[1]), np.float32)
                    np.take(panel, some, axis=0, out=mine, mode="clip")
                else:
                    mine = panel[some[0] : some[-1] + 1]
                scores = np.matmul(mine, extended.T, out=self.scratch("scores", (len(some), len(names)), np.float32))
                margin = self.margin_of * (squares[some] + self.longest) + 2.0**-100
                tile = _tile(scores, names, margin, self.unit)
                assign_rows(tile, some, which == 1, X, centres, weight, self.origin, state)
        shifted = centres - self.origin
        counts = state.counts.copy()
        sums = state.sums.copy()
        inertia = self.scatter[number] - 2 * np.vdot(shifted, sums) + counts @ (shifted * shifted).sum(axis=1)
        return (counts, sums), -float(inertia)

    def maximisation(self, statistics: tuple[Any, ...], centres: Array) -> Array:
        """Return the means of the clusters, and prepare the next pass."""
        counts, sums = statistics
        far = self._farthest(centres, int((counts <= 0).sum())) if (counts <= 0).any() else None
        stepped = super().maximisation((counts, sums, far), centres)
        self.move_to(stepped)
        return stepped

    def finish(self, centres: Array) -> tuple[Array, float]:
        """Return labels and inertia at these centres, measured."""
        self.move_to(centres)
        map_reduce(self.parts, lambda part: self.expectation(part, centres) and None, nothing, n_jobs=self.n_jobs)
        squares = self._squares(centres)
        return self.labels, float(squares @ self.weight if self.weight.size else squares.sum())

    def _squares(self, centres: Array) -> Array:
        squares = np.empty(len(self.X))
        for part in self.parts:
            squares_to_own(self.X[part], centres, self.labels[part], squares[part])
        return squares

    def _farthest(self, centres: Array, n_empty: int) -> Farthest:
        squares = self._squares(centres)
        far = np.argsort(-squares, kind="stable")[:n_empty]
        weight = self.weight[far] if self.weight.size else np.ones(len(far))
        return Farthest(squares[far], self.X[far].astype(np.float64), self.labels[far], weight)

    def _build_panel(self) -> None:
        d = self.X.shape[1]

        def longest_of(part: slice) -> float:
            rows = self.X[part] - self.origin
            np.einsum("ij,ij->i", rows, rows, out=self.squares[part])
            weighted = self.squares[part] * self.weight[part] if self.weight.size else self.squares[part]
            self.scatter[part.start // self.step] = weighted.sum()
            return float(self.squares[part].max())

        longest = map_reduce(self.parts, longest_of, max, n_jobs=self.n_jobs)
        self.radius = float(np.sqrt(longest))
        self.unit = unit_of(self.radius)
        self.squares *= self.unit * self.unit

        def fill(part: slice) -> None:
            self.panel[part, :d] = (self.X[part] - self.origin) * self.unit
            self.panel[part, d] = (0.5 + 2 * gamma_of(d)) * self.squares[part]
            self.panel[part, d + 1] = 1.0

        map_reduce(self.parts, fill, nothing, n_jobs=self.n_jobs)

    def _prepare(self, centres: Array, move: Array) -> None:
        """Compute what a pass needs to know of the centres."""
        K, d = centres.shape
        self.extended, squares = extend_centres(centres, self.origin, self.unit)
        self.longest = float(squares.max())
        self.margin_of = 4 * gamma_of(d)
        reach = self.radius + float(np.sqrt(squares.max())) / self.unit
        slack = (1e-12 + 8 * (d + 8) * _FLOAT64) * reach
        order = np.argsort(-move, kind="stable")
        mover = int(order[0])
        second = float(move[order[1]]) if K > 1 else 0.0
        apart = self._count_movers(move[order])
        self.everyone = np.arange(K, dtype=np.int32)
        self.movers = np.sort(order[:apart]).astype(np.int32)
        shifted = (centres - self.origin) * self.unit
        gaps = squares[:, None] + squares - 2 * (shifted @ shifted.T) - 64 * d * _FLOAT64 * self.longest
        np.fill_diagonal(gaps, np.inf)
        half_gap = 0.5 * np.sqrt(np.maximum(gaps.min(axis=1), 0.0)) / self.unit
        self.motion = Motion(move, float(move[mover]), mover, second, float(move[order[apart]]), half_gap, slack)

    def _count_movers(self, moves: Array) -> int:
        """Return how many of the centres that moved most to measure apart, from what some rows know of the others.

        A row whose bounds are further apart than the most of the moves is not measured. With the p longest moves taken
        out, it is measured against p centres if its bounds are further apart than the rest, and against all if not.
        """
        K = len(moves)
        if self.passed is None or K < 8:
            return 0
        rows = slice(None, None, max(1, len(self.X) // _SAMPLED_ROWS))
        apart = np.sort(self.bounds[1, rows] - self.bounds[0, rows])
        counts = np.array([0, *(2**p for p in range(20) if 2**p <= K // 2)])
        doubtful = np.searchsorted(apart, [moves[0]])[0]
        beaten = np.searchsorted(apart, moves[counts])
        costs = beaten * (K + _OVERHEAD) + (doubtful - beaten) * (counts + _OVERHEAD)
        return int(counts[costs.argmin()])


def cluster(X: Array, K: int, rng: np.random.Generator) -> tuple[Array, Array]:
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
    before: Array, after: Array, rise: float, objective: float, tol: float, variance: float, blur: float = 0.0
) -> bool:
    """Tell whether a step ends a climb: scikit-learn's rule for the centres, and no fall of J by more than `tol`.

    An inertia below `blur` is not known.
    """
    size = max(-objective, blur)
    if (np.abs(after - before) <= 4 * np.spacing(np.abs(after))).all():  # no more progress: rounding limit
        return abs(rise) <= NOISE * size + blur
    shift = float(((after - before) ** 2).sum())
    return shift <= tol * variance and -1e-10 * size - blur <= rise <= tol * size


def means_of_clusters(counts: Array, sums: Array, far: Farthest | None, origin: Array, centres: Array) -> Array:
    """Return the mean of each cluster; one without rows gets the row farthest from its centre, which leaves its own."""
    counts = counts.copy()
    sums = sums.copy()
    moved: dict[int, Array] = {}
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


def directions_of(means: Array, centres: Array) -> Array:
    """Return the means at length one: of all such points they have the least Σ‖x − c‖². One at zero stays put."""
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    return np.where(lengths > 1e-12, means / np.where(lengths > 1e-12, lengths, 1.0), centres)


def nearest_centres(X: Any, centres: Array) -> tuple[Array, Array]:
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


def measured_centres(X: Any, centres: Array) -> tuple[Array, Array]:
    """Return the same from distances that neither overflow nor underflow; all of them are measured."""
    distances = _measured_distances(X, centres)
    labels = distances.argmin(axis=1).astype(np.int32)
    with np.errstate(over="ignore"):
        return labels, distances[np.arange(len(labels)), labels] ** 2


def _nearest_of_sparse(X: Any, centres: Array) -> tuple[Array, Array]:
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


def _nearest_of_dense(X: Array, centres: Array) -> tuple[Array, Array]:
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
    height = max(32, _TILE // K)
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
        tile = _tile(panel @ extended.T, names, margin, unit)
        assign_rows(tile, rows[part], False, X, centres, none, origin, state)
    return labels, bounds[0] ** 2


def distances_to(X: Any, centres: Array) -> Array:
    """Return all distances, measured from the coordinates."""
    rows = X.toarray() if sp.issparse(X) else X
    distances = np.asarray(cdist(rows, centres))
    odd = np.flatnonzero(((distances < _SMALLEST_SQUARE**0.5) | np.isinf(distances)).any(axis=1))
    if len(odd):
        distances[odd] = _measured_distances(rows[odd], centres)
    return distances


def _measured_distances(X: Any, centres: Array) -> Array:
    """Return all distances in the whole range of float64."""
    distances = np.empty((X.shape[0], len(centres)))
    step = max(1, _TILE // X.shape[1])
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


def extend_centres(centres: Array, origin: Array, unit: float) -> tuple[Array, Array]:
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


def _tile(scores: Array, names: Array, margin: Array, unit: float) -> Tile:
    level = np.empty(1, np.float32)
    return Tile(scores.view(np.int32), names, margin, unit, level, level.view(np.int32))


def _tiles(rows: Array, width: int) -> Iterator[Array]:
    """Yield some rows at a time, so many that their scores stay in the cache."""
    height = min(_TILE_ROWS, max(32, _TILE // max(1, width)))
    for start in range(0, len(rows), height):
        yield rows[start : start + height]


def nothing(a: None, b: None) -> None:
    """Merge what has no result: blocks that write their part of a shared array."""
    return None


def sums_of_clusters(X: Any, labels: Array, weight: Array, origins: Array) -> tuple[Array, Array]:
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


def random_rows(X: Any, K: int, rng: np.random.Generator, weight: Array | None = None) -> tuple[Array, Array]:
    """Draw K different rows, with probability proportional to their weights; return them and their numbers."""
    n = X.shape[0]
    share = None if weight is None else weight / weight.sum()
    chosen = rng.choice(n, size=K, replace=False, p=share)
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
