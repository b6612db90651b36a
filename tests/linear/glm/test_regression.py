"""Poisson, Gamma and Tweedie regression: optimal, lawful, and scikit-learn's in everything but speed."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn import linear_model as sklearn_models
from sklearn.exceptions import ConvergenceWarning
from tests.data.on_disk import streamed
from tests.oracles.deviance import Deviance

import learnable as ln
from learnable import verify
from learnable.core.errors import DataError, ModelFileError, ParameterError
from learnable.linear.glm.regression import GammaRegressor, PoissonRegressor, TweedieRegressor

FAMILIES = [(1, "log"), (1.4, "log"), (2, "log"), (0, "identity"), (0, "log"), (3, "log"), (-1, "log"), (1, "identity")]
family = pytest.mark.parametrize(("power", "link"), FAMILIES, ids=[f"{p}-{link}" for p, link in FAMILIES])
models = pytest.mark.parametrize("cls", [PoissonRegressor, GammaRegressor])


def draw(power=1, seed=0, n=300, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(0.5, 2, d) + np.arange(d)
    mu = np.exp(0.3 * X[:, 0] - 0.1 * X[:, 1] + 1.0)
    if 0 < power < 2:
        return X, rng.poisson(mu).astype(float), rng.uniform(0.2, 2.0, n)
    return X, rng.gamma(3.0, mu / 3), rng.uniform(0.2, 2.0, n)


@family
@pytest.mark.parametrize("alpha", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_fit_is_the_optimum(power, link, alpha, intercept):
    if link == "identity" and power and not intercept:
        return  # there are no such means for these rows
    X, y, weight = draw(power)
    model = TweedieRegressor(power=power, link=link, alpha=alpha, fit_intercept=intercept, tol=1e-11)
    model.fit(X, y, weight)
    assert model.certificate_.holds
    exact = Deviance(X, y, power, alpha, log_link=link == "log", weight=weight, intercept=intercept)
    theta = np.r_[model.intercept_, model.coef_]
    best = exact.optimum(theta)
    assert exact.value(theta) <= exact.value(best) * (1 + 1e-10)
    kind = (
        "gap" if alpha and ((link == "log" and 1 <= power <= 2) or (link, power) == ("identity", 0)) else "stationarity"
    )
    assert model.certificate_.kind == kind


@pytest.mark.sampled(6)
@family
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_coefficients_and_score_agree_with_scikit_learn(power, link, storage):
    X, y, weight = draw(power)
    settings = {"power": power, "link": link, "alpha": 0.1}
    ours = TweedieRegressor(**settings, tol=1e-13).fit(storage(X), y, weight)
    theirs = sklearn_models.TweedieRegressor(**settings, tol=1e-10, max_iter=10_000).fit(X, y, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=2e-4)
    theirs.coef_, theirs.intercept_ = ours.coef_, ours.intercept_
    np.testing.assert_allclose(ours.predict(storage(X)), theirs.predict(X), rtol=1e-13)
    assert ours.score(storage(X), y, weight) == pytest.approx(theirs.score(X, y, weight), rel=1e-10)


@models
def test_the_named_models_are_tweedie_models(cls):
    power = {"PoissonRegressor": 1, "GammaRegressor": 2}[cls.__name__]
    X, y, weight = draw(power)
    named, general = cls(alpha=0.2).fit(X, y, weight), TweedieRegressor(power=power, alpha=0.2).fit(X, y, weight)
    np.testing.assert_array_equal(named.coef_, general.coef_)
    assert named.intercept_ == general.intercept_
    theirs = getattr(sklearn_models, cls.__name__)()
    ours = set(cls().get_params())
    assert set(theirs.get_params()) <= ours
    fitted = {name for name in vars(theirs.fit(X, y)) if name.endswith("_")}
    assert fitted <= set(vars(named))


def test_dobsons_trial_has_the_published_coefficients():
    """A. Dobson, An Introduction to Generalized Linear Models, 1990, p. 93: the example in the help of R's glm.

    The design is balanced, so that the means are products of the margins: outcome totals 63, 40, 47, and 50 for every
    treatment. The coefficients are log(63/3), log(40/63), log(47/63), 0, 0. The deviances are those of statsmodels
    0.15.0, GLM(counts, X, family=Poisson()).fit(): 5.129141077001144, and 10.581445863750867 without features.
    """
    counts = np.array([18, 17, 15, 20, 10, 20, 25, 13, 12])
    outcome, treatment = np.tile([0, 1, 2], 3), np.repeat([0, 1, 2], 3)
    X = np.column_stack([outcome == 1, outcome == 2, treatment == 1, treatment == 2]).astype(float)
    model = PoissonRegressor(alpha=0, tol=1e-14).fit(X, counts)
    assert model.intercept_ == pytest.approx(np.log(21), rel=1e-12)
    np.testing.assert_allclose(model.coef_, [np.log(40 / 63), np.log(47 / 63), 0.0, 0.0], rtol=1e-11, atol=1e-12)
    mu = model.predict(X)
    deviance = 2 * np.sum(counts * np.log(counts / mu) - counts + mu)
    assert deviance == pytest.approx(5.129141077001144, rel=1e-12)
    assert model.score(X, counts) == pytest.approx(1 - 5.129141077001144 / 10.581445863750867, rel=1e-12)


@family
def test_without_a_penalty_the_score_equations_hold(power, link):
    """Σ s (y − μ) μ′/V(μ) x = 0, for the intercept too: the slope of the log-likelihood vanishes."""
    X, y, weight = draw(power)
    model = TweedieRegressor(power=power, link=link, alpha=0, tol=1e-12).fit(X, y, weight)
    mu = model.predict(X)
    pull = weight * (y - mu) * mu ** (-float(power)) * (mu if link == "log" else 1.0)
    rows = np.column_stack([np.ones(len(X)), X])
    np.testing.assert_allclose(pull @ rows, 0, atol=1e-9 * np.abs(pull[:, None] * rows).sum(axis=0).max())


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0, 100.0])
def test_with_the_canonical_link_fitted_means_sum_to_the_observed_sum(alpha):
    X, y, weight = draw(1)
    tol = 1e-13 if alpha == 0 else 1e-8  # with a penalty the intercept is made exactly optimal
    model = PoissonRegressor(alpha=alpha, tol=tol).fit(X, y, weight)
    assert weight @ model.predict(X) == pytest.approx(weight @ y, rel=1e-12)
    gamma = GammaRegressor(alpha=max(alpha, 1e-3)).fit(X, y + 1, weight)
    assert weight @ ((y + 1) / gamma.predict(X)) == pytest.approx(weight.sum(), rel=1e-12)


def test_map_with_a_gaussian_prior_is_ridge():
    """With y ~ N(b + Xw, σ²), w ~ N(0, τ²) and known σ and τ, the posterior's mode is ridge's with α = σ²/τ²."""
    X, y, weight = draw(0)
    sigma, tau = 0.7, 1.9
    Xc, yc = X - np.average(X, axis=0, weights=weight), y - np.average(y, weights=weight)
    precision = Xc.T @ (weight[:, None] * Xc) / sigma**2 + np.eye(X.shape[1]) / tau**2
    mode = np.linalg.solve(precision, Xc.T @ (weight * yc) / sigma**2)
    ridge = ln.Ridge(alpha=sigma**2 / tau**2).fit(X, y, weight)
    general = TweedieRegressor(power=0, alpha=sigma**2 / tau**2 / weight.sum()).fit(X, y, weight)
    np.testing.assert_allclose(ridge.coef_, mode, rtol=1e-10)
    np.testing.assert_allclose(general.coef_, mode, rtol=1e-10)
    np.testing.assert_allclose(general.intercept_, ridge.intercept_, rtol=1e-10)


@models
@settings(max_examples=15, deadline=None)
@given(factor=st.floats(1e-8, 1e8), seed=st.integers(0, 5))
def test_a_change_of_the_targets_unit_moves_the_intercept_alone(cls, factor, seed):
    """With μ = e^z a factor c of y is log c in b; the Poisson deviance scales by c, the Gamma deviance not at all."""
    X, y, weight = draw(2 if cls is GammaRegressor else 1, seed)
    alpha = 0.1 * (factor if cls is PoissonRegressor else 1.0)
    one = cls(alpha=0.1, tol=1e-12).fit(X, y, weight)
    other = cls(alpha=alpha, tol=1e-12).fit(X, factor * y, weight)
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-5, atol=1e-6)
    assert other.intercept_ == pytest.approx(one.intercept_ + np.log(factor), abs=1e-5)


@models
def test_whole_weights_are_repeated_rows_and_zero_weights_are_no_rows(cls):
    X, y, _ = draw(2 if cls is GammaRegressor else 1)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = cls(tol=1e-12).fit(X, y, times)
    repeated = cls(tol=1e-12).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-8)


@models
def test_sparse_float32_and_frames_give_the_same_fit(cls):
    X, y, weight = draw(2 if cls is GammaRegressor else 1)
    X = X.astype(np.float32).astype(float)
    dense = cls(alpha=0.1, tol=1e-12).fit(X, y, weight)
    for table, tolerance in ((sp.csr_array(X), 1e-7), (pd.DataFrame(X), 0), (X.astype(np.float32), 1e-3)):
        model = cls(alpha=0.1, tol=1e-12).fit(table, y, weight)
        np.testing.assert_allclose(model.coef_, dense.coef_, rtol=tolerance, atol=tolerance)
    by_name = cls(alpha=0.1).fit(pd.DataFrame(X, columns=list("abcd")).assign(y=y, s=weight), "y", "s")
    assert list(by_name.feature_names_in_) == list("abcd")


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_wide_tables_are_solved_among_their_rows(storage):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 200)) + 1.0
    y = rng.poisson(np.exp(0.3 * X[:, 0])).astype(float)
    model = PoissonRegressor(alpha=0.1).fit(storage(X), y)
    assert model.certificate_.holds and ln.verify(model, X, y)
    other = PoissonRegressor(alpha=0.1, solver="newton-cg", tol=1e-12).fit(storage(X), y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-4 * np.abs(other.coef_).max())


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton-cholesky", "newton-cg"])
@family
def test_every_solver_ends_at_the_optimum(solver, power, link):
    X, y, weight = draw(power)
    model = TweedieRegressor(power=power, link=link, alpha=0.05, solver=solver, tol=1e-6, max_iter=2000)
    model.fit((X - X.mean(axis=0)) / X.std(axis=0), y, weight)
    assert model.certificate_.holds


@models
def test_many_rows_start_from_few_of_them(cls):
    X, y, _ = draw(2 if cls is GammaRegressor else 1, n=60_000)
    model = cls(alpha=1e-3).fit(X, y)
    assert model.certificate_.holds and model.n_iter_ <= 8
    direct = cls(alpha=1e-3, solver="newton-cholesky", tol=1e-13).fit(X, y)
    np.testing.assert_allclose(model.coef_, direct.coef_, atol=1e-4)


def test_an_outlying_row_does_not_overflow_after_the_thinned_start():
    X, y, _ = draw(1, n=60_000)
    X[12_345] = 1e5  # e^z overflows there at the optimum of the other rows
    model = PoissonRegressor(alpha=1e-3).fit(X, y)
    assert model.certificate_.holds


@pytest.mark.threaded
def test_the_same_bits_whatever_the_threads():
    X, y, weight = draw(1, n=30_000, d=40)
    one, two = (PoissonRegressor(alpha=0.01, n_jobs=jobs).fit(X, y, weight) for jobs in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.intercept_ == two.intercept_


@pytest.mark.parametrize("cls", [PoissonRegressor, GammaRegressor, TweedieRegressor])
def test_files_and_dask_give_the_fit_of_the_table_in_memory(cls, tmp_path):
    dask = pytest.importorskip("dask.dataframe")
    X, y, weight = draw(2 if cls is GammaRegressor else 1, n=5000)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, s=weight)
    memory = cls(alpha=0.1).fit(frame, "y", "s")
    parts = dask.from_pandas(frame, npartitions=3)
    for table in (streamed(frame, tmp_path / "parts", 3), parts):
        model = cls(alpha=0.1).fit(table, "y", "s")
        np.testing.assert_allclose(model.coef_, memory.coef_, rtol=1e-9, atol=1e-11)
        assert model.certificate_.fingerprint == memory.certificate_.fingerprint
        assert ln.verify(model, table, "y", "s")
        assert model.score(table, "y", "s") == pytest.approx(memory.score(frame[list("abcd")], y, weight), rel=1e-9)
    np.testing.assert_allclose(memory.predict(parts).compute(), memory.predict(frame[list("abcd")]), rtol=1e-13)


def test_targets_outside_the_range_are_refused_in_files_too(tmp_path):
    X, y, _ = draw(1, n=400)
    y[7] = -2.0
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    parts = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)
    for table in (frame, parts):
        with pytest.raises(DataError, match=r"PoissonRegressor: .*y must be >= 0 .*smallest is -2"):
            PoissonRegressor().fit(table, "y")
    with pytest.raises(DataError, match=r"GammaRegressor: .*y must be > 0 .*smallest is 0"):
        GammaRegressor().fit(X, np.zeros(len(X)))


@pytest.mark.parametrize(("power", "link"), [(1, "log"), (1.5, "log"), (0, "log"), (1, "identity")])
def test_targets_whose_mean_is_zero_have_no_model_with_an_intercept(power, link):
    with pytest.raises(DataError, match="the mean of y must be > 0"):
        TweedieRegressor(power=power, link=link).fit(np.eye(3), np.zeros(3))


def test_without_an_intercept_zero_targets_have_a_model():
    model = PoissonRegressor(fit_intercept=False, tol=1e-14).fit(np.ones((3, 1)), np.zeros(3))
    assert model.certificate_.holds
    w = model.coef_[0]
    assert np.exp(w) + w == pytest.approx(0, abs=1e-6)  # the gradient of mean e^w + ½w²


def test_parameters_out_of_range_are_refused():
    X, y, _ = draw(1)
    for wrong in ({"alpha": -1.0}, {"alpha": np.inf}, {"solver": "sag"}, {"max_iter": 0}, {"tol": np.nan}):
        with pytest.raises(ParameterError, match=f"PoissonRegressor: {next(iter(wrong))}"):
            PoissonRegressor(**wrong).fit(X, y)
    for wrong in ({"power": "1"}, {"link": "logit"}):
        with pytest.raises(ParameterError, match="TweedieRegressor"):
            TweedieRegressor(**wrong).fit(X, y)


def test_a_warm_start_begins_where_the_last_fit_ended():
    X, y, weight = draw(1)
    model = PoissonRegressor(alpha=0.1, warm_start=True).fit(X, y, weight)
    assert model.fit(X, y, weight).n_iter_ == 0
    model.coef_ = np.full(4, 1e6)  # means overflow there
    assert model.fit(X, y, weight).certificate_.holds


def test_a_fit_that_stops_early_says_so():
    X, y, weight = draw(1)
    with pytest.warns(ConvergenceWarning, match="PoissonRegressor: stopped after 1 iterations at gap"):
        model = PoissonRegressor(alpha=1e-4, max_iter=1).fit(X, y, weight)
    assert not model.certificate_.holds


def test_a_round_trip_through_a_file(tmp_path):
    X, y, weight = draw(1)
    for model in (PoissonRegressor(alpha=0.1), TweedieRegressor(power=1.5, link="log")):
        model.fit(X, y, weight)
        ln.save(model, tmp_path / "m.safetensors")
        loaded = ln.load(tmp_path / "m.safetensors")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        assert ln.verify(loaded, X, y, weight)
        loaded.coef_ = loaded.coef_[:2]
        with pytest.raises(ModelFileError):
            ln.save(loaded, tmp_path / "m.safetensors")


columns = st.sampled_from(["plain", "constant", "zero", "copy", "shifted", "rare"])


@settings(max_examples=80, deadline=None)
@example(["plain"] * 3, [0.0, 0.0, 7.0, 0.0, 0.0], 1, 1e-6, 0.0, False, 1)  # a gap at the level of rounding
@given(
    kinds=st.lists(columns, min_size=1, max_size=5),
    scales=st.lists(st.floats(-8, 8), min_size=5, max_size=5),
    power=st.sampled_from([1, 1.5, 2]),
    alpha=st.sampled_from([1e-6, 1e-2, 1.0, 1e3]),
    unit=st.floats(-8, 8),
    zero_weights=st.booleans(),
    seed=st.integers(0, 100),
)
def test_scales_and_hostile_columns(kinds, scales, power, alpha, unit, zero_weights, seed):
    """Whatever the columns, a fit is finite, certified and verified, without a warning."""
    rng = np.random.default_rng(seed)
    n = 40
    first = rng.normal(size=n)
    made = {
        "plain": lambda: rng.normal(size=n),
        "constant": lambda: np.ones(n),
        "zero": lambda: np.zeros(n),
        "copy": lambda: first,
        "shifted": lambda: rng.normal(size=n) + 1e6,
        "rare": lambda: (np.arange(n) == 3).astype(float),
    }
    X = np.column_stack([first, *(made[kind]() for kind in kinds)])
    X *= 10.0 ** np.array([0.0, *scales[: len(kinds)]])
    y = (rng.poisson(np.exp(0.5 * first + 1)) + (power == 2)) * 10.0**unit
    weight = rng.uniform(0.5, 2, n) * (np.arange(n) % 7 > 0) if zero_weights else None
    if not (y if weight is None else weight * y).any():
        return
    model = TweedieRegressor(power=power, alpha=alpha * 10.0 ** (unit * (2 - power)), max_iter=300)
    model.fit(X, y, weight)
    assert np.isfinite(model.coef_).all() and np.isfinite(model.predict(X)).all()
    assert model.certificate_.holds
    assert ln.verify(model, X, y, weight), str(ln.verify(model, X, y, weight))


EXPLICIT = {
    "poisson": (PoissonRegressor(alpha=0.1), 1.0, 0.0),
    "gamma": (GammaRegressor(alpha=0.1), 2.0, 1.0),
    "tweedie": (TweedieRegressor(power=1.5, alpha=0.1), 1.5, 0.0),
}


@pytest.mark.parametrize("solver", ["lbfgs", "newton-cholesky", "newton-cg"])
@pytest.mark.parametrize("name", EXPLICIT)
def test_an_explicit_tolerance_bounds_the_gradient_as_in_scikit_learn(name, solver):
    model, power, shift = EXPLICIT[name]
    for seed, tol in enumerate([1e-4, 1e-7, 1e-8, 1e-10]):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, 4)) * [0.1, 1.0, 3.0, 1.0]
        y = rng.poisson(np.exp(0.3 * X[:, 1])) + shift
        model.set_params(tol=tol, solver=solver, max_iter=2000).fit(X, y)
        mu = np.exp(X @ model.coef_ + model.intercept_)
        r = (mu - y) * mu ** (1 - power)
        assert np.abs(X.T @ r / len(y) + 0.1 * model.coef_).max() <= tol and abs(r.mean()) <= tol


@pytest.mark.parametrize("name", EXPLICIT)
@pytest.mark.parametrize("intercept", [True, False])
def test_one_row_is_a_model(name, intercept):
    """Its null deviance is zero, or nothing but rounding."""
    model, _, _ = EXPLICIT[name]
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(1, 3)), rng.uniform(0.1, 9.0, 1)
        model.set_params(tol=1e-8, solver="auto", fit_intercept=intercept).fit(X, y)
        assert model.certificate_.holds and verify(model, X, y), str(verify(model, X, y))
    model.set_params(fit_intercept=True)


@pytest.mark.parametrize("size", [1e-310, 1e-300, 1e-200, 1e-120, 1e120])
@pytest.mark.parametrize("power", [0.0, 1.0, 1.5, 2.0])
def test_targets_of_any_size_are_verified(size, power):
    """Half the deviance is homogeneous, so units of y only change α."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (rng.poisson(np.exp(0.5 * X[:, 0])) + 1.0) * size
    model = TweedieRegressor(power=power, alpha=min(size ** (2 - power), 1e100) if power else 1.0)
    if power == 0 and size < 1e-300:
        with pytest.raises(DataError, match="rescale y"):
            model.fit(X, y)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert model.certificate_.holds and verify(model, X, y), str(verify(model, X, y))


def test_a_rounding_allowance_is_no_excuse():
    """One cell so large that nothing can be computed: the model is not verified, and the reason says so."""
    for size in (1e15, 1e20):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 3))
        y = rng.poisson(np.exp(0.5 * X[:, 0])) + 1.0
        X[5, 1] = size
        for model in (PoissonRegressor(), GammaRegressor(), TweedieRegressor(power=1.5)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X, y)
            verdict = verify(model, X, y)
            assert bool(verdict) == model.certificate_.holds
            assert verdict or "more than the claim" in str(verdict)


def test_intercepts_are_numpy_numbers_and_float32_stays():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = rng.poisson(np.exp(0.5 * X[:, 0])) + 1.0
    model = PoissonRegressor().fit(X, y)
    assert model.intercept_.round(1) == round(float(model.intercept_), 1)
    single = PoissonRegressor().fit(X.astype(np.float32), y)
    assert single.coef_.dtype == np.float32 and verify(single, X.astype(np.float32), y)


@pytest.mark.parametrize("model", [PoissonRegressor, GammaRegressor, TweedieRegressor])
@pytest.mark.parametrize("alpha", [1.0, 1e-6])
def test_constant_targets_are_fitted_and_certified(model, alpha):
    X = np.random.default_rng(2).normal(size=(60, 50))
    y = np.full(60, 3.0)
    fitted = model(alpha=alpha).fit(X, y)
    assert fitted.certificate_.holds
    assert ln.verify(fitted, X, y)
    np.testing.assert_allclose(fitted.predict(X), 3.0, rtol=1e-8)
