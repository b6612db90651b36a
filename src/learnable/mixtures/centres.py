"""What models with centres share: the nearest centre of a row, distances to all of them, and where a search starts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..core.declare import fitted, param
from ..core.errors import DataError, ModelFileError, ParameterError
from ..core.estimator import Estimator
from ..core.parameters import MAX_SECONDS, N_JOBS, RANDOM_STATE, Matches, Number, Options
from ..data.blocks import Blocks, Part, map_reduce
from ..data.door import Table, read_features
from ..data.sources import rowwise
from .lloyd import distances_to, nearest_centres
from .narration import VERBOSE
from .spaces import Space, rounding_of_inertia
from .starts import plus_plus, random_rows, sample_rows

Array = NDArray[Any]

#: What `init` may be.
INIT = Options("k-means++", "random") | Matches(
    lambda v: callable(v) or (hasattr(v, "__len__") and not isinstance(v, str)), "an array, or a callable"
)


class CentreModel(TransformerMixin, ClusterMixin, ClassNamePrefixFeaturesOutMixin, Estimator):
    """Base class; not to be used directly. A model sets `cluster_centers_` and `labels_`."""

    n_clusters: int = param(Number(low=1, integer=True), "K.", default=8, kw_only=False)
    init: Any = param(INIT, "Where to start; a callable gets (X, n_clusters, random_state).", default="k-means++")
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

    cluster_centers_: Array = fitted("(n_clusters, n_features)", "The centres.")
    labels_: Array = fitted("(n_samples,)", "Nearest centre of each row.", kind="i")

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
        Z, centres = self._to_space(read_features(self, X)), self._centres()
        out = np.empty((Z.shape[0], len(centres)), dtype=Z.dtype)

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
        Z, centres = self._to_space(read_features(self, X)), self._centres()
        labels, squares = np.empty(Z.shape[0], np.int32), np.empty(Z.shape[0])

        def work(block: Any) -> None:
            part = slice(block.start, block.start + block.X.shape[0])
            labels[part], squares[part] = nearest_centres(block.X, centres)

        map_reduce(Blocks([Part(Z)]), work, _nothing, n_jobs=self.n_jobs)
        return labels, squares

    def _centres(self) -> Array:
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

    def _start(self, space: Space, rng: np.random.Generator, stop: Callable[[], bool], rows: Any = None) -> Array:
        """Return K centres to start from, in the coordinates of `space`; drawn from `rows` (X, weight) if given."""
        owner, K = type(self).__name__, self.n_clusters
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

    def _label_blocks(self, blocks: Any, centres: Array) -> tuple[Array, float, float]:
        """Return labels, inertia, and what rounding may leave of it."""
        found, inertia, rounding = map_reduce(blocks, _Labels(centres), _chain, n_jobs=self.n_jobs)
        return np.concatenate(found), inertia, rounding

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
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_loaded(self) -> None:
        centres = getattr(self, "cluster_centers_", None)
        if not isinstance(centres, np.ndarray) or centres.shape != (self.n_clusters, self.n_features_in_):
            raise ModelFileError(f"{type(self).__name__}: cluster_centers_ must have a row for each cluster.")
        if centres.dtype not in (np.float64, np.float32) or not np.isfinite(centres).all():
            raise ModelFileError(f"{type(self).__name__}: cluster_centers_ must be finite floating-point numbers.")


class _Labels:
    """Labels of a block's rows, their inertia, and what rounding may leave of it."""

    def __init__(self, centres: Array) -> None:
        self.centres = centres

    def __call__(self, block: Any) -> tuple[list[Array], float, float]:
        labels, squares = nearest_centres(block.X, self.centres)
        weight = np.ones(len(labels)) if block.weight is None else block.weight
        return [labels], float(squares @ weight), rounding_of_inertia(block.X, labels, weight, self.centres)


def _chain(a: tuple[list[Array], float, float], b: tuple[list[Array], float, float]) -> Any:
    a[0].extend(b[0])
    return a[0], a[1] + b[1], a[2] + b[2]


def _nothing(a: None, b: None) -> None:
    return None
