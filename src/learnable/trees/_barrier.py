"""Threads that meet inside a kernel: an atomic counter, a short spin, then giving way; and fetching ahead.

`meeting` is an int64 array of `MEETING_SIZE`: [0] counts arrivals, [8] (another cache line) is raised when a thread
failed, and nobody may wait for it. Each thread counts its own meetings; all have come to meeting k when the counter has
reached k × threads, so that nothing has to be set back. Every waiting thread also looks at the caller's stop flag.
"""

from __future__ import annotations

from typing import Any, Final

from ..core.jit import intrinsic, lean_kernel
from ..core.threads import ABORT

_SPINS: Final = 4000  # turns before the thread gives its core to another

atomic_add = intrinsic("atomic_add")  #: (array, index, value) → what stood there; int64
atomic_load = intrinsic("atomic_load")  #: (array, index) → array[index] as other threads have written it; int64
prefetch = intrinsic("prefetch")  #: (array, index): ask for that cache line; the index may lie outside
_give_way = intrinsic("give_way")


@lean_kernel
def meet(meeting: Any, stop: Any, n_threads: Any, count: Any) -> bool:
    """Wait until all threads have come to their meeting number `count` (1, 2, …); False: leave, somebody stopped."""
    atomic_add(meeting, 0, 1)
    goal = n_threads * count
    turns = 0
    while atomic_load(meeting, 0) < goal:
        turns += 1
        if turns > _SPINS:
            if atomic_load(stop, 0) != 0 or atomic_load(meeting, ABORT) != 0:
                return False
            _give_way()
    return atomic_load(stop, 0) == 0 and atomic_load(meeting, ABORT) == 0
