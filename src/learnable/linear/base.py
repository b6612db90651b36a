"""What all linear models share: coefficients, predictions from them, and the invariants of a loaded model.

A table of float32 numbers gets float32 coefficients, as in scikit-learn. Fits compute in float64; their result is
rounded, the intercept is computed again for the rounded coefficients, in float64, and the certificate is measured
again: it speaks of the numbers that are stored. Where it does not survive the rounding, the coefficients stay float64.

A duality gap needs a dual point, ‖Σ r x‖ ≤ λ. Where columns or targets are huge, λ may be far below the last digit of
that sum. What rounding may do to a gap is bounded from sums that are at hand; only where the bound is above the
tolerance are the sums computed again, from the rows, in extended precision (`long_rows`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..core import (
    MAX_ITER,
    MAX_SECONDS,
    N_JOBS,
    RANDOM_STATE,
    Array,
    Boolean,
    DataError,
    Estimator,
    Matches,
    NDArray,
    Nothing,
    Number,
    Options,
    Run,
    fitted,
    is_labels,
    law,
    laws,
    optional,
    param,
    tags,
)
from ..data.blocks import Blocks, Part
from ..data.door import SMALLEST_ENTRY, Table, read_features
from ..data.sources import NamedScore, rowwise
from ..risk.penalties import LinearLikelihood
from ..solvers.systems.moments import relative_residual, residual_sums
from ..solvers.systems.normal_equations import column_sums, iterative_fit, optimality
from ..solvers.systems.orthogonal import LinearFit
from . import descent

Long = NDArray[np.longdouble]
SUM_ROUNDING = 2.0**-51  # of a sum of products: two last digits
FINEST_CLAIM = 1e-9  # tolerance below which rounding does not count against a claim
_CHUNK = 2**20  # numbers in extended precision at a time

CLASS_WEIGHT = Nothing() | Options("balanced") | Matches(lambda v: isinstance(v, dict), "a dict of weights")
VERBOSE = Boolean() | Number(low=0, integer=True)

#: The default tolerance. Its type tells it from the same number given by the user.
DEFAULT_TOLERANCE = np.float64(1e-8)
#: Share of an explicit tolerance that the gradient may have: another solver may land anywhere below the tolerance.
GRADIENT_MARGIN = 0.1


def is_explicit(tol: float) -> bool:
    """Tell whether a tolerance was given: the gradient then counts as well as the gap, as in scikit-learn."""
    return not (isinstance(tol, np.float64) and tol == DEFAULT_TOLERANCE)


class LinearModel(Estimator):
    """A model that predicts from the score b + Xβ."""

    fit_intercept: bool = param(Boolean(), "Whether b is free or zero.", default=True)
    n_jobs: int | None = param(
        N_JOBS, "Threads; None uses all that BLAS may use. The result does not depend on it.", default=None
    )
    max_seconds: float | None = param(MAX_SECONDS, "Time after which the best so far is returned.", default=None)
    coef_: Any = fitted("(n_features,) or (n_targets, n_features)", "β.")
    intercept_: Any = fitted("() or (1,) or (n_targets,)", "b.")
    _tags = tags(sparse=True)

    def _score_rows(self, X: Any) -> Array:
        X = read_features(self, X)
        scores = X @ self.coef_.T
        scores = np.asarray(scores.toarray() if sp.issparse(scores) else scores)
        # Single where rows and coefficients are; the intercept, which may be float64 there, adds its own digits first.
        return np.asarray(scores + self.intercept_).astype(scores.dtype, copy=False)

    _laws = laws(
        law("n_features_in_ must be an integer", lambda model: isinstance(model.n_features_in_, int), "coef_"),
        law(
            "intercept_ does not fit coef_ of shape {model.coef_.shape}",
            lambda model: np.shape(model.intercept_) in ((), (1,), model.coef_.shape[:-1]),
            "coef_",
        ),
    )


class IterativeModel(LinearModel):
    """A linear model that can start from the last fit."""

    verbose: int = param(VERBOSE, "Kept for compatibility; progress comes through `set_callbacks`.", default=0)
    warm_start: bool = param(Boolean(), "Start from the last fit's coefficients.", default=False)


class LinearClassifierModel(NamedScore, ClassifierMixin, IterativeModel):
    """A classifier by the sign of one linear score, or by the largest of several."""

    #: Whether two classes have coefficients of shape (n_features,), which is scikit-learn's choice for ridge only.
    _one_score_is_flat = False
    _fewest_classes = 2

    class_weight: Any = param(CLASS_WEIGHT, "Weights of the classes, multiplied onto the sample weights.", default=None)
    classes_: NDArray[Any] = fitted("array of shape (n_classes,)", "The labels.")
    coef_: Any = fitted("(1, n_features) or (n_classes, n_features)", "The weights W; sparse after `sparsify`.")
    intercept_: Any = fitted("(1,) or (n_classes,)", "b.")

    def sparsify(self) -> Self:
        """Keep `coef_` as a sparse array, which saves memory where most coefficients are zero."""
        check_is_fitted(self)
        self.coef_ = sp.csr_array(self.coef_)
        return self

    def densify(self) -> Self:
        """Keep `coef_` as a plain array again."""
        check_is_fitted(self)
        if sp.issparse(self.coef_):
            self.coef_ = self.coef_.toarray()
        return self

    @rowwise
    def decision_function(self, X: Any) -> Array:
        """Return the scores b + Wx: of shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        scores = self._score_rows(X)
        return scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores

    @rowwise
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each row: that of a positive score, or of the largest."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def _n_scores(self, n_classes: int) -> int:
        """Return how many scores a row has: one decides between two classes."""
        return 1 if n_classes <= 2 else n_classes

    _laws = laws(
        law(
            "classes_ must hold at least two labels",
            lambda model: is_labels(model.classes_, model._fewest_classes),
            "coef_",
        ),
        law(
            "coef_ of shape {model.coef_.shape} does not fit classes_",
            lambda model: model._rows_of_coef() == model._n_scores(len(model.classes_)),
            "coef_",
        ),
        law(
            "intercept_ must have one number per row of coef_",
            lambda model: np.shape(model.intercept_) in ((), (model._rows_of_coef(),)),
            "coef_",
        ),
    )

    def _rows_of_coef(self) -> int:
        """Return the number of scores that `coef_` has; 0 where it has not the shape of weights."""
        if self.coef_.ndim == 1:
            return 1 if self._one_score_is_flat else 0
        return self.coef_.shape[0] if self.coef_.ndim == 2 else 0


class LikelihoodModel:
    """Mixin of models whose unpenalised fit maximises a likelihood."""

    def summary(self, X: Any, y: Any, sample_weight: Any = None, **options: Any) -> Any:
        """Return estimates, standard errors, tests and intervals of the coefficients, printable as a table.

        Parameters
        ----------
        X, y, sample_weight : arrays, or a dataframe and names of columns
            The rows of the fit.
        **options
            Those of `infer`: robust and clustered errors, what weights mean, the level.
        """
        from .inference.infer import infer

        return infer(self, X, y, sample_weight=sample_weight, **options)


class LinearRegressorModel(LinearModel):
    """A linear model of one or several real targets."""

    #: scikit-learn's ridge models treat y of shape (n, 1) like y of shape (n,); its least squares does not.
    _flattens_one_column = False

    @rowwise
    def predict(self, X: Any) -> Array:
        """Return the predictions b + Xβ.

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets)
            The predicted targets; of a Dask array or frame a lazy array or series.
        """
        return self._score_rows(X)

    def _set_coefficients(
        self, coef: Array, intercept: Array, y_shape: tuple[int, ...], *, single: bool = False
    ) -> None:
        """Store (d, k) coefficients the way scikit-learn shows them: flat when y was one column.

        `single` stores coefficients that were rounded to float32 as such.
        """
        if y_shape == () or (self._flattens_one_column and y_shape == (1,)):
            self.coef_ = coef[:, 0].copy()
            self.intercept_ = np.float64(intercept[0]) if y_shape == () else intercept.copy()
        else:
            self.coef_ = np.ascontiguousarray(coef.T)
            self.intercept_ = intercept.copy()
        if not getattr(self, "fit_intercept", True):
            self.intercept_ = np.float64(0.0)
        if single:
            self.coef_ = self.coef_.astype(np.float32)
        if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
            column = int(np.argmax(~np.isfinite(coef).all(axis=1)))
            raise DataError(
                f"{type(self).__name__}: the coefficient of column {column} is beyond the range of float64; rescale it."
            )


class LeastSquaresModel(NamedScore, MultiOutputMixin, RegressorMixin, LinearRegressorModel):
    """A linear model of the squared loss that conjugate gradients or descent can find where no direct method does."""

    copy_X: bool = param(Boolean(), "Kept for compatibility; X is never changed.", default=True)
    max_iter: int | None = param(
        optional(MAX_ITER),
        'Most conjugate-gradient steps for each target; of "gd" steps (10,000), of "sgd" epochs (100).',
        default=None,
    )
    random_state: Any = param(RANDOM_STATE, 'Order of the rows in "sgd"; nothing else is random.', default=None)
    batch_size: int = param(
        MAX_ITER, 'Rows of a mini-batch of "sgd"; an epoch has exactly ⌊n/batch_size⌋.', default=descent.BATCH_SIZE
    )

    def _likelihood(self, sum_of_weights: float) -> LinearLikelihood:
        """Return the normal likelihood; α‖w‖² beside the squares is a prior of variance σ²/α."""
        return LinearLikelihood("normal", float(np.ravel(getattr(self, "alpha", 0.0))[0]), in_units_of_noise=True)

    def _iterate(self, blocks: Blocks, alpha: float, run: Run) -> LinearFit:
        """Solve by conjugate gradients, or by (stochastic) gradient descent, with this model's limits."""
        try:
            if self.solver in descent.SOLVERS:
                return descent.descend_least_squares(
                    blocks,
                    alpha,
                    self.solver,
                    intercept=self.fit_intercept,
                    tol=self.tol,
                    max_iter=self.max_iter,
                    batch_size=self.batch_size,
                    random_state=self.random_state,
                    n_jobs=self.n_jobs,
                    progress=run.progress,
                )
            return iterative_fit(
                blocks,
                alpha,
                intercept=self.fit_intercept,
                tol=self.tol,
                max_iter=self.max_iter,
                n_jobs=self.n_jobs,
                progress=run.progress,
                strict=self._asks_for_digits(),
            )
        except OverflowError as error:
            raise DataError(f"{type(self).__name__}: {error}; rescale them, or use a direct solver.") from error

    def _asks_for_digits(self) -> bool:
        """Tell whether `tol` bounds the gradient too, as the same number does in scikit-learn."""
        return False


def weighted_blocks(table: Table, of_class: Array | None) -> Any:
    """Return the rows with their weights times the weight of their class."""
    if of_class is None:
        return table.blocks
    if not table.in_memory:
        return table.blocks.reweighted(of_class)
    weight = of_class[table.y] if table.weight is None else table.weight * of_class[table.y]
    return Blocks([Part(table.X, table.y, weight)])


def in_units_of_columns(blocks: Blocks) -> tuple[Blocks, Array]:
    """Return the rows with tiny columns multiplied by powers of two, so that their squares do not underflow."""
    X, y, weight = blocks.joined()
    sparse = hasattr(X, "indptr")
    if sparse:
        reach = np.asarray(abs(X).max(axis=0).toarray(), dtype=np.float64).ravel()
    else:
        reach = np.maximum(X.max(axis=0, initial=0.0), -X.min(axis=0, initial=0.0)).astype(np.float64)
    tiny = (reach > 0) & (reach < SMALLEST_ENTRY)
    if not tiny.any():
        return blocks, np.ones(1)
    units = np.where(tiny, 2.0 ** np.clip(-np.frexp(reach)[1].astype(np.float64), 0, 1000), 1.0)
    scaled = X.astype(np.float64).multiply(units[None, :]).tocsr() if sparse else X.astype(np.float64) * units
    return Blocks([Part(scaled, y, weight)]), units


def in_range(coef: Array, owner: str) -> Array:
    """Return coefficients; raise where one is beyond float64."""
    if not np.isfinite(coef).all():
        column = int(np.argmax(~np.isfinite(coef).all(axis=0)))
        raise DataError(f"{owner}: the coefficient of column {column} is beyond the range of float64; rescale it.")
    return coef


def long_rows(blocks: Blocks) -> Iterator[tuple[Any, Long, Long]]:
    """Yield some rows (dense or sparse), their targets (m, t) and weights at a time, in extended precision."""
    X, y, weight = blocks.joined()
    targets = np.asarray(y).reshape(X.shape[0], -1)
    step = X.shape[0] if blocks.sparse else max(1, _CHUNK // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        part = slice(start, start + step)
        target = targets[part].astype(np.longdouble)
        s = np.ones(len(target), dtype=np.longdouble) if weight is None else weight[part].astype(np.longdouble)
        yield X[part].astype(np.longdouble), target, s


def is_single(table: Table) -> bool:
    """Tell whether the rows are in memory, in single precision."""
    return bool(table.in_memory and table.X.dtype == np.float32)


def in_single(coef: Array) -> Array:
    """Return numbers rounded to float32, as float64."""
    with np.errstate(over="ignore", under="ignore"):
        return coef.astype(np.float32).astype(np.float64)


def round_linear(
    blocks: Blocks,
    fit: LinearFit,
    alpha: float,
    *,
    intercept: bool,
    tolerance: float,
    nonnegative: bool = False,
    n_jobs: int | None = None,
) -> LinearFit | None:
    """Return a (ridge) least squares fit with float32 coefficients; None where its measure leaves the tolerance.

    `tolerance` is the one that the certificate will have, at least `SINGLE_TOLERANCE`. A fit that did not reach it
    before is rounded, too. A gap grows like 1/α: where a small α makes too much of the rounding, the residual of the
    equations is measured instead.
    """
    coef = in_single(fit.coef)
    if not np.isfinite(coef).all():
        return None
    sums = column_sums(blocks, intercept=intercept, n_jobs=n_jobs)
    state = residual_sums(blocks, sums.x_mean, sums.y_mean, coef, n_jobs=n_jobs)
    offset = sums.y_mean - sums.x_mean @ coef
    reached = fit.value <= tolerance
    if fit.kind == "gap":
        gap = optimality(sums, state, coef, sums.y_mean, alpha, intercept, tolerance)
        if gap <= tolerance or not reached:
            return fit._replace(coef=coef, intercept=offset, value=gap)
    gradient = state.cross - alpha * coef
    if nonnegative:
        gradient = np.where(coef > 0, gradient, np.maximum(gradient, 0.0))
    values = relative_residual(
        gradient,
        state.total if intercept else np.zeros_like(state.total),
        x=(np.sqrt(sums.x_square), sums.x_mean),
        y=(np.sqrt(sums.y_square), sums.y_mean),
        coef=coef,
        intercept=offset,
        penalty=alpha * np.abs(coef).max(axis=0, initial=0.0),
        weight=sums.weight,
        tolerance=tolerance,
    )
    value = float(values.max(initial=0.0))
    if reached and not value <= tolerance:
        return None
    kind = "stationarity" if fit.kind == "gap" else fit.kind
    return fit._replace(coef=coef, intercept=offset, value=value, kind=kind)
