"""Parts that are worse are found, equal ones are left in peace, and the worst rows are the rows of the file."""

import numpy as np
import pyarrow as pa

from learnable.evaluation.comparison.explain import cuts, row_losses, slices_of, worst_rows
from learnable.evaluation.comparison.measures import Prediction

RNG = np.random.default_rng(1)


def test_one_part_of_five_is_worse():
    town = RNG.choice(list("abcde"), 600)
    table = pa.table({"town": town, "x": RNG.normal(size=600)})
    losses = np.abs(RNG.normal(size=600)) * np.where(town == "c", 3.0, 1.0)
    found = slices_of(table, ["town", "x"], "mean absolute error", losses)
    worse = [(part["column"], part["label"]) for part in found["parts"] if part["verdict"] == "worse"]
    assert worse == [("town", "c")] and len(found["parts"]) == 9
    part = next(part for part in found["parts"] if part["label"] == "c")
    assert part["value"] == losses[town == "c"].mean() and part["low"] < part["value"] < part["high"]
    assert part["rows"] == (town == "c").sum()


def test_equal_parts_are_rarely_called_worse():
    wrong = 0
    for _ in range(100):
        table = pa.table({"a": RNG.choice(list("abcdef"), 300), "x": RNG.normal(size=300)})
        losses = (RNG.random(300) < 0.2).astype(float)
        found = slices_of(table, ["a", "x"], "share of wrong classes", losses)
        wrong += any(part["verdict"] != "like the rest" for part in found["parts"])
    assert wrong <= 12


def test_every_row_is_in_one_part_and_gaps_are_a_part():
    column = pa.chunked_array([[1.0, 2.0, None, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, float("nan")]])
    parts = list(cuts(column))
    assert (sum(mask.astype(int) for _, mask in parts) == 1).all()
    assert parts[-1][0] == "missing" and parts[-1][1].sum() == 2
    levels = list(cuts(pa.chunked_array([[True, False, None, True]])))
    assert [label for label, _ in levels] == ["True", "False", "missing"]


def test_few_rows_give_no_parts():
    assert slices_of(pa.table({"a": ["x"] * 5 + ["y"] * 5}), ["a"], "log loss", np.ones(10)) is None


def test_losses_are_those_of_the_task():
    p = np.array([[0.9, 0.1], [0.2, 0.8]])
    y = np.array([0, 0])
    assert row_losses(y, Prediction(np.array([0, 1]), p), "accuracy", numbers=False)[1].tolist() == [0.0, 1.0]
    name, losses = row_losses(y, Prediction(np.array([0, 1]), p), "log_loss", numbers=False)
    assert name == "log loss" and np.allclose(losses, -np.log([0.9, 0.2]))
    assert row_losses(np.array([3.0]), Prediction(np.array([1.0])), "r2", numbers=True)[1] == [2.0]


def test_the_worst_rows_are_named_by_their_row_in_the_file():
    table = pa.table({"x": [1.0, 2.0, 3.0], "t": ["a", None, "c"]})
    places = np.array([4, 7, 9])
    found = worst_rows(
        table, ["t", "x"], np.array([1.0, 5.0, 3.0]), Prediction(np.array([1.0, 1.0, 4.0])), None, places
    )
    assert [(row["row"], row["error"], row["values"]) for row in found] == [
        (8, 4.0, [None, "2"]),
        (10, -1.0, ["c", "3"]),
    ]
    p = np.array([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6]])
    found = worst_rows(table, ["x"], np.array([0, 1, 1]), Prediction(np.array([0, 0, 1]), p), ["no", "yes"], places)
    assert [(row["row"], row["actual"], row["predicted"]) for row in found] == [(8, "yes", "no")]
    right = Prediction(np.array([0, 0, 1]), p)
    assert worst_rows(table, ["x"], np.array([0, 0, 1]), right, ["no", "yes"], places) == []
