"""Standard errors, tests and intervals against Stata, R, statsmodels and simulation."""

import csv

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import learnable as ln
from learnable.core.errors import DataError, ParameterError
from learnable.linear import GLM, infer

sm = pytest.importorskip("statsmodels.api")

RNG = np.random.default_rng(7)
X = RNG.normal(size=(120, 3)) * [1.0, 10.0, 0.1] + [0.0, 50.0, 1.0]
SCORE = 0.5 * X[:, 0] - 0.05 * (X[:, 1] - 50.0) + 2.0 * (X[:, 2] - 1.0)
NUMBER = SCORE + RNG.normal(size=120) * (0.5 + np.abs(X[:, 0]))
COUNT = RNG.poisson(np.exp(SCORE / 2)).astype(float)
CLASS = (SCORE + RNG.logistic(size=120) > 0).astype(int)
LABEL = np.argmax(np.c_[0 * SCORE, SCORE, -SCORE] + RNG.gumbel(size=(120, 3)), axis=1)
WEIGHT = RNG.integers(1, 4, size=120).astype(float)
CLUSTER = RNG.integers(0, 15, size=120)


def reference(folder, model):
    path = folder / "inference" / "reference.csv"
    if not path.is_file():
        pytest.skip("the reference tables of R and Stata are not here")
    with path.open() as lines:
        return {row["parameter"]: row for row in csv.DictReader(lines) if row["model"] == model}


def table(folder, name):
    return pd.read_csv(folder / "inference" / name)


def compare(found, known, *, estimate, error):
    for name, b, se in zip(found.names, found.estimate, found.std_error, strict=True):
        row = known[{"(intercept)": "const"}.get(name, name)]
        assert b == pytest.approx(float(row["estimate"]), rel=estimate)
        assert se == pytest.approx(float(row["se"]), rel=error)


def test_spector_logit_and_probit_are_statas(reference_data):
    known = reference(reference_data, "spector_logit")
    rows = table(reference_data, "spector.csv")
    X, y = rows[["GPA", "TUCE", "PSI"]], rows["GRADE"]
    logit = ln.LogisticRegression(C=np.inf, tol=1e-12).fit(X, y)
    compare(infer(logit, X, y), known, estimate=3e-7, error=3e-7)
    compare(GLM("binomial").fit(X, y).summary(), known, estimate=3e-7, error=3e-7)
    probit = GLM("binomial", link="probit").fit(X, y)
    found = infer(probit, X, y, covariance="observed")
    compare(found, reference(reference_data, "spector_probit"), estimate=3e-7, error=3e-7)
    assert found.log_likelihood == pytest.approx(-12.8188033249, rel=1e-7)
    assert found.aic == pytest.approx(33.6376066499, rel=1e-7)


def test_star98_is_rs_although_its_columns_are_badly_scaled(reference_data):
    known = reference(reference_data, "star98_binomial_logit")
    rows = table(reference_data, "star98.csv")
    total = (rows["NABOVE"] + rows["NBELOW"]).astype(float)
    X, y = rows.drop(columns=["NABOVE", "NBELOW"]), rows["NABOVE"] / total
    model = GLM("binomial").fit(X, y, sample_weight=total)
    compare(model.summary(), known, estimate=1e-7, error=1e-6)
    assert model.deviance_ == pytest.approx(4078.765418, rel=1e-9)
    assert model.null_deviance_ == pytest.approx(34345.368893, rel=1e-9)


def test_cpunish_scotland_and_randhie(reference_data):
    rows = table(reference_data, "cpunish.csv")
    rows["log(VC100k96)"] = np.log(rows["VC100k96"])
    known = reference(reference_data, "cpunish_poisson_log")
    X = rows[[name for name in known if name != "const"]]
    poisson = ln.PoissonRegressor(alpha=0, tol=1e-12).fit(X, rows["EXECUTIONS"])
    found = infer(poisson, X, rows["EXECUTIONS"])
    compare(found, known, estimate=1e-5, error=1e-5)
    assert found.deviance == pytest.approx(18.591642, rel=1e-7)
    assert found.aic == pytest.approx(77.854657, rel=1e-7)

    rows = table(reference_data, "scotland.csv").drop(columns="COUNCILDIST")
    gamma = GLM("gamma", link="inverse").fit(rows.drop(columns="YES"), rows["YES"])
    compare(gamma.summary(), reference(reference_data, "scotland_gamma_inverse"), estimate=1e-5, error=1e-5)
    assert gamma.deviance_ == pytest.approx(0.0873885, rel=1e-5)
    assert gamma.dispersion_ == pytest.approx(0.003584283, rel=1e-6)

    rows = table(reference_data, "randhie.csv.gz")
    counts = GLM("negative-binomial").fit(rows.drop(columns="mdvis"), rows["mdvis"])
    assert counts.log_likelihood_ == pytest.approx(-43383.662077, rel=1e-9)
    assert counts.overdispersion_ == pytest.approx(1.292953, rel=1e-6)


def test_anes96_multinomial_is_statas(reference_data):
    known = reference(reference_data, "anes96_multinomial_logit")
    rows = table(reference_data, "anes96.csv")
    rows["logpopul"] = np.log(rows["popul"] + 0.1)
    X, y = rows[["logpopul", "selfLR", "age", "educ", "income"]], rows["PID"]
    found = infer(ln.LogisticRegression(C=np.inf, tol=1e-10, max_iter=500).fit(X, y), X, y)
    assert found.log_likelihood == pytest.approx(-1461.922747, rel=1e-8)
    assert found.null_log_likelihood == pytest.approx(-1750.346710, rel=1e-8)
    stored = sorted((float(row["estimate"]), float(row["se"])) for row in known.values())
    ours = sorted(zip(found.estimate, found.std_error, strict=True))
    assert np.allclose(ours, stored, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("kind", ["HC0", "HC1", "HC2", "HC3", "cluster"])
@pytest.mark.parametrize("weighted", [False, True])
def test_least_squares_errors_are_statsmodels(kind, weighted):
    s = WEIGHT if weighted else np.ones(len(X))
    theirs = sm.WLS(NUMBER, sm.add_constant(X), weights=s).fit()
    options = {"groups": CLUSTER} if kind == "cluster" else None
    theirs = theirs.get_robustcov_results(kind, use_t=True, **(options or {}))
    model = ln.LinearRegression().fit(X, NUMBER, s)
    ours = infer(model, X, NUMBER, sample_weight=s, covariance=kind, clusters=CLUSTER if kind == "cluster" else None)
    np.testing.assert_allclose(ours.std_error, theirs.bse, rtol=1e-8)
    np.testing.assert_allclose(ours.p_value, theirs.pvalues, rtol=1e-6, atol=1e-14)


def test_classical_errors_are_those_of_the_models_own_summary():
    model = ln.LinearRegression().fit(X, NUMBER)
    ours, own = infer(model, X, NUMBER), model.summary()
    np.testing.assert_allclose(ours.std_error, own.std_error[0], rtol=1e-10)
    np.testing.assert_allclose(ours.p_value, own.p_value[0], rtol=1e-8, atol=1e-300)
    np.testing.assert_allclose(ours.predict_interval(X[:5]), model.predict_interval(X[:5]), rtol=1e-9)
    np.testing.assert_allclose(
        ours.predict_interval(X[:5], kind="mean"), model.predict_interval(X[:5], kind="confidence"), rtol=1e-9
    )


def test_the_whole_fit_is_judged_as_statsmodels_does():
    design = sm.add_constant(X)
    y = NUMBER
    theirs = sm.OLS(y, design).fit()
    ours = infer(ln.LinearRegression().fit(X, y), X, y)
    assert ours.r_squared == pytest.approx(theirs.rsquared, rel=1e-10)
    assert ours.adjusted_r_squared == pytest.approx(theirs.rsquared_adj, rel=1e-10)
    assert ours.overall_test().statistic == pytest.approx(theirs.fvalue, rel=1e-10)
    assert ours.overall_test().p_value == pytest.approx(theirs.f_pvalue, rel=1e-8)
    robust = infer(ln.LinearRegression().fit(X, y), X, y, covariance="HC3")
    assert robust.overall_test().statistic == pytest.approx(theirs.get_robustcov_results("HC3").fvalue, rel=1e-10)
    logit = sm.Logit(CLASS, design).fit(disp=0)
    ours = infer(ln.LogisticRegression(C=np.inf, tol=1e-12).fit(X, CLASS), X, CLASS)
    assert ours.pseudo_r_squared == pytest.approx(logit.prsquared, rel=1e-8)
    assert ours.overall_test().statistic == pytest.approx(logit.llr, rel=1e-8)
    assert ours.overall_test().p_value == pytest.approx(logit.llr_pvalue, rel=1e-6)
    several = sm.MNLogit(LABEL, design).fit(disp=0)
    ours = infer(ln.LogisticRegression(C=np.inf, tol=1e-12).fit(X, LABEL), X, LABEL)
    assert ours.overall_test().df == several.df_model
    assert ours.overall_test().statistic == pytest.approx(several.llr, rel=1e-8)


def test_without_intercept_the_whole_fit_has_walds_test_and_without_columns_none():
    y = NUMBER
    found = infer(ln.LinearRegression(fit_intercept=False).fit(X, y), X, y)
    assert found.overall_test() == found.wald_test(found.names)
    assert "test of all coefficients: F(" in str(found)
    assert found.adjusted_r_squared == pytest.approx(sm.OLS(y, X).fit().rsquared_adj, rel=1e-10)


@pytest.mark.parametrize("family", ["binomial", "poisson", "gamma"])
@pytest.mark.parametrize("kind", ["classical", "HC0", "cluster"])
def test_generalised_models_are_statsmodels(family, kind):
    y = {"binomial": CLASS.astype(float), "poisson": COUNT, "gamma": COUNT + 0.5}[family]
    law = {"binomial": sm.families.Binomial(), "poisson": sm.families.Poisson()}.get(
        family, sm.families.Gamma(sm.families.links.Log())
    )
    if family == "gamma" and kind != "classical":
        pytest.skip("statsmodels takes the observed information for bread, this package the expected one")
    options = {} if kind == "classical" else {"cov_type": kind}
    if kind == "cluster":
        options["cov_kwds"] = {"groups": CLUSTER}
    theirs = sm.GLM(y, sm.add_constant(X), family=law).fit(tol=1e-14, **options)
    ours = infer(GLM(family).fit(X, y), X, y, covariance=kind, clusters=CLUSTER if kind == "cluster" else None)
    np.testing.assert_allclose(ours.estimate, theirs.params, rtol=1e-6)
    np.testing.assert_allclose(ours.std_error, theirs.bse, rtol=1e-6)
    assert ours.deviance == pytest.approx(theirs.deviance, rel=1e-9)
    assert ours.null_deviance == pytest.approx(theirs.null_deviance, rel=1e-9)
    assert ours.log_likelihood == pytest.approx(theirs.llf, rel=1e-7)


def test_frequencies_are_copies_of_rows_and_precisions_are_not():
    copies = np.repeat(np.arange(len(X)), WEIGHT.astype(int))
    long = infer(ln.LinearRegression().fit(X[copies], NUMBER[copies]), X[copies], NUMBER[copies])
    model = ln.LinearRegression().fit(X, NUMBER, WEIGHT)
    for kind in ("classical", "HC0", "HC3"):
        long = infer(model, X[copies], NUMBER[copies], covariance=kind)
        short = infer(model, X, NUMBER, sample_weight=WEIGHT, weights="frequency", covariance=kind)
        np.testing.assert_allclose(short.std_error, long.std_error, rtol=1e-9)
        assert short.log_likelihood == pytest.approx(long.log_likelihood, rel=1e-10)
    precision = infer(model, X, NUMBER, sample_weight=WEIGHT)
    assert (precision.std_error > 1.2 * infer(model, X[copies], NUMBER[copies]).std_error).all()


def test_leverage_and_distance_are_those_of_leaving_rows_out():
    model = ln.LinearRegression().fit(X, NUMBER)
    found = infer(model, X, NUMBER)
    assert found.leverage.sum() == pytest.approx(4.0)
    A = np.c_[np.ones(len(X)), X]
    for row in (0, 17, 80):
        kept = np.arange(len(X)) != row
        theta = np.linalg.lstsq(A[kept], NUMBER[kept], rcond=None)[0]
        moved = A @ (theta - found.estimate)
        assert found.cooks_distance[row] == pytest.approx(moved @ moved / (4 * found.dispersion), rel=1e-7)


@pytest.mark.parametrize("kind", ["classical", "HC3"])
def test_intervals_hold_the_truth_as_often_as_they_say(kind):
    rng = np.random.default_rng(0)
    n, rounds, hits = 60, 400, 0
    A = rng.normal(size=(n, 2))
    spread = np.ones(n) if kind == "classical" else 0.3 + np.abs(A[:, 0])
    for _ in range(rounds):
        y = 1.0 + A @ [1.0, -1.0] + spread * rng.normal(size=n)
        lower, upper = infer(ln.LinearRegression().fit(A, y), A, y, covariance=kind, level=0.9).conf_int()
        hits += int(lower[1] <= 1.0 <= upper[1])
    assert abs(hits / rounds - 0.9) < 4 * np.sqrt(0.09 / rounds)


def test_the_wald_test_of_one_coefficient_is_its_t_test():
    found = infer(ln.LinearRegression().fit(X, NUMBER), X, NUMBER)
    test = found.wald_test("x1")
    assert test.statistic == pytest.approx(found.statistic[2] ** 2)
    assert test.p_value == pytest.approx(found.p_value[2])
    theirs = sm.OLS(NUMBER, sm.add_constant(X)).fit().f_test(np.eye(4)[1:3])
    assert found.wald_test(["x0", "x1"]).p_value == pytest.approx(float(theirs.pvalue), rel=1e-8)


def test_predictive_intervals_hold_new_counts():
    rng = np.random.default_rng(3)
    A = rng.normal(size=(400, 2))
    y = rng.poisson(np.exp(1.0 + 0.5 * A[:, 0])).astype(float)
    model = GLM("poisson").fit(A, y)
    fresh = rng.normal(size=(2000, 2))
    lower, upper = model.predict_interval(fresh, 0.9)
    drawn = rng.poisson(np.exp(1.0 + 0.5 * fresh[:, 0]))
    assert np.mean((lower <= drawn) & (drawn <= upper)) >= 0.9
    assert model.predict_dist(fresh).mean == pytest.approx(model.predict(fresh))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (ln.LogisticRegression(), "C=1"),
        (ln.PoissonRegressor(), "alpha=1"),
        (ln.Ridge(), "L2 penalty"),
        (ln.Lasso(), "lasso_inference"),
        (ln.LinearRegression(positive=True), "positive=True"),
        (ln.KNeighborsRegressor(), "not a likelihood model"),
    ],
)
def test_models_without_inference_say_why(model, words):
    y = CLASS if isinstance(model, ln.LogisticRegression) else COUNT
    with pytest.raises(ParameterError, match=words):
        infer(model.fit(X, y), X, y)


def test_bad_input_ends_in_clear_words():
    model = ln.LinearRegression().fit(X, NUMBER)
    with pytest.raises(ParameterError, match="clusters"):
        infer(model, X, NUMBER, covariance="cluster")
    with pytest.raises(DataError, match="one"):
        infer(model, X, NUMBER, covariance="cluster", clusters=np.zeros(len(X)))
    twice = np.c_[X, X[:, 0]]
    with pytest.raises(DataError, match="depend"):
        infer(ln.LinearRegression().fit(twice, NUMBER), twice, NUMBER)
    with pytest.raises(DataError, match="degrees of freedom"):
        infer(ln.LinearRegression().fit(X[:4], NUMBER[:4]), X[:4], NUMBER[:4])
    with pytest.raises(ParameterError, match="no coefficient"):
        infer(model, X, NUMBER).wald_test("nobody")
    with pytest.raises(DataError, match="not all zero"):
        infer(model, X, NUMBER, sample_weight=np.zeros(len(X)))


def test_names_come_from_the_dataframe_and_the_table_prints():
    frame = pd.DataFrame(X, columns=["age", "height", "<b>"])
    model = ln.LinearRegression().fit(frame, NUMBER)
    found = infer(model, frame, NUMBER)
    assert found.names == ["(intercept)", "age", "height", "<b>"]
    assert "height" in str(found)
    assert "<b>" not in found._repr_html_()
    assert list(found.to_frame().index) == found.names


def test_the_table_says_which_class_and_which_overdispersion():
    words = np.where(CLASS == 1, "yes", "no")
    assert "of class yes" in str(infer(ln.LogisticRegression(C=np.inf).fit(X, words), X, words))
    rng = np.random.default_rng(0)
    counts = rng.poisson(np.exp(SCORE / 2) * rng.gamma(1.0, 1.0, 120)).astype(float)
    model = GLM("negative-binomial").fit(X, counts)
    assert f"overdispersion {model.overdispersion_:.6g}" in str(model.summary())


def test_several_classes_are_contrasts_to_the_first():
    model = ln.LogisticRegression(C=np.inf, tol=1e-12).fit(X, LABEL)
    theirs = sm.MNLogit(LABEL, sm.add_constant(X)).fit(disp=0, method="newton", maxiter=100)
    found = infer(model, X, LABEL)
    np.testing.assert_allclose(found.estimate, np.asarray(theirs.params).T.ravel(), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.std_error, np.asarray(theirs.bse).T.ravel(), rtol=1e-6)


def test_weights_zero_and_one_cluster_per_row():
    weight = np.r_[np.zeros(20), np.ones(100)]
    model = ln.LinearRegression().fit(X, NUMBER, weight)
    ours = infer(model, X, NUMBER, sample_weight=weight)
    left = infer(model, X[20:], NUMBER[20:])
    np.testing.assert_allclose(ours.std_error, left.std_error, rtol=1e-12)
    rows = np.arange(len(X))
    single = infer(model, X, NUMBER, sample_weight=weight, covariance="cluster", clusters=rows)
    robust = infer(model, X, NUMBER, sample_weight=weight, covariance="HC0")
    n, p = 100, 4
    np.testing.assert_allclose(
        single.std_error, robust.std_error * np.sqrt(n / (n - 1) * (n - 1) / (n - p)), rtol=1e-10
    )


def test_student_quantiles_are_used_where_the_noise_is_estimated():
    found = infer(ln.LinearRegression().fit(X, NUMBER), X, NUMBER, level=0.9)
    lower, upper = found.conf_int()
    half = stats.t.ppf(0.95, len(X) - 4) * found.std_error
    np.testing.assert_allclose((upper - lower) / 2, half, rtol=1e-12)
