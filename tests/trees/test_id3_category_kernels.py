"""Gains in one node, against their definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.id3 import gain

from learnable.trees.id3 import plogp, score_columns, score_levels


def node(seed):
    rng = np.random.default_rng(seed)
    n, d, K, L = int(rng.integers(1, 60)), 4, 3, 5
    codes = rng.integers(0, rng.integers(1, L + 1), size=(d, n)).astype(np.int32)
    y, weight = rng.integers(0, K, size=n), rng.uniform(0.5, 2.0, size=n)
    rows = np.sort(rng.choice(n, size=int(rng.integers(1, n + 1)), replace=False))
    return codes, y, weight, rows, np.bincount(y[rows], weight[rows], K), np.zeros((L, K))


def scored(codes, labels, weight):
    return gain(codes.tolist(), labels.tolist(), weight.tolist())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_gain_and_split_information(seed):
    codes, y, weight, rows, total, counts = node(seed)
    gains, infos = np.empty(4), np.empty(4)
    score_columns(codes, y, weight, rows, counts, np.zeros(5, dtype=np.int64), total, gains, infos)
    assert not counts.any()  # the scratch is left clean
    for j in range(4):
        values = codes[j, rows]
        wanted = scored(values, y[rows], weight[rows]) if len(set(values)) > 1 else (-1.0, -1.0)
        np.testing.assert_allclose((gains[j], infos[j]), wanted, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), by_ratio=st.booleans())
def test_the_best_level_against_the_rest(seed, by_ratio):
    codes, y, weight, rows, total, counts = node(seed)
    gains, infos, best = np.empty(4), np.empty(4), np.empty(4, dtype=np.int32)
    score_levels(codes, y, weight, rows, counts, total, gains, infos, best, by_ratio)
    assert not counts.any()
    for j in range(4):
        values = codes[j, rows]
        if len(set(values)) < 2:
            assert (gains[j], infos[j], best[j]) == (-1.0, -1.0, -1)
            continue
        found = {v: scored(values == v, y[rows], weight[rows]) for v in sorted(set(values))}
        score = {v: g / info if by_ratio else g for v, (g, info) in found.items()}
        assert best[j] == min(v for v in score if score[v] > max(score.values()) - 1e-10)
        np.testing.assert_allclose((gains[j], infos[j]), found[int(best[j])], atol=1e-12)


def test_zero_log_zero():
    assert plogp(0.0) == 0.0 and plogp(0.5) == pytest.approx(-0.5)
