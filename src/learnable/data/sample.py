"""A sample of the rows, chosen by row number alone: every 2ᵏ-th row, with the smallest k that keeps it small.

Statistics that are no sums, such as medians, are taken from it. The rows chosen do not depend on the pieces in which
the table arrives, nor on chance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_ROWS = 2**17
_MOST_ELEMENTS = 2**24


class RowSample:
    """Every stride-th row of a table that arrives in consecutive pieces.

    The stride is the smallest power of two that leaves at most `most` rows.

    Parameters
    ----------
    most : int, default=2**17
        How many rows may be kept.

    Examples
    --------
    >>> import numpy as np
    >>> sample = RowSample(most=4)
    >>> for piece in (np.arange(3), np.arange(3, 10)):
    ...     sample.update(piece)
    >>> sample.stride, sample.rows()
    (4, array([0, 4, 8]))
    """

    def __init__(self, most: int = MOST_ROWS) -> None:
        self.most = most
        self.stride = 1
        self.n_seen = 0
        self._pieces: list[NDArray[Any]] = []

    def update(self, piece: NDArray[Any]) -> None:
        """Take note of the next rows."""
        first = self.n_seen
        self.n_seen = self.n_seen + len(piece)
        stride = stride_for(self.n_seen, self.most)
        if stride > self.stride:
            kept = self.rows()[:: stride // self.stride] if self._pieces else None
            self._pieces = [] if kept is None else [kept.copy()]
            self.stride = stride
        chosen = piece[-first % stride :: stride]
        if len(chosen):
            # A view of a few rows would keep the whole piece in memory.
            self._pieces.append(chosen if stride == 1 else chosen.copy())

    def rows(self) -> NDArray[Any]:
        """Return the rows kept, in their order."""
        if len(self._pieces) > 1:
            self._pieces = [np.concatenate(self._pieces)]
        return self._pieces[0]


def stride_for(n_rows: int, most: int = MOST_ROWS) -> int:
    """Return the smallest power of two of which at most `most` row numbers below `n_rows` are multiples.

    Examples
    --------
    >>> stride_for(1000, most=1000), stride_for(1001, most=1000)
    (1, 2)
    """
    stride = 1
    while -(-n_rows // stride) > most:
        stride *= 2
    return stride


def most_rows(n_columns: int) -> int:
    """Return how many rows of a table this wide to keep: fewer of wide tables, for the memory's sake."""
    return int(min(MOST_ROWS, max(2**10, 2 ** ((_MOST_ELEMENTS // max(1, n_columns)).bit_length() - 1))))
