"""After the race: the winner on the hold-out, the winner kept, and the details of the best models, as time allows."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...core.errors import ModelFileError
from ...core.model_file import writing
from .candidates import wants_dense
from .clock import cut_sentence
from .judge import Units, stretches
from .leaderboard import winner_of
from .measures import Decision, Prediction, choose_threshold
from .race import Outcome
from .record import Row, WinnerRecord
from .series import baseline_prediction
from .workspace import FINAL, GIVEN, read_rows, take_predictions

if TYPE_CHECKING:
    from .contest import _Comparison

_DETAILED_MODELS: Final = 3
_FILE: Final = "winner.safetensors"
_SHARE_OF_SIX: Final = 0.6  # of the time left, for the fits that prediction intervals take
_MORE_ROWS: Final = 1.4  # times as long as in a fold a fit takes to all rows, which are 1.56 times as many
_FEWEST_SECONDS: Final = 10.0  # for explanations, which may otherwise take as long as the race did


class Finish:
    """What happens once the models are ranked; each step is a job with a share of what time is left.

    Attributes
    ----------
    winner : WinnerRecord or None
        As the record has it.
    details : dict
        By the names of the models.
    notes : list of str
        What could not be done, and why.
    no_time : list of str
        What was not done because time ran out.
    """

    def __init__(self, comparison: _Comparison, model_file: str | os.PathLike[str] | None) -> None:
        self.comparison = comparison
        self.model_file = model_file
        self.winner: WinnerRecord | None = None
        self.details: dict[str, dict[str, Any]] = {}
        self.notes: list[str] = []
        self.no_time: list[str] = []
        self.with_intervals = True

    def announce(self, ranked: list[Row]) -> None:
        """Name the winner, of whom nothing more is known yet."""
        best = winner_of(ranked)
        if best is None:
            return
        self.winner = WinnerRecord(
            name=best["name"],
            holdout=None,
            optimism_note=optimism_note(best, None, self.comparison, ranked),
            model_file=None,
            predict_command=None,
            refitted_on=None,
            intervals=None,
        )

    def run(self, ranked: list[Row]) -> None:
        """Do everything, the most important first, and say in one sentence what there was no time for."""
        self._run(ranked)
        if self.no_time:
            *first, last = self.no_time
            them = f"{', '.join(first)} and {last}" if first else last
            self.notes.append(f"The time was too short for {them}: give more --seconds.")

    def _run(self, ranked: list[Row]) -> None:
        best = winner_of(ranked)
        if best is None or self.winner is None:
            return
        decision = self.decide(best["name"])
        self.judge(best["name"], share=0.5, baseline=best_baseline(self.comparison, ranked), decision=decision)
        self.winner["holdout"] = self.details.get(best["name"], {}).pop("holdout", None)
        self.winner["against"] = (self.winner["holdout"] or {}).pop("against", None)
        self.tell_cut("The hold-out score is that of a fit", (self.winner["holdout"] or {}).get("cut"))
        self.winner["optimism_note"] = optimism_note(best, self.winner["holdout"], self.comparison, ranked)
        self.tell_rows(best["name"], decision)
        if self.model_file is not None:
            self.keep(best["name"], None if decision is None else decision.of_second)
        if self.comparison.problem.task == "regression" and self.with_intervals:
            self.cover(best["name"])
        self.winner["as_given"] = judge_as_given(self, best["name"])
        self.explain(best["name"], decision)
        models = [row["name"] for row in ranked if row["rank"] is not None and not row["baseline"] and row is not best]
        for name in models[: _DETAILED_MODELS - 1]:
            before = len(self.no_time)
            self.judge(name, share=0.4)
            self.details.get(name, {}).pop("holdout", None)
            self.explain(name)
            if len(self.no_time) > before:
                self.no_time[before:] = [f"the details of {name}"]

    def decide(self, name: str) -> Decision | None:
        """Choose the threshold of two classes where costs are given or one is rare, by the rows of the folds alone."""
        comparison = self.comparison
        if comparison.problem.task != "binary" or not (comparison.cost or comparison.lopsided):
            return None
        folds = [str(number) for number in range(len(comparison.splits))]
        stored = [take_predictions(comparison.folder, name, fold) for fold in folds]
        if self.winner is None or any(part is None or part.ndim != 2 for part in stored):
            return None
        y = np.load(comparison.folder / "y.npy")
        truth = np.concatenate([y[read_rows(comparison.folder, fold)[1]] for fold in folds])
        found = choose_threshold(truth, np.concatenate([part for part in stored if part is not None]), comparison.cost)
        classes = comparison.problem.classes or []
        self.winner["decision"] = {
            "threshold": found.threshold,
            "positive": classes[found.positive],
            "criterion": found.criterion,
        }
        self.notes.append(
            f"It predicts {classes[found.positive]!r} from a probability of {found.threshold:.3g} on: "
            f"{found.criterion} on rows that its folds had not seen."
        )
        return found

    def judge(self, name: str, share: float, baseline: Any = None, decision: Decision | None = None) -> None:
        """Score a model on the hold-out, the winner beside a baseline and with its threshold."""
        problem = self.comparison.problem
        outcome = self.do(
            "judge:judge_candidate",
            f"the hold-out score of {name}",
            share,
            name=name,
            fits=1,
            metric=self.comparison.measure.name,
            classes=problem.classes,
            level=0.95,
            task=problem.task,
            baseline=baseline,
            units=holdout_units(self.comparison),
            decision=decision,
            cost=self.comparison.cost,
        )
        found: dict[str, Any] = {}
        for message in outcome.messages:
            found |= message.get("details", {})
            if "holdout" in message:
                found["holdout"] = message["holdout"]
        if "on" in found or "holdout" in found:
            self.details[name] = found

    def tell_rows(self, name: str, decision: Decision | None) -> None:
        """Pass on the winner's prediction for every row set aside; the record has only sums of them."""
        from .aside import Aside

        comparison = self.comparison
        said = take_predictions(comparison.folder, name, FINAL)
        if said is None:
            return
        problem = comparison.problem
        rows = comparison.final[1]
        found = Aside(
            rows=rows if problem.places is None else problem.places[rows],
            actual=problem.y[rows],
            said=said,
            classes=problem.classes,
            threshold=None if decision is None else decision.of_second,
        )
        comparison.emit({"kind": "aside", "name": name, "aside": found})

    def keep(self, name: str, threshold: float | None = None) -> None:
        """Refit the winner on all rows and move its file to where it belongs."""
        problem = self.comparison.problem
        numbers = problem.task == "regression"
        outcome: Outcome | None = None
        if not numbers or self._has_time_for_six(name):
            share = _SHARE_OF_SIX if numbers else 0.8
            outcome = self._keep(name, f"the model file of {name}", share=share, intervals=numbers, threshold=threshold)
        if numbers and (outcome is None or outcome.status == "timeout"):
            # One fit instead of six: a complete model is worth more than intervals.
            self.with_intervals = False
            if outcome is not None:
                self.no_time.pop()
            outcome = self._keep(name, f"the model file of {name}", share=0.9, intervals=False)
            if outcome.status == "ok":
                self.notes.append(
                    "Without prediction intervals in the model file: six fits take too long; give more --seconds."
                )
        if outcome is None or outcome.status != "ok" or self.winner is None or self.model_file is None:
            return
        self.tell_cut("The model file holds a fit", outcome.messages[-1].get("cut"))
        _move(self.comparison.folder / _FILE, Path(self.model_file))
        self.winner["model_file"] = str(self.model_file)
        self.winner["refitted_on"] = f"all {len(problem.y)} rows, the hold-out included, after it was scored"

    def tell_cut(self, what: str, cut: Any) -> None:
        """Say that the clock cut a fit after the race, where it did."""
        if cut is not None:
            self.notes.append(f"{what} that was {cut_sentence(cut)}: give more --seconds.")

    def _has_time_for_six(self, name: str) -> bool:
        """Tell whether six encodings and fits to more rows than in the race take no more than their share of time."""
        comparison = self.comparison
        left = comparison.clock.left(comparison.clock.reserve_for_end())
        row = next(row for row in comparison.rows if row["name"] == name)
        each = (row["fit_seconds"] or 0.0) + comparison.encode_seconds
        return left is None or 6.0 * _MORE_ROWS * each < _SHARE_OF_SIX * left

    def _keep(self, name: str, what: str, *, share: float, intervals: bool, threshold: float | None = None) -> Outcome:
        problem = self.comparison.problem
        return self.do(
            "keep:keep_candidate",
            what,
            share,
            name=name,
            fits=0 if intervals else 1,  # six fits are complete or not made
            task=problem.task,
            labels=problem.labels,
            target=problem.target,
            groups=problem.groups,
            file=_FILE,
            intervals=intervals,
            threshold=threshold,
        )

    def cover(self, name: str) -> None:
        """Count how many rows of the hold-out the intervals of the winner hold."""
        problem = self.comparison.problem
        outcome = self.do(
            "keep:cover_holdout",
            "the coverage of the intervals",
            0.4,
            name=name,
            task=problem.task,
            groups=problem.groups,
        )
        if outcome.status == "ok" and self.winner is not None:
            self.winner["intervals"] = outcome.messages[-1]

    def explain(self, name: str, decision: Decision | None = None) -> None:
        """Add importances, effects, slices and a learning curve to the details of a model."""
        if name not in self.details:
            return
        winner = self.winner is not None and name == self.winner["name"]
        outcome = self.do(
            "explain:explain_candidate",
            f"the importances and the learning curve of {name}",
            0.7 if winner else 0.5,
            most=max(_FEWEST_SECONDS, self.comparison.seconds_of["models"]),
            name=name,
            task=self.comparison.problem.task,
            metric=self.comparison.measure.name,
            groups=self.comparison.problem.groups,
            times=self.comparison.problem.times,
            classes=self.comparison.problem.classes,
            decision=decision,
            places=self.comparison.problem.places,
        )
        for message in outcome.messages:
            if "note" in message:
                self.notes += [message["note"]] if winner else []
            else:
                self.details[name] |= message
        if outcome.status == "timeout" and self.details[name].get("importances") is not None:
            self.no_time[-1] = f"the learning curve of {name}"  # what came before it is there

    def do(
        self,
        function: str,
        what: str,
        share: float,
        *,
        name: str,
        most: float | None = None,
        fits: int = 0,
        **arguments: Any,
    ) -> Outcome:
        """Run one step with a share of what time is left, `most` at most; if it fails or has no time, note that.

        Where the time would hardly do for the step's fits, a model that can stop early is told when.
        """
        comparison = self.comparison
        left = comparison.clock.left(comparison.clock.reserve_for_end())
        limits = [limit for limit in (most, None if left is None else share * left) if limit is not None]
        seconds = min(limits, default=None)
        row = next(row for row in comparison.rows if row["name"] == name)
        if seconds is not None and fits and 3 * fits * (row["fit_seconds"] or 0.0) > seconds:
            arguments["max_seconds"] = 0.7 * seconds / fits
        comparison.emit({"kind": "stage", "text": what})
        candidate = next(c for c in comparison.candidates if c.name == name)
        if seconds is not None and seconds < 0.05:
            outcome = Outcome("timeout", "no time was left")
        else:
            preparing = 0.0 if left is None or seconds is None else max(0.0, left - seconds)
            outcome = comparison.do(
                function, seconds=seconds, preparing=preparing, candidate=candidate, seed=comparison.seed, **arguments
            )
        comparison.seconds_of["finish"] += outcome.seconds
        if outcome.status == "interrupted":
            raise KeyboardInterrupt
        if outcome.status == "timeout":
            self.no_time.append(what)
        elif outcome.status != "ok":
            self.notes.append(f"Without {what}: {outcome.reason}.")
        return outcome


def _move(source: Path, target: Path) -> None:
    """Move a file in one step: a reader sees the old file or the new one."""
    try:
        with source.open("rb") as file, writing(target) as copy:
            shutil.copyfileobj(file, copy)
    except OSError as error:
        raise ModelFileError(f"compare: cannot write {target}: {error.strerror or error}.") from error


# --------------------------------------------------------------------------------------------------------------------
# What is said of the hold-out: the baseline on the same rows, the score if copies were not kept together, optimism.


def best_baseline(comparison: _Comparison, ranked: list[Row]) -> tuple[str, Prediction] | None:
    """Return the best baseline of the race and what it says of the hold-out."""
    row = next((row for row in ranked if row["baseline"] and row["rank"] is not None), None)
    if row is None:
        return None
    return row["name"], baseline_prediction(comparison.problem, row["name"], comparison.final)


def holdout_units(comparison: _Comparison) -> Units | None:
    """Return what varies as a whole among the rows set aside: groups of rows, or stretches of time."""
    problem = comparison.problem
    rows = comparison.final[1]
    if problem.times is not None:
        return stretches(problem.times[rows])
    if problem.groups is None or problem.grouping != "groups":
        return None
    return Units(problem.groups[rows], "groups")


def judge_as_given(finish: Finish, name: str) -> dict[str, Any] | None:
    """Score a model on rows set aside as if no row were a copy of another; None where there are few or none."""
    comparison = finish.comparison
    if not comparison.given:
        return None
    problem = comparison.problem
    encoded = comparison.do(
        "workspace:encode_splits",
        seconds=comparison.clock.left(comparison.clock.reserve_for_end()),
        splits=[GIVEN],
        task=problem.task,
        dense=wants_dense(comparison.candidate(name)),
    )
    if encoded.status == "interrupted":
        raise KeyboardInterrupt
    if encoded.status != "ok":
        finish.no_time.append("the score that copies on both sides of the split would give")
        return None
    outcome = finish.do(
        "judge:judge_candidate",
        f"the score of {name} if copies were not kept together",
        0.4,
        name=name,
        fits=1,
        metric=comparison.measure.name,
        classes=problem.classes,
        level=0.95,
        task=problem.task,
        split=GIVEN,
    )
    return next((message["holdout"] for message in outcome.messages if "holdout" in message), None)


def optimism_note(best: Row, holdout: dict[str, Any] | None, comparison: _Comparison, ranked: list[Row]) -> str:
    """Say how the cross-validated score and the one on the hold-out stand to each other.

    The best of several cross-validated scores tends to be too good. Whether this one is, only the hold-out tells: it is
    called optimistic where the hold-out is worse by more than the noise of both.
    """
    label = comparison.measure.label
    mean = best["mean"]
    models = [row for row in ranked if row["rank"] is not None and not row["baseline"]]
    complete = ""
    if any(row["rank"] < best["rank"] for row in models if row["rank"] and best["rank"]):  # those before it were cut
        models = [row for row in models if row.get("cut") is None]
        complete = " that are complete"
    chosen = "" if len(models) < 2 else f", by which it was chosen among {len(models)}{complete}"
    if mean is None:
        return ""
    told = f"Cross-validation gave {label} {mean:.4g}{chosen}"
    if holdout is None or holdout.get("score") is None:
        return f"{told}; no hold-out score confirms it."
    word = hold_against(mean, best, holdout, comparison.measure.greater_is_better)
    if word == "worse":
        return (
            f"{told}. The hold-out took no part in that and is worse by more than the noise of both: the "
            "cross-validated score is optimistic, or the rows set aside differ; quote the hold-out score."
        )
    if word == "unknown":
        return f"{told}; the hold-out took no part in that, so its score is the one to quote."
    return f"{told}; the hold-out, which took no part in that, is no worse than noise explains, and the one to quote."


def hold_against(mean: float, row: dict[str, Any] | Row, holdout: dict[str, Any], greater: bool) -> str:
    """Say whether a hold-out score is "worse" than a cross-validated mean beyond noise, "alike" or "unknown"."""
    ends = [(found.get("low"), found.get("high")) for found in (row, holdout)]
    halves = [(high - low) / 2 for low, high in ends if low is not None and high is not None]
    if len(halves) < 2:
        return "unknown"
    below = mean - holdout["score"] if greater else holdout["score"] - mean
    noise = math.hypot(*halves)
    return "worse" if below > noise else "alike"
