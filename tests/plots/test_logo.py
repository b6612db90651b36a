"""Sequence logos: heights are bits, the most probable letter is on top."""

import re

import numpy as np
import pytest
from tests.plots.svg import parse

from learnable.core.errors import DataError
from learnable.plots import sequence_logo

P = [[1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0.0, 0.0], [0.1, 0.2, 0.7, 0.0]]


def letters_of(figure):
    """Return (letter, left, base, height) of every letter."""
    found = re.findall(r'<text transform="translate\(([\d.]+) ([\d.]+)\) scale\([\d.]+ ([\d.]+)\)"[^>]*>(.)<', figure)
    return [(letter, float(x), float(base), 10.0 * float(scale)) for x, base, scale, letter in found]


def test_heights_are_shares_of_the_information():
    figure = sequence_logo(P, title="Four")
    parse(figure)
    found = letters_of(figure)
    whole = found[0][3]  # two bits
    assert found[0][0] == "A"
    columns = sorted({x for _, x, _, _ in found})
    assert len(columns) == 3  # the flat position shows nothing
    half = [height for letter, x, _, height in found if x == columns[1]]
    np.testing.assert_allclose(half, [whole / 4, whole / 4], rtol=1e-3)  # one bit, two letters
    last = [(letter, base) for letter, x, base, _ in found if x == columns[2]]
    assert min(last, key=lambda pair: pair[1])[0] == "G"


def test_positions_have_no_zero_around_a_start():
    figure = sequence_logo([[0.7, 0.1, 0.1, 0.1]] * 4, first=-2)
    assert re.findall(r">(−?\d+)</text>", figure.split("</g>")[0])[:4] == ["−2", "−1", "1", "2"]


def test_any_alphabet_and_hostile_letters():
    figure = sequence_logo([[0.5, 0.5]], ["<", "&"], colors={"<": "red"}, background=[0.9, 0.1])
    parse(figure)
    assert "red" in figure


def test_refusals():
    with pytest.raises(DataError, match="one column a letter"):
        sequence_logo([[0.5, 0.5]])
    with pytest.raises(DataError, match="have the sum 1"):
        sequence_logo([[0.5, 0.5, 0.5, 0.5]])
    with pytest.raises(DataError, match="background must be 4"):
        sequence_logo(P, background=[0.5, 0.5])
