"""Where a table is long and time is short: which models deserve the time, by successive halving on rows.

Every model is fitted to a few thousand rows first. If all of them would end in time on all rows, they all race. If not,
the better half goes on to four times the rows, and so on; what a model needs for all rows is read off what it took.
Models that cost next to nothing stay, so that the table shows them.

Reference: K. Jamieson and A. Talwalkar, Non-stochastic best arm identification and hyperparameter optimization,
AISTATS 2016.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ...core.registry import REGISTRY
from ...core.search_spaces import SEARCH_SPACES
from .candidates import Candidate, one_of_each_first
from .clock import cut_sentence

if TYPE_CHECKING:
    from .contest import _Comparison

FIRST_ROWS: Final = 4000  # enough to tell families of models apart, and a second's work for most
_GROWTH: Final = 4
_SHARE: Final = 0.12  # of the time left that one round of screening may take
_MOST_OF_A_ROUND: Final = 0.4  # of the time left, where models do not end in their shares
LEAST_SHARE: Final = 1.0  # seconds of a model, while there are any: less is gone before a busy machine begins
_STRONG: Final = frozenset(list(SEARCH_SPACES)[:8])  # boosting and forests
_SHARE_OF_STRONG: Final = 0.15
_FILLED: Final = 0.7  # share of the time left that the models' estimated needs may fill
_CHEAP: Final = 0.01  # a model that needs less than this share is not worth leaving out
#: Seconds grow with rows to this power; kernel machines solve systems of as many unknowns as rows, of which support
#: vector machines leave many out. A hundred trees by histograms cost the same on a few rows: from 4,000 to 640,000 rows
#: seconds grew with the power 0.67, from 16,000 with 0.88.
_POWER: Final = 1.15
_POWER_OF_HISTOGRAMS: Final = 0.8
_POWER_OF_KERNELS: Final = 2.5
_POWER_OF_SUPPORT: Final = 2.0
_SUPPORT: Final = ("SVC", "SVR", "NuSVC", "NuSVR")
_HISTOGRAMS: Final = ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor")


@dataclass
class Screened:
    """What a model showed on some of the rows.

    Attributes
    ----------
    score : float or None
        Its score; None if it did not finish.
    rows : int
        Training rows it saw.
    needs : float
        Seconds that all folds on all rows would take.
    failed : bool
        Whether it failed for another reason than time.
    limit : float
        Seconds that it had, if they were not enough.
    cut : Cut or None
        How far it came, if the clock ended its fit.
    """

    score: float | None
    rows: int
    needs: float
    failed: bool = False
    limit: float = 0.0
    cut: Any = None


class Screening:
    """Successive halving on rows, before the race.

    Attributes
    ----------
    found : dict
        By the names of the models, what they showed.
    left_behind : dict
        By the names of the models, why they do not race.
    """

    def __init__(self, comparison: _Comparison) -> None:
        self.comparison = comparison
        self.found: dict[str, Screened] = {}
        self.left_behind: dict[str, str] = {}

    def is_needed(self) -> bool:
        """Tell whether there is a limit, and rows enough to begin with fewer."""
        n_train, _ = self.comparison.mean_sizes()
        return self.comparison.clock.seconds is not None and n_train >= 2 * FIRST_ROWS

    def run(self, reserve: float) -> None:
        """Screen the candidates; `reserve` seconds are not for the race."""
        clock = self.comparison.clock
        alive = [c for c in self.comparison.candidates if not c.baseline]
        n_train, _ = self.comparison.mean_sizes()
        rows = FIRST_ROWS
        while len(alive) > 1:
            alive = self._round(alive, rows, reserve)
            left = clock.left(reserve) or 0.0
            if self._needs(alive) <= _FILLED * left or rows * _GROWTH >= n_train:
                break
            alive = self._better_half(alive, left)
            rows *= _GROWTH
            if self._needs(alive) / len(self.comparison.splits) * rows / n_train > _SHARE * left:
                break  # another round would cost more than it tells
        self._fill(alive, clock.left(reserve) or 0.0)

    def share(self, candidate: Candidate, others: list[Candidate], left: float) -> float:
        """Return the seconds that a candidate gets of those left to it and others: in proportion to their needs."""
        everything = sum(self._need(other) for other in others)
        return left * self._need(candidate) / everything if everything > 0 else left / max(len(others), 1)

    def limit(self, candidate: Candidate, others: list[Candidate], left: float) -> float:
        """Return the seconds that a candidate may take of those left to it and others.

        It is its share, no less than a second, and for the families that most often win a good part of what is left:
        on a busy machine equal shares would cut them all and leave the time to weaker ones.
        """
        strong = _SHARE_OF_STRONG * left if candidate.model in _STRONG else 0.0
        return min(left, max(LEAST_SHARE, strong, self.share(candidate, others, left)))

    def _round(self, alive: list[Candidate], rows: int, reserve: float) -> list[Candidate]:
        """Try models on some rows, one of each class first; return those that there was time to try."""
        comparison = self.comparison
        comparison.emit({"kind": "stage", "text": f"trying {len(alive)} models on {rows:,} rows"})
        left = comparison.clock.left(reserve) or 0.0
        budget = _SHARE * left
        most = _MOST_OF_A_ROUND * left
        n_train, n_test = comparison.mean_sizes()
        spent = 0.0
        tried: list[Candidate] = []
        for position, candidate in enumerate(one_of_each_first(alive, lambda candidate: candidate)):
            limit = max(LEAST_SHARE, budget / (len(alive) - position))
            if tried and spent + limit > most:
                self.left_behind[candidate.name] = (
                    "left behind: there was no time to try it on fewer rows. Race it alone with "
                    f"-m {candidate.model}, or give a larger --seconds"
                )
                continue
            tried.append(candidate)
            outcome = comparison.score(candidate, ["0"], limit, rows=rows)
            spent += outcome.seconds
            budget = max(0.0, budget - outcome.seconds)
            if outcome.status == "interrupted":
                raise KeyboardInterrupt
            growth = max(1.0, n_train / rows) ** power_of(candidate)
            folds = len(comparison.splits)
            if outcome.messages:
                told = outcome.messages[0]
                # Predictions are of test rows here, and of training rows too in the race; their cost is that of rows.
                predicting = told["predict_seconds"] * (n_train + n_test) / min(4 * rows, n_test)
                needs = folds * (growth * told["fit_seconds"] * _missing_part(told["cut"]) + predicting)
                score = told["test"][comparison.measure.name]
                finite = isinstance(score, float) and math.isfinite(score)
                found = Screened(score if finite else None, rows, needs, cut=told["cut"])
                self.found[candidate.name] = found
            else:
                before = self.found.get(candidate.name, Screened(None, rows, 0.0))
                needs = max(before.needs, folds * growth * 2.0 * limit)
                failed = outcome.status == "failed"
                score = None if failed else before.score
                self.found[candidate.name] = Screened(score, before.rows, needs, failed, limit)
        return [candidate for candidate in alive if candidate in tried]

    def _better_half(self, alive: list[Candidate], left: float) -> list[Candidate]:
        """Return the better half and what is cheap, and note why the others stay behind."""
        ordered = self._by_score(alive)
        kept = ordered[: max(2, (len(ordered) + 1) // 2)]
        kept += [c for c in ordered[len(kept) :] if self._is_free(c, left)]
        self._leave([c for c in ordered if c not in kept])
        return [c for c in alive if c in kept]

    def _fill(self, alive: list[Candidate], left: float) -> None:
        """Keep the best models whose needs fit into the time left, and what is cheap.

        Where not even one fits, the one that needs the least is kept.
        """
        room = _FILLED * left
        behind = []
        for candidate in self._by_score(alive):
            if self._need(candidate) > room and not self._is_free(candidate, left):
                behind.append(candidate)
                continue
            room -= self._need(candidate)
        if len(behind) == len(alive) and behind:
            behind.remove(min(behind, key=self._need))
        self._leave(behind)

    def in_reserve(self) -> list[Candidate]:
        """Return the models that were left behind although they ended on fewer rows, the best first."""
        named = [c for c in self.comparison.candidates if c.name in self.left_behind and c.name in self.found]
        return self._by_score([c for c in named if self.found[c.name].score is not None])

    def _leave(self, behind: list[Candidate]) -> None:
        measure = self.comparison.measure
        scores = [found.score for found in self.found.values() if found.score is not None]
        best = (max if measure.greater_is_better else min)(scores, default=None)
        for candidate in behind:
            found = self.found[candidate.name]
            showed = f"{found.rows:,} rows took it more than {found.limit:.2g} s"
            if found.score is not None and best is not None:
                showed = (
                    f"{measure.label} {found.score:.4g} on {found.rows:,} rows, where the best had {best:.4g}; all "
                    f"rows would take it about {_rounded(found.needs)} s"
                )
                if found.cut:
                    showed = f"on {found.rows:,} rows it was {cut_sentence(found.cut)}"
            self.left_behind[candidate.name] = (
                f"left behind: {showed}. Race it alone with -m {candidate.model}, or give a larger --seconds"
            )

    def _by_score(self, candidates: list[Candidate]) -> list[Candidate]:
        sign = -1.0 if self.comparison.measure.greater_is_better else 1.0

        def place(candidate: Candidate) -> float:
            score = self.found[candidate.name].score
            return math.inf if score is None else sign * score

        return sorted(candidates, key=place)

    def _is_free(self, candidate: Candidate, left: float) -> bool:
        found = self.found[candidate.name]
        return found.failed or (found.score is not None and found.needs < _CHEAP * left)

    def _need(self, candidate: Candidate) -> float:
        found = self.found.get(candidate.name)
        return 0.5 if found is None else max(0.5, found.needs)

    def _needs(self, candidates: list[Candidate]) -> float:
        return sum(self._need(candidate) for candidate in candidates)


def _missing_part(cut: Any) -> float:
    """Return how many times as long a fit would take that the clock cut."""
    if cut is None:
        return 1.0
    return max(1.0, cut["of"] / max(cut["done"], 1)) if cut["of"] else 3.0


def power_of(candidate: Candidate) -> float:
    """Return the power of the rows with which the seconds of a fit grow.

    Examples
    --------
    >>> from learnable.evaluation.comparison.candidates import candidates_for
    >>> names = ("Ridge", "SVR", "KernelRidge", "HistGradientBoostingRegressor")
    >>> [power_of(candidates_for("regression", [name])[1]) for name in names]
    [1.15, 2.0, 2.5, 0.8]
    """
    if candidate.model in _HISTOGRAMS:
        return _POWER_OF_HISTOGRAMS
    entry = REGISTRY.get(candidate.model)
    if entry is None or entry.traits is None or entry.traits.family != "kernel":
        return _POWER
    return _POWER_OF_SUPPORT if candidate.model in _SUPPORT else _POWER_OF_KERNELS


def _rounded(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.2g}"
