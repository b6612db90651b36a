"""Arrays that are used again and again."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Scratch(threading.local):
    """Arrays of each thread that are used again: a worker of Dask gives memory back to the system at once."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}

    def __call__(self, name: str, shape: tuple[int, int], dtype: Any) -> Array:
        """Return an array of this shape with any content."""
        size = shape[0] * shape[1]
        held = self.arrays.get(name)
        if held is None or held.size < size:
            held = np.empty(size, dtype)
            self.arrays[name] = held
        return held[:size].reshape(shape)
