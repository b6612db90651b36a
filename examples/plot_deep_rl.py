"""From Q-learning to actor–critic: a pole on a cart, learned by networks.

Run with the name of a folder to get the figures as SVG files: python examples/plot_deep_rl.py figures
"""

import sys
from pathlib import Path

import numpy as np

from learnable import load, save
from learnable.decisions import DQN, ActorCritic, Reinforce
from learnable.decisions.rl import deep
from learnable.plots import function_bands, scatter, side_by_side

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None
SEEDS = 4
pole = deep.CartPole()

# Four agents, four seeds each. One seed proves nothing: the report is an interquartile mean with its interval.
agents = {
    "DQN": (DQN(gamma=0.95, epsilon_steps=5000, target_every=100), 15_000),
    "REINFORCE": (Reinforce(), 20_000),
    "A2C": (ActorCritic(), 20_000),
    "PPO": (ActorCritic(clip=0.2), 20_000),
}
sweeps = {}
for name, (agent, steps) in agents.items():
    sweeps[name] = agent.learn_many(pole, SEEDS, steps=steps, eval_every=steps // 10, eval_episodes=5, test_episodes=20)
    print(f"{name}: {sweeps[name]}")

# The policy that was kept, in episodes that nobody has seen.
best = sweeps["PPO"].agents[0]
print("PPO, first seed:", best.evaluate(pole, 50))

# Are the values of a network true? DQN's against what followed.
found = deep.diagnose(sweeps["DQN"].agents[0], pole, episodes=10)
print("diagnosis:", found)

# An agent that is saved, loaded and learns on makes the same steps as one that never stopped.
if FOLDER is not None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    save(best, FOLDER / "pole.safetensors")
    print("loaded:", load(FOLDER / "pole.safetensors").steps == best.steps)


def curve(name):
    """Return the learning curve of one agent over its seeds."""
    steps, middle, low, high = sweeps[name].curve()
    return function_bands(
        steps,
        middle,
        {"quartiles of the seeds": (low, high)},
        y_range=(0.0, 520.0),
        title=name,
        x_label="step",
        y_label="return",
    )


figures = {
    "deep_curves": side_by_side(curve("DQN"), curve("REINFORCE"), title="CartPole: return in evaluations, 4 seeds"),
    "deep_critics": side_by_side(curve("A2C"), curve("PPO"), title="The same for two actor–critics"),
    "deep_values": scatter(
        found.realised,
        found.predicted,
        reference="diagonal",
        title="Q of DQN against the discounted returns that followed",
        x_label="discounted return",
        y_label="Q",
    ),
    "deep_pole": deep.animate_episode(best, pole, seed=3, title="A pole that is held"),
}
print(f"figure: {len(figures['deep_curves'])} characters of SVG; returns up to {np.max(sweeps['PPO'].scores):.0f}")
if FOLDER is not None:
    for name, figure in figures.items():
        (FOLDER / f"{name}.svg").write_text(figure, encoding="utf-8")
