"""From Bellman to Q-learning: a cliff, a gambler and a game of cards.

Run with the name of a folder to get the figures as SVG files: python examples/plot_decisions.py figures
"""

import sys
from pathlib import Path

import numpy as np

from learnable import verify
from learnable.decisions import rl
from learnable.decisions.mdp import draw_grid, policy_iteration, problems
from learnable.decisions.tables import blackjack_state
from learnable.plots import labelled_lines

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None

# The cliff. What is known: the best policy walks along the edge, for −13.
cliff = problems.cliff_walking()
solution = policy_iteration(cliff)
print("cliff:", solution.values[36], solution.certificate_)
print(verify(solution, cliff))

# What is learned: Q-learning finds that policy, and falls off while it explores; SARSA keeps away from the edge.
learners = {"Q-learning": rl.QLearning(alpha=0.5), "SARSA": rl.Sarsa(alpha=0.5)}
learned = {name: learner.learn(rl.CliffWalking(), 500, seeds=50) for name, learner in learners.items()}
for result in learned.values():
    print(result)


def smooth(returns):
    """Return the mean return of the seeds, averaged over 20 episodes."""
    return np.convolve(returns.mean(axis=0), np.full(20, 0.05), mode="valid")


hidden = np.zeros(48, dtype=bool)
hidden[37:47] = True

# The gambler: bold play wins with probability p² from a quarter, p from a half.
gambler = policy_iteration(problems.gambler(0.4))
print("gambler:", gambler.values[[25, 50, 75]].round(6), gambler.certificate_)
capital = np.arange(1, 100)

# Blackjack: where to stick, for hard hands and for hands with an ace that counts 11.
game = policy_iteration(problems.blackjack())
print(f"blackjack: {problems.blackjack().start @ game.values:.6f} per game")
sticks = {}
for name, ace in (("hard", 0), ("soft", 1)):
    least = [
        min(total for total in range(12, 22) if game.policy[blackjack_state(total, card, ace)] == 0)
        for card in range(1, 11)
    ]
    sticks[name] = least
    print(f"stick on {name} hands from:", least)

figures = {
    "cliff_policy": draw_grid(
        np.clip(solution.values, -20, 0),
        (4, 12),
        solution.policy,
        hidden=hidden,
        title="Cliff walking: values and the best policy; the grey fields are the cliff",
    ),
    "cliff_returns": labelled_lines(
        {name: (np.arange(20, 501), smooth(result.returns)) for name, result in learned.items()},
        y_range=(-100.0, 0.0),
        title="Return while learning, ε = 0.1, mean of 50 seeds",
        x_label="episode",
        y_label="return",
    ),
    "gambler": labelled_lines(
        {f"p = {p}": (capital, policy_iteration(problems.gambler(p)).values[1:100]) for p in (0.25, 0.4, 0.55)},
        y_range=(0.0, 1.0),
        title="Chance of reaching 100 with the best stakes",
        x_label="capital",
        y_label="probability",
    ),
    "blackjack_policy": labelled_lines(
        {name: (np.arange(1, 11), least) for name, least in sticks.items()},
        y_range=(11.0, 20.0),
        title="Blackjack: the sum from which to stick",
        x_label="dealer's card",
        y_label="sum",
    ),
}
print(f"figure: {len(figures['cliff_policy'])} characters of SVG")
if FOLDER is not None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        (FOLDER / f"{name}.svg").write_text(figure, encoding="utf-8")
