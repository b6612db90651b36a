r"""t-SNE: a picture in which near rows are near, by affinities of heavy tails.

Row i has affinities pⱼ|ᵢ ∝ exp(−βᵢ‖xᵢ − xⱼ‖²) to its neighbours, βᵢ such that exp(entropy) is the perplexity;
pᵢⱼ = (pⱼ|ᵢ + pᵢ|ⱼ)/2n. The picture has affinities qᵢⱼ ∝ 1/(1 + ‖yᵢ − yⱼ‖²), and

    KL(P‖Q) = Σᵢⱼ pᵢⱼ log(pᵢⱼ/qᵢⱼ)

is lowered by steps against its gradient with momentum and a gain for each coordinate. In the first 250 steps P is
multiplied by the exaggeration, which lets clusters find together. The forces are in `tsne_forces`.

References: L. van der Maaten and G. Hinton, Visualizing data using t-SNE, JMLR 9 (2008); G. Linderman and others, Fast
interpolation-based t-SNE, Nature Methods 16 (2019); A. Belkina and others, Automated optimized parameters for t-SNE,
Nature Communications 10 (2019) (step length); D. Kobak and P. Berens, The art of using t-SNE, ibid. (start at PCA).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..core.declare import (
    MAX_SECONDS,
    N_JOBS,
    RANDOM_STATE,
    TOLERANCE,
    Boolean,
    Matches,
    Number,
    Options,
    fitted,
    param,
)
from ..core.errors import DataError, ParameterError
from ..core.estimator import Certificate, Progress, Run
from ..core.loaded import law, laws
from ..core.threads import TaskTeam, resolve_n_jobs
from ..data.door import Table, read_features, refuse_tiny_sizes
from ..meta.splits import as_generator
from ..neighbors import NearestNeighbors
from ._kernels import LANES, nearby_order
from ._tsne_kernels import place_rows
from .base import SEARCHES_ROWS, Embedding, rows_in_memory
from .graphs import fit_neighbours
from .pca import PCA
from .scaling import METRIC, METRIC_PARAMS
from .tsne_forces import (
    FEW_ROWS,
    Edges,
    Grid,
    attraction,
    attraction_and_logs,
    conditional_affinities,
    joint_affinities,
    repulsion_of_pairs,
)

Array = NDArray[np.float64]

#: Steps with exaggeration, and between two looks at the KL divergence.
EXPLORATION = 250
_LOOK = 50
#: Momentum of the two phases.
_MOMENTA = (0.5, 0.8)
#: Gains grow by the first and shrink by the second, as a coordinate keeps or turns its direction; the least.
_GROW = 0.2
_SHRINK = 0.8
_LEAST_GAIN = 0.01
#: No row moves further than this in a step: the last phase has steps of n/4 times the gradient.
_LONGEST_STEP = 5.0
#: Deviation of the start.
_START = 1e-4
#: Rows up to which the divergence and the certificate are computed from all pairs: 20,000 rows take 0.4 s of one core.
_ALL_PAIRS = 100_000
#: Steps to place a new row.
_PLACING_STEPS = 100
#: New rows of one task.
_PLACED = 16


class TSNE(Embedding):
    r"""t-distributed stochastic neighbour embedding: min KL(P‖Q), see the top of the file.

    Neighbours in the picture are neighbours in the data. Sizes of clusters and distances between them mean little, and
    another start may give another picture: the objective is not convex. `kl_divergence_` is computed from all pairs (up
    to 100,000 rows). `transform` places each new row by its affinities to the rows of the fit, which stay; rows do
    not affect each other, and a row of the fit gets its own coordinates.

    The repulsion is summed over all pairs ("exact", or more than two dimensions) or through a grid and Fourier
    transforms ("interpolation"): time O(n) for each step and O(n² d) for the search of neighbours, memory
    O(n · perplexity). "barnes_hut", scikit-learn's name, is "interpolation" from 1,500 rows on, and below that takes
    all pairs, which are sooner summed. "exact" also has affinities between all rows: time and memory O(n²).

    Unlike in scikit-learn, any number of dimensions goes with any method, the automatic step grows by the exaggeration
    when that ends (as in openTSNE), no row moves more than 5 in a step, new rows can be placed, and the coordinates of
    float64 rows are float64.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.manifold import TSNE
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(size=(30, 4)), rng.normal(size=(30, 4)) + 20.0])
    >>> Y = TSNE(perplexity=10, random_state=0).fit_transform(X)
    >>> centres = Y[:30].mean(axis=0), Y[30:].mean(axis=0)
    >>> nearer = np.linalg.norm(Y - centres[0], axis=1) < np.linalg.norm(Y - centres[1], axis=1)
    >>> bool((nearer == (np.arange(60) < 30)).all())
    True
    """

    _theory = "neighbour-affinities"

    n_components: int = param(Number(low=1, integer=True), "Dimensions.", default=2, kw_only=False)
    perplexity: float = param(
        Number(low=0.0, low_open=True),
        "Neighbours of a row, in effect: exp of the entropy of its affinities. Up to 1 only the nearest row counts.",
        default=30.0,
    )
    early_exaggeration: float = param(Number(low=1.0), "Factor of P in the first 250 steps.", default=12.0)
    learning_rate: Any = param(
        Options("auto") | Number(low=0.0, low_open=True),
        'Step length; "auto" is n/4, divided by the exaggeration while there is one, and at least 50.',
        default="auto",
    )
    max_iter: int = param(Number(low=1, integer=True), "Steps of both phases.", default=1000)
    n_iter_without_progress: int = param(
        Number(low=-1, integer=True), "Steps end when the divergence has not fallen for so many.", default=300
    )
    min_grad_norm: float = param(Number(low=0.0), "Steps end when the gradient is as short as this.", default=1e-7)
    metric: Any = param(METRIC, 'A metric of `NearestNeighbors`, or "precomputed".', default="euclidean")
    metric_params: Any = param(METRIC_PARAMS, "Further parameters of the metric.", default=None)
    init: Any = param(
        Options("pca", "random") | Matches(lambda v: isinstance(v, np.ndarray), "an array of coordinates"),
        "Where to start: at the first components, scaled to 1e-4, or at random, or at given coordinates.",
        default="pca",
    )
    verbose: int = param(Number(low=0, integer=True) | Boolean(), "Kept for compatibility.", default=0)
    random_state: Any = param(RANDOM_STATE, "Draws a random start.", default=None)
    method: str = param(
        Options("barnes_hut", "interpolation", "exact"),
        '"interpolation": affinities of 3 · perplexity neighbours, repulsion through a grid; "barnes_hut": the same, '
        'but all pairs of few rows; "exact": all pairs.',
        default="barnes_hut",
    )
    angle: float = param(Number(low=0.0, high=1.0), "Kept for compatibility: there is no tree.", default=0.5)
    n_jobs: int | None = param(N_JOBS, "Threads; the result does not depend on it.", default=None)
    tol: float = param(
        TOLERANCE, "Share of the attraction that may be left of the gradient, for the certificate alone.", default=0.1
    )
    max_seconds: float | None = param(MAX_SECONDS, "Time after which the steps end.", default=None)

    kl_divergence_: float = fitted("()", "KL(P‖Q) at the end.")
    learning_rate_: float = fitted("()", "Step length after the exaggeration.", low=0.0)
    n_iter_: int = fitted("int", "Steps.")
    nbrs_: NearestNeighbors = fitted("NearestNeighbors", "The search over the rows.")
    neighbors_: NDArray[np.int32] = fitted(
        "(n_rows, k)",
        "The rows to which each has affinities, the nearest first; not kept where these are all.",
        kind="i",
        low=0,
        optional=True,
    )
    certificate_: Certificate = fitted(
        "Certificate", "`stationarity`: length of the gradient as a share of the length of its attracting part."
    )

    _remedy = "raise max_iter, or tol"

    def _fit(self, table: Table, run: Run) -> Certificate:
        X = rows_in_memory("TSNE", table)
        n = table.n_rows
        self._check(X, n)
        self.nbrs_ = fit_neighbours(
            "TSNE", X, min(n - 1, 1), self.n_jobs, metric=self.metric, metric_params=self.metric_params
        )
        start = self._start(X, n)
        with TaskTeam(resolve_n_jobs(self.n_jobs)) as team:
            P = self._affinities(n, team)
            # Rows that lie together follow each other: the rows at the ends of an edge then share lines of the cache.
            order = np.empty(n, dtype=np.int64)
            nearby_order(P.indptr.astype(np.int64), P.indices.astype(np.int32), LANES, order)
            edges = Edges.of(P[order][:, order])
            few = self.method == "barnes_hut" and n < FEW_ROWS
            pairs = self.method == "exact" or few or self.n_components > 2

            def exactly(Y: Array) -> tuple[Array, float]:
                return repulsion_of_pairs(Y, team)

            repulsion = exactly if pairs else Grid(team).repulsion
            plan = self._plan(n)
            self.learning_rate_ = plan.rates[1]
            Y, self.n_iter_ = descend(edges, start[order], repulsion, plan, team, run.progress)
            found = balance(edges, Y, exactly if n <= _ALL_PAIRS else repulsion, team)
        self.kl_divergence_ = found.divergence
        self.embedding_ = np.empty_like(Y)
        self.embedding_[order] = Y
        return Certificate("stationarity", found.share, self.tol, n_iter=self.n_iter_)

    def _check(self, X: Any, n: int) -> None:
        """Raise where parameters and rows do not go together."""
        refuse_tiny_sizes("TSNE", X=X.data if sp.issparse(X) else X)
        if self.perplexity >= n:
            raise ParameterError(
                f"TSNE: perplexity ({self.perplexity}) must be less than n_samples ({n}); use at most "
                f"{max(1, (n - 1) // 3)}."
            )
        if isinstance(self.metric, str) and self.metric == "precomputed":
            if isinstance(self.init, str) and self.init == "pca":
                raise ParameterError(
                    'TSNE: The parameter init="pca" cannot be used with metric="precomputed": there are no columns; '
                    'use init="random".'
                )
            numbers = X.data if sp.issparse(X) else X
            if (numbers < 0).any():
                raise DataError("TSNE: All distances should be positive; a distance of X is negative.")
            if X.shape[0] != X.shape[1]:
                raise DataError(f"TSNE: X should be a square distance matrix; got shape {X.shape}.")

    def _start(self, X: Any, n: int) -> Array:
        """Return the coordinates to start from."""
        k = self.n_components
        if isinstance(self.init, np.ndarray):
            given = np.array(self.init, dtype=np.float64)
            if given.shape != (n, k) or not np.isfinite(given).all():
                raise DataError(f"TSNE: init must be finite numbers of shape ({n}, {k}); got shape {given.shape}.")
            return given
        if self.init == "random":
            return np.asarray(_START * as_generator(self.random_state).standard_normal((n, k)))
        if k > min(X.shape):
            raise ParameterError(
                f'TSNE: init="pca" has at most min(n_samples, n_features) = {min(X.shape)} components; got '
                f'n_components={k}; use init="random".'
            )
        scores = np.asarray(PCA(k).fit_transform(X), dtype=np.float64)
        deviation = float(scores[:, 0].std())
        return scores * (_START / deviation) if deviation > 0 else scores

    def _affinities(self, n: int, team: TaskTeam) -> sp.csr_array:
        """Return P."""
        distances, rows = self.nbrs_.kneighbors(n_neighbors=self._n_neighbours(n - 1))
        if (distances < 0).any():
            raise DataError(
                f"TSNE: All distances should be positive, the metric given is not correct: {self.metric!r} gives "
                f"{distances.min():.3g}."
            )
        if self.method != "exact":
            self.neighbors_ = rows.astype(np.int32)
        return joint_affinities(conditional_affinities(distances**2, self.perplexity, team), rows)

    def _n_neighbours(self, most: int) -> int:
        """Return how many rows have affinities to one."""
        return most if self.method == "exact" else min(most, int(3.0 * self.perplexity + 1.0))

    def _plan(self, n: int) -> Plan:
        rates = (float(self.learning_rate),) * 2 if self.learning_rate != "auto" else _automatic_rates(n, self)
        patience = (EXPLORATION, self.n_iter_without_progress)
        return Plan((self.early_exaggeration, 1.0), rates, patience, self.max_iter, self.min_grad_norm)

    def transform(self, X: Any) -> Array:
        """Return the coordinates of new rows, each where its own divergence is least, the rows of the fit fixed.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Rows; with metric="precomputed" their distances to the rows of the fit.

        Returns
        -------
        array of shape (n_samples, n_components)
            Coordinates; of a row of the fit, its own. Float32 for float32.
        """
        check_is_fitted(self)
        new = read_features(self, X)
        n = len(self.embedding_)
        k = min(n, int(3.0 * self.perplexity + 1.0))
        distances, rows = self.nbrs_.kneighbors(new, n_neighbors=k)
        rows = np.ascontiguousarray(rows, dtype=np.int64)
        found = np.empty((len(rows), self.embedding_.shape[1]))
        columns = np.ascontiguousarray(self.embedding_.T)
        with TaskTeam(resolve_n_jobs(self.n_jobs)) as team:
            P = conditional_affinities(distances**2, self.perplexity, team)

            def work(task: int) -> None:
                part = slice(task * _PLACED, (task + 1) * _PLACED)
                weights = np.empty(n)
                points = np.empty((4, columns.shape[0]))
                place_rows(P[part], rows[part], columns, _PLACING_STEPS, weights, points, found[part])

            team.run(work, -(-len(rows) // _PLACED))
        same = distances[:, 0] == 0
        found[same] = self.embedding_[rows[same, 0]]
        return np.asarray(found, dtype=new.dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.metric, str) and self.metric == "precomputed"
        return tags

    _laws = laws(
        SEARCHES_ROWS,
        law("neighbors_ is missing", lambda model: hasattr(model, "neighbors_") or model.method == "exact"),
        law(
            "neighbors_ must be numbers of rows, for each row of embedding_",
            lambda model: len(model.neighbors_) == len(model.embedding_) > model.neighbors_.max(initial=0),
            "neighbors_",
        ),
    )


class Plan(NamedTuple):
    """The two phases of the steps, with exaggeration and without."""

    exaggerations: tuple[float, float]
    rates: tuple[float, float]  #: step lengths
    patience: tuple[int, int]  #: steps without a lower divergence that end the phase
    max_iter: int  #: of both together
    min_grad_norm: float


class Balance(NamedTuple):
    """What is known of a picture."""

    divergence: float  #: KL(P‖Q)
    share: float  #: ‖gradient‖ / ‖its attracting part‖


Repulsion = Callable[[Array], tuple[Array, float]]


def _automatic_rates(n: int, model: TSNE) -> tuple[float, float]:
    return max(n / model.early_exaggeration / 4.0, 50.0), max(n / 4.0, 50.0)


def gradient(edges: Edges, Y: Array, repulsion: Repulsion, exaggeration: float, team: TaskTeam) -> Array:
    """Return the gradient of the divergence, with exaggerated attraction."""
    pushed, Z = repulsion(Y)
    return np.asarray(4.0 * (exaggeration * attraction(edges, Y, team) - pushed / max(Z, 1e-300)))


def balance(edges: Edges, Y: Array, repulsion: Repulsion, team: TaskTeam) -> Balance:
    """Return the divergence of a picture, and how far attraction and repulsion are from cancelling."""
    pulled, logs = attraction_and_logs(edges, Y, team)
    pushed, Z = repulsion(Y)
    size = float(np.linalg.norm(pulled))
    left = float(np.linalg.norm(pulled - pushed / max(Z, 1e-300)))
    return Balance(logs + float(np.log(max(Z, 1e-300))) - edges.entropy, left / size if size > 0 else 0.0)


def descend(
    edges: Edges, Y: Array, repulsion: Repulsion, plan: Plan, team: TaskTeam, progress: Progress
) -> tuple[Array, int]:
    """Return the coordinates after both phases of steps, and how many were taken."""
    Y = Y - Y.mean(axis=0)
    done = 0
    for phase in range(2):
        last = plan.max_iter if phase else min(EXPLORATION, plan.max_iter)
        exaggeration = plan.exaggerations[phase]
        moved = np.zeros_like(Y)
        gains = np.ones_like(Y)
        best = np.inf
        best_step = done
        while done < last:
            slope = gradient(edges, Y, repulsion, exaggeration, team)
            size = float(np.linalg.norm(slope))
            turned = (moved > 0) == (slope > 0)
            gains = np.maximum(np.where(turned, gains * _SHRINK, gains + _GROW), _LEAST_GAIN)
            moved = _MOMENTA[phase] * moved - plan.rates[phase] * gains * slope
            length = np.sqrt(np.einsum("ij,ij->i", moved, moved))
            if length.max(initial=0.0) > _LONGEST_STEP:
                moved *= (_LONGEST_STEP / np.maximum(length, _LONGEST_STEP))[:, None]
            Y += moved
            Y -= np.einsum("ij->j", Y) / len(Y)  # reductions along the first of two columns are slow
            done += 1
            if progress(done, size):
                return Y, done
            if done % _LOOK == 0:
                reached = balance(edges, Y, repulsion, team).divergence
                if reached < best:
                    best = reached
                    best_step = done
                elif done - best_step > plan.patience[phase]:
                    break
                if size <= plan.min_grad_norm:
                    break
    return Y, done
