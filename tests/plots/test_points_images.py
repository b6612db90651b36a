import numpy as np
import pytest
from tests.plots.svg import elements, parse

from learnable.core.errors import DataError
from learnable.plots import image_grid


def test_positive_and_negative_cells_have_their_own_colours_and_zero_is_empty():
    root = parse(image_grid(np.array([[[1.0, 0.0], [-1.0, 0.5]], [[2.0, 0.0], [0.0, 0.0]]])))
    paths = [node for node in elements(root, "path") if node.get("opacity")]
    cells = {(node.get("fill"), float(node.get("opacity"))): node.get("d").count("M") for node in paths}
    assert sorted(cells.values()) == [1, 1, 2]  # one half, one negative, one full cell in each image
    assert len({fill for fill, _ in cells}) == 2


def test_what_is_no_stack_of_images_is_refused():
    with pytest.raises(DataError, match="height"):
        image_grid(np.zeros((3, 4)))
    with pytest.raises(DataError, match="finite"):
        image_grid(np.full((1, 2, 2), np.nan))
