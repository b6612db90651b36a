"""GLM: any family and link, offsets, bias reduction, against statsmodels, generic optimisers and closed forms."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

import learnable as ln
from learnable.core.errors import DataError, ParameterError, SeparableDataError
from learnable.linear import GLM

RNG = np.random.default_rng(11)
X = RNG.normal(size=(150, 3))
SCORE = 0.3 + 0.4 * X[:, 0] - 0.3 * X[:, 1]
TARGETS = {
    "normal": SCORE + RNG.normal(size=150),
    "binomial": (RNG.random(150) < expit(SCORE)).astype(float),
    "poisson": RNG.poisson(np.exp(SCORE)).astype(float),
    "gamma": RNG.gamma(2.0, np.exp(SCORE) / 2),
    "inverse-gaussian": RNG.wald(np.exp(SCORE), 2.0),
    "negative-binomial": RNG.poisson(np.exp(SCORE) * RNG.gamma(1.0, 1.0, size=150)).astype(float),
    "tweedie": np.where(RNG.random(150) < 0.3, 0.0, RNG.gamma(2.0, np.exp(SCORE))),
}
LINKS = {
    "normal": ["identity"],
    "binomial": ["logit", "probit", "cloglog"],
    "poisson": ["log", "sqrt"],
    "gamma": ["log", "inverse"],
    "inverse-gaussian": ["log"],
    "negative-binomial": ["log"],
    "tweedie": ["log"],
}
PAIRS = [(family, link) for family, links in LINKS.items() for link in links]


@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_the_fit_is_statsmodels_and_is_verified(family, link):
    sm = pytest.importorskip("statsmodels.api")
    y = TARGETS[family] + (1.0 if link == "sqrt" else 0.0)
    if link == "inverse":
        y = np.random.default_rng(1).gamma(2.0, 0.5 / (1.0 + 0.1 * X[:, 0]))
    more = {"overdispersion": 0.7} if family == "negative-binomial" else {}
    weight = RNG.integers(1, 4, size=150).astype(float)
    model = GLM(family, link=link, **more).fit(X, y, weight)
    names = {
        "normal": sm.families.Gaussian,
        "binomial": sm.families.Binomial,
        "poisson": sm.families.Poisson,
        "gamma": sm.families.Gamma,
        "inverse-gaussian": sm.families.InverseGaussian,
        "negative-binomial": lambda g: sm.families.NegativeBinomial(g, alpha=0.7),
        "tweedie": lambda g: sm.families.Tweedie(g, var_power=1.5),
    }
    links = sm.families.links
    g = {
        "identity": links.Identity,
        "log": links.Log,
        "logit": links.Logit,
        "probit": links.Probit,
        "cloglog": links.CLogLog,
        "inverse": links.InversePower,
        "sqrt": links.Sqrt,
    }[link]()
    start = None if link != "sqrt" else np.r_[model.intercept_, model.coef_]
    law = names[family](g)
    theirs = sm.GLM(y, sm.add_constant(X), family=law, var_weights=weight).fit(
        tol=1e-13, maxiter=300, start_params=start
    )
    np.testing.assert_allclose(np.r_[model.intercept_, model.coef_], theirs.params, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.summary().std_error, theirs.bse, rtol=1e-6)
    assert model.deviance_ == pytest.approx(theirs.deviance, rel=1e-9)
    assert model.certificate_.holds
    assert ln.verify(model, X, y, sample_weight=weight)


def test_the_normal_family_is_least_squares():
    model = GLM().fit(X, TARGETS["normal"])
    other = ln.LinearRegression().fit(X, TARGETS["normal"])
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-10)
    np.testing.assert_allclose(model.summary().std_error, other.summary().std_error[0], rtol=1e-10)


def test_an_offset_has_the_coefficient_one():
    exposure = RNG.uniform(0.5, 20.0, size=150)
    y = RNG.poisson(exposure * np.exp(SCORE)).astype(float)
    frame = pd.DataFrame(X, columns=list("abc")).assign(log_exposure=np.log(exposure))
    model = GLM("poisson", offset="log_exposure").fit(frame, y)
    assert model.coef_[3] == 1.0
    assert model.summary().names == ["(intercept)", "a", "b", "c"]
    assert ln.verify(model, frame, y)
    sm = pytest.importorskip("statsmodels.api")
    theirs = sm.GLM(y, sm.add_constant(X), family=sm.families.Poisson(), offset=np.log(exposure)).fit(tol=1e-13)
    np.testing.assert_allclose(np.r_[model.intercept_, model.coef_[:3]], theirs.params, rtol=1e-7)
    assert model.null_deviance_ == pytest.approx(theirs.null_deviance, rel=1e-8)
    lower, upper = model.conf_int()
    assert (lower[3], upper[3]) == (1.0, 1.0)
    by_number = GLM("poisson", offset=3).fit(frame.to_numpy(), y)
    np.testing.assert_array_equal(by_number.coef_, model.coef_)


def firth_loss(theta, A, y):
    eta = A @ theta
    p = expit(eta)
    information = (A.T * (p * (1 - p))) @ A
    return np.sum(np.logaddexp(0, eta) - y * eta) - 0.5 * np.linalg.slogdet(information)[1]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_bias_reduction_is_the_optimum_of_the_penalised_likelihood(seed):
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(25, 2))
    y = (rng.random(25) < expit(2 * B[:, 0])).astype(float)
    model = GLM("binomial", bias_reduction=True).fit(B, y)
    A = np.c_[np.ones(25), B]
    theta = np.r_[model.intercept_, model.coef_]
    generic = minimize(firth_loss, np.zeros(3), args=(A, y), method="BFGS", options={"gtol": 1e-7})
    assert firth_loss(theta, A, y) <= generic.fun + 1e-9
    np.testing.assert_allclose(theta, generic.x, atol=1e-3 * (1 + np.abs(theta).max()))


def test_separated_classes_are_refused_with_the_remedy_and_bias_reduction_is_finite():
    B = np.arange(10.0)[:, None]
    y = (B[:, 0] > 4.5).astype(float)
    for rows, target in [(B, y), (np.r_[B, [[4.5], [4.5]]], np.r_[y, 0.0, 1.0])]:
        with pytest.raises(SeparableDataError, match="bias_reduction"):
            GLM("binomial").fit(rows, target)
        model = GLM("binomial", bias_reduction=True).fit(rows, target)
        assert np.isfinite(model.summary().std_error).all()
        assert ln.verify(model, rows, target)


def test_overdispersion_is_that_of_the_greatest_likelihood():
    from scipy.special import gammaln

    y = TARGETS["negative-binomial"]
    model = GLM("negative-binomial").fit(X, y)
    A = np.c_[np.ones(150), X]

    def loss(v):
        mu, k = np.exp(A @ v[:4]), np.exp(-v[4])
        rows = gammaln(y + k) - gammaln(k) - gammaln(y + 1) + k * np.log(k / (k + mu)) + y * np.log(mu / (k + mu))
        return -rows.sum()

    best = minimize(loss, np.r_[model.intercept_, model.coef_, np.log(model.overdispersion_)], method="BFGS")
    assert -model.log_likelihood_ <= best.fun + 1e-7
    assert model.overdispersion_ == pytest.approx(np.exp(best.x[4]), rel=1e-3)
    assert ln.verify(model, X, y)


@pytest.mark.parametrize("storage", ["csr", "float32"])
def test_sparse_rows_and_single_precision(storage):
    import scipy.sparse as sp

    rows = sp.csr_array(X) if storage == "csr" else X.astype(np.float32)
    dense = X if storage == "csr" else rows.astype(np.float64)
    model = GLM("poisson").fit(rows, TARGETS["poisson"])
    np.testing.assert_allclose(model.coef_, GLM("poisson").fit(dense, TARGETS["poisson"]).coef_, rtol=1e-7)
    assert ln.verify(model, rows, TARGETS["poisson"])


def test_one_thread_and_two_have_the_same_bits():
    A = np.random.default_rng(0).normal(size=(60_000, 40))
    y = np.random.default_rng(1).poisson(np.exp(0.1 * A[:, 0])).astype(float)
    one, two = (GLM("poisson", n_jobs=k).fit(A, y) for k in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.information_factor_, two.information_factor_)


@pytest.mark.parametrize(
    ("model", "y", "words"),
    [
        (GLM("poisson"), -np.ones(5), ">= 0"),
        (GLM("gamma"), np.zeros(5), "> 0"),
        (GLM("binomial"), np.full(5, 2.0), "between 0 and 1"),
        (GLM("poisson", offset="who"), np.ones(5), "does not have"),
        (GLM("poisson", offset=7), np.ones(5), "offset"),
        (GLM("gamma", bias_reduction=True), np.ones(5), "bias_reduction"),
    ],
)
def test_bad_input_ends_in_clear_words(model, y, words):
    with pytest.raises((DataError, ParameterError), match=words):
        model.fit(np.arange(5.0)[:, None], y)


def test_dependent_columns_have_no_coefficient_and_the_rest_is_as_without_them():
    frame = pd.DataFrame(X, columns=list("abc"))
    more = frame.assign(again=X[:, 0] * 2, sum=X[:, 1] + X[:, 2] + 3)[["a", "again", "b", "c", "sum"]]
    model, plain = (GLM("poisson").fit(rows, TARGETS["poisson"]) for rows in (more, frame))
    assert model.free_columns_.tolist() == [0, 2, 3]
    np.testing.assert_allclose(model.coef_[[0, 2, 3]], plain.coef_, rtol=1e-9)
    assert model.summary().names == ["(intercept)", "a", "b", "c"]
    assert np.isnan(model.conf_int()[0][[1, 4]]).all()
    assert ln.verify(model, more, TARGETS["poisson"])
    found = ln.infer(model, more, TARGETS["poisson"], covariance="HC0")
    np.testing.assert_allclose(found.std_error, ln.infer(plain, frame, TARGETS["poisson"], covariance="HC0").std_error)


def test_a_saved_model_gives_the_same_summary(tmp_path):
    model = GLM("gamma").fit(X, TARGETS["gamma"])
    ln.save(model, tmp_path / "glm.safetensors")
    again = ln.load(tmp_path / "glm.safetensors")
    assert str(again.summary()) == str(model.summary())


def test_a_column_far_from_zero_keeps_its_coefficient():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=200)
    near = GLM().fit(X, y)
    X[:, 1] += 1e8
    far = GLM().fit(X, y)
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-6)


@pytest.mark.parametrize(("family", "level"), [("normal", 3.3), ("gamma", 3.3), ("poisson", 3.0), ("binomial", 0.3)])
@pytest.mark.parametrize("n", [5, 500])
def test_an_exact_fit_is_certified_and_verified(family, level, n):
    X = np.random.default_rng(1).normal(size=(n, 3))
    y = np.full(n, level)
    model = GLM(family).fit(X, y)
    assert model.certificate_.holds
    assert ln.verify(model, X, y)
    np.testing.assert_allclose(model.predict(X), level, rtol=1e-8)  # `tol` is 1e-8 standard errors
