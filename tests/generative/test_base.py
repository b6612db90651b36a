"""Every generative classifier from memory, from files and from Dask: one result."""

import numpy as np
import pytest
from sklearn.base import clone

import learnable as ln

pd = pytest.importorskip("pandas")
from tests.data.on_disk import streamed  # noqa: E402

COLUMNS = ["p", "q", "r"]


def frame(kind, n=3000):
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, n)]
    X = rng.poisson(2.0, (n, 3)).astype(float) if kind == "counts" else rng.normal(size=(n, 3)) + (y == "b")[:, None]
    if kind == "gaps":
        X[rng.random(X.shape) < 0.1] = np.nan
    w = rng.uniform(0.1, 1.0, n)
    w[::7] = 0.0
    return pd.DataFrame(X, columns=COLUMNS).assign(y=y, w=w)


MODELS = [
    (ln.GaussianNB(), "gaps"),
    (ln.MultinomialNB(), "counts"),
    (ln.BernoulliNB(), "gaps"),
    (ln.CategoricalNB(min_categories=20), "counts"),
    (ln.LinearDiscriminantAnalysis(), "numbers"),
    (ln.LinearDiscriminantAnalysis("eigen", "auto"), "numbers"),
    (ln.QuadraticDiscriminantAnalysis(), "numbers"),
    (ln.GenerativeClassifier("MultivariateNormal"), "numbers"),
    (ln.GenerativeClassifier("Poisson"), "counts"),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("model", "kind"), MODELS, ids=lambda case: str(case)[:45])
def test_files_and_dask_give_the_fit_of_memory(model, kind, tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    table = frame(kind)
    memory = clone(model).fit(table[[*COLUMNS, "y", "w"]], "y", "w")
    expected = memory.predict_proba(table[COLUMNS])
    files = streamed(table, tmp_path / "rows", 3)
    on_disk = clone(model).fit(files, "y", "w")
    rtol = 0 if not isinstance(model, ln.GenerativeClassifier) else 1e-10
    np.testing.assert_allclose(on_disk.predict_proba(table[COLUMNS]), expected, rtol=rtol)  # to the bit
    assert on_disk.certificate_.fingerprint == memory.certificate_.fingerprint
    assert ln.verify(on_disk, files, "y", "w")
    partitions = dd.from_pandas(table, npartitions=3)
    on_dask = clone(model).fit(partitions, "y", "w")
    np.testing.assert_allclose(on_dask.predict_proba(table[COLUMNS]), expected, rtol=1e-9)
    assert on_dask.certificate_.fingerprint == memory.certificate_.fingerprint
    assert (np.asarray(on_dask.predict(partitions[COLUMNS])) == memory.predict(table[COLUMNS])).all()


def test_infinity_in_a_file_is_refused_where_missing_values_are_not(tmp_path):
    table = frame("gaps")
    table.loc[100, "q"] = np.inf
    with pytest.raises(ln.core.errors.DataError, match=r"GaussianNB: Input X contains infinity: row 100 of .*'q'"):
        ln.GaussianNB().fit(streamed(table.drop(columns="w"), tmp_path / "rows"), "y")


def test_a_failed_partial_fit_leaves_the_model_as_it_was():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]
    model = ln.GaussianNB().fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ln.core.errors.DataError):
        model.partial_fit([[np.inf]], [0])
    with pytest.raises(ln.core.errors.ParameterError, match="is not the same as on last call"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    assert np.array_equal(model.predict_proba(X), before)
    assert model.partial_fit(X, y, sample_weight=np.zeros(4)).n_rows_ == 4


def test_names_of_columns_reach_partial_fit():
    table = frame("numbers").drop(columns="w")
    model = ln.GaussianNB().partial_fit(table, "y", classes=["a", "b", "c"])
    assert model.feature_names_in_.tolist() == COLUMNS


@pytest.mark.parametrize("model", [ln.GaussianNB, ln.BernoulliNB, ln.MultinomialNB, ln.CategoricalNB])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_class_is_a_class(model, weighted):
    X, y = np.array([[0, 1], [1, 2], [2, 2], [1, 0]]), np.array(["a", "a", "a", "b"])
    weight = np.array([1.0, 2.0, 1.0, 0.0]) if weighted else None
    data = (X, y, weight) if weighted else (X[:3], y[:3])
    fitted = model().fit(*data)
    assert fitted.classes_.tolist() == ["a"]
    assert fitted.predict(X[:3]).tolist() == ["a"] * 3
    np.testing.assert_array_equal(fitted.predict_proba(X[:3]), 1.0)
    assert ln.verify(fitted, *data)
