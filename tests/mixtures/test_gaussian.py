"""Gaussian mixtures: the bound never falls, published fits are found, special cases are what they should be."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture as Peer

import learnable as ln
from learnable import GaussianMixture, KMeans
from learnable.core.errors import DataError, ParameterError

KINDS = ["full", "tied", "diag", "spherical"]


def rows(n=300, d=3, seed=0, shift=3.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    X[n // 2 :] += shift
    return X


def quiet_fit(model, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*args, **kwargs)


def test_old_faithful(reference_data):
    X = np.loadtxt(reference_data / "old_faithful.csv", delimiter=",", skiprows=1, usecols=(0, 1))
    model = GaussianMixture(2, tol=1e-10, max_iter=500, random_state=0).fit(X)
    assert model.score_samples(X).sum() == pytest.approx(-1130.264, abs=5e-4)  # mclust, VVV with two components
    assert bool(ln.verify(model, X))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("K", [1, 3])
def test_scikit_learn_ends_in_the_same_place(kind, K):
    X = rows()
    settings = {"covariance_type": kind, "means_init": X[[5, 200, 290]][:K], "tol": 1e-9, "max_iter": 2000}
    eye = np.eye(3)
    settings["precisions_init"] = {
        "full": np.stack([eye] * K),
        "tied": eye,
        "diag": np.ones((K, 3)),
        "spherical": np.ones(K),
    }[kind]
    settings["weights_init"] = np.full(K, 1 / K)
    ours, peer = (cls(K, **settings, reg_covar=1e-9, random_state=0).fit(X) for cls in (GaussianMixture, Peer))
    assert ours.score(X) == pytest.approx(peer.score(X), abs=1e-6)
    assert ours.aic(X) == pytest.approx(peer.aic(X), abs=1e-3) and ours.bic(X) == pytest.approx(peer.bic(X), abs=1e-3)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_one_component_is_the_maximum_likelihood_estimate(kind):
    X, w = rows(50), np.random.default_rng(0).uniform(0.5, 2.0, 50)
    model = GaussianMixture(1, covariance_type=kind, reg_covar=0.0).fit(X, sample_weight=w)
    cov = np.cov(X.T, bias=True, aweights=w)
    expected = {"full": cov[None], "tied": cov, "diag": np.diag(cov)[None], "spherical": [np.diag(cov).mean()]}[kind]
    np.testing.assert_allclose(model.means_[0], np.average(X, axis=0, weights=w))
    np.testing.assert_allclose(model.covariances_, expected, rtol=1e-10)


PRIORS = [
    None,
    "default",
    {"alpha": 3.0},
    {"dof": 6.0, "scale": 0.5},
    {"alpha": 1.5, "dof": 5.0, "scale": [1.0, 2.0, 3.0], "mean": 0.5, "kappa": 2.0},
]


@given(
    st.integers(0, 2**31),
    st.sampled_from(KINDS),
    st.sampled_from(PRIORS),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["kmeans", "random", "k-means++", "random_from_data"]),
)
@settings(max_examples=20)
def test_laws(seed, kind, prior, missing, weighted, init):
    rng = np.random.default_rng(seed)
    X = rows(60, 3, seed)
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    w = rng.integers(0, 3, len(X)) + 0.5 if weighted else None
    model = GaussianMixture(
        3, covariance_type=kind, prior=prior, init_params=init, random_state=seed, max_iter=30, reg_covar=1e-3
    )
    quiet_fit(model, X, sample_weight=w)
    history = model.bound_history_
    assert (np.diff(history) >= -1e-10 * (1 + abs(history[0]))).all()
    assert model.weights_.sum() == pytest.approx(1.0)
    verdict = ln.verify(model, X, sample_weight=w)
    if model.certificate_.holds:
        assert bool(verdict), str(verdict)
    else:  # the recomputed value agrees even where it is above the tolerance
        assert verdict.value == pytest.approx(model.certificate_.value, rel=0.01, abs=1e-9)


def test_the_bound_is_the_log_likelihood():
    X = rows()
    model = GaussianMixture(2, reg_covar=0.0, random_state=0).fit(X)
    by_hand = np.log(
        sum(model.weights_[k] * multivariate_normal(model.means_[k], model.covariances_[k]).pdf(X) for k in range(2))
    )
    np.testing.assert_allclose(model.score_samples(X), by_hand, rtol=1e-9)
    assert model.lower_bound_ == pytest.approx(by_hand.mean(), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_flat_prior_is_no_prior(kind):
    X = rows()
    dof = -4.0 if kind in ("full", "tied") else -2.0
    flat = GaussianMixture(2, covariance_type=kind, prior={"alpha": 1.0, "dof": dof, "scale": 0.0}, random_state=0)
    plain = GaussianMixture(2, covariance_type=kind, random_state=0)
    assert flat.fit(X).bound_history_.tolist() == plain.fit(X).bound_history_.tolist()


def test_a_prior_keeps_components_from_collapsing():
    X = np.concatenate([rows(40, 2), np.repeat([[50.0, 50.0]], 5, axis=0)])
    with pytest.raises(DataError, match="singular"):
        GaussianMixture(2, reg_covar=0.0, means_init=[[0.0, 0.0], [50.0, 50.0]], random_state=0).fit(X)
    model = GaussianMixture(2, reg_covar=0.0, prior="default", random_state=0).fit(X)
    assert np.linalg.eigvalsh(model.covariances_).min() > 1e-3


def test_vanishing_tied_spherical_variance_is_k_means():
    X = rows(200, 2, shift=6.0)
    model = GaussianMixture(2, covariance_type="spherical", means_init=X[[0, 150]], random_state=0).fit(X)
    clusters = KMeans(2, init=X[[0, 150]]).fit(X)
    tight = GaussianMixture(2, covariance_type="spherical")
    tight.__dict__.update(model.__dict__)
    tight.means_, tight.covariances_, tight.weights_ = clusters.cluster_centers_, np.full(2, 1e-8), np.full(2, 0.5)
    assert tight.predict(X).tolist() == clusters.labels_.tolist()
    hard = tight.predict_proba(X)
    np.testing.assert_allclose(hard.max(axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose((hard.T @ X) / hard.sum(axis=0)[:, None], clusters.cluster_centers_, rtol=1e-6)


def test_missing_entries_are_integrated_out():
    X = rows(400, 3)
    model = GaussianMixture(2, random_state=0).fit(X)
    gappy = X[:20].copy()
    gappy[:, 1] = np.nan
    marginal = sum(
        model.weights_[k]
        * multivariate_normal(model.means_[k][[0, 2]], model.covariances_[k][np.ix_([0, 2], [0, 2])]).pdf(
            X[:20, [0, 2]]
        )
        for k in range(2)
    )
    np.testing.assert_allclose(model.score_samples(gappy), np.log(marginal), rtol=1e-8)
    # One component, two columns, the second missing at random: Anderson's (1957) closed form.
    Z = X[:, :2].copy()
    Z[::3, 1] = np.nan
    there = ~np.isnan(Z[:, 1])
    slope, intercept = np.polyfit(Z[there, 0], Z[there, 1], 1)
    fitted = quiet_fit(GaussianMixture(1, tol=1e-13, max_iter=2000, reg_covar=0.0), Z)
    assert fitted.means_[0, 1] == pytest.approx(intercept + slope * Z[:, 0].mean(), rel=1e-5)
    # A row without any entry says nothing.
    blank = np.vstack([Z, [[np.nan, np.nan]]])
    again = quiet_fit(GaussianMixture(1, tol=1e-13, max_iter=2000, reg_covar=0.0), blank)
    np.testing.assert_allclose(again.means_, fitted.means_, rtol=1e-5)


def test_all_labels_known_is_one_estimate_a_class():
    X, labels = rows(), np.repeat([0, 1], 150)
    model = GaussianMixture(2, reg_covar=0.0, random_state=0).fit(X, labels=labels)
    for k in range(2):
        np.testing.assert_allclose(model.means_[k], X[labels == k].mean(axis=0))
        np.testing.assert_allclose(model.covariances_[k], np.cov(X[labels == k].T, bias=True))
    assert bool(ln.verify(model, X))
    some = np.where(np.arange(300) % 10 == 0, labels, -1)
    partly = GaussianMixture(2, random_state=0).fit(X, labels=some)
    assert np.linalg.norm(partly.means_[1] - X[150:].mean(axis=0)) < np.linalg.norm(partly.means_[0] - X[150:].mean(0))
    with pytest.raises(DataError, match="labels must lie between"):
        GaussianMixture(2).fit(X, labels=labels + 1)


@pytest.mark.threaded
def test_threads_weights_and_warm_starts():
    X = rows(40_000, 20)
    fits = [quiet_fit(GaussianMixture(3, random_state=0, n_jobs=jobs, max_iter=3), X) for jobs in (1, 2)]
    assert fits[0].covariances_.tobytes() == fits[1].covariances_.tobytes()
    X, w = rows(60), np.random.default_rng(0).integers(0, 3, 60)
    start = {"means_init": X[[0, 50]], "weights_init": [0.5, 0.5], "precisions_init": np.stack([np.eye(3)] * 2)}
    weighted = GaussianMixture(2, **start).fit(X, sample_weight=w)
    repeated = GaussianMixture(2, **start).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.means_, repeated.means_, rtol=1e-8)
    warm = GaussianMixture(2, warm_start=True, random_state=0, tol=1e-7, max_iter=500).fit(X)
    bound = warm.lower_bound_
    assert warm.fit(X).bound_history_[0] == pytest.approx(bound, rel=1e-12) and warm.n_iter_ <= 2


def test_files_and_dask_are_memory(tmp_path, monkeypatch):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X = rows(500)
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(3)}), tmp_path / "rows.parquet")
    monkeypatch.setattr("learnable.data.files.Files.is_small", lambda self: False)
    memory, disk = (GaussianMixture(2, random_state=0).fit(data) for data in (X, str(tmp_path / "rows.parquet")))
    np.testing.assert_allclose(disk.covariances_, memory.covariances_, rtol=1e-10)
    da = pytest.importorskip("dask.array")
    lazy = GaussianMixture(2, random_state=0).fit(da.from_array(X, chunks=(100, 3)))
    np.testing.assert_allclose(lazy.covariances_, memory.covariances_, rtol=1e-10)


def test_samples_have_the_moments_and_files_round_trip(tmp_path):
    X = rows()
    model = GaussianMixture(2, random_state=0).fit(X)
    drawn, labels = model.sample(40_000)
    np.testing.assert_allclose(np.bincount(labels) / 40_000, model.weights_, atol=0.02)
    np.testing.assert_allclose(drawn.mean(axis=0), model.weights_ @ model.means_, atol=0.1)
    ln.save(model, tmp_path / "m.safetensors")
    loaded = ln.load(tmp_path / "m.safetensors")
    assert loaded.predict_proba(X).tobytes() == model.predict_proba(X).tobytes() and bool(ln.verify(loaded, X))
    loaded.means_ = loaded.means_ * 1.001
    assert not ln.verify(loaded, X)


@pytest.mark.parametrize(
    "parameters, error, message",
    [
        ({"n_components": 0}, ParameterError, "n_components"),
        ({"covariance_type": "round"}, ParameterError, "covariance_type"),
        ({"prior": {"beta": 1.0}}, ParameterError, "keys among"),
        ({"prior": {"alpha": 0.5}}, ParameterError, "alpha >= 1"),
        ({"weights_init": [0.2, 0.2]}, ParameterError, "sum to one"),
        ({"means_init": [[0.0]]}, ParameterError, "means_init must have shape"),
        ({"n_components": 301}, DataError, "n_samples=300"),
    ],
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        GaussianMixture(**({"n_components": 2} | parameters)).fit(rows())


def test_degenerate_data():
    X = np.column_stack([rows(100, 2), np.ones(100)])
    constant = quiet_fit(GaussianMixture(2, random_state=0, max_iter=20), X)
    assert np.isfinite(constant.covariances_).all()
    same = quiet_fit(GaussianMixture(2, random_state=0), np.ones((10, 2)))
    np.testing.assert_allclose(same.weights_ @ same.means_, 1.0)
    with pytest.raises(DataError, match="overflow"):
        GaussianMixture(1).fit(rows() * 1e200)
