"""Compiled environments: Gymnasium's classic control problems, step by step, and tables of states as one-hot features.

Each environment has a state of at most four float64 numbers (a table: the number of its state), kept apart from the
observation that the agent sees. One step from any state equals Gymnasium's to rounding. Random numbers are ours, so
that starts differ from those of a Gymnasium environment of the same seed; their distribution is the same.

Reference: A. Barto, R. Sutton and C. Anderson, 1983 (CartPole); R. Sutton, 1996 (Acrobot); A. Moore, 1990
(MountainCar); the equations and constants are those of Gymnasium 1.x.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ....core.jit import lean_kernel, strict_kernel
from ..._random import pick, uniform
from .._kernels import step as table_row

# Codes of environments.
CART_POLE = 0
ACROBOT = 1
MOUNTAIN_CAR = 2
PENDULUM = 3
TABLE = 4

#: Widest state of a compiled environment.
STATE_WIDTH = 4


class StepArrays(NamedTuple):
    """The table of a tabular environment, as `TableEnvironment` has it; of the others, arrays of length one."""

    first: Any  #: (S·A + 1,) first row of each pair
    cum: Any  #: (rows,) cumulated probabilities within each pair
    to: Any  #: (rows,) next states
    gain: Any  #: (rows,) rewards
    ends: Any  #: (rows,) whether the episode ends
    start: Any  #: (S,) distribution of the first state


@lean_kernel
def begin_state(code, table, rng, state):  # type: ignore[no-untyped-def]
    """Draw the first state of an episode. OUT state (4,)."""
    if code == CART_POLE:
        for i in range(4):
            state[i] = 0.1 * uniform(rng) - 0.05
    elif code == ACROBOT:
        for i in range(4):
            state[i] = 0.2 * uniform(rng) - 0.1
    elif code == MOUNTAIN_CAR:
        state[0] = 0.2 * uniform(rng) - 0.6
        state[1] = 0.0
    elif code == PENDULUM:
        state[0] = math.pi * (2.0 * uniform(rng) - 1.0)
        state[1] = 2.0 * uniform(rng) - 1.0
    else:
        state[0] = pick(rng, table.start)


@lean_kernel
def observe_state(code, state, out):  # type: ignore[no-untyped-def]
    """OUT out (d,): what the agent sees in a state."""
    if code == CART_POLE:
        for i in range(4):
            out[i] = state[i]
    elif code == ACROBOT:
        out[0] = math.cos(state[0])
        out[1] = math.sin(state[0])
        out[2] = math.cos(state[1])
        out[3] = math.sin(state[1])
        out[4] = state[2]
        out[5] = state[3]
    elif code == MOUNTAIN_CAR:
        out[0] = state[0]
        out[1] = state[1]
    elif code == PENDULUM:
        out[0] = math.cos(state[0])
        out[1] = math.sin(state[0])
        out[2] = state[1]
    else:
        for i in range(out.size):
            out[i] = 0.0
        out[int(state[0])] = 1.0


@lean_kernel
def advance(code, table, action, n_actions, rng, state):  # type: ignore[no-untyped-def]
    """Make one step; return the reward and whether the episode ended. IN/OUT state (4,)."""
    if code == CART_POLE:
        return 1.0, _push_cart(state, action)
    if code == ACROBOT:
        done = _swing(state, action - 1.0)
        return (0.0 if done else -1.0), done
    if code == MOUNTAIN_CAR:
        return -1.0, _drive(state, action - 1.0)
    if code == PENDULUM:
        return _turn(state, action), False
    row = table_row(table.first, table.cum, n_actions, int(state[0]), int(action), uniform(rng))
    state[0] = table.to[row]
    return table.gain[row], bool(table.ends[row])


@lean_kernel
def _push_cart(state, action):  # type: ignore[no-untyped-def]
    """CartPole: push left (0) or right (1) for a fiftieth of a second."""
    force = 10.0 if action == 1.0 else -10.0
    cosine = math.cos(state[2])
    sine = math.sin(state[2])
    pull = (force + 0.05 * state[3] * state[3] * sine) / 1.1
    turn = (9.8 * sine - cosine * pull) / (0.5 * (4.0 / 3.0 - 0.1 * cosine * cosine / 1.1))
    thrust = pull - 0.05 * turn * cosine / 1.1
    state[0] += 0.02 * state[1]
    state[1] += 0.02 * thrust
    state[2] += 0.02 * state[3]
    state[3] += 0.02 * turn
    return abs(state[0]) > 2.4 or abs(state[2]) > 12.0 * 2.0 * math.pi / 360.0


@strict_kernel
def _bend(a, b, va, vb, torque):  # type: ignore[no-untyped-def]
    """Acrobot: return both angular accelerations (the equations of Sutton and Barto's book), summed in their order."""
    d1 = 0.25 + (1.25 + math.cos(b)) + 1.0 + 1.0
    d2 = 0.25 + 0.5 * math.cos(b) + 1.0
    phi2 = 0.5 * 9.8 * math.cos(a + b - math.pi / 2.0)
    sine = math.sin(b)
    phi1 = -0.5 * (vb * vb) * sine - vb * va * sine + 1.5 * 9.8 * math.cos(a - math.pi / 2.0) + phi2
    turn_b = (torque + d2 / d1 * phi1 - 0.5 * (va * va) * sine - phi2) / (1.25 - d2 * d2 / d1)
    return -(d2 * turn_b + phi1) / d1, turn_b


@strict_kernel
def _swing(state, torque):  # type: ignore[no-untyped-def]
    """Acrobot: one Runge–Kutta step of a fifth of a second."""
    h = 0.2
    a = state[0]
    b = state[1]
    va = state[2]
    vb = state[3]
    p1, q1 = _bend(a, b, va, vb, torque)
    va2 = va + h / 2.0 * p1
    vb2 = vb + h / 2.0 * q1
    p2, q2 = _bend(a + h / 2.0 * va, b + h / 2.0 * vb, va2, vb2, torque)
    va3 = va + h / 2.0 * p2
    vb3 = vb + h / 2.0 * q2
    p3, q3 = _bend(a + h / 2.0 * va2, b + h / 2.0 * vb2, va3, vb3, torque)
    va4 = va + h * p3
    vb4 = vb + h * q3
    p4, q4 = _bend(a + h * va3, b + h * vb3, va4, vb4, torque)
    state[0] = _wrap(a + h / 6.0 * (va + 2.0 * va2 + 2.0 * va3 + va4))
    state[1] = _wrap(b + h / 6.0 * (vb + 2.0 * vb2 + 2.0 * vb3 + vb4))
    state[2] = min(max(va + h / 6.0 * (p1 + 2.0 * p2 + 2.0 * p3 + p4), -4.0 * math.pi), 4.0 * math.pi)
    state[3] = min(max(vb + h / 6.0 * (q1 + 2.0 * q2 + 2.0 * q3 + q4), -9.0 * math.pi), 9.0 * math.pi)
    return -math.cos(state[0]) - math.cos(state[1] + state[0]) > 1.0


@lean_kernel
def _wrap(x):  # type: ignore[no-untyped-def]
    """Return an angle between −π and π; steps turn by less than three full circles."""
    while x > math.pi:
        x -= 2.0 * math.pi
    while x < -math.pi:
        x += 2.0 * math.pi
    return x


@lean_kernel
def _drive(state, throttle):  # type: ignore[no-untyped-def]
    """MountainCar: accelerate left (−1), not at all (0) or right (1)."""
    speed = state[1] + throttle * 0.001 - 0.0025 * math.cos(3.0 * state[0])
    speed = min(max(speed, -0.07), 0.07)
    place = min(max(state[0] + speed, -1.2), 0.6)
    if place == -1.2 and speed < 0.0:
        speed = 0.0
    state[0] = place
    state[1] = speed
    return place >= 0.5 and speed >= 0.0


@lean_kernel
def _turn(state, torque):  # type: ignore[no-untyped-def]
    """Pendulum: return minus the cost of a twentieth of a second under a torque between −2 and 2."""
    u = min(max(torque, -2.0), 2.0)
    angle = (state[0] + math.pi) % (2.0 * math.pi) - math.pi
    cost = angle * angle + 0.1 * state[1] * state[1] + 0.001 * u * u
    speed = state[1] + (15.0 * math.sin(state[0]) + 3.0 * u) * 0.05
    speed = min(max(speed, -8.0), 8.0)
    state[0] += speed * 0.05
    state[1] = speed
    return -cost


@lean_kernel
def advance_many(code, table, n_actions, actions, rngs, states, rewards, ended):  # type: ignore[no-untyped-def]
    """Make one step from each of n states. IN actions (n,); IN/OUT rngs (n, 4), states (n, 4); OUT rewards, ended."""
    for i in range(len(actions)):
        reward, done = advance(code, table, actions[i], n_actions, rngs[i], states[i])
        rewards[i] = reward
        ended[i] = done
