r"""Mean functions of Gaussian processes: zero, a constant, a line in every column, or any regressor.

A constant and a line, m(x) = h(x)ᵀβ, have coefficients with a flat prior: they are integrated out, as in universal
kriging, so that the uncertainty of β is part of every prediction. With r = y − Hβ, Q = K⁻¹H and A = HᵀQ,

    log p(y) = −½ rᵀK⁻¹r − ½ log|K| − ½ log|A| − ½(n − q) log 2π,   β = A⁻¹Qᵀy.

A regressor is fitted to the data first, and its predictions are taken as given.

Reference: C. Rasmussen and C. Williams, Gaussian Processes for Machine Learning, 2006, §2.7, equations 2.41 to 2.45.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from sklearn.base import clone

from ...core.declare import Matches, Options, Rule
from ...core.errors import DataError, ModelFileError

Array = NDArray[np.float64]

#: What the parameter `mean` may be.
MEAN: Rule = Options("zero", "constant", "linear") | Matches(
    lambda v: hasattr(v, "fit") and hasattr(v, "predict"), "a regressor"
)
_DEPENDENT = 1e-10  # a column that is the others up to this share is left out


@dataclass(frozen=True)
class Trend:
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

    def _check_loaded(self) -> None:
        whole = self.columns.ndim == 1 and self.columns.dtype.kind in "iu"
        if not whole or not all(
            a.shape == self.columns.shape and a.dtype.kind == "f" for a in (self.centre, self.scale)
        ):
            raise ModelFileError("a mean must have a centre and a scale for each of its columns")
        if len(self.columns) and not (self.columns.min() >= 0 and self.columns.max() < self.n_columns):
            raise ModelFileError("a mean sees columns that the points do not have")
        if not (np.isfinite(self.centre).all() and (self.scale > 0.0).all() and np.isfinite(self.scale).all()):
            raise ModelFileError("the centres of a mean must be finite, its scales positive")


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
