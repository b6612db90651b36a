"""Decisions: bandits against MABWiser and SMPyBandits, processes against mdpsolver and QuantEcon, Q-learning on Taxi.

All contenders of a bandit row play the same number of rounds on the same arms, so that the ratio of times is that of
steps a
second; ours plays a thousand replications at the same rate. A solved process is judged by what its policy loses at
most,
from one backup of the returned values, computed here. Libraries that take lists get them ready: only solving is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .harness import OURS, Row

ARMS = np.array([0.5] + [0.4] * 9)
GAMMA = 0.99


class Game(NamedTuple):
    horizon: int
    replications: int


def game(quick: bool) -> Game:
    return Game(1000, 2) if quick else Game(10_000, 5)


def ours(name: str) -> Callable[[Game], Any]:
    def play(data: Game) -> SimpleNamespace:
        from learnable.decisions import bandits

        policy = {"ucb": bandits.UCB, "thompson": bandits.Thompson, "exp3": bandits.EXP3}[name](10)
        found = bandits.simulate({name: policy}, bandits.stochastic(ARMS), data.horizon, data.replications)[name]
        return SimpleNamespace(regret=found.mean[-1])

    return play


def mabwiser(name: str) -> Callable[[Game], Any]:
    def play(data: Game) -> SimpleNamespace:
        from mabwiser.mab import MAB, LearningPolicy

        lost = []
        for rep in range(data.replications):
            rng = np.random.default_rng(rep)
            rule = LearningPolicy.UCB1(alpha=1.0) if name == "ucb" else LearningPolicy.ThompsonSampling()
            mab = MAB(arms=list(range(10)), learning_policy=rule, seed=rep)
            first = (rng.random(10) < ARMS).astype(int)
            mab.fit(decisions=list(range(10)), rewards=first.tolist())
            pulls = np.ones(10)
            for _ in range(data.horizon - 10):
                arm = mab.predict()
                pulls[arm] += 1
                mab.partial_fit(decisions=[arm], rewards=[int(rng.random() < ARMS[arm])])
            lost.append(pulls @ (0.5 - ARMS))
        return SimpleNamespace(regret=float(np.mean(lost)))

    return play


def smpybandits(name: str) -> Callable[[Game], Any]:
    def play(data: Game) -> SimpleNamespace:
        from SMPyBandits.Policies import UCB, Exp3, Thompson

        lost = []
        for rep in range(data.replications):
            rng = np.random.default_rng(rep)
            policy = {"ucb": UCB, "thompson": Thompson, "exp3": Exp3}[name](10)
            policy.startGame()
            pulls = np.zeros(10)
            for _ in range(data.horizon):
                arm = policy.choice()
                pulls[arm] += 1
                policy.getReward(arm, float(rng.random() < ARMS[arm]))
            lost.append(pulls @ (0.5 - ARMS))
        return SimpleNamespace(regret=float(np.mean(lost)))

    return play


def regret(found: Any, data: Game) -> dict[str, float]:
    return {"regret": float(found.regret)}


class Process(NamedTuple):
    P: sp.csr_array
    reward: np.ndarray
    state: np.ndarray
    action: np.ndarray
    mdp: Any
    lists: tuple[Any, Any, Any]


def process(quick: bool) -> Process:
    """Return a random process of 10⁵ states, 5 actions and 10 successors."""
    from learnable.decisions.mdp import MDP

    n, a, k = (2000 if quick else 100_000), 5, 10
    rng = np.random.default_rng(0)
    # Different successors per pair: a random start and steps of different odd strides.
    first = rng.integers(n, size=(n * a, 1))
    stride = np.cumsum(rng.integers(1, n // k, size=(n * a, k)), axis=1)
    columns = (first + stride) % n
    p = rng.dirichlet(np.ones(k), size=n * a)
    P = sp.csr_array((p.reshape(-1), columns.reshape(-1), np.arange(0, n * a * k + 1, k)), shape=(n * a, n))
    reward = rng.uniform(size=n * a)
    state, action = np.repeat(np.arange(n), a), np.tile(np.arange(a), n)
    lists = tuple(x.tolist() for x in (reward.reshape(n, a), p.reshape(n, a, k), columns.reshape(n, a, k)))
    return Process(P, reward, state, action, MDP.from_pairs(state, action, P, reward, GAMMA), lists)  # type: ignore[arg-type]


def our_solver(name: str) -> Callable[[Process], Any]:
    def solve(data: Process) -> Any:
        from learnable.decisions import mdp

        return getattr(mdp, name)(data.mdp, tol=1e-6)

    return solve


def quantecon(method: str) -> Callable[[Process], Any]:
    def solve(data: Process) -> SimpleNamespace:
        from quantecon.markov import DiscreteDP

        ddp = _kept(
            data, "quantecon", lambda: DiscreteDP(data.reward, sp.csr_matrix(data.P), GAMMA, data.state, data.action)
        )
        return SimpleNamespace(values=ddp.solve(method=method, epsilon=1e-6, max_iter=10**6).v)

    return solve


def mdpsolver(algorithm: str) -> Callable[[Process], Any]:
    def solve(data: Process) -> SimpleNamespace:
        import mdpsolver as peer

        model = _kept(data, "mdpsolver", lambda: _model(peer, data))
        # Without a start of its own a model goes on from its last values.
        n = data.P.shape[1]
        model.solve(algorithm=algorithm, tolerance=1e-6, initValueVector=[0.0] * n, initPolicy=[0] * n)
        return SimpleNamespace(values=np.array(model.getValueVector()))

    return solve


def _model(peer: Any, data: Process) -> Any:
    rewards, p, columns = data.lists
    model = peer.model()
    model.mdp(discount=GAMMA, rewards=rewards, tranMatProbs=p, tranMatColumns=columns)
    return model


_KEPT: dict[tuple[int, str], Any] = {}


def _kept(data: Process, name: str, make: Callable[[], Any]) -> Any:
    """Return a peer's model of the data, made once: only solving is timed."""
    key = (id(data.P), name)
    if key not in _KEPT:
        _KEPT[key] = make()
    return _KEPT[key]


def loss(found: Any, data: Process) -> dict[str, float]:
    """Return what the greedy policy of the values loses at most, from one backup."""
    v = np.asarray(found.values)
    d = (data.reward + GAMMA * (data.P @ v)).reshape(-1, 5).max(axis=1) - v
    return {"loss": float(GAMMA / (1 - GAMMA) * (d.max() - d.min()))}


class Episodes(NamedTuple):
    n: int
    taxi: Any


def episodes(quick: bool) -> Episodes:
    from learnable.decisions import rl

    return Episodes(100 if quick else 5000, rl.Taxi())


def our_taxi(data: Episodes) -> SimpleNamespace:
    from learnable.decisions import rl

    found = rl.QLearning(gamma=0.99, alpha=0.4).learn(data.taxi, data.n, seeds=1, n_jobs=1)
    return SimpleNamespace(returns=found.returns[0], steps=int(found.lengths.sum()))


def numpy_taxi(data: Episodes) -> SimpleNamespace:
    """Play Gymnasium's Taxi with a plain loop over NumPy arrays."""
    import gymnasium

    env = gymnasium.make("Taxi-v4")
    rng = np.random.default_rng(0)
    Q, returns, steps = np.zeros((500, 6)), [], 0
    env.reset(seed=0)
    for _ in range(data.n):
        s, _ = env.reset()
        total, over = 0.0, False
        while not over:
            a = int(rng.integers(6)) if rng.random() < 0.1 else int(np.argmax(Q[s]))
            s2, r, terminated, truncated, _ = env.step(a)
            Q[s, a] += 0.4 * (r + (0.0 if terminated else 0.99 * Q[s2].max()) - Q[s, a])
            s, over = s2, terminated or truncated
            total += r
            steps += 1
        returns.append(total)
    return SimpleNamespace(returns=np.array(returns), steps=steps)


def end_return(found: Any, data: Episodes) -> dict[str, float]:
    return {"minus_return": -float(found.returns[-200:].mean()), "steps": float(found.steps)}


def bandit_row(name: str, title: str, peers: dict[str, Any], targets: dict[str, float]) -> Row:
    return Row(
        name=f"bandit_{name}",
        job=f"{title}, 10 Bernoulli arms",
        size="10,000 rounds × 5 replications",
        make_data=game,
        contenders={OURS: ours(name), **peers},
        quality=regret,
        targets=targets,
        compared=None,
    )


MAB, SMPY = "MABWiser", "SMPyBandits"
ROWS = [
    bandit_row("ucb", "UCB1", {MAB: mabwiser("ucb"), SMPY: smpybandits("ucb")}, {MAB: 50.0, SMPY: 50.0}),
    bandit_row(
        "thompson",
        "Thompson sampling",
        {MAB: mabwiser("thompson"), SMPY: smpybandits("thompson")},
        {MAB: 50.0, SMPY: 50.0},
    ),
    bandit_row("exp3", "EXP3", {SMPY: smpybandits("exp3")}, {SMPY: 50.0}),
    Row(
        name="mdp_value_iteration",
        job="values of a random sparse process to a proved loss of 1e-6, by sweeps",
        size="100,000 states × 5 actions × 10 successors, γ = 0.99",
        make_data=process,
        contenders={
            OURS: our_solver("modified_policy_iteration"),
            "mdpsolver (mpi)": mdpsolver("mpi"),
            "QuantEcon (mpi)": quantecon("modified_policy_iteration"),
        },
        quality=loss,
        targets={"mdpsolver": 1.0, "QuantEcon": 3.0},
        compared="loss",
        tolerance=1.0,
        floor=1e-6,
        limits={"loss": 1e-6},
    ),
    Row(
        name="mdp_policy_iteration",
        job="the same by policy iteration",
        size="100,000 states × 5 actions × 10 successors, γ = 0.99",
        make_data=process,
        contenders={OURS: our_solver("policy_iteration"), "mdpsolver (pi)": mdpsolver("pi")},
        quality=loss,
        targets={"mdpsolver": 1.0},
        compared="loss",
        tolerance=1.0,
        floor=1e-6,
        limits={"loss": 1e-6},
    ),
    Row(
        name="q_learning_taxi",
        job="Q-learning on Taxi against a NumPy loop on Gymnasium",
        size="5,000 episodes",
        make_data=episodes,
        contenders={OURS: our_taxi, "Gymnasium": numpy_taxi},
        quality=end_return,
        targets={"Gymnasium": 50.0},
        compared=None,
    ),
]
