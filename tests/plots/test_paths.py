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
