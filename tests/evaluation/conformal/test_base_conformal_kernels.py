"""The order statistic of shifted lists against sorting their union."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.evaluation.conformal.base import first_above, select_shifted


def select(shifts, folds, rank):
    values = np.concatenate([np.sort(fold) for fold in folds])
    ends = np.cumsum([0, *(len(fold) for fold in folds)])
    out, work = np.empty(len(shifts)), np.empty((2, len(folds)), dtype=np.int64)
    select_shifted(np.ascontiguousarray(shifts, dtype=np.float64), values, ends, rank, work[0], work[1], out)
    return out


# Few distinct numbers, so that ties within and across folds are common.
numbers = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(numbers, min_size=1, max_size=12), min_size=1, max_size=6), st.data())
def test_every_rank_is_that_of_the_sorted_union(folds, data):
    folds = [np.array(fold) for fold in folds]
    shifts = np.array(data.draw(st.lists(numbers, min_size=len(folds), max_size=len(folds))))[None, :]
    union = np.sort(np.concatenate([shift + fold for shift, fold in zip(shifts[0], folds, strict=True)]))
    for rank in range(1, len(union) + 1):
        assert select(shifts, folds, rank)[0] == union[rank - 1]


def test_many_rows_and_uneven_folds():
    rng = np.random.default_rng(0)
    folds = [rng.exponential(size=size) for size in (1, 500, 37, 2000)]
    shifts = rng.normal(size=(50, 4))
    union = np.sort(np.hstack([shifts[:, [k]] + fold for k, fold in enumerate(folds)]), axis=1)
    for rank in (1, 2, 1269, 2283, 2538):
        np.testing.assert_array_equal(select(shifts, folds, rank), union[:, rank - 1])


def test_first_above_is_a_binary_search():
    values = np.array([9.0, 1.0, 2.0, 2.0, 3.0, 0.0])  # only the middle is sorted, and looked at
    assert first_above(values, 1, 5, 10.0, 12.0, False) == 2
    assert first_above(values, 1, 5, 10.0, 12.0, True) == 4
    assert first_above(values, 1, 5, 10.0, 99.0, True) == 5
