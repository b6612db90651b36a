r"""Which models are as good as the best one: the corrected resampled t-test, with a margin beside it.

Two models are scored on the same J folds. With the differences dⱼ, their mean d̄ and variance s²,

    t = d̄ / √((1/J + n_test/n_train) s²)

is compared with Student's t of J − 1 degrees of freedom. Without the term n_test/n_train the test would find
differences where there are none, because the training sets of the folds overlap.

A test that finds no difference does not show that there is none: five folds often cannot tell 0.60 from 0.86. So three
words are used, from the interval of the mean difference d̄ ± q √((1/J + n_test/n_train) s²) to the best model:

    equal      both ends at level 0.90 are within a margin, below which nobody would care (two one-sided tests at 0.05)
    worse      the lower end at level 0.95 is above zero: the best one is better
    undecided  neither

Reference: C. Nadeau and Y. Bengio, Inference for the generalization error, Machine Learning 52, 2003.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from ..core.declare import Number, check_parameters
from ..core.errors import DataError
from .intervals import LEVEL

Array = NDArray[np.float64]


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
    >>> from learnable.evaluation.ties import verdict_on
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
