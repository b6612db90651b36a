"""The drawing: nothing overlaps, everything is inside, names are escaped, and the way of a row is marked."""

import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import sklearn.tree
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_iris, load_linnerud
from tests.plots.svg import elements, inside, parse, texts

from learnable import ID3Classifier
from learnable.core.errors import DataError, ParameterError
from learnable.plots.axes import ACCENT
from learnable.trees import plot_tree
from learnable.trees.draw.plot import tidy_positions

X, Y = load_iris(return_X_y=True)
MODEL = sklearn.tree.DecisionTreeClassifier(random_state=0).fit(X, Y)


def cards(root):
    """Return the rectangles of the nodes: x, y, width, height."""
    found = [r for r in elements(root, "rect") if r.get("rx") == "9"]
    return np.array([[float(r.get(name)) for name in ("x", "y", "width", "height")] for r in found])


def overlaps(a, b):
    return (abs(a[:2] + a[2:] / 2 - b[:2] - b[2:] / 2) < (a[2:] + b[2:]) / 2 - 1e-6).all()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), with_rows=st.booleans(), depth=st.sampled_from([None, 0, 1, 3]))
def test_no_two_nodes_overlap_and_all_are_inside(seed, with_rows, depth):
    rng = np.random.default_rng(seed)
    rows, labels = rng.normal(size=(60, 3)), rng.integers(0, 4, size=60)
    model = sklearn.tree.DecisionTreeClassifier(max_leaf_nodes=int(rng.integers(2, 25)), random_state=0)
    model.fit(rows, labels)
    more = {"X": rows, "y": labels} if with_rows else {}
    root = parse(plot_tree(model, max_depth=depth, **more))
    boxes = cards(root)
    assert len(boxes) == (model.tree_.node_count if depth is None else len(boxes)) >= 1
    assert not any(overlaps(a, b) for i, a in enumerate(boxes) for b in boxes[:i])
    _, _, width, height = map(float, root.get("viewBox").split())
    assert (boxes[:, :2] >= 0).all() and (boxes[:, 0] + boxes[:, 2] <= width).all()
    assert (boxes[:, 1] + boxes[:, 3] <= height).all() and (len(boxes) == 1 or inside(root))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 60))
def test_parents_stand_over_the_middle_and_levels_do_not_collide(seed, n):
    rng = np.random.default_rng(seed)
    children = {node: [] for node in range(n)}
    depth = [0] * n
    for node in range(1, n):
        parent = int(rng.integers(max(0, node - 4), node))
        children[parent].append(node)
        depth[node] = depth[parent] + 1
    width = {node: float(rng.uniform(1, 30)) for node in range(n)}
    centre = tidy_positions(children, width, 2.0)
    for node, below in children.items():
        if below:
            assert centre[node] == pytest.approx((centre[below[0]] + centre[below[-1]]) / 2)
            assert all(centre[a] < centre[b] for a, b in pairwise(below))
    for a in range(n):
        for b in range(a):
            if depth[a] == depth[b]:
                assert abs(centre[a] - centre[b]) >= (width[a] + width[b]) / 2 + 2.0 - 1e-9


def test_the_way_of_a_row_is_marked():
    root = parse(plot_tree(MODEL, X=X, y=Y, sample=X[70]))
    leaf = int(MODEL.apply(X[70:71])[0])
    on_the_way = int(MODEL.decision_path(X[70:71]).nnz)
    frames = [r for r in elements(root, "rect") if r.get("rx") == "9" and r.get("stroke") == ACCENT]
    assert len(frames) == on_the_way
    lines = [p for p in elements(root, "path") if p.get("stroke") == ACCENT]
    assert len(lines) == on_the_way - 1
    shown = [text for text in texts(root) if text.startswith("this row: ")]
    assert len(shown) == on_the_way - 1 and leaf > 0
    assert ACCENT not in plot_tree(MODEL)


def test_shares_fill_the_bar_and_rows_are_counted():
    root = parse(plot_tree(MODEL, class_names=["one", "two", "three"]))
    bars = [r for r in elements(root, "rect") if r.get("height") == "9"]
    first = [float(r.get("width")) for r in bars[:3]]
    assert np.ptp(first) < 0.02  # 50 rows of each class at the root
    assert {"150 rows", "one", "two", "three"} <= set(texts(root))
    widths = [float(p.get("stroke-width")) for p in elements(root, "path") if p.get("stroke-width")]
    assert max(widths) == pytest.approx(13 * 100 / 150, abs=0.01)


def test_what_is_below_the_last_level_is_counted():
    shown = texts(parse(plot_tree(MODEL, max_depth=1)))
    assert "… 8 leaves below" in shown


@pytest.mark.parametrize("with_rows", [False, True])
@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
def test_a_regression_tree(with_rows, criterion):
    rows, target = load_diabetes(return_X_y=True)
    model = sklearn.tree.DecisionTreeRegressor(max_depth=3, criterion=criterion).fit(rows, target)
    more = {"X": rows, "y": target} if with_rows else {}
    figure = plot_tree(model, sample=rows[3], **more)
    root = parse(figure)
    assert inside(root) and ("standard deviation" in figure) == (criterion == "squared_error")
    assert len(cards(root)) == model.tree_.node_count


def test_branches_of_id3_are_named_after_their_categories():
    frame = pd.DataFrame({"sky": ["sun", "rain", "fog"] * 2, "wind": ["weak", "strong"] * 3})
    model = ID3Classifier().fit(frame, ["a", "b", "a", "a", "b", "a"])
    shown = texts(parse(plot_tree(model, sample=frame.iloc[[1]])))
    assert {"sky", "sun", "rain", "fog", "this row: rain"} <= set(shown)
    binary = texts(parse(plot_tree(ID3Classifier(split="binary").fit(frame, [0, 1, 2, 0, 1, 2]))))
    assert {"yes", "no"} <= set(binary) and any(re.match("sky = ", text) for text in binary)


def test_names_are_escaped_and_cut():
    names = ["<script>alert(1)</script>" * 3, "b", "c", "d"]
    figure = plot_tree(MODEL, feature_names=names, class_names=["<b>", "&", '"'])
    parse(figure)
    assert "<script" not in figure and "&lt;b&gt;" in figure


def test_a_root_alone_and_one_class():
    root = parse(plot_tree(ID3Classifier().fit([["a"]], ["only"])))
    assert "only" in texts(root) and len(cards(root)) == 1


def test_what_cannot_be_drawn_is_refused():
    several = sklearn.tree.DecisionTreeRegressor(max_depth=1).fit(*load_linnerud(return_X_y=True))
    with pytest.raises(DataError, match="plot_tree: draws one target; this tree has 3"):
        plot_tree(several)
    with pytest.raises(DataError, match="plot_tree: sample must be one row"):
        plot_tree(MODEL, sample=pd.DataFrame(X[:2]))
    with pytest.raises(DataError, match="plot_tree: X and y go together"):
        plot_tree(MODEL, X=X)
    with pytest.raises(ParameterError, match="plot_tree: precision must be"):
        plot_tree(MODEL, precision=0)
