"""The hard end of a time limit: if everything else fails to be in time, the process ends, and all that hangs on it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from ..core.threads import call_later
from ..evaluation.comparison.race import remove_all

_GRACE = 0.1


@contextlib.contextmanager
def hard_limit(clock: Any) -> Iterator[None]:
    """End the process, temporary files removed, if the block is still running when the clock has run out.

    Everything that takes long runs in processes with deadlines of their own. This is for the rest: a file that takes
    longer to read than the limit allows, for example.
    """
    left = clock.left()
    if left is None:
        yield
        return
    cancel = call_later(left + _GRACE, lambda: _give_up(clock.seconds))
    try:
        yield
    finally:
        cancel()


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """Let processes that start inside hold none of this process's streams: a pipe must end when this process does."""
    sys.stdout.flush()
    saved = {descriptor: os.dup(descriptor) for descriptor in (0, 1, 2) if _is_open(descriptor)}
    nowhere = os.open(os.devnull, os.O_RDWR)
    try:
        for descriptor in saved:
            os.dup2(nowhere, descriptor)
        yield
    finally:
        os.close(nowhere)
        for descriptor, original in saved.items():
            os.dup2(original, descriptor)
            os.close(original)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _give_up(seconds: float) -> None:
    remove_all()
    with contextlib.suppress(OSError, ValueError):
        told = f"learnable: the limit of {seconds:g} s was over before there was a result to show; give more --seconds."
        print(told, file=sys.stderr, flush=True)
    os._exit(1)
