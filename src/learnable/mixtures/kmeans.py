r"""k-means: K centres that minimise the squared distances of the rows to the nearest one.

    J(c) = Σᵢ wᵢ minₖ ‖xᵢ − cₖ‖²

Lloyd's algorithm alternates between giving every row its nearest centre and putting every centre in the mean of its
rows; neither step can raise J, and it ends in a local minimum (`lloyd.py`).

Two other distances become the Euclidean one after a change of coordinates: Mahalanobis' (x − c)ᵀS⁻¹(x − c), with the
covariance S of the data, by whitening; and 1 − cos(x, c) = ½‖x/‖x‖ − c‖² for centres of length one, by normalising
rows and centres (spherical k-means).

Reference: S. Lloyd, Least squares quantization in PCM, IEEE Trans. Inf. Theory 28 (1982), 129–137.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning

from ..core import (
    FLOATS,
    MAX_ITER,
    MAX_SECONDS,
    N_JOBS,
    RANDOM_STATE,
    TOLERANCE,
    AnyArray,
    Boolean,
    Certificate,
    DataError,
    Estimator,
    LostRowsError,
    Matches,
    Number,
    Options,
    ParameterError,
    fitted,
    law,
    laws,
    param,
    tags,
)
from ..data import Blocks, Part, Table, door, map_reduce, read_features
from ..data.sources import rowwise
from ..meta.splits import as_generator
from ..solvers.em import EMResult, em
from .bounded import BoundedLloyd
from .lloyd import (
    NOISE,
    Lloyd,
    distances_to,
    has_settled,
    nearest_centres,
    nothing,
    plus_plus,
)
from .lloyd_parts import PartLloyd
from .narration import VERBOSE, LloydNarrator
from .oversampling import oversampled_start
from .spaces import Space, directions_of_rows, rounding_of_inertia, space_of, whitening_of
from .starts import check_enough_rows, random_rows, sample_rows

# What models with centres share: the nearest centre of a row, distances to all of them, and where a search starts.

#: What `init` may be.
INIT = Options("k-means++", "k-means||", "random") | Matches(
    lambda v: callable(v) or (hasattr(v, "__len__") and not isinstance(v, str)), "an array, or a callable"
)


class CentreModel(TransformerMixin, ClusterMixin, ClassNamePrefixFeaturesOutMixin, Estimator):
    """Base class; not to be used directly. A model sets `cluster_centers_` and `labels_`."""

    n_clusters: int = param(Number(low=1, integer=True), "K.", default=8, kw_only=False)
    init: Any = param(
        INIT,
        'Where to start; a callable gets (X, n_clusters, random_state). "k-means++" draws from at most 2¹⁷ rows, '
        '"k-means||" from all of them, in six passes.',
        default="k-means++",
    )
    n_init: Any = param(
        Options("auto") | Number(low=1, integer=True),
        'Starts, of which the best is kept. "auto" is 1, but with init="random" or a callable 10 in '
        "`KMeans` and 3 in `MiniBatchKMeans`.",
        default="auto",
    )
    verbose: int = param(VERBOSE, "Whether every iteration or batch is printed; callbacks report it, too.", default=0)
    random_state: Any = param(RANDOM_STATE, "Draws the starts and batches.", default=None)
    max_seconds: float | None = param(MAX_SECONDS, "Time after which the best so far is returned.", default=None)
    n_jobs: int | None = param(
        N_JOBS, "Threads; None uses all that BLAS may use. The result does not depend on it.", default=None
    )

    metric = "euclidean"
    _random_restarts: ClassVar[int]  #: what n_init="auto" means for random starts

    cluster_centers_: AnyArray = fitted("(n_clusters, n_features)", "The centres c.")
    labels_: AnyArray = fitted("(n_samples,)", "Nearest centre of each row.", kind="i", optional=True)
    inertia_: float = fitted("float", "J.")
    n_iter_: int = fitted("int", "Iterations of the best restart, with the one that confirms convergence.")
    _sizes = ("n_clusters",)
    _tags = tags(sparse=True, preserves_dtype=FLOATS)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centres.

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection of shape (n_samples, n_features)
            Rows.
        y : ignored
            For compatibility.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights; with a frame, the name of a column.
        """
        super().fit(X, None, sample_weight)
        labels = getattr(self, "labels_", None)
        if labels is not None and (labels < 0).any():  # rows without weight took no part
            self.labels_ = np.where(labels < 0, np.asarray(self.predict(X)), labels)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> AnyArray:
        """Fit, and return the nearest centre of each row."""
        return self.fit(X, y, sample_weight).labels_

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and return the distances of each row to all centres."""
        return self.fit(X, y, sample_weight).transform(X)

    @rowwise
    def predict(self, X: Any) -> AnyArray:
        """Return the number of the nearest centre of each row."""
        return self._nearest(X)[0]

    @rowwise
    def transform(self, X: Any) -> AnyArray:
        """Return the distances to all centres, (n_samples, n_clusters); with "cosine" 1 − cos."""
        Z = self._to_space(read_features(self, X))
        centres = self._centres()
        out = np.empty((Z.shape[0], len(centres)), dtype=Z.dtype)

        def measure(block: Any) -> None:
            out[block.start : block.start + block.X.shape[0]] = distances_to(block.X, centres)

        map_reduce(Blocks([Part(Z)]), measure, nothing, n_jobs=self.n_jobs)
        return out if self.metric != "cosine" else 0.5 * out**2

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return −J of these rows."""
        squares = self._nearest(X)[1]
        return -float(squares.sum() if sample_weight is None else squares @ np.asarray(sample_weight, dtype=float))

    def _nearest(self, X: Any) -> tuple[AnyArray, AnyArray]:
        Z = self._to_space(read_features(self, X))
        centres = self._centres()
        labels = np.empty(Z.shape[0], np.int32)
        squares = np.empty(Z.shape[0])

        def work(block: Any) -> None:
            part = slice(block.start, block.start + block.X.shape[0])
            labels[part], squares[part] = nearest_centres(block.X, centres)

        map_reduce(Blocks([Part(Z)]), work, nothing, n_jobs=self.n_jobs)
        return labels, squares

    def _centres(self) -> AnyArray:
        return np.asarray(self._to_space(np.asarray(self.cluster_centers_, dtype=np.float64)))

    def _to_space(self, X: Any) -> Any:
        """Return rows or centres in the coordinates in which the distance is Euclidean."""
        return X

    def _restarts(self) -> int:
        if self.n_init == "auto":
            at_random = callable(self.init) or (isinstance(self.init, str) and self.init == "random")
            return self._random_restarts if at_random else 1
        if callable(self.init) or isinstance(self.init, str):
            return int(self.n_init)
        if self.n_init != 1:
            warnings.warn(
                f"{type(self).__name__}: Explicit initial center position passed: performing only one init instead of "
                f"n_init={self.n_init}.",
                RuntimeWarning,
                stacklevel=2,
            )
        return 1

    def _start(self, space: Space, rng: np.random.Generator, stop: Callable[[], bool], rows: Any = None) -> AnyArray:
        """Return K centres to start from, in the coordinates of `space`; drawn from `rows` (X, weight) if given."""
        owner = type(self).__name__
        K = self.n_clusters
        if isinstance(self.init, str) and self.init == "k-means||":
            source = space.blocks if rows is None else Blocks([Part(rows[0], None, rows[1])])
            return oversampled_start(source, K, rng, self.n_jobs)
        if isinstance(self.init, str):
            X, weight = sample_rows(space.blocks, int(space.blocks.n_rows)) if rows is None else rows
            if X.shape[0] < K:
                raise DataError(f"{owner}: n_clusters={K} exceeds the {X.shape[0]} rows that starts are drawn from.")
            if self.init == "random":
                return random_rows(X, K, rng, weight)[0]
            return plus_plus(X, K, rng, weight, stop=stop)[0]
        d = space.blocks.n_columns
        given = self.init
        if callable(given):
            given = given(space.X, K, np.random.RandomState(rng.integers(2**31)))
        try:
            centres = np.array(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ParameterError(f"{owner}: init must be an array of numbers; {error}.") from error
        if centres.ndim != 2 or centres.shape != (K, d):
            what = f"features of the data {d}" if centres.ndim == 2 and centres.shape[0] == K else f"clusters {K}"
            raise ParameterError(
                f"{owner}: The shape of the initial centers {centres.shape} does not match the number of {what}; init "
                f"must be finite and of shape ({K}, {d}), one centre a cluster."
            )
        if not np.isfinite(centres).all():
            raise ParameterError(f"{owner}: init must be finite and of shape ({K}, {d}); got NaN or infinity.")
        return centres if callable(self.init) else np.ascontiguousarray(self._to_space(centres) * space.unit)

    def _set_labels(self, labels: AnyArray, table: Table) -> None:
        n_distinct = len(np.unique(labels))
        if n_distinct < self.n_clusters:
            warnings.warn(
                f"{type(self).__name__}: Number of distinct clusters ({n_distinct}) found smaller than n_clusters "
                f"({self.n_clusters}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=2,
            )
        if table.kept is not None:
            of_kept = labels
            labels = np.full(len(table.kept), -1, np.int32)
            labels[table.kept] = of_kept
        self.labels_ = labels

    _laws = laws(
        law(
            "{owner}: cluster_centers_ must be float64 or float32",
            lambda model: model.cluster_centers_.dtype in (np.float64, np.float32),
        ),
    )


def _labels(centres: AnyArray, block: Any) -> tuple[list[AnyArray], float, float]:
    """Return labels of a block's rows, their inertia, and what rounding may leave of it."""
    labels, squares = nearest_centres(block.X, centres)
    weight = np.ones(len(labels)) if block.weight is None else block.weight
    return [labels], float(squares @ weight), rounding_of_inertia(block.X, labels, weight, centres)


def _chain(a: tuple[list[AnyArray], float, float], b: tuple[list[AnyArray], float, float]) -> Any:
    a[0].extend(b[0])
    return a[0], a[1] + b[1], a[2] + b[2]


class KMeans(CentreModel):
    """K clusters around their means: min over c of Σᵢ wᵢ minₖ ‖xᵢ − cₖ‖².

    Labels are those of plain Lloyd iterations in float64, whatever the data and the number of threads; bounds spare
    most of the distances. Memory besides X: (d + 2) float32 and 28 bytes for each row. Files and Dask are read once an
    iteration.

    Examples
    --------
    >>> from learnable import KMeans
    >>> X = [[1.0, 2.0], [1.0, 4.0], [1.0, 0.0], [10.0, 2.0], [10.0, 4.0], [10.0, 0.0]]
    >>> model = KMeans(n_clusters=2, random_state=0).fit(X)
    >>> model.predict([[0.0, 0.0], [12.0, 3.0]]) == model.labels_[[0, 3]]
    array([ True,  True])
    >>> model.inertia_
    16.0
    """

    _theory = "k-means"

    max_iter: int = param(MAX_ITER, "Iterations of one restart.", default=300)
    tol: float = param(
        TOLERANCE,
        "A restart ends when the centres moved by no more than this share of the mean variance of the columns "
        "(squared, summed over the centres, as in scikit-learn), and the inertia fell by no more than this "
        "share of itself.",
        default=1e-4,
    )
    copy_x: bool = param(Boolean(), "Ignored: X is never changed.", default=True)
    algorithm: str = param(Options("lloyd", "elkan"), "Ignored: both name the same result.", default="lloyd")
    metric: str = param(
        Options("euclidean", "mahalanobis", "cosine"),
        'The distance. "mahalanobis" takes the covariance of the data, "cosine" rows without their lengths.',
        default="euclidean",
    )

    cluster_centers_: AnyArray = fitted("(n_clusters, n_features)", 'The centres; with metric="cosine" of length one.')
    inertia_: float = fitted(
        "float", 'J; with "mahalanobis" of squared Mahalanobis distances, with "cosine" of 2(1 − cos).'
    )
    inertia_history_: AnyArray = fitted(
        "array", "J at the start and after each iteration but the last, which only confirms; never rises."
    )
    whitening_: AnyArray = fitted(
        "(n_features, n_features)",
        'With metric="mahalanobis": x @ whitening_ has the identity as covariance.',
        finite=False,
        optional=True,
    )
    certificate_: Certificate = fitted("Certificate", "`ascent`: the relative fall of J in one more iteration.")

    _door = staticmethod(door(target="none"))
    _remedy = "raise max_iter, or start from better centres"

    _random_restarts = 10

    def _fit(self, table: Table, run: Any) -> Certificate:
        owner = type(self).__name__
        K = self.n_clusters
        if table.in_memory:  # otherwise the first pass, that of `_space`, counts the rows
            check_enough_rows(owner, table.n_rows, K)
        else:
            table.blocks.expect_passes()
        if self.algorithm == "elkan" and K == 1:
            warnings.warn(
                f"{owner}: algorithm='elkan' doesn't make sense for a single cluster.", RuntimeWarning, stacklevel=2
            )
        space = self._space(table)
        check_enough_rows(owner, table.n_rows, K)
        rng = as_generator(self.random_state)
        starts = (self._start(space, rng, run.should_stop) for _ in range(self._restarts()))
        climber = _Climber(space, self, run)
        found, labels, inertia, rounding = climber.climb(starts)
        if _is_single(table.X) and self.metric == "euclidean":  # float32 rows get float32 centres, whose inertia counts
            found, labels, inertia, rounding = climber.in_single(found)
        centres = self._from_space(found.parameters / space.unit)
        self.cluster_centers_ = centres.astype(np.float32) if _is_single(table.X) else centres
        with np.errstate(over="ignore"):  # squares of numbers near the end of the floats
            self.inertia_ = float(np.float64(inertia) / space.unit / space.unit)
            self.inertia_history_ = np.maximum(-found.history, 0.0) / space.unit / space.unit
        reached = found.history >= found.history[-1] - NOISE * space.scatter
        steps = int(reached.argmax()) if found.converged else found.n_iter
        self.n_iter_ = min(steps + 1, self.max_iter)  # the step that confirms counts too
        self._n_features_out = K
        self._set_labels(labels, table)
        value = found.rise / max(inertia, rounding, 1e-300) if found.rise > NOISE * inertia else 0.0
        return Certificate("ascent", value=value, tolerance=self.tol, n_iter=self.n_iter_)

    def _space(self, table: Table) -> Space:
        """Return the rows in the coordinates in which the distance is Euclidean."""
        if self.metric == "euclidean":
            return space_of(table.X, table.blocks, table.weight, self.n_jobs)
        owner = type(self).__name__
        if table.X is None:
            raise DataError(
                f"{owner}: metric={self.metric!r} needs the rows in memory. Read the table, or use metric='euclidean'."
            )
        if self.metric == "mahalanobis":
            self.whitening_ = whitening_of(owner, table.X, table.weight)
        X = self._to_space(table.X)
        return space_of(X, Blocks([Part(X, None, table.weight)]), table.weight, self.n_jobs)

    def _to_space(self, X: Any) -> Any:
        if self.metric == "mahalanobis":
            return (X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)) @ self.whitening_
        return directions_of_rows(type(self).__name__, X) if self.metric == "cosine" else X

    def _from_space(self, centres: AnyArray) -> AnyArray:
        if self.metric == "mahalanobis":
            return np.ascontiguousarray(np.linalg.solve(self.whitening_.T, centres.T).T)
        return np.ascontiguousarray(centres)

    _laws = laws(
        law(
            "{owner}: whitening_ must be a square matrix",
            lambda model: model.metric != "mahalanobis" or model.whitening_.shape == (model.n_features_in_,) * 2,
        ),
    )


def _is_single(X: Any) -> bool:
    return X is not None and X.dtype == np.float32


class _Summit(NamedTuple):
    """The best of the restarts."""

    result: EMResult[AnyArray]
    labels: AnyArray
    inertia: float  #: measured at the centres
    rounding: float  #: what rounding of the centres may leave of it


def _joined(first: EMResult[AnyArray], second: EMResult[AnyArray]) -> EMResult[AnyArray]:
    """Return the second of two climbs, which went on from where the first ended, with the way of both."""
    history = np.concatenate([first.history[:-1], second.history])
    return second._replace(history=np.maximum.accumulate(history), n_iter=first.n_iter + second.n_iter)


class _Climber:
    """Lloyd from every start, one after the other.

    `BoundedLloyd` is quick, but its inertia is a difference of sums over all rows. Where these are far larger than the
    inertia (a few far rows, or clusters that are points), plain Lloyd iterations, which measure it, decide.
    """

    def __init__(self, space: Space, model: KMeans, run: Any) -> None:
        self.space = space
        self.model = model
        self.run = run
        self.spherical = model.metric == "cosine"
        self.narrator = LloydNarrator(model.verbose, space.unit, model.tol * space.variance)

    def climb(self, starts: Iterator[AnyArray]) -> _Summit:
        """Return the best result that the time allows."""
        space = self.space
        if space.blocks.in_partitions:
            return self._in_partitions(starts)
        dense = space.X is not None and not sp.issparse(space.X)
        if not dense or space.is_wide:
            return self._measured(self._best(starts, self._plain))
        bounded = BoundedLloyd(
            space.X, space.weight, space.mean, self.model.n_clusters, self.model.n_jobs, self.spherical
        )

        def ascend(start: AnyArray) -> EMResult[AnyArray]:
            bounded.restart(start)
            return em(bounded, bounded.parts, [start], **self._options(1e-8 * space.scatter))

        best = self._best(starts, ascend)
        if bounded.passed is not best.parameters:
            bounded.restart(best.parameters)
        labels, inertia = bounded.finish(best.parameters)
        if inertia > 1e-5 * space.scatter or self.run.should_stop():
            return _Summit(best, labels.copy(), inertia, 0.0)
        polished = self._plain(best.parameters, max(2, self.model.max_iter - best.n_iter))
        return self._measured(_joined(best, polished))

    def _in_partitions(self, starts: Iterator[AnyArray]) -> _Summit:
        """Return the best of climbs whose bounds stay with the rows."""
        space = self.space
        problem = PartLloyd(space, self.model.n_clusters)
        options = self._options(1e-8 * space.scatter)
        remembers = space.blocks.can_remember(problem.bytes_remembered)

        def ascend(start: AnyArray) -> EMResult[AnyArray]:
            problem.begin(remembers)
            return em(problem, problem.blocks, [start], **options)

        if remembers or self.model.max_seconds is not None:
            best = self._one_by_one(starts, ascend)
        else:  # one pass over the partitions serves all
            self.narrator.begin()
            best = em(problem, problem.blocks, list(starts), **options)
        labels, inertia, rounding = self._labelled(
            problem.blocks, partial(problem.labelled, centres=best.parameters), best
        )
        if inertia > 1e-5 * space.scatter or self.run.should_stop():
            return _Summit(best, labels, inertia, rounding)
        polished = self._plain(best.parameters, max(2, self.model.max_iter - best.n_iter))
        return self._measured(_joined(best, polished))

    def _labelled(
        self, blocks: Any, statistic: Callable[..., Any], found: EMResult[AnyArray]
    ) -> tuple[AnyArray, float, float]:
        try:
            labels, inertia, rounding = map_reduce(blocks, statistic, _chain, n_jobs=self.model.n_jobs)
        except LostRowsError as error:
            error.kept = found.parameters
            raise
        return np.concatenate(labels), inertia, rounding

    def in_single(self, found: EMResult[AnyArray]) -> _Summit:
        """Return the result with its centres rounded to float32, measured there."""
        unit = self.space.unit
        rounded = (found.parameters / unit).astype(np.float32).astype(np.float64) * unit
        there = self._plain(rounded, 0)
        return self._measured(found._replace(parameters=rounded, bound=there.bound, rise=there.rise))

    def _best(self, starts: Iterator[AnyArray], ascend: Callable[[AnyArray], EMResult[AnyArray]]) -> EMResult[AnyArray]:
        """Return the best of the climbs; no further one begins after the time is up."""
        if self.space.X is None and self.model.max_seconds is None:  # one pass over the files serves all
            self.narrator.begin()
            return em(Lloyd(None, self.spherical), self.space.blocks, list(starts), **self._options(0.0))
        return self._one_by_one(starts, ascend)

    def _one_by_one(
        self, starts: Iterator[AnyArray], ascend: Callable[[AnyArray], EMResult[AnyArray]]
    ) -> EMResult[AnyArray]:
        self.narrator.begin()
        best = ascend(next(starts))
        while not self.run.should_stop():
            start = next(starts, None)
            if start is None:
                break
            self.narrator.begin()
            found = ascend(start)
            best = found if found.bound > best.bound else best
        return best

    def _plain(self, start: AnyArray, max_iter: int | None = None) -> EMResult[AnyArray]:
        options = self._options(0.0) | ({} if max_iter is None else {"max_iter": max_iter})
        return em(Lloyd(None, self.spherical), self.space.blocks, [start], **options)

    def _measured(self, found: EMResult[AnyArray]) -> _Summit:
        return _Summit(found, *self._labelled(self.space.blocks, partial(_labels, found.parameters), found))

    def _options(self, blur: float) -> dict[str, Any]:
        """Return what `em` is told; an inertia below `blur` is not known."""
        tol = self.model.tol
        space = self.space

        def settled(before: AnyArray, after: AnyArray, rise: float, objective: float) -> bool:
            ends = has_settled(before, after, rise, objective, tol, space.variance, blur)
            if ends:
                self.narrator.settle(before, after)
            return ends

        return {
            "max_iter": self.model.max_iter,
            "settled": settled,
            "rounding": 1e-11 * space.scatter,
            "n_jobs": self.model.n_jobs,
            "flag": self.run.flag,
            "progress": self.narrator.report(self.run.progress),
            "owner": type(self.model).__name__,
        }
