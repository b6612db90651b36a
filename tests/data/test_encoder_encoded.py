"""Messy tables beyond memory give the encoder, the features and the model of the table in memory."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from learnable.core.errors import DataError
from learnable.data import Files, TableEncoder
from learnable.data.encoder import encode_external
from learnable.linear import LogisticRegression, Ridge
from learnable.meta import TableModel

ROWS = 3000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "number": rng.standard_normal(ROWS),
            "few": rng.choice(["x", "y", "z"], ROWS),
            "many": rng.choice([f"k{code}" for code in range(60)], ROWS),
            "gaps": np.where(rng.random(ROWS) < 0.1, np.nan, rng.standard_normal(ROWS)),
            "truth": rng.random(ROWS) < 0.5,
            "weight": rng.integers(0, 3, ROWS).astype(float),
        }
    )
    frame["y"] = frame["number"] + 2.0 * (frame["few"] == "x") + frame["gaps"].fillna(0.5) + rng.standard_normal(ROWS)
    return frame


@pytest.fixture(scope="module")
def classes(table):
    frame = table.drop(columns="y")
    frame["label"] = np.where(table["y"] > 1.0, "high", np.where(table["y"] < -1.0, "low", "middle"))
    return frame


def written(frame, folder, cuts, suffix):
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), cuts)):
        part = frame.iloc[rows]
        path = folder / f"part-{number}.{suffix}"
        part.to_parquet(path) if suffix == "parquet" else part.to_csv(path, index=False)
    return Files(folder, in_memory_bytes=0)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("cuts", [1, 4])
@pytest.mark.parametrize("weight", [None, "weight"])
def test_files_give_the_model_of_the_table_in_memory(table, tmp_path, suffix, cuts, weight):
    frame = table if weight else table.drop(columns="weight")
    inside = TableModel(Ridge()).fit(frame, "y", weight)
    outside = TableModel(Ridge()).fit(written(frame, tmp_path, cuts, suffix), "y", weight)
    assert list(outside.encoder_.get_feature_names_out()) == list(inside.encoder_.get_feature_names_out())
    np.testing.assert_allclose(outside.model_.coef_, inside.model_.coef_, rtol=1e-10, atol=1e-10)
    assert outside.certificate_.kind == inside.certificate_.kind and outside.certificate_.holds
    assert outside.certificate_.fingerprint == inside.certificate_.fingerprint


def test_classes_are_found_before_the_encoder_sees_them(classes, tmp_path):
    inside = TableModel(LogisticRegression()).fit(classes, "label", "weight")
    outside = TableModel(LogisticRegression()).fit(written(classes, tmp_path, 3, "parquet"), "label", "weight")
    assert list(outside.classes_) == ["high", "low", "middle"]
    np.testing.assert_allclose(outside.model_.coef_, inside.model_.coef_, rtol=1e-10, atol=1e-10)
    assert outside.certificate_.fingerprint == inside.certificate_.fingerprint


@pytest.mark.filterwarnings("ignore:Dask currently has limited support")
def test_dask_gives_the_model_of_the_table_in_memory(table, classes):
    dd = pytest.importorskip("dask.dataframe")
    for model, frame, target in ((Ridge(), table, "y"), (LogisticRegression(), classes, "label")):
        inside = TableModel(clone(model)).fit(frame, target, "weight")
        outside = TableModel(clone(model)).fit(dd.from_pandas(frame, npartitions=4), target, "weight")
        np.testing.assert_allclose(outside.model_.coef_, inside.model_.coef_, rtol=1e-10, atol=1e-10)
        assert outside.certificate_.fingerprint == inside.certificate_.fingerprint


def test_the_target_must_be_a_name(table, tmp_path):
    files = written(table, tmp_path, 2, "parquet")
    with pytest.raises(DataError, match="must name a column"):
        encode_external("Owner", TableEncoder(), files, table["y"], None, classes=False)


def test_the_given_encoder_is_not_changed(table, tmp_path):
    encoder = TableEncoder(scale=False)
    fitted, *_ = encode_external("Owner", encoder, written(table, tmp_path, 2, "csv"), "y", None, classes=False)
    assert not hasattr(encoder, "columns_") and fitted.scale is False
