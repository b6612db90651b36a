"""Parts of a table that lie in several places and add up what they find.

Everybody who has a part runs the same program on it and calls the same functions in the same order; what they return
is the same for all. Integers are added, so that the order does not matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class World:
    """A world of one: what this process has is all there is.

    Attributes
    ----------
    rank, size : int
        Number of this part, and how many there are.
    """

    rank = 0
    size = 1

    def sum(self, x: Ints) -> Ints:
        """Return the sums over all parts, entry by entry."""
        return x

    def most(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the largest entries of all parts."""
        return x

    def sum_at_root(self, x: NDArray[Any]) -> NDArray[Any] | None:
        """Return the sums in part 0, in the order of the parts; None in the others."""
        return x

    def from_root(self, x: Ints) -> Ints:
        """Return what part 0 has; the others pass an array of the same type and length."""
        return x


ALONE = World()
