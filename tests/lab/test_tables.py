"""Tables of one's own: what is taken from them, in which kinds they come, and what is said when they do not suit."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from learnable.core.errors import DataError
from learnable.lab.tables import MOST_ROWS, columns_of, labelled_points, points

ROWS = {"name": ["u", "v", "u", "v", "u"], "a": [1, 2, 3, 4, 5], "same": [7] * 5, "b": [2.0, 1.0, 0.5, 3.0, 4.0]}


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame], ids=["dict", "pandas", "polars"])
def test_the_first_columns_that_differ_are_taken(kind):
    X, names = points("test", kind(ROWS))
    assert names == ["a", "b"] and X[:, 1].tolist() == ROWS["b"]
    X, y, names = labelled_points("test", kind(ROWS))
    assert names == ["a", "b"] and y.tolist() == ROWS["name"]


def test_of_more_than_two_classes_the_most_frequent_two_are_kept():
    rows = {"x": range(9), "y": [3, 1, 4, 1, 5, 9, 2, 6, 5], "kind": list("abbbcccca")}
    X, y, _ = labelled_points("test", rows, two=True)
    assert sorted(set(y)) == ["b", "c"] and len(X) == 7
    X, y, _ = labelled_points("test", rows)
    assert len(set(y)) == 3 and len(X) == 9


def test_a_column_of_two_classes_comes_first_where_two_are_needed():
    rows = {"x": range(6), "y": [3, 1, 4, 1, 5, 9], "two": list("ababab"), "three": list("abcabc")}
    assert labelled_points("test", rows, two=True)[1].tolist() == rows["two"]
    assert labelled_points("test", rows)[1].tolist() == rows["three"]


def test_a_file_and_an_array(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n1,2\n2,4\n3,1\n4,0\n", encoding="utf-8")
    assert points("test", str(path))[0].tolist() == [[1, 2], [2, 4], [3, 1], [4, 0]]
    assert points("test", np.arange(10.0).reshape(5, 2))[1] == ["x1", "x2"]


def test_long_tables_are_thinned_evenly():
    X, _ = points("test", np.arange(4000.0).reshape(2000, 2))
    assert len(X) == MOST_ROWS and X[0, 0] == 0.0 and X[-1, 0] == 3998.0


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"a": [1, 2, 3, 4], "b": [1, np.nan, 2, 3]}, "2 columns of numbers that differ, without gaps; it holds 1"),
        ({"a": [1, 2], "b": [2, 1]}, "at least 4 rows; it has 2"),
        ({"a": [1, 2], "b": [2]}, "of one length"),
        (np.zeros((2, 2, 2)), "got 3 dimensions"),
        ([[1, 2], [3]], "of one length"),
        (3.0, "got float"),
    ],
)
def test_what_does_not_suit_is_named(table, said):
    with pytest.raises(DataError, match=said):
        points("test", table)


def test_names_of_columns_are_text():
    assert list(columns_of("test", {1: [1.0], None: [2.0]})) == ["1", "None"]
