r"""Derivatives by differences, and checks of derivatives written by hand.

A check compares with central differences (f(x + h) − f(x − h))/2h at ever smaller h, extrapolated to h = 0 by
Richardson's rule in Ridders' tableau; the entry that agrees best with its neighbours is taken, and their disagreement
is its error.
A discrepancy counts only beyond that error, so that a rough function is not blamed for rounding.

Reference: C. Ridders, Advances in Engineering Software 4 (1982).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import Array, DataError, Number, ParameterError

_LEVELS = 6  # of extrapolation, each with a smaller step
_SHRINK = 1.6  # by which the step is divided from level to level
_FIRST = 0.05  # of max(|x|, 1): the largest difference; truncation is extrapolated away, rounding is not
_CUBE_ROOT = float(np.finfo(float).eps ** (1 / 3))


@dataclass(frozen=True)
class DerivativeCheck:
    """The outcome of a check; true if the derivative is right.

    Attributes
    ----------
    name : str
        What was checked.
    given, numeric : arrays
        The derivative as written, and by differences.
    error : array
        Relative discrepancy of each entry beyond the differences' own error.
    tolerance : float
        What `error` may be at most.
    """

    name: str
    given: Array
    numeric: Array
    error: Array
    tolerance: float

    @property
    def worst(self) -> float:
        """The largest discrepancy (NaN counts as infinite)."""
        return float(np.where(np.isnan(self.error), np.inf, self.error).max(initial=0.0))

    @property
    def where(self) -> tuple[int, ...]:
        """The index of the entry that is worst."""
        error = np.where(np.isnan(self.error), np.inf, self.error)
        return tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))

    def __bool__(self) -> bool:
        return self.worst <= self.tolerance

    def __repr__(self) -> str:
        if self:
            return f"{self.name}: agrees with differences to {self.worst:.2g}"
        at = self.where
        return (
            f"{self.name}: WRONG at {list(at)}: {self.given[at]:.6g} as written, {self.numeric[at]:.6g} by differences "
            f"(relative error {self.worst:.2g}, tolerance {self.tolerance:.2g})"
        )


def check_gradient(
    fun: Callable[[Array], float], gradient: Callable[[Array], Any], x: Any, *, tolerance: float = 1e-6
) -> DerivativeCheck:
    """Check a gradient at a point.

    Parameters
    ----------
    fun : function
        x ↦ f(x), a number.
    gradient : function
        x ↦ ∇f(x), of shape (p,).
    x : (p,) array
        Where; a point in general position shows most.
    tolerance : float
        Largest relative error of an entry.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.solvers import check_gradient
    >>> bool(check_gradient(lambda w: w[0] ** 2 + np.exp(w[0]), lambda w: 2 * w + np.exp(w), [0.5]))
    True
    >>> check_gradient(lambda w: w @ w, lambda w: w * [2, 1], [1.0, 2.0])
    gradient: WRONG at [1]: 2 as written, 4 by differences (relative error 0.5, tolerance 1e-06)
    """
    point = as_point("check_gradient", x)
    given = _array("check_gradient", "gradient", gradient(point.copy()), (len(point),))
    numeric, noise = _ridders(lambda z: np.array([_number("check_gradient", fun(z))]), point)
    return _compare("gradient", given, numeric[0], noise[0], tolerance)


def check_jacobian(
    fun: Callable[[Array], Any], jacobian: Callable[[Array], Any], x: Any, *, tolerance: float = 1e-6
) -> DerivativeCheck:
    """Check a Jacobian, J[i, j] = ∂fᵢ/∂xⱼ.

    Parameters
    ----------
    fun : function
        x ↦ f(x), of shape (m,).
    jacobian : function
        x ↦ J, of shape (m, p).
    x, tolerance
        As for `check_gradient`.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.solvers import check_jacobian
    >>> polar = lambda z: z[0] * np.array([np.cos(z[1]), np.sin(z[1])])
    >>> J = lambda z: np.array([[np.cos(z[1]), -z[0] * np.sin(z[1])], [np.sin(z[1]), z[0] * np.cos(z[1])]])
    >>> bool(check_jacobian(polar, J, [2.0, 0.3]))
    True
    """
    return _check_matrix("Jacobian", "check_jacobian", fun, jacobian, x, tolerance)


def check_hessian(
    gradient: Callable[[Array], Any], hessian: Callable[[Array], Any], x: Any, *, tolerance: float = 1e-6
) -> DerivativeCheck:
    """Check a Hessian against differences of the gradient (check that one first).

    Parameters
    ----------
    gradient : function
        x ↦ ∇f(x), of shape (p,).
    hessian : function
        x ↦ H, of shape (p, p), or x ↦ (v ↦ Hv).
    x, tolerance
        As for `check_gradient`.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.solvers import check_hessian
    >>> bool(check_hessian(lambda w: 2 * w + np.exp(w), lambda w: np.diag(2 + np.exp(w)), [0.5, -1.0]))
    True
    >>> bool(check_hessian(lambda w: w**3, lambda w: lambda v: 3 * w**2 * v, [0.5, -1.0]))
    True
    """

    def as_matrix(z: Array) -> Any:
        H = hessian(z)
        return np.column_stack([H(column) for column in np.eye(len(z))]) if callable(H) else H

    return _check_matrix("Hessian", "check_hessian", gradient, as_matrix, x, tolerance)


def _check_matrix(
    name: str, owner: str, fun: Callable[[Array], Any], matrix: Callable[[Array], Any], x: Any, tolerance: float
) -> DerivativeCheck:
    point = as_point(owner, x)
    here = np.atleast_1d(np.asarray(fun(point.copy()), dtype=np.float64))
    given = _array(owner, name, matrix(point.copy()), (len(here), len(point)))
    numeric, noise = _ridders(lambda z: np.atleast_1d(np.asarray(fun(z), dtype=np.float64)), point)
    return _compare(name, given, numeric, noise, tolerance)


def _compare(name: str, given: Array, numeric: Array, noise: Array, tolerance: float) -> DerivativeCheck:
    if not Number(low=0.0).allows(tolerance):
        raise ParameterError(f"check_{name.lower()}: tolerance must be a number >= 0; got {tolerance!r}.")
    size = np.maximum(np.maximum(np.abs(given), np.abs(numeric)), np.finfo(float).tiny)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.maximum(np.abs(given - numeric) - noise, 0.0) / size
    return DerivativeCheck(name, given, numeric, error, float(tolerance))


def _ridders(fun: Callable[[Array], Array], x: Array) -> tuple[Array, Array]:
    """Return the Jacobian (m, p) by extrapolated central differences, and an estimate of its error."""
    columns = []
    errors = []
    for j in range(len(x)):
        step = _FIRST * max(abs(x[j]), 1.0)
        last = [_central(fun, x, j, step)]
        best = last[0]
        error = np.full(last[0].shape, np.inf)
        for _ in range(_LEVELS):
            step /= _SHRINK
            row = [_central(fun, x, j, step)]
            for k, coarser in enumerate(last):
                factor = _SHRINK ** (2 * (k + 1))
                row.append((factor * row[k] - coarser) / (factor - 1))
                spread = np.maximum(np.abs(row[-1] - row[k]), np.abs(row[-1] - coarser))
                better = spread < error
                best = np.where(better, row[-1], best)
                error = np.where(better, spread, error)
            last = row
        columns.append(best)
        errors.append(error)
    return np.column_stack(columns), np.column_stack(errors)


def _central(fun: Callable[[Array], Array], x: Array, j: int, step: float) -> Array:
    above = x.copy()
    below = x.copy()
    above[j] = x[j] + step
    below[j] = x[j] - step
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray((fun(above) - fun(below)) / (above[j] - below[j]))


def numerical_jacobian(fun: Callable[[Array], Array], x: Array) -> Array:
    """Return the Jacobian (m, p) by plain central differences: 2p evaluations, about ten digits.

    Examples
    --------
    >>> import numpy as np
    >>> numerical_jacobian(lambda x: np.array([x[0] * x[1]]), np.array([2.0, 3.0])).round(6)
    array([[3., 2.]])
    """
    return np.column_stack([_central(fun, x, j, h) for j, h in enumerate(difference_steps(x))])


def difference_steps(x: Array) -> Array:
    """Return the h of each coordinate that balances truncation (h²) and rounding (ε/h)."""
    return np.asarray(_CUBE_ROOT * np.maximum(np.abs(x), 1.0))


def as_point(owner: str, x: Any) -> Array:
    """Return x as a new float64 vector; raise DataError unless it holds finite numbers."""
    try:
        point = np.array(x, dtype=np.float64, ndmin=1)
    except (TypeError, ValueError) as error:
        raise DataError(f"{owner}: x must be a vector of numbers; {error}.") from error
    if point.ndim != 1 or point.size == 0 or not np.isfinite(point).all():
        raise DataError(f"{owner}: x must be a vector of finite numbers; got shape {point.shape} with {_odd(point)}.")
    return point


def _odd(point: Array) -> str:
    bad = point[~np.isfinite(point)]
    return f"{bad.flat[0]} in it" if bad.size else "finite numbers"


def _array(owner: str, name: str, values: Any, shape: tuple[int, ...]) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise DataError(
            f"{owner}: the {name} must have shape {shape}; got {array.shape}. Return one entry a derivative."
        )
    return array


def _number(owner: str, value: Any) -> float:
    array = np.asarray(value, dtype=np.float64)
    if array.size != 1:
        raise DataError(
            f"{owner}: fun must return one number; got shape {array.shape}. Use check_jacobian for vectors."
        )
    return float(array.reshape(()))
