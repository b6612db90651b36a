"""Path figures: one line a coefficient, the chosen penalty, names, refusals."""

import numpy as np
import pytest
from tests.plots.svg import elements, inside, parse, texts

from learnable.core.errors import DataError
from learnable.plots import coefficient_paths

PENALTIES = np.geomspace(1.0, 1e-3, 20)
COEFS = np.outer([2.0, -1.0, 0.0], 1 - np.sqrt(PENALTIES))


def test_one_line_a_coefficient_and_one_for_the_choice():
    without = parse(coefficient_paths(PENALTIES, COEFS))
    with_choice = parse(coefficient_paths(PENALTIES, COEFS, chosen=0.1))
    assert len(elements(with_choice, "path")) == len(elements(without, "path")) + 1
    assert inside(with_choice)


def test_names_are_escaped_and_shown():
    shown = texts(parse(coefficient_paths(PENALTIES, COEFS, names=["a<b", "c", "d"])))
    assert "a<b" in shown and "c" in shown


def test_what_does_not_fit_is_refused():
    with pytest.raises(DataError, match="one column of coefs"):
        coefficient_paths(PENALTIES, COEFS[:, :5])
    with pytest.raises(DataError, match="one name a coefficient"):
        coefficient_paths(PENALTIES, COEFS, names=["a"])


@pytest.mark.parametrize("ends", [[0.3, 0.31, 0.305, -0.2], [0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.001]])
def test_names_that_would_meet_are_moved_apart(ends):
    coefs = np.outer(ends, 1 - np.sqrt(PENALTIES)) + np.r_[0.5, np.zeros(19)] * 1e-3
    names = ["alpha", "beta", "gamma", "delta"]
    root = parse(coefficient_paths(PENALTIES, coefs, names=names))
    heights = sorted(float(node.get("y")) for node in elements(root, "text") if node.text in names)
    assert len(heights) == 4
    assert np.diff(heights).min() >= 12
    assert heights[-1] <= 222  # above the axis


def test_a_common_range_gives_a_common_axis():
    def zero(coefs, **options):
        ticks = elements(parse(coefficient_paths(PENALTIES, coefs, **options)), "text")
        return next(float(node.get("y")) for node in ticks if node.text == "0" and node.get("text-anchor") == "end")

    one, other = COEFS, 0.1 * COEFS + 0.5
    assert zero(one) != zero(other)
    assert zero(one, y_range=(-3.0, 3.0)) == zero(other, y_range=(-3.0, 3.0))
    assert inside(parse(coefficient_paths(PENALTIES, 100 * COEFS, y_range=(-3.0, 3.0))))


def test_more_coefficients_than_colours():
    many = np.outer(np.arange(1.0, 31.0), 1 - np.sqrt(PENALTIES))
    root = parse(coefficient_paths(PENALTIES, many, names=[f"x{j}" for j in range(30)]))
    assert [text for text in texts(root) if text.startswith("x")] == [f"x{j}" for j in range(29, 21, -1)]


@pytest.mark.parametrize("chosen", [0.0, -1.0, np.nan, np.inf])
def test_a_penalty_that_has_no_logarithm_cannot_be_marked(chosen):
    with pytest.raises(DataError, match="chosen must be a number > 0"):
        coefficient_paths(PENALTIES, COEFS, chosen=chosen)
