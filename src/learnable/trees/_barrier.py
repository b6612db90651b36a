"""Threads that meet inside a kernel: an atomic counter, a short spin, then giving way; and fetching ahead.

`meeting` is an int64 array of `MEETING_SIZE`: [0] counts arrivals, [8] (another cache line) is raised when a thread
failed, and nobody may wait for it. Each thread counts its own meetings; all have come to meeting k when the counter has
reached k × threads, so that nothing has to be set back. Every waiting thread also looks at the caller's stop flag.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ..core.jit import lean_kernel

MEETING_SIZE: Final = 16
ABORT: Final = 8
_SPINS: Final = 4000  # turns before the thread gives its core to another

_give_way = types.ExternalFunction("SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32())


def _address(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array_type, index_type = signature.args[:2]
    array = context.make_array(array_type)(context, builder, args[0])
    index = context.cast(builder, args[1], index_type, types.intp)
    return cgutils.get_item_pointer(context, builder, array_type, array, [index])


def _atomic_add(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Add to array[index] (int64) at once and return what was there."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        amount = context.cast(builder, args[2], signature.args[2], types.int64)
        return builder.atomic_rmw("add", _address(context, builder, signature, args), amount, "seq_cst")

    return types.int64(array, index, value), generate


def _atomic_load(typing: Any, array: Any, index: Any) -> Any:
    """Return array[index] (int64) as other threads have written it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_address(context, builder, signature, args), "acquire", 8)

    return types.int64(array, index), generate


def _prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of array[index] (one dimension); the index may lie outside."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.bitcast(_address(context, builder, signature, args), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word]),
            "llvm.prefetch.p0i8",
        )
        builder.call(function, [pointer, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, index), generate


atomic_add: Any = intrinsic(_atomic_add)
atomic_load: Any = intrinsic(_atomic_load)
prefetch: Any = intrinsic(_prefetch)


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


def new_meeting() -> Any:
    """Return a counter for threads that have not met yet."""
    return np.zeros(MEETING_SIZE, np.int64)
