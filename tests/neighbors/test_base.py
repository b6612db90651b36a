"""What all neighbour models share: arguments, graphs, files, tables beyond memory, threads, hostile input."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neighbors import KNeighborsClassifier as ReferenceClassifier

import learnable as ln
from learnable import KNeighborsClassifier, KNeighborsRegressor, NearestNeighbors
from learnable.core.errors import DataError, ModelFileError, ParameterError

MODELS = [KNeighborsClassifier, KNeighborsRegressor]


def data(n=200, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def test_signatures_are_scikit_learns():
    ours, theirs = KNeighborsClassifier().get_params(), ReferenceClassifier().get_params()
    assert ours == theirs


@pytest.mark.parametrize("mode", ["connectivity", "distance"])
def test_graphs_hold_the_neighbours(mode):
    X, y = data()
    model = KNeighborsClassifier().fit(X, y)
    graph = model.kneighbors_graph(mode=mode, n_neighbors=3)
    reference = ReferenceClassifier().fit(X, y).kneighbors_graph(mode=mode, n_neighbors=3)
    assert type(graph) is type(reference)
    np.testing.assert_allclose(graph.toarray(), reference.toarray(), rtol=1e-12)


def test_too_many_neighbours_and_other_mistakes():
    X, y = data(6)
    model = KNeighborsRegressor().fit(X, y)
    with pytest.raises(DataError, match="n_neighbors = 7, n_samples_fit = 6"):
        model.kneighbors(X, n_neighbors=7)
    with pytest.raises(DataError, match="n_neighbors < n_samples_fit"):
        model.kneighbors(n_neighbors=6)
    with pytest.raises(ParameterError, match="Expected n_neighbors > 0"):
        model.kneighbors(X, n_neighbors=0)
    with pytest.raises(TypeError, match="integer"):
        model.kneighbors(X, n_neighbors=2.5)
    with pytest.raises(ParameterError, match="mode"):
        model.kneighbors_graph(X, mode="weights")
    with pytest.raises(ParameterError, match="n_neighbors must be"):
        KNeighborsRegressor(n_neighbors=0).fit(X, y)
    with pytest.raises(ParameterError, match="weights must be"):
        KNeighborsRegressor(weights="near").fit(X, y)
    with pytest.raises(DataError, match="NaN"):
        model.predict(np.full((1, 4), np.nan))
    with pytest.raises(DataError, match="features"):
        model.predict(X[:, :3])


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev", "cosine"])
def test_scales_do_not_matter(scale, metric):
    X, y = data(80, 3)
    model = KNeighborsRegressor(metric=metric, weights="distance").fit(X * scale, y)
    assert model.certificate_.holds and bool(ln.verify(model, X * scale, y))
    expected = KNeighborsRegressor(metric=metric, weights="distance").fit(X, y).predict(X + 0.01)
    np.testing.assert_allclose(model.predict((X + 0.01) * scale), expected, rtol=1e-6)


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
def test_rows_far_from_the_origin_and_from_each_other(offset):
    X, y = data(300, 5)
    X[::2] += offset
    model = KNeighborsRegressor(algorithm="brute").fit(X, y)
    assert model.certificate_.value < 1e-14 and bool(ln.verify(model, X, y))
    near, _ = model.kneighbors(X)
    alone = NearestNeighbors().fit(X[::2] - offset).kneighbors(X[::2] - offset)[0]  # the subtraction is exact
    np.testing.assert_allclose(near[::2], alone, rtol=1e-14)


def test_one_row_constant_columns_and_duplicates():
    assert KNeighborsRegressor(n_neighbors=1).fit([[3.0]], [2.0]).predict([[9.0]]).tolist() == [2.0]
    X = np.ones((9, 3))
    model = KNeighborsRegressor(n_neighbors=2, weights="distance").fit(X, np.arange(9.0))
    assert model.predict(X[:1]).tolist() == [0.5] and model.certificate_.value == 0.0


def test_what_the_caller_does_to_x_later_changes_nothing():
    X, y = data()
    model = KNeighborsClassifier().fit(X, y)
    before = model.predict_proba(X)
    Z = X.copy()
    X[:] = 0
    assert (model.predict_proba(Z) == before).all()
    model.rows_ = model.rows_ + 100.0  # another table: the search is built again
    assert model.kneighbors(Z + 100.0)[0].max() < 10


@pytest.mark.threaded
@pytest.mark.parametrize("algorithm", ["brute", "kd_tree", "ball_tree", "auto"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_algorithms_and_threads_agree(algorithm, dtype):
    X, y = data(1500, 3)
    X = X.astype(dtype)
    model = KNeighborsClassifier(algorithm=algorithm, n_jobs=1).fit(X, y)
    base = KNeighborsClassifier(algorithm="brute").fit(X, y)
    assert (model.kneighbors(X)[1] == base.kneighbors(X)[1]).all()
    np.testing.assert_allclose(model.kneighbors(X)[0], base.kneighbors(X)[0], rtol=1e-14)
    two = KNeighborsClassifier(algorithm=algorithm, n_jobs=2).fit(X, y)
    assert (model.kneighbors(X)[0] == two.kneighbors(X)[0]).all()


@pytest.mark.parametrize("cls", MODELS)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_files_give_identical_predictions(cls, sparse, weighted, tmp_path):
    X, y = data()
    X = sp.csr_array(np.where(abs(X) > 0.5, X, 0)) if sparse else X
    model = cls(n_neighbors=4, weights="distance").fit(X, y, np.arange(200) % 3 + 1.0 if weighted else None)
    ln.save(model, tmp_path / "m.safetensors")
    loaded = ln.load(tmp_path / "m.safetensors")
    assert (loaded.predict(X) == model.predict(X)).all()
    assert bool(ln.verify(loaded, X, y, np.arange(200) % 3 + 1.0 if weighted else None))
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(X) == model.predict(X)).all()


def test_a_function_cannot_be_saved(tmp_path):
    X, y = data()
    model = KNeighborsClassifier(metric=lambda a, b: abs(a - b).sum()).fit(X, y)
    with pytest.raises(ModelFileError, match="metric"):
        ln.save(model, tmp_path / "m.safetensors")


HOSTILE = {
    "rows_": [None, np.zeros((3, 4)), np.full((200, 4), np.nan), np.zeros((200, 4), dtype=int), np.zeros((200, 5))],
    "n_samples_fit_": [199, -1],
    "targets_": [np.zeros(200), np.zeros(199, dtype=int), np.full(200, 2), np.full(200, -1), None],
    "classes_": [np.zeros(1), np.zeros((2, 2)), None],
    "row_weights_": [np.zeros(200), np.ones(199), np.full(200, np.nan), "heavy"],
    "effective_metric_": ["manhattan", 3],
    "effective_metric_params_": [{"p": 3}, None],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in HOSTILE.items() for value in values])
def test_hostile_files_are_refused(name, value):
    model = KNeighborsClassifier().fit(*data())
    setattr(model, name, value)
    with pytest.raises(ModelFileError):
        model._check_loaded()


def test_hostile_sparse_rows_are_refused():
    X, y = data()
    model = KNeighborsClassifier().fit(sp.csr_array(X), y)
    model.rows_.indices[:4] = model.rows_.indices[:4][::-1].copy()
    with pytest.raises(ModelFileError, match="ascend"):
        model._check_loaded()


def test_tables_in_files_and_on_dask(tmp_path):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    X, y = data()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    here = KNeighborsClassifier().fit(frame, "y")
    from_file = KNeighborsClassifier().fit(str(tmp_path / "rows.csv"), "y")
    on_dask = KNeighborsClassifier().fit(dd.from_pandas(frame, npartitions=3), "y")
    expected = here.predict(frame[list("abcd")])
    for model in (from_file, on_dask):
        assert model.certificate_.fingerprint == here.certificate_.fingerprint
        assert (model.predict(frame[list("abcd")]) == expected).all()
    lazy = here.predict(dd.from_pandas(frame[list("abcd")], npartitions=2))
    assert (np.asarray(lazy) == expected).all()
    assert here.score(str(tmp_path / "rows.csv"), "y") == pytest.approx((expected == y).mean())


def test_a_failed_fit_leaves_the_model_as_it_was():
    X, _ = data()
    model = NearestNeighbors().fit(X)
    before = model.kneighbors(X)
    with pytest.raises(DataError):
        model.fit(np.full((5, 4), np.nan))
    assert (model.kneighbors(X)[1] == before[1]).all()
