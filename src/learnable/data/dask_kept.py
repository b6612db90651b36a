"""Rows that stay on the workers of a cluster, as numbers, from the second pass of a fit on.

A fit of several passes would read and convert the partitions again in each of them. From the second pass on, when their
size is known, they are kept as float64 in the memory of the workers, if they take no more than half of what is free
there. A pass is then one task for each thread of the cluster, whatever the number of partitions: it sums those
partitions that lie on its worker, one by one. The client merges the sums in the order of the partitions, so that the
result has the same bits whether rows are kept or not, and whatever the number of workers.

What a dead worker held is read again by Dask, from where the partitions come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

#: Share of the free memory of all workers that kept rows may take; the rest is for the sums and for the user's data.
_SHARE = 0.5
#: Share that they may take together with what tasks remember of them from one pass to the next.
_SHARE_WITH_MEMORY = 0.7
#: Bytes of sums that wait on the client for their turn, over all threads of the cluster.
_WAITING_BYTES = 2**27


class Group(NamedTuple):
    """Partitions that one thread of the cluster sums."""

    worker: str
    numbers: list[int]


class KeptParts:
    """The partitions of one table as futures of numbers on the workers; several sources of blocks may share them."""

    def __init__(self) -> None:
        self.futures: list[Any] | None = None  # one for each partition, once they are kept
        self.refused = False  # whether there was no room
        self._workers: dict[str, int] = {}  # threads of each worker when the groups were made
        self._groups: list[Group] = []
        self.n_bytes = 0.0
        self.free = 0.0  # bytes that the workers had when it was decided
        self.n_passes = 0  # over kept rows
        self.posts: Any = None  # tasks that stand by (`dask_posts.py`), once there are some
        self.n_lost = 0  # times that they were lost

    def keep(self, client: Any, load: Callable[[], list[Any]], n_bytes: float) -> bool:
        """Tell whether the partitions are kept; `load` starts to compute them, and returns their futures."""
        if self.futures is None and not self.refused:
            self.n_bytes = n_bytes
            self.free = free_memory(client)
            self.refused = n_bytes > _SHARE * self.free
            if not self.refused:
                self.futures = load()
        return self.futures is not None

    def has_room(self, n_bytes: float) -> bool:
        """Tell whether tasks may remember so many bytes more."""
        return self.futures is not None and self.n_bytes + n_bytes <= _SHARE_WITH_MEMORY * self.free

    def groups(self, client: Any) -> list[Group]:
        """Return which worker sums which part; made again when workers came or went."""
        futures = self.futures or []
        workers = client.nthreads()
        if workers != self._workers or not self._groups:
            from distributed import wait

            wait(futures)  # one that failed has no place; the task that asks for it raises its error
            places = client.who_has(futures)
            homes = [next(iter(sorted(places.get(future.key) or ["nowhere"]))) for future in futures]
            self._groups = share_out(homes, workers)
            self._workers = workers
        return self._groups

    def forget(self) -> None:
        """Let the partitions go."""
        self.futures = None
        self.posts = None


def share_out(homes: list[str], threads: dict[str, int]) -> list[Group]:
    """Return partitions in groups of one worker each, as many groups as the worker has threads.

    Examples
    --------
    >>> share_out(["a", "b", "a", "a"], {"a": 2, "b": 1})
    [Group(worker='a', numbers=[0, 3]), Group(worker='a', numbers=[2]), Group(worker='b', numbers=[1])]
    """
    groups = []
    for worker in sorted(set(homes)):
        mine = [number for number, home in enumerate(homes) if home == worker]
        n_threads = max(1, threads.get(worker, 1))
        groups += [Group(worker, mine[thread::n_threads]) for thread in range(min(n_threads, len(mine)))]
    return groups


def free_memory(client: Any) -> float:
    """Return the bytes that workers may still take; infinite if one of them has no limit."""
    total = 0.0
    for worker in client.scheduler_info()["workers"].values():
        limit = worker.get("memory_limit") or 0
        if not limit:
            return float("inf")
        total += max(0.0, limit - worker.get("metrics", {}).get("memory", 0))
    return total


def sum_group(work: Callable[[Any, int, int], Any], parts: list[Any], places: list[tuple[int, int]], room: int) -> Any:
    """Return the results of the first partitions of a group, until they take more than `room` bytes. On a worker."""
    from dask.sizeof import sizeof

    found: list[Any] = []
    size = 0
    for part, (number, start) in zip(parts, places, strict=True):
        found.append(work(part, number, start))
        size += sizeof(found[-1])
        if size > room:
            break
    return found


def run_on_groups(
    client: Any,
    work: Callable[[Any, int, int], Any],
    kept: KeptParts,
    starts: list[int],
    result_of: Callable[[Any], Any],
    retries: int,
    first: int = 0,
) -> Iterator[Any]:
    """Yield `work(part, number, start)` in the order of the partitions, summed by groups.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    work : function
        Of the rows of a partition, its number, and the number of its first row.
    kept : KeptParts
        The rows.
    starts : list of int
        First row of each partition.
    result_of : function
        Waits for a future.
    retries : int
        Of a task that failed.
    first : int
        Partition from which on results are wanted.
    """
    futures = kept.futures or []
    groups = kept.groups(client)
    room = _WAITING_BYTES // max(1, len(groups))

    def submit(numbers: list[int]) -> Any:
        parts = [futures[number] for number in numbers]
        places = [(number, starts[number]) for number in numbers]
        return client.submit(sum_group, work, parts, places, room, pure=False, retries=retries)

    wanted = [[number for number in group.numbers if number >= first] for group in groups]
    todo = {place: numbers for place, numbers in enumerate(wanted) if numbers}
    running = {place: submit(numbers) for place, numbers in todo.items()}
    owner_of = {number: place for place, numbers in todo.items() for number in numbers}
    waiting: dict[int, Any] = {}
    try:
        for number in range(first, len(futures)):
            place = owner_of[number]
            while number not in waiting:
                found = result_of(running.pop(place))
                waiting.update(zip(todo[place], found, strict=False))  # a worker may have answered only the first ones
                todo[place] = todo[place][len(found) :]
                if todo[place]:
                    running[place] = submit(todo[place])
            yield waiting.pop(number)
    finally:
        if running:
            cancel(client, list(running.values()))


def cancel(client: Any, futures: list[Any]) -> None:
    """Let the cluster drop what is no longer wanted."""
    try:
        client.cancel(futures, force=True)
    except Exception:  # the cluster may be gone; nothing is left to cancel then
        return
