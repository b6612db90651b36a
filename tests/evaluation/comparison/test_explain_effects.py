"""Partial dependence of models whose effects are known."""

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from learnable import GradientBoostingRegressor, LogisticRegression, Ridge
from learnable.data.encoder import TableEncoder
from learnable.evaluation.comparison.explain import direction, effects_of, grid

RNG = np.random.default_rng(2)
N = 250


def encoded(table):
    encoder = TableEncoder().fit(table)
    return encoder.transform(table), [table.column_names[source] for source in encoder.sources_]


def test_a_linear_model_has_straight_effects_with_its_signs():
    table = pa.table({"up": RNG.normal(size=N), "down": RNG.normal(size=N), "none": RNG.normal(size=N)})
    X, sources = encoded(table)
    y = 2.0 * table["up"].to_numpy() - 3.0 * table["down"].to_numpy()
    found = effects_of(Ridge(alpha=1e-8).fit(X, y), X, sources, table, table.column_names, None, None, 0)
    assert [effect["sign"] for effect in found] == ["rises", "falls", "hardly changes"]
    slopes = [np.diff(effect["values"]) / np.diff(effect["points"]) for effect in found]
    assert np.allclose(slopes[0], 2.0) and np.allclose(slopes[1], -3.0)


def test_levels_and_gaps_of_a_category_have_the_values_they_were_made_with():
    kind = RNG.choice(["a", "b", "c"], N, p=[0.5, 0.3, 0.2])
    table = pa.table({"kind": kind, "x": pa.array(RNG.normal(size=N), mask=RNG.random(N) < 0.2)})
    X, sources = encoded(table)
    y = np.select([kind == "a", kind == "b"], [0.0, 10.0], 4.0)
    (found,) = effects_of(Ridge(alpha=1e-8).fit(X, y), X, sources, table, ["kind"], None, None, 0)
    assert found["kind"] == "level" and found["sign"] is None and set(found["points"]) == {"a", "b", "c"}
    means = dict(zip(found["points"], found["values"], strict=True))
    assert np.isclose(means["b"] - means["a"], 10.0) and np.isclose(means["c"] - means["a"], 4.0)


def test_it_is_the_mean_over_rows_with_the_value_put_in():
    table = pa.table({"x": RNG.normal(size=N), "z": RNG.normal(size=N)})
    X, sources = encoded(table)
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, X[:, 0] ** 2 + X[:, 1])
    (found,) = effects_of(model, X, sources, table, ["x"], None, None, 0)
    assert found["sign"] == "rises and falls"
    _, _, donors = grid(table["x"])
    points = X[donors, 0]
    brute = [model.predict(np.column_stack([np.full(N, point), X[:, 1]])).mean() for point in points]
    assert np.allclose(found["values"], brute)


def test_classes_are_told_by_a_probability_also_of_sparse_rows():
    table = pa.table({"x": RNG.normal(size=N)})
    X, sources = encoded(table)
    y = (table["x"].to_numpy() + 0.5 * RNG.normal(size=N) > 0).astype(int)
    model = LogisticRegression().fit(X, y)
    (found,) = effects_of(model, sp.csr_array(X), sources, table, ["x"], ["no", "yes"], 1, 0)
    assert found["of"] == "yes" and found["sign"] == "rises" and all(0 <= value <= 1 for value in found["values"])
    (found,) = effects_of(model, X, sources, table, ["x"], ["no", "yes"], 0, 0)
    assert found["of"] == "no" and found["sign"] == "falls"


def test_dates_are_in_order_and_what_has_no_values_has_no_grid():
    days = np.datetime64("2024-01-01") + RNG.integers(0, 300, 50).astype("timedelta64[D]")
    kind, points, donors = grid(pa.chunked_array([pa.array(days)]))
    assert kind == "ordered" and points == sorted(points) and len(points) == len(donors) > 5
    assert grid(pa.chunked_array([pa.array([None, None], pa.float64())])) == ("number", [], [])
    assert direction(np.array([0.0, 1.0, 0.95]), 1.0) == "rises"


def test_whole_days_are_shown_as_days_and_free_text_has_no_levels():
    days = pa.chunked_array([np.array(["2024-01-01", "2024-01-02", "2024-01-03"], dtype="datetime64[us]")])
    assert grid(days)[1] == ["2024-01-01", "2024-01-02", "2024-01-03"]
    hours = pa.chunked_array([np.array(["2024-01-01T00", "2024-01-01T12"], dtype="datetime64[us]")])
    assert grid(hours)[1] == ["2024-01-01 00:00:00", "2024-01-01 12:00:00"]
    assert grid(pa.chunked_array([["one text", "another", "a third"]])) == ("level", [], [])
