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
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..core.certificate import Certificate
from ..core.errors import DataError, ModelFileError, ParameterError
from ..core.estimator import Estimator
from ..core.parameters import (
    MAX_ITER,
    MAX_SECONDS,
    N_JOBS,
    RANDOM_STATE,
    TOLERANCE,
    Boolean,
    Matches,
    Number,
    Options,
    Rule,
)
from ..data.blocks import Blocks, Part, map_reduce
from ..data.door import Table, door, read_features
from ..data.sources import rowwise
from ..meta.splits import as_generator
from ..solvers.em import EMResult, em
from .lloyd import BoundedLloyd, Lloyd, distances_to, nearest_centres
from .starts import check_enough_rows, plus_plus, random_rows, sample_rows

Array = NDArray[Any]


class KMeans(TransformerMixin, ClusterMixin, ClassNamePrefixFeaturesOutMixin, Estimator):
    """K clusters around their means: min over c of Σᵢ wᵢ minₖ ‖xᵢ − cₖ‖².

    Labels are those of plain Lloyd iterations in float64, whatever the data and the number of threads; bounds spare
    most of the distances. Memory besides X: (d + 2) float32 and 20 bytes for each row. Files and Dask are read once an
    iteration.

    Parameters
    ----------
    n_clusters : int, default=8
        K.
    init : {"k-means++", "random"}, array of shape (n_clusters, n_features) or callable, default="k-means++"
        Where to start; a callable gets (X, n_clusters, random_state).
    n_init : "auto" or int, default="auto"
        Restarts, of which the best is kept; "auto" is 10 with init="random" or a callable, and 1 otherwise.
    max_iter : int, default=300
        Iterations of one restart.
    tol : float, default=1e-4
        A restart ends when the centres moved by no more than this share of the mean variance of the columns (squared,
        summed over the centres, as in scikit-learn), and the inertia fell by no more than this share of itself.
    verbose : int, default=0
        Ignored; use callbacks.
    random_state : int, Generator, RandomState or None, default=None
        Draws the starts.
    copy_x : bool, default=True
        Ignored: X is never changed.
    algorithm : {"lloyd", "elkan"}, default="lloyd"
        Ignored: both name the same result.
    metric : {"euclidean", "mahalanobis", "cosine"}, default="euclidean"
        The distance. "mahalanobis" takes the covariance of the data, "cosine" rows without their lengths.
    max_seconds : float or None, default=None
        Time after which the best so far is returned.
    n_jobs : int or None, default=None
        Threads; None uses all that BLAS may use. The result does not depend on it.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        c; with metric="cosine" of length one.
    labels_ : array of shape (n_samples,)
        Nearest centre of each row.
    inertia_ : float
        J; with "mahalanobis" of squared Mahalanobis distances, with "cosine" of 2(1 − cos).
    n_iter_ : int
        Iterations of the best restart.
    inertia_history_ : array of shape (n_iter_ + 1,)
        J at the start and after each iteration; never rises.
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

    _parameters: ClassVar[dict[str, Rule]] = {
        "n_clusters": Number(low=1, integer=True),
        "init": Options("k-means++", "random")
        | Matches(
            lambda v: callable(v) or (hasattr(v, "__len__") and not isinstance(v, str)), "an array, or a callable"
        ),
        "n_init": Options("auto") | Number(low=1, integer=True),
        "max_iter": MAX_ITER,
        "tol": TOLERANCE,
        "random_state": RANDOM_STATE,
        "copy_x": Boolean(),
        "algorithm": Options("lloyd", "elkan"),
        "metric": Options("euclidean", "mahalanobis", "cosine"),
        "max_seconds": MAX_SECONDS,
        "n_jobs": N_JOBS,
    }
    _door = staticmethod(door(target="none"))
    _remedy = "raise max_iter, or start from better centres"

    labels_: Array

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: Any = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        verbose: int = 0,
        random_state: Any = None,
        copy_x: bool = True,
        algorithm: str = "lloyd",
        metric: str = "euclidean",
        max_seconds: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.copy_x = copy_x
        self.algorithm = algorithm
        self.metric = metric
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs

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
        if (self.labels_ < 0).any():  # rows without weight took no part
            self.labels_ = np.where(self.labels_ < 0, np.asarray(self.predict(X)), self.labels_)
        return self

    def _fit(self, table: Table, run: Any) -> Certificate:
        owner, K = type(self).__name__, self.n_clusters
        check_enough_rows(owner, table.n_rows, K)
        space = self._space(table)
        rng = as_generator(self.random_state)
        starts = [self._start(space, rng) for _ in range(self._restarts())]
        found, labels, inertia = _climb(space, starts, self, run)
        centres = self._from_space(found.parameters / space.unit)
        if space.X is None or sp.issparse(space.X):
            labels, inertia = self._label_blocks(space.blocks, found.parameters)
        self.cluster_centers_ = centres
        with np.errstate(over="ignore"):  # squares of numbers near the end of the floats
            self.inertia_ = float(np.float64(inertia) / space.unit / space.unit)
            self.inertia_history_ = np.maximum(-found.history, 0.0) / space.unit / space.unit
        self.n_iter_ = max(1, found.n_iter)
        self._n_features_out = K
        self._set_labels(labels, table)
        value = max(found.rise, 0.0) / max(inertia, 1e-8 * space.scatter) if found.rise > 0 else 0.0
        return Certificate("ascent", value=value, tolerance=self.tol, n_iter=self.n_iter_)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and return the nearest centre of each row."""
        return self.fit(X, y, sample_weight).labels_

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and return the distances of each row to all centres."""
        return self.fit(X, y, sample_weight).transform(X)

    @rowwise
    def predict(self, X: Any) -> Array:
        """Return the number of the nearest centre of each row."""
        return self._nearest(X)[0]

    @rowwise
    def transform(self, X: Any) -> Array:
        """Return the distances to all centres, (n_samples, n_clusters); with "cosine" 1 − cos."""
        check_is_fitted(self)
        Z, centres = self._to_space(read_features(self, X)), self._to_space(self.cluster_centers_)
        out = np.empty((Z.shape[0], len(centres)))

        def measure(block: Any) -> None:
            out[block.start : block.start + block.X.shape[0]] = distances_to(block.X, centres)

        map_reduce(Blocks([Part(Z)]), measure, _nothing, n_jobs=self.n_jobs)
        return out if self.metric != "cosine" else 0.5 * out**2

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return −J of these rows."""
        squares = self._nearest(X)[1]
        return -float(squares.sum() if sample_weight is None else squares @ np.asarray(sample_weight, dtype=float))

    def _nearest(self, X: Any) -> tuple[Array, Array]:
        check_is_fitted(self)
        Z, centres = self._to_space(read_features(self, X)), self._to_space(self.cluster_centers_)
        labels, squares = np.empty(Z.shape[0], np.int32), np.empty(Z.shape[0])

        def work(block: Any) -> None:
            part = slice(block.start, block.start + block.X.shape[0])
            labels[part], squares[part] = nearest_centres(block.X, centres)

        map_reduce(Blocks([Part(Z)]), work, _nothing, n_jobs=self.n_jobs)
        return labels, squares

    def _space(self, table: Table) -> _Space:
        """Return the rows in the coordinates in which the distance is Euclidean, and in a unit that cannot overflow."""
        blocks, X = table.blocks, table.X
        if self.metric != "euclidean":
            if X is None:
                raise DataError(
                    f"{type(self).__name__}: metric={self.metric!r} needs the rows in memory. "
                    "Read the table, or use metric='euclidean'."
                )
            if self.metric == "mahalanobis":
                self.whitening_ = _whitening(type(self).__name__, X, table.weight)
            X = self._to_space(X)
            blocks = Blocks([Part(X, None, table.weight)])
        unit = 1.0
        if X is not None:
            values = X.data if sp.issparse(X) else X
            largest = float(np.abs(values).max()) if values.size else 0.0
            if largest > 1e75 or 0 < largest < 1e-75:
                unit = float(2.0 ** -np.frexp(largest)[1])
                X = X * unit
                blocks = Blocks([Part(X, None, table.weight)])
        total = map_reduce(blocks, _first_moments, _add, n_jobs=self.n_jobs)
        mean = total[1] / total[0]
        squares = map_reduce(blocks, _Scatter(mean), np.add, n_jobs=self.n_jobs)
        return _Space(X, blocks, table.weight, unit, mean, float(squares.sum()), float(squares.mean() / total[0]))

    def _to_space(self, X: Any) -> Any:
        if self.metric == "mahalanobis":
            return (X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)) @ self.whitening_
        return _directions(type(self).__name__, X) if self.metric == "cosine" else X

    def _from_space(self, centres: Array) -> Array:
        if self.metric == "mahalanobis":
            return np.ascontiguousarray(np.linalg.solve(self.whitening_.T, centres.T).T)
        return np.ascontiguousarray(centres)

    def _restarts(self) -> int:
        if self.n_init == "auto":
            return 10 if callable(self.init) or (isinstance(self.init, str) and self.init == "random") else 1
        return 1 if not (callable(self.init) or isinstance(self.init, str)) else self.n_init

    def _start(self, space: _Space, rng: np.random.Generator) -> Array:
        owner, K = type(self).__name__, self.n_clusters
        if isinstance(self.init, str):
            X, weight = sample_rows(space.blocks, int(space.blocks.n_rows))
            if X.shape[0] < K:
                raise DataError(f"{owner}: n_clusters={K} exceeds the {X.shape[0]} rows that starts are drawn from.")
            draw = random_rows if self.init == "random" else plus_plus
            return draw(X, K, rng, weight)[0]
        d = space.blocks.n_columns
        given = self.init
        if callable(given):
            given = given(space.X, K, np.random.RandomState(rng.integers(2**31)))
        try:
            centres = np.array(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ParameterError(f"{owner}: init must be an array of numbers; {error}.") from error
        if centres.shape != (K, d) or not np.isfinite(centres).all():
            raise ParameterError(
                f"{owner}: init must be finite and of shape ({K}, {d}), one centre a cluster; got {centres.shape}."
            )
        return centres if callable(self.init) else np.ascontiguousarray(self._to_space(centres) * space.unit)

    def _label_blocks(self, blocks: Any, centres: Array) -> tuple[Array, float]:
        found, inertia = map_reduce(blocks, _Labels(centres), _chain, n_jobs=self.n_jobs)
        return np.concatenate(found), inertia

    def _set_labels(self, labels: Array, table: Table) -> None:
        n_distinct = len(np.unique(labels))
        if n_distinct < self.n_clusters:
            warnings.warn(
                f"{type(self).__name__}: Number of distinct clusters ({n_distinct}) found smaller than n_clusters "
                f"({self.n_clusters}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=2,
            )
        if table.kept is not None:
            labels, of_kept = np.full(len(table.kept), -1, np.int32), labels
            labels[table.kept] = of_kept
        self.labels_ = labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_loaded(self) -> None:
        centres = getattr(self, "cluster_centers_", None)
        if not isinstance(centres, np.ndarray) or centres.shape != (self.n_clusters, self.n_features_in_):
            raise ModelFileError(f"{type(self).__name__}: cluster_centers_ must have a row for each cluster.")
        if centres.dtype != np.float64 or not np.isfinite(centres).all():
            raise ModelFileError(f"{type(self).__name__}: cluster_centers_ must be finite float64 numbers.")
        if self.metric == "mahalanobis":
            whitening = getattr(self, "whitening_", None)
            if not isinstance(whitening, np.ndarray) or whitening.shape != (self.n_features_in_,) * 2:
                raise ModelFileError(f"{type(self).__name__}: whitening_ must be a square matrix.")


class _Space:
    """The rows in Euclidean coordinates."""

    def __init__(
        self, X: Any, blocks: Any, weight: Any, unit: float, mean: Array, scatter: float, variance: float
    ) -> None:
        self.X, self.blocks, self.weight, self.unit = X, blocks, weight, unit
        self.mean = mean  # of the rows
        self.scatter = scatter  # Σ w‖x − mean‖²: the inertia of one cluster
        self.variance = variance  # mean variance of the columns


def _climb(space: _Space, starts: list[Array], model: KMeans, run: Any) -> tuple[EMResult[Array], Any, float]:
    """Run Lloyd from every start; return the best result, with labels and inertia where rows are dense in memory."""

    def settled(before: Array, after: Array, rise: float, objective: float) -> bool:
        shift = float(((after - before) ** 2).sum())
        return shift <= model.tol * space.variance and rise <= model.tol * max(-objective, 1e-8 * space.scatter)

    options: dict[str, Any] = {
        "max_iter": model.max_iter,
        "settled": settled,
        "rounding": 1e-11 * space.scatter,
        "n_jobs": model.n_jobs,
        "flag": run.flag,
        "progress": run.progress,
    }
    spherical = model.metric == "cosine"
    if space.X is None or sp.issparse(space.X):
        return em(Lloyd(space.mean, spherical), space.blocks, starts, **options), None, 0.0
    bounded = BoundedLloyd(space.X, space.weight, space.mean, len(starts[0]), model.n_jobs, spherical)
    best: EMResult[Array] | None = None
    for start in starts:
        bounded.restart(start)
        found = em(bounded, bounded.parts, [start], **options)
        best = found if best is None or found.bound > best.bound else best
        if run.should_stop():
            break
    if best is None:
        raise ParameterError("KMeans: n_init must be >= 1.")
    if len(starts) > 1:
        bounded.restart(best.parameters)
    labels, inertia = bounded.finish(best.parameters)
    return best, labels.copy(), inertia


class _Scatter:
    """Sums of squared deviations from a given mean, by column."""

    def __init__(self, mean: Array) -> None:
        self.mean = mean

    def __call__(self, block: Any) -> Array:
        w = np.ones(block.X.shape[0]) if block.weight is None else block.weight
        if sp.issparse(block.X):
            squares = w @ block.X.multiply(block.X) - 2 * self.mean * (w @ block.X) + w.sum() * self.mean**2
            return np.maximum(np.asarray(squares).ravel(), 0.0)
        return np.asarray(w @ (block.X - self.mean) ** 2)


class _Labels:
    """Labels of a block's rows, and their inertia."""

    def __init__(self, centres: Array) -> None:
        self.centres = centres

    def __call__(self, block: Any) -> tuple[list[Array], float]:
        labels, squares = nearest_centres(block.X, self.centres)
        return [labels], float(squares.sum() if block.weight is None else squares @ block.weight)


def _chain(a: tuple[list[Array], float], b: tuple[list[Array], float]) -> tuple[list[Array], float]:
    a[0].extend(b[0])
    return a[0], a[1] + b[1]


def _first_moments(block: Any) -> tuple[float, Array]:
    w = np.ones(block.X.shape[0]) if block.weight is None else block.weight
    return float(w.sum()), np.asarray(w @ block.X).ravel()


def _add(a: tuple[float, Array], b: tuple[float, Array]) -> tuple[float, Array]:
    return a[0] + b[0], a[1] + b[1]


def _nothing(a: None, b: None) -> None:
    return None


def _whitening(owner: str, X: Any, weight: Any) -> Array:
    """Return W with the identity as covariance of XW."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    if len(X) < 2:
        raise DataError(f"{owner}: metric='mahalanobis' needs at least two rows; got {len(X)}.")
    cov = np.atleast_2d(np.cov(X, rowvar=False, bias=True, aweights=weight))
    try:
        factor = np.linalg.cholesky(cov)
        flat = np.diag(factor) <= 1e-7 * np.sqrt(np.diag(cov))
    except np.linalg.LinAlgError:
        flat = np.ones(1, dtype=bool)
    if flat.any():
        raise DataError(
            f"{owner}: metric='mahalanobis' needs columns that do not depend on each other, but the covariance of X is "
            "singular. Drop constant and repeated columns."
        )
    return np.ascontiguousarray(solve_triangular(factor, np.eye(len(cov)), lower=True).T)


def _directions(owner: str, X: Any) -> Any:
    """Return the rows divided by their lengths."""
    if sp.issparse(X):
        lengths = sp.linalg.norm(X, axis=1)
    else:
        largest = np.abs(X).max(axis=1, keepdims=True)
        X = X / np.where(largest > 0, largest, 1.0)
        lengths = np.linalg.norm(X, axis=1)
    if not lengths.all():
        row = int(np.flatnonzero(lengths == 0)[0])
        raise DataError(f"{owner}: row {row} of X is zero and has no direction. Drop it, or use another metric.")
    return sp.csr_array(sp.diags_array(1 / lengths) @ X) if sp.issparse(X) else X / lengths[:, None]
