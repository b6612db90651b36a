"""A line of a leaderboard that is fitted again is the model that was judged."""

import numpy as np
import pyarrow as pa
import pytest

from learnable.core.errors import DataError, ParameterError
from learnable.evaluation import compare
from learnable.evaluation.comparison.again import can_be_fitted, candidate_of, fit_again
from learnable.evaluation.comparison.candidates import blend_of


def table(n=160, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    kind = rng.choice(["a", "b", "c"], n)
    y = 2.0 * x + (kind == "b") + 0.3 * rng.normal(size=n)
    return pa.table({"x": x, "kind": kind, "y": y, "good": np.where(y > 0.3, "yes", "no")})


@pytest.fixture(scope="module")
def numbers():
    """A comparison of numbers, its table and what was told of every row set aside."""
    told = []
    data = table().drop_columns(["good"])
    settings = {"models": ["Ridge", "LinearSVR"], "folds": 3}
    record = compare(data, "y", on_event=told.append, **settings)
    return data, record, settings, next(event["aside"] for event in told if event["kind"] == "aside")


@pytest.fixture(scope="module")
def classes():
    """The same of two classes, LinearSVC calibrated."""
    told = []
    data = table().drop_columns(["y"])
    settings = {"models": ["LinearSVC"], "folds": 3}
    record = compare(data, "good", on_event=told.append, **settings)
    return data, record, settings, next(event["aside"] for event in told if event["kind"] == "aside")


@pytest.mark.parametrize("which", ["numbers", "classes"])
@pytest.mark.sampled(6)
def test_the_winner_says_of_every_row_what_it_said_when_it_was_judged(which, request):
    data, record, settings, aside = request.getfixturevalue(which)
    again = fit_again(data, record, settings, record["winner"]["name"])
    np.testing.assert_array_equal(again.aside.rows, aside.rows)
    np.testing.assert_allclose(again.aside.said, aside.said, rtol=1e-6, atol=1e-8)
    holdout = record["winner"]["holdout"]
    assert again.holdout["score"] == pytest.approx(holdout["score"])
    assert (again.holdout["low"], again.holdout["high"]) == (
        pytest.approx(holdout["low"]),
        pytest.approx(holdout["high"]),
    )
    assert again.rows == record["protocol"]["train_rows"]


def test_every_finished_line_but_baselines_can_be_asked(numbers):
    data, record, settings, _ = numbers
    names = [row["name"] for row in record["leaderboard"] if can_be_fitted(row)]
    assert names and not any(name.startswith("baseline") for name in names)
    assert {row["name"] for row in record["leaderboard"]} - set(names) == {"baseline: the mean"}
    for name in names:
        assert 0.5 < fit_again(data, record, settings, name).holdout["score"] < 1.0
    with pytest.raises(ParameterError, match="no finished model"):
        fit_again(data, record, settings, "baseline: the mean")


def test_a_blend_is_made_of_the_lines_it_names(numbers):
    data, record, settings, _ = numbers
    lines = [row for row in record["leaderboard"] if can_be_fitted(row)][:2]
    members = [candidate_of(row["name"], record, None) for row in lines]
    blend = blend_of(members, [0.25, 0.75], "regression")
    row = {**lines[0], "name": blend.name, "model": blend.model, "parameters": blend.parameters}
    with_blend = {**record, "leaderboard": [*record["leaderboard"], row]}
    said = [fit_again(data, with_blend, settings, line["name"]).aside.said for line in lines]
    found = fit_again(data, with_blend, settings, blend.name).aside.said
    np.testing.assert_allclose(found, 0.25 * said[0] + 0.75 * said[1], rtol=1e-6)


def test_another_table_is_refused(numbers):
    data, record, settings, _ = numbers
    with pytest.raises(DataError, match="no longer the one that was compared"):
        fit_again(data.slice(0, 80), record, settings, record["winner"]["name"])
