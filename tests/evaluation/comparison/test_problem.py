import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.evaluation.comparison.tables import classes, numbers

from learnable.core.errors import DataError, DataTypeError, ParameterError
from learnable.evaluation.comparison.problem import read_problem


def read(table, target="y", **options):
    return read_problem("compare", table, target, **options)


def with_column(table, name, values):
    return table.append_column(name, pa.array(values))


def test_any_frame_or_path_gives_the_same_problem(tmp_path):
    table = numbers()
    path = tmp_path / "table.parquet"
    import pyarrow.parquet as pq

    pq.write_table(table, path)
    problems = [read(data) for data in (table, table.to_pandas(), pl.from_arrow(table), str(path), path)]
    for problem in problems:
        assert np.array_equal(problem.y, problems[0].y) and problem.task == "regression"
        assert problem.features.column_names == ["x", "kind"]


def test_rows_without_a_target_are_left_out_and_said():
    values = [None, " ", "", *["no", "yes"] * 10]
    problem = read(pa.table({"x": np.random.default_rng(0).normal(size=23), "y": values}))
    assert len(problem.y) == 20 and "3 rows" in problem.notes[0]
    assert problem.data["warnings"][0]["kind"] == "missing"
    number = read(pa.table({"x": np.random.default_rng(0).normal(size=23), "y": [np.nan, None, *np.arange(21) / 7]}))
    assert len(number.y) == 21


def test_labels_come_back_as_they_were():
    problem = read(classes(), "label")
    assert problem.targets.tolist() == classes()["label"].to_pylist()
    for values in ([3, 1, 2] * 10, [True, False] * 15, pa.array(["b", "a"] * 15).dictionary_encode()):
        table = pa.table({"x": np.random.default_rng(0).normal(size=30), "y": values})
        problem = read(table, task="classification")
        assert problem.targets.tolist() == table["y"].to_pylist()
        assert problem.labels.tolist() == sorted(problem.labels.tolist())


def test_the_task_can_be_said():
    table = pa.table({"x": np.random.default_rng(0).normal(size=40), "y": [1, 2, 3, 4] * 10})
    assert read(table).task == "multiclass" and read(table, task="regression").task == "regression"
    with pytest.raises(ParameterError, match="task"):
        read(table, task="clustering")


def test_identifiers_and_constants_are_left_out_unless_kept():
    table = with_column(with_column(numbers(), "id", np.arange(240)), "same", ["s"] * 240)
    problem = read(table)
    assert problem.features.column_names == ["x", "kind"] and "'id'" in problem.notes[0]
    assert read(table, keep=["id"]).features.column_names == ["x", "kind", "id"]
    assert read(table, drop=["x"]).features.column_names == ["kind"]


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (numbers(), {"target": "Y"}, "did you mean 'y'"),
        (numbers(), {"target": "z" * 9}, "its columns are 'x', 'kind', 'y'"),
        (numbers(9), {}, "at least 10"),
        (numbers(0), {}, "no rows"),
        (numbers().select(["y"]), {}, "no column to learn from"),
        (pa.table({"x": pa.nulls(20), "y": np.arange(20) / 3}), {}, "no column to learn from"),
        (pa.table({"x": np.arange(20) % 7, "y": ["one"] * 20}), {}, "one class only, 'one'"),
        (pa.table({"x": np.arange(20) % 7, "y": [1.5] * 20}), {"task": "regression"}, "nothing to predict"),
        (pa.table([np.arange(20), np.arange(20)], names=["y", "y"]), {}, "more than once"),
        (
            pa.table({"x": np.arange(20) % 7, "y": [np.inf, *np.arange(19) / 3]}),
            {"task": "regression"},
            "holds inf in row 1 ",
        ),
        (pa.table({"x": np.arange(20) % 7, "y": [f"text {i}" for i in range(20)]}), {}, "too many for classes"),
        (numbers(), {"groups": "nobody"}, r"no column 'nobody' \(groups\)"),
        (with_column(numbers(), "g", [None, *range(239)]), {"groups": "g"}, "missing in 1 of them"),
    ],
)
def test_tables_that_cannot_be_learned_from(table, options, message):
    with pytest.raises(DataError, match=message):
        read(table, **options)


def test_dates_that_order_the_rows_are_learned_from_unless_they_are_dropped():
    days = ["2024-01-02", "2024-01-01", "2024-01-03"] * 4
    table = pa.table({"day": days, "t": range(12), "x": np.arange(12.0) ** 2 % 7, "y": np.arange(12.0)})
    found = read_problem("compare", table, "y", time="day")
    assert found.features.column_names == ["t", "x", "day"] and found.readings == {"day": "year-month-day"}
    assert any("learned from (not with --drop day)" in note for note in found.notes)
    dropped = read_problem("compare", table, "y", time="day", drop=["day"])
    assert dropped.features.column_names == ["t", "x"] and "which is not learned from" in " ".join(dropped.notes)
    assert (dropped.times == found.times).all()
    as_text = read_problem("compare", table, "y", time="day", kinds={"day": "text"})
    numbered = read_problem("compare", table, "y", time="t")
    assert "day" not in as_text.features.column_names and "t" not in numbered.features.column_names


def test_contradictions_are_refused():
    twice = {"groups": "kind", "time": "kind"}
    for options in (twice, {"groups": "y"}, {"drop": ["y"]}, {"drop": ["x"], "keep": ["x"]}):
        with pytest.raises(ParameterError):
            read(numbers(), **options)
    with pytest.raises(DataTypeError, match="must be a path"):
        read(42)
    with pytest.raises(DataTypeError, match="not a number"):
        read(classes(), "label", task="regression")


def test_a_frame_with_two_columns_of_one_name_is_refused():
    frame = pd.DataFrame(np.ones((20, 3)), columns=["a", "a", "y"])
    with pytest.raises(DataError, match="Rename"):
        read(frame)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_infinity_is_reported_with_its_row_in_the_table_as_read(value, dtype):
    """Rows without a target are left out before, and the rest is shuffled into folds after: the row stays that read."""
    x = np.arange(40, dtype=dtype)
    x[[33, 35]] = value
    y = [None if k % 4 == 0 else k / 3 for k in range(40)]
    with pytest.raises(DataError, match=f"column 'x' holds {value:g} in row 34 .* and in 1 more"):
        read(pa.table({"x": x, "y": y}))
    problem = read(pa.table({"x": np.arange(40.0) ** 2, "y": y, "unused": np.where(np.arange(40) == 3, value, 1.0)}),
                   drop=["unused"])  # fmt: skip
    assert problem.places[:4].tolist() == [1, 2, 3, 5] and len(problem.y) == 30


def test_the_record_has_the_first_rows_and_correlations():
    data = read(numbers()).data
    assert len(data["preview"]["rows"]) == 5 and data["preview"]["columns"] == ["x", "kind", "y"]
    assert [line["name"] for line in data["correlations"]["with_target"]] == ["x"]
