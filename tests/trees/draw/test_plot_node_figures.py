"""Figures inside nodes: every row that passes is counted, and the threshold stands where it cuts."""

import numpy as np
import pytest
import sklearn.tree
from sklearn.datasets import load_diabetes, load_iris
from tests.plots.svg import SPACE

from learnable.core.errors import DataError
from learnable.plots.markup import svg
from learnable.trees.draw.plot import NodeFigures, class_colour
from learnable.trees.draw.view import view_tree

X, Y = load_iris(return_X_y=True)


def figures(model, rows, target):
    return NodeFigures("owner", model, view_tree("owner", model), rows, target)


def drawn(mark):
    from xml.etree import ElementTree

    return ElementTree.fromstring(svg(200, 100, "title", mark))


def test_bars_stand_for_the_rows_of_the_node():
    model = sklearn.tree.DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, Y)
    found = figures(model, X, Y)
    assert {node: len(rows) for node, rows in found.rows.items()} == dict(enumerate(model.tree_.n_node_samples))
    assert found.has(0) and found.has(2) and not found.has(1)  # node 1 is a leaf
    root = drawn(found.draw(0, 10.0, 5.0, 180.0))
    area = {}
    for bar in root.iter(SPACE + "rect"):
        area[bar.get("fill")] = area.get(bar.get("fill"), 0.0) + float(bar.get("height"))
    assert len(area) == 3 and max(area.values()) - min(area.values()) < 0.2  # 50 flowers of each kind
    column = X[:, model.tree_.feature[0]]
    share = (model.tree_.threshold[0] - column.min()) / np.ptp(column)
    wedge = next(p.get("d") for p in root.iter(SPACE + "path") if p.get("d").endswith("z"))
    assert float(wedge[1:].split()[0]) == pytest.approx(10 + 180 * share, abs=0.01)


def test_a_scatter_for_numbers_with_the_means_on_either_side():
    rows, target = load_diabetes(return_X_y=True)
    model = sklearn.tree.DecisionTreeRegressor(max_depth=1).fit(rows, target)
    root = drawn(figures(model, rows, target).draw(0, 0.0, 0.0, 150.0, value=0.05))
    assert len(list(root.iter(SPACE + "circle"))) == 151  # some of the rows, and the one that is marked


def test_rows_must_fit_the_tree():
    model = sklearn.tree.DecisionTreeClassifier(max_depth=2).fit(X, Y)
    with pytest.raises(DataError, match="owner: X must have 4 columns"):
        figures(model, X[:, :2], Y)
    with pytest.raises(DataError, match="go together"):
        figures(model, None, Y)


def test_colours_repeat():
    assert class_colour(0) == class_colour(8) != class_colour(1)
