"""Sources of examples for boosting by filtering: a function that returns rows, or rows drawn from a table.

A source counts its calls and stops when they are spent. `draw` returns a batch, `opinions` what a weak learner says of
it. Rows of a table are drawn by number, so that each learner judges each row once, however often it is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.errors import DataError
from ..core.run import Run
from ..data.arrays import sound_csr

Array = NDArray[np.float64]
Codes = NDArray[np.int64]


class Batch(NamedTuple):
    """Examples."""

    rows: Any  #: row numbers of the table, or the rows themselves
    y: Codes  #: class codes 0 and 1

    def take(self, which: Any) -> Batch:
        """Return some of the examples."""
        return Batch(self.rows[which], self.y[which])


class Examples:
    """What both sources share: a count, a limit, and what learners say."""

    def __init__(self, rng: np.random.Generator, max_calls: int, run: Run) -> None:
        self.rng, self.max_calls, self.run = rng, max_calls, run
        self.n_calls = 0
        self.learners: list[Any] = []
        #: Set by the model: (learner, X) -> class codes.
        self.says: Callable[[Any, Any], Codes]

    @property
    def spent(self) -> bool:
        """Whether no more examples may be drawn."""
        return self.n_calls >= self.max_calls or self.run.should_stop()

    def draw(self, count: int) -> Batch:
        """Return `count` examples."""
        self.n_calls += count
        return self._draw(count)

    def add(self, learner: Any) -> int:
        """Remember a weak learner; return its number."""
        self.learners.append(learner)
        return len(self.learners) - 1

    def chances(self) -> Array | None:
        """Return the distribution over the rows of a table; None if it is not known."""
        return None

    def whole(self) -> Batch:
        """Return all rows of a table."""
        raise NotImplementedError

    def _draw(self, count: int) -> Batch:
        raise NotImplementedError

    def table(self, batch: Batch) -> Any:
        """Return the rows of a batch as a table."""
        raise NotImplementedError

    def opinion_of(self, number: int, batch: Batch) -> Codes:
        """Return the classes that weak learner `number` names."""
        raise NotImplementedError


class TableExamples(Examples):
    """Rows of a table, drawn with replacement in proportion to their weights."""

    def __init__(
        self,
        X: Any,
        y: Codes,
        weight: Array | None,
        rng: np.random.Generator,
        max_calls: int,
        run: Run,
    ) -> None:
        super().__init__(rng, max_calls, run)
        self.X, self.y, self.weight = X, y, weight
        self._below = None if weight is None else np.cumsum(weight / weight.sum())
        self._opinions: list[NDArray[np.int8]] = []
        self._all = np.arange(len(y))

    def chances(self) -> Array:
        """Return the distribution D over the rows."""
        n = len(self.y)
        return np.full(n, 1.0 / n) if self.weight is None else self.weight / self.weight.sum()

    def whole(self) -> Batch:
        """Return all rows."""
        return Batch(self._all, self.y)

    def add(self, learner: Any) -> int:
        """Remember a weak learner and what it says of all rows."""
        self._opinions.append(self.says(learner, self.X).astype(np.int8))
        return super().add(learner)

    def opinion(self, number: int) -> Codes:
        """Return what weak learner `number` says of the table."""
        return self._opinions[number].astype(np.int64)

    def opinion_of(self, number: int, batch: Batch) -> Codes:
        """Return the classes that weak learner `number` names."""
        return self._opinions[number][batch.rows].astype(np.int64)

    def table(self, batch: Batch) -> Any:
        """Return the rows of a batch as a table."""
        return self.X[batch.rows]

    def _draw(self, count: int) -> Batch:
        n = len(self.y)
        if self._below is None:
            rows = self.rng.integers(n, size=count)
        else:
            rows = np.minimum(np.searchsorted(self._below, self.rng.random(count), side="right"), n - 1)
        return Batch(rows, self.y[rows])


class OracleExamples(Examples):
    """Examples from a function of the user: `oracle(m)` returns m rows and their labels."""

    def __init__(
        self,
        oracle: Callable[[int], tuple[Any, Any]],
        classes: NDArray[Any],
        rng: np.random.Generator,
        max_calls: int,
        run: Run,
    ) -> None:
        super().__init__(rng, max_calls, run)
        self.oracle, self.classes = oracle, classes
        self.n_columns = -1

    def opinion_of(self, number: int, batch: Batch) -> Codes:
        """Return the classes that weak learner `number` names."""
        return self.says(self.learners[number], batch.rows)

    def table(self, batch: Batch) -> Any:
        """Return the rows of a batch as a table."""
        return batch.rows

    def _draw(self, count: int) -> Batch:
        X, y = self.oracle(count)
        X = sound_csr("BoostByMajority", X) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        y = np.asarray(y)
        if X.ndim != 2 or X.shape[0] != count or y.shape != (count,):
            raise DataError(
                f"BoostByMajority: oracle({count}) must return {count} rows and {count} labels, got arrays of shapes "
                f"{X.shape} and {y.shape}."
            )
        self.n_columns = X.shape[1] if self.n_columns < 0 else self.n_columns
        if X.shape[1] != self.n_columns:
            raise DataError(f"BoostByMajority: the oracle gave {self.n_columns} columns before, now {X.shape[1]}.")
        if not np.isfinite(X.data if sp.issparse(X) else X).all():
            raise DataError("BoostByMajority: the oracle gave NaN or infinity; the weak learners need finite numbers.")
        codes = np.searchsorted(self.classes, y).clip(max=1)
        if not (self.classes[codes] == y).all():
            stranger = y[self.classes[codes] != y][0]
            raise DataError(f"BoostByMajority: the oracle gave the label {stranger!r}, which is not one of classes.")
        return Batch(X, codes.astype(np.int64))
