"""JSON and Excel files are tables like any other: the same rows in memory and in batches, clear words for the rest."""

import gzip
import json

import numpy as np
import pytest

from learnable import Ridge
from learnable.core.errors import DataError
from learnable.data.files import Files, read_table

openpyxl = pytest.importorskip("openpyxl", reason="Excel files need openpyxl")

ROWS = [
    {"name": "Ada", "age": 36, "height": 1.65, "member": True},
    {"name": "Kurt", "age": None, "height": 2, "member": False},
    {"name": "?", "age": 41, "height": 1.8, "member": True},
]
EXPECTED = {
    "name": ["Ada", "Kurt", None],
    "age": [36, None, 41],
    "height": [1.65, 2.0, 1.8],
    "member": [True, False, True],
}


def write_records(path):
    path.write_text(json.dumps(ROWS), encoding="utf-8")


def write_lines(path):
    path.write_text("\n".join(json.dumps(row) for row in ROWS) + "\n\n", encoding="utf-8")


def write_compressed(path):
    path.write_bytes(gzip.compress("\n".join(json.dumps(row) for row in ROWS).encode()))


def write_wrapped(path):
    path.write_text(json.dumps({"data": ROWS}), encoding="utf-8")


def write_sheet(path):
    book = openpyxl.Workbook()
    sheet = book.create_sheet("second")  # the first one stays empty
    sheet.append(list(ROWS[0]))
    for row in ROWS:
        sheet.append(list(row.values()))
    book.save(path)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("table.json", write_records),
        ("table.jsonl", write_lines),
        ("table.ndjson.gz", write_compressed),
        ("answer.json", write_wrapped),
        ("table.xlsx", write_sheet),
    ],
)
def test_every_kind_of_file_gives_the_same_table(tmp_path, name, write):
    write(tmp_path / name)
    assert read_table(tmp_path / name).to_pydict() == EXPECTED
    streamed = Files(tmp_path / name, in_memory_bytes=0)
    rows = [row for batch in streamed.batches(["age", "height"], rows=2) for row in batch.rows.to_pylist()]
    assert rows == [{key: row[key] for key in ("age", "height")} for row in ROWS]


def test_records_may_lack_values(tmp_path):
    path = tmp_path / "gaps.jsonl"
    path.write_text('{"a": 1}\n{"b": 2.5}\n', encoding="utf-8")
    assert read_table(path).to_pydict() == {"a": [1, None], "b": [None, 2.5]}


def test_dates_of_a_sheet_are_dates(tmp_path):
    import datetime

    book = openpyxl.Workbook()
    for row in (["day"], [datetime.datetime(2024, 2, 29)], [datetime.date(2024, 3, 1)]):
        book.active.append(row)
    book.save(tmp_path / "days.xlsx")
    days = read_table(tmp_path / "days.xlsx").to_pydict()["day"]
    assert [day.date() for day in days] == [datetime.date(2024, 2, 29), datetime.date(2024, 3, 1)]


def test_a_model_fits_from_json_as_from_memory(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = X @ [1.0, -2.0]
    records = [{"a": a, "b": b, "y": target} for (a, b), target in zip(X.tolist(), y.tolist(), strict=True)]
    (tmp_path / "rows.json").write_text(json.dumps(records), encoding="utf-8")
    from_file = Ridge().fit(str(tmp_path / "rows.json"), "y")
    np.testing.assert_array_equal(from_file.coef_, Ridge().fit(X, y).coef_)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.json", "[]", "holds no records"),
        ("a.json", "[1, 2]", "record 1 is 1, no object"),
        ("a.json", '[{"a": 1},\n {"a": }]', r"a.json, line 2: Expecting value"),
        ("a.jsonl", '{"a": 1}\n{"a": 2', r"a.jsonl, line 2: Expecting ',' delimiter"),
        ("a.jsonl", '{"a": [1, 2]}', "the cell of 'a' in record 1 is a list"),
        ("a.jsonl", '{"a": {"b": 1}}', "the cell of 'a' in record 1 is an object"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.xlsx", "no zip file", "no sound Excel workbook"),
    ],
)
def test_what_is_no_table_is_refused_with_its_place(tmp_path, name, text, words):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=words):
        read_table(tmp_path / name)


def test_bytes_that_are_no_utf_8_are_placed(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"a": 1}\n{"a": "\xff"}')
    with pytest.raises(DataError, match=r"a.jsonl, line 2: JSON files must be encoded in UTF-8"):
        read_table(tmp_path / "a.jsonl")


def test_an_empty_workbook_and_repeated_names_are_refused(tmp_path):
    book = openpyxl.Workbook()
    book.save(tmp_path / "empty.xlsx")
    with pytest.raises(DataError, match="no sheet has a row of names"):
        read_table(tmp_path / "empty.xlsx")
    for row in (["a", "a"], [1, 2]):
        book.active.append(row)
    book.save(tmp_path / "twice.xlsx")
    with pytest.raises(DataError, match="column name 'a' occurs more than once"):
        read_table(tmp_path / "twice.xlsx")


def test_a_minus_is_missing_unless_it_is_a_sign(tmp_path):
    (tmp_path / "gaps.csv").write_text("a,b\n1,x\n-,-\nn/a,y\n", encoding="utf-8")
    assert read_table(tmp_path / "gaps.csv").to_pydict() == {"a": [1, None, None], "b": ["x", None, "y"]}
    (tmp_path / "signs.csv").write_text("a,b\n1,+\n2,-\n", encoding="utf-8")
    assert read_table(tmp_path / "signs.csv").to_pydict() == {"a": [1, 2], "b": ["+", "-"]}
