r"""Confidence intervals of a score.

    error rate        exact binomial (Clopper and Pearson)
    bounded loss      mean ± √(2V ln(4/δ)/n) ± 7(b − a) ln(4/δ)/(3(n − 1))       (empirical Bernstein)
    anything else     mean ± t_{n−1} s/√n
    scores of folds   mean ± t_{J−1} s √(1/J + n_test/n_train)                    (corrected for overlap)

The first two hold for every sample size and every distribution; the third is exact for normal values, and for others as
n grows; the last is an approximation, because folds share training rows (that variance has no unbiased estimate).

References: C. Clopper and E. Pearson, Biometrika 26, 1934. A. Maurer and M. Pontil, Empirical Bernstein bounds and
sample-variance penalization, COLT 2009, theorem 4. C. Nadeau and Y. Bengio, Inference for the generalization error,
Machine Learning 52, 2003.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, stdtrit

from ..core.declare import Number, check_parameters
from ..core.errors import DataError, ParameterError

Array = NDArray[np.float64]

LEVEL = Number(low=0.0, high=1.0, low_open=True, high_open=True)
_COUNT = Number(low=0, integer=True)


class Interval(NamedTuple):
    """A confidence interval, and how it was made."""

    low: float  #: lower end
    high: float  #: upper end
    level: float  #: the confidence level asked for
    method: str  #: in words

    def clipped(self, low: float = -math.inf, high: float = math.inf) -> Interval:
        """Return the interval within the range that the score can have."""
        return self._replace(low=min(max(self.low, low), high), high=min(max(self.high, low), high))

    def hull(self, other: Interval) -> Interval:
        """Return the smallest interval that holds both, named after this one."""
        return self._replace(low=min(self.low, other.low), high=max(self.high, other.high))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types; an infinite end becomes None."""
        ends = {
            name: value if math.isfinite(value) else None for name, value in (("low", self.low), ("high", self.high))
        }
        return {**ends, "level": self.level, "method": self.method}


def binomial_interval(errors: int, n: int, level: float = 0.95) -> Interval:
    """Return the exact interval of an error rate (Clopper and Pearson).

    Parameters
    ----------
    errors : int
        How many of the rows were wrong.
    n : int
        How many rows there were.
    level : float
        Confidence level; the interval covers the true rate at least that often, for every n.

    Returns
    -------
    Interval
        Ends of the error rate; those of the accuracy are one minus them.

    Examples
    --------
    >>> from learnable.evaluation import binomial_interval
    >>> low, high, level, method = binomial_interval(0, 100)
    >>> low, round(high, 4)
    (0.0, 0.0362)
    """
    owner = "binomial_interval"
    check_parameters(owner, {"errors": errors, "n": n, "level": level}, {"errors": _COUNT, "n": _COUNT, "level": LEVEL})
    if errors > n:
        raise ParameterError(f"{owner}: errors must be at most n; got {errors} errors among {n} rows.")
    tail = (1.0 - level) / 2.0
    low = float(betaincinv(errors, n - errors + 1, tail)) if errors > 0 else 0.0
    high = float(betaincinv(errors + 1, n - errors, 1.0 - tail)) if errors < n else 1.0
    return Interval(low, high, level, "exact binomial")


def empirical_bernstein(values: Any, low: float = 0.0, high: float = 1.0, level: float = 0.95) -> Interval:
    """Return an interval of the mean of bounded values that holds for every n and every distribution.

    Parameters
    ----------
    values : array of shape (n,)
        Independent values, for example one loss a row.
    low, high : float
        The range that no value can leave, known beforehand and not from the values.
    level : float
        Confidence level.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.evaluation import empirical_bernstein
    >>> interval = empirical_bernstein(np.tile([0.0, 0.2], 500))
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.08, 0.12)
    """
    owner = "empirical_bernstein"
    check_parameters(
        owner, {"low": low, "high": high, "level": level}, {"low": Number(), "high": Number(), "level": LEVEL}
    )
    x = _finite_values(owner, values)
    if not low < high:
        raise ParameterError(f"{owner}: low must be below high; got {low:g} and {high:g}.")
    if x.min() < low or x.max() > high:
        raise DataError(
            f"{owner}: values run from {x.min():g} to {x.max():g}, outside [{low:g}, {high:g}]; pass their true range."
        )
    n = len(x)
    log_term = math.log(4.0 / (1.0 - level))
    if n < 2:
        return Interval(low, high, level, "empirical Bernstein")
    width = math.sqrt(2.0 * float(x.var(ddof=1)) * log_term / n) + 7.0 * (high - low) * log_term / (3.0 * (n - 1))
    mean = float(x.mean())
    return Interval(mean - width, mean + width, level, "empirical Bernstein").clipped(low, high)


def t_interval(values: Any, level: float = 0.95) -> Interval:
    """Return Student's interval of the mean: exact for normal values, for others as n grows.

    Parameters
    ----------
    values : array of shape (n,)
        Independent values. One value gives the whole line: nothing is known of its spread.
    level : float
        Confidence level.

    Examples
    --------
    >>> from learnable.evaluation import t_interval
    >>> interval = t_interval([1.0, 2.0, 3.0])
    >>> round(interval.low, 3), round(interval.high, 3)
    (-0.484, 4.484)
    """
    check_parameters("t_interval", {"level": level}, {"level": LEVEL})
    x = _finite_values("t_interval", values)
    return _student(x, 1.0 / len(x), level, "t")


def corrected_t_interval(fold_scores: Any, test_share: float, level: float = 0.95) -> Interval:
    """Return the interval of a resampled score, corrected for the overlap of training sets (Nadeau and Bengio).

    Parameters
    ----------
    fold_scores : array of shape (n_folds,)
        One score a fold, of one run or of several repeats.
    test_share : float
        n_test/(n_train + n_test): 0.2 for five folds.
    level : float
        Confidence level.

    Examples
    --------
    >>> from learnable.evaluation import corrected_t_interval, t_interval
    >>> scores = [0.80, 0.82, 0.78, 0.81, 0.79]
    >>> corrected, naive = corrected_t_interval(scores, 0.2), t_interval(scores)
    >>> round((corrected.high - corrected.low) / (naive.high - naive.low), 3)
    1.5
    """
    rules = {"test_share": Number(low=0.0, high=1.0, low_open=True, high_open=True), "level": LEVEL}
    check_parameters("corrected_t_interval", {"test_share": test_share, "level": level}, rules)
    x = _finite_values("corrected_t_interval", fold_scores)
    return _student(x, 1.0 / len(x) + test_share / (1.0 - test_share), level, "corrected resampled t")


def score_interval(
    values: Any, *, bounds: tuple[float, float] | None = None, test_share: float | None = None, level: float = 0.95
) -> Interval:
    """Return the interval that fits the values: exact binomial, empirical Bernstein, corrected t, or t.

    Parameters
    ----------
    values : array of shape (n,)
        One number a row (losses, or right and wrong as 0 and 1), or one score a fold.
    bounds : (low, high), optional
        The range of a loss, known beforehand.
    test_share : float, optional
        Given for scores of folds: n_test/(n_train + n_test).
    level : float
        Confidence level.

    Returns
    -------
    Interval
        Of the mean of `values`.

    Examples
    --------
    >>> from learnable.evaluation import score_interval
    >>> score_interval([1, 0, 1, 1, 1, 1, 0, 1]).method
    'exact binomial'
    >>> score_interval([0.3, 1.7, 0.2]).method
    't'
    """
    x = _finite_values("score_interval", values)
    if test_share is not None:
        interval = corrected_t_interval(x, test_share, level)
        return interval if bounds is None else interval.clipped(*bounds)
    if bool(np.isin(x, (0.0, 1.0)).all()):
        return binomial_interval(int(x.sum()), len(x), level)
    if bounds is not None:
        return empirical_bernstein(x, *bounds, level=level)
    return t_interval(x, level)


def _student(x: Array, variance_factor: float, level: float, method: str) -> Interval:
    mean = float(x.mean())
    if len(x) < 2:
        return Interval(-math.inf, math.inf, level, method)
    width = float(stdtrit(len(x) - 1, 0.5 + level / 2.0)) * math.sqrt(variance_factor) * float(x.std(ddof=1))
    return Interval(mean - width, mean + width, level, method)


def _finite_values(owner: str, values: Any) -> Array:
    try:
        x = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{owner}: values must be numbers; {error}.") from error
    if x.ndim != 1 or len(x) == 0:
        raise DataError(f"{owner}: values must be one or more numbers in one dimension; got shape {x.shape}.")
    if not np.isfinite(x).all():
        place = int(np.argmax(~np.isfinite(x)))
        raise DataError(f"{owner}: value {place} is {x[place]}; leave out what failed, or find out why it did.")
    return x
