import re

import numpy as np
import pytest
from tests.plots.svg import elements, inside, parse, texts

from learnable.core.errors import DataError
from learnable.plots import bars, histogram, sparkline


def heights(figure):
    """Heights of the bars of a small histogram, from its path."""
    return [float(h) for h in re.findall(r"H[\d.]+v([\d.]+)z", figure)]


def test_a_histogram_has_axes_and_stays_inside():
    root = parse(histogram([-1.0, 0.0, 1.0, 2.0], [10, 40, 20], title="Errors", x_label="error", zero=True))
    assert inside(root)
    assert {"error", "rows", "0", "20", "40"} <= set(texts(root))


def test_heights_are_in_proportion():
    found = heights(sparkline([0, 1, 2, 3], [10, 20, 40], height=41))
    np.testing.assert_allclose(found, [10, 20, 40], atol=0.011)


def test_a_bin_with_one_row_stays_visible_and_an_empty_one_does_not():
    assert heights(sparkline([0, 1, 2, 3], [1, 0, 10**6])) == [1.0, 21.0]


def test_categories_are_bars():
    assert len(heights(bars([5, 3, 0, 1], title="<b>"))) == 3
    assert elements(parse(bars([], title="none")), "path")


@pytest.mark.parametrize("counts", [[0, 0], [None, 3]])
def test_nothing_to_draw_is_drawn_as_nothing(counts):
    parse(sparkline([0, 1, 2], counts))
    parse(histogram([0, 1, 2], counts))


def test_one_constant_bin():
    parse(sparkline([3.0, 3.0], [7]))
    parse(histogram([3.0, 3.0], [7]))


def test_bins_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match="n \\+ 1 edges"):
        sparkline([0, 1], [1, 2])
    with pytest.raises(DataError, match="rise"):
        histogram([1, 0], [1])
