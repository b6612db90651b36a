from html import unescape
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from learnable.plots.markup import Markup, clean, compact, isolated, join, svg, tag


@given(st.text(), st.text())
def test_text_survives_a_round_trip_and_never_becomes_markup(inside, attribute):
    element = ElementTree.fromstring(tag("a", inside, title=attribute))
    normal = clean(inside).replace("\r\n", "\n").replace("\r", "\n")
    assert (element.text or "") == normal
    assert len(element) == 0
    # A parser of XML turns line breaks and tabs of attributes into spaces.
    assert element.get("title").split() == clean(attribute).split() or "\N{NEXT LINE}" in attribute


@given(st.lists(st.text(), max_size=5))
def test_joined_text_is_escaped(pieces):
    assert unescape(join(pieces, "<")) == "<".join(clean(piece) for piece in pieces)


def test_markup_is_inserted_as_it_is():
    assert tag("b", Markup("<i>x</i>"), None, "<") == "<b><i>x</i>&lt;</b>"
    assert Markup("<i>").__html__() == "<i>"


def test_attributes_are_named_as_in_python_and_none_is_left_out():
    assert tag("a", class_="x", stroke_width=1.0, id=None) == '<a class="x" stroke-width="1"></a>'


@given(st.floats())
def test_a_coordinate_is_a_short_finite_number(value):
    text = compact(value)
    assert "e" not in text and "n" not in text and text != "-0"
    if abs(value) < 1e9:
        assert abs(float(text) - value) <= 0.005 + 1e-9


def test_a_name_is_cut_and_isolated():
    assert clean("abcdef", 4) == "abc…"
    assert isolated("שלום")[0] == "\N{FIRST STRONG ISOLATE}"
    assert isolated("שלום")[-1] == "\N{POP DIRECTIONAL ISOLATE}"


def test_characters_that_no_file_holds_are_replaced():
    clean("\ud800").encode()
    assert clean("a\x00b") == "a\N{REPLACEMENT CHARACTER}b"
    assert clean("line\nbreak\t") == "line\nbreak\t"


def test_a_figure_has_a_title_and_a_role():
    figure = svg(10, 5.5, "A <title>", desc="more")
    assert 'role="img"' in figure
    assert 'viewBox="0 0 10 5.5"' in figure
    assert "<title>A &lt;title&gt;</title><desc>more</desc>" in figure
