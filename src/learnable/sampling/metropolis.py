r"""Metropolis–Hastings (Metropolis et al. 1953; Hastings, Biometrika 57, 1970).

From x suggest x′ ~ q(· | x) and move there with probability

$$ \alpha(x, x') = \min\Bigl(1, \frac{p(x')\,q(x \mid x')}{p(x)\,q(x' \mid x)}\Bigr); $$

a rejected proposal repeats the state. p(x)q(x′ | x)α(x, x′) is symmetric in x and x′ (detailed balance), so p is
invariant.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, ParameterError
from ..core.estimator import StopFlag
from ._metropolis_kernels import adapt_factor, walk
from .chains import Chains
from .driver import ESS, sample
from .proposals import CycleOf, Proposal, RandomWalk, as_proposal
from .starts import starting_points
from .states import Rng, Sampler, root_seed
from .targets import Target, make_target

Array = NDArray[np.float64]


def metropolis_hastings(
    log_density: Any,
    proposal: Any = None,
    *,
    parameters: Any = None,
    x0: Any = None,
    n_draws: int = 1000,
    n_warmup: int = 1000,
    n_chains: int = 4,
    thin: int = 1,
    random_state: Any = None,
    n_jobs: int | None = None,
    max_seconds: float | None = None,
    until: ESS | None = None,
    progress: Any = False,
    keep_warmup: bool = False,
) -> Chains:
    """Sample a log density, known up to a constant, by Metropolis–Hastings.

    Parameters
    ----------
    log_density : callable or Compiled
        x ↦ log p(x) + constant; −inf outside the support. With `parameters` by name it gets a dict. See `compiled`.
    proposal : Proposal, callable, float or None
        How points are suggested; None is an adaptive random walk. A callable gets (x, rng) and returns x′, or
        (x′, log q(x | x′) − log q(x′ | x)); a number is the scale of a random walk.
    parameters : mapping, int or None
        Names and supports, or the number of coordinates; None reads it from `x0`.
    x0 : array of shape (d,) or (n_chains, d), mapping, list of mappings, or None
        Starts; by default random ones. From one start chains begin at the same place.
    n_draws, n_warmup, n_chains, thin : int
        Draws per chain that are kept, steps before them in which a random walk adapts, chains, steps per draw.
    random_state, n_jobs, max_seconds, until, progress, keep_warmup
        See `sample`.

    Returns
    -------
    Chains
        With `stats` "accept" (α), "log_density" and "accepted".

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.sampling import metropolis_hastings
    >>> banana = lambda x: -0.5 * (x[0] ** 2 + (x[1] - x[0] ** 2) ** 2)
    >>> chains = metropolis_hastings(banana, x0=[0.0, 0.0], n_draws=20000, random_state=0)
    >>> bool(abs(chains["x"][:, :, 0].mean()) < 0.1), bool(abs(chains.stats["accept"].mean() - 0.234) < 0.05)
    (True, True)
    """
    target = make_target("metropolis_hastings", log_density, parameters, x0, needs_gradient=False)
    sampler = MetropolisHastings(target, as_proposal(proposal), _count(n_warmup))
    root = root_seed("metropolis_hastings", random_state)
    starts = starting_points(target, x0, n_chains, root)
    return sample(
        sampler,
        starts,
        n_draws=n_draws,
        thin=thin,
        random_state=root,
        n_jobs=n_jobs,
        max_seconds=max_seconds,
        until=until,
        progress=progress,
        keep_warmup=keep_warmup,
    )


class MetropolisState(NamedTuple):
    """Where a chain stands."""

    u: Array  #: free coordinates
    value: float  #: log density there
    factor: Array  #: S of the random walk; (0, 0) for other proposals
    n_steps: int  #: steps taken


class MetropolisHastings(Sampler):
    """The pair `init`, `step` of Metropolis–Hastings.

    Parameters
    ----------
    target : Target
        What is sampled.
    proposal : Proposal
        How points are suggested.
    n_warmup : int
        Steps in which a random walk adapts.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.sampling import MetropolisHastings, RandomWalk
    >>> from learnable.sampling.targets import Target
    >>> target = Target("example", lambda x: -0.5 * float(x @ x), None, 1, needs_gradient=False)
    >>> sampler, rng = MetropolisHastings(target, RandomWalk(), 0), np.random.default_rng(0)
    >>> state, info = sampler.step(sampler.init([0.0], rng), rng)
    >>> 0 <= info[0] <= 1
    True
    """

    name = "metropolis_hastings"
    info_names = ("accept", "log_density", "accepted")

    def __init__(self, target: Target, proposal: Proposal, n_warmup: int) -> None:
        self.target = target
        self.proposal = proposal
        self.n_warmup = n_warmup
        self.variables = target.variables
        self._walks = isinstance(proposal, RandomWalk)
        self._compiled = target.is_compiled and self._walks

    def init(self, x: Any, rng: Rng) -> MetropolisState:
        """Return the state at free coordinates x."""
        u = np.array(x, dtype=np.float64)
        value = self._value(u)
        if not math.isfinite(value):
            raise DataError(f"{self.name}: the log density at the start is {value}; pass x0 where it is finite.")
        d = len(u)
        factor = self.proposal.factor(d) if isinstance(self.proposal, RandomWalk) else np.zeros((0, 0))
        if isinstance(self.proposal, RandomWalk) and self.proposal.adapt:
            factor = factor * (2.38 / math.sqrt(d))
        return MetropolisState(u, value, factor, 0)

    def template(self) -> MetropolisState:
        """Return a state of the right form."""
        d = self.target.dimension
        return MetropolisState(np.zeros(d), 0.0, np.zeros((d, d) if self._walks else (0, 0)), 0)

    def draw(self, state: MetropolisState) -> Array:
        """Return the natural parameters."""
        return self.target.natural(state.u)

    def step(self, state: MetropolisState, rng: Rng) -> tuple[MetropolisState, tuple[float, ...]]:
        """Suggest, then accept or repeat."""
        if self._compiled:
            draws = np.empty((1, len(state.u)))
            infos = np.empty((1, 3))
            return self._walk(state, rng, draws, infos, StopFlag()), tuple(infos[0].tolist())
        if isinstance(self.proposal, RandomWalk):
            return self._random_walk(state, rng)
        parts = self.proposal.proposals if isinstance(self.proposal, CycleOf) else [self.proposal]
        accepts = []
        moved = False
        for part in parts:
            u, ratio = part.propose(state.u, rng)
            state, accept, taken = self._decide(state, u, ratio, rng)
            accepts.append(accept)
            moved |= taken
        state = state._replace(n_steps=state.n_steps + 1)
        return state, (float(np.mean(accepts)), state.value, float(moved))

    def _random_walk(self, state: MetropolisState, rng: Rng) -> tuple[MetropolisState, tuple[float, ...]]:
        z = rng.standard_normal(len(state.u))
        moved, accept, taken = self._decide(state, state.u + state.factor @ z, 0.0, rng)
        count = state.n_steps + 1
        factor = state.factor
        if self.proposal.adapt and count <= self.n_warmup:  # type: ignore[attr-defined]
            factor = factor.copy()
            aim = self.proposal.aim(len(z))  # type: ignore[attr-defined]
            adapt_factor.py_func(factor, z, accept, aim, count, np.empty(len(z)))  # type: ignore[attr-defined]
        return moved._replace(factor=factor, n_steps=count), (accept, moved.value, float(taken))

    def _decide(self, state: MetropolisState, u: Array, ratio: float, rng: Rng) -> tuple[MetropolisState, float, bool]:
        """Return the state after one proposal, its α, and whether it was accepted."""
        value = self._value(u)
        change = value - state.value + ratio
        if math.isnan(change):
            raise DataError(f"{self.name}: the log density or the proposal's ratio is NaN at {u}.")
        accept = math.exp(min(0.0, change))
        taken = rng.random() < accept
        return (state._replace(u=u, value=value) if taken else state), accept, taken

    def _value(self, u: Array) -> float:
        """Return the log density on free coordinates, in Python where the density is Python."""
        if self.target.is_compiled or self.target.parameters is not None:
            return self.target.evaluate(u)[0]
        return self.target.value(u)

    def advance(self, state: Any, rng: Rng, draws: Array, infos: Array, flag: StopFlag) -> Any:
        """Take many steps, compiled if the density and the proposal are."""
        if not self._compiled:
            return super().advance(state, rng, draws, infos, flag)
        if self.target.parameters is None:
            return self._walk(state, rng, draws, infos, flag)
        free = np.empty((len(draws), len(state.u)))
        state = self._walk(state, rng, free, infos, flag)
        draws[:] = self.target.natural(free)
        return state

    def _walk(self, state: MetropolisState, rng: Rng, free: Array, infos: Array, flag: StopFlag) -> MetropolisState:
        words = step_words(rng, len(free))
        u = state.u.copy()
        value = np.array([state.value])
        factor = state.factor.copy()
        adapts = self.proposal.adapt  # type: ignore[attr-defined]
        counts = np.array([state.n_steps, self.n_warmup if adapts else 0], dtype=np.int64)
        aim = float(self.proposal.aim(len(u)))  # type: ignore[attr-defined]
        walk(self.target.problem(), words, u, value, factor, counts, aim, free, infos, flag.array)
        return MetropolisState(u, float(value[0]), factor, int(counts[0]))


def step_words(rng: Rng, n: int) -> NDArray[np.uint64]:
    """Return four words per step: the same whether steps are taken one by one or many at once."""
    return rng.integers(0, 2**64, size=(n, 4), dtype=np.uint64, endpoint=False)


def _count(n_warmup: Any) -> int:
    if not isinstance(n_warmup, (int, np.integer)) or isinstance(n_warmup, bool) or n_warmup < 0:
        raise ParameterError(f"n_warmup must be an integer of at least 0; got {n_warmup!r}.")
    return int(n_warmup)
