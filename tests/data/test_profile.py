"""What is said of a table."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.data.messy import messy_columns, messy_frame

from learnable.core import DataError
from learnable.data import profile
from learnable.data import profile as profile_function
from learnable.data.profile import is_id_name

FRAME, TARGET = messy_frame()


def kinds_of(found):
    return {column.name: column.kind for column in found.profile}


def warned(found, kind):
    return [warning for warning in found.warnings if warning["kind"] == kind]


def test_every_kind_is_found():
    found = profile(FRAME.assign(price=TARGET, row=np.arange(200)), "price")
    assert kinds_of(found) == {
        "size": "number", "rooms": "number", "new": "boolean", "kind": "category", "city": "category", "sold": "date",
        "note": "text", "country": "constant", "blank": "empty", "price": "number", "row": "identifier",
    }  # fmt: skip
    roles = {column.name: column.role for column in found.profile}
    assert [name for name, role in roles.items() if role == "dropped"] == ["country", "blank", "row"]
    assert roles["price"] == "target" and found.features == ["size", "rooms", "new", "kind", "city", "sold", "note"]
    assert (found.rows, found.columns, found.task) == (200, 11, "regression")


def test_numbers_are_those_of_pandas():
    found = profile(FRAME, None)
    for column in found.profile:
        assert column.missing == FRAME[column.name].isna().sum()
        assert column.distinct == FRAME[column.name].nunique()
    size = found.profile[0]
    described = FRAME["size"].describe()
    expected = [described["mean"], FRAME["size"].std(ddof=0), *described[["min", "25%", "50%", "75%", "max"]]]
    assert list(size.summary) == ["mean", "std", "min", "q25", "median", "q75", "max"]
    np.testing.assert_allclose(list(size.summary.values()), expected)
    assert sum(size.histogram["counts"]) == FRAME["size"].count()
    assert len(size.histogram["edges"]) == len(size.histogram["counts"]) + 1 <= 21
    assert dict(found.profile[3].top) == FRAME["kind"].value_counts().to_dict()
    assert [count for _, count in found.profile[4].top] == sorted(FRAME["city"].value_counts())[::-1][:10]
    assert found.task is None and found.classes is None


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table], ids=["polars", "arrow"])
def test_libraries_agree(make):
    columns, y = messy_columns()
    expected = profile(pd.DataFrame(columns).assign(y=y), "y").to_dict()
    assert profile(make(columns | {"y": y}), "y").to_dict() == expected


def test_it_is_json_without_nan():
    table = FRAME.assign(wild=np.where(np.arange(200) == 3, np.inf, np.arange(200)), price=TARGET)
    record = profile(table, "price").to_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert set(record) == {
        "rows", "columns", "target", "task", "task_reason", "classes", "class_counts", "duplicate_rows", "profile",
        "warnings",
    }  # fmt: skip


def test_duplicates_are_those_of_pandas():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "a": rng.integers(0, 4, 300),
            "b": rng.choice(["x", "y", None], 300),
            "c": rng.choice([0.0, -0.0, np.nan], 300),
        }
    )
    found = profile(table)
    assert found.duplicate_rows == table.duplicated().sum() > 0
    assert warned(found, "duplicates")
    assert profile(FRAME.assign(i=np.arange(200))).duplicate_rows == 0


def test_classes_are_counted():
    found = profile(pd.DataFrame({"x": np.arange(60.0), "y": ["b"] * 40 + ["a"] * 20}), "y")
    assert (found.task, found.classes, found.class_counts) == ("binary", ("a", "b"), (20, 40))
    found = profile(pd.DataFrame({"x": np.arange(60.0), "y": [3, 1, 2] * 20}), "y")
    assert (found.task, found.classes, found.class_counts) == ("multiclass", ("1", "2", "3"), (20, 20, 20))
    found = profile(pd.DataFrame({"x": np.arange(60.0), "y": [3, 1, 2] * 20}), "y", task="regression")
    assert (found.task, found.task_reason, found.classes) == ("regression", "as asked", None)


def test_groups_and_time_have_their_roles():
    found = profile(FRAME.assign(y=TARGET, id=np.arange(200)), "y", groups="id", time="sold")
    roles = {column.name: column.role for column in found.profile}
    assert (roles["id"], roles["sold"], roles["y"]) == ("group", "time", "target")
    assert not warned(found, "identifier")


N = 100
ORDER = np.random.default_rng(1).permutation(N)
IDENTIFIERS = {
    "row numbers": ("n", np.arange(N)),
    "row numbers, shuffled": ("n", ORDER + 1),
    "called an id": ("customer_id", ORDER * 7 + 1000),
    "strings": ("code", [f"A-{i:04d}" for i in range(N)]),
    "uuids": ("u", [f"{i:032x}" for i in range(N)]),
}
NO_IDENTIFIERS = {
    "years": ("year", np.arange(1900, 1900 + N)),
    "measurements": ("weight", np.random.default_rng(0).normal(size=N)),
    "counts": ("n", np.random.default_rng(0).integers(0, 50, N)),
    "names of people": ("name", [f"Ann{chr(97 + i % 26)} Smith{chr(97 + i // 26)}" for i in range(N)]),
    "sequences": ("dna", ["".join(np.random.default_rng(i).choice(list("ACGT"), 60)) for i in range(N)]),
    "few rows": ("id", np.arange(5)),
}


@pytest.mark.parametrize(("name", "values"), list(IDENTIFIERS.values()), ids=list(IDENTIFIERS))
def test_identifiers_are_left_out_with_a_warning(name, values):
    found = profile(pd.DataFrame({name: values, "x": np.sin(np.arange(len(values)))}))
    assert found.profile[0].kind == "identifier" and found.profile[0].role == "dropped"
    assert [warning["column"] for warning in warned(found, "identifier")] == [name]


@pytest.mark.parametrize(("name", "values"), list(NO_IDENTIFIERS.values()), ids=list(NO_IDENTIFIERS))
def test_other_columns_are_no_identifiers(name, values):
    found = profile(pd.DataFrame({name: values, "x": np.sin(np.arange(len(values)))}))
    assert found.profile[0].kind != "identifier" and found.profile[0].role == "feature"


@pytest.mark.parametrize("name", ["id", "ID", "userId", "user_id", "Unnamed: 0", "index", "order-id", "row", "UUID"])
def test_names_of_identifiers(name):
    assert is_id_name(name)


@pytest.mark.parametrize("name", ["humid", "width", "acid", "price", "monkey", "covid", "grow", "idea", "x"])
def test_other_names(name):
    assert not is_id_name(name)


def test_warnings_say_what_is_wrong():
    table = pd.DataFrame({"a": [1.0, None, None, None] * 10, "b": [7] * 40, "c": [None] * 40, "y": ["u"] * 39 + ["v"]})
    found = profile(table, "y")
    texts = {(warning["kind"], warning["column"]) for warning in found.warnings}
    assert {("missing", "a"), ("constant", None), ("duplicates", None), ("imbalance", None)} <= texts
    assert "75 %" in warned(found, "missing")[0]["text"]
    assert [w["text"] for w in warned(found, "constant")] == [
        "1 column has one value in every row: 'b'.", "1 column has no value in any row: 'c'.",
    ]  # fmt: skip
    found = profile(pd.DataFrame({"x": [1.0, 2.0], "y": [None, 2.5]}), "y")
    assert [w["kind"] for w in found.warnings] == ["missing", "size"]
    wide = profile(pd.DataFrame(np.random.default_rng(0).normal(size=(40, 50)), columns=[f"c{j}" for j in range(50)]))
    assert [w["kind"] for w in wide.warnings] == ["size"]


def test_one_class_and_no_class():
    assert (
        "one class only"
        in warned(profile(pd.DataFrame({"x": range(40), "y": ["a"] * 40}), "y"), "imbalance")[-1]["text"]
    )
    found = profile(pd.DataFrame({"x": range(40), "y": [None] * 40}), "y")
    assert found.task is None and found.task_reason == "every target is missing"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"a": []}), r"0 sample\(s\)"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "Rename the columns"),
        (pd.DataFrame([[1, 2]], columns=["1", 1]), "two columns are called '1'"),
        (pl.DataFrame({"a": [[1], [2]]}), "column 'a' is of type List"),
    ],
)
def test_tables_that_cannot_be_read_are_refused(table, message):
    with pytest.raises(DataError, match=f"profile: .*{message}"):
        profile(table)


def test_a_target_that_is_not_there_is_refused():
    with pytest.raises(DataError, match=r"profile: there is no column 'z'\. Name one of these: 'size', 'rooms'"):
        profile(FRAME, "z")


def test_files_are_read(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,\n")
    assert [(c.kind, c.missing) for c in profile(tmp_path / "t.csv").profile] == [("number", 0), ("category", 1)]


def test_one_row_and_arrays():
    assert profile([[1.0, "a"]]).rows == 1
    assert [column.name for column in profile(np.eye(3)).profile] == ["x0", "x1", "x2"]


def test_long_tables_are_sampled_by_row_number(monkeypatch):
    module = __import__("learnable.data.profile", fromlist=["profile"])
    monkeypatch.setattr(module, "SAMPLE_ROWS", 64)
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    found = profile_function(pd.DataFrame({"x": x, "y": x**3 + rng.normal(size=500)}), "y")
    sample = x[::8]
    assert found.profile[0].distinct == len(sample)
    assert found.profile[0].summary["median"] == np.median(sample)
    assert found.profile[0].summary["max"] == x.max()


def test_extreme_numbers_have_a_summary():
    found = profile(pd.DataFrame({"x": [-1.7e308, 1.7e308, 0.0], "t": [5e-324, 1e-323, 0.0]}))
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.profile[0].summary["max"] == 1.7e308
    wild = np.where(np.arange(100) % 2, 1.7e308, -1.7e308) / np.arange(1, 101)
    for target in (wild[::-1], np.arange(100) % 2):
        table = pd.DataFrame({"x": wild, "z": np.arange(100) % 7, "y": target})
        json.dumps(profile(table, "y").to_dict(), allow_nan=False)
