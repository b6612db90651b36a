import re

import numpy as np
from tests.plots.svg import inside, parse, texts

from learnable.plots import residual_plot, scatter


def places(figure):
    return np.array([[float(x), float(y)] for x, y in re.findall(r"M([\d.]+) ([\d.]+)h0", figure)])


def test_points_stand_where_they_belong():
    x, y = np.array([0.0, 1.0, 2.0, 4.0]), np.array([1.0, -1.0, 3.0, 0.0])
    found = places(scatter(x, y))
    for axis, values in ((0, x), (1, -y)):
        order = np.argsort(found[:, 0])
        slope, start = np.polyfit(values, found[order][:, axis], 1)
        assert slope > 0
        np.testing.assert_allclose(found[order][:, axis], start + slope * values, atol=0.06)


def test_a_diagonal_has_equal_scales():
    figure = scatter([0.0, 10.0], [0.0, 1.0], reference="diagonal")
    root = parse(figure)
    assert inside(root)
    assert texts(root).count("10") == 2


def test_residuals_have_zero_in_sight():
    root = parse(residual_plot([1.0, 2.0], [5.0, 7.0], title="Residuals"))
    assert "0" in texts(root)
    assert inside(root)


def test_many_points_are_thinned_and_the_file_stays_small():
    rng = np.random.default_rng(0)
    figure = scatter(rng.normal(size=100_000), rng.normal(size=100_000))
    assert len(places(figure)) == 3000
    assert len(figure) < 80_000


def test_unknown_points_are_left_out():
    assert len(places(scatter([1.0, None, 3.0, np.inf], [1.0, 2.0, np.nan, 1.0]))) == 1
    parse(scatter([], []))
    parse(scatter([np.nan], [np.nan], reference="diagonal"))
    parse(scatter([2.0], [2.0], reference="zero"))
