"""Columns that order the rows: dates in every usual form, and what is no order."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from learnable.core.errors import DataError, DataTypeError
from learnable.evaluation.comparison.columns import read_times

DAYS = [dt.date(2023, 11, 25) + dt.timedelta(days=k) for k in range(60)]


def read(values, **options):
    return read_times("compare", pa.chunked_array([pa.array(values)]), "day", **options)


@pytest.mark.parametrize("form", ["%d/%m/%Y", "%d.%m.%Y", "%m/%d/%Y", "%Y-%m-%d", "%d-%m-%y", "%d/%m/%Y 08:30"])
def test_text_is_ordered_by_date_and_not_by_letters(form):
    texts = [day.strftime(form) for day in DAYS]
    found = read(texts)
    assert (np.diff(found.values) > np.timedelta64(0)).all() and found.are_dates
    assert found.shown(0).startswith("2023-11-25") and found.shown(-1).startswith("2024-01-23")
    assert form.startswith("%Y") or sorted(texts) != texts  # as text the order would be another


def test_dates_and_numbers_are_taken_as_they_are():
    assert read(DAYS).values.dtype.kind == "M" and read(DAYS).shown(0) == "2023-11-25"
    stamps = [dt.datetime(2024, 1, 1, 5, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, 6, tzinfo=dt.UTC)]
    assert read(stamps).shown(1) == "2024-01-01 06:00:00"
    assert read([3, 1, 2]).values.tolist() == [3, 1, 2] and read([2020.5, 2021.0]).shown(0) == "2020.5"
    assert read(pa.array(["2024-01-02", "2024-01-01"]).dictionary_encode()).shown(1) == "2024-01-01"


def test_an_ambiguous_column_asks_and_shows_both_readings():
    with pytest.raises(DataError) as error:
        read(["03/04/2024", "05/06/2024"])
    for part in ("3 April 2024 (--dayfirst)", "4 March 2024 (--no-dayfirst)", "no row tells"):
        assert part in str(error.value)
    assert read(["03/04/2024", "05/06/2024"], dayfirst=True).shown(0) == "2024-04-03"
    assert read(["03/04/2024", "05/06/2024"], dayfirst=False).shown(0) == "2024-03-04"
    surely = read(["13/04/2024", "05/06/2024"], dayfirst=False)
    assert surely.shown(0) == "2024-04-13" and "leaves no other reading" in surely.note


@pytest.mark.parametrize(
    ("values", "part"),
    [
        (["Monday", "Tuesday", "Friday"], "'Monday', which is no date"),
        (["Jan", "Feb", "Mar"], "no date"),
        (["early", "late"], "no date"),
        (["31/01/2024", "2024-02-01"], "several ways"),
        (["2024-01-01", "n/a"], "no date in 1 row"),
        ([1.0, None], "missing in 1"),
        ([1.0, float("nan")], "missing in 1"),
    ],
)
def test_what_is_no_order_is_refused(values, part):
    with pytest.raises(DataError, match=part):
        read(values)


def test_truth_values_are_no_order():
    with pytest.raises(DataTypeError, match="no order"):
        read([True, False])


def test_a_row_without_a_date_is_named_by_its_row_in_the_table():
    texts = ["2024-01-01", "n/a", "2024-01-03"]
    with pytest.raises(DataError, match=r"'n/a' in row 2 \(the first row after the header is 1\)"):
        read(texts)
    with pytest.raises(DataError, match=r"'n/a' in row 8 "):
        read(texts, places=np.array([0, 7, 9]))
