import re

import numpy as np
import pytest
from tests.plots.svg import elements, parse, texts

from learnable.core.errors import DataError
from learnable.plots import confusion_matrix
from learnable.plots.points import row_shares


def test_every_cell_that_is_not_empty_is_drawn_darker_the_larger_its_share():
    root = parse(confusion_matrix(["a", "b", "c"], [[9, 1, 0], [0, 5, 5], [0, 0, 0]]))
    cells = {
        float(node.get("opacity")): len(re.findall("M", node.get("d")))
        for node in elements(root, "path")
        if node.get("opacity")
    }
    assert sum(cells.values()) == 4
    assert max(cells) > 0.9 and cells[max(cells)] == 1
    assert {"actual", "predicted"} <= set(texts(root))


def test_a_hundred_classes_stay_small():
    rng = np.random.default_rng(0)
    figure = confusion_matrix([f"class {k}" for k in range(100)], rng.integers(0, 9, (100, 100)))
    assert len(figure) < 250_000
    assert texts(parse(figure)) == ["predicted", "actual"]


def test_shares_of_an_empty_row_are_zero():
    np.testing.assert_allclose(row_shares([[1, 3], [0, 0]]), [[0.25, 0.75], [0, 0]])


def test_a_table_of_another_shape_is_refused():
    with pytest.raises(DataError, match="2 labels need as many rows and columns; got 1 × 2"):
        confusion_matrix(["a", "b"], [[1, 2]])
