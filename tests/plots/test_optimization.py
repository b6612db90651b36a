"""Traces and paths as figures: lines where the numbers are, contours where the function has its level."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.plots.svg import elements, inside, parse, points, texts

from learnable.core.errors import DataError
from learnable.plots import convergence_plot, path_plot, trace_plot
from learnable.plots.optimization import contour_lines

X = np.linspace(-2, 2, 41)
Y = np.linspace(-1, 1, 31)
BOWL = X**2 + 4 * Y[:, None] ** 2


@pytest.mark.parametrize("level", [0.1, 0.5, 2.0])
def test_contours_lie_on_the_level_and_close(level):
    lines = list(contour_lines(X, Y, BOWL, level))
    assert len(lines) == 1
    (line,) = lines
    assert np.array_equal(line[0], line[-1])  # an ellipse
    np.testing.assert_allclose(line[:, 0] ** 2 + 4 * line[:, 1] ** 2, level, atol=0.01)


def test_contours_of_a_plane_are_exact_straight_lines():
    (line,) = contour_lines(X, Y, X + 2 * Y[:, None], 0.3)
    np.testing.assert_allclose(line[:, 0] + 2 * line[:, 1], 0.3, atol=1e-12)
    assert sorted(line[[0, -1], 1].round(6).tolist()) == [-0.85, 1.0]  # from border to border


def test_a_saddle_is_crossed_by_two_lines_that_do_not_meet():
    z, unit = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([0.0, 1.0])
    for level, sign in ((0.1, 1.0), (-0.1, -1.0)):
        lines = list(contour_lines(unit, unit, z, level))
        assert len(lines) == 2
        for line in lines:  # each cuts off a corner that is not on the side of the middle
            across = line[:, 0] + sign * line[:, 1]
            assert np.allclose(across, across[0])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(-1.5, 1.5))
def test_contours_of_any_grid_use_every_crossing_once(seed, level):
    z = np.random.default_rng(seed).normal(size=(6, 7))
    assume(np.abs(z - level).min() > 1e-6)  # crossings beside a node are not told apart by nine digits
    lines = list(contour_lines(np.arange(7.0), np.arange(6.0), z, level))
    above = z > level
    crossings = (above[1:] != above[:-1]).sum() + (above[:, 1:] != above[:, :-1]).sum()
    found = {tuple(np.round(point, 9)) for line in lines for point in line}
    assert len(found) == crossings
    for line in lines:
        assert (np.abs(np.diff(line, axis=0)) <= 1 + 1e-9).all()  # neighbours share a cell
        on_the_edge = [p[0] in (0.0, 6.0) or p[1] in (0.0, 5.0) for p in (line[0], line[-1])]
        assert np.array_equal(line[0], line[-1]) or all(on_the_edge)


def test_holes_break_contours_and_nothing_else():
    z = BOWL.copy()
    z[15, 20:] = np.nan
    for line in contour_lines(X, Y, z, 0.5):
        assert np.isfinite(line).all()
    parse(path_plot(X, Y, z, {"gd": [[1.0, 0.5], [0.1, 0.1]]}))
    parse(path_plot(X, Y, np.full_like(BOWL, np.nan), {"gd": [[1.0, 0.5], [0.1, 0.1]]}))


def test_the_path_goes_through_its_points():
    path = [[1.5, 0.8], [-1.0, -0.4], [0.5, 0.1]]
    root = parse(path_plot(X, Y, BOWL, {"gd": path}, width=400.0, height=300.0))
    (line,) = [node for node in elements(root, "path") if node.get("stroke-width") == "1.8"]
    drawn = points(line.get("d"))
    scale = (drawn[1] - drawn[0]) / (np.array(path[1]) - path[0])
    np.testing.assert_allclose(drawn[2] - drawn[0], scale * (np.array(path[2]) - path[0]), atol=0.05)
    circles = elements(root, "circle")
    assert len(circles) == 4  # the ring at the start, and a dot for each point
    np.testing.assert_allclose([float(circles[0].get("cx")), float(circles[0].get("cy"))], drawn[0], atol=0.02)


def test_a_path_is_cut_at_the_border_and_comes_back():
    path = np.array([[0.0, 0.0], [10.0, 5.0], [-1.0, 0.5], [1e300, -1e300], [np.nan, 1.0], [0.5, 0.5]])
    figure = path_plot(X, Y, BOWL, {"wild": path, "tame": [[1.0, 1.0], [0.0, 0.0]]})
    root = parse(figure)
    assert inside(root)
    assert set(texts(root)) >= {"wild", "tame"}


def test_long_paths_are_drawn_as_lines_without_a_dot_each():
    t = np.linspace(0, 20, 500)
    spiral = np.column_stack([np.cos(t), np.sin(t)]) * np.exp(-t / 5)[:, None]
    root = parse(path_plot(X, Y, BOWL, {"spiral": spiral}))
    assert len(elements(root, "circle")) == 2


def test_convergence_is_a_straight_line_on_the_logarithmic_axis():
    root = parse(convergence_plot({"gd": 5.0 + 10.0 * 0.5 ** np.arange(20)}, best=5.0))
    (line,) = [node for node in elements(root, "path") if node.get("stroke-width") == "1.8"]
    heights = points(line.get("d"))[:, 1]
    np.testing.assert_allclose(np.diff(heights), np.diff(heights).mean(), atol=0.02)
    assert any(text.startswith("10") for text in texts(root))


def test_several_optimisers_share_the_lowest_value_and_have_a_legend():
    root = parse(convergence_plot({"a": [3.0, 2.0, 1.5], "b": [3.0, 1.0], "c <&>": [4.0, np.nan, 2.0]}))
    assert inside(root)
    assert set(texts(root)) >= {"a", "b", "c <&>"}
    assert len([node for node in elements(root, "path") if node.get("stroke-width") == "1.8"]) == 3


def test_a_trace_shows_objective_and_gradient_norm():
    root = parse(trace_plot([9.0, 3.0, 1.0, 0.5], [6.0, 2.0, 0.1, 1e-9]))
    assert set(texts(root)) >= {"f − lowest", "gradient norm"}
    assert "f − optimum" in texts(parse(trace_plot([9.0, 3.0], [6.0, 2.0], best=0.0)))


@pytest.mark.parametrize(
    "values", [[], [1.0], [np.nan, np.nan], [0.0, 0.0], [1e300, -1e300], [np.inf, 1.0], list(np.linspace(9, 1, 5000))]
)
def test_odd_traces_give_a_figure_all_the_same(values):
    assert inside(parse(trace_plot(values, np.abs(values))))
    assert inside(parse(convergence_plot({"odd": values})))
    assert len(trace_plot(values, np.abs(values))) < 60_000


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: trace_plot([1.0, 2.0], [1.0]), "one length"),
        (lambda: trace_plot(["a"], [1.0]), "list of numbers"),
        (lambda: convergence_plot({}), "nothing to draw"),
        (lambda: path_plot(X, Y, BOWL.T, {}), "z must have shape"),
        (lambda: path_plot(X, Y, "z", {}), "table of numbers"),
        (lambda: path_plot(X[::-1], Y, BOWL, {}), "increasing"),
        (lambda: path_plot([0.0], Y, BOWL, {}), "at least two"),
        (lambda: path_plot(X, Y, BOWL, {"p": [1.0, 2.0]}), "shape"),
        (lambda: path_plot(X, Y, BOWL, {"p": [["a", "b"]]}), "points of numbers"),
    ],
)
def test_mistakes_get_an_error_that_names_them(build, message):
    with pytest.raises(DataError, match=message):
        build()
