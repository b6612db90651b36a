import re

from tests.report import records

from learnable.report.numbers import Numbers
from learnable.report.sections import created, how_measured


def pairs(record):
    return {term: re.sub("<[^>]*>", "", text) for term, text in how_measured(Numbers(record))}


def test_what_is_needed_to_repeat_it():
    found = pairs(records.houses())
    assert found["Scheme"] == "5-fold"
    assert found["Measure"] == "R² (higher is better); also rmse, mae"
    assert found["Seed"] == "0" and found["Cores"] == "2"
    assert "numpy 2.3.4" in found["Versions"]
    assert found["Model file"] == "houses-RidgeCV.safetensors"
    assert found["Training rows"] == "16,512"


def test_repeats_are_told_and_unknown_things_are_left_out():
    record = records.nulls()
    record["protocol"]["repeats"] = 3
    found = pairs(record)
    assert found["Scheme"] == "5-fold; the folds were cut 3 times for models that the first could not tell apart"
    assert not {"Time limit", "Versions", "Model file"} & set(found)


def test_dates():
    assert created("2026-01-31T12:00:00Z") == '<time datetime="2026-01-31T12:00:00Z">31 January 2026, 12:00 UTC</time>'
    assert created("yesterday <b>") == "yesterday &lt;b&gt;"
    assert created(None) is None


def test_the_periods_of_rows_in_time_are_told_and_of_others_are_not():
    record = records.houses()
    assert "Training period" not in dict(how_measured(Numbers(record)))
    record["protocol"]["time"] = {"train": ["2021-01-01", "2022-12-21"], "holdout": ["2022-12-22", "2023-06-19"]}
    told = dict(how_measured(Numbers(record)))
    assert told["Training period"] == "2021-01-01 to 2022-12-21"
    assert told["Hold-out period"] == "2022-12-22 to 2023-06-19"
