"""k-medoids: no swap lowers the objective, and small tables are solved by brute force."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

import learnable as ln
from learnable import KMedoids
from learnable.core.errors import DataError, ParameterError
from learnable.mixtures.medoids import Distances, build, plus_plus_rows


def blobs(n=300, d=3, K=4, seed=0):
    rng = np.random.default_rng(seed)
    return 4 * rng.normal(size=(K, d))[rng.integers(K, size=n)] + rng.normal(size=(n, d))


def best_of_all(D, K, w):
    return min(w @ D[:, list(rows)].min(axis=1) for rows in itertools.combinations(range(len(D)), K))


@given(
    st.integers(0, 2**31), st.integers(1, 4), st.sampled_from(["euclidean", "manhattan", "chebyshev"]), st.booleans()
)
@settings(max_examples=40)
def test_laws(seed, K, metric, weighted):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(rng.integers(K, 13), 2)), 1)
    w = rng.integers(1, 4, len(X)).astype(float) if weighted else np.ones(len(X))
    D = cdist(X, X, "cityblock" if metric == "manhattan" else metric)
    model = KMedoids(K, metric=metric, random_state=seed).fit(X, sample_weight=w)
    assert model.inertia_ == pytest.approx(w @ D[:, model.medoid_indices_].min(axis=1))
    for k, row in itertools.product(range(K), range(len(X))):
        swapped = np.r_[np.delete(model.medoid_indices_, k), row]
        assert w @ D[:, swapped].min(axis=1) >= model.inertia_ * (1 - 1e-9)
    best = best_of_all(D, K, w)  # no swap helps: at most five times the optimum (Arya et al., SIAM J. Comput. 33, 2004)
    assert best - 1e-9 <= model.inertia_ <= 5 * best + 1e-9
    assert bool(ln.verify(model, X, sample_weight=w)), str(ln.verify(model, X, sample_weight=w))


def test_the_best_of_all_subsets_is_found():
    X = blobs(14, 2, 3)
    best = best_of_all(cdist(X, X), 3, np.ones(14))
    for init in ("k-medoids++", "random"):
        assert KMedoids(3, init=init, n_init=20, random_state=0).fit(X).inertia_ == pytest.approx(best)
    assert KMedoids(3, init="build").fit(X).inertia_ <= 1.1 * best


def test_precomputed_and_callable_distances_are_the_named_one():
    X = blobs()
    D = cdist(X, X, "cityblock")
    named = KMedoids(4, metric="manhattan", random_state=0).fit(X)
    given_ = KMedoids(4, metric="precomputed", random_state=0).fit(D)
    called = KMedoids(4, metric=lambda a, b: np.abs(a - b).sum(), random_state=0).fit(X)
    assert named.medoid_indices_.tolist() == given_.medoid_indices_.tolist() == called.medoid_indices_.tolist()
    assert given_.predict(D[:7]).tolist() == named.labels_[:7].tolist()
    np.testing.assert_allclose(named.transform(X), D[:, named.medoid_indices_])
    assert bool(ln.verify(given_, D)) and bool(ln.verify(called, X))


def test_medoids_are_rows_and_labels_name_the_nearest():
    X, w = blobs(), np.r_[np.zeros(10), np.ones(290)]
    model = KMedoids(4, random_state=0).fit(X, sample_weight=w)
    np.testing.assert_array_equal(X[model.medoid_indices_], model.cluster_centers_)
    assert (model.medoid_indices_ >= 10).all()
    assert model.labels_.tolist() == cdist(X, model.cluster_centers_).argmin(axis=1).tolist()
    assert model.labels_[model.medoid_indices_].tolist() == [0, 1, 2, 3]
    whole = KMedoids(4, init=model.medoid_indices_).fit(X, sample_weight=w)
    assert whole.n_swaps_ == 0 and whole.inertia_ == pytest.approx(model.inertia_)
    assert model.fit_predict(X).tolist() == model.predict(X).tolist()


def test_distances_that_are_not_kept_give_the_same(monkeypatch):
    X = blobs()
    kept = KMedoids(4, random_state=0).fit(X)
    monkeypatch.setattr("learnable.mixtures.medoids._MOST_KEPT", 0)
    monkeypatch.setattr("learnable.mixtures.medoids._PANEL", 5000)
    for jobs in (1, 2):
        anew = KMedoids(4, random_state=0, n_jobs=jobs).fit(X)
        assert anew.medoid_indices_.tolist() == kept.medoid_indices_.tolist() and anew.inertia_ == kept.inertia_


def test_starts():
    D, w, rng = Distances(blobs(), "euclidean"), np.ones(300), np.random.default_rng(0)
    rows = plus_plus_rows(D, w, 10, rng)
    assert len(set(rows.tolist())) == 10
    greedy = build(D, w, 3)
    full = cdist(blobs(), blobs())
    assert greedy[0] == full.sum(axis=0).argmin()
    assert greedy[1] == np.minimum(full, full[:, greedy[:1]]).sum(axis=0).argmin()
    same = plus_plus_rows(Distances(np.ones((5, 2)), "euclidean"), np.ones(5), 4, rng)
    assert len(set(same.tolist())) == 4


def test_degenerate_data():
    with pytest.raises(DataError, match="n_samples=3 should be >= n_clusters=4"):
        KMedoids(4).fit(np.zeros((3, 2)))
    same = KMedoids(3, random_state=0).fit(np.ones((10, 2)))
    assert same.inertia_ == 0.0 and same.certificate_.holds and len(set(same.medoid_indices_.tolist())) == 3
    assert KMedoids(5, random_state=0).fit(np.arange(5.0)[:, None]).inertia_ == 0.0
    assert KMedoids(1).fit([[0.0], [1.0], [5.0]]).medoid_indices_.tolist() == [1]
    with pytest.raises(DataError, match="cosine distance of rows"):
        KMedoids(2, metric="cosine").fit([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(DataError, match="square matrix"):
        KMedoids(2, metric="precomputed").fit(np.ones((4, 3)))
    with pytest.raises(DataError, match="must not be negative"):
        KMedoids(2, metric="precomputed").fit(-np.ones((4, 4)))


def test_a_search_that_stops_early_says_what_is_left():
    X = np.random.default_rng(0).normal(size=(400, 8))
    with pytest.warns(ConvergenceWarning, match="stopped after 1 iterations"):
        model = KMedoids(20, max_iter=1, random_state=0).fit(X)
    D = cdist(X, X)
    swaps = ([*np.delete(model.medoid_indices_, k), row] for k in range(20) for row in range(400))
    best = min(D[:, rows].min(axis=1).sum() for rows in swaps)
    assert model.certificate_.value == pytest.approx((model.inertia_ - best) / model.inertia_, rel=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert not KMedoids(20, max_seconds=1e-9, random_state=0).fit(X).certificate_.holds


def test_files_round_trip_and_tampering_is_seen(tmp_path):
    X = blobs()
    model = KMedoids(4, metric="manhattan", random_state=0).fit(X)
    ln.save(model, tmp_path / "m.safetensors")
    loaded = ln.load(tmp_path / "m.safetensors")
    assert loaded.predict(X).tolist() == model.labels_.tolist() and bool(ln.verify(loaded, X))
    loaded.cluster_centers_ = loaded.cluster_centers_ * 1.001
    assert not ln.verify(loaded, X)
    model.labels_ = (model.labels_ + 1) % 4
    assert not ln.verify(model, X)


@pytest.mark.parametrize(
    "parameters, message",
    [({"init": [0, 0]}, "different row numbers"), ({"init": [0, 999]}, "different row numbers below 300"),
     ({"init": [0.5, 1.0]}, "different row numbers"), ({"metric": "nope"}, "metric must be"),
     ({"n_clusters": 0}, "n_clusters must be"), ({"init": "no"}, "init must be")],
)  # fmt: skip
def test_bad_parameters(parameters, message):
    with pytest.raises(ParameterError, match=message):
        KMedoids(**({"n_clusters": 2} | parameters)).fit(blobs())
