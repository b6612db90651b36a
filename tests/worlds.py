"""Parts of a table on threads of one process, which add up what they find as workers would."""

import threading

import numpy as np

from learnable.data.any_order import World


class ThreadWorld(World):
    """One of several parts; `run` runs a function on all of them."""

    def __init__(self, rank, size, shelf, barrier):
        self.rank, self.size, self.shelf, self.barrier = rank, size, shelf, barrier

    def _share(self, x, merge):
        self.shelf[self.rank] = np.array(x)
        self.barrier.wait()
        found = merge(list(self.shelf))
        self.barrier.wait()
        return found

    def sum(self, x):
        return self._share(x, lambda all_of: sum(all_of[1:], all_of[0].copy()))

    def most(self, x):
        return self._share(x, lambda all_of: np.max(all_of, axis=0))

    def sum_at_root(self, x):
        found = self.sum(x)
        return found if self.rank == 0 else None

    def from_root(self, x):
        return self._share(np.zeros(0) if x is None else x, lambda all_of: all_of[0].copy())


def run(size, work):
    """Return work(world) of every part."""
    shelf, barrier, found, errors = [None] * size, threading.Barrier(size), [None] * size, []

    def one(rank):
        try:
            found[rank] = work(ThreadWorld(rank, size, shelf, barrier))
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        if not isinstance(error, threading.BrokenBarrierError):
            raise error
    return found
