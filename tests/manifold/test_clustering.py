"""Spectral clustering: exact on separate blocks, the cut and its bound, scikit-learn, the eigengap, new rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import cluster
from sklearn.datasets import make_blobs, make_circles
from sklearn.metrics import adjusted_rand_score

from learnable import load, save, verify
from learnable.core.errors import DataError
from learnable.manifold import SpectralClustering

ASSIGN = ["kmeans", "discretize", "cluster_qr"]
RINGS, RING = make_circles(300, factor=0.4, noise=0.05, random_state=0)
BLOBS, BLOB = make_blobs(200, centers=4, cluster_std=0.6, random_state=0)


@pytest.mark.parametrize("assign", ASSIGN)
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_separate_blocks_are_found_exactly(assign, store):
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.repeat([0, 1, 2], [7, 12, 20]))
    A = (truth[:, None] == truth) * 1.0
    model = SpectralClustering(3, affinity="precomputed", assign_labels=assign, random_state=0).fit(store(A))
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    assert model.n_parts_ == 3
    assert model.normalized_cut_ == pytest.approx(0.0, abs=1e-12)
    assert verify(model, store(A))


@pytest.mark.parametrize("assign", ASSIGN)
def test_two_rings_and_scikit_learn(assign):
    settings = {"n_clusters": 2, "affinity": "nearest_neighbors", "n_neighbors": 12, "random_state": 0}
    model = SpectralClustering(**settings, assign_labels=assign).fit(RINGS)
    assert adjusted_rand_score(RING, model.labels_) == 1.0
    theirs = cluster.SpectralClustering(**settings, assign_labels=assign).fit(RINGS)
    assert adjusted_rand_score(theirs.labels_, model.labels_) == 1.0


@pytest.mark.parametrize("assign", ASSIGN)
def test_no_cut_is_below_the_sum_of_the_eigenvalues(assign):
    model = SpectralClustering(4, gamma=0.5, assign_labels=assign, random_state=0).fit(BLOBS)
    bound = model.eigenvalues_.sum()
    assert bound - 1e-12 <= model.normalized_cut_ <= 4 * bound + 0.1
    assert adjusted_rand_score(BLOB, model.labels_) > 0.85
    A = model.affinity_matrix_ - np.diag(np.diag(model.affinity_matrix_))
    rng = np.random.default_rng(0)
    for _ in range(20):
        labels = rng.integers(0, 4, len(BLOBS))
        inside = np.array([A[labels == c][:, labels == c].sum() / A[labels == c].sum() for c in range(4)])
        assert (1 - inside).sum() >= model.normalized_cut_


def test_the_eigengap_counts_the_clusters():
    X, _ = make_blobs(300, centers=5, cluster_std=0.4, random_state=4)
    model = SpectralClustering("eigengap", affinity="nearest_neighbors", n_neighbors=20, random_state=0).fit(X)
    assert len(model.cluster_centers_) == 5
    assert verify(model, X)


@pytest.mark.parametrize("affinity", ["rbf", "nearest_neighbors", "laplacian"])
def test_rows_of_the_fit_and_new_ones_get_their_cluster(affinity, tmp_path):
    model = SpectralClustering(4, affinity=affinity, random_state=0).fit(BLOBS)
    assert adjusted_rand_score(model.predict(BLOBS), model.labels_) > 0.98
    save(model, tmp_path / "clusters.safetensors")
    assert (load(tmp_path / "clusters.safetensors").predict(BLOBS) == model.predict(BLOBS)).all()
    assert verify(model, BLOBS)


def test_the_same_labels_for_the_same_seed_and_bad_input():
    one = SpectralClustering(4, random_state=3, n_jobs=1).fit(BLOBS)
    two = SpectralClustering(4, random_state=3, n_jobs=2).fit(BLOBS)
    assert one.labels_.tobytes() == two.labels_.tobytes()
    with pytest.raises(DataError, match="n_samples=3 should be >= n_clusters=8"):
        SpectralClustering().fit(BLOBS[:3])
    with pytest.raises(DataError, match="not negative"):
        SpectralClustering(2, affinity="linear").fit(BLOBS)
