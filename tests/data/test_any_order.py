"""Sums whose bits do not depend on the order or on the parts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import worlds
from tests.oracles import any_order as oracle

from learnable.data.any_order import counts_by_group, mean, sums_by_group, total

numbers = st.lists(st.floats(-1e300, 1e300, allow_nan=False), min_size=1, max_size=60)


@settings(max_examples=25, deadline=None)
@given(numbers, st.randoms(use_true_random=False))
def test_the_sum_is_that_of_whole_numbers_in_any_order(x, random):
    found = total(np.array(x))
    wanted = oracle.total(x)
    assert found == pytest.approx(wanted, rel=1e-15, abs=1e-300)
    shuffled = list(x)
    random.shuffle(shuffled)
    assert total(np.array(shuffled)) == found


@pytest.mark.parametrize("scale", [1e-280, 1.0, 1e280])
def test_parts_of_any_size_give_one_sum(scale):
    rng = np.random.default_rng(0)
    x = scale * rng.normal(size=5000) * np.exp(4.0 * rng.normal(size=5000))
    w = rng.random(5000)
    group = rng.integers(0, 7, 5000)
    whole = (total(x), total(x, w), mean(x, w), sums_by_group(group, x, 7).tolist(), counts_by_group(group, 7).tolist())
    assert whole[0] == oracle.total(x)
    np.testing.assert_allclose(whole[3], oracle.sums_by_group(group, x, 7), rtol=1e-14)
    for cuts in ([0, 1, 5000], [0, 1700, 1701, 5000]):

        def work(world, cuts=cuts):
            own = slice(cuts[world.rank], cuts[world.rank + 1])
            sums = sums_by_group(group[own], x[own], 7, world).tolist()
            counts = counts_by_group(group[own], 7, world).tolist()
            return total(x[own], None, world), total(x[own], w[own], world), mean(x[own], w[own], world), sums, counts

        assert all(found == whole for found in worlds.run(len(cuts) - 1, work))


def test_what_is_not_finite_is_said():
    assert np.isnan(total(np.array([1.0, np.inf])))
    assert np.isnan(sums_by_group(np.array([0, 1]), np.array([1.0, np.nan]), 2)).all()
    assert total(np.zeros(0)) == 0.0
    assert np.isnan(mean(np.zeros(0)))
