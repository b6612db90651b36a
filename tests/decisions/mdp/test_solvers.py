"""Solvers of processes: exact values, bounds, laws, and what is refused."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from tests.oracles import mdp as oracle

import learnable as ln
from learnable.core.errors import DataError, ParameterError
from learnable.decisions.mdp import (
    MDP,
    average_reward,
    backward_induction,
    linear_program,
    modified_policy_iteration,
    policy_evaluation,
    policy_improvement,
    policy_iteration,
    problems,
    robust_value_iteration,
    value_iteration,
)

SOLVERS = {
    "jacobi": value_iteration,
    "gauss-seidel": lambda mdp, **more: value_iteration(mdp, order="gauss-seidel", **more),
    "prioritised": lambda mdp, **more: value_iteration(mdp, order="prioritised", **more),
    "policy iteration": policy_iteration,
    "modified": modified_policy_iteration,
    "linear program": linear_program,
}
each_solver = pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)


def puterman(gamma=0.95):
    P = np.array([[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    return MDP(P, [[5.0, 10.0], [-1.0, -1.0]], gamma)


@each_solver
def test_putermans_two_states(solve):
    # Puterman 1994, example 3.1 with γ = .95; V* = (−60/7, −20).
    solution = solve(puterman())
    np.testing.assert_allclose(solution.values, [-60 / 7, -20.0], atol=1e-6)
    assert solution.policy.tolist() == [0, 0]
    assert ln.verify(solution, puterman())


@each_solver
@pytest.mark.parametrize("gamma, value", [(0.9, 0.0688909049), (0.95, 0.1804715784), (0.99, 0.5420259320)])
def test_frozen_lake(solve, gamma, value):
    # Values of Gymnasium 1.4.0's table, computed by value iteration to ten digits.
    lake = problems.frozen_lake(gamma=gamma)
    solution = solve(lake, tol=1e-9)
    assert solution.values[0] == pytest.approx(value, abs=2e-9)
    assert solution.lower[0] - 1e-10 <= value <= solution.upper[0] + 1e-10
    assert ln.verify(solution, lake)


@pytest.mark.parametrize(
    "make, expected",
    [
        (lambda: problems.frozen_lake(gamma=1.0), 14 / 17),
        (lambda: problems.frozen_lake("8x8", gamma=1.0), 1.0),
        (problems.taxi, 7.93),
        (problems.cliff_walking, -13.0),
        (lambda: problems.blackjack(sab=True), -0.04311311),
        (lambda: problems.blackjack(sab=False), -0.04655598),
        (lambda: problems.blackjack(sab=False, natural=True), -0.02572918),
    ],
    ids=["lake", "large lake", "taxi", "cliff", "blackjack", "blackjack without sab", "blackjack with naturals"],
)
@pytest.mark.parametrize("solve", [policy_iteration, value_iteration, modified_policy_iteration])
def test_processes_that_end(make, expected, solve):
    mdp = make()
    solution = solve(mdp, tol=1e-7)
    assert mdp.start @ solution.values == pytest.approx(expected, abs=1e-6)
    assert ln.verify(solution, mdp)


@pytest.mark.parametrize(
    "p, values",
    [(0.4, (0.16, 0.4, 0.64)), (0.25, (0.0625, 0.25, 0.4375)), (0.55, (0.9933740908, 0.9999560992, 0.9999997110))],
)
def test_the_gambler(p, values):
    # Bold play with p < 1/2: V(25) = p², V(50) = p, V(75) = p + (1 − p)p.
    solution = policy_iteration(problems.gambler(p))
    np.testing.assert_allclose(solution.values[[25, 50, 75]], values, atol=1e-9)
    assert (solution.lower <= solution.upper).all()


def test_car_rental():
    # Sutton and Barto 2018, figure 4.2; digits by value iteration with Poisson tails lumped at 20 cars.
    solution = modified_policy_iteration(problems.car_rental())
    assert solution.values.min() == pytest.approx(421.414063, abs=2e-6)
    assert solution.values.max() == pytest.approx(636.989607, abs=2e-6)
    assert solution.values[220] == pytest.approx(574.948324, abs=2e-6)


def test_blackjack_sticks_where_the_book_says():
    # Hard: 13 against 2 and 3, 12 against 4 to 6, else 17; soft: 18 against 2 to 8, else 19.
    from learnable.decisions.tables import blackjack_state

    policy = policy_iteration(problems.blackjack()).policy
    for dealer in range(1, 11):
        hard = 13 if dealer in (2, 3) else 12 if dealer in (4, 5, 6) else 17
        soft = 18 if 2 <= dealer <= 8 else 19
        for ace, least, first in ((0, hard, 12), (1, soft, 12)):
            sticks = [total for total in range(first, 22) if policy[blackjack_state(total, dealer, ace)] == 0]
            assert sticks == list(range(least, 22)), (dealer, ace)


def test_a_horizon():
    lake = problems.frozen_lake(gamma=1.0)
    solution = backward_induction(lake, 100)
    assert solution.values[0, 0] == pytest.approx(0.7441902878, abs=1e-9)
    assert ln.verify(solution, lake)
    large = backward_induction(problems.frozen_lake("8x8", gamma=1.0), 200)
    assert large.values[0, 0] == pytest.approx(0.9132201502, abs=1e-9)


def test_a_policy_on_the_cliff_that_strays():
    # The ε-soft versions of two policies: that of the optimal one, and the best one (reference.csv).
    cliff = problems.cliff_walking()
    greedy = policy_iteration(cliff).policy
    soft = 0.9 * np.eye(4)[greedy] + 0.1 / 4
    exact = policy_evaluation(cliff, soft).values
    assert exact[36] < -20.70767  # the best ε-soft policy keeps away from the edge
    np.testing.assert_allclose(policy_evaluation(cliff, soft, method="iterative", tol=1e-8).values, exact, atol=1e-7)


@each_solver
@pytest.mark.parametrize("stop", [0.0, 0.5])
def test_against_every_policy(solve, stop):
    rng = np.random.default_rng(7)
    for _ in range(4):
        mdp = oracle.random_mdp(rng, 4, 3, 0.9, stop=stop)
        best = oracle.best_of_all_policies(mdp)
        solution = solve(mdp, tol=1e-8)
        np.testing.assert_allclose(oracle.policy_values(mdp, solution.policy), best, atol=1e-8)
        assert (solution.lower <= best + 1e-10).all() and (best <= solution.upper + 1e-10).all()
        assert ln.verify(solution, mdp)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.0, 0.97), st.sampled_from([0.0, 0.8]))
def test_bounds_hold_at_any_values(seed, gamma, stop):
    """One backup of whatever values bounds V* from both sides, also where the process can end."""
    rng = np.random.default_rng(seed)
    mdp = oracle.random_mdp(rng, 5, 2, gamma, stop=stop)
    best = oracle.best_of_all_policies(mdp)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        early = value_iteration(mdp, max_iter=1, start=10 * rng.normal(size=5))
    slack = 1e-9
    own = oracle.policy_values(mdp, early.policy)
    assert (early.lower <= own + slack).all()
    assert (best <= early.upper + slack).all()
    assert (best - own).max() <= early.loss_bound + slack


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.0, 1.0))
def test_backups_contract_by_gamma_and_are_monotone(seed, gamma):
    rng = np.random.default_rng(seed)
    mdp = oracle.random_mdp(rng, 6, 2, gamma)
    v, w = rng.normal(size=(2, 6))
    Tv, Tw = mdp.action_values(v).max(axis=1), mdp.action_values(w).max(axis=1)
    assert abs(Tv - Tw).max() <= gamma * abs(v - w).max() + 1e-12
    assert (mdp.action_values(np.maximum(v, w)).max(axis=1) >= Tv - 1e-12).all()
    np.testing.assert_allclose(Tv, oracle.backup(mdp, v), atol=1e-12)


def test_policy_iteration_rises_and_ends():
    rng = np.random.default_rng(3)
    mdp = oracle.random_mdp(rng, 30, 4, 0.95)
    policy = np.zeros(30, dtype=int)
    values = [oracle.policy_values(mdp, policy)]
    for _ in range(100):
        better = policy_improvement(mdp, values[-1], policy)
        if (better == policy).all():
            break
        policy = better
        values.append(oracle.policy_values(mdp, policy))
    assert len(values) < 20
    assert (np.diff(values, axis=0) >= -1e-12).all()
    np.testing.assert_allclose(values[-1], policy_iteration(mdp).values, atol=1e-9)


def test_ties_never_cycle():
    # Every action leads to the same place for the same reward: rounding alone would tell them apart.
    n = 50
    P = np.full((n, 3, n), 1 / n)
    mdp = MDP(P, np.full((n, 3), 1 / 3), 0.999)
    solution = policy_iteration(mdp)
    assert solution.certificate_.n_iter <= 2
    assert solution.certificate_.holds


def test_the_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(0)
    n, a = 9000, 3
    P = sp.random_array((n * a, n), density=4 / n, rng=rng, format="csr")
    P = P + sp.csr_array((np.full(n * a, 0.1), (np.arange(n * a), rng.integers(n, size=n * a))), shape=P.shape)
    P = sp.diags_array(1 / P.sum(axis=1)) @ P
    mdp = MDP.from_pairs(np.repeat(np.arange(n), a), np.tile(np.arange(a), n), P, rng.normal(size=n * a), 0.95)
    for solve in (modified_policy_iteration, policy_iteration, value_iteration):
        one, two = solve(mdp, n_jobs=1), solve(mdp, n_jobs=2)
        assert one.values.tobytes() == two.values.tobytes()
        assert one.certificate_.holds
    assert ln.verify(one, mdp)


@pytest.mark.parametrize("solve", [value_iteration, modified_policy_iteration, policy_iteration])
def test_an_early_stop_warns(solve):
    mdp = oracle.random_mdp(np.random.default_rng(1), 40, 4, 0.99)
    with pytest.warns(ConvergenceWarning, match="stopped after 1 iterations"):
        solution = solve(mdp, max_iter=1, tol=1e-9)
    assert not solution.certificate_.holds
    assert solution.certificate_.value > 1e-9


def test_average_rewards():
    # Two states that alternate: a periodic chain, 1 and 3 per step, 2 on average.
    P = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    solution = average_reward(MDP(P, [[1.0], [3.0]], 0.9))
    assert solution.gain == pytest.approx(2.0, abs=1e-6)
    assert ln.verify(solution, MDP(P, [[1.0], [3.0]], 0.9))
    mdp = oracle.random_mdp(np.random.default_rng(5), 12, 3, 0.5)
    found = average_reward(mdp, tol=1e-9)
    nearly = policy_iteration(mdp.with_gamma(1 - 1e-5), tol=1e-4).values * 1e-5
    np.testing.assert_allclose(nearly, found.gain, atol=1e-4)
    assert ln.verify(found, mdp)


def test_robust_values():
    mdp = oracle.random_mdp(np.random.default_rng(2), 8, 3, 0.9)
    plain = value_iteration(mdp, tol=1e-9)
    same = robust_value_iteration(mdp, 0.0, tol=1e-9)
    np.testing.assert_allclose(same.values, plain.values, atol=1e-8)
    worse = [robust_value_iteration(mdp, radius) for radius in (0.1, 0.5, 2.0)]
    values = [plain.values, *(found.values for found in worse)]
    assert all((high >= low - 1e-6).all() for high, low in pairwise(values))
    assert all(ln.verify(found, mdp) for found in worse)
    # Whatever law nature picks within the radius, the policy earns at least its worst case.
    rng = np.random.default_rng(0)
    found = worse[1]
    P, r, _ = oracle.dense(mdp)
    for _ in range(20):
        mix = P.copy()
        for s, a in np.ndindex(P.shape[:2]):
            on = P[s, a] > 0
            q = rng.dirichlet(np.ones(on.sum()) * 0.3)
            share = min(1.0, 0.5 / max(abs(q - P[s, a, on]).sum(), 1e-12))
            mix[s, a, on] += share * (q - P[s, a, on])
        assert (oracle.policy_values(MDP(mix, r, 0.9), found.policy) >= found.lower - 1e-8).all()


@pytest.mark.parametrize("proof", ["discounted", "episodic", "residual", "horizon", "average", "robust"])
@pytest.mark.parametrize("member", ["values", "policy", "lower", "upper"])
def test_verify_catches_a_change(proof, member):
    from dataclasses import replace

    mdp = {
        "episodic": lambda: problems.taxi(),
        "residual": lambda: problems.frozen_lake(gamma=1.0),
        "horizon": lambda: problems.frozen_lake(gamma=1.0),
    }.get(proof, lambda: oracle.random_mdp(np.random.default_rng(4), 12, 3, 0.9))()
    solve = {
        "discounted": value_iteration,
        "robust": lambda mdp: robust_value_iteration(mdp, 0.3),
        "horizon": lambda mdp: backward_induction(mdp, 5),
        "average": average_reward,
    }.get(proof, policy_iteration)
    solution = solve(mdp)
    assert solution.proof == proof
    assert ln.verify(solution, mdp), str(ln.verify(solution, mdp))
    array = getattr(solution, member).copy()
    if proof == "residual" and member in ("lower", "upper"):
        assert np.isnan(array).all()  # nothing is claimed
        return
    if member == "policy":
        at = 14 if proof in ("residual", "horizon") else 0  # on the lake, the field before the goal
        q = mdp.action_values(solution.values[1] if proof == "horizon" else solution.values)[at]
        worst = int(np.argmin(np.where(np.isfinite(q), q, np.inf)))
        array[(0, at) if proof == "horizon" else at] = worst
    else:
        array[..., 3] += 1e-3 * (1.0 + abs(array[..., 3]))
    assert not ln.verify(replace(solution, **{member: array}), mdp)
    other = mdp.with_rewards(mdp.reward + np.where(np.arange(mdp.n_pairs) == 0, 1e-3, 0.0))
    assert not ln.verify(solution, other)


def test_a_solution_is_saved_and_loaded(tmp_path):
    mdp = problems.taxi()
    solution = policy_iteration(mdp)
    ln.save(solution, tmp_path / "taxi.safetensors")
    loaded = ln.load(tmp_path / "taxi.safetensors")
    assert loaded.values.tobytes() == solution.values.tobytes()
    assert loaded.certificate_ == solution.certificate_
    assert ln.verify(loaded, mdp)


def test_the_linear_program_is_value_iteration():
    mdp = oracle.random_mdp(np.random.default_rng(11), 60, 4, 0.9)
    program, iterated = linear_program(mdp), value_iteration(mdp, tol=1e-9)
    np.testing.assert_allclose(program.values, iterated.values, atol=1e-6)


@pytest.mark.parametrize("name", ["frozenlake_4x4", "frozenlake_8x8", "cliffwalking", "taxi"])
def test_tables_are_gymnasiums(name):
    """The rows are those of Gymnasium itself, where it is installed."""
    gymnasium = pytest.importorskip("gymnasium")
    env, options, mine = {
        "frozenlake_4x4": ("FrozenLake-v1", {"map_name": "4x4"}, problems.frozen_lake()),
        "frozenlake_8x8": ("FrozenLake-v1", {"map_name": "8x8"}, problems.frozen_lake("8x8")),
        "cliffwalking": ("CliffWalking-v1", {}, problems.cliff_walking()),
        "taxi": ("Taxi-v4", {}, problems.taxi()),
    }[name]
    theirs = MDP.from_gymnasium(gymnasium.make(env, **options), mine.gamma)
    assert (theirs.pair_action == mine.pair_action).all()
    assert (theirs.reward == mine.reward).all()
    np.testing.assert_allclose((theirs.P - mine.P).toarray(), 0.0, atol=1e-15)
    np.testing.assert_allclose(theirs.stop, mine.stop, atol=1e-15)
    np.testing.assert_allclose(theirs.start, mine.start, atol=1e-15)


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: MDP(np.ones((2, 1, 2)), np.zeros(2), 0.9), "state 0, action 0 sum to 2"),
        (lambda: MDP(np.array([[[1.5, -0.5]], [[0, 1.0]]]), np.zeros(2), 0.9), "state 0, action 0 has the probability"),
        (lambda: MDP(np.eye(2)[:, None], [0.0, np.nan], 0.9), "state 1, action 0 has the reward nan"),
        (lambda: MDP(np.eye(2)[:, None], np.zeros(3), 0.9), "rewards must have shape"),
        (lambda: MDP(np.zeros((3, 2, 2)), np.zeros(2), 0.9), "with actions first"),
        (lambda: MDP(np.eye(2)[:, None], np.zeros(2), 0.9, available=[[True], [False]]), "state 1 has no action"),
        (lambda: MDP.from_pairs([0, 0], [1, 1], np.ones((2, 1)), [0, 0], 0.5), "state 0, action 1 has two rows"),
        (lambda: MDP.from_function(lambda s, a: [(1.0, "c", 0.0)], ["a"], ["go"], 0.5), "which is no state"),
        (lambda: MDP.from_function(lambda s, a: [], ["a"], lambda s: [], 0.5), "'a' has no action"),
        (lambda: MDP.from_trajectories([], 0.9), "no steps"),
        (lambda: MDP.from_trajectories([[(0, 1, np.nan, 0, False)]], 0.9), "state 0, action 1 earned"),
    ],
)
def test_bad_processes_are_refused(build, message):
    with pytest.raises(DataError, match=message):
        build()


@pytest.mark.parametrize("gamma", [-0.1, 1.1, np.nan, "high", True])
def test_bad_discounts_are_refused(gamma):
    with pytest.raises(ParameterError, match="gamma"):
        MDP(np.eye(2)[:, None], np.zeros(2), gamma)


@pytest.mark.parametrize("horizon", [0, -3, 2.5])
def test_bad_horizons_are_refused(horizon):
    with pytest.raises(ParameterError, match="horizon"):
        backward_induction(puterman(), horizon)


@pytest.mark.parametrize("solve", [value_iteration, policy_iteration, modified_policy_iteration])
def test_gamma_one_without_an_end_is_refused(solve):
    with pytest.raises(DataError, match="from state 0 no policy ends it"):
        solve(puterman(1.0))
    # State 0 can stay and earn 1 for ever, or end.
    free = MDP.from_pairs([0, 0], [0, 1], [[1.0], [0.0]], [1.0, 0.0], 1.0, stop=[0.0, 1.0])
    with pytest.raises(DataError, match="state 0 with action 0, which earns 1"):
        solve(free)
    # Staying for nothing beats a goal that costs: no proper policy is best, and the values are not defined.
    idle = MDP.from_pairs([0, 0], [0, 1], [[1.0], [0.0]], [0.0, -1.0], 1.0, stop=[0.0, 1.0])
    with pytest.raises(DataError, match="state 0 with action 0, which earns 0"):
        solve(idle)


def test_a_policy_that_never_ends_has_no_values():
    with pytest.raises(DataError, match="surely ends"):
        policy_evaluation(problems.cliff_walking(), np.zeros(48, dtype=int))


def test_where_each_form_of_input_leads():
    P = np.array([[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    r = np.array([[5.0, 10.0], [-1.0, -1.0]])
    rows = [(0, 0, 0.5, 0, 5), (0, 0, 0.5, 1, 5), (0, 1, 1, 1, 10), (1, 0, 1, 1, -1), (1, 1, 1, 1, -1)]
    forms = [
        MDP(P, r, 0.95),
        MDP([sp.csr_array(P[:, a]) for a in range(2)], r, 0.95),
        MDP(P, np.repeat(r[:, :, None], 2, axis=2), 0.95),
        MDP.from_table(*zip(*rows, strict=True), 0.95),
        MDP.from_function(lambda s, a: [(p, t, r[s, a]) for t, p in enumerate(P[s, a]) if p], [0, 1], [0, 1], 0.95),
    ]
    assert len({mdp.fingerprint for mdp in forms}) == 1


def test_values_of_every_state_of_the_lake():
    # γ = .9, by value iteration on Gymnasium 1.4.0's table.
    expected = [
        0.0688909049, 0.0614145715, 0.0744097620, 0.0558073215,
        0.0918545399, 0.0000000000, 0.1122082064, 0.0000000000,
        0.1454363548, 0.2474969546, 0.2996175927, 0.0000000000,
        0.0000000000, 0.3799359012, 0.6390201481, 0.0000000000,
    ]  # fmt: skip
    np.testing.assert_allclose(policy_iteration(problems.frozen_lake(gamma=0.9)).values, expected, atol=1e-9)
