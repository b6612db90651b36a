"""Scikit-learn workflows of our models in files: they come back the same, and forged ones are refused."""

import copy
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression as OtherLogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures, StandardScaler
from tests.meta.workflows import WORKFLOWS, diabetes, iris, mixed

import learnable as ln
from learnable.core import ModelFileError, model_file
from learnable.core._encoding import encode
from learnable.core.entries import SKLEARN


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.fixture(scope="module")
def fitted():
    """Return a function that fits a workflow once."""
    known = {}

    def fit(name):
        if name not in known:
            data, make = WORKFLOWS[name]
            known[name] = (make().fit(*data()), *data())
        return known[name]

    return fit


def write(document, arrays, path):
    """Write a file as `save` does, with a right checksum, of a document that somebody forged."""
    header, order = model_file._pack(document, arrays)
    path.write_bytes(b"".join([header, *(bytes(model_file._bytes_of(arrays[name])) for name in order)]))


def refusal(document, arrays, path):
    write(document, arrays, path)
    with pytest.raises(ModelFileError) as caught:
        ln.load(path)
    message = str(caught.value)
    assert message.startswith("load: model.safetensors: ")
    return message


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_predicts_the_same_after_a_round_trip(name, fitted, path):
    model, X, y = fitted(name)
    ln.save(model, path)
    loaded = ln.load(path)
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            np.testing.assert_array_equal(getattr(loaded, method)(X), getattr(model, method)(X))
    assert loaded.score(X, y) == model.score(X, y)
    assert getattr(loaded, "n_features_in_", None) == getattr(model, "n_features_in_", None)
    if hasattr(model, "feature_names_in_"):
        np.testing.assert_array_equal(loaded.feature_names_in_, model.feature_names_in_)
    if is_classifier(model):
        np.testing.assert_array_equal(loaded.classes_, model.classes_)
    again = path.with_name("again.safetensors")
    ln.save(loaded, again)
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", WORKFLOWS)
def test_an_unfitted_workflow_comes_back_and_fits_alike(name, fitted, path):
    model, X, y = fitted(name)
    ln.save(WORKFLOWS[name][1](), path)
    loaded = ln.load(path)
    assert loaded.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    np.testing.assert_array_equal(loaded.fit(X, y).predict(X), model.predict(X))


def test_every_class_of_the_list_is_in_a_workflow(fitted):
    text = "".join(json.dumps(encode(fitted(name)[0])[0]) for name in WORKFLOWS)
    missing = [name for name in SKLEARN if f'"sklearn.{name}"' not in text]
    assert missing == []


def test_no_workflow_needs_a_pickle(fitted, path):
    ln.save(fitted("stacking")[0], path)
    raw = path.read_bytes()
    assert b"pickle" not in raw
    assert b"\x80\x04\x95" not in raw


def test_set_output_is_kept(path):
    X, _ = iris()
    scaler = StandardScaler().set_output(transform="pandas").fit(X)
    ln.save(scaler, path)
    loaded = ln.load(path)
    pd.testing.assert_frame_equal(loaded.transform(X), scaler.transform(X))
    own = ln.linear.PolynomialFeatures(2).set_output(transform="pandas").fit(X)
    ln.save(own, path)
    pd.testing.assert_frame_equal(ln.load(path).transform(X), own.transform(X))


def test_sparse_rows_and_sparse_output(path):
    X, _ = diabetes()
    X = sp.csr_array(np.where(X > 0.02, X, 0.0))
    expansion = PolynomialFeatures(3).fit(X)
    ln.save(expansion, path)
    np.testing.assert_array_equal(ln.load(path).transform(X).toarray(), expansion.transform(X).toarray())
    frame, _ = mixed()
    encoder = OneHotEncoder().fit(frame)
    ln.save(encoder, path)
    loaded = ln.load(path).transform(frame)
    assert sp.issparse(loaded)
    np.testing.assert_array_equal(loaded.toarray(), encoder.transform(frame).toarray())


def test_search_results_come_back(fitted, path):
    model, _, _ = fitted("grid")
    ln.save(model, path)
    loaded = ln.load(path)
    pd.testing.assert_frame_equal(
        pd.DataFrame(loaded.cv_results_).astype(str), pd.DataFrame(model.cv_results_).astype(str)
    )
    np.testing.assert_array_equal(loaded.cv_results_["param_model__C"].mask, model.cv_results_["param_model__C"].mask)
    assert repr(loaded.best_params_) == repr(model.best_params_)
    assert loaded.best_index_ == model.best_index_


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            Pipeline([("scale", StandardScaler()), ("forest", RandomForestClassifier())]),
            "steps[1][1] is a RandomForest",
        ),
        (Pipeline([("log", FunctionTransformer(np.log1p)), ("model", ln.Ridge())]), "steps[0][1].func is a"),
        (Pipeline([("scale", StandardScaler()), ("model", ln.Ridge())], memory="cache"), "Pipeline.memory"),
        (ColumnTransformer([("a", StandardScaler(), lambda frame: ["x"])]), "transformers[0][2] is a function"),
        (Pipeline([("scale", type("Mine", (StandardScaler,), {})())]), "a subclass of StandardScaler"),
        (OtherLogisticRegression(), "scikit-learn's LogisticRegression is not one of them"),
        (StandardScaler(with_mean="perhaps"), "with_mean"),
    ],
)
def test_what_cannot_be_saved_is_named(model, message, path):
    with pytest.raises(ModelFileError) as caught:
        ln.save(model, path)
    assert message in str(caught.value)
    assert not path.exists()


def test_a_final_model_of_scikit_learn_is_named(path):
    X, y = iris()
    model = StackingClassifier([("bayes", ln.GaussianNB())]).fit(X, y)
    with pytest.raises(ModelFileError, match=r"StackingClassifier\.final_estimator_ is a LogisticRegression"):
        ln.save(model, path)


def test_a_member_of_another_version_stops_the_save(path):
    model = StandardScaler().fit(diabetes()[0])
    model.new_member_ = 1
    with pytest.raises(ModelFileError, match=r"StandardScaler\.new_member_ .*scikit-learn"):
        ln.save(model, path)


@pytest.mark.parametrize(
    "name",
    [
        "sklearn.RandomForestClassifier",
        "sklearn.os",
        "sklearn.",
        "sklearn.pipeline:Pipeline",
        "StandardScaler",
        "os.system",
    ],
)
def test_forged_class_names_are_refused(name, fitted, path):
    document, arrays = encode(fitted("standard")[0])
    document["params"]["steps"][0]["$tuple"][1]["$model"]["class"] = name
    assert "does not know" in refusal(document, arrays, path)


@pytest.mark.parametrize(
    "value",
    [
        {"$function": "system"},
        {"$type": "os.system"},
        {"$type": "eval"},
        {"$arguments": {"class": "Popen", "params": {}}},
        {"$distribution": {"name": "rv_histogram", "args": [], "kwds": {}}},
        {"$dtype": "V8"},
        {"$masked": {"data": [1], "mask": [True]}},
        {"$bspline": {"t": [0, 1], "c": [1], "k": 1, "extrapolate": True}},
    ],
)
def test_forged_names_of_values_are_refused(value, fitted, path):
    document, arrays = encode(fitted("standard")[0])
    document["params"]["verbose"] = value
    refusal(document, arrays, path)


def test_a_fitted_member_that_is_not_on_the_list_is_refused(fitted, path):
    document, arrays = encode(fitted("standard")[0])
    scaler = document["params"]["steps"][0]["$tuple"][1]["$model"]
    scaler["fitted"]["transform"] = 1
    assert "cannot be a fitted attribute" in refusal(document, arrays, path)
    del scaler["fitted"]["transform"]
    scaler["fitted"].pop("n_samples_seen_")
    assert "has no n_samples_seen_" in refusal(document, arrays, path)


def test_other_versions_of_scikit_learn(fitted, path, monkeypatch):
    model, X, _ = fitted("standard")
    genuine = model_file.distributions.version
    with monkeypatch.context() as patch:
        patch.setattr(model_file.distributions, "version", lambda name: "1.8.2" if name[0] == "s" else genuine(name))
        document, arrays = encode(model)
        write(document, arrays, path)
        scaler = document["params"]["steps"][0]["$tuple"][1]["$model"]
        scaler["fitted"]["older_"] = 1
        other = path.with_name("other.safetensors")
        write(document, arrays, other)
    with pytest.warns(UserWarning, match=r"are of version 1\.8\.2"):
        loaded = ln.load(path)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(ModelFileError, match=r"'older_' .*written with scikit-learn 1\.8\.2.* or fit again"):
        ln.load(other)


ONE_HOT = ("params", "steps", 0, "$tuple", 1, "$model", "fitted", "transformers_", 1, "$tuple", 1, "$model", "fitted")


@pytest.mark.parametrize("wrong", [[1, 1], [100, 100], [4, -3], [5], "many", None])
def test_forged_numbers_of_columns_of_an_encoder_are_refused(wrong, fitted, path):
    document, arrays = encode(fitted("dense one-hot")[0])
    found = document
    for key in ONE_HOT:
        found = found[key]
    found["_n_features_outs"] = wrong
    assert "_n_features_outs" in refusal(document, arrays, path)


def test_categories_out_of_order_are_refused(path):
    # Bisection in them gives a code behind the last one, and the encoder would write there.
    encoder = OneHotEncoder(sparse_output=False).fit(np.array([[1.0], [2.0], [3.0]]))
    document, arrays = encode(encoder)
    [name] = [name for name in arrays if "categories_" in name]
    arrays[name] = arrays[name][::-1].copy()
    assert "categories_[0] must rise" in refusal(document, arrays, path)


def test_a_forged_size_of_an_expansion_is_refused(path):
    document, arrays = encode(PolynomialFeatures(2).fit(diabetes()[0]))
    for member in ("n_output_features_", "_n_out_full", "_max_degree"):
        forged = copy.deepcopy(document)
        forged["fitted"][member] += 1
        assert "must" in refusal(forged, arrays, path)


def test_a_forged_number_of_processes_is_refused(fitted, path):
    document, arrays = encode(fitted("sparse one-hot")[0])
    document["params"]["steps"][0]["$tuple"][1]["$model"]["params"]["n_jobs"] = 10**6
    assert "n_jobs" in refusal(document, arrays, path)


def _damaged(array):
    """Return arrays that a forger may put in the place of another."""
    yield array[:-1].copy() if array.ndim else array
    yield np.concatenate([array, array[:1]]) if array.ndim else array
    yield array.reshape(-1, 1) if array.ndim == 1 else array.reshape(-1)
    yield np.full_like(array, 1 if array.dtype == bool else 100)
    if array.dtype.kind == "f":
        yield np.full_like(array, np.nan)
        yield array.astype(np.int8)
    if array.dtype.kind == "i":
        yield np.full_like(array, -1)
        yield np.full_like(array, np.iinfo(array.dtype).max)
        yield array.astype(np.float32)


def _integers(document, place=()):
    """Yield where the whole numbers of a document stand."""
    pairs = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in pairs:
        if type(value) is int:
            yield (*place, key)
        elif isinstance(value, (dict, list)):
            yield from _integers(value, (*place, key))


def _survives(path, X):
    """Load a damaged file and predict: an error of Python, or some prediction; the process goes on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = ln.load(path)
        except ModelFileError:
            return True
        try:
            model.predict(X)
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError):
            return False
    return False


FUZZED = ["dense one-hot", "rare words", "ordinal", "target encoder", "bins", "splines", "interactions", "voting"]
FUZZED += ["power", "quantiles", "selection", "components", "most frequent", "stacking"]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", FUZZED)
def test_damaged_arrays_and_numbers_never_crash(name, fitted, path: Path):
    model, X, _ = fitted(name)
    document, arrays = encode(model)
    refused = 0
    for key, array in arrays.items():
        for damaged in _damaged(array):
            write(document, arrays | {key: damaged}, path)
            refused += _survives(path, X)
    for place in _integers(document):
        for wrong in (-1, 7, 2**40):
            forged = copy.deepcopy(document)
            inside = forged
            for key in place[:-1]:
                inside = inside[key]
            inside[place[-1]] = wrong
            write(forged, arrays, path)
            refused += _survives(path, X)
    assert refused > 0
