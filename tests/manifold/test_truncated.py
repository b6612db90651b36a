"""Truncated singular value decomposition: LAPACK, Eckart and Young, sparse rows, the checker."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import decomposition

from learnable import load, save, verify
from learnable.core.errors import DataError, ParameterError
from learnable.manifold import TruncatedSVD

X = np.random.default_rng(0).normal(size=(40, 12)) * np.linspace(3.0, 0.5, 12) + 1.0


@pytest.mark.parametrize("algorithm", ["arpack", "randomized"])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_values_and_vectors_are_lapacks(algorithm, store):
    model = TruncatedSVD(3, algorithm=algorithm, random_state=0).fit(store(X))
    s, Vt = np.linalg.svd(X)[1:]
    np.testing.assert_allclose(model.singular_values_, s[:3], rtol=1e-9)
    np.testing.assert_allclose(np.abs((model.components_ * Vt[:3]).sum(axis=1)), 1.0, atol=1e-9)
    assert model.certificate_.holds
    assert verify(model, store(X))
    theirs = decomposition.TruncatedSVD(3, algorithm="arpack").fit(X)
    np.testing.assert_allclose(model.explained_variance_, theirs.explained_variance_, rtol=1e-7)
    np.testing.assert_allclose(model.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-7)


def test_no_other_plane_through_zero_is_nearer():
    model = TruncatedSVD(2, random_state=0).fit(X)
    best = np.linalg.norm(X - model.inverse_transform(model.transform(X)))
    rng = np.random.default_rng(1)
    for _ in range(50):
        basis = np.linalg.qr(rng.normal(size=(12, 2)))[0]
        assert best <= np.linalg.norm(X - X @ basis @ basis.T)


def test_more_components_than_columns_are_refused_and_hard_tables_end_well():
    with pytest.raises(ParameterError, match="must be <= n_features"):
        TruncatedSVD(13).fit(X)
    with pytest.raises(DataError, match="needs 2 columns"):
        TruncatedSVD(2).fit(X).inverse_transform(X)
    zero = np.zeros((5, 3))
    model = TruncatedSVD(2, random_state=0).fit(zero)
    assert model.singular_values_.tolist() == [0.0, 0.0]
    wide = np.random.default_rng(0).normal(size=(4, 900))
    model = TruncatedSVD(3, random_state=0).fit(wide)
    np.testing.assert_allclose(model.singular_values_, np.linalg.svd(wide, compute_uv=False)[:3], rtol=1e-9)


def test_a_file_keeps_the_bits(tmp_path):
    model = TruncatedSVD(2, random_state=0).fit(X)
    save(model, tmp_path / "svd.safetensors")
    assert load(tmp_path / "svd.safetensors").transform(X).tobytes() == model.transform(X).tobytes()
