"""A comparison shows its leaderboard, and stays the JSON record that it was."""

import json
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest

from learnable.evaluation import compare
from learnable.evaluation.comparison.record import ShownRecord


@pytest.fixture(scope="module")
def record():
    x = np.linspace(0.0, 1.0, 60)
    return compare(pa.table({"x": x, "y <b>": 2.0 * x + np.sin(40 * x)}), "y <b>", models=["LinearRegression"])


class Cells(HTMLParser):
    """Collect the texts of the cells."""

    def __init__(self):
        super().__init__()
        self.tags, self.cells = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.cells.append(data)


def test_the_record_is_still_plain_json(record):
    again = json.loads(json.dumps(record, allow_nan=False))
    assert again == record
    assert again["leaderboard"][0]["name"] == "LinearRegression"


def test_the_prompt_shows_every_row_with_its_score(record):
    text = repr(record)
    lines = text.splitlines()
    assert lines[0] == "Comparison: 1 model for 'y <b>', 60 rows"
    for row, line in zip(record["leaderboard"], lines[2:], strict=False):
        assert row["name"] in line
        assert f"{row['mean']:.4f}" in line
    assert f"Hold-out: LinearRegression {record['winner']['holdout']['score']:.4f}" in text


def test_a_notebook_shows_a_table(record):
    page = Cells()
    page.feed(record._repr_html_())
    assert page.tags.count("tr") == 1 + len(record["leaderboard"])
    assert "b" in page.tags and page.tags.count("b") == 1  # the name of the column is text, not a tag
    for row in record["leaderboard"]:
        assert row["name"] in page.cells
        assert f"{row['mean']:.4f}" in page.cells


def test_what_failed_or_was_cut_is_said():
    rows = [
        {"rank": 1, "name": "A", "status": "ok", "mean": 1234567.0, "low": None, "high": None, "cut": "by the clock"},
        {"rank": None, "name": "<script>", "status": "failed", "reason": "no\nmemory", "mean": None},
        {"rank": None, "name": "C", "status": "timeout", "reason": None},
    ]
    record = ShownRecord(leaderboard=rows, status="interrupted")
    text = repr(record)
    assert "1.23457e+06" in text
    assert "cut: by the clock" in text
    assert "failed: no memory" in text
    assert "timeout: not started" in text
    assert "Interrupted" in text
    assert "<script>" not in record._repr_html_()
    assert "&lt;script&gt;" in record._repr_html_()


def test_an_empty_record_can_be_shown():
    assert "0 models" in repr(ShownRecord())
    assert "<table>" in ShownRecord()._repr_html_()
