"""Members of an ensemble fitted side by side on a Dask cluster, each by a worker that holds all rows.

The rows are joined once, and every worker that fits a member gets a copy: the workers must have room for the table. A
member is a function of the table, the seed and its number, so that the ensemble is that of the table in memory, and
whatever a dead worker had done is done again by another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from ..data import Blocks, Part, Table
from ..data.dask_blocks import DaskBlocks, Reader, current_client
from ..data.dask_tasks import RETRIES, result_of

_CHUNKS = 4  # tasks for each thread: what a dead worker costs against what a task costs
_ROOM = 2.0  # bytes that a fit needs for each byte of the table: the table itself and its sorted columns


def can_share(table: Table) -> bool:
    """Tell whether the rows lie on Dask and a cluster is there to work on them."""
    return isinstance(table.blocks, DaskBlocks) and current_client() is not None


def room_for(n_rows: int, n_columns: int) -> tuple[float, float, str]:
    """Return the bytes that a worker with all rows needs, those that the smallest worker has, and its address."""
    limits = current_client().run(_memory_limit)
    address = min(limits, key=lambda own: limits[own] or np.inf, default="")
    return _ROOM * 8.0 * n_rows * (n_columns + 2), limits.get(address) or np.inf, address


class SharedTable:
    """All rows of a Dask collection, on the workers.

    Parameters
    ----------
    owner : str
        For messages.
    table : Table
        Its blocks are partitions.
    """

    def __init__(self, owner: str, table: Table) -> None:
        import dask

        self.owner, self.client = owner, current_client()
        blocks = table.blocks
        self.n_rows = blocks.n_rows  # the sweep that checks the cells
        need, room, address = room_for(self.n_rows, blocks.n_columns)
        if need > room:
            raise DataError(
                f"{owner}: every worker has to hold all rows, {need / 2**30:.2f} GB, but {address} has "
                f"{room / 2**30:.2f} GB. Use larger workers, fewer rows, or models whose rows stay where they are: "
                "HistGradientBoosting, and forests with max_bins=255."
            )
        read = dask.delayed(_read_part, pure=False)
        parts = [read(blocks.read, part, number) for number, part in enumerate(blocks.parts)]
        self.future = self.client.compute(dask.delayed(_join_parts, pure=False)(parts, table.classes), retries=RETRIES)
        self.futures: list[Any] = []

    def chunks(self, members: Sequence[int]) -> list[list[int]]:
        """Return runs of members, some for each thread of the cluster."""
        threads = max(1, sum(self.client.nthreads().values()))
        size = max(1, -(-len(members) // (_CHUNKS * threads)))
        return [list(members[i : i + size]) for i in range(0, len(members), size)]

    def map(self, work: Callable[..., Any], items: Sequence[Any]) -> Iterator[Any]:
        """Yield work(table, item) in the order of the items."""
        self.futures = [self.client.submit(work, self.future, item, pure=False, retries=RETRIES) for item in items]
        for future in self.futures:
            yield result_of(self.owner, future)

    def call(self, work: Callable[..., Any], *args: Any) -> Any:
        """Return work(table, *args), computed by a worker."""
        return result_of(self.owner, self.client.submit(work, self.future, *args, pure=False, retries=RETRIES))

    def close(self) -> None:
        """Let the workers forget the table."""
        self.client.cancel([self.future, *self.futures], force=True)


def _memory_limit(dask_worker: Any) -> int | None:
    limit = dask_worker.memory_manager.memory_limit
    return None if not limit else int(limit)


def _read_part(read: Reader, raw: Any, number: int) -> Part:
    return read(raw, number)


def _join_parts(parts: list[Part], classes: Any) -> Table:
    """Return the rows of all partitions as a table in memory."""
    filled = [part for part in parts if len(part.X)]
    X = np.concatenate([part.X for part in filled])
    y = _joined([part.y for part in filled])
    weight = _joined([part.weight for part in filled])
    if y is not None:
        y = y.astype(np.float64 if classes is None else np.int64, copy=False)
    return Table(Blocks([Part(X, y, weight)]), classes, X, y, weight)


def _joined(columns: list[Any]) -> NDArray[Any] | None:
    return None if columns[0] is None else np.concatenate(columns)
