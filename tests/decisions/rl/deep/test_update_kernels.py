"""Targets, advantages and gradients: the textbook's formulas, numeric derivatives, and their limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import deep as oracle

from learnable.decisions.rl.deep import _update_kernels as k

RNG = np.random.default_rng(0)


def numeric_gradient(f, z, h=1e-6):
    out = np.zeros_like(z)
    for i in np.ndindex(z.shape):
        up = z.copy()
        down = z.copy()
        up[i] += h
        down[i] -= h
        out[i] = (f(up) - f(down)) / (2 * h)
    return out


@pytest.mark.parametrize("double", [False, True])
def test_td_targets(double):
    online = RNG.normal(size=(30, 4))
    target = RNG.normal(size=(30, 4))
    rewards = RNG.normal(size=30)
    terminated = RNG.random(30) < 0.3
    discount = np.where(terminated, 0.0, 0.9)
    out = np.zeros(30)
    k.td_targets(rewards, discount, online if double else target, target, 1.0, out)
    wanted = [oracle.td_target(rewards[i], 0.9, online[i], target[i], terminated[i], double) for i in range(30)]
    assert np.allclose(out, wanted)


def test_double_targets_are_never_above_plain_ones():
    online = RNG.normal(size=(200, 5))
    target = RNG.normal(size=(200, 5))
    plain = np.zeros(200)
    double = np.zeros(200)
    k.td_targets(np.zeros(200), np.ones(200), target, target, 1.0, plain)
    k.td_targets(np.zeros(200), np.ones(200), online, target, 1.0, double)
    assert (double <= plain).all()
    assert (double < plain).any()


@pytest.mark.parametrize("delta", [0.5, 100.0])
def test_huber_loss_and_its_slope(delta):
    z = RNG.normal(size=(8, 3)) * 2
    action = RNG.integers(3, size=8)
    target = RNG.normal(size=8)
    weight = RNG.random(8)

    def loss(z):
        e = z[np.arange(8), action] - target
        near = np.abs(e) <= delta
        return float(np.mean(weight * np.where(near, 0.5 * e**2, delta * (np.abs(e) - 0.5 * delta))))

    out = np.zeros((8, 3))
    error = np.zeros(8)
    assert np.isclose(k.value_loss(z, action, target, weight, delta, out, error), loss(z))
    assert np.allclose(out, numeric_gradient(loss, z), atol=1e-7)
    assert np.allclose(error, z[np.arange(8), action] - target)


def advantage_of(rewards, values, follows, terminated, truncated, gamma, trace):
    T, n = rewards.shape
    out = np.zeros((T, n))
    valid = np.ones((T, n), dtype=bool)
    k.advantages(rewards, values, follows, terminated, truncated, valid, gamma, trace, 1.0, out)
    return out


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 10), st.integers(1, 3), st.floats(0, 1), st.floats(0, 1), st.integers(0, 2**31))
def test_advantages_are_their_definition(T, n, gamma, trace, seed):
    rng = np.random.default_rng(seed)
    rewards, values, follows = rng.normal(size=(3, T, n))
    terminated = rng.random((T, n)) < 0.2
    truncated = (rng.random((T, n)) < 0.2) & ~terminated
    found = advantage_of(rewards, values, follows, terminated, truncated, gamma, trace)
    for e in range(n):
        wanted = oracle.generalised_advantage(
            rewards[:, e], values[:, e], follows[:, e], terminated[:, e], truncated[:, e], gamma, trace
        )
        assert np.allclose(found[:, e], wanted)


def test_the_limits_of_lambda_are_td_and_monte_carlo():
    T = 6
    rewards = RNG.normal(size=(T, 1))
    values = RNG.normal(size=(T + 1, 1))
    terminated = np.zeros((T, 1), dtype=bool)
    terminated[-1] = True
    none = np.zeros((T, 1), dtype=bool)
    td = advantage_of(rewards, values[:-1], values[1:], terminated, none, 0.9, 0.0)
    follows = np.where(terminated, 0.0, values[1:])
    assert np.allclose(td, rewards + 0.9 * follows - values[:-1])
    monte_carlo = advantage_of(rewards, values[:-1], values[1:], terminated, none, 0.9, 1.0)
    returns = [sum(0.9 ** (j - t) * rewards[j, 0] for j in range(t, T)) for t in range(T)]
    assert np.allclose(monte_carlo[:, 0], returns - values[:-1, 0])
    # The limits are approached, not only met.
    near = advantage_of(rewards, values[:-1], values[1:], terminated, none, 0.9, 1e-6)
    assert np.allclose(near, td, atol=1e-4)


def test_truncation_counts_on_what_follows_and_termination_does_not():
    rewards = np.ones((1, 1))
    values = np.zeros((1, 1))
    follows = np.full((1, 1), 10.0)
    yes = np.ones((1, 1), dtype=bool)
    no = np.zeros((1, 1), dtype=bool)
    assert advantage_of(rewards, values, follows, yes, no, 0.9, 0.5)[0, 0] == 1.0
    assert advantage_of(rewards, values, follows, no, yes, 0.9, 0.5)[0, 0] == 10.0


def softmax_case(clip):
    z = RNG.normal(size=(12, 3))
    action = RNG.integers(3, size=(12, 1)).astype(float)
    advantage = RNG.normal(size=12)
    old = np.log(oracle.softmax(z + 0.4 * RNG.normal(size=z.shape))[np.arange(12), action[:, 0].astype(int)])
    bonus = 0.3

    def loss(z):
        p = oracle.softmax(z)
        log_new = np.log(p[np.arange(12), action[:, 0].astype(int)])
        entropy = -np.sum(p * np.log(p), axis=1).mean()
        return oracle.policy_loss(log_new, old, advantage, clip or None) - bonus * entropy

    return z, action, advantage, old, bonus, loss


@pytest.mark.parametrize("clip", [0.0, 0.1])
def test_the_slope_of_a_softmax_policy_is_the_numeric_one(clip):
    z, action, advantage, old, bonus, loss = softmax_case(clip)
    out = np.zeros_like(z)
    stats = np.zeros(4)
    k.softmax_policy_loss(z, action, advantage, old, clip, bonus, out, stats)
    assert np.isclose((stats[k.LOSS] - bonus * stats[k.ENTROPY]) / 12, loss(z))
    assert np.allclose(out, numeric_gradient(loss, z), atol=1e-7)
    assert (stats[k.CLIPPED] > 0) == (clip > 0)


@pytest.mark.parametrize("clip", [0.0, 0.2])
def test_the_slopes_of_a_normal_policy_are_the_numeric_ones(clip):
    z = RNG.normal(size=(10, 2))
    log_std = np.array([-0.3, 0.2])
    action = z + np.exp(log_std) * RNG.normal(size=z.shape)
    advantage = RNG.normal(size=10)

    def log_density(z, log_std):
        r = (action - z) / np.exp(log_std)
        return np.sum(-0.5 * r**2 - log_std - 0.5 * np.log(2 * np.pi), axis=1)

    old = log_density(z, log_std) + 0.3 * RNG.normal(size=10)

    def loss(z, log_std):
        entropy = np.sum(log_std + 0.5 + 0.5 * np.log(2 * np.pi))
        return oracle.policy_loss(log_density(z, log_std), old, advantage, clip or None) - 0.1 * entropy

    out = np.zeros_like(z)
    out_std = np.zeros(2)
    k.gaussian_policy_loss(z, log_std, action, advantage, old, clip, 0.1, out, out_std, np.zeros(4))
    assert np.allclose(out, numeric_gradient(lambda v: loss(v, log_std), z), atol=1e-6)
    assert np.allclose(out_std, numeric_gradient(lambda v: loss(z, v), log_std), atol=1e-6)
    found = np.zeros(10)
    k.log_gaussian(z, log_std, action, found)
    assert np.allclose(found, log_density(z, log_std))


@pytest.mark.parametrize(
    ("log_ratio", "advantage", "moves"),
    [(0.5, 1.0, False), (0.5, -1.0, True), (-0.5, 1.0, True), (-0.5, -1.0, False), (0.05, 1.0, True)],
)
def test_the_clip_stops_moves_that_went_far_enough_and_no_others(log_ratio, advantage, moves):
    z = np.array([[0.0, 0.0]])
    old = np.log(np.array([0.5])) - log_ratio
    out = np.zeros((1, 2))
    k.softmax_policy_loss(z, np.zeros((1, 1)), np.array([advantage]), old, 0.2, 0.0, out, np.zeros(4))
    assert (out[0, 0] != 0.0) == moves
    if moves:
        assert np.isclose(out[0, 0], -np.exp(log_ratio) * advantage * 0.5)


def test_a_shuffle_is_a_permutation_and_every_place_is_equally_likely():
    rng = np.array([9, 8, 7, 6], dtype=np.uint64)
    counts = np.zeros((4, 4))
    for _ in range(4000):
        order = np.arange(4)
        k.shuffle(order, rng)
        assert sorted(order) == [0, 1, 2, 3]
        counts[np.arange(4), order] += 1
    assert np.abs(counts - 1000).max() < 4.5 * np.sqrt(1000 * 0.75)


def test_running_moments_are_the_plain_ones():
    obs = RNG.normal(2.0, 3.0, size=(50, 2, 3)).astype(np.float32)
    valid = RNG.random((50, 2)) < 0.8
    count = np.zeros(1)
    mean = np.zeros(3)
    spread = np.zeros(3)
    k.add_moments(obs, valid, 30, count, mean, spread)
    k.add_moments(obs[30:], valid[30:], 20, count, mean, spread)
    rows = obs[valid].astype(float)
    assert count[0] == len(rows)
    assert np.allclose(mean, rows.mean(axis=0))
    assert np.allclose(spread / count[0], rows.var(axis=0))
