import re

import pytest
from tests.report import records

from learnable.report import render
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
        "Effect of \u2068median_income\u2069",
        "Effect of \u2068ocean_proximity\u2069",
        "Learning curve",
        "Coefficients",
        "Importance of columns",
        "Where it is worse",
        "Rows with the largest errors",
    ]
    assert "standard deviation" in found["Coefficients"].caption


def test_two_classes_have_roc_calibration_and_confusion():
    found = drawn(records.churn())
    assert list(found) == [
        "ROC curve",
        "Calibration",
        "Confusion matrix",
        "Precision and recall by class",
        "Which threshold",
        "Coefficients",
        "Rows with the largest errors",
    ]
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
    assert len(found) == 7


def test_empty_parts_are_left_out():
    record = records.houses()
    record["details"]["RidgeCV"] |= {
        "residuals": {"predicted": [None], "actual": [1.0]},
        "coefficients": [{"name": "a", "value": None, "low": None, "high": None}],
        "importances": [],
        "learning_curve": None,
        "effects": [{"name": "a", "points": [], "values": []}],
        "slices": {"parts": []},
        "worst": {"columns": [], "rows": []},
    }
    assert drawn(record) == {}
    assert figures(Numbers(record), "unknown", "R²") == []


def words(markup):
    return re.sub("<.*?>", "", str(markup))


def test_what_is_worse_comes_first_and_stands_out():
    found = drawn(records.houses())["Where it is worse"]
    assert [words(row[0]) for row in found.table.rows] == ["ocean_proximity: ISLAND", "house_age: 1 to 18"]
    assert found.table.strong == {0} and words(found.table.rows[0][1]) == "worse"


def test_an_effect_of_a_number_is_a_line_and_of_levels_a_list():
    found = drawn(records.houses())
    number, levels = (found[f"Effect of \u2068{name}\u2069"] for name in ("median_income", "ocean_proximity"))
    assert number.svg is not None and "it rises" in number.caption
    assert [words(line[0]) for line in levels.effects.lines] == ["INLAND", "&lt;i&gt;ISLAND"] and levels.svg is None


def test_the_threshold_in_use_stands_out_and_costs_are_told():
    found = drawn(records.churn())["Which threshold"]
    assert found.table.strong == {0} and words(found.table.rows[0][-1]) == "494"
    assert "The model uses 0.310" in words(found.caption) and "a missed one 4" in words(found.caption)


def test_calibration_has_a_verdict_where_the_record_has_one():
    record = records.churn()
    assert words(drawn(record)["Calibration"].caption).startswith("The probabilities are overconfident")
    del record["details"]["LogisticRegression (C=1)"]["calibration"]["verdict"]
    assert words(drawn(record)["Calibration"].caption).startswith("Of the rows")


def test_a_record_without_the_newer_parts_still_renders():
    record = records.houses()
    for part in ("effects", "slices", "worst"):
        for details in record["details"].values():
            del details[part]
    for part in ("preview", "correlations"):
        del record["data"][part]
    del record["python"]
    page = render(record)
    assert "Where it is worse" not in page and "The first rows" not in page and "Model card" in page


def test_the_parts_of_the_table_are_shown_and_what_to_do_comes_first():
    page = render(records.houses())
    assert "The first rows" in page and "&lt;b&gt;Aldham" in page and "<b>Aldham" not in page
    assert "Correlation with the target" in page and "Columns that say the same" in page
    assert "record = compare(&#39;houses.csv&#39;" in page and "Model card" in page
    assert page.index('id="next"') < page.index('id="models"') < page.index('id="card"')
