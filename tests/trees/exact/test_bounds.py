"""Bins with bounds find the cut that sorting all rows finds: same score, same codes, the first of equals included."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import learnable as ln
from learnable.trees.exact._bounds import LEAST_ROWS, search_two
from learnable.trees.exact._sorting import COUNTS
from learnable.trees.exact._sweeps import FOUND_SIZE, N_LEFT, SCORE, sweep_two


class Scratch(NamedTuple):
    keys: np.ndarray
    keys2: np.ndarray
    counts: np.ndarray
    cells: np.ndarray
    stat: np.ndarray


class Limits(NamedTuple):
    min_leaf: int
    min_weight: float
    monotone: bool = False


def both(code, payload, limits, known):
    """Return what the bins found, and what a sweep over the sorted rows finds."""
    n = len(code)
    weight = (payload & 255).astype(np.int64)
    w_all = int(weight.sum())
    s_all = int((weight * (payload >> 8)).sum())
    start = np.zeros(FOUND_SIZE)
    start[SCORE] = known
    bins, sweep = start.copy(), start.copy()
    scratch = Scratch(
        np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(COUNTS, np.int64), np.empty(4098, np.int64),
        np.empty((4098, 3)),
    )  # fmt: skip
    search_two(code, payload, int(code.min()), int(code.max()), w_all, s_all, scratch, limits, bins)
    keys = np.sort(code.astype(np.uint64) << np.uint64(32) | payload.astype(np.uint64))
    sweep_two(keys, 0, w_all, s_all, limits, np.zeros(3), sweep)
    return bins, sweep


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(16, 4000),
    spread=st.sampled_from([20, 700, 5000, 10**6]),
    kind=st.sampled_from(["step", "noise", "rare", "alternating", "blocks"]),
    min_leaf=st.sampled_from([1, 5, 200]),
    min_weight=st.sampled_from([0.0, 30.0]),
    share=st.sampled_from([0.0, 0.999, 1.0]),
)
@settings(max_examples=200, deadline=None)
def test_the_cut_is_that_of_a_sweep_over_sorted_rows(seed, n, spread, kind, min_leaf, min_weight, share):
    rng = np.random.default_rng(seed)
    code = (rng.integers(0, spread, n) + 17).astype(np.uint32)
    middle = float(np.median(code))
    label = {
        "step": (code > middle) ^ (rng.random(n) < 0.2),
        "noise": rng.random(n) < 0.5,
        "rare": rng.random(n) < 0.01,
        "alternating": code % 2 == 0,
        "blocks": (code // 97) % 2 == 0,
    }[kind]
    payload = (label.astype(np.uint32) << np.uint32(8)) | rng.integers(1, 4, n).astype(np.uint32)
    limits = Limits(min_leaf, min_weight)
    if code.min() == code.max():
        return
    bins, sweep = both(code, payload, limits, -np.inf)
    np.testing.assert_array_equal(bins, sweep)
    # a split of an earlier column stays unless it is beaten
    bins, sweep = both(code, payload, limits, share * sweep[SCORE] if sweep[N_LEFT] else 1.0)
    np.testing.assert_array_equal(bins, sweep)


def test_equal_columns_of_one_class_next_to_another_have_one_best_cut():
    code = np.arange(2000, dtype=np.uint32)
    payload = (code >= 1234).astype(np.uint32) << np.uint32(8) | np.uint32(1)
    bins, sweep = both(code, payload, Limits(1, 0.0), -np.inf)
    np.testing.assert_array_equal(bins, sweep)
    assert bins[2:6].tolist() == [1233.0, 1234.0, 0.0, 1234.0]


@pytest.mark.parametrize("min_samples_leaf", [1, 40])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_tree_of_many_rows_is_verified(min_samples_leaf, weighted):
    rng = np.random.default_rng(0)
    n = 6 * LEAST_ROWS
    X = rng.normal(size=(n, 4))
    y = (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=n) > 1).astype(int)
    weight = rng.integers(1, 4, n).astype(float) if weighted else None
    model = ln.DecisionTreeClassifier(min_samples_leaf=min_samples_leaf, random_state=0).fit(X, y, weight)
    assert ln.verify(model, X, y, sample_weight=weight)
