"""k-means from batches: near a minimum, and the certificate says how near."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import MiniBatchKMeans as Peer
from sklearn.exceptions import ConvergenceWarning

import learnable as ln
from learnable import KMeans, MiniBatchKMeans
from learnable.core.errors import DataError, ParameterError
from learnable.mixtures.mini_batch import NOISE, Walk


def blobs(n=2000, d=4, K=5, seed=0, spread=4.0):
    rng = np.random.default_rng(seed)
    return spread * rng.normal(size=(K, d))[rng.integers(K, size=n)] + rng.normal(size=(n, d))


def test_centres_are_the_means_of_all_rows_they_won():
    X, rng = blobs(300, 2, 3), np.random.default_rng(0)
    walk, won, sums = Walk(X[:3].copy(), np.zeros(3)), np.zeros(3), np.zeros((3, 2))
    for _ in range(5):
        batch = X[rng.integers(300, size=40)]
        nearest = ((batch[:, None] - walk.centres) ** 2).sum(axis=2).argmin(axis=1)
        assert walk.step(batch, None, 0.0, rng).tolist() == nearest.tolist()
        np.add.at(won, nearest, 1.0)
        np.add.at(sums, nearest, batch)
        np.testing.assert_allclose(walk.counts, won)
        np.testing.assert_allclose(walk.centres, sums / won[:, None], rtol=1e-12)
    assert walk.n_steps == 5


def test_the_inertia_is_near_that_of_k_means_and_of_scikit_learn():
    X = blobs(20_000, 8, 10)
    exact = KMeans(10, random_state=0).fit(X).inertia_
    ours = min(MiniBatchKMeans(10, random_state=seed).fit(X).inertia_ for seed in range(3))
    theirs = min(Peer(10, random_state=seed).fit(X).inertia_ for seed in range(3))
    assert ours <= 1.05 * min(exact, theirs)


@given(st.integers(0, 2**31), st.integers(1, 6), st.booleans())
@settings(max_examples=25)
def test_laws(seed, K, weighted):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rng.integers(K + 1, 200), 3))
    w = rng.uniform(0.5, 2.0, len(X)) if weighted else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MiniBatchKMeans(K, batch_size=32, random_state=seed).fit(X, sample_weight=w)
    assert model.labels_.tolist() == model.predict(X).tolist()
    weight = np.ones(len(X)) if w is None else w
    counts = np.bincount(model.labels_, weight, K)
    means = np.array([np.average(X[model.labels_ == k], axis=0, weights=weight[model.labels_ == k])
                      if counts[k] else model.cluster_centers_[k] for k in range(K)])  # fmt: skip
    fall = counts @ ((means - model.cluster_centers_) ** 2).sum(axis=1)
    assert model.certificate_.value == pytest.approx(fall / model.inertia_, rel=1e-8, abs=1e-14)
    verdict = ln.verify(model, X, sample_weight=w)
    assert bool(verdict) == (model.certificate_.value <= NOISE), str(verdict)


@pytest.mark.threaded
def test_threads_give_the_same_bits():
    X = blobs(40_000, 30, 5)
    fits = [MiniBatchKMeans(5, random_state=0, n_jobs=jobs).fit(X) for jobs in (1, 2)]
    assert fits[0].cluster_centers_.tobytes() == fits[1].cluster_centers_.tobytes()
    assert fits[0].inertia_ == fits[1].inertia_


def test_partial_fits_are_steps():
    X = blobs()
    model, rng = MiniBatchKMeans(5, random_state=0), np.random.default_rng(1)
    for start in range(0, 2000, 200):
        model.partial_fit(X[start : start + 200])
    assert model.n_steps_ == 10 and model.counts_.sum() >= 2000 * 0.9 and len(model.labels_) == 200
    assert -model.score(X) <= 1.3 * KMeans(5, n_init=5, random_state=0).fit(X).inertia_
    before = model.cluster_centers_.copy()
    for bad, words in ((X[:5, :2], "is expecting 4 features"), (X[:5] * np.nan, "NaN"), (X[:5] * 1e200, "overflow")):
        with pytest.raises((DataError, ValueError), match=words):
            model.partial_fit(bad)
    np.testing.assert_array_equal(model.cluster_centers_, before)
    weighted = model.partial_fit(X[:50], sample_weight=np.r_[np.zeros(10), rng.uniform(size=40)])
    assert (weighted.labels_[:10] == -1).all() and weighted.certificate_.kind == "none"
    with pytest.raises(DataError, match="n_clusters=5"):
        MiniBatchKMeans(5).partial_fit(X[:3])


def test_sparse_rows_files_and_dask(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    X = np.where(blobs(900, 5, 3) > 2, blobs(900, 5, 3), 0.0)
    dense = MiniBatchKMeans(3, random_state=0).fit(X)
    sparse = MiniBatchKMeans(3, random_state=0).fit(sp.csr_array(X))
    np.testing.assert_allclose(sparse.cluster_centers_, dense.cluster_centers_, rtol=1e-9, atol=1e-9)
    assert bool(ln.verify(sparse, sp.csr_array(X)))
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(5)}), tmp_path / "rows.parquet")
    monkeypatch.setattr("learnable.data.files.Files.is_small", lambda self: False)
    streamed = MiniBatchKMeans(3, random_state=0).fit(str(tmp_path / "rows.parquet"))
    assert len(streamed.labels_) == 900 and bool(ln.verify(streamed, str(tmp_path / "rows.parquet")))
    da = pytest.importorskip("dask.array")
    lazy = MiniBatchKMeans(3, random_state=0).fit(da.from_array(X, chunks=(200, 5)))
    assert lazy.inertia_ == pytest.approx(streamed.inertia_, rel=1e-9)


def test_degenerate_data():
    with pytest.warns(ConvergenceWarning, match="distinct clusters"):
        same = MiniBatchKMeans(3, random_state=0).fit(np.ones((10, 2)))
    assert same.inertia_ == 0.0 and same.certificate_.holds
    for scale in (1e300, 1e-300):
        X = np.array([[1.0], [2.0], [9.0], [10.0]]) * scale
        centres = np.sort(MiniBatchKMeans(2, init=X[[0, 3]], max_iter=2000, max_no_improvement=None).fit(X)
                          .cluster_centers_[:, 0])  # fmt: skip
        np.testing.assert_allclose(centres, np.array([1.5, 9.5]) * scale, rtol=0.05)


@pytest.mark.filterwarnings("ignore:MiniBatchKMeans. stopped after")
def test_centres_that_win_nothing_are_put_on_rows():
    X = blobs(500, 2, 4)
    model = MiniBatchKMeans(4, init=np.r_[X[:3], [[1e4, 1e4]]], random_state=0).fit(X)
    assert len(set(model.labels_.tolist())) == 4
    stuck = MiniBatchKMeans(4, init=np.r_[X[:3], [[1e4, 1e4]]], random_state=0, reassignment_ratio=0.0)
    with pytest.warns(ConvergenceWarning, match="distinct clusters"):
        assert stuck.fit(X).cluster_centers_[3].tolist() == [1e4, 1e4]


def test_what_ends_a_fit():
    X = blobs(3000)
    assert MiniBatchKMeans(5, max_iter=1, batch_size=1000, random_state=0).fit(X).n_steps_ == 3
    early = MiniBatchKMeans(5, max_no_improvement=None, tol=1.0, random_state=0).fit(X)
    late = MiniBatchKMeans(5, max_no_improvement=None, max_iter=20, random_state=0).fit(X)
    assert early.n_steps_ < late.n_steps_ == 20 * 3000 // 1024
    assert MiniBatchKMeans(5, max_seconds=1e-9, random_state=0).fit(X).n_steps_ == 1
    bare = MiniBatchKMeans(5, compute_labels=False, random_state=0).fit(X)
    assert not hasattr(bare, "labels_") and bare.certificate_.kind == "none"
    assert bare.inertia_ == pytest.approx(-bare.score(X), rel=0.2)


def test_files_round_trip_and_tampering_is_seen(tmp_path):
    X = blobs()
    model = MiniBatchKMeans(5, random_state=0).fit(X)
    ln.save(model, tmp_path / "m.safetensors")
    loaded = ln.load(tmp_path / "m.safetensors")
    assert loaded.predict(X).tolist() == model.labels_.tolist() and bool(ln.verify(loaded, X))
    loaded.cluster_centers_ = loaded.cluster_centers_ * 1.001
    assert not ln.verify(loaded, X)
    assert not ln.verify(model, X + 1e-6)


@pytest.mark.parametrize(
    "parameters, message",
    [({"batch_size": 0}, "batch_size must be"), ({"reassignment_ratio": -1}, "reassignment_ratio must be"),
     ({"init_size": 0}, "init_size must be"), ({"n_clusters": 0}, "n_clusters must be")],
)  # fmt: skip
def test_bad_parameters(parameters, message):
    with pytest.raises(ParameterError, match=message):
        MiniBatchKMeans(**({"n_clusters": 2} | parameters)).fit(blobs(50))
