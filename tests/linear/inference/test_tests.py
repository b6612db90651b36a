"""Nested models, tests of columns that are not in a model, corrections for many tests."""

import numpy as np
import pytest
from scipy import stats

import learnable as ln
from learnable.core.errors import DataError, ParameterError
from learnable.linear import GLM, adjust_p_values, anova, compare_nested, infer, score_test

sm = pytest.importorskip("statsmodels.api")

RNG = np.random.default_rng(2)
X = RNG.normal(size=(300, 3))
COUNT = RNG.poisson(np.exp(0.2 + 0.3 * X[:, 0])).astype(float)
NUMBER = X[:, 0] + RNG.normal(size=300)


def test_the_f_test_of_least_squares_is_exact():
    small, large = (ln.LinearRegression().fit(X[:, :k], NUMBER) for k in (1, 3))
    test = compare_nested(infer(small, X[:, :1], NUMBER), infer(large, X, NUMBER))
    theirs = sm.OLS(NUMBER, sm.add_constant(X)).fit().compare_f_test(sm.OLS(NUMBER, sm.add_constant(X[:, :1])).fit())
    assert (test.statistic, test.p_value) == pytest.approx(theirs[:2], rel=1e-8)


def test_the_three_tests_agree_in_large_samples():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20_000, 2))
    y = rng.poisson(np.exp(0.5 + 0.3 * A[:, 0] + 0.02 * A[:, 1])).astype(float)
    small, large = GLM("poisson").fit(A[:, :1], y), GLM("poisson").fit(A, y)
    ratio = compare_nested(small.summary(), large.summary()).statistic
    wald = large.summary().wald_test("x1").statistic
    score = score_test(small, A[:, :1], y, A[:, 1]).statistic
    assert wald == pytest.approx(ratio, rel=0.02)
    assert score == pytest.approx(ratio, rel=0.02)


def test_the_score_test_is_statsmodels():
    small = GLM("poisson").fit(X[:, :1], COUNT)
    theirs = sm.GLM(COUNT, sm.add_constant(X[:, :1]), family=sm.families.Poisson()).fit(tol=1e-14)
    known = theirs.score_test(exog_extra=X[:, 1:])
    test = score_test(small, X[:, :1], COUNT, X[:, 1:])
    assert test.statistic == pytest.approx(float(np.squeeze(known[0])), rel=1e-6)
    assert test.p_value == pytest.approx(float(np.squeeze(known[1])), rel=1e-6)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", ["wald", "ratio", "score"])
def test_a_true_hypothesis_is_refused_as_often_as_the_level_says(kind):
    rng = np.random.default_rng(5)
    rounds, refused = 300, 0
    A = rng.normal(size=(150, 2))
    for _ in range(rounds):
        y = (rng.random(150) < 1 / (1 + np.exp(-A[:, 0]))).astype(float)
        small = GLM("binomial").fit(A[:, :1], y)
        if kind == "score":
            p = score_test(small, A[:, :1], y, A[:, 1]).p_value
        else:
            large = GLM("binomial").fit(A, y).summary()
            p = large.p_value[2] if kind == "wald" else compare_nested(small.summary(), large).p_value
        refused += int(p < 0.1)
    assert abs(refused / rounds - 0.1) < 4 * np.sqrt(0.09 / rounds)


def test_the_deviance_table_adds_up():
    table = anova(GLM("poisson"), X, COUNT, terms={"first": [0], "rest": [1, 2]})
    whole = GLM("poisson").fit(X, COUNT)
    assert table.deviance[0] == pytest.approx(whole.null_deviance_)
    assert table.deviance[-1] == pytest.approx(whole.deviance_)
    assert table.df_resid.tolist() == [299.0, 298.0, 296.0]
    assert table.tests[1].p_value == pytest.approx(stats.chi2.sf(table.deviance[1] - table.deviance[2], 2), rel=1e-9)
    assert "rest" in str(table)
    ours = anova(ln.LinearRegression(), X, NUMBER)
    rss = [
        np.var(NUMBER) * 300,
        *(infer(ln.LinearRegression().fit(X[:, :k], NUMBER), X[:, :k], NUMBER).deviance for k in (1, 2, 3)),
    ]
    np.testing.assert_allclose(ours.deviance, rss, rtol=1e-10)
    f = (rss[0] - rss[1]) / (rss[3] / 296)
    assert ours.tests[0].p_value == pytest.approx(stats.f.sf(f, 1, 296), rel=1e-7)


@pytest.mark.parametrize("method", ["holm", "bonferroni", "bh", "by"])
def test_corrections_are_statsmodels(method):
    from statsmodels.stats.multitest import multipletests

    p = np.r_[RNG.random(30) ** 3, 0.0, 1.0, 0.5, 0.5]
    theirs = {"holm": "holm", "bonferroni": "bonferroni", "bh": "fdr_bh", "by": "fdr_by"}[method]
    np.testing.assert_allclose(adjust_p_values(p, method), multipletests(p, method=theirs)[1], rtol=1e-12)


def test_bad_input_ends_in_clear_words():
    with pytest.raises(DataError, match="between 0 and 1"):
        adjust_p_values([0.5, 1.5])
    with pytest.raises(ParameterError, match="method"):
        adjust_p_values([0.5], "none")
    model = GLM("poisson").fit(X[:, :1], COUNT)
    with pytest.raises(DataError, match="depend"):
        score_test(model, X[:, :1], COUNT, X[:, 0])
    with pytest.raises(ParameterError, match="more coefficients"):
        compare_nested(model.summary(), model.summary())
