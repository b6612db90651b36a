r"""Linear discriminant analysis: normal classes with one covariance.

    x | class k ~ N(μ_k, Σ);    log P(k | x) = (μ_k − x̄)ᵀΣ⁻¹x + const_k:  every boundary is a hyperplane

The fit needs the class means and the pooled scatter, one pass over the rows. Fisher's directions, which spread the
class means most against Σ, span all that the rule looks at, and are what `transform` projects on.

Reference: T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical Learning, 2nd ed., section 4.3.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, eigh
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..core import (
    N_JOBS,
    Array,
    Boolean,
    Certificate,
    DataError,
    Matches,
    Nothing,
    Number,
    Options,
    ParameterError,
    Rule,
    Run,
    fitted,
    interruptible,
    law,
    laws,
    optional,
    param,
)
from ..data.door import Table, door, read_features
from ..data.sources import rowwise
from ..solvers.systems.moments import SINGLE_TOLERANCE
from .base import CONSTANT, EPS, PRIORS, TOLERANCE, GenerativeModel, UnsupportedError, log_or_minus_inf
from .moments import ClassScatter, class_covariances, class_scatter, shrink, total_covariance

SHRINKAGE: Rule = Nothing() | Options("auto") | Number(low=0.0, high=1.0)

ESTIMATOR: Rule = Nothing() | Matches(lambda v: hasattr(v, "fit"), "an estimator of a covariance, with fit")


class LinearDiscriminantAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, GenerativeModel):
    """Linear discriminant analysis, for classification and for projection.

    All solvers work on the class means and the scatter within the classes, which one pass over the rows gives, in
    O(nd²) time and O(n + d²) memory besides the data; columns are scaled before a rank is decided, so that units do not
    matter. With "lsqr" and "eigen", `coef_` of more than two classes is about the overall mean, as with "svd":
    scikit-learn's differs by a vector that all classes share, which no comparison of classes sees.

    Examples
    --------
    >>> from learnable import LinearDiscriminantAnalysis
    >>> X, y = [[0.0, 0.0], [1.0, 2.0], [2.0, 1.0], [3.0, 3.0], [4.0, 5.0], [5.0, 4.0]], [1, 1, 1, 2, 2, 2]
    >>> model = LinearDiscriminantAnalysis().fit(X, y)
    >>> model.predict([[2.0, 2.5]])
    array([1])
    >>> print(model.boundary(1, 2))
    line: 3 x0 + 3 x1 − 15 = 0
    """

    _theory = "lda"

    solver: str = param(
        Options("svd", "lsqr", "eigen"),
        '"svd" leaves out directions without variance within the classes and projects; "lsqr" solves for '
        'the rule alone; "eigen" solves Fisher\'s generalised eigenvalue problem.',
        default="svd",
        kw_only=False,
    )
    shrinkage: Any = param(
        SHRINKAGE,
        "Share λ of (tr Σ/d) I in every class's covariance, or Ledoit and Wolf's estimate of the best. Not "
        'with "svd".',
        default=None,
        kw_only=False,
    )
    priors: Any = param(
        PRIORS, "Class probabilities; by default the shares of the classes.", default=None, kw_only=False
    )
    n_components: int | None = param(
        optional(Number(low=1, integer=True)),
        "Number of directions of `transform`; at most min(n_classes − 1, n_features), which is the default.",
        default=None,
        kw_only=False,
    )
    store_covariance: bool = param(
        Boolean(), 'Whether "svd" keeps Σ; the others always do.', default=False, kw_only=False
    )
    tol: float = param(
        Number(low=0.0),
        'With "svd": directions whose standard deviation, in columns scaled to one, is at most this are left out.',
        default=1e-4,
        kw_only=False,
    )
    covariance_estimator: Any = param(
        ESTIMATOR,
        'Fitted to the rows of each class (in memory) for its `covariance_`. Not with "svd".',
        default=None,
        kw_only=False,
    )
    n_jobs: int | None = param(
        N_JOBS,
        "Threads; None uses all that BLAS may use. The result does not depend on it.",
        default=None,
        kw_only=False,
    )
    coef_: Any = fitted(
        "(1, n_features) or (n_classes, n_features)",
        "Normal vectors of the rule; for two classes one, for the second class. float32 for float32 rows in "
        "memory, with scores, probabilities and projections of such rows, at a tolerance of 1e-6.",
    )
    intercept_: Any = fitted("(1,) or (n_classes,)", "Its constants.", infinite=True)
    priors_: Array = fitted("(n_classes,)", "Class probabilities.")
    means_: Array = fitted("(n_classes, n_features)", "μ.")
    covariance_: Array = fitted(
        "(n_features, n_features)",
        'Σ_k π_k Σ_k. (The rule of "svd" weights the classes by their rows, whatever the priors.)',
        optional=True,
    )
    scalings_: Array = fitted("(n_features, n_directions)", 'Fisher\'s directions; not with "lsqr".', optional=True)
    explained_variance_ratio_: Array = fitted(
        "array", 'Their shares of the spread between the classes; not with "lsqr".', optional=True
    )
    n_components_: int = fitted("int", "Number of directions of `transform`.")
    xbar_: Array = fitted("(n_features,)", "Σ_k π_k μ_k.")
    certificate_: Certificate = fitted("Certificate", "Relative residual of Σ β_k = μ_k − x̄ in scaled columns.")

    _door = staticmethod(door(target="classes", sparse=False))

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        self.classes_ = np.asarray(table.classes)
        K = len(self.classes_)
        d = table.n_columns
        refuse_method(owner, self, "svd")
        most = min(K - 1, d)
        if self.n_components is not None and self.n_components > most:
            raise ParameterError(
                f"{owner}: n_components cannot be larger than min(n_features, n_classes - 1) = {most}; got "
                f"{self.n_components}."
            )
        apart = self.covariance_estimator is not None or self.shrinkage == "auto" or self.priors is not None
        pooled = not apart or (self.solver == "svd" and not self.store_covariance)
        sums = class_scatter(owner, table.blocks, K, pooled=pooled, n_jobs=self.n_jobs)
        if sums.n_rows == K:
            raise DataError(f"{owner}: The number of samples must be more than the number of classes; both are {K}.")
        self.priors_ = read_priors(owner, self.priors, sums.weight)
        self.means_ = sums.mean
        self.xbar_ = self.priors_ @ sums.mean
        self.n_components_ = self.n_components or most
        cov = self._within(table, sums, pooled)
        if self.solver != "svd" or self.store_covariance:
            self.covariance_ = cov
        if self.solver == "svd":
            cov = sums.within / sums.weight.sum()  # of all rows alike, whatever the priors
        value = self._solve(table, sums, cov)
        if not (np.isfinite(self.coef_).all()):
            raise DataError(f"{owner}: coefficients are beyond the range of float64; rescale the columns of X.")
        return Certificate("closed-form", value, TOLERANCE if self.coef_.dtype == np.float64 else SINGLE_TOLERANCE)

    def _within(self, table: Table, sums: ClassScatter, pooled: bool) -> Array:
        """Return Σ by the method asked for."""
        if pooled:
            cov = sums.within / sums.weight.sum()
            return cov if self.shrinkage is None else shrink(cov, float(self.shrinkage))
        method = (self.shrinkage, self.covariance_estimator, self.n_jobs)
        each = class_covariances(type(self).__name__, table, sums, *method)
        return np.einsum("k,kij->ij", self.priors_, each)

    def _solve(self, table: Table, sums: ClassScatter, cov: Array) -> float:
        """Set the rule and the directions; return the residual of Σ β_k = μ_k − x̄."""
        std = np.sqrt(np.diag(cov))
        flat = std <= CONSTANT * np.abs(self.xbar_)
        std = np.where(flat, 1.0, std)
        R = np.where(flat | flat[:, None], 0.0, cov / np.outer(std, std))
        away = (self.means_ - self.xbar_) / std
        values, axes = interruptible(eigh, R)
        axes[flat] = 0.0  # the coefficient of a constant column is zero, not a rounding of it
        floor = np.sqrt(len(R) * EPS * values[-1]) if values[-1] > 0 else 0.0
        kept = np.sqrt(np.maximum(values, 0.0)) > max(floor, self.tol if self.solver == "svd" else 0.0)
        if not kept.any():
            raise DataError(
                f"{type(self).__name__}: no column varies within the classes, so that their covariance is zero; there "
                "is nothing to discriminate by. Use more rows per class."
            )
        whiten = axes[:, kept] / np.sqrt(values[kept])  # Wᵀ R W = I
        scores = away @ whiten
        beta = scores @ whiten.T
        goal = away @ axes[:, kept] @ axes[:, kept].T
        residual = beta @ R - goal
        size = np.abs(beta) @ np.abs(R) + np.abs(goal)
        constant = -0.5 * (scores**2).sum(axis=1) + log_or_minus_inf(self.priors_)
        self.coef_ = beta / std
        self.intercept_ = constant - self.coef_ @ self.xbar_
        if len(self.classes_) == 2:
            self.coef_ = self.coef_[1:] - self.coef_[:1]
            self.intercept_ = np.array([constant[1] - constant[0]]) - self.coef_ @ self.xbar_
        if self.solver == "svd":
            self._project(sums, scores, whiten / std[:, None])
        elif self.solver == "eigen":
            self._solve_fisher(table, sums, cov, std)
        # Means are stored to 53 digits: far from zero, their last one is no small share of the spread.
        value = max(_largest_share(residual, size), 2 * EPS * float(np.max(np.abs(self.xbar_) / std)))
        if table.in_memory and table.X.dtype == np.float32:
            spread = float(values[-1] / values[kept].min())
            value = self._store_single(value, R, std, goal, spread)
        return value

    def _store_single(self, value: float, R: Array, std: Array, goal: Array, spread: float) -> float:
        """Store float32 coefficients for float32 rows, if they keep SINGLE_TOLERANCE, and return their own residual.

        The constants are computed again for them, in float64, so that the scores at x̄ stay as they are.
        """
        with np.errstate(over="ignore", under="ignore"):
            coef = self.coef_.astype(np.float32)
        if not np.isfinite(coef).all():
            return value
        beta = coef * std
        exact = self.coef_ * std
        goal = goal[1:] - goal[:1] if len(self.classes_) == 2 else goal
        residual = _largest_share(beta @ R - goal, np.abs(beta) @ np.abs(R) + np.abs(goal))
        moved = _largest_share(beta - exact, np.full(beta.shape, np.abs(exact).max() * spread))
        if not max(residual, moved) <= SINGLE_TOLERANCE:
            return value
        self.intercept_ = self.intercept_ + (self.coef_ - coef) @ self.xbar_
        self.coef_ = coef
        return max(residual, moved)

    def _project(self, sums: ClassScatter, scores: Array, whiten: Array) -> None:
        """Set the directions in which the whitened class means spread most."""
        weight = np.sqrt(sums.n_rows * self.priors_ / max(1, len(self.classes_) - 1))
        _, spread, turn = np.linalg.svd(weight[:, None] * scores, full_matrices=False)
        total = (spread**2).sum()
        self.explained_variance_ratio_ = (spread**2 / (total if total > 0 else 1.0))[: self.n_components_]
        rank = max(1, int((spread > self.tol * spread[0]).sum()))
        self.scalings_ = whiten @ turn[:rank].T

    def _solve_fisher(self, table: Table, sums: ClassScatter, cov: Array, std: Array) -> None:
        """Set the solutions of Fisher's eigenvalue problem (Σ_total − Σ) v = λ Σ v, largest λ first."""
        method = (self.shrinkage, self.covariance_estimator, self.n_jobs)
        between = total_covariance(type(self).__name__, table, sums, *method) - cov
        units = np.outer(std, std)
        try:
            values, vectors = interruptible(eigh, between / units, cov / units)
        except LinAlgError:
            raise DataError(
                f"{type(self).__name__}: the covariance within the classes is singular, so that solver='eigen' has no "
                "solution; set shrinkage, or use solver='svd'."
            ) from None
        order = np.argsort(values)[::-1]
        self.explained_variance_ratio_ = (values / values.sum())[order][: self.n_components_]
        self.scalings_ = (vectors / std[:, None])[:, order]

    @property
    def _n_features_out(self) -> int:
        return int(min(self.n_components_, self.scalings_.shape[1]))

    def _scores(self, X: Any) -> Array:
        scores = X @ self.coef_.T
        return np.asarray(scores + self.intercept_).astype(scores.dtype, copy=False)

    def _joint(self, X: Any) -> Array:
        scores = self._scores(X)
        return np.hstack([np.zeros_like(scores), scores]) if len(self.classes_) == 2 else scores

    @rowwise
    def decision_function(self, X: Any) -> Array:
        """Return log P(class | x) up to a constant of the row; for two classes, the log of their ratio."""
        check_is_fitted(self)
        scores = self._scores(self._read_rows(X))
        return scores[:, 0] if len(self.classes_) == 2 else scores

    @rowwise
    def transform(self, X: Any) -> Array:
        """Project the rows on the directions that separate the classes best."""
        check_is_fitted(self)
        if self.solver == "lsqr":
            raise UnsupportedError(
                f"{type(self).__name__}: transform not implemented for 'lsqr' solver (use 'svd' or 'eigen')."
            )
        X = read_features(self, X, sparse=False)
        projected = (X - self.xbar_ if self.solver == "svd" else X) @ self.scalings_[:, : self.n_components_]
        return np.asarray(projected).astype(np.result_type(X, self.coef_), copy=False)

    def boundary(self, a: Any, b: Any) -> Boundary:
        """Return the hyperplane between two classes, positive on the side of the second.

        Parameters
        ----------
        a, b : labels
            Two of `classes_`.
        """
        check_is_fitted(self)
        first, second = (class_number(self, label) for label in (a, b))
        if len(self.classes_) == 2:
            sign = 1.0 if second > first else -1.0
            vector = sign * self.coef_[0]
            constant = sign * self.intercept_[0]
        else:
            vector = self.coef_[second] - self.coef_[first]
            constant = self.intercept_[second] - self.intercept_[first]
        d = len(vector)
        kind = {1: "one point", 2: "line"}.get(d, "hyperplane") if vector.any() else "none"
        return Boundary(np.zeros((d, d)), vector, float(constant), kind, (a, b))

    _laws = laws(
        law(
            "coef_ and intercept_ must have one row per class, or one for two classes",
            lambda model: (
                len(model.coef_) == len(model.intercept_) == (1 if len(model.classes_) == 2 else len(model.classes_))
            ),
            "classes_",
        ),
        law(
            "n_components_ must be a number of directions",
            lambda model: (
                isinstance(model.n_components_, int)
                and 1 <= model.n_components_ <= max(1, min(len(model.classes_) - 1, model.n_features_in_))
            ),
            "classes_",
        ),
    )


def _largest_share(part: Array, whole: Array) -> float:
    """Return the largest |part|/whole, where 0/0 = 0."""
    return float(np.max(np.where(whole > 0, np.abs(part) / np.where(whole > 0, whole, 1.0), 0.0)))


def refuse_method(owner: str, model: Any, svd: str) -> None:
    """Raise ParameterError where the solver cannot do what is asked of the covariance."""
    if model.solver == svd and model.shrinkage is not None:
        raise UnsupportedError(f"{owner}: shrinkage not supported with 'svd' solver; use solver='eigen'.")
    if model.solver == svd and model.covariance_estimator is not None:
        raise ParameterError(
            f"{owner}: covariance estimator is not supported with svd solver: covariance_estimator is not supported "
            "with solver='svd'. Try solver='eigen' instead."
        )


def read_priors(owner: str, priors: Any, count: Array) -> Array:
    """Return the class probabilities: those given, made to sum to one, or the shares of the classes."""
    if priors is None:
        return count / count.sum()
    values = np.array(priors, dtype=np.float64)
    if (values < 0.0).any():
        raise ParameterError(f"{owner}: priors must be non-negative; got {values.min():g}.")
    if values.shape != count.shape or not values.sum() > 0:
        raise ParameterError(
            f"{owner}: priors must be {len(count)} probabilities, one per class; got an array of shape {values.shape} "
            f"with the sum {values.sum():g}."
        )
    if abs(values.sum() - 1.0) > 1e-5:
        warnings.warn("The priors do not sum to 1. Renormalizing", UserWarning, stacklevel=2)
        values /= values.sum()
    return values


def class_number(model: Any, label: Any) -> int:
    """Return the place of a label among the classes."""
    place = np.flatnonzero(model.classes_ == label)
    if len(place) != 1:
        raise ParameterError(
            f"{type(model).__name__}: there is no class {label!r}; the classes are {model.classes_.tolist()!r}."
        )
    return int(place[0])


# The boundary between two classes with normal densities: its equation, and what kind of surface it is.
#
#     log π_a N(x; μ_a, Σ_a) − log π_b N(x; μ_b, Σ_b)  =  xᵀAx + bᵀx + c  =  0
#     A = ½(Σ_b⁻¹ − Σ_a⁻¹),   b = Σ_a⁻¹μ_a − Σ_b⁻¹μ_b,
#     c = ½(μ_bᵀΣ_b⁻¹μ_b − μ_aᵀΣ_a⁻¹μ_a) + ½ log(|Σ_b|/|Σ_a|) + log(π_a/π_b)
#
# With one covariance A is zero and the boundary a hyperplane; otherwise it is a quadric, in the plane a conic
# section.
# Its kind follows from the signs of A's eigenvalues, and, after the square is completed, of the constant.

_ZERO = 1e-9  # of the sizes of the terms that a number was made of


@dataclass(frozen=True)
class Boundary:
    """The surface xᵀAx + bᵀx + c = 0 on which two classes are equally probable; the first is so where it is positive.

    Attributes
    ----------
    matrix : array of shape (d, d)
        A, symmetric.
    vector : array of shape (d,)
        b.
    constant : float
        c.
    kind : str
        In the plane "line", "ellipse", "circle", "hyperbola", "parabola", "two intersecting lines", "two parallel
        lines", "one line", "one point", "none" or "everywhere"; on the line "one point", "two points", …; in more
        dimensions "hyperplane", "ellipsoid", "hyperboloid", "paraboloid", "cone", "cylinder", "two hyperplanes", ….
    classes : tuple
        The two labels.
    """

    matrix: Array
    vector: Array
    constant: float
    kind: str
    classes: tuple[Any, Any] = ("a", "b")

    def evaluate(self, X: Any) -> Array:
        """Return xᵀAx + bᵀx + c of every row: the log of the ratio of the two classes' probabilities."""
        X = np.atleast_2d(np.asarray(X, dtype=np.float64))
        return np.einsum("ij,ij->i", X @ self.matrix, X) + X @ self.vector + self.constant

    def equation(self, names: Any = None, digits: int = 4) -> str:
        """Return the equation in words, such as "0.5 x0² − x0 x1 + 2 x1 − 1 = 0"."""
        d = len(self.vector)
        names = [f"x{j}" for j in range(d)] if names is None else list(names)
        terms = [(self.matrix[i, i], f"{names[i]}²") for i in range(d)]
        terms += [(2 * self.matrix[i, j], f"{names[i]} {names[j]}") for i in range(d) for j in range(i + 1, d)]
        terms += [*zip(self.vector.tolist(), names, strict=True), (self.constant, "")]
        words = ""
        for value, name in terms:
            if value != 0.0:
                sign = " − " if value < 0 else " + "
                if not words:
                    sign = sign.strip(" +")
                words += f"{sign}{abs(value):.{digits}g}{' ' + name if name else ''}"
        return f"{words or '0'} = 0"

    def __str__(self) -> str:
        return f"{self.kind}: {self.equation()}"


def boundary_between(
    classes: tuple[Any, Any], priors: tuple[float, float], means: tuple[Array, Array], precisions: Any, log_dets: Any
) -> Boundary:
    """Return the boundary between two normal classes, from their precision matrices Σ⁻¹ and log|Σ|."""
    P, Q = precisions
    centre = 0.5 * (means[0] + means[1])  # about which nothing cancels
    m = means[0] - centre
    k = means[1] - centre
    A = 0.5 * (Q - P)
    b = P @ m - Q @ k
    c = 0.5 * (k @ Q @ k - m @ P @ m) + 0.5 * (log_dets[1] - log_dets[0]) + float(np.log(priors[0]) - np.log(priors[1]))
    scale = 1.0 / np.sqrt(np.maximum(np.diag(P), np.diag(Q)))
    size = float(max(np.abs(P * np.outer(scale, scale)).max(), np.abs(Q * np.outer(scale, scale)).max()))
    kind = kind_of(A * np.outer(scale, scale), b * scale, c, size)
    if np.abs(A * np.outer(scale, scale)).max() <= _ZERO * size:
        A = np.zeros_like(A)
    if kind == "ellipse" and len(b) == 2 and is_multiple_of_identity(A):
        kind = "circle"
    if kind == "ellipsoid" and is_multiple_of_identity(A):
        kind = "sphere"
    return Boundary(A, b - 2 * A @ centre, float(c - b @ centre + centre @ A @ centre), kind, classes)


def is_multiple_of_identity(A: Array) -> bool:
    """Tell whether A is a number times the identity."""
    level = np.trace(A) / len(A)
    return bool(np.abs(A - level * np.eye(len(A))).max() <= _ZERO * abs(level))


def kind_of(A: Array, b: Array, c: float, size: float = 0.0) -> str:
    """Return what xᵀAx + bᵀx + c = 0 is.

    Parameters
    ----------
    A, b, c : array of shape (d, d), array of shape (d,), float
        The equation.
    size : float
        Of the numbers whose differences A's entries are; below 1e-9 of it they count as zero.

    Examples
    --------
    >>> import numpy as np
    >>> kind_of(np.diag([1.0, 2.0]), np.zeros(2), -1.0), kind_of(np.diag([1.0, -1.0]), np.zeros(2), 0.0)
    ('ellipse', 'two intersecting lines')
    """
    A = np.asarray(A, dtype=np.float64)
    b = np.asarray(b, dtype=np.float64)
    d = len(b)
    if A.shape != (d, d):
        raise ParameterError(f"kind_of: A must have shape ({d}, {d}), got {A.shape}.")
    values, axes = np.linalg.eigh(0.5 * (A + A.T))
    turned = axes.T @ b
    curved = np.abs(values) > _ZERO * max(size, float(np.abs(values).max(initial=0.0)))
    linear = np.abs(turned) > _ZERO * max(float(np.abs(b).max(initial=0.0)), np.finfo(float).tiny)
    squares = turned[curved] ** 2 / (4.0 * values[curved])
    rest = c - squares.sum()
    level = 0 if abs(rest) <= _ZERO * max(abs(c), float(np.abs(squares).sum())) else int(np.sign(rest))
    up = int((values[curved] > 0).sum())
    down = int((values[curved] < 0).sum())
    slanted = bool((linear & ~curved).any())
    if up + down == 0:
        flat = {1: "one point", 2: "line"}.get(d, "hyperplane")
        constant = "none" if c != 0.0 else "everywhere"
        return flat if slanted else constant
    if slanted:
        full = up + down == d - 1
        return {1: "none", 2: "parabola"}.get(d, "paraboloid" if full else "parabolic cylinder")
    if min(up, down) == 0:
        outside = level == 0 or (level > 0) == (up > 0)
        return _one_sided(d, up + down, level, empty=outside)
    if d == 2:
        return "two intersecting lines" if level == 0 else "hyperbola"
    if up + down < d:
        return "two hyperplanes" if level == 0 and up + down == 2 else "cylinder"
    return "cone" if level == 0 else "hyperboloid"


def _one_sided(d: int, rank: int, level: int, empty: bool) -> str:
    """Return the kind of Σ λᵢuᵢ² = −level with all λ of one sign."""
    if empty and level != 0:
        return "none"
    if d == 1:
        return "one point" if level == 0 else "two points"
    if rank == 1:
        lines = {2: ("one line", "two parallel lines")}.get(d, ("one hyperplane", "two parallel hyperplanes"))
        return lines[0 if level == 0 else 1]
    if rank == d:
        closed = "ellipse" if d == 2 else "ellipsoid"
        return "one point" if level == 0 else closed
    return "plane of fewer dimensions" if level == 0 else "cylinder"
