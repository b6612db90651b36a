"""The kernels of the decomposition against NumPy, one at a time."""

import numpy as np
import pytest
from tests.oracles.smo import second_order_pairs

from learnable.solvers.conic._smo_kernels import (
    LANES,
    Block,
    _fold_max,
    _largest,
    _partner,
    add_rows,
    gather_block,
    narrow_rows,
    score_variables,
    solve_block,
    solve_block_alone,
)


def block_of(v, beta, low, high, diagonal):
    up, down = np.where(beta < high, 0.0, -np.inf), np.where(beta > low, 0.0, np.inf)
    return Block.of(v.copy(), up, down, diagonal)


@pytest.mark.parametrize("n", [16, 32, 64, 128, 256, 512])
def test_folding_finds_the_largest_and_its_lane(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        x = rng.standard_normal(n)
        top, lane = _fold_max(x, np.empty(n), np.empty(n))
        assert top == x.max() and lane == x.argmax() % LANES


def test_the_largest_with_its_place():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(64) + np.where(rng.random(64) < 0.5, 0.0, -np.inf)
    assert _largest(x, np.empty((2, 64))) == (x.max(), x.argmax())


def test_the_partner_has_the_greatest_gain():
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((64, 9))
    K, v = Z @ Z.T, rng.standard_normal(64)
    falling = v + np.where(rng.random(64) < 0.7, 0.0, np.inf)
    i, single = int(v.argmax()), np.float32
    gain = np.maximum(v[i] - falling, 0.0) ** 2 / np.maximum(K[i, i] + K.diagonal() - 2.0 * K[i], 1e-12)

    def partner(falling, least):
        scratch = np.empty(64, single), np.empty((2, 64), single)
        pair = falling.astype(single), K.diagonal().astype(single), K[i].copy(), single(K[i, i]), single(v[i])
        return _partner(*pair, single(least), *scratch)

    assert partner(falling, 0.0) == gain.argmax()
    assert partner(np.full(64, np.inf), 0.0) == -1 and partner(falling, 100.0) == -1


def test_scores_of_variables():
    f, q, beta = np.array([1.0, 2.0]), np.array([0.5, -0.5]), np.array([0.0, 1.0])
    up, down = np.empty(2), np.empty(2)
    score_variables(f, q, beta, np.zeros(2), np.ones(2), up, down)
    np.testing.assert_array_equal(up, [-1.5, -np.inf])
    np.testing.assert_array_equal(down, [np.inf, -1.5])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps_in_a_block_keep_sums_and_end_at_the_goal(dtype):
    rng = np.random.default_rng(2)
    Z = rng.standard_normal((64, 20))
    K, v = (Z @ Z.T).astype(dtype), rng.standard_normal(64)
    low, high, beta = -np.ones(64), np.ones(64), np.zeros(64)
    block = block_of(v, beta, low, high, K.diagonal().astype(np.float64))
    steps = solve_block(K, block, beta, low, high, 32, 0.0, 1e-3, 10**6, np.zeros(1, np.int64))
    assert steps > 0 and abs(beta[:32].sum()) < 1e-12 and abs(beta[32:].sum()) < 1e-12
    pull = v - K.astype(np.float64) @ beta
    np.testing.assert_allclose(block.v, pull, atol=1e-9)
    for part in (slice(0, 32), slice(32, 64)):
        assert pull[part][beta[part] < 1.0].max() - pull[part][beta[part] > -1.0].min() <= 1e-3


def test_steps_alone_end_at_the_goal():
    rng = np.random.default_rng(3)
    Z = rng.standard_normal((32, 8))
    K, v, beta = Z @ Z.T, rng.standard_normal(32), np.zeros(32)
    low, high = np.zeros(32), np.ones(32)
    block = block_of(v, beta, low, high, K.diagonal())
    assert solve_block_alone(K, block, beta, low, high, 0.0, 1e-6, 10**6, np.zeros(1, np.int64)) > 0
    pull = v - K @ beta
    assert pull[beta < 1.0].max(initial=0.0) <= 1e-6 and pull[beta > 0.0].min(initial=0.0) >= -1e-6


def test_a_raised_flag_stops_a_block():
    K, beta, one = np.eye(16), np.zeros(16), np.ones(16)
    block = block_of(np.linspace(-1.0, 1.0, 16), beta, -one, one, one)
    assert solve_block(K, block, beta, -one, one, 16, 0.0, 0.0, 10**6, np.ones(1, np.int64)) == 0


@pytest.mark.threaded
def test_gathered_blocks_and_sums_of_rows():
    rng = np.random.default_rng(4)
    Z = rng.standard_normal((50, 7))
    K = Z @ Z.T
    rows = np.array([3, 8, 20, 41, -1])
    slots, out = np.array([2, 0, 3, 1, -1]), np.full((5, 5), np.nan)
    store = np.empty((4, 50))
    store[slots[:4]] = K[rows[:4]]
    gather_block(store, slots, rows, out)
    expected = np.zeros((5, 5))
    expected[:4, :4] = K[np.ix_(rows[:4], rows[:4])]
    np.testing.assert_array_equal(out, expected)
    for count in range(5):
        f, delta = np.zeros(20), rng.standard_normal(count)
        add_rows(store, slots[:count], delta, 30, f)
        np.testing.assert_allclose(f, K[rows[:count], 30:].T @ delta, atol=1e-12)


def test_rows_are_narrowed_in_place():
    rng = np.random.default_rng(5)
    K = rng.standard_normal((6, 10))
    room, slots, columns = K.ravel().copy(), np.array([0, 1, 4]), np.array([0, 1, 5, 6, 7, 8, 9])
    narrow_rows(room, 10, slots, columns, 7)
    np.testing.assert_array_equal(room[:21].reshape(3, 7), K[np.ix_(slots, columns)])


@pytest.mark.parametrize("seed", range(3))
def test_a_block_is_solved_as_the_textbook_solves_it(seed):
    """Float32 gains may choose another partner; the optimum is the same."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((64, 20))
    K, v = Z @ Z.T, rng.standard_normal(64)
    low, high, beta = -np.ones(64), np.ones(64), np.zeros(64)
    block = block_of(v, beta, low, high, K.diagonal().copy())
    steps = solve_block(K, block, beta, low, high, 64, 0.0, 1e-9, 10**6, np.zeros(1, np.int64))
    expected, plain_steps = second_order_pairs(K, v, np.zeros(64), low, high, 1e-9)
    reached, least = (0.5 * b @ K @ b - v @ b for b in (beta, expected))
    slack = 1e-9 * 128  # a violation of 1e-9 on a way of at most Σ|high − low|
    assert steps > 0 and plain_steps > 0 and abs(reached - least) <= slack
    np.testing.assert_allclose(Z.T @ beta, Z.T @ expected, atol=2.0 * np.sqrt(slack))  # ½‖Δ‖² ≤ both excesses
