import builtins
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from tests.plots.svg import parse

from learnable.core.errors import DataError
from learnable.plots import cluster_scatter, confusion_matrix, histogram, line_with_band, paint, side_by_side, stacked
from learnable.plots.paint import INK, _circle, _path, as_png, size_of, standalone


def pieces(d):
    return _path(ElementTree.fromstring(f'<path d="{d}"/>'))


def test_path_data_are_read_as_they_are_written():
    ((points, curved, closed),) = pieces("M1 2L3 4H10V-5l1 1h2v3z")
    assert closed and not curved
    np.testing.assert_array_equal(points, [(1, 2), (3, 4), (10, 4), (10, -5), (11, -4), (13, -4), (13, -1)])
    two = pieces("M0 0h5M1 1v2")
    assert [piece[0].tolist() for piece in two] == [[[0, 0], [5, 0]], [[1, 1], [1, 3]]]
    (line, curve) = pieces("M0 0L1 1C1 2 3 4 5 6")
    assert not line[1] and curve[1] and curve[0].tolist() == [[1, 1], [1, 2], [3, 4], [5, 6]]
    cross = pieces("M4 4m-5 -5l10 10m-10 0l10 -10")
    assert [piece[0].tolist() for piece in cross] == [[[-1, -1], [9, 9]], [[-1, 9], [9, -1]]]


def test_a_dot_is_a_stroke_of_no_length():
    ((points, _, closed),) = pieces("M3 4h0")
    assert not closed and points.tolist() == [[3, 4], [3, 4]]


def test_a_circle_is_round():
    ((points, curved, closed),) = _circle(ElementTree.fromstring('<circle cx="2" cy="3" r="4"/>'))
    ends = points[::3]
    np.testing.assert_allclose(np.hypot(*(ends - [2, 3]).T), 4.0)
    assert curved and closed and len(points) == 13


def test_a_file_of_its_own_has_no_colours_of_a_page():
    text = standalone(line_with_band([1, 2], [3, 4], [2, 3], [4, 5]))
    assert "var(" not in text and "currentColor" not in text and 'font-family="inherit"' not in text
    root = ElementTree.fromstring(text)
    assert float(root.get("width")) == 380 + 24 and root.get("viewBox") == "-12 -12 404 284"
    assert INK in text


def test_other_text_is_refused():
    with pytest.raises(DataError, match="must be what a function of"):
        size_of("<p>hello</p>")


def test_figures_below_each_other_keep_their_sizes():
    one = histogram([0, 1, 2], [1, 2])
    both = stacked(one, side_by_side(one, one, title="pair"), title="three")
    inner = [float(node.get("y")) for node in parse(both) if node.tag.endswith("svg")]
    assert inner == [0.0, size_of(one)[1] + 16.0]
    with pytest.raises(DataError, match="nothing to draw"):
        stacked(title="none")
    with pytest.raises(DataError, match="must be what a function"):
        stacked("<svg/>", title="foreign")


@pytest.fixture
def axis():
    pytest.importorskip("matplotlib", reason="axes belong to matplotlib, which is not installed")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    sheet = Figure(figsize=(4, 3), dpi=100)
    FigureCanvasAgg(sheet)
    return sheet.add_axes((0, 0, 1, 1))


def test_what_is_painted_stands_where_the_svg_says(axis):
    figure = confusion_matrix(["no", "yes"], [[8, 2], [1, 9]], numbers=True)
    assert paint(figure, axis) is axis
    words = {text.get_text(): text for text in axis.texts}
    assert {"no", "yes", "8", "2", "1", "9", "actual", "predicted"} <= set(words)
    assert words["8"].get_position()[0] < words["2"].get_position()[0]
    assert words["8"].get_position()[1] < words["1"].get_position()[1]  # y grows downwards
    assert axis.get_ylim()[0] > axis.get_ylim()[1]
    assert words["actual"].get_rotation() == 90.0
    assert words["8"].get_color() == "white" and words["2"].get_color() == INK


def test_dots_become_markers_and_lines_paths(axis):
    paint(cluster_scatter([0, 1, 5], [0, 1, 5], [0, 0, 1], centres=[[0.5, 0.5], [5, 5]]), axis)
    counts = sorted(len(line.get_xdata()) for line in axis.lines)
    assert counts == [1, 2]
    assert len(axis.patches) > 5


def test_a_png_shows_the_figure_on_white():
    image = pytest.importorskip("matplotlib.image", reason="PNG files are drawn by matplotlib, which is not installed")
    from io import BytesIO

    pixels = image.imread(BytesIO(as_png(histogram([0, 1, 2], [3, 5]))))
    assert pixels.shape[:2] == (2 * (260 + 24), 2 * (380 + 24))
    assert (pixels[0, :, :3] == 1.0).all() and pixels[:, :, :3].min() < 0.6


def test_without_matplotlib_and_cairosvg_the_error_says_what_to_install(monkeypatch):
    load = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] in ("matplotlib", "cairosvg"):
            raise ImportError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        as_png(histogram([0, 1, 2], [3, 5]))
