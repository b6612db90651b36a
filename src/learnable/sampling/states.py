"""What a sampler is: a pair of functions `init(x, rng) → state` and `step(state, rng) → (state, info)`.

States are immutable: NamedTuples of numbers and arrays that no step writes to. A step draws every random number from
the generator that it is given and looks at no clock, so that a chain is a function of its start and its stream alone:
the same for any number of threads, and after a resume.

A sampler that runs compiled says so by `advance`, which takes many steps at once. It must draw from the generator as
the single steps would: the driver cuts chains wherever it likes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, ParameterError
from ..core.estimator import StopFlag

if TYPE_CHECKING:
    from .targets import Target

Array = NDArray[np.float64]
Rng = np.random.Generator


class Variable(NamedTuple):
    """A named quantity that chains hold draws of."""

    name: str
    shape: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """How many numbers one draw has."""
        return int(np.prod(self.shape, dtype=np.int64))


class Sampler:
    """Base of all samplers: what the driver needs besides `init` and `step`.

    Attributes
    ----------
    name : str
        For messages.
    variables : tuple of Variable
        What one draw holds, in order.
    n_warmup : int
        Steps in which `step` still adapts; they belong to no draw.
    info_names : tuple of str
        The numbers that `step` tells about each step, in order.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.sampling import Sampler, sample
    >>> from learnable.sampling.states import Variable
    >>> class Coin(Sampler):
    ...     name, variables = "coin", (Variable("heads"),)
    ...
    ...     def init(self, x, rng):
    ...         return float(x)
    ...
    ...     def step(self, state, rng):
    ...         return float(rng.random() < 0.5), ()
    ...
    ...     def draw(self, state):
    ...         return np.array([state])
    >>> sample(Coin(), [0, 1], n_draws=1000, random_state=0).certificate_.holds
    True
    """

    name: str = "sampler"
    variables: tuple[Variable, ...] = ()
    n_warmup: int = 0
    info_names: tuple[str, ...] = ()

    def init(self, x: Any, rng: Rng) -> Any:
        """Return the state of a chain that starts at x."""
        raise TypeError(f"{type(self).__name__} does not define init")

    def step(self, state: Any, rng: Rng) -> tuple[Any, tuple[float, ...]]:
        """Return the next state, and numbers about the step in the order of `info_names`."""
        raise TypeError(f"{type(self).__name__} does not define step")

    def draw(self, state: Any) -> Array:
        """Return the state's place as one flat vector, all variables in order."""
        raise TypeError(f"{type(self).__name__} does not define draw")

    def template(self) -> Any:
        """Return a state of the right form, whatever its numbers: `resume` fills in those of a file."""
        raise DataError(f"{self.name}: chains of this sampler can be resumed in memory only.")

    def advance(self, state: Any, rng: Rng, draws: Array, infos: Array, flag: StopFlag) -> Any:
        """Take len(draws) steps, writing each draw and what is told about it; return the last state.

        When the flag is raised, return early: what was written is dropped then.
        """
        for i in range(len(draws)):
            if flag.raised:
                break
            state, info = self.step(state, rng)
            draws[i] = self.draw(state)
            infos[i] = info
        return state


class FreeSampler(Sampler):
    """A sampler whose kernel walks in free coordinates; draws are the natural parameters of its `target`."""

    target: Target

    def step(self, state: Any, rng: Rng) -> tuple[Any, tuple[float, ...]]:
        """Take one step."""
        free = np.empty((1, self.target.dimension))
        infos = np.empty((1, len(self.info_names)))
        state = self._advance(state, rng, free, infos, StopFlag())
        return state, tuple(infos[0].tolist())

    def advance(self, state: Any, rng: Rng, draws: Array, infos: Array, flag: StopFlag) -> Any:
        """Take as many steps as there are rows of `draws`, which hold the natural parameters afterwards."""
        if self.target.parameters is None:
            return self._advance(state, rng, draws, infos, flag)
        free = np.empty((len(draws), self.target.dimension))
        state = self._advance(state, rng, free, infos, flag)
        if not flag.raised:
            draws[:] = self.target.natural(free)
        return state

    def _advance(self, state: Any, rng: Rng, free: Array, infos: Array, flag: StopFlag) -> Any:
        """Take the steps; write where they end, in free coordinates, and what is told about them."""
        raise NotImplementedError


def flatten(state: Any, path: str = "state") -> dict[str, NDArray[Any]]:
    """Return the arrays of a state by their paths: what a file stores of it."""
    if isinstance(state, tuple):
        names = getattr(state, "_fields", range(len(state)))
        return {
            k: v for name, part in zip(names, state, strict=True) for k, v in flatten(part, f"{path}.{name}").items()
        }
    if isinstance(state, dict):
        return {k: v for name, part in state.items() for k, v in flatten(part, f"{path}.{name}").items()}
    array = np.asarray(state)
    if array.dtype.kind not in "biuf":
        raise DataError(
            f"{path} is a {type(state).__name__}; a state that can be saved holds numbers and arrays alone."
        )
    return {path: array}


def unflatten(template: Any, arrays: dict[str, NDArray[Any]], path: str = "state") -> Any:
    """Return a state like the template with the arrays of `flatten` in it."""
    if isinstance(template, tuple):
        names = getattr(template, "_fields", range(len(template)))
        parts = [unflatten(part, arrays, f"{path}.{name}") for name, part in zip(names, template, strict=True)]
        return type(template)(*parts) if hasattr(template, "_fields") else tuple(parts)
    if isinstance(template, dict):
        return {name: unflatten(part, arrays, f"{path}.{name}") for name, part in template.items()}
    if path not in arrays or np.ndim(arrays[path]) != np.ndim(template):
        raise DataError(f"resume: the stored state has no {path!r} of this sampler's kind; was it another sampler?")
    value = arrays[path]
    return value.copy() if isinstance(template, np.ndarray) else type(template)(value[()])


def root_seed(owner: str, random_state: Any) -> np.random.SeedSequence:
    """Return the root of all random numbers of a run: of an integer, a generator, a seed sequence or None."""
    if isinstance(random_state, np.random.Generator):
        random_state = random_state.bit_generator.seed_seq
    if isinstance(random_state, np.random.SeedSequence):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31))
    try:
        return np.random.SeedSequence(random_state)
    except (TypeError, ValueError):
        rule = "random_state must be an integer, a Generator or None"
        raise ParameterError(f"{owner}: {rule}; got {random_state!r}.") from None


def branch_of(root: np.random.SeedSequence, branch: int) -> Rng:
    """Return a generator apart from the streams of the chains, which are the children that `spawn` makes."""
    key = (*root.spawn_key, 0x57A27, branch)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(root.entropy, spawn_key=key)))


def pack_stream(rng: Rng) -> NDArray[np.uint64]:
    """Return the state of a PCG64 generator as six words."""
    state = rng.bit_generator.state
    if state["bit_generator"] != "PCG64":
        raise DataError(f"a chain's stream must be a PCG64 generator; got {state['bit_generator']}.")
    inner = state["state"]
    words = [inner["state"] >> 64, inner["state"], inner["inc"] >> 64, inner["inc"]]
    return np.array([w % 2**64 for w in words] + [state["has_uint32"], state["uinteger"]], dtype=np.uint64)


def unpack_stream(words: NDArray[Any]) -> Rng:
    """Return the generator whose state was packed."""
    w = [int(word) for word in words]
    generator = np.random.PCG64()
    generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": (w[0] << 64) + w[1], "inc": (w[2] << 64) + w[3]},
        "has_uint32": w[4],
        "uinteger": w[5],
    }
    return np.random.Generator(generator)
