"""Figures side by side: nothing overlaps, every title is shown, and only figures are taken."""

import pytest
from tests.plots.svg import elements, parse, texts

from learnable.core.errors import DataError
from learnable.plots import Markup, confusion_matrix, labelled_lines, side_by_side

LINE = labelled_lines({"line": ([0, 1], [0, 1])}, title="A line <&>")
MATRIX = confusion_matrix(["a", "b"], [[3, 1], [0, 4]], title="A matrix")


def test_panels_stand_next_to_each_other_under_their_titles():
    root = parse(side_by_side(LINE, MATRIX, title="Both"))
    assert root[0].text == "Both"
    assert {"A line <&>", "A matrix"} <= set(texts(root))
    panels = elements(root, "svg")[1:]
    lefts, widths, heights = ([float(panel.get(name, "0")) for panel in panels] for name in ("x", "width", "height"))
    assert lefts[1] >= lefts[0] + widths[0]
    _, _, width, height = map(float, root.get("viewBox").split())
    assert width == pytest.approx(lefts[1] + widths[1])
    assert height >= max(heights) + 12
    for panel, alone in zip(panels, (LINE, MATRIX), strict=True):
        assert panel.get("viewBox") == parse(alone).get("viewBox")
        assert len(elements(panel, "path")) == len(elements(parse(alone), "path"))


def test_panels_can_be_put_side_by_side_again():
    root = parse(side_by_side(side_by_side(LINE, LINE, title="Two"), LINE, title="Three"))
    assert texts(root).count("A line <&>") == 3


@pytest.mark.parametrize("figure", ["<svg></svg>", Markup("<p>text</p>"), str(LINE)])
def test_what_is_no_figure_is_refused(figure):
    with pytest.raises(DataError, match="a function of learnable"):
        side_by_side(LINE, figure, title="x")


def test_nothing_is_refused():
    with pytest.raises(DataError, match="nothing to draw"):
        side_by_side(title="x")
