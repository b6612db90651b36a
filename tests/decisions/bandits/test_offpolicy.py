"""Off-policy evaluation on simulated logs, where the truth is known."""

import numpy as np
import pytest

from learnable.core.errors import DataError, ParameterError
from learnable.decisions import bandits as b


def make_log(n, seed, *, with_context=True):
    """Return a log of a policy that depends on the context, the target's probabilities, and its true value."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    score = 0.6 * np.column_stack([x[:, 0], -x[:, 0], np.zeros(n)])
    p = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    arm = (rng.random(n)[:, None] > np.cumsum(p, axis=1)).sum(axis=1).clip(max=2)
    means = np.column_stack([1.0 + x[:, 1], 0.5 * x[:, 0], np.full(n, 0.3)])
    reward = means[np.arange(n), arm] + 0.5 * rng.normal(size=n)
    log = b.read_log(arm, reward, p[np.arange(n), arm], x if with_context else None)
    pi = np.eye(3)[np.where(x[:, 1] > 0, 0, 2)] * 0.9 + 0.1 / 3
    # E[π r]: E[x₁; x₁ > 0] = 1/√(2π), the rest by symmetry
    high = 0.5 * (0.9 * 1.0 + 0.1 / 3 * (1.0 + 0.3)) + 0.9 / np.sqrt(2 * np.pi)
    high += 0.1 / 3 * 1.0 / np.sqrt(2 * np.pi)
    low = 0.5 * (0.9 * 0.3 + 0.1 / 3 * (1.0 + 0.3)) - 0.1 / 3 / np.sqrt(2 * np.pi)
    return log, pi, high + low


@pytest.mark.sampled(6)
@pytest.mark.parametrize("method", ["ips", "snips", "dr"])
def test_estimates_are_unbiased_and_their_intervals_cover(method):
    estimates, covered, errors = [], 0, []
    n_logs = 200
    for seed in range(n_logs):
        log, pi, truth = make_log(600, seed)
        found = b.evaluate_offline(log, pi, method, level=0.9)
        estimates.append(found.value)
        errors.append(found.standard_error)
        covered += found.lower <= truth <= found.upper
    spread = np.std(estimates)
    bias = abs(np.mean(estimates) - truth)
    assert bias < 3.5 * spread / np.sqrt(n_logs) + (0.01 if method == "snips" else 0.0)
    assert np.mean(errors) == pytest.approx(spread, rel=0.25)
    assert 0.83 <= covered / n_logs <= 0.96


def test_the_doubly_robust_estimate_is_the_least_noisy_and_survives_either_mistake():
    values = {method: [] for method in ("ips", "dr", "wrong p", "no model")}
    for seed in range(60):
        log, pi, truth = make_log(500, seed)
        for method in ("ips", "dr"):
            values[method].append(b.evaluate_offline(log, pi, method).value)
        wrong = b.read_log(log.arm, log.reward, np.full(500, 1 / 3), log.context)
        values["wrong p"].append(b.evaluate_offline(wrong, pi, "dr").value)
        blind = b.read_log(log.arm, log.reward, log.propensity)
        values["no model"].append(b.evaluate_offline(blind, pi, "dr").value)
    assert np.std(values["dr"]) < 0.8 * np.std(values["ips"])
    for name in ("wrong p", "no model"):  # rewards are linear in the context, so that the model is right
        assert abs(np.mean(values[name]) - truth) < 4 * np.std(values[name]) / np.sqrt(60), name


def test_the_logging_policy_itself():
    """With the logging policy as target all weights are one, and every row counts whole."""
    rng = np.random.default_rng(0)
    arm, reward = rng.integers(3, size=400), rng.normal(size=400)
    log = b.read_log(arm, reward, np.full(400, 1 / 3))
    for method in ("ips", "snips"):
        found = b.evaluate_offline(log, np.full(3, 1 / 3), method)
        assert found.value == pytest.approx(reward.mean())
        assert found.effective_rows == pytest.approx(400.0)


def test_the_self_normalised_estimate_does_not_mind_a_constant():
    log, pi, _ = make_log(500, 0)
    shifted = b.read_log(log.arm, log.reward + 7.0, log.propensity, log.context)
    snips = [b.evaluate_offline(one, pi, "snips").value for one in (log, shifted)]
    ips = [b.evaluate_offline(one, pi, "ips").value for one in (log, shifted)]
    assert snips[1] - snips[0] == pytest.approx(7.0, abs=1e-9)
    assert abs(ips[1] - ips[0] - 7.0) > 1e-3


def test_missing_overlap_is_refused():
    log = b.read_log(["a", "b", "a", "b"] * 20, [1.0, 0.0] * 40, [0.5] * 80)
    with pytest.raises(DataError, match="'c' never occurs in the log"):
        b.evaluate_offline(log, "c")
    with pytest.raises(DataError, match=r"shape \(80, 2\)"):
        b.evaluate_offline(log, np.full((80, 3), 1 / 3))
    with pytest.warns(UserWarning, match="not to be trusted"):
        b.evaluate_offline(b.read_log(["a"] * 3 + ["b"] * 97, np.ones(100), [0.03] * 3 + [0.97] * 97), "a", "snips")


def test_replay_tells_what_a_learner_would_have_earned():
    rng = np.random.default_rng(1)
    means = np.array([0.2, 0.5, 0.8])
    arm = rng.choice(3, size=12_000, p=[0.5, 0.3, 0.2])
    log = b.read_log(arm, (rng.random(12_000) < means[arm]).astype(float), np.array([0.5, 0.3, 0.2])[arm])
    fixed = b.replay(b.ExploreThenCommit(3, rounds_per_arm=1, random_state=0), log)
    learner = b.replay(b.UCB(3), log)
    random = b.replay(b.RandomArm(3, random_state=0), log)
    assert random.lower <= means.mean() <= random.upper
    assert learner.value > random.value + 0.1
    assert fixed.rows > 500


def test_replay_with_contexts():
    log, _, _ = make_log(3000, 3)
    learner = b.replay(b.LinUCB(3, n_features=2), log)
    assert learner.value > b.replay(b.RandomArm(3, random_state=0), log).value


@pytest.mark.parametrize(
    "ask, message",
    [
        (lambda: b.read_log([], []), "length > 0"),
        (lambda: b.read_log([0, 1], [0.0, np.nan]), "row 1 has a reward"),
        (lambda: b.read_log([0, 1], [0.0, 1.0], [0.5, 0.0]), "row 1 has the propensity 0.0"),
        (lambda: b.read_log([0, 1], [0.0, 1.0], [0.5, 1.5]), "row 1 has the propensity 1.5"),
        (lambda: b.read_log([0, 1], [0.0, 1.0], None, [[1.0], [np.inf]]), "finite"),
    ],
)
def test_bad_logs_are_refused(ask, message):
    with pytest.raises(DataError, match=message):
        ask()


def test_bad_settings_are_refused():
    log = b.read_log([0, 1], [0.0, 1.0])
    with pytest.raises(ParameterError, match="method"):
        b.evaluate_offline(log, 1, "magic")
    with pytest.raises(ParameterError, match="3 arms and the log 2"):
        b.replay(b.UCB(3), log)
