"""Lines with a legend: every series is drawn, what is outside is not, and names cannot break the page."""

import numpy as np
import pytest
from tests.plots.svg import elements, parse, points, texts

from learnable.core.errors import DataError
from learnable.plots import labelled_lines

SERIES = {"a": ([0.0, 1.0, 2.0], [0.0, 1.0, 4.0]), "b": ([0.0, 2.0], [1.0, 1.0])}


def test_every_series_has_a_line_and_a_name():
    figure = labelled_lines(SERIES, title="Two", reference="b")
    parse(figure)
    assert figure.count('stroke-linejoin="round"') == 2
    assert ">a<" in figure and ">b<" in figure and "<title>Two</title>" in figure


def test_points_outside_the_ranges_are_left_out():
    shown = labelled_lines(SERIES, y_range=(0.0, 2.0))
    assert shown != labelled_lines(SERIES)
    assert labelled_lines(SERIES, y_range=(10.0, 20.0)).count('d="" ') == 2


def test_a_square_has_axes_of_equal_length():
    figure = labelled_lines({"x": ([-1.0, 1.0], [-1.0, 1.0])}, x_range=(-1, 1), y_range=(-1, 1), square=True)
    xs = [float(v) for v in figure.split('<g><path d="M')[1].split('"')[0].replace("L", " ").split()]
    assert abs(xs[2] - xs[0]) == pytest.approx(abs(xs[3] - xs[1]), abs=1.0)


def test_hostile_names_and_numbers():
    parse(labelled_lines({"<script>": ([0.0, np.nan, 1.0], [np.inf, 0.0, 1.0])}))
    with pytest.raises(DataError, match="nothing to draw"):
        labelled_lines({})
    with pytest.raises(DataError, match="one length"):
        labelled_lines({"a": ([1.0], [1.0, 2.0])})


def test_a_line_is_cut_where_it_leaves_the_range():
    figure = labelled_lines({"x": ([0.0, 4.0], [0.0, 4.0])}, x_range=(0.0, 4.0), y_range=(0.0, 2.0))
    (start, end) = points(next(node for node in elements(parse(figure), "path") if node.get("fill") == "none").get("d"))
    whole = labelled_lines({"x": ([0.0, 2.0], [0.0, 2.0])}, x_range=(0.0, 4.0), y_range=(0.0, 2.0))
    expected = points(next(node for node in elements(parse(whole), "path") if node.get("fill") == "none").get("d"))
    np.testing.assert_allclose([start, end], expected, atol=0.02)


def test_powers_are_straight_on_logarithmic_axes():
    x = np.array([1.0, 10.0, 100.0])
    root = parse(labelled_lines({"cube": (x, x**3)}, x_log=True, y_log=True))
    drawn = points(next(node for node in elements(root, "path") if node.get("fill") == "none").get("d"))
    np.testing.assert_allclose(drawn[1] - drawn[0], drawn[2] - drawn[1], atol=0.02)
    assert {"10⁰", "10¹", "10²"} <= set(texts(root))


def test_what_has_no_logarithm_breaks_the_line_and_no_range_may_hold_it():
    root = parse(labelled_lines({"x": ([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 0.0, 4.0, 5.0])}, y_log=True))
    (line,) = [node.get("d") for node in elements(root, "path") if node.get("fill") == "none"]
    assert line.count("M") == 2
    with pytest.raises(DataError, match="must be positive"):
        labelled_lines(SERIES, y_range=(0.0, 1.0), y_log=True)
