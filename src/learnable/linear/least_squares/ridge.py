r"""Ridge regression: least squares with a quadratic penalty and a free intercept.

    min_{b, β}  Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)² + α‖β‖²

In the form n⁻¹ΣV + λΩ, with V = (y − f)² and Ω = ‖β‖², α = nλ. The intercept is never penalised. The minimiser is
unique for α > 0, so every solver gives the same answer; the certificate says how exactly.

Reference: T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical Learning, 2nd ed., section 3.4.1.

One factorisation for every λ: the singular value decomposition behind ridge paths and exact leave-one-out.

With the weighted, centred rows √w(X − x̄) = U diag(s) Vᵀ, for every α at once

    β(α) = V diag(s/(s² + α)) Uᵀ√w(y − ȳ),   hᵢᵢ(α) = wᵢ/W + Σⱼ u²ᵢⱼ s²ⱼ/(s²ⱼ + α),

and the prediction for row i by the fit without row i misses yᵢ by rᵢ/(1 − hᵢᵢ), exactly. U comes from the
smaller of the two Gram matrices; from an SVD of the rows where α is so small that squaring would lose digits.
Memory: O(nd).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core import (
    TOLERANCE,
    Array,
    ArrayLike,
    Boolean,
    Certificate,
    Number,
    Options,
    ParameterError,
    Run,
    fitted,
    interruptible,
    one_thread_blas,
    param,
)
from ...data import Blocks, Part, Table, door
from ...solvers.systems.least_squares import compressed_fit, dense_rows, least_squares, nonnegative_fit
from ...solvers.systems.moments import CLOSED_FORM_TOLERANCE, SINGLE_TOLERANCE
from ...solvers.systems.orthogonal import LinearFit, orthogonal_fit, weighted_mean
from ..base import LeastSquaresModel, is_single, round_linear
from ..descent import SOLVERS as DESCENT

ENORMOUS = 1e300  # a scaled penalty beyond this is as good as infinite


class RidgeSpectrum(NamedTuple):
    """The decomposition, and the data seen through it, all scaled by powers of two to order one."""

    left: Array  #: (n, r), U
    values: Array  #: (r,), s²
    rows: Array  #: (n, d), √w(X − x̄)
    y: Array  #: (n, k), √w(y − ȳ)
    projected: Array  #: (r, k), Uᵀ√w(y − ȳ)
    root_weight: Array  #: (n,), √w
    x_mean: Array  #: (d,), in its own units
    y_mean: Array  #: (k,), in its own units
    intercept: bool
    x_exponent: int  #: rows are X·2^−x_exponent
    y_exponent: int  #: and so on
    weight_exponent: int

    def coefficients(self, alphas: Array) -> Array:
        """Return β(α) = (√w(X − x̄))ᵀ U diag(1/(s² + α)) Uᵀ√w(y − ȳ), of shape (n_alphas, d, k)."""
        k = self.projected.shape[1]
        with np.errstate(all="ignore"):  # beyond float64 the caller sees that the equations do not hold
            scaled = self.projected[:, :, None] / (self.values[:, None, None] + self._scaled(alphas))
            dual = self.left @ scaled.reshape(len(self.values), k * len(alphas))
            coef = (self.rows.T @ dual).reshape(-1, k, len(alphas)).transpose(2, 0, 1)
            return np.ascontiguousarray(np.ldexp(coef, self.y_exponent - self.x_exponent))

    def residuals(self, alphas: Array) -> Array:
        """Return √w(y − ŷ), scaled like `y`, of shape (n, k, n_alphas)."""
        k = self.projected.shape[1]
        kept = self.projected[:, :, None] * self._complement(alphas)[:, None, :]
        inside = (self.left @ kept.reshape(len(self.values), k * len(alphas))).reshape(-1, k, len(alphas))
        outside = 0.0 if self._spans_everything() else (self.y - self.left @ self.projected)[:, :, None]
        return np.asarray(inside + outside)

    def freedom(self, alphas: Array) -> Array:
        """Return 1 − hᵢᵢ of shape (n, n_alphas), formed without cancellation from α/(s² + α)."""
        free = (self.left**2) @ self._complement(alphas)
        if not self._spans_everything():
            w = self.root_weight**2
            used = (self.left**2).sum(axis=1) + (w / w.sum() if self.intercept else 0.0)
            free += np.maximum(1.0 - used, 0.0)[:, None]
        return np.asarray(free)

    def leave_one_out(self, alphas: Array) -> Array:
        """Return the errors (yᵢ − ŷ₍ᵢ₎)·2^−y_exponent, of shape (n, k, n_alphas)."""
        # A row that determines its own fit (h = 1) has no leave-one-out prediction: its error is infinite, not 0/0.
        free = self.freedom(alphas)
        free = np.where(free > 1e-14 * free.max(axis=0), free, np.nan)
        errors = self.residuals(alphas) / (free[:, None, :] * self.root_weight[:, None, None])
        return np.where(np.isnan(errors), np.inf, errors)

    def _spans_everything(self) -> bool:
        """Tell whether U (and the intercept) leave no direction of the rows out: then nothing is outside the fit."""
        return len(self.values) == len(self.y) - self.intercept

    def _complement(self, alphas: Array) -> Array:
        total = self.values[:, None] + self._scaled(alphas)
        return np.where(total > 0, self._scaled(alphas) / np.where(total > 0, total, 1.0), 1.0)

    def _scaled(self, alphas: Array) -> Array:
        with np.errstate(over="ignore"):
            scaled = np.ldexp(alphas, -2 * self.x_exponent - self.weight_exponent)
        return np.minimum(scaled, ENORMOUS)


def extreme_exponent(array: Array) -> int:
    """Return an even power of two that brings extreme numbers to order one; 0 for numbers whose squares are safe."""
    exponent = int(np.frexp(np.abs(array).max(initial=0.0))[1])
    return 2 * (exponent // 2) if abs(exponent) > 100 else 0


def ridge_spectrum(
    X: Array, y: Array, weight: Array | None, *, intercept: bool, smallest_alpha: float
) -> RidgeSpectrum:
    """Decompose dense X (n, d) for targets y (n, k)."""
    x_mean = weighted_mean(X, weight, intercept)
    y_mean = weighted_mean(y, weight, intercept)
    w = np.ones(len(X)) if weight is None else weight
    x_exponent, y_exponent, weight_exponent = (extreme_exponent(array) for array in (X, y, w))
    root = np.sqrt(np.ldexp(w, -weight_exponent))
    Z = np.ldexp(X, -x_exponent) - np.ldexp(x_mean, -x_exponent) if x_exponent else X - x_mean
    t = root[:, None] * (np.ldexp(y, -y_exponent) - np.ldexp(y_mean, -y_exponent))
    if weight is not None or weight_exponent:
        Z *= root[:, None]
    n, d = Z.shape
    gram = interruptible(np.matmul, Z.T, Z) if d <= n else interruptible(np.matmul, Z, Z.T)
    values, vectors = interruptible(np.linalg.eigh, gram)
    noise = np.finfo(float).eps * max(n, d) * max(values[-1], np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        smallest = float(np.ldexp(smallest_alpha, -2 * x_exponent - weight_exponent))
    if smallest < 1e4 * noise and n * d <= 4e7:
        # Squaring would drown directions that such a small penalty does not: decompose the rows themselves.
        U, s, _ = interruptible(np.linalg.svd, Z, full_matrices=False)
        kept = s > np.finfo(float).eps * max(n, d) * s[0]
        U = np.ascontiguousarray(U[:, kept])
        values = s[kept] ** 2
    else:
        kept = values > noise
        values = values[kept]
        vectors = np.ascontiguousarray(vectors[:, kept])
        U = vectors if d > n else interruptible(np.matmul, Z, vectors / np.sqrt(values))
    scales = (x_exponent, y_exponent, weight_exponent)
    with one_thread_blas():
        projected = U.T @ t
    return RidgeSpectrum(U, values, Z, t, projected, root, x_mean, y_mean, intercept, *scales)


_DIRECT = ("auto", "cholesky", "svd")
_TOL = 1e-8  # the default relative gap of all convex models
_QUICK = 2e10  # n·d·min(n, d) of which a direct solution takes about a second
_ITERATIVE = ("sparse_cg", "lsqr", "sag", "saga", "lbfgs")


class Ridge(LeastSquaresModel):
    r"""Ridge regression: minimise Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)² + α‖β‖².

    Dense problems are solved exactly in O(nd·min(n, d)) time; wide sparse ones by conjugate gradients.
    In the form n⁻¹ΣV + λΩ (V squared loss, Ω = ‖β‖²), α = nλ.

    Examples
    --------
    >>> from learnable import Ridge
    >>> model = Ridge(alpha=1.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> model.coef_.round(4), float(model.intercept_.round(4))
    (array([0.6667]), 0.3333)
    >>> model.certificate_.kind
    'closed-form'
    """

    _theory = "ridge"

    alpha: Any = param(
        Number(low=0.0) | ArrayLike(Number(low=0.0)),
        "α ≥ 0, one for all targets or one each.",
        default=1.0,
        kw_only=False,
    )
    tol: float = param(
        TOLERANCE,
        "Relative duality gap at which an iterative method stops; the direct solvers reach a residual of "
        "1e-12. With an iterative solver by name, and below the default, the gradient falls by that factor "
        "too, so that coefficients are at least as exact as scikit-learn's at the same number.",
        default=_TOL,
    )
    solver: str = param(
        Options(*_DIRECT, *_ITERATIVE, *DESCENT),
        '"auto" is direct where the matrix fits; "cholesky" and "svd" (an orthogonal factorisation) are '
        'direct; all of scikit-learn\'s iterative names ("sparse_cg", "lsqr", "sag", "saga", '
        '"lbfgs") mean conjugate gradients, which work on sparse rows with an intercept too. Of several '
        "minimisers, where α is zero or drowns in rounding, all give the one of minimum norm: if conjugate "
        'gradients do not reach it, the direct method does. "gd" is gradient descent with a line search, '
        '"sgd" descent on mini-batches (rows in memory only), both in scaled columns: slower, for study; '
        "they warn with the gap they reached.",
        default="auto",
    )
    positive: bool = param(
        Boolean(),
        'Constrain β ≥ 0 (the certificate is then the KKT residual); with solver "auto" or "lbfgs", which '
        "both mean the same active-set method here.",
        default=False,
    )
    coef_: Any = fitted(
        "(n_features,) or (n_targets, n_features)",
        "β; float32 for float32 rows in memory, if the certificate survives that rounding at a tolerance of 1e-6.",
    )
    n_iter_: int = fitted(
        "int", 'Steps of an iterative method, for all targets together (epochs of "sgd"); 1 for a direct solver.'
    )
    solver_: str = fitted(
        "str", 'The solver: that which was asked for, or what "auto" means for these data, by scikit-learn\'s names.'
    )
    certificate_: Certificate = fitted(
        "Certificate",
        "`closed-form` residual, or `gap` of an iterative method. `bound` is the proven relative suboptimality.",
    )

    _door = staticmethod(door(target="numeric", multi_output=True, several_on_dask=True))
    _flattens_one_column = True
    _remedy = "raise max_iter or max_seconds, or scale the columns of X"

    def _fit(self, table: Table, run: Run) -> Certificate:
        if self.positive and self.solver not in ("auto", "lbfgs"):
            raise ParameterError(
                f"Ridge: solver='{self.solver}' does not support positive fitting; set solver to 'auto' or 'lbfgs', or "
                "positive=False."
            )
        n_targets = table.y_shape[0] if table.y_shape else 1
        alphas = _alpha_per_target(self.alpha, n_targets)
        groups = [np.flatnonzero(alphas == alpha) for alpha in np.unique(alphas)]  # of targets with the same penalty
        fits = []
        rounded = []
        for targets in groups:
            blocks = table.blocks
            alpha = float(alphas[targets[0]])
            if len(targets) < n_targets and table.in_memory:
                blocks = Blocks([Part(table.X, table.y[:, targets], table.weight)])
            fits.append(self._solve(blocks, alpha, run))
            if is_single(table):
                rounded.append(self._rounded(blocks, fits[-1], alpha))
        kept = [fit for fit in rounded if fit is not None]
        single = len(kept) == len(groups)
        coef = np.empty((table.n_columns, n_targets))
        intercept = np.empty(n_targets)
        for targets, fit in zip(groups, kept if single else fits, strict=True):
            own = slice(None) if fit.coef.shape[1] == len(targets) else targets  # on Dask all targets are solved
            coef[:, targets] = fit.coef[:, own]
            intercept[targets] = fit.intercept[own]
        certificates = [self._certificate_of(fit, single) for fit in (kept if single else fits)]
        self._set_coefficients(coef, intercept, table.y_shape, single=single)
        worst = max(certificates, key=lambda certificate: certificate.value / certificate.tolerance)
        self.n_iter_ = 1 if worst.kind == "closed-form" else worst.n_iter
        self.solver_ = self.solver
        if self.solver == "auto":
            iterative = any(certificate.kind == "gap" for certificate in certificates)
            self.solver_ = "sparse_cg" if iterative else "cholesky"
            if self.positive:
                self.solver_ = "lbfgs"
        return worst

    def _certificate_of(self, fit: LinearFit, single: bool) -> Certificate:
        """Return the certificate of the targets with one penalty."""
        bound = fit.value if fit.kind == "gap" else None
        return Certificate(fit.kind, fit.value, self._tolerance_of(fit, single), bound, fit.n_iter)  # type: ignore[arg-type]

    def _tolerance_of(self, fit: LinearFit, single: bool) -> float:
        """Return what a fit must reach."""
        direct = fit.kind == "closed-form" or self.positive
        tolerance = CLOSED_FORM_TOLERANCE if direct else max(self.tol, CLOSED_FORM_TOLERANCE)
        return max(tolerance, SINGLE_TOLERANCE) if single else tolerance

    def _rounded(self, blocks: Blocks, fit: LinearFit, alpha: float) -> LinearFit | None:
        """Return the fit with float32 coefficients; None where the certificate does not survive that."""
        return round_linear(
            blocks,
            fit,
            alpha,
            intercept=self.fit_intercept,
            tolerance=self._tolerance_of(fit, True),
            nonnegative=self.positive,
            n_jobs=self.n_jobs,
        )

    def _asks_for_digits(self) -> bool:
        return self.solver != "auto" or self.tol < _TOL

    def _solve(self, blocks: Blocks, alpha: float, run: Run) -> LinearFit:
        """Return the solution for one α."""
        intercept = self.fit_intercept
        if self.positive:
            return nonnegative_fit(blocks, alpha, intercept=intercept)._replace(kind="stationarity")
        if self.solver == "svd" and not blocks.in_memory:
            return compressed_fit(blocks, alpha, intercept=intercept, n_jobs=self.n_jobs)
        if self.solver == "svd":
            return orthogonal_fit(*dense_rows(blocks), alpha, intercept=intercept)
        if self.solver not in (*_ITERATIVE, *DESCENT):
            fit = least_squares(blocks, alpha, intercept=intercept, n_jobs=self.n_jobs)
            if fit is not None:
                return fit
        found = self._iterate(blocks, alpha, run)
        n = blocks.n_rows
        d = blocks.n_columns
        if found.scaled and n * d * min(n, d) <= _QUICK:
            # Such a penalty is below the rounding of the equations: without it the shortest solution is well defined.
            shortest = least_squares(blocks, 0.0, intercept=intercept, n_jobs=self.n_jobs)
            if shortest is not None:
                return shortest
        return found


def _alpha_per_target(alpha: Any, n_targets: int) -> Any:
    alphas = np.asarray(alpha, dtype=np.float64).ravel()
    if len(alphas) not in (1, n_targets):
        raise ParameterError(
            "Ridge: alpha must be one number or one per target. Number of targets and number of penalties do not "
            f"correspond: {len(alphas)} != {n_targets}."
        )
    return np.broadcast_to(alphas, (n_targets,))
