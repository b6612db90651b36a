"""What every mixture does with log πₖ + log pₖ(x): assignments, densities, criteria; and rows of known component."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from ..core import (
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
    Number,
    Options,
    ParameterError,
    fitted,
    param,
)
from ..data import Blocks, Part, Table
from ..data.sources import rowwise
from ..meta.splits import as_generator
from .normals import normalise, whitening_factors


class MixtureBase(DensityMixin, Estimator):
    """Base of the mixtures; they give `_log_joint(X)`, (K, n), and `_draw(counts, rng)`, rows of each component."""

    n_components: int = param(Number(low=1, integer=True), "K.", default=1, kw_only=False)
    tol: float = param(
        TOLERANCE, "A climb ends when a step adds no more than this to the objective per unit of weight.", default=1e-3
    )
    max_iter: int = param(MAX_ITER, "Steps of one restart.", default=100)
    n_init: int = param(Number(low=1, integer=True), "Restarts, of which the best is kept.", default=1)
    init_params: str = param(
        Options("kmeans", "k-means++", "random", "random_from_data"), "How responsibilities start.", default="kmeans"
    )
    random_state: Any = param(RANDOM_STATE, "Draws the starts.", default=None)
    warm_start: bool = param(Boolean(), "Whether a fit starts where the last one ended.", default=False)
    max_seconds: float | None = param(MAX_SECONDS, "Time after which the best so far is returned.", default=None)
    n_jobs: int | None = param(
        N_JOBS, "Threads; None uses all that BLAS may use. The result does not depend on it.", default=None
    )

    weights_: AnyArray = fitted("(n_components,)", "Shares of the components.", low=0.0, high=1.0)
    bound_history_: AnyArray = fitted(
        "(n_steps,)", "`lower_bound_` at the start and after each step; never falls.", finite=False
    )
    lower_bound_: float = fitted("float", "The objective per unit of weight.")
    converged_: bool = fitted("bool", "Whether the tolerance was reached.")
    n_iter_: int = fitted("int", "Steps of the best restart.")
    known_labels_: AnyArray = fitted(
        "array of shape (n_samples,)", "The `labels` of the rows with weight, if any were given.", optional=True
    )
    certificate_: Certificate = fitted("Certificate", "`ascent`: what one more step would add to `lower_bound_`.")

    @property
    def lower_bounds_(self) -> list[float]:
        """The objective at the start and after each step, as scikit-learn names it."""
        return [float(bound) for bound in self.bound_history_]

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, labels: Any = None) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : array, dataframe, path or Dask collection of shape (n_samples, n_features)
            Rows.
        y : ignored
            For compatibility.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights; with a frame, the name of a column.
        labels : array of shape (n_samples,), optional
            The component of each row where it is known, −1 where it is not; rows in memory only.
        """
        self._labels = None if labels is None else np.asarray(labels)
        try:
            return super().fit(X, None, sample_weight)
        finally:
            del self._labels

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> AnyArray:
        """Fit, and return the most probable component of each row."""
        return np.asarray(self.fit(X, y, sample_weight).predict(X))

    @rowwise
    def predict(self, X: Any) -> AnyArray:
        """Return the most probable component of each row (hard assignment)."""
        return self._log_joint(X).argmax(axis=0)

    @rowwise
    def predict_proba(self, X: Any) -> AnyArray:
        """Return the probability of each component given the row (soft assignment), (n_samples, n_components).

        A row that no component can have produced says nothing: its probabilities are the weights.
        """
        logs = self._log_joint(X)
        impossible = np.isneginf(logs.max(axis=0))
        if impossible.any():
            logs[:, impossible] = np.log(np.maximum(self.weights_, 1e-300))[:, None]
        return np.ascontiguousarray(normalise(logs)[1].T)

    @rowwise
    def score_samples(self, X: Any) -> AnyArray:
        """Return log p(x) of each row."""
        return log_sums(self._log_joint(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of log p(x)."""
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[AnyArray, AnyArray]:
        """Draw rows, ordered by component, and the components they come from.

        Parameters
        ----------
        n_samples : int
            How many.
        random_state : int, Generator or None
            By default the model's own.
        """
        check_is_fitted(self)
        if not Number(low=1, integer=True).allows(n_samples):
            raise ParameterError(
                f"{type(self).__name__}: Invalid value for 'n_samples': it must be an integer >= 1; got {n_samples!r}."
            )
        rng = as_generator(self.random_state if random_state is None else random_state)
        counts = rng.multinomial(n_samples, self.weights_)
        return self._draw(counts, rng), np.repeat(np.arange(self.n_components), counts)

    def _log_joint(self, X: Any) -> AnyArray:
        raise NotImplementedError

    def _draw(self, counts: AnyArray, rng: np.random.Generator) -> AnyArray:
        raise NotImplementedError

    def _blocks(self, table: Table) -> tuple[Any, AnyArray | None]:
        """Return the rows, with their known components as targets if there are any, and these."""
        labels = self._labels
        owner = type(self).__name__
        if labels is None:
            return table.blocks, None
        if table.X is None:
            raise DataError(f"{owner}: labels need the rows in memory. Read the table, and pass a dataframe.")
        n = len(table.kept) if table.kept is not None else table.n_rows
        if labels.shape != (n,) or labels.dtype.kind not in "iu":
            raise DataError(f"{owner}: labels must be one integer per row, ({n},); got {labels.dtype} {labels.shape}.")
        if labels.min() < -1 or labels.max() >= self.n_components:
            raise DataError(f"{owner}: labels must lie between -1 (unknown) and {self.n_components - 1}.")
        known = labels.astype(np.int64) if table.kept is None else labels[table.kept].astype(np.int64)
        return Blocks([Part(table.X, known, table.weight)]), known


def log_sums(logs: AnyArray) -> AnyArray:
    """Return log Σₖ exp of a (K, m) array; −inf where all are."""
    top = logs.max(axis=0)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(np.exp(logs - top).sum(axis=0)))


class InformationCriteria:
    """AIC and BIC of models that give `score_samples(X)` and `_n_parameters()`."""

    def aic(self, X: Any) -> float:
        """Return Akaike's criterion, 2(number of parameters) − 2 log-likelihood; lower is better."""
        return 2 * self._n_parameters() - 2 * float(np.sum(self.score_samples(X)))

    def bic(self, X: Any) -> float:
        """Return the Bayesian criterion, log(n)·(number of parameters) − 2 log-likelihood; lower is better."""
        scores = self.score_samples(X)
        return self._n_parameters() * float(np.log(len(scores))) - 2 * float(np.sum(scores))

    score_samples: Any

    def _n_parameters(self) -> int:
        raise NotImplementedError


def precisions_of(owner: str, kind: str, covariances: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return Σ⁻¹ in the shape of Σ, and upper triangular U with UUᵀ = Σ⁻¹ (its root for diagonal types)."""
    if kind in ("diag", "spherical"):
        return 1 / covariances, np.sqrt(1 / covariances)
    d = covariances.shape[-1]
    roots = whitening_factors(owner, covariances.reshape(-1, d, d))
    upper = np.ascontiguousarray(np.swapaxes(roots, 1, 2)).reshape(covariances.shape)
    return upper @ np.swapaxes(upper, -1, -2), upper
