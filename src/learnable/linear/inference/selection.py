r"""Inference after selection: what the lasso or forward steps chose, tested with allowance for the choice.

Given that y ~ N(μ, σ²I), the event that a procedure chooses these columns with these signs is a polyhedron {Ay ≤ b}.
Within it ηᵀy, a coefficient of least squares on the chosen columns, is a normal truncated to [V⁻, V⁺], which has exact
p-values and intervals (Lee, Sun, Sun and Taylor, Ann. Statist. 44 (2016), theorem 5.2). They say what holds among
samples in which the same columns are chosen. σ must be known; where it is estimated, levels are approximate.

Data splitting chooses on one part of the rows and infers on the other: valid for any procedure, with fewer rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr
from sklearn.utils import check_random_state

from ...core.errors import DataError, ParameterError
from ..least_squares.linear_regression import LinearRegression
from ..sparse.elastic_net import Lasso
from .infer import infer
from .summary import Inference

Array = NDArray[np.float64]

_REACHES = 10.0 ** np.arange(1, 9)  # standard errors within which the ends of an interval are looked for
_KKT = 1e-6  # relative slack of the constraints at y that counts as rounding


@dataclass(frozen=True)
class SelectiveInference:
    """Coefficients of least squares on chosen columns, with p-values and intervals that allow for the choice.

    Attributes
    ----------
    columns : (k,) array
        The chosen columns, in the order of the choice.
    names : list of str
        Their names.
    estimate : (k,) array
        Least squares on these columns.
    p_value, lower, upper : (k,) arrays
        Of the hypothesis that a coefficient is zero (two-sided), and ends of its interval; an end may be infinite.
    truncation : (k, 2) array
        V⁻ and V⁺: between which the estimate had to lie for the choice to be this one.
    sigma : float
        The noise that was used.
    sigma_known : bool
        Whether it was given; where it was estimated, levels are approximate.
    level : float
        Level of the intervals.
    """

    columns: NDArray[np.int64]
    names: list[str]
    estimate: Array
    p_value: Array
    lower: Array
    upper: Array
    truncation: Array
    sigma: float
    sigma_known: bool
    level: float

    def __str__(self) -> str:
        width = max([len(name) for name in self.names] + [6])
        lines = [f"{'column':<{width}}  {'estimate':>11}  {'p':>8}  {100 * self.level:g}% interval"]
        for name, b, p, low, high in zip(self.names, self.estimate, self.p_value, self.lower, self.upper, strict=True):
            lines.append(f"{name:<{width}}  {b:>11.5g}  {p:>8.3g}  [{low:.5g}, {high:.5g}]")
        how = "given" if self.sigma_known else "estimated from all columns, so levels are approximate"
        return "\n".join([*lines, f"σ = {self.sigma:.5g}, {how}"])


def lasso_inference(
    X: Any, y: ArrayLike, alpha: float, *, sigma: float | None = None, level: float = 0.95, fit_intercept: bool = True
) -> SelectiveInference:
    """Fit the lasso at a fixed penalty and infer about the columns that it keeps.

    Parameters
    ----------
    X : array or dataframe of shape (n_samples, n_features)
        Fixed columns.
    y : array of shape (n_samples,)
        Targets with independent normal noise.
    alpha : float
        The lasso's penalty, chosen without looking at y.
    sigma : float, optional
        Standard deviation of the noise; None estimates it from the residuals of least squares on all columns.
    level : float
        Level of the intervals.
    fit_intercept : bool
        Whether columns and targets are centred first.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.linear import lasso_inference
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> y = 2 * X[:, 3] + np.random.default_rng(1).normal(size=60)
    >>> found = lasso_inference(X, y, alpha=0.3, sigma=1.0)
    >>> found.columns.tolist(), bool(found.p_value[0] < 1e-6)
    ([3], True)
    """
    A, t, names = _read("lasso_inference", X, y, fit_intercept)
    if not alpha > 0:
        raise ParameterError(f"lasso_inference: alpha must be positive; got {alpha}.")
    noise, known = _noise("lasso_inference", A, t, sigma, fit_intercept)
    fit = Lasso(alpha=alpha, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(A, t)
    lam = alpha * len(t)
    slope = A.T @ (t - A @ fit.coef_)
    active = np.flatnonzero(fit.coef_ != 0)
    if len(active) == 0:
        return _conclude(names, active, A, t, np.zeros((0, len(t))), np.zeros(0), noise, known, level)
    signs = np.sign(slope[active])
    E = A[:, active]
    gram = E.T @ E
    if np.linalg.matrix_rank(gram) < len(active):
        raise DataError("lasso_inference: the chosen columns depend on each other; drop some of them.")
    inverse = np.linalg.inv(gram)
    rest = np.delete(A, active, axis=1)
    outside = rest - E @ (inverse @ (E.T @ rest))  # what the chosen columns leave of the others
    pull = rest.T @ E @ inverse @ signs
    constraints = np.vstack([outside.T / lam, -outside.T / lam, -signs[:, None] * (inverse @ E.T)])
    limits = np.concatenate([1.0 - pull, 1.0 + pull, -lam * signs * (inverse @ signs)])
    return _conclude(names, active, A, t, constraints, limits, noise, known, level)


def stepwise_inference(
    X: Any, y: ArrayLike, steps: int, *, sigma: float | None = None, level: float = 0.95, fit_intercept: bool = True
) -> SelectiveInference:
    """Take a fixed number of forward steps and infer about the columns that they chose.

    Parameters
    ----------
    X, y, sigma, level, fit_intercept
        As in `lasso_inference`.
    steps : int
        How many columns enter, chosen without looking at y.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.linear import stepwise_inference
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> y = 2 * X[:, 3] + np.random.default_rng(1).normal(size=60)
    >>> stepwise_inference(X, y, 1, sigma=1.0).columns.tolist()
    [3]
    """
    A, t, names = _read("stepwise_inference", X, y, fit_intercept)
    if not 1 <= steps <= A.shape[1]:
        raise ParameterError(f"stepwise_inference: steps must lie between 1 and {A.shape[1]}; got {steps}.")
    noise, known = _noise("stepwise_inference", A, t, sigma, fit_intercept)
    left = A.copy()
    chosen: list[int] = []
    constraints: list[Array] = []
    for _ in range(steps):
        norm = np.linalg.norm(left, axis=0)
        usable = np.flatnonzero(norm > 1e-8 * np.linalg.norm(A, axis=0))
        usable = usable[~np.isin(usable, chosen)]
        if len(usable) == 0:
            raise DataError(f"stepwise_inference: all columns depend on the {len(chosen)} chosen; ask for fewer steps.")
        unit = left[:, usable] / norm[usable]
        products = unit.T @ t
        best = int(np.argmax(np.abs(products)))
        ahead = np.sign(products[best]) * unit[:, best]
        others = np.delete(unit, best, axis=1)
        # The chosen one is at least as long as each other, with either sign.
        constraints.append(np.vstack([(others - ahead[:, None]).T, (-others - ahead[:, None]).T, -ahead[None, :]]))
        chosen.append(int(usable[best]))
        left = left - np.outer(ahead, ahead @ left)
    rows = np.vstack(constraints)
    return _conclude(names, np.array(chosen), A, t, rows, np.zeros(len(rows)), noise, known, level)


def split_inference(
    select: Callable[[Array, Array], ArrayLike],
    X: Any,
    y: ArrayLike,
    *,
    share: float = 0.5,
    random_state: Any = None,
    model: Any = None,
    level: float = 0.95,
) -> Inference:
    """Choose columns on one part of the rows, infer about them on the other.

    Parameters
    ----------
    select : function
        (X, y) of the first part ↦ numbers of columns, or truth values.
    X, y : arrays
        All rows.
    share : float
        Of the rows that choose.
    random_state : int, Generator or RandomState
        Which rows these are.
    model : estimator, optional
        As for `infer`; LinearRegression by default.
    level : float
        Level of the intervals.
    """
    A, t, names = _read("split_inference", X, y, False)
    if not 0 < share < 1:
        raise ParameterError(f"split_inference: share must lie between 0 and 1; got {share}.")
    order = check_random_state(random_state).permutation(len(t))
    cut = round(share * len(t))
    first = order[:cut]
    second = order[cut:]
    columns = np.asarray(select(A[first], t[first]))
    columns = np.flatnonzero(columns) if columns.dtype == bool else columns.astype(np.int64)
    if len(columns) == 0:
        raise DataError("split_inference: no column was chosen, so there is nothing to infer about.")
    part = A[np.ix_(second, columns)]
    fitted = (LinearRegression() if model is None else model).fit(part, t[second])
    return infer(fitted, part, t[second], level=level, names=[names[j] for j in columns])


def _read(owner: str, X: Any, y: ArrayLike, centre: bool) -> tuple[Array, Array, list[str]]:
    names = [str(name) for name in getattr(X, "columns", [f"x{j}" for j in range(np.shape(X)[1])])]
    A = np.asarray(X, dtype=np.float64)
    t = np.asarray(y, dtype=np.float64).ravel()
    if A.ndim != 2 or len(A) != len(t):
        raise DataError(f"{owner}: X must have two dimensions and as many rows as y; got {A.shape} and {t.shape}.")
    if not (np.isfinite(A).all() and np.isfinite(t).all()):
        raise DataError(f"{owner}: X and y must be finite.")
    return (A - A.mean(axis=0), t - t.mean(), names) if centre else (A, t, names)


def _noise(owner: str, A: Array, t: Array, sigma: float | None, centred: bool) -> tuple[float, bool]:
    if sigma is not None:
        if not sigma > 0:
            raise ParameterError(f"{owner}: sigma must be positive; got {sigma}.")
        return float(sigma), True
    df = len(t) - np.linalg.matrix_rank(A) - int(centred)
    if df <= 0:
        raise DataError(f"{owner}: with {A.shape[1]} columns and {len(t)} rows σ cannot be estimated; give sigma.")
    rest = t - A @ np.linalg.lstsq(A, t, rcond=None)[0]
    return float(np.sqrt(rest @ rest / df)), False


def _conclude(
    names: list[str],
    columns: NDArray[np.int64],
    A: Array,
    y: Array,
    constraints: Array,
    limits: Array,
    sigma: float,
    known: bool,
    level: float,
) -> SelectiveInference:
    """Return p-values and intervals of least squares on the columns, given constraints·y ≤ limits."""
    if not 0 < level < 1:
        raise ParameterError(f"level must lie between 0 and 1; got {level}.")
    k = len(columns)
    directions = np.linalg.pinv(A[:, columns]) if k else np.zeros((0, len(y)))
    found = np.empty((k, 6))
    for j, eta in enumerate(directions):
        value = float(eta @ y)
        low, high = truncation(eta, y, constraints, limits)
        error = sigma * float(np.linalg.norm(eta))
        upper_tail = np.exp(_log_tail(value, 0.0, error, low, high))
        p = 2.0 * min(upper_tail, 1.0 - upper_tail)
        ends = _interval(value, error, low, high, level)
        found[j] = value, p, *ends, low, high
    return SelectiveInference(
        np.asarray(columns, dtype=np.int64),
        [names[j] for j in columns],
        found[:, 0],
        np.minimum(found[:, 1], 1.0),
        found[:, 2],
        found[:, 3],
        found[:, 4:],
        sigma,
        known,
        level,
    )


def truncation(eta: Array, y: Array, constraints: Array, limits: Array) -> tuple[float, float]:
    """Return V⁻ and V⁺: how far ηᵀy may move, with the rest of y fixed, within constraints·y ≤ limits."""
    value = float(eta @ y)
    rate = constraints @ eta / float(eta @ eta)
    slack = limits - constraints @ y
    size = 1.0 + np.abs(limits) + np.linalg.norm(constraints, axis=1) * np.linalg.norm(y)
    if (slack < -_KKT * size).any():
        raise DataError("the choice does not fit its own constraints: columns are nearly dependent; drop some.")
    slack = np.maximum(slack, 0.0)
    steep = np.abs(rate) > 1e-12 * np.linalg.norm(constraints, axis=1) / np.linalg.norm(eta)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = slack / rate
    up = reach[steep & (rate > 0)]
    down = reach[steep & (rate < 0)]
    return value + float(down.max(initial=-np.inf)), value + float(up.min(initial=np.inf))


def _log_tail(value: float, mean: float, error: float, low: float, high: float) -> float:
    """Return log P(Z ≥ value | low ≤ Z ≤ high) for Z ~ N(mean, error²), free of underflow."""
    v, a, b = ((x - mean) / error for x in (value, low, high))
    if a + b > 0:  # count from the thinner tail
        return _log_share(-b, -v, -b, -a)
    return _log_share(v, b, a, b)


def _log_share(c: float, d: float, a: float, b: float) -> float:
    """Return log of (Φ(d) − Φ(c))/(Φ(b) − Φ(a))."""
    return _log_between(c, d) - _log_between(a, b)


def _log_between(c: float, d: float) -> float:
    if not d > c:
        return -np.inf
    top = float(log_ndtr(-c if c > 0 else d))
    bottom = float(log_ndtr(-d if c > 0 else c))
    return top + float(np.log1p(-np.exp(bottom - top))) if bottom < top else -np.inf


def _interval(value: float, error: float, low: float, high: float, level: float) -> tuple[float, float]:
    """Return the means at which the truncated normal has the value at its two tails; infinite where none has."""
    tail = (1.0 - level) / 2

    def miss(mean: float, share: float) -> float:
        log_tail = _log_tail(value, mean, error, low, high)
        if np.isnan(log_tail):  # so far away that all mass is at the nearer end
            log_tail = -np.inf if mean < value else 0.0
        return max(log_tail - float(np.log(share)), -1e9)

    ends = []
    for share, side in ((tail, -1.0), (1.0 - tail, 1.0)):
        end = side * np.inf
        for reach in _REACHES * error:
            if miss(value - reach, share) < 0 < miss(value + reach, share):
                end = float(brentq(miss, value - reach, value + reach, args=(share,), xtol=1e-10 * error))
                break
        ends.append(end)
    return ends[0], ends[1]
