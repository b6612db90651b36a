"""What a run of a deep agent came to, what a policy earns in fresh episodes, and both over many seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from ....core import AnyArray
from ..results import bootstrap_interval, interquartile_mean


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a policy earned in episodes that it did not learn from.

    Attributes
    ----------
    returns : array of shape (episodes,)
        Undiscounted sums of rewards.
    lengths : array of int of shape (episodes,)
        Steps.
    discounted : array of shape (episodes,)
        The same sums with discount γ.
    level : float
        Probability of the interval.
    """

    returns: AnyArray
    lengths: AnyArray
    discounted: AnyArray
    level: float = 0.95

    @property
    def mean(self) -> float:
        """Mean return."""
        return float(self.returns.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """Student's interval of the mean; it holds for many episodes or returns that are nearly normal."""
        n = len(self.returns)
        if n < 2:
            return (math.nan, math.nan)
        half = float(stdtrit(n - 1, 0.5 + self.level / 2.0)) * float(self.returns.std(ddof=1)) / math.sqrt(n)
        return (self.mean - half, self.mean + half)

    def __str__(self) -> str:
        low, high = self.interval
        percent = f"{100 * self.level:g} %"
        return f"mean return {self.mean:.4g}, {percent} interval [{low:.4g}, {high:.4g}] ({len(self.returns)} episodes)"


@dataclass(frozen=True, eq=False)
class Training:
    """One call of `learn`.

    Attributes
    ----------
    agent : str
        Its name.
    steps : int
        Steps of the environment that the agent has made in all its life.
    seconds : float
        Time of this call.
    steps_per_second : float
        Steps of this call by its seconds, evaluations included.
    stopped : {"steps", "time", "target", "diverged", "interrupted"}
        What ended it.
    episodes : array of shape (n, 3)
        Step, undiscounted return and length of every episode that ended, exploration included.
    evaluations : array of shape (k, 4)
        Step, mean return, standard deviation and number of episodes of every evaluation.
    best_score : float
        Mean return of the policy that is kept, in the evaluation that chose it: a little flattering, as every maximum
        is. `evaluate` measures it again.
    best_step : int
        When it was found.
    note : str
        What went wrong, in words; empty if nothing did.
    """

    agent: str
    steps: int
    seconds: float
    steps_per_second: float
    stopped: str
    episodes: AnyArray
    evaluations: AnyArray
    best_score: float
    best_step: int
    note: str = ""

    def __str__(self) -> str:
        kept = f"policy of step {self.best_step} kept, return {self.best_score:.4g} when it was chosen"
        rate = f"{self.steps_per_second:,.0f} steps/s"
        said = f"{self.agent}: {self.steps:,} steps in all, {rate}, ended by {self.stopped}; {kept}"
        return f"{said}; {self.note}" if self.note else said


@dataclass(frozen=True, eq=False)
class SeedSweep:
    """Independent runs of one agent.

    Attributes
    ----------
    agent : str
        Its name.
    seeds : array of int
        The `random_state` of each run.
    scores : array of shape (seeds,)
        Mean return of each run's policy in fresh episodes.
    mean, lower, upper : float
        Interquartile mean over seeds and its bootstrap interval; NaN limits for one seed.
    level : float
        Probability of the interval.
    runs : list of Training
        What happened in each.
    agents : list
        The agents.
    """

    agent: str
    seeds: AnyArray
    scores: AnyArray
    mean: float
    lower: float
    upper: float
    level: float
    runs: list[Training]
    agents: list[Any]

    def curve(self) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
        """Return steps, interquartile mean, lower and upper quartile over seeds of the evaluations that all have."""
        k = min(len(run.evaluations) for run in self.runs)
        table = np.array([run.evaluations[:k, 1] for run in self.runs])
        middle = np.array([interquartile_mean(column) for column in table.T])
        low, high = np.quantile(table, [0.25, 0.75], axis=0)
        return self.runs[0].evaluations[:k, 0], middle, low, high

    def __str__(self) -> str:
        if len(self.scores) == 1:
            return f"{self.agent}: return {self.mean:.4g} (one seed: no interval)"
        percent = f"{100 * self.level:g} %"
        return (
            f"{self.agent}: return {self.mean:.4g}, {percent} interval [{self.lower:.4g}, {self.upper:.4g}] "
            f"(interquartile mean over {len(self.scores)} seeds)"
        )


def sweep(agent: str, seeds: AnyArray, runs: list[Training], agents: list[Any], scores: Any, level: float) -> SeedSweep:
    """Return the summary of several runs."""
    found = np.asarray(scores, dtype=np.float64)
    ends = bootstrap_interval(found, level) if len(found) > 1 else (math.nan, math.nan)
    return SeedSweep(agent, seeds, found, interquartile_mean(found), *ends, level, runs, agents)
