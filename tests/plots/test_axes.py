import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnable.core.errors import DataError
from learnable.plots.axes import Frame, Scale, extent, numbers, tick_labels, ticks

values = st.floats(min_value=-1e12, max_value=1e12)


@given(values, st.floats(min_value=1e-6, max_value=1e12), st.integers(2, 8))
def test_ticks_are_round_inside_and_few(low, span, most):
    high = low + span
    if high - low < 1e-9 * max(abs(low), abs(high)):
        return  # no room for round numbers between neighbours
    found = ticks(low, high, most)
    slack = 1e-6 * (high - low)
    assert len(found) <= most + 1
    assert all(low - slack <= tick <= high + slack for tick in found)
    if len(found) > 1:
        step = found[1] - found[0]
        np.testing.assert_allclose(np.diff(found), step, rtol=1e-6)
        mantissa = step / 10.0 ** math.floor(math.log10(step) + 1e-9)
        assert min(abs(mantissa - m) for m in (1, 2, 5)) < 1e-6
    assert len(found) >= most / 5 - 1


@given(st.lists(values, min_size=1, max_size=6))
def test_an_extent_holds_everything_and_is_never_empty(column):
    low, high = extent(column)
    assert low < high
    assert low <= min(column) and max(column) <= high


def test_an_extent_ignores_what_is_not_finite():
    assert extent([math.nan, math.inf]) == (0.0, 1.0)
    low, high = extent([1.0, math.nan, 2.0], pad=0.0)
    assert (low, high) == (1.0, 2.0)


@given(values, values, st.floats(0, 1))
def test_a_scale_keeps_proportions(low, high, share):
    if abs(high - low) > 1e-6 * max(abs(low), abs(high), 1e-3):
        place = Scale(low, high, 10.0, 110.0)
        assert place(low + share * (high - low)) == pytest.approx(10 + 100 * share, abs=1e-3)


@pytest.mark.parametrize(
    "given_ticks, labels",
    [
        ([0.0, 0.25, 0.5], ["0", "0.25", "0.5"]),
        ([-2000.0, 0.0, 2000.0], ["−2,000", "0", "2,000"]),
        ([0.0, 1.5e6, 3e6], ["0", "1.5M", "3M"]),
        ([0.0, 1e20], ["0", "1 × 10²⁰"]),
        ([0.0, 5e-6], ["0", "5 × 10⁻⁶"]),
        ([0.0], ["0"]),
        ([], []),
    ],
)
def test_tick_labels(given_ticks, labels):
    assert tick_labels(given_ticks) == labels


@given(values, st.floats(min_value=1e-3, max_value=1e12))
def test_tick_labels_are_distinct(low, span):
    found = ticks(low, low + span)
    if span > 1e-6 * abs(low):
        assert len(set(tick_labels(found))) == len(found)


def test_a_line_breaks_where_a_point_is_missing():
    frame = Frame.around((0.0, 4.0), (0.0, 1.0))
    assert frame.path([0, 1, 2, 3], [0.0, 0.5, math.nan, 1.0]).count("M") == 2


def test_numbers_of_unequal_length_are_refused():
    with pytest.raises(DataError, match="x has 2, y has 1"):
        numbers("scatter", x=[1, 2], y=[1])
    with pytest.raises(DataError, match="must be a list of numbers"):
        numbers("scatter", x=["a"])
    with pytest.raises(DataError, match="one dimension"):
        numbers("scatter", x=[[1.0]])


def test_huge_numbers_do_not_overflow():
    low, high = extent(*numbers("scatter", x=[-1.7e308, 1.7e308]))
    assert math.isfinite(high - low)
    assert len(ticks(low, high)) >= 2


@pytest.mark.parametrize("column", [[0.0, 5e-324], [5e-324, 5e-324], [1e-310, 3e-310], [-1.7e308, 5e-324]])
def test_numbers_at_the_edge_of_float64_have_axes(column):
    low, high = extent(*numbers("scatter", x=column))
    assert low < high
    assert all(math.isfinite(place) for place in Scale(low, high, 0.0, 100.0)(np.array(ticks(low, high))))
    assert len(tick_labels(ticks(low, high))) == len(ticks(low, high))
