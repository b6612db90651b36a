"""A page about one agent: what it earned while learning, whether its values are true, how gradients flow.

The values that a network gives are set against what really followed in fresh episodes: points above the diagonal are
hopes that did not come true. Steps near the end of a truncated episode are left out, because what would have followed
is not known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ....core import AnyArray, DataError, one_thread_blas
from ....neural.layers.dense import Dense
from ....plots import function_bands, scatter
from ....plots.markup import Markup, join, tag
from .agent import DeepAgent
from .loop import new_block
from .worlds import as_world

#: A step of a truncated episode is judged if at most this share of its return lies beyond the cut.
_BEYOND = 0.05
_VANISHED = 1e-3  # of the last layer's gradient
_OFF = 0.02  # of the mean size of the returns: a smaller mean error is not worth a word


@dataclass(frozen=True)
class LayerGradient:
    """One dense layer of the network that values states."""

    units: int  #: its width
    weight: float  #: root mean square of its weights
    gradient: float  #: root mean square of the loss's gradient in them
    silent: float  #: share of units that are zero on every row; NaN behind the last layer and for tanh


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What `diagnose` found; printing it says it in words, `save` writes a page.

    Attributes
    ----------
    agent : str
        Its name.
    predicted, realised : arrays of shape (steps,)
        Value of each step by the network, and the discounted return that followed.
    bias : float
        Mean of predicted − realised.
    explained : float
        1 − variance of the difference by variance of the returns; NaN where all returns are equal.
    layers : tuple of LayerGradient
        From the observation on.
    curve : array of shape (k, 4)
        Step, mean, standard deviation and number of episodes of every evaluation in the agent's life.
    """

    agent: str
    predicted: AnyArray
    realised: AnyArray
    bias: float
    explained: float
    layers: tuple[LayerGradient, ...]
    curve: AnyArray

    def words(self) -> list[str]:
        """Return what there is to say, one sentence each."""
        size = float(np.abs(self.realised).mean())
        said = []
        if abs(self.bias) <= _OFF * size:
            said.append(f"values are true on average (off by {self.bias:.3g}, returns of size {size:.3g})")
        else:
            word = "high" if self.bias > 0 else "low"
            said.append(f"values are too {word} by {abs(self.bias):.3g} on average; returns have the size {size:.3g}")
        if not math.isnan(self.explained):
            said.append(f"values explain {100 * self.explained:.0f} % of the variance of returns")
        last = self.layers[-1].gradient
        if last > 0.0 and self.layers[0].gradient < _VANISHED * last:
            said.append("the gradient vanishes on its way to the first layer")
        for k, layer in enumerate(self.layers):
            if layer.silent > 0.5:
                said.append(f"{100 * layer.silent:.0f} % of the units of layer {k + 1} are off on every row")
        if len(self.curve) > 1 and self.curve[-1, 1] < self.curve[:, 1].max() - 2.0 * self.curve[-1, 2]:
            said.append("the last policy is worse than the best one, which is the one that acts")
        return said

    def figures(self) -> dict[str, Markup]:
        """Return the pictures of the page by name."""
        found = {
            "values": scatter(
                self.realised, self.predicted, reference="diagonal", title="Values against what followed",
                x_label="discounted return", y_label="value of the network",
            )
        }  # fmt: skip
        if len(self.curve) > 1:
            step = self.curve[:, 0]
            mean = self.curve[:, 1]
            spread = self.curve[:, 2]
            found["returns"] = function_bands(
                step, mean, {"± one deviation of episodes": (mean - spread, mean + spread)},
                title="Return in evaluations", x_label="step", y_label="return",
            )  # fmt: skip
        return found

    def save(self, path: Any) -> None:
        """Write one HTML file with the words, the pictures and the table of layers."""
        head = tag("tr", *(tag("th", name) for name in ("layer", "units", "weights", "gradient", "silent units")))
        rows = [
            tag(
                "tr",
                *(
                    tag("td", text)
                    for text in (
                        k + 1, layer.units, f"{layer.weight:.3g}", f"{layer.gradient:.3g}",
                        "–" if math.isnan(layer.silent) else f"{100 * layer.silent:.0f} %",
                    )
                ),
            )
            for k, layer in enumerate(self.layers)
        ]  # fmt: skip
        body = tag(
            "body",
            tag("h1", f"{self.agent}: diagnosis"),
            tag("ul", *(tag("li", said) for said in self.words())),
            *(tag("figure", figure, tag("figcaption", name)) for name, figure in self.figures().items()),
            tag("table", head, *rows),
        )
        style = tag("style", "body{font:16px sans-serif;max-width:46rem;margin:2rem auto}td,th{padding:.2rem .8rem}")
        page = tag("html", tag("head", tag("meta", charset="utf-8"), tag("title", self.agent), style), body, lang="en")
        Path(path).write_text(join([Markup("<!doctype html>"), page]), encoding="utf-8")

    def __str__(self) -> str:
        return f"{self.agent}: " + "; ".join(self.words())


def diagnose(agent: DeepAgent, env: Any, *, episodes: int = 20, random_state: int = 2) -> Diagnosis:
    """Play fresh episodes and compare the network's values with what followed.

    Parameters
    ----------
    agent : DQN, Reinforce or ActorCritic
        That has learned in this environment.
    env : environment
        As in `learn`.
    episodes : int
        Played side by side, by the policy whose values the network learned: greedy for DQN, drawn for the others.
    random_state : int
        Of their starts.

    Examples
    --------
    >>> from learnable.decisions import ActorCritic
    >>> from learnable.decisions.rl import deep
    >>> agent = ActorCritic()
    >>> run = agent.learn(deep.CartPole(), 2048)
    >>> found = deep.diagnose(agent, deep.CartPole(), episodes=3)
    >>> len(found.predicted) == len(found.realised) > 0
    True
    """
    memory = agent._learned()
    obs, action, realised = _play(agent, env, episodes, random_state)
    if hasattr(agent, "action_values"):
        predicted = agent.action_values(obs)[np.arange(len(obs)), action[:, 0].astype(np.int64)]
    else:
        predicted = agent.state_values(obs)
    error = predicted - realised
    spread = float(realised.var())
    return Diagnosis(
        agent=type(agent).__name__,
        predicted=predicted,
        realised=realised,
        bias=float(error.mean()),
        explained=1.0 - float(error.var()) / spread if spread > 0.0 else math.nan,
        layers=_layers(agent, memory, obs, action, error),
        curve=memory["evaluations"],
    )


def _play(agent: DeepAgent, env: Any, episodes: int, random_state: int) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return observations, actions and discounted returns of the steps that can be judged."""
    memory = agent._learned()
    world = as_world(env, episodes, 10_000)
    stream = np.random.default_rng(random_state).integers(1, 2**63, size=(2, 4), dtype=np.uint64)
    world.begin(stream[0])
    rows = int(getattr(world, "limit", 10_000))
    block = new_block(rows, world, memory["theta"].dtype)
    world.collect(agent._policy(memory, "best"), np.array([0.0, 0.0, 0.0, 1.0]), True, stream[1], block)
    used = int(block.count[1])
    follows = np.zeros((used, world.n))
    known = np.zeros((used, world.n), dtype=bool)
    for e in range(world.n):
        total = 0.0
        beyond = 0.0
        for t in range(used - 1, -1, -1):
            if not block.valid[t, e]:
                continue
            if block.terminated[t, e] or block.truncated[t, e]:
                total = 0.0
                beyond = float(block.truncated[t, e])
            total = block.reward[t, e] + agent.gamma * total
            beyond *= agent.gamma
            follows[t, e] = total
            known[t, e] = beyond <= _BEYOND
    if not known.any():
        raise DataError(
            "diagnose: every episode was cut off before its returns were known; allow longer episodes, or lower gamma."
        )
    return block.obs[:used][known], block.action[:used][known], follows[known]


def _layers(
    agent: DeepAgent, memory: dict[str, AnyArray], obs: AnyArray, action: AnyArray, error: AnyArray
) -> tuple[LayerGradient, ...]:
    """Return weights and gradients of the squared error of the values, layer by layer."""
    actor, critic = agent._networks(memory)
    network = actor if critic is None else critic
    first = 0 if critic is None else actor.n_parameters
    theta = memory["best"][first : first + network.n_parameters]
    scale = agent._reward_scale(memory)
    slope = np.zeros((len(obs), network.n_outputs), dtype=network.dtype)
    column = action[:, 0].astype(np.int64) if critic is None else np.zeros(len(obs), dtype=np.int64)
    slope[np.arange(len(obs)), column] = error * scale / len(obs)
    with one_thread_blas():
        tape = network.open(theta, len(obs), training=True)
        tape.forward(agent._seen_rows(memory, obs, "best").astype(memory["theta"].dtype))
        tape.backward(slope)
    found = []
    for k, layer in enumerate(network.layers):
        place = network.span(k, "W")
        if not isinstance(layer, Dense) or place is None:
            continue
        is_hidden = k + 1 < len(network.layers) and agent.activation == "relu" and k < len(network.layers) - 2
        silent = float((tape.outs[k + 1] == 0.0).all(axis=0).mean()) if is_hidden else math.nan
        weight = float(np.sqrt(np.mean(theta[place].astype(np.float64) ** 2)))
        gradient = float(np.sqrt(np.mean(tape.gradient[place].astype(np.float64) ** 2)))
        found.append(LayerGradient(layer.units, weight, gradient, silent))
    return tuple(found)
