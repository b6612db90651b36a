r"""All n leave-one-out fits of a linear model from one factorisation.

Let A = Σ wⱼ x̃ⱼx̃ⱼᵀ + αI (the intercept unpenalised), rᵢ the residual of row i and hᵢ = wᵢ x̃ᵢᵀA⁻¹x̃ᵢ. The fit without
row i is

    β₋ᵢ = β − A⁻¹x̃ᵢ wᵢ rᵢ / (1 − hᵢ),

exactly; in the singular value decomposition of the centred rows this also holds for minimum-norm fits. A row with hᵢ =
1 alone supports a direction: without it the fit is another one, and is computed by leaving the row out. Time
O(nd·min(n, d)), memory O(nd).

Reference: R. D. Cook and S. Weisberg, Residuals and influence in regression, 1982, section 2.2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..data.door import read_features
from ..data.rows import Sample
from ..linear.least_squares.linear_regression import LinearRegression
from ..linear.least_squares.ridge import Ridge, ridge_spectrum
from ._rows import fit_copies

Array = NDArray[np.float64]

#: Below this 1 − h has lost so many digits that the row is refitted.
_LEAST_FREEDOM = 1e-6


class LeaveOneOut(NamedTuple):
    """The coefficients of the n fits that leave one row out each."""

    coef: Array  #: (n, d)
    intercept: Array  #: (n,)
    errors: Array  #: (n,), yᵢ − μ₋ᵢ(xᵢ)
    disagreement: float  #: greatest difference between `errors` and rᵢ/(1 − hᵢ), relative to y


def penalty_of(model: Any) -> float | None:
    """Return α if the model is least squares with a fixed quadratic penalty α ≥ 0, else None.

    A model that chooses α from the data, or constrains the signs, is none: without a row it might choose otherwise.

    Examples
    --------
    >>> from learnable import LinearRegression, Ridge
    >>> penalty_of(Ridge(alpha=2.0)), penalty_of(LinearRegression()), penalty_of(Ridge(positive=True))
    (2.0, 0.0, None)
    """
    from sklearn import linear_model as peer

    if type(model) in (LinearRegression, peer.LinearRegression):
        return None if model.positive else 0.0
    if type(model) not in (Ridge, peer.Ridge) or model.positive or np.ndim(model.alpha):
        return None
    exact = type(model) is Ridge or model.solver in ("auto", "svd", "cholesky")
    return float(model.alpha) if exact else None


def leave_one_out_fits(owner: str, model: Any, fitted: Any, sample: Sample, alpha: float) -> LeaveOneOut | None:
    """Return the n fits, given the one to all rows; None if most rows would have to be refitted."""
    X = numbers_of(fitted, sample.X)
    y = sample.y[:, None]
    spectrum = ridge_spectrum(X, y, sample.weight, intercept=model.fit_intercept, smallest_alpha=alpha)
    alphas = np.array([alpha])
    free = spectrum.freedom(alphas)[:, 0]
    regular = free > _LEAST_FREEDOM
    if (~regular).sum() > 0.5 * len(y):
        return None
    residuals = sample.y - (X @ np.ravel(fitted.coef_) + fitted.intercept_)
    step = np.where(regular, residuals / np.where(regular, free, 1.0), 0.0)
    scaled = np.ldexp(alphas, -2 * spectrum.x_exponent - spectrum.weight_exponent)
    influence = (spectrum.left / (spectrum.values + scaled)) @ (spectrum.left.T @ spectrum.rows)  # rows √wᵢ A⁻¹x̃ᵢ
    influence = np.ldexp(influence, -spectrum.x_exponent) * (spectrum.root_weight * step)[:, None]
    coef = np.ravel(fitted.coef_) - influence
    intercept = np.full(len(y), float(np.ravel(fitted.intercept_)[0]))
    if model.fit_intercept:
        share = spectrum.root_weight**2 / (spectrum.root_weight**2).sum()
        intercept += influence @ spectrum.x_mean - share * step
    for row in np.flatnonzero(~regular):
        [without] = fit_copies(owner, model, sample, [np.delete(np.arange(len(y)), row)])
        coef[row] = np.ravel(without.coef_)
        intercept[row] = float(np.ravel(without.intercept_)[0])
    errors = sample.y - np.einsum("ij,ij->i", X, coef) - intercept
    size = float(np.abs(sample.y).max()) or 1.0
    return LeaveOneOut(coef, intercept, errors, float(np.abs(errors - step)[regular].max()) / size)


def numbers_of(fitted: Any, X: Any) -> Array:
    """Return X as a dense float64 array whose columns are those of the fit."""
    table = read_features(fitted, X)
    return np.asarray(table.toarray() if sp.issparse(table) else table, dtype=np.float64)
