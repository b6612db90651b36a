"""Regret against its bounds: five policies on ten arms, and an adversary.

Run with the name of a folder to get the figures as SVG files: python examples/plot_bandits.py figures
"""

import sys
from pathlib import Path

import numpy as np

from learnable.decisions import bandits

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None
HORIZON = 3000

arms = bandits.stochastic([0.5, 0.45, 0.4, 0.4, 0.3])
policies = {
    "UCB1": bandits.UCB(5),
    "KL-UCB": bandits.KLUCB(5),
    "Thompson": bandits.Thompson(5),
    "EXP3": bandits.EXP3(5, horizon=HORIZON),
    "ε-greedy": bandits.EpsilonGreedy(5, epsilon=0.1),
}
found = bandits.simulate(policies, arms, HORIZON, 200)
print(found)
best = found["Thompson"]
print("rounds of each arm under Thompson sampling:", best.pulls.round().astype(int).tolist())
below = all(r.bound.value is None or r.upper[-1] <= r.bound.value for r in found.values())
print("every proved bound holds:", below)

# An adversary who pays the first arm for a third of the time, then the second: rewards are no draws any more.
table = np.zeros((HORIZON, 2))
table[: HORIZON // 3, 0] = 1.0
table[HORIZON // 3 :, 1] = 1.0
duel = bandits.simulate([bandits.EXP3(2, horizon=HORIZON), bandits.UCB(2)], bandits.adversarial(table), HORIZON, 100)
print(duel)

figures = {"regret_bounds": found.plot(title="Regret of five policies; proved bounds are dashed")}
print(f"figure: {len(figures['regret_bounds'])} characters of SVG")
if FOLDER is not None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        (FOLDER / f"{name}.svg").write_text(figure, encoding="utf-8")
