"""Principal components: published numbers, scikit-learn, laws, every container and solver, the checker."""

import csv

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn import decomposition
from sklearn.datasets import load_digits, load_iris, load_wine

from learnable import PCA, KernelPCA, load, save, verify
from learnable.core.errors import DataError, ParameterError
from learnable.manifold import pca

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5)) @ RNG.normal(size=(5, 5)) + np.arange(5.0)


def table_of(path):
    with open(path, encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    return np.array([[float(cell) for cell in row[1:]] for row in rows])


def standardised(Z):
    return (Z - Z.mean(axis=0)) / Z.std(axis=0, ddof=1)


def test_us_arrests(reference_data):
    Z = table_of(reference_data / "manifold" / "USArrests.csv")
    model = PCA().fit(standardised(Z))
    deviations = np.sqrt(model.explained_variance_)
    # R's prcomp(USArrests, scale = TRUE).
    np.testing.assert_allclose(deviations, [1.5748783, 0.9948694, 0.5971291, 0.4164494], atol=5e-8)
    assert verify(model, standardised(Z))


def test_iris_and_wine():
    iris = PCA().fit(load_iris().data)
    np.testing.assert_allclose(iris.explained_variance_, [4.22824171, 0.24267075, 0.07820950, 0.02383509], atol=5e-9)
    wine = PCA(3).fit(standardised(load_wine().data))
    np.testing.assert_allclose(wine.explained_variance_, [4.70585, 2.49697, 1.44607], atol=5e-6)


@pytest.mark.parametrize("solver", ["auto", "full", "covariance_eigh", "arpack", "randomized"])
@pytest.mark.parametrize("shape", [(60, 5), (30, 90)], ids=str)
def test_every_solver_is_scikit_learns_full_svd(solver, shape):
    Z = np.random.default_rng(1).normal(size=shape) * np.linspace(3.0, 0.3, shape[1]) + 5.0
    ours = PCA(3, svd_solver=solver, random_state=0).fit(Z)
    theirs = decomposition.PCA(3, svd_solver="full").fit(Z)
    tight = 1e-7 if solver == "randomized" else 1e-10
    np.testing.assert_allclose(ours.explained_variance_, theirs.explained_variance_, rtol=tight)
    np.testing.assert_allclose(ours.components_, theirs.components_, atol=100 * tight)
    np.testing.assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=tight)
    np.testing.assert_allclose(ours.singular_values_, theirs.singular_values_, rtol=tight)
    np.testing.assert_allclose(ours.noise_variance_, theirs.noise_variance_, rtol=1e-6)
    np.testing.assert_allclose(ours.transform(Z), theirs.transform(Z), atol=1000 * tight)
    assert ours.certificate_.holds
    assert verify(ours, Z)


@pytest.mark.parametrize("whiten", [False, True])
def test_covariance_density_and_inverse_are_scikit_learns(whiten):
    ours, theirs = PCA(2, whiten=whiten).fit(X), decomposition.PCA(2, whiten=whiten, svd_solver="full").fit(X)
    plain = decomposition.PCA(2, svd_solver="full").fit(
        X
    )  # scikit-learn's covariance is wrong by the variances if it whitens
    np.testing.assert_allclose(ours.get_covariance(), plain.get_covariance(), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(ours.get_precision(), plain.get_precision(), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(ours.score_samples(X), plain.score_samples(X), rtol=1e-9)
    np.testing.assert_allclose(ours.score(X), plain.score(X), rtol=1e-10)
    T = ours.transform(X)
    np.testing.assert_allclose(T, theirs.transform(X), atol=1e-9)
    np.testing.assert_allclose(ours.inverse_transform(T), theirs.inverse_transform(T), atol=1e-9)
    if whiten:
        np.testing.assert_allclose(np.cov(T.T), np.eye(2), atol=1e-10)


@given(st.integers(2, 12), st.integers(1, 6), st.integers(0, 10**6))
def test_laws(n, d, seed):
    Z = np.random.default_rng(seed).normal(size=(n, d))
    k = min(n, d)
    model = PCA(k).fit(Z)
    T = model.transform(Z)
    V, values = model.components_, model.explained_variance_
    np.testing.assert_allclose(V @ V.T, np.eye(k), atol=1e-10)
    np.testing.assert_allclose(T.T @ T / (n - 1), np.diag(values), atol=1e-10 * max(1.0, values[0]))
    np.testing.assert_allclose(values.sum(), Z.var(axis=0, ddof=1).sum(), rtol=1e-9)
    assert (np.diff(values) <= 1e-12).all()
    np.testing.assert_allclose(model.inverse_transform(T), Z, atol=1e-9)
    assert verify(model, Z)


def test_no_other_plane_is_nearer():
    model = PCA(2).fit(X)
    best = ((X - model.inverse_transform(model.transform(X))) ** 2).sum()
    assert best == pytest.approx((len(X) - 1) * (PCA().fit(X).explained_variance_[2:]).sum())
    centred = X - X.mean(axis=0)
    for _ in range(50):
        basis = np.linalg.qr(RNG.normal(size=(5, 2)))[0]
        assert best <= ((centred - centred @ basis @ basis.T) ** 2).sum()


def test_linear_kernel_pca_is_pca():
    np.testing.assert_allclose(
        np.abs(KernelPCA(n_components=3).fit_transform(X)), np.abs(PCA(3).fit_transform(X)), atol=1e-9
    )


def test_a_row_of_weight_two_is_two_rows():
    weight = RNG.integers(0, 4, len(X)).astype(float)
    weighted = PCA(3).fit(X, sample_weight=weight)
    repeated = PCA(3).fit(np.repeat(X, weight.astype(int), axis=0))
    for name in ("components_", "explained_variance_", "explained_variance_ratio_", "mean_", "noise_variance_"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-10, atol=1e-12)
    assert verify(weighted, X, sample_weight=weight)
    by_rows = PCA(3, svd_solver="full").fit(X, sample_weight=weight)
    np.testing.assert_allclose(by_rows.components_, repeated.components_, atol=1e-10)


@pytest.mark.parametrize("solver", ["auto", "arpack", "covariance_eigh", "full"])
def test_sparse_rows_are_centred_without_becoming_dense(solver):
    S = sp.random_array((80, 30), density=0.2, rng=np.random.default_rng(3), format="csr")
    sparse, dense = PCA(4, svd_solver=solver).fit(S), PCA(4).fit(S.toarray())
    np.testing.assert_allclose(sparse.explained_variance_, dense.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(sparse.components_, dense.components_, atol=1e-7)
    np.testing.assert_allclose(sparse.transform(S), dense.transform(S.toarray()), atol=1e-8)
    assert verify(sparse, S)


def test_choices_of_the_number():
    Z = load_iris().data
    assert PCA(0.95).fit(Z).n_components_ == decomposition.PCA(0.95).fit(Z).n_components_ == 2
    for table in (Z, load_wine().data, load_digits().data[:, 20:30], X):
        assert PCA("mle").fit(table).n_components_ == decomposition.PCA("mle").fit(table).n_components_
    rng = np.random.default_rng(5)
    planted = rng.normal(size=(400, 3)) @ np.diag([8.0, 6.0, 4.0]) @ np.linalg.qr(rng.normal(size=(40, 3)))[0].T
    noisy = planted + rng.normal(size=(400, 40))
    for rule in ("parallel", "gavish-donoho", "mle"):
        model = PCA(rule, random_state=0).fit(noisy)
        assert model.n_components_ == 3
        assert verify(model, noisy)


def test_intervals_cover_the_variance_of_normal_rows():
    rng = np.random.default_rng(11)
    inside = 0
    for _ in range(300):
        ends = PCA(1).fit(rng.normal(size=(400, 3)) * [4.0, 2.0, 1.0]).variance_intervals()[0]
        inside += ends[0] <= 16.0 <= ends[1]
    assert 270 <= inside <= 297  # 95 % of 300 is 285; four standard deviations are 15


def test_hard_tables_end_well():
    constant = np.column_stack([X, np.full(len(X), 1e8)])
    model = PCA().fit(constant)
    assert model.explained_variance_[-1] == 0.0
    assert verify(model, constant)
    nothing = PCA(1).fit(np.full((4, 3), 7.0))
    assert nothing.explained_variance_.tolist() == nothing.explained_variance_ratio_.tolist() == [0.0]
    far = PCA(2).fit(X + 1e9)
    np.testing.assert_allclose(far.explained_variance_, PCA(2).fit(X).explained_variance_, rtol=1e-6)
    twice = np.vstack([X, X])
    assert verify(PCA().fit(twice), twice)
    wide = np.random.default_rng(0).normal(size=(10, 3000))
    assert verify(PCA(3).fit(wide), wide)
    tiny = PCA().fit(X @ np.diag([1.0, 1e-3, 1e-6, 1e-7, 1e-8]))  # variances that the covariance cannot hold
    theirs = decomposition.PCA(svd_solver="full").fit(X @ np.diag([1.0, 1e-3, 1e-6, 1e-7, 1e-8]))
    np.testing.assert_allclose(tiny.explained_variance_, theirs.explained_variance_, rtol=1e-5)


@pytest.mark.parametrize(
    ("model", "table", "match"),
    [
        (PCA(6), X, "between 0 and min"),
        (PCA("mle"), X[:3], "mle"),
        (PCA(), X[:1], "n_samples = 1"),
        (PCA(), np.where(X > 3, np.inf, X), "infinity"),
        (PCA(0.9), np.where(X > 3, np.nan, X), "NaN"),
        (PCA(5), np.where(X > 3, np.nan, X), "missing values"),
        (PCA(1), np.column_stack([X, np.full(len(X), np.nan)]), "no value at all"),
        (PCA(-1), X, "n_components must be"),
        (PCA("parallel"), sp.csr_array(X), "parallel"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_bad_input_is_refused_in_words(model, table, match):
    with pytest.raises((DataError, ParameterError), match=match):
        model.fit(table)


def test_the_same_bits_for_any_number_of_threads_and_a_file_keeps_them(tmp_path):
    big = np.random.default_rng(2).normal(size=(50_000, 30))
    one, two = PCA(4, n_jobs=1).fit(big), PCA(4, n_jobs=2).fit(big)
    assert one.components_.tobytes() == two.components_.tobytes()
    assert one.explained_variance_.tobytes() == two.explained_variance_.tobytes()
    save(one, tmp_path / "pca.safetensors")
    assert load(tmp_path / "pca.safetensors").transform(big[:9]).tobytes() == one.transform(big[:9]).tobytes()


def test_threads_that_share_sparse_rows_change_no_bit(monkeypatch):
    monkeypatch.setattr(pca, "_SHARED_ENTRIES", 1)
    rows = sp.random_array((900, 700), density=0.02, format="csr", rng=np.random.default_rng(3))
    rows.data[: rows.indptr[5]] *= 40.0
    one = PCA(3, svd_solver="arpack", n_jobs=1).fit(rows)
    two = PCA(3, svd_solver="arpack", n_jobs=2).fit(rows)
    np.testing.assert_array_equal(one.components_, two.components_)
    expected = decomposition.PCA(3).fit(rows.toarray())
    np.testing.assert_allclose(two.explained_variance_, expected.explained_variance_, rtol=1e-9)


def test_tables_on_disk_give_the_same_components(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({f"x{j}": X[:, j] for j in range(5)}), path)
    model = PCA(2).fit(str(path))
    np.testing.assert_allclose(model.components_, PCA(2).fit(X).components_, atol=1e-12)


def test_equal_variances_are_reported_as_an_open_axis():
    model = PCA().fit(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]))
    assert model.gaps_[0] < 1e-12


@given(st.lists(st.integers(1, 59), max_size=6, unique=True), st.booleans())
def test_rows_in_any_pieces_are_one_fit(cuts, weighted):
    weight = np.random.default_rng(7).integers(1, 4, len(X)).astype(float) if weighted else None
    whole = PCA(3).fit(X, sample_weight=weight)
    model = PCA(3)
    for part in np.split(np.arange(len(X)), sorted(cuts)):
        model.partial_fit(X[part], sample_weight=None if weight is None else weight[part])
    for name in ("components_", "explained_variance_", "mean_", "noise_variance_", "singular_values_", "scatter_"):
        np.testing.assert_allclose(getattr(model, name), getattr(whole, name), rtol=1e-9, atol=1e-9)
    assert model.n_samples_ == whole.n_samples_
    assert model.certificate_.fingerprint == whole.certificate_.fingerprint
    assert verify(model, X, sample_weight=weight)


def test_further_rows_go_on_from_a_fit_and_bad_ones_leave_it_as_it_was(tmp_path):
    model = PCA(2).fit(X[:30]).partial_fit(X[30:])
    np.testing.assert_allclose(model.components_, PCA(2).fit(X).components_, atol=1e-10)
    save(model, tmp_path / "pieces.safetensors")
    loaded = load(tmp_path / "pieces.safetensors").partial_fit(X)
    np.testing.assert_allclose(loaded.explained_variance_, PCA(2).fit(np.vstack([X, X])).explained_variance_)
    before = model.components_.copy()
    for rows, match in ((X[:, :3], "features"), (np.where(X > 3, np.nan, X), "without NaN")):
        with pytest.raises(DataError, match=match):
            model.partial_fit(rows)
    assert np.array_equal(model.components_, before)
    with pytest.raises(ParameterError, match="keeps no covariance"):
        PCA(2).fit(np.random.default_rng(0).normal(size=(20, 200))).partial_fit(np.ones((3, 200)))
    grown = PCA(4)
    for row in X[:3]:
        grown.partial_fit(row[None])
    assert grown.n_components_ == 3  # as many as rows


def test_no_component_is_the_density_of_equal_noise():
    model = PCA(0).fit(X)
    np.testing.assert_allclose(model.get_covariance(), X.var(axis=0, ddof=1).mean() * np.eye(5))
    assert model.transform(X).shape == (60, 0)
    assert verify(model, X)
