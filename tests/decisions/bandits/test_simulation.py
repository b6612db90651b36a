"""Simulated regret against what is proved: upper bounds of policies, lower bounds of problems."""

import numpy as np
import pytest

from learnable.core.errors import DataError, ParameterError
from learnable.decisions import bandits as b
from learnable.probability import Exponential, NormalInverseGamma, Poisson

K, N = 5, 2000
ENVIRONMENT = b.stochastic([0.3, 0.5, 0.45, 0.6, 0.2])


def policies():
    return {
        "ucb1": b.UCB(K),
        "delta": b.UCB(K, beta="delta", delta=N**-2.0),
        "moss": b.MOSS(K, horizon=N),
        "etc": b.ExploreThenCommit(K, rounds_per_arm=60),
        "exp3": b.EXP3(K, horizon=N),
        "exp3ix": b.EXP3IX(K, horizon=N),
    }


@pytest.mark.parametrize(
    "means", [[0.3, 0.5, 0.45, 0.6, 0.2], [0.9, 0.8, 0.1, 0.1, 0.1], [0.02, 0.04, 0.01, 0.0, 0.03]]
)
def test_regret_stays_below_its_proved_bound(means):
    found = b.simulate(policies(), b.stochastic(means), N, 200)
    for name, result in found.items():
        assert result.bound.value is not None, name
        assert result.upper[-1] <= result.bound.value, name


def test_the_bounds_of_the_papers():
    gaps = np.array([0.3, 0.1, 0.15, 0.4])
    ucb1 = b.upper_bound(b.UCB(K), ENVIRONMENT, N).value
    assert ucb1 == pytest.approx((8 * np.log(N) / gaps).sum() + (1 + np.pi**2 / 3) * gaps.sum(), rel=1e-12)
    exp3 = b.upper_bound(b.EXP3(K, horizon=N), ENVIRONMENT, N).value
    assert exp3 == pytest.approx(np.sqrt(2 * N * K * np.log(K)), rel=1e-12)
    # KL of Bernoulli laws by hand
    p, q = np.array([0.3, 0.5, 0.45, 0.2]), 0.6
    kl = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    assert b.lai_robbins(ENVIRONMENT, N) == pytest.approx((np.array([0.3, 0.1, 0.15, 0.4]) / kl).sum() * np.log(N))
    unit = b.stochastic([0.0, 1.0, 0.5], sigma=1.0)
    assert b.lai_robbins(unit, N) == pytest.approx((2 / 1.0 + 2 / 0.5) * np.log(N))
    assert b.minimax(unit, N) == pytest.approx(np.sqrt(2 * N) / 27)
    assert b.minimax(ENVIRONMENT, N) == pytest.approx(np.sqrt(K * N) / 20)


@pytest.mark.parametrize(
    "policy",
    [
        b.UCB(4, sigma=1.0),
        b.Thompson(4, prior=("normal", 0, 1, 1)),
        b.EpsilonGreedy(4),
        b.MOSS(4, horizon=500, sigma=1.0),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_the_minimax_bound_on_the_instance_of_its_proof(policy):
    """On one of two problems, the second with the arm raised that was played least, every policy loses √((k−1)n)/27."""
    n, k = 500, 4
    first = b.worst_case(k, n)
    one = next(iter(b.simulate(policy, first, n, 400).values()))
    least = 1 + int(np.argmin(one.pulls[1:]))
    other = next(iter(b.simulate(policy, b.worst_case(k, n, raised=least), n, 400).values()))
    assert max(one.mean[-1], other.mean[-1]) >= np.sqrt((k - 1) * n) / 27


@pytest.mark.long
def test_good_policies_come_near_lai_and_robbins_and_slow_ones_do_not():
    """In the limit the regret of Thompson sampling and KL-UCB grows by the bound per unit of log n."""
    environment = b.stochastic([0.2, 0.5])
    found = b.simulate([b.Thompson(2), b.KLUCB(2), b.UCB(2)], environment, 20_000, 100)
    slope = b.lai_robbins(environment, 20_000) / np.log(20_000)
    for name, low, high in (("Thompson", 0.5, 1.6), ("KLUCB", 0.5, 1.6), ("UCB", 1.5, 10.0)):
        result = found[name]
        at = int(np.searchsorted(result.rounds, 2000))
        rise = (result.mean[-1] - result.mean[at]) / np.log(20_000 / result.rounds[at])
        assert low * slope < rise < high * slope, name


def test_fixed_epsilon_loses_linearly():
    result = b.simulate(b.EpsilonGreedy(K, epsilon=0.2), ENVIRONMENT, N, 100)["EpsilonGreedy"]
    least = 0.2 / K * ENVIRONMENT.gaps.sum() * N
    assert result.mean[-1] >= 0.95 * least
    assert result.bound.value is None


def test_the_same_bits_for_any_number_of_threads_and_replications():
    chosen = [b.UCB(K), b.Thompson(K), b.EXP3(K, horizon=N)]
    one = b.simulate(chosen, ENVIRONMENT, 300, 40, n_jobs=1)
    two = b.simulate(chosen, ENVIRONMENT, 300, 40, n_jobs=2)
    few = b.simulate(chosen, ENVIRONMENT, 300, 8, n_jobs=2)
    for name in one:
        assert one[name].final.tobytes() == two[name].final.tobytes()
        assert one[name].final[:8].tobytes() == few[name].final.tobytes()


def test_a_simulated_policy_is_the_one_in_use():
    """`simulate` plays what `act` and `update` play on the same stream."""
    from learnable.decisions._random import make_streams, uniform

    for policy in (b.UCB(3), b.Thompson(3), b.EXP3(3, horizon=200), b.SlidingWindowUCB(3, window=20), b.KLUCB(3)):
        environment = b.stochastic([0.3, 0.5, 0.7])
        pulls = np.zeros(3)
        player = policy.restart()
        player.state["rng"] = make_streams(7, 2, purpose=1)[1].copy()
        noise = make_streams(7, 2, purpose=2)[1].copy()
        for _ in range(200):
            arm = player.act()
            player.update(arm, float(uniform(noise) < environment.means[0, arm]))
            pulls[arm] += 1
        found = next(iter(b.simulate(policy, environment, 200, 2, random_state=7).values()))
        assert found.final[1] == pytest.approx((pulls * environment.gaps).sum(), abs=1e-9)


def test_regret_by_arm_adds_up():
    result = b.simulate(b.UCB(K), ENVIRONMENT, N, 50)["UCB"]
    assert result.by_arm[:, 0].sum() == pytest.approx(result.mean[-1])
    assert result.pulls.sum() == pytest.approx(N)
    np.testing.assert_allclose(result.by_arm[:, 0], result.pulls * ENVIRONMENT.gaps, atol=1e-9)
    assert (np.diff(result.mean) >= -1e-9).all()


def test_intervals_cover_the_mean_of_many_replications():
    truth = b.simulate(b.UCB(2), b.stochastic([0.4, 0.6]), 200, 4000)["UCB"].mean[-1]
    hits = 0
    for seed in range(1, 101):
        result = b.simulate(b.UCB(2), b.stochastic([0.4, 0.6]), 200, 30, level=0.9, random_state=seed)["UCB"]
        hits += result.lower[-1] <= truth <= result.upper[-1]
    assert 80 <= hits <= 98  # 90 expected, standard deviation 3


def test_adversarial_rewards():
    """The adversary rewards each arm in turn; EXP3 stays below its bound against the best arm, UCB1 may not."""
    T = 2000
    table = np.zeros((T, 2))
    table[:700, 0] = 1.0
    table[700:, 1] = 1.0
    found = b.simulate([b.EXP3(2, horizon=T), b.EXP3IX(2, horizon=T), b.UCB(2)], b.adversarial(table), T, 60)
    assert found["EXP3"].upper[-1] <= found["EXP3"].bound.value
    assert found["EXP3IX"].upper[-1] <= found["EXP3IX"].bound.value
    assert found["UCB"].bound.value is None and "adversary" in found["UCB"].bound.reason


def test_policies_that_forget_follow_a_change():
    half = np.vstack([np.tile([0.8, 0.2], (1000, 1)), np.tile([0.2, 0.8], (1000, 1))])
    changing = b.drifting(np.tile(half, (4, 1)))
    chosen = {"plain": b.Thompson(2), "window": b.SlidingWindowUCB(2, window=200, xi=0.6)}
    chosen["discount"] = b.DiscountedUCB(2, discount=0.99, xi=0.6)
    found = b.simulate(chosen, changing, 8000, 40)
    assert found["window"].mean[-1] < 0.4 * found["plain"].mean[-1]
    assert found["discount"].mean[-1] < 0.4 * found["plain"].mean[-1]
    assert "drift" in found["plain"].bound.reason


def test_an_adversary_with_a_budget_of_corruption():
    """With a bonus of C/N besides, an arm that is worse by Δ is played until 2√(β/N) + 2C/N < Δ and no longer."""
    n, gap, C = 4000, 0.2, 40.0
    changes = np.zeros((51, 2))
    changes[:50, 1] = -0.8
    env = b.stochastic([0.5, 0.7]).with_corruption(changes)
    assert env.corruption_budget == pytest.approx(C)
    found = b.simulate({"robust": b.UCB(2, corruption=C), "plain": b.UCB(2)}, env, n, 60)
    assert found["robust"].upper[-1] <= 32 * np.log(n) / gap + 4 * C + (1 + np.pi**2 / 3) * gap
    assert found["robust"].pulls[0] > C / gap  # it does not trust a mean before C cannot explain it
    assert found["plain"].bound.reason == "rewards are corrupted"


def test_late_rewards_cost_a_little():
    prompt = b.stochastic([0.4, 0.6])
    now = b.simulate(b.UCB(2), prompt, 1000, 100)["UCB"].mean[-1]
    late = b.simulate(b.UCB(2), prompt.with_delay(100), 1000, 100)["UCB"].mean[-1]
    often = b.simulate(b.UCB(2), prompt.with_delay(30, random=True), 1000, 100)["UCB"].mean[-1]
    assert now < late < now + 100 * 0.2 + 15
    assert now - 2 < often < late + 5


def test_budgets_end_play_and_the_best_ratio_wins():
    environment = b.stochastic([0.4, 0.6]).with_budget(100.0, [0.1, 0.5])
    found = b.simulate([b.BudgetUCB(2), b.UCB(2)], environment, 5000, 50)
    assert found["BudgetUCB"].earned.mean() > 1.5 * found["UCB"].earned.mean()
    assert (found["UCB"].played < 5000).all()
    spent = found["BudgetUCB"].pulls @ [0.1, 0.5]
    assert 99.0 < spent <= 100.0 + 1e-9


def test_any_distribution():
    environment = b.stochastic([Exponential(1.0), Exponential(2.0)])
    found = b.simulate([b.Thompson(2, prior="exponential"), b.RandomArm(2)], environment, 500, 60)
    assert found["Thompson"].mean[-1] < 0.2 * found["RandomArm"].mean[-1]
    assert found["RandomArm"].mean[-1] == pytest.approx(125.0, rel=0.05)
    counts = b.simulate([b.Thompson(2, prior="poisson")], b.stochastic([Poisson(2.0), Poisson(3.0)]), 300, 20)
    assert counts["Thompson"].mean[-1] < 40
    pairs = b.simulate(b.PosteriorSampling(2, prior=NormalInverseGamma()), b.stochastic([0, 1], sigma=1.0), 120, 6)
    assert pairs["PosteriorSampling"].mean[-1] < 40


def test_the_figure_has_bands_and_bounds():
    found = b.simulate([b.UCB(2), b.EXP3(2, horizon=200)], b.stochastic([0.2, 0.9]), 200, 30)
    figure = found.plot()
    assert figure.startswith("<svg") and figure.count("fill-opacity") == 2 and "Lai–Robbins" in figure
    assert "proved: at most" in str(found)


@pytest.mark.parametrize(
    "ask, error, message",
    [
        (lambda: b.simulate(b.UCB(3), ENVIRONMENT, 10, 5), DataError, "has 3 arms and the environment 5"),
        (lambda: b.simulate(b.UCB(K), ENVIRONMENT, 0, 5), ParameterError, "horizon"),
        (lambda: b.simulate(b.UCB(K), ENVIRONMENT, 10, 1), ParameterError, "replications"),
        (lambda: b.simulate(b.EXP3(2), b.stochastic([0, 1], sigma=1.0), 10, 5), DataError, "rewards from 0 to 1"),
        (lambda: b.simulate([1], ENVIRONMENT, 10, 5), ParameterError, "Policy objects"),
        (lambda: b.simulate(b.UCB(2), b.adversarial(np.zeros((5, 2))), 10, 5), DataError, "fewer than the horizon"),
        (lambda: b.stochastic([0.2, 1.2]), DataError, r"in \[0, 1\]"),
        (lambda: b.stochastic([]), DataError, "at least one arm"),
        (lambda: b.adversarial([[2.0]]), DataError, r"values in \[0, 1\]"),
        (lambda: b.drifting([0.1]), DataError, "table of shape"),
        (lambda: ENVIRONMENT.with_budget(10, [1.0]), DataError, "5 positive costs"),
        (lambda: ENVIRONMENT.with_delay(-1), DataError, "delay"),
    ],
)
def test_bad_requests_are_refused(ask, error, message):
    with pytest.raises(error, match=message):
        ask()


def test_a_time_limit_leaves_whole_replications():
    result = b.simulate(b.Thompson(K), ENVIRONMENT, 2000, 5000, max_seconds=0.2, n_jobs=1)["Thompson"]
    assert 2 <= len(result.final) < 5000
    assert (result.played == 2000).all() and result.pulls.sum() == pytest.approx(2000)
