r"""k-medoids: K of the rows themselves, such that the distances to the nearest one are least, for any distance.

    J(M) = Σᵢ wᵢ min over m in M of d(xᵢ, m),     M a set of K rows

The distance may be anything: no means are formed. The search swaps a medoid for another row as long as that lowers J,
each swap as soon as it is found (FasterPAM); it ends where no single swap lowers J any more. That is a stronger local
optimum than that of alternating between assigning rows and choosing the best row of every cluster.

A pass over all candidates costs n² distances, whatever K. They are kept if they fit into a gigabyte and are computed
anew in every pass if not.

References: L. Kaufman and P. Rousseeuw, Finding Groups in Data (1990), chapter 2; E. Schubert and P. Rousseeuw, Fast
and eager k-medoids clustering, Information Systems 101 (2021), 101804, algorithm 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from ..core import (
    MAX_ITER,
    MAX_SECONDS,
    N_JOBS,
    RANDOM_STATE,
    TOLERANCE,
    AnyArray,
    Certificate,
    DataError,
    Estimator,
    Matches,
    Number,
    Options,
    ParameterError,
    fitted,
    is_array,
    law,
    laws,
    param,
    tags,
)
from ..data import Table, door, map_reduce, read_features
from ..meta.splits import as_generator
from ._kernels import Seats, seat_rows, try_candidates, weigh_candidate
from .starts import check_enough_rows

_ALIKE = {"manhattan": "cityblock", "l1": "cityblock", "l2": "euclidean"}
_METRICS = (
    "euclidean", "manhattan", "l1", "l2", "braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine",
    "dice", "hamming", "jaccard", "jensenshannon", "rogerstanimoto", "russellrao", "sokalsneath", "sqeuclidean", "yule",
)  # fmt: skip
_MOST_KEPT = 2**27  # distances that are kept: a gigabyte
_PANEL = 2**21  # distances that are computed at a time


class KMedoids(TransformerMixin, ClusterMixin, ClassNamePrefixFeaturesOutMixin, Estimator):
    """K clusters around rows of the table, for any distance: min over K rows m of Σᵢ wᵢ minₖ d(xᵢ, mₖ).

    Memory besides X: n² float64 up to 11,585 rows, beyond that O(Kn). Time: n² distances in each pass.

    Examples
    --------
    >>> from learnable import KMedoids
    >>> X = [[1.0, 2.0], [1.0, 4.0], [1.0, 0.0], [10.0, 2.0], [10.0, 4.0], [10.0, 0.0]]
    >>> model = KMedoids(n_clusters=2, metric="manhattan", random_state=0).fit(X)
    >>> sorted(model.medoid_indices_.tolist()), model.inertia_
    ([0, 3], 8.0)
    """

    _theory = "k-medoids"

    n_clusters: int = param(Number(low=1, integer=True), "K.", default=8, kw_only=False)
    metric: Any = param(
        Options("precomputed", *_METRICS) | Matches(callable, "a function of two rows"),
        'A distance of `scipy.spatial.distance.cdist`, a function of two rows, or "precomputed": then X '
        "holds the distances between all rows, and `predict` takes those to the rows of the fit.",
        default="euclidean",
    )
    init: Any = param(
        Options("k-medoids++", "random", "build")
        | Matches(lambda v: hasattr(v, "__len__") and not isinstance(v, str), "an array of row numbers"),
        "Where to start: rows drawn with probability proportional to the distance to the nearest medoid so "
        "far; any rows; one after the other the row that lowers J most (n²K steps); or row numbers.",
        default="k-medoids++",
    )
    n_init: int = param(Number(low=1, integer=True), "Restarts, of which the best is kept.", default=1)
    max_iter: int = param(MAX_ITER, "Passes over the candidates of one restart.", default=300)
    tol: float = param(TOLERANCE, "Swaps that lower J by no more than this share of it are not made.", default=1e-10)
    random_state: Any = param(RANDOM_STATE, "Draws the starts.", default=None)
    max_seconds: float | None = param(MAX_SECONDS, "Time after which the best so far is returned.", default=None)
    n_jobs: int | None = param(
        N_JOBS, "Threads that compute distances. The result does not depend on it.", default=None
    )

    medoid_indices_: AnyArray = fitted("(n_clusters,)", "Which rows the medoids are.", kind="i", low=0)
    cluster_centers_: AnyArray = fitted(
        "(n_clusters, n_features)", 'The medoids; not with metric="precomputed".', kind="f8", optional=True
    )
    labels_: AnyArray = fitted("array of shape (n_samples,)", "Nearest medoid of each row.")
    inertia_: float = fitted("float", "J.")
    n_iter_: int = fitted("int", "Passes of the best restart.")
    n_swaps_: int = fitted("int", "Its swaps.")
    certificate_: Certificate = fitted("Certificate", "Relative fall of J by the best single swap.")
    _sizes = ("n_clusters",)

    _door = staticmethod(door(target="none", sparse=False))
    _remedy = "raise max_iter"
    _tags = tags(pairwise=lambda model: isinstance(model.metric, str) and model.metric == "precomputed")

    def _fit(self, table: Table, run: Any) -> Certificate:
        owner = type(self).__name__
        K = self.n_clusters
        if table.X is None:
            raise DataError(f"{owner}: needs the rows in memory. Read the table, or a sample of it.")
        check_enough_rows(owner, table.n_rows, K)
        X = self._rows(table)
        distances = Distances(X, self.metric, self.n_jobs, owner)
        weight = np.ones(table.n_rows) if table.weight is None else table.weight
        rng = as_generator(self.random_state)
        best: Search | None = None
        for _ in range(self.n_init if isinstance(self.init, str) else 1):
            found = search_medoids(
                distances, weight, self._start(distances, weight, table, rng), self.max_iter, self.tol, run
            )
            best = found if best is None or found.inertia < best.inertia else best
            if run.should_stop():
                break
        if best is None:
            raise ParameterError(f"{owner}: n_init must be >= 1.")
        self._set_medoids(best, table)
        return Certificate("ascent", best.fall, self.tol, n_iter=self.n_iter_)

    def _rows(self, table: Table) -> AnyArray:
        owner = type(self).__name__
        X = np.asarray(table.X, dtype=np.float64)
        if self.metric != "precomputed":
            return np.ascontiguousarray(X)
        n = table.n_rows if table.kept is None else len(table.kept)
        if X.shape[1] != n:
            raise DataError(f"{owner}: precomputed distances must be a square matrix; got ({n}, {X.shape[1]}).")
        X = X if table.kept is None else X[:, table.kept]
        if X.min() < 0:
            raise DataError(f"{owner}: distances must not be negative; got {X.min():.3g}.")
        return np.ascontiguousarray(X)

    def _start(self, distances: Distances, weight: AnyArray, table: Table, rng: np.random.Generator) -> AnyArray:
        owner = type(self).__name__
        K = self.n_clusters
        n = len(weight)
        if isinstance(self.init, str):
            if self.init == "random":
                return rng.choice(n, K, replace=False, p=weight / weight.sum())
            return build(distances, weight, K) if self.init == "build" else plus_plus_rows(distances, weight, K, rng)
        rows = np.asarray(self.init)
        given = n if table.kept is None else len(table.kept)
        right = rows.shape == (K,) and rows.dtype.kind in "iu" and len(set(rows.tolist())) == K
        if not right or rows.min() < 0 or rows.max() >= given:
            raise ParameterError(f"{owner}: init must be {K} different row numbers below {given}; got {self.init!r}.")
        if table.kept is None:
            return rows.astype(np.int64)
        if not table.kept[rows].all():
            raise ParameterError(f"{owner}: init must name rows with weight; got {self.init!r}.")
        return (np.cumsum(table.kept) - 1)[rows]

    def _set_medoids(self, found: Search, table: Table) -> None:
        self.medoid_indices_ = found.medoids
        self.labels_ = found.labels
        if table.kept is not None:
            self.medoid_indices_ = np.flatnonzero(table.kept)[found.medoids]
            self.labels_ = np.full(len(table.kept), -1, np.int32)
            self.labels_[table.kept] = found.labels
        if self.metric != "precomputed":
            self.cluster_centers_ = np.array(table.X[found.medoids], dtype=np.float64)
        self.inertia_ = found.inertia
        self.n_iter_ = found.n_iter
        self.n_swaps_ = found.n_swaps
        self._n_features_out = self.n_clusters

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Find the medoids.

        Parameters
        ----------
        X : array or dataframe of shape (n_samples, n_features)
            Rows, or their distances.
        y : ignored
            For compatibility.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights; with a frame, the name of a column.
        """
        super().fit(X, None, sample_weight)
        if (self.labels_ < 0).any():  # rows without weight took no part
            self.labels_ = np.where(self.labels_ < 0, np.asarray(self.predict(X)), self.labels_)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> AnyArray:
        """Fit, and return the nearest medoid of each row."""
        return np.asarray(self.fit(X, y, sample_weight).labels_)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and return the distances of each row to all medoids."""
        return self.fit(X, y, sample_weight).transform(X)

    def predict(self, X: Any) -> AnyArray:
        """Return the number of the nearest medoid of each row."""
        return self._to_medoids(X).argmin(axis=1).astype(np.int32)

    def transform(self, X: Any) -> AnyArray:
        """Return the distances to all medoids, (n_samples, n_clusters)."""
        return self._to_medoids(X)

    def _to_medoids(self, X: Any) -> AnyArray:
        rows = np.asarray(read_features(self, X, sparse=False), dtype=np.float64)
        if self.metric == "precomputed":
            return np.ascontiguousarray(rows[:, self.medoid_indices_])
        return measure(rows, self.cluster_centers_, self.metric, type(self).__name__)

    _laws = laws(
        law(
            "{owner}: medoid_indices_ must lie below the number of rows",
            lambda model: model.metric != "precomputed" or model.medoid_indices_.max() < model.n_features_in_,
        ),
        law(
            "{owner}: cluster_centers_ must be finite float64 numbers, a row for each cluster",
            lambda model: (
                model.metric == "precomputed"
                or is_array(model.cluster_centers_, (model.n_clusters, model.n_features_in_), finite=True)
            ),
        ),
    )


class Distances:
    """The distances between all rows, kept or computed when they are asked for."""

    def __init__(self, X: AnyArray, metric: Any, n_jobs: int | None = None, owner: str = "KMedoids") -> None:
        self.X = X
        self.metric = metric
        self.n_jobs = n_jobs
        self.owner = owner
        self.n_rows = len(X)
        self.height = max(1, _PANEL // self.n_rows)
        self.kept: AnyArray | None = None  # d(xᵢ, xⱼ) in row j: the candidate's
        if isinstance(metric, str) and metric == "precomputed":
            self.kept = np.ascontiguousarray(X.T)
        elif self.n_rows**2 <= _MOST_KEPT:
            self.kept = self._compute(np.arange(self.n_rows))

    def of(self, rows: AnyArray) -> AnyArray:
        """Return the distances of all rows to some, (m, n)."""
        return self._compute(rows) if self.kept is None else self.kept[rows]

    def panels(self) -> Iterator[tuple[int, AnyArray]]:
        """Yield the number of the first of some consecutive candidates and the distances of all rows to them."""
        for start in range(0, self.n_rows, self.height):
            rows = slice(start, min(start + self.height, self.n_rows))
            yield start, self._compute(np.arange(rows.start, rows.stop)) if self.kept is None else self.kept[rows]

    def _compute(self, rows: AnyArray) -> AnyArray:
        step = max(1, self.height // 8)
        parts = [rows[start : start + step] for start in range(0, len(rows), step)]
        out = np.empty((len(rows), self.n_rows))
        places = {int(part[0]): number * step for number, part in enumerate(parts)}

        def work(part: AnyArray) -> None:
            at = places[int(part[0])]
            out[at : at + len(part)] = measure(self.X, self.X[part], self.metric, self.owner).T

        map_reduce(parts, work, lambda a, b: None, n_jobs=1 if callable(self.metric) else self.n_jobs)
        return out


class Search(NamedTuple):
    """Where one search ended."""

    medoids: AnyArray  #: (K,) rows
    labels: AnyArray  #: (n,)
    inertia: float
    fall: float  #: relative fall of J by the best swap that is left; infinite if none was tried
    n_iter: int
    n_swaps: int


def search_medoids(
    distances: Distances, weight: AnyArray, start: AnyArray, max_iter: int, tol: float, run: Any
) -> Search:
    """Swap medoids for other rows, each time J falls by more than tol·J, until no swap does that."""
    n = distances.n_rows
    K = len(start)
    shapes = (np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n), np.empty(n), np.empty(K))
    seats = Seats(start.astype(np.int64), distances.of(start), *shapes)
    taken = np.zeros(n, dtype=bool)
    taken[start] = True
    seat_rows(seats, weight, -1)
    change = np.empty(K)
    out = np.zeros(3)
    n_iter = 0
    while out[0] < n and n_iter < max_iter:
        n_iter += 1
        for first, D in distances.panels():
            threshold = tol * float(weight @ seats.near)
            try_candidates(D, first, seats, weight, taken, threshold, change, out)
            if out[0] >= n or run.should_stop():
                break
        if run.progress(n_iter, float(weight @ seats.near)):
            break
    inertia = float(weight @ seats.near)
    best = float(out[1]) if out[0] >= n else -np.inf
    if out[0] < n and not run.should_stop():  # passes are over: look once more, and swap nothing
        best = 0.0
        for first, D in distances.panels():
            for c in np.flatnonzero(~taken[first : first + len(D)]):
                best = min(best, float(change[weigh_candidate(D[c], seats, weight, change)]))
    fall = abs(best) / inertia if inertia > 0 else 0.0
    return Search(seats.medoids, seats.nearest, inertia, fall, n_iter, int(out[2]))


def plus_plus_rows(distances: Distances, weight: AnyArray, K: int, rng: np.random.Generator) -> AnyArray:
    """Draw K different rows, each with probability proportional to the distance to the nearest one so far."""
    chosen = [int(rng.choice(len(weight), p=weight / weight.sum()))]
    nearest = distances.of(np.array(chosen))[0]
    while len(chosen) < K:
        mass = weight * nearest
        mass[chosen] = 0.0
        if not mass.sum() > 0:  # the rest lies on medoids: any rows will do
            mass = weight.copy()
            mass[chosen] = 0.0
        chosen.append(int(rng.choice(len(weight), p=mass / mass.sum())))
        nearest = np.minimum(nearest, distances.of(np.array(chosen[-1:]))[0])
    return np.array(chosen)


def build(distances: Distances, weight: AnyArray, K: int) -> AnyArray:
    """Return K rows, each the one that lowers J most after those before it (Kaufman and Rousseeuw's BUILD)."""
    nearest = np.full(distances.n_rows, np.inf)
    chosen: list[int] = []
    for _ in range(K):
        values = np.concatenate([np.minimum(D, nearest) @ weight for _, D in distances.panels()])
        values[chosen] = np.inf
        chosen.append(int(values.argmin()))
        nearest = np.minimum(nearest, distances.of(np.array(chosen[-1:]))[0])
    return np.array(chosen)


def measure(rows: AnyArray, others: AnyArray, metric: Any, owner: str) -> AnyArray:
    """Return all distances between two sets of rows; raise DataError where one is no number."""
    name = _ALIKE.get(metric, metric) if isinstance(metric, str) else metric
    found = np.asarray(cdist(rows, others, name), dtype=np.float64)
    if not np.isfinite(found).all():
        i, k = np.argwhere(~np.isfinite(found))[0]
        raise DataError(f"{owner}: the {metric} distance of rows {i} and {k} is {found[i, k]}. Drop or scale the row.")
    return found
