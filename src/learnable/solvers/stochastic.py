r"""Mini-batches: every epoch the rows are shuffled and cut into exactly ⌊n/b⌋ batches of b rows.

The n − b⌊n/b⌋ < b rows that are left over sit out this epoch; the next shuffle gives them another chance. Inside a
batch the rows stand in their natural order: a mean does not depend on it, and the memory is read forwards. One batch
of all n rows is therefore the whole function, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ParameterError
from ..core.parameters import Number

Rows = NDArray[np.intp] | slice


@dataclass(frozen=True)
class Batches:
    """How the rows of an epoch are cut.

    Parameters
    ----------
    n_rows : int
        n.
    batch_size : int
        b, from 1 to n.
    shuffle : bool, default=True
        Whether each epoch has a new random order; otherwise the batches are consecutive rows, always the same.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.solvers import Batches
    >>> batches = Batches(n_rows=7, batch_size=3)
    >>> batches.per_epoch, [len(rows) for rows in batches.epoch(np.random.default_rng(0))]
    (2, [3, 3])
    """

    n_rows: int
    batch_size: int
    shuffle: bool = True

    def __post_init__(self) -> None:
        for name, high in (("n_rows", np.inf), ("batch_size", getattr(self, "n_rows", np.inf))):
            value = getattr(self, name)
            if not Number(low=1, integer=True).allows(value) or value > high:
                limit = f" and at most n_rows = {high}" if np.isfinite(high) else ""
                raise ParameterError(f"Batches: {name} must be an integer >= 1{limit}; got {value!r}.")

    @property
    def per_epoch(self) -> int:
        """⌊n/b⌋."""
        return self.n_rows // self.batch_size

    def epoch(self, generator: np.random.Generator) -> Iterator[Rows]:
        """Yield the rows of each batch of one epoch, as something that arrays can be indexed with."""
        b = self.batch_size
        if b == self.n_rows:
            yield slice(None)
        elif self.shuffle:
            yield from self.row_numbers(generator)
        else:
            yield from (slice(start, start + b) for start in range(0, b * self.per_epoch, b))

    def row_numbers(self, generator: np.random.Generator) -> NDArray[np.int64]:
        """Return the same batches of one epoch as an array (⌊n/b⌋, b) of row numbers."""
        order = generator.permutation(self.n_rows) if self.shuffle else np.arange(self.n_rows)
        return np.sort(order[: self.batch_size * self.per_epoch].reshape(-1, self.batch_size), axis=1)


def generator_of(owner: str, random_state: Any) -> np.random.Generator:
    """Return a generator; the same integer gives the same batches."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    if random_state is None or Number(low=0, integer=True).allows(random_state):
        return np.random.default_rng(random_state)
    raise ParameterError(f"{owner}: random_state must be None, an integer >= 0 or a generator; got {random_state!r}.")
