"""Columns of files read side by side, a block ahead of those who sum: what decoding costs then runs beside the sums.

A lane is some of the columns of all rows, cut on the grid of the blocks. Several lanes are read by several threads.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from itertools import accumulate, count, pairwise
from typing import Any

from ..core.errors import DataError
from ..core.threads import Background
from .files import Batch, release_unused


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
            held, offset = held + take, offset + take
            if held == rows:
                yield pieces
                pieces, held = [], 0
    if held:
        yield pieces


class _Wide:
    """Record batches of the same rows, as one of all their columns."""

    def __init__(self, parts: list[Any]) -> None:
        self.num_rows = parts[0].num_rows
        self._columns = {
            name: column for part in parts for name, column in zip(part.schema.names, part.columns, strict=True)
        }

    def column(self, name: str) -> Any:
        """Return a column as a pyarrow.Array."""
        return self._columns[name]


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
