"""After the race: the best families tuned, by successive halving over settings, and a blend of the finalists.

Settings are drawn from a model's search space (`learnable.core.search_spaces`) and compared on the folds of the race:
all of them on one fold (of short tables on two; on long ones with a part of the rows), the better quarter on more, and
the best one on all. The hold-out takes no part in it. Then a greedy blend of out-of-fold predictions enters as one more
model; its score on a fold uses weights that were chosen on the other folds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.estimator import Certificate
from ...core.search_spaces import SEARCH_SPACES, draw_settings
from ...meta.blend import TOLERANCE, greedy_weights
from .candidates import Candidate, blend_of, wants_dense
from .leaderboard import fill_row
from .measures import Measure, Prediction, log_loss, measure_all, ranking_measure
from .race import Outcome
from .record import Row, new_row, plain
from .splitting import cut_again
from .workspace import keep_predictions, read_rows, take_predictions, write_splits

if TYPE_CHECKING:
    from .contest import _Comparison

MOST_SETTINGS: Final = 36  # of a family, if time allows
_FEWEST_SETTINGS: Final = 3
_FEWEST_BETTER: Final = 2  # settings that go on after the first round
_FAMILIES: Final = 2
_MANY_ROWS: Final = 20_000  # from here on the first round uses a third of the rows, but
_ENOUGH_ROWS: Final = 50_000  # no more than these, which tell settings apart
_FEW_ROWS: Final = 2000  # below, one fold is too few to tell settings apart: two begin, and the others follow
_MOST_TIMES: Final = 4.0  # as long as a setting should take it may take: one alone must not use up a search
_LEAST_LIMIT: Final = 2.0  # seconds; below, starting a process is most of it
_SHARE_OF_FIRST: Final = 0.65  # the best family's part of the time for tuning
_SHARE_OF_LAST: Final = 0.6  # of the time left after the first round that all folds of one setting may take
_FINALISTS: Final = 8
_SLOWER: Final = 2.5  # times as long as the best models so far takes what is kept: more rounds, or several models
_LEAST_WEIGHT: Final = 0.03
#: Numbers (rows times classes) that the weights of a blend are chosen on: some hundred blends are tried, a millisecond
#: each, and thousands of rows tell them apart.
_NUMBERS_TO_CHOOSE: Final = 100_000
#: Measures that change with every probability; of others, such as the accuracy, many blends have the same.
_SMOOTH: Final = ("r2", "rmse", "mae", "log_loss", "auc", "average_precision")
_TIE: Final = 1e-6  # what log loss counts beside a measure that is not smooth: it decides where blends are alike


class Tuning:
    """Tunes the best families and blends the finalists of a comparison."""

    def __init__(self, comparison: _Comparison) -> None:
        self.comparison = comparison

    def run(self) -> None:
        """Add the tuned models and the blend to the comparison."""
        comparison = self.comparison
        reserve = comparison.clock.reserve_for_finish(_SLOWER * comparison.seconds_to_finish())
        families = self._families()
        for number, (candidate, row) in enumerate(families):
            left = comparison.clock.left(reserve)
            if left is not None and number + 1 < len(families) and self._search(row, _SHARE_OF_FIRST * left).settings:
                left *= _SHARE_OF_FIRST  # where a share is too little for any search, the best family has it all
            self._tune(candidate, row, left)
        comparison.try_again(everyone=True, slower=_SLOWER)
        left = comparison.clock.left(comparison.clock.reserve_for_finish(comparison.seconds_to_finish()))
        if left is None or left > 0.0:
            self._blend()

    def _families(self) -> list[tuple[Candidate, Row]]:
        """Return the best lines of the best families that have a search space, the promising ones first."""
        ranked = [row for row in self._ordered() if not row["baseline"]]
        ranked.sort(key=lambda row: not self.comparison.is_promising(row))
        found: list[tuple[Candidate, Row]] = []
        for row in ranked:
            candidate = self.comparison.candidate(row["name"])
            known = candidate.path is not None and candidate.model in SEARCH_SPACES
            if known and all(candidate.model != other.model for other, _ in found):
                found.append((candidate, row))
        return found[:_FAMILIES]

    def _ordered(self) -> list[Row]:
        """Return the complete lines, the best first."""
        sign = -1.0 if self.comparison.measure.greater_is_better else 1.0
        rows = [row for row in self.comparison.rows if row["status"] == "ok" and row["mean"] is not None]
        return sorted(rows, key=lambda row: sign * float(row["mean"] or 0.0))

    # ---- settings ----

    def _search(self, row: Row, left: float | None) -> Search:
        """Return how a family is searched in so many seconds, by what its line took.

        Drawn settings have more rounds than the usual ones: about 2.5 times the cost. All of them begin, the better
        quarter goes on, and then one goes through all folds.
        """
        folds = [str(number) for number in range(len(self.comparison.splits))]
        n_train, _ = self.comparison.mean_sizes()
        cost = 2.5 * max(0.02, (row["fit_seconds"] or 0.0) + 2 * (row["predict_seconds"] or 0.0))
        rows = int(min(n_train / 3, _ENOUGH_ROWS)) if n_train > _MANY_ROWS else None
        small = n_train < _FEW_ROWS and len(folds) > 2
        begin, rest = (folds[:2], folds[2:]) if small else (folds[:1], folds[-1:])
        settings = MOST_SETTINGS
        if left is not None:
            # A fit to some of the rows takes a little more than their share of the time.
            around = float(np.median(self.comparison.around_jobs or [0.0]))
            first = around + cost * len(begin) * (1.0 if rows is None else 0.07 + rows / n_train)
            second = around + cost * len(rest)
            room = left - cost * len(folds)
            few = int((room - _FEWEST_BETTER * second) / first)
            settings = few if few <= 4 * _FEWEST_BETTER else int(room / (first + second / 4))
            settings = min(settings, MOST_SETTINGS)
        return Search(settings if settings >= _FEWEST_SETTINGS else 0, begin, rest, rows, cost)

    def _tune(self, candidate: Candidate, row: Row, left: float | None) -> None:
        """Search one family, and add its best setting if that beats the line it came from."""
        comparison = self.comparison
        search = self._search(row, left)
        if not search.settings:
            return
        drawn = draw_settings(candidate.model, search.settings, comparison.seed)
        trials = [
            replace(candidate, name=f"{candidate.model} setting {k}", parameters=candidate.parameters | settings)
            for k, settings in enumerate(drawn)
        ]
        comparison.emit({"kind": "stage", "text": f"tuning {candidate.model}: {len(trials)} settings"})
        end = None if left is None else comparison.clock.spent + left
        row["settings_tried"] = len(trials)
        first = self._scores(trials, search.begin, search.rows, end, search.cost)
        better = [trial for trial in self._best_of(trials, first) if self._would_end(first[trial.name], search, end)]
        better = better[: max(_FEWEST_BETTER, len(trials) // 4)]
        second = self._scores(better, search.rest, None, end, search.cost)
        if search.rows is None:  # on all rows, what both rounds showed counts
            share = len(search.begin) / (len(search.begin) + len(search.rest))
            second = {name: first[name].mixed(share, shown) for name, shown in second.items()}
        best = self._best_of(better, second or first)
        if best:
            self._enter(best[0], row, [str(number) for number in range(len(comparison.splits))], end)

    def _scores(
        self, trials: list[Candidate], folds: list[str], rows: int | None, end: float | None, cost: float
    ) -> dict[str, Shown]:
        """Return what each setting that ended in time showed on some folds, by name; `cost` is that of a fold.

        What all folds of one setting take is kept back, and no setting may take many times what it should.
        """
        comparison = self.comparison
        found: dict[str, Shown] = {}
        for trial in trials:
            left = None if end is None else end - comparison.clock.spent - cost * len(comparison.splits)
            if left is not None and left <= 0.05:
                break
            limit = None if left is None else min(left, max(_LEAST_LIMIT, _MOST_TIMES * cost * len(folds)))
            outcome = comparison.score(trial, folds, limit, rows=rows)
            if outcome.status == "interrupted":
                raise KeyboardInterrupt
            if outcome.status == "ok" and all(message["cut"] is None for message in outcome.messages):
                tests = [message["test"] for message in outcome.messages]
                score = float(np.mean([test[comparison.measure.name] for test in tests]))
                surprise = float(np.mean([test.get("log_loss", math.nan) for test in tests]))
                took = float(np.mean([told["fit_seconds"] + 2 * told["predict_seconds"] for told in outcome.messages]))
                if math.isfinite(score):
                    found[trial.name] = Shown(score, surprise, took)
        return found

    def _would_end(self, shown: Shown, search: Search, end: float | None) -> bool:
        """Tell whether a setting would go through all folds on all rows in the time left: a cut model wins nothing."""
        if end is None:
            return True
        n_train, _ = self.comparison.mean_sizes()
        growth = 1.0 if search.rows is None else n_train / search.rows
        needs = shown.seconds * growth * len(self.comparison.splits)
        return needs <= _SHARE_OF_LAST * (end - self.comparison.clock.spent)

    def _best_of(self, trials: list[Candidate], shown: dict[str, Shown]) -> list[Candidate]:
        known = [trial for trial in trials if trial.name in shown]
        return [known[k] for k in order_of([shown[trial.name] for trial in known], self.comparison.measure)]

    def _enter(self, best: Candidate, row: Row, folds: list[str], end: float | None) -> None:
        """Cross-validate the best setting like every other model, and keep its line if it is the better one."""
        comparison = self.comparison
        tuned = replace(best, name=f"{best.model} (tuned)")
        limit = None if end is None else max(0.05, end - comparison.clock.spent)
        line = new_row(tuned.name, tuned.model, tuned.parameters)
        event = {"name": tuned.name, "position": len(comparison.rows), "of": len(comparison.rows) + 1, "seconds": limit}
        comparison.emit({"kind": "start"} | event)
        outcome = comparison.score(tuned, folds, limit, on_message=comparison.teller(event), keep=True)
        train, test = comparison.mean_sizes()
        fill_row(line, outcome, comparison.measure, len(folds), test / (train + test), comparison.level)
        comparison.emit({"kind": "finish", "row": line})
        if outcome.status == "interrupted":
            raise KeyboardInterrupt
        if line["status"] == "ok" and _is_better(line, row, comparison.measure):
            comparison.add(tuned, line, outcome.messages)

    # ---- the blend ----

    def _blend(self) -> None:
        """Add a greedy blend of the best models, if it uses more than one."""
        comparison = self.comparison
        rows = [row for row in self._ordered() if not row["baseline"] and row["cut"] is None]
        names = [row["name"] for row in rows][:_FINALISTS]
        folds = [str(number) for number in range(len(comparison.splits))]
        names = [name for name in names if _told(comparison, [name], folds) is not None]
        if names and (comparison.folder / "0.dense.names.json").exists():  # members of a blend see the same columns
            dense = wants_dense(comparison.candidate(names[0]))
            names = [name for name in names if wants_dense(comparison.candidate(name)) == dense]
        if len(names) < 2:
            return
        task = comparison.problem.task
        truth = _truth(comparison, folds)
        told = _told(comparison, names, folds) or []
        way, messages = self._best_way(told, truth, names, folds)
        weights = _choose(task, way, told, truth, range(len(folds)))
        if int((weights > 0).sum()) < 2:
            return
        outcome = Outcome("ok", None, messages)
        blend = blend_of(
            [comparison.candidate(n) for n, w in zip(names, weights, strict=True) if w > 0],
            weights[weights > 0].tolist(),
            task,
        )
        line = new_row(blend.name, blend.model, blend.parameters)
        train, test = comparison.mean_sizes()
        fill_row(line, outcome, comparison.measure, len(folds), test / (train + test), comparison.level)
        line["train_mean"] = None  # its members were not asked about training rows
        for fold, values in zip(folds, told, strict=True):
            keep_predictions(comparison.folder, blend.name, fold, _prediction(_mean(values, weights), task))
        comparison.emit({"kind": "finish", "row": line})
        comparison.add(blend, line, outcome.messages)
        comparison.blended = Blended(line, names, way)

    def _best_way(
        self, told: Any, truth: Any, names: list[str], folds: list[str]
    ) -> tuple[Measure, list[dict[str, Any]]]:
        """Return the measure that weights are best chosen by, and what a job would report of the blend.

        It is the one that ranks, or log loss where that one is not smooth: with few rows a choice by log loss has less
        noise in it. Which is better is told by folds that took no part in the choice.
        """
        comparison = self.comparison
        measure = comparison.measure
        ways = [measure]
        if measure.name not in _SMOOTH:
            ways.append(ranking_measure(comparison.problem.task, "log_loss"))
        sign = 1.0 if measure.greater_is_better else -1.0
        found = [(way, _messages_of_blend(comparison, way, told, truth, names, folds)) for way in ways]
        return max(found, key=lambda pair: sign * float(np.mean([fold["test"][measure.name] for fold in pair[1]])))


class Search(NamedTuple):
    """How a family is searched."""

    settings: int  #: how many are tried; none if there is no time for a few
    begin: list[str]  #: the folds that all of them are tried on
    rest: list[str]  #: the folds of the better quarter
    rows: int | None  #: training rows of the first round; None: all
    cost: float  #: seconds that one setting takes on one fold


class Blended(NamedTuple):
    """What a blend was made of; on further folds it is made anew, of what the same models predict there."""

    line: Row
    finalists: list[str]  #: the models that its weights were chosen for, those of weight zero among them
    way: Measure  #: what the weights were chosen by


class Shown(NamedTuple):
    """What a setting showed on some folds."""

    score: float  #: by the measure that ranks
    surprise: float  #: its log loss; NaN where there are no probabilities
    seconds: float = 0.0  #: of a fit and predictions on the rows it was tried on

    def mixed(self, share: float, other: Shown) -> Shown:
        """Return the mean of two, of which this one counts a share."""
        score = share * self.score + (1.0 - share) * other.score
        return Shown(score, share * self.surprise + (1.0 - share) * other.surprise, other.seconds)


def order_of(shown: Sequence[Shown], measure: Measure) -> list[int]:
    """Return the places of settings, the best first.

    The accuracy of a fold moves in steps of one row, and among settings that lie close together its order is mostly
    chance. Where the measure is not smooth, the rank by log loss counts as much as the rank by the measure.

    Examples
    --------
    >>> from learnable.evaluation.comparison.measures import ranking_measure
    >>> found = [Shown(0.81, 0.60), Shown(0.82, 0.41), Shown(0.82, 0.40)]
    >>> order_of(found, ranking_measure("binary", "accuracy"))
    [2, 1, 0]
    """
    sign = -1.0 if measure.greater_is_better else 1.0
    score = sign * np.array([one.score for one in shown])
    surprise = np.array([one.surprise for one in shown])
    if measure.name in _SMOOTH or not np.isfinite(surprise).all() or not len(shown):
        order = np.argsort(score, kind="stable")
    else:
        order = np.lexsort((score, _ranks(score) + _ranks(surprise)))
    return [int(place) for place in order]


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many values are smaller, those that are equal counted half."""
    smaller = values[:, None] > values
    alike = values[:, None] == values
    return np.asarray(smaller.sum(axis=1) + 0.5 * alike.sum(axis=1))


def _messages_of_blend(
    comparison: _Comparison, way: Measure, told: Any, truth: Any, names: list[str], folds: list[str]
) -> list[dict[str, Any]]:
    """Return what a job would report of the blend of some models; weights of a fold come from the other folds."""
    task = comparison.problem.task
    rows = {row["name"]: row for row in comparison.rows}
    certificate = plain(Certificate("closed-form", 0.0, TOLERANCE, by_construction=True).to_dict())
    messages = []
    for k, fold in enumerate(folds):
        others = [j for j in range(len(folds)) if j != k] or [k]
        weights = _choose(task, way, told, truth, others)
        used = [name for name, weight in zip(names, weights, strict=True) if weight > 0]
        measured = measure_all(task, truth[k], _prediction(_mean(told[k], weights), task))
        messages.append(
            {
                "split": fold,
                "test": measured,
                "train": measured,
                "fit_seconds": sum(rows[name]["fit_seconds"] or 0.0 for name in used),
                "predict_seconds": sum(rows[name]["predict_seconds"] or 0.0 for name in used),
                "certificate": certificate,
                "cut": None,
            }
        )
    return messages


def _truth(comparison: _Comparison, folds: list[str]) -> list[NDArray[Any]]:
    """Return the targets of the test rows of each fold."""
    y = np.load(comparison.folder / "y.npy")
    return [y[read_rows(comparison.folder, fold)[1]] for fold in folds]


def _told(comparison: _Comparison, names: list[str], folds: list[str]) -> list[list[NDArray[np.float64]]] | None:
    """Return what models predicted of the test rows, by fold and model; None if something is missing."""
    n_columns = 1 if comparison.n_classes is None else comparison.n_classes
    found: list[list[NDArray[np.float64]]] = []
    for fold in folds:
        found.append([])
        for name in names:
            values = take_predictions(comparison.folder, name, fold)
            if values is None or not _fits(values, n_columns):
                return None
            found[-1].append(values)
    return found


def _choose(task: str, measure: Measure, told: Any, truth: Any, folds: Any) -> NDArray[np.float64]:
    """Return the weights of the models by their predictions of the rows of some folds."""
    sign = -1.0 if measure.greater_is_better else 1.0
    step = max(1, sum(told[k][0].size for k in folds) // _NUMBERS_TO_CHOOSE)
    y = np.concatenate([truth[k][::step] for k in folds])
    predictions = [np.concatenate([told[k][m][::step] for k in folds]) for m in range(len(told[0]))]

    def loss(blended: NDArray[np.float64]) -> float:
        prediction = _prediction(blended, task)
        value = sign * measure.function(y, prediction)
        if measure.name in _SMOOTH:
            return value
        surprise = log_loss(y, prediction)
        return value + _TIE * surprise / (1.0 + surprise)

    weights = greedy_weights(predictions, loss)
    weights = np.where(weights < _LEAST_WEIGHT, 0.0, weights)
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def _prediction(values: NDArray[np.float64], task: str) -> Prediction:
    if task == "regression":
        return Prediction(values)
    return Prediction(values.argmax(axis=1).astype(np.int64), values)


def _mean(told: list[NDArray[np.float64]], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    total: Any = 0.0
    for weight, values in zip(weights.tolist(), told, strict=True):
        total = total + weight * values
    return np.asarray(total)


def _fits(values: NDArray[np.float64], n_columns: int) -> bool:
    """Tell whether predictions are numbers, or probabilities of all classes."""
    return values.ndim == 1 if n_columns == 1 else values.ndim == 2 and values.shape[1] == n_columns


def _is_better(one: Row, other: Row, measure: Measure) -> bool:
    if one["mean"] is None or other["mean"] is None:
        return False
    return one["mean"] > other["mean"] if measure.greater_is_better else one["mean"] < other["mean"]


# --------------------------------------------------------------------------------------------------------------------
# Further folds for the models that the first ones cannot tell apart, as long as they cost little beside the race.
#
# The rows are cut anew and the first models of the ranking are scored on the new folds, down to the last one that the
# folds cannot tell from the best; and so on until there is none, or the time is up. Models that are scored on the
# same folds stay comparable; those below keep the folds they have. A blend is made anew on the new folds, of what its
# models predict there; where it leads, all of them take part, because nothing else can be compared with it.


_MOST_REPEATS: Final = 5
_MOST_CONTENDERS: Final = 12
#: What repeats may cost, in seconds of the race, and in any case.
_SHARE_OF_RACE: Final = 1.0
_ALWAYS_SECONDS: Final = 10.0


def settle(comparison: _Comparison) -> None:
    """Score the undecided models on further folds."""
    if comparison.problem.times is not None:
        return  # time can be cut in one way only
    allowed = max(_ALWAYS_SECONDS, _SHARE_OF_RACE * comparison.seconds_of["models"])
    while comparison.repeats < _MOST_REPEATS:
        reserve = comparison.clock.reserve_for_finish(comparison.seconds_to_finish())
        left = comparison.clock.left(reserve)
        contenders = _contenders(comparison, allowed if left is None else min(allowed, left))
        if len(contenders) < 2:
            return
        spent = _repeat(comparison, contenders)
        if spent is None:
            return
        allowed -= spent


def _contenders(comparison: _Comparison, seconds: float) -> list[Row]:
    """Return the first lines, down to the last undecided one among those that the seconds are enough for.

    Where a blend leads, the models it was chosen from are among them, or there is none.
    """
    ranked = [row for row in comparison.ranked() if row["rank"] is not None]
    blended = comparison.blended
    leads = blended is not None and bool(ranked) and ranked[0] is blended.line
    needed = set(blended.finalists) if blended is not None and leads else set()
    whole = [row for row in ranked if not row.get("cut") and (blended is None or row is not blended.line)]
    most = [row for row in whole if len(row["scores"]) == len(whole[0]["scores"])][:_MOST_CONTENDERS]
    while most and most[-1]["name"] not in needed and not _pays(comparison, most, seconds):
        most.pop()
    is_open = any(row.get("verdict") == "undecided" for row in most)
    has_needed = needed <= {row["name"] for row in most}
    return most if is_open and has_needed and _cost(comparison, most) <= seconds else []


def _pays(comparison: _Comparison, contenders: list[Row], seconds: float) -> bool:
    """Tell whether the last of them is undecided, and the time is enough for all."""
    return contenders[-1].get("verdict") == "undecided" and _cost(comparison, contenders) <= seconds


def _cost(comparison: _Comparison, contenders: list[Row]) -> float:
    """Return the seconds that one more cut of the rows would take."""
    fits = sum((row["fit_seconds"] or 0.0) + 2 * (row["predict_seconds"] or 0.0) + 0.02 for row in contenders)
    return 1.3 * len(comparison.splits) * (fits + comparison.encode_seconds)


def _repeat(comparison: _Comparison, contenders: list[Row]) -> float | None:
    """Score the contenders on new folds; return the seconds it took, or None if one of them could not be."""
    number = comparison.repeats
    splits = cut_again(comparison.problem, comparison.final, comparison.folds, comparison.seed, number)
    names = [f"{number}.{fold}" for fold in range(len(splits))]
    write_splits(comparison.folder, dict(zip(names, splits, strict=True)))
    comparison.emit({"kind": "stage", "text": f"scoring {len(contenders)} models on other folds, to tell them apart"})
    left = comparison.clock.left(comparison.clock.reserve_for_finish(comparison.seconds_to_finish()))
    dense = any(wants_dense(comparison.candidate(row["name"])) for row in contenders)
    task = comparison.problem.task
    outcome = comparison.do("workspace:encode_splits", seconds=left, splits=names, task=task, dense=dense)
    comparison.seconds_of["encoding"] += outcome.seconds
    spent = outcome.seconds
    found = {}
    if outcome.status == "interrupted":
        raise KeyboardInterrupt
    if outcome.status != "ok":
        return None
    for row in contenders:
        left = comparison.clock.left(comparison.clock.reserve_for_finish(comparison.seconds_to_finish()))
        outcome = comparison.score(comparison.candidate(row["name"]), names, left, keep=comparison.blended is not None)
        spent += outcome.seconds
        if outcome.status == "interrupted":
            raise KeyboardInterrupt
        if outcome.status != "ok" or any(message.get("cut") for message in outcome.messages):
            return None
        found[row["name"]] = outcome.messages
    blended = comparison.blended
    if blended is not None and len(blended.line["scores"]) == len(contenders[0]["scores"]):
        told = _told(comparison, blended.finalists, names) if set(blended.finalists) <= set(found) else None
        if told is not None:
            truth = _truth(comparison, names)
            found[blended.line["name"]] = _messages_of_blend(
                comparison, blended.way, told, truth, blended.finalists, names
            )
            contenders = [*contenders, blended.line]
    train, test = comparison.mean_sizes()
    for row in contenders:
        messages = comparison.messages[row["name"]] = comparison.messages[row["name"]] + found[row["name"]]
        fill_row(row, Outcome("ok", None, messages), comparison.measure, len(messages), test / (train + test), 0.95)
        if blended is not None and row is blended.line:
            row["train_mean"] = None
    comparison.repeats += 1
    return spent
