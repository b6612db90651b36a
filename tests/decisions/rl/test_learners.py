"""Tabular learners: exact limits, the textbook's steps, Gymnasium, and what is refused."""

import numpy as np
import pytest
from tests.oracles import rl as oracle

import learnable as ln
from learnable.core.errors import DataError, ModelFileError, ParameterError
from learnable.decisions import rl
from learnable.decisions.mdp import MDP, policy_evaluation, policy_iteration
from learnable.decisions.rl import _kernels
from learnable.decisions.tables import StepTable

LEARNERS = [
    rl.QLearning(alpha=0.5),
    rl.Sarsa(alpha=0.5),
    rl.ExpectedSarsa(alpha=0.5),
    rl.DoubleQLearning(alpha=0.5),
    rl.NStepSarsa(alpha=0.2, n_steps=3),
    rl.SarsaLambda(alpha=0.2, trace=0.8),
    rl.SarsaLambda(alpha=0.2, trace=0.8, replacing=True),
    rl.DynaQ(alpha=0.5, planning=3),
    rl.MonteCarlo(explore=0.3, initial=-50.0),
    rl.MonteCarlo(first_visit=False, explore=0.3, initial=-50.0),
    rl.OffPolicyMonteCarlo(explore=0.5, initial=-50.0),
]
each_learner = pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)


def small_world():
    return rl.GridWorld(["S..", ".#.", "..G"], slip=0.1, max_steps=200)


def copy_of(learner):
    from dataclasses import fields

    return type(learner)(**{f.name: getattr(learner, f.name) for f in fields(learner) if f.name != "memory"})


@each_learner
def test_every_learner_finds_the_way(learner):
    learned = copy_of(learner).learn(small_world(), 1500, seeds=6)
    best = policy_iteration(small_world().mdp(1.0))
    at = small_world().mdp(1.0).start @ best.values
    assert learned.policy_values is not None
    assert (learned.policy_values <= at + 1e-9).all(), "no policy is better than the best"
    assert learned.mean >= at - 0.6


@each_learner
def test_the_same_bits_for_any_number_of_threads(learner):
    one = copy_of(learner).learn(small_world(), 40, seeds=5, n_jobs=1)
    two = copy_of(learner).learn(small_world(), 40, seeds=5, n_jobs=2)
    assert one.action_values.tobytes() == two.action_values.tobytes()
    assert one.returns.tobytes() == two.returns.tobytes()


@each_learner
def test_a_saved_learner_goes_on_exactly(learner, tmp_path):
    learner = copy_of(learner)
    learner.go_on(small_world(), 30, random_state=1)
    ln.save(learner, tmp_path / "learner.safetensors")
    again = ln.load(tmp_path / "learner.safetensors")
    first, second = learner.go_on(small_world(), 30, random_state=2), again.go_on(small_world(), 30, random_state=2)
    assert first[0].tobytes() == second[0].tobytes()
    assert learner.action_values.tobytes() == again.action_values.tobytes()


def test_q_learning_converges_to_the_best_values():
    lake = rl.FrozenLake()
    lake.max_steps = 10_000
    learned = rl.QLearning(gamma=0.9, alpha_decay=0.75, explore=1.0).learn(lake, 120_000, seeds=3)
    best = lake.mdp(0.9).action_values(policy_iteration(lake.mdp(0.9)).values)
    met = lake.mdp(0.9).stop.reshape(16, 4) < 1.0
    for Q in learned.action_values:
        assert abs(Q - best)[met].max() < 0.08  # next to the goal, where a random walk seldom comes
        assert abs(Q - best)[met].mean() < 0.01


def test_on_the_cliff_q_learning_is_optimal_and_sarsa_is_safe():
    """Sutton and Barto's example 6.6: −13 for the greedy policy of Q-learning, the best ε-soft one for SARSA."""
    cliff = rl.CliffWalking()
    greedy = rl.QLearning(alpha=0.5).learn(cliff, 800, seeds=10)
    assert (greedy.policy_values == pytest.approx(-13.0, abs=1e-9)) or greedy.mean == pytest.approx(-13.0)
    soft = rl.ExpectedSarsa(alpha_decay=0.6, explore=0.1).learn(cliff, 20_000, seeds=3)
    Q = oracle.soft_values(cliff.mdp(1.0), 0.1)
    assert (0.9 * Q[36].max() + 0.1 * Q[36].mean()) == pytest.approx(-20.70767740, abs=1e-6)
    for learned in soft.action_values:
        value = 0.9 * learned[36].max() + 0.1 * learned[36].mean()
        assert value == pytest.approx(-20.71, abs=0.6)
    # The return while exploring: ε-soft optimal for SARSA, far worse for Q-learning, which walks along the edge.
    sarsa = rl.Sarsa(alpha_decay=0.6).learn(cliff, 8000, seeds=6)
    q = rl.QLearning(alpha=0.5).learn(cliff, 3000, seeds=6)
    assert sarsa.returns[:, -2000:].mean() == pytest.approx(-20.71, abs=2.0)
    assert q.returns[:, -2000:].mean() < -40.0


def maximisation_bias():
    """Return Sutton and Barto's example 6.7: right ends with 0; left leads to B, whose 8 actions earn N(−0.1, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(7)
    weights = weights / weights.sum()
    rows = [(0, 0, 1.0, 1, 0.0, False), (0, 1, 1.0, 0, 0.0, True)]
    for a in range(8):
        rows += [(1, a, w, 1, -0.1 + x, True) for x, w in zip(nodes, weights, strict=True)]
    s, a, p, to, r, end = (np.array(column) for column in zip(*rows, strict=True))
    return rl.TableEnvironment(StepTable(s, a, p, to, r, end, np.array([1.0, 0.0])), name="bias")


def test_double_q_removes_the_overestimation():
    """Early on Q-learning goes left far more often than the 5 % that ε = 0.1 explains; double Q-learning does not."""
    world = maximisation_bias()
    single = rl.QLearning(alpha=0.1).learn(world, 100, seeds=400)
    double = rl.DoubleQLearning(alpha=0.1).learn(world, 100, seeds=400)
    left_single, left_double = ((found.lengths[:, 30:] == 2).mean() for found in (single, double))
    assert left_single > 0.35
    assert left_double < 0.6 * left_single
    # The greatest of eight noisy means lies above −0.1, which is what every one of them is worth.
    assert single.action_values[:, 1].max(axis=1).mean() > -0.05


@pytest.mark.parametrize("trace", [0.0, 0.7])
def test_td_has_its_fixed_point(trace):
    """On a walk of five states V is i/6 (Sutton and Barto, example 6.2), and TD(λ) gets there."""
    walk = rl.GridWorld(["L.....G"], step_reward=0.0, rewards={"G": 1.0, "L": 0.0})
    walk.start[:] = np.eye(7)[3]
    policy = np.tile([0.0, 0.5, 0.0, 0.5], (7, 1))
    exact = policy_evaluation(walk.mdp(1.0), policy).values
    np.testing.assert_allclose(exact[1:6], np.arange(1, 6) / 6, atol=1e-12)
    V = rl.predict_values(walk, policy, 20_000, alpha_decay=0.7, trace=trace, initial=0.5)
    np.testing.assert_allclose(V[1:6], exact[1:6], atol=0.05)


@pytest.mark.parametrize(
    "method, settings",
    [
        ("n-step", {"n_steps": 4, "alpha_decay": 0.7}),
        ("monte carlo", {"alpha": 0.0}),
        ("monte carlo", {"alpha": 0.0, "first_visit": False}),
        ("weighted importance", {"behaviour": True}),
        ("ordinary importance", {"behaviour": True}),
    ],
)
def test_predictions_tend_to_the_values(method, settings):
    world = small_world()
    policy = np.tile([0.1, 0.4, 0.4, 0.1], (9, 1))
    if "behaviour" in settings:
        settings = {"behaviour": np.tile([0.15, 0.35, 0.35, 0.15], (9, 1))}
    exact = policy_evaluation(world.mdp(0.9), policy).values
    V = rl.predict_values(world, policy, 30_000, method=method, gamma=0.9, **settings)
    met = [0, 1, 2, 3, 5, 6, 7]
    np.testing.assert_allclose(V[met], exact[met], atol=0.15)


def test_steps_are_gymnasiums():
    gymnasium = pytest.importorskip("gymnasium")
    pairs = ((rl.FrozenLake(), "FrozenLake-v1"), (rl.CliffWalking(), "CliffWalking-v1"), (rl.Taxi(), "Taxi-v4"))
    for ours, name in pairs:
        theirs = gymnasium.make(name).unwrapped
        rng = np.random.default_rng(0)
        theirs.reset(seed=0)
        for _ in range(400):
            s, a = int(rng.integers(ours.n_states)), int(rng.integers(ours.n_actions))
            u = float(rng.random())
            theirs.s, theirs.np_random = s, Fixed(u)
            after, reward, ended, _, _ = theirs.step(a)
            assert ours.step(s, a, u) == (after, float(reward), bool(ended)), (name, s, a, u)


class Fixed:
    """A generator that always says the same number."""

    def __init__(self, u):
        self.u = u

    def random(self):
        return self.u


def test_blackjack_is_gymnasiums():
    """Rewards of two policies have the same means as in Gymnasium's game."""
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("Blackjack-v1", sab=True)
    ours = rl.Blackjack()
    mdp = ours.mdp(1.0)
    for least in (14, 18):
        policy = np.array([1] * 370)
        for total in range(least, 22):
            policy[20 * (total - 4) : 20 * (total - 3)] = 0
        policy[360:] = 0
        exact = mdp.start @ policy_evaluation(mdp, policy).values
        rewards = []
        env.reset(seed=1)
        for _ in range(4000):
            (total, _, _), _ = env.reset()
            over = False
            while not over:
                (total, _, _), reward, over, _, _ = env.step(int(total < least))
            rewards.append(reward)
        assert abs(np.mean(rewards) - exact) < 4 * np.std(rewards) / np.sqrt(len(rewards))


def test_a_gymnasium_environment_is_learned_step_by_step():
    gymnasium = pytest.importorskip("gymnasium")
    learned = rl.QLearning(alpha=0.5).learn(gymnasium.make("CliffWalking-v1"), 250, seeds=2)
    assert learned.policy_values is not None and learned.mean == pytest.approx(-13.0)
    hidden = rl.MonteCarlo().learn(gymnasium.make("Blackjack-v1"), 50, seeds=2)
    assert hidden.policy_values is None and "return at the end" in str(hidden)


def test_an_episode_that_is_cut_off_still_counts_on_what_follows():
    """One state that pays 1 for ever, cut off after three steps: the value is 1/(1 − γ), not that of three rewards."""
    forever = MDP(np.ones((1, 1, 1)), [[1.0]], 0.9)
    table = StepTable(
        state=np.array([0]),
        action=np.array([0]),
        probability=np.array([1.0]),
        next_state=np.array([0]),
        reward=np.array([1.0]),
        terminal=np.array([False]),
        start=np.array([1.0]),
    )
    world = rl.TableEnvironment(table, max_steps=3)
    chosen = [rl.QLearning(gamma=0.9), rl.Sarsa(gamma=0.9), rl.NStepSarsa(gamma=0.9)]
    for learner in [*chosen, rl.MonteCarlo(gamma=0.9, alpha=0.1)]:
        Q = learner.learn(world, 2000, seeds=1).action_values
        assert Q[0, 0, 0] == pytest.approx(policy_iteration(forever).values[0], abs=1e-3), learner
    ending = rl.TableEnvironment(table._replace(terminal=np.array([True])))
    assert rl.QLearning(gamma=0.9).learn(ending, 500, seeds=1).action_values[0, 0, 0] == pytest.approx(1.0, abs=1e-6)


def test_q_learning_is_the_textbooks():
    steps = [(0, 1, 1.0, 1, False), (1, 0, -2.0, 0, False), (0, 1, 0.5, 1, True), (0, 0, 3.0, 0, False)]
    learner = rl.QLearning(alpha=0.3, gamma=0.8)
    memory = learner._new_memory(rl.TableEnvironment(small_table()), np.array([1, 2, 3, 4], dtype=np.uint64))
    p, allowed = np.full(2, 0.5), np.ones((2, 2), dtype=bool)
    for s, a, r, after, ended in steps:
        _kernels.observe(
            0, 0, learner._numbers(), memory["Q"], memory["N"], memory["E"], memory["model"], memory["seen"],
            memory["path"], memory["meta"], allowed, s, a, r, after, ended, False, p, memory["rng"],
        )  # fmt: skip
    np.testing.assert_allclose(memory["Q"][0], oracle.q_learning(steps, 2, 2, 0.3, 0.8), rtol=1e-12)


def small_table(reward=0.0):
    rows = [(s, a, 1.0, a, reward, False) for s in range(2) for a in range(2)]
    s, a, p, to, r, end = (np.array(column) for column in zip(*rows, strict=True))
    return StepTable(s, a, p, to, r, end, np.array([0.5, 0.5]))


@pytest.mark.parametrize("exploration, explore", [("epsilon", 0.2), ("softmax", 0.5), ("ucb", 1.0)])
def test_probabilities_of_exploration(exploration, explore):
    Q = np.zeros((2, 1, 3))
    Q[0, 0] = [1.0, 0.0, 1.0]
    N = np.full((2, 1, 3), [4.0, 1.0, 9.0])
    par = rl.QLearning(exploration=exploration, explore=explore)._numbers()
    out = np.zeros(3)
    meta = np.array([0.0, 0.0, 13.0, 0.0])
    code = {"epsilon": 0, "softmax": 1, "ucb": 2}[exploration]
    _kernels.chances(code, par, Q, N, np.ones((1, 3), bool), 0, meta, out)
    weights = np.exp(Q[0, 0] / 0.5)
    expected = {
        "epsilon": np.array([0.4, 0.0, 0.4]) + 0.2 / 3,
        "softmax": weights / weights.sum(),
        "ucb": np.eye(3)[np.argmax(Q[0, 0] + np.sqrt(np.log(14.0) / N[0, 0]))],
    }[exploration]
    np.testing.assert_allclose(out, expected, atol=1e-12)


def test_optimistic_starts_explore_without_chance():
    learned = rl.QLearning(alpha=0.5, explore=0.0, initial=0.0).learn(rl.CliffWalking(), 400, seeds=3)
    assert learned.mean == pytest.approx(-13.0)  # every reward is negative: zero is optimistic
    stuck = rl.QLearning(alpha=0.5, explore=0.0, initial=-1000.0).learn(small_world(), 50, seeds=3)
    free = rl.QLearning(alpha=0.5, explore=0.0, initial=0.0).learn(small_world(), 50, seeds=3)
    assert stuck.policy_values.mean() < free.policy_values.mean() - 1.0  # the first way found is kept


def test_one_seed_is_called_one_seed():
    learned = rl.QLearning(alpha=0.5).learn(small_world(), 50, seeds=1)
    assert "one seed: no interval" in str(learned)
    assert np.isnan(learned.lower)
    many = rl.QLearning(alpha=0.5).learn(small_world(), 50, seeds=5)
    assert "interquartile mean over 5 seeds" in str(many)


def test_interquartile_means():
    assert rl.interquartile_mean(np.arange(8.0)) == pytest.approx(3.5)
    # Three values: the middle one whole, a quarter of each of the others.
    assert rl.interquartile_mean([1.0, 2.0, 6.0]) == pytest.approx((0.25 * 1.0 + 2.0 + 0.25 * 6.0) / 1.5)
    low, high = rl.bootstrap_interval(np.random.default_rng(0).normal(size=40))
    assert low < 0.0 < high


@pytest.mark.parametrize(
    "ask, error, message",
    [
        (lambda: rl.QLearning(gamma=1.5), ParameterError, "gamma"),
        (lambda: rl.QLearning(exploration="hope"), ParameterError, "exploration"),
        (lambda: rl.QLearning(explore=2.0), ParameterError, "at most 1"),
        (lambda: rl.QLearning(exploration="softmax", explore=0.0), ParameterError, "explore"),
        (lambda: rl.NStepSarsa(n_steps=0), ParameterError, "n_steps"),
        (lambda: rl.QLearning().learn(small_world(), 0), ParameterError, "episodes"),
        (lambda: rl.QLearning().learn("Taxi", 10), DataError, "got a str"),
        (lambda: rl.TableEnvironment(small_table(np.nan)), DataError, "state 0, action 0 earns nan"),
        (lambda: rl.predict_values(small_world(), np.full((9, 4), 0.3), 5), DataError, "in state 0 sum to 1.2"),
        (
            lambda: rl.predict_values(
                small_world(),
                np.full((9, 4), 0.25),
                5,
                method="weighted importance",
                behaviour=np.tile([0.0, 0.5, 0.5, 0.0], (9, 1)),
            ),
            DataError,
            "no overlap",
        ),
    ],
)
def test_bad_requests_are_refused(ask, error, message):
    with pytest.raises(error, match=message):
        ask()


def test_environments_that_return_nan_are_refused():
    class Broken:
        spec = None

        class observation_space:  # noqa: N801
            n = 2

        class action_space:  # noqa: N801
            n = 2

        def reset(self, seed=None):
            return 0, {}

        def step(self, action):
            return 1, float("nan"), False, False, {}

    with pytest.raises(DataError, match=r"state 0, action . earned nan"):
        rl.QLearning().learn(Broken(), 1, seeds=1)


def test_a_damaged_memory_is_refused(tmp_path):
    learner = rl.DynaQ()
    learner.go_on(small_world(), 3)
    learner.memory["model"][0, 0, 0] = 99.0
    with pytest.raises(ModelFileError, match="does not fit together"):
        ln.save(learner, tmp_path / "l.safetensors")


def test_a_time_limit_leaves_whole_batches_of_episodes():
    learned = rl.QLearning().learn(rl.Taxi(), 10**6, seeds=2, max_seconds=0.3)
    assert 500 <= learned.returns.shape[1] < 10**6
    assert (learned.lengths > 0).all()
