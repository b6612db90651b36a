"""Decisions: what policies regret, and values that spread over a grid."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from ...core import Array, DataError
from ...plots.axes import Frame
from ...plots.markup import Markup, tag
from ...plots.optimization import COLOURS, legend_marks
from ..drawing import HEIGHT, LEGEND, WIDTH, progress, quietly
from ..scene import Scene, Step
from ..tables import MOST_ROWS, as_floats, columns_of, take_numbers

# --------------------------------------------------------------------------------------------------------------------
# Bandits.

_HORIZON: Final = 2000
_REPLICATIONS: Final = 50
_MOST_ARMS: Final = 8


def read_bandit(table: Any = None) -> tuple[Array, list[str]]:
    """Return the mean reward of every arm, in [0, 1], and the names of the arms."""
    if table is None:
        return np.array([0.5, 0.45, 0.4, 0.3]), ["arm 1", "arm 2", "arm 3", "arm 4"]
    columns = columns_of("bandit", table)
    take_numbers("bandit", columns, 2, least=1)
    names = [name for name in columns if columns[name].dtype.kind in "biuf"][:_MOST_ARMS]
    rewards = np.column_stack([as_floats(columns[name]) for name in names])
    low = np.nanmin(rewards)
    span = np.nanmax(rewards) - low
    means = np.nanmean((rewards - low) / span, axis=0)
    if not np.isfinite(means).all():
        raise DataError("bandit: every column of numbers must hold a reward; leave empty ones out.")
    return means, names


def build_bandit(means: Array, names: list[str], *, horizon: int = _HORIZON) -> list[Step]:
    """Return a step for each of some horizons: one run of Thompson sampling, and the mean regret of four policies."""
    from ...decisions import bandits

    horizon = min(max(horizon, 20), 20_000)
    shown = [n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000) if n < horizon]
    shown.append(horizon)
    k = len(means)
    environment = bandits.stochastic(means)
    policies = {
        "UCB": bandits.UCB(k),
        "Thompson": bandits.Thompson(k),
        "ε-greedy": bandits.EpsilonGreedy(k, epsilon=0.1),
        "greedy": bandits.EpsilonGreedy(k, epsilon=0.0),
    }
    found = bandits.simulate(policies, environment, horizon, _REPLICATIONS)
    one = bandits.Thompson(k, random_state=4)
    coin = np.random.default_rng(0)
    played = 0
    made = []
    for rounds in shown:
        for _ in range(rounds - played):
            arm = one.act()
            one.update(arm, float(coin.random() < means[arm]))
        played = rounds
        now = bandits.simulate(policies, environment, rounds, _REPLICATIONS)
        bound = now["UCB"].bound
        proved = (
            f"proved for UCB: at most {bound.value:.4g} after {rounds:,} rounds, whatever the luck"
            if bound.value is not None
            else f"no bound is proved for UCB here: {bound.reason}"
        )
        limit = now["Thompson"].lai_robbins
        asymptote = (
            "" if limit is None else f" Lai and Robbins' asymptote stands at {limit:.3g} by then; it is no bound."
        )
        counts = one.counts.astype(int)
        favourite = int(np.argmax(counts))
        made.append(
            Step(
                title="1 round" if rounds == 1 else f"{rounds:,} rounds",
                pictures=(_posteriors(one, means, names), _regret(found, rounds)),
                text="First: what one run of Thompson sampling knows of each arm; dashed lines are the true means. It "
                f"has played {names[favourite]} most, {counts[favourite]:,} of {rounds:,} times. Second: the mean "
                f"regret of {_REPLICATIONS} runs of each policy, with its interval.",
                formula=r"R_T = T μ^* − \sum_{t=1}^T μ_{a_t}",
                code=f"found = simulate(policies,\n    stochastic(means), {rounds}, {_REPLICATIONS})",
                numbers={f"regret, {name}": float(result.mean[-1]) for name, result in now.items()},
                note=f"{proved[0].upper()}{proved[1:]}.{asymptote}",
            )
        )
    return made


def _posteriors(policy: Any, means: Array, names: list[str]) -> Markup:
    """Draw the posterior density of every arm's mean."""
    grid = np.linspace(0.005, 0.995, 133)
    curves = []
    for arm in range(len(means)):
        pair = policy.posterior(arm)
        log_density = (pair.a - 1) * np.log(grid) + (pair.b - 1) * np.log1p(-grid)
        density = np.exp(log_density - log_density.max())
        curves.append(density)
    frame = Frame.around((0.0, 1.0), (0.0, 1.12), width=WIDTH, height=HEIGHT, right=LEGEND)
    colours = [COLOURS[arm % len(COLOURS)] for arm in range(len(means))]
    marks = []
    for curve, colour, mean in zip(curves, colours, means, strict=True):
        marks.append(frame.line([mean, mean], [0.0, 1.08], stroke=colour, stroke_dasharray="4 3", opacity=0.8))
        d = f"{frame.path(grid, curve)}L{frame.x(1.0):.1f} {frame.y(0.0):.1f}L{frame.x(0.0):.1f} {frame.y(0.0):.1f}z"
        marks.append(tag("path", d=d, fill=colour, fill_opacity=0.14, stroke=colour, stroke_width=1.8))
    marks += legend_marks(frame, names, colours)
    return frame.draw(
        "What is known of each arm", *marks, x_label="mean reward", y_label="posterior density, highest point 1"
    )


def _regret(found: Any, now: int) -> Markup:
    """Draw the mean regret of each policy up to now, with its band; what comes later faintly."""
    results = list(found.values())
    rounds = np.asarray(results[0].rounds, dtype=np.float64)
    top = max(float(result.upper.max()) for result in results)
    frame = Frame.around((0.0, float(rounds[-1])), (0.0, 1.05 * top), width=WIDTH, height=HEIGHT, right=LEGEND)
    colours = [COLOURS[number % len(COLOURS)] for number in range(len(results))]
    marks = []
    past = rounds <= now
    for result, colour in zip(results, colours, strict=True):
        marks.append(frame.line(rounds, result.mean, stroke=colour, stroke_width=1.2, opacity=0.3))
        back = frame.path(rounds[past][::-1], result.lower[past][::-1]).replace("M", "L", 1)
        band = f"{frame.path(rounds[past], result.upper[past])}{back}z"
        marks.append(tag("path", d=band, fill=colour, fill_opacity=0.2))
        marks.append(frame.line(rounds[past], result.mean[past], stroke=colour, stroke_width=2.2))
    marks += legend_marks(frame, list(found), colours)
    return frame.draw("Regret of each policy", *marks, x_label="rounds", y_label="mean regret")


BANDIT = Scene(
    name="bandit",
    title="Regret of four bandit policies",
    text="Playing what looks best now learns too little, playing at random costs too much; regret is what was lost "
    "to always playing the best arm.",
    built_in="Four arms pay 1 with chances that the policies do not know.",
    setup="from learnable.decisions.bandits import (\n    UCB, EpsilonGreedy, Thompson, simulate, stochastic)\n"
    "from learnable.lab import SCENES\n\n"
    'means, names = SCENES["bandit"].read(None)  # or a table of your own\nk = len(means)\n'
    'policies = {"UCB": UCB(k), "Thompson": Thompson(k),\n'
    '    "ε-greedy": EpsilonGreedy(k, epsilon=0.1),\n    "greedy": EpsilonGreedy(k, epsilon=0.0)}',
    takes="columns of rewards, one per arm; their means, scaled to [0, 1], are the chances.",
    read=read_bandit,
    build=build_bandit,
    cover=-1,
)


# --------------------------------------------------------------------------------------------------------------------
# Value iteration on a grid.

_WORLD: Final = (
    "S....#...",
    "..#..#.W.",
    "..#......",
    "..####.#.",
    ".......#G",
)
_FREE: Final = set("SGW#.")
#: Fields where a walk ends: what they are called, and their colours, dark enough for white letters.
_ENDS: Final = {"G": ("goal", "#00796b"), "W": ("water", "#1f6fb4")}


def read_values(table: Any = None) -> tuple[Any, tuple[int, int], str]:
    """Return the process, the shape of its grid, and the letters of its fields, row by row.

    A table of one's own is a grid: each row of it a row of fields, with S for the start, G for the goal, W for water,
    # for walls and anything else for free fields.
    """
    from ...decisions.mdp import problems

    lines = _WORLD if table is None else _lines(table)
    letters = "".join(lines)
    mdp = problems.grid_world(lines, gamma=0.95, rewards={"G": 10.0, "W": -10.0}, step_reward=-0.1, slip=0.2)
    return mdp, (len(lines), len(lines[0])), letters


def _lines(table: Any) -> list[str]:
    columns = columns_of("values", table)
    cells = [[str(value).strip()[:1].upper() for value in values[:MOST_ROWS]] for values in columns.values()]
    lines = ["".join(c if c in _FREE else "." for c in row) for row in zip(*cells, strict=True)]
    if not lines or not 4 <= len(lines) * len(lines[0]) <= 400 or "G" not in "".join(lines):
        raise DataError(
            "values: the table must be a grid of 4 to 400 fields with a goal: a letter per cell, G for the goal, S "
            "for the start, W for water, # for walls and . for free fields."
        )
    return lines


def build_values(mdp: Any, shape: tuple[int, int], letters: str, *, max_sweeps: int = 60) -> list[Step]:
    """Return a step for each sweep over all fields, until the values are proven to a thousandth."""
    from ...decisions.mdp import value_iteration

    solutions: dict[int, Any] = {}
    for sweeps in range(1, min(max_sweeps, 200) + 1):
        with quietly():
            found = value_iteration(mdp, tol=1e-3, max_iter=sweeps)
        if sweeps <= 24 or sweeps % 4 == 0 or found.certificate_.holds:
            solutions[sweeps] = found
        if found.certificate_.holds:
            break
    truth = value_iteration(mdp, tol=1e-9).values
    counts = np.array(list(solutions))
    proved = [float(found.certificate_.bound) for found in solutions.values()]
    actual = [float(np.abs(found.values - truth).max()) for found in solutions.values()]
    made = []
    before = None
    walks = np.array([letter not in "#GW" for letter in letters])
    for sweeps, found in solutions.items():
        changed = 0 if before is None else int(np.sum((found.policy != before) & walks))
        before = found.policy
        chart = progress(
            {"proved": (counts, proved), "actual": (counts, actual)}, sweeps, y_log=True,
            title="Error of the values", x_label="sweeps", y_label="largest error of any value",
        )  # fmt: skip
        made.append(
            Step(
                title="1 sweep" if sweeps == 1 else f"{sweeps} sweeps",
                pictures=(
                    _world(found, shape, letters),
                    chart,
                ),
                text="Each field takes the value of its best step: the reward, and what is known of the next field. "
                "What the "
                f"goal is worth spreads one field per sweep. Arrows that changed: {changed}.",
                formula=r"V_{k+1}(s) = \max_a \sum_{s′} p(s′ | s, a) (r + γ V_k(s′))",
                code=f"solution = value_iteration(mdp,\n    tol=1e-3, max_iter={sweeps})",
                certificates={"solution": found.certificate_},
                numbers={"value at the start": float(mdp.start @ found.values), "arrows changed": changed},
            )
        )
    return made


def _world(found: Any, shape: tuple[int, int], letters: str) -> Markup:
    """Draw values and best steps, and what the fields are where the walk ends."""
    from ...decisions.mdp import draw_grid

    blank = np.array([letter in "#GW" for letter in letters])
    figure = draw_grid(found.values, shape, found.policy, hidden=blank, title="Values and the best steps now")
    side = (float(re.search(r'viewBox="0 0 ([\d.]+)', figure)[1]) - 2) / shape[1]  # type: ignore[index]
    marks = []
    for number, letter in enumerate(letters):
        if letter not in _ENDS:
            continue
        word, colour = _ENDS[letter]
        x = 1 + side * (number % shape[1])
        y = 1 + side * (number // shape[1])
        marks.append(tag("rect", x=x, y=y, width=side, height=side, fill=colour, opacity=0.85))
        marks.append(tag("text", word, x=x + side / 2, y=y + side / 2 + 3.5, text_anchor="middle", fill="#fff"))
    return Markup(figure.removesuffix("</svg>") + "".join(marks) + "</svg>")


VALUES = Scene(
    name="values",
    title="Value iteration on a grid",
    text="A walker on slippery ground wants to reach the goal, worth 10, and not to fall into the water, which "
    "costs 10. One step in five slides to a side. Grey fields are walls.",
    setup="from learnable.decisions.mdp import value_iteration\nfrom learnable.lab import SCENES\n\n"
    'mdp, shape, letters = SCENES["values"].read(None)  # or a table of your own',
    takes="a grid, a letter per cell: S start, G goal, W water, # wall, anything else free.",
    read=read_values,
    build=build_values,
    cover=12,
)
