"""Rows of single precision get coefficients and predictions of single precision, with a certificate about these."""

import numpy as np
import pytest
import scipy.sparse as sp

import learnable as ln

SINGLE = np.float32
RIDGE_SOLVERS = ["auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga"]


def draw(n=120, d=12, n_targets=1, mean=0.0, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) + mean).astype(SINGLE)
    y = X @ rng.normal(size=(d, n_targets)) + noise * rng.normal(size=(n, n_targets)) + 3.0
    return X, y[:, 0] if n_targets == 1 else y


def check(model, X, y, weight=None):
    model.fit(X, y, sample_weight=weight)
    exact = type(model)(**model.get_params()).fit(X.astype(np.float64), y, sample_weight=weight)
    assert model.coef_.dtype == SINGLE and exact.coef_.dtype == np.float64
    assert model.predict(X).dtype == SINGLE
    assert model.predict(X.astype(np.float64)).dtype == np.float64
    size = np.abs(exact.coef_).max()
    np.testing.assert_allclose(model.coef_, exact.coef_, rtol=1e-6, atol=1e-6 * size)
    np.testing.assert_allclose(model.intercept_, exact.intercept_, rtol=1e-5, atol=1e-5 * size)
    assert model.certificate_.holds and model.certificate_.tolerance <= 1e-6
    assert ln.verify(model, X, y, sample_weight=weight)
    assert model.coef_.any()


@pytest.mark.parametrize("solver", RIDGE_SOLVERS)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_ridge(solver, storage, fit_intercept):
    X, y = draw()
    check(ln.Ridge(alpha=0.7, solver=solver, fit_intercept=fit_intercept), storage(X), y)


@pytest.mark.parametrize(
    "model",
    [
        ln.Ridge(alpha=0.0),
        ln.Ridge(alpha=1e-6, solver="lsqr"),
        ln.Ridge(alpha=2.0, positive=True),
        ln.ElasticNet(alpha=0.1),
        ln.ElasticNet(alpha=0.1, l1_ratio=0),
        ln.Lasso(alpha=0.2),
        ln.Lasso(alpha=0.2, positive=True),
        ln.Lasso(alpha=0.0, positive=True),
        ln.LassoCV(cv=3, alphas=[0.2, 0.4]),
        ln.ElasticNetCV(cv=3, alphas=[0.2, 0.4]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("mean", [0.0, 50.0])
def test_other_models_weights_and_far_means(model, mean):
    X, y = draw(mean=mean)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=len(y))
    check(model, X, y, weight)


@pytest.mark.parametrize(
    "model",
    [
        ln.Ridge(alpha=[1.0, 2.0]),
        ln.Ridge(alpha=1.0, solver="sag"),
        ln.Lasso(alpha=0.2),
        ln.MultiTaskLasso(alpha=0.2),
        ln.MultiTaskElasticNet(alpha=0.2, l1_ratio=0),
    ],
    ids=repr,
)
def test_several_targets(model):
    X, y = draw(n_targets=2)
    check(model, X, y)


def test_a_saved_model_stays_single(tmp_path):
    X, y = draw()
    for model in (ln.Ridge().fit(X, y), ln.Lasso(alpha=0.1).fit(X, y)):
        ln.save(model, tmp_path / "model")
        again = ln.load(tmp_path / "model")
        assert again.coef_.dtype == SINGLE
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_warm_start_goes_on_from_single_coefficients():
    X, y = draw()
    model = ln.Lasso(alpha=0.1, warm_start=True).fit(X, y)
    first = model.coef_.copy()
    model.fit(X, y)
    assert model.coef_.dtype == SINGLE and model.n_iter_ <= 1
    np.testing.assert_allclose(model.coef_, first, rtol=1e-6)


@pytest.mark.parametrize("model", [ln.Ridge(alpha=0.0), ln.Ridge(alpha=0.0, solver="lsqr"), ln.Lasso(alpha=1e-16)])
def test_coefficients_beyond_the_range_of_float32_stay_float64(model):
    X, y = draw()
    X, y = X * SINGLE(1e-30), y * 1e15
    model.fit(X, y)
    assert model.coef_.dtype == np.float64 and np.abs(model.coef_).max() > np.finfo(SINGLE).max
    assert ln.verify(model, X, y)


def test_a_tolerance_that_float32_cannot_keep_leaves_float64():
    X, y = draw(noise=1e-3)
    alpha = 1e-4 * np.abs((X - X.mean(axis=0)).T @ (y - y.mean())).max() / len(y)
    model = ln.Lasso(alpha=alpha, tol=1e-10, max_iter=100_000)
    assert model.fit(X, y).certificate_.value <= 1e-10 and ln.verify(model, X, y)
    several = ln.MultiTaskLasso(alpha=alpha, tol=1e-10, max_iter=100_000).fit(X, np.column_stack([y, y]))
    assert several.coef_.dtype == np.float64  # whose rounded rows have a gap of more than that
    assert several.certificate_.value <= 1e-10


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("max_iter", [1, 1000, 20_000])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rounding_costs_no_tolerance_at_small_penalties(seed, max_iter):
    rng = np.random.default_rng(seed)
    X, y = draw(n=int(rng.integers(5, 120)), d=int(rng.integers(2, 90)), noise=0.01, seed=seed)
    X = np.hstack([X, X[:, :1]])  # a copy of a column
    strength = np.abs((X - X.mean(axis=0)).T @ (y - y.mean())).max() / len(y)
    shares = {"alpha": strength * 10.0 ** rng.uniform(-4, 0), "l1_ratio": rng.choice([0.1, 0.9, 1.0])}
    model = ln.ElasticNet(**shares, positive=bool(seed % 2), max_iter=max_iter).fit(X, y)
    assert model.coef_.dtype == SINGLE
    verdict = ln.verify(model, X, y)
    assert bool(verdict) == model.certificate_.holds
    assert not any("recorded" in reason for reason in verdict.reasons)


def test_tampering_with_single_coefficients_is_found():
    X, y = draw()
    for model in (ln.Ridge().fit(X, y), ln.Lasso(alpha=0.1).fit(X, y)):
        model.coef_ = model.coef_ * SINGLE(1.001)
        assert not ln.verify(model, X, y)
