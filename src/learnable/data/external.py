"""Rows that do not lie in memory: what files and Dask have in common.

A source of blocks runs its own `map_reduce`. Its first sweep also computes the checksum of the rows, counts them and
finds NaN and infinity, so that a fit of one sweep reads the data once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core import DataError, StopFlag
from .blocks import Block, Part, Scan, grid_rows, joined_lists, merge_scans, scan_block, whole_checksum

S = TypeVar("S")

_HEAD_ROWS = 1024


class BadCellError(Exception):
    """A number that is not finite; says where it stands within its block.

    `column` is the number of a feature, or the name of the target.
    """

    def __init__(self, place: Any, row: int, column: int | str, value: float) -> None:
        super().__init__(place, row, column, value)
        self.place = place
        self.row = row
        self.column = column
        self.value = value


class Sums(NamedTuple):
    """What the first sweep learns about the table."""

    scan: Scan
    n_rows: int
    weight: float


class ExternalBlocks:
    """Base of the sources whose rows lie elsewhere; has the interface of `Blocks` as far as sums over rows go.

    Attributes
    ----------
    n_columns : int
        Number of features.
    n_targets : int
        Number of targets.
    rows : int
        Height of a block.
    """

    in_memory = False
    in_partitions = False  #: whether the workers that hold rows may keep something from one pass to the next
    sparse = False
    y_shape: tuple[int, ...] = ()  #: of one row's target
    missing = False  #: whether NaN is let pass
    infinite = False  #: whether infinity is let pass

    def __init__(self, owner: str, names: list[str] | None, n_columns: int, n_targets: int) -> None:
        self.owner = owner
        self.names = names
        self.n_columns = n_columns
        self.n_targets = n_targets
        self.rows = grid_rows(n_columns)
        self.sums: Sums | None = None
        self._head: Block | None = None

    def map_reduce(
        self,
        statistic: Callable[[Block], S],
        merge: Callable[[S, S], S],
        *,
        n_jobs: int | None = None,
        flag: StopFlag | None = None,
    ) -> S:
        """Compute `statistic` of every block and `merge` the results in order."""
        try:
            if self.sums is not None:
                return self._run(statistic, merge, n_jobs, flag)  # type: ignore[no-any-return]
            both = partial(_scanned, statistic, self.missing, self.infinite), partial(_merge_scanned, merge)
            found: tuple[S, Sums] = self._run(*both, n_jobs, flag)
        except BadCellError as error:
            raise DataError(self._say_where(error)) from None
        result, sums = found
        if sums.n_rows == 0:
            raise DataError(f"{self.owner}: the table has no rows of positive weight. Pass at least one.")
        self.sums = sums
        return result

    def expect_passes(self) -> None:
        """Say before the first pass that several will follow: what can be kept of the rows may be kept at once."""

    def let_pass(self, missing: bool, infinite: bool) -> None:
        """Say whether NaN and infinity in X are let pass."""
        self.missing = self._maker().missing = missing
        self.infinite = self._maker().infinite = infinite

    def _maker(self) -> Any:
        """Return what makes the rows, which leaves out those without weight."""
        raise NotImplementedError

    def scanned(self) -> Sums:
        """Return what the first sweep learned, with a sweep of its own if there was none yet."""
        if self.sums is None:
            self.map_reduce(_nothing, _keep_nothing)
        return self.sums  # type: ignore[return-value]

    @property
    def n_rows(self) -> int:
        """Number of rows with positive weight."""
        return self.scanned().n_rows

    def fingerprint(self, classes: NDArray[Any] | None) -> str:
        """Return the checksum of the table."""
        found = self.scanned()
        return f"{whole_checksum(found.scan, (found.n_rows, self.n_columns, self.n_targets), classes):016x}"

    def head(self) -> Block:
        """Return the first rows, enough for a provisional mean."""
        if self._head is None:
            try:
                first = self._first_block()
                if has_bad_cells(first.X, self.missing, self.infinite):
                    raise bad_cell(first.X, first.start, self.missing, self.infinite)
            except BadCellError as error:
                raise DataError(self._say_where(error)) from None
            X, y, weight = (None if c is None else c[:_HEAD_ROWS].copy() for c in first[:3])
            self._head = Block(X, y, weight, 0)
        return self._head

    def every(self, stride: int) -> Part:
        """Return every `stride`-th row: the same rows as in memory."""
        self.scanned()  # from then on blocks are numbered by the rows that are kept
        parts = self.map_reduce(partial(_thinned, stride=stride), joined_lists)
        return Part(*(None if columns[0] is None else np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def joined(self) -> Part:
        """Refuse: the rows may not fit into memory."""
        raise DataError(
            f"{self.owner}: with these settings all rows are needed in memory at once, which files and Dask do not "
            "give. Use the default settings, or read the table and pass a dataframe."
        )

    def _run(self, statistic: Any, merge: Any, n_jobs: int | None, flag: StopFlag | None) -> Any:
        raise NotImplementedError

    def _first_block(self) -> Block:
        raise NotImplementedError

    def _where(self, place: Any, row: int) -> str:
        raise NotImplementedError

    def _say_where(self, error: BadCellError) -> str:
        kind = "NaN" if np.isnan(error.value) else "infinity"
        where = self._where(error.place, error.row)
        if isinstance(error.column, str):
            return f"{self.owner}: Input y contains {kind}: {where}, column {error.column!r}. Drop such rows."
        column = f"column {error.column}" if self.names is None else f"column {self.names[error.column]!r}"
        return (
            f"{self.owner}: Input X contains {kind}: {where}, {column}. Fill or drop such rows; TableModel(model) does "
            "it for you."
        )


def _scanned(
    statistic: Callable[[Block], S], missing: bool, infinite: bool, block: Block
) -> tuple[S, Sums] | tuple[None, Sums]:
    n = block.X.shape[0]
    found = scan_block(block)
    if found.bad_rows and has_bad_cells(block.X, missing, infinite):
        raise bad_cell(block.X, block.start, missing, infinite)
    weight = float(n) if block.weight is None else float(block.weight.sum())
    return statistic(block), Sums(found, n, weight)


def has_bad_cells(X: NDArray[np.float64], missing: bool = False, infinite: bool = False) -> bool:
    """Tell whether a number of X is not finite; NaN does not count if `missing`, nor infinity if `infinite`."""
    return bool(_bad_cells(X, missing, infinite).any())


def bad_cell(X: NDArray[np.float64], place: Any, missing: bool = False, infinite: bool = False) -> BadCellError:
    """Return the error for the first number of X that `has_bad_cells` counts."""
    row, column = np.argwhere(_bad_cells(X, missing, infinite))[0].tolist()
    return BadCellError(place, row, column, float(X[row, column]))


def _bad_cells(X: NDArray[np.float64], missing: bool, infinite: bool) -> NDArray[np.bool_]:
    bad = ~np.isfinite(X)
    if missing:
        bad &= ~np.isnan(X)
    if infinite:
        bad &= ~np.isinf(X)
    return bad


def _merge_scanned(merge: Callable[[S, S], S], a: tuple[S, Sums], b: tuple[S, Sums]) -> tuple[S, Sums]:
    p = a[1]
    q = b[1]
    return merge(a[0], b[0]), Sums(merge_scans(p.scan, q.scan), p.n_rows + q.n_rows, p.weight + q.weight)


def _nothing(block: Block) -> None:
    return None


def _keep_nothing(a: None, b: None) -> None:
    return None


def _thinned(block: Block, stride: int) -> list[Part]:
    rows = slice(-block.start % stride, None, stride)
    return [Part(*(None if column is None else column[rows].copy() for column in block[:3]))]
