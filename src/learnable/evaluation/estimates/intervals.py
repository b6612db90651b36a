"""Confidence intervals of a score.

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
from scipy.special import betaincinv, stdtr, stdtrit

from ...core import Array, DataError, NDArray, Number, ParameterError, check_parameters
from ...theory.concentration.base import finite_sample

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
        Independent values, for example one loss per row.
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
    x = finite_sample(owner, values, "values")
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
    x = finite_sample("t_interval", values, "values")
    return _student(x, 1.0 / len(x), level, "t")


def corrected_t_interval(fold_scores: Any, test_share: float, level: float = 0.95) -> Interval:
    """Return the interval of a resampled score, corrected for the overlap of training sets (Nadeau and Bengio).

    Parameters
    ----------
    fold_scores : array of shape (n_folds,)
        One score per fold, of one run or of several repeats.
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
    x = finite_sample("corrected_t_interval", fold_scores, "values")
    return _student(x, 1.0 / len(x) + test_share / (1.0 - test_share), level, "corrected resampled t")


def score_interval(
    values: Any, *, bounds: tuple[float, float] | None = None, test_share: float | None = None, level: float = 0.95
) -> Interval:
    """Return the interval that fits the values: exact binomial, empirical Bernstein, corrected t, or t.

    Parameters
    ----------
    values : array of shape (n,)
        One number per row (losses, or right and wrong as 0 and 1), or one score per fold.
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
    x = finite_sample("score_interval", values, "values")
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


# --------------------------------------------------------------------------------------------------------------------
# Which models are as good as the best one: the corrected resampled t-test, with a margin beside it.
#
# Two models are scored on the same J folds. With the differences dⱼ, their mean d̄ and variance s²,
#
#     t = d̄ / √((1/J + n_test/n_train) s²)
#
# is compared with Student's t of J − 1 degrees of freedom. Without the term n_test/n_train the test would find
# differences where there are none, because the training sets of the folds overlap.
#
# A test that finds no difference does not show that there is none: five folds often cannot tell 0.60 from 0.86. So
# three words are used, from the interval of the mean difference d̄ ± q √((1/J + n_test/n_train) s²) to the best
# model:
#
#     equal      both ends at level 0.90 are within a margin, below which nobody would care (two one-sided tests, 0.05)
#     worse      the lower end at level 0.95 is above zero: the best one is better
#     undecided  neither
#
# Reference: C. Nadeau and Y. Bengio, Inference for the generalization error, Machine Learning 52, 2003.


class TTest(NamedTuple):
    """A test of no difference."""

    t: float  #: the statistic; positive where the first model scores higher
    p: float  #: two-sided: how often a difference as large would come by chance


def corrected_t_test(scores_a: Any, scores_b: Any, n_train: float, n_test: float) -> TTest:
    """Test whether two models, scored on the same folds, differ.

    Parameters
    ----------
    scores_a, scores_b : arrays of shape (n_folds,)
        Their scores, fold by fold.
    n_train, n_test : int
        Rows to train on and to test on in a fold (their mean, where folds differ).

    Returns
    -------
    t, p : float
        The statistic and the two-sided p-value. Equal scores in every fold give t = 0 and p = 1; the same difference in
        every fold gives an infinite t and p = 0.

    Examples
    --------
    >>> from learnable.evaluation import corrected_t_test
    >>> t, p = corrected_t_test([0.91, 0.90, 0.93, 0.90, 0.92], [0.90, 0.88, 0.93, 0.89, 0.90], 80, 20)
    >>> round(t, 2), round(p, 2)
    (2.14, 0.1)
    """
    _check_sizes("corrected_t_test", n_train, n_test)
    a, b = (np.asarray(scores, dtype=np.float64) for scores in (scores_a, scores_b))
    if a.ndim != 1 or a.shape != b.shape or len(a) < 2:
        raise DataError(
            f"corrected_t_test: needs two or more scores of each model on the same folds; got shapes {a.shape} and "
            f"{b.shape}."
        )
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise DataError("corrected_t_test: a score is NaN or infinite; leave models that failed out.")
    return _test_differences(a - b, n_train, n_test)


def p_values_against_best(score_matrix: Any, n_train: float, n_test: float) -> Array:
    """Return the p-value of each model against the one with the best mean.

    Parameters
    ----------
    score_matrix : array of shape (n_models, n_folds)
        Scores on the same folds; greater is better. A model with a NaN score failed.
    n_train, n_test : int
        Rows to train on and to test on in a fold.

    Returns
    -------
    array of shape (n_models,)
        One for the best model itself, NaN for a model that failed.

    Examples
    --------
    >>> from learnable.evaluation import p_values_against_best
    >>> p_values_against_best([[0.9, 0.8, 0.9], [0.9, 0.9, 0.8], [0.1, 0.2, 0.1]], 2, 1).round(3)
    array([1.  , 1.  , 0.02])
    """
    owner = "p_values_against_best"
    _check_sizes(owner, n_train, n_test)
    scores = np.asarray(score_matrix, dtype=np.float64)
    if scores.ndim != 2 or scores.shape[1] < 2:
        raise DataError(f"{owner}: needs scores of shape (n_models, n_folds >= 2); got shape {scores.shape}.")
    complete = np.asarray(np.isfinite(scores).all(axis=1))
    p_values = np.full(len(scores), np.nan)
    if complete.any():
        best = int(np.argmax(np.where(complete, np.where(complete[:, None], scores, 0.0).mean(axis=1), -np.inf)))
        for model in np.flatnonzero(complete):
            p_values[model] = _test_differences(scores[best] - scores[model], n_train, n_test).p
    return p_values


def tied_with_best(score_matrix: Any, n_train: float, n_test: float, level: float = 0.05) -> NDArray[np.bool_]:
    """Tell which models are tied with the best: the data show no difference at `level`.

    Parameters
    ----------
    score_matrix : array of shape (n_models, n_folds)
        Scores on the same folds; greater is better. A model with a NaN score failed, and is not tied.
    n_train, n_test : int
        Rows to train on and to test on in a fold.
    level : float
        Level of the two-sided test. Being tied is not being proven equal.

    Returns
    -------
    array of bool of shape (n_models,)
        True for the best model itself.

    Examples
    --------
    >>> from learnable.evaluation import tied_with_best
    >>> tied_with_best([[0.9, 0.8, 0.9], [0.9, 0.9, 0.8], [0.1, 0.2, 0.1]], 2, 1)
    array([ True,  True, False])
    """
    check_parameters("tied_with_best", {"level": level}, {"level": LEVEL})
    return np.asarray(p_values_against_best(score_matrix, n_train, n_test) >= level)


class Verdict(NamedTuple):
    """How a model stands to the best one."""

    word: str  #: "best", "equal", "worse" or "undecided"
    difference: float  #: mean by which the best one scores higher
    low: float  #: lower end of its interval, of level 0.95
    high: float  #: upper end
    p: float  #: of the two-sided test of no difference


def verdict_on(difference: Any, n_train: float, n_test: float, margin: float, level: float = 0.05) -> Verdict:
    """Say whether one model is better than another, equal within a margin, or neither can be said.

    Parameters
    ----------
    difference : array of shape (n_folds,)
        Score of the one less score of the other, fold by fold; greater is better.
    n_train, n_test : int
        Rows to train on and to test on in a fold.
    margin : float
        Differences up to this do not matter in practice.
    level : float
        Level of the tests.

    Examples
    --------
    >>> from learnable.evaluation.estimates.intervals import verdict_on
    >>> verdict_on([0.30, 0.22, 0.31, 0.25, 0.31], 80, 20, margin=0.01).word
    'worse'
    >>> verdict_on([0.30, -0.4, 0.41, 0.65, 0.31], 80, 20, margin=0.01).word
    'undecided'
    >>> verdict_on([0.001, 0.002, -0.001, 0.0, 0.001], 80, 20, margin=0.01).word
    'equal'
    """
    _check_sizes("verdict_on", n_train, n_test)
    d = np.asarray(difference, dtype=np.float64)
    if d.ndim != 1 or len(d) < 1 or not np.isfinite(d).all():
        raise DataError(f"verdict_on: needs one finite difference per fold; got {difference!r}.")
    mean = float(d.mean())
    if len(d) < 2:
        return Verdict("undecided", mean, -math.inf, math.inf, math.nan)
    deviation = math.sqrt(1.0 / len(d) + n_test / n_train) * float(d.std(ddof=1))
    wide, narrow = (float(stdtrit(len(d) - 1, q)) * deviation for q in (1.0 - level / 2, 1.0 - level))
    if mean - narrow >= -margin and mean + narrow <= margin:
        word = "equal"
    else:
        word = "worse" if mean - wide > 0.0 else "undecided"
    return Verdict(word, mean, mean - wide, mean + wide, _test_differences(d, n_train, n_test).p)


def _test_differences(d: Array, n_train: float, n_test: float) -> TTest:
    mean = float(d.mean())
    spread = float(d.std(ddof=1))
    if spread <= 1e-14 * float(np.abs(d).max(initial=0.0)):  # the same difference in every fold, up to rounding
        return TTest(math.copysign(math.inf, mean), 0.0) if mean else TTest(0.0, 1.0)
    t = mean / (math.sqrt(1.0 / len(d) + n_test / n_train) * spread)
    return TTest(t, float(2.0 * stdtr(len(d) - 1, -abs(t))))


def _check_sizes(owner: str, n_train: float, n_test: float) -> None:
    positive = Number(low=0.0, low_open=True)
    check_parameters(owner, {"n_train": n_train, "n_test": n_test}, {"n_train": positive, "n_test": positive})
