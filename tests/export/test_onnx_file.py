"""ONNX files against onnxruntime: the same answers as `predict` and `predict_proba`, also on the thresholds."""

import re
import sys
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from tests.registered import brief, build, small_table

import learnable as ln
from learnable.core.errors import ParameterError
from learnable.core.registry import REGISTRY, registered_class

pytest.importorskip("onnx", reason="ONNX files need the extra learnable[onnx]")
runtime = pytest.importorskip("onnxruntime", reason="ONNX files are run by onnxruntime, which is not installed")

LINEAR = [
    name
    for name, entry in REGISTRY.items()
    if entry.estimator and entry.traits is not None and entry.traits.family == "linear"
]
TREES = [
    ln.DecisionTreeRegressor(max_depth=5, random_state=0),
    ln.RandomForestRegressor(n_estimators=8, random_state=0),
    ln.ExtraTreesRegressor(n_estimators=5, random_state=0),
    ln.BaggingRegressor(n_estimators=4, max_features=0.5, random_state=0),
    ln.GradientBoostingRegressor(n_estimators=12, random_state=0),
    ln.HistGradientBoostingRegressor(max_iter=12, random_state=0),
    ln.HistGradientBoostingRegressor(max_iter=6, loss="poisson", random_state=0),
    ln.DecisionTreeClassifier(max_depth=4, random_state=0),
    ln.RandomForestClassifier(n_estimators=8, random_state=0),
    ln.ExtraTreesClassifier(n_estimators=5, random_state=0),
    ln.BaggingClassifier(n_estimators=4, max_features=0.5, random_state=0),
    ln.GradientBoostingClassifier(n_estimators=8, random_state=0),
    ln.HistGradientBoostingClassifier(max_iter=8, random_state=0),
    ln.AdaBoostClassifier(n_estimators=10, random_state=0),
    ln.AdaBoostClassifier(ln.DecisionTreeClassifier(max_depth=2), n_estimators=5, random_state=0),
]


def run(written, X, dtype="float64"):
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(written.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": np.asarray(X, dtype)}), strict=True))


def check(model, X, dtype="float64", tolerance=1e-12):
    """Require the file to answer what the model answers to the same rows; return the answers."""
    rows = np.asarray(X, dtype).astype(np.float64)
    answers = run(ln.to_onnx(model, dtype=dtype), rows, dtype)
    if "prediction" in answers:
        expected = np.asarray(model.predict(rows), dtype=np.float64)
        assert answers["prediction"].shape == expected.shape
        np.testing.assert_allclose(
            answers["prediction"], expected, rtol=tolerance, atol=tolerance * np.abs(expected).max()
        )
        return answers
    name, ask = ("probabilities", "predict_proba") if "probabilities" in answers else ("scores", "decision_function")
    assert hasattr(model, "predict_proba") == (name == "probabilities")
    expected = getattr(model, ask)(rows)
    np.testing.assert_allclose(
        answers[name], expected, rtol=tolerance, atol=tolerance * max(1.0, np.abs(expected).max())
    )
    spread = np.sort(np.column_stack([-expected, expected]) if expected.ndim == 1 else expected, axis=1)
    clear = spread[:, -1] - spread[:, -2] > 1e-9  # a tie may be broken by the order of a sum
    labels = answers["label"][clear]
    assert (labels == model.predict(rows)[clear].astype(labels.dtype)).all()
    return answers


def table(model, n_classes=3):
    X, y = load_iris(return_X_y=True) if hasattr(model, "predict_proba") else load_diabetes(return_X_y=True)
    if hasattr(model, "predict_proba") and n_classes == 2:
        X, y = X[50:], np.array(["x", "y"])[y[50:] - 1]
    return X, y


@pytest.mark.parametrize("name", LINEAR)
def test_every_linear_model(name):
    X, y = small_table(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = brief(build(name)).fit(X, y)
    check(model, X)
    check(model, X, "float32", 1e-9)


@pytest.mark.parametrize("link", ["identity", "log", "logit", "cloglog", "inverse", "sqrt"])
def test_links(link):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 1.5, size=(80, 2))
    y = rng.uniform(size=80) if link in ("logit", "cloglog") else X.sum(axis=1) + rng.uniform(size=80)
    family = {"logit": "binomial", "cloglog": "binomial", "inverse": "gamma", "log": "gamma"}.get(link, "normal")
    family = "poisson" if link == "sqrt" else family
    check(ln.GLM(family=family, link=link).fit(X, (y > 0.5) * 1.0 if family == "binomial" else y), X)


def test_a_link_without_operator_is_refused():
    X, y = load_diabetes(return_X_y=True)
    model = ln.GLM(family="binomial", link="probit").fit(X[:, :2], y > 150)
    with pytest.raises(ParameterError, match="has the probit link"):
        ln.to_onnx(model)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("model", TREES, ids=repr)
def test_trees(model, dtype):
    X, y = table(model)
    check(model.fit(X, y), X, dtype)


@pytest.mark.parametrize("model", [model for model in TREES if hasattr(model, "predict_proba")], ids=repr)
def test_trees_of_two_classes_called_by_words(model):
    X, y = table(model, 2)
    answers = check(model.fit(X, y), X)
    assert set(answers["label"]) == {"x", "y"}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_on_the_thresholds_and_beside_them(dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 40, size=(300, 3)) / 10.0  # midpoints of these are no numbers of single precision
    y = rng.normal(size=300) + X[:, 0]
    model = ln.HistGradientBoostingRegressor(max_iter=20).fit(X, y)
    trees = model.trees_
    inner = trees.feature >= 0
    cuts = np.asarray(trees.threshold[inner], dtype)
    rows = np.repeat(rng.choice(X, size=len(cuts)), 3, axis=0)
    at = np.arange(len(cuts))
    rows[3 * at, trees.feature[inner]] = cuts
    rows[3 * at + 1, trees.feature[inner]] = np.nextafter(cuts, np.asarray(-np.inf, dtype))
    rows[3 * at + 2, trees.feature[inner]] = np.nextafter(cuts, np.asarray(np.inf, dtype))
    check(model, rows, dtype, 1e-14)


@pytest.mark.parametrize(
    "model",
    [
        ln.HistGradientBoostingRegressor(max_iter=15),
        ln.GradientBoostingRegressor(n_estimators=10),
        ln.RandomForestRegressor(n_estimators=5, random_state=0),
    ],
    ids=repr,
)
def test_missing_values_and_infinities(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + np.where(X[:, 1] > 0, 2.0, 0.0)
    X[rng.uniform(size=X.shape) < 0.3] = np.nan
    model.fit(X, y)
    check(model, np.vstack([X, np.full((1, 3), np.nan)]), tolerance=1e-13)
    check(model, X, "float32", 1e-13)


@pytest.mark.parametrize("levels", [np.arange(40.0), np.array([-3.0, 0.5, 7.0, 100.0, 2000.0])], ids=["codes", "any"])
def test_categories_of_histogram_boosting(levels):
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.choice(levels, 400), rng.normal(size=400)])
    effect = rng.normal(size=len(levels))
    y = effect[np.searchsorted(levels, X[:, 0])] + X[:, 1]
    X[::17, 0] = np.nan
    model = ln.HistGradientBoostingRegressor(max_iter=15, categorical_features=[0], min_samples_leaf=5).fit(X, y)
    assert (model.trees_.category >= 0).any() and (model.trees_.missing_left[model.trees_.category >= 0] == 1).any()
    strange = np.column_stack([[-1.0, 39.0, 40.0, 63.0, 64.0, 1e6, np.nan], np.zeros(7)])
    check(model, np.vstack([X, strange]), tolerance=1e-13)


@pytest.mark.parametrize(
    "model",
    [
        ln.DecisionTreeClassifier(categorical_features=[0], max_depth=4),
        ln.RandomForestClassifier(n_estimators=4, categorical_features=[0], random_state=0),
        ln.HistGradientBoostingClassifier(max_iter=4, categorical_features=[0], min_samples_leaf=5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_categories_of_classifiers_of_three_classes(model):
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.integers(0, 35, 300).astype(float), rng.normal(size=300)])
    y = np.array(["a", "b", "c"])[(X[:, 0].astype(int) * 7 + (X[:, 1] > 0)) % 3]
    X[::13, 0] = np.nan
    model.fit(X, y)
    assert (model.trees_.category >= 0).any()
    strange = np.column_stack([[34.0, 35.0, 63.0, 64.0, 1e6, np.nan], np.zeros(6)])
    check(model, np.vstack([X, strange]), tolerance=1e-13)


def test_categories_that_are_words_are_refused():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": pd.Categorical(["x", "y", "z"] * 20), "b": np.arange(60.0)})
    model = ln.HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=2).fit(X, X["b"])
    with pytest.raises(ParameterError, match=r"column 0 .* categories that are words.*OrdinalEncoder"):
        ln.to_onnx(model)


def test_trees_of_one_leaf():
    X, y = load_diabetes(return_X_y=True)
    for value, n in ((np.full(20, 3.5), 3), (y[:20], 1)):
        check(ln.HistGradientBoostingRegressor(max_iter=n).fit(X[:20], value), X[:20])
    check(ln.DecisionTreeRegressor().fit(X[:20], np.full(20, -1.25)), X[:20])
    check(ln.RandomForestClassifier(n_estimators=3, max_depth=1, random_state=0).fit(X[:60], y[:60] > 200), X[:60])


def test_several_targets_of_numbers():
    X, y = load_diabetes(return_X_y=True)
    for model in (ln.RandomForestRegressor(n_estimators=4, random_state=0), ln.Ridge()):
        answers = check(model.fit(X, np.column_stack([y, -y])), X)
        assert answers["prediction"].shape == (len(y), 2)


def test_pipelines_of_scalers_and_an_imputer():
    X, y = load_diabetes(return_X_y=True)
    X = X.copy()
    X[::7, 2] = np.nan
    steps = [SimpleImputer(), StandardScaler(), RobustScaler(), MaxAbsScaler(), MinMaxScaler(clip=True)]
    model = make_pipeline(*steps, "passthrough", ln.Ridge()).fit(X, y)
    check(model, X)
    with pytest.raises(ParameterError, match="PolynomialFeatures of the pipeline cannot be exported; StandardScaler"):
        ln.to_onnx(make_pipeline(PolynomialFeatures(), ln.Ridge()).fit(np.nan_to_num(X), y))


def test_the_file_says_where_it_comes_from(tmp_path):
    pd = pytest.importorskip("pandas")
    onnx = pytest.importorskip("onnx")
    X, y = load_iris(return_X_y=True)
    model = ln.LogisticRegression().fit(pd.DataFrame(X, columns=list("abcd")), y)
    path = tmp_path / "iris.onnx"
    written = ln.to_onnx(model, path)
    read = onnx.load(path)
    assert read == written
    assert {item.key: item.value for item in read.metadata_props} == {
        "model": "LogisticRegression",
        "library": "learnable",
        "columns": '["a", "b", "c", "d"]',
    }
    assert [entry.name for entry in read.graph.input] == ["X"]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (ln.KMeans(n_clusters=2), "KMeans cannot be exported. Linear models"),
        (ln.SVC(), "SVC cannot be exported"),
        (ln.BaggingRegressor(ln.Ridge(), n_estimators=2), "no sum of decision trees"),
        (ln.GradientBoostingRegressor(init=ln.Ridge(), n_estimators=2), "no sum of decision trees"),
        (ln.HistGradientBoostingRegressor(loss="quantile", quantile=[0.1, 0.9], max_iter=2), "several quantiles"),
        (ln.AdaBoostRegressor(n_estimators=2), "no sum of decision trees"),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value).__name__,
)
def test_what_cannot_be_expressed_is_refused_with_the_reason(model, words):
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(ParameterError, match=re.escape(words)):
        ln.to_onnx(model.fit(X[:60], y[:60] > 100 if isinstance(model, ln.SVC) else y[:60]))


def test_unfitted_models_and_other_types_are_refused():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        ln.to_onnx(ln.Ridge())
    with pytest.raises(ParameterError, match="dtype must be 'float32' or 'float64'"):
        ln.to_onnx(ln.Ridge(), dtype="float16")


def test_without_onnx_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=re.escape("pip install learnable[onnx]")):
        ln.to_onnx(ln.Ridge().fit([[0.0], [1.0]], [0.0, 1.0]))


def test_every_linear_class_is_found():
    assert all(hasattr(registered_class(name), "predict") for name in LINEAR) and len(LINEAR) > 20
