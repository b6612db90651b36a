r"""k-means: K centres that minimise the squared distances of the rows to the nearest one.

    J(c) = Σᵢ wᵢ minₖ ‖xᵢ − cₖ‖²

Lloyd's algorithm alternates between giving every row its nearest centre and putting every centre in the mean of its
rows; neither step can raise J, and it ends in a local minimum (`lloyd.py`). Where it starts is in `starts.py`.

Two other distances become the Euclidean one after a change of coordinates: Mahalanobis' (x − c)ᵀS⁻¹(x − c), with the
covariance S of the data, by whitening; and 1 − cos(x, c) = ½‖x/‖x‖ − c‖² for centres of length one, by normalising
rows and centres (spherical k-means).

Reference: S. Lloyd, Least squares quantization in PCM, IEEE Trans. Inf. Theory 28 (1982), 129–137.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.certificate import Certificate
from ..core.declare import param
from ..core.errors import DataError, ModelFileError
from ..core.parameters import (
    MAX_ITER,
    TOLERANCE,
    Boolean,
    Options,
)
from ..data.blocks import Blocks, Part
from ..data.door import Table, door
from ..meta.splits import as_generator
from ..solvers.em import EMResult, em
from .centres import CentreModel
from .lloyd import BoundedLloyd, Lloyd
from .narration import LloydNarrator
from .spaces import Space, directions_of_rows, space_of, whitening_of
from .starts import check_enough_rows

Array = NDArray[Any]

_NOISE = 1e-12  # share of the inertia that its own rounding may be


class KMeans(CentreModel):
    """K clusters around their means: min over c of Σᵢ wᵢ minₖ ‖xᵢ − cₖ‖².

    Labels are those of plain Lloyd iterations in float64, whatever the data and the number of threads; bounds spare
    most of the distances. Memory besides X: (d + 2) float32 and 20 bytes for each row. Files and Dask are read once an
    iteration.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        c; with metric="cosine" of length one.
    labels_ : array of shape (n_samples,)
        Nearest centre of each row.
    inertia_ : float
        J; with "mahalanobis" of squared Mahalanobis distances, with "cosine" of 2(1 − cos).
    n_iter_ : int
        Iterations of the best restart, with the one that confirms convergence.
    inertia_history_ : array
        J at the start and after each iteration but the last, which only confirms; never rises.
    whitening_ : array of shape (n_features, n_features)
        With metric="mahalanobis": x @ whitening_ has the identity as covariance.
    certificate_ : Certificate
        Relative fall of J in one more iteration.

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

    _door = staticmethod(door(target="none"))
    _remedy = "raise max_iter, or start from better centres"

    _random_restarts = 10

    def _fit(self, table: Table, run: Any) -> Certificate:
        owner, K = type(self).__name__, self.n_clusters
        check_enough_rows(owner, table.n_rows, K)
        if self.algorithm == "elkan" and K == 1:
            warnings.warn(
                f"{owner}: algorithm='elkan' doesn't make sense for a single cluster.", RuntimeWarning, stacklevel=2
            )
        space = self._space(table)
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
        reached = found.history >= found.history[-1] - _NOISE * space.scatter
        steps = int(reached.argmax()) if found.converged else found.n_iter
        self.n_iter_ = min(steps + 1, self.max_iter)  # the step that confirms counts too
        self._n_features_out = K
        self._set_labels(labels, table)
        value = found.rise / max(inertia, rounding, 1e-300) if found.rise > _NOISE * inertia else 0.0
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

    def _from_space(self, centres: Array) -> Array:
        if self.metric == "mahalanobis":
            return np.ascontiguousarray(np.linalg.solve(self.whitening_.T, centres.T).T)
        return np.ascontiguousarray(centres)

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if self.metric == "mahalanobis":
            whitening = getattr(self, "whitening_", None)
            if not isinstance(whitening, np.ndarray) or whitening.shape != (self.n_features_in_,) * 2:
                raise ModelFileError(f"{type(self).__name__}: whitening_ must be a square matrix.")


def _is_single(X: Any) -> bool:
    return X is not None and X.dtype == np.float32


class _Summit(NamedTuple):
    """The best of the restarts."""

    result: EMResult[Array]
    labels: Array
    inertia: float  #: measured at the centres
    rounding: float  #: what rounding of the centres may leave of it


class _Climber:
    """Lloyd from every start, one after the other.

    `BoundedLloyd` is quick, but its inertia is a difference of sums over all rows. Where these are far larger than the
    inertia (a few far rows, or clusters that are points), plain Lloyd, which measures it, has the last word.
    """

    def __init__(self, space: Space, model: KMeans, run: Any) -> None:
        self.space, self.model, self.run = space, model, run
        self.spherical = model.metric == "cosine"
        self.narrator = LloydNarrator(model.verbose, space.unit, model.tol * space.variance)

    def climb(self, starts: Iterator[Array]) -> _Summit:
        """Return the best result that the time allows."""
        space = self.space
        dense = space.X is not None and not sp.issparse(space.X)
        if not dense or space.is_wide:
            return self._measured(self._best(starts, self._plain))
        bounded = BoundedLloyd(
            space.X, space.weight, space.mean, self.model.n_clusters, self.model.n_jobs, self.spherical
        )

        def ascend(start: Array) -> EMResult[Array]:
            bounded.restart(start)
            return em(bounded, bounded.parts, [start], **self._options(1e-8 * space.scatter))

        best = self._best(starts, ascend)
        if bounded.passed is not best.parameters:
            bounded.restart(best.parameters)
        labels, inertia = bounded.finish(best.parameters)
        if inertia > 1e-5 * space.scatter or self.run.should_stop():
            return _Summit(best, labels.copy(), inertia, 0.0)
        polished = self._plain(best.parameters, max(2, self.model.max_iter - best.n_iter))
        history = np.concatenate([best.history[:-1], polished.history])
        n_iter = best.n_iter + polished.n_iter
        return self._measured(polished._replace(history=np.maximum.accumulate(history), n_iter=n_iter))

    def in_single(self, found: EMResult[Array]) -> _Summit:
        """Return the result with its centres rounded to float32, measured there."""
        unit = self.space.unit
        rounded = (found.parameters / unit).astype(np.float32).astype(np.float64) * unit
        there = self._plain(rounded, 0)
        return self._measured(found._replace(parameters=rounded, bound=there.bound, rise=there.rise))

    def _best(self, starts: Iterator[Array], ascend: Callable[[Array], EMResult[Array]]) -> EMResult[Array]:
        """Return the best of the climbs; no further one begins after the time is up."""
        self.narrator.begin()
        if self.space.X is None and self.model.max_seconds is None:  # one pass over the files serves all
            return em(Lloyd(None, self.spherical), self.space.blocks, list(starts), **self._options(0.0))
        best = ascend(next(starts))
        while not self.run.should_stop():
            start = next(starts, None)
            if start is None:
                break
            self.narrator.begin()
            found = ascend(start)
            best = found if found.bound > best.bound else best
        return best

    def _plain(self, start: Array, max_iter: int | None = None) -> EMResult[Array]:
        options = self._options(0.0) | ({} if max_iter is None else {"max_iter": max_iter})
        return em(Lloyd(None, self.spherical), self.space.blocks, [start], **options)

    def _measured(self, found: EMResult[Array]) -> _Summit:
        return _Summit(found, *self.model._label_blocks(self.space.blocks, found.parameters))

    def _options(self, blur: float) -> dict[str, Any]:
        """Return what `em` is told; an inertia below `blur` is not known."""
        tol, space = self.model.tol, self.space

        def settled(before: Array, after: Array, rise: float, objective: float) -> bool:
            shift = float(((after - before) ** 2).sum())
            size = max(-objective, blur)
            if (np.abs(after - before) <= 4 * np.spacing(np.abs(after))).all():  # no more progress: rounding limit
                ends = abs(rise) <= _NOISE * size + blur
            else:
                ends = shift <= tol * space.variance and -1e-10 * size - blur <= rise <= tol * size
            if ends:
                self.narrator.settle(before, after)
            return bool(ends)

        return {
            "max_iter": self.model.max_iter,
            "settled": settled,
            "rounding": 1e-11 * space.scatter,
            "n_jobs": self.model.n_jobs,
            "flag": self.run.flag,
            "progress": self.narrator.report(self.run.progress),
            "owner": type(self.model).__name__,
        }
