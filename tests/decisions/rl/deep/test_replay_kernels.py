"""Replay: what is drawn, how often, with which weight, and what n steps ahead it looks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import deep as oracle

from learnable.decisions.rl.deep import _play_kernels as play
from learnable.decisions.rl.deep import _replay_kernels as k

GAMMA = 0.9


def block_of(rewards, terminated, truncated, valid=None):
    """Return a block whose observations are the number of the step, and after it the number plus a half."""
    T, n = rewards.shape
    numbers = np.arange(T * n, dtype=np.float32).reshape(T, n, 1)
    return play.Block(
        obs=numbers,
        next_obs=numbers + np.float32(0.5),
        action=np.zeros((T, n, 1), dtype=np.float32),
        reward=rewards,
        terminated=terminated,
        truncated=truncated,
        valid=np.ones((T, n), dtype=bool) if valid is None else valid,
        ends=np.zeros((T * n, 3)),
        count=np.zeros(2, dtype=np.int64),
    )


def replay_of(rows, n, prioritised=False):
    leaves = 1 << (rows * n - 1).bit_length() if prioritised else 0
    return k.Replay(
        obs=np.zeros((rows, n, 1), dtype=np.float32),
        next_obs=np.zeros((rows, n, 1), dtype=np.float32),
        action=np.zeros((rows, n), dtype=np.int64),
        reward=np.zeros((rows, n)),
        terminated=np.zeros((rows, n), dtype=bool),
        truncated=np.zeros((rows, n), dtype=bool),
        valid=np.zeros((rows, n), dtype=bool),
        meta=np.zeros(2, dtype=np.int64),
        tree=np.zeros(max(2 * leaves, 1)),
        top=np.ones(1),
    )


def batch_of(B):
    return k.Batch(
        obs=np.zeros((B, 1), dtype=np.float32),
        next_obs=np.zeros((B, 1), dtype=np.float32),
        action=np.zeros(B, dtype=np.int64),
        reward=np.zeros(B),
        discount=np.zeros(B),
        weight=np.zeros(B),
        place=np.zeros(B, dtype=np.int64),
    )


def stream():
    return np.array([1, 2, 3, 4], dtype=np.uint64)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(1, 12), st.integers(1, 3), st.integers(0, 2**31))
def test_steps_ahead_stop_at_ends_and_at_the_newest_row(n_steps, T, n, seed):
    rng = np.random.default_rng(seed)
    rewards = rng.normal(size=(T, n))
    terminated = rng.random((T, n)) < 0.2
    truncated = (rng.random((T, n)) < 0.2) & ~terminated
    rows = 7  # shorter than the longest block: the ring goes round
    replay = replay_of(rows, n)
    k.push(block_of(rewards, terminated, truncated), T, replay)
    batch = batch_of(32)
    k.draw(replay, n_steps, GAMMA, 1.0, stream(), batch)
    for i in range(32):
        t, e = divmod(int(batch.obs[i, 0]), n)
        assert t >= T - rows, "overwritten rows are gone"
        total, fade, last = oracle.n_step_return(rewards[:, e], terminated[:, e], truncated[:, e], t, n_steps, GAMMA)
        assert np.isclose(batch.reward[i], total)
        assert np.isclose(batch.discount[i], fade)
        assert batch.next_obs[i, 0] == last * n + e + 0.5


def test_the_discount_is_zero_after_termination_and_stays_after_truncation():
    rewards = np.ones((3, 1))
    terminated = np.array([[False], [True], [False]])
    truncated = np.array([[False], [False], [True]])
    replay = replay_of(4, 1)
    k.push(block_of(rewards, terminated, truncated), 3, replay)
    batch = batch_of(200)
    k.draw(replay, 1, GAMMA, 1.0, stream(), batch)
    step = batch.obs[:, 0].astype(int)
    assert set(step) == {0, 1, 2}
    assert (batch.discount[step == 1] == 0.0).all()
    assert np.allclose(batch.discount[step != 1], GAMMA)


def test_resets_are_never_drawn():
    valid = np.array([[True], [False], [True], [False]])
    flat = np.zeros((4, 1), dtype=bool)
    for prioritised in (False, True):
        replay = replay_of(4, 1, prioritised)
        k.push(block_of(np.ones((4, 1)), flat, flat, valid), 4, replay)
        batch = batch_of(500)
        k.draw(replay, 1, GAMMA, 1.0, stream(), batch)
        assert set(batch.obs[:, 0].astype(int)) == {0, 2}


def prioritised_batch(B=40_000):
    errors = np.array([0.1, 0.5, 1.0, 2.0, 5.0, 0.0])
    flat = np.zeros((6, 1), dtype=bool)
    replay = replay_of(6, 1, prioritised=True)
    k.push(block_of(np.ones((6, 1)), flat, flat), 6, replay)
    k.set_priorities(replay, np.arange(6), errors, 0.6, 1e-6)
    batch = batch_of(B)
    k.draw(replay, 1, GAMMA, 1.0, stream(), batch)
    priority = (errors + 1e-6) ** 0.6
    return batch, priority / priority.sum()


def test_steps_are_drawn_in_proportion_to_their_priorities():
    batch, p = prioritised_batch()
    counts = np.bincount(batch.place, minlength=6)
    n = len(batch.place)
    assert (np.abs(counts - n * p) <= 4.0 * np.sqrt(n * p * (1 - p)) + 2.0).all()


def test_importance_weights_undo_the_priorities():
    """With β = 1 the weighted mean of any function is its plain mean over the ring."""
    batch, p = prioritised_batch()
    f = np.array([3.0, -1.0, 2.0, 0.5, 7.0, -4.0])
    exact = 1.0 / (6 * p)
    assert np.allclose(batch.weight, (exact / exact[batch.place].max())[batch.place])
    unscaled = batch.weight * exact[batch.place].max()
    shown = f[batch.place] * unscaled
    rare = p < 1e-3  # too rare to be met: its term is left out on both sides
    assert np.isclose(shown[~rare[batch.place]].mean(), f[~rare].sum() / 6, atol=0.1)


def test_sums_of_the_tree_are_exact_after_many_changes():
    rng = np.random.default_rng(0)
    tree = np.zeros(16)
    for _ in range(300):
        k.set_priority(tree, int(rng.integers(8)), float(rng.random()))
    assert np.array_equal(tree[1:8], tree[2:16:2] + tree[3:16:2])
    middles = np.cumsum(tree[8:]) - 0.5 * tree[8:]
    assert [k.find_leaf(tree, u) for u in middles] == list(range(8))


@pytest.mark.parametrize("u", [0.0, 0.999999999])
def test_a_draw_never_lands_on_an_empty_leaf(u):
    tree = np.zeros(16)
    for leaf in (2, 3, 5):
        k.set_priority(tree, leaf, 1.0)
    assert k.find_leaf(tree, u * tree[1]) in (2, 3, 5)
