"""What a first look at a table tells is true of tables whose truth is known."""

import numpy as np
import pyarrow as pa
import pytest

from learnable.evaluation.comparison.glance import correlation, correlations, preview

RNG = np.random.default_rng(0)


def test_the_first_rows_are_shown_as_they_stand():
    table = pa.table({"x": [1.0, None, 1234567.125], "t": ["a" * 100, "b", None], "n": pa.array([1, 2, 3])})
    found = preview(table)
    assert found["columns"] == ["x", "t", "n"] and found["rows"][1] == [None, "b", "2"]
    assert found["rows"][0][1].endswith("…") and len(found["rows"][0][1]) == 60
    assert len(preview(pa.table({"x": np.arange(100.0)}))["rows"]) == 5


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_a_correlation_is_pearsons_whatever_the_size_of_numbers(scale):
    a = RNG.normal(size=200)
    b = 0.6 * a + 0.8 * RNG.normal(size=200)
    found = correlation(a * scale, b + 1e6)
    assert found["value"] == pytest.approx(np.corrcoef(a, b)[0, 1], abs=1e-8)
    assert found["low"] < found["value"] < found["high"] and found["rows"] == 200


def test_its_interval_holds_the_truth_as_often_as_it_says():
    hits = 0
    for _ in range(400):
        a = RNG.normal(size=40)
        b = 0.5 * a + np.sqrt(0.75) * RNG.normal(size=40)
        found = correlation(a, b)
        hits += found["low"] <= 0.5 <= found["high"]
    assert 0.91 <= hits / 400 <= 0.985


def test_pairs_above_nine_tenths_are_named_and_others_are_not():
    x = RNG.normal(size=500)
    gaps = np.where(RNG.random(500) < 0.8, np.nan, 3 * x + 0.05 * RNG.normal(size=500))
    table = pa.table({"x": x, "twin": gaps, "other": 0.8 * x + 0.6 * RNG.normal(size=500), "same": np.ones(500)})
    found = correlations(table, table.column_names, -x, None)
    assert [(pair["a"], pair["b"]) for pair in found["pairs"]] == [("x", "twin")]
    by_name = {line["name"]: line["value"] for line in found["with_target"]}
    assert by_name["x"] == pytest.approx(-1.0) and "same" not in by_name and -0.9 < by_name["other"] < -0.7


def test_the_rarer_of_two_classes_is_the_direction_and_more_have_none():
    y = (np.arange(100) < 20).astype(np.int64)
    table = pa.table({"x": y * 2.0, "text": ["a"] * 100})
    found = correlations(table, ["x", "text"], y, ["no", "yes"])
    assert found["of"] == "yes" and found["with_target"][0]["value"] == pytest.approx(1.0)
    found = correlations(table, ["x"], 1 - y, ["yes", "no"])
    assert found["of"] == "yes" and found["with_target"][0]["value"] == pytest.approx(1.0)
    assert correlations(table, ["x"], np.arange(100) % 3, ["a", "b", "c"])["with_target"] == []
