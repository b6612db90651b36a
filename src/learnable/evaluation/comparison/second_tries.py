"""A second try for models that the clock cut, stopped or left behind, with the time that the others left over."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from .candidates import stops_early
from .clock import Clock, came_further, cut_early, part_missing
from .record import Row, new_row
from .screening import LEAST_SHARE

if TYPE_CHECKING:
    from .candidates import Candidate
    from .measures import Measure
    from .screening import Screening

_PROMISE: Final = 0.9  # share of the best line's gain over the baseline from which a line is worth more time
_WORTH_ANOTHER_TRY: Final = 1.5  # a model that was cut runs again if it can have so many times its first share
_WORTH_STARTING: Final = 0.3  # seconds: with less, a process is hardly there
_WORTH_BEGINNING: Final = 0.1  # of what a model needs that can stop early: with less it would be a shadow of itself
_SHARE_OF_ONE_BEHIND: Final = 0.7  # of the time left, for a model that screening had left behind
_SHARE_OF_ANOTHER_TRY: Final = 0.5  # of the time left, that of tuning included


class SecondTries:
    """The part of a comparison that knows what is worth more time."""

    clock: Clock
    rows: list[Row]
    measure: Measure
    screening: Screening
    splits: list[Any]
    given_seconds: dict[str, float | None]

    def enter(self, candidate: Candidate, row: Row, position: int, limit: float | None) -> None:
        """Cross-validate one candidate and fill its line."""
        raise NotImplementedError

    def candidate(self, name: str) -> Candidate:
        """Return the candidate of a line."""
        raise NotImplementedError

    def seconds_to_finish(self) -> float:
        """Estimate what judging and keeping the slowest of the best would take."""
        raise NotImplementedError

    def try_again(self, *, everyone: bool = False, slower: float = 1.0) -> None:
        """Give models that the clock cut or stopped what time the others left, the most promising first.

        A fit that was cut in its first half says little, so it counts as promising too; `everyone` runs again, where
        time is left that nothing else needs. `slower`: how many times as long as the best models what is kept may take.
        """
        if self.clock.seconds is None:
            return
        sign = -1.0 if self.measure.greater_is_better else 1.0
        if everyone or not self.has_a_model():
            self.race_left_behind(slower)
        unfinished = [row for row in self.rows if row["cut"] is not None or row["status"] == "timeout"]
        chosen = [row for row in unfinished if everyone or self.is_promising(row) or cut_early(row)]

        def place(row: Row) -> tuple[bool, bool, float]:
            return not self.is_promising(row), row["mean"] is None, sign * (row["mean"] or 0.0)

        for row in sorted(chosen, key=place):
            left = self.left_for_models(slower)
            before = self.given_seconds.get(row["name"])
            if left is None:
                continue
            share = _SHARE_OF_ANOTHER_TRY if self.has_a_model() else 1.0
            if before is None:  # it was never started
                limit = min(share * left, LEAST_SHARE)
                if limit < _WORTH_STARTING:
                    continue
            else:
                limit = min(share * left, 2.0 * before * part_missing(row, len(self.splits)))
                if limit < _WORTH_ANOTHER_TRY * before:
                    continue
            line = new_row(row["name"], row["model"], row["parameters"], baseline=row["baseline"])
            self.enter(self.candidate(row["name"]), line, self.rows.index(row), limit)
            if line["status"] == "ok" and (row["status"] != "ok" or came_further(line, row)):
                self.rows[self.rows.index(row)] = line

    def left_for_models(self, slower: float = 1.0) -> float | None:
        """Return the seconds that are not for the finish; as long as there is no model to finish, half of all."""
        clock = self.clock if self.has_a_model() else replace(self.clock, room=None)
        return clock.left(clock.reserve_for_finish(slower * self.seconds_to_finish()))

    def has_a_model(self) -> bool:
        """Tell whether a model is complete that is no baseline."""
        return any(row["status"] == "ok" and not row["baseline"] for row in self.rows)

    def race_left_behind(self, slower: float) -> None:
        """Let models race that screening left behind, the best first, as long as what they need is there after all.

        One that stops when it is told to gets most of the time that is left, where that is a good part of its needs.
        """
        for candidate in self.screening.in_reserve():
            row = next(row for row in self.rows if row["name"] == candidate.name)
            left = self.left_for_models(slower)
            found = self.screening.found[candidate.name]
            early = found.cut or stops_early(candidate)
            least = (_WORTH_BEGINNING if early else _WORTH_ANOTHER_TRY) * found.needs
            if row["status"] != "skipped" or left is None or left < max(LEAST_SHARE, least):
                continue
            self.enter(candidate, row, self.rows.index(row), _SHARE_OF_ONE_BEHIND * left)

    def is_promising(self, row: Row) -> bool:
        """Tell whether a line reaches most of what the best one gains over the baseline."""
        sign = 1.0 if self.measure.greater_is_better else -1.0
        known = [sign * other["mean"] for other in self.rows if other["mean"] is not None and not other["baseline"]]
        base = [sign * other["mean"] for other in self.rows if other["mean"] is not None and other["baseline"]]
        if row["mean"] is None or not known:
            return False
        best = max(known)
        floor = min([best, *base])
        return bool(sign * row["mean"] >= floor + _PROMISE * (best - floor))
