import numpy as np
from tests.report import records

from learnable.report.numbers import Numbers
from learnable.report.sections import order_columns, show_columns


def names(record):
    return [record["data"]["profile"][k]["name"] for k in order_columns(record)]


def test_the_target_comes_first_then_suspects_then_what_matters():
    found = names(records.houses())
    assert found[:4] == ["price", "assessed_value", "median_income", "ocean_proximity"]
    assert sorted(found) == sorted(column["name"] for column in records.houses()["data"]["profile"])


def test_an_encoded_name_counts_for_its_column():
    record = records.churn()
    assert names(record)[:4] == ["churned", "contract", "tenure", "monthly_charges"]


def test_every_kind_of_column_is_described():
    numbers = Numbers(records.houses())
    shown = {c.kind: c for c in show_columns(numbers, range(12))}
    assert "median" in shown["number"].typical and "<svg" in shown["number"].figure
    assert "INLAND" in shown["category"].typical and "31.7" in shown["category"].typical
    assert shown["identifier"].role == "left out" and shown["identifier"].figure is None
    assert shown["text"].has_missing and "5.0" in shown["text"].missing
    assert show_columns(numbers, [11])[0].role == "target"
    assert show_columns(numbers, [0])[0].role is None


def test_bins_that_cannot_be_drawn_are_left_out():
    record = records.houses()
    record["data"]["profile"][0]["histogram"] = {"edges": [3, 1], "counts": [1, 2, 3]}
    column = show_columns(Numbers(record), [0])[0]
    assert column.figure is None and column.typical is not None


def test_a_target_of_classes_is_described_by_them_also_if_they_are_numbers():
    record = records.churn()
    record["data"]["profile"][4] |= records.number_column("churned", np.array([0.0, 1.0] * 9), role="target")
    record["data"]["classes"] = ["0", "1"]
    column = show_columns(Numbers(record), [4])[0]
    assert "median" not in column.typical and "26.5" in column.typical
