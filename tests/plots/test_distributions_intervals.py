import pytest
from tests.plots.svg import elements, parse, texts

from learnable.core.errors import DataError
from learnable.plots import dot_intervals, scale_axis, whisker


def percent(node, name):
    return float(node.get(name).rstrip("%"))


def test_a_whisker_stands_where_its_numbers_are():
    root = parse(whisker(0.5, 0.25, 1.0, domain=(0.0, 2.0), title="half"))
    (line,), (dot,) = elements(root, "line"), elements(root, "circle")
    assert (percent(line, "x1"), percent(dot, "cx"), percent(line, "x2")) == (12.5, 25.0, 50.0)


def test_what_is_outside_becomes_an_arrow():
    left = parse(whisker(-5.0, -6.0, -4.0, domain=(0.0, 1.0), title="low"))
    assert texts(left) == ["◂"]
    assert not elements(left, "line") and not elements(left, "circle")
    assert texts(parse(whisker(9.0, domain=(0.0, 1.0), title="high"))) == ["▸"]
    cut = parse(whisker(0.5, -9.0, 9.0, domain=(0.0, 1.0), title="wide"))
    assert [percent(elements(cut, "line")[0], end) for end in ("x1", "x2")] == [0.0, 100.0]


@pytest.mark.parametrize("ends", [(None, None), (None, 1.0), (float("nan"), 1.0), (0.5, 0.5)])
def test_without_an_interval_there_is_only_the_dot(ends):
    root = parse(whisker(0.5, *ends, domain=(0.0, 1.0), title="dot"))
    assert len(elements(root, "circle")) == 1
    assert not elements(root, "line")


def test_nothing_known_is_nothing_drawn():
    root = parse(whisker(None, domain=(0.0, 1.0), title="none", marks=[0.0, 7.0], hollow=True))
    assert len(elements(root, "line")) == 1


def test_an_axis_shares_the_scale_of_its_whiskers():
    root = parse(scale_axis((0.0, 4.0), most=4))
    at = {text: percent(node, "x") for text, node in zip(texts(root), elements(root, "text"), strict=True)}
    dot = elements(parse(whisker(3.0, domain=(0.0, 4.0), title="x")), "circle")[0]
    assert percent(dot, "cx") == at["3"]


def test_a_figure_of_intervals():
    root = parse(dot_intervals(["a", "<b>", "c"], [1.0, -2.0, None], [0.5, None, None], [1.5, None, None], x_label="w"))
    assert len(elements(root, "circle")) == 2
    assert any("<b>" in text for text in texts(root))
    with pytest.raises(DataError, match="as many names"):
        dot_intervals(["a"], [1.0, 2.0])
    parse(dot_intervals([], []))
