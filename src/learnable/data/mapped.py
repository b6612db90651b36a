"""Arrays in a file that is mapped into memory: what does not fit stays on disk, and how much is resident is bounded.

The file has no name and is gone with the arrays. Its pages are taken out of this process when more than a budget of
them are resident; the operating system keeps them as long as it has memory to spare, and reads them again when not.
"""

from __future__ import annotations

import errno
import math
import mmap
import os
import sys
import tempfile
import threading
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..core import DataError
from ..core.threads import Background

#: Bytes of mapped pages that may be resident. Of 128 MB, 256 MB and 1 GB on a fit of 2M × 28 the time differed by
#: less than its noise.
RESIDENT_BYTES = 2**28
_LOOK = 0.02  # seconds between two looks: so long takes writing 200 MB


class MappedArrays:
    """Gives arrays that lie in files.

    Parameters
    ----------
    owner : str
        For messages.
    budget : int
        Bytes that may be resident.

    Examples
    --------
    >>> with MappedArrays("Example") as arrays:
    ...     x = arrays.empty((2, 3), np.float64)
    ...     x[:] = 1.0
    ...     float(x.sum())
    6.0
    """

    def __init__(self, owner: str, budget: int = RESIDENT_BYTES) -> None:
        self.owner = owner
        self.budget = budget
        self._maps: list[mmap.mmap] = []
        self._closed = threading.Event()
        self._watcher: Background[None] | None = None
        self._before = _resident()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the watch over resident pages; arrays stay valid as long as they are referenced."""
        self._closed.set()
        if self._watcher is not None:
            self._watcher.wait()
            self._watcher = None
        self._maps = []

    def empty(self, shape: Any, dtype: Any = np.float64) -> NDArray[Any]:
        """Return an array of zeros; raise DataError if the disk has no room for it."""
        size = math.prod(shape if isinstance(shape, tuple) else (shape,)) * np.dtype(dtype).itemsize
        if size == 0:
            return np.empty(shape, dtype)
        with tempfile.TemporaryFile() as file:
            try:
                _reserve(file.fileno(), size)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                    raise
                raise DataError(
                    f"{self.owner}: the folder {tempfile.gettempdir()!r} has no room for {size / 2**30:.2f} GB of "
                    "codes. Free some, or let the environment variable TMPDIR name a folder on a larger disk."
                ) from error
            mapped = mmap.mmap(file.fileno(), size)
        self._maps.append(mapped)
        if self._watcher is None and self._before is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._watcher = Background(self._watch, name="learnable-pages", daemon=True)
        return np.frombuffer(mapped, dtype=dtype).reshape(shape)

    def copy(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return a copy in a file."""
        out = self.empty(values.shape, values.dtype)
        out[...] = values
        return out

    def trim(self) -> None:
        """Take all mapped pages out of this process; what they hold is kept."""
        for mapped in self._maps:
            mapped.madvise(mmap.MADV_DONTNEED)

    def _watch(self) -> None:
        while not self._closed.wait(_LOOK):
            now = _resident()
            if now is not None and self._before is not None and now - self._before > self.budget:
                self.trim()


def _reserve(descriptor: int, size: int) -> None:
    """Give the file its size and its room: a page that cannot be written later would end the process."""
    os.truncate(descriptor, size)
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)


def _resident() -> int | None:
    """Return the bytes of files that are resident in this process; None where that is not known."""
    if not sys.platform.startswith("linux"):
        return None
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[2]) * mmap.PAGESIZE
