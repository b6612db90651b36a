"""Blocks from files: read ahead in lanes, converted and summed by all threads.

The rows are cut on the same grid as in memory, so that a sum over a file is, to the bit, the sum over the table.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator
from functools import partial
from itertools import accumulate, count, pairwise, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import DataError, DataTypeError, StopFlag, resolve_n_jobs
from ..core.jit import intrinsic, kernel
from ..core.simd import load, store_columns
from ..core.threads import Background
from .blocks import Block, reduce_loads
from .door import LARGEST_TARGET, LARGEST_WEIGHT
from .external import BadCellError, ExternalBlocks, bad_cell, has_bad_cells
from .files import Batch, Encode, Files, release_unused

_WIDTH = np.uint64(8)  # bytes of a float64
_TILE_ROWS = 256  # of the rows that are written at a time: they stay in the cache until all columns have come
_numbers_at = intrinsic("numbers_at")  #: uint64 → a pointer to the float64 at this address
_array_at = intrinsic("array_at")  #: (pointer, n) → the array of n numbers from there on

#: Turns consecutive record batches (and the number of their first row) into a block.
Convert = Callable[[list[Any], int], Block]


class FileBlocks(ExternalBlocks):
    """The rows of files as blocks.

    Parameters
    ----------
    owner : str
        Whose data they are, for messages.
    files : Files
        The table.
    columns : list of str
        What to read.
    convert : function
        Makes a block of record batches.
    names : list of str or None
        Names of the features; None if they are encoded.
    labels : str, optional
        A column of class labels.
    """

    def __init__(
        self,
        owner: str,
        files: Files,
        columns: list[str],
        convert: Convert,
        names: list[str] | None,
        labels: str | None = None,
    ) -> None:
        super().__init__(owner, names, files.width if names is None else len(names), 1)
        self.files = files
        self.columns = columns
        self.convert = convert
        self.labels = labels
        self._places: dict[int, Batch] = {}  # first row of each batch of the last sweep → where it came from
        self._starts: dict[int, int] = {}  # first row of each block, among all rows → among those of positive weight

    def reweighted(self, of_class: NDArray[np.float64]) -> FileBlocks:
        """Return the same rows, with their weights times the weight of their class."""
        sums = self.scanned()
        other = FileBlocks(
            self.owner, self.files, self.columns, partial(_reweighted, self.convert, of_class), self.names, self.labels
        )
        other.sums = sums
        other._starts = self._starts
        return other

    def targets_only(self) -> FileBlocks:
        """Return the same rows without features: of Parquet files only targets and weights are then read."""
        maker = self.convert
        if not isinstance(maker, ArrowRows):
            return self
        columns = [name for name in (maker.target, maker.weight) if name is not None]
        convert = ArrowRows(self.owner, [], maker.target, maker.weight, maker.classes)
        return FileBlocks(self.owner, self.files, columns, convert, [], self.labels)

    @property
    def has_weights(self) -> bool:
        """Whether rows may be left out because their weight is zero."""
        return not isinstance(self.convert, ArrowRows) or self.convert.weight is not None

    def _run(self, statistic: Any, merge: Any, n_jobs: int | None, flag: StopFlag | None) -> Any:
        work = partial(_sum_block, statistic, self._starts)
        join = partial(_merge_found, merge)
        threads = resolve_n_jobs(n_jobs)
        lanes = self._lanes(threads)
        try:
            heights, found = reduce_loads(self._loads(lanes), work, join, threads=threads, flag=flag)
        finally:
            for lane in lanes:
                lane.close()
            release_unused()
        if not found:
            raise DataError(f"{self.owner}: the table has no rows of positive weight. Pass at least one.")
        kept = np.cumsum([0, *(height for _, height in heights)]).tolist()
        self._starts = {start: first for (start, _), first in zip(heights, kept, strict=False)}
        return found[0]

    def _maker(self) -> Any:
        return self.convert

    def _first_block(self) -> Block:
        lanes = self._lanes(1)
        try:
            for load in self._loads(lanes):
                block = load()
                if len(block.X):
                    return block
            raise DataError(f"{self.owner}: the table has no rows of positive weight. Pass at least one.")
        finally:
            lanes[0].close()
            release_unused()

    def _lanes(self, threads: int) -> list[Lane]:
        """Return the columns in lanes, each read by a thread of its own if there are to be several threads."""
        self._places = {}
        kind = Lane if threads == 1 else LaneAhead
        # Decoding takes about as long as the sums: one lane for two threads. Every lane costs memory.
        return [kind(self._cuts(columns)) for columns in self.files.lanes(self.columns, max(1, threads // 2))]

    def _cuts(self, columns: list[str]) -> Generator[list[Any]]:
        batches = batches_for(self.owner, self.files, self.columns, self.rows, self.labels, columns)
        return cut(batches, self.rows, self._places)

    def _loads(self, lanes: list[Lane]) -> Iterator[Callable[[], Block]]:
        """Yield functions that give one block each: reading happens in the lanes, converting there."""
        for number in count():
            pieces = lanes[0].take(number)
            if pieces is None:
                break
            yield partial(self._block, pieces, lanes[1:], number)
        if number == 0:
            raise DataError(f"{self.owner}: {self.files!r} holds no rows. Pass at least one.")

    def _block(self, pieces: list[Any], others: list[Lane], number: int) -> Block:
        if others:
            pieces = side_by_side(self.owner, [pieces, *(lane.take(number) for lane in others)])
        return self.convert(pieces, number * self.rows)

    def _where(self, place: int, row: int) -> str:
        number = place + row
        starts = sorted(self._places)
        first = starts[bisect_right(starts, number) - 1]
        batch = self._places[first]
        return f"row {batch.start + number - first} of {batch.path.name}"


def _sum_block(statistic: Any, starts: dict[int, int], block: Block) -> tuple[list[tuple[int, int]], list[Any]]:
    """Return the place and the height of a block, and its sum unless it has no rows."""
    height = [(block.start, len(block.X))]
    return height, [statistic(block._replace(start=starts.get(block.start, block.start)))] if len(block.X) else []


def _merge_found(merge: Any, a: tuple[list[Any], list[Any]], b: tuple[list[Any], list[Any]]) -> Any:
    a[0].extend(b[0])
    return a[0], [merge(a[1][0], b[1][0])] if a[1] and b[1] else a[1] or b[1]


def batches_for(
    owner: str,
    files: Files,
    columns: list[str] | None,
    rows: int = 2**16,
    labels: str | None = None,
    lane: list[str] | None = None,
) -> Iterator[Batch]:
    """Yield batches of files; what is wrong with them is said in the estimator's name."""
    try:
        yield from files.batches(columns, rows, labels, lane=lane)
    except DataError as error:
        raise type(error)(f"{owner}: {error}") from error


class ArrowRows:
    """Makes blocks of numbers from record batches.

    Parameters
    ----------
    owner : str
        For messages.
    names : list of str
        The features.
    target : str or None
        The target's column; None if there is none.
    weight : str or None
        The weights' column.
    classes : array or None
        The labels, sorted, if the target is a class.
    encode : function, optional
        Makes the features of a pyarrow.Table of these columns; by default they are numbers already.
    """

    def __init__(
        self,
        owner: str,
        names: list[str],
        target: str | None,
        weight: str | None,
        classes: NDArray[Any] | None,
        encode: Encode | None = None,
    ) -> None:
        self.encode = encode
        self.missing = False  # whether NaN is let pass
        self.infinite = False  # whether infinity is let pass
        self.owner = owner
        self.names = names
        self.target = target
        self.weight = weight
        self.classes = classes
        self._code_of = None if classes is None else {label: code for code, label in enumerate(classes.tolist())}

    def __call__(self, pieces: list[Any], start: int) -> Block:
        """Return the rows of consecutive record batches; empties the list."""
        X = self._numbers(pieces) if self.encode is None else self._encoded(pieces, start)
        y: NDArray[Any] | None = None
        if self.target is not None:
            y = np.concatenate([self._targets(piece, self.target) for piece in pieces])
        weight = None
        if self.weight is not None:
            weight = np.concatenate([weights_of(self.owner, piece, self.weight) for piece in pieces])
        pieces.clear()  # the block is a copy; what it was made of need not wait until it is summed
        if self.classes is None and y is not None and self.target is not None:
            y = check_targets(self.owner, y, self.target, start)
        if weight is not None and not weight.all():
            if has_bad_cells(X, self.missing, self.infinite):
                raise bad_cell(X, start, self.missing, self.infinite)  # while rows still have their numbers
            kept = weight > 0  # a row without weight is no row
            X = X[kept]
            y = None if y is None else y[kept]
            weight = weight[kept]
        if self.classes is not None and y is not None and y.min(initial=0) < 0:
            raise DataError(f"{self.owner}: labels in {self.target!r} changed between two sweeps. Fit again.")
        return Block(X, y, weight, start)

    def _numbers(self, pieces: list[Any]) -> NDArray[np.float64]:
        X = np.empty((sum(piece.num_rows for piece in pieces), len(self.names)))
        first = 0
        for piece in pieces:
            copies: list[NDArray[np.float64]] = []  # must live until they are read
            addresses = _addresses_of(self.owner, piece, self.names, copies)
            rows_of_columns(addresses, X[first : first + piece.num_rows])
            first += piece.num_rows
        return X

    def _encoded(self, pieces: list[Any], start: int) -> NDArray[np.float64]:
        import pyarrow as pa

        tables = [pa.table([piece.column(name) for name in self.names], self.names) for piece in pieces]
        X = self.encode(pa.concat_tables(tables), start)  # type: ignore[misc]
        return np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)

    def _targets(self, piece: Any, name: str) -> NDArray[Any]:
        if self._code_of is None:
            return numbers_of(self.owner, piece, name)
        labels = piece.column(name).to_numpy(zero_copy_only=False)
        return codes_of(labels, self._code_of)


def codes_of(labels: NDArray[Any], code_of: dict[Any, int]) -> NDArray[np.int64]:
    """Return the codes of labels; −1 for those that are none, as of a class without any weight."""
    return np.fromiter(map(code_of.get, labels.tolist(), repeat(-1)), np.int64, len(labels))


def _reweighted(convert: Convert, of_class: NDArray[np.float64], pieces: list[Any], start: int) -> Block:
    """Return the block of another maker, its weights multiplied by those of the classes."""
    return reweighted_block(convert(pieces, start), of_class)


def reweighted_block(block: Block, of_class: NDArray[np.float64]) -> Block:
    """Return a block with its weights times the weight of each row's class."""
    weight = of_class[block.y]
    return block._replace(weight=weight if block.weight is None else weight * block.weight)


def _addresses_of(owner: str, piece: Any, names: list[str], copies: list[NDArray[np.float64]]) -> NDArray[np.uint64]:
    """Return where the numbers of each column begin: in Arrow's memory, or in a copy that is added to the list."""
    import pyarrow as pa

    number_type = pa.float64()
    columns = piece.by_name if isinstance(piece, _Wide) else _by_name(piece)
    addresses = np.empty(len(names), np.uint64)
    for place, name in enumerate(names):
        column = columns[name]
        if column.type == number_type and column.null_count == 0:
            addresses[place] = column.buffers()[1].address + 8 * column.offset
        else:
            copies.append(np.ascontiguousarray(numbers_of(owner, piece, name), dtype=np.float64))
            addresses[place] = copies[-1].__array_interface__["data"][0]
    return addresses


def _by_name(piece: Any) -> dict[str, Any]:
    """Return the columns of a record batch at once, which takes a third of asking for each."""
    return dict(zip(piece.schema.names, piece.columns, strict=True))


def numbers_of(owner: str, piece: Any, name: str) -> NDArray[Any]:
    """Return a column of a record batch as floating-point numbers; a missing one is NaN."""
    import pyarrow as pa

    column = piece.column(name)
    kind = column.type
    types = pa.types
    if column.null_count == 0 and (types.is_floating(kind) or types.is_integer(kind)):
        return column.to_numpy(zero_copy_only=True)  # type: ignore[no-any-return]
    import pyarrow.compute as pc

    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    if not any(test(kind) for test in tests):
        raise DataTypeError(
            f"{owner}: column {name!r} is of type {kind}, not a number. Encode it with TableModel(model), or leave "
            "it out."
        )
    if types.is_boolean(kind):
        column = pc.cast(column, pa.uint8())
    return pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def check_targets(owner: str, values: NDArray[Any], name: str, place: Any) -> NDArray[np.float64]:
    """Return targets as finite float64; `place` is where the first of them stands."""
    y = np.asarray(values, dtype=np.float64)
    if not np.isfinite(y).all():
        row = int(np.argwhere(~np.isfinite(y))[0, 0])
        raise BadCellError(place, row, name, float(y[~np.isfinite(y)][0]))
    if np.abs(y).max(initial=0.0) > LARGEST_TARGET:
        raise DataError(f"{owner}: y reaches beyond {LARGEST_TARGET:g}, where differences overflow; rescale it.")
    return y


def weights_of(owner: str, piece: Any, name: str) -> NDArray[np.float64]:
    """Return a column of weights, checked."""
    return check_weights(owner, numbers_of(owner, piece, name), name)


def check_weights(owner: str, values: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Return weights as float64: finite, not negative, in the range where their sums mean something."""
    weight = np.asarray(values, dtype=np.float64)
    sound = np.isfinite(weight) & ((weight == 0) | ((weight <= LARGEST_WEIGHT) & (weight >= 1 / LARGEST_WEIGHT)))
    if not sound.all():
        raise DataError(
            f"{owner}: sample_weight must be 0 or between 1e-100 and 1e100; column {name!r} holds "
            f"{weight[~sound][0]:g}."
        )
    return weight


# Columns of files read side by side, a block ahead of the sums, so that decoding runs beside them.
#
# A lane is some of the columns of all rows, cut on the grid of the blocks. Several lanes are read by several threads.


class Lane:
    """Some columns of all rows, in pieces on the grid, read when they are asked for."""

    def __init__(self, cuts: Generator[list[Any]]) -> None:
        self.cuts = cuts

    def take(self, number: int) -> list[Any] | None:
        """Return the record batches of a block; None after the last."""
        return next(self.cuts, None)

    def close(self) -> None:
        """Close the files."""
        self.cuts.close()


class LaneAhead(Lane):
    """A lane with a thread of its own, a block ahead; others take the blocks in whatever order.

    All that Arrow needs to decode is allocated and freed by that one thread: between threads it would leave holes.
    """

    def __init__(self, cuts: Generator[list[Any]]) -> None:
        super().__init__(cuts)
        self.changed = threading.Condition()
        self.ready: dict[int, list[Any] | None] = {}
        self.closed = False
        self.error: BaseException | None = None
        self.reader = Background(self._read, name="learnable-reader")

    def take(self, number: int) -> list[Any] | None:
        """Return the record batches of a block, once; None for the one after the last."""
        with self.changed:
            while number not in self.ready and self.error is None:
                self.changed.wait(0.1)
            if number not in self.ready and self.error is not None:
                raise self.error
            self.changed.notify_all()
            return self.ready.pop(number)

    def close(self) -> None:
        """End the thread; it closes the files."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        self.reader.wait()

    def _read(self) -> None:
        try:
            for number in count():
                with self.changed:
                    while self.ready and not self.closed:  # the next is not even begun: every block costs memory
                        self.changed.wait(0.1)
                if self.closed:
                    break
                pieces = next(self.cuts, None)
                with self.changed:
                    self.ready[number] = pieces
                    self.changed.notify_all()
                if pieces is None:
                    break
                del pieces
        except BaseException as error:  # raised again where the block is asked for
            with self.changed:
                self.error = error
                self.changed.notify_all()
        finally:
            self.cuts.close()
            release_unused()


def cut(batches: Iterator[Batch], rows: int, places: dict[int, Batch]) -> Generator[list[Any]]:
    """Yield lists of record batches of `rows` rows together, the last of fewer; note where each batch came from."""
    pieces: list[Any] = []
    held = total = 0
    for batch in batches:
        places[total] = batch._replace(rows=None)
        total += batch.rows.num_rows
        offset = 0
        while offset < batch.rows.num_rows:
            take = min(rows - held, batch.rows.num_rows - offset)
            pieces.append(batch.rows.slice(offset, take))
            held = held + take
            offset = offset + take
            if held == rows:
                yield pieces
                pieces = []
                held = 0
    if held:
        yield pieces


class _Wide:
    """Record batches of the same rows, as one of all their columns."""

    def __init__(self, parts: list[Any]) -> None:
        self.num_rows = parts[0].num_rows
        self.by_name = {name: column for part in parts for name, column in _by_name(part).items()}

    def column(self, name: str) -> Any:
        """Return a column as a pyarrow.Array."""
        return self.by_name[name]


def side_by_side(owner: str, lanes: list[list[Any] | None]) -> list[Any]:
    """Return the record batches of several lanes as wider ones; empties the lists."""
    if len({sum(piece.num_rows for piece in lane or ()) for lane in lanes}) > 1:
        raise DataError(f"{owner}: the files changed while they were read. Fit again.")
    ends = {end for lane in lanes for end in accumulate(piece.num_rows for piece in lane or ())}
    cuts = pairwise([0, *sorted(ends)])  # where a file ends; the same in all lanes, unless Arrow cuts long texts
    return [_Wide([_take(lane, stop - start) for lane in lanes]) for start, stop in cuts]


def _take(pieces: Any, rows: int) -> Any:
    """Remove the first rows from a list of record batches, the first of which has at least that many."""
    first = pieces.pop(0)
    if first.num_rows == rows:
        return first
    pieces.insert(0, first.slice(rows))
    return first.slice(0, rows)


@kernel
def rows_of_columns(addresses: NDArray[np.uint64], out: NDArray[np.float64]) -> None:
    """OUT out (m, d): the rows of a table whose columns are runs of m float64 numbers at the addresses (d,)."""
    m, d = out.shape
    flat = out.reshape(m * d)
    wide = d - d % 4
    for start in range(0, m, _TILE_ROWS):
        height = min(_TILE_ROWS, m - start)
        tall = height - height % 4
        skipped = _WIDTH * np.uint64(start)
        for j in range(0, wide, 4):
            v = _array_at(_numbers_at(addresses[j] + skipped), height)
            w = _array_at(_numbers_at(addresses[j + 1] + skipped), height)
            x = _array_at(_numbers_at(addresses[j + 2] + skipped), height)
            y = _array_at(_numbers_at(addresses[j + 3] + skipped), height)
            for i in range(0, tall, 4):
                store_columns(flat, (start + i) * d + j, d, load(v, i), load(w, i), load(x, i), load(y, i))
        for j in range(d):  # what is left: the last rows, and the last columns
            column = _array_at(_numbers_at(addresses[j] + skipped), height)
            for i in range(tall if j < wide else 0, height):
                flat[(start + i) * d + j] = column[i]
