"""Packed trees give back every bit, are small, and a damaged or hostile file is refused."""

import copy
import dataclasses
import os
import pickle
import zlib

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import learnable as ln
from learnable.core import model_file
from learnable.core._encoding import encode
from learnable.core.errors import ModelFileError
from learnable.trees.file_layout import _bytes_in, narrow, pack_numbers, pack_trees, unpack_numbers, unpack_trees
from learnable.trees.layout import Trees


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 1] = np.round(X[:, 1])
    X[rng.random((n, 5)) < 0.05] = np.nan
    X[:, 4] = rng.integers(6, size=n)
    return X, np.nansum(X, axis=1) + rng.normal(size=n)


MODELS = {
    "forest": ln.RandomForestRegressor(n_estimators=4, random_state=0),
    "forest of leaves": ln.RandomForestRegressor(n_estimators=3, min_samples_leaf=7, random_state=0),
    "forest of classes": ln.RandomForestClassifier(n_estimators=4, random_state=0),
    "extra trees": ln.ExtraTreesClassifier(n_estimators=3, random_state=0),
    "boosting": ln.GradientBoostingRegressor(n_estimators=5, random_state=0),
    "histograms": ln.HistGradientBoostingClassifier(max_iter=4, random_state=0),
    "categories": ln.HistGradientBoostingRegressor(max_iter=4, categorical_features=[4], random_state=0),
    "one tree": ln.DecisionTreeRegressor(max_depth=3),
    "one leaf": ln.DecisionTreeClassifier(max_leaf_nodes=2, min_samples_leaf=199),
}


def fitted(name):
    X, y = table()
    model = copy.deepcopy(MODELS[name])
    return model.fit(X, np.digitize(y, [-1.0, 1.0]) if "Classifier" in type(model).__name__ else y), X


def same(one, other):
    for field in dataclasses.fields(Trees):
        a, b = getattr(one, field.name), getattr(other, field.name)
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes(), field.name


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_every_bit_comes_back(name, weighted, tmp_path):
    model, X = fitted(name)
    if weighted:
        y = table()[1]
        y = np.digitize(y, [-1.0, 1.0]) if "Classifier" in type(model).__name__ else y
        model.fit(X, y, sample_weight=np.random.default_rng(0).uniform(0.5, 2.0, len(X)))
    trees = getattr(model, "trees_", None) or model.tree_
    trees = trees if isinstance(trees, Trees) else model.trees_
    packed = pack_trees(trees)
    assert packed is not None
    same(trees, Trees(**unpack_trees(packed)))
    ln.save(model, tmp_path / "m.safetensors")
    assert np.array_equal(ln.load(tmp_path / "m.safetensors").predict(X), model.predict(X))


@pytest.mark.parametrize(
    "values",
    [
        [0.0, -0.0, 1.0],
        [0.1] * 50 + [0.7],
        list(np.random.default_rng(0).normal(size=40)),
        [np.inf, -np.inf, 2.5],
        [1e300, 5e-324],
        [],
        [2.0**31, 3.0],
        [1e20],
    ],
)
def test_numbers_come_back_bit_by_bit(values):
    values = np.array(values, dtype=np.float64)
    assert unpack_numbers(pack_numbers(values), len(values)).tobytes() == values.tobytes()


def test_narrow_keeps_whole_numbers():
    for numbers in ([0, 255], [256], [2**16], [2**32], [-3, 4]):
        assert narrow(np.array(numbers)).tolist() == numbers


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_a_forest_is_smaller_than_scikit_learns_compressed(kind, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6)).round(2)  # as columns of tables are; all different, they take 5 % more than theirs
    y = np.round(X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=3000), 2)
    if kind == "classes":
        y = np.digitize(y, np.quantile(y, np.linspace(0, 1, 11)[1:-1]))
        ours = ln.RandomForestClassifier(n_estimators=8, random_state=0)
        theirs = RandomForestClassifier(8, random_state=0)
    else:
        ours = ln.RandomForestRegressor(n_estimators=8, max_features=0.5, random_state=0)
        theirs = RandomForestRegressor(8, max_features=0.5, random_state=0)
    ln.save(ours.fit(X, y), tmp_path / "m.safetensors")
    compressed = len(zlib.compress(pickle.dumps(theirs.fit(X, y)), 3))
    assert os.path.getsize(tmp_path / "m.safetensors") <= compressed
    raw = sum(getattr(ours.trees_, field.name).nbytes for field in dataclasses.fields(Trees))
    assert 3 * _bytes_in(ours.trees_._to_file()) < raw


def test_files_with_plain_arrays_still_load(tmp_path, monkeypatch):
    model, X = fitted("forest")
    monkeypatch.setattr(Trees, "_to_file", lambda self: None)
    document, _ = encode(model)
    assert "fields" in document["fitted"]["trees_"]["$part"]
    ln.save(model, tmp_path / "old.safetensors")
    monkeypatch.undo()
    assert np.array_equal(ln.load(tmp_path / "old.safetensors").predict(X), model.predict(X))


@pytest.mark.parametrize("name", ["forest", "forest of classes", "categories", "histograms"])
def test_a_damaged_packed_tree_is_refused_and_never_walked_out_of_bounds(name):
    model, _ = fitted(name)
    packed, rng = pack_trees(model.trees_), np.random.default_rng(0)
    places = [(key, None) for key in packed] + [
        (key, inside) for key, value in packed.items() if isinstance(value, dict) for inside in value
    ]
    for key, inside in places:
        for damage in ("gone", "short", "noise", "zero"):
            broken = copy.deepcopy(packed)
            holder, last = (broken, key) if inside is None else (broken[key], inside)
            value = holder[last]
            if damage == "gone":
                del holder[last]
            elif isinstance(value, np.ndarray) and len(value):
                if damage == "short":
                    holder[last] = value[:-1]
                elif damage == "zero":
                    holder[last] = np.zeros_like(value)
                else:
                    raw = bytearray(value.tobytes())
                    for place in rng.integers(len(raw), size=5):
                        raw[place] ^= 255
                    holder[last] = np.frombuffer(bytes(raw), value.dtype).reshape(value.shape)
            elif isinstance(value, int):
                holder[last] = value + 1
            else:
                holder[last] = {"strange": np.ones(3)}
            try:
                Trees(**unpack_trees(broken)).check(n_features=5)
            except (ModelFileError, ValueError, TypeError, KeyError, IndexError):
                continue


def test_a_small_file_cannot_ask_for_much_memory():
    model, _ = fitted("forest of classes")
    packed = pack_trees(model.trees_)
    with pytest.raises(ModelFileError, match="number of nodes"):
        unpack_trees(packed | {"n_values": 10**6})
    with pytest.raises(ModelFileError, match="number of nodes"):
        unpack_trees(packed | {"n_nodes": 2**30})


def test_a_part_that_is_never_packed_is_refused(tmp_path):
    document, arrays = encode(ln.Ridge().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]))
    certificate = document["fitted"]["certificate_"]["$part"]
    certificate["packed"] = certificate.pop("fields")
    header, order = model_file._pack(document, arrays)
    path = tmp_path / "m.safetensors"
    path.write_bytes(header + b"".join(bytes(model_file._bytes_of(arrays[name])) for name in order))
    with pytest.raises(ModelFileError, match="never packed"):
        ln.load(path)
