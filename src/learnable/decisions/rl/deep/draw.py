"""Pictures of control problems: one state, and an episode that moves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....core import AnyArray, DataError
from ....plots.axes import ACCENT, MUTED
from ....plots.markup import Markup, animate, svg, tag
from . import _physics as physics
from .worlds import ControlEnvironment

_WIDTH = 300.0
_HEIGHT = 160.0


def draw_state(env: ControlEnvironment, state: Any, title: str = "State") -> Markup:
    """Draw one state of a compiled control problem.

    Parameters
    ----------
    env : ControlEnvironment
        CartPole, Acrobot, MountainCar or Pendulum.
    state : array
        As `reset` and `step` return it.
    title : str
        Words for screen readers, shown on hover.

    Examples
    --------
    >>> from learnable.decisions.rl import deep
    >>> pole = deep.CartPole()
    >>> deep.draw_state(pole, pole.reset(seed=0)).startswith("<svg")
    True
    """
    marks = {
        physics.CART_POLE: _cart_pole,
        physics.ACROBOT: _acrobot,
        physics.MOUNTAIN_CAR: _mountain_car,
        physics.PENDULUM: _pendulum,
    }[env.code](np.asarray(state, dtype=np.float64))
    return svg(_WIDTH, _HEIGHT, title, *marks)


def animate_episode(
    agent: Any, env: ControlEnvironment, *, seed: int = 0, most_frames: int = 60, every: int = 2, title: str = "Episode"
) -> Markup:
    """Play one episode with an agent's policy and show it as a figure that moves.

    Parameters
    ----------
    agent : DQN, Reinforce or ActorCritic
        That has learned in this environment.
    env : ControlEnvironment
        CartPole, Acrobot, MountainCar or Pendulum.
    seed : int
        Of the start.
    most_frames : int
        Frames that are drawn; a longer episode is cut.
    every : int
        Steps from one frame to the next.
    title : str
        Words for screen readers, shown on hover.

    Returns
    -------
    Markup
        An `<svg>` element.
    """
    if not isinstance(env, ControlEnvironment):
        raise DataError(f"animate_episode: needs a compiled control problem; got a {type(env).__name__}.")
    state = env.reset(seed)
    frames = [draw_state(env, state, title)]
    for step in range(1, min(most_frames * every, env.max_steps)):
        action = agent.act(env.observe(state))
        state, _, ended = env.step(state, float(np.ravel(action)[0]))
        if step % every == 0 or ended:
            frames.append(draw_state(env, state, title))
        if ended:
            break
    return animate(frames, seconds=0.02 * every, title=title)


def _line(x1: float, y1: float, x2: float, y2: float, width: float, colour: str) -> Markup:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=colour, stroke_width=width, stroke_linecap="round")


def _cart_pole(state: AnyArray) -> list[Markup]:
    floor = 120.0
    x = _WIDTH / 2 + state[0] / 2.4 * (_WIDTH / 2 - 30)
    tip_x = x + 90.0 * math.sin(state[2])
    tip_y = floor - 90.0 * math.cos(state[2])
    return [
        _line(10.0, floor + 12, _WIDTH - 10, floor + 12, 1.0, MUTED),
        tag("rect", x=x - 22, y=floor - 10, width=44.0, height=20.0, rx=3.0, fill="currentColor", opacity=0.75),
        _line(x, floor - 6, tip_x, tip_y, 6.0, ACCENT),
    ]


def _acrobot(state: AnyArray) -> list[Markup]:
    x = _WIDTH / 2
    y = _HEIGHT / 2
    r = 36.0
    a = state[0]
    b = state[0] + state[1]
    x1 = x + r * math.sin(a)
    y1 = y + r * math.cos(a)
    x2 = x1 + r * math.sin(b)
    y2 = y1 + r * math.cos(b)
    return [
        _line(60.0, y - r, _WIDTH - 60, y - r, 1.0, MUTED),
        _line(x, y, x1, y1, 6.0, ACCENT),
        _line(x1, y1, x2, y2, 6.0, "currentColor"),
        tag("circle", cx=x, cy=y, r=4.0, fill="currentColor"),
    ]


def _mountain_car(state: AnyArray) -> list[Markup]:
    def place(p: float) -> tuple[float, float]:
        return 10 + (p + 1.2) / 1.8 * (_WIDTH - 20), _HEIGHT - 30 - 100.0 * (math.sin(3 * p) * 0.45 + 0.55)

    hill = [place(p) for p in np.linspace(-1.2, 0.6, 60).tolist()]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in hill)
    flag_x, flag_y = place(0.5)
    x, y = place(float(state[0]))
    return [
        tag("path", d=path, fill="none", stroke=MUTED, stroke_width=2),
        _line(flag_x, flag_y, flag_x, flag_y - 26, 2.0, "currentColor"),
        tag("circle", cx=x, cy=y - 8, r=8.0, fill=ACCENT),
    ]


def _pendulum(state: AnyArray) -> list[Markup]:
    x = _WIDTH / 2
    y = _HEIGHT / 2
    tip_x = x + 62.0 * math.sin(state[0])
    tip_y = y - 62.0 * math.cos(state[0])
    return [_line(x, y, tip_x, tip_y, 8.0, ACCENT), tag("circle", cx=x, cy=y, r=4.0, fill="currentColor")]
