"""Blocks on Dask: every partition is summed where it lies, and only sums travel.

With a `distributed.Client` the partitions are worked on by its cluster, which computes again what a dead worker held;
without one, by Dask's own threads. The sums of the partitions are merged in their order. Fits of several passes keep
the rows on the workers (`dask_kept.py`).
"""

from __future__ import annotations

import errno
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial, reduce
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, LearnableError, LostRowsError
from ..core.estimator import StopFlag
from ..core.threads import one_thread_blas
from .arrays import as_numbers
from .blocks import Block, Blocks, Part, joined_lists
from .dask_kept import KeptParts, cancel, run_on_groups
from .dask_posts import PostLostError, at_posts
from .door import encode_classes, require_target
from .external import BadCellError, ExternalBlocks, bad_cell, has_bad_cells
from .frames import listed, open_frame, read_frame, read_series
from .stream import check_targets, check_weights, codes_of, reweighted_block

_PATIENCE = 60.0  # seconds without any worker after which a cluster counts as gone
_POLL = 0.5
#: Errors by which Dask says that futures, or the connection, are no more.
_GONE = ("FutureCancelledError", "FuturesCancelledError", "CancelledError", "CommClosedError", "TimeoutError")
_GONE_REASONS = ("restart", "connection-lost", "client-closed", "connection lost")
_WHOLE = 2**62  # rows of a block: more than any partition has
_RETRIES = 3  # of a partition whose worker died or whose file could not be read


class Reader:
    """Makes a part of numbers from what a partition holds.

    Parameters
    ----------
    owner : str
        For messages.
    names : list of str or None
        The features of a frame; None for arrays.
    target, weight : str or None
        Columns of the frame that are the target and the weights.
    classes : array or None
        The labels, if the target is a class.
    """

    def __init__(
        self,
        owner: str,
        names: list[str] | None,
        target: str | None,
        weight: str | None,
        classes: NDArray[Any] | None = None,
    ) -> None:
        self.owner = owner
        self.names = names
        self.target = target
        self.weight = weight
        self.classes = classes
        self.missing = False  # whether NaN is let pass
        self.infinite = False  # whether infinity is let pass
        self.prepare: Callable[[Any], Any] | None = None  # makes numbers of the features, where they are none

    def __call__(self, raw: tuple[Any, Any, Any], number: int) -> Part:
        """Return the numbers of partition `number`, without rows of no weight."""
        X = self.features(raw[0], number)
        y = self.target_of(raw, number)
        weight = self._weights(raw, number)
        if y is not None and self.classes is not None:
            y = codes_of(y, {label: code for code, label in enumerate(self.classes.tolist())})
        elif y is not None:
            y = check_targets(self.owner, y, self.target or "y", (number, 0))
        for name, column in (("y", y), ("sample_weight", weight)):
            if column is not None and len(column) != len(X):
                raise DataError(
                    f"{self.owner}: partition {number} has {len(X)} rows in X but {len(column)} in {name}; they must "
                    "agree."
                )
        if weight is not None and not weight.all():
            if has_bad_cells(X, self.missing, self.infinite):
                raise bad_cell(X, (number, 0), self.missing, self.infinite)  # while rows still have their numbers
            kept = weight > 0
            X = X[kept]
            weight = weight[kept]
            y = None if y is None else y[kept]
        if y is not None and self.classes is not None and y.min(initial=0) < 0:
            raise DataError(f"{self.owner}: the labels of partition {number} changed between two sweeps. Fit again.")
        return Part(X, y, weight)

    def features(self, raw: Any, number: int) -> NDArray[np.float64]:
        """Return the features of a partition as C-contiguous float64; what came over a network may not be aligned."""
        if self.names is None:
            prepared = raw if self.prepare is None else self.prepare(np.asarray(raw))
            values = as_numbers(self.owner, np.asarray(prepared), "X")
        else:
            frame = self.select(raw, number)
            if not len(frame):
                return np.empty((0, len(self.names)))
            if self.prepare is not None:
                frame = open_frame(self.owner, self.prepare(frame.to_native()))
            values = read_frame(self.owner, frame)
            values = values.toarray() if hasattr(values, "toarray") else values
        return np.require(values, np.float64, ["C", "ALIGNED"])

    def select(self, raw: Any, number: int) -> Any:
        """Return the features of a partition as a frame."""
        frame = open_frame(self.owner, raw)
        names = self.names or []
        self._require(frame.columns, names, number)
        return frame.select(names)

    def target_of(self, raw: tuple[Any, Any, Any], number: int) -> NDArray[Any] | None:
        """Return the target or the labels of a partition, as they are."""
        return self._column(raw[0], raw[1], self.target, number)

    def labels(self, raw: tuple[Any, Any, Any], number: int) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Return the labels of a partition and the total weight of each, without those of no weight."""
        labels = self.target_of(raw, number)
        weight = self._weights(raw, number)
        labels = require_target(self.owner, labels)
        if weight is not None:
            labels = labels[weight > 0]
            weight = weight[weight > 0]
        codes, classes = encode_classes(self.owner, labels)
        return classes, np.asarray(np.bincount(codes, weight, len(classes)), dtype=np.float64)

    def _weights(self, raw: tuple[Any, Any, Any], number: int) -> NDArray[np.float64] | None:
        values = self._column(raw[0], raw[2], self.weight, number)
        return None if values is None else check_weights(self.owner, values, self.weight or "sample_weight")

    def _column(self, frame: Any, values: Any, name: str | None, number: int) -> NDArray[Any] | None:
        if name is not None:
            opened = open_frame(self.owner, frame)
            self._require(opened.columns, [name], number)
            return read_series(opened.get_column(name))
        return None if values is None else np.asarray(values)

    def _require(self, columns: list[str], names: list[str], number: int) -> None:
        missing = [name for name in names if name not in columns]
        if missing:
            raise DataError(
                f"{self.owner}: partition {number} has no column {listed(missing)}; its columns are "
                f"{listed(columns)}. All partitions must have the same columns."
            )


class DaskBlocks(ExternalBlocks):
    """The partitions of a Dask collection as a source of blocks.

    Parameters
    ----------
    parts : list of delayed
        Each gives (X, y, weight) of a partition as Dask holds it; y and weight may be None.
    read : Reader
        Makes numbers of it.
    n_columns : int
        Number of features.
    of_class : array, optional
        Weights of the classes.
    most_rows : int, optional
        How many rows there are, those of no weight among them; None where Dask does not know.
    """

    in_partitions = True

    def __init__(
        self,
        parts: list[Any],
        read: Reader,
        n_columns: int,
        of_class: NDArray[np.float64] | None = None,
        most_rows: int | None = None,
    ) -> None:
        super().__init__(read.owner, read.names, n_columns, 1)
        self.most_rows = most_rows
        self._keeps_at_once = False
        self.parts = parts
        self.read = read
        self.of_class = of_class
        self._starts = [0] * len(parts)  # first row of each partition, among those of positive weight; 0 until known
        self._head_partition = 0
        self._kept = KeptParts()

    @property
    def first_rows(self) -> list[int]:
        """Number of the first row of each partition, among those of positive weight."""
        self.scanned()
        return list(self._starts)

    def reweighted(self, of_class: NDArray[np.float64]) -> DaskBlocks:
        """Return the same rows, with their weights times the weight of their class."""
        other = DaskBlocks(self.parts, self.read, self.n_columns, of_class)
        other.sums = self.scanned()
        other._starts = self._starts
        other._kept = self._kept
        return other

    def by_partition(self) -> DaskBlocks:
        """Return the same rows with one block for each partition."""
        other = copy(self)
        other.sums = self.scanned()
        other.rows = _WHOLE
        return other

    def _run(self, statistic: Any, merge: Any, n_jobs: int | None, flag: StopFlag | None) -> Any:
        total: list[Any] = []
        heights = [0]
        for height, found in self._results(partial(_sum_part, statistic, merge, self.rows, self.of_class)):
            heights.append(height)
            total = [merge(total[0], found[0])] if total and found else total or found
        if not total:
            raise DataError(f"{self.owner}: the table has no rows of positive weight. Pass at least one.")
        self._starts = np.cumsum(heights[:-1]).tolist()
        return total[0]

    def _results(self, work: Callable[[Part, int, int], Any]) -> Iterator[Any]:
        """Yield the result of each partition, in order: of kept rows, if there are several passes and room for them."""
        client = current_client() if self.sums is not None or self._keeps_at_once else None
        if client is None or not self._keeps(client):
            yield from run_on_partitions(self.owner, partial(_read_and_sum, self.read, work), self.parts, self._starts)
            return
        with _told(self.owner, client) as gone:
            n_done = 0
            try:
                for found in at_posts(client, self._kept, work, self._starts):
                    yield found
                    n_done += 1
            except PostLostError:
                wait_for = partial(_result, client, gone=gone)
                yield from run_on_groups(client, work, self._kept, self._starts, wait_for, _RETRIES, n_done)

    def expect_passes(self) -> None:
        """Keep the rows from the first pass on, if it is known how many there are: they are then loaded once."""
        self._keeps_at_once = self.most_rows is not None

    def can_remember(self, n_bytes: float) -> bool:
        """Tell whether rows stay on the workers, with room for so many bytes that passes leave for the next ones."""
        client = current_client() if self.sums is not None else None
        return client is not None and self._keeps(client) and self._kept.has_room(n_bytes)

    def _keeps(self, client: Any) -> bool:
        n_rows = self.most_rows if self.sums is None else self.sums.n_rows
        n_bytes = 8.0 * (n_rows or 0) * (self.n_columns + 2)

        def load() -> list[Any]:
            import dask

            call = dask.delayed(_call, pure=False)
            parts = [call(self.read, part, number) for number, part in enumerate(self.parts)]
            return list(client.compute(parts, retries=_RETRIES))

        with _told(self.owner, client):
            return self._kept.keep(client, load, n_bytes)

    def each(self, statistic: Callable[[Block], Any]) -> Iterator[Any]:
        """Yield `statistic` of every block, in order, some partitions at a time."""
        self.scanned()  # from then on blocks are numbered by the rows that are kept
        work = partial(_sum_part, partial(_listed, statistic), joined_lists, self.rows, self.of_class)
        read = partial(_read_and_sum, self.read, work)
        for _, found in run_on_partitions(self.owner, read, self.parts, self._starts):
            for several in found:
                yield from several

    def _maker(self) -> Any:
        return self.read

    def _first_block(self) -> Block:
        for number, part in enumerate(self.parts):
            found = next(run_on_partitions(self.owner, partial(_head, self.read), [part], first_number=number))
            if found is not None:
                self._head_partition = number
                return found  # type: ignore[no-any-return]
        raise DataError(f"{self.owner}: the table has no rows of positive weight. Pass at least one.")

    def _where(self, place: Any, row: int) -> str:
        partition, start = place if isinstance(place, tuple) else (self._head_partition, place)
        return f"row {start + row} of partition {partition}"


def _listed(statistic: Callable[[Block], Any], block: Block) -> list[Any]:
    return [statistic(block)]


def _head(read: Reader, raw: tuple[Any, Any, Any], number: int) -> Block | None:
    part = read(tuple(None if column is None else column[:1024] for column in raw), number)  # type: ignore[arg-type]
    if not len(part.X):
        part = read(raw, number)
    return Block(*part, 0) if len(part.X) else None


def _read_and_sum(
    read: Reader, work: Callable[[Part, int, int], Any], raw: tuple[Any, Any, Any], number: int, start: int
) -> Any:
    """Return what `work` makes of the rows of one partition. Runs on a worker."""
    return work(read(raw, number), number, start)


def _sum_part(
    statistic: Any, merge: Any, rows: int, of_class: Any, part: Part, number: int, start: int
) -> tuple[int, list[Any]]:
    """Return the height of one partition and the sum over it, or nothing if it is empty. Runs on a worker."""
    if not len(part.X):
        return 0, []
    blocks = Blocks([part], rows=rows)
    numbered = (block._replace(start=block.start + start) for block in map(blocks.__getitem__, range(len(blocks))))
    with one_thread_blas():
        try:
            found = (statistic(block if of_class is None else reweighted_block(block, of_class)) for block in numbered)
            return len(part.X), [reduce(merge, found)]
        except BadCellError as error:
            raise BadCellError((number, error.place), error.row, error.column, error.value) from None


def run_on_partitions(
    owner: str,
    work: Callable[..., Any],
    parts: list[Any],
    starts: list[int] | None = None,
    first_number: int = 0,
) -> Iterator[Any]:
    """Yield `work(partition, number)` in order, computed by the current client's cluster or by Dask's threads.

    With `starts`, one for each partition, it is `work(partition, number, start)`.
    """
    import dask

    call = dask.delayed(_call, pure=False)
    extras = [()] * len(parts) if starts is None else [(start,) for start in starts]
    tasks = [
        call(work, part, number, *extra)
        for number, (part, extra) in enumerate(zip(parts, extras, strict=True), first_number)
    ]
    client = current_client()
    if client is not None:
        yield from _on_cluster(owner, client, tasks)
        return
    step = max(8, 2 * (dask.config.get("num_workers", None) or 8))
    for start in range(0, len(tasks), step):  # some at a time: their sums wait in memory
        try:
            yield from dask.compute(*tasks[start : start + step])
        except (LearnableError, BadCellError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise DataError(f"{owner}: a partition could not be computed: {_first_line(error)}") from error


def _call(work: Callable[..., Any], part: Any, number: int, *extra: int) -> Any:
    return work(part, number, *extra)


def current_client() -> Any:
    """Return the client of a cluster that is in use; None without one."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.get_client()
    except ValueError:
        return None


def _on_cluster(owner: str, client: Any, tasks: list[Any]) -> Iterator[Any]:
    futures: list[Any] = []
    waiting = iter(tasks)
    with _told(owner, client) as gone:
        try:
            # Only some partitions at a time, in order: sums that wait for their turn fill the workers' memory.
            window = 2 + 2 * sum(client.nthreads().values())
            while True:
                more = list(islice(waiting, window - len(futures))) if len(futures) <= window // 2 else []
                futures += client.compute(more, retries=_RETRIES) if more else []
                if not futures:
                    return
                yield _result(client, futures[0], gone=gone)
                del futures[0]
        finally:
            if futures:
                cancel(client, futures)


@contextmanager
def _told(owner: str, client: Any) -> Iterator[str]:
    """Say in the estimator's name what went wrong on the cluster; gives the words for a cluster that is gone."""
    gone = f"{owner}: the Dask cluster went away before the work was done. Start it again, and repeat the call."
    try:
        yield gone
    except (LearnableError, BadCellError, KeyboardInterrupt, GeneratorExit):
        raise
    except _TaskError as error:
        raise DataError(f"{owner}: a partition could not be computed: {error}") from error.__cause__
    except BaseException as error:
        kind = type(error).__name__
        if kind == "KilledWorker":
            raise DataError(
                f"{owner}: workers died again and again over one partition, most likely for want of memory; use "
                "smaller partitions or larger workers."
            ) from error
        closed = getattr(client, "status", "running") not in ("running", "connecting")
        if kind.startswith("Future") and not closed and not any(reason in str(error) for reason in _GONE_REASONS):
            raise LostRowsError(
                f"{owner}: a worker died, and Dask cannot compute again the partitions that it held, because they were "
                "sent there and have no other source. Load them again, from files for example, and repeat the call."
            ) from error
        if closed or kind in _GONE or isinstance(error, OSError):
            raise LostRowsError(gone) from error
        raise DataError(f"{owner}: a partition could not be computed: {_first_line(error)}") from error


class _TaskError(Exception):
    """An operating-system error of a task, which is not one of the connection to the cluster."""


def _result(client: Any, future: Any, gone: str) -> Any:
    """Wait for a result, and give up when the scheduler, or for long every worker, is gone."""
    deserted = None
    while True:
        try:
            return future.result(timeout=_POLL)
        except (TimeoutError, UnboundLocalError):  # the second is Dask's, of a wait that is cancelled as it times out
            if future.done():
                return future.result()  # it came in just now, or the timeout is the task's own
        except OSError as error:
            if type(error).__name__ in _GONE or getattr(future, "status", "") != "error":
                raise
            raise _TaskError(_disk_words(error)) from error
        if client.status not in ("running", "connecting"):
            raise LostRowsError(gone)
        if client.scheduler_info()["workers"]:
            deserted = None
        else:
            deserted = deserted or time.monotonic()
            if time.monotonic() - deserted > _PATIENCE:
                raise LostRowsError(gone)


def _disk_words(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "the disk of a worker is full. Free it, or give the workers another local_directory."
    return _first_line(error)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
