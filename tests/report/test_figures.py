import re

import pytest
from tests.report import records

from learnable.report.figures import figures
from learnable.report.numbers import Numbers


def drawn(record, name=None):
    name = name or record["winner"]["name"]
    return {figure.title: figure for figure in figures(Numbers(record), name, "R²")}


def test_a_regression_has_residuals_effects_and_a_learning_curve():
    found = drawn(records.houses())
    assert list(found) == [
        "Actual against predicted",
        "Residuals",
        "Size of the errors",
        "Learning curve",
        "Coefficients",
        "Importance of columns",
    ]
    assert "standard deviation" in found["Coefficients"].caption


def test_two_classes_have_roc_calibration_and_confusion():
    found = drawn(records.churn())
    assert list(found) == ["ROC curve", "Calibration", "Confusion matrix", "Coefficients"]
    assert "AUC" in found["ROC curve"].notes[0] and "0.840" in found["ROC curve"].notes[0]
    assert "log odds" in found["Coefficients"].caption
    cells = found["Confusion matrix"].matrix["cells"]
    assert [re.sub("<.*?>", "", cell[0]) for cell in cells[0]] == ["929", "106"]
    assert [cell[1] for cell in cells[0]] == ["0.90", "0.10"]


@pytest.mark.parametrize("k, as_table", [(3, True), (26, True), (30, True), (31, False), (100, False)])
def test_a_confusion_matrix_of_many_classes_becomes_a_map(k, as_table):
    found = drawn(records.letters(k))["Confusion matrix"]
    assert (found.matrix is not None) == as_table
    assert (found.svg is not None) != as_table
    assert 1 <= len(found.notes) <= 10


def test_the_worst_confusions_come_first():
    record = records.letters(5)
    counts = record["details"]["LogisticRegression (C=1)"]["confusion"]["counts"]
    counts[2][4] = 77
    notes = drawn(record)["Confusion matrix"].notes
    assert re.sub("<.*?>", "", notes[0]) == "C taken for E: 77"


def test_the_largest_effects_are_kept():
    record = records.houses()
    part = [{"name": f"w{k}", "value": (-1) ** k * k, "low": None, "high": None} for k in range(100)]
    record["details"]["RidgeCV"]["coefficients"] = part
    effects = drawn(record)["Coefficients"]
    assert len(effects.effects.lines) == 20
    assert "w99" in effects.effects.lines[0][0]
    assert "The largest of" in effects.caption and "intervals" not in effects.caption


def test_a_part_that_cannot_be_drawn_says_so_and_costs_nothing_else():
    record = records.churn()
    record["details"]["LogisticRegression (C=1)"]["confusion"]["counts"] = [[1]]
    found = drawn(record)
    assert "cannot be drawn" in found["Confusion"].caption
    assert len(found) == 4


def test_empty_parts_are_left_out():
    record = records.houses()
    record["details"]["RidgeCV"] |= {
        "residuals": {"predicted": [None], "actual": [1.0]},
        "coefficients": [{"name": "a", "value": None, "low": None, "high": None}],
        "importances": [],
        "learning_curve": None,
    }
    assert drawn(record) == {}
    assert figures(Numbers(record), "unknown", "R²") == []
