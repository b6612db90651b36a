import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnable.core import ParameterError
from learnable.ensembles.draws import Draw, bag_size, draw_columns, draw_rows, out_of_bag
from learnable.trees._random import seed_of


@given(seed=st.integers(0, 2**63 - 1), member=st.integers(0, 1000), n=st.integers(1, 50), replace=st.booleans())
def test_a_bag_is_a_function_of_the_seed_and_the_member(seed, member, n, replace):
    draw = Draw(seed, n, max(1, n // 2), replace)
    rows = draw_rows(draw, member)
    assert np.array_equal(rows, draw_rows(draw, member))
    assert len(rows) == draw.n_drawn and rows.min() >= 0 and rows.max() < n
    assert replace or len(set(rows.tolist())) == len(rows)
    assert sorted({*rows.tolist(), *out_of_bag(rows, n).tolist()}) == list(range(n))


def test_the_share_of_rows_out_of_a_bag_is_the_one_of_the_theorem():
    """A row is in none of n draws with probability (1 − 1/n)ⁿ; 1500 bags, z-test with a fixed seed."""
    for n in (5, 20, 100):
        p = (1 - 1 / n) ** n
        draw = Draw(seed_of(0), n, n, True)
        absent = sum(len(out_of_bag(draw_rows(draw, member), n)) for member in range(1500)) / (1500 * n)
        first = np.mean([0 in out_of_bag(draw_rows(draw, member), n) for member in range(1500)])
        assert abs(first - p) < 4 * np.sqrt(p * (1 - p) / 1500)
        assert abs(absent - p) < 4 * np.sqrt(p * (1 - p) / 1500)


def test_rows_are_drawn_in_proportion_to_their_weights():
    weight = np.array([0.0, 1.0, 2.0, 5.0])
    draw = Draw(7, 4, 4, True, weight)
    counts = np.bincount(np.concatenate([draw_rows(draw, member) for member in range(3000)]), minlength=4)
    assert counts[0] == 0
    p = weight / weight.sum()
    assert (np.abs(counts / 12000 - p) <= 4 * np.sqrt(p * (1 - p) / 12000)).all()


def test_columns_without_replacement_are_distinct_and_all_columns_are_all_columns():
    assert draw_columns(3, 5, 7, 7, False).tolist() == list(range(7))
    for member in range(20):
        assert len(set(draw_columns(3, member, 7, 4, False).tolist())) == 4
    assert any(len(set(draw_columns(3, member, 7, 7, True).tolist())) < 7 for member in range(20))


def test_sizes_of_bags():
    assert bag_size("M", None, 10, True) == 10
    assert bag_size("M", 3, 10, False) == 3
    with pytest.warns(UserWarning, match=r"low number \(1\) of bootstrap samples"):
        assert bag_size("M", 0.05, 10, True) == 1
    assert bag_size("M", 0.5, 3, True, np.array([10.0, 20.0, 30.0])) == 30
    with pytest.raises(ParameterError, match=r"M: max_samples=3 must be <= n_samples=2 "):
        bag_size("M", 3, 3, False, np.array([1.0, 0.0, 1.0]))


def test_seeds_come_from_integers_generators_and_legacy_states():
    assert seed_of(5) == seed_of(5) != seed_of(6)
    assert seed_of(np.random.default_rng(1)) == seed_of(np.random.default_rng(1))
    assert seed_of(np.random.RandomState(1)) == seed_of(np.random.RandomState(1))
    assert seed_of(None) != seed_of(None)
