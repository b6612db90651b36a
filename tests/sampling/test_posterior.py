"""Posteriors of linear models: closed forms, oracles of the density, predictions, leave-one-out."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

import learnable as ln
from learnable.core.errors import DataError, ParameterError
from learnable.probability import Exponential, Laplace, Normal, StudentT
from learnable.sampling import mcse_mean, mcse_sd, posterior, psis_loo
from learnable.sampling.posterior import _Regression
from learnable.sampling.targets import check_gradient


def table(family, n=120, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 2.0
    z = 0.4 * (X - 2) @ np.array([1.0, -1.0, 0.5])[:d] + 0.3
    if family == "normal":
        return X, z + 0.5 * rng.normal(size=n)
    if family == "bernoulli":
        return X, np.array(["no", "yes"])[(rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)]
    if family == "categorical":
        return X, np.array(["a", "b", "c"])[np.digitize(z + rng.logistic(size=n), [-0.5, 0.8])]
    if family == "poisson":
        return X, rng.poisson(np.exp(z)).astype(float)
    return X, rng.gamma(3.0, np.exp(z) / 3.0)


_MODELS = {
    "normal": ln.Ridge(alpha=2.0),
    "bernoulli": ln.LogisticRegression(C=2.0),
    "categorical": ln.LogisticRegression(C=2.0),
    "poisson": ln.PoissonRegressor(alpha=0.1),
    "gamma": ln.GammaRegressor(alpha=0.1),
}


def new_model(family):
    return clone(_MODELS[family])


def log_density_by_hand(family, X, y, weight, w, b, spread, coef_sd, df=4.0):
    """The same density from SciPy's distributions."""
    z = X @ w.T + b
    if family == "normal":
        terms = stats.norm.logpdf(y, z, spread)
    elif family == "student_t":
        terms = stats.t.logpdf(y, df, z, spread)
    elif family == "bernoulli":
        terms = stats.bernoulli.logpmf(y.astype(int), 1 / (1 + np.exp(-z)))
    elif family == "categorical":
        p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        terms = np.log(p[np.arange(len(y)), y.astype(int)])
    elif family == "poisson":
        terms = stats.poisson.logpmf(y, np.exp(z))
    else:
        terms = stats.gamma.logpdf(y, spread, scale=np.exp(z) / spread)
    value = weight @ terms + stats.norm.logpdf(w, 0, coef_sd).sum()
    if family == "categorical":
        value += stats.norm.logpdf(b, 0, 5).sum()
    return value - (np.log(spread) if spread is not None else 0.0)


@pytest.mark.parametrize("family", [*_MODELS, "student_t"])
def test_the_density_is_that_of_scipy_and_its_gradient_is_its_own(family):
    kind = "normal" if family == "student_t" else family
    X, y = table(kind)
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.5, 2.0, len(y))
    model = new_model(kind).fit(X, y)
    problem = _Regression(model, X, y, weight, None, "student_t" if family == "student_t" else None, 4.0)
    target = problem.target()
    u = 0.3 * rng.normal(size=target.dimension)
    check_gradient(target, u, rng)
    p = problem.parameters.natural(u)
    spread = next((float(p[name]) for name in ("sigma", "shape") if name in p), None)
    S = weight.sum()
    coef_sd = {
        "normal": lambda: spread / np.sqrt(2.0),
        "student_t": lambda: spread / np.sqrt(2.0),
        "bernoulli": lambda: np.sqrt(2.0),
        "categorical": lambda: np.sqrt(2.0),
        "poisson": lambda: 1 / np.sqrt(0.1 * S),
        "gamma": lambda: 1 / np.sqrt(spread * 0.1 * S),
    }[family]()
    b = p["intercept"] - p["coef"] @ problem.centre
    expected = log_density_by_hand(family, X, problem.y, weight, p["coef"], b, spread, coef_sd)
    jacobian = u[-1] if spread is not None else 0.0
    assert target.evaluate(u)[0] == pytest.approx(expected + jacobian, rel=1e-9)


def test_linear_regression_has_its_closed_form():
    X, y = table("normal")
    found = posterior(ln.LinearRegression(), X, y, n_draws=2000, random_state=0)
    n, d = X.shape
    A = np.c_[X, np.ones(n)]
    mean = np.linalg.lstsq(A, y, rcond=None)[0]
    s2 = ((y - A @ mean) ** 2).sum() / (n - d - 1)
    sd = np.sqrt(s2 * np.diag(np.linalg.inv(A.T @ A)) * (n - d - 1) / (n - d - 3))  # of a t distribution
    draws = found.chains.draws[:, :, : d + 1]
    assert found.certificate_.holds and bool(ln.verify(found.chains))
    assert (np.abs(draws.mean(axis=(0, 1)) - mean) < 4 * mcse_mean(draws)).all()
    assert (np.abs(draws.std(axis=(0, 1)) - sd) < 4 * mcse_sd(draws)).all()
    sigma2 = found.chains["sigma"] ** 2
    assert abs(sigma2.mean() - s2 * (n - d - 1) / (n - d - 3)) < 4 * mcse_mean(sigma2)


def test_ridge_is_conjugate():
    X, y = table("normal", n=40)
    found = posterior(ln.Ridge(alpha=5.0), X, y, n_draws=2000, random_state=1)
    centred, target = X - X.mean(axis=0), y - y.mean()
    mean = np.linalg.solve(centred.T @ centred + 5.0 * np.eye(3), centred.T @ target)
    np.testing.assert_allclose(mean, found.model.coef_, rtol=1e-6)
    coef = found.chains["coef"]
    assert (np.abs(coef.mean(axis=(0, 1)) - mean) < 4 * mcse_mean(coef)).all()


@pytest.mark.parametrize("family", ["bernoulli", "poisson", "gamma"])
def test_one_coefficient_has_the_moments_of_quadrature(family):
    X, y = table(family, n=40, d=1)
    X = X - 2.0
    prior = {"coef": Normal(0.2, 0.7)} | ({"shape": Exponential(0.5)} if family == "gamma" else {})
    model = new_model(family).set_params(fit_intercept=False)
    found = posterior(model, X, y, prior=prior, n_draws=2000, random_state=2)
    codes = (y == "yes").astype(float) if family == "bernoulli" else y
    w = np.linspace(-4, 4, 801)
    shapes = np.linspace(0.02, 15, 600) if family == "gamma" else np.array([1.0])
    z = X[:, 0] * w[:, None]
    log_p = stats.norm.logpdf(w, 0.2, 0.7)[:, None] + np.zeros(len(shapes))
    if family == "bernoulli":
        log_p += stats.bernoulli.logpmf(codes.astype(int), 1 / (1 + np.exp(-z))).sum(axis=1)[:, None]
    elif family == "poisson":
        log_p += stats.poisson.logpmf(codes, np.exp(z)).sum(axis=1)[:, None]
    else:
        mean = Exponential(0.5).mean
        for i, k in enumerate(shapes):
            log_p[:, i] += stats.gamma.logpdf(codes, k, scale=np.exp(z) / k).sum(axis=1) - k / mean
    p = np.exp(log_p - log_p.max())
    p = p.sum(axis=1) / p.sum()
    coef = found.chains["coef"][:, :, 0]
    assert abs(coef.mean() - p @ w) < 4 * mcse_mean(coef)
    assert abs(coef.std() - np.sqrt(p @ w**2 - (p @ w) ** 2)) < 4 * mcse_sd(coef)


def test_heavy_tails_are_not_drawn_to_outliers():
    X, y = table("normal", n=200)
    dirty = y.copy()
    dirty[:10] += 20.0
    clean = posterior(ln.LinearRegression(), X, y, random_state=3).chains["coef"].mean(axis=(0, 1))
    normal = posterior(ln.LinearRegression(), X, dirty, random_state=3).chains["coef"].mean(axis=(0, 1))
    robust = posterior(ln.LinearRegression(), X, dirty, likelihood="student_t", random_state=3)
    robust_mean = robust.chains["coef"].mean(axis=(0, 1))
    assert np.abs(robust_mean - clean).max() < 0.3 * np.abs(normal - clean).max()


@pytest.mark.parametrize("n_new", [400, pytest.param(1200, marks=pytest.mark.long)])
@pytest.mark.parametrize("family", ["normal", "student_t", "poisson", "gamma", "bernoulli"])
@pytest.mark.sampled(6)
def test_intervals_cover_and_quantiles_invert_the_cdf(family, n_new):
    kind = "normal" if family == "student_t" else family
    X, y = table(kind, n=300 + n_new, seed=4)
    model = new_model(kind)
    found = posterior(
        model, X[:300], y[:300], likelihood=family if family == "student_t" else None, n_draws=300, random_state=4
    )
    dist = found.predict_dist(X[300:320])
    for p in (0.05, 0.5, 0.95):
        q = dist.quantile(p)
        if family in ("poisson", "bernoulli"):
            assert (dist.cdf(q) >= p).all() and (dist.cdf(q - 1) < p).all()
        else:
            np.testing.assert_allclose(dist.cdf(q), p, atol=1e-6)
    drawn = dist.sample(4000, random_state=0)
    np.testing.assert_allclose(drawn.mean(axis=0), dist.mean, atol=6 * dist.std.max() / np.sqrt(4000))
    if family in ("normal", "poisson", "gamma"):
        low, high = found.predict_interval(X[300:], 0.9)
        covered = ((y[300:] >= low) & (y[300:] <= high)).mean()
        assert covered > 0.9 - 4 * np.sqrt(0.09 / n_new)
    if family == "normal":
        np.testing.assert_allclose(found.predict(X[300:310]), found.model.predict(X[300:310]), atol=0.1)


def test_classes_and_their_probabilities():
    X, y = table("categorical", n=300)
    found = posterior(new_model("categorical"), X, y, n_draws=400, random_state=5)
    p = found.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.abs(p - found.model.predict_proba(X)).max() < 0.1
    assert set(found.predict(X)) <= set("abc")
    expected = np.log(p[np.arange(300), np.searchsorted(found.model.classes_, y)])
    np.testing.assert_allclose(found.log_predictive(X, y), expected, rtol=1e-9)
    two = posterior(new_model("bernoulli"), *table("bernoulli"), n_draws=400, random_state=5)
    assert two.predict_proba(X[:4]).shape == (4, 2)


def test_leave_one_out_is_that_of_refits():
    X, y = table("normal", n=40)
    found = posterior(ln.LinearRegression(), X, y, n_draws=2000, random_state=6)
    loo = found.loo()
    n, d = X.shape
    exact = []
    for i in range(n):
        keep = np.arange(n) != i
        A, t = np.c_[X[keep], np.ones(n - 1)], y[keep]
        mean = np.linalg.lstsq(A, t, rcond=None)[0]
        dof = n - 1 - d - 1
        s2 = ((t - A @ mean) ** 2).sum() / dof
        row = np.r_[X[i], 1.0]
        spread = np.sqrt(s2 * (1 + row @ np.linalg.inv(A.T @ A) @ row))
        exact.append(stats.t.logpdf(y[i], dof, row @ mean, spread))
    assert (loo.pareto_k < 0.7).all() and not len(loo.unreliable)
    np.testing.assert_allclose(loo.pointwise, exact, atol=0.05)
    assert abs(loo.elpd - sum(exact)) < 0.15
    assert 3 < loo.p_loo < 7


def test_a_row_that_decides_is_called_unreliable():
    X, y = table("normal", n=30)
    X, y = np.r_[X, [[60.0, -50.0, 40.0]]], np.r_[y, 500.0]
    loo = posterior(ln.LinearRegression(), X, y, n_draws=500, random_state=7).loo()
    assert loo.pareto_k[-1] > 0.7 and "Pareto k" in str(loo)


def test_priors_shrink_and_faults_are_named():
    X, y = table("normal")
    tight = posterior(ln.LinearRegression(), X, y, prior={"coef": Normal(0, 0.01)}, random_state=0)
    assert np.abs(tight.chains["coef"]).max() < 0.06
    for prior in (Laplace(0.0, 0.5), StudentT(3.0, 0.0, 1.0)):
        assert posterior(ln.LinearRegression(), X, y, prior={"coef": prior}, n_draws=300, random_state=0)
    with pytest.raises(ParameterError, match="LinearSVC shows no likelihood"):
        posterior(ln.LinearSVC(), X, y)
    with pytest.raises(ParameterError, match=r"prior is for \['coef', 'intercept', 'sigma'\]; got 'beta'"):
        posterior(ln.LinearRegression(), X, y, prior={"beta": Normal(0, 1)})
    with pytest.raises(ParameterError, match="may be negative"):
        posterior(ln.LinearRegression(), X, y, prior={"coef": Exponential(1.0)})
    with pytest.raises(ParameterError, match="likelihood must be 'normal' or 'student_t'"):
        posterior(ln.PoissonRegressor(), *table("poisson"), likelihood="student_t")
    with pytest.raises(DataError, match="the posterior is improper"):
        posterior(ln.LinearRegression(), np.c_[X, X[:, :1]], y)
    with pytest.raises(ParameterError, match="L1 penalty is no normal prior"):
        posterior(ln.LogisticRegression(l1_ratio=1.0), *table("bernoulli"))


def test_the_same_draws_for_one_and_two_threads():
    X, y = table("poisson")
    runs = [posterior(ln.PoissonRegressor(), X, y, n_draws=100, random_state=0, n_jobs=j) for j in (1, 2)]
    np.testing.assert_array_equal(runs[0].chains.draws, runs[1].chains.draws)


def test_psis_asks_for_draws():
    with pytest.raises(DataError, match="n_draws ≥ 20"):
        psis_loo(np.zeros((5, 3)))
