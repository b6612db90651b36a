"""Columns of text whose content is known: dates and amounts are recognised, and what is neither is left alone."""

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import learnable as ln
from learnable.core.errors import ParameterError
from learnable.data import TableEncoder
from learnable.data.encoder_read import Labels
from learnable.data.readings import find_readings, read_as, read_column, recognise, show
from learnable.meta import TableModel

DAYS = [dt.datetime(2023, 11, 20, 17, 5) + dt.timedelta(days=int(k)) for k in range(0, 200, 7)]
TRUTH = np.array([(day - dt.datetime(1970, 1, 1)) / dt.timedelta(days=1) for day in DAYS])


def column(*values):
    return Labels(np.arange(len(values)), list(values))


@pytest.mark.parametrize(
    ("form", "reading"),
    [
        ("%d/%m/%Y %H:%M", "day-month-year"),
        ("%d.%m.%Y %H:%M:%S", "day-month-year"),
        ("%d-%m-%y %H:%M", "day-month-year"),
        ("%d %b %Y %H:%M", "day-month-year"),
        ("%m/%d/%Y %I:%M %p", "month-day-year"),
        ("%m-%d-%Y %H:%M", "month-day-year"),
        ("%B %d, %Y %H:%M", "month-day-year"),
        ("%Y-%m-%dT%H:%M:%SZ", "year-month-day"),
        ("%Y/%m/%d %H:%M", "year-month-day"),
    ],
)
def test_dates_are_read_as_they_are_written(form, reading):
    labels = column(*(day.strftime(form) for day in DAYS))
    found = recognise(labels)
    assert found.reading == reading and found.is_date and not found.others
    assert read_as(labels, reading) == pytest.approx(TRUTH, abs=1e-9)


def test_a_zone_is_taken_into_account():
    ahead, utc = column("2024-01-31T02:00:00+02:00"), column("2024-01-31")
    assert read_as(ahead, "year-month-day") == read_as(utc, "year-month-day")


def test_two_readings_are_both_told_and_an_option_decides():
    labels = column("03/04/2024", "05/05/2024", "01/12/2024")
    found = recognise(labels)
    assert (found.reading, found.others, found.example) == ("day-month-year", ("month-day-year",), "03/04/2024")
    assert (found.shown(), found.shown(found.others[0])) == ("3 April 2024", "4 March 2024")
    assert recognise(labels, dayfirst=False).reading == "month-day-year"
    assert recognise(column("05/05/2024", "06/06/2024")).others == ()  # both readings say the same
    assert recognise(column("31/12/2024", "03/04/2024"), dayfirst=False).reading == "day-month-year"


@pytest.mark.parametrize(
    ("texts", "reading", "numbers"),
    [
        (["$1,234.50", "-$3", "($7.25)"], "decimal point", [1234.5, -3.0, -7.25]),
        (["1.234,50 €", "7 €"], "decimal comma", [1234.5, 7.0]),
        (["12.3 %", "4%"], "decimal point", [12.3, 4.0]),
        (["12,3 %", "4 %"], "decimal comma", [12.3, 4.0]),
        (["1,5", "-22,75"], "decimal comma", [1.5, -22.75]),
        (["1,234,567", "89"], "decimal point", [1234567.0, 89.0]),
        (["CHF 1'200.50", "CHF 3.10"], "decimal point", [1200.5, 3.1]),
        (["1\N{NARROW NO-BREAK SPACE}234,5 €", "6,0 €"], "decimal comma", [1234.5, 6.0]),
    ],
)
def test_amounts_are_read_as_they_are_written(texts, reading, numbers):
    found = recognise(column(*texts))
    assert found.reading == reading and not found.is_date and not found.others
    assert read_as(column(*texts), reading).tolist() == numbers


@pytest.mark.parametrize(
    "texts",
    [
        ["Monday", "Tuesday"],
        ["10115", "80331"],  # postal codes
        ["555 1234", "555 9876"],
        ["$5", "€6"],  # two currencies
        ["5 %", "6"],  # shares and something else
        ["31/04/2024", "30/02/2024"],  # days that do not exist
        ["1/2", "3/4"],
        ["SKU 12", "SKU 13"],
        ["10:30", "11:45"],
        ["1.2.3", "1.2.4"],
        ["12/01/2024", "free text"],
        ["", "-"],
    ],
)
def test_what_is_neither_date_nor_amount_stays_text(texts):
    assert recognise(column(*texts)) is None


def test_a_doubtful_comma_is_decided_by_the_other_columns():
    doubtful, comma, point = column("1,234", "5,678"), column("1,5", "2,25"), column("$1.50", "$2,000")
    assert find_readings(["a"], [doubtful])["a"].reading == "decimal point"
    assert find_readings(["a"], [doubtful])["a"].others == ("decimal comma",)
    assert find_readings(["a", "b"], [doubtful, comma])["a"].reading == "decimal comma"
    assert find_readings(["a", "b", "c"], [doubtful, comma, point])["a"].reading == "decimal point"


def test_gaps_and_values_that_cannot_be_read_are_missing():
    assert np.isnan(read_as(Labels(np.array([0, 1, -1]), ["n/a", "soon"]), "day-month-year")).all()
    assert recognise(column("31/01/2024", "n/a", "-")).reading == "day-month-year"
    assert read_column(np.array([1.0, 2.0]), "decimal point") is None
    with pytest.raises(ParameterError, match="decimal point"):
        read_as(column("1"), "roman")
    assert show("soon", "decimal point") == "nothing"


def table(rng, n=300):
    days = rng.integers(0, 700, n)
    dates = [(dt.date(2022, 1, 1) + dt.timedelta(days=int(d))).strftime("%d/%m/%Y") for d in days]
    amount = rng.integers(1, 500_000, n)
    y = 0.01 * days + amount / 1e5
    return pa.table({"day": dates, "cost": [f"${a:,}" for a in amount], "town": ["A", "B"] * (n // 2)}), y


READINGS = {"day": "day-month-year", "cost": "decimal point"}


def test_an_encoder_with_readings_equals_one_of_typed_columns(tmp_path):
    rng = np.random.default_rng(0)
    texts, y = table(rng)
    typed = texts.to_pandas()
    typed["day"] = pd.to_datetime(typed["day"], dayfirst=True)
    typed["cost"] = typed["cost"].str.replace("[$,]", "", regex=True).astype(float)
    encoder = TableEncoder(readings=READINGS).fit(texts)
    expected = TableEncoder().fit(typed).transform(typed)
    for form in (texts, texts.to_pandas(), typed):
        assert encoder.transform(form) == pytest.approx(expected, abs=1e-9)
    model = TableModel(ln.Ridge(), encoder=TableEncoder(readings=READINGS)).fit(texts, y)
    assert model.score(texts, y) > 0.999
    assert TableModel(ln.Ridge()).fit(texts, y).score(texts, y) < 0.999
    ln.save(model, tmp_path / "model.safetensors")
    assert ln.load(tmp_path / "model.safetensors").predict(texts) == pytest.approx(model.predict(texts), abs=0)


def test_pieces_of_a_table_are_read_alike():
    texts, _ = table(np.random.default_rng(1))
    whole = TableEncoder(readings=READINGS).fit(texts)
    pieces = TableEncoder(readings=READINGS)
    pieces._begin([(name, "text") for name in texts.column_names])
    for start in (0, 100, 200):
        pieces._update(texts.slice(start, 100))
    assert pieces._finish().transform(texts) == pytest.approx(whole.transform(texts), abs=1e-12)


def test_unknown_readings_are_refused():
    with pytest.raises(ParameterError, match="readings"):
        TableEncoder(readings={"a": "roman"}).fit(pa.table({"a": ["I", "II"]}))
