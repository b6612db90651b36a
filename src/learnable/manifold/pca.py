r"""Principal components: the directions along which rows vary most.

With the mean x̄ and the covariance S = Σ wᵢ(xᵢ − x̄)(xᵢ − x̄)ᵀ/(W − 1), W = Σ wᵢ, the components v₁, v₂, … are the
eigenvectors of S, λ₁ ≥ λ₂ ≥ … their variances. Among all planes of k dimensions, x̄ + span(v₁, …, vₖ) is nearest to the
rows: Σ wᵢ‖xᵢ − projection‖² is (W − 1) Σ_{j>k} λⱼ (Eckart and Young, 1936).

References: K. Pearson, On lines and planes of closest fit to systems of points in space, 1901; M. Tipping and
C. Bishop, Probabilistic principal component analysis, 1999 (the density of `score`); T. Anderson, Asymptotic theory for
principal component analysis, 1963 (intervals of the variances); T. Chan, G. Golub and R. LeVeque, Updating formulae and
a pairwise algorithm for computing sample variances, 1982 (`partial_fit`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator
from scipy.special import ndtri
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..core.declare import (
    FLOATS,
    N_JOBS,
    RANDOM_STATE,
    TOLERANCE,
    Boolean,
    Number,
    Options,
    check_parameters,
    fitted,
    optional,
    param,
    tags,
)
from ..core.errors import DataError, ParameterError
from ..core.estimator import Certificate, Estimator, Run
from ..core.loaded import law, laws
from ..core.threads import TaskTeam, resolve_n_jobs
from ..data.blocks import Scan, whole_checksum
from ..data.door import Table, door, read_features, refuse_extreme_sizes
from ..meta.splits import as_generator
from ..solvers.eigen import GRAM_CONDITION, PAIR_TOLERANCE, EigenPairs, singular_triplets, symmetric_pairs
from ..solvers.systems.moments import centred_moments
from .choices import gavish_donoho, minka, parallel
from .factors import Factors, filled_rows
from .probabilistic import fit_incomplete, has_gaps

Array = NDArray[np.float64]

#: Columns up to which the d × d covariance is formed: 128 MB.
_MOST_COLUMNS = 4000
#: Entries of a table up to which small variances are worth an SVD of the rows: a second at most.
_SMALL_TABLE = 2**22
#: Relative residual that a random subspace is iterated to.
_RANDOM_TOLERANCE = 1e-9
#: Of rows with gaps: rise of the log-likelihood per row at which EM ends, and its most steps.
_ASCENT = 1e-8
_MOST_STEPS = 2000
#: Entries of a sparse table from which threads share its products: one then takes a millisecond.
_SHARED_ENTRIES = 2**19
#: Columns up to which a fit keeps the covariance, 128 kB.
_KEPT_COLUMNS = 128


class _Spectrum(NamedTuple):
    """Some eigenpairs of the covariance."""

    values: Array  #: (k,), λ, the largest first
    vectors: Array  #: (d, k)
    worst: float  #: largest relative residual, or departure from orthonormality
    next_gap: Array  #: (k,), distance of each variance to its neighbours


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    r"""Principal components: eigenvectors of the covariance, the directions of greatest variance.

    Tables on disk and on Dask are read once (the mean and the d × d covariance are sums over rows), sparse tables are
    centred without becoming dense. A row of weight two counts as two rows. Variances are known to 1e-16 of the
    largest through the covariance; those below 1e-10 of it are computed from the rows instead, in tables of at most
    four million entries (`svd_solver="full"` always does so). Time O(nd²) by the covariance; memory besides the rows:
    d² numbers, or a copy of them.

    Rows may have gaps (NaN). The components are then those of probabilistic principal components of greatest
    likelihood given what was observed, found by EM (see `ProbabilisticPCA`); n_components is a number below d, None is
    min(n, d) − 1, and `transform` fills gaps with their conditional means first. `partial_fit` takes the rows in
    pieces: it keeps the covariance, so that the components are those of one fit on all rows. So does `fit` of at most
    128 columns, from which `partial_fit` can go on.

    The signs make the largest entry of every component positive, as in scikit-learn. Unlike there, the covariance and
    the density are those of the rows whether `whiten` is set or not. Where two variances are equal,
    any axes of their plane are right: `gaps_` shows it.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import PCA
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [-3.0, -2.0], [1.0, 1.0], [2.0, 1.0], [3.0, 2.0]])
    >>> model = PCA(n_components=2).fit(X)
    >>> model.explained_variance_ratio_.round(4), model.singular_values_.round(4)
    (array([0.9924, 0.0076]), array([6.3006, 0.5498]))
    >>> model.transform([[1.0, 0.0]]).round(3)
    array([[ 0.838, -0.545]])
    """

    _theory = "principal-components"

    n_components: Any = param(
        optional(
            Number(low=0, integer=True)
            | Number(low=0.0, high=1.0, low_open=True, high_open=True)
            | Options("mle", "parallel", "gavish-donoho")
        ),
        'How many: a number; a share of the variance to reach; "mle" (Minka\'s evidence), "parallel" (more variance '
        'than shuffled columns have), "gavish-donoho" (above the threshold for noise); None is min(n, d).',
        default=None,
        kw_only=False,
    )
    copy: bool = param(Boolean(), "Kept for compatibility; X is never changed.", default=True)
    whiten: bool = param(Boolean(), "Whether components are divided by their standard deviations.", default=False)
    svd_solver: str = param(
        Options("auto", "full", "covariance_eigh", "arpack", "randomized"),
        "SVD of the rows; eigenvectors of the covariance; Lanczos; a random subspace, iterated to a residual of 1e-9. "
        '"auto" takes the covariance for up to 4000 columns, then Lanczos for a few components.',
        default="auto",
    )
    tol: float = param(TOLERANCE, "Of Lanczos; 0 is machine precision.", default=0.0)
    iterated_power: Any = param(
        Options("auto") | Number(low=0, integer=True),
        'Iterations of the random subspace; "auto" goes on until the residual is small.',
        default="auto",
    )
    n_oversamples: int = param(Number(low=1, integer=True), "Additional vectors of the random subspace.", default=10)
    power_iteration_normalizer: str = param(
        Options("auto", "QR", "LU", "none"), "Kept for compatibility; always QR.", default="auto"
    )
    random_state: Any = param(RANDOM_STATE, 'Of "randomized" and "parallel".', default=None)
    n_jobs: int | None = param(N_JOBS, "Threads; the result does not depend on it.", default=None)

    components_: Array = fitted("(n_components, n_features)", "v, the largest variance first.")
    explained_variance_: Array = fitted("(n_components,)", "λ.", low=0.0)
    explained_variance_ratio_: Array = fitted("(n_components,)", "λ as shares of the total variance.", low=0.0)
    singular_values_: Array = fitted("(n_components,)", "√((W − 1)λ).", low=0.0)
    gaps_: Array = fitted(
        "(n_components,)", "Distance of each λ from the next ones; an axis is known to residual / gap.", infinite=True
    )
    mean_: Array = fitted("(n_features,)", "x̄.")
    noise_variance_: float = fitted("()", "Mean of the variances that are left out.", low=0.0)
    n_components_: int = fitted("int", "How many components there are.")
    n_samples_: Any = fitted("int or float", "Rows, or the sum of their weights.")
    n_features_in_: int = fitted("int", "Number of columns.")
    scatter_: Array = fitted(
        "(n_features, n_features)", "Σ w(x − x̄)(x − x̄)ᵀ; after `partial_fit`, or of at most 128 columns.", optional=True
    )
    n_rows_seen_: int = fitted("int", "Rows so far, where `scatter_` is kept.", optional=True)
    certificate_: Certificate = fitted(
        "Certificate",
        "`closed-form`: the largest of ‖Sv − λv‖/λ₁ and |vᵢᵀvⱼ − [i = j]|; |λ̂ − λ| ≤ λ₁ times that. Of rows with gaps "
        "`ascent`: what one more step of EM adds to the log-likelihood per unit of weight.",
    )

    _door = staticmethod(door(target="none", missing=True))
    _remedy = "raise iterated_power, or use svd_solver='full'; with missing values, ask for fewer components"
    _tags = tags(sparse=True, allow_nan=True, preserves_dtype=FLOATS)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components of the rows of X; y is ignored."""
        return super().fit(X, None, sample_weight)

    def _fit(self, table: Table, run: Run) -> Certificate:
        # The first pass over rows beyond memory also counts them and finds gaps; with gaps its moments are NaN.
        moments = None if table.in_memory else centred_moments(table.blocks, n_jobs=self.n_jobs)
        gaps = self._read_gaps(table)
        rows = table.weight_sum
        d = table.n_columns
        if table.n_rows < 2 or rows <= 1.0:
            raise DataError(
                f"PCA: found n_samples = {table.n_rows} with weights that sum to {rows:g}; a variance needs at "
                "least two rows, and weights that count rows."
            )
        most = int(min(np.ceil(rows), d)) if table.weight is not None else min(table.n_rows, d)
        if gaps:
            return self._fit_gaps(table, run, most, rows)
        k = self._most_components(most, table.n_rows, d)
        self.mean_, total, spectrum = self._spectrum(table, max(1, k), rows, moments)
        chosen = min(k, self._choose(spectrum.values, total, rows, table))
        self._set(spectrum, total, rows, most, chosen)
        self.n_samples_ = table.n_rows if table.weight is None else float(rows)
        if d <= _KEPT_COLUMNS:
            if not hasattr(self, "scatter_"):  # the components came from the rows themselves
                self.scatter_ = centred_moments(table.blocks, n_jobs=self.n_jobs).gram
            self.n_rows_seen_ = table.n_rows
        random = self.svd_solver == "randomized"
        tolerance = _RANDOM_TOLERANCE if random else max(PAIR_TOLERANCE, self.tol)
        return Certificate("closed-form", spectrum.worst, tolerance)

    def _read_gaps(self, table: Table) -> bool:
        """Tell whether values are missing; raise where numbers are too large, or a sparse table has gaps."""
        if sp.issparse(table.X) and np.isnan(table.X.data).any():
            raise DataError("PCA: a sparse table contains NaN; pass a dense one, or impute it.")
        if table.X is not None:
            gaps = has_gaps(table)
            refuse_extreme_sizes(np.nan_to_num(table.X) if gaps else table.X, table.weight, "PCA")
            return gaps
        return has_gaps(table)

    def _fit_gaps(self, table: Table, run: Run, most: int, rows: float) -> Certificate:
        """Find the components of greatest likelihood of rows with gaps."""
        k = max(1, most - 1) if self.n_components is None else self.n_components
        if not isinstance(k, (int, np.integer)):
            raise ParameterError(
                f"PCA: with missing values (NaN) n_components must be a number of components or None; got {k!r}."
            )
        found = fit_incomplete("PCA", table, int(k), run, tol=_ASCENT, max_iter=_MOST_STEPS, n_jobs=self.n_jobs)
        self.mean_ = found.mean
        scale = rows / (rows - 1.0)  # of the maximum of the likelihood to the variances of PCA
        values = np.append(found.values, found.noise) * scale
        total = float(values[:-1].sum()) + (table.n_columns - k) * values[-1]
        steps = np.abs(np.diff(values))
        gaps = np.minimum(np.concatenate([[np.inf], steps[:-1]]), steps)
        spectrum = _Spectrum(values[:-1], found.vectors, found.rise, gaps)
        self._set(spectrum, total, rows, most, int(k))
        self.noise_variance_ = float(values[-1])
        self.n_samples_ = table.n_rows if table.weight is None else float(rows)
        return Certificate("ascent", found.rise, _ASCENT, n_iter=found.n_iter)

    def _set(self, spectrum: _Spectrum, total: float, rows: float, most: int, chosen: int) -> None:
        """Set what follows from the first eigenpairs of the covariance."""
        values = np.maximum(spectrum.values[:chosen], 0.0)
        self.components_ = np.ascontiguousarray(spectrum.vectors[:, :chosen].T)
        self.explained_variance_ = values
        self.explained_variance_ratio_ = values / total if total > 0 else np.zeros(chosen)
        self.singular_values_ = np.sqrt(values * (rows - 1.0))
        self.gaps_ = spectrum.next_gap[:chosen].copy()
        left = max(0.0, total - float(values.sum()))
        self.noise_variance_ = left / (most - chosen) if chosen < most else 0.0
        if left <= 1e-14 * total:  # nothing but rounding
            self.noise_variance_ = 0.0
        self.n_components_ = chosen

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from some more rows; the components are those of one fit on all rows, in any pieces and order.

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection of shape (n_samples, n_features)
            More rows, without gaps; of at most 4000 columns, whose covariance is kept.
        y : ignored
            For compatibility.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights of the rows.

        Returns
        -------
        self
            If something is wrong with the rows, the estimator stays as it was. Until there are n_components rows,
            there are as many components as rows.
        """
        check_parameters("PCA", self.get_params(deep=False), self._parameters)
        if hasattr(self, "components_") and not hasattr(self, "scatter_"):
            raise ParameterError(
                "PCA: `fit` keeps no covariance of more than 128 columns, or of rows with gaps, for partial_fit to go "
                "on from. Pass all rows to partial_fit, on a new model."
            )
        before = self if hasattr(self, "scatter_") else None
        draft = self._draft()
        run = Run(None, None, None, self.n_jobs)
        table = type(self)._door(draft, X, None, sample_weight, run)
        if before is not None:
            read_features(self, X if table.X is None else table.X, check_finite=False)  # the same columns
            draft.__dict__.update({name: vars(self)[name] for name in ("feature_names_in_",) if name in vars(self)})
        if table.n_columns > _MOST_COLUMNS:
            raise DataError(f"PCA: partial_fit keeps the covariance of at most {_MOST_COLUMNS} columns; use fit.")
        if draft._read_gaps(table):
            raise DataError("PCA: partial_fit needs rows without NaN; impute it, or pass all rows to fit.")
        certificate = draft._merge(before, table)
        seconds = run.seconds
        draft.certificate_ = replace(certificate, seconds=seconds)
        draft._warn_unless_certificate_holds()
        self.__dict__.update(draft.__dict__)
        return self

    def _merge(self, before: Any, table: Table) -> Certificate:
        """Find the components of the rows before, if any, and of a table."""
        moments = centred_moments(table.blocks, n_jobs=self.n_jobs)
        d = table.n_columns
        weight = moments.weight
        self.mean_ = moments.x_mean
        self.scatter_ = moments.gram
        self.n_rows_seen_ = table.n_rows
        checksum = int(table.fingerprint, 16) - whole_checksum(Scan(0, 0), (table.n_rows, d, 0), None)
        whole = table.weight is None
        if before is not None:
            old = float(before.n_samples_)
            away = moments.x_mean - before.mean_
            weight = old + moments.weight
            self.mean_ = before.mean_ + away * (moments.weight / weight)
            self.scatter_ = before.scatter_ + moments.gram + np.outer(away, away) * (old * moments.weight / weight)
            self.n_rows_seen_ += before.n_rows_seen_
            known = whole_checksum(Scan(0, 0), (before.n_rows_seen_, d, 0), None)
            checksum += int(before.certificate_.fingerprint, 16) - known
            whole &= isinstance(before.n_samples_, int)
        S = self.scatter_ / max(weight - 1.0, 1.0)
        S = (S + S.T) / 2.0
        most = min(int(np.ceil(weight)), d)
        wanted = self.n_components
        if isinstance(wanted, (int, np.integer)):
            k = min(int(wanted), most)
        else:
            k = self._most_components(most, self.n_rows_seen_, d)
        pairs = symmetric_pairs(S, max(1, k), owner="PCA")
        total = float(S.trace())
        spectrum = _Spectrum(pairs.values, pairs.vectors, pairs.worst, pairs.gaps)
        chosen = min(k, self._choose(pairs.values, total, weight, None))
        self._set(spectrum, total, weight, most, chosen)
        self.n_samples_ = self.n_rows_seen_ if whole else weight
        shape = (self.n_rows_seen_, d, 0)
        fingerprint = f"{whole_checksum(Scan(checksum, 0), shape, None):016x}"
        return Certificate("closed-form", pairs.worst, PAIR_TOLERANCE, fingerprint=fingerprint)

    def _most_components(self, most: int, n: int, d: int) -> int:
        """Return how many pairs to compute; all where the choice depends on all."""
        wanted = self.n_components
        if isinstance(wanted, (int, np.integer)):
            if wanted > most:
                raise ParameterError(
                    f"PCA: n_components={wanted} must be between 0 and min(n_samples, n_features)={most} with "
                    f"svd_solver={self.svd_solver!r}; ask for fewer."
                )
            return int(wanted)
        if wanted == "mle" and n < d:
            raise ParameterError(
                f"PCA: n_components='mle' is only supported if n_samples >= n_features; got {n} × {d}."
            )
        return most

    def _spectrum(self, table: Table, k: int, rows: float, moments: Any = None) -> tuple[Array, float, _Spectrum]:
        """Return the mean, the total variance and the k largest eigenpairs of the covariance; `moments` if known."""
        d = table.n_columns
        solver = self.svd_solver
        formed = solver == "covariance_eigh" or not table.in_memory
        if solver == "auto":
            # Weighted rows may be fewer than the rows they count for, which decide how many components there are.
            formed |= d <= _MOST_COLUMNS and (table.n_rows >= d or sp.issparse(table.X) or table.weight is not None)
        if not formed:
            return self._from_rows(table, k, rows)
        moments = centred_moments(table.blocks, n_jobs=self.n_jobs) if moments is None else moments
        if d <= _KEPT_COLUMNS:
            self.scatter_ = moments.gram
        S = moments.gram / (rows - 1.0)
        S = (S + S.T) / 2.0
        pairs = symmetric_pairs(S, min(k, d), owner="PCA")
        total = float(S.trace())
        unresolved = pairs.values[-1] <= GRAM_CONDITION**2 * max(pairs.values[0], 0.0)
        dense = table.in_memory and not sp.issparse(table.X) and k <= table.n_rows
        if solver == "auto" and unresolved and dense and table.n_rows * d <= _SMALL_TABLE and pairs.values[0] > 0:
            return self._from_rows(table, k, rows)
        return moments.x_mean, total, _Spectrum(pairs.values, pairs.vectors, pairs.worst, pairs.gaps)

    def _from_rows(self, table: Table, k: int, rows: float) -> tuple[Array, float, _Spectrum]:
        """Find the pairs from the rows themselves: A = √w (x − x̄), S = AᵀA/(W − 1)."""
        solver = self.svd_solver
        A, mean, square = centred_rows(table, self.n_jobs)
        n, d = A.shape
        methods = {"full": "dense", "arpack": "lanczos", "randomized": "randomized"}
        few = k < 0.15 * min(n, d) and min(n, d) > 400
        method = methods.get(solver, "lanczos" if few else "dense")
        found = singular_triplets(
            A,
            min(k, n, d),
            method=method,
            tol=_RANDOM_TOLERANCE / 10.0 if solver == "randomized" else self.tol,
            n_power=None if self.iterated_power == "auto" else int(self.iterated_power),
            n_oversamples=self.n_oversamples,
            random_state=as_generator(self.random_state) if solver == "randomized" else None,
            owner="PCA",
        )
        values = found.values**2 / (rows - 1.0)
        vectors = np.ascontiguousarray(found.right.T)
        residual = np.sqrt(((A.T @ (A @ vectors) / (rows - 1.0) - vectors * values) ** 2).sum(axis=0))
        steps = np.abs(np.diff(values))
        gaps = np.minimum(np.concatenate([[np.inf], steps]), np.concatenate([steps, [np.inf]]))
        pairs = EigenPairs(values, vectors, residual, gaps, float(values[0]))
        return mean, square / (rows - 1.0), _Spectrum(values, vectors, pairs.worst, gaps)

    def _choose(self, values: Array, total: float, rows: float, table: Table | None) -> int:
        """Return how many components the parameter asks for; None stands for rows that came in pieces."""
        wanted = self.n_components
        if wanted == "mle":
            return minka(np.maximum(values, 0.0), rows)
        if wanted == "gavish-donoho":
            return gavish_donoho(np.sqrt(np.maximum(values, 0.0)), (int(rows), self.n_features_in_))
        if wanted == "parallel":
            if table is None or not table.in_memory or table.weight is not None or sp.issparse(table.X):
                raise ParameterError("PCA: n_components='parallel' needs dense rows in memory, without weights.")
            return parallel(np.asarray(table.X, dtype=np.float64), values, as_generator(self.random_state))
        if isinstance(wanted, (float, np.floating)):
            if total <= 0:
                return 1
            reached = np.cumsum(np.maximum(values, 0.0) / total)
            return min(len(values), int(np.searchsorted(reached, wanted, side="right")) + 1)
        return len(values)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Find the components and return the coordinates of the rows."""
        return self.fit(X, None, sample_weight).transform(X)

    def transform(self, X: Any) -> Array:
        """Return the coordinates of rows along the components, (x − x̄)ᵀv; of variance one if `whiten`.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Rows. Gaps (NaN) are filled with their mean given the rest of the row, by the density of `score_samples`.

        Returns
        -------
        array of shape (n_samples, n_components)
            Float32 for float32.
        """
        check_is_fitted(self)
        table = read_features(self, X, missing=True)
        if not sp.issparse(table) and np.isnan(table).any():
            table = filled_rows(table, self._factors()).astype(table.dtype, copy=False)
        directions = self.components_.T
        if sp.issparse(table):
            found = np.asarray(table @ directions) - self.mean_ @ directions
        else:
            found = (table - self.mean_) @ directions
        if self.whiten:
            found /= self._scales()
        return np.asarray(found, dtype=table.dtype)

    def inverse_transform(self, X: Any) -> Array:
        """Return the points of the plane of components with these coordinates.

        Parameters
        ----------
        X : array of shape (n_samples, n_components)
            Coordinates.

        Returns
        -------
        array of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self)
        scores = np.asarray(X, dtype=np.float64)
        if scores.ndim != 2 or scores.shape[1] != self.n_components_:
            raise DataError(f"PCA: inverse_transform needs {self.n_components_} columns; got shape {scores.shape}.")
        if self.whiten:
            scores = scores * self._scales()
        return np.asarray(scores @ self.components_ + self.mean_)

    def _factors(self) -> Factors:
        """Return the density of `score_samples` as μ + Wz + noise; noise of zero is replaced by the least there is."""
        least = float(np.finfo(np.float64).eps) * max(float(self.explained_variance_.max(initial=0.0)), 1e-300)
        noise = max(self.noise_variance_, least)
        sizes = np.sqrt(np.maximum(self.explained_variance_ - noise, 0.0))
        return Factors(self.mean_, self.components_.T * sizes, np.full(self.components_.shape[1], noise))

    def _scales(self) -> Array:
        """Return the standard deviations of the components; rounding is not magnified where there is no variance."""
        scales = np.sqrt(self.explained_variance_)
        return np.maximum(scales, np.finfo(np.float64).eps)

    def get_covariance(self) -> Array:
        """Return V(Λ − σ²I)Vᵀ + σ²I, the covariance of probabilistic principal components."""
        check_is_fitted(self)
        beyond = np.maximum(self.explained_variance_ - self.noise_variance_, 0.0)
        d = self.components_.shape[1]
        return np.asarray((self.components_.T * beyond) @ self.components_ + self.noise_variance_ * np.eye(d))

    def get_precision(self) -> Array:
        """Return the inverse of `get_covariance`."""
        return np.asarray(np.linalg.inv(self.get_covariance()))

    def score_samples(self, X: Any) -> Array:
        """Return the log-density of each row under N(x̄, `get_covariance()`)."""
        check_is_fitted(self)
        table = read_features(self, X)
        rows = np.asarray(table.toarray() if sp.issparse(table) else table, dtype=np.float64) - self.mean_
        sign, log_det = np.linalg.slogdet(self.get_covariance())
        if sign <= 0:
            raise DataError("PCA: the covariance is singular, so there is no density; ask for fewer components.")
        distance = (rows * (rows @ self.get_precision())).sum(axis=1)
        return np.asarray(-0.5 * (distance + log_det + rows.shape[1] * np.log(2.0 * np.pi)))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-density of the rows."""
        return float(self.score_samples(X).mean())

    def variance_intervals(self, level: float = 0.95) -> Array:
        """Return confidence intervals of the variances of normal rows, λ exp(±z√(2/(n − 1))) (Anderson, 1963).

        Parameters
        ----------
        level : float
            Of each interval, in (0, 1). Valid where the variances differ and n is large.

        Returns
        -------
        array of shape (n_components, 2)
            Ends.
        """
        check_is_fitted(self)
        if not Number(low=0.0, high=1.0, low_open=True, high_open=True).allows(level):
            raise ParameterError(f"PCA: level must be a number > 0 and < 1; got {level!r}.")
        half = float(ndtri(0.5 + level / 2.0)) * np.sqrt(2.0 / (self.n_samples_ - 1.0))
        return np.asarray(self.explained_variance_[:, None] * np.exp([-half, half]))

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    _laws = laws(
        law(
            "n_components_ is not the number of components_",
            lambda model: model.n_components_ == len(model.components_),
        ),
        law("n_samples_ must be a positive number", lambda model: model.n_samples_ > 0),
        law(
            "scatter_ and n_rows_seen_ belong together",
            lambda model: hasattr(model, "scatter_") == hasattr(model, "n_rows_seen_"),
        ),
    )


def centred_rows(table: Table, n_jobs: int | None = None) -> tuple[Any, Array, float]:
    """Return √w (x − x̄) as an array, or as an operator for sparse rows; x̄; and its squared Frobenius norm."""
    X = table.X
    root = None if table.weight is None else np.sqrt(table.weight)
    share = np.full(table.n_rows, 1.0 / table.n_rows)
    if table.weight is not None:
        share = table.weight / table.weight.sum()
    mean = np.asarray(X.astype(np.float64).T @ share) if sp.issparse(X) else share @ X.astype(np.float64, copy=False)
    if not sp.issparse(X):
        constant = (X[0] == X).all(axis=0)
        mean[constant] = X[0, constant]
        A = X - mean
        mean_left = share @ A  # what rounding left of the mean
        A -= mean_left
        A[:, constant] = 0.0
        if root is not None:
            A *= root[:, None]
        return A, np.asarray(mean + mean_left), float((A**2).sum())
    rows = sp.csr_array(X.astype(np.float64))
    scale = np.ones(table.n_rows) if root is None else root
    rows = sp.csr_array(sp.diags_array(scale) @ rows)
    forwards = _shared_product(rows, n_jobs)
    backwards = _shared_product(sp.csr_array(rows.T), n_jobs)

    def there(v: Array) -> Array:
        return forwards(v) - np.multiply.outer(scale, mean @ v)

    def back(u: Array) -> Array:
        return backwards(u) - np.multiply.outer(mean, scale @ u)

    operator = LinearOperator(
        rows.shape, matvec=there, matmat=there, rmatvec=back, rmatmat=back, dtype=np.dtype(np.float64)
    )
    square = float((rows.data**2).sum() - (scale @ scale) * (mean @ mean))
    return operator, mean, max(square, 0.0)


def _shared_product(A: sp.csr_array, n_jobs: int | None) -> Callable[[Array], Array]:
    """Return v ↦ Av, of which each thread computes some rows; the result does not depend on how many there are."""
    team = TaskTeam(resolve_n_jobs(n_jobs))
    if team.n_threads == 1 or A.nnz < _SHARED_ENTRIES:
        return lambda v: np.asarray(A @ v)
    ends = np.searchsorted(A.indptr, np.linspace(0, A.nnz, team.n_threads + 1)[1:-1])
    parts = [A[start:end] for start, end in pairwise([0, *ends.tolist(), A.shape[0]])]
    return lambda v: np.concatenate(team.run(lambda number: np.asarray(parts[number] @ v), len(parts)))
