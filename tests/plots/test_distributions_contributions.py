"""The summary of contributions."""

import numpy as np
import pytest
from tests.plots.svg import parse

from learnable.core.errors import DataError
from learnable.plots import contribution_summary
from learnable.plots.distributions import _COLOURS, _offsets, _ranks


def test_columns_stand_in_the_order_of_their_importance():
    rng = np.random.default_rng(0)
    phi = rng.standard_normal((50, 4)) * [1.0, 3.0, 0.1, 2.0]
    figure = contribution_summary(phi, rng.standard_normal((50, 4)), ["alpha", "beta", "gamma", "delta"], most=3)
    parse(figure)
    assert figure.index("beta") < figure.index("delta") < figure.index("alpha") and "gamma" not in figure


def test_every_row_is_a_point_and_thousands_are_thinned():
    rng = np.random.default_rng(1)
    assert contribution_summary(rng.random((30, 2)), rng.random((30, 2))).count("h0") == 60
    assert contribution_summary(rng.random((5000, 2)), rng.random((5000, 2))).count("h0") == 800


def test_colours_follow_ranks_and_missing_values_are_grey():
    found = _ranks(np.array([1.0, np.nan, 2.0, 1e300, 2.0]))
    assert found[1] == -1 and found[0] == 0 and found[3] == len(_COLOURS) - 1 and found[2] == found[4]
    assert (_ranks(np.ones(3)) == len(_COLOURS) // 2).all() and (_ranks(np.full(2, np.nan)) == -1).all()


def test_points_at_one_place_stand_side_by_side():
    y = _offsets(np.zeros(9))
    assert len(set(y.round(6))) == 9 and abs(y.sum()) < 1e-9


def test_tables_of_two_shapes_are_refused():
    with pytest.raises(DataError, match="one shape"):
        contribution_summary(np.zeros((2, 2)), np.zeros((2, 3)))
    with pytest.raises(DataError, match="2 names"):
        contribution_summary(np.zeros((2, 2)), np.zeros((2, 2)), ["a"])
    parse(contribution_summary([[0.0]], [[np.nan]]))
