"""MathML from the short notation: structure, escaping, errors that say where."""

from xml.etree import ElementTree

import pytest

from learnable.core.errors import ParameterError
from learnable.lab import mathml

SPACE = "{http://www.w3.org/1998/Math/MathML}"


def shape(text):
    """Return a formula as nested tags and texts."""

    def of(node):
        name = node.tag.removeprefix(SPACE)
        return f"{name}({','.join(of(child) for child in node)})" if len(node) else f"{name}:{node.text or ''}"

    return of(ElementTree.fromstring(mathml(text)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x_i", "math(mrow(msub(mi:x,mi:i)))"),
        ("x^{2}", "math(mrow(msup(mi:x,mrow(mn:2))))"),
        ("x^2_i", "math(mrow(msubsup(mi:x,mi:i,mn:2)))"),
        (r"\frac{1}{n}", "math(mrow(mfrac(mrow(mn:1),mrow(mi:n))))"),
        (r"\sum_i^n", "math(mrow(munderover(mo:∑,mi:i,mi:n)))"),
        (r"\argmin_k", "math(mrow(munder(mo:arg min,mi:k)))"),
        (r"\sqrt{0.5}", "math(mrow(msqrt(mrow(mn:0.5))))"),
        (r"\text{a b}", "math(mrow(mtext:a\N{NO-BREAK SPACE}b))"),
        ("a < b", "math(mrow(mi:a,mo:<,mi:b))"),
    ],
)
def test_structure(text, expected):
    assert shape(text) == expected


@pytest.mark.parametrize("text", ["x_", "{x", r"\frac{1}", "x_1_2", "\\"])
def test_what_is_not_whole_is_refused(text):
    with pytest.raises(ParameterError, match="mathml: "):
        mathml(text)


def test_the_text_for_screen_readers_is_the_notation():
    assert ElementTree.fromstring(mathml("a < b")).get("alttext") == "a < b"
