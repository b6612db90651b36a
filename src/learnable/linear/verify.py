r"""Independent checks of the linear models' certificates: the definitions, evaluated in plain NumPy.

Nothing here is shared with the fits but the reading of column names: sums, scores, dual points and the checksum of the
data are computed again, in extended precision, whose digits and range make centring and scaling unnecessary.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core import Recheck, VerificationError
from ..data.checking import Array, Rows, class_weights_of, fingerprint_of, numbers_of, plain_rows, read_classes, sound
from ..data.sources import named_columns
from .verify_stored import least_squares_arrays, ridge_choice

_CLOSED_FORM_ROUNDING = 1e-13  # what rounding may add to a relative residual
_EPSILON = 2.0**-52  # distance from one to the next float64
_FAR = 1e4  # means beyond this many deviations are subtracted before anything else is computed


def rows_of(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, Array]:
    """Return the rows of a regression, and which of those given they are."""
    X, y, sample_weight = named_columns("verify", X, y, sample_weight)
    targets = numbers_of(y)
    weight = 1.0 if sample_weight is None else np.asarray(sample_weight, dtype=float)
    return plain_rows(model, X, targets, sample_weight), np.broadcast_to(weight, (len(targets),)) > 0


def class_rows(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, str]:
    """Return the rows of a classifier with class codes, their weights times those of the classes, and the checksum."""
    rows, fingerprint = read_classes(model, X, y, sample_weight)
    of_class = class_weights_of(model.class_weight, model.classes_, rows)
    return rows._replace(weight=rows.weight * of_class[rows.y]), fingerprint


class Sums(NamedTuple):
    """Sums over the residuals r = y − b − xᵀB of a model, about the means if it has an intercept."""

    weight: Any  #: Σ s
    x_mean: Array  #: (d,), zero without an intercept
    y_mean: Array  #: (t,), likewise
    correlation: Array  #: (d, t), Σ s r (x − x̄)
    total: Array  #: (t,), Σ s r
    r_square: Array  #: (t,), Σ s r²
    x_square: Array  #: (d,), Σ s (x − x̄)²
    y_square: Array  #: (t,), Σ s (y − ȳ)²
    noise: Array  #: (d,), what a last digit of every term of r does to Σ s r (x − x̄)
    far: float  #: largest mean of a column against its spread: digits that centring costs

    def target(self, k: int) -> Sums:
        """Return the sums of one target."""
        one = slice(k, k + 1)
        return self._replace(
            correlation=self.correlation[:, one],
            total=self.total[one],
            r_square=self.r_square[one],
            y_square=self.y_square[one],
        )


def residual_sums(model: Any, rows: Rows, B: Array) -> Sums | None:
    """Return the sums for coefficients B (d, t), in two passes; None if the intercept is not what the model says."""
    d, t = B.shape
    b = np.atleast_1d(np.asarray(model.intercept_, dtype=np.longdouble))
    if rows.y.shape[1] != t:
        raise VerificationError(f"verify: the model has {t} targets, the data {rows.y.shape[1]}.")
    if not model.fit_intercept and b.any():
        return None
    W, x_sum, y_sum, total = (np.zeros(shape, dtype=np.longdouble) for shape in ((), d, t, t))
    for Z, target, s in rows.chunks():
        W = W + s.sum()
        x_sum = x_sum + Z.T @ s
        y_sum = y_sum + s @ target
    x_mean = x_sum / W * bool(model.fit_intercept)
    y_mean = y_sum / W * bool(model.fit_intercept)
    cross, r_square, y_square, x_square, noise = (
        np.zeros(shape, dtype=np.longdouble) for shape in ((d, t), t, t, d, d)
    )
    for Z, target, s in rows.chunks():
        r = target - b - Z @ B
        weighted = s[:, None] * r
        cross = cross + Z.T @ weighted
        total = total + weighted.sum(axis=0)
        r_square = r_square + (weighted * r).sum(axis=0)
        y_square = y_square + s @ (target - y_mean) ** 2
        x_square = x_square + (Z * Z).T @ s
        terms = (np.abs(target - y_mean) + abs(Z) @ np.abs(B)).sum(axis=1)
        noise = noise + (Z * Z).T @ (s * terms) ** 2
    total = total * bool(model.fit_intercept)
    centred = np.maximum(x_square - W * x_mean**2, 0)
    spread = np.maximum(centred, 1e-30 * x_square)  # constant columns do not count
    far = min(_FAR, float(np.sqrt((W * x_mean**2 / spread).max(initial=0))))
    correlation = cross - np.outer(x_mean, total)
    blur = _EPSILON * np.sqrt(noise)
    return Sums(W, x_mean, y_mean, correlation, total, r_square, centred, y_square, blur, far)


@sound
@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def least_squares(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a LinearRegression, and what its intervals are made of."""
    rows, _ = rows_of(model, X, y, sample_weight)
    found = check_quadratic(model, rows, alpha=np.zeros(1))
    return found if least_squares_arrays(model, rows) else found._replace(value=np.inf)


@sound
@np.errstate(all="ignore")
def ridge(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a Ridge or RidgeCV, and the scores by which the latter chose."""
    alpha = model.alpha_ if hasattr(model, "alpha_") else model.alpha
    rows, kept = rows_of(model, X, y, sample_weight)
    found = check_quadratic(model, rows, alpha=np.atleast_1d(np.asarray(alpha, dtype=float)))
    if hasattr(model, "alpha_") and not ridge_choice(model, rows, kept):
        return found._replace(value=np.inf)
    return found


def check_quadratic(model: Any, rows: Rows, alpha: Array) -> Recheck:
    """Evaluate the equations Σ w r (x − x̄) = αβ, Σ w r = 0 that define a (ridge) least squares fit."""
    B = np.atleast_2d(model.coef_).T.astype(np.longdouble)
    b = np.atleast_1d(np.asarray(model.intercept_, dtype=np.longdouble))
    sums = residual_sums(model, rows, B)
    if sums is None:
        return Recheck(np.inf, 0.0, fingerprint_of(rows))
    W = sums.weight
    g = sums.correlation - alpha * B
    total = sums.total
    if model.certificate_.kind == "gap":
        gap = (g**2).sum(axis=0) / alpha
        offset = total**2 / W  # what the best intercept would gain
        dual = sums.r_square - offset + alpha * (B**2).sum(axis=0) - gap
        value = (gap + offset) / np.maximum(dual, 1e-8 * sums.y_square)
        return Recheck(float(np.max(value)), 1e-14, fingerprint_of(rows))
    if getattr(model, "positive", False):
        g = np.where(B > 0, g, np.maximum(g, 0)) if (B >= 0).all() else np.full_like(g, np.inf)
    root = np.sqrt(W)
    share = 1e-14 / max(model.certificate_.tolerance, 1e-12) * root  # digits that rounding blurs at a large mean
    x_size = np.sqrt(sums.x_square) + share * abs(sums.x_mean)
    y_size = np.sqrt(sums.y_square) + share * abs(sums.y_mean)
    terms = y_size + x_size @ abs(B) + share * abs(b)
    size = np.outer(x_size, terms) + alpha * abs(B).max(axis=0)
    # Coefficients below the range of float64 are stored to its smallest step: what that step does is no error.
    step = np.longdouble(np.finfo(float).smallest_subnormal)
    g = np.maximum(abs(g) - step * (np.outer(x_size, x_size.sum() + root) + alpha), 0)
    total = np.maximum(abs(total) - step * (root * x_size.sum() + W * (1 + abs(sums.x_mean).sum())), 0)
    worst = max(_largest_ratio(g, size), _largest_ratio(total, root * terms))
    return Recheck(worst, _CLOSED_FORM_ROUNDING, fingerprint_of(rows))


def _largest_ratio(numerator: Array, denominator: Array) -> float:
    ratio = np.where(denominator > 0, numerator / np.where(denominator > 0, denominator, 1), np.inf)
    return float(np.max(np.where(numerator == 0, 0, ratio), initial=0.0))  # NaN stays NaN
