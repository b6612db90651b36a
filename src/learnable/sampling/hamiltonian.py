r"""Hamiltonian Monte Carlo and NUTS.

A momentum p ~ N(0, I) is added to the point u; leapfrog steps follow Hamilton's equations for
H(u, p) = −log π(u) + ½‖p‖², which the exact flow keeps constant. `hmc` takes a path of fixed length and accepts its end
with probability min(1, e^{−ΔH}) (Duane et al. 1987; Neal 2011). `nuts` doubles a path, forwards or backwards at random,
until it turns back, and takes one of its points by weight e^{−H} (Hoffman and Gelman, JMLR 15, 2014), with multinomial
weights, the generalised criterion and biased progressive sampling at the top (Betancourt, arXiv 1701.02434).

During warm-up the step size is adapted by dual averaging and the metric from draws and gradients; both are frozen
afterwards. Memory: `Chains` plus O(max_depth · d) per chain, and d² with a dense metric.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ParameterError
from ..core.estimator import StopFlag
from . import _hamiltonian_kernels as kernels
from .chains import Chains
from .driver import ESS, sample
from .metrics import fit_dense, fit_low_rank, metric_of, warmup_plan
from .metropolis import step_words
from .starts import check_start, starting_points
from .states import FreeSampler, Rng, branch_of, root_seed
from .targets import Target, check_gradient, make_target

Array = NDArray[np.float64]


def nuts(
    log_density: Any,
    parameters: Any = None,
    *,
    x0: Any = None,
    n_draws: int = 1000,
    n_warmup: int = 400,
    n_chains: int = 4,
    target_accept: float = 0.8,
    max_depth: int = 10,
    metric: Any = "diagonal",
    step_size: float | None = None,
    thin: int = 1,
    random_state: Any = None,
    n_jobs: int | None = None,
    max_seconds: float | None = None,
    until: ESS | None = None,
    progress: Any = False,
    keep_warmup: bool = False,
    check: bool = True,
) -> Chains:
    """Sample a log density with its gradient by the No-U-Turn sampler.

    Parameters
    ----------
    log_density : Compiled or callable
        `compiled(f)`, or a function of the natural parameters that returns (log density, gradient); without a gradient
        differences are taken, in at most 20 dimensions. With parameters by name it gets a dict, and the gradient may be
        one. The constant does not matter. Jacobians of supports are added here.
    parameters : mapping of str to support, int or None
        Names and supports, such as `{"mu": Real(), "tau": Positive(), "theta": 8}`; a number for one free vector "x".
    x0 : array, mapping, list of mappings or None
        Starts on the natural scale; by default uniform on (−2, 2) in free coordinates.
    n_draws, n_warmup, n_chains, thin : int
        Draws per chain, steps of warm-up before them, chains, steps per draw.
    target_accept : float
        Acceptance that the step size is adapted to; nearer to 1 means shorter steps and fewer divergences.
    max_depth : int
        Paths have at most 2^max_depth steps.
    metric : {"diagonal", "dense", "low-rank"} or array
        What is learned about the scales; variances (d,) or a covariance matrix (d, d) to begin with.
    step_size : float, optional
        The first step; without warm-up the only one.
    random_state, n_jobs, max_seconds, until, progress, keep_warmup
        See `sample`.
    check : bool
        Whether to compare the gradient with differences at the first start.

    Returns
    -------
    Chains
        With `stats` "accept", "log_density", "energy", "depth", "n_steps", "diverging", "step_size" and "capped" (the
        path was still not turning at max_depth).

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.sampling import Positive, Real, nuts
    >>> y = np.array([1.2, 0.4, 2.2, 1.9, 0.8])
    >>> def log_density(p):
    ...     z = (y - p["mu"]) / p["sigma"]
    ...     value = -0.5 * z @ z - len(y) * np.log(p["sigma"]) - 0.5 * p["mu"] ** 2 - p["sigma"]
    ...     by_mu = z.sum() / p["sigma"] - p["mu"]
    ...     by_sigma = (z @ z - len(y)) / p["sigma"] - 1
    ...     return value, {"mu": by_mu, "sigma": by_sigma}
    >>> chains = nuts(log_density, {"mu": Real(), "sigma": Positive()}, target_accept=0.95, random_state=0)
    >>> max(chains.rhat.values()) < 1.01, round(float(chains["mu"].mean()), 1)
    (True, 1.1)
    """
    target = make_target("nuts", log_density, parameters, x0, needs_gradient=True)
    if not isinstance(max_depth, (int, np.integer)) or not 1 <= max_depth <= 20:
        raise ParameterError(f"nuts: max_depth must be an integer from 1 to 20; got {max_depth!r}.")
    sampler = Hamiltonian(
        target, n_warmup=n_warmup, target_accept=target_accept, max_depth=max_depth, metric=metric, step_size=step_size
    )
    root = root_seed("nuts", random_state)
    starts = _checked_starts(target, x0, n_chains, root, check)
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


def hmc(
    log_density: Any,
    parameters: Any = None,
    *,
    n_leapfrog: int = 20,
    x0: Any = None,
    n_draws: int = 1000,
    n_warmup: int = 400,
    n_chains: int = 4,
    target_accept: float = 0.8,
    metric: Any = "diagonal",
    step_size: float | None = None,
    thin: int = 1,
    random_state: Any = None,
    n_jobs: int | None = None,
    max_seconds: float | None = None,
    until: ESS | None = None,
    progress: Any = False,
    keep_warmup: bool = False,
    check: bool = True,
) -> Chains:
    """Sample a log density with its gradient by Hamiltonian Monte Carlo with paths of a fixed number of steps.

    Parameters
    ----------
    n_leapfrog : int
        Steps in a path. After warm-up their length varies by a tenth, so that paths do not return to their starts.
    log_density, parameters, x0, n_draws, n_warmup, n_chains, target_accept, metric, step_size, thin, check
        As in `nuts`.
    random_state, n_jobs, max_seconds, until, progress, keep_warmup
        See `sample`.

    Returns
    -------
    Chains
        With the statistics of `nuts`; "depth" and "capped" are 0.

    Examples
    --------
    >>> from learnable.sampling import hmc
    >>> chains = hmc(lambda x: (-0.5 * x @ x, -x), 3, n_leapfrog=8, random_state=0)
    >>> chains["x"].shape
    (4, 1000, 3)
    """
    target = make_target("hmc", log_density, parameters, x0, needs_gradient=True)
    if not isinstance(n_leapfrog, (int, np.integer)) or isinstance(n_leapfrog, bool) or n_leapfrog < 1:
        raise ParameterError(f"hmc: n_leapfrog must be an integer of at least 1; got {n_leapfrog!r}.")
    sampler = Hamiltonian(
        target,
        n_warmup=n_warmup,
        target_accept=target_accept,
        n_leapfrog=n_leapfrog,
        metric=metric,
        step_size=step_size,
    )
    root = root_seed("hmc", random_state)
    starts = _checked_starts(target, x0, n_chains, root, check)
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


class HamiltonianState(NamedTuple):
    """Where a chain stands, and what it has learned."""

    u: Array  #: free coordinates
    gradient: Array  #: of the log density there
    value: float  #: log density there
    pace: Array  #: dual averaging
    moments: Array  #: windows of the diagonal
    clock: NDArray[np.int64]  #: steps taken, steps of warm-up, draws in the windows
    kind: int  #: of the metric
    scale: Array
    basis: Array
    stretch: Array
    window: Array  #: (k, 2, d): draws and gradients since the last switch, for dense and low-rank metrics


class Hamiltonian(FreeSampler):
    """The pair `init`, `step` of NUTS and HMC.

    Parameters
    ----------
    target : Target
        What is sampled.
    n_warmup : int
        Steps in which step size and metric adapt.
    target_accept : float
        Acceptance wanted.
    max_depth : int
        Of NUTS.
    n_leapfrog : int
        Steps of a path of HMC; 0 for NUTS.
    metric, step_size
        As in `nuts`.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.sampling import Hamiltonian
    >>> from learnable.sampling.targets import Target
    >>> target = Target("example", lambda x: (-0.5 * float(x @ x), -x), None, 2, needs_gradient=True)
    >>> sampler, rng = Hamiltonian(target, n_warmup=0, step_size=0.5), np.random.default_rng(0)
    >>> state, info = sampler.step(sampler.init(np.ones(2), rng), rng)
    >>> dict(zip(sampler.info_names, info))["diverging"]
    0.0
    """

    info_names = ("accept", "log_density", "energy", "depth", "n_steps", "diverging", "step_size", "capped")

    def __init__(
        self,
        target: Target,
        *,
        n_warmup: int,
        target_accept: float = 0.8,
        max_depth: int = 10,
        n_leapfrog: int = 0,
        metric: Any = "diagonal",
        step_size: float | None = None,
    ) -> None:
        self.name = "hmc" if n_leapfrog else "nuts"
        if not isinstance(n_warmup, (int, np.integer)) or isinstance(n_warmup, bool) or n_warmup < 0:
            raise ParameterError(f"{self.name}: n_warmup must be an integer of at least 0; got {n_warmup!r}.")
        if not 0 < target_accept < 1:
            raise ParameterError(f"{self.name}: target_accept must lie between 0 and 1; got {target_accept!r}.")
        if step_size is not None and not 0 < step_size < math.inf:
            raise ParameterError(f"{self.name}: step_size must be positive or None; got {step_size!r}.")
        if n_warmup == 0 and step_size is None:
            raise ParameterError(f"{self.name}: without warm-up say the step: pass step_size=….")
        self.target = target
        self.variables = target.variables
        self.n_warmup = int(n_warmup)
        self.target_accept = float(target_accept)
        self.max_depth = int(max_depth)
        self.n_leapfrog = int(n_leapfrog)
        self.step_size = step_size
        self.metric = metric
        self.adaptation, _ = metric_of(self.name, metric, target.dimension, np.ones(target.dimension))
        self._plan = warmup_plan(self.n_warmup)
        if self.adaptation == "dense" and not isinstance(metric, str):
            self._plan &= ~kernels.FIT_METRIC  # the diagonal has no part in it
        switches = np.flatnonzero(self._plan & kernels.SWITCH)
        self._switches = switches if self.adaptation != "diagonal" and isinstance(metric, str) else switches[:0]

    def init(self, x: Any, rng: Rng) -> HamiltonianState:
        """Return the state at free coordinates x.

        Unless it is given, the first metric comes from the gradient at x: a chain keeps its state from step to step
        and does not begin anew at each point.
        """
        u = np.array(x, dtype=np.float64)
        value, gradient = self.target.evaluate(u)
        _, metric = metric_of(self.name, self.metric, len(u), gradient)
        pace = np.zeros(5)
        kernels.restart_pace.py_func(pace, self.step_size or 0.1)  # type: ignore[attr-defined]
        clock = np.array([0, self.n_warmup, 0, 0], dtype=np.int64)
        window = np.zeros((0, 2, len(u)))
        return HamiltonianState(u, gradient, value, pace, np.zeros((2, 4, len(u))), clock, *metric, window)

    def template(self) -> HamiltonianState:
        """Return a state of the right form."""
        d = self.target.dimension
        empty = np.zeros(d)
        clock = np.zeros(4, dtype=np.int64)
        flat = np.zeros((d, 0))
        return HamiltonianState(
            empty, empty, 0.0, np.zeros(5), np.zeros((2, 4, d)), clock, 0, empty, flat, np.zeros(0), np.zeros((0, 2, d))
        )

    def draw(self, state: HamiltonianState) -> Array:
        """Return the natural parameters."""
        return self.target.natural(state.u)

    def _advance(self, state: Any, rng: Rng, free: Array, infos: Array, flag: StopFlag) -> HamiltonianState:
        """Run the kernel from one switch of the windows to the next."""
        done = 0
        while done < len(free):
            at = int(state.clock[kernels.DONE])
            ahead = self._switches[self._switches >= at]
            n = len(free) - done
            if len(ahead):
                n = min(n, int(ahead[0]) + 1 - at)
            piece = slice(done, done + n)
            state = self._run(state, step_words(rng, n), free[piece], infos[piece], flag)
            done += n
            if flag.raised:
                break
            if len(ahead) and int(ahead[0]) == at + n - 1:
                state = self._switch(state)
        return state  # type: ignore[no-any-return]

    def _run(self, state: Any, words: Any, free: Array, infos: Array, flag: StopFlag) -> HamiltonianState:
        metric = kernels.Metric(state.kind, state.scale.copy(), state.basis, state.stretch)
        value = np.array([state.value])
        parts = (state.u, state.gradient, value, state.pace, state.moments, state.clock)
        motion = kernels.Motion(*(part.copy() for part in parts))
        keeps = len(self._switches) and state.clock[kernels.DONE] <= self._switches[-1]
        slopes = np.empty((len(free) if keeps else 0, len(state.u)))
        kernels.run(
            self.target.problem(),
            metric,
            motion,
            words,
            self._plan,
            self.max_depth,
            self.n_leapfrog,
            self.target_accept,
            free,
            slopes,
            infos,
            flag.array,
        )
        self.target.raise_error()
        window = np.concatenate([state.window, np.stack([free, slopes], axis=1)]) if keeps else state.window
        moved = (motion.u, motion.gradient, float(motion.value[0]), motion.pace, motion.moments, motion.clock)
        return HamiltonianState(*moved, state.kind, metric.scale, state.basis, state.stretch, window)

    def _switch(self, state: HamiltonianState) -> HamiltonianState:
        """Learn a dense or low-rank metric from the window, and begin a new one."""
        fit = fit_dense if self.adaptation == "dense" else fit_low_rank
        found = fit(state.window[:, 0], state.window[:, 1])
        empty = state.window[:0]
        if found is None:
            return state
        pace = state.pace.copy()
        step = math.exp(pace[kernels.LOG_MEAN_STEP])
        kernels.restart_pace.py_func(pace, min(step, 0.5))  # type: ignore[attr-defined]
        return state._replace(
            kind=found.kind, scale=found.scale, basis=found.basis, stretch=found.stretch, window=empty, pace=pace
        )


def _checked_starts(target: Target, x0: Any, n_chains: int, root: np.random.SeedSequence, check: bool) -> list[Array]:
    """Return the starts, having looked at the density there and at its gradient."""
    starts = starting_points(target, x0, n_chains, root)
    for u in starts:
        check_start(target, u)
    if check and starts:
        check_gradient(target, starts[0], branch_of(root, 1))
    return starts
