r"""Parallel tempering (Geyer 1991; Hukushima and Nemoto 1996): chains at several temperatures that change places.

Replica k samples π(u)^{β_k} with 1 = β₀ > β₁ > … > β_K: the flatter ones cross from mode to mode. After each round of
Metropolis steps neighbours are exchanged, even and odd pairs in turn, with probability
min(1, exp((β_k − β_{k+1})(log π(u_{k+1}) − log π(u_k)))), which leaves the product of all invariant. Only the draws at
β₀ = 1 are kept.

Each replica walks with a covariance of its own, adapted during warm-up. So does the ladder: the gaps of log(1/β) are
moved until every pair is exchanged at the same rate (Vousden, Farr and Mandel, MNRAS 455, 2016); it is frozen
afterwards.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, ParameterError
from ..core.estimator import StopFlag
from ._tempering_kernels import temper
from .chains import Chains
from .driver import ESS, sample
from .metropolis import step_words
from .starts import starting_points
from .states import FreeSampler, Rng, root_seed
from .targets import Target, make_target

Array = NDArray[np.float64]


def tempered(
    log_density: Any,
    parameters: Any = None,
    *,
    n_temperatures: int = 8,
    hottest: float | None = None,
    n_inner: int = 5,
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
    """Sample a log density with several modes.

    Parameters
    ----------
    log_density : Compiled or callable
        As in `metropolis_hastings`; no gradient is needed.
    parameters : mapping, int or None
        Names and supports, or the number of coordinates; None reads it from `x0`.
    n_temperatures : int
        Replicas.
    hottest : float, optional
        1/β of the flattest replica; by default 100. It should make the density flat enough to be crossed.
    n_inner : int
        Metropolis steps of every replica between exchanges.
    x0 : array, mapping, list of mappings or None
        Starts on the natural scale.
    n_draws, n_warmup, n_chains, thin : int
        As in `metropolis_hastings`; one step is n_inner steps of all replicas and one round of exchanges.
    random_state, n_jobs, max_seconds, until, progress, keep_warmup
        See `sample`.

    Returns
    -------
    Chains
        Draws at temperature 1, with `stats` "accept", "log_density" and "exchange" (share of the pairs exchanged).

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.sampling import tempered
    >>> two_modes = lambda x: float(np.logaddexp(-0.5 * (x[0] - 10) ** 2, -0.5 * (x[0] + 10) ** 2))
    >>> chains = tempered(two_modes, 1, n_draws=500, n_warmup=300, random_state=0)
    >>> bool(0.3 < (chains["x"] > 0).mean() < 0.7)
    True
    """
    target = make_target("tempered", log_density, parameters, x0, needs_gradient=False)
    for name, value, least in (
        ("n_temperatures", n_temperatures, 2),
        ("n_inner", n_inner, 1),
        ("n_warmup", n_warmup, 0),
    ):
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
            raise ParameterError(f"tempered: {name} must be an integer of at least {least}; got {value!r}.")
    if hottest is not None and not 1 < hottest < math.inf:
        raise ParameterError(f"tempered: hottest must be above 1; got {hottest!r}.")
    sampler = Tempered(target, int(n_temperatures), hottest or 100.0, int(n_inner), int(n_warmup))
    root = root_seed("tempered", random_state)
    return sample(
        sampler,
        starting_points(target, x0, n_chains, root),
        n_draws=n_draws,
        thin=thin,
        random_state=root,
        n_jobs=n_jobs,
        max_seconds=max_seconds,
        until=until,
        progress=progress,
        keep_warmup=keep_warmup,
    )


class TemperedState(NamedTuple):
    """Where the replicas of a chain stand."""

    u: Array  #: (K, d) free coordinates
    values: Array  #: (K,) log densities
    factors: Array  #: (K, d, d) of the random walks
    betas: Array  #: (K,)
    clock: NDArray[np.int64]  #: steps taken, steps of warm-up


class Tempered(FreeSampler):
    """The pair `init`, `step` of parallel tempering.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.sampling import Tempered
    >>> from learnable.sampling.targets import Target
    >>> target = Target("example", lambda x: -0.5 * float(x @ x), None, 1, needs_gradient=False)
    >>> Tempered(target, 3, 100.0, 1, 0).betas.round(2)
    array([1.  , 0.1 , 0.01])
    """

    name = "tempered"
    info_names = ("accept", "log_density", "exchange")

    def __init__(self, target: Target, n_temperatures: int, hottest: float, n_inner: int, n_warmup: int) -> None:
        self.target = target
        self.variables = target.variables
        self.n_warmup = n_warmup
        self.n_inner = n_inner
        self.betas = hottest ** (-np.arange(n_temperatures) / (n_temperatures - 1))

    def init(self, x: Any, rng: Rng) -> TemperedState:
        """Return the state with all replicas at free coordinates x."""
        u = np.array(x, dtype=np.float64)
        value = self.target.evaluate(u)[0]
        if not math.isfinite(value):
            raise DataError(f"tempered: the log density at the start is {value}; pass x0 where it is finite.")
        K = len(self.betas)
        d = len(u)
        # The hotter a replica, the longer its first steps.
        factors = np.eye(d) * (2.38 / np.sqrt(d * self.betas))[:, None, None]
        clock = np.array([0, self.n_warmup], dtype=np.int64)
        return TemperedState(np.tile(u, (K, 1)), np.full(K, value), factors, self.betas.copy(), clock)

    def template(self) -> TemperedState:
        """Return a state of the right form."""
        K = len(self.betas)
        d = self.target.dimension
        clock = np.zeros(2, dtype=np.int64)
        return TemperedState(np.zeros((K, d)), np.zeros(K), np.zeros((K, d, d)), np.zeros(K), clock)

    def draw(self, state: TemperedState) -> Array:
        """Return the natural parameters of the replica at temperature 1."""
        return self.target.natural(state.u[0])

    def _advance(self, state: TemperedState, rng: Rng, free: Array, infos: Array, flag: StopFlag) -> TemperedState:
        """Take inner steps of all replicas, then exchange, again and again."""
        parts: Any = (part.copy() for part in state)
        moved = TemperedState(*parts)
        aim = 0.44 if free.shape[1] == 1 else 0.234
        words = step_words(rng, len(free))
        temper(self.target.problem(), words, *moved, self.n_inner, aim, free, infos, flag.array)
        self.target.raise_error()
        return moved
