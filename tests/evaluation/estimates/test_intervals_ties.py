"""The corrected t-test has its level: two equally good models are told apart no more often than promised."""

import math

import numpy as np
import pytest
from scipy import stats

from learnable import LinearRegression
from learnable.core import DataError, ParameterError
from learnable.evaluation import (
    corrected_t_interval,
    corrected_t_test,
    make_splits,
    p_values_against_best,
    t_interval,
    tied_with_best,
)
from learnable.evaluation.estimates.intervals import verdict_on


def null_differences(n_data_sets, seed, n=60, n_splits=10):
    """Return fold-wise score differences of two equally good models: least squares that sees column 0, or column 1.

    y depends on both columns alike, so that neither column is the better one; only the sample decides.
    """
    rng = np.random.default_rng(seed)
    differences = np.empty((n_data_sets, n_splits))
    for number in range(n_data_sets):
        X = rng.normal(size=(n, 2))
        y = X.sum(axis=1) + rng.normal(size=n)
        for fold, (train, test) in enumerate(make_splits(n, n_splits=n_splits, random_state=rng)):
            errors = []
            for column in (0, 1):
                x, t = X[train, column], y[train]
                slope = np.cov(x, t, bias=True)[0, 1] / x.var()
                predicted = t.mean() + slope * (X[test, column] - x.mean())
                errors.append(np.mean((y[test] - predicted) ** 2))
            differences[number, fold] = errors[1] - errors[0]
    return differences


def rejection_rate(differences, n_train, n_test, level=0.05):
    zero = np.zeros(differences.shape[1])
    return np.mean([corrected_t_test(d, zero, n_train, n_test).p < level for d in differences])


def test_the_level_holds_under_the_null():
    rate = rejection_rate(null_differences(600, 0), 54, 6)
    assert rate <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 600)


@pytest.mark.long
@pytest.mark.parametrize("n_splits", [5, 10])
def test_the_level_holds_under_the_null_at_length(n_splits):
    differences = null_differences(8000, 1, n_splits=n_splits)
    n_test = 60 // n_splits
    rate = rejection_rate(differences, 60 - n_test, n_test)
    assert rate <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 8000)
    # Without the correction it would not: the very reason for it.
    naive = np.mean([stats.ttest_1samp(d, 0.0).pvalue < 0.05 for d in differences])
    assert naive > rate


def test_a_real_difference_is_found():
    rng = np.random.default_rng(0)
    found = 0
    for number in range(30):
        X = rng.normal(size=(200, 2))
        y = X[:, 0] + rng.normal(size=200)
        scores = np.array(
            [
                [LinearRegression().fit(X[train][:, c], y[train]).score(X[test][:, c], y[test]) for c in ([0], [1])]
                for train, test in make_splits(200, random_state=number)
            ]
        )
        found += corrected_t_test(scores[:, 0], scores[:, 1], 160, 40).p < 0.05
    assert found >= 27


# ---- the formula ----


def test_the_statistic_is_the_formula():
    a, b = np.array([0.9, 0.85, 0.8, 0.95]), np.array([0.88, 0.8, 0.82, 0.9])
    d = a - b
    t = d.mean() / math.sqrt((1 / 4 + 25 / 75) * d.var(ddof=1))
    found = corrected_t_test(a, b, 75, 25)
    np.testing.assert_allclose(found, (t, 2 * stats.t.sf(abs(t), 3)), rtol=1e-12)
    assert corrected_t_test(b, a, 75, 25).t == -found.t


def test_with_hardly_any_test_rows_it_is_the_plain_t_test():
    a, b = np.random.default_rng(0).normal(size=(2, 8))
    expected = stats.ttest_rel(a, b)
    np.testing.assert_allclose(corrected_t_test(a, b, 1e12, 1), (expected.statistic, expected.pvalue), rtol=1e-9)


@pytest.mark.parametrize("level", [0.01, 0.05, 0.3])
def test_the_test_and_the_interval_agree(level):
    rng = np.random.default_rng(3)
    for d in rng.normal(0.5, 1.0, size=(50, 6)):
        found = corrected_t_interval(d, 0.2, 1 - level)
        assert (corrected_t_test(d, np.zeros(6), 80, 20).p < level) == (not found.low <= 0 <= found.high)
    assert t_interval(d).high < corrected_t_interval(d, 0.2).high


def test_equal_scores_are_tied_and_a_constant_difference_is_not():
    assert corrected_t_test([0.5, 0.6], [0.5, 0.6], 2, 1) == (0.0, 1.0)
    assert corrected_t_test([1.5, 1.6, 1.7], [0.5, 0.6, 0.7], 2, 1) == (math.inf, 0.0)
    assert corrected_t_test([0.5, 0.5], [1.0, 1.0], 2, 1) == (-math.inf, 0.0)


# ---- a leaderboard ----


def test_who_is_tied_with_the_best():
    rng = np.random.default_rng(0)
    common = rng.normal(0.8, 0.05, 5)
    scores = np.array([common, common + rng.normal(0, 0.01, 5), common - 0.2 + rng.normal(0, 0.01, 5), [np.nan] * 5])
    tied = tied_with_best(scores, 80, 20)
    assert tied.tolist() == [True, True, False, False]
    p = p_values_against_best(scores, 80, 20)
    best = int(np.nanargmax(scores.mean(axis=1)))
    assert p[best] == 1.0 and np.isnan(p[3])
    for model in range(3):
        assert p[model] == corrected_t_test(scores[best], scores[model], 80, 20).p


def test_a_leaderboard_of_failures_has_no_winner():
    assert not tied_with_best([[np.nan, 1.0], [np.nan, np.nan]], 2, 1).any()
    assert tied_with_best([[0.5, 0.6]], 2, 1).tolist() == [True]


@pytest.mark.parametrize(
    "call",
    [
        lambda: corrected_t_test([1.0], [2.0], 2, 1),
        lambda: corrected_t_test([1.0, 2.0], [2.0], 2, 1),
        lambda: corrected_t_test([1.0, np.nan], [2.0, 1.0], 2, 1),
        lambda: tied_with_best([1.0, 2.0], 2, 1),
        lambda: tied_with_best([[1.0], [2.0]], 2, 1),
    ],
)
def test_scores_that_cannot_be_compared_are_refused(call):
    with pytest.raises(DataError):
        call()


@pytest.mark.parametrize(("n_train", "n_test", "level"), [(0, 1, 0.05), (1, 0, 0.05), (2, 1, 0.0), (2, 1, 5)])
def test_wrong_parameters_are_refused(n_train, n_test, level):
    with pytest.raises(ParameterError):
        tied_with_best([[1.0, 2.0], [2.0, 1.0]], n_train, n_test, level)


def test_three_words_on_differences_whose_truth_is_known():
    rng = np.random.default_rng(0)
    assert verdict_on(0.26 + 0.02 * rng.normal(size=10), 80, 20, 0.01).word == "worse"
    assert verdict_on(0.0005 + 0.001 * rng.normal(size=10), 80, 20, 0.01).word == "equal"
    assert verdict_on(0.005 + 0.2 * rng.normal(size=10), 80, 20, 0.01).word == "undecided"
    # A difference that is sure but does not matter is no difference.
    assert verdict_on(np.full(5, 0.004) + 1e-5 * rng.normal(size=5), 80, 20, 0.01).word == "equal"


def test_a_large_difference_that_folds_cannot_prove_is_undecided_and_never_equal():
    folds = np.array([0.862 - 0.604 + shift for shift in (-0.6, 0.9, -0.2, 0.5, -0.6)])
    assert corrected_t_test(folds, np.zeros(5), 80, 20).p > 0.05  # tied, by the test alone
    assert verdict_on(folds, 80, 20, 0.01).word == "undecided"


def test_models_are_called_equal_beyond_the_margin_no_more_often_than_the_level_says():
    """Two one-sided tests: with a true difference at the margin, "equal" is said in about one case in twenty."""
    rng = np.random.default_rng(1)
    n_train, n_test, n_folds = 90, 10, 10
    shared = np.sqrt(n_test / n_train)  # the corrected test is exact for folds that share this much
    said = 0
    for _ in range(2000):
        folds = 0.01 + 0.004 * (shared * rng.normal() + rng.normal(size=n_folds))
        said += verdict_on(folds, n_train, n_test, 0.01).word == "equal"
    assert said / 2000 <= 0.065


def test_the_interval_of_the_difference_is_the_corrected_one():
    folds = np.array([0.1, 0.3, 0.2, 0.25])
    found, expected = verdict_on(folds, 75, 25, 0.01), corrected_t_interval(folds, 0.25, 0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.p == pytest.approx(corrected_t_test(folds, np.zeros(4), 75, 25).p)
    assert verdict_on([0.5], 75, 25, 0.01).word == "undecided"
    with pytest.raises(DataError, match="finite"):
        verdict_on([0.1, float("nan")], 75, 25, 0.01)
