"""Mixtures of experts: one expert is the plain model, the objective never falls, and predictions are distributions."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression

import learnable as ln
from learnable import MixtureOfExperts
from learnable.core.errors import DataError, ModelFileError, ParameterError


def bent(n=300, seed=0):
    """Return rows of two regimes with slopes and noise of their own."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    right = X[:, 0] > 0.3
    y = np.where(right, 2 * X[:, 0] + X[:, 1], 3 - X[:, 0]) + rng.normal(size=n) * np.where(right, 0.1, 0.5)
    return X, y, right


def exclusive(n=300, seed=0):
    """Return classes that no line separates."""
    X = np.random.default_rng(seed).uniform(-2, 2, (n, 2))
    return X, np.where((X[:, 0] > 0.2) == (X[:, 1] > 0), "same", "other")


def test_each_expert_finds_its_regime_and_its_variance():
    X, y, right = bent(1000)
    model = MixtureOfExperts(2, random_state=0).fit(X, y)
    k = int(np.argmax(model.coef_[:, 0]))
    np.testing.assert_allclose(model.coef_[k], [2.0, 1.0], atol=0.05)
    np.testing.assert_allclose(model.coef_[1 - k], [-1.0, 0.0], atol=0.15)
    np.testing.assert_allclose(np.sqrt(model.variances_[[k, 1 - k]]), [0.1, 0.5], rtol=0.1)
    assert np.mean((model.predict_gate(X)[:, k] > 0.5) == right) > 0.95
    assert np.mean((model.responsibilities(X, y)[:, k] > 0.5) == right) > 0.95
    assert bool(ln.verify(model, X, y))


def test_logistic_experts_bend_a_boundary():
    X, y = exclusive()
    assert MixtureOfExperts(1, experts="logistic").fit(X, y).score(X, y) < 0.75
    model = MixtureOfExperts(3, experts="logistic", n_init=4, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95 and bool(ln.verify(model, X, y))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.log_likelihood(X, y) == pytest.approx(
        np.log(model.predict_proba(X)[np.arange(300), (y == "same").astype(int)])
    )


def test_one_expert_is_the_plain_model():
    X, y, _ = bent(100)
    w = np.random.default_rng(0).uniform(0.5, 2.0, 100)
    model = MixtureOfExperts(1, alpha=0.0, reg_variance=0.0).fit(X, y, sample_weight=w)
    plain = LinearRegression().fit(X, y, sample_weight=w)
    np.testing.assert_allclose(model.coef_[0], plain.coef_, rtol=1e-8)
    gap = y - plain.predict(X)
    assert model.variances_[0] == pytest.approx(np.average(gap**2, weights=w), rel=1e-8)
    assert model.lower_bound_ == pytest.approx(
        np.average(norm.logpdf(gap, scale=model.variances_[0] ** 0.5), weights=w)
    )
    Z = (X - X.mean(axis=0)) / X.std(axis=0)  # penalties are those of standardised columns
    _, labels = exclusive(100)
    logistic = MixtureOfExperts(1, experts="logistic", alpha=1.0, tol=1e-13).fit(Z, labels)
    softmax = LogisticRegression(C=2.0, tol=1e-10).fit(Z, labels)  # weights w/2 and −w/2: half the penalty
    np.testing.assert_allclose(logistic.predict_proba(Z), softmax.predict_proba(Z), atol=1e-5)


@given(st.integers(0, 2**31), st.booleans(), st.integers(1, 3), st.booleans(), st.sampled_from(["kmeans", "random"]))
@settings(max_examples=20)
def test_laws(seed, classes, K, weighted, init):
    X, y, _ = bent(60, seed)
    y = np.digitize(y, [1.0, 3.0]) if classes else y
    y[:3] = np.arange(3)
    w = np.random.default_rng(seed).integers(0, 3, len(X)) + 0.5 if weighted else None
    model = MixtureOfExperts(
        K, experts="logistic" if classes else "gaussian", init_params=init, random_state=seed, max_iter=25, tol=1e-4
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, sample_weight=w)
    history = model.bound_history_
    assert (np.diff(history) >= -1e-10 * (1 + abs(history[0]))).all()
    verdict = ln.verify(model, X, y, sample_weight=w)
    if model.certificate_.holds:
        assert bool(verdict), str(verdict)
    else:
        assert verdict.value == pytest.approx(model.certificate_.value, rel=0.01, abs=1e-8)


def test_a_general_optimiser_finds_nothing_higher_nearby():
    X, y, _ = bent(80)
    x = X[:, :1]
    model = MixtureOfExperts(2, random_state=0, tol=1e-12, max_iter=20_000).fit(x, y)
    z, var_y = (x[:, 0] - x.mean()) / x.std(), np.var(y)

    def loss(v):
        gate, slopes, log_var = v[:4].reshape(2, 2), v[4:8].reshape(2, 2), v[8:]
        logs = log_softmax(gate[:, :1] + np.outer(gate[:, 1], z), axis=0)
        logs = logs + norm.logpdf(y, slopes[:, :1] + np.outer(slopes[:, 1], z), np.exp(log_var / 2)[:, None])
        prior = (
            1e-3 * (gate[:, 1] ** 2).sum() + ((1e-3 * slopes[:, 1] ** 2 + 1e-6 * var_y * 40) / np.exp(log_var)).sum()
        )
        return -(logsumexp(logs, axis=0).sum() - 0.5 * prior) / 80

    def in_units(coef, intercept):
        return np.column_stack([intercept + coef[:, 0] * x.mean(), coef[:, 0] * x.std()])

    gate = in_units(model.gate_coef_, model.gate_intercept_)
    start = np.r_[gate.ravel(), in_units(model.coef_, model.intercept_).ravel(), np.log(model.variances_)]
    assert loss(start) == pytest.approx(-model.lower_bound_, rel=1e-9)
    assert minimize(loss, start, method="BFGS").fun > loss(start) - 1e-7


def test_predictions_are_distributions():
    X, y, _ = bent(2000)
    model = MixtureOfExperts(2, random_state=0).fit(X[:1000], y[:1000])
    dist = model.predict_dist(X[1000:])
    np.testing.assert_allclose(dist.mean, model.predict(X[1000:]), rtol=1e-10)
    np.testing.assert_allclose(dist.logpdf(y[1000:]), model.log_likelihood(X[1000:], y[1000:]), rtol=1e-8)
    lower, upper = model.predict_interval(X[1000:], level=0.9)
    covered = np.mean((lower <= y[1000:]) & (y[1000:] <= upper))
    assert abs(covered - 0.9) < 4 * np.sqrt(0.9 * 0.1 / 1000) + 0.01
    with pytest.raises(AttributeError):
        MixtureOfExperts(2, experts="logistic").predict_dist  # noqa: B018
    with pytest.raises(AttributeError):
        MixtureOfExperts(2).predict_proba  # noqa: B018


def test_criteria_choose_the_number_of_experts():
    X, y, _ = bent(400)
    fits = [MixtureOfExperts(K, random_state=0, n_init=2).fit(X, y) for K in (1, 2, 3)]
    assert int(np.argmin([model.bic(X, y) for model in fits])) == 1
    likelihood = fits[1].log_likelihood(X, y).sum()
    assert fits[1].aic(X, y) == pytest.approx(2 * (3 + 2 * 4) - 2 * likelihood)


@pytest.mark.threaded
def test_threads_files_and_dask(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    big, target = rng.normal(size=(9_000, 20)), rng.normal(size=9_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = [MixtureOfExperts(2, random_state=0, n_jobs=jobs, max_iter=2).fit(big, target) for jobs in (1, 2)]
    assert fits[0].coef_.tobytes() == fits[1].coef_.tobytes()
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y, _ = bent()
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": y}), tmp_path / "rows.parquet")
    monkeypatch.setattr("learnable.data.files.Files.is_small", lambda self: False)
    memory = MixtureOfExperts(2, random_state=0).fit(X, y)
    disk = MixtureOfExperts(2, random_state=0).fit(str(tmp_path / "rows.parquet"), "y")
    np.testing.assert_allclose(disk.coef_, memory.coef_, rtol=1e-6)
    da = pytest.importorskip("dask.array")
    lazy = MixtureOfExperts(2, random_state=0)
    lazy.fit(da.from_array(X, chunks=(100, 2)), da.from_array(y, chunks=100))
    np.testing.assert_allclose(lazy.coef_, memory.coef_, rtol=1e-6)


@pytest.mark.parametrize("experts", ["gaussian", "logistic"])
def test_files_round_trip(experts, tmp_path):
    X, y, _ = bent()
    y = y if experts == "gaussian" else exclusive()[1]
    model = MixtureOfExperts(2, experts=experts, random_state=0).fit(X, y)
    ln.save(model, tmp_path / "m.safetensors")
    loaded = ln.load(tmp_path / "m.safetensors")
    assert loaded.predict(X).tobytes() == model.predict(X).tobytes() and bool(ln.verify(loaded, X, y))
    loaded.gate_coef_ = loaded.gate_coef_[:1]
    with pytest.raises(ModelFileError, match="gate_coef_"):
        loaded._check_loaded()


def test_degenerate_data():
    X, y, _ = bent(50)
    constant = np.column_stack([X, np.full(50, 7.0)])
    with_constant = MixtureOfExperts(2, random_state=0).fit(constant, y)
    plain = MixtureOfExperts(2, random_state=0).fit(X, y)
    np.testing.assert_allclose(with_constant.predict(constant), plain.predict(X), rtol=1e-5)
    flat = MixtureOfExperts(2, random_state=0).fit(X, np.full(50, 3.0))
    np.testing.assert_allclose(flat.predict(X), 3.0, rtol=1e-6)
    line = MixtureOfExperts(2, random_state=0).fit(X, 2 * X[:, 0] + 1)  # no noise: the variance stays above zero
    assert (line.variances_ > 0).all() and line.score(X, 2 * X[:, 0] + 1) > 0.999
    with pytest.raises(DataError, match="overflow"):
        MixtureOfExperts(2).fit(X * 1e200, y)
    with pytest.raises(DataError, match="n_experts"):
        MixtureOfExperts(51).fit(X, y)
    with pytest.raises(ParameterError, match="experts must be"):
        MixtureOfExperts(2, experts="linear").fit(X, y)
    model = MixtureOfExperts(2, experts="logistic", random_state=0).fit(X, y > 1)
    with pytest.raises(DataError, match="did not see"):
        model.log_likelihood(X, np.full(50, 2))
