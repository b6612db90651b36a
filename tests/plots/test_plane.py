"""The figure of a margin: every row by its case, both margins, and nothing outside the frame."""

import numpy as np
import pytest
from tests.plots.svg import elements, inside, parse, points, texts

from learnable.core.errors import DataError
from learnable.plots import margin_plot

X = np.linspace(-2.0, 2.0, 21)
SCORES = X + 0.0 * X[:, None]
ROWS = [[-1.0, 0.0], [1.0, 0.5], [0.2, 1.0], [1.8, 0.0], [9.0, 9.0]]
SIGN = [-1, 1, -1, 1, 1]
CASE = ["margin", "margin", "bound", "non-support", "non-support"]


def test_every_row_is_drawn_by_its_case():
    root = parse(margin_plot(X, X, SCORES, ROWS, SIGN, CASE, names=("no", "yes")))
    rings = [c for c in elements(root, "circle") if c.get("fill") == "none"]
    assert len(rings) == 2 + 1  # and one in the legend
    diamonds = [p for p in elements(root, "path") if (p.get("d") or "").endswith("l-4 -4z")]
    assert len(diamonds) == 1 + 1
    assert {"no", "yes", "on the margin", "at its bound", "no support vector"} <= set(texts(root))
    assert inside(root)


def test_the_boundary_stands_half_way_between_the_margins():
    root = parse(margin_plot(X, X, SCORES, ROWS, SIGN, CASE))
    lines = [p for p in elements(root, "path") if p.get("fill") == "none" and "L" in (p.get("d") or "")]
    places = [points(line.get("d"))[:, 0].mean() for line in lines]
    assert len(places) == 3
    assert places[1] == pytest.approx((places[0] + places[2]) / 2, abs=0.02)
    assert [line.get("stroke-dasharray") for line in lines] == ["5 4", None, "5 4"]


def test_the_description_counts_the_cases():
    assert "2 no support vector, 2 on the margin, 1 at its bound." in margin_plot(X, X, SCORES, ROWS, SIGN, CASE)


def test_many_rows_are_thinned():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-2, 2, (5000, 2))
    figure = margin_plot(X, X, SCORES, rows, np.sign(rows[:, 0]), np.full(5000, "non-support"))
    assert figure.count("<circle") <= 2010


def test_hostile_input():
    parse(margin_plot(X, X, np.full((21, 21), np.nan), ROWS, SIGN, CASE, title="<script>", names=("<b>", "&")))
    with pytest.raises(DataError, match="scores must have shape"):
        margin_plot(X, X, SCORES[:3], ROWS, SIGN, CASE)
    with pytest.raises(DataError, match="increasing"):
        margin_plot(X[::-1], X, SCORES, ROWS, SIGN, CASE)
    with pytest.raises(DataError, match="two columns"):
        margin_plot(X, X, SCORES, [[1.0]], [1], ["margin"])
    with pytest.raises(DataError, match="one entry per row"):
        margin_plot(X, X, SCORES, ROWS, [1], CASE)
    with pytest.raises(DataError, match="case must be one of"):
        margin_plot(X, X, SCORES, ROWS, SIGN, ["inside"] * 5)
