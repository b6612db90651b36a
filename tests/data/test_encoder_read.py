"""Columns of every library and type are read alike; what has no encoding is refused by name."""

import datetime as dt
import decimal

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from learnable.core import DataTypeError
from learnable.data import encoder_read
from learnable.data.encoder_read import column_type, is_missing, read_labels, read_numbers

DAY = dt.datetime(2021, 3, 4)
HALF = decimal.Decimal("1.5")


def series(native):
    return nw.from_native(native, series_only=True, allow_series=True)


def object_array(*values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


NUMBERS = {
    "pandas int": pd.Series([1, 2]),
    "pandas Int64": pd.Series([1, None], dtype="Int64"),
    "pandas Float64": pd.Series([1.5, None], dtype="Float64"),
    "pandas arrow": pd.Series([1, None], dtype="int64[pyarrow]"),
    "pandas object": pd.Series([1, None, HALF], dtype=object),
    "polars int": pl.Series([1, None]),
    "polars decimal": pl.Series([HALF, None]),
    "polars u8": pl.Series([1, 200], dtype=pl.UInt8),
    "arrow decimal": pa.chunked_array([[HALF, None]]),
    "arrow half": pa.chunked_array([pa.array([1, None], type=pa.float16())]),
    "arrow chunks": pa.chunked_array([[1], [None]], type=pa.int64()),
    "array": np.array([1, 2], dtype=np.int16),
    "objects": object_array(1, None, 2.5, float("nan"), True),
}
BOOLEANS = {
    "pandas": pd.Series([True, False]),
    "pandas boolean": pd.Series([True, None], dtype="boolean"),
    "pandas object": pd.Series([True, None], dtype=object),
    "polars": pl.Series([True, None]),
    "arrow": pa.chunked_array([[True, None]]),
    "array": np.array([True, False]),
}
TEXTS = {
    "pandas str": pd.Series(["a", None]),
    "pandas object": pd.Series(["a", None, np.nan], dtype=object),
    "pandas string": pd.Series(["a", None], dtype="string"),
    "pandas category": pd.Series(["a", None], dtype="category"),
    "polars": pl.Series(["a", None]),
    "polars categorical": pl.Series(["a", None], dtype=pl.Categorical),
    "polars enum": pl.Series(["a", None], dtype=pl.Enum(["b", "a"])),
    "arrow": pa.chunked_array([["a", None]]),
    "arrow dictionary": pa.chunked_array([pa.array(["a", None]).dictionary_encode()]),
    "arrow two dictionaries": pa.chunked_array(
        [pa.array(["b", "a"]).dictionary_encode()[1:], pa.array([None, "a"]).dictionary_encode()[:1]]
    ),
    "arrow large": pa.chunked_array([pa.array(["a", None], type=pa.large_string())]),
    "arrow view": pa.chunked_array([pa.array(["a", None], type=pa.string_view())]),
    "array": np.array(["a"]),
    "objects": object_array("a", None, float("nan"), pd.NA, pd.NaT),
}
DATES = {
    "pandas": pd.Series(pd.to_datetime([DAY, None])),
    "pandas ns": pd.Series(pd.to_datetime([DAY, None])).astype("datetime64[ns]"),
    "pandas zone": pd.Series(pd.to_datetime([DAY, None]).tz_localize("America/New_York")),
    "pandas object": pd.Series([DAY, None, DAY.date()], dtype=object),
    "pandas arrow": pd.Series([DAY.date(), None], dtype=pd.ArrowDtype(pa.date32())),
    "polars date": pl.Series([DAY.date(), None]),
    "polars datetime": pl.Series([DAY, None]),
    "polars zone": pl.Series([DAY, None]).dt.replace_time_zone("Asia/Tokyo"),
    "polars ms": pl.Series([DAY, None], dtype=pl.Datetime("ms")),
    "arrow date": pa.chunked_array([[DAY.date(), None]]),
    "arrow date64": pa.chunked_array([pa.array([DAY.date(), None], type=pa.date64())]),
    "arrow s": pa.chunked_array([pa.array([DAY, None], type=pa.timestamp("s"))]),
    "array": np.array([DAY, "NaT"], dtype="datetime64[s]"),
    "objects": object_array(DAY, None, pd.NaT, np.datetime64(DAY), pd.Timestamp(DAY)),
}
DURATIONS = {
    "pandas": pd.Series(pd.to_timedelta([90, None], unit="s")),
    "polars": pl.Series([dt.timedelta(seconds=90), None]),
    "polars time": pl.Series([dt.time(0, 1, 30), None]),
    "arrow": pa.chunked_array([[dt.timedelta(seconds=90), None]]),
    "arrow time": pa.chunked_array([[dt.time(0, 1, 30), None]]),
    "array": np.array([90, "NaT"], dtype="timedelta64[s]"),
    "objects": object_array(dt.timedelta(seconds=90), None, dt.time(0, 1, 30), np.timedelta64(90, "s")),
}
EMPTY = {
    "pandas object": np.array([None, np.nan], dtype=object),
    "polars null": pl.Series([None, None]),
    "arrow null": pa.chunked_array([pa.nulls(2)]),
}


def as_column(value):
    return value if isinstance(value, np.ndarray) else series(value)


def cases(table):
    return pytest.mark.parametrize("column", [as_column(value) for value in table.values()], ids=list(table))


@cases(NUMBERS)
def test_numbers(column):
    assert column_type("test", "c", column) == "number"
    numbers = read_numbers(column, "number")
    assert numbers.dtype == np.float64 and numbers[0] in (1.0, 1.5)
    given = column.tolist() if isinstance(column, np.ndarray) else column.to_list()
    np.testing.assert_array_equal(np.isnan(numbers), [is_missing(value) for value in given])


@cases(BOOLEANS)
def test_truth_values(column):
    assert column_type("test", "c", column) == "boolean"
    numbers = read_numbers(column, "boolean")
    assert numbers[0] == 1.0 and (numbers[1] == 0.0 or np.isnan(numbers[1]))


@pytest.mark.parametrize("arrow", [True, False], ids=["arrow", "no arrow"])
@cases(TEXTS)
def test_text(column, arrow, monkeypatch):
    if not arrow and not isinstance(column, np.ndarray):
        if type(column.to_native()).__module__.startswith("pyarrow") and isinstance(column.dtype, nw.Categorical):
            pytest.skip("an Arrow table needs Arrow")
        monkeypatch.setattr(encoder_read, "_arrow_labels", lambda column: None)
    assert column_type("test", "c", column) == "text"
    labels = read_labels(column)
    given = column.tolist() if isinstance(column, np.ndarray) else column.to_list()
    expected = [None if is_missing(value) else value for value in given]
    assert [labels.values[code] if code >= 0 else None for code in labels.codes] == expected
    assert "a" in expected


@cases(DATES)
def test_dates_are_days_on_the_wall_clock(column):
    assert column_type("test", "c", column) == "date"
    numbers = read_numbers(column, "date")
    expected = (DAY - dt.datetime(1970, 1, 1)).days
    assert numbers[0] == expected and np.isnan(numbers[1])
    assert np.all(np.isnan(numbers) | (numbers == expected))


@cases(DURATIONS)
def test_durations_are_seconds(column):
    assert column_type("test", "c", column) == "duration"
    numbers = read_numbers(column, "duration")
    assert numbers[0] == 90.0 and np.isnan(numbers[1])


@cases(EMPTY)
def test_empty(column):
    assert column_type("test", "c", column) == "empty"


def test_the_time_of_day_is_a_fraction():
    noon = pd.Series(
        [pd.Timestamp("1970-01-02T12:00", tz="Asia/Tokyo"), pd.Timestamp("1969-12-31T18:00", tz="Asia/Tokyo")]
    )
    np.testing.assert_array_equal(read_numbers(series(noon), "date"), [1.5, -0.25])
    np.testing.assert_array_equal(read_numbers(object_array(*noon), "date"), [1.5, -0.25])


@pytest.mark.parametrize(
    "column",
    [
        object_array("a", 1, 1.0, True, None),
        series(pd.Series(["a", 1, 1.0, True, None], dtype=object)),
    ],
    ids=["array", "pandas"],
)
def test_a_mixture_is_spelled_out(column):
    assert column_type("test", "c", column) == "mixed"
    labels = read_labels(column, "mixed")
    assert [labels.values[c] if c >= 0 else None for c in labels.codes] == ["a", "1", "1", "True", None]


@pytest.mark.parametrize(
    "native",
    [
        pd.Series(pd.Categorical([2, None, 1])),
        pd.Series(pd.Categorical([2.0, None, 1.0])),
        pa.chunked_array([pa.array([2, None, 1]).dictionary_encode()]),
    ],
    ids=["pandas int", "pandas float", "arrow"],
)
def test_categories_that_are_numbers(native):
    assert column_type("test", "c", series(native)) == "mixed"
    labels = read_labels(series(native), "mixed")
    assert [labels.values[c] if c >= 0 else None for c in labels.codes] == ["2", None, "1"]


def test_intervals_from_cut_are_categories():
    cut = pd.cut(pd.Series([1.0, 5.0, np.nan, 9.0]), [0, 4, 10])
    labels = read_labels(series(cut), "mixed")
    assert [labels.values[c] if c >= 0 else None for c in labels.codes] == ["(0, 4]", "(4, 10]", None, "(4, 10]"]


def test_broken_unicode_is_read():
    labels = read_labels(series(pd.Series(["\ud800", "a", "\ud800"], dtype=object)))
    assert [labels.values[c] for c in labels.codes] == ["\ud800", "a", "\ud800"]


REFUSED = {
    "polars list": (pl.Series([[1], [2]]), r"type List\(Int64\)"),
    "polars struct": (pl.Series([{"a": 1}]), "type Struct"),
    "polars binary": (pl.Series([b"a"]), "type Binary"),
    "pandas period": (pd.Series(pd.PeriodIndex(["2020"], freq="Y")), "a pandas Period"),
    "pandas complex": (pd.Series([1j]), "Complex data not supported"),
    "arrow list": (pa.chunked_array([[[1]]]), "type List"),
    "array complex": (np.array([1j]), "Complex data not supported"),
    "array bytes": (np.array([b"a"]), "dtype"),
    "objects dict": (object_array("a", {"foo": "bar"}), r"holds \{'foo': 'bar'\}, a dict, in row 1"),
    "objects list": (object_array([1, 2], None), "a list, in row 0"),
    "objects bytes": (object_array(b"a"), "a bytes, in row 0"),
    "dates and text": (object_array("a", DAY), "in row 1"),
}


@pytest.mark.parametrize(("column", "what"), list(REFUSED.values()), ids=list(REFUSED))
def test_what_has_no_encoding_is_refused_by_name(column, what):
    with pytest.raises(DataTypeError, match=rf"test: .*column 'c' .*{what}.*Leave it out|{what}.*column 'c'"):
        column_type("test", "c", as_column(column))
