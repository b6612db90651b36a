"""What a pass over rows leaves for the next one, where the same process sums the same rows again.

A task that stays on a worker during a fit sets it (`dask_posts.py`). What is remembered may only change how long a pass
takes, never what it returns: it is gone when a worker dies, and elsewhere there is none.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_HERE = threading.local()


def part_memory() -> dict[Any, Any] | None:
    """Return what earlier passes left for the rows that are being summed; None where nothing is remembered.

    Examples
    --------
    >>> memory = {}
    >>> with remembering(memory):
    ...     part_memory()["passes"] = 1
    >>> memory, part_memory()
    ({'passes': 1}, None)
    """
    return getattr(_HERE, "memory", None)


@contextmanager
def remembering(memory: dict[Any, Any]) -> Iterator[None]:
    """Let what this thread computes remember here."""
    _HERE.memory = memory
    try:
        yield
    finally:
        _HERE.memory = None
