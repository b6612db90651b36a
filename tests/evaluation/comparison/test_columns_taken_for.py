"""What columns of text are taken for, and what the caller may say instead."""

import numpy as np
import pyarrow as pa
import pytest

from learnable.core.errors import DataError, ParameterError
from learnable.evaluation.comparison.columns import as_read, example_of, find_texts, tell
from learnable.evaluation.comparison.problem import read_problem

TABLE = pa.table(
    {
        "posted": ["03/04/2024", "05/06/2024", None],
        "cost": ["$1,200", "n/a", "$80.5"],
        "share": ["12,5 %", "3 %", "4,25 %"],
        "town": ["A", "B", "A"],
        "size": [1.0, 2.0, 3.0],
    }
)


def found(**kinds):
    return {name: one.reading for name, one in find_texts("compare", TABLE, kinds, None).items()}


def test_values_decide_unless_the_caller_does():
    assert found() == {"posted": "day-month-year", "cost": "decimal point", "share": "decimal comma"}
    assert "cost" not in found(cost="text") and found(cost="number")["cost"] == "decimal point"
    assert found(posted="month-day-year")["posted"] == "month-day-year"
    assert found(town="decimal point")["town"] == "decimal point"
    assert find_texts("compare", TABLE, {}, False)["posted"].reading == "month-day-year"


@pytest.mark.parametrize(
    ("kinds", "error", "part"),
    [
        ({"cost": "roman"}, ParameterError, "can be taken for text, date"),
        ({"size": "text"}, DataError, "not text"),
        ({"town": "date"}, DataError, "cannot be read as date"),
        ({"posted": "number"}, DataError, "cannot be read as number"),
    ],
)
def test_what_cannot_be_is_refused(kinds, error, part):
    with pytest.raises(error, match=part):
        find_texts("compare", TABLE, kinds, None)


def test_columns_are_read_and_told():
    texts = find_texts("compare", TABLE, {}, None)
    typed = as_read(TABLE, texts)
    assert typed["cost"].to_pylist() == [1200.0, None, 80.5] and typed["share"].to_pylist() == [12.5, 3.0, 4.25]
    assert str(typed["posted"][0].as_py()) == "2024-04-03 00:00:00" and typed["posted"][2].as_py() is None
    assert tell("posted", texts["posted"]) == (
        "'posted' is read as dates, day, month, year: '03/04/2024' is 3 April 2024; --no-dayfirst makes it 4 March "
        "2024; --as posted=text keeps it as text"
    )
    assert "percentages with a decimal comma: '12,5 %' is 12.5" in tell("share", texts["share"])
    assert example_of(TABLE["cost"]) == "$1,200" and example_of(pa.chunked_array([[None, 0.1 + 0.2]])) == "0.3"


def test_a_target_of_amounts_is_a_number_and_what_was_decided_is_told():
    rng = np.random.default_rng(0)
    cost = rng.integers(10_000, 99_999, 50)
    table = pa.table({"x": cost / 3, "price": [f"{c:,} €" for c in cost]})
    problem = read_problem("compare", table, "price")
    assert problem.task == "regression" and problem.y.tolist() == cost.tolist()
    assert any("'price' is read as amounts in €" in note for note in problem.notes)
    plain = read_problem("compare", pa.table({"x": cost / 3, "y": cost + 0.5}), "y")
    assert plain.notes == [] and plain.readings == {}
