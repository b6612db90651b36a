"""One time limit for a whole comparison, shared out among what is still to do."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Clock:
    """Counts down from a limit.

    Parameters
    ----------
    seconds : float or None
        The limit; None never ends.
    started : float
        When it began, by `time.monotonic`.

    Examples
    --------
    >>> from learnable.evaluation.comparison.clock import Clock
    >>> Clock(None).left(), Clock(3600.0).share(parts=4, reserve=1200.0) <= 600.0
    (None, True)
    """

    seconds: float | None = None
    started: float = field(default_factory=time.monotonic)

    @property
    def spent(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.started

    def left(self, reserve: float = 0.0) -> float | None:
        """Return how many seconds are left besides a reserve, at least zero; None without a limit."""
        return None if self.seconds is None else max(0.0, self.seconds - self.spent - reserve)

    def share(self, parts: int, reserve: float = 0.0) -> float | None:
        """Return an equal share of what is left for the next of `parts` things to do."""
        left = self.left(reserve)
        return None if left is None else left / max(parts, 1)

    def fits(self, seconds: float, reserve: float = 0.0) -> bool:
        """Tell whether something that takes `seconds` ends in time."""
        left = self.left(reserve)
        return left is None or left > seconds

    def reserve_for_end(self) -> float:
        """Return the time that is set aside for the caller to render and write what was found."""
        if self.seconds is None:
            return 0.0
        return min(max(3.0, 0.03 * self.seconds), 0.3 + 0.1 * self.seconds, 0.25 * self.seconds)

    def reserve_for_finish(self, estimate: float) -> float:
        """Return the time to set aside for hold-out, saved model and details: an estimate, kept within bounds.

        At least 4 s and a seventh of the limit, at most two fifths of it, and never more than half of what is left: a
        comparison without models is none.
        """
        if self.seconds is None:
            return 0.0
        wanted = min(max(estimate, 4.0, 0.15 * self.seconds), 0.4 * self.seconds)
        end = self.reserve_for_end()
        return end + min(wanted, 0.5 * (self.left(end) or 0.0))
