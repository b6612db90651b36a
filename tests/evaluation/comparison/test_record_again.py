"""The Python lines of a record run, and compare the same way again."""

import pyarrow.csv
import pytest
from tests.evaluation.comparison.tables import numbers

from learnable.evaluation import compare
from learnable.evaluation.comparison.record import python_lines


def test_the_lines_of_a_comparison_give_the_same_scores(tmp_path):
    path = str(tmp_path / "it's a table.csv")
    pyarrow.csv.write_csv(numbers(), path)
    record = compare(path, "y", models=["Ridge"], folds=3, seed=5, drop=["kind"])
    assert "folds=3, seed=5, drop=['kind']" in record["python"] and "copies" not in record["python"]
    names = {}
    exec(record["python"], names)
    again = names["record"]
    assert [row["scores"] for row in again["leaderboard"]] == [row["scores"] for row in record["leaderboard"]]
    details = record["details"][record["winner"]["name"]]
    assert details["effects"][0]["name"] == "x" and details["worst"]["rows"][0]["row"] >= 1
    assert details["slices"] is None or details["slices"]["what"] == "mean absolute error"
    assert [row["short"] for row in record["leaderboard"]][:1] == [
        record["leaderboard"][0]["name"].replace(" (", " ")[:-1]
    ]


@pytest.mark.parametrize(
    ("source", "reading", "expected"),
    [
        ("demo:houses", {}, "table = load_table('demo:houses')"),
        ("a.csv", {"delimiter": ";", "encoding": None}, "table = load_table('a.csv', delimiter=';')"),
        (None, None, "# table: the dataframe that was compared"),
    ],
)
def test_tables_that_compare_does_not_read_itself(source, reading, expected):
    lines = python_lines(source, "y", {}, reading)
    assert expected in lines and lines.endswith("record = compare(table, 'y', seed=0)")
    compile(lines, "lines", "exec")


def test_models_that_were_objects_are_told():
    lines = python_lines("a.csv", "y", {"models": ["Ridge", object()]})
    assert "1 estimator(s) that were given as objects" in lines and "models=['Ridge']" in lines
