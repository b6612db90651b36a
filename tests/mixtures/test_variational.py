"""Variational mixtures: the bound never falls and is a bound; scikit-learn has the same posterior of the same model."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, multigammaln
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture

import learnable as ln
from learnable import VariationalGaussianMixture
from learnable.core.errors import DataError, ModelFileError, ParameterError

KINDS = ["full", "tied", "diag", "spherical"]
WEIGHTS = ["dirichlet_process", "dirichlet_distribution"]


def rows(n=200, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    X[n // 2 :] += 6.0
    return X


@given(st.integers(0, 2**31), st.sampled_from(KINDS), st.sampled_from(WEIGHTS), st.booleans(), st.booleans())
@settings(max_examples=20)
def test_laws(seed, kind, weights, weighted, given_prior):
    X, rng = rows(50, 2, seed), np.random.default_rng(seed)
    w = rng.integers(0, 3, len(X)) + 0.5 if weighted else None
    prior = {"full": np.eye(2), "tied": np.eye(2), "diag": np.ones(2), "spherical": 2.0}[kind]
    extra = (
        {"covariance_prior": prior, "mean_prior": [1.0, 2.0], "degrees_of_freedom_prior": 4.5} if given_prior else {}
    )
    model = VariationalGaussianMixture(
        3, covariance_type=kind, weight_concentration_prior_type=weights, random_state=seed, max_iter=40, **extra
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, sample_weight=w)
    history = model.bound_history_
    assert (np.diff(history) >= -1e-10 * (1 + abs(history[0]))).all()
    assert model.weights_.sum() == pytest.approx(1.0)
    verdict = ln.verify(model, X, sample_weight=w)
    if model.certificate_.holds:
        assert bool(verdict), str(verdict)
    else:
        assert verdict.value == pytest.approx(model.certificate_.value, rel=0.01, abs=1e-9)


def log_evidence_of_one_component(X, m0, beta0, nu0, psi0):
    """Return log p(X) of a normal sample under a Normal–Wishart prior (Murphy, 2007, equation 266)."""
    n, d = X.shape
    mean = X.mean(axis=0)
    gap = mean - m0
    psi = psi0 + (X - mean).T @ (X - mean) + beta0 * n / (beta0 + n) * np.outer(gap, gap)
    value = multigammaln((nu0 + n) / 2, d) - multigammaln(nu0 / 2, d) - 0.5 * n * d * np.log(np.pi)
    value += 0.5 * nu0 * np.linalg.slogdet(psi0)[1] - 0.5 * (nu0 + n) * np.linalg.slogdet(psi)[1]
    return value + 0.5 * d * np.log(beta0 / (beta0 + n))


def test_one_component_has_the_exact_evidence_and_posterior():
    X = rows(30, 2)
    settings = {"mean_prior": [0.5, 1.0], "mean_precision_prior": 2.0, "degrees_of_freedom_prior": 4.0}
    model = VariationalGaussianMixture(
        1,
        covariance_prior=3 * np.eye(2),
        reg_covar=0.0,
        weight_concentration_prior_type="dirichlet_distribution",
        **settings,
    ).fit(X)
    expected = log_evidence_of_one_component(X, np.array([0.5, 1.0]), 2.0, 4.0, 3 * np.eye(2))
    assert model.lower_bound_ == pytest.approx(expected, rel=1e-10)
    # The predictive density is a ratio of evidences.
    more = log_evidence_of_one_component(np.vstack([X, [[1.0, 2.0]]]), np.array([0.5, 1.0]), 2.0, 4.0, 3 * np.eye(2))
    assert model.score_samples([[1.0, 2.0]])[0] == pytest.approx(more - expected, rel=1e-8)


def test_the_bound_is_below_the_evidence_of_two_components():
    # Eight rows have 2^8 assignments, and the evidence of each is known.
    X = np.random.default_rng(1).normal(size=(8, 1)) + np.repeat([[0.0], [3.0]], 4, axis=0)
    model = VariationalGaussianMixture(
        2,
        weight_concentration_prior_type="dirichlet_distribution",
        weight_concentration_prior=1.0,
        mean_prior=[1.0],
        covariance_prior=np.eye(1),
        reg_covar=0.0,
        random_state=0,
        tol=1e-9,
        max_iter=5000,
    ).fit(X)
    logs = []
    for code in range(2**8):
        z = np.array([code >> i & 1 for i in range(8)], dtype=bool)
        value = multigammaln(1 + z.sum(), 1) + multigammaln(1 + (~z).sum(), 1) - multigammaln(10, 1)  # Beta–binomial
        for part in (X[z], X[~z]):
            if len(part):
                value += log_evidence_of_one_component(part, np.array([1.0]), 1.0, 1.0, np.eye(1))
        logs.append(value)
    exact = logsumexp(logs)
    assert exact - 3.0 < model.lower_bound_ <= exact


@pytest.mark.threaded
@pytest.mark.parametrize("weights", WEIGHTS)
def test_scikit_learn_has_the_same_posterior_of_full_covariances(weights):
    X = rows(300, 2)
    settings = {"n_components": 2, "weight_concentration_prior_type": weights, "tol": 1e-9, "max_iter": 3000}
    ours = VariationalGaussianMixture(**settings, reg_covar=0.0, random_state=0).fit(X)
    peer = BayesianGaussianMixture(**settings, reg_covar=0.0, random_state=0).fit(X)
    order = ln.align_components(ours, peer)
    if weights == "dirichlet_distribution" or (order == [0, 1]).all():  # sticks depend on the order
        np.testing.assert_allclose(peer.weights_[order], ours.weights_, rtol=1e-4)
        np.testing.assert_allclose(peer.covariances_[order], ours.covariances_, rtol=1e-4)
        np.testing.assert_allclose(peer.degrees_of_freedom_[order], ours.degrees_of_freedom_, rtol=1e-4)
        np.testing.assert_allclose(peer.mean_precision_[order], ours.mean_precision_, rtol=1e-4)
        np.testing.assert_allclose(peer.predict_proba(X)[:, order], ours.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(peer.covariance_prior_, ours.covariance_prior_)
    np.testing.assert_allclose(peer.means_[order], ours.means_, rtol=1e-2)


def test_components_that_are_not_needed_lose_their_weight():
    X = rows(400, 2)
    model = VariationalGaussianMixture(
        8, weight_concentration_prior=1e-3, mean_precision_prior=0.01, random_state=0, max_iter=3000, tol=1e-6
    ).fit(X)
    assert (model.counts_ > 4).sum() == 2
    bounds = [
        VariationalGaussianMixture(
            K, weight_concentration_prior_type="dirichlet_distribution", n_init=3, random_state=0, max_iter=1000
        )
        .fit(X)
        .lower_bound_
        for K in (1, 2, 5)
    ]
    assert int(np.argmax(bounds)) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_predictive_density_integrates_to_one_and_is_sampled(kind):
    X = rows(60, 2)
    model = VariationalGaussianMixture(2, covariance_type=kind, random_state=0, max_iter=500).fit(X)
    axis = np.linspace(-60, 70, 521)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    assert np.exp(model.score_samples(grid)).sum() * (axis[1] - axis[0]) ** 2 == pytest.approx(1.0, abs=0.01)
    drawn, labels = model.sample(20_000, random_state=0)
    np.testing.assert_allclose(np.bincount(labels, minlength=2) / 20_000, model.weights_, atol=0.02)
    np.testing.assert_allclose(drawn.mean(axis=0), model.weights_ @ model.means_, atol=0.2)


@pytest.mark.threaded
def test_known_labels_threads_and_warm_starts():
    X, labels = rows(120, 2), np.repeat([1, 0], 60)
    model = VariationalGaussianMixture(2, random_state=0).fit(X, labels=labels)
    np.testing.assert_allclose(model.counts_, [60.0, 60.0])
    assert bool(ln.verify(model, X))
    big = np.random.default_rng(0).normal(size=(40_000, 20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = [VariationalGaussianMixture(3, random_state=0, n_jobs=j, max_iter=2).fit(big) for j in (1, 2)]
    assert fits[0].covariances_.tobytes() == fits[1].covariances_.tobytes()
    warm = VariationalGaussianMixture(2, warm_start=True, random_state=0, tol=1e-8, max_iter=2000).fit(X)
    bound = warm.lower_bound_
    assert warm.fit(X).bound_history_[0] == pytest.approx(bound, rel=1e-12) and warm.n_iter_ <= 2


def test_files_and_dask_are_memory(tmp_path, monkeypatch):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X = rows(300)
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(3)}), tmp_path / "rows.parquet")
    monkeypatch.setattr("learnable.data.files.Files.is_small", lambda self: False)
    make = lambda: VariationalGaussianMixture(2, random_state=0, max_iter=500)  # noqa: E731
    memory, disk = (make().fit(data) for data in (X, str(tmp_path / "rows.parquet")))
    np.testing.assert_allclose(disk.covariances_, memory.covariances_, rtol=1e-10)
    da = pytest.importorskip("dask.array")
    lazy = make().fit(da.from_array(X, chunks=(100, 3)))
    np.testing.assert_allclose(lazy.covariances_, memory.covariances_, rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_files_round_trip(kind, tmp_path):
    X = rows()
    model = VariationalGaussianMixture(2, covariance_type=kind, random_state=0, max_iter=500).fit(X)
    ln.save(model, tmp_path / "m.safetensors")
    loaded = ln.load(tmp_path / "m.safetensors")
    assert loaded.predict_proba(X).tobytes() == model.predict_proba(X).tobytes() and bool(ln.verify(loaded, X))
    loaded.means_ = loaded.means_[:1]
    with pytest.raises(ModelFileError, match="means_"):
        loaded._check_loaded()


@pytest.mark.parametrize(
    "parameters, error, message",
    [
        ({"n_components": 0}, ParameterError, "n_components"),
        ({"weight_concentration_prior": 0.0}, ParameterError, "weight_concentration_prior"),
        ({"weight_concentration_prior_type": "beta"}, ParameterError, "weight_concentration_prior_type"),
        ({"mean_prior": [1.0]}, ParameterError, "mean_prior must have shape"),
        ({"degrees_of_freedom_prior": 1.5}, ParameterError, "degrees_of_freedom_prior must be > 2"),
        ({"covariance_prior": [1.0, 1.0]}, ParameterError, "covariance_prior must have shape"),
        ({"covariance_prior": -np.eye(3)}, DataError, "positive definite"),
        ({"n_components": 201}, DataError, "n_samples=200"),
    ],
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        VariationalGaussianMixture(**({"n_components": 2} | parameters)).fit(rows())


def test_degenerate_data():
    X = np.column_stack([rows(60, 2), np.ones(60)])
    constant = VariationalGaussianMixture(2, random_state=0, max_iter=500).fit(X)
    assert np.isfinite(constant.covariances_).all()
    same = VariationalGaussianMixture(2, random_state=0, max_iter=500).fit(np.ones((10, 2)))
    np.testing.assert_allclose(same.means_, 1.0)
    with pytest.raises(DataError, match="positive definite"):
        VariationalGaussianMixture(1, reg_covar=0.0).fit(np.ones((10, 2)))
    single = VariationalGaussianMixture(2, random_state=0, max_iter=500).fit(rows(60, 2).astype(np.float32))
    assert np.isfinite(single.lower_bound_)
    with pytest.raises(DataError, match="overflow"):
        VariationalGaussianMixture(1).fit(rows() * 1e200)
