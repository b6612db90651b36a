"""`verify` accepts every honest table model and catches a change of the data, the encoder or the model."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import linear_model as peer
from sklearn.base import clone
from tests.data.messy import messy_columns, messy_frame
from tests.mutations import arrays_of, unnoticed

from learnable import (
    LinearRegression,
    LogisticRegression,
    OneVsOneClassifier,
    OneVsRestClassifier,
    Ridge,
    RidgeCV,
    load,
    save,
    verify,
)
from learnable.core import VerificationError
from learnable.data import TableEncoder
from learnable.meta import TableModel

FRAME, TARGET = messy_frame()
LABELS = np.array(["low", "middle", "high"])[np.digitize(TARGET, np.quantile(TARGET, [0.3, 0.6]))]
WEIGHT = np.random.default_rng(0).uniform(0.2, 2.0, 200)
MODELS = {
    "ridge": (Ridge(), TARGET),
    "ridge, two targets": (Ridge(), np.column_stack([TARGET, TARGET**2])),
    "ridge, dense": (Ridge(), TARGET, TableEncoder(sparse=False)),
    "ridge, not scaled": (Ridge(), TARGET, TableEncoder(scale=False)),
    "ridge cv": (RidgeCV(), TARGET),
    "least squares": (LinearRegression(), TARGET, TableEncoder(text="drop")),
    "logistic": (LogisticRegression(), LABELS == "low"),
    "softmax": (LogisticRegression(), LABELS),
}
every_model = pytest.mark.parametrize("name", MODELS)


def fitted(name, weight=None, frame=FRAME):
    model, y, *encoder = MODELS[name]
    return TableModel(clone(model), *encoder).fit(frame, y, weight), y


@every_model
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
def test_every_honest_fit_is_verified(name, weight):
    model, y = fitted(name, weight)
    assert verify(model, FRAME, y, weight), str(verify(model, FRAME, y, weight))


@every_model
def test_saved_and_loaded_it_is_verified(name, tmp_path):
    model, y = fitted(name)
    save(model, tmp_path / "m.safetensors")
    assert verify(load(tmp_path / "m.safetensors"), FRAME, y)


def test_names_libraries_and_further_columns():
    columns, y = messy_columns()
    model = TableModel(Ridge()).fit(pd.DataFrame(columns | {"y": y}), "y")
    assert verify(model, pl.DataFrame(columns | {"y": y, "more": y}), "y")
    assert verify(model, FRAME, y)


def test_arrays():
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[3, 1] = np.nan
    model = TableModel(Ridge()).fit(X, X[:, 0])
    assert verify(model, X, X[:, 0])
    assert verify(model, X.tolist(), X[:, 0].tolist())


def test_rows_may_come_in_another_order_if_no_feature_looks_at_the_target():
    few = FRAME.drop(columns="city")
    model, y = fitted("ridge", frame=few)
    order = np.random.default_rng(1).permutation(200)
    assert verify(model, few.iloc[order], y[order])
    model, y = fitted("ridge")
    assert not verify(model, FRAME.iloc[order], y[order])


@every_model
def test_other_data_are_noticed(name):
    model, y = fitted(name)
    other = FRAME.assign(rooms=np.where(np.arange(200) == 17, 5 + FRAME["rooms"], FRAME["rooms"]))
    verdict = verify(model, other, y)
    assert not verdict and "the data are not those of the fit" in str(verdict)
    assert not verify(model, FRAME.iloc[1:], y[1:])
    assert not verify(model, FRAME.assign(kind="flat").assign(kind=FRAME["kind"].fillna("flat")), y)


def damage_mean(encoder):
    encoder.columns_[0]["mean"] += 1e-6


def damage_fill(encoder):
    encoder.columns_[0]["fill"] += 1e-3


def damage_target(encoder):
    encoder.columns_[4]["values"][2] *= 1.001


def damage_level(encoder):
    levels = encoder.columns_[3]["levels"]
    levels[0], levels[1] = levels[1], levels[0]


def damage_clock(encoder):
    encoder.columns_[5]["mean"] -= 1.0


@pytest.mark.parametrize("damage", [damage_mean, damage_fill, damage_target, damage_level, damage_clock])
@pytest.mark.parametrize("name", ["ridge", "softmax"])
def test_a_changed_encoder_is_noticed(damage, name):
    model, y = fitted(name)
    damage(model.encoder_)
    verdict = verify(model, FRAME, y)
    assert not verdict and "these rows give another encoder" in str(verdict)


def test_an_encoder_that_was_refitted_with_the_model_to_hide_a_change_is_noticed():
    """The model is optimal for its features, and the fingerprint is theirs; but the rows give other features."""
    model, y = fitted("ridge")
    damage_mean(model.encoder_)
    model.model_.fit(model.encoder_._encode(model.encoder_._open(FRAME), first_row=0), y)
    assert not verify(model, FRAME, y)


@pytest.mark.parametrize("name", ["ridge", "least squares", "logistic", "softmax"])
def test_a_changed_model_is_noticed(name):
    model, y = fitted(name)
    model.model_.coef_ = model.model_.coef_ * 1.01
    assert not verify(model, FRAME, y)


def test_what_cannot_be_checked_is_said():
    with pytest.raises(VerificationError, match="this TableModel has no certificate; call fit first"):
        verify(TableModel(Ridge()), FRAME, TARGET)
    with pytest.raises(VerificationError, match="proves nothing"):
        verify(TableModel(peer.Ridge()).fit(FRAME, TARGET), FRAME, TARGET)
    model, y = fitted("ridge")
    with pytest.raises(VerificationError, match=r"(?s)the data are not the table of the fit: .*now missing"):
        verify(model, FRAME.drop(columns="size"), y)
    with pytest.raises(VerificationError, match=r"the data are not the table of the fit: .*held numbers in the fit"):
        verify(model, FRAME.assign(size="a"), y)


def _several(classes):
    return np.column_stack([classes == 1, classes > 0]).astype(int)


@pytest.mark.parametrize("name", ["one vs rest", "several labels", "one vs one", "table"])
def test_a_change_of_any_fitted_array_is_noticed(name):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=60), [-0.5, 0.5])
    words = np.where(X[:, 1] > 0, "u", np.where(X[:, 1] > -1, "v", "w"))
    frame = pd.DataFrame({"a": np.where(X[:, 2] > 1, np.nan, X[:, 2]), "b": words, "c": X[:, 0]})
    model, data, target = {
        "one vs rest": (OneVsRestClassifier(LogisticRegression()), X, y),
        "several labels": (OneVsRestClassifier(LogisticRegression()), X, _several(y)),
        "one vs one": (OneVsOneClassifier(LogisticRegression()), X, y),
        "table": (TableModel(LogisticRegression()), frame, y),
    }[name]
    model.fit(data, target)
    assert verify(model, data, target)
    assert len(arrays_of(model)) > 5
    assert unnoticed(model, data, target) == []
