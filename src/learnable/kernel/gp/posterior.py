r"""What a Gaussian process says of new points: means, standard deviations, covariances, distributions, draws.

With k = k(x, ·) at the points of the model, h the functions of the mean and r = h − HᵀK⁻¹k,

    mean = hᵀβ + kᵀα,     variance = k(x, x) − ‖L⁻¹k‖² + ‖B⁻¹L⁻¹k‖² + rᵀA⁻¹r,

where B is there with inducing points only, and r with a mean that has coefficients. Rows are done in blocks on
threads, each with BLAS of one thread: the same bits for any number of threads, O(n) memory per row of a block.

Mean functions of Gaussian processes: zero, a constant, a line in every column, or any regressor.

A constant and a line, m(x) = h(x)ᵀβ, have coefficients with a flat prior: they are integrated out, as in universal
kriging, so that the uncertainty of β is part of every prediction. With r = y − Hβ, Q = K⁻¹H and A = HᵀQ,

    log p(y) = −½ rᵀK⁻¹r − ½ log|K| − ½ log|A| − ½(n − q) log 2π,   β = A⁻¹Qᵀy.

A regressor is fitted to the data first, and its predictions are taken as given.

Reference: C. Rasmussen and C. Williams, Gaussian Processes for Machine Learning, 2006, §2.7, equations 2.41 to 2.45.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh, qr
from scipy.linalg.lapack import dtrtri
from sklearn.base import clone

from ...core import (
    Array,
    DataError,
    Loadable,
    Matches,
    ModelFileError,
    NDArray,
    Options,
    ParameterError,
    Rule,
    interruptible,
    law,
    laws,
    one_thread_blas,
)
from ...data.blocks import map_reduce
from ...data.door import is_external, read_features
from ...data.sources import rowwise
from ...probability.normal import Normal
from ...risk.kernels.base import Gaussian, Kernel, as_kernel
from ...risk.kernels.composed import Product, Restricted, Scaled, Sum
from ...risk.kernels.elementary import Constant, White
from ...risk.kernels.spaces import RKHSFunction
from ..rows import gauss_tile64
from .likelihood import inverse_of_lower

#: What the parameter `mean` may be.
MEAN: Rule = Options("zero", "constant", "linear") | Matches(
    lambda v: hasattr(v, "fit") and hasattr(v, "predict"), "a regressor"
)
_DEPENDENT = 1e-10  # a column that is the others up to this share is left out


@dataclass(frozen=True)
class Trend(Loadable):
    """The functions h of a mean h(x)ᵀβ: a one, and some columns, centred and scaled.

    Attributes
    ----------
    n_columns : int
        Columns of x.
    intercept : bool
        Whether the first of them is the constant one; without it there is no h at all.
    columns : (q − 1,) int array
        Which columns of x follow; those that depend on others are left out.
    centre, scale : (q − 1,) arrays
        What is subtracted from them, and what they are then divided by.
    """

    n_columns: int
    intercept: bool
    columns: np.ndarray
    centre: np.ndarray
    scale: np.ndarray

    @property
    def size(self) -> int:
        """How many functions there are: q."""
        return int(self.intercept) + len(self.columns)

    @property
    def log_units(self) -> float:
        """Σ log of the scales: the flat prior counts with density one for coefficients of unscaled columns."""
        return float(np.log(self.scale).sum())

    def basis(self, X: Any) -> Array:
        """Return H = h(xᵢ), of shape (n, q)."""
        one = np.ones((X.shape[0], int(self.intercept)))
        if not len(self.columns):
            return one
        return np.hstack([one, (X[:, self.columns] - self.centre) / self.scale])

    _laws = laws(
        law(
            "a mean must have a centre and a scale for each of its columns",
            lambda trend: (
                trend.columns.ndim == 1
                and trend.columns.dtype.kind in "iu"
                and all(a.shape == trend.columns.shape and a.dtype.kind == "f" for a in (trend.centre, trend.scale))
            ),
        ),
        law(
            "a mean sees columns that the points do not have",
            lambda trend: not trend.columns.size or 0 <= trend.columns.min() <= trend.columns.max() < trend.n_columns,
        ),
        law(
            "the centres of a mean must be finite, its scales positive",
            lambda trend: (
                np.isfinite(trend.centre).all() and np.isfinite(trend.scale).all() and (trend.scale > 0.0).all()
            ),
        ),
    )


def trend_of(owner: str, mean: Any, X: Any) -> Trend:
    """Return the functions of a mean for points X (n, d)."""
    linear = isinstance(mean, str) and mean == "linear"
    if linear and X.ndim == 1:
        raise DataError(f"{owner}: mean='linear' needs columns of numbers, which these points do not have.")
    columns = _independent(X) if linear else np.zeros(0, dtype=np.int64)
    part = X[:, columns] if linear else np.zeros((X.shape[0], 0))
    has_level = mean in ("constant", "linear") if isinstance(mean, str) else False
    found = Trend(X.shape[1] if X.ndim > 1 else 0, has_level, columns, part.mean(axis=0), part.std(axis=0))
    if found.size >= X.shape[0]:
        raise DataError(
            f"{owner}: mean={mean!r} has {found.size} coefficients, which {X.shape[0]} rows cannot tell from the "
            "process; use mean='zero', or more rows."
        )
    return found


def fitted_mean(mean: Any, X: Any, y: Array) -> Any:
    """Return the mean that is a regressor, fitted to (X, y); None if the mean is a word."""
    return None if isinstance(mean, str) else clone(mean).fit(X, y[:, 0] if y.shape[1] == 1 else y)


def _independent(X: Array) -> NDArray[np.int64]:
    """Return the columns that are no combination of a constant and of those chosen."""
    spread = X.std(axis=0)
    varies = np.flatnonzero(spread > 1e-12 * np.abs(X).max(axis=0, initial=0.0))
    if not len(varies):
        return varies.astype(np.int64)
    Z = (X[:, varies] - X[:, varies].mean(axis=0)) / spread[varies]
    _, R, order = qr(Z, mode="economic", pivoting=True)
    size = np.abs(np.diag(R))
    return np.sort(varies[order[: int((size > _DEPENDENT * size[0]).sum())]]).astype(np.int64)


_BLOCK = 2**19  # kernel values of one block: 4 MB
_MANY = 2**20  # kernel values from which a compiled loop pays
_PANEL = 256  # rows of L⁻¹ that are multiplied at a time; what lies above its diagonal is left out


class Posterior:
    """The predictions of a Gaussian process; before `fit`, those of its prior."""

    kernel: Any
    alpha: Any
    n_jobs: int | None
    n_targets: int | None
    n_features_in_: int
    kernel_: Kernel
    X_train_: Array
    inducing_points_: Array
    alpha_: Array
    beta_: Array
    trend_: Trend
    mean_: Any
    L_: Array
    W_: Array
    B_: Array
    y_mean_: Array
    y_std_: Array

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return the predictive mean, and with it the standard deviation or the covariance matrix if asked for.

        As in scikit-learn, they are those of the process of `kernel_`: with the noise of a `White` part, without
        `alpha`.

        Parameters
        ----------
        X : array, dataframe, path or Dask collection of shape (n_samples, n_features)
            Points.
        return_std, return_cov : bool
            Whether to return a second array: (n_samples,) or (n_samples, n_samples), with a last axis for several
            targets. At most one of the two.
        """
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        if return_cov:
            return self._joint(X, self._kernel())
        if not return_std:
            return self._predict_mean(X)
        return (self._predict_mean(X), self._predict_std(X)) if is_external(X) else self._at(X, self._kernel())

    @rowwise
    def _predict_mean(self, X: Any) -> Array:
        return self._at(X, None)[0]

    @rowwise
    def _predict_std(self, X: Any) -> Array:
        return self._at(X, self._kernel())[1]

    def predict_dist(self, X: Any) -> Normal:
        """Return the distribution of a new observation at each row: the process, `White`, and `alpha` if a number."""
        mean, std = self._at(X, self._kernel())
        if np.ndim(self.alpha) == 0 and self._fitted():
            std = np.hypot(std, self._deviations(np.full(len(mean), float(self.alpha))))
        return _normal(mean, std)

    def predict_function(self, X: Any) -> Normal:
        """Return the distribution of the function itself at each row, without any noise."""
        return _normal(*self._at(X, noise_free(self._kernel())))

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[Array, Array]:
        """Return lower and upper ends that hold a new observation with the probability `level`."""
        return self._predict_end(X, level, 0), self._predict_end(X, level, 1)

    @rowwise
    def _predict_end(self, X: Any, level: float, end: int) -> Array:
        return np.asarray(self.predict_dist(X).interval(level)[end])

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0, *, latent: bool = False) -> Array:
        """Draw from the process at the rows of X: from the posterior, or before `fit` from the prior.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Points.
        n_samples : int
            How many draws.
        random_state : int, Generator or None
            Seed.
        latent : bool
            Whether to draw the function without the noise of a `White` part.

        Returns
        -------
        array of shape (n, n_samples) or (n, n_targets, n_samples)
            The draws.
        """
        mean, cov = self._joint(X, noise_free(self._kernel()) if latent else self._kernel())
        rng = np.random.default_rng(_seed(random_state))
        one = mean.ndim == 1
        mean, cov = (mean[:, None], cov[..., None]) if one else (mean, cov)
        draws = [
            mean[:, [j]] + _root(cov[..., j]) @ rng.standard_normal((len(mean), n_samples))
            for j in range(mean.shape[1])
        ]
        return draws[0] if one else np.stack(draws, axis=1)

    def sample_prior(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Draw functions from the prior of the kernel (learned, if fitted) at rows of X, of shape (n, n_samples)."""
        points = self._read(X)
        kernel = noise_free(self._kernel())
        cov = np.zeros((len(points),) * 2) if kernel is None else kernel(points)
        return _root(cov) @ np.random.default_rng(_seed(random_state)).standard_normal((len(points), n_samples))

    @property
    def function_(self) -> RKHSFunction:
        """Σ αᵢ k(·, xᵢ), the predictive mean without the mean function, as an element of the kernel's space."""
        kernel = noise_free(self.kernel_)
        if kernel is None:
            raise DataError(f"{type(self).__name__}: the kernel is noise alone; its functions are zero.")
        alpha = self.alpha_ * self.y_std_
        return RKHSFunction(kernel, self._points(), alpha)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _fitted(self) -> bool:
        return hasattr(self, "alpha_")

    def _kernel(self) -> Kernel:
        return self.kernel_ if self._fitted() else chosen_kernel(self.kernel)

    def _points(self) -> Array:
        return self.inducing_points_ if hasattr(self, "inducing_points_") else self.X_train_

    def _read(self, X: Any) -> Any:
        """Return points: rows of numbers, or whatever else the kernel compares."""
        if not self._fitted():
            return self._kernel()._read(X)
        if self._points().dtype.kind != "f":
            return self.kernel_._read(X)
        return np.asarray(read_features(self, X, sparse=False), dtype=np.float64)

    def _at(self, X: Any, kernel: Kernel | None) -> tuple[Array, Array]:
        """Return means and standard deviations at the rows of X; without a kernel, no deviations."""
        points = self._read(X)
        if not self._fitted():
            mean = np.zeros((len(points), self.n_targets or 1))
            variance = np.zeros(len(points)) if kernel is None else kernel.diagonal(points)
            both = mean, np.repeat(np.sqrt(variance)[:, None], mean.shape[1], axis=1)
            return (both[0][:, 0], both[1][:, 0]) if mean.shape[1] == 1 else both
        mean, reduced = self._sums(points, variance=kernel is not None)
        mean = self._in_units(mean)
        prior = 0.0 if kernel is None else kernel.diagonal(points)
        std = self._deviations(np.maximum(prior - reduced, 0.0))
        return mean, std if kernel is not None else np.zeros_like(mean)

    def _sums(self, points: Array, *, variance: bool) -> tuple[Array, Array]:
        """Return the means, in units of the fit, and by how much the variance is below that of the prior."""
        own = self._points()
        values = cross_values(noise_free(self.kernel_), own, len(points))
        N = len(points)
        m = len(own)
        t = 1 if self.alpha_.ndim == 1 else self.alpha_.shape[1]
        alpha = self.alpha_.reshape(m, t)
        mean = np.empty((N, t))
        reduced = np.zeros(N)
        factors = self._factors(N) if variance else []
        step = max(16, min(_BLOCK // max(m, 1), 2048))

        def fill(start: int) -> None:
            rows = slice(start, min(start + step, N))
            K = values(points[rows])
            mean[rows] = K @ alpha
            if variance:
                reduced[rows] = self._reduction(K, points[rows], factors)

        map_reduce(list(range(0, N, step)), fill, lambda a, b: None, n_jobs=self.n_jobs)
        if self.trend_.size:
            mean += self.trend_.basis(points) @ self.beta_.reshape(-1, t)
        if self.mean_ is not None:
            mean += np.asarray(self.mean_.predict(points)).reshape(N, t)
        return mean, reduced

    def _factors(self, n_rows: int) -> list[Array]:
        """Return L⁻¹, and with inducing points B⁻¹."""
        found = [self.L_, self.B_] if hasattr(self, "B_") else [self.L_]
        return [inverse_of_lower(np.ascontiguousarray(factor)) for factor in found] if n_rows else []

    def _reduction(self, K: Array, points: Array, factors: list[Array]) -> Array:
        V = lower_times(factors[0], K)
        out = np.einsum("ij,ij->i", V, V)
        for inverse in factors[1:]:
            left = lower_times(inverse, V)
            out -= np.einsum("ij,ij->i", left, left)
        if self.trend_.size:
            r = self.trend_.basis(points) - V @ self.W_
            r = np.linalg.solve(np.linalg.cholesky(self.W_.T @ self.W_), r.T)
            out -= np.einsum("ij,ij->j", r, r)
        return np.asarray(out)

    def _joint(self, X: Any, kernel: Kernel | None) -> tuple[Array, Array]:
        """Return the mean and the covariance matrix of all rows together."""
        points = self._read(X)
        cov = np.zeros((len(points),) * 2) if kernel is None else kernel(points)
        if not self._fitted():
            t = self.n_targets or 1
            mean = np.zeros((len(points), t))
            return (mean[:, 0], cov) if t == 1 else (mean, np.repeat(cov[..., None], t, axis=2))
        mean, _ = self._sums(points, variance=False)
        with one_thread_blas():
            self._subtract_known(cov, points)
        one = self.alpha_.ndim == 1
        scale = np.square(self.y_std_)
        return self._in_units(mean), cov * scale if one else cov[..., None] * scale

    def _subtract_known(self, cov: Array, points: Any) -> None:
        """Subtract from the prior covariance what the training rows tell, some rows on each thread."""
        factors = self._factors(len(points))
        V = self.kernel_._between(points, self._points())
        for number, inverse in enumerate(factors):
            V = _by_rows(V, inverse)
            _add_products(cov, V, -1.0 if number == 0 else 1.0)
            if number == 0 and self.trend_.size:
                r = self.trend_.basis(points) - V @ self.W_
                cov += r @ np.linalg.solve(self.W_.T @ self.W_, r.T)

    def _in_units(self, mean: Array) -> Array:
        return np.asarray(
            mean[:, 0] * self.y_std_ + self.y_mean_ if self.alpha_.ndim == 1 else mean * self.y_std_ + self.y_mean_
        )

    def _deviations(self, variance: Array) -> Array:
        """Return roots of variances in units of y; one column per target."""
        std = np.sqrt(variance)
        return np.asarray(std * self.y_std_ if self.alpha_.ndim == 1 else std[:, None] * self.y_std_)

    def _check_posterior(self) -> None:
        """Raise ModelFileError unless the arrays fit together."""
        points = self._points()
        owner = type(self).__name__
        if not isinstance(self.kernel_, Kernel) or not isinstance(self.trend_, Trend):
            raise ModelFileError(f"{owner}: kernel_ and trend_ must be a kernel and a mean")
        if self.kernel_.requires_vector_input:  # else points may be texts, which only the kernel can read
            width = getattr(self, "n_features_in_", None)
            if not (_is_finite(points, 2) and points.shape[1] == width == self.trend_.n_columns):
                raise ModelFileError(f"{owner}: the points must be a finite matrix with a column for each feature")
        m = len(points)
        targets = self.alpha_.shape[1:] if isinstance(self.alpha_, np.ndarray) else ()
        shapes = {
            "alpha_": (m, *targets), "L_": (m, m), "W_": (m, self.trend_.size), "beta_": (self.trend_.size, *targets),
            "y_mean_": targets, "y_std_": targets, **({"B_": (m, m)} if hasattr(self, "B_") else {}),
        }  # fmt: skip
        for name, shape in shapes.items():
            value: Any = np.asarray(getattr(self, name, np.nan))
            if value.shape != shape or not _is_finite(value, len(shape)):
                raise ModelFileError(f"{owner}: {name} must be finite and of shape {shape}")
        for name in ("L_", "B_"):
            if hasattr(self, name) and not (np.diagonal(getattr(self, name)) > 0.0).all():
                raise ModelFileError(f"{owner}: {name} must have a positive diagonal")


def chosen_kernel(kernel: Any) -> Kernel:
    """Return the kernel of a Gaussian process; by default a Gaussian one with a variance, as in scikit-learn."""
    return Constant(1.0) * Gaussian(1.0) if kernel is None else as_kernel(kernel)


def noise_free(kernel: Kernel | None) -> Kernel | None:
    """Return a kernel without its white parts; None if nothing is left."""
    if isinstance(kernel, Sum):
        left = noise_free(kernel.left)
        right = noise_free(kernel.right)
        if left is None or right is None:
            return right if left is None else left
        return left + right
    if isinstance(kernel, Product):
        left = noise_free(kernel.left)
        right = noise_free(kernel.right)
        if left is None or right is None:
            return None
        return right * left.value if isinstance(left, Constant) else left * right  # a number costs less than a matrix
    if isinstance(kernel, (Scaled, Restricted)):
        inner = noise_free(kernel.inner)
        if inner is None:
            return None
        return inner * kernel.scale if isinstance(kernel, Scaled) else inner.on(*kernel.columns)
    return None if isinstance(kernel, White) else kernel


def precision_diagonal(L: Array) -> Array:
    """Return the diagonal of K⁻¹ from the factor L of K."""
    inverse = inverse_of_lower(np.ascontiguousarray(L))
    return np.einsum("ij,ij->j", inverse, inverse)


def inverse_factor(L: Array) -> Array:
    """Return L⁻¹, row by row in memory."""
    inverse, _ = dtrtri(np.asfortranarray(L), lower=1)
    return np.ascontiguousarray(np.tril(inverse))


def cross_values(kernel: Kernel | None, own: Array, n_rows: int) -> Callable[[Array], Array]:
    """Return the function X ↦ k(X, own); a Gaussian kernel of many rows in one loop over inner products."""
    if kernel is None:
        return lambda X: np.zeros((len(X), len(own)))
    inside, scale = (kernel.inner, kernel.scale) if isinstance(kernel, Scaled) else (kernel, 1.0)
    if not isinstance(inside, Gaussian) or n_rows * len(own) < _MANY:
        return lambda X: kernel._between(X, own)
    centre = own.mean(axis=0)
    unit = np.sqrt(2.0) * inside.length_scale
    Z = np.ascontiguousarray((own - centre) / unit)
    squares = np.einsum("ij,ij->i", Z, Z)

    def values(X: Array) -> Array:
        A = (X - centre) / unit
        dots = A @ Z.T
        out = np.empty_like(dots)  # in place the loop would not vectorise
        gauss_tile64(dots, np.einsum("ij,ij->i", A, A), squares, out, np.arange(len(A)), 0)
        out *= scale
        return out

    return values


def lower_times(A: Array, K: Array) -> Array:
    """Return K Aᵀ for a lower triangular A: half of the products are with zeros, and left out."""
    out = np.empty_like(K)
    for start in range(0, len(A), _PANEL):
        stop = min(start + _PANEL, len(A))
        np.matmul(K[:, :stop], A[start:stop, :stop].T, out=out[:, start:stop])
    return out


def _by_rows(K: Array, inverse: Array) -> Array:
    """Return K Aᵀ for a lower triangular A, some rows on each thread."""
    out = np.empty_like(K)

    def fill(start: int) -> None:
        out[start : start + _PANEL] = lower_times(inverse, K[start : start + _PANEL])

    map_reduce(list(range(0, len(K), _PANEL)), fill, lambda a, b: None)
    return out


def _add_products(cov: Array, V: Array, sign: float) -> None:
    """Add ±VVᵀ, some rows on each thread."""

    def fill(start: int) -> None:
        cov[start : start + _PANEL] += sign * (V[start : start + _PANEL] @ V.T)

    map_reduce(list(range(0, len(V), _PANEL)), fill, lambda a, b: None)


def _root(cov: Array) -> Array:
    """Return F with FFᵀ = Σ, also where Σ is singular."""
    values, vectors = interruptible(eigh, cov)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _normal(mean: Array, std: Array) -> Normal:
    return Normal(mean, np.maximum(std, np.finfo(float).tiny))


def _seed(random_state: Any) -> Any:
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, (int, np.integer)) and random_state < 0:
        raise ParameterError(f"random_state must be >= 0; got {random_state}.")
    return random_state


def _is_finite(value: Any, ndim: int) -> bool:
    return (
        isinstance(value, np.ndarray)
        and value.ndim == ndim
        and value.dtype.kind == "f"
        and bool(np.isfinite(value).all())
    )
