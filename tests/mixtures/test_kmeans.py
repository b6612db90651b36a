"""k-means: the objective never rises, labels are those of plain Lloyd, degenerate data end in right answers."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans as Peer
from sklearn.exceptions import ConvergenceWarning

import learnable as ln
from learnable import KMeans
from learnable.core.errors import DataError, ParameterError


def blobs(n=600, d=4, K=5, seed=0, spread=3.0):
    rng = np.random.default_rng(seed)
    return spread * rng.normal(size=(K, d))[rng.integers(K, size=n)] + rng.normal(size=(n, d))


def plain_lloyd(X, C, n_iter, w=None):
    w = np.ones(len(X)) if w is None else w
    history = []
    for step in range(n_iter + 1):
        squares = ((X[:, None] - C) ** 2).sum(axis=2)
        labels = squares.argmin(axis=1)
        history.append(float(w @ squares.min(axis=1)))
        if step < n_iter:
            C = np.array([np.average(X[labels == k], axis=0, weights=w[labels == k]) for k in range(len(C))])
    return C, labels, np.array(history)


@pytest.mark.parametrize("spread", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_iteration_is_plain_lloyds(spread, dtype):
    X = blobs(2000, 6, 12, spread=spread).astype(dtype)
    C0 = X[:12].astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(12, init=C0, max_iter=7, tol=0.0).fit(X)
    C, labels, history = plain_lloyd(X.astype(float), C0, 7)
    assert model.labels_.tolist() == labels.tolist()
    assert model.cluster_centers_.dtype == dtype
    rounded = C.astype(dtype)  # float32 rows get float32 centres
    np.testing.assert_allclose(model.cluster_centers_, rounded, rtol=max(1e-12, np.spacing(dtype(1))), atol=1e-12)
    np.testing.assert_allclose(model.inertia_history_, history, rtol=1e-11)


@given(st.integers(0, 2**31), st.integers(1, 9), st.booleans(), st.sampled_from([1.0, 1e-3, 1e6]))
@settings(max_examples=40)
def test_laws(seed, K, weighted, scale):
    rng = np.random.default_rng(seed)
    X = np.round(scale * rng.normal(size=(rng.integers(K, 80), rng.integers(1, 5))), 1 if scale == 1.0 else 12)
    w = rng.integers(0, 4, len(X)).astype(float) + (np.arange(len(X)) < K) if weighted else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(K, init="random", n_init=2, random_state=seed, tol=0.0).fit(X, sample_weight=w)
    history = model.inertia_history_
    assert (np.diff(history) <= 1e-10 * history[0]).all()
    assert model.predict(X).tolist() == model.labels_.tolist()
    assert model.inertia_ == pytest.approx(-model.score(X, sample_weight=w), rel=1e-12, abs=1e-12 * scale**2)
    assert bool(ln.verify(model, X, sample_weight=w)), str(ln.verify(model, X, sample_weight=w))


def test_four_points_of_the_exercise():
    for t in (0.25, 2.0, 9.0):
        X = np.array([[0, 0], [0, 2], [2 * np.sqrt(t), 0], [2 * np.sqrt(t), 2]])
        assert KMeans(2, init=X[[0, 1]]).fit(X).inertia_ == pytest.approx(4 * t)
        assert KMeans(2, init=X[[0, 2]]).fit(X).inertia_ == pytest.approx(4.0)


def test_scikit_learn_finds_the_same(reference_data):
    X = np.loadtxt(reference_data / "iris.csv", delimiter=",", skiprows=1, usecols=range(4))
    C0 = X[[0, 60, 120]]
    ours, peer = KMeans(3, init=C0).fit(X), Peer(3, init=C0).fit(X)
    assert ours.labels_.tolist() == peer.labels_.tolist()
    assert ours.inertia_ == pytest.approx(peer.inertia_)
    best = KMeans(3, n_init=10, random_state=0).fit(X)
    assert best.inertia_ == pytest.approx(78.851441, abs=1e-6)  # R's kmeans(iris[, 1:4], 3, nstart=10): tot.withinss
    np.testing.assert_allclose(ours.transform(X), peer.transform(X), rtol=1e-6)


@pytest.mark.threaded
def test_threads_give_the_same_bits():
    X = blobs(70_000, 20, 8)
    fits = [KMeans(8, random_state=0, n_jobs=jobs, max_iter=20, tol=1e-3).fit(X) for jobs in (1, 2)]
    assert fits[0].cluster_centers_.tobytes() == fits[1].cluster_centers_.tobytes()
    assert fits[0].labels_.tobytes() == fits[1].labels_.tobytes()


def test_sparse_rows_files_and_dask_are_the_dense_rows_in_memory(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    X = np.where(blobs(900, 5, 3) > 2, blobs(900, 5, 3), 0.0)
    C0 = X[[0, 300, 600]]
    dense = KMeans(3, init=C0).fit(X)
    assert KMeans(3, init=C0).fit(sp.csr_array(X)).inertia_ == pytest.approx(dense.inertia_, rel=1e-10)
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(5)}), tmp_path / "rows.parquet")
    monkeypatch.setattr("learnable.data.files.Files.is_small", lambda self: False)
    streamed = KMeans(3, init=C0).fit(str(tmp_path / "rows.parquet"))
    assert streamed.labels_.tolist() == dense.labels_.tolist()
    np.testing.assert_allclose(streamed.cluster_centers_, dense.cluster_centers_, rtol=1e-12, atol=1e-12)
    assert bool(ln.verify(streamed, str(tmp_path / "rows.parquet")))
    assert streamed.certificate_.fingerprint == KMeans(3, init=C0).fit(X).certificate_.fingerprint
    da = pytest.importorskip("dask.array")
    lazy = KMeans(3, init=C0).fit(da.from_array(X, chunks=(200, 5)))
    np.testing.assert_allclose(lazy.cluster_centers_, dense.cluster_centers_, rtol=1e-12, atol=1e-12)
    seeded = [KMeans(3, random_state=1).fit(data).inertia_ for data in (X, str(tmp_path / "rows.parquet"))]
    assert seeded[0] == pytest.approx(seeded[1], rel=1e-10)


def test_weights_are_repeated_rows():
    X, w = blobs(80, 2, 3), np.random.default_rng(0).integers(0, 4, 80)
    C0 = X[:3]
    weighted = KMeans(3, init=C0).fit(X, sample_weight=w)
    repeated = KMeans(3, init=C0).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-10)
    assert len(weighted.labels_) == 80 and weighted.labels_.min() >= 0


def test_mahalanobis_is_k_means_after_whitening():
    X = blobs(300, 3, 3) @ np.array([[1.0, 0.9, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 50.0]])
    C0 = X[:3]
    model = KMeans(3, init=C0, metric="mahalanobis").fit(X)
    root = np.linalg.inv(np.linalg.cholesky(np.cov(X.T, bias=True))).T
    plain = KMeans(3, init=C0 @ root).fit(X @ root)
    assert model.labels_.tolist() == plain.labels_.tolist()
    assert model.inertia_ == pytest.approx(plain.inertia_)
    moved = KMeans(3, init=C0 @ np.diag([2.0, 5.0, 0.1]), metric="mahalanobis").fit(X @ np.diag([2.0, 5.0, 0.1]))
    assert moved.labels_.tolist() == model.labels_.tolist()  # units do not matter
    assert bool(ln.verify(model, X))


def test_cosine_ignores_lengths():
    X = abs(blobs(300, 4, 3))
    lengths = np.random.default_rng(0).uniform(0.1, 10, (300, 1))
    model, other = (KMeans(3, init=X[:3], metric="cosine").fit(Z) for Z in (X, X * lengths))
    assert model.labels_.tolist() == other.labels_.tolist()
    np.testing.assert_allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1.0)
    cosines = (X / np.linalg.norm(X, axis=1, keepdims=True)) @ model.cluster_centers_.T
    np.testing.assert_allclose(model.transform(X), 1 - cosines, atol=1e-12)
    assert bool(ln.verify(model, X))


def test_degenerate_data():
    with pytest.raises(DataError, match="n_samples=3 should be >= n_clusters=4"):
        KMeans(4).fit(np.zeros((3, 2)))
    with pytest.warns(ConvergenceWarning, match="distinct clusters"):
        same = KMeans(3, random_state=0).fit(np.ones((10, 2)))
    assert same.inertia_ == 0.0 and same.certificate_.holds
    few = np.repeat([[0.0, 1.0], [5.0, 5.0]], 4, axis=0)
    with pytest.warns(ConvergenceWarning, match="distinct"):
        assert KMeans(4, random_state=0).fit(few).inertia_ == 0.0
    exact = KMeans(4, random_state=0).fit(np.arange(8.0).reshape(4, 2))
    assert exact.inertia_ == 0.0
    one = KMeans(1).fit(blobs())
    np.testing.assert_allclose(one.cluster_centers_[0], blobs().mean(axis=0))
    for scale in (1e300, 1e-300):
        X = np.array([[1.0], [2.0], [9.0], [10.0]]) * scale
        centres = np.sort(KMeans(2, random_state=0).fit(X).cluster_centers_[:, 0])
        np.testing.assert_allclose(centres, np.array([1.5, 9.5]) * scale, rtol=1e-12)
    far = blobs(200, 2, 2) + 1e9
    assert KMeans(2, init=far[:2]).fit(far).inertia_ == pytest.approx(
        KMeans(2, init=far[:2] - 1e9).fit(far - 1e9).inertia_, rel=1e-5
    )


def test_an_empty_cluster_gets_the_farthest_row():
    X = np.array([[0.0], [1.0], [10.0], [11.0], [30.0]])
    model = KMeans(3, init=[[0.0], [5.0], [1000.0]]).fit(X)
    assert len(set(model.labels_.tolist())) == 3
    assert model.inertia_ == pytest.approx(1.0)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"n_clusters": 0}, "n_clusters must be an integer >= 1"),
        ({"init": [[0.0]]}, "init must be finite and of shape"),
        ({"metric": "hamming"}, "metric must be one of"),
        ({"tol": -1}, "tol must be"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ParameterError, match=message):
        KMeans(**({"n_clusters": 2} | parameters)).fit(blobs())


def test_bad_data_for_metrics():
    with pytest.raises(DataError, match="no direction"):
        KMeans(2, metric="cosine").fit([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(DataError, match="singular"):
        KMeans(2, metric="mahalanobis").fit(np.ones((5, 2)))


def test_a_tampered_model_is_not_verified_and_files_round_trip(tmp_path):
    X = blobs()
    model = KMeans(5, random_state=0).fit(X)
    ln.save(model, tmp_path / "m.safetensors")
    loaded = ln.load(tmp_path / "m.safetensors")
    assert loaded.predict(X).tolist() == model.labels_.tolist() and bool(ln.verify(loaded, X))
    loaded.cluster_centers_ = loaded.cluster_centers_ * 1.001
    assert not ln.verify(loaded, X)
    model.labels_ = (model.labels_ + 1) % 5
    assert not ln.verify(model, X)
    assert not ln.verify(ln.load(tmp_path / "m.safetensors"), X + 1e-6)


def test_out_of_time_returns_the_best_so_far():
    with pytest.warns(ConvergenceWarning, match="stopped after"):
        model = KMeans(20, init=blobs(5000)[:20], max_seconds=1e-9, tol=0.0).fit(blobs(5000))
    assert model.labels_.tolist() == model.predict(blobs(5000)).tolist()
