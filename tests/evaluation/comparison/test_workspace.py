from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from tests.evaluation.comparison.tables import numbers

import learnable as ln
from learnable.core.errors import DataError
from learnable.data.encoder import TableEncoder
from learnable.evaluation import compare
from learnable.evaluation.comparison.race import remove_all, temporary_folder
from learnable.evaluation.comparison.workspace import (
    encode_splits,
    keep_fitted,
    read_names,
    read_split,
    take_fitted,
    write_problem,
)


@pytest.mark.threaded
def test_a_fitted_model_is_left_for_a_later_job(tmp_path):
    name = "Ridge (alpha=1) / ../odd"
    assert take_fitted(tmp_path, name) is None
    keep_fitted(tmp_path, name, {"coef": [1.0]})
    assert take_fitted(tmp_path, name) == {"coef": [1.0]}
    assert take_fitted(tmp_path, "another") is None
    keep_fitted(tmp_path, "local", lambda: 0)  # cannot travel
    assert take_fitted(tmp_path, "local") is None
    for file in tmp_path.iterdir():
        file.write_bytes(b"half")
    assert take_fitted(tmp_path, name) is None


def prepared(folder, table, y, split):
    write_problem(folder, table, y, {"final": split})
    messages = []
    encode_splits(messages.append, str(folder), ["final"], "regression")
    assert messages[0]["split"] == "final"
    return read_split(folder, "final")


@pytest.mark.parametrize("wide", [False, True])
def test_a_split_comes_back_as_the_encoder_made_it(wide, tmp_path):
    """Law: the numbers on disk are those of an encoder that saw the training rows alone, dense or sparse."""
    table = numbers(120)
    y = table["y"].to_numpy()
    table = table.drop_columns(["y"])
    if wide:
        words = [f"some words {i} and {i * 7 % 13}" for i in range(120)]
        table = table.append_column("text", pa.array(words))
    train, test = np.arange(0, 120, 2), np.arange(1, 120, 2)
    data = prepared(tmp_path, table, y, (train, test))
    encoder = TableEncoder(task="regression")
    expected = encoder.fit_transform(table.take(train), y[train])
    assert sp.issparse(data.X_train) == sp.issparse(expected) == wide
    for found, wanted in ((data.X_train, expected), (data.X_test, encoder.transform(table.take(test)))):
        assert (abs(found - wanted)).max() == 0
    assert np.array_equal(data.y_train, y[train]) and np.array_equal(data.y_test, y[test])
    names, sources = read_names(tmp_path, "final")
    assert len(names) == len(sources) == data.X_train.shape[1] and set(sources) <= set(table.column_names)


def test_a_model_may_scribble_on_its_rows_without_changing_the_file(tmp_path):
    table = numbers(40)
    data = prepared(tmp_path, table.select(["x"]), table["y"].to_numpy(), (np.arange(30), np.arange(30, 40)))
    before = data.X_train.copy()
    data.X_train[:] = 7.0
    assert np.array_equal(read_split(tmp_path, "final").X_train, before)


def test_a_folder_is_removed_after_an_error_too():
    inside = ExitStack()
    folder = inside.enter_context(temporary_folder())
    (folder / "file").write_text("x")
    with pytest.raises(ZeroDivisionError), inside:
        raise ZeroDivisionError
    assert not folder.exists()
    with temporary_folder() as folder:
        remove_all()
        assert not folder.exists()


def test_a_full_disk_is_said(tmp_path):
    with pytest.raises(DataError, match="temporary files"):
        write_problem(tmp_path / "nowhere", numbers(), np.zeros(240), {})


def test_no_model_fails_for_the_shape_that_text_gives_the_table(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=240)
    words = np.array([["good", "fine", "nice"], ["bad", "poor", "sad"]])
    text = [" ".join([*rng.choice(words[k], 2), *(f"w{j}" for j in rng.integers(300, size=6))]) for k in y]
    table = pa.table({"text": text, "x": rng.normal(size=240), "y": np.array(["no", "yes"])[y]})
    models = ["GaussianNB", "LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis", "KNeighborsClassifier"]
    file = tmp_path / "model.safetensors"
    record = compare(table, "y", models=[*models, "LogisticRegression"], model_file=file, tune=False)
    assert {row["status"] for row in record["leaderboard"]} == {"ok"}
    best = {row["model"]: row["mean"] for row in reversed(record["leaderboard"])}
    assert min(best[name] for name in (*models, "LogisticRegression")) > 0.6
    model = ln.load(file)
    assert ln.verify(model, table.drop_columns(["y"]), np.array(table["y"].to_pylist()))
