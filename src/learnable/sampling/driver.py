"""One driver for all samplers: chains on threads, progress, time limits, stopping at a precision, resuming.

A chain has one stream of random numbers and belongs to one thread at a time, so its draws do not depend on `n_jobs`.
The driver works in rounds, in which every chain takes the same number of steps. Between rounds it looks at the clock,
shows progress and asks whether the draws are precise enough. A round that time or Ctrl-C cuts short is dropped, and the
chains stand where it began: all have the same number of draws, and a resume goes on from there bit for bit.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, ParameterError
from ..core.estimator import StopFlag
from ..core.threads import TaskTeam, one_thread_blas, resolve_n_jobs
from . import diagnostics
from .chains import Chains, warn_of_faults
from .states import Rng, Sampler, flatten, pack_stream, root_seed, unflatten, unpack_stream

Array = NDArray[np.float64]

#: A round takes about this many seconds: short enough for progress and time limits, long enough that handing the
#: chains to threads (0.1 ms each) and dropping a round that is cut short cost nothing to speak of.
_ROUND_SECONDS = 0.3
#: Numbers that a round draws if nobody looks between rounds, unless a share of 1/20 of the draws is more.
_ROUND_ENTRIES = 2**21
#: `until` is asked at multiples of this share of the draws, whatever the rounds were: the same stop for any speed.
_CHECKPOINTS = 20


class ESS(NamedTuple):
    """Stop as soon as every number has this many effective draws, bulk and tail, and a small R-hat.

    The draws are looked at when 1/20, 2/20, … of `n_draws` are drawn. Stopping at a target could favour draws that look
    better than they are. Measured on 1,000 autoregressions with coefficient 0.5: the mean's error was 0.96 of its Monte
    Carlo error at the stop (root mean square) and 0.98 after a fixed number of draws, so no bias was seen.

    Attributes
    ----------
    least : float
        Effective draws wanted.
    rhat : float
        Largest R-hat.
    """

    least: float = 400.0
    rhat: float = 1.01

    def reached(self, draws: Array) -> bool:
        """Tell whether the draws are good enough."""
        worst, bulk, tail = diagnostics.convergence(draws)
        moving = (draws != draws[:1, :1]).any(axis=(0, 1))
        if not moving.any():
            return False
        enough = np.fmin(bulk, tail)[moving] >= self.least
        return bool(enough.all() and (worst[moving] <= self.rhat).all())


@dataclass(frozen=True)
class Progress:
    """What a callback is told between rounds.

    Attributes
    ----------
    sampler : str
        Name of the sampler.
    step, n_steps : int
        Steps done and planned per chain, warm-up included.
    n_warmup : int
        How many of them are warm-up.
    accept : float
        Mean acceptance of the last round; NaN for samplers that do not tell it.
    divergences : int
        Draws that diverged, after warm-up.
    ess : float
        The smallest effective sample size so far; NaN before the first checkpoint.
    seconds, seconds_left : float
        Time so far, and a guess of the rest.
    """

    sampler: str
    step: int
    n_steps: int
    n_warmup: int
    accept: float
    divergences: int
    ess: float
    seconds: float
    seconds_left: float

    def __str__(self) -> str:
        phase = "warm-up" if self.step < self.n_warmup else "drawing"
        parts = [f"{self.sampler}: {phase} {self.step}/{self.n_steps}"]
        if self.accept == self.accept:
            parts.append(f"acceptance {self.accept:.2f}")
        parts.append(f"{self.divergences} divergences")
        if self.ess == self.ess:
            parts.append(f"ESS {self.ess:.0f}")
        return ", ".join([*parts, f"{self.seconds_left:.0f} s left"])


class _Settings(NamedTuple):
    n_draws: int
    thin: int
    n_jobs: int
    max_seconds: float | None
    until: ESS | None
    progress: Callable[[Progress], None] | None
    keep_warmup: bool


def sample(
    sampler: Sampler,
    starts: Sequence[Any],
    *,
    n_draws: int = 1000,
    thin: int = 1,
    random_state: Any = None,
    n_jobs: int | None = None,
    max_seconds: float | None = None,
    until: ESS | None = None,
    progress: bool | Callable[[Progress], None] = False,
    keep_warmup: bool = False,
) -> Chains:
    """Run one chain from each start.

    Parameters
    ----------
    sampler : Sampler
        Any pair of `init` and `step`.
    starts : sequence
        Where each chain starts, as `init` takes it.
    n_draws : int
        Draws to keep per chain, after the sampler's warm-up.
    thin : int
        Steps per draw that is kept.
    random_state : int, SeedSequence, Generator or None
        Seed; every chain gets a stream of its own from it.
    n_jobs : int, optional
        Threads; by default all. The draws do not depend on it.
    max_seconds : float, optional
        Time after which the draws so far are returned.
    until : ESS, optional
        A precision at which to stop early.
    progress : bool or callable
        Whether to show a line on standard error, or what to call with a `Progress` between rounds.
    keep_warmup : bool
        Whether to keep the draws of the warm-up, apart from the others.

    Returns
    -------
    Chains
        With a certificate. A warning says what is wrong if it does not hold.
    """
    starts = list(starts)
    settings = _checked(sampler.name, n_draws, thin, n_jobs, max_seconds, until, progress, keep_warmup)
    if not starts:
        raise ParameterError(f"{sampler.name}: n_chains must be at least 1; got 0 starts.")
    seeds = root_seed(sampler.name, random_state).spawn(len(starts))
    streams = [np.random.Generator(np.random.PCG64(seed)) for seed in seeds]
    states = [sampler.init(x, rng) for x, rng in zip(starts, streams, strict=True)]
    return _run(sampler, states, streams, 0, settings, None)


def resume(
    chains: Chains,
    n_draws: int,
    *,
    sampler: Sampler | None = None,
    n_jobs: int | None = None,
    max_seconds: float | None = None,
    until: ESS | None = None,
    progress: bool | Callable[[Progress], None] = False,
) -> Chains:
    """Go on from where chains ended: the draws are those of one longer run, bit for bit.

    Parameters
    ----------
    chains : Chains
        What a sampler returned, or what was loaded from a file.
    n_draws : int
        Further draws per chain.
    sampler : Sampler, optional
        The sampler; needed for chains from a file, which holds no functions.
    n_jobs, max_seconds, until, progress
        As in `sample`.

    Returns
    -------
    Chains
        All draws, the old ones first.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.sampling import metropolis_hastings, resume
    >>> log_density = lambda x: -0.5 * x[0] ** 2
    >>> short = metropolis_hastings(log_density, x0=[0.0], n_draws=2000, random_state=0)
    >>> long = metropolis_hastings(log_density, x0=[0.0], n_draws=2300, random_state=0)
    >>> bool((resume(short, 300).draws == long.draws).all())
    True
    """
    sampler = sampler or getattr(chains, "_sampler", None)
    if not len(chains.streams):
        raise DataError("resume: these chains do not say where they ended (they were cut, thinned or imported).")
    if sampler is None:
        raise ParameterError("resume: chains from a file hold no functions; pass sampler=….")
    if sampler.variables != chains.variables:
        raise DataError(f"resume: the sampler draws {sampler.variables}, the chains hold {chains.variables}.")
    settings = _checked("resume", n_draws, chains.thin, n_jobs, max_seconds, until, progress, False)
    kept = getattr(chains, "_states", None)
    streams = [unpack_stream(words) for words in chains.streams]
    if kept is None:
        template = sampler.template()
        kept = [
            unflatten(template, {name: values[i] for name, values in chains.states.items()})
            for i in range(chains.n_chains)
        ]
    return _run(sampler, kept, streams, sampler.n_warmup, settings, chains)


def _checked(
    owner: str,
    n_draws: Any,
    thin: Any,
    n_jobs: int | None,
    max_seconds: float | None,
    until: Any,
    progress: Any,
    keep_warmup: bool,
) -> _Settings:
    for name, value in (("n_draws", n_draws), ("thin", thin)):
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
            raise ParameterError(f"{owner}: {name} must be an integer of at least 1; got {value!r}.")
    if n_draws < 4:
        raise ParameterError(f"{owner}: n_draws must be at least 4, so that chains can be judged; got {n_draws!r}.")
    if max_seconds is not None and not max_seconds > 0:
        raise ParameterError(f"{owner}: max_seconds must be positive or None; got {max_seconds!r}.")
    if until is not None and not hasattr(until, "reached"):
        raise ParameterError(f"{owner}: until must be ESS(…) or None; got {until!r}.")
    shown = _show if progress is True else progress or None
    return _Settings(int(n_draws), int(thin), resolve_n_jobs(n_jobs), max_seconds, until, shown, bool(keep_warmup))


def _show(progress: Progress) -> None:
    end = "\n" if progress.step >= progress.n_steps else ""
    sys.stderr.write(f"\r{progress!s:<100.100}{end}")
    sys.stderr.flush()


class _Ended(Exception):  # noqa: N818  # no error: a signal
    """The time is up, or Ctrl-C was pressed."""


class _Loop:
    """The rounds of one run."""

    def __init__(self, sampler: Sampler, states: list[Any], streams: list[Rng], done: int, settings: _Settings) -> None:
        self.sampler = sampler
        self.states = states
        self.streams = streams
        self.settings = settings
        self.step = done  #: steps that every chain has taken
        self.n_steps = done - min(done, sampler.n_warmup) + sampler.n_warmup + settings.n_draws * settings.thin
        self.started = time.perf_counter()
        self.first = done
        self.interrupted = False
        self.out_of_time = False
        self.team = TaskTeam(settings.n_jobs)  #: its threads end with it
        self._pace = 0.0  # seconds per step of the last round

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started

    def advance(self, n: int) -> tuple[Array, Array]:
        """Let every chain take n steps; return their draws and what was told about them."""
        flag = StopFlag()
        d = sum(variable.size for variable in self.sampler.variables)
        draws = np.empty((len(self.states), n, d))
        infos = np.empty((len(self.states), n, len(self.sampler.info_names)))
        before = [pack_stream(rng) for rng in self.streams]

        def work(i: int) -> Any:
            return self.sampler.advance(self.states[i], self.streams[i], draws[i], infos[i], flag)

        def tick() -> None:
            limit = self.settings.max_seconds
            if limit is not None and self.seconds > limit:
                self.out_of_time = True
                flag.raise_()

        began = time.perf_counter()
        try:
            with one_thread_blas():
                states = self.team.run(work, len(self.states), stop=flag.array, watch=lambda n_done: tick())
        except KeyboardInterrupt:
            self.interrupted = True
        if self.interrupted or flag.raised:
            self.streams = [unpack_stream(words) for words in before]
            raise _Ended
        self.states = states
        self.step += n
        self._pace = (time.perf_counter() - began) / n
        tick()
        return draws, infos

    def round_size(self, most: int) -> int:
        """Return how many steps the next round takes; at first few, because their duration is not known yet."""
        size = 4 if self._pace == 0 else max(1, int(_ROUND_SECONDS / self._pace))
        return max(1, min(size, most))

    def warm_up(self) -> Array:
        """Take the steps of the warm-up; return their draws if they are to be kept."""
        kept = []
        while self.step < self.sampler.n_warmup:
            draws, infos = self.advance(self.round_size(self.sampler.n_warmup - self.step))
            if self.settings.keep_warmup:
                kept.append(draws)
            self._tell(infos, 0, np.nan)
            if self.out_of_time:
                raise _Ended
        return np.concatenate(kept, axis=1) if kept else np.zeros((len(self.states), 0, 0))

    def draw(self, draws: Array, infos: Array, already: Array | None) -> int:
        """Fill the arrays, (n_chains, n_draws, …); return how many draws there are when the run ends."""
        thin = self.settings.thin
        until = self.settings.until
        n = int(draws.shape[1])
        every = max(4, -(-n // _CHECKPOINTS))
        looks = until is not None or self.settings.progress is not None
        together = every if looks else max(every, _ROUND_ENTRIES // (draws.shape[0] * draws.shape[2]))
        filled: int = 0
        ess = np.nan
        divergences = 0
        diverging = self.sampler.info_names.index("diverging") if "diverging" in self.sampler.info_names else None
        while filled < n:
            ahead = min(n - filled, together - filled % together)
            k = max(1, min(ahead, self.round_size(ahead * thin) // thin))
            try:
                new, told = self.advance(k * thin)
            except _Ended:
                return filled
            draws[:, filled : filled + k] = new[:, thin - 1 :: thin]
            infos[:, filled : filled + k] = told[:, thin - 1 :: thin]
            filled += k
            if diverging is not None:
                divergences += int(told[:, :, diverging].sum())
            if looks and filled % every == 0 and filled < n:
                so_far = draws[:, :filled]
                if already is not None:
                    so_far = np.concatenate([already, so_far], axis=1)
                if until is not None and until.reached(so_far):
                    return filled
                if self.settings.progress is not None:
                    ess = float(np.nanmin(diagnostics.ess_bulk(so_far[:, :, :20]), initial=np.inf))
            self._tell(told, divergences, ess)
            if self.out_of_time:
                return filled
        return filled

    def _tell(self, infos: Array, divergences: int, ess: float) -> None:
        if self.settings.progress is None:
            return
        names = self.sampler.info_names
        accept = float(infos[:, :, names.index("accept")].mean()) if "accept" in names else np.nan
        done = self.step - self.first
        left = self.seconds / max(done, 1) * (self.n_steps - self.step)
        if self.settings.max_seconds is not None:
            left = min(left, max(0.0, self.settings.max_seconds - self.seconds))
        state = (self.sampler.name, self.step, self.n_steps, self.sampler.n_warmup)
        self.settings.progress(Progress(*state, accept, divergences, ess, self.seconds, left))


def _run(
    sampler: Sampler, states: list[Any], streams: list[Rng], done: int, settings: _Settings, before: Chains | None
) -> Chains:
    loop = _Loop(sampler, states, streams, done, settings)
    try:
        warmup = loop.warm_up()
    except _Ended:
        if loop.interrupted:
            raise KeyboardInterrupt from None
        raise DataError(
            f"{sampler.name}: max_seconds={settings.max_seconds:g} passed after {loop.step} of {sampler.n_warmup} "
            "steps of warm-up, before the first draw; allow more time, or warm up for fewer steps."
        ) from None
    d = sum(variable.size for variable in sampler.variables)
    draws = np.empty((len(states), settings.n_draws, d))
    infos = np.empty((len(states), settings.n_draws, len(sampler.info_names)))
    n = loop.draw(draws, infos, None if before is None else before.draws)
    if n < 4 and before is None:
        if loop.interrupted:
            raise KeyboardInterrupt
        raise DataError(
            f"{sampler.name}: max_seconds={settings.max_seconds:g} passed after {n} draws; allow more time."
        )
    if loop.interrupted:
        warnings.warn(f"{sampler.name}: interrupted; the {n} draws so far are kept.", RuntimeWarning, stacklevel=4)
    if n < settings.n_draws:
        draws = draws[:, :n].copy()
        infos = infos[:, :n]
    stats = {name: np.ascontiguousarray(infos[:, :, k]) for k, name in enumerate(sampler.info_names)}
    seconds = loop.seconds
    if before is not None:
        draws = np.concatenate([before.draws, draws], axis=1)
        stats = {name: np.concatenate([before.stats[name], values], axis=1) for name, values in stats.items()}
        warmup = before.warmup
        seconds += before.certificate_.seconds
    chains = Chains.of(
        draws,
        sampler.variables,
        stats,
        warmup=warmup if warmup.shape[1] else None,
        n_warmup=sampler.n_warmup,
        thin=settings.thin,
        sampler=sampler.name,
        states=_stacked(loop.states),
        streams=np.stack([pack_stream(rng) for rng in loop.streams]),
        seconds=seconds,
    )
    object.__setattr__(chains, "_states", loop.states)
    chains._remember(sampler)
    warn_of_faults(chains, stacklevel=5)
    return chains


def _stacked(states: list[Any]) -> dict[str, Any]:
    """Return the states of all chains side by side, by path; nothing if they cannot be stored."""
    try:
        flat = [flatten(state) for state in states]
        return {name: np.stack([one[name] for one in flat]) for name in flat[0]}
    except (DataError, ValueError):
        return {}
