import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import COMMAND
from tests.evaluation.comparison.tables import classes, numbers

import learnable as ln
from learnable.cli.predict import predictions
from learnable.evaluation import predictions as module


@pytest.fixture
def intervals(learnable):
    assert learnable("fit", "numbers.csv", "-t", "y", "-m", "Ridge", "-o", "n.safetensors")[0] == 0
    return ln.load("n.safetensors")


@pytest.fixture
def probabilities(learnable):
    assert learnable("fit", "classes.csv", "-t", "label", "-m", "LogisticRegression", "-o", "c.safetensors")[0] == 0
    return ln.load("c.safetensors")


def test_numbers_come_with_intervals_in_the_order_of_the_rows(learnable, intervals):
    code, _, _ = learnable("predict", "n.safetensors", "numbers.csv", "-o", "p.csv", "--level", "0.8")
    found, table = pyarrow.csv.read_csv("p.csv"), pyarrow.csv.read_csv("numbers.csv")
    assert code == 0 and found.column_names == ["prediction", "lower", "upper"]
    lower, upper = intervals.predict_interval(table, 0.8)
    assert np.allclose(found["prediction"], intervals.predict(table), rtol=1e-12)
    assert np.allclose(found["lower"], lower, rtol=1e-12) and np.allclose(found["upper"], upper, rtol=1e-12)


def test_classes_come_with_probabilities(learnable, probabilities):
    code, _, _ = learnable("predict", "c.safetensors", "classes.csv", "-o", "p.parquet", "--append")
    found = pq.read_table("p.parquet")
    assert code == 0 and found.column_names == ["u", "v", "label", "prediction", "p(one)", "p(two)"]
    assert np.allclose(np.add(found["p(one)"], found["p(two)"]), 1.0)
    assert found["prediction"].to_pylist() == probabilities.predict(classes(k=2)).tolist()


def test_pieces_give_the_same_as_the_whole(intervals, monkeypatch):
    whole = pa.concat_tables(predictions(intervals, numbers()))
    monkeypatch.setattr(module, "_ROWS", 7)
    pieces = pa.concat_tables(predictions(intervals, numbers()))
    for name in whole.column_names:
        assert np.allclose(pieces[name], whole[name], rtol=1e-13)


def test_columns_may_be_reordered_extra_or_unseen_but_not_missing(learnable, intervals):
    table = numbers().select(["kind", "x"]).append_column("more", pa.array(range(240)))
    table = table.set_column(0, "kind", pa.array(["never seen"] * 240))
    pyarrow.csv.write_csv(table, "other.csv")
    assert learnable("predict", "n.safetensors", "other.csv")[0] == 0
    pyarrow.csv.write_csv(table.select(["kind"]), "short.csv")
    code, _, err = learnable("predict", "n.safetensors", "short.csv")
    assert code == 1 and "lacks 'x'" in err


def test_a_level_without_intervals_and_a_column_twice_are_refused(learnable, probabilities):
    assert "no intervals" in learnable("predict", "c.safetensors", "classes.csv", "--level", "0.5")[2]
    table = classes(k=2).append_column("prediction", pa.array([0] * 240))
    pyarrow.csv.write_csv(table, "again.csv")
    assert "already has" in learnable("predict", "c.safetensors", "again.csv", "--append")[2]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(folder, learnable, probabilities):
    (folder / "p.csv").write_text("old")
    table = classes(k=2).append_column("prediction", pa.array([0] * 240))
    pyarrow.csv.write_csv(table, "again.csv")
    assert learnable("predict", "c.safetensors", "again.csv", "--append", "-o", "p.csv")[0] == 1
    assert (folder / "p.csv").read_text() == "old" and not list(folder.glob(".*"))


@pytest.mark.long
def test_a_reader_that_leaves_early_is_no_error(folder, intervals):
    pq.write_table(pa.concat_tables([numbers()] * 2000), "long.parquet")
    command = " ".join([*COMMAND, "predict n.safetensors long.parquet"])
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -2; echo ${{PIPESTATUS[0]}}"], capture_output=True, text=True, cwd=folder
    )
    assert done.stderr == "" and done.stdout.splitlines()[-1] == "0" and len(done.stdout.splitlines()) == 3


def test_a_bare_model_without_a_table_around_it_predicts_too(learnable):
    X = np.column_stack([np.arange(10.0), np.arange(10.0) ** 2])
    ln.save(ln.LinearRegression().fit(X, X @ [1.0, 2.0] + 1e-3 * np.sin(X[:, 0])), "bare.safetensors")
    pyarrow.csv.write_csv(pa.table({"a": X[:, 0], "b": X[:, 1]}), "bare.csv")
    code, out, _ = learnable("predict", "bare.safetensors", "bare.csv")
    assert code == 0 and out.splitlines()[0] == '"prediction","lower","upper"' and len(out.splitlines()) == 11


def test_infinity_is_named_by_its_row_and_a_file_that_is_replaced_is_told(folder, learnable):
    assert learnable("fit", "numbers.csv", "-t", "y", "-m", "Ridge", "--intervals", "none")[0] == 0
    asked = ("predict", "model.safetensors", "numbers.csv", "-o", "p.csv")
    assert learnable(*asked)[1] == ""
    code, out, _ = learnable(*asked)
    assert code == 0 and out == "note: p.csv was there already and is replaced\n"
    rows = (folder / "numbers.csv").read_text().splitlines()
    cells = rows[40].split(",")
    rows[40] = ",".join(["inf", *cells[1:]])
    (folder / "endless.csv").write_text("\n".join(rows) + "\n")
    code, _, err = learnable("predict", "model.safetensors", "endless.csv")
    assert code == 1 and "column 'x' holds inf in row 40 " in err
    code, _, err = learnable("fit", "endless.csv", "-t", "y", "-m", "Ridge")
    assert code == 1 and "fit: column 'x' holds inf in row 40 " in err
    for output in ("numbers.csv", "model.safetensors"):
        assert learnable("predict", "model.safetensors", "numbers.csv", "-o", output)[0] == 2
