r"""Gibbs sampling (Geman and Geman, IEEE PAMI 6, 1984): one block at a time from its conditional given all others.

Drawing x_b ~ p(x_b | x_{−b}) is Metropolis–Hastings with the conditional as proposal: the ratio
p(x′)p(x_b | x_{−b}) / (p(x)p(x_b′ | x_{−b})) is 1, and every proposal is accepted. A systematic scan visits the
blocks in their order; a random scan takes one at random in each step, which makes the whole step reversible. A block
may also be any step that leaves its conditional invariant: `metropolis_block` or `nuts_block`, for discrete and
continuous parts together.
"""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, ParameterError
from ..core.estimator import StopFlag
from ._metropolis_kernels import sweep
from .chains import Chains
from .driver import ESS, sample
from .hamiltonian import Hamiltonian
from .metropolis import step_words
from .proposals import Proposal, RandomWalk, as_proposal
from .states import Rng, Sampler, Variable
from .targets import Compiled, Target

Array = NDArray[np.float64]
Values = dict[str, Any]


def gibbs(
    conditionals: Any,
    x0: Any,
    *,
    scan: str = "systematic",
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
    """Sample by drawing each block from its conditional.

    Parameters
    ----------
    conditionals : mapping of str (or tuple of str) to callable or block, or Compiled
        Each callable gets the current values by name, and a generator if it has two arguments. It returns the new value
        of its block (a dict for a tuple of names), or a distribution of `probability` to draw from. Blocks made by
        `metropolis_block` and `nuts_block` take one step instead. `compiled_sweep(function)` is a whole sweep.
    x0 : mapping of str to value, or list of such, one per chain; for a compiled sweep an array
        Where chains start; starts that differ let R-hat see modes that are missed.
    scan : {"systematic", "random"}
        All blocks in order in each step, or one at random.
    n_draws, n_warmup, n_chains, thin : int
        As in `metropolis_hastings`.
    random_state, n_jobs, max_seconds, until, progress, keep_warmup
        See `sample`.

    Returns
    -------
    Chains
        With the names of `x0`.

    Examples
    --------
    A normal of correlation 0.8:

    >>> from learnable.probability import Normal
    >>> from learnable.sampling import gibbs
    >>> conditionals = {
    ...     "x": lambda v: Normal(0.8 * v["y"], 0.6),
    ...     "y": lambda v: Normal(0.8 * v["x"], 0.6),
    ... }
    >>> chains = gibbs(conditionals, {"x": 0.0, "y": 0.0}, n_draws=2000, n_warmup=100, random_state=0)
    >>> bool(abs((chains["x"] * chains["y"]).mean() - 0.8) < 0.1)
    True
    """
    if not isinstance(n_chains, (int, np.integer)) or n_chains < 1:
        raise ParameterError(f"gibbs: n_chains must be an integer of at least 1; got {n_chains!r}.")
    if not isinstance(n_warmup, (int, np.integer)) or isinstance(n_warmup, bool) or n_warmup < 0:
        raise ParameterError(f"gibbs: n_warmup must be an integer of at least 0; got {n_warmup!r}.")
    sampler: Sampler
    if isinstance(conditionals, Compiled):
        start = np.asarray(x0, dtype=np.float64)
        if start.ndim not in (1, 2) or (start.ndim == 2 and len(start) != n_chains) or not np.isfinite(start).all():
            raise DataError(f"gibbs: x0 must be finite, of shape (d,) or ({n_chains}, d); got {start.shape}.")
        sampler = CompiledGibbs(conditionals, start.shape[-1], int(n_warmup))
        starts: list[Any] = list(np.broadcast_to(start, (n_chains, start.shape[-1])))
    else:
        starts = _starts(x0, int(n_chains))
        sampler = Gibbs(conditionals, starts[0], scan, int(n_warmup))
    return sample(
        sampler,
        starts,
        n_draws=n_draws,
        thin=thin,
        random_state=random_state,
        n_jobs=n_jobs,
        max_seconds=max_seconds,
        until=until,
        progress=progress,
        keep_warmup=keep_warmup,
    )


class Block:
    """A step for one block that keeps adaptation of its own; made by `metropolis_block` and `nuts_block`."""

    def start(self, value: Array, values: Values, n_warmup: int) -> Any:
        """Return the block's first state of adaptation."""
        raise TypeError(f"{type(self).__name__} does not define start")

    def move(self, state: Any, value: Array, values: Values, adapts: bool, rng: Rng) -> tuple[Array, Any]:
        """Return the block's new value and its state."""
        raise TypeError(f"{type(self).__name__} does not define move")


class _WalkState(NamedTuple):
    factor: Array
    n_steps: int


class _MetropolisBlock(Block):
    def __init__(self, log_conditional: Callable[[Array, Values], float], proposal: Proposal) -> None:
        self.log_conditional = log_conditional
        self.proposal = proposal

    def start(self, value: Array, values: Values, n_warmup: int) -> _WalkState:
        d = max(1, int(np.size(value)))
        walks = isinstance(self.proposal, RandomWalk)
        return _WalkState(self.proposal.factor(d) if walks else np.zeros((0, 0)), 0)  # type: ignore[attr-defined]

    def move(self, state: _WalkState, value: Array, values: Values, adapts: bool, rng: Rng) -> tuple[Array, _WalkState]:
        x = np.atleast_1d(np.asarray(value, dtype=np.float64)).ravel()
        shape = np.shape(value)
        ratio = 0.0
        z = np.zeros(0)
        if isinstance(self.proposal, RandomWalk):
            z = rng.standard_normal(len(x))
            new = x + state.factor @ z
        else:
            new, ratio = self.proposal.propose(x, rng)
        before = float(self.log_conditional(value, values))
        after = float(self.log_conditional(new.reshape(shape), values))
        change = after - before + ratio
        if math.isnan(change):
            raise DataError("gibbs: the log conditional of a Metropolis block is NaN.")
        accept = math.exp(min(0.0, change))
        taken = rng.random() < accept
        factor = state.factor
        if isinstance(self.proposal, RandomWalk) and self.proposal.adapt and adapts:
            from ._metropolis_kernels import adapt_factor

            factor = factor.copy()
            aim = self.proposal.aim(len(x))
            adapt_factor.py_func(factor, z, accept, aim, state.n_steps + 1, np.empty(len(x)))  # type: ignore[attr-defined]
        return (new.reshape(shape) if taken else value), _WalkState(factor, state.n_steps + 1)


def metropolis_block(log_conditional: Callable[[Array, Values], float], proposal: Any = None) -> Block:
    """Return a Metropolis step for one block of a Gibbs sampler.

    Parameters
    ----------
    log_conditional : callable
        (value of the block, values by name) ↦ log p(block | others) + constant.
    proposal : Proposal, callable, float or None
        As in `metropolis_hastings`; a random walk adapts during warm-up.
    """
    return _MetropolisBlock(log_conditional, as_proposal(proposal))


class _NutsBlock(Block):
    """The density changes with the other blocks, and each chain's thread has its own: a thread-local holds them."""

    def __init__(self, log_conditional: Callable[[Array, Values], Any], target_accept: float) -> None:
        self.log_conditional = log_conditional
        self.target_accept = target_accept
        self._others = threading.local()
        self._samplers: dict[Any, Hamiltonian] = {}

    def _sampler(self, shape: tuple[int, ...], n_warmup: int) -> Hamiltonian:
        if (shape, n_warmup) not in self._samplers:

            def log_density(x: Array) -> Any:
                value, gradient = self.log_conditional(x.reshape(shape), self._others.values)
                return value, np.ravel(gradient)

            d = int(np.prod(shape, dtype=np.int64))
            target = Target("gibbs", log_density, None, d, needs_gradient=True)
            step = None if n_warmup else 0.1
            accept = self.target_accept
            self._samplers[shape, n_warmup] = Hamiltonian(
                target, n_warmup=n_warmup, target_accept=accept, step_size=step
            )
        return self._samplers[shape, n_warmup]

    def start(self, value: Array, values: Values, n_warmup: int) -> Any:
        self._others.values = values
        return self._sampler(np.shape(value), n_warmup).init(np.ravel(value), np.random.default_rng(0))

    def move(self, state: Any, value: Array, values: Values, adapts: bool, rng: Rng) -> tuple[Array, Any]:
        self._others.values = values
        sampler = self._sampler(np.shape(value), int(state.clock[1]))
        log_density, gradient = sampler.target.evaluate(np.ravel(value))
        state = state._replace(u=np.ravel(value).copy(), value=log_density, gradient=gradient)
        state, _ = sampler.step(state, rng)
        return state.u.reshape(np.shape(value)), state


def nuts_block(log_conditional: Callable[[Array, Values], Any], target_accept: float = 0.8) -> Block:
    """Return a NUTS step for one block of a Gibbs sampler.

    Parameters
    ----------
    log_conditional : callable
        (value of the block, values by name) ↦ (log p(block | others) + constant, its gradient by the block).
    target_accept : float
        Acceptance that the step size adapts to during warm-up.
    """
    return _NutsBlock(log_conditional, target_accept)


class GibbsState(NamedTuple):
    """Where a chain stands."""

    values: Values  #: arrays by name
    blocks: tuple[Any, ...]  #: adaptation of each block; () for conditionals
    n_steps: int  #: steps taken


class Gibbs(Sampler):
    """The pair `init`, `step` of Gibbs sampling with conditionals in Python.

    Parameters
    ----------
    conditionals : mapping
        As `gibbs` takes them.
    x0 : mapping of str to value
        Names and shapes.
    scan : {"systematic", "random"}
        The order of the blocks.
    n_warmup : int
        Steps in which blocks adapt.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.sampling import Gibbs
    >>> sampler = Gibbs({"x": lambda v, rng: rng.normal()}, {"x": 0.0}, "systematic", 0)
    >>> state, _ = sampler.step(sampler.init({"x": 0.0}, None), np.random.default_rng(0))
    >>> sampler.draw(state).round(2)
    array([0.13])
    """

    name = "gibbs"

    def __init__(self, conditionals: Mapping[Any, Any], x0: Mapping[str, Any], scan: str, n_warmup: int) -> None:
        if scan not in ("systematic", "random"):
            raise ParameterError(f"gibbs: scan must be 'systematic' or 'random'; got {scan!r}.")
        if not isinstance(conditionals, Mapping) or not conditionals:
            raise ParameterError("gibbs: conditionals must be a mapping of names to functions, or compiled_sweep(…).")
        self.scan = scan
        self.n_warmup = n_warmup
        start = _as_values(x0)
        self.variables = tuple(Variable(name, value.shape) for name, value in start.items())
        self.blocks = [
            (key if isinstance(key, tuple) else (key,), _as_update(key, f)) for key, f in conditionals.items()
        ]
        named = [name for names, _ in self.blocks for name in names]
        if sorted(set(named)) != sorted(start):
            raise ParameterError(
                f"gibbs: conditionals are for {sorted(set(named))}, but x0 has {sorted(start)}; each name needs both."
            )

    def init(self, x: Mapping[str, Any], rng: Rng) -> GibbsState:
        """Return the state at values by name."""
        values = _as_values(x)
        states = tuple(
            update.start(values[names[0]], values, self.n_warmup) if isinstance(update, Block) else ()
            for names, update in self.blocks
        )
        return GibbsState(values, states, 0)

    def template(self) -> GibbsState:
        """Return a state of the right form."""
        values = {variable.name: np.ones(variable.shape) for variable in self.variables}
        return self.init(values, np.random.default_rng(0))

    def step(self, state: GibbsState, rng: Rng) -> tuple[GibbsState, tuple[float, ...]]:
        """Draw all blocks in order, or one at random."""
        values = dict(state.values)
        states = list(state.blocks)
        order = range(len(self.blocks)) if self.scan == "systematic" else [int(rng.integers(len(self.blocks)))]
        for b in order:
            names, update = self.blocks[b]
            if isinstance(update, Block):
                adapts = state.n_steps < self.n_warmup
                new, states[b] = update.move(states[b], values[names[0]], values, adapts, rng)
                found: Any = {names[0]: new}
            else:
                found = update(values, rng)
                found = found if len(names) > 1 else {names[0]: found}
            for name in names:
                values[name] = self._checked(name, found[name], values[name].shape)
        return GibbsState(values, tuple(states), state.n_steps + 1), ()

    def draw(self, state: GibbsState) -> Array:
        """Return all values side by side."""
        return np.concatenate([np.ravel(state.values[v.name]) for v in self.variables])

    def _checked(self, name: str, value: Any, shape: tuple[int, ...]) -> Array:
        array = np.asarray(value, dtype=np.float64)
        if array.shape != shape:
            raise DataError(f"gibbs: the conditional of {name!r} must return shape {shape}; got {array.shape}.")
        if not np.isfinite(array).all():
            raise DataError(f"gibbs: the conditional of {name!r} returned {array}, which is not finite.")
        return array


class CompiledState(NamedTuple):
    """Where a compiled chain stands."""

    x: Array


class CompiledGibbs(Sampler):
    """The pair `init`, `step` of a compiled sweep."""

    name = "gibbs"

    def __init__(self, function: Compiled, dimension: int, n_warmup: int) -> None:
        if function.form != "sweep":
            raise ParameterError("gibbs: pass compiled_sweep(function), whose function changes x in place.")
        self.function = function
        self.n_warmup = n_warmup
        self.variables = (Variable("x", (dimension,)),)
        self._table = function.table(dimension)

    def init(self, x: Array, rng: Rng) -> CompiledState:
        """Return the state at x."""
        return CompiledState(np.array(x, dtype=np.float64))

    def template(self) -> CompiledState:
        """Return a state of the right form."""
        return CompiledState(np.zeros(self.variables[0].size))

    def draw(self, state: CompiledState) -> Array:
        """Return x."""
        return state.x

    def step(self, state: CompiledState, rng: Rng) -> tuple[CompiledState, tuple[float, ...]]:
        """Take one sweep."""
        return self.advance(state, rng, np.empty((1, len(state.x))), np.empty((1, 0)), StopFlag()), ()

    def advance(self, state: CompiledState, rng: Rng, draws: Array, infos: Array, flag: StopFlag) -> CompiledState:
        """Take many sweeps."""
        x = state.x.copy()
        sweep(self.function.address, self._table, step_words(rng, len(draws)), x, draws, flag.array)
        if not np.isfinite(x).all():
            raise DataError("gibbs: the compiled sweep left numbers in x that are not finite.")
        return CompiledState(x)


def _as_update(key: Any, given: Any) -> Any:
    """Return a block as it is, a conditional as a function (values, rng) → new value."""
    if isinstance(given, Block):
        if isinstance(key, tuple):
            raise ParameterError(f"gibbs: the block of {key!r} must have one name; put its parts into one array.")
        return given
    if not callable(given):
        raise ParameterError(f"gibbs: the conditional of {key!r} must be a function or a block; got {given!r}.")
    several = isinstance(key, tuple)
    n_arguments = _count_arguments(given)

    def update(values: Values, rng: Rng) -> Any:
        found = given(dict(values), rng) if n_arguments > 1 else given(dict(values))
        if hasattr(found, "sample") and hasattr(found, "logpdf"):
            found = found.sample(random_state=rng)
        if several and not isinstance(found, Mapping):
            raise DataError(
                f"gibbs: the conditional of {key!r} must return a dict of its names; got {type(found).__name__}."
            )
        return found

    return update


def _count_arguments(function: Callable[..., Any]) -> int:
    try:
        kinds = [p.kind for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    except (TypeError, ValueError):
        return 2
    return sum(kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for kind in kinds)


def _as_values(x0: Mapping[str, Any]) -> Values:
    return {name: np.asarray(value, dtype=np.float64) for name, value in x0.items()}


def _starts(x0: Any, n_chains: int) -> list[Any]:
    rows: list[Any] = []
    if isinstance(x0, Mapping):
        if not x0:
            raise DataError("gibbs: x0 has no values; name each variable that is drawn.")
        rows = [x0] * n_chains
    elif isinstance(x0, (list, tuple)):
        rows = list(x0)
    if len(rows) != n_chains or not all(isinstance(row, Mapping) and row for row in rows):
        raise DataError(f"gibbs: x0 must be a dict of values by name, or {n_chains} of them; got {type(x0).__name__}.")
    for row in rows:
        for name, value in row.items():
            try:
                finite = bool(np.isfinite(np.asarray(value, dtype=np.float64)).all())
            except (TypeError, ValueError):
                raise DataError(f"gibbs: x0[{name!r}] must be numbers; got {value!r}.") from None
            if not finite:
                raise DataError(f"gibbs: x0[{name!r}] must be finite; got {value!r}.")
        if {n: np.shape(v) for n, v in row.items()} != {n: np.shape(v) for n, v in rows[0].items()}:
            raise DataError("gibbs: all starts must have the same names and shapes.")
    return rows
