r"""k-means from small random batches: centres follow the running means of the rows they win.

    J(c) = Σᵢ wᵢ minₖ ‖xᵢ − cₖ‖²

A step draws a batch, gives its rows their nearest centres, and moves every centre to the mean of all rows it has won so
far, in this batch and before: cₖ ← cₖ + (sₖ − nₖcₖ)/(Nₖ + nₖ), with the weight nₖ and the sum sₖ of the rows won now
and the weight Nₖ of those won before. Centres that win almost nothing are put on random rows of the batch. This is
stochastic gradient descent on J with the step 1/Nₖ: a good solution after a few passes over the data, near a local
minimum and not in one. The certificate says how near: by what share J falls when every centre moves to the mean of its
rows, Σₖ Nₖ‖cₖ − x̄ₖ‖²/J over all rows.

Reference: D. Sculley, Web-scale k-means clustering, WWW 2010, algorithm 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from ..core import (
    MAX_ITER,
    TOLERANCE,
    AnyArray,
    Boolean,
    Certificate,
    DataError,
    Number,
    check_parameters,
    fitted,
    never,
    one_thread_blas,
    optional,
    param,
)
from ..data import Table, door, map_reduce
from ..meta.splits import as_generator
from .kmeans import CentreModel
from .lloyd import nearest_centres, rows_of, sums_of_clusters
from .narration import BatchNarrator
from .spaces import Space, float_type, rounding_of_inertia, space_of
from .starts import check_enough_rows, sample_rows

#: What batches may leave to chance: the share by which one step of Lloyd's algorithm may still lower J.
NOISE = 0.05


class MiniBatchKMeans(CentreModel):
    """K clusters around their means, from small random batches: quick, and near a minimum of Σᵢ wᵢ minₖ ‖xᵢ − cₖ‖².

    `KMeans` is exact, and with its bounds often as quick. Memory besides X: O(batch_size·(d + K)). Of files and Dask
    collections, batches are drawn from every 2ᵏ-th row, at most 2¹⁷ of them; labels and inertia are those of all rows.

    Examples
    --------
    >>> from learnable import MiniBatchKMeans
    >>> X = [[1.0, 2.0], [1.0, 4.0], [1.0, 0.0], [10.0, 2.0], [10.0, 4.0], [10.0, 0.0]]
    >>> model = MiniBatchKMeans(n_clusters=2, random_state=0).fit(X)
    >>> model.predict([[0.0, 0.0], [12.0, 3.0]]) == model.labels_[[0, 3]]
    array([ True,  True])
    >>> model.certificate_.kind
    'stationarity'
    """

    _theory = "stochastic-k-means"

    max_iter: int = param(MAX_ITER, "Passes over the data, counted in rows drawn.", default=100)
    batch_size: int = param(Number(low=1, integer=True), "Rows of a batch, drawn with replacement.", default=1024)
    compute_labels: bool = param(
        Boolean(),
        "Whether all rows are labelled at the end, which is one more pass. Without it nothing is certified.",
        default=True,
    )
    tol: float = param(
        TOLERANCE,
        "The fit ends when the smoothed movement of the centres, squared, is at most this share of the mean "
        "variance of the columns; 0 never ends it.",
        default=0.0,
    )
    max_no_improvement: int | None = param(
        optional(Number(low=0, integer=True)),
        "The fit ends after so many batches without a lower smoothed inertia.",
        default=10,
    )
    init_size: int | None = param(
        optional(Number(low=1, integer=True)),
        "Rows that starts are drawn from and compared on; None is 3·batch_size, and at least 3K.",
        default=None,
    )
    reassignment_ratio: float = param(
        Number(low=0.0),
        "A centre that won less than this share of what the most successful one won is put elsewhere.",
        default=0.01,
    )
    labels_: AnyArray = fitted(
        "(n_samples,)",
        "Nearest centre of each row; after `partial_fit`, of the last batch.",
        kind="i",
        optional=True,
    )
    inertia_: float = fitted("float", "J; without labels an estimate from the batches.")
    n_iter_: int = fitted("int", "Passes over the data, counted in rows drawn.")
    n_steps_: int = fitted("int", "Batches.")
    counts_: AnyArray = fitted("(n_clusters,)", "Weight of the rows that each centre has won.")
    certificate_: Certificate = fitted(
        "Certificate",
        "`stationarity`: Σₖ Nₖ‖cₖ − x̄ₖ‖²/J, the relative fall of J when every centre moves to the mean of its rows.",
    )

    _door = staticmethod(door(target="none"))
    _remedy = "raise batch_size or max_no_improvement, or use KMeans"
    _random_restarts = 3

    def _fit(self, table: Table, run: Any) -> Certificate:
        owner = type(self).__name__
        K = self.n_clusters
        if not table.in_memory:
            table.blocks.expect_passes()
        check_enough_rows(owner, table.n_rows, K)
        space = space_of(table.X, table.blocks, table.weight, self.n_jobs, owner)
        X, weight = (space.X, space.weight) if space.X is not None else sample_rows(space.blocks, table.n_rows)
        rng = as_generator(self.random_state)
        with one_thread_blas():
            walk = Walk(self._best_start(space, X, weight, rng, run.should_stop), np.zeros(K))
            self._walk(walk, X, weight, space, rng, run)
        self.n_steps_ = walk.n_steps
        self.n_iter_ = max(1, -(-walk.n_steps * self._batch(table.n_rows) // table.n_rows))
        self.counts_ = walk.counts
        if table.X is not None and table.X.dtype == np.float32:  # float32 rows get float32 centres
            walk.centres = (walk.centres / space.unit).astype(np.float32).astype(np.float64) * space.unit
        self.cluster_centers_ = np.ascontiguousarray(walk.centres / space.unit, dtype=float_type(table.X))
        self._n_features_out = K
        inertia = walk.inertia * float(table.weight_sum)
        certificate = Certificate("none", np.nan, NOISE, n_iter=self.n_iter_)
        if self.compute_labels:
            census = map_reduce(space.blocks, partial(_count, walk.centres), _merge, n_jobs=self.n_jobs)
            self._set_labels(np.concatenate(census.labels), table)
            inertia = census.inertia
            value = _fall(census) / max(inertia, census.rounding, 1e-300)
            certificate = Certificate("stationarity", value, NOISE, n_iter=self.n_iter_)
        with np.errstate(over="ignore"):  # squares of numbers near the end of the floats
            self.inertia_ = float(np.float64(inertia) / space.unit / space.unit)
        return certificate

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take one step with these rows as the batch; the first call draws the start from them.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Rows, in memory; in the first call at least n_clusters.
        y : ignored
            For compatibility.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights; with a frame, the name of a column.

        Returns
        -------
        self
            If something is wrong with the rows, the estimator stays as it was. Nothing is certified.
        """
        owner = type(self).__name__
        check_parameters(owner, self.get_params(deep=False), self._parameters)
        first = not hasattr(self, "cluster_centers_")
        draft = self._draft()
        table = type(self)._door(draft, X, None, sample_weight)
        if not first and table.n_columns != self.n_features_in_:
            raise DataError(
                f"{owner}: X has {table.n_columns} features, but {owner} is expecting {self.n_features_in_} features "
                "as input. Pass the columns of the first call."
            )
        if table.X is None:
            raise DataError(f"{owner}: partial_fit takes rows in memory. Pass them batch by batch, or use fit.")
        values = table.X.data if sp.issparse(table.X) else table.X
        if values.size and not float(max(values.max(), -values.min())) < 1e150:
            raise DataError(f"{owner}: X has numbers whose squares overflow. Divide the columns by their spread.")
        if not first:
            draft.__dict__.update(vars(self))
        rng = as_generator(self.random_state)
        if not first:  # another source of chance for every step
            rng = np.random.default_rng([int(rng.integers(2**31)), self.n_steps_])
        with one_thread_blas():
            if first:
                check_enough_rows(owner, table.n_rows, self.n_clusters)
                space = space_of(table.X, table.blocks, table.weight, self.n_jobs, owner)
                walk = Walk(self._best_start(space, table.X, table.weight, rng), np.zeros(self.n_clusters))
            else:
                walk = Walk(self.cluster_centers_.astype(np.float64), self.counts_, self.n_steps_)
            labels = walk.step(table.X, table.weight, self.reassignment_ratio, rng)
        draft.cluster_centers_ = walk.centres.astype(float_type(table.X))
        draft.counts_ = walk.counts
        draft.n_steps_ = walk.n_steps
        draft.inertia_ = walk.inertia * float(table.weight_sum)
        draft.labels_ = labels
        if table.kept is not None:
            draft.labels_ = np.full(len(table.kept), -1, np.int32)
            draft.labels_[table.kept] = labels
        draft.n_iter_ = getattr(self, "n_iter_", 0) + 1
        draft._n_features_out = self.n_clusters
        draft.certificate_ = Certificate("none", np.nan, NOISE, n_iter=draft.n_iter_)
        self.__dict__.update(draft.__dict__)
        return self

    def _batch(self, n_rows: int) -> int:
        return min(int(self.batch_size), n_rows)

    def _best_start(
        self, space: Space, X: Any, weight: AnyArray | None, rng: np.random.Generator, stop: Callable[[], bool] = never
    ) -> AnyArray:
        """Return the start with the least inertia on some rows drawn for that."""
        n = X.shape[0]
        size = self.init_size or 3 * self._batch(n)
        if size < self.n_clusters:
            if self.init_size is not None:
                warnings.warn(
                    f"{type(self).__name__}: init_size={size} should be larger than n_clusters={self.n_clusters}. "
                    f"Setting it to min(3*n_clusters, n_samples).",
                    RuntimeWarning,
                    stacklevel=2,
                )
            size = 3 * self.n_clusters
        size = min(n, size)
        trial = _take(X, weight, rng.choice(n, size, replace=False) if size < n else np.arange(n))
        starts = [self._start(space, rng, stop, (trial[0], _ones(trial)))]
        for _ in range(self._restarts() - 1):
            if stop():
                break
            starts.append(self._start(space, rng, stop, (trial[0], _ones(trial))))
        if len(starts) == 1:
            return starts[0]
        return min(starts, key=lambda centres: float(_ones(trial) @ nearest_centres(trial[0], centres)[1]))

    def _walk(self, walk: Walk, X: Any, weight: AnyArray | None, space: Space, rng: Any, run: Any) -> None:
        """Take steps until time, passes or patience are over."""
        n = X.shape[0]
        batch = self._batch(n)
        patience = self.max_no_improvement
        best = np.inf
        idle = 0
        smooth = min(1.0, 2.0 * batch / (n + 1))  # weight of the newest batch in averages over about one pass
        movement = np.inf
        inertia = np.inf
        most = max(1, self.max_iter * n // batch)
        narrator = BatchNarrator(self.verbose, space.unit, most)
        for step in range(1, most + 1):
            before = walk.centres
            walk.step(*_take(X, weight, rng.integers(n, size=batch)), self.reassignment_ratio, rng)
            moved = float(((walk.centres - before) ** 2).sum())
            first = not np.isfinite(inertia)
            inertia = walk.inertia if first else inertia + smooth * (walk.inertia - inertia)
            movement = moved if first else movement + smooth * (moved - movement)
            idle, best = (0, inertia) if inertia < best else (idle + 1, best)
            narrator.step(step, walk.inertia, inertia)
            if run.progress(step, inertia):
                break
            if self.tol > 0 and movement <= self.tol * space.variance:
                narrator.end(step, "small centers change")
                break
            if patience is not None and idle >= max(1, patience):
                narrator.end(step, "lack of improvement in inertia")
                break
        walk.inertia = inertia


@dataclass
class Walk:
    """Centres under way."""

    centres: AnyArray  #: (K, d)
    counts: AnyArray  #: (K,) weight of the rows each has won
    n_steps: int = 0
    inertia: float = np.inf  #: of the last batch, per unit of weight, before its step

    def step(self, X: Any, weight: AnyArray | None, ratio: float, rng: np.random.Generator) -> AnyArray:
        """Move the centres by one batch; return the labels of its rows."""
        K = len(self.centres)
        w = _ones((X, weight))
        labels, squares = nearest_centres(X, self.centres)
        won, sums = sums_of_clusters(X, labels, w, self.centres)  # sums less the own centre
        counts = self.counts + won
        rate = 1 / np.where(counts > 0, counts, 1.0)
        self.centres = self.centres + rate[:, None] * sums
        self.counts = counts
        self.n_steps = self.n_steps + 1
        self.inertia = float(w @ squares) / float(w.sum())
        if ratio > 0 and ((counts == 0).any() or self.n_steps % -(-10 * K // X.shape[0]) == 0):
            self._reassign(X, w, ratio, rng)
        return labels

    def _reassign(self, X: Any, w: AnyArray, ratio: float, rng: np.random.Generator) -> None:
        """Put centres that win almost nothing on random rows, and let them count as the least of the others."""
        few = np.flatnonzero(self.counts < ratio * self.counts.max())
        most = X.shape[0] // 2  # a batch cannot tell where more are missing
        few = few[np.argsort(self.counts[few], kind="stable")][:most]
        if not len(few):
            return
        rows = rng.choice(X.shape[0], len(few), replace=False, p=w / w.sum())
        self.centres[few] = rows_of(X, rows)
        others = np.delete(self.counts, few)
        self.counts[few] = others.min() if len(others) else 0.0


class _Census(NamedTuple):
    labels: list[AnyArray]
    counts: AnyArray  #: (K,)
    sums: AnyArray  #: (K, d) less the centre
    inertia: float
    rounding: float  #: what rounding of the centres may add to it


def _count(centres: AnyArray, block: Any) -> _Census:
    """Return labels of a block's rows, and weights and sums of the clusters."""
    labels, squares = nearest_centres(block.X, centres)
    w = _ones((block.X, block.weight))
    counts, sums = sums_of_clusters(block.X, labels, w, centres)
    rounding = rounding_of_inertia(block.X, labels, w, centres)
    return _Census([labels], counts, sums, float(w @ squares), rounding)


def _merge(a: _Census, b: _Census) -> _Census:
    a.labels.extend(b.labels)
    counts = a.counts + b.counts
    sums = a.sums + b.sums
    return _Census(a.labels, counts, sums, a.inertia + b.inertia, a.rounding + b.rounding)


def _fall(census: _Census) -> float:
    """Return Σ Nₖ‖cₖ − x̄ₖ‖²."""
    counts = np.where(census.counts > 0, census.counts, 1.0)
    gaps = census.sums / counts[:, None]
    return float(census.counts @ (gaps * gaps).sum(axis=1))


def _take(X: Any, weight: AnyArray | None, rows: AnyArray) -> tuple[Any, AnyArray | None]:
    some = X[rows] if sp.issparse(X) else np.asarray(X[rows], dtype=np.float64)
    return some, None if weight is None else weight[rows]


def _ones(rows: tuple[Any, AnyArray | None]) -> AnyArray:
    X, weight = rows
    return np.ones(X.shape[0]) if weight is None else weight
