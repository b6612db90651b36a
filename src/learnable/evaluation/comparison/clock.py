"""One time limit for a whole comparison, shared out among what is still to do."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypedDict

import numpy as np

from ...core.errors import LearnableError
from ...core.estimator import Certificate

_LEAST_WORK: Final = 0.02  # seconds on a processor from which the pace of a machine can be told
_SLOWEST: Final = 2.5  # what waits longer waits for something else than a processor, such as a file

#: Why a model has no line: it did not even begin.
NOT_STARTED: Final = "no time was left to start it"


class OutOfTimeError(LearnableError, TimeoutError):
    """A time limit that passed before there was anything to show."""


@dataclass(frozen=True)
class Clock:
    """Counts down from a limit.

    Parameters
    ----------
    seconds : float or None
        The limit; None never ends.
    started : float
        When it began, by `time.monotonic`.
    after_stop : float or None
        Seconds in which the best model so far is judged and kept after an interruption; None: all ends at once.
    stop_at : float or None
        When that ends, in seconds since the beginning.
    pace : float
        How many seconds of the clock a second of computing takes here: more than one where others use the machine.
    room : float or None
        Seconds that were left when the race began; None before.

    Examples
    --------
    >>> from learnable.evaluation.comparison.clock import Clock
    >>> Clock(None).left(), Clock(3600.0).share(parts=4, reserve=1200.0) <= 600.0
    (None, True)
    """

    seconds: float | None = None
    started: float = field(default_factory=time.monotonic)
    after_stop: float | None = None
    stop_at: float | None = None
    pace: float = 1.0
    room: float | None = None

    @property
    def spent(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.started

    def left(self, reserve: float = 0.0) -> float | None:
        """Return how many seconds are left besides a reserve, at least zero; None without a limit."""
        ends = [end for end in (self.seconds, self.stop_at) if end is not None]
        return max(0.0, min(ends) - self.spent - reserve) if ends else None

    def stopped(self) -> Clock:
        """Return the clock after an interruption: what is done then has `after_stop` seconds."""
        return self if self.after_stop is None else replace(self, stop_at=self.spent + self.after_stop)

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
        alone = min(max(3.0, 0.03 * self.seconds), 0.3 + 0.1 * self.seconds)
        return min(self.pace * alone, 0.25 * self.seconds)

    def paced(self, seconds: float, computed: float) -> Clock:
        """Return the clock after a piece of work that took `seconds`, `computed` of them on a processor."""
        if computed < _LEAST_WORK:
            return self
        return replace(self, pace=min(max(1.0, seconds / computed), _SLOWEST))

    def reserve_for_finish(self, estimate: float) -> float:
        """Return the time to set aside for hold-out, saved model and details: an estimate, kept within bounds.

        At least 4 s (more on a busy machine) and a seventh of the limit, at most two fifths of it, and never more than
        half of what was left when the race began: a comparison without models is none. It does not shrink while the
        race goes on: a winner that is neither judged nor kept is none either.
        """
        if self.seconds is None:
            return 0.0
        wanted = min(max(estimate, 4.0 * self.pace, 0.15 * self.seconds), 0.4 * self.seconds)
        end = self.reserve_for_end()
        room = (self.left(end) or 0.0) if self.room is None else self.room
        return end + min(wanted, 0.5 * room)

    def at_the_start(self) -> Clock:
        """Return the clock when the race begins."""
        return replace(self, room=self.left(self.reserve_for_end()))


# --------------------------------------------------------------------------------------------------------------------
# Whether the clock cut a fit short, how far it came, and what helps.
#
# A model that stops when its time is up is a smaller model than the one that was asked for: a boosting of 3 rounds
# instead of 100. What it proves is true of the smaller model, so its line says that it was cut.


#: Claims about the end of an iteration: a fit that reached its tolerance is complete, whatever the clock said last.
_OF_THE_END: Final = ("closed-form", "gap", "stationarity", "ascent")
#: Where wrappers keep the models inside them.
_INSIDE: Final = ("model_", "estimator_", "estimators_", "members_")
#: How many parts were asked for, how many there are, and what a part is called.
_PARTS: Final = (
    ("max_iter", "n_iter_", "rounds"),
    ("n_estimators", "n_estimators_", "rounds"),
    ("n_estimators", "steps_", "rounds"),
    ("n_estimators", "trees_", "trees"),
    ("n_estimators", "estimators_", "rounds"),
)
#: Later rounds of a boosting are no faster than the first ones; a fifth more is for what varies.
_MORE: Final = 1.2
_SHARE_OF_RACE: Final = 0.5  # of the seconds of a comparison; the rest is for tuning, the hold-out and the report
_SHOWN: Final = 5


class Cut(TypedDict):
    """How far a fit came before its time was up."""

    done: int
    of: int | None
    unit: str


def cut_of(model: Any) -> Cut | None:
    """Return how far a fit came if the clock ended it, for a model or one inside it; None if it is complete.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import GradientBoostingRegressor
    >>> from learnable.evaluation.comparison.clock import cut_of
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> cut_of(GradientBoostingRegressor(n_estimators=3, random_state=0).fit(X, X[:, 0])) is None
    True
    """
    own = _path_cut(model)
    if own is not None:
        return own
    if getattr(model, "_told_to_stop", False):
        own = _own_cut(model)
        if own is not None:
            return own
    for name in _INSIDE:
        inside = getattr(model, name, None)
        for one in inside if isinstance(inside, list) else [inside]:
            found = cut_of(one) if hasattr(one, "get_params") else None
            if found is not None:
                return found
    return None


def _path_cut(model: Any) -> Cut | None:
    """Return how many penalties every fold was fitted with, where the time ended the search for the best one.

    The fit with the penalty chosen may be solved all the same; that it is the best of all tried is what is not known.
    """
    path = getattr(model, "mse_path_", None)
    if path is None or getattr(model, "max_seconds", None) is None:
        return None
    tried = np.isfinite(np.asarray(path)).all(axis=-1)
    return None if tried.all() else Cut(done=int(tried.sum()), of=int(tried.size), unit="penalties")


def _own_cut(model: Any) -> Cut | None:
    certificate = getattr(model, "certificate_", None)
    if isinstance(certificate, Certificate) and certificate.kind in _OF_THE_END:
        if certificate.holds:
            return None
        return Cut(done=certificate.n_iter, of=None, unit="iterations")
    for wanted, found, unit in _PARTS:
        if hasattr(model, wanted) and hasattr(model, found):
            done = _count(getattr(model, found))
            of = int(getattr(model, wanted))
            return Cut(done=done, of=of, unit=unit) if done < of else None
    done = certificate.n_iter if isinstance(certificate, Certificate) else 0
    return Cut(done=done, of=None, unit="iterations")


def _count(parts: Any) -> int:
    """Return how many parts there are: a number, a list of them, or trees in one set of arrays."""
    if isinstance(parts, (int, np.integer)):
        return int(parts)
    return int(parts.n_trees) if hasattr(parts, "n_trees") else len(parts)


def earliest(cuts: Sequence[Cut | None]) -> Cut | None:
    """Return the cut of the fold that came least far; None if every fold is complete."""
    found = [cut for cut in cuts if cut is not None]
    return min(found, key=lambda cut: cut["done"] / (cut["of"] or 1), default=None)


def cut_sentence(cut: Mapping[str, Any]) -> str:
    """Say how far a fit came, in a few words.

    Examples
    --------
    >>> from learnable.evaluation.comparison.clock import cut_sentence
    >>> cut_sentence({"done": 1, "of": 100, "unit": "rounds"})
    'cut by its share of time after 1 of 100 rounds'
    """
    return f"cut by its share of time after {_how_far(cut)}"


def _how_far(cut: Mapping[str, Any]) -> str:
    total = "" if cut["of"] is None else f" of {cut['of']}"
    unit = cut["unit"].removesuffix("s") if cut["done"] == 1 and cut["of"] is None else cut["unit"]
    return f"{cut['done']}{total} {unit}"


def seconds_for_all(rows: Sequence[Any], seconds: float) -> int | None:
    """Return the limit of a comparison in which the lines that were cut would be complete, by what their fits took.

    None where it is not known how much of a fit is missing.
    """
    missing = 0.0
    for row in rows:
        cut = row["cut"]
        if not cut["of"] or not cut["done"] or row["fit_seconds"] is None:
            return None
        missing += len(row["scores"]) * row["fit_seconds"] * (_MORE * cut["of"] / cut["done"] - 1.0)
    return _round_up(seconds + missing / _SHARE_OF_RACE)


def cut_notes(rows: Sequence[Any], seconds: float | None) -> list[str]:
    """Return one sentence on the ranked lines whose fits the clock cut, and one where a line that was cut leads."""
    found = [row for row in rows if row["cut"] is not None and row["status"] == "ok"]
    if not found:
        return []
    wanted = None if seconds is None else seconds_for_all(found, seconds)
    more = "a larger --seconds" if wanted is None else f"--seconds {wanted}"
    first = found[0]
    if len(found) == 1:
        place = "leads all the same" if first["rank"] == 1 else "is ranked by what it had by then"
        remedy = f"give {more}, or race it alone with -m {first['model']}"
        return [f"{first['name']} was {cut_sentence(first['cut'])} and {place}; {remedy}."]
    shown = [f"{row['name']} after {_how_far(row['cut'])}" for row in found[:_SHOWN]]
    others = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    leads = f" {first['name']} leads all the same." if first["rank"] == 1 else ""
    return [
        f"{len(found)} models were cut by their share of time and are ranked by what they had by then: "
        f"{', '.join(shown)}{others}; give {more}, or race one alone with -m {first['model']}.{leads}"
    ]


def _round_up(seconds: float) -> int:
    """Return a time with one digit, not below the one given."""
    size = 10 ** max(0, len(str(int(seconds))) - 1)
    return int(-(-seconds // size) * size)


def came_further(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether a second try is complete, or was cut later than the first."""
    if one["cut"] is None or other["cut"] is None:
        return one["cut"] is None
    return bool(one["cut"]["done"] > other["cut"]["done"])


def cut_early(row: Mapping[str, Any]) -> bool:
    """Tell whether the clock ended a fit before half of its rounds: its score says little of what it can do."""
    cut = row["cut"]
    return cut is not None and bool(cut["of"]) and 2 * cut["done"] < cut["of"]


def part_missing(row: Mapping[str, Any], n_folds: int) -> float:
    """Return how many times as long as it had a model would have taken."""
    folds = n_folds / max(1, len(row["scores"]))
    cut = row["cut"]
    rounds = 1.0
    if cut is not None:
        rounds = cut["of"] / max(1, cut["done"]) if cut["of"] else 3.0
    return float(max(folds, rounds))
