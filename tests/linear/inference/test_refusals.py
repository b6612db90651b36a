"""What has no standard errors is refused in words: other rows, missing clusters, likelihoods without a maximum."""

import numpy as np
import pytest

import learnable as ln
from learnable.core.errors import DataError
from learnable.linear import GLM, infer

RNG = np.random.default_rng(5)
X = RNG.normal(size=(80, 3))
SCORE = X @ [0.8, -0.5, 0.0]
TARGETS = {
    "number": SCORE + RNG.normal(size=80),
    "class": (SCORE + RNG.logistic(size=80) > 0).astype(int),
    "label": np.argmax(np.c_[0 * SCORE, SCORE, -SCORE] + RNG.gumbel(size=(80, 3)), axis=1),
    "count": RNG.poisson(np.exp(SCORE)).astype(float),
    "amount": np.exp(SCORE) * RNG.gamma(2.0, 0.5, 80),
}
MODELS = {
    "LinearRegression": (ln.LinearRegression(), "number"),
    "LogisticRegression": (ln.LogisticRegression(C=np.inf), "class"),
    "softmax": (ln.LogisticRegression(C=np.inf), "label"),
    "PoissonRegressor": (ln.PoissonRegressor(alpha=0), "count"),
    "GammaRegressor": (ln.GammaRegressor(alpha=0), "amount"),
    "TweedieRegressor": (ln.TweedieRegressor(power=1.5, alpha=0), "count"),
    "GLM": (GLM("negative-binomial"), "count"),
}


@pytest.mark.parametrize("name", MODELS)
def test_rows_or_weights_other_than_those_of_the_fit_are_refused(name):
    model, kind = MODELS[name]
    y = TARGETS[kind]
    weight = RNG.uniform(0.1, 3.0, 80)
    fitted = type(model)(**model.get_params()).fit(X, y)
    assert np.isfinite(infer(fitted, X, y).std_error).all()
    with pytest.raises(DataError, match="Pass the rows and the sample_weight that it was fitted to"):
        infer(fitted, X[:40], y[:40])
    with pytest.raises(DataError, match="standard errors away"):
        infer(fitted, X, y, sample_weight=weight)
    weighted = type(model)(**model.get_params()).fit(X, y, weight)
    with pytest.raises(DataError, match="standard errors away"):
        infer(weighted, X, y)
    assert np.isfinite(infer(weighted, X, y, sample_weight=weight).std_error).all()


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_exact_and_constant_fits_are_at_their_maximum(scale):
    for y in (scale * (1.0 + X @ [1.0, 2.0, 3.0]), np.full(80, scale)):
        found = infer(ln.LinearRegression().fit(X, y), X, y)
        assert (found.std_error <= 1e-10 * scale).all()


@pytest.mark.parametrize("clusters", [np.r_[np.nan, np.arange(79.0)], np.array([None, *"ab" * 39, "c"], dtype=object)])
def test_a_row_without_a_cluster_is_named(clusters):
    y = TARGETS["number"]
    with pytest.raises(DataError, match="row 0 has none"):
        infer(ln.LinearRegression().fit(X, y), X, y, covariance="cluster", clusters=clusters)


@pytest.mark.parametrize("family", ["poisson", "negative-binomial"])
def test_counts_that_a_column_tells_to_be_zero_have_no_maximum(family):
    y = TARGETS["count"].copy()
    group = np.zeros(80)
    group[:6] = 1.0
    y[:6] = 0.0  # the mean of this group goes to zero
    A = np.c_[X, group]
    model = GLM(family).fit(A, y)
    with pytest.raises(DataError, match="grows for ever"):
        infer(model, A, y)


def test_small_means_that_are_determined_are_not_refused():
    rng = np.random.default_rng(0)
    exposure = np.log(rng.uniform(1e-9, 1e-8, 400))
    x = rng.normal(size=400)
    y = rng.poisson(np.exp(exposure + 18.0 + x)).astype(float)
    rows = np.c_[x, exposure]
    model = GLM("poisson", offset=1).fit(rows, y)
    assert np.isfinite(infer(model, rows, y).std_error).all()


@pytest.mark.parametrize("seed", range(4))
def test_counts_that_vary_less_than_poissons_end_at_poisson(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(200, 3))
    y = np.round(np.exp(0.5 + A @ [0.5, -0.3, 0.0]))
    model = GLM("negative-binomial").fit(A, y)
    plain = GLM("poisson").fit(A, y)
    assert model.certificate_.holds
    assert model.overdispersion_ <= 1e-7
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(infer(model, A, y).std_error, infer(plain, A, y).std_error, rtol=1e-6)
    assert ln.verify(model, A, y)
    model.overdispersion_ = 0.05  # refused: it is not the maximum
    assert not ln.verify(model, A, y)
