r"""Multidimensional scaling by majorisation: points whose distances are those given, or in the same order.

Metric scaling minimises the stress σ(X) = Σ_{i<j} (δ_ij − ‖x_i − x_j‖)². By the inequality of Cauchy and Schwarz
‖x_i − x_j‖ ≥ (x_i − x_j)ᵀ(y_i − y_j)/‖y_i − y_j‖, so the stress lies below a quadratic function of X that touches it at
Y; its minimum is Guttman's transform x_i = n⁻¹ Σⱼ δ_ij (y_i − y_j)/‖y_i − y_j‖, which never raises the stress. Ordinal
scaling knows only the order of the dissimilarities: it alternates the step with the best increasing function of them,
d̂ = f(δ), by isotonic regression of the distances, of fixed size Σ d̂² = n(n − 1)/2. These are the two steps of EM under
other names, and `solvers.em` takes them: an extrapolation of every two steps counts only if the stress is lower there.

References: J. Kruskal, Nonmetric multidimensional scaling, Psychometrika 29 (1964); J. de Leeuw, Applications of convex
analysis to multidimensional scaling, 1977; I. Borg and P. Groenen, Modern multidimensional scaling, 2005 (chapters 8
and 9).
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.spatial.distance import pdist, squareform
from sklearn.utils.validation import check_is_fitted

from ..core.certificate import Certificate
from ..core.declare import (
    MAX_ITER,
    MAX_SECONDS,
    N_JOBS,
    RANDOM_STATE,
    TOLERANCE,
    Boolean,
    Number,
    Options,
    fitted,
    param,
)
from ..core.errors import DataError, ParameterError
from ..core.estimator import Run
from ..core.loaded import law, laws
from ..data.door import Table, read_features
from ..meta.splits import as_generator
from ..solvers.eigen import fix_signs, symmetric_pairs
from ..solvers.em import em_in_time
from ._kernels import guttman_rows
from .scaling import METRIC, DistanceModel, centred_products

Array = NDArray[np.float64]

#: Rows of one block: 64 rows of 4,000 distances are a task of a millisecond.
_ROWS = 64
#: Share of the largest dissimilarity within which two that follow each other are equal.
_EQUAL = 1e-12
#: Steps and precision with which a new row is placed.
_PLACING_STEPS = 300
_PLACED = 1e-9


class Configuration(NamedTuple):
    """A point of the iteration."""

    X: Array  #: (n, k), coordinates
    targets: Array  #: (n, n), the distances wanted: δ, or d̂


class Majorisation:
    """The two steps, for `solvers.em`; the objective is the stress with the other sign."""

    def __init__(self, D: Array, ordinal: bool) -> None:
        self.D = D
        self.order = _Order(D) if ordinal else None

    def expectation(self, block: range, at: Configuration) -> tuple[tuple[Any, ...], float]:
        """Return where some rows go, zero for the others, and their share of the objective."""
        n, k = at.X.shape
        moved = np.zeros((n, k))
        losses = np.empty(len(block))
        rows = slice(block.start, block.stop)
        guttman_rows(at.targets[rows], np.ascontiguousarray(at.X.T), block.start, moved[rows], losses)
        return (moved,), -0.5 * float(losses.sum())

    def maximisation(self, statistics: tuple[Any, ...], at: Configuration) -> Configuration:
        """Return the rows where they went, with the best increasing function of the dissimilarities."""
        return self.configuration(statistics[0])

    def configuration(self, X: Array) -> Configuration:
        """Return coordinates with the distances that are wanted there."""
        return Configuration(X, self.D if self.order is None else self.order.disparities(X))

    def start(self, X: Array) -> Configuration:
        """Return coordinates to start from. The first step of the ordinal method wants the ranks as distances.

        At random coordinates the best increasing function is nearly constant, and leads to poor minima.
        """
        return self.configuration(X) if self.order is None else Configuration(X, self.order.ranks())

    def log_prior(self, at: Configuration) -> float:
        """Return zero: there is no prior."""
        return 0.0


class _Order:
    """Dissimilarities in increasing order, equal ones together (Kruskal's secondary approach to ties)."""

    def __init__(self, D: Array) -> None:
        self.n = len(D)
        flat = squareform(D, checks=False)
        order = np.argsort(flat, kind="stable")
        ordered = flat[order]
        # Dissimilarities that differ by rounding alone are equal.
        steps = np.diff(ordered) > _EQUAL * (ordered[-1] if len(ordered) else 0.0)
        self.group = np.empty(len(flat), dtype=np.int64)
        self.group[order] = np.concatenate([[0], np.cumsum(steps)])
        self.values = ordered[np.append(steps, True)]  # the largest of each group
        self.count = np.bincount(self.group).astype(np.float64)

    def function(self, X: Array) -> Array:
        """Return f(δ) for each of the different δ: the best increasing function of them, of the right size."""
        means = np.bincount(self.group, pdist(X), len(self.count)) / self.count
        found = isotonic_regression(means, weights=self.count).x
        size = float(self.count @ found**2)
        if size <= 0:  # all rows in one place
            found = self.values if self.values[-1] > 0 else np.ones_like(found)
            size = float(self.count @ found**2)
        return np.asarray(found * np.sqrt(self.n * (self.n - 1) / 2.0 / size))

    def ranks(self) -> Array:
        """Return the ranks of the dissimilarities, of the right size."""
        found = 1.0 + self.group
        return np.asarray(squareform(found * np.sqrt(len(found) / float((found**2).sum())), checks=False))

    def disparities(self, X: Array) -> Array:
        """Return f(δ) as a table."""
        return np.asarray(squareform(self.function(X)[self.group], checks=False))


class MDS(DistanceModel):
    r"""Multidimensional scaling: coordinates with the least stress, for distances (metric) or their order (ordinal).

    Distances in the picture are the dissimilarities up to the stress: `stress_` is Σ_{i<j} (δ_ij − d_ij)² (with d̂
    in place of δ for the ordinal method), or Stress-1, √(Σ(δ − d)²/Σd²), if normalised. It never rises from one step
    to the next (`stress_history_`) and ends at a local minimum, of `n_init` starts the best. The axes are the principal
    ones. `transform` places a new row where its own stress is least, the others fixed. Time O(n²k) for each step,
    memory 16n² bytes.

    Unlike in scikit-learn, the start is that of classical scaling by default (as it will be there), dissimilarities of
    zero are not taken for missing ones by the ordinal method, and steps are extrapolated where that lowers the stress.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.manifold import MDS
    >>> X = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0], [3.0, 4.0]])
    >>> model = MDS().fit(X)
    >>> bool(model.stress_ < 1e-9)
    True
    >>> bool((np.diff(MDS(metric_mds=False, init="random", random_state=0).fit(X).stress_history_) <= 0).all())
    True
    """

    _theory = "stress-majorisation"

    metric_mds: bool = param(
        Boolean(), "Whether distances are wanted; otherwise only their order counts.", default=True
    )
    n_init: int = param(Number(low=1, integer=True), "Random starts, of which the best is kept.", default=1)
    init: str = param(
        Options("classical_mds", "random"), "Where to start; one start suffices for the first.", default="classical_mds"
    )
    max_iter: int = param(MAX_ITER, "Steps.", default=300)
    verbose: int = param(Number(low=0, integer=True) | Boolean(), "Kept for compatibility.", default=0)
    eps: float = param(
        TOLERANCE, "Steps end when one lowers the stress by no more than this share of Σδ² (or Σd̂²).", default=1e-6
    )
    n_jobs: int | None = param(N_JOBS, "Threads; the result does not depend on it.", default=None)
    random_state: Any = param(RANDOM_STATE, "Draws the starts.", default=None)
    dissimilarity: str = param(
        Options("deprecated", "euclidean", "precomputed"), "As in scikit-learn: use metric.", default="deprecated"
    )
    metric: Any = param(
        METRIC | Boolean(),
        'A metric of scikit-learn, a function of two rows, or "precomputed": X holds the dissimilarities.',
        default="euclidean",
    )
    normalized_stress: Any = param(
        Options("auto") | Boolean(), 'Whether `stress_` is Stress-1; "auto" for the ordinal method.', default="auto"
    )
    max_seconds: float | None = param(MAX_SECONDS, "Time after which the best so far is returned.", default=None)

    stress_: float = fitted("()", "The stress of the coordinates.", low=0.0)
    stress_history_: Array = fitted(
        "(n_steps,)", "Σ_{i<j} (δ − d)² (or d̂ − d) at the start and after each step; never rises.", low=0.0
    )
    steps_: Array = fitted(
        "(n_levels, 2)", "Of the ordinal method: the largest δ of each level of f, and f there.", optional=True, low=0.0
    )
    n_iter_: int = fitted("int", "Steps.")
    certificate_: Certificate = fitted(
        "Certificate", "`ascent`: by how much one more step lowers the stress, as a share of Σδ² (or Σd̂²)."
    )

    _remedy = "raise max_iter or eps"

    def fit(self, X: Any, y: Any = None, init: Any = None) -> Self:  # type: ignore[override]
        """Find the coordinates of the rows of X; y is ignored.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features) or (n_samples, n_samples)
            Rows, or their dissimilarities.
        y : ignored
            For compatibility.
        init : array of shape (n_samples, n_components), optional
            Where to start, instead of the parameter.
        """
        self._given = None if init is None else np.array(init, dtype=np.float64)
        try:
            return super().fit(X)
        finally:
            del self._given

    def fit_transform(self, X: Any, y: Any = None, init: Any = None) -> Array:
        """Find the coordinates of the rows of X and return them; float32 for float32."""
        self.fit(X, init=init)
        return self.embedding_.astype(self.X_fit_.dtype, copy=False)

    def _named_metric(self) -> Any:
        """Return the metric, also where scikit-learn's older names say it."""
        if self.dissimilarity != "deprecated":
            return self.dissimilarity
        return "euclidean" if isinstance(self.metric, (bool, np.bool_)) else self.metric

    def _wants_distances(self) -> bool:
        """Tell whether the method is metric; warn where scikit-learn's older names say it."""
        metric = self.metric
        if self.dissimilarity != "deprecated":
            if not isinstance(metric, (bool, np.bool_)) and metric != "euclidean":
                raise ParameterError(
                    "MDS: You provided both `dissimilarity` and `metric`; `dissimilarity` is deprecated, use metric."
                )
            warnings.warn("MDS: the `dissimilarity` parameter is deprecated; use metric.", FutureWarning, stacklevel=5)
        if isinstance(metric, (bool, np.bool_)):
            warnings.warn("MDS: metric names the distance now. Use metric_mds.", FutureWarning, stacklevel=5)
            return bool(metric)
        return bool(self.metric_mds)

    def _fit(self, table: Table, run: Run) -> Certificate:
        wanted = self._wants_distances()
        D = self._dissimilarities(table)
        np.fill_diagonal(D, 0.0)
        n = table.n_rows
        problem = Majorisation(D, not wanted)
        size = n * (n - 1) / 2.0 if not wanted else 0.5 * float((D**2).sum())
        found = em_in_time(
            problem,
            [range(start, min(n, start + _ROWS)) for start in range(0, n, _ROWS)],
            (problem.start(X) for X in self._starts(D)),
            run.should_stop if self.max_seconds is not None else None,
            tol=self.eps * size,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
            flag=run.flag,
            progress=run.progress,
            rounding=1e-12 * size,
            pack=lambda at: at.X.ravel(),
            unpack=lambda x: problem.configuration(x.reshape(n, -1)) if np.isfinite(x).all() else None,
            owner="MDS",
        )
        X = principal_axes(found.parameters.X)
        self.embedding_ = X
        self.stress_history_ = np.maximum(-found.history, 0.0)
        stress = float(self.stress_history_[-1])
        normalised = not wanted if self.normalized_stress == "auto" else bool(self.normalized_stress)
        spread = float((pdist(X) ** 2).sum()) or 1.0
        self.stress_ = float(np.sqrt(stress / spread)) if normalised else stress
        self.n_iter_ = max(1, found.n_iter)
        if problem.order is not None:
            self.steps_ = _levels(problem.order.values, problem.order.function(X))
        value = max(found.rise, 0.0) / size if size > 0 else 0.0
        return Certificate("ascent", value, self.eps, n_iter=self.n_iter_)

    def _starts(self, D: Array) -> Any:
        """Yield coordinates to start from."""
        n = len(D)
        k = self.n_components
        if self._given is not None:
            if self._given.ndim != 2 or len(self._given) != n or not np.isfinite(self._given).all():
                raise DataError(f"MDS: init matrix should be of shape ({n}, {k}), without NaN.")
            yield self._given - self._given.mean(axis=0)
            return
        if self.init == "random":
            rng = as_generator(self.random_state)
            scale = float(np.sqrt((D**2).mean())) or 1.0
            for _ in range(self.n_init):
                X = rng.uniform(-0.5, 0.5, (n, k)) * scale
                yield X - X.mean(axis=0)
            return
        pairs = symmetric_pairs(centred_products(D**2), min(k, n), owner="MDS")
        X = np.zeros((n, k))
        X[:, : len(pairs.values)] = pairs.vectors * np.sqrt(np.maximum(pairs.values, 0.0))
        yield X

    def transform(self, X: Any) -> Array:
        """Return the coordinates of new rows, each where its own stress is least.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Rows; with metric="precomputed" their dissimilarities to the rows of the fit.

        Returns
        -------
        array of shape (n_samples, n_components)
            Coordinates; of a row of the fit, its own. Float32 for float32.
        """
        check_is_fitted(self)
        rows = read_features(self, X)
        away = self._distances_of_new(rows)
        targets = away
        if hasattr(self, "steps_"):
            # A dissimilarity of the fit, known up to rounding, belongs to its own level.
            levels = np.searchsorted(self.steps_[:, 0] * (1.0 + 1e-9), away)
            targets = self.steps_[np.minimum(levels, len(self.steps_) - 1), 1]
        found = place_by_stress(targets, self.embedding_)
        nearest = away.argmin(axis=1)
        same = away[np.arange(len(away)), nearest] <= 1e-7 * away.max(axis=1, initial=0.0)
        found[same] = self.embedding_[nearest[same]]
        return np.asarray(found, dtype=rows.dtype)

    _laws = laws(
        law(
            "dissimilarity_matrix_ and X_fit_ must have a row for each row of embedding_",
            lambda model: (
                model.dissimilarity_matrix_.shape == (len(model.embedding_),) * 2
                and model.X_fit_.shape[0] == len(model.embedding_)
            ),
        ),
        law("stress_history_ is empty", lambda model: model.stress_history_.size),
    )


def principal_axes(X: Array) -> Array:
    """Return coordinates turned to their principal axes, the longest first, and moved to mean zero."""
    away = X - X.mean(axis=0)
    turned = np.ascontiguousarray(away @ np.linalg.svd(away, full_matrices=False)[2].T)
    found = np.zeros_like(X)
    found[:, : turned.shape[1]] = turned
    fix_signs(found)
    return found


def _levels(values: Array, function: Array) -> Array:
    """Return the ends and heights of the runs on which an increasing function is constant."""
    last = np.append(function[1:] != function[:-1], True)
    return np.column_stack([values[last], function[last]])


def place_by_stress(targets: Array, embedding: Array) -> Array:
    """Return points with least Σⱼ (tⱼ − ‖z − xⱼ‖)² for each row of targets, by majorisation from the nearest row."""
    found = embedding[targets.argmin(axis=1)].copy()
    size = float(np.abs(embedding).max(initial=0.0)) or 1.0
    centre = embedding.mean(axis=0)
    left = np.arange(len(found))
    for _ in range(_PLACING_STEPS):
        away = found[left, None] - embedding
        distance = np.sqrt((away**2).sum(axis=2))
        ratio = np.where(distance > 0, targets[left] / np.where(distance > 0, distance, 1.0), 0.0)
        moved = centre + (ratio[:, :, None] * away).mean(axis=1)
        step = np.abs(moved - found[left]).max(axis=1)
        found[left] = moved
        left = left[step > _PLACED * size]
        if not len(left):
            break
    return found
