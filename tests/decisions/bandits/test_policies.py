"""Bandit policies: what they play, what they learn, what is saved, and what is refused."""

import numpy as np
import pytest
from scipy import stats
from tests.oracles import bandits as oracle

import learnable as ln
from learnable.core.errors import DataError, ModelFileError, ParameterError
from learnable.decisions import bandits as b
from learnable.decisions.bandits import _kernels
from learnable.probability import BetaBinomial, GammaPoisson, NormalInverseGamma, NormalNormal

PLAIN = [
    b.RandomArm(3, random_state=1),
    b.ExploreThenCommit(3, rounds_per_arm=4, random_state=1),
    b.EpsilonGreedy(3, epsilon=0.2, random_state=1),
    b.EpsilonGreedy(3, epsilon=1.0, decay=3.0, random_state=1),
    b.UCB(3, random_state=1),
    b.UCB(3, beta="anytime", random_state=1),
    b.UCB(3, beta="delta", delta=1e-4, random_state=1),
    b.UCB(3, corruption=5.0, random_state=1),
    b.LCB(3, random_state=1),
    b.MOSS(3, horizon=60, random_state=1),
    b.KLUCB(3, random_state=1),
    b.EXP3(3, horizon=60, random_state=1),
    b.EXP3IX(3, horizon=60, random_state=1),
    b.SlidingWindowUCB(3, window=10, random_state=1),
    b.DiscountedUCB(3, discount=0.9, random_state=1),
    b.BudgetUCB(3, random_state=1),
    b.Thompson(3, random_state=1),
    b.Thompson(3, prior=("normal", 0.0, 1.0, 0.25), random_state=1),
    b.Thompson(3, prior="poisson", random_state=1),
    b.Thompson(3, prior="exponential", random_state=1),
    b.PosteriorSampling(3, prior=NormalInverseGamma(), random_state=1),
    b.LinUCB(3, n_features=2, random_state=1),
    b.LinearThompson(3, n_features=2, random_state=1),
    b.LinUCB(3, n_features=2, shared=True, random_state=1),
    b.LinearThompson(3, n_features=2, shared=True, random_state=1),
]
each_policy = pytest.mark.parametrize("policy", PLAIN, ids=repr)


def context_of(policy, rng):
    if not hasattr(policy, "n_features"):
        return None
    return rng.normal(size=(policy.n_arms, policy.n_features) if policy.shared else policy.n_features)


def play(policy, n, seed=0):
    """Return the arms of n rounds with rewards of zero and one."""
    rng = np.random.default_rng(seed)
    arms = []
    for _ in range(n):
        context = context_of(policy, rng)
        arm = policy.act(context)
        policy.update(arm, float(rng.random() < 0.3 + 0.2 * arm))
        arms.append(arm)
    return arms


@each_policy
def test_a_saved_policy_goes_on_exactly(policy, tmp_path):
    policy = policy.restart(3)
    play(policy, 25)
    policy.act(context_of(policy, np.random.default_rng(9)))  # one decision is still open
    ln.save(policy, tmp_path / "policy.safetensors")
    again = ln.load(tmp_path / "policy.safetensors")
    assert repr(again) == repr(policy)
    assert play(again, 40, seed=5) == play(policy, 40, seed=5)
    for name, array in policy.state.items():
        assert array.tobytes() == again.state[name].tobytes(), name


@each_policy
def test_propensities_are_probabilities_and_ask_nothing_of_the_stream(policy):
    policy = policy.restart(4)
    rng = np.random.default_rng(2)
    play(policy, 12)
    context = context_of(policy, rng)
    before = policy.state["rng"].copy()
    chances = policy.propensities(context)
    assert chances.shape == (3,) and (chances >= 0).all() and chances.sum() == pytest.approx(1.0, abs=1e-9)
    assert (policy.state["rng"] == before).all()
    arm = policy.act(context)
    assert chances[arm] > 0.0
    if not getattr(policy, "shared", False):
        assert policy.last_propensity == pytest.approx(chances[arm], abs=1e-12)


@each_policy
def test_propensities_are_frequencies(policy):
    policy = policy.restart(5)
    play(policy, 10)
    context = context_of(policy, np.random.default_rng(3))
    chances = policy.propensities(context)
    kept = {name: array.copy() for name, array in policy.state.items()}
    counts, n = np.zeros(3), 300 if isinstance(policy, b.PosteriorSampling) else 1000
    for _ in range(n):
        rng = policy.state["rng"].copy()
        counts[policy.act(context)] += 1
        drawn = policy.state["rng"].copy()
        policy.state.update({name: array.copy() for name, array in kept.items()})
        policy.state["rng"] = drawn
        assert (drawn == rng).all() == (chances.max() == 1.0)
    error = np.sqrt(np.maximum(chances * (1 - chances), 1e-12) / n)
    assert (abs(counts / n - chances) < 4 * error + (0.03 if getattr(policy, "shared", False) else 1e-3)).all()


@each_policy
def test_rewards_may_come_late_and_in_any_order(policy):
    """The estimates after rewards that came late are those of the same rewards in time."""
    policy = policy.restart(6)
    rng = np.random.default_rng(1)
    pending = []
    for _ in range(12):
        arm = policy.act(context_of(policy, rng))
        pending.append((arm, policy.last_id))
    for at in rng.permutation(12):
        arm, number = pending[at]
        policy.update(arm, float(arm == 1), id=number)
    with pytest.raises(DataError, match="no reward of"):
        policy.update(pending[0][0], 1.0, id=pending[0][1])
    assert policy.rounds == 12
    assert len(policy.state["pending"]) == 0


@each_policy
def test_arms_come_and_go(policy):
    if hasattr(policy, "n_features") and policy.shared:
        policy = policy.restart(7)
        policy.remove_arm(1)
        assert 1 not in play(policy, 30)
        return
    policy = policy.restart(7)
    play(policy, 9)
    assert policy.add_arm() == 3
    policy.remove_arm(0)
    arms = play(policy, 60)
    assert 0 not in arms and 3 in arms
    assert policy.propensities(context_of(policy, np.random.default_rng(0)))[0] == 0.0
    for arm in (1, 2, 3):
        policy.remove_arm(arm)
    if not hasattr(policy, "n_features"):
        with pytest.raises(DataError, match="no arm left"):
            policy.act()


def test_ucb1_is_the_textbooks():
    rewards = (np.random.default_rng(0).random((300, 4)) < [0.2, 0.4, 0.5, 0.6]).astype(float)
    policy, arms = b.UCB(4), []
    for t in range(300):
        arms.append(policy.act())
        policy.update(arms[-1], rewards[t, arms[-1]])
    assert arms == oracle.ucb1_arms(rewards)


def test_any_schedule_of_beta():
    constant, function = b.UCB(3, beta=0.7), b.UCB(3, beta=lambda t: 0.7)
    assert play(constant, 50) == play(function, 50)
    assert play(b.UCB(3, beta=lambda t: 2 * np.log(t)), 50) == play(b.UCB(3), 50)


@pytest.mark.parametrize("cls", [b.EXP3, b.EXP3IX])
def test_exp3_has_the_weights_of_its_history(cls):
    policy = cls(3, horizon=100, random_state=0)
    rng = np.random.default_rng(0)
    arms, rewards, chances = [], [], []
    for _ in range(60):
        arm = policy.act()
        bias = policy.rate / 2 if cls is b.EXP3IX else 0.0
        chances.append(policy.last_propensity + bias)
        arms.append(arm)
        rewards.append(rng.random())
        policy.update(arm, rewards[-1])
    expected = oracle.exp3_weights(arms, rewards, chances, policy.rate, 3)
    np.testing.assert_allclose(policy.propensities(), expected, rtol=1e-10)


@pytest.mark.parametrize("mean, count, bound", [(0.0, 3, 2.0), (0.3, 10, 3.0), (0.97, 50, 1.0), (1.0, 4, 2.0)])
def test_kl_bounds(mean, count, bound):
    found = _kernels.kl_upper(mean, bound / count)
    assert found == pytest.approx(oracle.kl_index(mean, count, bound), abs=1e-6)


@pytest.mark.parametrize(
    "prior, pair, rewards",
    [
        (("beta", 2, 3), BetaBinomial(2, 3), [1, 0, 1, 1]),
        (("normal", 0.5, 2.0, 0.25), NormalNormal(0.5, np.sqrt(2), 0.5), [0.3, -1.0, 2.0]),
        (("poisson", 1.5, 0.5), GammaPoisson(1.5, 0.5), [3, 0, 2]),
    ],
)
def test_thompsons_posterior_is_the_conjugate_one(prior, pair, rewards):
    policy = b.Thompson(2, prior=prior)
    for reward in rewards:
        policy.update(0, reward)
    expected = pair.update(rewards)
    for name, value in expected.parameters.items():
        assert float(policy.posterior(0).parameters[name]) == pytest.approx(float(value), rel=1e-12)
    assert b.Thompson(2, prior=pair).parameters() == pytest.approx(policy.parameters())


@pytest.mark.parametrize(
    "prior, law",
    [
        (("beta", 2.5, 0.7), stats.beta(2.5, 0.7)),
        (("normal", 1.0, 4.0, 1.0), stats.norm(1.0, 2.0)),
        (("poisson", 0.6, 2.0), stats.gamma(0.6, scale=0.5)),
        (("exponential", 3.0, 2.0), stats.invgamma(3.0, scale=2.0)),
    ],
)
def test_draws_of_means_follow_the_posterior(prior, law):
    policy = b.Thompson(1, prior=prior, random_state=0)
    rng = policy.state["rng"]
    draws = [_kernels._draw(policy.code, policy.parameters(), rng, 0.0, 0.0) for _ in range(4000)]
    assert stats.kstest(draws, law.cdf).pvalue > 1e-3


def test_a_window_forgets_and_a_discount_fades():
    window, discount = b.SlidingWindowUCB(2, window=5), b.DiscountedUCB(2, discount=0.5)
    for policy in (window, discount):
        for reward in (1.0,) * 5 + (0.0,) * 5:
            policy.update(0, reward)
    assert window.means[0] == 0.0 and window.counts[0] == 5.0
    assert discount.counts[0] == pytest.approx(sum(0.5**i for i in range(10)))
    assert discount.means[0] == pytest.approx(sum(0.5**i for i in range(5, 10)) / sum(0.5**i for i in range(10)))


def test_linear_estimates_are_ridge_regression():
    rng = np.random.default_rng(0)
    policy = b.LinUCB(2, n_features=3, ridge=2.0)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    for x, r in zip(X, y, strict=True):
        policy.update(1, r, context=x)
    expected = np.linalg.solve(X.T @ X + 2 * np.eye(3), X.T @ y)
    np.testing.assert_allclose(policy.coefficients[1], expected, rtol=1e-9)
    assert (policy.coefficients[0] == 0).all()


def test_linear_policies_learn():
    theta = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    for policy in (b.LinUCB(3, n_features=2), b.LinearThompson(3, n_features=2, scale=0.3)):
        regret = b.simulate_linear(policy, theta, 300, 5, noise=0.3)
        assert regret[:, -1].mean() - regret[:, 149].mean() < 0.5 * regret[:, 149].mean()


def test_sets_of_arms():
    rng = np.random.default_rng(0)
    means = np.array([0.1, 0.8, 0.3, 0.7, 0.2])
    policy = b.CombinatorialUCB(5, m=2)
    for _ in range(600):
        arms = policy.act_set()
        policy.update_set(arms, rng.random(2) < means[arms])
    assert policy.act_set().tolist() == [1, 3]

    def one_of_each_half(index):
        return np.array([np.argmax(index[:2]), 2 + np.argmax(index[2:])])

    halves = b.CombinatorialUCB(5, oracle=one_of_each_half)
    for _ in range(600):
        arms = halves.act_set()
        assert arms[0] < 2 <= arms[1]
        halves.update_set(arms, rng.random(2) < means[arms])
    assert halves.counts[[1, 3]].min() > 350
    with pytest.raises(DataError, match="different arms"):
        b.CombinatorialUCB(5, oracle=lambda index: np.array([1, 1])).act_set()


def test_the_best_arms_are_found_within_the_error():
    env = b.stochastic([0.2, 0.3, 0.7, 0.4, 0.75])
    rejects = b.identify(b.SuccessiveRejects(5, m=2, budget=800), env, 20)
    assert rejects.error <= 0.05 and (rejects.rounds <= 800).all()
    lucb = b.identify(b.LUCB(5, m=2, delta=0.1), env, 8)
    assert lucb.error <= 0.1
    one = b.identify(b.SuccessiveRejects(5, m=1, budget=1500), env, 10)
    assert one.error <= 0.4
    normal = b.identify(b.LUCB(3, m=1, delta=0.1, sigma=1.0, bernoulli=False), b.stochastic([0, 2, 1], sigma=1.0), 8)
    assert normal.error <= 0.1


def test_saved_identification_goes_on(tmp_path):
    for policy in (b.SuccessiveRejects(4, m=2, budget=200), b.LUCB(4, m=2)):
        play(policy, 30)
        ln.save(policy, tmp_path / "p.safetensors")
        again = ln.load(tmp_path / "p.safetensors")
        assert play(again, 20, seed=1) == play(policy, 20, seed=1)
        assert (again.recommend() == policy.recommend()).all()


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: b.UCB(0), "n_arms"),
        (lambda: b.UCB(2, beta="more"), "beta must be"),
        (lambda: b.UCB(2, beta=-1.0), "beta must be"),
        (lambda: b.EpsilonGreedy(2, epsilon=1.5), "epsilon"),
        (lambda: b.Thompson(2, prior="cauchy"), "prior must be"),
        (lambda: b.Thompson(2, prior=("beta", 0, 1)), "positive"),
        (lambda: b.EXP3(2, eta=0.0), "eta"),
        (lambda: b.SlidingWindowUCB(2, window=0), "window"),
        (lambda: b.LUCB(3, m=3), "m must be"),
        (lambda: b.UCB(2, random_state="seed"), "random_state"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_bad_rewards_and_arms_are_refused():
    with pytest.raises(DataError, match=r"reward of arm 1 must be a number from 0 to 1; got 3\.0"):
        b.EXP3(2).update(1, 3.0)
    with pytest.raises(DataError, match="reward of arm 0 must be a finite number; got nan"):
        b.UCB(2).update(0, np.nan)
    with pytest.raises(DataError, match="arm from 0 to 1; got 2"):
        b.UCB(2).update(2, 1.0)
    policy = b.UCB(2)
    policy.act()
    with pytest.raises(DataError, match="decision 0 played arm 0, not arm 1"):
        policy.update(1, 1.0, id=0)
    with pytest.raises(DataError, match="needs a context"):
        b.LinUCB(2, n_features=3).act()
    with pytest.raises(DataError, match=r"shape \(3,\)"):
        b.LinUCB(2, n_features=3).act([1.0, 2.0])


def test_a_damaged_state_is_refused(tmp_path):
    policy = b.UCB(3)
    policy.state["arms"] = np.zeros((6, 2))
    with pytest.raises(ModelFileError, match="does not fit together"):
        ln.save(policy, tmp_path / "p.safetensors")
    with pytest.raises(ModelFileError, match="beta"):
        ln.save(b.UCB(3, beta=lambda t: 1.0), tmp_path / "p.safetensors")
