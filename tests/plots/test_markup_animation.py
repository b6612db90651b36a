"""Figures that move: every frame is there, once, and exactly one is visible at a time."""

from xml.etree import ElementTree

import pytest

from learnable.core.errors import DataError, ParameterError
from learnable.plots import Markup, animate, labelled_lines


def frames(n):
    return [labelled_lines({"line": ([0, 1], [0, k])}, title=f"Frame {k}") for k in range(1, n + 1)]


@pytest.mark.parametrize("n", [1, 3, 7])
def test_one_frame_is_visible_at_a_time(n):
    root = ElementTree.fromstring(animate(frames(n), title="Steeper"))
    shown = [node.attrib["values"].split(";") for node in root.iter() if node.tag.endswith("animate")]
    assert len(shown) == n
    for column in zip(*shown, strict=True):
        assert column.count("visible") == 1
    still = [node.attrib["visibility"] for node in root.iter() if "visibility" in node.attrib]
    assert still == ["hidden"] * (n - 1) + ["visible"]


def test_bad_frames_are_refused():
    with pytest.raises(DataError):
        animate([], title="Nothing")
    with pytest.raises(DataError):
        animate([Markup("<p></p>")], title="No figure")
    with pytest.raises(ParameterError):
        animate(frames(1), seconds=0.0, title="No time")
